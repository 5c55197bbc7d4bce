//! CUBIC: the window as a cubic function of the time since it was last reduced.
//!
//! RFC 9438 §4, and Linux 5.4 (`tcp_cubic.c`) where they differ:
//!
//! - The window falls to 717/1024 of itself (§4.6 with β = 0.7); if it was still below the last maximum, that is taken
//!   lower than it was (§4.7, fast convergence).
//! - Slow start ends by HyStart (`hystart` beside this file) instead of HyStart++ (§4.10).
//! - Before the first loss the window grows by at least a twentieth each round trip.
//! - The Reno-friendly estimate keeps its slope of 8/15 (§4.3 goes on with 1 once it passes the last maximum).
//! - A timeout makes CUBIC forget what it knew, the last maximum too (§4.8).
//! - An undo (§4.9.2) returns to the curve that was left; Linux returns to the window only.
//!
//! The kernel recomputes the curve seldom and in whole segments, which matters at short round trips: `ticks` beside
//! this file does so where time ticks. Otherwise every acknowledgement of congestion avoidance does, in bytes.

mod ticks;

use machine::Out;
use units::{Span, Time};

use self::ticks::Ticks;
use super::hystart::HyStart;
use super::window::{CongestionWindow, Windowed};
use super::{AckSample, CcConfig, MAX_WINDOW};
use crate::connection::TcpConnection;
use crate::sites::{TcpSite, TcpTick};

/// Segments per second cubed.
const C: f64 = 0.4;
/// β, in 1024ths.
const BETA: u64 = 717;
const UNIT: u64 = 1_024;
/// Smallest window, in segments, at which HyStart may end slow start.
const HYSTART_LOW_WINDOW: u64 = 16;
/// Round trips measured this soon after a reduction reflect the queue that caused it.
const SETTLE: Span = Span::from_ms(1_000);

#[derive(Clone, Debug)]
pub(crate) struct Cubic {
    window: CongestionWindow,
    curve: CubicCurve,
    ticks: Option<Box<Ticks>>,
    hystart: HyStart,
    last_ack: Time,
}

impl Cubic {
    pub(crate) fn new(config: &CcConfig) -> Self {
        Self {
            window: CongestionWindow::new(config),
            curve: CubicCurve::default(),
            ticks: Ticks::new(config).map(Box::new),
            hystart: HyStart::default(),
            last_ack: Time::ZERO,
        }
    }

    fn watch_delay<O: Out<TcpConnection>>(&mut self, ack: &AckSample, out: &mut O) {
        if ack.round_start {
            self.hystart.start_round(ack.now);
        }
        let Some(rtt) = ack.rtt else { return };
        let settled = !self.curve.begun_within(SETTLE, ack.now);
        if settled {
            self.hystart.on_rtt(rtt);
        }
        if self.window.in_slow_start() && self.window.size() >= HYSTART_LOW_WINDOW * self.window.mss() {
            let is_full = settled && self.hystart.pipe_is_full(ack.now, rtt);
            if TcpSite::PipeFull.ask(out, is_full) {
                self.window.end_slow_start();
            }
        }
    }

    fn follow_curve<O: Out<TcpConnection>>(&mut self, ack: &AckSample, out: &mut O) {
        let window = &mut self.window;
        let acked = if window.in_slow_start() { window.slow_start(ack.delivered) } else { ack.delivered };
        if acked > 0 {
            let rtt = self.hystart.min_rtt();
            let per = match &mut self.ticks {
                None => self.curve.bytes_per_segment((ack.now, rtt), window, acked, out),
                Some(ticks) => ticks.bytes_per_segment(&mut self.curve, (ack.now, rtt), window, acked, out),
            };
            window.avoid(acked, per);
        }
    }
}

impl Windowed for Cubic {
    #[inline]
    fn shared(&self) -> &CongestionWindow {
        &self.window
    }

    #[inline]
    fn shared_mut(&mut self) -> &mut CongestionWindow {
        &mut self.window
    }

    #[inline]
    fn grow<O: Out<TcpConnection>>(&mut self, ack: &AckSample, out: &mut O) {
        self.watch_delay(ack, out);
        if self.window.may_grow(ack) {
            self.follow_curve(ack, out);
        }
        self.last_ack = ack.now;
    }

