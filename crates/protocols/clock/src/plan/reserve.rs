//! Choice of the root's children that the backup graph gets.
//!
//! In a Clos fabric few links lead from the root's neighbourhood into each pod. If the primary tree takes them all, every way into the
//! pod is below the node that would have to be its backup. So the root's children are divided: nobody is hung below those that are
//! *held*, unless there is no other way, and all their links are free for the backup graph. The tree stays one by breadth, and the
//! backup graph nearly is one; ε pays for every level.
//!
//! Two children *compete* for a node that both could have below them at the same depth. Those that compete most are put on different
//! sides. A child that competes with none is not held.

use std::collections::HashMap;

use super::tree::NONE;
use crate::graph::{Graph, GraphNode};

/// Nodes to look at: competition shows near the root.
const NEAR: usize = 16_384;

/// The root's children, divided.
#[derive(Clone, Debug)]
pub(super) struct Sides {
    children: Vec<GraphNode>,
    /// Representative of the group of each child, and whether the child is on the other side.
    group: Vec<(u32, bool)>,
    competes: Vec<bool>,
}

impl Sides {
    pub(super) fn of(graph: &Graph, root: GraphNode) -> Self {
        let mut children: Vec<GraphNode> = graph.neighbours(root).iter().map(|(child, _)| *child).collect();
        children.sort_unstable();
        children.dedup();
        let mut pairs: Vec<((u32, u32), usize)> = competition(graph, root, &children).into_iter().collect();
        pairs.sort_unstable_by_key(|(pair, weight)| (std::cmp::Reverse(*weight), *pair));
        let group = (0..children.len() as u32).map(|child| (child, false)).collect();
        let mut sides = Self { competes: vec![false; children.len()], children, group };
        for ((one, other), _) in pairs {
            sides.oppose(one, other);
        }
        sides
    }

    pub(super) fn children(&self) -> &[GraphNode] {
        &self.children
    }

    /// Representative of a child's group, and true if the child is on the other side of it.
    fn find(&self, child: u32) -> (u32, bool) {
        let (mut here, mut other_side) = (child, false);
        loop {
            let (above, differs) = self.group[here as usize];
            if above == here {
                return (here, other_side);
            }
            other_side ^= differs;
            here = above;
        }
    }

    /// Puts two children on different sides, if they are not in one group already.
    fn oppose(&mut self, one: u32, other: u32) {
        let [(first, first_side), (second, second_side)] = [self.find(one), self.find(other)];
        if first != second {
            self.group[second as usize] = (first, first_side == second_side);
            [one, other].into_iter().for_each(|child| self.competes[child as usize] = true);
        }
    }

    /// Nodes that are held if this one is the backup root: it is always among them.
    pub(super) fn held(&self, backup_root: GraphNode) -> Vec<GraphNode> {
        let Ok(place) = self.children.binary_search(&backup_root) else { return Vec::new() };
        let (group, side) = self.find(place as u32);
        let is_held = |child: usize| match self.find(child as u32) {
            (of, at) if of == group => at == side && self.competes[child] || child == place,
            (_, at) => at && self.competes[child],
        };
        (0..self.children.len()).filter(|child| is_held(*child)).map(|child| self.children[child]).collect()
    }

    /// True if the child is on the side that is usually held.
    pub(super) fn is_second(&self, child: GraphNode) -> bool {
        self.children.binary_search(&child).is_ok_and(|place| self.competes[place] && self.find(place as u32).1)
    }
}

/// Number of nodes that both children of a pair could have below them, for each pair.
fn competition(graph: &Graph, root: GraphNode, children: &[GraphNode]) -> HashMap<(u32, u32), usize> {
    let mut depth = vec![NONE; graph.node_count()];
    // For each node the child above it that came first, and the next other one.
    let mut above = vec![(NONE, NONE); graph.node_count()];
    let mut order = Vec::with_capacity(NEAR * 2);
    depth[root.index()] = 0;
    for (number, child) in (0..).zip(children) {
        (depth[child.index()], above[child.index()].0) = (1, number);
        order.push(*child);
    }
    let mut next = 0;
    while let Some(node) = order.get(next).copied().filter(|_| order.len() < NEAR) {
        next += 1;
        let (below, child) = (depth[node.index()] + 1, above[node.index()].0);
        for (there, _) in graph.neighbours(node) {
            if depth[there.index()] == NONE {
                (depth[there.index()], above[there.index()].0) = (below, child);
                order.push(*there);
            } else if depth[there.index()] == below {
                let (first, second) = &mut above[there.index()];
                if *second == NONE && *first != child {
                    *second = child;
                }
            }
        }
    }
    let mut weights = HashMap::new();
    for (first, second) in order.iter().map(|node| above[node.index()]).filter(|(_, second)| *second != NONE) {
        *weights.entry((first.min(second), first.max(second))).or_default() += 1;
    }
    weights
}
