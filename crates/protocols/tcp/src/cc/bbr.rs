//! BBR, version 1: send as fast as the bottleneck delivers, with a window of what fits on the way.
//!
//! draft-cardwell-iccrg-bbr-congestion-control-00 and Linux 5.4 (`tcp_bbr.c`). The model of the path has two numbers:
//! the bottleneck's bandwidth, the largest delivery rate of the last ten rounds, and the shortest round trip of the
//! last ten seconds. Only one of them can be measured at a time, so BBR goes back and forth:
//!
//! ```text
//!              bandwidth no longer                 flight down to
//!                     grows                       what the path holds
//!   ┌─▶ Startup ───────────────────▶ Drain ────────────────────────────▶ ProbeBw ◀─┐
//!   │      │                           │                                    │      │
//!   │      └───────────────────────────┴──────────────────┬─────────────────┘      │
//!   │                           no shorter round trip for 10 s                     │
//!   │                                                     ▼                        │
//!   └───────── pipe never was full ─────────────────  ProbeRtt ── pipe was full ───┘
//!                                             4 segments, 200 ms
//! ```
//!
//! | mode | pacing gain | window gain |
//! | --- | --- | --- |
//! | Startup | 2/ln 2 | 2/ln 2 |
//! | Drain | ln 2/2 | 2/ln 2 |
//! | ProbeBw | 5/4, 3/4, 1, 1, 1, 1, 1, 1, each for a round trip | 2 |
//! | ProbeRtt | 1 | at most 4 segments |
//!
//! Losses and marks do not enter the model. A loss makes the window hold back: for one round of a recovery no more
//! leaves than was delivered, and afterwards the window is what it was. The cycle of ProbeBw begins at a phase drawn
//! from the seed, any but the second.
//!
//! Left out: the long-term estimate for policers (`lt_bw`), which datacenters have none of, and the correction for
//! segments that wait in the host for their time to leave (`bbr_packets_in_net_at_edt`), since here they wait before
//! they count as in flight.

mod aggregation;
mod max_filter;
mod mode;
mod model;

use machine::Out;
use units::{Span, Time};

use super::{AckSample, CcConfig, CongestionControl, MAX_MSS, MAX_WINDOW, PacingRate};
use crate::connection::TcpConnection;
use aggregation::Aggregation;
use mode::{BbrMode, HIGH_GAIN};
use model::BbrModel;

/// Factor of the pace, slightly below the bandwidth, so that queues drain.
const PACING_MARGIN: f64 = 0.99;
const MIN_SEGMENTS: u64 = 4;
const PROBE_RTT_TIME: Span = Span::from_ms(200);
/// Round trip that is assumed before the first is measured.
const NOMINAL_RTT: Span = Span::from_ms(1);
/// The most that a host hands to its interface at once: 64 KiB with room for headers.
const MAX_BURST: f64 = 65_215.0;
/// Rate in bytes a second below which segments are handed over one by one.
const SLOW: f64 = 150_000.0;

#[derive(Clone, Debug)]
pub(crate) struct Bbr {
    mss: u64,
    initial: u64,
    seed: u32,
    mode: BbrMode,
    model: BbrModel,
    aggregation: Aggregation,
    window: u64,
    /// The window before losses or ProbeRtt cut it.
    prior_window: u64,
    threshold: u64,
    /// Bytes a second.
    pacing: f64,
    seen_rtt: bool,
    repairing: bool,
    /// First round of a recovery: as much leaves as was delivered.
    conserving: bool,
    idle_restart: bool,
}

impl Bbr {
    pub(crate) fn new(config: &CcConfig) -> Self {
        let mss = u64::from(config.mss.clamp(1, MAX_MSS));
        let initial = config.initial_window.clamp(mss, MAX_WINDOW);
        Self {
            mss,
            initial,
            seed: config.seed,
            mode: BbrMode::Startup,
            model: BbrModel::new(),
            aggregation: Aggregation::default(),
            window: initial,
            prior_window: 0,
            threshold: MAX_WINDOW,
            pacing: initial_pacing(initial, NOMINAL_RTT),
            seen_rtt: false,
            repairing: false,
            conserving: false,
            idle_restart: false,
        }
    }

