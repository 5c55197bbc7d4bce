//! Choice among one ToR's own links, once it is settled which links above them go: a knapsack.
//!
//! The capacity of the knapsack is the number of paths to spare. The size of a link is the number of paths of the switch above
//! it, its value is its penalty. Links to switches with the same number of paths are of one kind: the worst of them go first,
//! and the search decides how many of each kind. The bound is Dantzig's: it fills the remaining capacity by value for size and
//! takes a fraction of the last link.

use crate::corropt::CandidateLink;
use crate::fabric::SwitchId;
use crate::paths::Paths;
use crate::penalty::Penalty;

#[derive(Debug)]
pub(crate) struct KnapsackTor {
    switch: SwitchId,
    /// Candidates among its links, with the switch above each. The worst first.
    candidates: Vec<(CandidateLink, SwitchId)>,
    /// Items by kind, and within a kind the worst first.
    items: Vec<KnapsackItem>,
    best: Penalty,
    best_links: Vec<CandidateLink>,
    trial: Vec<CandidateLink>,
    /// The greatest bound among what the budget did not allow to look into.
    skipped: Penalty,
}

#[derive(Clone, Copy, Debug)]
struct KnapsackItem {
    ways: u64,
    candidate: CandidateLink,
}

impl KnapsackItem {
    /// Worth for size; links that take no paths come before all others.
    fn value(&self) -> f64 {
        self.candidate.penalty.as_f64() / self.ways as f64
    }
}

/// Result for a ToR's own links.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnapsackResult {
    pub found: Penalty,
    /// Upper bound on what any choice removes; equal to `found`, unless the budget ended.
    pub bound: Penalty,
}

impl KnapsackTor {
    /// One for each ToR that has candidates among its own links.
    pub(crate) fn all(paths: &Paths<'_>, own: &[CandidateLink]) -> Vec<Self> {
        let fabric = paths.fabric();
        let mut own: Vec<(SwitchId, CandidateLink)> = own.iter().map(|c| (fabric.link(c.link).lower, *c)).collect();
        own.sort_by_key(|(tor, candidate)| (*tor, std::cmp::Reverse(candidate.penalty), candidate.link));
        own.chunk_by(|a, b| a.0 == b.0)
            .map(|links| Self {
                switch: links[0].0,
                candidates: links.iter().map(|&(_, c)| (c, fabric.link(c.link).upper)).collect(),
                items: Vec::new(),
                best: Penalty::ZERO,
                best_links: Vec::new(),
                trial: Vec::new(),
                skipped: Penalty::ZERO,
            })
            .collect()
    }

    pub(crate) fn switch(&self) -> SwitchId {
        self.switch
    }

    /// The most that disabling links of this ToR can remove as things are; none if it lacks paths even so.
    pub(crate) fn best(&mut self, paths: &Paths<'_>, budget: &mut u64) -> Option<KnapsackResult> {
        let spare = paths.ways(self.switch).checked_sub(paths.need(self.switch))?;
        (self.best, self.skipped) = (Penalty::ZERO, Penalty::ZERO);
        self.best_links.clear();
        let mut items = std::mem::take(&mut self.items);
        items.clear();
        items.extend(
            self.candidates.iter().map(|&(candidate, upper)| KnapsackItem { ways: paths.ways(upper), candidate }),
        );
        if items.iter().map(|item| item.ways).sum::<u64>() <= spare {
            self.best_links.extend(items.iter().map(|item| item.candidate));
            self.best = items.iter().map(|item| item.candidate.penalty).sum();
        } else {
            // Stable: within a kind the worst stay first.
            items.sort_by_key(|item| item.ways);
            self.fill(&items, spare, Penalty::ZERO, budget);
        }
        self.items = items;
        Some(KnapsackResult { found: self.best, bound: self.best.max(self.skipped) })
    }

    /// Links that the last [`best`](Self::best) found.
    pub(crate) fn chosen(&self) -> impl Iterator<Item = CandidateLink> {
        self.best_links.iter().copied()
    }

    /// Tries every number of the first kind, and for each what the other kinds can add.
    fn fill(&mut self, items: &[KnapsackItem], spare: u64, removed: Penalty, budget: &mut u64) {
        if removed > self.best || self.best_links.is_empty() {
            self.best = removed;
            self.best_links.clone_from(&self.trial);
        }
        let Some(&KnapsackItem { ways, .. }) = items.first() else { return };
        let bound = removed + relaxed(items, spare);
        if bound <= self.best {
            return;
        }
        if *budget == 0 {
            self.skipped = self.skipped.max(bound);
            return;
        }
        *budget -= 1;
        let alike = items.iter().take_while(|item| item.ways == ways).count();
        let room = spare.checked_div(ways).map_or(alike, |room| alike.min(usize::try_from(room).unwrap_or(alike)));
        let (mut removed, mut spare) = (removed, spare);
        for item in &items[..room] {
            self.trial.push(item.candidate);
            removed = removed + item.candidate.penalty;
            spare -= ways;
        }
        for taken in (0..=room).rev() {
            self.fill(&items[alike..], spare, removed, budget);
            if taken > 0 {
                self.trial.pop();
                removed = removed - items[taken - 1].candidate.penalty;
                spare += ways;
            }
        }
    }
}

/// Upper bound on the penalty that fits: the optimum if parts of links could be taken.
fn relaxed(items: &[KnapsackItem], spare: u64) -> Penalty {
    const ROUNDING: f64 = 1.0 + 1e-9;
    let mut by_value: Vec<&KnapsackItem> = items.iter().collect();
    by_value.sort_by(|one, other| other.value().total_cmp(&one.value()));
    let (mut whole, mut spare) = (Penalty::ZERO, spare);
    for item in by_value {
        if item.ways > spare {
            let cut = spare as f64 / item.ways as f64 * item.candidate.penalty.as_f64();
            return whole + Penalty::of_loss(cut * ROUNDING);
        }
        whole = whole + item.candidate.penalty;
        spare -= item.ways;
    }
    whole
}
