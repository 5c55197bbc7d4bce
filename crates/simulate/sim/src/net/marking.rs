//! ECN: which packets a switch port marks.

use units::{Bytes, Rate};

use super::port::CLASSES;

/// Packets are marked with a chance that rises from nothing at `some` to `most` just below `all`, and is certain from
/// there on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Marking {
    pub some: Bytes,
    pub all: Bytes,
    pub most: f64,
    pub at: MarkingPoint,
    /// The thresholds are for a port of this rate and grow in proportion to a port's; if not given, they are the same
    /// for all ports.
    pub per: Option<Rate>,
    /// Bit mask of the classes whose packets may be marked.
    pub classes: u8,
}

/// Point at which a port decides on a mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MarkingPoint {
    /// Decides when a packet joins the queue, by the bytes ahead of it.
    #[default]
    Arrival,
    /// Decides when a packet leaves, by the bytes behind it: the mark does not wait in the queue that it reports.
    Departure,
}

impl Marking {
    /// All or nothing, as DCTCP wants it.
    pub fn step(at: Bytes) -> Self {
        Self::ramp(at, at, 1.0)
    }

    /// Marks on arrival, at every port and for every class.
    pub fn ramp(some: Bytes, all: Bytes, most: f64) -> Self {
        Self { some, all, most, at: MarkingPoint::Arrival, per: None, classes: u8::MAX }
    }

    /// Settings with the thresholds of a port of this rate.
    pub(super) fn for_port(self, rate: Rate) -> Self {
        let Some(per) = self.per else { return self };
        let scale = |bytes: Bytes| {
            let bytes = u128::from(bytes.get()) * u128::from(rate.bits_per_second());
            Bytes::new(u64::try_from(bytes / u128::from(per.bits_per_second().max(1))).unwrap_or(u64::MAX))
        };
        Self { some: scale(self.some), all: scale(self.all), ..self }
    }

    /// Decides whether a packet of this class is marked by a backlog of more than `some`; `draw` gives a number from 0 to
    /// 1.
    pub(super) fn applies(&self, class: u8, backlog: u64, draw: impl FnOnce() -> f64) -> bool {
        if self.classes & 1 << (usize::from(class) % CLASSES) == 0 {
            return false;
        }
        let (bytes, some, all) = (backlog as f64, self.some.get() as f64, self.all.get() as f64);
        bytes >= all || draw() < self.most * (bytes - some) / (all - some)
    }
}
