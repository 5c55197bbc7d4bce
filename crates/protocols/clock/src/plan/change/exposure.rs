//! Number of nodes that single failures would strand after each step, by the code that checks plans.

use super::order::{StageMove, StageStep};
use super::stage::{ListenSetting, StageUplink};
use crate::graph::{Graph, GraphLink, GraphNode};
use crate::plan::{ClockPlan, PlanMethod, SearchSummary, SingleFailure, Survival, Uplink};

/// Number of exposed nodes before, at the worst of the steps, and after.
pub(super) fn exposed(
    graph: &Graph,
    [root, backup_root]: [u32; 2],
    old: &[ListenSetting],
    steps: &[StageStep],
) -> [usize; 3] {
    let mut plan = empty(graph.node_count(), [root, backup_root].map(GraphNode));
    for (node, setting) in old.iter().enumerate() {
        set(&mut plan, node, *setting);
    }
    let first = stranded(graph, &plan);
    let (mut worst, mut last) = (first, first);
    for step in steps {
        for what in &step.moves {
            match *what {
                StageMove::Listen(node, setting) => set(&mut plan, node as usize, setting),
                StageMove::BackupRoot(node) => plan.backup_root = GraphNode(node),
            }
        }
        last = stranded(graph, &plan);
        worst = worst.max(last);
    }
    [first, worst, last]
}

fn empty(count: usize, [root, backup_root]: [GraphNode; 2]) -> ClockPlan {
    ClockPlan {
        root,
        backup_root,
        parent: vec![None; count],
        backup: vec![None; count],
        depth: vec![Some(0); count],
        depth_backup: vec![None; count],
        ring: Vec::new(),
        uncovered: Vec::new(),
        epoch: 0,
        search: SearchSummary { first_score: 0, iterations: 0, method: PlanMethod::Search },
    }
}

fn set(plan: &mut ClockPlan, node: usize, ListenSetting { parent, backup }: ListenSetting) {
    let uplink = |StageUplink { node, link }| Uplink { node: GraphNode(node), link: GraphLink(link) };
    plan.parent[node] = parent.map(uplink);
    plan.backup[node] = backup.map(uplink);
}

fn stranded(graph: &Graph, plan: &ClockPlan) -> usize {
    let mut survival = Survival::of(graph, plan);
    let mut is_stranded = vec![false; graph.node_count()];
    for failure in SingleFailure::all(graph, plan) {
        survival.after(failure).stranded.iter().for_each(|node| is_stranded[node.index()] = true);
    }
    is_stranded.into_iter().filter(|is_stranded| *is_stranded).count()
}
