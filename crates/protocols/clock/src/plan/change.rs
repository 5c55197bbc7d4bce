//! Transition from one plan to another, node by node.
//!
//! Nodes change one after another, and at 88,064 of them that takes a while. Two things must hold after every step: every node hears
//! the root, and a node that survives every single failure of a link or a node in both plans still does (see `stage`). `order` finds such an
//! order; where there is none, several nodes change at once, and that is said. What was found is verified by playing every step through, and
//! the nodes that failures would strand are counted by the code that checks plans, where that is affordable.
//!
//! If the root changes, there is no such order: the nodes of the new root's side have another time. Then nodes change from the top of the new
//! tree down: those that have changed and those above them in the new tree are the same set, so a node that has changed has its new way to the
//! root, and one that has not follows its old way until it meets one that has.

mod exposure;
mod order;
mod stage;
mod steps;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use self::order::{ChangeOrder, StageStep};
use self::stage::{ChangeStage, ListenSetting, StageUplink};
use self::steps::{in_words, top_down_steps};
use super::{PlanFile, PlanFileError};
use crate::graph::Graph;

/// Change of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// The node becomes the root.
    Root,
    /// The node becomes the backup root.
    BackupRoot,
    /// The node is the backup root no longer.
    Resign,
    /// The node was not in the old plan.
    Add,
    /// The node gets another parent, backup parent or depth after failures.
    Change,
    /// The node is not in the new plan.
    Remove,
}

/// Step of one node: its parents before and after. A node may have several steps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the fields are those of the output, described in docs/clock.md")]
pub struct PlanStep {
    pub node: String,
    pub kind: StepKind,
    pub old_parent: Option<String>,
    pub parent: Option<String>,
    pub old_backup: Option<String>,
    pub backup: Option<String>,
    /// Link to the parent, only where several links lead there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_link: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup_link: Option<String>,
    /// The group of steps that are made at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_once: Option<usize>,
}

/// Reason why steps are made at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupReason {
    /// The steps keep one backup root at any time.
    BackupRoot,
    /// All states that single steps reach were looked at: none of them leads on.
    NoOrderExists,
    /// The search found no order of single steps, but did not try all.
    NoOrderFound,
}

/// Steps that are made at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StepGroup {
    /// Number of the group in the list of steps, from 1.
    pub number: usize,
    /// Nodes that change.
    pub nodes: Vec<String>,
    /// Reason for the group.
    pub because: GroupReason,
}

/// All steps, in an order in which everybody hears the root after each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlanChange {
    /// Epoch of the old plan.
    pub old_epoch: Option<u32>,
    /// Epoch of the new plan.
    pub epoch: Option<u32>,
    /// Nodes that stay as they are.
    pub unchanged: usize,
    /// Steps, in order.
    pub steps: Vec<PlanStep>,
    /// Steps that are made at once.
    pub at_once: Vec<StepGroup>,
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
const MOST_PLAYED: usize = 2_000_000;

impl PlanChange {
    /// Computes the steps that lead from one plan to another.
    pub fn between(old: &PlanFile, new: &PlanFile) -> Result<Self, PlanFileError> {
        old.check_tree()?;
        new.check_tree()?;
        let [before, after] = [uplinks(old), uplinks(new)];
        let order = top_down(&new.root, &after);
        let has_one_root = old.root == new.root;
        let (mut steps, at_once, exposed) = if has_one_root {
            let names = StageNames::of(&before, &after)?;
            let (found, exposed) = names.order([old, new], [&before, &after], &order)?;
            let (steps, groups) = in_words(&names, &old.backup_root, [&before, &after], &found);
            (steps, groups, exposed)
        } else {
            (top_down_steps(&order, &new.root, &before, &after), Vec::new(), None)
        };
        steps::add_what_does_not_listen(&mut steps, &order, &before, &after);
        let last = steps.iter().position(|step| step.node == old.root);
        let stepping: BTreeSet<&str> = steps.iter().map(|step| step.node.as_str()).collect();
        let change = Self {
            old_epoch: old.epoch,
            epoch: new.epoch,
            unchanged: order.iter().filter(|node| !stepping.contains(*node)).count(),
            exposed,
            steps_with_two_roots: if has_one_root { 0 } else { last.unwrap_or_default() },
            steps,
            at_once,
        };
        change.verify(old, new, &before)?;
        Ok(change)
    }

    /// Plays every step through: whoever is in both plans hears one of the roots after each.
    fn verify(&self, old: &PlanFile, new: &PlanFile, before: &UplinkTable<'_>) -> Result<(), PlanFileError> {
        let mut parent: HashMap<&str, &str> =
            before.iter().filter_map(|(node, up)| Some((*node, up.parent?))).collect();
        for group in self.steps.chunk_by(|a, b| a.at_once.is_some() && a.at_once == b.at_once) {
            for step in group {
                match &step.parent {
                    Some(to) => parent.insert(&step.node, to),
                    None => parent.remove(step.node.as_str()),
                };
            }
            // A step can only break the ways that lead over its node, so its own is enough.
            for step in group.iter().filter(|step| step.parent.is_some()) {
                let (mut here, mut length) = (step.node.as_str(), 0);
                while let Some(up) = parent.get(here).filter(|_| here != new.root) {
                    (here, length) = (up, length + 1);
                    if length > parent.len() {
                        let problem = format!("'{}' would hear nobody while plans change", step.node);
                        return Err(PlanFileError { line: None, problem });
                    }
                }
                if here != new.root && here != old.root {
                    let problem = format!("'{}' would hear '{here}' while plans change, which is no root", step.node);
                    return Err(PlanFileError { line: None, problem });
                }
            }
        }
        Ok(())
    }
}

