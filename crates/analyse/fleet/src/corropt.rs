//! CorrOpt's optimizer: when capacity has returned, the best set of corrupting links to disable.
//!
//! LinkGuardian §3.6, after CorrOpt (SIGCOMM'17). *Best* is the largest sum of losses removed, such that every ToR keeps
//! the paths that its constraint asks for. The problem is NP-hard in general; here it falls apart:
//!
//! - Segments share no ToR, so each is solved by itself. Only the segment in which a link came back needs to be: in
//!   every other one each corrupting link has been refused alone, and nothing has returned since.
//! - A ToR that would keep enough paths with *all* candidates gone is never in the way; candidates above no other ToR
//!   go at once. A candidate that cannot go alone never can.
//! - A link of a ToR concerns that ToR alone. Once it is settled which links higher up go, every ToR is a small knapsack
//!   of its own.
//! - Of links with the same effect (from one switch to the top, or between the same two switches) the worst go first.
//!
//! The remainder is a branch-and-bound over how many links of each such group go. The bound is the sum of what is settled,
//! all that is not, and every ToR's best as if no further link went: more links gone never make a ToR's best better. With
//! its budget of steps used up, the search answers with the best set found, filled up with what can still go, and with the
//! bound on what it may have missed.
//!
//! A ToR that lacks paths already, by somebody else's doing, loses no more; others go on as if it were not there.

mod knapsack;

use std::collections::HashSet;

use crate::fabric::{LinkId, SwitchId};
use crate::paths::Paths;
use crate::penalty::Penalty;
use knapsack::KnapsackTor;

/// A link that corrupts, and what it costs to keep it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CandidateLink {
    pub link: LinkId,
    pub penalty: Penalty,
}

/// Links to disable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DisableChoice {
    /// Links, in order of their ids.
    pub links: Vec<LinkId>,
    /// Penalty of these links as long as they stay.
    pub removed: Penalty,
    /// Upper bound on the penalty that another choice would remove beyond `removed`; zero if this choice is optimal.
    pub missed: Penalty,
}

/// Steps of the search in one segment before it settles for what it has: decisions about a group or a ToR's link.
pub const BUDGET: u64 = 1_000_000;

/// Groups that the search settles one within another; the lightest beyond are left to what fills up.
const MOST_GROUPS: usize = 4_096;

/// Links with the same effect, the worst first.
#[derive(Debug)]
struct LinkGroup {
    links: Vec<CandidateLink>,
}

/// The best of `candidates`, enabled links of one segment, to disable. `paths` is as before afterwards.
pub fn choose(paths: &mut Paths<'_>, candidates: &[CandidateLink], budget: u64) -> DisableChoice {
    let mut open: Vec<CandidateLink> = candidates.iter().filter(|c| paths.can_disable(c.link)).copied().collect();
    let mut chosen = not_in_the_way(paths, &mut open);
    let leads_nowhere = |candidate: &mut CandidateLink| paths.ways(paths.fabric().link(candidate.link).upper) == 0;
    chosen.extend(open.extract_if(.., leads_nowhere));
    chosen.iter().for_each(|candidate| paths.disable(candidate.link));
    let mut missed = Penalty::ZERO;
    if !open.is_empty() {
        let (found, bound) = BranchAndBound::new(paths, &open, budget).run();
        found.iter().for_each(|candidate| paths.disable(candidate.link));
        chosen.extend(found);
        if bound > Penalty::ZERO {
            let filled = fill_up(paths, &open);
            let found: Penalty = chosen.iter().chain(&filled).filter(|c| open.contains(c)).map(|c| c.penalty).sum();
            missed = bound.saturating_sub(found);
            chosen.extend(filled);
        }
    }
    chosen.iter().for_each(|candidate| paths.enable(candidate.link));
    let mut links: Vec<LinkId> = chosen.iter().map(|candidate| candidate.link).collect();
    links.sort_unstable();
    DisableChoice { links, removed: chosen.iter().map(|candidate| candidate.penalty).sum(), missed }
}

/// Takes out of `open` the candidates above no ToR that the candidates together would harm.
fn not_in_the_way(paths: &mut Paths<'_>, open: &mut Vec<CandidateLink>) -> Vec<CandidateLink> {
    let Some(first) = open.first() else { return Vec::new() };
    let fabric = paths.fabric();
    let segment = fabric.segment_of(first.link);
    open.iter().for_each(|candidate| paths.disable(candidate.link));
    // Switches below which some ToR is harmed, from the bottom up.
    let mut harmed: HashSet<SwitchId> = HashSet::new();
    for &switch in segment.switches.iter().rev() {
        let mut below = fabric.down(switch).iter().map(|&link| fabric.link(link).lower);
        if !paths.is_satisfied(switch) || below.any(|lower| harmed.contains(&lower)) {
            harmed.insert(switch);
        }
    }
    open.iter().for_each(|candidate| paths.enable(candidate.link));
    open.extract_if(.., |candidate| !harmed.contains(&fabric.link(candidate.link).lower)).collect()
}

/// Disables what can still go, the worst first.
fn fill_up(paths: &mut Paths<'_>, open: &[CandidateLink]) -> Vec<CandidateLink> {
    let mut left: Vec<CandidateLink> =
        open.iter().filter(|candidate| paths.is_enabled(candidate.link)).copied().collect();
    left.sort_by_key(|candidate| (std::cmp::Reverse(candidate.penalty), candidate.link));
    left.retain(|candidate| {
        let goes = paths.can_disable(candidate.link);
        if goes {
            paths.disable(candidate.link);
        }
        goes
    });
    left
}

