//! st-numbering: the exact answer without domains, and who is behind whom.
//!
//! One depth-first search from the root, with the backup root first, finds the block (2-connected component) of the edge between them.
//! A node outside of it is behind a cut node, its *gate*: no plan covers it. Within the block Tarjan's numbering (1986) by list
//! insertion puts the root first and the backup root last, such that every other node has a lower and a higher neighbour. With a lower
//! neighbour as parent, ancestors are lower and a higher neighbour can always be the backup parent; so the tree has a complete backup
//! graph. Known elsewhere as redundant trees (Médard et al. 1999; RFC 7811).

use super::tree::{NONE, Tree};
use crate::graph::{Graph, GraphNode};

/// Result of the depth-first search. Lists have an entry for every node.
#[derive(Clone, Debug)]
pub(super) struct NodeBlocks {
    root: GraphNode,
    backup_root: GraphNode,
    /// Nodes in the order of their discovery.
    preorder: Vec<GraphNode>,
    parent: Vec<u32>,
    /// The earliest node that can be reached by one step back from below.
    low: Vec<GraphNode>,
    /// The cut node that a node is behind, if it is outside of the block.
    gate: Vec<u32>,
}

impl NodeBlocks {
    pub(super) fn of(graph: &Graph, root: GraphNode, backup_root: GraphNode) -> Self {
        let count = graph.node_count();
        let mut blocks = Self {
            root,
            backup_root,
            preorder: vec![root],
            parent: vec![NONE; count],
            low: graph.nodes().collect(),
            gate: vec![NONE; count],
        };
        let mut place = vec![NONE; count];
        place[root.index()] = 0;
        blocks.descend(graph, backup_root, root, &mut place);
        for (child, _) in graph.neighbours(root) {
            if place[child.index()] == NONE {
                blocks.descend(graph, *child, root, &mut place);
            }
        }
        blocks.find_gates(&place);
        blocks
    }

    /// Visits all that can be reached from `first`, which is hung below `above`.
    fn descend(&mut self, graph: &Graph, first: GraphNode, above: GraphNode, place: &mut [u32]) {
        let mut stack = vec![(first, 0)];
        self.enter(first, above, place);
        while let Some((node, next)) = stack.last_mut() {
            let node = *node;
            if let Some((there, _)) = graph.neighbours(node).get(*next).copied() {
                *next += 1;
                if place[there.index()] == NONE {
                    self.enter(there, node, place);
                    stack.push((there, 0));
                } else {
                    self.lower(node, there, place);
                }
            } else {
                stack.pop();
                if let Some((above, _)) = stack.last().copied() {
                    self.lower(above, self.low[node.index()], place);
                }
            }
        }
    }

    fn enter(&mut self, node: GraphNode, above: GraphNode, place: &mut [u32]) {
        place[node.index()] = self.preorder.len() as u32;
        self.preorder.push(node);
        self.parent[node.index()] = above.0;
    }

    fn lower(&mut self, node: GraphNode, to: GraphNode, place: &[u32]) {
        let low = &mut self.low[node.index()];
        if place[to.index()] < place[low.index()] {
            *low = to;
        }
    }

    fn find_gates(&mut self, place: &[u32]) {
        for node in self.preorder.iter().filter(|node| **node != self.root && **node != self.backup_root) {
            let above = self.parent[node.index()] as usize;
            let is_cut = above == self.root.index() || place[self.low[node.index()].index()] >= place[above];
            self.gate[node.index()] = match self.gate[above] {
                NONE if is_cut => above as u32,
                gate => gate,
            };
        }
    }

