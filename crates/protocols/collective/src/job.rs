//! A job: a plan of transfers, iteration after iteration.
//!
//! ```text
//!   start ──▶ transfers without inputs ──▶ ready ──taken by the driver──▶ arrived ──▶ followers that miss nothing more ──▶ ready
//!     ▲                                                                      └─ the last of all, or of a rank ─┐
//!     └───────────────── compute ──────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! With a barrier the next iteration begins for all ranks at once, without messages, when the network is empty again. Without one each rank begins by itself, when
//! all that is for it has arrived (one to which nothing is sent: when all that it sent is acknowledged); what comes from ranks
//! that are ahead waits for it.
//!
//! Invariants: a transfer is ready once, when all that it waits for is there and its rank has begun; an iteration ends with its
//! last arrival, in order; a pending transfer takes a fixed number of bytes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use units::{Span, Time};

use crate::path::PathAccount;
use crate::plan::{FollowingTransfer, InputEvent, TransferPlan};

#[derive(Clone, Debug)]
pub struct CollectiveJob {
    pub plan: Arc<TransferPlan>,
    pub iterations: u32,
    /// Computation of a rank between two iterations.
    pub compute: Span,
    /// All ranks begin an iteration together.
    pub barrier: bool,
    /// What ends an iteration when it has happened to all transfers.
    pub ends: InputEvent,
}

/// A transfer that may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadyTransfer {
    pub iteration: u32,
    pub transfer: u32,
    /// Account of what released it.
    pub account: PathAccount,
}

/// An iteration that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedIteration {
    pub iteration: u32,
    /// Begin of its first rank.
    pub started: Time,
    pub ended: Time,
    /// Account of its last arrival.
    pub account: PathAccount,
}

#[derive(Clone, Copy, Debug)]
enum PlannedStart {
    Transfer(ReadyTransfer),
    Rank { iteration: u32, rank: u32 },
    Iteration(u32),
}

/// A transfer that misses inputs.
#[derive(Clone, Copy, Debug)]
struct PendingTransfer {
    left: u32,
    /// The latest end of a delay so far, and the event that it is behind.
    at: Time,
    since: Time,
    account: PathAccount,
}

#[derive(Debug)]
struct OpenIteration {
    started: Time,
    /// Transfers that have not ended it.
    left: u32,
    /// Ranks that have not begun it, without a barrier.
    unstarted: u32,
    /// The arrival that came last, and its account.
    latest: Time,
    account: PathAccount,
    /// Without a barrier: each rank.
    ranks: Vec<RankProgress>,
    /// Transfers of ranks that have not begun.
    held: Vec<(Time, ReadyTransfer)>,
}

#[derive(Clone, Copy, Debug)]
struct RankProgress {
    left: u32,
    started: Option<Time>,
}

/// A job at work.
#[derive(Debug)]
pub struct JobRun {
    job: CollectiveJob,
    /// Transfers without inputs, by rank, and where those of each begin.
    sources: Vec<u32>,
    first_source: Vec<u32>,
    /// By rank, transfers that it must see before its next iteration; and whether these are its own.
    awaited: Vec<u32>,
    only_sends: Vec<bool>,
    /// Of such a rank, those that are left in its iteration, which may be over for all others.
    unacknowledged: Vec<u32>,
    /// Iterations under way, the first of which has this number.
    open: VecDeque<OpenIteration>,
    first_open: u32,
    pending: BTreeMap<(u32, u32), PendingTransfer>,
    planned: BTreeMap<(Time, u64), PlannedStart>,
    order: u64,
    ended: VecDeque<EndedIteration>,
    failed: bool,
    /// With a barrier, the least time from the last arrival to the next start.
    settle: Span,
}

impl JobRun {
    /// A job that begins at `start`.
    pub fn new(job: CollectiveJob, start: Time) -> Self {
        let ranks = job.plan.ranks() as usize;
        let (mut awaited, mut sends, mut of_rank) = (vec![0; ranks], vec![0; ranks], vec![Vec::new(); ranks]);
        for id in 0..job.plan.transfers() {
            let transfer = job.plan.transfer(id);
            awaited[transfer.dst as usize] += 1;
            sends[transfer.src as usize] += 1;
            if job.plan.inputs(id) == 0 {
                of_rank[transfer.src as usize].push(id);
            }
        }
        let only_sends: Vec<bool> = awaited.iter().map(|awaited| *awaited == 0).collect();
        for (awaited, sends) in awaited.iter_mut().zip(sends).filter(|(awaited, _)| **awaited == 0) {
            *awaited = sends;
        }
        let mut first_source = vec![0];
        for list in &of_rank {
            first_source.push(first_source.last().copied().unwrap_or_default() + list.len() as u32);
        }
        let mut new = Self {
            sources: of_rank.concat(),
            first_source,
            unacknowledged: awaited.clone(),
            awaited,
            only_sends,
            open: VecDeque::new(),
            first_open: 0,
            pending: BTreeMap::new(),
            planned: BTreeMap::new(),
            order: 0,
            ended: VecDeque::new(),
            failed: false,
            settle: Span::ZERO,
            job,
        };
        if new.job.iterations > 0 {
            new.plan_iteration(start, 0);
        }
        new
    }

