//! Drives a controller round by round: a window of segments, an acknowledgement for each, evenly over a round trip.

use units::{Span, Time};

use super::{AckSample, CcConfig, CongestionControl};

pub(super) const MSS: u64 = 1_000;

pub(super) fn config(initial_segments: u64) -> CcConfig {
    CcConfig {
        mss: MSS as u32,
        initial_window: initial_segments * MSS,
        seed: 1,
        tick: Span::ZERO,
        tick_offset: Span::ZERO,
        fine_delays: false,
        whole_segments: false,
    }
}

/// An acknowledgement of one segment, with everything going well.
pub(super) fn ack(now: Time, rtt: Span, window: u64) -> AckSample {
    AckSample {
        now,
        delivered: MSS,
        advanced: MSS,
        marked: 0,
        flight_before: window,
        flight: window - MSS.min(window),
        rtt: Some(rtt),
        srtt: rtt,
        round_start: false,
        window_limited: true,
        in_recovery: false,
        rate: None,
    }
}

pub(super) struct Rounds<C> {
    pub control: C,
    pub now: Time,
    rtt: Span,
}

impl<C: CongestionControl> Rounds<C> {
    pub(super) fn new(control: C, rtt: Span) -> Self {
        Self { control, now: Time::ZERO + Span::from_ms(1_000), rtt }
    }

    /// The window in whole segments.
    pub(super) fn segments(&self) -> u64 {
        self.control.window() / MSS
    }

    /// One window acknowledged.
    pub(super) fn round(&mut self) {
        self.round_of(self.segments(), |_| false);
    }

    pub(super) fn rounds(&mut self, count: usize) {
        (0..count).for_each(|_| self.round());
    }

    /// `segments` acknowledged, with echoes for those that `is_marked`.
    pub(super) fn round_of(&mut self, segments: u64, is_marked: impl Fn(u64) -> bool) {
        let start = self.now;
        for n in 0..segments {
            self.now = start + self.rtt * n / segments;
            let marked = if is_marked(n) { MSS } else { 0 };
            let ack = AckSample { marked, round_start: n == 0, ..ack(self.now, self.rtt, segments * MSS) };
            self.control.acked(&ack);
        }
        self.now = start + self.rtt;
    }

    pub(super) fn lose(&mut self) {
        self.control.on_loss(self.now, self.control.window());
    }

    pub(super) fn recover(&mut self) {
        self.control.on_recovered(self.now);
    }

    /// The window in segments on average over `rounds`, when one segment of every `period` is lost and each loss takes
    /// a round to repair.
    pub(super) fn average_with_losses(&mut self, period: u64, rounds: u64) -> f64 {
        let (mut sum, mut acked) = (0.0, 0);
        for _ in 0..rounds {
            let window = self.control.window();
            sum += window as f64 / MSS as f64;
            let lost = (acked + window / MSS) / period > acked / period;
            acked += window / MSS;
            self.round();
            if lost {
                self.lose();
                self.round();
                self.recover();
            }
        }
        sum / rounds as f64
    }
}
