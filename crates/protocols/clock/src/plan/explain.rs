//! Why a node has its parents and no others.

use std::collections::HashSet;

use super::{ClockPlan, Uplink};
use crate::graph::{Graph, GraphNode};

impl ClockPlan {
    /// Lines about one node: its way, its backup way, and for each neighbour why it could or could not be the backup parent.
    pub fn explain(&self, graph: &Graph, node: GraphNode) -> Vec<String> {
        let name = |node: GraphNode| graph.name(node);
        let mut lines = Vec::new();
        let way = self.way(node);
        let list = |nodes: &[GraphNode]| nodes.iter().map(|node| name(*node)).collect::<Vec<_>>().join(" ← ");
        match self.depth[node.index()] {
            Some(0) => lines.push(format!("{} is the root: it listens to nobody", name(node))),
            Some(depth) => {
                lines.push(format!("{} listens to {}, at depth {depth}: {}", name(node), name(way[1]), list(&way)))
            }
            None if graph.is_failed(node) => lines.push(format!("{} has failed", name(node))),
            None => lines.push(format!("{} is cut off: no link that works leads to it", name(node))),
        }
        if node == self.backup_root {
            lines.push(format!(
                "{} is the backup root: it elects itself when it hears nothing from its backup parent either",
                name(node)
            ));
        }
        if let Some(uplink) = self.backup[node.index()] {
            let deep = self.depth_backup[node.index()].unwrap_or_default();
            let link = graph.link_name(uplink.link);
            let backup_way = list(&self.backup_way(node));
            lines.push(format!("it turns to {} over {link}, at depth {deep} at most: {backup_way}", name(uplink.node)));
        }
        let reason = self.uncovered.iter().find(|(other, _)| *other == node);
        lines.extend(reason.map(|(_, reason)| format!("it has no backup parent: {}", reason.describe(graph, node))));
        if node != self.root && self.depth[node.index()].is_some() {
            let mut known = HashSet::new();
            let neighbours = graph.neighbours(node).iter().filter(|(other, _)| known.insert(*other));
            lines.extend(neighbours.map(|(other, link)| {
                format!("  {}: {}", name(*other), self.suitability(graph, node, Uplink { node: *other, link: *link }))
            }));
        }
        lines
    }

    /// Nodes on the way from a node to the root.
    fn way(&self, node: GraphNode) -> Vec<GraphNode> {
        std::iter::successors(Some(node), |here| self.parent[here.index()].map(|up| up.node)).collect()
    }

    /// Nodes on the way from a node to the backup root.
    fn backup_way(&self, node: GraphNode) -> Vec<GraphNode> {
        let next = |here: &GraphNode| {
            self.backup[here.index()].map(|up| up.node).filter(|_| *here != self.backup_root || *here == node)
        };
        let mut way: Vec<GraphNode> = std::iter::successors(Some(node), next).take(self.backup.len()).collect();
        if let Some(end) = way.iter().skip(1).position(|here| *here == self.backup_root) {
            way.truncate(end + 2);
        }
        way
    }

    /// Says whether a neighbour could be the backup parent, and if not, why.
    fn suitability(&self, graph: &Graph, node: GraphNode, uplink: Uplink) -> String {
        let other = uplink.node;
        let parent = self.parent[node.index()].map(|up| up.node);
        let way = self.way(node);
        let set = |node: GraphNode| graph.domain_set(graph.domains_of(node));
        let on_way = |domain| {
            let links = way.iter().filter_map(|node| self.parent[node.index()]).map(|up| up.link);
            way[1..].iter().any(|node| set(*node).contains(domain))
                || links.into_iter().any(|link| graph.domain_set(graph.domains_of_link(link)).contains(domain))
        };
        let of_other = set(other).iter().chain(graph.domain_set(graph.domains_of_link(uplink.link)));
        let shared = of_other.filter(|domain| !set(node).contains(domain)).find(|domain| on_way(domain));
        if parent == Some(other) {
            "its parent".to_owned()
        } else if self.backup[node.index()].map(|up| up.node) == Some(other) {
            "its backup parent".to_owned()
        } else if way.contains(&other) {
            "cannot be: an ancestor, whose failure would take both".to_owned()
        } else if let Some(domain) = shared {
            format!("cannot be: domain {} would take both", graph.domain(*domain).name)
        } else if self.backup[other.index()].is_none() {
            "cannot be: it has no backup parent itself".to_owned()
        } else if node != self.backup_root && self.backup_way(other).contains(&node) {
            "cannot be: it turns to this node itself, sooner or later".to_owned()
        } else {
            let deep =
                |node: GraphNode| self.depth_backup[node.index()].max(self.depth[node.index()]).unwrap_or_default() + 1;
            format!("could be, at depth {} at most", deep(other))
        }
    }
}
