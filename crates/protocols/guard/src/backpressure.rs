//! Backpressure: the reorder buffer stays short, and never runs dry for want of a resume.
//!
//! LinkGuardian (SIGCOMM'23) §3.3, Algorithm 2; thresholds from App. B.1.
//!
//! ```text
//!             level >= pause_at
//!   Flow ───────────────────────▶ Hold
//!        ◀───────────────────────
//!             level <= resume_at
//! ```
//!
//! The wish is a level that every acknowledgement repeats, so a lost one is made good by the next.
//! A switch that shares its buffer among links lowers the pause point for a while (`Backpressure::limit`).
//!
//! Invariant: the wish changes only at a threshold.

use units::Bytes;
use wire::link::FlowControl;

/// The two thresholds and what must still fit above the upper one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseThresholds {
    /// Level at which the sender is asked to pause.
    pub pause_at: Bytes,
    /// Level at which the sender is asked to resume.
    pub resume_at: Bytes,
    /// Bytes that still arrive after a pause was decided.
    pub headroom: Bytes,
}

#[derive(Debug)]
pub(crate) struct Backpressure {
    configured: PauseThresholds,
    pause_at: Bytes,
    wish: FlowControl,
}

impl Backpressure {
    pub(crate) fn new(configured: PauseThresholds) -> Self {
        Self { configured, pause_at: configured.pause_at, wish: FlowControl::Flow }
    }

    /// Pauses early enough that `limit` bytes are not exceeded; never later than configured.
    pub(crate) fn limit(&mut self, limit: Bytes) {
        self.pause_at = self.configured.pause_at.min(limit.saturating_sub(self.configured.headroom));
    }

    /// Call after every change of the level. True when the wish changed: worth a notice at once.
    #[must_use]
    pub(crate) fn on_level(&mut self, level: Bytes) -> bool {
        let before = self.wish;
        self.wish = match before {
            FlowControl::Flow if level > Bytes::ZERO && level >= self.pause_at => FlowControl::Hold,
            FlowControl::Hold if level <= self.resume_at() => FlowControl::Flow,
            FlowControl::Flow | FlowControl::Hold => before,
        };
        self.wish != before
    }

    pub(crate) fn wish(&self) -> FlowControl {
        self.wish
    }

    /// True if the wish is the one that [`Backpressure::on_level`] leaves behind.
    pub(crate) fn is_settled(&self, level: Bytes) -> bool {
        match self.wish {
            FlowControl::Flow => level == Bytes::ZERO || level < self.pause_at,
            FlowControl::Hold => level > self.resume_at(),
        }
    }

    fn resume_at(&self) -> Bytes {
        self.configured.resume_at.min(self.pause_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backpressure() -> Backpressure {
        Backpressure::new(PauseThresholds {
            pause_at: Bytes::new(40_000),
            resume_at: Bytes::new(37_000),
            headroom: Bytes::new(10_000),
        })
    }

    fn wishes(backpressure: &mut Backpressure, levels: &[u64]) -> Vec<(bool, FlowControl)> {
        levels.iter().map(|&level| (backpressure.on_level(Bytes::new(level)), backpressure.wish())).collect()
    }

    #[test]
    fn a_level_between_the_thresholds_keeps_the_wish() {
        let seen = wishes(&mut backpressure(), &[38_000, 40_000, 38_000, 37_000, 38_000]);
        let expected = [
            (false, FlowControl::Flow),
            (true, FlowControl::Hold),
            (false, FlowControl::Hold),
            (true, FlowControl::Flow),
            (false, FlowControl::Flow),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_lower_limit_pauses_earlier_and_an_empty_buffer_never_pauses() {
        let mut backpressure = backpressure();
        backpressure.limit(Bytes::new(20_000));
        assert_eq!(wishes(&mut backpressure, &[10_000, 0]), [(true, FlowControl::Hold), (true, FlowControl::Flow)]);
        backpressure.limit(Bytes::ZERO);
        assert_eq!(
            wishes(&mut backpressure, &[0, 1, 0]),
            [(false, FlowControl::Flow), (true, FlowControl::Hold), (true, FlowControl::Flow)]
        );
    }
}
