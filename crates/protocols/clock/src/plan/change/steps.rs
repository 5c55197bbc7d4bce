//! Steps by names, as they are printed; and the plan that is in force after each.

use std::collections::{BTreeMap, BTreeSet};

use super::order::{StageMove, StageStep};
use super::stage::StageUplink;
use super::{GroupReason, NodeUplinks, PlanChange, PlanStep, StageNames, StepGroup, StepKind, UplinkTable};
use crate::plan::{NOT_FOUND, PlanFile, PlanRow, UncoveredRow};

/// The steps that were found, and which of them are made at once.
pub(super) fn in_words<'a>(
    names: &StageNames<'a>,
    backup_root: &'a str,
    [before, after]: [&UplinkTable<'a>; 2],
    found: &[StageStep],
) -> (Vec<PlanStep>, Vec<StepGroup>) {
    let mut now: BTreeMap<&str, NodeUplinks<'_>> = before.clone();
    let (mut backup_root, mut steps, mut groups) = (backup_root, Vec::new(), Vec::new());
    for StageStep { moves, is_proven } in found {
        let begins = steps.len();
        for what in moves {
            match *what {
                StageMove::BackupRoot(node) => {
                    let node = names.names[node as usize];
                    let ends = std::mem::replace(&mut backup_root, node);
                    steps.push(step(node, StepKind::BackupRoot, now.get(node), now.get(node)));
                    steps.push(step(ends, StepKind::Resign, now.get(ends), now.get(ends)));
                }
                StageMove::Listen(node, setting) => {
                    let name = names.names[node as usize];
                    let [parent, backup] = [setting.parent, setting.backup].map(|up| names.uplink(up));
                    let is = NodeUplinks {
                        parent: parent.map(|(to, _)| to),
                        parent_link: parent.and_then(|(_, link)| link),
                        backup: backup.map(|(to, _)| to),
                        backup_link: backup.and_then(|(_, link)| link),
                        depth_backup: None,
                    };
                    let was = now.insert(name, is.clone());
                    let kind = match (&was, is.parent) {
                        (None, _) => StepKind::Add,
                        (_, None) if !after.contains_key(name) => StepKind::Remove,
                        _ => StepKind::Change,
                    };
                    steps.push(step(name, kind, was.as_ref(), Some(&is)));
                }
            }
        }
        if steps.len() - begins > 1 {
            let number = groups.len() + 1;
            steps[begins..].iter_mut().for_each(|step| step.at_once = Some(number));
            let mut nodes: Vec<String> = steps[begins..].iter().map(|step| step.node.clone()).collect();
            nodes.sort_unstable();
            nodes.dedup();
            let because = match (moves.len(), is_proven) {
                (1, _) => GroupReason::BackupRoot,
                (_, true) => GroupReason::NoOrderExists,
                (_, false) => GroupReason::NoOrderFound,
            };
            groups.push(StepGroup { number, nodes, because });
        }
    }
    (steps, groups)
}

impl<'a> StageNames<'a> {
    fn uplink(&self, uplink: Option<StageUplink>) -> Option<(&'a str, Option<&'a str>)> {
        let StageUplink { node, link } = uplink?;
        Some((self.names[node as usize], self.links[link as usize].1))
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
        parent_link: own(is.and_then(|up| up.parent_link)),
        backup_link: own(is.and_then(|up| up.backup_link)),
        at_once: None,
    }
}

/// Steps of all nodes that change, from the top of the new tree down.
pub(super) fn top_down_steps<'a>(
    order: &[&'a str],
    new_root: &str,
    before: &UplinkTable<'a>,
    after: &UplinkTable<'a>,
) -> Vec<PlanStep> {
    let changed = order.iter().filter(|node| **node == new_root || listens(before, node) != listens(after, node));
    let kind = |node: &str| match before.get(node) {
        _ if node == new_root => StepKind::Root,
        None => StepKind::Add,
        Some(_) => StepKind::Change,
    };
    changed.map(|node| step(node, kind(node), before.get(node), after.get(node))).collect()
}

/// A node's uplinks without its depth.
fn listens<'a>(table: &UplinkTable<'a>, node: &str) -> Option<NodeUplinks<'a>> {
    table.get(node).map(|up| NodeUplinks { depth_backup: None, ..up.clone() })
}

