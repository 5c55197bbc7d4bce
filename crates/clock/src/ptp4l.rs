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

use std::fmt::Write;

use crate::graph::{Graph, GraphLink, GraphNode};
use crate::plan::ClockPlan;

/// Which linuxptp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ptp4lVersion {
    /// 3.1, as in Debian 12.
    V3,
    /// 4 and later: roles have other names.
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
    for (number, (there, link)) in graph.neighbours(node).iter().enumerate() {
        let is = |uplink: Option<crate::plan::Uplink>| uplink.is_some_and(|uplink| uplink.link == *link);
        let (role, option) = match (is(parent), is(backup)) {
            (true, _) => ("parent", "G.8275.portDS.localPriority 1".to_owned()),
            (_, true) => ("backup parent", "G.8275.portDS.localPriority 2".to_owned()),
            _ => ("may listen to this node", format!("{} 1", version.server_only())),
        };
        let there = graph.name(*there);
        let port = port_name(graph, node, *link, number);
        // Writing to a text cannot fail.
        let _ = write!(text, "\n# {there}: {role}\n[{port}]\n{option}\n");
    }
    text
}

fn port_name(graph: &Graph, node: GraphNode, link: GraphLink, number: usize) -> String {
    graph.port(link, node).map_or_else(|| format!("p{number}"), str::to_owned)
}

/// What to know before these files are used.
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
- **The old root comes back** and is believed at once: it has the best priority. Keep it down until there is a new plan.
- **No bound.** ptp4l estimates an offset; it does not know by how much it may be wrong.
- **Going back.** A node returns to its parent as soon as it hears it again, not when a plan says so.
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{PlanRequest, plan};

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