    /// Ends the curve here.
    fn reduction(&mut self) -> u64 {
        let size = self.window.size();
        // A kernel counts the maximum in whole segments.
        let unit = if self.window.is_whole() { self.window.mss() } else { 1 };
        self.curve.end(size, unit);
        size * BETA / UNIT
    }

    fn after_timeout(&mut self, now: Time) {
        self.curve.forget();
        if self.window.is_whole() {
            // A kernel cannot return to it (`bictcp_reset`).
            (self.curve.prior_max, self.curve.epoch) = (0, CubicEpoch::None);
        }
        if let Some(ticks) = &mut self.ticks {
            ticks.forget();
        }
        self.hystart.reset(now);
    }

    fn after_undo(&mut self) {
        self.curve.resume();
    }

    fn after_restart(&mut self, now: Time) {
        self.curve.skip(now.since(self.last_ack), now);
    }

    fn after_pause(&mut self, now: Time, idle: Span) {
        self.curve.skip(idle, now);
    }
}

/// Start of CUBIC's time, where t is 0.
#[derive(Clone, Copy, Debug, Default)]
enum CubicEpoch {
    /// The next growth begins one.
    #[default]
    None,
    Running(Time),
    /// A reduction ended the epoch: the next growth begins another, but an undo returns to this one.
    Ended(Time),
}

/// W(t) = C (t − K)³ + `origin` (§4.2), and beside it what Reno would do (§4.3).
#[derive(Clone, Debug, Default)]
struct CubicCurve {
    /// W_max: the window when it was last reduced; 0 if it never was.
    max: u64,
    /// Window before the last reduction.
    prior_max: u64,
    epoch: CubicEpoch,
    /// K: how long W(t) takes to reach `origin`.
    k: Span,
    origin: u64,
    /// W_est.
    friendly: u64,
    /// Acknowledged and not yet turned into growth of `friendly`.
    credit: u64,
}

impl CubicCurve {
    fn begun_within(&self, span: Span, now: Time) -> bool {
        matches!(self.epoch, CubicEpoch::Running(start) if now.since(start) < span)
    }

    /// Bytes to acknowledge for one segment of growth, so that the window is at W(t + RTT) a round trip from now.
    fn bytes_per_segment<O: Out<TcpConnection>>(
        &mut self,
        (now, rtt): (Time, Span),
        window: &CongestionWindow,
        acked: u64,
        out: &mut O,
    ) -> u64 {
        let (size, mss) = (window.size(), window.mss());
        let start = match self.epoch {
            CubicEpoch::Running(start) => start,
            CubicEpoch::None | CubicEpoch::Ended(_) => self.begin(now, size, mss),
        };
        let age = now.since(start).as_secs() + rtt.as_secs();
        let above = self.cubic(age, mss).wrapping_sub(self.origin);
        let target = self.origin.wrapping_add(TcpTick::CubicCurve.ask(out, above));
        let mut per = slope(size, target, mss).unwrap_or(100 * size);
        if self.max == 0 {
            per = per.min(20 * mss);
        }
        self.grow_friendly(acked, size, mss);
        if let Some(friendly) = slope(size, self.friendly, mss) {
            per = per.min(friendly);
        }
        // At most half a segment for each one acknowledged (§4.4).
        per.max(2 * mss)
    }

    fn begin(&mut self, now: Time, size: u64, mss: u64) -> Time {
        self.epoch = CubicEpoch::Running(now);
        self.origin = self.max.max(size);
        self.k = time_to_grow(self.origin - size, mss);
        self.friendly = size;
        self.credit = 0;
        now
    }

    /// W(`age`), in bytes.
    fn cubic(&self, age: f64, mss: u64) -> u64 {
        let offset = age - self.k.as_secs();
        let above = C * offset * offset * offset * mss as f64;
        (self.origin as f64 + above).clamp(0.0, MAX_WINDOW as f64) as u64
    }

