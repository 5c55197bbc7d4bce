//! The topology files of HPCC's authors (`simulation/mix/fat.txt` of their ns-3 simulator).
//!
//! ```text
//! 5 2 4                       nodes, switches, links
//! 3 4                         which nodes are switches
//! 0 3 100Gbps 1000ns 0.0      two nodes, rate, delay, share of packets lost in either direction
//! 1 3 100Gbps 1000ns 0.0
//! 2 4 100Gbps 1000ns 0.0
//! 3 4 400Gbps 1us 0.0
//! ```
//!
//! Nodes are numbered from 0. Node 12 is called `n12` here, and its number is its [`NodeId`]. Links keep their order.

use std::collections::BTreeMap;

use ::topology::ShapeSize;
use units::{Prob, Rate, Span};

use super::error::check_size;
use super::{NodeId, NodeKind, Topology, TopologyError, TopologyLink, TopologyLinkId, TopologyNode};
use crate::hpcc_ns3::{LineProblem, NumberedLines, number};

/// A topology, and the links of it that lose packets.
#[derive(Clone, Debug, PartialEq)]
pub struct LossyTopology {
    pub topology: Topology,
    /// The share that is lost, in each direction.
    pub losses: BTreeMap<TopologyLinkId, Prob>,
}

/// Numbers of nodes, switches and links that the first line promises.
struct TopologyCounts {
    nodes: u32,
    switches: usize,
    links: usize,
}

impl Topology {
    /// Reads a file of HPCC's authors.
    pub fn parse_hpcc_ns3(text: &str) -> Result<LossyTopology, TopologyError> {
        let blame = |(line, problem): LineProblem| TopologyError::Line { line, problem };
        let mut lines = NumberedLines::new(text);
        let counts = counts(&mut lines).map_err(blame)?;
        let hosts = u128::from(counts.nodes).saturating_sub(counts.switches as u128);
        check_size(ShapeSize { hosts, switches: counts.switches as u128, links: counts.links as u128 })?;
        let nodes = nodes(&mut lines, &counts).map_err(blame)?;
        let mut draft = LinkDraft { nodes: &nodes, links: Vec::new(), losses: BTreeMap::new(), lines: BTreeMap::new() };
        for read in 0..counts.links {
            let (line, fields) = lines.next_of("links", counts.links, read).map_err(blame)?;
            draft.add(line, &fields).map_err(|problem| blame((line, problem)))?;
        }
        lines.end("links", counts.links).map_err(blame)?;
        let LinkDraft { links, losses, .. } = draft;
        Ok(LossyTopology { topology: Topology::new(nodes, links)?, losses })
    }
}

fn counts(lines: &mut NumberedLines<'_>) -> Result<TopologyCounts, LineProblem> {
    let expected = "the numbers of nodes, switches and links, such as 376 56 480";
    let (line, fields) = lines.next().ok_or((1, format!("the file is empty: expected {expected}")))?;
    let wrong = |problem| (line, problem);
    let &[nodes, switches, links] = fields.as_slice() else {
        return Err((line, format!("expected {expected}, found '{}'", fields.join(" "))));
    };
    let counts = TopologyCounts {
        nodes: number(nodes, "how many nodes").map_err(wrong)?,
        switches: number(switches, "how many switches").map_err(wrong)?,
        links: number(links, "how many links").map_err(wrong)?,
    };
    if counts.switches > counts.nodes as usize {
        return Err((line, format!("{switches} switches: expected at most the {nodes} nodes")));
    }
    Ok(counts)
}

/// All nodes, of which the lines name the switches.
fn nodes(lines: &mut NumberedLines<'_>, counts: &TopologyCounts) -> Result<Vec<TopologyNode>, LineProblem> {
    let host = |number| TopologyNode { name: format!("n{number}"), kind: NodeKind::Host };
    let mut nodes: Vec<TopologyNode> = (0..counts.nodes).map(host).collect();
    let mut found = 0;
    let promised = format!("expected {} switches, as the first line says", counts.switches);
    while found < counts.switches {
        let is_link = lines.peek().is_none_or(|(_, fields)| fields.len() == 5 && number::<u32>(fields[2], "").is_err());
        let (line, fields) = lines.next_of("switches", counts.switches, found)?;
        if is_link || fields.len() > counts.switches - found {
            let found = if is_link { found } else { found + fields.len() };
            return Err((line, format!("there are {found} switches: {promised}")));
        }
        for field in fields {
            let node = node(field, &nodes).map_err(|problem| (line, problem))?;
            let kind = &mut nodes[node.index()].kind;
            if *kind == NodeKind::Switch {
                return Err((line, format!("switch {field} is there twice: {promised}")));
            }
            *kind = NodeKind::Switch;
            found += 1;
        }
    }
    Ok(nodes)
}

