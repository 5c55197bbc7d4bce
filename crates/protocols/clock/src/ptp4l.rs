//! A plan as configurations of linuxptp's ptp4l: what of it PTP's election can be made to follow.
//!
//! | of the plan | in ptp4l |
//! | --- | --- |
//! | the root, the backup root | the best and the second-best `priority2` |
//! | parent, backup parent | ports with `G.8275.portDS.localPriority` 1 and 2 |
//! | every other port | `masterOnly`, called `serverOnly` from linuxptp 4 on |
//! | the largest depth after failures | `maxStepsRemoved`, which ends what circulates after the root's death |
//!
//! Learned by running it: a clock with a `clockClass` below 128 never follows anybody, so all have the same, above it.
//!
//! **Two nodes are each other's backup parents** if the loop of the backup root has only two nodes. When the root is dead, both turn to each other, and each falls silent towards the other, since a port that listens does not announce.
//! The first whose `announceReceiptTimeout` ends announces a new grandmaster. The other one's timeout began when it turned, later than
//! the last Announce that it heard; that one may be older than four Announce intervals by now. ptp4l (3.1.1 and 4.4,
//! `update_current_master` in port.c) has then dropped it, finds nothing to compare the new one with, takes it for no change, and keeps
//! the dead grandmaster for ever. So the partner waits for two Announces only and the backup root for five: the partner gives up
//! first, within four intervals of its own last Announce, and the backup root hears of it as a change.

use std::fmt::Write;

use crate::graph::{Graph, GraphLink, GraphNode};
use crate::plan::ClockPlan;

/// Version of linuxptp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ptp4lVersion {
    /// 3.1, as in Debian 12.
    V3,
    /// Version 4 and later, which name roles differently.
    V4,
}

impl Ptp4lVersion {
    fn server_only(self) -> &'static str {
        match self {
            Self::V3 => "masterOnly",
            Self::V4 => "serverOnly",
        }
    }
}

/// The configuration of one node. Ports are called as the topology says, or else `p0`, `p1` and so on in its order.
pub fn ptp4l_config(graph: &Graph, plan: &ClockPlan, node: GraphNode, version: Ptp4lVersion) -> String {
    let priority2 = match node {
        node if node == plan.root => 1,
        node if node == plan.backup_root => 2,
        _ => 128,
    };
    let name = graph.name(node);
    let steps = plan.max_depth_backup().max(plan.max_depth()) + 1;
    let mut text = format!(
        "# {name}, of a plan with root {} and backup root {}\n[global]\nnetwork_transport L2\n\
         dataset_comparison G.8275.x\npriority2 {priority2}\nclockClass 248\nmaxStepsRemoved {steps}\n\
         logAnnounceInterval -3\nannounceReceiptTimeout 3\nlogSyncInterval -3\nlogMinDelayReqInterval -3\n",
        graph.name(plan.root),
        graph.name(plan.backup_root)
    );
    let (parent, backup) = (plan.parent[node.index()], plan.backup[node.index()]);
    let patience = patience_with_backup(plan, node);
    for (number, (there, link)) in graph.neighbours(node).iter().enumerate() {
        let is = |uplink: Option<crate::plan::Uplink>| uplink.is_some_and(|uplink| uplink.link == *link);
        let (role, option) = match (is(parent), is(backup)) {
            (true, _) => ("parent", "G.8275.portDS.localPriority 1".to_owned()),
            (_, true) => ("backup parent", format!("G.8275.portDS.localPriority 2{patience}")),
            _ => ("may listen to this node", format!("{} 1", version.server_only())),
        };
        let there = graph.name(*there);
        let port = port_name(graph, node, *link, number);
        // Writing to a text cannot fail.
        let _ = write!(text, "\n# {there}: {role}\n[{port}]\n{option}\n");
    }
    text
}

/// Setting for the number of Announces of its backup parent that a node may miss; empty for the default.
fn patience_with_backup(plan: &ClockPlan, node: GraphNode) -> &'static str {
    let backup_of = |node: GraphNode| plan.backup[node.index()].map(|uplink| uplink.node);
    let is_mutual = backup_of(node).and_then(backup_of) == Some(node);
    match (is_mutual, node == plan.backup_root) {
        (false, _) => "",
        (true, true) => "\nannounceReceiptTimeout 5",
        (true, false) => "\nannounceReceiptTimeout 2",
    }
}

