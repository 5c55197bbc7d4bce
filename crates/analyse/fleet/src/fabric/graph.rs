//! Topology files as graphs for clocks (`clock::graph`): the same CSV and TOML, without levels, with failure domains.
//!
//! A graph need not have tops and ToRs: a ring will do. Domains are `[[domain]]` in TOML, or a CSV of their own:
//!
//! ```text
//! domain,member
//! duct3,leaf0--spine0
//! duct3,spine1
//! ```
//!
//! A member is a node or a link. Links that corrupt are named as monitors and `fleet plan` name them; what has failed by names of nodes,
//! links and domains, one in each line.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::Path;

use bus::{Condition, Message, OrderKind, PortId};
use clock::graph::{DomainId, FailureDomain, Graph, GraphLink, GraphNames, GraphNode};

use super::file::{FileDraft, csv};
use super::table::{FileError, LineError, TextTable, read, unknown};
use super::toml::{DomainEntry, TomlTopology, read_domains, read_with_domains};
use super::{Fabric, FabricError};
use crate::corrupting::messages;

impl From<&Fabric> for Graph {
    /// Nodes and links keep their numbers.
    fn from(fabric: &Fabric) -> Self {
        let names = fabric.switches().iter().map(|switch| &switch.name);
        let links = fabric.links().iter().map(|link| [link.lower.0, link.upper.0]);
        let ports = fabric.links().iter().map(|link| link.ports.clone()).collect();
        let tops = (0..fabric.switches().len() as u32).map(super::SwitchId).filter(|switch| fabric.is_top(*switch));
        let graph = Self::new(names, links).expect("what is a fabric is a graph");
        graph.with_ports(ports).with_usual_roots(tops.map(|top| GraphNode(top.0)))
    }
}

/// A graph from a file, TOML or CSV as its name says, with the domains of the file.
pub fn load_graph(path: &Path) -> Result<Graph, FileError> {
    let (file, text) = read(path)?;
    let parsed = match path.extension().and_then(|extension| extension.to_str()) {
        Some("csv") => csv(&text).and_then(|draft| graph(&draft)),
        Some("toml") => from_toml(&text),
        _ => {
            let problem = "expected a file whose name ends in .toml or .csv".to_owned();
            return Err(FileError { file, line: None, problem });
        }
    };
    parsed.map_err(|wrong| wrong.in_file(&file))
}

fn from_toml(text: &str) -> Result<Graph, LineError> {
    let (topology, domains) = read_with_domains(text)?;
    let graph = match topology {
        TomlTopology::Known(fabric) => Graph::from(&fabric),
        TomlTopology::Jupiter(hosts) => Graph::jupiter(hosts).map_err(|error| LineError::new(1, error))?,
        TomlTopology::Listed(draft) => graph(&draft)?,
    };
    with_domains(graph, domains)
}

/// Builds the graph of a file, in which all nodes must be connected: a line may be missing.
fn graph(draft: &FileDraft) -> Result<Graph, LineError> {
    if draft.wires.is_empty() {
        return Err(LineError::new(1, FabricError::NoLinks));
    }
    check_duplicates(draft)?;
    let names = draft.nodes.iter().map(|node| &node.name);
    let links = draft.wires.iter().map(|wire| [wire.lower.0, wire.upper.0]);
    let ports = draft.wires.iter().map(|wire| wire.ports.clone()).collect();
    let graph = Graph::new(names, links).map_err(|error| {
        use clock::graph::GraphError::{BadName, DuplicateName, NoSuchNode, SelfLoop};
        let line = match &error {
            SelfLoop { link, .. } | NoSuchNode { link, .. } => draft.wire_lines[*link],
            BadName(name) | DuplicateName(name) => {
                draft.nodes.iter().position(|node| node.name == *name).map_or(1, |place| draft.node_lines[place])
            }
            _ => 1,
        };
        LineError::new(line, error)
    })?;
    check_whole(&graph, draft)?;
    Ok(graph.with_ports(ports))
}

