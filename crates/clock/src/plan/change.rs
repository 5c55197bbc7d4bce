//! From one plan to another, node by node.
//!
//! Nodes change one after another, and at 88,064 of them that takes a while. If they change from the top of the new tree down, those that
//! have changed and those above them in the new tree are the same set: whoever has changed has its new way to the root, and whoever has
//! not follows its old one until it meets somebody who has. So everybody hears the root after every step; and that is verified by
//! playing every step through, not assumed. A backup parent changes together with the parent; how many nodes a single failure would
//! strand in between is counted where that is affordable.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use super::survive::{SingleFailure, Survival};
use super::{ClockPlan, PlanFile, PlanFileError, PlanMethod, SearchSummary, Uplink};
use crate::graph::{Graph, GraphLink, GraphNode};

/// What happens to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StepKind {
    /// It becomes the root.
    Root,
    /// It was not in the old plan.
    Add,
    /// It gets another parent, backup parent or depth after failures.
    Change,
    /// It is not in the new plan.
    Remove,
}

/// One node's part: whom it listens to before and after.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the fields are those of the output, described in docs/clock.md")]
pub struct PlanStep {
    pub node: String,
    pub kind: StepKind,
    pub old_parent: Option<String>,
    pub parent: Option<String>,
    pub old_backup: Option<String>,
    pub backup: Option<String>,
}

/// All steps, in an order in which everybody hears the root after each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlanChange {
    /// Of the old plan.
    pub old_epoch: Option<u32>,
    /// Of the new plan.
    pub epoch: Option<u32>,
    /// Nodes that stay as they are.
    pub unchanged: usize,
    /// In order.
    pub steps: Vec<PlanStep>,
    /// Steps between the new root's first and the old root's last; they should follow each other at once.
    pub steps_with_two_roots: usize,
    /// Nodes that some single failure would strand: before, at the worst of the steps, after. None if that would take too long.
    pub exposed: Option<[usize; 3]>,
}

/// A node's uplinks as a file has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct NodeUplinks<'a> {
    parent: Option<&'a str>,
    parent_link: Option<&'a str>,
    backup: Option<&'a str>,
    backup_link: Option<&'a str>,
    depth_backup: Option<u32>,
}

type UplinkTable<'a> = BTreeMap<&'a str, NodeUplinks<'a>>;

fn uplinks(file: &PlanFile) -> UplinkTable<'_> {
    let covered = file.plan.iter().map(|row| {
        let uplinks = NodeUplinks {
            parent: row.parent.as_deref(),
            parent_link: row.parent_link.as_deref(),
            backup: row.backup.as_deref(),
            backup_link: row.backup_link.as_deref(),
            depth_backup: row.depth_backup,
        };
        (row.node.as_str(), uplinks)
    });
    let uncovered = file.uncovered.iter().map(|row| {
        let (parent, parent_link) = (row.parent.as_deref(), row.parent_link.as_deref());
        (row.node.as_str(), NodeUplinks { parent, parent_link, ..NodeUplinks::default() })
    });
    covered.chain(uncovered).collect()
}

/// More nodes times steps than this are not played through for failures.
const MOST_PLAYED: usize = 400_000;

impl PlanChange {
    /// What leads from one plan to another.
    pub fn between(old: &PlanFile, new: &PlanFile) -> Result<Self, PlanFileError> {
        let [before, after] = [uplinks(old), uplinks(new)];
        top_down(&old.root, &before)?;
        let order = top_down(&new.root, &after)?;
        let mut steps = Vec::new();
        for node in &order {
            let was = before.get(node);
            let is_root = *node == new.root && new.root != old.root;
            if is_root || was != Some(&after[node]) {
                let kind = match was {
                    _ if is_root => StepKind::Root,
                    None => StepKind::Add,
                    Some(_) => StepKind::Change,
                };
                steps.push(step(node, kind, was, Some(&after[node])));
            }
        }
        let gone = before.iter().filter(|(node, _)| !after.contains_key(*node));
        steps.extend(gone.map(|(node, was)| step(node, StepKind::Remove, Some(was), None)));
        let last = steps.iter().position(|step| step.node == old.root);
        let steps_with_two_roots = if old.root == new.root { 0 } else { last.unwrap_or_default() };
        let change = Self {
            old_epoch: old.epoch,
            epoch: new.epoch,
            unchanged: order.len() - steps.iter().filter(|step| step.kind != StepKind::Remove).count(),
            exposed: exposed(old, new, &before, &after, &steps),
            steps,
            steps_with_two_roots,
        };
        change.verify(old, new, &before)?;
        Ok(change)
    }

