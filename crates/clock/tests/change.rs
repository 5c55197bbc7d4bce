//! From one plan to another: after every step everybody hears the root, and no node is exposed that neither plan exposes.

use std::collections::{BTreeMap, BTreeSet};

use clock::graph::{Graph, GraphLink, GraphNode, HostLinks};
use clock::plan::{ExposedNodes, PlanChange, PlanFile, PlanRequest, StepKind, plan};
use proptest::prelude::*;

/// Whom each node listens to, and to whom after a failure.
type Uplinks = BTreeMap<String, [Option<String>; 2]>;

fn uplinks(file: &PlanFile) -> Uplinks {
    let rows = file.plan.iter().map(|row| (row.node.clone(), [row.parent.clone(), row.backup.clone()]));
    let uncovered = file.uncovered.iter().map(|row| (row.node.clone(), [row.parent.clone(), None]));
    rows.chain(uncovered).collect()
}

/// What fails: a node, or the link between two.
#[derive(Clone, Copy)]
enum Failed<'a> {
    Nothing,
    Node(&'a str),
    Link(&'a str, &'a str),
}

/// Who hears a root after a failure, by the rule alone: whoever has no unbroken way by parents turns to its backup parent.
fn hearing<'a>(uplinks: &'a Uplinks, root: &str, backup_root: &str, failed: Failed<'_>) -> BTreeSet<&'a str> {
    let passes = |node: &str, up: &str| match failed {
        Failed::Nothing => true,
        Failed::Node(dead) => node != dead && up != dead,
        Failed::Link(a, b) => [node, up] != [a, b] && [node, up] != [b, a],
    };
    let root_is_dead = matches!(failed, Failed::Node(dead) if dead == root);
    let fixpoint = |mut hearing: BTreeSet<&'a str>, way: usize| {
        loop {
            let more: Vec<&str> = uplinks
                .iter()
                .filter(|(node, up)| {
                    let up = up[way].as_deref();
                    !hearing.contains(node.as_str()) && up.is_some_and(|up| hearing.contains(up) && passes(node, up))
                })
                .map(|(node, _)| node.as_str())
                .collect();
            if more.is_empty() {
                return hearing;
            }
            hearing.extend(more);
        }
    };
    let start = if root_is_dead { None } else { uplinks.get_key_value(root).map(|(name, _)| name.as_str()) };
    let undisturbed = fixpoint(start.into_iter().collect(), 0);
    let successor = uplinks.get_key_value(backup_root).map(|(name, _)| name.as_str()).filter(|_| root_is_dead);
    fixpoint(undisturbed.into_iter().chain(successor).collect(), 1)
}

/// Nodes that some failure of a node or a link leaves without the time.
fn exposed(uplinks: &Uplinks, root: &str, backup_root: &str) -> BTreeSet<String> {
    let nodes = uplinks.keys().map(|node| Failed::Node(node));
    let links = uplinks.iter().filter_map(|(node, [parent, _])| Some(Failed::Link(node, parent.as_deref()?)));
    let lost = |failed: Failed<'_>| {
        let heard = hearing(uplinks, root, backup_root, failed);
        let dead = |node: &str| matches!(failed, Failed::Node(dead) if dead == node);
        uplinks.keys().filter(|node| !heard.contains(node.as_str()) && !dead(node)).cloned().collect::<Vec<_>>()
    };
    nodes.chain(links).flat_map(lost).collect()
}

/// Plays a change through, with other code than what ordered it; returns it.
fn played(old: &PlanFile, new: &PlanFile) -> PlanChange {
    let change = PlanChange::between(old, new).unwrap();
    let (mut now, goal) = (uplinks(old), uplinks(new));
    let mut backup_root = old.backup_root.clone();
    let before = exposed(&now, &old.root, &backup_root);
    let after = exposed(&goal, &new.root, &new.backup_root);
    let (mut worst, mut passing) = (before.len(), BTreeSet::new());
    for step in &change.steps {
        match step.kind {
            StepKind::Remove => drop(now.remove(&step.node)),
            StepKind::BackupRoot => backup_root.clone_from(&step.node),
            _ => drop(now.insert(step.node.clone(), [step.parent.clone(), step.backup.clone()])),
        }
        let heard = hearing(&now, &old.root, &backup_root, Failed::Nothing);
        assert_eq!(heard.len(), now.len(), "after {step:?}");
        let exposed = exposed(&now, &old.root, &backup_root);
        worst = worst.max(exposed.len());
        passing.extend(exposed.into_iter().filter(|node| !before.contains(node) && !after.contains(node)));
    }
    assert_eq!((now, backup_root), (goal, new.backup_root.clone()));
    let found = ExposedNodes { before: before.len(), worst, after: after.len(), passing: passing.len() };
    assert_eq!(change.exposed, Some(found), "{change:?}");
    change
}

