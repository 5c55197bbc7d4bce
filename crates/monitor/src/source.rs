//! Where counters come from.

use std::fmt;
use std::io;

use units::Moment;

use crate::reading::Reading;

/// Something that can be asked for the counters of ports, again and again.
pub trait Source: fmt::Debug + Send {
    /// For messages: `ethtool`, `sysfs`, the name of a file.
    fn name(&self) -> &str;

    /// Adds a reading for every port that it knows. What went wrong with single ports is told in `troubles`, one line
    /// each; an error means that nothing could be read at all.
    fn read(&mut self, now: Moment, readings: &mut Vec<Reading>, troubles: &mut Vec<String>) -> io::Result<()>;
}
