//! Primary trees: grown by breadth, re-hung, with ancestors in two comparisons.
//!
//! Each node has its place in a tour of the tree in which a subtree is a range. Each node also has the set of domains on its way to the
//! root, itself included; few different sets exist, so each is kept once.

use std::collections::HashMap;

use crate::graph::{DomainId, DomainSet, Graph, GraphLink, GraphNode};

/// Placeholder for no parent, no depth, no place.
pub(super) const NONE: u32 = u32::MAX;

#[derive(Clone, Debug)]
pub(super) struct Tree {
    pub(super) root: GraphNode,
    /// Parent of each node, and the link to it.
    pub(super) parent: Vec<(u32, u32)>,
    pub(super) depth: Vec<u32>,
    /// Parents before children.
    pub(super) order: Vec<GraphNode>,
    /// The range of each node's subtree in the tour.
    range: Vec<(u32, u32)>,
    /// The set of domains on each node's way; empty if there are no domains.
    way: Vec<u32>,
    ways: Vec<Vec<DomainId>>,
}

impl Tree {
    /// Grows a tree from the root by breadth. Of several possible parents a node gets the one with fewer children. No
    /// node is put below a node of `held` or a link of `avoid`, unless there is no other way.
    pub(super) fn grow(graph: &Graph, root: GraphNode, held: &[GraphNode], avoid: &[GraphLink]) -> Self {
        let mut tree = Self::bare(graph, root);
        let mut growth = Growth { children: vec![0u32; graph.node_count()], spread: true };
        let mut is_held = vec![false; if held.is_empty() { 0 } else { graph.node_count() }];
        held.iter().for_each(|node| is_held[node.index()] = true);
        let avoided: std::collections::HashSet<GraphLink> = avoid.iter().copied().collect();
        let mut next = 0;
        let mut held_back = Vec::new();
        tree.order.push(root);
        tree.depth[root.index()] = 0;
        loop {
            while let Some(node) = tree.order.get(next).copied() {
                next += 1;
                if !is_held.is_empty() && is_held[node.index()] {
                    held_back.push(node);
                } else {
                    tree.expand(graph, node, &avoided, &mut growth);
                }
            }
            growth.spread = false;
            if tree.order.len() == graph.node_count() {
                break;
            }
            if let Some(node) = held_back.pop() {
                tree.expand(graph, node, &avoided, &mut growth);
            } else if !tree.cross(graph, avoid) {
                break;
            }
        }
        tree.tour(graph);
        tree
    }

    fn bare(graph: &Graph, root: GraphNode) -> Self {
        let count = graph.node_count();
        Self {
            root,
            parent: vec![(NONE, NONE); count],
            depth: vec![NONE; count],
            order: Vec::with_capacity(count),
            range: vec![(0, 0); count],
            way: Vec::new(),
            ways: vec![Vec::new()],
        }
    }

    /// Hangs those of a node's neighbours below it that have no better place.
    fn expand(
        &mut self,
        graph: &Graph,
        node: GraphNode,
        avoid: &std::collections::HashSet<GraphLink>,
        growth: &mut Growth,
    ) {
        let below = self.depth[node.index()] + 1;
        for (there, link) in graph.neighbours(node) {
            let depth = &mut self.depth[there.index()];
            if *depth < below || *depth == below && !growth.spread || !avoid.is_empty() && avoid.contains(link) {
                continue;
            }
            let parent = &mut self.parent[there.index()];
            if *depth == NONE {
                *depth = below;
                self.order.push(*there);
            } else if *depth > below {
                continue;
            } else if growth.children[node.index()] + 1 < growth.children[parent.0 as usize] {
                growth.children[parent.0 as usize] -= 1;
            } else {
                continue;
            }
            *parent = (node.0, link.0);
            growth.children[node.index()] += 1;
        }
    }

    /// Crosses one of these links to a node that is not reached yet; false if none leads to one.
    fn cross(&mut self, graph: &Graph, links: &[GraphLink]) -> bool {
        for link in links.iter().filter(|link| !graph.is_link_failed(**link)) {
            let [a, b] = graph.ends(*link);
            for (from, to) in [(a, b), (b, a)] {
                if self.has(from) && !self.has(to) {
                    self.parent[to.index()] = (from.0, link.0);
                    self.depth[to.index()] = self.depth[from.index()] + 1;
                    self.order.push(to);
                    return true;
                }
            }
        }
        false
    }

