//! Excess of acknowledgements that arrive in bursts.
//!
//! Networks and receivers hold acknowledgements back and then send them in bursts; between bursts a window of the
//! bandwidth-delay product runs dry. Linux 5.4 (`bbr_update_ack_aggregation`) measures the excess over what the
//! estimated bandwidth would deliver, and adds its maximum over five to ten rounds to the window.

use units::{Span, Time};

/// Rounds that each of the two halves of the maximum lasts.
const ROUNDS: u8 = 5;
/// Segments after which an epoch is too old to show bursts.
const MAX_EPOCH_SEGMENTS: u64 = 1 << 20;
/// Caps the extra window at what is delivered in this time.
const MAX_HOLD: Span = Span::from_ms(100);

#[derive(Clone, Debug, Default)]
pub(super) struct Aggregation {
    /// Time since which acknowledgements came faster than the bandwidth, and the bytes that they covered.
    epoch: Time,
    acked: u64,
    /// Largest excess of the current five rounds and of the five before.
    current: u64,
    previous: u64,
    rounds: u8,
}

impl Aggregation {
    pub(super) fn restart(&mut self, now: Time) {
        self.epoch = now;
        self.acked = 0;
    }

    pub(super) fn on_round(&mut self) {
        self.rounds += 1;
        if self.rounds >= ROUNDS {
            self.rounds = 0;
            self.previous = self.current;
            self.current = 0;
        }
    }

    /// `bandwidth` in bytes a second.
    pub(super) fn on_ack(&mut self, now: Time, delivered: u64, bandwidth: f64, window: u64, mss: u64) {
        let mut expected = (bandwidth * now.since(self.epoch).as_secs()) as u64;
        let acked = self.acked.saturating_add(delivered);
        if self.acked <= expected || acked >= MAX_EPOCH_SEGMENTS * mss {
            self.restart(now);
            expected = 0;
        }
        self.acked = self.acked.saturating_add(delivered);
        let extra = self.acked.saturating_sub(expected).min(window);
        self.current = self.current.max(extra);
    }

    pub(super) fn extra(&self, bandwidth: f64) -> u64 {
        self.current.max(self.previous).min((bandwidth * MAX_HOLD.as_secs()) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_000;
    const BANDWIDTH: f64 = 1e6;

    /// Acknowledgements of `burst` segments at a time, at the rate of the bandwidth.
    fn extra_of(burst: u64) -> u64 {
        let mut aggregation = Aggregation::default();
        for n in 1..200 {
            let now = Time::ZERO + Span::from_ms(n * burst);
            aggregation.on_ack(now, burst * MSS, BANDWIDTH, 1 << 30, MSS);
        }
        aggregation.extra(BANDWIDTH)
    }

    #[test]
    fn the_excess_is_one_burst() {
        assert_eq!(extra_of(1), MSS);
        assert_eq!(extra_of(40), 40 * MSS);
    }

    #[test]
    fn no_more_than_passes_in_a_tenth_of_a_second() {
        assert_eq!(extra_of(300), 100 * MSS);
    }

    #[test]
    fn a_burst_is_forgotten_after_ten_rounds() {
        let mut aggregation = Aggregation::default();
        aggregation.on_ack(Time::ZERO, 50 * MSS, BANDWIDTH, 1 << 30, MSS);
        for round in 1..=10 {
            assert_eq!(aggregation.extra(BANDWIDTH), 50 * MSS, "round {round}");
            aggregation.on_round();
        }
        assert_eq!(aggregation.extra(BANDWIDTH), 0);
    }
}
