//! Models that change at given times.

use units::{Span, Time};

use crate::{LossModel, LossProcess, Random};

/// Loss models of one direction, each from its time on; nothing is lost before the first.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct FaultSchedule {
    steps: Vec<(Span, LossModel)>,
}

impl FaultSchedule {
    pub fn always(model: LossModel) -> Self {
        Self { steps: vec![(Span::ZERO, model)] }
    }

    /// `None` if the times do not ascend.
    pub fn new(steps: Vec<(Span, LossModel)>) -> Option<Self> {
        steps.is_sorted_by(|(a, _), (b, _)| a < b).then_some(Self { steps })
    }

    pub fn steps(&self) -> &[(Span, LossModel)] {
        &self.steps
    }

    pub fn run(&self, seed: u64, stream: u64) -> RunningSchedule {
        let mut running = RunningSchedule {
            steps: self.steps.clone(),
            taken: 0,
            fault: LossProcess::new(&LossModel::None, Random::new(seed, stream)),
            random: Random::new(seed, stream),
        };
        running.advance(Time::ZERO);
        running
    }
}

/// A schedule at work.
#[derive(Clone, Debug)]
pub struct RunningSchedule {
    steps: Vec<(Span, LossModel)>,
    taken: usize,
    fault: LossProcess,
    random: Random,
}

impl RunningSchedule {
    /// Time at which the next model takes over.
    pub fn next_change(&self) -> Time {
        self.steps.get(self.taken).map_or(Time::NEVER, |(at, _)| Time::ZERO + *at)
    }

    /// The model in force at `now`, which must not go backwards.
    #[inline]
    pub fn at(&mut self, now: Time) -> &mut LossProcess {
        if now >= self.next_change() {
            self.advance(now);
        }
        &mut self.fault
    }

    fn advance(&mut self, now: Time) {
        while now >= self.next_change() {
            let mut random = self.random.clone();
            let fresh = Random::new(random.below(u64::MAX), self.taken as u64);
            self.fault = LossProcess::new(&self.steps[self.taken].1, fresh);
            self.taken += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Prob;

    #[test]
    fn a_model_takes_over_at_its_time() {
        let certain = LossModel::PerFrame(Prob::literal(1.0));
        let steps = vec![(Span::from_us(2), certain), (Span::from_us(4), LossModel::None)];
        let mut running = FaultSchedule::new(steps).unwrap().run(1, 0);
        let lost = [0, 1, 2, 3, 4, 5].map(|us| running.at(Time::ZERO + Span::from_us(us)).corrupts(64));
        assert_eq!(lost, [false, false, true, true, false, false]);
        assert_eq!(running.next_change(), Time::NEVER);
    }

    #[test]
    fn times_must_ascend() {
        assert_eq!(
            FaultSchedule::new(vec![(Span::from_us(2), LossModel::None), (Span::from_us(2), LossModel::None)]),
            None
        );
    }
}
