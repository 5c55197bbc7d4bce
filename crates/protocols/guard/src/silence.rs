//! Time for which the peer has been silent while it should have answered.
//!
//! A clock alone would not do: a program on a host may not get to run for longer than any patience, and its own stall is
//! not the peer's silence. A count of dummies would not do either: a thin stream sends one for each frame. So time counts
//! from dummy to dummy, and between two of them only up to a multiple of their usual interval.

use units::{Span, Time};

/// Most intervals of dummies that count of the time between two dummies.
const MOST_INTERVALS: u64 = 16;

#[derive(Debug)]
pub(crate) struct Silence {
    /// The latest dummy; never, if the peer has answered since.
    last: Time,
    lasted: Span,
}

impl Default for Silence {
    fn default() -> Self {
        Self { last: Time::NEVER, lasted: Span::ZERO }
    }
}

impl Silence {
    /// The peer was heard of.
    #[inline(always)]
    pub(crate) fn end(&mut self) {
        self.last = Time::NEVER;
    }

    /// A dummy goes out; they do so `every` so often. How long the peer has been silent.
    pub(crate) fn on_dummy(&mut self, now: Time, every: Span) -> Span {
        if self.last == Time::NEVER {
            self.lasted = Span::ZERO;
        } else {
            self.lasted += now.since(self.last).min(every * MOST_INTERVALS);
        }
        self.last = now;
        self.lasted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    #[test]
    fn time_counts_from_the_first_dummy_until_an_answer() {
        let (mut silence, every) = (Silence::default(), Span::from_us(300));
        let lasted = [5_000, 5_300, 5_340, 6_000].map(|us| silence.on_dummy(at(us), every));
        assert_eq!(lasted, [0, 300, 340, 1_000].map(Span::from_us));
        silence.end();
        assert_eq!(silence.on_dummy(at(6_300), every), Span::ZERO);
    }

    #[test]
    fn a_stall_of_our_own_counts_as_a_few_dummies() {
        let (mut silence, every) = (Silence::default(), Span::from_us(300));
        silence.on_dummy(at(0), every);
        assert_eq!(silence.on_dummy(at(500_000), every), every * MOST_INTERVALS);
    }
}
