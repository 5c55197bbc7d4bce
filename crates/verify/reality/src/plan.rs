//! Wires that are compared, the durations, and the frames that the wires lose.

use std::time::Duration;

use faults::{FaultSchedule, LossModel, LossProcess, Random};
use load::KernelCongestion;
use units::{Prob, Rate, Span};

/// Plan of a comparison.
#[derive(Clone, Debug)]
pub struct CheckPlan {
    pub rate: Rate,
    pub congestions: Vec<KernelCongestion>,
    /// Losses in each direction.
    pub losses: Vec<Prob>,
    /// Time that the wire's delay adds to a round trip, both ways together.
    pub round_trips: Vec<Span>,
    /// Duration in each case and round, after a warm-up of half of it; longer where the round trip is long.
    pub bulk: Duration,
    /// Requests in each case and round, for at most as long as [`CheckPlan::requests_within`].
    pub requests: u32,
    pub requests_within: Duration,
    pub rounds: u32,
    /// Ticks a second of this machine's kernel.
    pub hz: u32,
}

/// One wire and one congestion control.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CheckCase {
    pub rate: Rate,
    pub congestion: KernelCongestion,
    pub loss: Prob,
    /// One way.
    pub delay: Span,
}

/// The longest frame on the wire, preamble and gap included, and the shortest.
const LONGEST: u64 = 1_538;
const SHORTEST: u64 = 84;
/// A flow is measured for this many at least.
const ROUND_TRIPS: u32 = 200;

pub(super) fn span(duration: Duration) -> Span {
    Span::from_ps(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX).saturating_mul(1_000))
}

impl CheckPlan {
    pub(super) fn cases(&self) -> Vec<CheckCase> {
        let mut cases = Vec::new();
        for round_trip in &self.round_trips {
            for congestion in &self.congestions {
                let case = |loss: &Prob| CheckCase {
                    rate: self.rate,
                    congestion: *congestion,
                    loss: *loss,
                    delay: *round_trip / 2,
                };
                cases.extend(self.losses.iter().map(case));
            }
        }
        cases
    }

    /// Time of a bulk flow over this wire that is measured.
    pub(super) fn measured(&self, case: &CheckCase) -> Duration {
        self.bulk.max(Duration::from_nanos(case.delay.as_ps() / 1_000) * 2 * ROUND_TRIPS)
    }

    pub(super) fn warmup(&self, case: &CheckCase) -> Duration {
        (self.bulk / 2).max(self.measured(case) - self.bulk)
    }

    /// Time from the beginning of a bulk flow to the end of its measurement.
    pub(super) fn whole(&self, case: &CheckCase) -> Span {
        span(self.measured(case) + self.warmup(case))
    }
}

impl CheckCase {
    /// Frames of a bulk flow that the wire loses: the same in each direction whoever asks, for longer than the flow lasts.
    pub(super) fn bulk_faults(&self, whole: Span, round: u32) -> [FaultSchedule; 2] {
        let bytes = self.rate.bytes_in(whole).get() * 2;
        [(bytes / LONGEST, 0), (bytes / LONGEST, 1)].map(|(frames, stream)| self.faults(frames, round, stream))
    }

    /// Frames of a series of requests that the wire loses.
    pub(super) fn request_faults(&self, requests: u32, round: u32) -> [FaultSchedule; 2] {
        [2, 3].map(|stream| self.faults(u64::from(requests) * 4 + SHORTEST, round, stream))
    }

    fn faults(&self, frames: u64, round: u32, stream: u64) -> FaultSchedule {
        let mut process = LossProcess::new(&LossModel::PerFrame(self.loss), Random::new(u64::from(round) + 1, stream));
        let mut lost = Vec::new();
        let mut at = 0;
        while at < frames {
            let clear = process.clear(1).min(frames - at);
            process.pass(clear, 1);
            at += clear;
            if at < frames && process.corrupts(1) {
                lost.push(at);
            }
            at += 1;
        }
        FaultSchedule::always(LossModel::Script(lost))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> CheckPlan {
        CheckPlan {
            rate: Rate::gbps(1),
            congestions: vec![KernelCongestion::Cubic, KernelCongestion::Bbr],
            losses: vec![Prob::literal(1e-3), Prob::literal(1e-2)],
            round_trips: vec![Span::from_us(50), Span::from_ms(1)],
            bulk: Duration::from_secs(2),
            requests: 1_000,
            requests_within: Duration::from_secs(5),
            rounds: 1,
            hz: 250,
        }
    }

    #[test]
    fn every_combination_is_a_case() {
        let cases = plan().cases();
        assert_eq!(cases.len(), 8);
        assert_eq!(cases[0].delay, Span::from_us(25));
        assert!(cases.iter().all(|case| cases.iter().filter(|other| *other == case).count() == 1));
    }

    #[test]
    fn a_long_round_trip_takes_longer() {
        let plan = CheckPlan { round_trips: vec![Span::from_us(50), Span::from_ms(20)], ..plan() };
        let cases = plan.cases();
        let [short, long] = [&cases[0], &cases[7]];
        assert_eq!((plan.measured(short), plan.warmup(short)), (Duration::from_secs(2), Duration::from_secs(1)));
        assert_eq!((plan.measured(long), plan.warmup(long)), (Duration::from_secs(4), Duration::from_secs(2)));
        assert_eq!(plan.whole(long), Span::from_ms(6_000));
    }

    #[test]
    fn a_round_loses_its_own_share_in_each_direction_and_the_same_each_time() {
        let case = plan().cases()[1];
        let lost = |schedule: &FaultSchedule| match &schedule.steps()[0].1 {
            LossModel::Script(frames) => frames.clone(),
            other => panic!("{other:?}"),
        };
        let [forth, back] = case.bulk_faults(plan().whole(&case), 1).map(|faults| lost(&faults));
        let frames = 2.0 * 125e6 * 3.0 / 1_538.0;
        for side in [&forth, &back] {
            let share = side.len() as f64 / frames;
            assert!((0.009..0.011).contains(&share), "{share}");
        }
        assert_ne!(forth, back);
        assert_eq!(forth, lost(&case.bulk_faults(plan().whole(&case), 1)[0]));
        assert_ne!(forth, lost(&case.bulk_faults(plan().whole(&case), 2)[0]));
    }
}
