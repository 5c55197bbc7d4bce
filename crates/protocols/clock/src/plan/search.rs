//! Alg. 2 and 5: from tree to tree until the backup graph is complete.
//!
//! The score of a tree is the size of its largest backup graph. While nodes are missing, an edge x→y from a node with a backup parent to
//! one without is made usable by re-hanging what is between: as soon as the score rises, the search goes on from there (the pruning
//! of lines 20 and 21). Trees of lower score are not kept: where that stalls, st-numbering answers ([`super::order`]).

use std::collections::HashSet;

use super::largest::{BackupGraph, Largest};
use super::tree::{NONE, Tree};
use crate::graph::{DomainId, Graph, GraphLink, GraphNode};

/// A primary tree with its largest backup graph.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) tree: Tree,
    pub(super) backup: BackupGraph,
}

impl Candidate {
    /// Smaller is better: nodes without a backup parent, backup depth, depth, sum of depths.
    pub(super) fn cost(&self) -> (usize, u32, u32, u64) {
        let deepest = |depths: &[u32]| depths.iter().filter(|depth| **depth != NONE).max().copied().unwrap_or_default();
        let sum = self.tree.depth.iter().filter(|depth| **depth != NONE).map(|depth| u64::from(*depth)).sum();
        let missing = self.tree.order.len() - 1 - self.backup.score;
        (missing, deepest(&self.backup.depth), deepest(&self.tree.depth), sum)
    }
}

/// A search for one root and one backup root.
#[derive(Clone, Copy, Debug)]
pub(super) struct Search<'a> {
    pub(super) graph: &'a Graph,
    pub(super) backup_root: GraphNode,
    pub(super) avoid: &'a [GraphLink],
    /// Trees that may be tried.
    pub(super) budget: usize,
}

impl Search<'_> {
    pub(super) fn judge(&self, tree: Tree) -> Candidate {
        let backup =
            Largest { graph: self.graph, tree: &tree, backup_root: self.backup_root, avoid: self.avoid }.find();
        Candidate { tree, backup }
    }

    /// Improves a tree until `target` nodes have a backup parent or nothing helps. Says how often the tree changed.
    pub(super) fn run(&self, first: Tree, target: usize) -> (Candidate, usize) {
        let mut best = self.judge(first);
        let (mut iterations, mut tried) = (0, 0);
        while best.backup.score < target {
            match self.mutate(&best, &mut tried) {
                Some(better) => best = better,
                None => break,
            }
            iterations += 1;
        }
        (best, iterations)
    }

    /// The first change of the tree that raises the score.
    fn mutate(&self, best: &Candidate, tried: &mut usize) -> Option<Candidate> {
        let mut asked = HashSet::new();
        for x in &best.backup.reached {
            for (y, link) in self.graph.neighbours(*x) {
                let is_missing = best.backup.depth[y.index()] == NONE && *y != best.tree.root && best.tree.has(*y);
                if !is_missing {
                    continue;
                }
                for parents in self.improve(&best.tree, *x, *y, *link) {
                    if *tried >= self.budget {
                        return None;
                    }
                    if !asked.insert(parents.clone()) {
                        continue;
                    }
                    *tried += 1;
                    let changed = self.judge(self.rehung(&best.tree, &parents));
                    if changed.backup.score > best.backup.score {
                        return Some(changed);
                    }
                }
            }
        }
        None
    }

    fn rehung(&self, tree: &Tree, changes: &[Rehang]) -> Tree {
        let mut parent = tree.parent.clone();
        for (node, above, link) in changes {
            parent[node.index()] = (above.0, link.0);
        }
        Tree::with_parents(self.graph, tree.root, parent)
    }

    /// Alg. 5: ways to make `x` usable as the backup parent of `y`.
    fn improve(&self, tree: &Tree, x: GraphNode, y: GraphNode, link: GraphLink) -> Vec<Vec<Rehang>> {
        let mut ways = Vec::new();
        if tree.is_above(x, y) {
            let mut node = y;
            while node != x {
                ways.extend(self.reconnect(tree, node, |node| tree.is_above(x, node), |node| node == x));
                node = GraphNode(tree.parent[node.index()].0);
            }
            return ways;
        }
        for domain in self.shared(tree, x, y, link) {
            let is_behind = |node: GraphNode| tree.domains_on_way(node).contains(&domain);
            let is_inside = |node| self.graph.domain_set(self.graph.domains_of(node)).contains(&domain);
            ways.extend(self.reconnect(tree, y, is_behind, is_inside));
        }
        ways
    }

    /// Domains that forbid `x` as the backup parent of `y`.
    fn shared(&self, tree: &Tree, x: GraphNode, y: GraphNode, link: GraphLink) -> Vec<DomainId> {
        let set = |set| self.graph.domain_set(set).iter().copied();
        let own: Vec<DomainId> = set(self.graph.domains_of(y)).collect();
        let both = set(self.graph.domains_of(x)).chain(set(self.graph.domains_of_link(link)));
        both.filter(|domain| tree.domains_on_way(y).contains(domain) && !own.contains(domain)).collect()
    }

    /// Shortest ways to hang `node` so that it is no longer behind something, each over nodes that are, to one that is not; none over
    /// a node that is barred.
    fn reconnect(
        &self,
        tree: &Tree,
        node: GraphNode,
        is_behind: impl Fn(GraphNode) -> bool,
        is_barred: impl Fn(GraphNode) -> bool,
    ) -> Vec<Vec<Rehang>> {
        // Nodes reached, each with the node and the link before it.
        let mut from: Vec<(GraphNode, usize, GraphLink)> = vec![(node, 0, GraphLink(NONE))];
        let mut seen = HashSet::from([node]);
        let (mut ways, mut at) = (Vec::new(), 0);
        while at < from.len() && ways.is_empty() && from.len() < FARTHEST {
            let (here, ..) = from[at];
            for (there, link) in self.graph.neighbours(here) {
                if !tree.has(*there) || here == self.backup_root || is_barred(*there) || self.avoid.contains(link) {
                    continue;
                }
                if !is_behind(*there) {
                    ways.push(way_back(&from, at, (*there, *link)));
                    if ways.len() == MOST_WAYS {
                        break;
                    }
                } else if *there != tree.root && *there != self.backup_root && seen.insert(*there) {
                    from.push((*there, at, *link));
                }
            }
            at += 1;
        }
        ways
    }
}

