//! Steps between two plans: after each of them, `clock check` finds no single failure that strands anybody.

use std::collections::BTreeSet;

use clock::graph::{Graph, GraphLink, GraphNames, GraphNode, HostLinks};
use clock::plan::{GroupReason, PlanChange, PlanFile, PlanRequest, StepKind, plan};
use proptest::prelude::*;

/// Connected, and mostly 2-connected: a cycle, and links across it.
fn graph(count: u32, across: &[(u32, u32)]) -> Graph {
    let cycle = (0..count).map(|node| [node, (node + 1) % count]);
    let across = across.iter().map(|(a, b)| [a % count, b % count]).filter(|[a, b]| a != b);
    // Parallel links have other names when one of them fails, so there are none.
    let links: BTreeSet<[u32; 2]> = cycle.chain(across).map(|[a, b]| [a.min(b), a.max(b)]).collect();
    Graph::new((0..count).map(|node| format!("n{node}")), links).unwrap()
}

fn planned(graph: &Graph, backup_root: Option<u32>) -> Option<PlanFile> {
    let backup_root = backup_root.map(GraphNode);
    let request = PlanRequest { root: Some(GraphNode(0)), backup_root, ..PlanRequest::default() };
    plan(graph, &request).ok().map(|plan| PlanFile::of(&plan, graph))
}

/// Violations in a state, by the code that checks plans: only effects of failures, and nodes that hear nobody now.
fn wrong(stage: &PlanFile, graph: &Graph) -> Vec<String> {
    violations(stage, graph, &["failure ", "form: "])
}

fn violations(stage: &PlanFile, graph: &Graph, judged: &[&str]) -> Vec<String> {
    let found = stage.check(&GraphNames::of(graph)).into_iter().map(|violation| violation.to_string());
    found.filter(|line| judged.iter().any(|what| line.starts_with(what))).collect()
}

fn covered(file: &PlanFile) -> BTreeSet<&str> {
    file.plan.iter().map(|row| row.node.as_str()).collect()
}

/// Plays a change through on the graph that both plans are for. Groups of more than the two backup roots are returned.
fn played(old: &PlanFile, new: &PlanFile, graph: &Graph) -> (PlanChange, Vec<usize>) {
    let change = PlanChange::between(old, new).unwrap();
    let always: BTreeSet<&str> = covered(old).intersection(&covered(new)).copied().collect();
    let stages = change.stages([old, new]);
    for (number, stage) in (1..).zip(&stages) {
        assert_eq!(wrong(stage, graph), Vec::<String>::new(), "step {number} of {:#?}", change.steps);
        assert!(always.is_subset(&covered(stage)), "step {number} takes a backup parent away: {:#?}", change.steps);
    }
    if let Some(last) = stages.last() {
        let rows = |file: &PlanFile| -> BTreeSet<[String; 3]> {
            let name = |name: &Option<String>| name.clone().unwrap_or_default();
            file.plan.iter().map(|row| [row.node.clone(), name(&row.parent), name(&row.backup)]).collect()
        };
        assert_eq!((rows(last), &last.backup_root), (rows(new), &new.backup_root));
    }
    assert_eq!(change.exposed, Some([0, 0, 0]));
    let groups = change.at_once.iter().filter(|group| group.because != GroupReason::BackupRoot);
    let sizes = groups.map(|group| group.nodes.len()).collect();
    (change, sizes)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, ..ProptestConfig::default() })]

    #[test]
    fn no_step_to_the_plan_after_a_failure_strands_anybody(
        count in 4..16u32,
        across in prop::collection::vec((any::<u32>(), any::<u32>()), 1..24),
        failed in any::<u32>(),
    ) {
        let graph = graph(count, &across);
        let mut rest = graph.clone();
        rest.fail_link(GraphLink(failed % graph.link_count() as u32));
        if let (Some(old), Some(new)) = (planned(&graph, None), planned(&rest, None)) {
            for (from, to) in [(&old, &new), (&new, &old)] {
                played(from, to, &graph);
            }
        }
    }

    #[test]
    fn no_step_to_another_backup_root_strands_anybody(
        count in 4..12u32,
        across in prop::collection::vec((any::<u32>(), any::<u32>()), 1..16),
    ) {
        let graph = graph(count, &across);
        if let (Some(old), Some(new)) = (planned(&graph, Some(1)), planned(&graph, Some(count - 1))) {
            let (change, _) = played(&old, &new, &graph);
            let roles = change.steps.iter().filter(|step| step.kind == StepKind::BackupRoot);
            prop_assert_eq!(roles.count() % 2, 1);
        }
    }
}

