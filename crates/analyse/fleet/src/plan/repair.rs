//! In which order to repair: what makes the most room for others first.
//!
//! LinkGuardian §3.6: when a link comes back, the optimizer chooses among those that had to stay. So the worth of a
//! repair is what could go then. Within a segment the repair that is worth most comes first, what it lets go joins those
//! to be repaired, and so on until nothing is left; segments do not concern each other, so their orders are merged by
//! worth.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use crate::corropt::{self, CandidateLink};
use crate::fabric::LinkId;
use crate::paths::Paths;
use crate::penalty::Penalty;

/// Steps of each search: there is one for every link that may come next, so none may take long.
const BUDGET: u64 = 1_000;

/// Searches in all. After this many, the worst link comes next, regardless of what it makes room for.
const MOST_SEARCHES: usize = 20_000;

/// A repair, and what can go once it is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RepairStep {
    pub link: LinkId,
    /// Penalty that it had, if that is known.
    loss: Option<Penalty>,
    /// True if the link is out of service for its repair: already, or once a step before this one lets it go. False for
    /// a link that cannot go at all.
    pub can_go: bool,
    pub unlocks: Vec<LinkId>,
    pub unlocked: Penalty,
}

impl RepairStep {
    /// Greater comes first.
    fn worth(&self) -> (bool, Penalty, Option<Penalty>, Reverse<LinkId>) {
        (self.can_go, self.unlocked, self.loss, Reverse(self.link))
    }
}

/// Links of one segment: out of service, and corrupting but not able to go.
#[derive(Clone, Debug, Default)]
pub(crate) struct RepairQueue {
    pub out: BTreeMap<LinkId, Option<Penalty>>,
    pub stay: Vec<CandidateLink>,
}

/// All segments' repairs. `paths` has the links of `out` disabled, and is as before afterwards.
pub(crate) fn order(paths: &mut Paths<'_>, segments: Vec<RepairQueue>) -> Vec<RepairStep> {
    let mut searches = MOST_SEARCHES;
    let mut orders: Vec<VecDeque<RepairStep>> =
        segments.into_iter().map(|queue| of_segment(paths, queue, &mut searches)).collect();
    let mut all = Vec::new();
    loop {
        orders.retain(|steps| !steps.is_empty());
        let Some(next) = orders.iter_mut().max_by_key(|steps| steps.front().map(RepairStep::worth)) else { return all };
        all.extend(next.pop_front());
    }
}

fn of_segment(paths: &mut Paths<'_>, mut queue: RepairQueue, searches: &mut usize) -> VecDeque<RepairStep> {
    let before: Vec<LinkId> = queue.out.keys().copied().collect();
    let mut steps = VecDeque::new();
    while let Some(step) = next(paths, &queue, searches) {
        queue.out.remove(&step.link);
        paths.enable(step.link);
        let (go, stay) = queue.stay.iter().partition(|candidate| step.unlocks.binary_search(&candidate.link).is_ok());
        queue.stay = stay;
        for CandidateLink { link, penalty } in go {
            paths.disable(link);
            queue.out.insert(link, Some(penalty));
        }
        steps.push_back(step);
    }
    queue.stay.sort_by_key(|candidate| (Reverse(candidate.penalty), candidate.link));
    steps.extend(queue.stay.iter().map(|&CandidateLink { link, penalty }| RepairStep {
        link,
        loss: Some(penalty),
        can_go: false,
        unlocks: Vec::new(),
        unlocked: Penalty::ZERO,
    }));
    // By now every link is in service.
    before.into_iter().for_each(|link| paths.disable(link));
    steps
}

fn next(paths: &mut Paths<'_>, queue: &RepairQueue, searches: &mut usize) -> Option<RepairStep> {
    if queue.stay.is_empty() || queue.out.len() > *searches {
        let (&link, &loss) = queue.out.iter().max_by_key(|&(link, loss)| (*loss, Reverse(*link)))?;
        return Some(repaired(paths, queue, link, loss));
    }
    *searches -= queue.out.len();
    queue.out.iter().map(|(&link, &loss)| repaired(paths, queue, link, loss)).max_by_key(RepairStep::worth)
}

/// Finds the links that could go if this link came back.
fn repaired(paths: &mut Paths<'_>, queue: &RepairQueue, link: LinkId, loss: Option<Penalty>) -> RepairStep {
    paths.enable(link);
    let choice = corropt::choose(paths, &queue.stay, BUDGET);
    paths.disable(link);
    RepairStep { link, loss, can_go: true, unlocks: choice.links, unlocked: choice.removed }
}