    /// Nodes that are on a cycle of three or more, as far as the search came: each other is no root, because its children have no
    /// second way.
    pub(super) fn on_cycles(&self) -> impl Iterator<Item = GraphNode> + '_ {
        let mut place = vec![NONE; self.parent.len()];
        (0..).zip(&self.preorder).for_each(|(at, node)| place[node.index()] = at);
        self.preorder[1..].iter().flat_map(move |node| {
            let (above, low) = (GraphNode(self.parent[node.index()]), self.low[node.index()]);
            let closes = place[low.index()] < place[above.index()];
            [*node, above, low].into_iter().filter(move |_| closes)
        })
    }

    /// All that was reached.
    pub(super) fn reached(&self) -> &[GraphNode] {
        &self.preorder
    }

    /// The cut node that a node is behind; none if it is in the block.
    pub(super) fn gate(&self, node: GraphNode) -> Option<GraphNode> {
        let gate = self.gate[node.index()];
        (gate != NONE).then_some(GraphNode(gate))
    }

    /// Nodes of the block, from the root to the backup root; each other has a neighbour before it and one behind it.
    fn numbering(&self) -> Vec<GraphNode> {
        let mut list = NodeList::new(self.parent.len(), self.root, self.backup_root);
        let mut is_plus = vec![false; self.parent.len()];
        let inner =
            |node: &&GraphNode| **node != self.root && **node != self.backup_root && self.gate[node.index()] == NONE;
        for node in self.preorder.iter().filter(inner) {
            let above = GraphNode(self.parent[node.index()]);
            let before = !is_plus[self.low[node.index()].index()];
            list.insert(*node, above, before);
            is_plus[above.index()] = before;
        }
        list.nodes(self.root)
    }

    /// Primary tree that has a backup graph for the whole block: each node is below its least deep lower neighbour.
    pub(super) fn tree(&self, graph: &Graph) -> Tree {
        let mut number = vec![NONE; graph.node_count()];
        let order = self.numbering();
        (0..).zip(&order).for_each(|(place, node)| number[node.index()] = place);
        let mut parent = vec![(NONE, NONE); graph.node_count()];
        let mut depth = vec![0u32; graph.node_count()];
        for node in &order[1..] {
            let lower =
                graph.neighbours(*node).iter().filter(|(there, _)| number[there.index()] < number[node.index()]);
            // The backup root is the root's child, whatever else it could be.
            let allowed = lower.filter(|(there, _)| *node != self.backup_root || *there == self.root);
            if let Some((there, link)) = allowed.min_by_key(|(there, link)| (depth[there.index()], *link)) {
                parent[node.index()] = (there.0, link.0);
                depth[node.index()] = depth[there.index()] + 1;
            }
        }
        // Nodes behind a gate keep their place.
        for node in self.preorder.iter().filter(|node| self.gate[node.index()] != NONE) {
            let above = GraphNode(self.parent[node.index()]);
            let link = graph.links_between(*node, above).next().map_or(NONE, |link| link.0);
            parent[node.index()] = (above.0, link);
        }
        Tree::with_parents(graph, self.root, parent)
    }
}

/// A list into which nodes are inserted beside others.
struct NodeList {
    /// The node before each node, and the node behind it.
    beside: Vec<[u32; 2]>,
}

impl NodeList {
    fn new(count: usize, first: GraphNode, last: GraphNode) -> Self {
        let mut beside = vec![[NONE; 2]; count];
        beside[first.index()][1] = last.0;
        beside[last.index()][0] = first.0;
        Self { beside }
    }

    fn insert(&mut self, node: GraphNode, at: GraphNode, before: bool) {
        let [toward, away] = if before { [0, 1] } else { [1, 0] };
        let other = self.beside[at.index()][toward];
        self.beside[node.index()][toward] = other;
        self.beside[node.index()][away] = at.0;
        self.beside[at.index()][toward] = node.0;
        if other != NONE {
            self.beside[other as usize][away] = node.0;
        }
    }

    fn nodes(&self, first: GraphNode) -> Vec<GraphNode> {
        let next = |node: &GraphNode| Some(GraphNode(self.beside[node.index()][1])).filter(|node| node.0 != NONE);
        std::iter::successors(Some(first), next).collect()
    }
}