fn check_duplicates(draft: &FileDraft) -> Result<(), LineError> {
    let mut between: HashMap<(u32, u32), Vec<usize>> = HashMap::new();
    let mut taken: HashMap<(u32, &str), usize> = HashMap::new();
    for (number, wire) in draft.wires.iter().enumerate() {
        let pair = (wire.lower.0.min(wire.upper.0), wire.lower.0.max(wire.upper.0));
        let line = draft.wire_lines[number];
        let earlier = between.entry(pair).or_default();
        let is_same = |other: &&usize| wire.ports.is_none() || draft.wires[**other].ports.is_none();
        if let Some(first) = earlier.iter().find(is_same) {
            let [lower, upper] = [wire.lower, wire.upper].map(|end| &draft.nodes[end.index()].name);
            let error = FabricError::DuplicateLink { wire: number, first: *first, name: format!("{lower}--{upper}") };
            return Err(LineError::new(line, format_args!("{error} (line {})", draft.wire_lines[*first])));
        }
        earlier.push(number);
        for (end, port) in [wire.lower, wire.upper].into_iter().zip(wire.ports.iter().flatten()) {
            if let Some(first) = taken.insert((end.0, port), number) {
                let port = format!("{}/{port}", draft.nodes[end.index()].name);
                let error = FabricError::PortTwice { wire: number, first, port };
                return Err(LineError::new(line, format_args!("{error} (line {})", draft.wire_lines[first])));
            }
        }
    }
    Ok(())
}

fn check_whole(graph: &Graph, draft: &FileDraft) -> Result<(), LineError> {
    let mut reached = vec![false; graph.node_count()];
    reached[0] = true;
    let mut open = vec![GraphNode(0)];
    while let Some(node) = open.pop() {
        for (there, _) in graph.neighbours(node) {
            if !std::mem::replace(&mut reached[there.index()], true) {
                open.push(*there);
            }
        }
    }
    match reached.iter().position(|reached| !reached) {
        Some(lonely) => {
            let [name, first] = [lonely, 0].map(|place| graph.name(GraphNode(place as u32)));
            let problem = format!("'{name}' is disconnected: no links lead from it to '{first}'");
            Err(LineError { line: draft.node_lines[lonely], problem })
        }
        None => Ok(()),
    }
}

/// The graph with the domains of a file instead of its own.
pub fn load_domains(path: &Path, graph: Graph) -> Result<Graph, FileError> {
    let (file, text) = read(path)?;
    let is_toml = path.extension().is_some_and(|extension| extension == "toml");
    let entries = if is_toml { read_domains(&text) } else { csv_domains(&text) };
    entries.and_then(|entries| with_domains(graph, entries)).map_err(|wrong| wrong.in_file(&file))
}

fn csv_domains(text: &str) -> Result<Vec<DomainEntry>, LineError> {
    let table = TextTable::parse(text, &["domain", "member"], 2)?;
    let mut entries: Vec<DomainEntry> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for row in table.rows() {
        let cell = |column, what| table.cell(row, column).ok_or_else(|| LineError::new(row.line, what));
        let (domain, member) = (cell(0, "no domain")?, cell(1, "no member")?);
        let place = *places.entry(domain).or_insert_with(|| {
            entries.push(DomainEntry { name: domain.to_owned(), members: Vec::new() });
            entries.len() - 1
        });
        entries[place].members.push((member.to_owned(), row.line));
    }
    Ok(entries)
}

fn with_domains(graph: Graph, entries: Vec<DomainEntry>) -> Result<Graph, LineError> {
    let names = GraphNames::of(&graph);
    let mut domains = Vec::new();
    let first_line = |entry: &DomainEntry| entry.members.first().map_or(1, |(_, line)| *line);
    let lines: Vec<(String, usize)> = entries.iter().map(|entry| (entry.name.clone(), first_line(entry))).collect();
    for entry in entries {
        let mut domain = FailureDomain { name: entry.name, ..FailureDomain::default() };
        for (member, line) in &entry.members {
            if !domain.add(member, &names) {
                let is_link = member.contains("--");
                let unknown = if is_link { names.link(member).err() } else { names.node(member).err() };
                let unknown = unknown.map(|error| error.to_string()).unwrap_or_default();
                return Err(LineError::new(*line, format_args!("domain '{}': {unknown}", domain.name)));
            }
        }
        domains.push(domain);
    }
    graph.clone().with_domains(domains).map_err(|error| {
        let text = error.to_string();
        let line = lines.iter().find(|(name, _)| text.contains(&format!("'{name}'"))).map_or(1, |(_, line)| *line);
        LineError { line, problem: text }
    })
}

