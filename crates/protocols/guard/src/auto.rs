//! The mode chosen by what the link does: in order while that is cheap, as frames come when it is not,
//! unprotected when nothing helps; and back.
//!
//! LinkGuardian (SIGCOMM'23) §5, "Automatic fallback", proposes it and leaves it open.
//!
//! ```text
//!             loss > ordered_up_to            loss > protect_up_to
//!   Ordered ──────────────────────▶ NonBlocking ─────────────────▶ Off
//!           ◀──────────────────────             ◀─────────────────
//!             loss < ordered_up_to / 2            after a rest
//! ```
//!
//! The sender measures: frames sent, and frames reported missing for the first time. A change needs the
//! same verdict for several windows in a row. Without protection nothing is measured, so protection is
//! tried again after a rest, which doubles each time that the trial fails. Both classes stay agreed all
//! the while: changing the mode is choosing where the next frame goes.

use units::Prob;

use crate::copies::copies_for;
use crate::params::AutoLimits;

/// The mode of protection in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Protected and delivered in order.
    Ordered,
    /// Protected and delivered as frames arrive.
    NonBlocking,
    /// The link is not protected.
    Off,
}

/// More copies than this take more from the link than they give.
const MOST_COPIES: u8 = 8;
/// The longest rest, in multiples of the first.
const LONGEST_REST: u64 = 64;

/// Chooses the mode and the copies by the measured loss.
#[derive(Debug)]
pub struct Auto {
    limits: AutoLimits,
    level: Level,
    sent: u64,
    missing: u64,
    /// Another level that the latest windows called for, and the number of such windows in a row.
    candidate: Level,
    streak: u8,
    rest: u64,
    copies: u8,
}

impl Auto {
    /// Starts in order; `copies` of each retransmission until loss was measured.
    pub fn new(limits: AutoLimits, copies: u8) -> Self {
        Self {
            limits,
            level: Level::Ordered,
            sent: 0,
            missing: 0,
            candidate: Level::Ordered,
            streak: 0,
            rest: limits.rest,
            copies,
        }
    }

    /// The mode in force.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Copies of each retransmission.
    pub fn copies(&self) -> u8 {
        self.copies
    }

    pub(crate) fn on_missing(&mut self, frames: u32) {
        self.missing += u64::from(frames);
    }

    /// A frame was sent. True when the level changed because of it.
    pub fn on_sent(&mut self) -> bool {
        self.sent += 1;
        let window = if self.level == Level::Off { self.rest } else { u64::from(self.limits.window) };
        if self.sent < window {
            return false;
        }
        let loss = (self.missing as f64 / self.sent as f64).min(1.0);
        (self.sent, self.missing) = (0, 0);
        let before = self.level;
        self.judge(Prob::literal(loss));
        self.level != before
    }

    /// Takes a loss that another program measured before this link had frames to measure it with. True when the level changed.
    pub fn expect(&mut self, loss: Prob) -> bool {
        let before = self.level;
        self.set_copies(loss);
        (self.sent, self.missing, self.streak) = (0, 0, 0);
        self.level = match self.wanted(loss) {
            Level::Ordered => Level::Ordered,
            Level::NonBlocking | Level::Off => Level::NonBlocking,
        };
        self.level != before
    }

    /// A window without any loss says little; what was enough before stays.
    fn set_copies(&mut self, loss: Prob) {
        if !loss.is_zero() {
            self.copies = copies_for(loss, self.limits.target).map_or(MOST_COPIES, |(n, _)| n.clamp(1, MOST_COPIES));
        }
    }

    fn judge(&mut self, loss: Prob) {
        if self.level == Level::Off {
            self.level = Level::NonBlocking;
            return;
        }
        self.set_copies(loss);
        let wanted = self.wanted(loss);
        self.streak = if wanted == self.candidate { self.streak.saturating_add(1) } else { 1 };
        self.candidate = wanted;
        if wanted != self.level && self.streak >= self.limits.patience {
            self.streak = 0;
            self.rest = match wanted {
                Level::Off => (self.rest * 2).min(self.limits.rest * LONGEST_REST),
                Level::Ordered => self.limits.rest,
                Level::NonBlocking => self.rest,
            };
            self.level = wanted;
        }
    }

