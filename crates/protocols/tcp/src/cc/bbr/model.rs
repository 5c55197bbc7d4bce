//! BBR's model of the path: the bandwidth of its bottleneck, its length, and whether it was ever full.
//!
//! draft-cardwell-iccrg-bbr-congestion-control-00 §4.1; Linux 5.4 `bbr_update_bw`, `bbr_check_full_bw_reached`.

use units::{Span, Time};

use super::max_filter::MaxFilter;
use crate::cc::{AckSample, RateSample};

/// A cycle of gains and two rounds more.
const BANDWIDTH_ROUNDS: u64 = 10;
const MIN_RTT_WINDOW: Span = Span::from_ms(10_000);
/// The pipe is full once the bandwidth has not grown by a quarter in three rounds.
const FULL_GROWTH: f64 = 1.25;
const FULL_ROUNDS: u8 = 3;

#[derive(Clone, Debug)]
pub(super) struct BbrModel {
    /// BtlBw in bytes a second.
    bandwidth: MaxFilter,
    /// RTprop, and when it was seen.
    min_rtt: Option<(Span, Time)>,
    /// Total delivered, now and when this round began.
    delivered: u64,
    round_began: u64,
    rounds: u64,
    round_start: bool,
    /// Largest bandwidth when it last grew by a quarter, and rounds since.
    full_bandwidth: f64,
    full_rounds: u8,
    full: bool,
    /// Segments that left while this much was delivered were held back on purpose: their rates are lower bounds.
    held_back: (u64, u64),
}

impl BbrModel {
    pub(super) fn new() -> Self {
        Self {
            bandwidth: MaxFilter::new(BANDWIDTH_ROUNDS),
            min_rtt: None,
            delivered: 0,
            round_began: 0,
            rounds: 0,
            round_start: false,
            full_bandwidth: 0.0,
            full_rounds: 0,
            full: false,
            held_back: (u64::MAX, 0),
        }
    }

    pub(super) fn bandwidth(&self) -> f64 {
        self.bandwidth.get()
    }

    pub(super) fn min_rtt(&self) -> Option<Span> {
        self.min_rtt.map(|(rtt, _)| rtt)
    }

    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// True if the latest acknowledgement began a round trip.
    pub(super) fn round_start(&self) -> bool {
        self.round_start
    }

    /// True if the pipe was ever full.
    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    /// The round trip begins now: with what leaves from here on.
    pub(super) fn begin_round(&mut self) {
        self.round_began = self.delivered;
    }

    pub(super) fn on_ack(&mut self, ack: &AckSample) {
        self.delivered = self.delivered.saturating_add(ack.delivered);
        self.round_start = false;
        if let Some(sample) = ack.rate
            && sample.delivered > 0
            && sample.interval > Span::ZERO
        {
            self.count_round(&sample);
            self.measure(&sample);
        }
    }

    fn count_round(&mut self, sample: &RateSample) {
        if sample.prior_delivered >= self.round_began {
            self.begin_round();
            self.rounds += 1;
            self.round_start = true;
        }
    }

    fn measure(&mut self, sample: &RateSample) {
        let bandwidth = sample.delivered as f64 / sample.interval.as_secs();
        let app_limited = self.is_lower_bound(sample);
        if !app_limited || bandwidth >= self.bandwidth() {
            self.bandwidth.update(self.rounds, bandwidth);
        }
        if self.round_start && !app_limited {
            self.look_for_full_pipe();
        }
    }

    fn is_lower_bound(&self, sample: &RateSample) -> bool {
        let (from, to) = self.held_back;
        sample.app_limited || (from..=to).contains(&sample.prior_delivered)
    }

    fn look_for_full_pipe(&mut self) {
        if self.full {
            return;
        }
        if self.bandwidth() >= self.full_bandwidth * FULL_GROWTH {
            self.full_bandwidth = self.bandwidth();
            self.full_rounds = 0;
            return;
        }
        self.full_rounds += 1;
        self.full = self.full_rounds >= FULL_ROUNDS;
    }

    /// Forgets bandwidths from before a timeout, so that they do not count against growth after it.
    pub(super) fn expect_growth(&mut self) {
        self.full_bandwidth = 0.0;
    }

    pub(super) fn restart_search_for_full_pipe(&mut self) {
        self.full_bandwidth = 0.0;
        self.full_rounds = 0;
    }

    /// True if the shortest round trip is so old that it has to be measured anew.
    pub(super) fn update_min_rtt(&mut self, now: Time, rtt: Option<Span>) -> bool {
        let expired = self.min_rtt.is_some_and(|(_, seen)| now.since(seen) > MIN_RTT_WINDOW);
        if let Some(rtt) = rtt
            && (expired || self.min_rtt().is_none_or(|shortest| rtt < shortest))
        {
            self.min_rtt = Some((rtt, now));
        }
        expired
    }

    pub(super) fn confirm_min_rtt(&mut self, now: Time) {
        if let Some((_, seen)) = &mut self.min_rtt {
            *seen = now;
        }
    }

    /// Marks segments as held back on purpose from now on.
    pub(super) fn hold_back(&mut self) {
        self.held_back = (self.delivered, self.delivered);
    }

    /// Still so, and for all that is in flight.
    pub(super) fn keep_held_back(&mut self, flight: u64) {
        self.held_back.1 = self.delivered.saturating_add(flight);
    }
}
