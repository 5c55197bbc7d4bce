//! Alg. 3 and 4: the largest backup graph of a primary tree, and its loop.
//!
//! The loop is made first: the backup root and a neighbour that back each other, where that is possible, since a short loop keeps
//! depths small. Then nodes are reached in the order of their larger depth, so that each gets the backup parent with which its own
//! backup depth is smallest: a backup depth is one more than the larger depth of the backup parent, so it only grows along the way.

use std::collections::HashSet;

use super::depth::ring_depths;
use super::tree::{NONE, Tree};
use crate::graph::{DomainId, Graph, GraphLink, GraphNode};

#[derive(Clone, Debug)]
pub(super) struct BackupGraph {
    /// Backup parent of each node, and the link to it.
    pub(super) backup: Vec<(u32, u32)>,
    pub(super) depth: Vec<u32>,
    /// The loop from the backup root on; empty if none closes.
    pub(super) ring: Vec<GraphNode>,
    /// Nodes with a backup parent.
    pub(super) score: usize,
    /// Nodes in the order in which they were reached.
    pub(super) reached: Vec<GraphNode>,
}

/// Inputs of the search for a backup graph.
#[derive(Clone, Copy, Debug)]
pub(super) struct Largest<'a> {
    pub(super) graph: &'a Graph,
    pub(super) tree: &'a Tree,
    pub(super) backup_root: GraphNode,
    /// Links that are used only where nothing else is.
    pub(super) avoid: &'a [GraphLink],
}

/// A loop: its nodes, and the links from each to the next.
type Ring = Vec<(GraphNode, GraphLink)>;