/// Faults of a graph, from a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GraphFaults {
    /// Links that corrupt.
    pub corrupting: Vec<GraphLink>,
    /// Links, nodes and domains that are out of service.
    pub links: Vec<GraphLink>,
    pub nodes: Vec<GraphNode>,
    pub domains: Vec<DomainId>,
}

impl GraphFaults {
    /// Takes out of the graph what is out of service.
    pub fn fail(&self, graph: &mut Graph) {
        self.domains.iter().for_each(|domain| graph.fail_domain(*domain));
        self.nodes.iter().for_each(|node| graph.fail_node(*node));
        self.links.iter().for_each(|link| graph.fail_link(*link));
    }
}

/// Reads faults from a file: messages of monitors, a CSV of link, loss and state, or names, one in each line. Names are
/// those of links that corrupt, or, if `failed`, of what has failed.
pub fn load_faults(path: &Path, graph: &Graph, failed: bool) -> Result<GraphFaults, FileError> {
    let (file, text) = read(path)?;
    let names = GraphNames::of(graph);
    let content = text.trim_start_matches('\u{feff}').trim_start();
    let first = content.lines().find(|line| !line.trim().is_empty() && !line.starts_with('#')).unwrap_or_default();
    let faults = if content.starts_with(['{', '[']) {
        from_messages(&text, &names)
    } else if first.split(',').any(|cell| cell.trim() == "link") {
        from_csv(&text, &names)
    } else {
        from_names(&text, &names, failed)
    };
    faults.map_err(|wrong| wrong.in_file(&file))
}

fn from_csv(text: &str, names: &GraphNames<'_>) -> Result<GraphFaults, LineError> {
    let mut faults = GraphFaults::default();
    let table = TextTable::parse(text, &["link", "loss", "state"], 1)?;
    for row in table.rows() {
        let name = table.cell(row, 0).ok_or_else(|| LineError::new(row.line, "no link"))?;
        let link = names.link(name).map_err(|unknown| LineError::new(row.line, unknown))?;
        match table.cell(row, 2).unwrap_or("corrupting") {
            "corrupting" | "protected" => faults.corrupting.push(link),
            "disabled" => faults.links.push(link),
            state => {
                let known = ["corrupting", "protected", "disabled"];
                return Err(LineError::new(row.line, unknown("state", state, &known)));
            }
        }
    }
    Ok(faults)
}

fn from_messages(text: &str, names: &GraphNames<'_>) -> Result<GraphFaults, LineError> {
    // The latest report and the latest order of each port.
    let mut corrupting: BTreeMap<PortId, ((u64, u64), bool)> = BTreeMap::new();
    let mut disabled: BTreeMap<PortId, bool> = BTreeMap::new();
    let mut links: BTreeMap<PortId, GraphLink> = BTreeMap::new();
    let mut orders = Vec::new();
    for (line, message) in messages(text)? {
        match message {
            Message::Port(state) => {
                let link = link_of(names, &state.id, state.peer.as_ref());
                links.insert(state.id.clone(), link.map_err(|problem| LineError { line, problem })?);
                let version = (state.life, state.number);
                let entry = corrupting.entry(state.id).or_default();
                if version >= entry.0 {
                    *entry = (version, state.condition == Condition::Corrupting);
                }
            }
            Message::Order(order) => orders.push((line, order)),
        }
    }
    orders.sort_by_key(|(_, order)| order.at);
    for (line, order) in orders {
        if !links.contains_key(&order.id) {
            let link = link_of(names, &order.id, None).map_err(|problem| LineError { line, problem })?;
            links.insert(order.id.clone(), link);
        }
        disabled.insert(order.id, order.kind == OrderKind::Disable);
    }
    let of = |ports: Vec<&PortId>| -> BTreeSet<GraphLink> { ports.into_iter().map(|port| links[port]).collect() };
    let corrupting = of(corrupting.iter().filter(|(_, (_, is))| *is).map(|(port, _)| port).collect());
    let disabled = of(disabled.iter().filter(|(_, is)| **is).map(|(port, _)| port).collect());
    let corrupting = corrupting.into_iter().collect();
    Ok(GraphFaults { corrupting, links: disabled.into_iter().collect(), ..GraphFaults::default() })
}