    fn wanted(&self, loss: Prob) -> Level {
        let ordered_up_to = match self.level {
            Level::Ordered => self.limits.ordered_up_to.get(),
            Level::NonBlocking | Level::Off => self.limits.ordered_up_to.get() / 2.0,
        };
        match loss.get() {
            loss if loss > self.limits.protect_up_to.get() => Level::Off,
            loss if loss > ordered_up_to => Level::NonBlocking,
            _ => Level::Ordered,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn auto() -> Auto {
        let limits = AutoLimits {
            target: Prob::literal(1e-8),
            window: 1_000,
            ordered_up_to: Prob::literal(0.01),
            protect_up_to: Prob::literal(0.1),
            patience: 2,
            rest: 5_000,
        };
        Auto::new(limits, 1)
    }

    fn windows(auto: &mut Auto, missing: u32, count: u32) -> Level {
        for _ in 0..count {
            auto.on_missing(missing);
            (0..1_000).for_each(|_| {
                auto.on_sent();
            });
        }
        auto.level()
    }

    #[test]
    fn one_bad_window_changes_nothing_and_two_do() {
        let mut auto = auto();
        assert_eq!(windows(&mut auto, 20, 1), Level::Ordered);
        assert_eq!(windows(&mut auto, 0, 1), Level::Ordered);
        assert_eq!(windows(&mut auto, 20, 2), Level::NonBlocking);
    }

    #[test]
    fn the_way_back_needs_half_the_loss() {
        let mut auto = auto();
        windows(&mut auto, 20, 2);
        assert_eq!(windows(&mut auto, 8, 10), Level::NonBlocking);
        assert_eq!(windows(&mut auto, 4, 2), Level::Ordered);
    }

    #[test]
    fn a_hopeless_link_is_left_alone_and_tried_again_ever_more_rarely() {
        let mut auto = auto();
        assert_eq!(windows(&mut auto, 500, 2), Level::Off);
        assert_eq!(windows(&mut auto, 0, 9), Level::Off);
        assert_eq!(windows(&mut auto, 0, 1), Level::NonBlocking);
        assert_eq!(windows(&mut auto, 500, 2), Level::Off);
        assert_eq!(windows(&mut auto, 0, 19), Level::Off);
        assert_eq!(windows(&mut auto, 0, 1), Level::NonBlocking);
    }

    #[test]
    fn an_expected_loss_counts_at_once_and_measurement_goes_on_from_there() {
        let mut auto = auto();
        assert!(auto.expect(Prob::literal(0.05)));
        assert_eq!((auto.level(), auto.copies()), (Level::NonBlocking, 6));
        assert_eq!(windows(&mut auto, 0, 1), Level::NonBlocking);
        assert_eq!(windows(&mut auto, 0, 1), Level::Ordered);
        assert!(!auto.expect(Prob::literal(1e-4)));
        assert_eq!((auto.level(), auto.copies()), (Level::Ordered, 1));
    }

    #[test]
    fn hearsay_does_not_switch_protection_off_and_ends_a_rest() {
        let mut auto = auto();
        assert!(auto.expect(Prob::literal(0.9)));
        assert_eq!(auto.level(), Level::NonBlocking);
        assert_eq!(windows(&mut auto, 500, 2), Level::Off);
        assert!(auto.expect(Prob::literal(1e-3)));
        assert_eq!(auto.level(), Level::Ordered);
    }

    #[test]
    fn copies_follow_the_measured_loss() {
        let mut auto = auto();
        windows(&mut auto, 1, 1);
        assert_eq!(auto.copies(), 2);
        windows(&mut auto, 100, 1);
        assert_eq!(auto.copies(), 7);
    }
}