/// The branch-and-bound within one segment.
struct BranchAndBound<'a, 'f> {
    paths: &'a mut Paths<'f>,
    groups: Vec<LinkGroup>,
    /// Penalty that all groups from this one on would remove together.
    rest: Vec<Penalty>,
    tors: Vec<KnapsackTor>,
    /// ToRs without a candidate of their own: they only have to be satisfied.
    bystanders: Vec<SwitchId>,
    chosen: Vec<CandidateLink>,
    best: Penalty,
    best_links: Vec<CandidateLink>,
    budget: u64,
    /// The greatest bound among what the budget did not allow to look into.
    skipped: Penalty,
    /// Penalty left out from the start.
    left_out: Penalty,
}

impl<'a, 'f> BranchAndBound<'a, 'f> {
    fn new(paths: &'a mut Paths<'f>, open: &[CandidateLink], budget: u64) -> Self {
        let fabric = paths.fabric();
        let segment = fabric.segment_of(open[0].link);
        let (own, above): (Vec<CandidateLink>, Vec<CandidateLink>) =
            open.iter().partition(|candidate| fabric.down(fabric.link(candidate.link).lower).is_empty());
        let mut groups = groups(paths, above);
        let left_out = groups.iter().skip(MOST_GROUPS).map(LinkGroup::penalty).sum();
        groups.truncate(MOST_GROUPS);
        let mut rest: Vec<Penalty> = groups.iter().map(LinkGroup::penalty).chain([Penalty::ZERO]).collect();
        for i in (0..groups.len()).rev() {
            rest[i] = rest[i] + rest[i + 1];
        }
        let tors = KnapsackTor::all(paths, &own);
        let with_own: HashSet<SwitchId> = tors.iter().map(KnapsackTor::switch).collect();
        let is_bystander = |tor: &&SwitchId| !with_own.contains(tor) && paths.is_satisfied(**tor);
        let bystanders = segment.tors.iter().filter(is_bystander).copied().collect();
        let (chosen, best_links) = (Vec::new(), Vec::new());
        let (best, skipped) = (Penalty::ZERO, Penalty::ZERO);
        Self { paths, groups, rest, tors, bystanders, chosen, best, best_links, budget, skipped, left_out }
    }

    /// The best found, and if that may not be the best there is, what no choice exceeds.
    fn run(mut self) -> (Vec<CandidateLink>, Penalty) {
        self.branch(0, Penalty::ZERO);
        let bound = self.skipped.max(self.best) + self.left_out;
        (self.best_links, if bound > self.best { bound } else { Penalty::ZERO })
    }

    /// Settles the groups from `depth` on, `removed` having been removed by those before.
    fn branch(&mut self, depth: usize, removed: Penalty) {
        if !self.bystanders.iter().all(|&tor| self.paths.is_satisfied(tor)) {
            return;
        }
        let (mut own, mut own_bound) = (Penalty::ZERO, Penalty::ZERO);
        for tor in &mut self.tors {
            let Some(best) = tor.best(self.paths, &mut self.budget) else { return };
            (own, own_bound) = (own + best.found, own_bound + best.bound);
        }
        let bound = removed + own_bound + self.rest[depth];
        if bound <= self.best {
            return;
        }
        if depth == self.groups.len() {
            self.skipped = self.skipped.max(bound);
            if removed + own > self.best {
                self.best = removed + own;
                self.best_links.clone_from(&self.chosen);
                self.best_links.extend(self.tors.iter().flat_map(KnapsackTor::chosen));
            }
        } else if self.budget == 0 {
            self.skipped = self.skipped.max(bound);
        } else {
            self.budget -= 1;
            self.settle(depth, removed);
        }
    }

    /// Tries every number of links of one group: all of them first, since that is what the bound hopes for.
    fn settle(&mut self, depth: usize, mut removed: Penalty) {
        let links = std::mem::take(&mut self.groups[depth].links);
        for candidate in &links {
            self.paths.disable(candidate.link);
            self.chosen.push(*candidate);
            removed = removed + candidate.penalty;
        }
        self.branch(depth + 1, removed);
        for candidate in links.iter().rev() {
            self.paths.enable(candidate.link);
            self.chosen.pop();
            removed = removed - candidate.penalty;
            self.branch(depth + 1, removed);
        }
        self.groups[depth].links = links;
    }
}

impl LinkGroup {
    fn penalty(&self) -> Penalty {
        self.links.iter().map(|candidate| candidate.penalty).sum()
    }
}

/// Links with the same effect together, those that weigh most first.
fn groups(paths: &Paths<'_>, mut candidates: Vec<CandidateLink>) -> Vec<LinkGroup> {
    let fabric = paths.fabric();
    let effect = |candidate: &CandidateLink| {
        let link = fabric.link(candidate.link);
        (link.lower, (!fabric.is_top(link.upper)).then_some(link.upper))
    };
    candidates.sort_by_key(|candidate| (effect(candidate), std::cmp::Reverse(candidate.penalty), candidate.link));
    let mut groups: Vec<LinkGroup> =
        candidates.chunk_by(|a, b| effect(a) == effect(b)).map(|links| LinkGroup { links: links.to_vec() }).collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.penalty()));
    groups
}
