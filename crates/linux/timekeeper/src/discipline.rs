//! The system's clock, kept at the node's time: only where the daemon was told to (`--set-system-clock`).
//!
//! A proportional-integral controller every 10 ms, as §3.5 of Y. Li's thesis has it for hosts. It guarantees nothing: the bound is that of
//! the page, and the kernel is told by how much the system's clock may be wrong (`maxerror`). The rate changes by 500 ppm at most;
//! what is further off than 10 ms is set at once.

/// Interval between two adjustments.
const EVERY_NS: u64 = 10_000_000;
/// Offset above which the clock is set, not slewed.
const STEP_NS: i64 = 10_000_000;
/// The kernel's own limit, in parts per billion.
const MOST_PPB: f64 = 500_000.0;
/// Time constant, in seconds, with which an offset disappears.
const CONSTANT_S: f64 = 0.5;
/// Factor of the integral part, relative to the proportional one's square: critically damped.
const DAMPING: f64 = 4.0;

/// Adjustment of the system's clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ClockAdjustment {
    /// Set it forward, or back, by this much.
    Step(i64),
    /// Speed it up by this many parts per billion; its error is at most the given nanoseconds.
    Steer { ppb: i64, max_error_ns: u64 },
}

/// The controller.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClockDiscipline {
    adjusted_ns: Option<u64>,
    /// Frequency by which the system's clock by itself is too slow, in parts per billion, as far as is known.
    slow_ppb: f64,
    /// Time by which the system's clock was behind at the last adjustment.
    pub(crate) behind_ns: Option<i64>,
}

impl ClockDiscipline {
    /// Computes the adjustment that is due now: the time is between `earliest` and `latest` while the system's clock shows
    /// `system`; `now` is the reading of the node's oscillator.
    pub(crate) fn adjust(
        &mut self,
        now_ns: u64,
        (earliest, latest): (u64, u64),
        system_ns: u64,
    ) -> Option<ClockAdjustment> {
        let passed = self.adjusted_ns.map(|adjusted| now_ns.saturating_sub(adjusted));
        if passed.is_some_and(|passed| passed < EVERY_NS) {
            return None;
        }
        self.adjusted_ns = Some(now_ns);
        let half = latest.saturating_sub(earliest) / 2;
        let behind = (earliest + half).wrapping_sub(system_ns) as i64;
        self.behind_ns = Some(behind);
        if behind.abs() > STEP_NS {
            return Some(ClockAdjustment::Step(behind));
        }
        // A loop that did not run for long knows nothing of what was in between.
        let seconds = passed.unwrap_or(0).min(10 * EVERY_NS) as f64 / 1e9;
        let proportional = behind as f64 / CONSTANT_S;
        let integral = self.slow_ppb + behind as f64 * seconds / (DAMPING * CONSTANT_S * CONSTANT_S);
        let wanted = integral + proportional;
        if wanted.abs() < MOST_PPB {
            self.slow_ppb = integral;
        }
        let max_error_ns = behind.unsigned_abs() + half + 1;
        Some(ClockAdjustment::Steer { ppb: wanted.clamp(-MOST_PPB, MOST_PPB) as i64, max_error_ns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A system's clock that is `ppb` slow and `behind` behind, after so many seconds of loops of a millisecond: by how much it is
    /// behind at each second, and how often it was set.
    fn run(ppb: f64, behind: f64, seconds: u64) -> (Vec<f64>, u32) {
        let (mut discipline, mut behind, mut steered, mut steps) = (ClockDiscipline::default(), behind, 0.0, 0);
        let mut each_second = Vec::new();
        for loops in 0..seconds * 1_000 {
            let now_ns = 1_000_000_000_000 + loops * 1_000_000;
            behind += (ppb - steered) * 1e-3;
            match discipline.adjust(now_ns, (now_ns - 700, now_ns + 700), (now_ns as i64 - behind as i64) as u64) {
                Some(ClockAdjustment::Step(by)) => (behind, steps) = (behind - by as f64, steps + 1),
                Some(ClockAdjustment::Steer { ppb, max_error_ns }) => {
                    assert!(max_error_ns as f64 >= behind.abs() + 699.0, "{max_error_ns} ns, {behind} behind");
                    steered = ppb as f64;
                }
                None => {}
            }
            if loops % 1_000 == 999 {
                each_second.push(behind.abs());
            }
        }
        (each_second, steps)
    }

    #[test]
    fn a_clock_that_is_slow_and_behind_is_brought_to_the_time_and_kept_there() {
        for (ppb, behind) in [(80_000.0, 0.0), (-100_000.0, 900_000.0), (30_000.0, -2_000_000.0)] {
            let (off, steps) = run(ppb, behind, 60);
            assert_eq!(steps, 0);
            assert!(off[30..].iter().all(|off| *off < 100.0), "{ppb} ppb, {behind} ns behind: {off:?}");
        }
    }

    #[test]
    fn what_is_far_off_is_set_once_and_then_steered() {
        let (off, steps) = run(50_000.0, 3e9, 30);
        assert_eq!(steps, 1);
        assert!(off[20..].iter().all(|off| *off < 100.0), "{off:?}");
    }

    #[test]
    fn it_is_adjusted_a_hundred_times_a_second_and_never_by_more_than_500_ppm() {
        let mut discipline = ClockDiscipline::default();
        let mut count = 0;
        for now in (0..1_000_000_000).step_by(500_000) {
            if let Some(adjustment) = discipline.adjust(now, (9_000_000, 9_000_000), 0) {
                count += 1;
                let ClockAdjustment::Steer { ppb, .. } = adjustment else { panic!("9 ms are not set") };
                assert!(ppb.abs() <= 500_000, "{ppb}");
            }
        }
        assert_eq!(count, 100);
    }
}
