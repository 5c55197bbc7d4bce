//! Length of the queue when packets were lost, from the time that their neighbours took.
//!
//! Clocks need not agree: a time is compared with the least of the same interval, which may have drifted away by 100 ppm.
//! *Long* is what exceeds 0.7 of the 99th percentile of all.

use super::statistics::{at_least, at_most_of_drawn};
use super::{CauseFigures, CauseReason, IntervalEvidence};
use crate::loss::LossCause;

/// Share of the 99th percentile from which on a queue is long.
const LONG: f64 = 0.7;
/// Nanoseconds that are no queue: the precision of times.
const LEAST: i64 = 1_000;
/// Losses within so many places are one run, and count once.
const RUN: u64 = 16;
/// Drift of two clocks, as a divisor.
const DRIFT: i64 = 10_000;
/// Fewer samples show nothing.
const FEW: usize = 5;
/// Chance with which losses of a cable shun short queues.
const SHUNNED: f64 = 0.01;

pub(super) struct QueueEvidence {
    /// Waiting of each run of losses, of each loss, and of all packets.
    runs: Vec<i64>,
    losses: Vec<i64>,
    samples: Vec<i64>,
    /// Waiting from which on a queue is long.
    long: i64,
}

impl QueueEvidence {
    /// `None` if too little is known; `sorted` has losses by place.
    pub(super) fn new(interval: &IntervalEvidence, sorted: &[usize]) -> Option<Self> {
        let losses = sorted.iter().map(|at| &interval.losses[*at]);
        let of_losses: Vec<Option<(u64, i64)>> = losses.clone().map(|loss| Some((loss.at?.0, loss.waited?))).collect();
        let of_samples: Vec<(u64, i64)> =
            interval.samples.iter().filter_map(|sample| Some((sample.at.0, sample.waited?))).collect();
        let known = of_losses.iter().flatten().count();
        if of_samples.len() < FEW || known * 2 < sorted.len() {
            return None;
        }
        let all: Vec<(u64, i64)> = of_losses.iter().flatten().chain(&of_samples).copied().collect();
        let floor = WaitingFloor::new(all);
        let waiting = |(at, waited): (u64, i64)| waited - floor.at(at);
        let mut runs = Vec::new();
        let mut last = None;
        for (loss, known) in losses.zip(&of_losses) {
            let place = loss.place.map_or(0, |place| place.place);
            if last.is_none_or(|last| place - last > RUN) {
                runs.extend(known.map(waiting));
            }
            last = Some(place);
        }
        let losses: Vec<i64> = of_losses.into_iter().flatten().map(waiting).collect();
        let samples: Vec<i64> = of_samples.into_iter().map(waiting).collect();
        let mut sorted: Vec<i64> = losses.iter().chain(&samples).copied().collect();
        sorted.sort_unstable();
        let top = sorted[(sorted.len() - 1) * 99 / 100];
        let long = ((top as f64 * LONG) as i64).max(LEAST);
        Some(Self { runs, losses, samples, long })
    }

    fn long(&self, of: &[i64]) -> u64 {
        of.iter().filter(|waiting| **waiting > self.long).count() as u64
    }

    pub(super) fn figures(&self) -> CauseFigures {
        CauseFigures {
            runs: Some(self.runs.len() as u64),
            at_long_queue: Some(self.long(&self.runs)),
            packets_at_long_queue: Some(self.long(&self.samples) as f64 / self.samples.len() as f64),
            long_queue_us: Some(self.long as f64 / 1e3),
            ..CauseFigures::default()
        }
    }

    /// Congestion, or a queue that nearly always stands and therefore shows nothing.
    pub(super) fn congestion(&self, error: f64) -> Option<(LossCause, CauseReason, CauseFigures)> {
        let (runs, all) = (self.runs.len() as u64, self.samples.len() as u64);
        let (long, of_all) = (self.long(&self.runs), self.long(&self.samples));
        if of_all * 2 > all {
            return Some((LossCause::Unknown, CauseReason::StandingQueue, self.figures()));
        }
        let usual = (of_all + 1) as f64 / (all + 2) as f64;
        let chance = at_least(long, runs, usual);
        let is_congestion = long * 2 >= runs && chance < error;
        let figures = CauseFigures { chance: Some(chance), ..self.figures() };
        is_congestion.then_some((LossCause::Congestion, CauseReason::Queue, figures))
    }

    /// True if losses are seldom at a queue that is no longer than the median.
    pub(super) fn shuns_short(&self) -> bool {
        let mut all: Vec<i64> = self.losses.iter().chain(&self.samples).copied().collect();
        all.sort_unstable();
        let median = all[(all.len() - 1) / 2];
        let short = |of: &[i64]| of.iter().filter(|waiting| **waiting <= median).count() as u64;
        let (of_losses, of_samples) = (short(&self.losses), short(&self.samples));
        let drawn = self.losses.len() as u64;
        at_most_of_drawn(of_losses, drawn, of_losses + of_samples, all.len() as u64) < SHUNNED
    }
}

/// The least waiting around any time.
struct WaitingFloor(Vec<(u64, i64)>);

impl WaitingFloor {
    fn new(mut waited: Vec<(u64, i64)>) -> Self {
        waited.sort_unstable();
        let drift = |from: u64, to: u64| i64::try_from(to.abs_diff(from)).unwrap_or(i64::MAX) / DRIFT;
        for at in 1..waited.len() {
            let (before, least) = waited[at - 1];
            waited[at].1 = waited[at].1.min(least.saturating_add(drift(before, waited[at].0)));
        }
        for at in (0..waited.len().saturating_sub(1)).rev() {
            let (after, least) = waited[at + 1];
            waited[at].1 = waited[at].1.min(least.saturating_add(drift(waited[at].0, after)));
        }
        Self(waited)
    }

    /// The least waiting at one of the times that it was made of.
    fn at(&self, at: u64) -> i64 {
        let place = self.0.partition_point(|(time, _)| *time < at).min(self.0.len() - 1);
        self.0[place].1
    }
}
