//! Why packets were lost, from the pattern of losses at one place: LossRadar, li-thesis §5.5.1.
//!
//! ```text
//!   losses, by time ──▶ expired? ──▶ burst? (Alg. 10) ──▶ at the end of an interval (Alg. 11) ──▶ too few: wait
//!                        │ loop      │ a flow lost more     │ a flow lost all it sent: blackhole        │
//!                        ▼           │ than n_bb in a row:  │ nearly only SYNs: blackhole               ▼
//!                                    │ blackhole            │ spread evenly over time: random    the next interval
//!                                    ▼ else congestion      ▼ else unknown
//! ```
//!
//! Blackholes and random drops send somebody to a switch, so a false alarm is worse than calling it congestion (the
//! thesis's principle 3), and a loss of unclear cause is never a blackhole. Whether losses of a flow follow each other
//! is judged in `consecutive`.
//!
//! Four things are added to the thesis. A single loss fills all of its one bin, so it would be random; here fewer than
//! [`CauseThresholds::few`] wait for more. A flow that is known to be in a blackhole stays there while all it sends is lost, however
//! little that is. Losses are not random while congestion takes more than they are: principle 3
//! again. And a burst is cut where it passes the length of a batch, not where a batch happens to end: one that two batches
//! share is whole.
//!
//! Invariants: every loss is judged once; what becomes of it does not depend on how losses were divided into batches.
//!
//! Losses that are expected (denied by an access list, probes of traceroute) are left out beforehand: see
//! `classify_unless` and [`acl::RuleTable`](crate::acl::RuleTable).

mod consecutive;
mod culprits;
mod thresholds;

use std::collections::BTreeMap;
use units::Timestamp;

use consecutive::{FlowLossTrack, SequenceOrder};
pub use culprits::{CauseCounts, Culprit, culprits};
pub use thresholds::{CauseThresholds, ThresholdError};

use crate::loss::{Loss, LossCause};
use crate::packet::Flow;
use crate::rolling::map_bytes;

/// A loss with its cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JudgedLoss {
    /// Number of losses that had been given before it.
    pub nth: usize,
    pub loss: Loss,
    pub cause: LossCause,
}

/// The causes of all losses of a capture, in the order of the losses.
pub fn classify(losses: &[Loss], thresholds: &CauseThresholds) -> Vec<LossCause> {
    classify_unless(losses, thresholds, |_| false).into_iter().flatten().collect()
}

/// Classifies losses, except expected ones: these get no cause, and do not count in the pattern of the others.
pub(crate) fn classify_unless(
    losses: &[Loss],
    thresholds: &CauseThresholds,
    expected: impl Fn(&Loss) -> bool,
) -> Vec<Option<LossCause>> {
    let mut causes = vec![None; losses.len()];
    let mut unexpected: Vec<usize> = (0..losses.len()).filter(|at| !expected(&losses[*at])).collect();
    unexpected.sort_by_key(|at| losses[*at].at);
    let batch: Vec<Loss> = unexpected.iter().map(|at| losses[*at]).collect();
    let mut analyzer = CauseAnalyzer::new(*thresholds);
    let mut judged = analyzer.feed(&batch, Timestamp::default());
    judged.extend(analyzer.finish());
    for JudgedLoss { nth, cause, .. } in judged {
        causes[unexpected[nth]] = Some(cause);
    }
    causes
}

/// Losses at one place, judged as they come.
#[derive(Debug)]
pub struct CauseAnalyzer {
    thresholds: CauseThresholds,
    fed: usize,
    /// True if no more losses will be added, so the interval may have been cut short.
    is_last: bool,
    /// Time at which the first interval began.
    origin: Option<Timestamp>,
    /// The latest losses, as long as the gaps between them are small.
    run: Vec<Numbered>,
    interval: LossInterval,
    /// Too few so far.
    waiting: LossPool,
    /// Losses that were last judged by their spread; the very last losses are judged with them.
    spread: LossPool,
    /// Flows that lose all they send, with their losses so far.
    holes: BTreeMap<Flow, FlowLossTrack>,
}

/// More than these are not remembered, so that memory has a bound: they are found again.
const MOST_HOLES: usize = 1 << 16;

