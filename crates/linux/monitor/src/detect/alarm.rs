//! Memory and end of an alarm.
//!
//! The window that raised it cannot clear it: it holds the bad frames that raised it long after the repair, and 100 M
//! frames are not enough to be sure of less than 1e-8. So an alarm counts for itself, in two runs:
//!
//! - `recent` counts all frames and starts over whenever it shows corruption again. The alarm ends when the upper
//!   bound of its loss has been below the threshold in `clear_after` polls. A few bad frames, at a rate that is
//!   healthy, only make it take longer.
//! - `clean` starts over with every bad frame. The alarm ends when it has lasted for the `quiet` time, and the loss
//!   that raised the alarm would have shown ten times in its frames.
//!
//! A port on which nothing is received ends no alarm: nothing is known, and protecting it costs nothing.

use units::Moment;

use super::limits::Limits;
use super::window::FrameCounts;

/// Bad frames that the loss would have shown: with ten expected, none at all has a chance of 1 in 22,000.
const SHOWN: f64 = 10.0;

#[derive(Clone, Copy, Debug)]
struct CleanRun {
    since: Moment,
    frames: u64,
    bad: u64,
}

impl CleanRun {
    fn start(since: Moment) -> Self {
        Self { since, frames: 0, bad: 0 }
    }

    fn count(&mut self, frames: u64, bad: u64) {
        self.frames = self.frames.saturating_add(frames);
        self.bad = self.bad.saturating_add(bad);
    }

    fn tally(self, now: Moment) -> FrameCounts {
        FrameCounts { frames: self.frames, bad: self.bad, lapse: now.since(self.since) }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Alarm {
    /// The loss that raised it, or the least that the window showed since with frames still going bad.
    loss: f64,
    /// The greatest loss that was reported.
    told: f64,
    /// Seen by this detector on this device, not taken over.
    confirmed: bool,
    recent: CleanRun,
    clean: CleanRun,
    /// Polls in a row in which the recent run was below the threshold.
    below: u32,
}

/// Reason for the end of an alarm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum AlarmEnd {
    Sure(FrameCounts),
    /// Cleared by quiet: the clean frames, and the loss that would have shown in them.
    Quiet(FrameCounts, f64),
}

impl Alarm {
    pub(super) fn new(now: Moment, loss: f64) -> Self {
        let run = CleanRun::start(now);
        Self { loss, told: loss, confirmed: true, recent: run, clean: run, below: 0 }
    }

    /// One that somebody else raised, with the loss that he said, if it can be one. The less it was, the longer the
    /// alarm lasts, so without one it is taken to be as little as ever raises an alarm.
    pub(super) fn adopted(now: Moment, said: f64, limits: &Limits) -> Self {
        let loss = if said > 0.0 && said <= 1.0 { said } else { limits.threshold.get() };
        Self { confirmed: false, ..Self::new(now, loss) }
    }

    /// Starts to count anew: the port was down, and the counts before have nothing to do with those after.
    pub(super) fn start_over(&mut self, now: Moment) {
        (self.recent, self.clean, self.below) = (CleanRun::start(now), CleanRun::start(now), 0);
    }

    /// Does the same as [`start_over`](Self::start_over), on a device that may never have been bad.
    pub(super) fn move_to_other_device(&mut self, now: Moment) {
        self.start_over(now);
        self.confirmed = false;
    }

    /// Bad frames were seen, though not how many of how many.
    pub(super) fn on_bad(&mut self, now: Moment) {
        self.clean = CleanRun::start(now);
    }

    pub(super) fn on_poll(&mut self, now: Moment, frames: u64, bad: u64, window: FrameCounts, limits: &Limits) {
        if frames == 0 {
            return;
        }
        self.recent.count(frames, bad);
        if bad > 0 {
            self.clean = CleanRun::start(now);
            self.loss = self.loss.min(window.loss());
            if limits.exceeded(self.recent.tally(now)) {
                self.recent = CleanRun::start(now);
            }
        } else {
            self.clean.count(frames, 0);
        }
        let below = self.recent.tally(now).high() < limits.threshold.get();
        self.below = if below { self.below.saturating_add(1) } else { 0 };
    }

    /// True once: an alarm that was taken over is now this detector's own.
    pub(super) fn confirm(&mut self, window: FrameCounts) -> bool {
        if self.confirmed {
            return false;
        }
        (self.confirmed, self.loss, self.told) = (true, window.loss(), window.loss());
        true
    }

    /// Returns the loss reported before, if it is twice as bad now: it is reported a few times and not with every poll.
    pub(super) fn worse(&mut self, window: FrameCounts) -> Option<f64> {
        let worse = self.confirmed && window.low() > 2.0 * self.told;
        worse.then(|| std::mem::replace(&mut self.told, window.loss()))
    }

    pub(super) fn end(&self, now: Moment, limits: &Limits) -> Option<AlarmEnd> {
        if self.below >= limits.clear_after.max(1) {
            return Some(AlarmEnd::Sure(self.recent.tally(now)));
        }
        let clean = self.clean.tally(now);
        let shown = clean.frames as f64 * self.loss >= SHOWN;
        let quiet = limits.quiet.is_some_and(|quiet| clean.lapse >= quiet);
        (shown && quiet).then_some(AlarmEnd::Quiet(clean, self.loss))
    }
}

impl Limits {
    /// True if a loss above the threshold is all but certain.
    pub(super) fn exceeded(&self, tally: FrameCounts) -> bool {
        tally.bad >= self.least_bad.max(1) && tally.low() > self.threshold.get()
    }
}