    /// Takes the round trip of the handshake; without it the first window leaves at the pace for a round trip of 1 ms.
    pub(crate) fn on_handshake(&mut self, now: Time, rtt: Span) {
        self.model.update_min_rtt(now, Some(rtt));
        self.set_pacing(HIGH_GAIN, rtt);
    }

    /// BtlBw: the bottleneck's bandwidth as far as is known, in bytes a second.
    pub(crate) fn bandwidth(&self) -> f64 {
        self.model.bandwidth()
    }

    /// RTprop: the shortest round trip, once there is one.
    pub(crate) fn min_rtt(&self) -> Option<Span> {
        self.model.min_rtt()
    }

    fn min_window(&self) -> u64 {
        MIN_SEGMENTS * self.mss
    }

    fn update_aggregation(&mut self, ack: &AckSample) {
        if self.model.round_start() {
            self.aggregation.on_round();
        }
        if ack.delivered > 0 && ack.rate.is_some() {
            self.aggregation.on_ack(ack.now, ack.delivered, self.bandwidth(), self.window, self.mss);
        }
    }

    fn advance_cycle(&mut self, ack: &AckSample) {
        if let BbrMode::ProbeBw { phase, since } = self.mode
            && self.phase_is_over(since, ack)
        {
            self.mode = BbrMode::next_phase(phase, ack.now);
        }
    }

    /// A phase lasts a round trip. The first goes on until the flight is as high as it was meant to get, unless
    /// segments are lost; the second ends early if the queue of the first is gone.
    fn phase_is_over(&self, since: Time, ack: &AckSample) -> bool {
        let full_length = self.min_rtt().is_none_or(|rtt| ack.now.since(since) > rtt);
        let gain = self.mode.pacing_gain();
        if gain > 1.0 {
            full_length && (lost(ack) > 0 || ack.flight_before.saturating_add(self.burst()) >= self.inflight(gain))
        } else if gain < 1.0 {
            full_length || ack.flight_before <= self.inflight(1.0)
        } else {
            full_length
        }
    }

    fn check_drain(&mut self, ack: &AckSample) {
        if self.mode == BbrMode::Startup && self.model.is_full() {
            self.mode = BbrMode::Drain;
            self.threshold = self.inflight(1.0).min(MAX_WINDOW);
        }
        if self.mode == BbrMode::Drain && ack.flight <= self.inflight(1.0) {
            self.enter_probe_bw(ack.now);
        }
    }

    fn enter_probe_bw(&mut self, now: Time) {
        // D. Knuth's linear congruence; its low bits are poor.
        self.seed = self.seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.mode = BbrMode::probe_bw(now, self.seed >> 16);
    }

    fn probe_rtt(&mut self, ack: &AckSample) {
        let expired = self.model.update_min_rtt(ack.now, ack.rtt);
        if expired && !self.idle_restart && !self.mode.is_probe_rtt() {
            self.mode = BbrMode::ProbeRtt { low_since: None, round_done: false };
            self.save_window();
            self.model.hold_back();
        }
        if let BbrMode::ProbeRtt { low_since, round_done } = self.mode {
            self.model.keep_held_back(ack.flight);
            self.stay_low(low_since, round_done, ack);
        }
        self.idle_restart &= ack.delivered == 0;
    }

    fn stay_low(&mut self, low_since: Option<Time>, round_done: bool, ack: &AckSample) {
        if low_since.is_some() {
            let round_done = round_done || self.model.round_start();
            self.mode = BbrMode::ProbeRtt { low_since, round_done };
            if round_done {
                self.leave_probe_rtt(ack.now);
            }
        } else if ack.flight <= self.min_window() {
            self.mode = BbrMode::ProbeRtt { low_since: Some(ack.now), round_done: false };
            self.model.begin_round();
        }
    }

