//! Messages from monitors, which see, to those that act: LinkGuardian App. C, *Notification and Activation*.
//!
//! The paper's daemons talk over Redis pub/sub, which loses what is said while a subscriber is away. Here a bus keeps
//! the latest message of every key and a history of all: a subscriber that was away starts with the former and goes on
//! with the latter, so nothing that still matters is missed.
//!
//! ```text
//!   put ──▶ Outbox ──publish──▶ latest of each key ──catch_up──▶ subscriber
//!           (waits, retries,    history            ──receive──▶  (Seen: is it news?)
//!            puts back)         hosts alive        ──hosts────▶
//! ```
//!
//! | file | what it is |
//! | --- | --- |
//! | [`message`] | what is said |
//! | [`collectors`] | collectors of packet losses: their announcements, and who takes which segment |
//! | [`key`] | what those who trust each other share |
//! | `local` | a bus inside one process |
//! | `redis` | a bus for many hosts, if the feature `redis` is on |
//! | [`outbox`] | what a publisher holds: nothing is lost while the bus is away, and what the bus forgot is put back |
//!
//! Invariants: under a key no message is ever followed by an older one; a message enters the history when
//! it becomes the latest of its key, both or neither; what is not ours is reported, never acted upon, never changed.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::Duration;

pub mod collectors;
pub mod key;
mod local;
pub mod message;
pub mod outbox;
#[cfg(feature = "redis")]
pub mod redis;
mod remarks;
mod time;

pub use local::LocalBus;
pub use message::{Condition, Evidence, Message, Order, OrderKind, PortId, PortState};
pub use outbox::{Outbox, OutboxStatus};
#[cfg(feature = "redis")]
pub use redis::RedisBus;

/// One end of a bus.
pub trait Bus: fmt::Debug + Send {
    /// Publishes to everybody, unless the bus has this message or a newer one already. On an error it may or may not
    /// have been published; publishing it again does no harm.
    fn publish(&mut self, message: &Message) -> Result<PublishResult, BusError>;

    /// The latest message of every key. Also the point from which [`receive`](Self::receive) goes on.
    fn catch_up(&mut self) -> Result<Vec<Message>, BusError>;

    /// Messages that anybody published since; waits up to `patience` if there is none yet. They may repeat, and may be
    /// older than others received before: ask a [`Deduplicator`]. Without a `catch_up` before, the call is one.
    fn receive(&mut self, patience: Duration) -> Result<Vec<Message>, BusError>;

    /// The latest message of each of these keys, `None` where there is none that is ours.
    fn latest(&mut self, keys: &[String]) -> Result<Vec<Option<Message>>, BusError>;

    /// States of the ports of a host on the bus, from any sender and any incarnation.
    fn recall(&mut self, host: &str) -> Result<Vec<PortState>, BusError>;

    /// Says that `host` is alive; forgotten after three times `interval` unless it is said again.
    fn heartbeat(&mut self, host: &str, interval: Duration) -> Result<(), BusError>;

    /// The hosts that are alive, in order.
    fn hosts(&mut self) -> Result<Vec<String>, BusError>;

    /// Data that was found and is not ours, in one line each, since this was last asked.
    fn foreign(&mut self) -> Vec<String>;

    /// Gaps that made `receive` start over from the latest messages because the history did not reach back: in one line
    /// each, since this was last asked. The state is complete all the same; the changes in between may not be.
    fn gaps(&mut self) -> Vec<String>;

    /// A further end of the same bus, for another thread.
    fn another(&self) -> Box<dyn Bus>;
}

/// Result of publishing a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublishResult {
    /// The message is now the latest of its key.
    Now,
    /// The message was the latest already: an earlier attempt had come through.
    Before,
    /// The bus has a newer one of that key, or another of the same version. Somebody else speaks for this port, or
    /// this incarnation of the monitor is not greater than the one before.
    Outdated,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BusError {
    /// The address cannot be opened, and never will be.
    Address(String),
    /// The bus is down: nothing can be published right now.
    Down(String),
    /// The data under this key is not ours, or would not be understood; other keys are not affected.
    Key { key: String, why: String },
}

impl BusError {
    /// Refuses an address that only a build with the feature `redis` opens.
    pub fn without_redis(address: &str) -> Self {
        let build = "cargo build --release --features redis";
        Self::Address(format!("{address}: this build has no Redis; build it with: {build}"))
    }
}

impl fmt::Display for BusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(why) | Self::Down(why) => f.write_str(why),
            Self::Key { key, why } => write!(f, "`{key}`: {why}"),
        }
    }
}

impl std::error::Error for BusError {}

/// Opens what a user wrote: `local`, or with the feature `redis` `redis://…` or `rediss://…`.
pub fn open(address: &str) -> Result<Box<dyn Bus>, BusError> {
    open_with_ca(address, None)
}

/// Opens a bus and trusts a certificate authority in PEM instead of those of the system.
pub fn open_with_ca(address: &str, ca: Option<&Path>) -> Result<Box<dyn Bus>, BusError> {
    match (address, ca) {
        ("local", None) => Ok(Box::new(LocalBus::new())),
        ("local", Some(ca)) => {
            Err(BusError::Address(format!("bus-ca {}: only a rediss:// bus has certificates", ca.display())))
        }
        #[cfg(feature = "redis")]
        (url, ca) => Ok(Box::new(RedisBus::open_with_ca(url, ca)?)),
        #[cfg(not(feature = "redis"))]
        (url, _) => Err(BusError::without_redis(url)),
    }
}

/// Keys that a subscriber remembers. More than a host has ports, on both ends of their cables.
const MOST_SEEN: usize = 16_384;

/// Distinguishes news from repetitions: every subscriber asks it before it acts. Of keys beyond the most that are
/// remembered nothing is news: a sender that invents names must not fill the memory, nor bring back what is over.
#[derive(Clone, Debug, Default)]
pub struct Deduplicator(BTreeMap<String, (u64, u64)>);

impl Deduplicator {
    pub fn new() -> Self {
        Self::default()
    }

    /// False for a message that was seen before, and for one that is older than one that was.
    pub fn is_news(&mut self, message: &Message) -> bool {
        let (key, version) = (message.key(), message.version());
        match self.0.get_mut(&key) {
            Some(seen) if *seen >= version => false,
            Some(seen) => {
                *seen = version;
                true
            }
            None => {
                let has_room = self.0.len() < MOST_SEEN;
                if has_room {
                    self.0.insert(key, version);
                }
                has_room
            }
        }
    }

    /// True if a message of its key was seen before.
    pub fn knows(&self, message: &Message) -> bool {
        self.0.contains_key(&message.key())
    }

    /// True if no further key can be remembered.
    pub fn is_full(&self) -> bool {
        self.0.len() >= MOST_SEEN
    }
}
