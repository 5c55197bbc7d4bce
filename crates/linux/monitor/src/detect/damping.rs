//! Ports that flap: additive penalty with exponential decay, and a latch that only a person opens.
//!
//! ```text
//!   penalty
//!   suppress ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄╭╮┄┄┄┄┄┄┄┄┄   from here on not cleared ...
//!                  ╭╮        │╰╮
//!   reuse    ┄┄┄┄┄┄│╰─╮┄┄┄┄┄┄│┄╰──╮┄┄┄┄   ... until here
//!            ──────╯  ╰──────╯    ╰────
//!                raised    raised
//! ```
//!
//! Invariants: the penalty is not below zero and only a raise adds to it; no more raises are remembered than make a
//! port sticky.

use std::time::Duration;

use units::Moment;

use super::limits::{Damping, Limits};

/// Limit of remembered raises per port.
const MOST_FLAPS: usize = 100;

#[derive(Clone, Debug, Default)]
pub(super) struct FlapRecord {
    penalty: f64,
    /// Time at which the penalty had this value.
    at: Moment,
    suppressed: bool,
    /// Times at which alarms were raised, oldest first.
    raised: Vec<Moment>,
}

impl FlapRecord {
    /// An alarm was raised. True if it was one too many: the port is sticky.
    pub(super) fn on_raise(&mut self, now: Moment, limits: &Limits) -> bool {
        let held = self.held(now, &limits.damping).is_some();
        self.penalty = self.penalty(now, &limits.damping) + limits.damping.penalty.max(0.0);
        self.at = now;
        self.suppressed = held || self.penalty >= limits.damping.suppress;
        let Some(flaps) = limits.flaps else { return false };
        let most = (flaps.count as usize).clamp(1, MOST_FLAPS);
        self.raised.retain(|raised| now.since(*raised) <= flaps.within);
        self.raised.push(now);
        if self.raised.len() > most {
            self.raised.remove(0);
        }
        self.raised.len() == most
    }

    /// Time for which the port has yet to be good before it may be cleared; `None` if it may.
    pub(super) fn held(&self, now: Moment, damping: &Damping) -> Option<Duration> {
        let halvings = (self.penalty(now, damping) / damping.reuse).log2();
        let left = Duration::try_from_secs_f64(damping.half_life.as_secs_f64() * halvings).unwrap_or(Duration::MAX);
        (self.suppressed && halvings >= 0.0).then_some(left)
    }

    /// True if there is something that another detector would have to know.
    pub(super) fn is_marked(&self, now: Moment, limits: &Limits) -> bool {
        let recent = |flaps: super::Flaps| self.raised.iter().any(|raised| now.since(*raised) <= flaps.within);
        self.held(now, &limits.damping).is_some() || limits.flaps.is_some_and(recent)
    }

    pub(super) fn flaps(&self) -> usize {
        self.raised.len()
    }

    fn penalty(&self, now: Moment, damping: &Damping) -> f64 {
        let halvings = now.since(self.at).as_secs_f64() / damping.half_life.as_secs_f64().max(1e-3);
        self.penalty * (-halvings).exp2()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::Flaps;

    fn minute(n: u64) -> Moment {
        Moment::from_ms(n * 60_000)
    }

    #[test]
    fn one_raise_is_forgiven_and_two_in_a_row_are_held_until_the_penalty_has_decayed() {
        let (mut record, limits) = (FlapRecord::default(), Limits::default());
        assert!(!record.on_raise(minute(0), &limits));
        assert_eq!(record.held(minute(1), &limits.damping), None);
        assert!(!record.on_raise(minute(40), &limits));
        let held = record.held(minute(40), &limits.damping).unwrap();
        assert_eq!(held.as_secs_f64().round(), 2_400.0, "1500 to 750 takes one half-life");
        assert!(record.held(minute(79), &limits.damping).is_some());
        assert_eq!(record.held(minute(81), &limits.damping), None);
    }

    #[test]
    fn the_third_raise_within_two_hours_is_one_too_many() {
        let limits = Limits::default();
        let raises = |minutes: [u64; 3]| {
            let mut record = FlapRecord::default();
            minutes.map(|at| record.on_raise(minute(at), &limits))
        };
        assert_eq!(raises([0, 60, 120]), [false, false, true]);
        assert_eq!(raises([0, 60, 121]), [false, false, false]);
    }

    #[test]
    fn a_record_stays_short_however_often_a_port_flaps() {
        let limits = Limits {
            flaps: Some(Flaps { count: u32::MAX, within: Duration::from_secs(1 << 40) }),
            ..Limits::default()
        };
        let mut record = FlapRecord::default();
        let sticky = (0..1_000).filter(|n| record.on_raise(minute(*n), &limits)).count();
        assert_eq!((sticky, record.flaps()), (901, 100));
    }
}
