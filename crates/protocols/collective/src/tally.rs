//! Tally of a job: times and lateness of its iterations, their parts, and the links that are blamed.
//!
//! Lateness is against the same iteration of a run without losses; one that is later by no more than a tolerance is not late. Equal times that follow each other are kept once, so that a
//! million iterations of which few lose anything take little.

mod rows;

use std::collections::BTreeMap;

use units::{Span, Time};

pub use rows::{IterationRow, RunLengths, TransferRow};

use crate::job::EndedIteration;
use crate::path::{DelayCause, PathParts};

/// Every iteration of this many has a row, late or not.
const EVERY_ROW: u32 = 100;

/// Link and cause that an iteration is late for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Accusation {
    pub link: Option<u32>,
    pub cause: DelayCause,
    pub transfer: u32,
}

/// Iterations that are blamed on a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlameCount {
    pub iterations: u64,
    pub lateness: Span,
}

/// End of a job before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobFailure {
    pub iteration: u32,
    pub at: Time,
    pub transfer: u32,
    pub link: Option<u32>,
    pub cause: DelayCause,
}

/// Rows that are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowChoice {
    /// A row for every iteration.
    pub all_iterations: bool,
    /// A row for every transfer.
    pub transfers: bool,
}

/// Results of a job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobOutcome {
    /// Iterations that ended, and those of them that were simulated.
    pub complete: u64,
    pub simulated: u64,
    pub failed: Option<JobFailure>,
    pub times: RunLengths,
    /// Iterations of the run without losses.
    pub without_loss: RunLengths,
    /// Times by which iterations were later, 0 for those that were not.
    pub lateness: RunLengths,
    pub late: u64,
    /// The least that any iteration can take.
    pub bound: Span,
    /// Packets of the job that wires or switches lost, and timeouts of its senders.
    pub losses: u64,
    pub timeouts: u64,
    /// Sums over all iterations.
    pub parts: PathParts,
    pub blamed: BTreeMap<(Option<u32>, DelayCause), BlameCount>,
    pub rows: Vec<IterationRow>,
    pub transfers: Vec<TransferRow>,
}

/// Keeps what a job does, iteration by iteration.
#[derive(Clone, Debug)]
pub struct JobTally {
    pub outcome: JobOutcome,
    baseline: RunLengths,
    choice: RowChoice,
    iterations_apart: bool,
    compute: Span,
    tolerance: Span,
    /// Time of iterations that were counted and not simulated.
    pub skipped: Span,
    /// Losses and timeouts of the iteration under way.
    losses: u32,
    timeouts: u32,
    last_end: Option<Time>,
}

impl JobTally {
    /// A tally against the times of a run without losses, if there was one. `apart`: iterations do not overlap.
    pub fn new(baseline: Option<RunLengths>, choice: RowChoice, apart: bool, compute: Span) -> Self {
        Self {
            outcome: JobOutcome::default(),
            baseline: baseline.unwrap_or_default(),
            choice,
            iterations_apart: apart,
            compute,
            tolerance: Span::ZERO,
            skipped: Span::ZERO,
            losses: 0,
            timeouts: 0,
            last_end: None,
        }
    }

    pub fn on_loss(&mut self) {
        self.outcome.losses += 1;
        self.losses = self.losses.saturating_add(1);
    }

    pub fn on_timeouts(&mut self, timeouts: u32) {
        self.outcome.timeouts += u64::from(timeouts);
        self.timeouts = self.timeouts.saturating_add(timeouts);
    }

    /// Losses and timeouts since the last iteration ended.
    pub fn is_quiet(&self) -> bool {
        self.losses == 0 && self.timeouts == 0
    }

    /// Time of an iteration that has ended: from its start, or from the end of the one before and the computation behind that,
    /// if iterations overlap.
    pub fn time_of(&self, ended: &EndedIteration) -> Span {
        match self.last_end.filter(|_| !self.iterations_apart) {
            Some(last) => ended.ended.since(last).saturating_sub(self.compute),
            None => ended.ended.since(ended.started),
        }
    }

    /// Iterations are late only if they are later by more than this: less is the order of acknowledgements on a wire.
    pub fn tolerate(&mut self, time: Span) {
        self.tolerance = time;
    }

    /// Time by which an iteration is later than without losses, and whether that counts as late.
    pub fn lateness_of(&mut self, ended: &EndedIteration) -> (Span, bool) {
        let Some(usual) = self.baseline.at(u64::from(ended.iteration)) else { return (Span::ZERO, false) };
        let lateness = self.time_of(ended).saturating_sub(usual);
        (lateness, lateness > self.tolerance)
    }

    /// An iteration has ended; a late one comes with what it is late for.
    pub fn on_iteration(&mut self, ended: &EndedIteration, accused: Option<Accusation>) {
        let (time, (lateness, late)) = (self.time_of(ended), self.lateness_of(ended));
        let row = IterationRow {
            iteration: ended.iteration,
            start: ended.started + self.skipped,
            time,
            lateness,
            late,
            accused: accused.filter(|_| late),
            losses: std::mem::take(&mut self.losses),
            timeouts: std::mem::take(&mut self.timeouts),
            parts: ended.account.parts,
        };
        self.last_end = Some(ended.ended);
        self.outcome.simulated += 1;
        self.count(&row, 1);
    }

