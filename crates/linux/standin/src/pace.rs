//! The pace of a wire that is slower than its socket takes frames.

use units::{Bytes, Rate, Span, Time};
use wire::ethernet::on_wire;

/// Most time by which sending may be ahead of the wire: the loop does not run every microsecond.
const AHEAD: Span = Span::from_us(300);

/// A wire of a known rate, and the time at which it has sent all that was put on it.
#[derive(Debug)]
pub struct WirePace {
    rate: Rate,
    free_at: Time,
}

impl WirePace {
    pub fn new(rate: Rate) -> Self {
        Self { rate, free_at: Time::ZERO }
    }

    /// Time at which the wire takes the next frame, if that is not now.
    #[inline]
    pub fn busy_until(&self, now: Time) -> Option<Time> {
        (self.free_at > now + AHEAD).then(|| Time::from_ps(self.free_at.as_ps() - AHEAD.as_ps()))
    }

    /// A frame of this many bytes, frame check not counted, is put on the wire.
    #[inline]
    pub fn occupy(&mut self, now: Time, bytes: usize) {
        self.free_at = self.free_at.max(now) + self.rate.span_of(Bytes::new(u64::from(on_wire(bytes as u32 + 4))));
    }

    /// Time begins again, on a wire that is free.
    pub fn start_over(&mut self) {
        self.free_at = Time::ZERO;
    }
}
