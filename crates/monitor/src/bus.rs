//! How messages get from those who see to those who act.
//!
//! A bus keeps the latest message of every key and a history of all. A subscriber that was away starts with the
//! former and goes on with the latter, so nothing that still matters is missed.

use std::fmt;
use std::time::Duration;

use crate::message::Message;

/// One end of a bus.
pub trait Bus: fmt::Debug + Send {
    /// Tells everybody, once; on an error it may or may not have been told.
    fn publish(&mut self, message: &Message) -> Result<(), BusError>;

    /// The latest message of every key. Also the point from which [`receive`](Self::receive) goes on.
    fn catch_up(&mut self) -> Result<Vec<Message>, BusError>;

    /// What was published since, by anybody, waiting up to `patience` if there is nothing yet. May repeat itself.
    fn receive(&mut self, patience: Duration) -> Result<Vec<Message>, BusError>;

    /// What was found that is not ours, in one line each, since this was last asked.
    fn foreign(&mut self) -> Vec<String>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusError(pub String);

impl fmt::Display for BusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BusError {}
