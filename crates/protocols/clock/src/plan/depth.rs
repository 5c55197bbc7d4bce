//! Depths of nodes, now and after failures (§3.4.2.1, "Calculating ε"), and the ε that follows from them (§3.4.1.3).
//!
//! Off the loop a node's backup depth is one more than the larger depth of its backup parent, top-down. On the loop every number of
//! steps along it, and then a primary way, is possible; and with the root dead the way to the backup root.

use super::ClockPlan;
use crate::graph::GraphNode;

/// ε of each level: the error of a hop's time stamps.
const NS_PER_LEVEL: u32 = 5;
/// Maximum drift between two clocks.
const DRIFT_PPM: u32 = 200;

/// Longest time without a message, in µs: when nothing fails, after a failure, and after the root's failure (§3.4.1, §3.4.2).
const WITHOUT_MESSAGE_US: [u32; 3] = [90, 270, 365];

/// ε of the deepest node, as the thesis adds it up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanBounds {
    /// Bound without a failure.
    pub normal_ns: u32,
    /// Bound after a failure that spares the root.
    pub failure_ns: u32,
    /// Bound after the root's failure.
    pub root_ns: u32,
}

impl ClockPlan {
    /// ε of the deepest node.
    pub fn bounds(&self) -> PlanBounds {
        let [normal, failure, root] = WITHOUT_MESSAGE_US.map(|time| time * DRIFT_PPM / 1_000);
        let [depth, depth_backup] = [self.max_depth(), self.max_depth_backup().max(self.max_depth())];
        PlanBounds {
            normal_ns: depth * NS_PER_LEVEL + normal,
            failure_ns: depth_backup * NS_PER_LEVEL + failure,
            root_ns: depth_backup * NS_PER_LEVEL + root,
        }
    }
}

/// Most steps to the root or the backup root after any failures, for each node of a loop in its order. `depths` are those of
/// the primary tree; the first is the backup root's, and each node's backup parent is the next.
pub(super) fn ring_depths(depths: &[u32]) -> Vec<u32> {
    let length = depths.len();
    let along = |place: usize| {
        let ways = (1..length).map(|steps| steps as u32 + depths[(place + steps) % length]);
        let to_backup_root = (length - place) % length;
        ways.chain([to_backup_root as u32]).max().unwrap_or_default()
    };
    (0..length).map(along).collect()
}

/// Nodes in an order in which each comes behind its backup parent, those of the loop first.
pub(super) fn backup_order(plan: &ClockPlan) -> Vec<GraphNode> {
    let mut children: Vec<Vec<GraphNode>> = vec![Vec::new(); plan.backup.len()];
    let on_ring: std::collections::HashSet<GraphNode> = plan.ring.iter().copied().collect();
    for (node, uplink) in (0..).map(GraphNode).zip(&plan.backup) {
        if let Some(uplink) = uplink.filter(|_| !on_ring.contains(&node)) {
            children[uplink.node.index()].push(node);
        }
    }
    let mut order = plan.ring.clone();
    let mut next = 0;
    while let Some(node) = order.get(next).copied() {
        order.append(&mut children[node.index()]);
        next += 1;
    }
    order
}

/// Fills in [`ClockPlan::depth_backup`].
pub(super) fn set_backup_depths(plan: &mut ClockPlan) {
    let depth = |plan: &ClockPlan, node: GraphNode| plan.depth[node.index()].unwrap_or_default();
    plan.depth_backup.iter_mut().for_each(|known| *known = None);
    let ring: Vec<u32> = plan.ring.iter().map(|node| depth(plan, *node)).collect();
    for (node, deep) in plan.ring.clone().into_iter().zip(ring_depths(&ring)) {
        plan.depth_backup[node.index()] = Some(deep);
    }
    for node in backup_order(plan).split_off(plan.ring.len()) {
        let Some(uplink) = plan.backup[node.index()] else { continue };
        let above = plan.depth_backup[uplink.node.index()].unwrap_or_default();
        plan.depth_backup[node.index()] = Some(1 + above.max(depth(plan, uplink.node)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_of_a_loop_may_go_along_it_and_then_down_any_primary_way() {
        assert_eq!(ring_depths(&[1, 2]), [3, 2]);
        assert_eq!(ring_depths(&[1, 6, 5]), [7, 6, 8]);
        assert_eq!(ring_depths(&[1]), [0]);
    }
}
