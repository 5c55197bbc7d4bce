//! From one plan to another, node by node.
//!
//! Nodes change one after another, and at 88,064 of them that takes a while. If they change from the top of the new tree down, those that
//! have changed and those above them in the new tree are the same set: whoever has changed has its new way to the root, and whoever has
//! not follows its old one until it meets somebody who has. So everybody hears the root after every step; and that is verified by
//! playing every step through, not assumed. Where it is affordable, [`order`] rearranges the steps so that also no node is exposed in
//! between that is not exposed before or after.

mod order;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use super::{PlanFile, PlanFileError};

/// What happens to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StepKind {
    /// It becomes the root.
    Root,
    /// It becomes the backup root, and the one before it is none any more: both at once.
    #[serde(rename = "backup_root")]
    BackupRoot,
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

/// How many nodes some single failure of a link or a node would strand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ExposedNodes {
    /// Under the old plan.
    pub before: usize,
    /// At the worst of the steps.
    pub worst: usize,
    /// Under the new plan.
    pub after: usize,
    /// Nodes that are exposed at some step though neither plan exposes them: 0 unless no order of steps was found that spares them.
    pub passing: usize,
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
    /// In order. A node may have two: one for its parent and one for its backup parent.
    pub steps: Vec<PlanStep>,
    /// Steps between the new root's first and the old root's last; they should follow each other at once.
    pub steps_with_two_roots: usize,
    /// Whom single failures would strand. None if the root changes, or if that would take too long.
    pub exposed: Option<ExposedNodes>,
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

impl PlanChange {
    /// What leads from one plan to another.
    pub fn between(old: &PlanFile, new: &PlanFile) -> Result<Self, PlanFileError> {
        let [before, after] = [uplinks(old), uplinks(new)];
        top_down(&old.root, &before)?;
        let order = top_down(&new.root, &after)?;
        if !before.keys().any(|node| after.contains_key(node)) {
            let problem = "no node is in both plans: is this the plan of another topology?".to_owned();
            return Err(PlanFileError { line: None, problem });
        }
        let mut changing = Vec::new();
        for node in &order {
            let was = before.get(node);
            let is_root = *node == new.root && new.root != old.root;
            if is_root || was != Some(&after[node]) {
                let kind = match was {
                    _ if is_root => StepKind::Root,
                    None => StepKind::Add,
                    Some(_) => StepKind::Change,
                };
                changing.push((*node, kind));
            }
        }
        let unchanged = order.len() - changing.len();
        let gone = before.keys().filter(|node| !after.contains_key(*node));
        changing.extend(gone.map(|node| (*node, StepKind::Remove)));
        let (steps, exposed) =
            match order::sparing(&order::PlanPair { old, new, before: &before, after: &after }, &changing) {
                Some((steps, exposed)) => (steps, Some(exposed)),
                None => (in_this_order(old, new, &before, &after, &changing), None),
            };
        let last = steps.iter().position(|step| step.node == old.root);
        let steps_with_two_roots = if old.root == new.root { 0 } else { last.unwrap_or_default() };
        let change = Self { old_epoch: old.epoch, epoch: new.epoch, unchanged, steps, steps_with_two_roots, exposed };
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

/// Every node in one step, and the backup root at the end.
fn in_this_order(
    old: &PlanFile,
    new: &PlanFile,
    before: &UplinkTable<'_>,
    after: &UplinkTable<'_>,
    changing: &[(&str, StepKind)],
) -> Vec<PlanStep> {
    let change = |(node, kind): &(&str, StepKind)| step(node, *kind, before.get(node), after.get(node));
    let mut steps: Vec<PlanStep> = changing.iter().map(change).collect();
    if old.backup_root != new.backup_root {
        let uplinks = after.get(new.backup_root.as_str());
        steps.push(step(&new.backup_root, StepKind::BackupRoot, uplinks, uplinks));
    }
    steps
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