type Numbered = (usize, Loss);

#[derive(Debug, Default)]
struct LossInterval {
    nth: u64,
    /// Losses in bursts. They serve only to judge flows.
    judged: Vec<Loss>,
    /// Losses of these that are congestion.
    congested: usize,
    open: Vec<Numbered>,
}

/// Losses that are judged together by how they are spread.
#[derive(Clone, Debug, Default)]
struct LossPool {
    /// The interval in which it begins.
    since: u64,
    losses: Vec<Numbered>,
    /// Losses to congestion meanwhile.
    congested: usize,
}

impl LossPool {
    /// Joins this pool with a later one.
    fn with(mut self, later: Self) -> Self {
        if self.losses.is_empty() {
            return later;
        }
        self.losses.extend(later.losses);
        self.congested += later.congested;
        self
    }
}

impl CauseAnalyzer {
    pub fn new(thresholds: CauseThresholds) -> Self {
        Self {
            thresholds,
            fed: 0,
            is_last: false,
            origin: None,
            run: Vec::new(),
            interval: LossInterval::default(),
            waiting: LossPool::default(),
            spread: LossPool::default(),
            holes: BTreeMap::new(),
        }
    }

    /// Losses of the next batch, none of which was lost after `until`, nor any of later batches before. Bursts are judged at
    /// once, the others when their interval has ended.
    pub fn feed(&mut self, batch: &[Loss], until: Timestamp) -> Vec<JudgedLoss> {
        let mut out = Vec::new();
        let first = self.fed;
        self.fed += batch.len();
        let mut batch: Vec<Numbered> = batch.iter().enumerate().map(|(at, loss)| (first + at, *loss)).collect();
        batch.sort_by_key(|(_, loss)| loss.at);
        for (nth, loss) in batch {
            if loss.expired {
                out.push(JudgedLoss { nth, loss, cause: LossCause::Loop });
                continue;
            }
            if self.is_run_over(loss.at) {
                self.end_run(&mut out);
            }
            self.run.push((nth, loss));
        }
        if self.is_run_over(until) {
            self.end_run(&mut out);
        }
        if self.run.is_empty() && self.interval_of(until) > self.interval.nth {
            self.end_interval(&mut out);
        }
        out
    }

    /// Ends the input and judges the rest.
    pub fn finish(mut self) -> Vec<JudgedLoss> {
        let mut out = Vec::new();
        self.end_run(&mut out);
        self.is_last = true;
        self.end_interval(&mut out);
        let waiting = std::mem::take(&mut self.waiting);
        let before = std::mem::take(&mut self.spread);
        let (count, all) = (before.losses.len(), before.with(waiting.clone()));
        let causes = self.by_spread(&all, self.interval.nth);
        out.extend(waiting.losses.iter().zip(&causes[count..]).map(|((nth, loss), cause)| judged(*nth, loss, *cause)));
        out
    }

    /// Approximate memory use in bytes.
    pub fn bytes(&self) -> usize {
        let Self { run, interval, waiting, spread, holes, .. } = self;
        let numbered = [run, &interval.open, &waiting.losses, &spread.losses].map(Vec::capacity).iter().sum::<usize>();
        let judged = interval.judged.capacity() * size_of::<Loss>();
        numbered * size_of::<Numbered>() + judged + map_bytes::<Flow, FlowLossTrack>(holes.len())
    }

    fn is_run_over(&self, now: Timestamp) -> bool {
        let (Some((_, first)), Some((_, last))) = (self.run.first(), self.run.last()) else { return false };
        let CauseThresholds { gap, batch, .. } = self.thresholds;
        now.since(last.at) >= thresholds::ns(gap) || now.since(first.at) >= thresholds::ns(batch)
    }

    fn interval_of(&self, at: Timestamp) -> u64 {
        let since = at.since(self.origin.unwrap_or(at)) / thresholds::ns(self.thresholds.interval);
        // Late losses belong to the interval that is open.
        since.max(self.interval.nth)
    }