/// Steps of nodes that listen to the same as before, or to nobody: another depth after failures, deeper ones first; and nodes that leave.
pub(super) fn add_what_does_not_listen<'a>(
    steps: &mut Vec<PlanStep>,
    order: &[&'a str],
    before: &UplinkTable<'a>,
    after: &UplinkTable<'a>,
) {
    let is_role = |step: &&PlanStep| matches!(step.kind, StepKind::BackupRoot | StepKind::Resign);
    let listening = steps.iter().filter(|step| !is_role(step));
    let listening: BTreeSet<String> = listening.map(|step| step.node.clone()).collect();
    let mut deeper = Vec::new();
    for node in order.iter().filter(|node| !listening.contains(**node)) {
        let (was, is) = (before.get(node), after.get(node));
        match (was, is) {
            (None, _) => steps.push(step(node, StepKind::Add, was, is)),
            (Some(old), Some(new)) if old.depth_backup < new.depth_backup => {
                deeper.push(step(node, StepKind::Change, was, is));
            }
            (Some(old), Some(new)) if old != new => steps.push(step(node, StepKind::Change, was, is)),
            _ => (),
        }
    }
    let gone = before.iter().filter(|(node, _)| !after.contains_key(*node) && !listening.contains(**node));
    steps.extend(gone.map(|(node, was)| step(node, StepKind::Remove, Some(was), None)));
    steps.splice(0..0, deeper);
}

impl PlanChange {
    /// The plan that is in force after each step; steps that are made at once give one. The change is from `old` to `new`. Depths
    /// are those of the tree; of depths after failures, epochs, loops and why a node has no backup parent nothing is said.
    pub fn stages(&self, [old, new]: [&PlanFile; 2]) -> Vec<PlanFile> {
        let proven: BTreeSet<&str> = [old, new].into_iter().flat_map(cannot_be_covered).collect();
        let mut rows: BTreeMap<String, PlanRow> = old.plan.iter().map(|row| (row.node.clone(), row.clone())).collect();
        rows.extend(old.uncovered.iter().map(|row| {
            let link = row.parent_link.clone();
            (row.node.clone(), listening(&row.node, row.parent.clone(), None, [link, None]))
        }));
        let [mut root, mut backup_root] = [old.root.clone(), old.backup_root.clone()];
        let mut stages = Vec::new();
        for group in self.steps.chunk_by(|a, b| a.at_once.is_some() && a.at_once == b.at_once) {
            for step in group {
                match step.kind {
                    StepKind::Root => root.clone_from(&step.node),
                    StepKind::BackupRoot => backup_root.clone_from(&step.node),
                    _ => (),
                }
                let links = [step.parent_link.clone(), step.backup_link.clone()];
                let row = listening(&step.node, step.parent.clone(), step.backup.clone(), links);
                match step.kind {
                    StepKind::BackupRoot | StepKind::Resign => None,
                    StepKind::Remove => rows.remove(&step.node),
                    _ => rows.insert(step.node.clone(), row),
                };
            }
            let stage = stage([&root, &backup_root], &rows, old);
            let complete = stage.uncovered.iter().all(|row| proven.contains(row.node.as_str()));
            let covers_all = Some(stage.uncovered.is_empty());
            stages.push(PlanFile { complete, covers_all, ..stage });
        }
        stages
    }
}

/// Nodes of which a plan says that they cannot have a backup parent, rather than that none was found.
fn cannot_be_covered(plan: &PlanFile) -> impl Iterator<Item = &str> {
    let says_why = |row: &&UncoveredRow| plan.complete || !row.because.is_empty() && row.because != NOT_FOUND;
    plan.uncovered.iter().filter(says_why).map(|row| row.node.as_str())
}

fn listening(node: &str, parent: Option<String>, backup: Option<String>, links: [Option<String>; 2]) -> PlanRow {
    let [parent_link, backup_link] = links;
    PlanRow { node: node.to_owned(), parent, backup, depth: 0, depth_backup: None, parent_link, backup_link }
}

fn stage([root, backup_root]: [&String; 2], rows: &BTreeMap<String, PlanRow>, old: &PlanFile) -> PlanFile {
    let depth = |row: &PlanRow| {
        let above = |row: &&PlanRow| rows.get(row.parent.as_ref()?);
        std::iter::successors(Some(row), above).take(rows.len()).count() as u32 - 1
    };
    let is_covered = |row: &&PlanRow| row.node == *root || row.backup.is_some();
    let covered = rows.values().filter(is_covered);
    let uncovered = rows.values().filter(|row| !is_covered(row)).map(|row| UncoveredRow {
        node: row.node.clone(),
        parent: row.parent.clone(),
        depth: Some(depth(row)),
        because: String::new(),
        parent_link: row.parent_link.clone(),
    });
    PlanFile {
        root: root.clone(),
        backup_root: backup_root.clone(),
        nodes: rows.len(),
        plan: covered.map(|row| PlanRow { depth: depth(row), depth_backup: None, ..row.clone() }).collect(),
        uncovered: uncovered.collect(),
        ring: Vec::new(),
        epoch: None,
        ..old.clone()
    }
}