/// What a step's file says of hosts with one link holds.
#[test]
fn steps_of_a_fabric_with_hosts_that_have_no_backup_parent_pass_the_check() {
    let graph = Graph::fat_tree(4, HostLinks::Single).unwrap();
    let old = plan(&graph, &PlanRequest::default()).unwrap();
    let backup_root =
        graph.neighbours(old.root).iter().map(|(there, _)| *there).find(|there| *there != old.backup_root);
    let new = plan(&graph, &PlanRequest { root: Some(old.root), backup_root, ..PlanRequest::default() }).unwrap();
    assert!(!new.uncovered.is_empty());
    let [old, new] = [old, new].map(|plan| PlanFile::of(&plan, &graph));
    let change = PlanChange::between(&old, &new).unwrap();
    let stages = change.stages([&old, &new]);
    assert!(!stages.is_empty());
    for stage in stages {
        let found = violations(&stage, &graph, &["failure ", "form: ", "uncovered: ", "complete: "]);
        assert_eq!((found, stage.uncovered.len()), (Vec::new(), new.uncovered.len()));
    }
}

/// A ring has two plans, one for each backup root, and nothing in between.
#[test]
fn a_ring_is_turned_around_at_once_and_that_is_proven() {
    let graph = graph(5, &[]);
    let [old, new] = [1, 4].map(|backup_root| planned(&graph, Some(backup_root)).unwrap());
    let (change, sizes) = played(&old, &new, &graph);
    assert_eq!((change.at_once.len(), sizes), (1, vec![4]), "{:#?}", change.steps);
    assert_eq!(change.at_once[0].because, GroupReason::NoOrderExists);
    assert_eq!(change.at_once[0].nodes, ["n1", "n2", "n3", "n4"]);
}

#[test]
fn fabrics_change_one_node_at_a_time() {
    for (graph, failed) in
        [(Graph::fat_tree(4, HostLinks::None).unwrap(), 3), (Graph::fat_tree(8, HostLinks::Dual).unwrap(), 17)]
    {
        let old = plan(&graph, &PlanRequest::default()).unwrap();
        let mut rest = graph.clone();
        rest.fail_link(old.parent[failed].unwrap().link);
        let request = PlanRequest { root: Some(old.root), ..PlanRequest::default() };
        let [old, new] = [PlanFile::of(&old, &graph), PlanFile::of(&plan(&rest, &request).unwrap(), &rest)];
        let (_, sizes) = played(&old, &new, &graph);
        assert_eq!(sizes, Vec::<usize>::new());
    }
}

#[test]
fn nodes_come_and_go_without_stranding_others() {
    let graph = graph(8, &[(0, 3), (1, 5), (2, 6), (4, 7)]);
    let old = planned(&graph, None).unwrap();
    let mut rest = graph.clone();
    rest.fail_node(GraphNode(2));
    let new = planned(&rest, None).unwrap();
    for (from, to, kind) in [(&old, &new, StepKind::Remove), (&new, &old, StepKind::Add)] {
        let change = PlanChange::between(from, to).unwrap();
        assert_eq!(change.steps.iter().filter(|step| step.kind == kind).count(), 1, "{:#?}", change.steps);
        assert_eq!(change.exposed, Some([0, 0, 0]), "{:#?}", change.steps);
    }
}