/// A node, its new parent, and the link to it.
type Rehang = (GraphNode, GraphNode, GraphLink);

/// Nodes that a detour may be looked for among, and detours that are tried for one node.
const FARTHEST: usize = 4_096;
const MOST_WAYS: usize = 3;

/// New parents along the way from `outside` back to where the search began.
fn way_back(from: &[(GraphNode, usize, GraphLink)], mut at: usize, outside: (GraphNode, GraphLink)) -> Vec<Rehang> {
    let mut way = Vec::new();
    let (mut above, mut link) = outside;
    loop {
        let (node, before, next) = from[at];
        way.push((node, above, link));
        if at == 0 {
            return way;
        }
        (above, link, at) = (node, next, before);
    }
}

impl Search<'_> {
    /// Tries every tree of a small graph; the first that covers `target` nodes.
    pub(super) fn exhaust(&self, root: GraphNode, target: usize) -> Option<Candidate> {
        let mut parent = vec![(NONE, NONE); self.graph.node_count()];
        self.assign(root, GraphNode(0), &mut parent, target)
    }

    fn assign(
        &self,
        root: GraphNode,
        node: GraphNode,
        parent: &mut Vec<(u32, u32)>,
        target: usize,
    ) -> Option<Candidate> {
        if node.index() == parent.len() {
            let tree = Tree::with_parents(self.graph, root, parent.clone());
            let working = self.graph.nodes().filter(|node| !self.graph.neighbours(*node).is_empty());
            let is_whole = tree.order.len() == working.count();
            return Some(tree)
                .filter(|_| is_whole)
                .map(|tree| self.judge(tree))
                .filter(|found| found.backup.score >= target);
        }
        let next = GraphNode(node.0 + 1);
        if node == root || self.graph.neighbours(node).is_empty() {
            return self.assign(root, next, parent, target);
        }
        for (above, link) in self.graph.neighbours(node) {
            if node == self.backup_root && *above != root {
                continue;
            }
            parent[node.index()] = (above.0, link.0);
            let found = self.assign(root, next, parent, target);
            if found.is_some() {
                return found;
            }
        }
        parent[node.index()] = (NONE, NONE);
        None
    }
}
