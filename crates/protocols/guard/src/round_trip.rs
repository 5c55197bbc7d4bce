//! Time that the answer to a notice takes, which decides when a missing frame is worth asking for again.
//!
//! A notice asks for a frame, and its retransmission is the answer. On a bare wire that takes microseconds; with a queue
//! behind the card, it takes as long as that queue. Who asks again sooner gets the frame twice, and makes the queue longer. So
//! the wait follows what was measured, as TCP's does (RFC 6298): the smoothed round trip and four times its variation. An
//! answer to a repeated question is ambiguous (Karn's rule), but it cannot have taken longer than since the first question.
//! Until an unambiguous answer comes, the wait is that long; otherwise a queue that grew suddenly would never be measured.
//!
//! From the second repetition on, the wait for the same frame doubles. Hence the bound: within a round trip `R` that nobody
//! expected a frame is asked for at most `2 + log2(R / floor)` times, and those that follow once.

use units::Span;

/// The shift that ends the doubling: beyond this every frame has been given up.
const MOST_DOUBLINGS: u8 = 7;

#[derive(Debug)]
pub(crate) struct RoundTrip {
    /// Smoothed, and its mean variation.
    measured: Option<(Span, Span)>,
    /// The longest ambiguous answer since the last unambiguous one.
    suspected: Span,
    floor: Span,
    most: Span,
}

impl RoundTrip {
    /// The wait is at least `floor`, and at most `most`.
    pub(crate) fn new(floor: Span, most: Span) -> Self {
        Self { measured: None, suspected: Span::ZERO, floor, most: most.max(floor) }
    }

    /// A frame came this long after it was first asked for; only `once`, or more often.
    pub(crate) fn on_answer(&mut self, took: Span, once: bool) {
        if !once {
            self.suspected = self.suspected.max(took);
            return;
        }
        self.suspected = Span::ZERO;
        self.measured = Some(match self.measured {
            None => (took, took / 2),
            Some((smoothed, variation)) => {
                let off = took.max(smoothed).saturating_sub(took.min(smoothed));
                ((smoothed * 7 + took) / 8, (variation * 3 + off) / 4)
            }
        });
    }

    /// Time to wait for an answer to a question after which `round` others have gone unanswered.
    pub(crate) fn wait(&self, round: u8) -> Span {
        let measured = self.measured.map_or(Span::ZERO, |(smoothed, variation)| smoothed + variation * 4);
        let first = measured.max(self.suspected).clamp(self.floor, self.most);
        first * (1 << round.saturating_sub(1).min(MOST_DOUBLINGS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Span {
        Span::from_ms(ms)
    }

    #[test]
    fn what_was_measured_is_waited_for_between_the_bounds() {
        let mut trip = RoundTrip::new(ms(2), ms(25));
        assert_eq!([0, 1, 2, 3].map(|round| trip.wait(round)), [ms(2), ms(2), ms(4), ms(8)]);
        trip.on_answer(Span::from_us(50), true);
        assert_eq!(trip.wait(0), ms(2));
        trip.on_answer(ms(8), true);
        assert!(trip.wait(0) > ms(8) && trip.wait(0) < ms(12), "{:?}", trip.wait(0));
        (0..9).for_each(|_| trip.on_answer(ms(40), true));
        assert_eq!(trip.wait(0), ms(25));
    }

    #[test]
    fn an_ambiguous_answer_makes_the_next_one_unambiguous() {
        let mut trip = RoundTrip::new(ms(2), ms(25));
        trip.on_answer(ms(20), false);
        assert_eq!(trip.wait(0), ms(20));
        trip.on_answer(ms(1), true);
        assert!(trip.wait(0) < ms(4));
    }
}