    /// A run belongs to the interval in which it began.
    fn end_run(&mut self, out: &mut Vec<JudgedLoss>) {
        let run = std::mem::take(&mut self.run);
        let Some((_, first)) = run.first() else { return };
        self.origin.get_or_insert(first.at);
        let nth = self.interval_of(first.at);
        if nth > self.interval.nth {
            self.end_interval(out);
        }
        self.interval.nth = nth;
        if run.len() < self.thresholds.burst {
            self.interval.open.extend(run);
            return;
        }
        let causes = self.burst(&run);
        self.interval.congested += causes.iter().filter(|cause| **cause == LossCause::Congestion).count();
        self.interval.judged.extend(run.iter().map(|(_, loss)| *loss));
        out.extend(run.iter().zip(causes).map(|((nth, loss), cause)| judged(*nth, loss, cause)));
    }

    /// Algorithm 10, *classify_burst*.
    fn burst(&mut self, run: &[Numbered]) -> Vec<LossCause> {
        let mut causes = vec![LossCause::Congestion; run.len()];
        let mut is_congested = false;
        let mut deep = Vec::new();
        for (flow, at) in by_flow(run.iter().map(|(_, loss)| loss)) {
            let losses = || at.iter().map(|at| &run[*at].1);
            if self.stays_in_hole(&flow, losses()) {
                at.iter().for_each(|at| causes[*at] = LossCause::Blackhole);
                continue;
            }
            let track = FlowLossTrack::of(losses());
            match track.order() {
                SequenceOrder::Apart => is_congested = true,
                SequenceOrder::Consecutive if track.evidence() > self.thresholds.bursty_blackhole => {
                    deep.push((flow, at, track))
                }
                SequenceOrder::Consecutive | SequenceOrder::Untold => {}
            }
        }
        for (flow, at, track) in deep.into_iter().filter(|_| !is_congested) {
            at.iter().for_each(|at| causes[*at] = LossCause::Blackhole);
            self.remember(flow, track);
        }
        causes
    }