    /// α = 8/15 segments for each window acknowledged: as much as Reno gets with halving instead of β.
    fn grow_friendly(&mut self, acked: u64, size: u64, mss: u64) {
        let per = size * 15 / 8;
        self.credit = self.credit.saturating_add(acked);
        if self.credit > per {
            self.friendly = self.friendly.saturating_add((self.credit / per).saturating_mul(mss)).min(MAX_WINDOW);
            self.credit %= per;
        }
    }

    /// Grows the Reno-friendly window by whole segments as a kernel does; an exact quotient waits for the next acknowledgement.
    fn grow_friendly_by_segments(&mut self, segments: u64, mss: u64) {
        let per = segments * 15 / 8 * mss;
        let steps = self.credit.saturating_sub(1) / per.max(1);
        self.friendly = self.friendly.saturating_add(steps * mss).min(MAX_WINDOW);
        self.credit -= steps * per;
    }

    /// A reduction from `size`; the maximum is rounded down to whole `unit`s.
    fn end(&mut self, size: u64, unit: u64) {
        self.prior_max = self.max;
        self.max = if size < self.max { size * (UNIT + BETA) / (2 * UNIT) } else { size } / unit * unit;
        self.pause();
    }

    fn forget(&mut self) {
        self.max = 0;
        self.pause();
    }

    fn pause(&mut self) {
        if let CubicEpoch::Running(start) = self.epoch {
            self.epoch = CubicEpoch::Ended(start);
        }
    }

    /// Back to where the last reduction was; if another epoch began since, its curve would lie far below.
    fn resume(&mut self) {
        self.max = self.prior_max;
        self.epoch = match self.epoch {
            CubicEpoch::Ended(start) => CubicEpoch::Running(start),
            CubicEpoch::None | CubicEpoch::Running(_) => CubicEpoch::None,
        };
    }

    /// Lets the curve wait after a pause in which nothing was sent (§5.8).
    fn skip(&mut self, idle: Span, now: Time) {
        if let CubicEpoch::Running(start) = &mut self.epoch {
            *start = Time::from_ps(start.as_ps().saturating_add(idle.as_ps())).min(now);
        }
    }
}

/// Bytes to acknowledge for a segment of growth, for `target` to be reached with one window of them.
fn slope(size: u64, target: u64, mss: u64) -> Option<u64> {
    (target > size).then(|| size * mss / (target - size))
}

/// K = ∛(`missing` / C) with `missing` in segments: exact to the microsecond, and the same on every machine.
fn time_to_grow(missing: u64, mss: u64) -> Span {
    const CUBE_OF_US_OVER_C: u128 = 2_500_000_000_000_000_000;
    Span::from_us(cube_root(u128::from(missing) * CUBE_OF_US_OVER_C / u128::from(mss)))
}

/// The integer below, by Newton's method from above.
fn cube_root(cube: u128) -> u64 {
    if cube == 0 {
        return 0;
    }
    let mut root = 1_u128 << ((128 - cube.leading_zeros()).div_ceil(3));
    loop {
        let next = (2 * root + cube / (root * root)) / 3;
        if next >= root {
            return root as u64;
        }
        root = next;
    }
}

#[cfg(test)]
mod tests {
    use super::super::CongestionControl;
    use super::super::rounds::{MSS, Rounds, ack, config};
    use super::*;

    const LONG: Span = Span::from_ms(100);
    const SHORT: Span = Span::from_us(100);

    fn cubic(segments: u64, rtt: Span) -> Rounds<Cubic> {
        Rounds::new(Cubic::new(&config(segments)), rtt)
    }

    /// A controller after a loss at this window.
    fn reduced(segments: u64, rtt: Span) -> Rounds<Cubic> {
        let mut cubic = cubic(segments, rtt);
        cubic.lose();
        cubic.recover();
        cubic
    }

    #[test]
    fn a_kernels_last_maximum_is_in_whole_segments() {
        let mut curve = CubicCurve::default();
        [10, 7, 4].iter().for_each(|segments| curve.end(segments * MSS, MSS));
        assert_eq!(curve.max, 3 * MSS);
        // The window is not below it, so that it stays.
        curve.end(3 * MSS, MSS);
        assert_eq!(curve.max, 3 * MSS);
    }

