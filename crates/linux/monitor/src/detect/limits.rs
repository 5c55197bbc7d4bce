//! Limits of an alarm, with the reasons for each default.

use std::fmt;
use std::time::Duration;

use units::Prob;

const HOUR: Duration = Duration::from_secs(3_600);

/// All that can be set about detection.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// A loss above this is corruption: 1e-8, as in the paper.
    pub threshold: Prob,
    /// The window ends after this many frames: 100 M, as in the paper.
    pub frames: u64,
    /// ... or after this time: an hour. A port with a thousand frames a second shows a loss of 1e-6 in it three or four
    /// times; somebody pulling at cables yesterday is no evidence today.
    pub time: Duration,
    /// Bad polls before an alarm: 2. A bad poll is one that brought bad frames while the window is above the
    /// threshold. Polls without bad frames do not count, as they add no evidence, nor do they break the row, since at
    /// a low loss most polls are clean: it breaks when the window is no longer above the threshold. So a single burst
    /// raises nothing, however many frames it hit.
    pub raise_after: u32,
    /// Polls with frames, one after the other, in which the upper bound is below the threshold, before an alarm is
    /// cleared: 3.
    pub clear_after: u32,
    /// Bad frames in the window without which no alarm is raised: 2. One bad frame is never a rate: it says that the
    /// loss is not zero, but it would look like 1e-3 on a port that had received a thousand frames.
    pub least_bad: u64,
    /// Clears an alarm after an hour without a bad frame, if the loss that raised it would have spoilt ten of the frames
    /// received since. Without this rule a quiet port keeps its alarm: 369 M clean frames, days of traffic, would have to
    /// show that its loss is below 1e-8. `None` switches the rule off.
    pub quiet: Option<Duration>,
    /// Ports that flap are held back, each raise making it longer.
    pub damping: Damping,
    /// Ports that flap too often stay corrupting until a person clears them. `None` switches it off.
    pub flaps: Option<Flaps>,
    /// Polls in which a port is missing before it counts as gone: 3. Where it is read with every tenth poll only, those
    /// are 30.
    pub gone_after: u32,
    /// Time for which the alarm of a port that is gone is remembered: a day. Drivers are reloaded in seconds and machines
    /// serviced in hours.
    pub keep: Duration,
}

/// Additive penalty with exponential decay, as routers damp flapping routes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Damping {
    /// Penalty that each raise adds: 1000.
    pub penalty: f64,
    /// Time in which half of it is forgiven: 40 minutes.
    pub half_life: Duration,
    /// Penalty from which on the port is not cleared: 1500, which a second raise within 40 minutes reaches.
    pub suppress: f64,
    /// Penalty below which an alarm may be cleared again: 750.
    pub reuse: f64,
}

/// This many raises within this time need a person: three in two hours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flaps {
    pub count: u32,
    pub within: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            threshold: Prob::literal(1e-8),
            frames: 100_000_000,
            time: HOUR,
            raise_after: 2,
            clear_after: 3,
            least_bad: 2,
            quiet: Some(HOUR),
            damping: Damping::default(),
            flaps: Some(Flaps { count: 3, within: 2 * HOUR }),
            gone_after: 3,
            keep: 24 * HOUR,
        }
    }
}

impl Default for Damping {
    fn default() -> Self {
        Self { penalty: 1_000.0, half_life: HOUR * 2 / 3, suppress: 1_500.0, reuse: 750.0 }
    }
}

/// Error of limits that make no sense, with limits that would.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLimits(&'static str);

impl fmt::Display for BadLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for BadLimits {}

impl Limits {
    /// Checks limits that were read from a file. A detector accepts any: it never panics, but it may never raise.
    pub fn check(&self) -> Result<(), BadLimits> {
        let Damping { penalty, half_life, suppress, reuse } = self.damping;
        let threshold = self.threshold.get();
        let rules = [
            (threshold > 0.0 && threshold < 1.0, "threshold: expected a loss above 0 and below 1, such as 1e-8"),
            ((1_000..=1 << 60).contains(&self.frames), "frames: expected a window of a thousand frames or more"),
            (!self.time.is_zero(), "time: expected a window longer than nothing"),
            (self.raise_after > 0, "raise_after: expected 1 poll or more"),
            (self.clear_after > 0, "clear_after: expected 1 poll or more"),
            (self.least_bad >= 2, "least_bad: expected 2 or more; one bad frame is never a rate"),
            (self.quiet.is_none_or(|quiet| !quiet.is_zero()), "quiet: expected a time longer than nothing"),
            (penalty >= 0.0 && penalty.is_finite(), "penalty: expected 0 or more"),
            (!half_life.is_zero(), "half_life: expected a time longer than nothing"),
            (0.0 < reuse && reuse < suppress, "reuse: expected more than 0 and less than suppress"),
            (self.flaps.is_none_or(|flaps| flaps.count > 0), "flaps: expected 1 or more"),
            (self.gone_after > 0, "gone_after: expected 1 poll or more"),
        ];
        match rules.into_iter().find(|(holds, _)| !holds) {
            Some((_, what)) => Err(BadLimits(what)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_make_sense() {
        assert_eq!(Limits::default().check(), Ok(()));
    }

    #[test]
    fn limits_that_would_switch_detection_off_are_refused_by_name() {
        let refused = |spoil: fn(&mut Limits)| {
            let mut limits = Limits::default();
            spoil(&mut limits);
            limits.check().unwrap_err().to_string()
        };
        assert!(refused(|l| l.threshold = Prob::literal(1.0)).starts_with("threshold"));
        assert!(refused(|l| l.frames = 0).starts_with("frames"));
        assert!(refused(|l| l.raise_after = 0).starts_with("raise_after"));
        assert!(refused(|l| l.least_bad = 1).starts_with("least_bad"));
        assert!(refused(|l| l.quiet = Some(Duration::ZERO)).starts_with("quiet"));
        assert!(refused(|l| l.damping.reuse = 2_000.0).starts_with("reuse"));
        assert!(refused(|l| l.damping.suppress = f64::NAN).starts_with("reuse"));
    }
}
