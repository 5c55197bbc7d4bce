//! Packets at a rate, or as fast as the wire takes them.

use units::{Bytes, Rate, Time};

#[derive(Debug)]
pub(super) struct RocePacer {
    pub rate: Option<Rate>,
    until: Time,
}

impl RocePacer {
    pub(super) fn new(rate: Option<Rate>) -> Self {
        Self { rate, until: Time::ZERO }
    }

    /// Until when it holds the next packet back, if it does.
    #[inline]
    pub(super) fn holds(&self, now: Time) -> Option<Time> {
        (now < self.until).then_some(self.until)
    }

    /// A packet leaves that takes so much of the wire.
    #[inline]
    pub(super) fn sends(&mut self, now: Time, bytes: Bytes) {
        if let Some(rate) = self.rate {
            self.until = now.max(self.until) + rate.span_of(bytes);
        }
    }
}