    #[test]
    fn slow_start_doubles_each_round() {
        let mut cubic = cubic(10, SHORT);
        let windows = [0; 4].map(|_| {
            cubic.round();
            cubic.segments()
        });
        assert_eq!(windows, [20, 40, 80, 160]);
    }

    #[test]
    fn hystart_ends_slow_start_before_a_loss_does() {
        let mut cubic = cubic(10, LONG);
        cubic.rounds(3);
        assert_eq!((cubic.segments(), cubic.control.threshold()), (80, MAX_WINDOW));
        cubic.round();
        let expected = 80 + 41;
        assert_eq!(cubic.control.threshold(), expected * MSS, "80 acknowledgements follow each other closely enough");
    }

    #[test]
    fn before_the_first_loss_a_round_adds_a_twentieth() {
        let mut cubic = cubic(100, SHORT);
        cubic.control.window.end_slow_start();
        cubic.round();
        assert_eq!(cubic.segments(), 105);
    }

    #[test]
    fn a_mark_proves_a_reduction_right() {
        let undone = |marked: bool| {
            let mut cubic = cubic(100, LONG);
            cubic.lose();
            if marked {
                cubic.control.forbid_undo();
            }
            cubic.control.undo(Time::ZERO);
            cubic.segments()
        };
        assert_eq!([undone(false), undone(true)], [100, 70]);
    }

    #[test]
    fn a_loss_takes_three_tenths() {
        let mut cubic = cubic(1_000, LONG);
        cubic.lose();
        assert_eq!(cubic.control.window(), 1_000 * MSS * 717 / 1_024);
        assert_eq!(cubic.control.threshold(), cubic.control.window());
    }

    #[test]
    fn the_window_follows_the_cubic_function() {
        let mut cubic = reduced(1_000, LONG);
        let start = cubic.now;
        let k = (1_000.0 * (1.0 - 717.0 / 1_024.0) / C).cbrt();
        for _ in 0..150 {
            cubic.round();
            let t = cubic.now.since(start).as_secs();
            let expected = 1_000.0 + C * (t - k).powi(3);
            let actual = cubic.control.window() as f64 / MSS as f64;
            assert!((actual - expected).abs() < 1.5, "{actual}, not {expected} at {t}: it grows in whole segments");
        }
    }

    #[test]
    fn k_is_the_cube_root() {
        for segments in [1_u64, 30, 300, 70_000, 1_000_000] {
            let expected = (segments as f64 / C).cbrt();
            let k = time_to_grow(segments * 1_448, 1_448).as_secs();
            assert!((k - expected).abs() < 2e-6, "{segments}: {k}, not {expected}");
        }
        assert_eq!([0, 1, 7, 8, 26, 27, u128::MAX].map(cube_root), [0, 1, 1, 2, 2, 3, 6_981_463_658_331]);
    }

    #[test]
    fn at_short_round_trips_it_grows_as_reno_would() {
        let mut cubic = reduced(100, SHORT);
        let before = cubic.control.window() as f64;
        cubic.rounds(60);
        let grown = (cubic.control.window() as f64 - before) / MSS as f64;
        assert!((grown - 60.0 * 8.0 / 15.0).abs() < 1.5, "{grown}");
    }

    #[test]
    fn a_loss_below_the_last_maximum_leaves_room_for_others() {
        let mut cubic = reduced(1_000, LONG);
        let reached = cubic.control.window();
        cubic.lose();
        assert_eq!(cubic.control.curve.max, reached * (1_024 + 717) / 2_048);
    }

    #[test]
    fn a_timeout_forgets_the_maximum() {
        let mut cubic = reduced(1_000, LONG);
        cubic.control.on_timeout(cubic.now, 0);
        assert_eq!(cubic.control.window(), MSS);
        assert_eq!(cubic.control.threshold(), 1_000 * MSS * 717 / 1_024 * 717 / 1_024);
        assert_eq!(cubic.control.curve.max, 0);
        assert_eq!(cubic.control.hystart.min_rtt(), Span::ZERO);
    }

    #[test]
    fn undo_goes_on_along_the_same_curve() {
        let mut undone = reduced(1_000, LONG);
        undone.rounds(50);
        let mut undisturbed = Rounds::new(undone.control.clone(), LONG);
        undisturbed.now = undone.now;
        undone.lose();
        undone.control.undo(undone.now);
        undone.rounds(100);
        undisturbed.rounds(100);
        assert_eq!(undone.control.window(), undisturbed.control.window());
    }