    /// True if a flow in a blackhole has lost all it sent since; if false, it has left the blackhole.
    fn stays_in_hole<'a>(&mut self, flow: &Flow, losses: impl Iterator<Item = &'a Loss>) -> bool {
        let Some(track) = self.holes.get_mut(flow) else { return false };
        losses.for_each(|loss| track.push(loss));
        let stays = track.order() == SequenceOrder::Consecutive;
        if !stays {
            self.holes.remove(flow);
        }
        stays
    }

    fn remember(&mut self, flow: Flow, track: FlowLossTrack) {
        if self.holes.len() >= MOST_HOLES {
            self.holes.clear();
        }
        self.holes.insert(flow, track);
    }

    /// Algorithm 11 over what is not yet judged of an interval and those before it.
    fn end_interval(&mut self, out: &mut Vec<JudgedLoss>) {
        let LossInterval { nth, judged: in_bursts, congested, open } = std::mem::take(&mut self.interval);
        self.interval.nth = nth;
        let waiting = std::mem::take(&mut self.waiting);
        let old = waiting.losses.len();
        let all: Vec<Numbered> = waiting.losses.into_iter().chain(open).collect();
        let in_holes = self.consecutive_flows(&all, &in_bursts);
        let mut rest = [Vec::new(), Vec::new()];
        for (at, (number, loss)) in all.into_iter().enumerate() {
            match in_holes[at] {
                true => out.push(judged(number, &loss, LossCause::Blackhole)),
                false => rest[usize::from(at >= old)].push((number, loss)),
            }
        }
        let [old, new] = rest;
        let old = LossPool { losses: old, ..waiting };
        self.rest_of_interval(old, LossPool { since: nth, losses: new, congested }, out);
    }

    /// Marks each loss that belongs to a flow that lost all it sent.
    fn consecutive_flows(&mut self, open: &[Numbered], in_bursts: &[Loss]) -> Vec<bool> {
        let mut found = vec![false; open.len()];
        let bursts = by_flow(in_bursts.iter());
        for (flow, at) in by_flow(open.iter().map(|(_, loss)| loss)) {
            let mut losses: Vec<&Loss> = at.iter().map(|at| &open[*at].1).collect();
            if !self.stays_in_hole(&flow, losses.iter().copied()) {
                losses.extend(bursts.get(&flow).into_iter().flatten().map(|at| &in_bursts[*at]));
                losses.sort_by_key(|loss| loss.at);
                let track = FlowLossTrack::of(losses.into_iter());
                let enough = at.len().min(track.evidence()) >= self.thresholds.blackhole;
                if !enough || track.order() != SequenceOrder::Consecutive {
                    continue;
                }
                self.remember(flow, track);
            }
            at.iter().for_each(|at| found[*at] = true);
        }
        found
    }

    /// Judges the remaining losses, older ones and those of this interval. An interval with enough losses of its own is
    /// judged by itself, so that waiting losses do not blur it.
    fn rest_of_interval(&mut self, old: LossPool, new: LossPool, out: &mut Vec<JudgedLoss>) {
        let (count, until) = (old.losses.len(), new.since);
        let stands_alone = new.losses.len() >= self.thresholds.few;
        let all = old.with(new.clone());
        if all.losses.len() < self.thresholds.few {
            self.waiting = all;
            return;
        }
        let mut causes = self.by_spread(&all, until);
        if stands_alone {
            causes.truncate(count);
            causes.extend(self.by_spread(&new, until));
        }
        out.extend(all.losses.iter().zip(causes).map(|((number, loss), cause)| judged(*number, loss, cause)));
        self.spread = if stands_alone { new } else { all };
    }

    /// Algorithm 11 from line 5, over the intervals of the pool up to the one given.
    fn by_spread(&self, LossPool { since, losses, congested }: &LossPool, until: u64) -> Vec<LossCause> {
        let CauseThresholds { syn, blackhole, .. } = self.thresholds;
        let is_syn = |loss: &Loss| loss.tcp.is_some_and(|tcp| tcp.syn);
        let syns = losses.iter().filter(|(_, loss)| is_syn(loss)).count();
        let unborn = syns >= blackhole && syns as f64 > syn.get() * losses.len() as f64;
        let is_unborn = |loss: &Loss| unborn && is_syn(loss);
        let others: Vec<Timestamp> =
            losses.iter().filter(|(_, loss)| !is_unborn(loss)).map(|(_, loss)| loss.at).collect();
        // A queue that often overflows has many small overflows, too, spread over time like random drops.
        let is_random = others.len() >= *congested && self.is_even(&others, *since, until);
        let other = if is_random { LossCause::Random } else { LossCause::Unknown };
        losses.iter().map(|(_, loss)| if is_unborn(loss) { LossCause::Blackhole } else { other }).collect()
    }

    /// Algorithm 11, *random_distribution*: as many bins as losses, and more than p_rand of them with one.
    fn is_even(&self, times: &[Timestamp], since: u64, until: u64) -> bool {
        let Some(last) = times.iter().max().filter(|_| times.len() >= self.thresholds.few) else { return false };
        let interval = thresholds::ns(self.thresholds.interval);
        let begin = self.origin.unwrap_or_default().0.saturating_add(interval.saturating_mul(since));
        let whole = (until + 1 - since).saturating_mul(interval);
        // Half of the last interval is enough if it was cut short.
        let least = if self.is_last { whole - interval / 2 } else { whole };
        let length = last.since(Timestamp(begin)).saturating_add(1).clamp(least, whole);
        let bins = times.len() as u128;
        let bin = |at: &Timestamp| (u128::from(at.since(Timestamp(begin))) * bins / u128::from(length)).min(bins - 1);
        let mut filled: Vec<u128> = times.iter().map(bin).collect();
        filled.sort_unstable();
        filled.dedup();
        filled.len() as f64 > self.thresholds.random.get() * times.len() as f64
    }
}

fn judged(nth: usize, loss: &Loss, cause: LossCause) -> JudgedLoss {
    JudgedLoss { nth, loss: *loss, cause }
}

/// The places of each flow's losses in a list.
fn by_flow<'a>(losses: impl Iterator<Item = &'a Loss>) -> BTreeMap<Flow, Vec<usize>> {
    let mut flows: BTreeMap<Flow, Vec<usize>> = BTreeMap::new();
    for (at, loss) in losses.enumerate() {
        flows.entry(loss.flow).or_default().push(at);
    }
    flows
}

#[cfg(test)]
mod tests;
