//! HyStart: leave slow start before it overshoots.
//!
//! S. Ha, I. Rhee: "Taming the elephants: new TCP slow start" (2011), with the constants and the clock of Linux 5.4
//! (`hystart_update` in `tcp_cubic.c`). Two signs that the pipe is full, either is enough:
//!
//! - *ACK train*: acknowledgements that follow each other within 2 ms stretch over more than half of the shortest round
//!   trip.
//! - *delay*: the shortest round trip of this round, after eight samples, exceeds the shortest ever by an eighth of it
//!   (at least 4 ms, at most 16 ms).
//!
//! The kernel's clock ticked in milliseconds then, and so does this one. At the round trips of a datacenter the train
//! therefore says no more than whether a tick fell into the round, and the delay of 4 ms is never reached: most of the
//! time slow start ends there with a loss or a mark.

use units::{Span, Time};

const TRAIN_SPACING_MS: u64 = 2;
const MIN_SAMPLES: u8 = 8;
const DELAY_MIN: Span = Span::from_ms(4);
const DELAY_MAX: Span = Span::from_ms(16);

#[derive(Clone, Debug, Default)]
pub(super) struct HyStart {
    /// The shortest round trip since the start or the last timeout.
    min_rtt: Option<Span>,
    /// Start of this round, and last acknowledgement of its train, in ticks.
    round_start: u64,
    last_ack: u64,
    /// The shortest round trip of this round.
    round_min: Span,
    samples: u8,
}

impl HyStart {
    pub(super) fn reset(&mut self, now: Time) {
        self.min_rtt = None;
        self.start_round(now);
    }

    pub(super) fn start_round(&mut self, now: Time) {
        self.round_start = ticks(now);
        self.last_ack = self.round_start;
        self.samples = 0;
    }

    pub(super) fn on_rtt(&mut self, rtt: Span) {
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |shortest| shortest.min(rtt)));
    }

    /// Zero before the first sample.
    pub(super) fn min_rtt(&self) -> Span {
        self.min_rtt.unwrap_or_default()
    }

    /// True if either sign shows with this acknowledgement of slow start.
    pub(super) fn pipe_is_full(&mut self, now: Time, rtt: Span) -> bool {
        let train = self.train_is_long(ticks(now));
        let delay = self.delay_has_grown(rtt);
        train || delay
    }

    fn train_is_long(&mut self, now: u64) -> bool {
        if now.saturating_sub(self.last_ack) > TRAIN_SPACING_MS {
            return false;
        }
        self.last_ack = now;
        now.saturating_sub(self.round_start) > (self.min_rtt() / 2).as_ps() / TICK.as_ps()
    }

    fn delay_has_grown(&mut self, rtt: Span) -> bool {
        self.round_min = if self.samples == 0 { rtt } else { self.round_min.min(rtt) };
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
            return false;
        }
        let shortest = self.min_rtt();
        self.round_min.saturating_sub(shortest) > (shortest / 8).clamp(DELAY_MIN, DELAY_MAX)
    }
}

const TICK: Span = Span::from_ms(1);

fn ticks(now: Time) -> u64 {
    now.as_ps() / TICK.as_ps()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Span = Span::from_ms(100);

    fn at_ms(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    /// Milliseconds of a round, with an acknowledgement every `spacing`, after which the pipe is found full.
    fn found_after(spacing: u64, base: Span, rtt: Span) -> Option<u64> {
        let mut hystart = HyStart::default();
        hystart.on_rtt(base);
        hystart.start_round(at_ms(1_000));
        (0..100).step_by(spacing as usize).find(|ms| hystart.pipe_is_full(at_ms(1_000 + ms), rtt))
    }

    #[test]
    fn a_train_longer_than_half_a_round_trip_fills_the_pipe() {
        assert_eq!(found_after(1, RTT, RTT), Some(51));
        assert_eq!(found_after(2, RTT, RTT), Some(52));
    }

    #[test]
    fn acknowledgements_far_apart_are_no_train() {
        assert_eq!(found_after(3, RTT, RTT), None);
    }

    #[test]
    fn delay_counts_from_the_ninth_sample_on() {
        let threshold = Span::from_us(112_500);
        assert_eq!(found_after(3, RTT, threshold), None);
        assert_eq!(found_after(3, RTT, threshold + Span::from_ns(1)), Some(24));
    }

    #[test]
    fn one_short_round_trip_among_long_ones_is_enough_to_go_on() {
        let mut hystart = HyStart::default();
        hystart.on_rtt(RTT);
        hystart.start_round(at_ms(0));
        let full = (0..30).any(|n| {
            let rtt = if n == 5 { RTT } else { Span::from_ms(200) };
            hystart.pipe_is_full(at_ms(3 * n), rtt)
        });
        assert!(!full);
    }

    #[test]
    fn short_round_trips_end_only_at_a_tick() {
        let base = Span::from_us(50);
        assert_eq!(found_after(1, base, base), Some(1));
        let mut hystart = HyStart::default();
        hystart.on_rtt(base);
        hystart.start_round(at_ms(7));
        assert!(!(0..900).any(|us| hystart.pipe_is_full(at_ms(7) + Span::from_us(us), base)));
    }
}