    /// Plays every step through: whoever is in both plans hears one of the roots after each.
    fn verify(&self, old: &PlanFile, new: &PlanFile, before: &UplinkTable<'_>) -> Result<(), PlanFileError> {
        let mut parent: HashMap<&str, &str> =
            before.iter().filter_map(|(node, up)| Some((*node, up.parent?))).collect();
        for step in self.steps.iter().filter(|step| step.kind != StepKind::Remove) {
            match &step.parent {
                Some(to) => parent.insert(&step.node, to),
                None => parent.remove(step.node.as_str()),
            };
            // A step can only break the ways that lead over its node, so its own is enough.
            let (mut here, mut steps) = (step.node.as_str(), 0);
            while let Some(up) = parent.get(here).filter(|_| here != new.root) {
                (here, steps) = (up, steps + 1);
                if steps > parent.len() {
                    return Err(PlanFileError {
                        line: None,
                        problem: format!("'{}' would hear nobody while plans change", step.node),
                    });
                }
            }
            if here != new.root && here != old.root && step.parent.is_some() {
                let problem = format!("'{}' would hear '{here}' while plans change, which is no root", step.node);
                return Err(PlanFileError { line: None, problem });
            }
        }
        Ok(())
    }
}

fn step(node: &str, kind: StepKind, was: Option<&NodeUplinks<'_>>, is: Option<&NodeUplinks<'_>>) -> PlanStep {
    let own = |name: Option<&str>| name.map(str::to_owned);
    PlanStep {
        node: node.to_owned(),
        kind,
        old_parent: own(was.and_then(|up| up.parent)),
        parent: own(is.and_then(|up| up.parent)),
        old_backup: own(was.and_then(|up| up.backup)),
        backup: own(is.and_then(|up| up.backup)),
    }
}

/// All nodes of a plan, parents before children; then those that are cut off.
fn top_down<'a>(root: &'a str, table: &UplinkTable<'a>) -> Result<Vec<&'a str>, PlanFileError> {
    let wrong = |problem: String| Err(PlanFileError { line: None, problem });
    let mut children: HashMap<&str, Vec<&str>> = HashMap::new();
    for (node, up) in table {
        match up.parent {
            Some(parent) if !table.contains_key(parent) => {
                return wrong(format!("'{node}' has the parent '{parent}', which the plan does not have"));
            }
            Some(parent) => children.entry(parent).or_default().push(node),
            None => (),
        }
    }
    if !table.contains_key(root) {
        return wrong(format!("'{root}' is the root, but the plan has no such node"));
    }
    let (mut order, mut at) = (vec![root], 0);
    while let Some(node) = order.get(at).copied() {
        order.extend(children.remove(node).unwrap_or_default());
        at += 1;
    }
    let reached: BTreeSet<&str> = order.iter().copied().collect();
    for (node, up) in table.iter().filter(|(node, _)| !reached.contains(*node)) {
        if up.parent.is_some() {
            return wrong(format!("'{node}' does not reach the root: parents form a loop"));
        }
        order.push(node);
    }
    Ok(order)
}

/// Nodes that some single failure of a link or a node would strand: before, at the worst step, after.
fn exposed(
    old: &PlanFile,
    new: &PlanFile,
    before: &UplinkTable<'_>,
    after: &UplinkTable<'_>,
    steps: &[PlanStep],
) -> Option<[usize; 3]> {
    let is_affordable = old.root == new.root && before.len().saturating_mul(steps.len()) <= MOST_PLAYED;
    is_affordable.then_some(())?;
    let mut stage = ChangeStage::new(old, before, after)?;
    let first = stage.exposed();
    let mut worst = first;
    for step in steps {
        stage.take(&step.node, after.get(step.node.as_str()))?;
        worst = worst.max(stage.exposed());
    }
    stage.plan.backup_root = stage.node(&new.backup_root)?;
    Some([first, worst, stage.exposed()])
}

/// The state between two plans, on a graph that has only their links.
struct ChangeStage {
    graph: Graph,
    numbers: HashMap<String, GraphNode>,
    plan: ClockPlan,
}

impl ChangeStage {
    fn new(old: &PlanFile, before: &UplinkTable<'_>, after: &UplinkTable<'_>) -> Option<Self> {
        let names: BTreeSet<&str> = before.keys().chain(after.keys()).copied().collect();
        let numbers: HashMap<String, GraphNode> =
            names.iter().map(|name| (*name).to_owned()).zip((0..).map(GraphNode)).collect();
        let number = |name: &str| numbers.get(name).map(|node| node.0);
        let mut links = BTreeSet::new();
        for (node, up) in before.iter().chain(after) {
            for to in [up.parent, up.backup].into_iter().flatten() {
                let [a, b] = [number(node)?, number(to)?];
                links.insert([a.min(b), a.max(b)]);
            }
        }
        let graph = Graph::new(names, links).ok()?;
        let count = graph.node_count();
        let root = *numbers.get(&old.root)?;
        let plan = ClockPlan {
            root,
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
        let mut stage = Self { graph, numbers, plan };
        for (node, up) in before {
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

    fn exposed(&self) -> usize {
        let mut survival = Survival::of(&self.graph, &self.plan);
        let failures: Vec<SingleFailure> = SingleFailure::all(&self.graph, &self.plan).collect();
        let stranded = failures.into_iter().flat_map(|failure| survival.after(failure).stranded);
        stranded.collect::<BTreeSet<_>>().len()
    }
}