impl Largest<'_> {
    pub(super) fn find(&self) -> BackupGraph {
        let avoided: HashSet<GraphLink> = self.avoid.iter().copied().collect();
        if let Some(ring) = self.pair(&avoided) {
            return self.spread(&ring, &avoided);
        }
        // The loop closes with an edge of the graph that is found without it.
        let open = self.spread(&[(self.backup_root, GraphLink(NONE))], &avoided);
        match self.closing(&open, &avoided) {
            Some(ring) => self.spread(&ring, &avoided),
            None => BackupGraph { ring: Vec::new(), score: 0, ..open },
        }
    }

    fn usable(&self, x: GraphNode, y: GraphNode, link: GraphLink) -> bool {
        let tree = self.tree;
        x != tree.root && y != tree.root && tree.has(x) && tree.has(y) && tree.is_usable(self.graph, x, y, link)
    }

    /// The best loop of two.
    fn pair(&self, avoided: &HashSet<GraphLink>) -> Option<Ring> {
        let first = self.backup_root;
        let back = |other: GraphNode| {
            let links = || self.graph.links_between(first, other).filter(|link| self.usable(first, other, *link));
            links().find(|link| !avoided.contains(link)).or_else(|| links().next())
        };
        let candidates = self.graph.neighbours(first).iter().filter(|(other, link)| self.usable(*other, first, *link));
        let rings = candidates.filter_map(|(other, link)| Some(vec![(first, *link), (*other, back(*other)?)]));
        let sound = rings.filter(|ring| self.is_sound(ring));
        sound.min_by_key(|ring| self.cost(ring, avoided))
    }

    /// The best loop: the backup root and a path that leads back to it.
    fn closing(&self, open: &BackupGraph, avoided: &HashSet<GraphLink>) -> Option<Ring> {
        let first = self.backup_root;
        let reached = |node: GraphNode| open.depth[node.index()] != NONE && node != first;
        let candidates = self
            .graph
            .neighbours(first)
            .iter()
            .filter(|(other, link)| reached(*other) && self.usable(*other, first, *link));
        let rings = candidates.map(|(other, link)| {
            let mut ring = vec![(first, *link)];
            let mut here = *other;
            while here != first {
                let (above, link) = open.backup[here.index()];
                ring.push((here, GraphLink(link)));
                here = GraphNode(above);
            }
            ring
        });
        rings.filter(|ring| self.is_sound(ring)).min_by_key(|ring| self.cost(ring, avoided))
    }

    fn depths(&self, ring: &[(GraphNode, GraphLink)]) -> Vec<u32> {
        ring.iter().map(|(node, _)| self.tree.depth[node.index()]).collect()
    }

    /// Cost of a loop: links to be avoided, then depth, then length.
    fn cost(&self, ring: &[(GraphNode, GraphLink)], avoided: &HashSet<GraphLink>) -> (usize, u32, usize) {
        let deepest = ring_depths(&self.depths(ring)).into_iter().max().unwrap_or_default();
        (ring.iter().filter(|(_, link)| avoided.contains(link)).count(), deepest, ring.len())
    }

    /// Conditions 5 and 7. The first edge from the backup root leaves its subtree, so 5 holds wherever 2 does.
    fn is_sound(&self, ring: &[(GraphNode, GraphLink)]) -> bool {
        let visits_another = ring.iter().any(|(node, _)| !self.tree.is_above(self.backup_root, *node));
        visits_another
            && self
                .cuts(self.backup_root)
                .iter()
                .all(|domain| ring.iter().any(|(node, _)| !self.cuts(*node).contains(domain)))
    }

    /// Domains that cut a node off, but spare it and the root.
    fn cuts(&self, node: GraphNode) -> Vec<DomainId> {
        let spared = [node, self.tree.root].map(|node| self.graph.domain_set(self.graph.domains_of(node)));
        let domains = self.tree.domains_on_way(node).iter();
        domains.filter(|domain| spared.iter().all(|own| !own.contains(domain))).copied().collect()
    }

    /// Hangs all nodes that can be reached on a loop, the least deep first.
    fn spread(&self, ring: &[(GraphNode, GraphLink)], avoided: &HashSet<GraphLink>) -> BackupGraph {
        let count = self.graph.node_count();
        let mut found = BackupGraph {
            backup: vec![(NONE, NONE); count],
            depth: vec![NONE; count],
            ring: ring.iter().map(|(node, _)| *node).collect(),
            score: ring.len(),
            reached: Vec::with_capacity(count),
        };
        let mut buckets: Vec<Vec<GraphNode>> = Vec::new();
        for (place, deep) in ring_depths(&self.depths(ring)).into_iter().enumerate() {
            let (node, link) = ring[place];
            found.backup[node.index()] = (ring[(place + 1) % ring.len()].0.0, link.0);
            found.depth[node.index()] = deep;
            put(&mut buckets, deep.max(self.tree.depth[node.index()]), node);
        }
        let mut level = 0;
        loop {
            while level < buckets.len() {
                let nodes = std::mem::take(&mut buckets[level]);
                for node in &nodes {
                    self.expand(*node, level as u32, avoided, &mut found, &mut buckets);
                }
                found.reached.extend(nodes);
                level += 1;
            }
            if found.score + 1 >= self.tree.order.len() || !self.cross(&mut found, &mut buckets, &mut level) {
                break;
            }
        }
        found
    }

    fn expand(
        &self,
        node: GraphNode,
        level: u32,
        avoided: &HashSet<GraphLink>,
        found: &mut BackupGraph,
        buckets: &mut Vec<Vec<GraphNode>>,
    ) {
        for (there, link) in self.graph.neighbours(node) {
            if found.depth[there.index()] == NONE
                && self.usable(node, *there, *link)
                && (avoided.is_empty() || !avoided.contains(link))
            {
                found.hang(*there, node, *link, level + 1);
                put(buckets, (level + 1).max(self.tree.depth[there.index()]), *there);
            }
        }
    }

    /// Crosses one link that is to be avoided; false if none leads to a node that is not reached yet.
    fn cross(&self, found: &mut BackupGraph, buckets: &mut Vec<Vec<GraphNode>>, level: &mut usize) -> bool {
        for link in self.avoid.iter().filter(|link| !self.graph.is_link_failed(**link)) {
            let [a, b] = self.graph.ends(*link);
            for (from, to) in [(a, b), (b, a)] {
                if found.depth[from.index()] != NONE && found.depth[to.index()] == NONE && self.usable(from, to, *link)
                {
                    let above = found.depth[from.index()].max(self.tree.depth[from.index()]);
                    found.hang(to, from, *link, above + 1);
                    let at = (above + 1).max(self.tree.depth[to.index()]);
                    put(buckets, at, to);
                    *level = (*level).min(at as usize);
                    return true;
                }
            }
        }
        false
    }
}

impl BackupGraph {
    fn hang(&mut self, node: GraphNode, above: GraphNode, link: GraphLink, depth: u32) {
        self.backup[node.index()] = (above.0, link.0);
        self.depth[node.index()] = depth;
        self.score += 1;
    }
}

fn put(buckets: &mut Vec<Vec<GraphNode>>, level: u32, node: GraphNode) {
    let level = level as usize;
    if buckets.len() <= level {
        buckets.resize_with(level + 1, Vec::new);
    }
    buckets[level].push(node);
}