    /// Leaves at least this time between the last arrival of an iteration and the next, with a barrier: for what is still on
    /// its way, so that every iteration finds an empty network.
    pub fn settle(&mut self, time: Span) {
        self.settle = time;
    }

    pub fn job(&self) -> &CollectiveJob {
        &self.job
    }

    /// True once all iterations are complete, or the job has failed.
    pub fn is_over(&self) -> bool {
        self.failed || self.first_open >= self.job.iterations
    }

    /// Iterations that are complete.
    pub fn complete(&self) -> u32 {
        self.first_open
    }

    /// Time of the next start, if any is planned.
    pub fn next_at(&self) -> Option<Time> {
        self.planned.first_key_value().map(|((at, _), _)| *at)
    }

    /// The next transfer that may start by now.
    pub fn take_ready(&mut self, now: Time) -> Option<ReadyTransfer> {
        while let Some(((at, order), start)) = self.planned.first_key_value().map(|(key, start)| (*key, *start)) {
            if at > now {
                return None;
            }
            self.planned.remove(&(at, order));
            match start {
                PlannedStart::Transfer(ready) => return Some(ready),
                PlannedStart::Rank { iteration, rank } => self.begin_rank(at, iteration, rank),
                PlannedStart::Iteration(iteration) => self.begin_iteration(at, iteration),
            }
        }
        None
    }

    /// The next iteration that has ended.
    pub fn take_ended(&mut self) -> Option<EndedIteration> {
        self.ended.pop_front()
    }

    /// A transfer has arrived, with the account of the path that led to it.
    pub fn arrived(&mut self, now: Time, iteration: u32, transfer: u32, account: PathAccount) {
        if self.is_stale(iteration) {
            return;
        }
        self.pass_on(now, (iteration, transfer), InputEvent::Arrived, account);
        if !self.job.barrier {
            let rank = self.job.plan.transfer(transfer).dst;
            self.rank_advances(now, iteration, rank, false);
        }
        if self.job.ends == InputEvent::Arrived {
            self.iteration_advances(now, iteration, account);
        }
    }

    /// The sender of a transfer knows that it has arrived.
    pub fn acknowledged(&mut self, now: Time, iteration: u32, transfer: u32, account: PathAccount) {
        if self.failed {
            return;
        }
        if !self.is_stale(iteration) {
            self.pass_on(now, (iteration, transfer), InputEvent::Acknowledged, account);
        }
        if !self.job.barrier {
            let rank = self.job.plan.transfer(transfer).src;
            self.rank_advances(now, iteration, rank, true);
        }
        if self.job.ends == InputEvent::Acknowledged && !self.is_stale(iteration) {
            self.iteration_advances(now, iteration, account);
        }
    }

    /// Nothing more starts.
    pub fn fail(&mut self) {
        self.failed = true;
        self.planned.clear();
        self.pending.clear();
        self.open.clear();
    }

    /// Counts this many of the iterations to come as complete. Only between iterations, with a barrier.
    ///
    /// # Panics
    /// If an iteration is under way, or so many are not to come.
    pub fn skip(&mut self, iterations: u32) {
        assert!(self.job.barrier && self.open.is_empty() && self.first_open + iterations < self.job.iterations);
        self.first_open += iterations;
        for start in self.planned.values_mut() {
            if let PlannedStart::Iteration(number) = start {
                *number += iterations;
            }
        }
    }

    fn is_stale(&self, iteration: u32) -> bool {
        self.failed || iteration < self.first_open
    }

    fn plan(&mut self, at: Time, start: PlannedStart) {
        self.planned.insert((at, self.order), start);
        self.order += 1;
    }

    fn plan_iteration(&mut self, at: Time, iteration: u32) {
        if self.job.barrier {
            return self.plan(at, PlannedStart::Iteration(iteration));
        }
        for rank in 0..self.job.plan.ranks() {
            if self.awaited[rank as usize] > 0 {
                self.plan(at, PlannedStart::Rank { iteration, rank });
            }
        }
    }

    fn open(&mut self, now: Time) {
        let ranks = if self.job.barrier { &[][..] } else { &self.awaited };
        self.open.push_back(OpenIteration {
            started: now,
            left: self.job.plan.transfers(),
            unstarted: ranks.iter().filter(|awaited| **awaited > 0).count() as u32,
            latest: now,
            account: PathAccount::default(),
            ranks: ranks.iter().map(|left| RankProgress { left: *left, started: None }).collect(),
            held: Vec::new(),
        });
    }

    fn begin_iteration(&mut self, now: Time, iteration: u32) {
        self.open(now);
        let mut sources = std::mem::take(&mut self.sources);
        sources.sort_unstable();
        for transfer in &sources {
            self.release(now, now, ReadyTransfer { iteration, transfer: *transfer, account: PathAccount::default() });
        }
        self.sources = sources;
    }