fn port_name(graph: &Graph, node: GraphNode, link: GraphLink, number: usize) -> String {
    graph.port(link, node).map_or_else(|| format!("p{number}"), str::to_owned)
}

/// README that comes with these files.
pub const PTP4L_README: &str = "\
# ptp4l along a plan of `hitless clock plan`

One file per node: `NAME.conf` for linuxptp 3.1, `linuxptp4/NAME.conf` for 4 and later (roles have other names there). `/` in a
name has become `_`. Start a node with `ptp4l -f NAME.conf`, with `-S` where the cards have no hardware time stamps.

Check the names of the interfaces: they are those of the topology, or `p0`, `p1` and so on, in the order of the comments, where it
has none. Cards with a hardware clock each need `boundary_clock_jbod 1`; with software time stamps that option breaks ptp4l.

What the files do: every node listens to its planned parent; to its backup parent when that one falls silent; when the root is
dead, the planned backup root becomes grandmaster; nobody else ever listens to anybody else.

What ptp4l cannot do, and `hitless clock up` can:

- **Time to notice.** A node notices a dead parent after three Announce messages, 0.375 s with these files, and the next node
  only after that. Shorter intervals flap on busy hosts.
- **Announce is not synchronous.** A node goes on to announce a grandmaster that is dead until it notices itself, so after the
  root's death messages about it circulate among backup parents until `maxStepsRemoved` ends them.
- **Two that listen to each other.** Where the backup root and another node are each other's backup parents, both fall silent towards
  each other after the root's death. The first one to speak again may do so after the other has dropped the last Announce it
  heard but before it gives up, and ptp4l then takes the new grandmaster for no change and keeps the dead one. The
  `announceReceiptTimeout` of 2 and 5 at these two ports prevents that; keep them apart if you change them.
- **The old root comes back** and is believed at once: it has the best priority. Keep it down until there is a new plan.
- **No bound.** ptp4l estimates an offset; it does not know by how much it may be wrong.
- **Going back.** A node returns to its parent as soon as it hears it again, not when a plan says so.
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{PlanRequest, plan};

    #[test]
    fn of_two_that_are_each_others_backup_parents_the_backup_root_is_the_patient_one() {
        let graph = Graph::new(["a", "b", "c"], [[0, 1], [0, 2], [1, 2]]).unwrap();
        let request = PlanRequest { root: Some(GraphNode(0)), ..PlanRequest::default() };
        let plan = plan(&graph, &request).unwrap();
        let partner = GraphNode(3 - plan.backup_root.0);
        let timeouts = |node| {
            let text = ptp4l_config(&graph, &plan, node, Ptp4lVersion::V3);
            let lines = text.lines().filter_map(|line| line.strip_prefix("announceReceiptTimeout "));
            lines.map(str::to_owned).collect::<Vec<_>>().join(" ")
        };
        let found = [plan.root, plan.backup_root, partner].map(timeouts);
        assert_eq!(found, ["3", "3 5", "3 2"]);
    }

    #[test]
    fn each_node_has_its_parent_its_backup_and_no_other_way_up() {
        let names = ["a", "b", "c", "d"];
        let graph = Graph::new(names, [[0, 1], [0, 2], [1, 2], [1, 3], [2, 3]]).unwrap();
        let request = PlanRequest { root: Some(GraphNode(0)), ..PlanRequest::default() };
        let plan = plan(&graph, &request).unwrap();
        for version in [Ptp4lVersion::V3, Ptp4lVersion::V4] {
            for node in graph.nodes() {
                let text = ptp4l_config(&graph, &plan, node, version);
                let count = |line: &str| text.lines().filter(|found| *found == line).count();
                let up = usize::from(node != plan.root);
                assert_eq!(count("G.8275.portDS.localPriority 1"), up, "{text}");
                assert_eq!(count("G.8275.portDS.localPriority 2"), up, "{text}");
                let others = graph.neighbours(node).len() - 2 * up;
                assert_eq!(count(&format!("{} 1", version.server_only())), others, "{text}");
                let expected = if node == plan.root {
                    1
                } else if node == plan.backup_root {
                    2
                } else {
                    128
                };
                assert_eq!(count(&format!("priority2 {expected}")), 1, "{text}");
            }
        }
    }
}