    /// This many iterations are like the one of `ended`, which lost nothing, and follow it; `apart` from start to start.
    pub fn skip(&mut self, ended: &EndedIteration, iterations: u32, apart: Span) {
        let time = self.time_of(ended);
        let row = IterationRow {
            iteration: ended.iteration + 1,
            start: ended.started + self.skipped + apart,
            time,
            lateness: Span::ZERO,
            late: false,
            accused: None,
            losses: 0,
            timeouts: 0,
            parts: ended.account.parts,
        };
        let end = row.iteration + iterations;
        let of_rows = (row.iteration..end).filter(|number| self.choice.all_iterations || number % EVERY_ROW == 0);
        for iteration in of_rows {
            let start = row.start + apart * u64::from(iteration - row.iteration);
            self.outcome.rows.push(IterationRow { iteration, start, ..row });
        }
        self.add(&row, u64::from(iterations));
        self.skipped += apart * u64::from(iterations);
    }

    fn count(&mut self, row: &IterationRow, iterations: u64) {
        if row.late || self.choice.all_iterations || row.iteration.is_multiple_of(EVERY_ROW) {
            self.outcome.rows.push(*row);
        }
        self.add(row, iterations);
    }

    fn add(&mut self, row: &IterationRow, iterations: u64) {
        let outcome = &mut self.outcome;
        outcome.complete += iterations;
        outcome.times.push(row.time, iterations);
        outcome.lateness.push(row.lateness, iterations);
        outcome.parts.add(&row.parts.times(iterations));
        outcome.late += if row.late { iterations } else { 0 };
        if let Some(accused) = row.accused.filter(|_| row.late) {
            let blame = outcome.blamed.entry((accused.link, accused.cause)).or_default();
            blame.iterations += iterations;
            blame.lateness += row.lateness * iterations;
        }
    }

    /// A transfer has arrived.
    pub fn on_transfer(&mut self, row: TransferRow) {
        self.outcome.transfers.push(row);
    }

    /// True if rows of transfers are wanted.
    pub fn wants_transfers(&self) -> bool {
        self.choice.transfers
    }

    /// Everything that was kept.
    pub fn finish(self) -> JobOutcome {
        JobOutcome { without_loss: self.baseline, ..self.outcome }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::PathAccount;

    fn ended(iteration: u32, started: u64, ended: u64) -> EndedIteration {
        let at = |us| Time::ZERO + Span::from_us(us);
        let mut account = PathAccount::default();
        account.parts.wire = Span::from_us(ended - started);
        EndedIteration { iteration, started: at(started), ended: at(ended), account }
    }

    fn accusation() -> Option<Accusation> {
        Some(Accusation { link: Some(3), cause: DelayCause::Loss, transfer: 1 })
    }

    fn usual(us: u64) -> Option<RunLengths> {
        let mut times = RunLengths::default();
        times.push(Span::from_us(us), 1_000);
        Some(times)
    }

    #[test]
    fn iterations_that_are_skipped_leave_the_same_as_simulated_ones() {
        let tally = || JobTally::new(usual(10), RowChoice::default(), true, Span::ZERO);
        let (mut exact, mut short) = (tally(), tally());
        for iteration in 0..350 {
            let begin = u64::from(iteration) * 10;
            exact.on_iteration(&ended(iteration, begin, begin + 10), accusation());
        }
        short.on_iteration(&ended(0, 0, 10), accusation());
        short.skip(&ended(0, 0, 10), 349, Span::from_us(10));
        assert_eq!(short.skipped, Span::from_us(3_490));
        let (exact, short) = (exact.finish(), short.finish());
        assert_eq!((exact.simulated, short.simulated), (350, 1));
        assert_eq!(JobOutcome { simulated: 350, ..short }, exact);
        assert_eq!(exact.rows.iter().map(|row| row.iteration).collect::<Vec<_>>(), [0, 100, 200, 300]);
        assert_eq!(exact.rows[3].start, Time::ZERO + Span::from_us(3_000));
    }

    #[test]
    fn a_late_iteration_has_a_row_and_somebody_to_blame() {
        let mut tally = JobTally::new(usual(10), RowChoice::default(), true, Span::ZERO);
        tally.on_loss();
        tally.on_timeouts(1);
        tally.on_iteration(&ended(7, 0, 15), accusation());
        tally.on_iteration(&ended(8, 15, 25), accusation());
        let outcome = tally.finish();
        assert_eq!((outcome.late, outcome.rows.len(), outcome.complete), (1, 1, 2));
        assert_eq!((outcome.rows[0].losses, outcome.rows[0].timeouts), (1, 1));
        let blame = outcome.blamed[&(Some(3), DelayCause::Loss)];
        assert_eq!((blame.iterations, blame.lateness), (1, Span::from_us(5)));
    }

    #[test]
    fn iterations_that_overlap_are_timed_from_end_to_end() {
        let mut tally = JobTally::new(usual(10), RowChoice::default(), false, Span::from_us(2));
        tally.on_iteration(&ended(0, 0, 10), accusation());
        tally.on_iteration(&ended(1, 4, 25), accusation());
        assert_eq!(tally.outcome.times.iter().map(|(time, _)| time.as_us()).collect::<Vec<_>>(), [10.0, 13.0]);
        assert_eq!(tally.outcome.late, 1);
    }
}
