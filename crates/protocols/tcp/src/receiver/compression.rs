//! SACK compression: while segments arrive out of order, not each is acknowledged at once (`__tcp_ack_snd_check`, Linux since
//! 4.18). The first three behind a gap are, because duplicates start a repair; of what follows, one acknowledgement reports
//! all that came within a twentieth of a round trip, a millisecond at most.

use units::{Span, Time};

/// `TCP_FASTRETRANS_THRESH`.
const AT_ONCE: u8 = 3;
/// `tcp_comp_sack_nr`, `tcp_comp_sack_delay_ns` and `tcp_comp_sack_slack_ns`. A kernel with nothing else to do wakes up at
/// the end of the slack.
const MOST: u32 = 44;
const LONGEST: Span = Span::from_ms(1);
const SLACK: Span = Span::from_us(100);
const SHARE: u64 = 20;

#[derive(Debug)]
pub(super) struct SackCompression {
    /// The next byte expected when a segment last came out of order, and how many were acknowledged at once since.
    next: u64,
    at_once: u8,
    /// Segments that the next acknowledgement reports beside the one that it is for.
    held: u32,
    pub(super) until: Time,
}

impl Default for SackCompression {
    fn default() -> Self {
        Self { next: u64::MAX, at_once: 0, held: 0, until: Time::NEVER }
    }
}

impl SackCompression {
    /// A segment came out of order while `next` is expected. True if its acknowledgement leaves at once.
    pub(super) fn on_segment(&mut self, now: Time, next: u64, rtt: Span) -> bool {
        if self.held >= MOST {
            return true;
        }
        if self.next != next {
            (self.next, self.at_once) = (next, 0);
        }
        if self.at_once < AT_ONCE {
            self.at_once += 1;
            return true;
        }
        self.held += 1;
        if self.until == Time::NEVER {
            self.until = now + (rtt / SHARE).min(LONGEST) + SLACK;
        }
        false
    }

    /// An acknowledgement left, which reports everything.
    pub(super) fn on_sent(&mut self) {
        self.held = 0;
        self.until = Time::NEVER;
    }

    /// True if an acknowledgement that was held back is due.
    pub(super) fn is_due(&self, now: Time) -> bool {
        self.held > 0 && self.until <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    #[test]
    fn three_behind_a_gap_are_acknowledged_at_once_and_the_rest_together() {
        let mut compression = SackCompression::default();
        let rtt = Span::from_ms(10);
        let at_once = [0, 10, 20, 30, 40].map(|us| compression.on_segment(at(us), 1_000, rtt));
        assert_eq!(at_once, [true, true, true, false, false]);
        assert_eq!(compression.until, at(30 + 500 + 100), "a twentieth of a round trip from the first that waits");
        assert!(!compression.is_due(at(629)) && compression.is_due(at(630)));
        compression.on_sent();
        assert!(!compression.is_due(at(630)));
        assert!(!compression.on_segment(at(700), 1_000, rtt), "it is the same gap");
        assert!(compression.on_segment(at(710), 2_000, rtt), "another gap");
    }

    #[test]
    fn a_millisecond_is_the_most_and_so_are_forty_four_segments() {
        let mut compression = SackCompression::default();
        let at_once = (0..50).filter(|_| compression.on_segment(at(0), 0, Span::from_ms(500))).count();
        assert_eq!(compression.until, at(1_100));
        assert_eq!(at_once, 3 + 50 - 3 - 44);
    }
}
