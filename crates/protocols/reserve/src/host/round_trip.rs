//! The smallest round trip of late.

use units::{Span, Time};

/// Minimum over the current window and the one before.
#[derive(Clone, Copy, Debug)]
pub(super) struct SmallestRoundTrip {
    window: Span,
    /// Start of the current window.
    began: Time,
    current: Span,
    before: Span,
    samples: u16,
    /// Fewer samples than this say nothing about how short the way can be.
    enough: u16,
}

const NONE: Span = Span::from_ps(u64::MAX);

impl SmallestRoundTrip {
    pub(super) fn new(window: Span, enough: u16) -> Self {
        Self { window, began: Time::ZERO, current: NONE, before: NONE, samples: 0, enough }
    }

    #[inline]
    pub(super) fn add(&mut self, now: Time, sample: Span) {
        if now.since(self.began) > self.window && self.current != NONE {
            (self.before, self.current, self.began) = (self.current, NONE, now);
        }
        self.current = self.current.min(sample);
        self.samples = self.samples.saturating_add(1);
    }

    /// Smallest round trip; `None` before there have been enough exchanges, so that a burst is late rather than early.
    #[inline]
    pub(super) fn smallest(&self) -> Option<Span> {
        (self.samples >= self.enough).then(|| self.current.min(self.before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_exchange_changes_nothing_until_two_windows_have_passed() {
        let mut round_trip = SmallestRoundTrip::new(Span::from_us(10), 4);
        let at = |us| Time::ZERO + Span::from_us(us);
        for _ in 0..3 {
            round_trip.add(at(1), Span::from_us(2));
        }
        assert_eq!(round_trip.smallest(), None, "too few");
        round_trip.add(at(2), Span::from_us(9));
        assert_eq!(round_trip.smallest(), Some(Span::from_us(2)));
        round_trip.add(at(12), Span::from_us(5));
        assert_eq!(round_trip.smallest(), Some(Span::from_us(2)));
        round_trip.add(at(23), Span::from_us(6));
        assert_eq!(round_trip.smallest(), Some(Span::from_us(5)), "the way has become longer");
    }
}