fn node(field: &str, nodes: &[TopologyNode]) -> Result<NodeId, String> {
    let expected = format!("a node from 0 to {}", nodes.len().saturating_sub(1));
    let number: u32 = number(field, &expected)?;
    if (number as usize) < nodes.len() {
        Ok(NodeId(number))
    } else {
        Err(format!("there is no node {number}: expected {expected}"))
    }
}

/// Links that have been read.
struct LinkDraft<'a> {
    nodes: &'a [TopologyNode],
    links: Vec<TopologyLink>,
    losses: BTreeMap<TopologyLinkId, Prob>,
    /// The line of each pair of nodes, the lower first, and that of each host.
    lines: BTreeMap<(NodeId, Option<NodeId>), usize>,
}

impl LinkDraft<'_> {
    fn add(&mut self, line: usize, fields: &[&str]) -> Result<(), String> {
        let &[a, b, rate, delay, loss] = fields else {
            return Err(format!("expected two nodes, rate, delay and loss, found '{}'", fields.join(" ")));
        };
        let (a, b) = (node(a, self.nodes)?, node(b, self.nodes)?);
        if a == b {
            return Err(format!("node {} is linked to itself", a.0));
        }
        for host in [a, b].into_iter().filter(|end| self.nodes[end.index()].kind == NodeKind::Host) {
            if let Some(before) = self.lines.insert((host, None), line) {
                let problem = format!("host {} has a second link, the first is that of line {before}", host.0);
                return Err(format!("{problem}: expected one; a server with two ports is two hosts here"));
            }
        }
        if let Some(before) = self.lines.insert((a.min(b), Some(a.max(b))), line) {
            return Err(format!("nodes {} and {} are linked in line {before}: expected one link", a.0, b.0));
        }
        let rate: Rate = rate.parse().map_err(|error| format!("rate '{rate}': {error}"))?;
        let delay: Span = delay.parse().map_err(|error| format!("delay '{delay}': {error}"))?;
        if delay > LONGEST_DELAY {
            return Err(format!("delay {delay}: expected at most {LONGEST_DELAY}"));
        }
        let loss: Prob = loss.parse().map_err(|error| format!("loss '{loss}': {error}"))?;
        if !loss.is_zero() {
            self.losses.insert(TopologyLinkId(self.links.len() as u32), loss);
        }
        self.links.push(TopologyLink { a, b, rate, delay });
        Ok(())
    }
}