    /// Leaves ProbeRTT once it has lasted long enough.
    fn leave_probe_rtt(&mut self, now: Time) {
        let BbrMode::ProbeRtt { low_since: Some(since), .. } = self.mode else { return };
        if now.since(since) <= PROBE_RTT_TIME {
            return;
        }
        self.model.confirm_min_rtt(now);
        self.restore_window();
        if self.model.is_full() {
            self.enter_probe_bw(now);
        } else {
            self.mode = BbrMode::Startup;
        }
    }

    fn set_pacing(&mut self, gain: f64, srtt: Span) {
        if !self.seen_rtt && srtt > Span::ZERO {
            self.seen_rtt = true;
            self.pacing = initial_pacing(self.window, srtt);
        }
        let pacing = self.bandwidth() * gain * PACING_MARGIN;
        if self.model.is_full() || pacing > self.pacing {
            self.pacing = pacing;
        }
    }

    fn set_window(&mut self, ack: &AckSample) {
        if ack.delivered > 0 {
            self.window = self.next_window(ack).clamp(self.min_window(), MAX_WINDOW);
        }
        if self.mode.is_probe_rtt() {
            self.window = self.window.min(self.min_window());
        }
    }

    fn next_window(&self, ack: &AckSample) -> u64 {
        let window = self.window.saturating_sub(lost(ack));
        if self.conserving {
            return window.max(ack.flight.saturating_add(ack.delivered));
        }
        let grown = window.saturating_add(ack.delivered);
        let target = self.target();
        if self.model.is_full() {
            grown.min(target)
        } else if window < target || self.model.delivered() < self.initial {
            grown
        } else {
            window
        }
    }

    fn target(&self) -> u64 {
        let extra = if self.model.is_full() { self.aggregation.extra(self.bandwidth()) } else { 0 };
        self.with_bursts(self.path_holds(self.mode.window_gain()) + extra)
    }

    /// Bytes in flight that let the path hold `gain` times its bandwidth-delay product.
    fn inflight(&self, gain: f64) -> u64 {
        self.with_bursts(self.path_holds(gain))
    }

    fn path_holds(&self, gain: f64) -> u64 {
        let Some(rtt) = self.min_rtt() else { return self.initial };
        ((self.bandwidth() * rtt.as_secs() * gain) as u64).min(MAX_WINDOW)
    }

    /// Room for what the hosts hold at both ends, rounded to an even number of segments for receivers that acknowledge
    /// every other; and for the first phase of the cycle to make a difference where the path holds little.
    fn with_bursts(&self, bytes: u64) -> u64 {
        let segments = (bytes + 3 * self.burst()).div_ceil(self.mss).next_multiple_of(2);
        let probing = matches!(self.mode, BbrMode::ProbeBw { phase: 0, .. });
        (segments + if probing { 2 } else { 0 }) * self.mss
    }

    /// Bytes that the host hands to its interface at once: about a millisecond's worth.
    fn burst(&self) -> u64 {
        let least = if self.pacing < SLOW { 1 } else { 2 };
        let bytes = (self.pacing / 1_024.0).min(MAX_BURST) as u64;
        (bytes / self.mss).clamp(least, 127) * self.mss
    }

    fn save_window(&mut self) {
        let cut = self.repairing || self.mode.is_probe_rtt();
        self.prior_window = if cut { self.prior_window.max(self.window) } else { self.window };
    }

    fn restore_window(&mut self) {
        self.window = self.window.max(self.prior_window);
    }
}

/// Pacing rate that sends a window each round trip, and more next time.
fn initial_pacing(window: u64, rtt: Span) -> f64 {
    window as f64 / rtt.as_secs() * HIGH_GAIN * PACING_MARGIN
}

fn lost(ack: &AckSample) -> u64 {
    ack.rate.map_or(0, |sample| sample.lost)
}

impl CongestionControl for Bbr {
    fn on_ack<O: Out<TcpConnection>>(&mut self, ack: &AckSample, _out: &mut O) {
        self.model.on_ack(ack);
        self.conserving &= !self.model.round_start();
        self.update_aggregation(ack);
        self.advance_cycle(ack);
        self.check_drain(ack);
        self.probe_rtt(ack);
        self.set_pacing(self.mode.pacing_gain(), ack.srtt);
        self.set_window(ack);
    }