    /// A tree with these parents.
    pub(super) fn with_parents(graph: &Graph, root: GraphNode, parent: Vec<(u32, u32)>) -> Self {
        let mut tree = Self { parent, ..Self::bare(graph, root) };
        let mut begin = vec![0u32; graph.node_count() + 1];
        for (above, _) in tree.parent.iter().filter(|(above, _)| *above != NONE) {
            begin[*above as usize + 1] += 1;
        }
        (1..begin.len()).for_each(|node| begin[node] += begin[node - 1]);
        let mut next = begin.clone();
        let mut children = vec![GraphNode(0); begin[graph.node_count()] as usize];
        for (node, (above, _)) in (0..).map(GraphNode).zip(&tree.parent).filter(|(_, (above, _))| *above != NONE) {
            children[next[*above as usize] as usize] = node;
            next[*above as usize] += 1;
        }
        tree.order.push(root);
        tree.depth[root.index()] = 0;
        let mut at = 0;
        while let Some(node) = tree.order.get(at).copied() {
            at += 1;
            for child in &children[begin[node.index()] as usize..begin[node.index() + 1] as usize] {
                tree.depth[child.index()] = tree.depth[node.index()] + 1;
                tree.order.push(*child);
            }
        }
        tree.tour(graph);
        tree
    }

    /// Ranges of subtrees, and domains on the ways.
    fn tour(&mut self, graph: &Graph) {
        for node in self.order[1..].iter().rev() {
            let size = self.range[node.index()].1 + 1;
            self.range[node.index()].1 = size;
            self.range[self.parent[node.index()].0 as usize].1 += size;
        }
        self.range[self.root.index()].1 += 1;
        // Beginning of the next child's range, while ranges are given out.
        let mut next = vec![0u32; self.range.len()];
        next[self.root.index()] = 1;
        for node in &self.order[1..] {
            let (begin, size) = (next[self.parent[node.index()].0 as usize], self.range[node.index()].1);
            next[self.parent[node.index()].0 as usize] += size;
            self.range[node.index()] = (begin, begin + size);
            next[node.index()] = begin + 1;
        }
        if !graph.domains().is_empty() {
            self.find_ways(graph);
        }
    }

    fn find_ways(&mut self, graph: &Graph) {
        self.way = vec![0; graph.node_count()];
        let mut known: HashMap<(u32, DomainSet, DomainSet), u32> = HashMap::new();
        for node in &self.order {
            let (above, link) = self.parent[node.index()];
            let own = graph.domains_of(*node);
            let (way, before, of_link) = if above == NONE {
                (0, DomainSet::EMPTY, DomainSet::EMPTY)
            } else {
                let above = GraphNode(above);
                (self.way[above.index()], graph.domains_of(above), graph.domains_of_link(GraphLink(link)))
            };
            let ways = &mut self.ways;
            self.way[node.index()] = if of_link == DomainSet::EMPTY && (own == before || own == DomainSet::EMPTY) {
                way
            } else {
                *known.entry((way, own, of_link)).or_insert_with(|| {
                    let sets = [&ways[way as usize][..], graph.domain_set(own), graph.domain_set(of_link)];
                    let mut union = sets.concat();
                    union.sort_unstable();
                    union.dedup();
                    ways.push(union);
                    ways.len() as u32 - 1
                })
            };
        }
    }

    pub(super) fn has(&self, node: GraphNode) -> bool {
        self.depth[node.index()] != NONE
    }

    /// True if a node is on the other's way to the root, or is the other.
    pub(super) fn is_above(&self, node: GraphNode, other: GraphNode) -> bool {
        let (begin, end) = self.range[node.index()];
        let place = self.range[other.index()].0;
        begin <= place && place < end
    }

    /// The domains on a node's way to the root, its own included.
    pub(super) fn domains_on_way(&self, node: GraphNode) -> &[DomainId] {
        self.way.get(node.index()).map_or(&[], |way| &self.ways[*way as usize])
    }

    /// Alg. 3: whether `x` may be the backup parent of `y` over this link.
    pub(super) fn is_usable(&self, graph: &Graph, x: GraphNode, y: GraphNode, link: GraphLink) -> bool {
        if self.is_above(x, y) {
            return false;
        }
        if self.way.is_empty() {
            return true;
        }
        let (of_x, of_link) = (graph.domains_of(x), graph.domains_of_link(link));
        self.is_apart(graph, of_x, y) && self.is_apart(graph, of_link, y)
    }

    /// True if no domain of the set is on the node's way, unless it holds the node itself.
    fn is_apart(&self, graph: &Graph, set: DomainSet, node: GraphNode) -> bool {
        let own = graph.domains_of(node);
        set == DomainSet::EMPTY
            || set == own
            || graph
                .domain_set(set)
                .iter()
                .all(|domain| !self.domains_on_way(node).contains(domain) || graph.domain_set(own).contains(domain))
    }
}

struct Growth {
    children: Vec<u32>,
    /// True if a node may still move to a parent with fewer children.
    spread: bool,
}