    fn begin_rank(&mut self, now: Time, iteration: u32, rank: u32) {
        let index = (iteration - self.first_open) as usize;
        if index == self.open.len() {
            self.open(now);
        }
        let open = &mut self.open[index];
        open.ranks[rank as usize].started = Some(now);
        open.unstarted -= 1;
        let has_all = open.ranks[rank as usize].left == 0;
        let plan = &self.job.plan;
        let is_its_own = |(_, ready): &mut (Time, ReadyTransfer)| plan.transfer(ready.transfer).src == rank;
        let held: Vec<(Time, ReadyTransfer)> = open.held.extract_if(.., is_its_own).collect();
        let range = self.first_source[rank as usize] as usize..self.first_source[rank as usize + 1] as usize;
        for place in range {
            let transfer = self.sources[place];
            self.release(now, now, ReadyTransfer { iteration, transfer, account: PathAccount::default() });
        }
        for (at, mut ready) in held {
            ready.account = PathAccount::default();
            self.release(now, at.max(now), ready);
        }
        // What it waits for may have come before it began.
        if has_all {
            self.plan_rank(now, iteration + 1, rank);
        }
        self.end_iterations(now);
    }

    /// A transfer misses nothing more, and starts at `at` if its rank has begun.
    fn release(&mut self, now: Time, at: Time, mut ready: ReadyTransfer) {
        let open = &mut self.open[(ready.iteration - self.first_open) as usize];
        let began = if self.job.barrier {
            Some(open.started)
        } else {
            open.ranks[self.job.plan.transfer(ready.transfer).src as usize].started
        };
        let Some(began) = began else { return open.held.push((at, ready)) };
        let at = at.max(began + self.job.plan.not_before(ready.transfer));
        ready.account.parts.compute += at.since(now);
        self.plan(at, PlannedStart::Transfer(ready));
    }

    /// An event of a transfer has happened: those that wait for it miss one input less.
    fn pass_on(&mut self, now: Time, (iteration, transfer): (u32, u32), event: InputEvent, account: PathAccount) {
        let plan = Arc::clone(&self.job.plan);
        plan.followers(transfer, event, |FollowingTransfer { transfer, delay }| {
            let at = now + delay;
            let inputs = plan.inputs(transfer);
            if inputs == 1 {
                return self.release(now, at, ReadyTransfer { iteration, transfer, account });
            }
            let new = PendingTransfer { left: inputs, at, since: now, account };
            let pending = self.pending.entry((iteration, transfer)).or_insert(new);
            pending.left -= 1;
            if at >= pending.at {
                *pending = PendingTransfer { left: pending.left, at, since: now, account };
            }
            let PendingTransfer { left, at, since, mut account } = *pending;
            if left == 0 {
                self.pending.remove(&(iteration, transfer));
                // The critical input is the one whose delay ends last, and it may have happened before.
                account.parts.compute += now.since(since);
                self.release(now, at, ReadyTransfer { iteration, transfer, account });
            }
        });
    }

    /// An arrival, or an acknowledgement of its own, brings a rank nearer to its next iteration.
    fn rank_advances(&mut self, now: Time, iteration: u32, rank: u32, own: bool) {
        if own != self.only_sends[rank as usize] {
            return;
        }
        if own {
            let left = &mut self.unacknowledged[rank as usize];
            *left -= 1;
            if *left == 0 {
                *left = self.awaited[rank as usize];
                self.plan_rank(now, iteration + 1, rank);
            }
            return;
        }
        let progress = &mut self.open[(iteration - self.first_open) as usize].ranks[rank as usize];
        progress.left -= 1;
        if progress.left == 0 && progress.started.is_some() {
            self.plan_rank(now, iteration + 1, rank);
        }
    }

    fn plan_rank(&mut self, now: Time, iteration: u32, rank: u32) {
        if iteration < self.job.iterations {
            self.plan(now + self.job.compute, PlannedStart::Rank { iteration, rank });
        }
    }

    fn iteration_advances(&mut self, now: Time, iteration: u32, account: PathAccount) {
        let open = &mut self.open[(iteration - self.first_open) as usize];
        open.left -= 1;
        (open.account, open.latest) = (account, now);
        self.end_iterations(now);
    }

    /// Ends iterations in their order. Without a barrier all transfers of one may arrive before those of the one before have, or
    /// before its last rank begins.
    fn end_iterations(&mut self, now: Time) {
        while let Some(open) = self.open.pop_front_if(|open| open.left == 0 && open.unstarted == 0) {
            let OpenIteration { started, latest, account, .. } = open;
            self.ended.push_back(EndedIteration { iteration: self.first_open, started, ended: latest, account });
            self.first_open += 1;
            if self.job.barrier && self.first_open < self.job.iterations {
                self.plan_iteration(now + self.job.compute.max(self.settle), self.first_open);
            }
        }
    }
}

#[cfg(test)]
mod tests;
