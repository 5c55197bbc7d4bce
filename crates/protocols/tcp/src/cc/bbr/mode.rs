//! BBR's modes and what they do to the rate and the window. Draft §4.3; the diagram is in [`super`].

use units::Time;

/// 2/ln 2, the smallest gain that doubles the rate each round trip; as Linux rounds it, to 1/256.
pub(super) const HIGH_GAIN: f64 = 739.0 / 256.0;
const DRAIN_GAIN: f64 = 88.0 / 256.0;
const WINDOW_GAIN: f64 = 2.0;
/// A phase that probes for bandwidth, one that drains the queue if there was none to find, and six to cruise.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
const PHASES: u8 = CYCLE.len() as u8;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum BbrMode {
    Startup,
    Drain,
    ProbeBw {
        phase: u8,
        since: Time,
    },
    /// `low_since`: when the flight had come down; `round_done`: whether a round trip passed since.
    ProbeRtt {
        low_since: Option<Time>,
        round_done: bool,
    },
}

impl BbrMode {
    /// Begins at any phase but the second, which would drain a queue that does not exist yet.
    pub(super) fn probe_bw(now: Time, draw: u32) -> Self {
        let phase = (PHASES - (draw % (u32::from(PHASES) - 1)) as u8) % PHASES;
        Self::ProbeBw { phase, since: now }
    }

    pub(super) fn next_phase(phase: u8, now: Time) -> Self {
        Self::ProbeBw { phase: (phase + 1) % PHASES, since: now }
    }

    pub(super) fn is_probe_rtt(self) -> bool {
        matches!(self, Self::ProbeRtt { .. })
    }

    pub(super) fn pacing_gain(self) -> f64 {
        match self {
            Self::Startup => HIGH_GAIN,
            Self::Drain => DRAIN_GAIN,
            Self::ProbeBw { phase, .. } => CYCLE[usize::from(phase)],
            Self::ProbeRtt { .. } => 1.0,
        }
    }

    pub(super) fn window_gain(self) -> f64 {
        match self {
            Self::Startup | Self::Drain => HIGH_GAIN,
            Self::ProbeBw { .. } => WINDOW_GAIN,
            Self::ProbeRtt { .. } => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cycle_begins_at_any_phase_but_the_second() {
        let mut phases: Vec<u8> = (0..7)
            .map(|draw| match BbrMode::probe_bw(Time::ZERO, draw) {
                BbrMode::ProbeBw { phase, .. } => phase,
                other => panic!("{other:?}"),
            })
            .collect();
        phases.sort_unstable();
        assert_eq!(phases, [0, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn a_cycle_sends_as_much_as_the_bandwidth_delivers() {
        assert_eq!(CYCLE.iter().sum::<f64>(), f64::from(PHASES));
        assert!((HIGH_GAIN * DRAIN_GAIN - 1.0).abs() < 0.01);
    }
}