/// All nodes of a plan, parents before children; then those that are cut off.
fn top_down<'a>(root: &'a str, table: &UplinkTable<'a>) -> Vec<&'a str> {
    let mut children: HashMap<&str, Vec<&str>> = HashMap::new();
    for (node, up) in table {
        if let Some(parent) = up.parent {
            children.entry(parent).or_default().push(node);
        }
    }
    let (mut order, mut at) = (vec![root], 0);
    while let Some(node) = order.get(at).copied() {
        order.extend(children.remove(node).unwrap_or_default());
        at += 1;
    }
    let cut_off = table.iter().filter(|(node, up)| up.parent.is_none() && **node != root);
    order.extend(cut_off.map(|(node, _)| *node));
    order
}

/// Nodes and links of both plans by numbers, for the search.
struct StageNames<'a> {
    names: Vec<&'a str>,
    numbers: HashMap<&'a str, u32>,
    /// Ends of each link, the lower first, and its name if several links have the same ends.
    links: Vec<StageLink<'a>>,
    link_numbers: HashMap<StageLink<'a>, u32>,
}

type StageLink<'a> = ([u32; 2], Option<&'a str>);

impl<'a> StageNames<'a> {
    fn of(before: &UplinkTable<'a>, after: &UplinkTable<'a>) -> Result<Self, PlanFileError> {
        let names: BTreeSet<&str> = before.keys().chain(after.keys()).copied().collect();
        let names: Vec<&str> = names.into_iter().collect();
        let numbers: HashMap<&str, u32> = names.iter().copied().zip(0..).collect();
        let mut stage = Self { names, numbers, links: Vec::new(), link_numbers: HashMap::new() };
        for (node, up) in before.iter().chain(after) {
            for (to, link) in [(up.parent, up.parent_link), (up.backup, up.backup_link)] {
                let Some(to) = to else { continue };
                let Some(to) = stage.numbers.get(to) else {
                    let problem = format!("'{node}' is to listen to '{to}', which neither plan has");
                    return Err(PlanFileError { line: None, problem });
                };
                let link = stage.link(stage.numbers[node], *to, link);
                if !stage.link_numbers.contains_key(&link) {
                    stage.link_numbers.insert(link, stage.links.len() as u32);
                    stage.links.push(link);
                }
            }
        }
        Ok(stage)
    }

    fn link(&self, node: u32, to: u32, name: Option<&'a str>) -> StageLink<'a> {
        ([node.min(to), node.max(to)], name)
    }

    fn setting(&self, node: &str, up: Option<&NodeUplinks<'a>>) -> ListenSetting {
        let uplink = |to: Option<&str>, link: Option<&'a str>| {
            let (node, to) = (*self.numbers.get(node)?, *self.numbers.get(to?)?);
            Some(StageUplink { node: to, link: *self.link_numbers.get(&self.link(node, to, link))? })
        };
        let Some(up) = up else { return ListenSetting::default() };
        let parent = uplink(up.parent, up.parent_link);
        ListenSetting { parent, backup: uplink(up.backup, up.backup_link).filter(|_| parent.is_some()) }
    }

    fn settings(&self, table: &UplinkTable<'a>) -> Vec<ListenSetting> {
        self.names.iter().map(|node| self.setting(node, table.get(node))).collect()
    }

    /// The steps, and how many nodes failures would strand before, at the worst of them and after.
    fn order(
        &self,
        [old, new]: [&PlanFile; 2],
        [before, after]: [&UplinkTable<'a>; 2],
        order: &[&str],
    ) -> Result<(Vec<StageStep>, Option<[usize; 3]>), PlanFileError> {
        let number = |name: &str| {
            let problem = || format!("'{name}' is the backup root, but no plan has such a node");
            self.numbers.get(name).copied().ok_or_else(|| PlanFileError { line: None, problem: problem() })
        };
        let [root, old_backup, new_backup] = [number(&old.root)?, number(&old.backup_root)?, number(&new.backup_root)?];
        let [first, last] = [self.settings(before), self.settings(after)];
        let is_child =
            |settings: &[ListenSetting], node: u32| settings[node as usize].parent.is_some_and(|up| up.node == root);
        let keeps_child = is_child(&first, old_backup) && is_child(&last, new_backup);
        let stage_of = |settings: &[ListenSetting], backup_root: u32, excused: Vec<bool>| {
            ChangeStage::new([root, backup_root], settings.to_vec(), excused, keeps_child)
        };
        let none = vec![false; self.names.len()];
        let mut excused = stage_of(&first, old_backup, none.clone()).exposed();
        let also = stage_of(&last, new_backup, none).exposed();
        excused.iter_mut().zip(also).for_each(|(excused, also)| *excused |= also);
        // First the new tree from the top down, then the nodes that leave, from the bottom up.
        let mut changed: Vec<u32> = order.iter().map(|name| self.numbers[name]).collect();
        let gone = top_down(&old.root, before).into_iter().rev().filter(|node| !after.contains_key(node));
        changed.extend(gone.map(|name| self.numbers[name]));
        changed.retain(|node| first[*node as usize] != last[*node as usize]);
        let begin = stage_of(&first, old_backup, excused);
        let steps = ChangeOrder::new(begin, &changed, [&first, &last], [old_backup, new_backup]).find();
        let is_affordable = self.names.len().saturating_mul(steps.len()) <= MOST_PLAYED;
        let graph = Graph::new(self.names.iter().copied(), self.links.iter().map(|(ends, _)| *ends));
        let graph = graph.ok().filter(|_| is_affordable);
        let exposed = graph.map(|graph| exposure::exposed(&graph, [root, old_backup], &first, &steps));
        Ok((steps, exposed))
    }
}
