//! Models of the corruption of frames by a wire.

use std::num::NonZeroU64;

use units::Prob;

use crate::Random;

/// A loss model. A corrupted frame fails its check at the far end and is dropped there.
#[derive(Clone, Debug, PartialEq)]
pub enum LossModel {
    /// No frame is ever lost.
    None,
    /// Corrupts each frame independently, whatever its size.
    PerFrame(Prob),
    /// Corrupts each bit independently, so that long frames suffer more.
    PerBit(Prob),
    /// Gilbert–Elliott: quiet, then a burst in which frames are lost with chance `severity`; `enter` and
    /// `leave` are the chances of changing state after each frame.
    Bursts { enter: Prob, leave: Prob, severity: Prob },
    /// Exactly these frames, counted from 0 in the order sent.
    Script(Vec<u64>),
    /// Corrupts each frame of this number in a row: the periodic loss of models of TCP.
    Every(NonZeroU64),
}

impl LossModel {
    /// Bursts in which every frame is lost, `length` frames long on average, that lose a share `loss`
    /// of all frames. `None` if no such process exists: `length` below 1, or bursts so frequent that
    /// they would have to touch.
    pub fn bursts(loss: Prob, length: f64) -> Option<Self> {
        if !(1.0..=1e9).contains(&length) || loss.get() >= 1.0 {
            return None;
        }
        let leave = 1.0 / length;
        let enter = leave * loss.get() / (1.0 - loss.get());
        Some(Self::Bursts { enter: Prob::new(enter)?, leave: Prob::new(leave)?, severity: Prob::literal(1.0) })
    }

    /// The share of frames of `len` bytes lost in the long run; none for a script, which has no long run.
    pub fn mean_loss(&self, len: u32) -> f64 {
        match self {
            Self::None | Self::Script(_) => 0.0,
            Self::PerFrame(p) => p.get(),
            Self::Every(frames) => 1.0 / frames.get() as f64,
            Self::PerBit(p) => -(f64::from(len) * 8.0 * (-p.get()).ln_1p()).exp_m1(),
            Self::Bursts { enter, leave, severity } => {
                let both = enter.get() + leave.get();
                if both == 0.0 { 0.0 } else { severity.get() * enter.get() / both }
            }
        }
    }
}

/// A running loss process.
#[derive(Clone, Debug)]
pub struct LossProcess {
    random: Random,
    process: LossProcessState,
}

#[derive(Clone, Debug)]
enum LossProcessState {
    None,
    /// Frames still to pass before the next loss.
    PerFrame {
        p: f64,
        left: u64,
    },
    /// Each bit wears the wire down by `hazard`; when `left` is used up, the frame at hand is lost.
    /// Exact, since the exponential has no memory.
    PerBit {
        hazard: f64,
        left: f64,
    },
    Bursts {
        enter: f64,
        leave: f64,
        severity: f64,
        in_burst: bool,
        left: u64,
    },
    Every {
        every: u64,
        left: u64,
    },
    Script {
        sorted: Vec<u64>,
        next: usize,
        sent: u64,
    },
}

impl LossProcess {
    pub fn new(model: &LossModel, mut random: Random) -> Self {
        let process = match model {
            LossModel::None => LossProcessState::None,
            LossModel::PerFrame(p) => {
                LossProcessState::PerFrame { p: p.get(), left: random.failures_before_success(p.get()) }
            }
            LossModel::PerBit(p) => {
                LossProcessState::PerBit { hazard: -(-p.get()).ln_1p(), left: random.exponential() }
            }
            LossModel::Bursts { enter, leave, severity } => LossProcessState::Bursts {
                enter: enter.get(),
                leave: leave.get(),
                severity: severity.get(),
                in_burst: false,
                left: random.failures_before_success(enter.get()),
            },
            LossModel::Every(frames) => LossProcessState::Every { every: frames.get(), left: frames.get() - 1 },
            LossModel::Script(frames) => {
                let mut sorted = frames.clone();
                sorted.sort_unstable();
                sorted.dedup();
                LossProcessState::Script { sorted, next: 0, sent: 0 }
            }
        };
        Self { random, process }
    }

    /// Sends one frame of `len` bytes over the wire: is it corrupted?
    #[inline]
    pub fn corrupts(&mut self, len: u32) -> bool {
        match &mut self.process {
            LossProcessState::None => false,
            LossProcessState::PerFrame { left, .. } | LossProcessState::Every { left, .. } if *left > 0 => {
                *left -= 1;
                false
            }
            LossProcessState::PerFrame { p, left } => {
                *left = self.random.failures_before_success(*p);
                true
            }
            LossProcessState::Every { every, left } => {
                *left = *every - 1;
                true
            }
            LossProcessState::PerBit { hazard, left } => {
                *left -= *hazard * f64::from(len) * 8.0;
                let lost = *left < 0.0;
                if lost {
                    *left = self.random.exponential();
                }
                lost
            }
            LossProcessState::Bursts { enter, leave, severity, in_burst, left } => {
                if *left == 0 {
                    *in_burst = !*in_burst;
                    let change = if *in_burst { *leave } else { *enter };
                    *left = self.random.failures_before_success(change).saturating_add(1);
                }
                *left -= 1;
                *in_burst && (*severity >= 1.0 || self.random.unit() < *severity)
            }
            LossProcessState::Script { sorted, next, sent } => {
                let lost = sorted.get(*next) == Some(sent);
                *next += usize::from(lost);
                *sent += 1;
                lost
            }
        }
    }