    fn on_loss(&mut self, _now: Time, flight: u64) {
        self.save_window();
        self.repairing = true;
        self.conserving = true;
        self.model.begin_round();
        self.window = flight.saturating_add(self.mss).clamp(self.min_window(), MAX_WINDOW);
    }

    fn on_recovered(&mut self, _now: Time) {
        if self.repairing {
            self.repairing = false;
            self.conserving = false;
            self.restore_window();
        }
    }

    fn on_timeout(&mut self, _now: Time, flight: u64) {
        self.save_window();
        self.repairing = true;
        self.model.expect_growth();
        self.window = flight.saturating_add(self.mss).min(MAX_WINDOW);
    }

    /// Marks do not enter the model.
    fn on_echo(&mut self, _now: Time, _flight: u64) {}

    fn undo(&mut self, now: Time) {
        self.model.restart_search_for_full_pipe();
        self.on_recovered(now);
    }

    /// Restarts at the known rate of the path: after idling there is no backlog to catch up with.
    fn on_idle_restart(&mut self, now: Time) {
        self.idle_restart = true;
        self.aggregation.restart(now);
        match self.mode {
            BbrMode::Startup | BbrMode::Drain => {}
            BbrMode::ProbeBw { .. } => self.set_pacing(1.0, Span::ZERO),
            BbrMode::ProbeRtt { .. } => self.leave_probe_rtt(now),
        }
    }

    #[inline]
    fn window(&self) -> u64 {
        self.window
    }

    fn threshold(&self) -> u64 {
        self.threshold
    }

    fn pacing(&self) -> Option<PacingRate> {
        Some(PacingRate::from_bits_per_second((self.pacing * 8.0) as u64))
    }
}

#[cfg(test)]
mod tests {
    use units::Rate;

    use super::super::pipe::{Path, Pipe};
    use super::super::rounds::{MSS, ack, config};
    use super::*;

    const SECOND: Span = Span::from_ms(1_000);

    /// 1 Gb/s and 10 ms: holds 1.25 MB.
    const PATH: Path =
        Path { rate: Rate::gbps(1), delay: Span::from_ms(10), mark_at: u64::MAX, lose_one_in: 0, app_gap: Span::ZERO };
    const HOLDS: u64 = 1_250_000;

    fn bbr(path: Path) -> Pipe<Bbr> {
        Pipe::new(Bbr::new(&config(10)), path)
    }

    fn assert_knows(pipe: &Pipe<Bbr>) {
        let rate = pipe.path.rate.bits_per_second() as f64 / 8.0;
        let bandwidth = pipe.control.bandwidth();
        assert!((bandwidth / rate - 1.0).abs() < 0.02, "{bandwidth}, not {rate}");
        let min_rtt = pipe.control.min_rtt().unwrap();
        assert!(min_rtt >= pipe.path.delay && min_rtt < pipe.path.delay + Span::from_us(100), "{min_rtt}");
    }

    /// Bytes delivered in `span` as a fraction of what the path can.
    fn used(pipe: &mut Pipe<Bbr>, span: Span) -> f64 {
        let before = pipe.delivered;
        pipe.run(span, |_| ());
        (pipe.delivered - before) as f64 / pipe.path.rate.bytes_in(span).get() as f64
    }

    #[test]
    fn startup_fills_the_pipe_and_drain_empties_the_queue() {
        let mut pipe = bbr(PATH);
        let mut modes = vec![];
        let mut drained = None;
        pipe.run(SECOND, |pipe| {
            let mode = std::mem::discriminant(&pipe.control.mode);
            if modes.last() != Some(&mode) {
                modes.push(mode);
            }
            if matches!(pipe.control.mode, BbrMode::ProbeBw { .. }) {
                drained.get_or_insert(pipe.now);
            }
        });
        let probe_bw = BbrMode::probe_bw(Time::ZERO, 0);
        assert_eq!(modes, [BbrMode::Startup, BbrMode::Drain, probe_bw].map(|mode| std::mem::discriminant(&mode)));
        let drained = drained.unwrap().since(Time::ZERO);
        assert!(drained < Span::from_ms(250), "{drained}");
        assert_knows(&pipe);
    }

