//! An order of steps in which no node is exposed that neither plan exposes.
//!
//! A node is *exposed* if a single failure of a link or a node strands it: it then hears neither its parent nor its backup parent, or
//! has none. Steps are tried from the top of the new tree down, and the first is taken that leaves everybody a way to the root and
//! exposes nobody but those whom the old or the new plan exposes. If there is none, a node changes its parent or its backup parent
//! alone; if that does not help either, the step that exposes the fewest is taken, and the nodes are counted.
//!
//! What is known of the fabric are the links of both plans; failure domains are not in a plan's file.

use std::collections::{BTreeSet, HashMap};

use super::{ExposedNodes, NodeUplinks, PlanStep, StepKind, UplinkTable, step};
use crate::graph::{Graph, GraphLink, GraphNode};
use crate::plan::survive::{SingleFailure, Survival};
use crate::plan::{ClockPlan, PlanFile, PlanMethod, SearchSummary, Uplink};

/// States that are played through, times nodes: some seconds.
const BUDGET: usize = 30_000_000;

/// Two plans, and their rows by name.
pub(super) struct PlanPair<'a> {
    pub(super) old: &'a PlanFile,
    pub(super) new: &'a PlanFile,
    pub(super) before: &'a UplinkTable<'a>,
    pub(super) after: &'a UplinkTable<'a>,
}

/// What may be done next to a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StepPart {
    Whole,
    Parent,
    Backup,
}

/// The steps, and whom they expose. None if the root changes, or if it would take too long.
pub(super) fn sparing<'a>(
    plans: &'a PlanPair<'a>,
    changing: &[(&'a str, StepKind)],
) -> Option<(Vec<PlanStep>, ExposedNodes)> {
    (plans.old.root == plans.new.root).then_some(())?;
    let mut stage = ChangeStage::new(plans)?;
    let before = stage.exposed()?;
    changing.iter().try_for_each(|(node, _)| stage.take(node, plans.after.get(node)))?;
    stage.plan.backup_root = stage.node(&plans.new.backup_root)?;
    let after = stage.exposed()?;
    changing.iter().try_for_each(|(node, _)| stage.take(node, plans.before.get(node)))?;
    stage.plan.backup_root = stage.node(&plans.old.backup_root)?;
    let mut search = StepSearch {
        plans,
        allowed: before.union(&after).copied().collect(),
        pending: changing.iter().map(|(node, kind)| (*node, *kind, StepPart::Whole)).collect(),
        current: plans.before.clone(),
        steps: Vec::new(),
        worst: before.len(),
        passing: BTreeSet::new(),
        stage,
    };
    if plans.old.backup_root != plans.new.backup_root {
        search.pending.push((&plans.new.backup_root, StepKind::BackupRoot, StepPart::Whole));
    }
    while !search.pending.is_empty() {
        search.take_next()?;
    }
    let exposed =
        ExposedNodes { before: before.len(), worst: search.worst, after: after.len(), passing: search.passing.len() };
    Some((search.steps, exposed))
}

struct StepSearch<'a> {
    plans: &'a PlanPair<'a>,
    allowed: BTreeSet<GraphNode>,
    /// What remains to be done, from the top of the new tree down.
    pending: Vec<(&'a str, StepKind, StepPart)>,
    current: UplinkTable<'a>,
    steps: Vec<PlanStep>,
    worst: usize,
    passing: BTreeSet<GraphNode>,
    stage: ChangeStage,
}

impl<'a> StepSearch<'a> {
    /// Takes the first step that harms nobody, or the one that harms the fewest.
    fn take_next(&mut self) -> Option<()> {
        let mut least: Option<(usize, usize, StepPart)> = None;
        for wanted in [StepPart::Whole, StepPart::Parent, StepPart::Backup] {
            for place in 0..self.pending.len() {
                let (node, kind, remaining) = self.pending[place];
                let part = if wanted == StepPart::Whole { remaining } else { wanted };
                let is_divisible = kind == StepKind::Change && remaining == StepPart::Whole;
                if wanted != StepPart::Whole && !is_divisible {
                    continue;
                }
                let Some(harmed) = self.harmed_by(node, kind, part)? else { continue };
                if harmed == 0 {
                    return self.take(place, part);
                }
                if least.is_none_or(|(fewest, ..)| harmed < fewest) {
                    least = Some((harmed, place, part));
                }
            }
        }
        let (_, place, part) = least?;
        self.take(place, part)
    }

    /// The uplinks of a node after a step.
    fn uplinks_after(&self, node: &str, kind: StepKind, part: StepPart) -> Option<NodeUplinks<'a>> {
        let goal = self.plans.after.get(node);
        let now = self.current.get(node).cloned();
        match (kind, part, now) {
            (StepKind::BackupRoot, _, now) => now,
            (_, StepPart::Whole, _) | (_, _, None) => goal.cloned(),
            (_, StepPart::Parent, Some(now)) => {
                goal.map(|goal| NodeUplinks { parent: goal.parent, parent_link: goal.parent_link, ..now })
            }
            (_, StepPart::Backup, Some(now)) => {
                goal.map(|goal| NodeUplinks { parent: now.parent, parent_link: now.parent_link, ..goal.clone() })
            }
        }
    }

    /// How many would be exposed who should not be; `Some(None)` if somebody would hear nobody.
    fn harmed_by(&mut self, node: &'a str, kind: StepKind, part: StepPart) -> Option<Option<usize>> {
        let (now, then) = (self.current.get(node).cloned(), self.uplinks_after(node, kind, part));
        if kind != StepKind::BackupRoot && now == then {
            return Some(None); // that part does not change
        }
        let root_before = self.stage.plan.backup_root;
        self.stage.take(node, then.as_ref())?;
        if kind == StepKind::BackupRoot {
            self.stage.plan.backup_root = self.stage.node(node)?;
        }
        let exposed = match self.stage.is_heard(node) {
            true => Some(self.stage.exposed()?),
            false => None,
        };
        self.stage.take(node, now.as_ref())?;
        self.stage.plan.backup_root = root_before;
        Some(exposed.map(|exposed| exposed.difference(&self.allowed).count()))
    }

    fn take(&mut self, place: usize, part: StepPart) -> Option<()> {
        let (node, kind, remaining) = self.pending[place];
        let (now, then) = (self.current.get(node).cloned(), self.uplinks_after(node, kind, part));
        self.steps.push(step(node, kind, now.as_ref(), then.as_ref()));
        self.stage.take(node, then.as_ref())?;
        if kind == StepKind::BackupRoot {
            self.stage.plan.backup_root = self.stage.node(node)?;
        }
        match then {
            Some(then) => self.current.insert(node, then),
            None => self.current.remove(node),
        };
        let is_done = self.current.get(node) == self.plans.after.get(node);
        match (remaining, part) {
            (StepPart::Whole, StepPart::Parent) if !is_done => self.pending[place].2 = StepPart::Backup,
            (StepPart::Whole, StepPart::Backup) if !is_done => self.pending[place].2 = StepPart::Parent,
            _ => drop(self.pending.remove(place)),
        }
        let exposed = self.stage.exposed()?;
        self.worst = self.worst.max(exposed.len());
        self.passing.extend(exposed.difference(&self.allowed));
        Some(())
    }
}