/// Longest delay of a link; no cable on earth has more.
const LONGEST_DELAY: Span = Span::from_ms(1_000);

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "5 2 4\n3 4\n0 3 100Gbps 1000ns 0.000000\n1 3 100Gbps 0.001ms 0\n4 2 100Gbps 1us 0\n3 4 400Gbps \
                        1us 0.01\n";

    fn refusal(text: &str) -> String {
        Topology::parse_hpcc_ns3(text).unwrap_err().to_string()
    }

    #[test]
    fn a_file_becomes_a_topology_whose_nodes_keep_their_numbers() {
        let LossyTopology { topology, losses } = Topology::parse_hpcc_ns3(FILE).unwrap();
        let names: Vec<&str> = topology.nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["n0", "n1", "n2", "n3", "n4"]);
        assert_eq!(topology.switches().collect::<Vec<_>>(), [NodeId(3), NodeId(4)]);
        let link =
            |a, b, gbps| TopologyLink { a: NodeId(a), b: NodeId(b), rate: Rate::gbps(gbps), delay: Span::from_us(1) };
        assert_eq!(topology.links, [link(0, 3, 100), link(1, 3, 100), link(4, 2, 100), link(3, 4, 400)]);
        assert_eq!(losses, BTreeMap::from([(TopologyLinkId(3), Prob::literal(0.01))]));
    }

    #[test]
    fn a_sample_with_a_legend_may_hold_more_links_than_it_counts() {
        let spare = "1 2 25Gbps 0.001ms 0\r\n\r\nFirst line: total node #, switch node #, link #\r\nsrc0 dst0 rate\r\n";
        let text = format!("3 1 2\r\n0\r\n0 1 100Gbps 0.001ms 0\r\n0 2 100Gbps 0.001ms 0\r\n{spare}");
        assert_eq!(Topology::parse_hpcc_ns3(&text).unwrap().topology.links.len(), 2);
        let without = text.replace("First line:", "Legend:");
        assert_eq!(refusal(&without), "line 5: there are more than 2 links: expected 2, as the first line says");
    }

    #[test]
    fn a_wrong_count_is_named_with_its_line() {
        assert_eq!(
            refusal(""),
            "line 1: the file is empty: expected the numbers of nodes, switches and links, such as 376 56 480"
        );
        assert!(refusal("5 2\n").starts_with("line 1: expected the numbers of nodes, switches and links"));
        assert_eq!(refusal("5 x 4\n"), "line 1: 'x': expected how many switches");
        assert_eq!(refusal("5 6 4\n"), "line 1: 6 switches: expected at most the 5 nodes");
        let more = FILE.replace("5 2 4", "5 2 5");
        assert_eq!(refusal(&more), "line 6: the file ends after 4 links: expected 5, as its first line says");
        let fewer = FILE.replace("5 2 4", "5 2 3");
        assert_eq!(refusal(&fewer), "line 6: there are more than 3 links: expected 3, as the first line says");
        let switches = FILE.replace("5 2 4", "5 3 4");
        assert_eq!(refusal(&switches), "line 3: there are 2 switches: expected 3 switches, as the first line says");
        let switches = FILE.replace("5 2 4", "5 1 4");
        assert_eq!(refusal(&switches), "line 2: there are 2 switches: expected 1 switches, as the first line says");
        assert!(refusal("4000000000 1 1\n").contains("expected at most 100000"));
    }

    #[test]
    fn what_is_wrong_with_a_node_or_link_is_named_with_its_line() {
        let changed = |from: &str, to: &str| refusal(&FILE.replace(from, to));
        assert_eq!(changed("\n3 4\n", "\n3 9\n"), "line 2: there is no node 9: expected a node from 0 to 4");
        assert_eq!(
            changed("\n3 4\n", "\n3 3\n"),
            "line 2: switch 3 is there twice: expected 2 switches, as the first line says"
        );
        assert_eq!(changed("1 3 100", "1 7 100"), "line 4: there is no node 7: expected a node from 0 to 4");
        assert_eq!(changed("1 3 100", "h1 3 100"), "line 4: 'h1': expected a node from 0 to 4");
        assert_eq!(changed("1 3 100", "3 3 100"), "line 4: node 3 is linked to itself");
        assert!(
            changed("1 3 100", "0 4 100").starts_with("line 4: host 0 has a second link, the first is that of line 3")
        );
        assert_eq!(
            changed("100Gbps 1000ns", "fast 1000ns"),
            "line 3: rate 'fast': expected a rate between 1M and 10T, such as 25G, 100G or 1.6T"
        );
        assert!(changed("1000ns", "1000").starts_with("line 3: delay '1000': expected a time"));
        assert!(changed("0.000000", "2").starts_with("line 3: loss '2': expected a probability"));
        assert!(changed(" 0.000000", "").starts_with("line 3: expected two nodes, rate, delay and loss"));
        let twice = "4 2 3\n2 3\n0 2 100Gbps 1us 0\n2 3 100Gbps 1us 0\n3 2 100Gbps 1us 0\n";
        assert_eq!(refusal(twice), "line 5: nodes 3 and 2 are linked in line 4: expected one link");
        assert_eq!(refusal("2 1 0\n1\n"), "host 'n0' has 0 links: expected exactly one");
    }
}