    #[test]
    fn afterwards_the_link_is_busy_and_the_queue_short() {
        let mut pipe = bbr(PATH);
        pipe.run(SECOND, |_| ());
        let mut longest = 0;
        let before = pipe.delivered;
        pipe.run(SECOND * 3, |pipe| longest = longest.max(pipe.queue));
        let used = (pipe.delivered - before) as f64 / PATH.rate.bytes_in(SECOND * 3).get() as f64;
        assert!(used > 0.98, "{used}");
        assert!(longest < HOLDS / 2, "{longest}");
        assert_knows(&pipe);
    }

    #[test]
    fn a_short_path_of_a_datacenter_is_learnt_within_milliseconds() {
        let path = Path { rate: Rate::gbps(100), delay: Span::from_us(30), ..PATH };
        let mut pipe = bbr(path);
        pipe.run(Span::from_ms(5), |_| ());
        assert_knows(&pipe);
        assert!(used(&mut pipe, Span::from_ms(20)) > 0.98);
    }

    #[test]
    fn gains_cycle_through_eight_phases_of_a_round_trip() {
        let mut pipe = bbr(PATH);
        pipe.run(SECOND, |_| ());
        let mut phases: Vec<(u8, Time)> = vec![];
        pipe.run(SECOND, |pipe| match pipe.control.mode {
            BbrMode::ProbeBw { phase, since } if phases.last() != Some(&(phase, since)) => phases.push((phase, since)),
            BbrMode::ProbeBw { .. } => {}
            other => panic!("{other:?}"),
        });
        for pair in phases[1..].windows(2) {
            assert_eq!((pair[0].0 + 1) % 8, pair[1].0);
            let lasted = pair[1].1.since(pair[0].1);
            assert!(lasted > Span::from_ms(6) && lasted < Span::from_ms(20), "phase {} for {lasted}", pair[0].0);
        }
        assert!(phases.len() > 60, "{}", phases.len());
    }

    #[test]
    fn seeds_spread_where_the_cycle_begins() {
        let mut begun = [0; 8];
        for seed in 0..700 {
            let mut bbr = Bbr::new(&CcConfig { seed, ..config(10) });
            bbr.enter_probe_bw(Time::ZERO);
            let BbrMode::ProbeBw { phase, .. } = bbr.mode else { panic!() };
            begun[usize::from(phase)] += 1;
        }
        assert_eq!(begun[1], 0);
        assert!(begun.iter().enumerate().all(|(phase, count)| phase == 1 || *count > 50), "{begun:?}");
    }

    #[test]
    fn every_ten_seconds_the_round_trip_is_measured_with_four_segments() {
        let mut pipe = bbr(Path { rate: "100M".parse().unwrap(), ..PATH });
        let mut probes: Vec<(Time, Time)> = vec![];
        let mut lowest = u64::MAX;
        pipe.run(SECOND * 25, |pipe| {
            if !pipe.control.mode.is_probe_rtt() {
                return;
            }
            lowest = lowest.min(pipe.control.window());
            match probes.last_mut() {
                Some((_, end)) if pipe.now.since(*end) < SECOND => *end = pipe.now,
                Some(_) | None => probes.push((pipe.now, pipe.now)),
            }
        });
        assert_eq!(lowest, 4 * MSS);
        assert_eq!(probes.len(), 2, "{probes:?}");
        let (start, end) = probes[0];
        let begun = start.since(Time::ZERO);
        assert!(begun > SECOND * 10 && begun < SECOND * 11, "{begun}");
        let lasted = end.since(start);
        assert!(lasted > PROBE_RTT_TIME && lasted < PROBE_RTT_TIME + Span::from_ms(50), "{lasted}");
        assert_knows(&pipe);
        assert!(pipe.control.window() > 100 * MSS, "and the window is back");
    }