    #[test]
    fn undo_after_a_new_epoch_begins_another_from_the_old_window() {
        let mut cubic = reduced(1_000, LONG);
        cubic.rounds(50);
        let before = cubic.control.window();
        cubic.lose();
        cubic.recover();
        cubic.rounds(2);
        cubic.control.undo(cubic.now);
        assert_eq!(cubic.control.window(), before);
        cubic.rounds(20);
        assert!(cubic.control.window() > before);
    }

    /// Height on the curve.
    fn height(cubic: &Rounds<Cubic>) -> u64 {
        let CubicEpoch::Running(start) = cubic.control.curve.epoch else { panic!("{:?}", cubic.control.curve) };
        cubic.control.curve.cubic(cubic.now.since(start).as_secs(), MSS)
    }

    #[test]
    fn idle_time_does_not_count_as_growth() {
        let mut cubic = reduced(1_000, LONG);
        cubic.rounds(100);
        let before = height(&cubic);
        cubic.now += Span::from_ms(60_000);
        cubic.control.on_idle_restart(cubic.now);
        assert!(before.abs_diff(height(&cubic)) < MSS, "{before} {}", height(&cubic));
        assert_eq!(cubic.control.window(), 1_000 * MSS, "not above the initial window");
    }

    #[test]
    fn delay_right_after_a_reduction_is_not_the_path() {
        let mut cubic = reduced(20, LONG);
        cubic.round();
        let first = cubic.control.hystart.min_rtt();
        cubic.control.acked(&ack(cubic.now, SHORT, 20 * MSS));
        assert_eq!(cubic.control.hystart.min_rtt(), first);
        cubic.now += SETTLE;
        cubic.control.acked(&ack(cubic.now, SHORT, 20 * MSS));
        assert_eq!(cubic.control.hystart.min_rtt(), SHORT);
    }

    /// §5.1, with round trips of 0.1 s and C = 0.4. The test begins at the maximum, 40/37 of the average, because the curve's
    /// plateau makes a search for it slow.
    #[test]
    fn the_average_window_is_that_of_the_rfc() {
        for (period, expected) in [(10_000, 187.0), (100_000, 1_054.0), (1_000_000, 5_926.0)] {
            let max = expected * 40.0 / 37.0;
            let average = reduced(max as u64, LONG).average_with_losses(period, 5_000);
            assert!((average / expected - 1.0).abs() < 0.03, "one in {period}: {average}, not {expected}");
        }
    }

    /// With the kernel's integers, one segment in 100 leaves 4.6 at 400 µs; one in 1,000 leaves 19 at 100 µs.
    #[test]
    fn where_time_ticks_the_window_hardly_grows_between_frequent_losses() {
        let average = |period, rtt, tick| {
            let control = Cubic::new(&CcConfig { tick, ..config((1.5 * period as f64).sqrt() as u64) });
            let mut rounds = Rounds::new(control, rtt);
            rounds.control.window.end_slow_start();
            rounds.average_with_losses(period, 20_000)
        };
        for (period, rtt, expected) in [(100, Span::from_us(400), 2.0..6.0), (1_000, SHORT, 15.0..24.0)] {
            let linux = average(period, rtt, Span::from_ms(1));
            assert!(expected.contains(&linux), "one in {period}: {linux}, not {expected:?}");
            let (exact, reno) = (average(period, rtt, Span::ZERO), (1.5 * period as f64).sqrt());
            assert!((exact / reno - 1.0).abs() < 0.1, "one in {period}: {exact}, not {reno}");
        }
    }

    #[test]
    fn where_reno_does_well_the_average_window_is_that_of_reno() {
        for (period, rtt) in [(100, LONG), (1_000, SHORT), (10_000, SHORT)] {
            let expected = (1.5 * period as f64).sqrt();
            let average = reduced(expected as u64, rtt).average_with_losses(period, 20_000);
            assert!((average / expected - 1.0).abs() < 0.1, "one in {period}: {average}, not {expected}");
        }
    }
}