/// The state between two plans, on a graph that has only their links.
struct ChangeStage {
    graph: Graph,
    numbers: HashMap<String, GraphNode>,
    plan: ClockPlan,
    played: usize,
}

impl ChangeStage {
    fn new(plans: &PlanPair<'_>) -> Option<Self> {
        let PlanPair { old, before, after, .. } = plans;
        let names: BTreeSet<&str> = before.keys().chain(after.keys()).copied().collect();
        let numbers: HashMap<String, GraphNode> =
            names.iter().map(|name| (*name).to_owned()).zip((0..).map(GraphNode)).collect();
        let number = |name: &str| numbers.get(name).map(|node| node.0);
        let mut links = BTreeSet::new();
        for (node, up) in before.iter().chain(*after) {
            for to in [up.parent, up.backup].into_iter().flatten() {
                let [a, b] = [number(node)?, number(to)?];
                links.insert([a.min(b), a.max(b)]);
            }
        }
        let graph = Graph::new(names, links).ok()?;
        let count = graph.node_count();
        let plan = ClockPlan {
            root: *numbers.get(&old.root)?,
            backup_root: *numbers.get(&old.backup_root)?,
            parent: vec![None; count],
            backup: vec![None; count],
            depth: vec![Some(0); count],
            depth_backup: vec![None; count],
            ring: Vec::new(),
            uncovered: Vec::new(),
            epoch: 0,
            search: SearchSummary { first_score: 0, iterations: 0, method: PlanMethod::Search },
        };
        let mut stage = Self { graph, numbers, plan, played: 0 };
        for (node, up) in *before {
            stage.take(node, Some(up))?;
        }
        Some(stage)
    }

    fn node(&self, name: &str) -> Option<GraphNode> {
        self.numbers.get(name).copied()
    }

    fn take(&mut self, node: &str, up: Option<&NodeUplinks<'_>>) -> Option<()> {
        let node = self.node(node)?;
        let uplink = |to: Option<&str>| {
            let to = self.node(to?)?;
            let link: Option<GraphLink> = self.graph.links_between(node, to).next();
            link.map(|link| Uplink { node: to, link })
        };
        let [parent, backup] = [up.and_then(|up| up.parent), up.and_then(|up| up.backup)].map(uplink);
        self.plan.parent[node.index()] = parent;
        self.plan.backup[node.index()] = backup;
        Some(())
    }

    /// Whether a node's way ends at the root. A step can only break ways that lead over its node; one that is gone needs none.
    fn is_heard(&self, node: &str) -> bool {
        let Some(start) = self.node(node) else { return false };
        let (mut here, mut steps) = (start, 0);
        while let Some(up) = self.plan.parent[here.index()] {
            (here, steps) = (up.node, steps + 1);
            if steps > self.plan.parent.len() {
                return false;
            }
        }
        here == self.plan.root || here == start && !self.plan.parent.iter().flatten().any(|up| up.node == start)
    }

    /// Whom a single failure would strand. None if too much was played through already.
    fn exposed(&mut self) -> Option<BTreeSet<GraphNode>> {
        self.played += self.graph.node_count();
        (self.played <= BUDGET).then_some(())?;
        let mut survival = Survival::of(&self.graph, &self.plan);
        let failures: Vec<SingleFailure> = SingleFailure::all(&self.graph, &self.plan).collect();
        let stranded = failures.into_iter().flat_map(|failure| survival.after(failure).stranded);
        let mut exposed: BTreeSet<GraphNode> = stranded.collect();
        let has_no_backup =
            |node: &GraphNode| self.plan.parent[node.index()].is_some() && self.plan.backup[node.index()].is_none();
        exposed.extend(self.graph.nodes().filter(has_no_backup));
        Some(exposed)
    }
}