    /// Number of frames of `len` bytes that will certainly pass from now on.
    pub fn clear(&self, len: u32) -> u64 {
        match &self.process {
            LossProcessState::None => u64::MAX,
            LossProcessState::PerFrame { left, .. } | LossProcessState::Every { left, .. } => *left,
            LossProcessState::PerBit { hazard, left } => {
                // One less than the quotient, so that rounding cannot step over the loss.
                let frames = *left / (*hazard * f64::from(len) * 8.0);
                if frames.is_finite() { (frames as u64).saturating_sub(1) } else { u64::MAX }
            }
            LossProcessState::Bursts { in_burst, left, .. } => {
                if *in_burst {
                    0
                } else {
                    *left
                }
            }
            LossProcessState::Script { sorted, next, sent } => sorted.get(*next).map_or(u64::MAX, |frame| frame - sent),
        }
    }

    /// Lets `frames` of `len` bytes pass at once.
    ///
    /// # Panics
    /// If there are more than [`LossProcess::clear`] allows.
    pub fn pass(&mut self, frames: u64, len: u32) {
        assert!(frames <= self.clear(len), "skipped over a loss");
        match &mut self.process {
            LossProcessState::None => {}
            LossProcessState::PerFrame { left, .. }
            | LossProcessState::Every { left, .. }
            | LossProcessState::Bursts { left, .. } => {
                if *left != u64::MAX {
                    *left -= frames;
                }
            }
            LossProcessState::PerBit { hazard, left } => *left -= *hazard * f64::from(len) * 8.0 * frames as f64,
            LossProcessState::Script { sent, .. } => *sent += frames,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost_of(model: &LossModel, frames: u64, len: u32) -> f64 {
        let mut fault = LossProcess::new(model, Random::new(3, 0));
        (0..frames).filter(|_| fault.corrupts(len)).count() as f64 / frames as f64
    }

    #[test]
    fn models_lose_the_share_that_they_promise() {
        let models = [
            LossModel::PerFrame(Prob::literal(0.02)),
            LossModel::PerBit(Prob::literal(2e-6)),
            LossModel::bursts(Prob::literal(0.02), 4.0).unwrap(),
        ];
        for model in models {
            let (expected, seen) = (model.mean_loss(1_518), lost_of(&model, 1_000_000, 1_518));
            assert!((seen / expected - 1.0).abs() < 0.05, "{model:?}: {seen} for {expected}");
        }
        assert_eq!(lost_of(&LossModel::None, 1_000, 64), 0.0);
        assert_eq!(lost_of(&LossModel::PerFrame(Prob::literal(1.0)), 1_000, 64), 1.0);
    }

    #[test]
    fn bit_errors_spare_short_frames() {
        let model = LossModel::PerBit(Prob::literal(1e-5));
        let ratio = lost_of(&model, 1_000_000, 1_500) / lost_of(&model, 1_000_000, 150);
        assert!((8.0..11.0).contains(&ratio), "{ratio}");
    }

    #[test]
    fn bursts_have_the_length_asked_for() {
        let mut fault = LossProcess::new(&LossModel::bursts(Prob::literal(0.01), 5.0).unwrap(), Random::new(9, 0));
        let (mut lost, mut bursts, mut before) = (0u32, 0u32, false);
        for _ in 0..2_000_000 {
            let now = fault.corrupts(64);
            lost += u32::from(now);
            bursts += u32::from(now && !before);
            before = now;
        }
        let length = f64::from(lost) / f64::from(bursts);
        assert!((length - 5.0).abs() < 0.2, "{length}");
    }

    #[test]
    fn a_script_loses_exactly_its_frames() {
        let mut fault = LossProcess::new(&LossModel::Script(vec![4, 1, 4]), Random::new(0, 0));
        let lost: Vec<u64> = (0..10).filter(|_| fault.corrupts(64)).collect();
        assert_eq!(lost, [1, 4]);
    }

    #[test]
    fn periodic_losses_are_evenly_spaced() {
        let mut fault = LossProcess::new(&LossModel::Every(NonZeroU64::new(4).unwrap()), Random::new(0, 0));
        let lost: Vec<u64> = (0..13).filter(|_| fault.corrupts(64)).collect();
        assert_eq!(lost, [3, 7, 11]);
    }

    #[test]
    fn skipping_the_clear_stretch_changes_no_loss() {
        let models = [
            LossModel::PerFrame(Prob::literal(1e-3)),
            LossModel::bursts(Prob::literal(1e-3), 3.0).unwrap(),
            LossModel::Script(vec![0, 5, 6, 5_000]),
            LossModel::Every(NonZeroU64::new(700).unwrap()),
        ];
        for model in models {
            let mut slow = LossProcess::new(&model, Random::new(5, 0));
            let mut fast = slow.clone();
            let long: Vec<u64> = (0..100_000).filter(|_| slow.corrupts(1_000)).collect();
            let (mut short, mut frame) = (Vec::new(), 0);
            loop {
                let clear = fast.clear(1_000);
                if clear >= 100_000 - frame {
                    break;
                }
                fast.pass(clear, 1_000);
                frame += clear;
                if fast.corrupts(1_000) {
                    short.push(frame);
                }
                frame += 1;
                if frame >= 100_000 {
                    break;
                }
            }
            assert_eq!(long, short, "{model:?}");
        }
    }

    #[test]
    fn bursts_that_cannot_be_are_refused() {
        assert_eq!(LossModel::bursts(Prob::literal(0.5), 0.5), None);
        assert_eq!(LossModel::bursts(Prob::literal(0.9), 1.0), None);
    }
}