fn planned(graph: &Graph, root: GraphNode) -> PlanFile {
    PlanFile::of(&plan(graph, &PlanRequest { root: Some(root), ..PlanRequest::default() }).unwrap(), graph)
}

/// Plans for a fabric, and for what remains of it after each failure of a link or a node with the same root, one after the other.
fn changes(graph: &Graph, each: usize) -> Vec<PlanChange> {
    let root = graph.usual_root().unwrap_or(GraphNode(0));
    let old = planned(graph, root);
    let mut found = Vec::new();
    for link in (0..graph.link_count()).step_by(each) {
        let mut broken = graph.clone();
        broken.fail_link(GraphLink(link as u32));
        found.push(played(&old, &planned(&broken, root)));
        found.push(played(&planned(&broken, root), &old));
    }
    found
}

#[test]
fn whatever_link_fails_in_a_fat_tree_no_step_exposes_a_node_that_both_plans_spare() {
    for change in changes(&Graph::fat_tree(4, HostLinks::None).unwrap(), 1) {
        assert_eq!(change.exposed.unwrap().passing, 0, "{change:?}");
    }
}

#[test]
fn nor_does_one_in_the_testbed() {
    let graph = Graph::testbed(HostLinks::Dual).unwrap();
    let root = graph.usual_root().unwrap();
    let old = planned(&graph, root);
    let child = (0..graph.link_count() as u32).map(GraphLink).find(|link| graph.ends(*link).contains(&root)).unwrap();
    let mut broken = graph.clone();
    broken.fail_link(child);
    let change = PlanChange::between(&old, &planned(&broken, root)).unwrap();
    assert_eq!(change.exposed.map(|exposed| exposed.passing), Some(0), "{:?}", change.exposed);
}

/// From any root's plan to another backup root's: many nodes change at once.
#[test]
fn a_change_of_the_backup_root_is_one_step_for_both() {
    let graph = Graph::fat_tree(4, HostLinks::None).unwrap();
    let root = graph.usual_root().unwrap();
    let old = planned(&graph, root);
    for child in graph.neighbours(root).iter().map(|(child, _)| *child) {
        let request = PlanRequest { root: Some(root), backup_root: Some(child), ..PlanRequest::default() };
        let Ok(found) = plan(&graph, &request) else { continue };
        let new = PlanFile::of(&found, &graph);
        let change = played(&old, &new);
        let moves = change.steps.iter().filter(|step| step.kind == StepKind::BackupRoot).count();
        assert_eq!(moves, usize::from(new.backup_root != old.backup_root));
        assert_eq!(change.exposed.unwrap().passing, 0, "{change:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Rings with chords, from one plan to that of another backup root, or after a failure: hearing always holds, and what is
    /// said of exposure is so.
    #[test]
    fn every_change_of_random_plans_is_what_it_says(
        count in 4u32..12, chords in prop::collection::vec((0u32..12, 0u32..12), 1..10), fails in any::<u32>(),
    ) {
        let ring = (0..count).map(|node| [node, (node + 1) % count]);
        let chords = chords.into_iter().map(|(a, b)| [a % count, b % count]).filter(|[a, b]| a != b);
        let links: BTreeSet<[u32; 2]> = ring.chain(chords).map(|[a, b]| [a.min(b), a.max(b)]).collect();
        let graph = Graph::new((0..count).map(|node| format!("n{node}")), links.iter().copied()).unwrap();
        let old = planned(&graph, GraphNode(0));
        let mut broken = graph.clone();
        broken.fail_link(GraphLink(fails % graph.link_count() as u32));
        let request = PlanRequest { root: Some(GraphNode(0)), ..PlanRequest::default() };
        if let Ok(new) = plan(&broken, &request) {
            played(&old, &PlanFile::of(&new, &broken));
        }
    }
}