/// The link at a port: by its name, or as the only one between the hosts at its ends.
fn link_of(names: &GraphNames<'_>, port: &PortId, peer: Option<&PortId>) -> Result<GraphLink, String> {
    let by_port = names.find_link(&port.to_string());
    let by_peer = || names.find_link(&format!("{}--{}", port.host, peer?.host));
    by_port.or_else(by_peer).ok_or_else(|| match names.node(&port.host) {
        Err(unknown) => unknown.to_string(),
        Ok(_) => {
            format!("no link is known at port {port}: expected its ports in the topology, or a peer in the message")
        }
    })
}

fn from_names(text: &str, names: &GraphNames<'_>, failed: bool) -> Result<GraphFaults, LineError> {
    let mut faults = GraphFaults::default();
    let lines = text.trim_start_matches('\u{feff}').lines().map(str::trim).enumerate();
    for (line, name) in lines.filter(|(_, name)| !name.is_empty() && !name.starts_with('#')) {
        let wrong = |unknown: &dyn std::fmt::Display| LineError::new(line + 1, unknown);
        let plain = ["node:", "link:"].into_iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
        if !failed {
            faults.corrupting.push(names.link(plain).map_err(|unknown| wrong(&unknown))?);
        } else if let Some(domain) = name.strip_prefix("domain:") {
            let known = names.graph().domains().iter().position(|known| known.name == domain);
            let known = known.ok_or_else(|| wrong(&format_args!("no domain is called '{domain}'")))?;
            faults.domains.push(DomainId(known as u32));
        } else if let Some(node) = names.find(plain) {
            faults.nodes.push(node);
        } else {
            let expected = |unknown| wrong(&format_args!("{unknown}, nor a node"));
            faults.links.push(names.link(plain).map_err(expected)?);
        }
    }
    Ok(faults)
}

/// Writes what works of a graph: as CSV, or as TOML with its domains.
pub fn write_graph(graph: &Graph, as_toml: bool, out: &mut impl io::Write) -> io::Result<()> {
    if !as_toml {
        writeln!(out, "lower,upper,lower_port,upper_port,rate")?;
    }
    for link in graph.links().filter(|link| !graph.is_link_failed(*link)) {
        let [lower, upper] = graph.ends(link);
        // Only ports distinguish parallel links.
        let number = || Some(format!("link{}", link.0)).filter(|_| graph.is_parallel(link));
        let [low, up] = [lower, upper].map(|end| graph.port(link, end).map(str::to_owned).or_else(number));
        let (lower, upper) = (graph.name(lower), graph.name(upper));
        match (as_toml, low, up) {
            (false, low, up) => {
                writeln!(out, "{lower},{upper},{},{},", low.unwrap_or_default(), up.unwrap_or_default())?;
            }
            (true, Some(low), Some(up)) => {
                writeln!(out, "[[link]]\nlower = \"{lower}\"\nupper = \"{upper}\"\nports = [\"{low}\", \"{up}\"]\n")?;
            }
            (true, ..) => writeln!(out, "[[link]]\nlower = \"{lower}\"\nupper = \"{upper}\"\n")?,
        }
    }
    for domain in graph.domains().iter().filter(|_| as_toml) {
        let nodes = domain.nodes.iter().filter(|node| !graph.is_failed(**node));
        let nodes = nodes.map(|node| format!("\"{}\"", graph.name(*node)));
        let links = domain.links.iter().filter(|link| !graph.is_link_failed(**link));
        let links = links.map(|link| format!("\"{}\"", graph.link_name(*link)));
        let members: Vec<String> = nodes.chain(links).collect();
        if !members.is_empty() {
            writeln!(out, "[[domain]]\nname = \"{}\"\nmembers = [{}]\n", domain.name, members.join(", "))?;
        }
    }
    Ok(())
}