    #[test]
    fn one_loss_in_a_hundred_does_not_slow_it_down() {
        let mut pipe = bbr(Path { lose_one_in: 100, ..PATH });
        pipe.run(SECOND, |_| ());
        assert_knows(&pipe);
        let used = used(&mut pipe, SECOND * 3);
        assert!(used > 0.96, "{used}");
    }

    #[test]
    fn an_application_with_little_to_send_does_not_lower_the_estimate() {
        let mut pipe = bbr(PATH);
        pipe.run(SECOND, |_| ());
        let before = pipe.control.bandwidth();
        pipe.path.app_gap = Span::from_us(100);
        pipe.run(SECOND * 2, |_| ());
        assert_eq!(pipe.control.bandwidth(), before);
    }

    #[test]
    fn a_slower_path_is_noticed_after_ten_rounds() {
        let mut pipe = bbr(PATH);
        pipe.run(SECOND, |_| ());
        pipe.path.rate = "300M".parse().unwrap();
        pipe.run(SECOND, |_| ());
        assert_knows(&pipe);
    }

    #[test]
    fn a_faster_path_is_found_by_probing() {
        let mut pipe = bbr(Path { rate: "300M".parse().unwrap(), ..PATH });
        pipe.run(SECOND, |_| ());
        pipe.path.rate = Rate::gbps(1);
        pipe.run(SECOND, |_| ());
        assert_knows(&pipe);
    }

    #[test]
    fn the_first_round_of_a_recovery_sends_what_was_delivered() {
        let mut pipe = bbr(PATH);
        pipe.run(SECOND, |_| ());
        let before = pipe.control.window();
        pipe.control.on_loss(pipe.now, 500 * MSS);
        assert_eq!(pipe.control.window(), 501 * MSS);
        pipe.control.on_recovered(pipe.now);
        assert_eq!(pipe.control.window(), before);
    }

    #[test]
    fn a_timeout_leaves_one_segment_beside_the_flight_until_it_is_repaired() {
        let mut pipe = bbr(PATH);
        pipe.run(SECOND, |_| ());
        let (before, pacing) = (pipe.control.window(), pipe.control.pacing());
        pipe.control.on_timeout(pipe.now, 0);
        assert_eq!((pipe.control.window(), pipe.control.pacing()), (MSS, pacing));
        pipe.control.on_timeout(pipe.now, 2 * MSS);
        assert_eq!(pipe.control.window(), 3 * MSS);
        pipe.control.on_recovered(pipe.now);
        assert_eq!(pipe.control.window(), before);
    }

    #[test]
    fn the_first_window_leaves_within_a_fraction_of_the_round_trip() {
        let bits = |bbr: &Bbr| bbr.pacing().unwrap().bits_per_second() as f64;
        let mut bbr = Bbr::new(&config(10));
        let per_window = 8.0 * 10.0 * MSS as f64 * 0.99 * 2.887;
        assert!((bits(&bbr) / (per_window / 1e-3) - 1.0).abs() < 1e-3, "1 ms for want of better");
        bbr.on_handshake(Time::ZERO, Span::from_us(20));
        assert!((bits(&bbr) / (per_window / 20e-6) - 1.0).abs() < 1e-3);
        bbr.acked(&ack(Time::ZERO, Span::from_us(40), 10 * MSS));
        assert!((bits(&bbr) / (per_window / 20e-6) - 1.0).abs() < 1e-3, "until the bandwidth is known to be higher");
    }

    #[test]
    fn after_idle_time_it_sends_at_the_bandwidth_it_knows() {
        let mut pipe = bbr(PATH);
        pipe.run(SECOND, |_| ());
        pipe.control.on_idle_restart(pipe.now + SECOND);
        let pacing = pipe.control.pacing().unwrap().bits_per_second() as f64;
        assert!((pacing / (pipe.control.bandwidth() * 8.0 * PACING_MARGIN) - 1.0).abs() < 1e-6);
    }
}
