//! Plans as JSON: what `hitless clock plan --json` prints, and what every other command reads.
//!
//! A file is read in two steps. [`PlanFile::parse`] wants the form, and that parents form one tree (see `form`);
//! [`PlanFile::resolve`] holds it against a graph: that every name is one of its nodes, that every working node is there, and that
//! links exist. What a plan must fulfil beyond that is for [`PlanFile::check`] to say.

use std::collections::HashMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{ClockPlan, PlanMethod, SearchSummary, UncoveredReason, Uplink};
use crate::graph::{Graph, GraphLink, GraphNames, GraphNode};

/// A plan by names, as it is in a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields are those of the file, described in docs/clock.md")]
pub struct PlanFile {
    pub root: String,
    pub backup_root: String,
    /// A file that does not say claims to be.
    #[serde(default = "complete")]
    pub complete: bool,
    /// True if every node has a backup parent, also those that cannot have one. A file need not say.
    #[serde(default)]
    pub covers_all: Option<bool>,
    #[serde(default)]
    pub nodes: usize,
    #[serde(default)]
    pub links: usize,
    #[serde(default)]
    pub domains: usize,
    #[serde(default)]
    pub max_depth: u32,
    #[serde(default)]
    pub max_depth_backup: u32,
    #[serde(default)]
    pub worst_single_failure_depth: Option<u32>,
    #[serde(default, rename = "loop")]
    pub ring: Vec<String>,
    #[serde(default)]
    pub first_score: usize,
    #[serde(default)]
    pub iterations: usize,
    #[serde(default = "search")]
    pub method: String,
    #[serde(default)]
    pub plan_ms: f64,
    #[serde(default)]
    pub eps_normal_ns: u32,
    #[serde(default)]
    pub eps_failure_ns: u32,
    #[serde(default)]
    pub eps_root_ns: u32,
    /// The plan's epoch. It is computed if the file has none.
    #[serde(default)]
    pub epoch: Option<u32>,
    pub plan: Vec<PlanRow>,
    #[serde(default)]
    pub uncovered: Vec<UncoveredRow>,
}

fn complete() -> bool {
    true
}

fn search() -> String {
    PlanMethod::Search.to_string()
}

/// A node of a plan. The root has only its name and depth 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields are those of the file, described in docs/clock.md")]
pub struct PlanRow {
    pub node: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<String>,
    #[serde(default)]
    pub depth: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth_backup: Option<u32>,
    /// Link to the parent; given only where several lead there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_link: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup_link: Option<String>,
}

/// A node without a backup parent; one that is cut off has no parent either.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields are those of the file, described in docs/clock.md")]
pub struct UncoveredRow {
    pub node: String,
    #[serde(default)]
    pub parent: Option<String>,
    #[serde(default)]
    pub depth: Option<u32>,
    #[serde(default)]
    pub because: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_link: Option<String>,
}

/// Error in a plan's file. The line is that of the node concerned, where there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanFileError {
    /// The first is 1.
    pub line: Option<usize>,
    /// Description of what was expected.
    pub problem: String,
}

impl fmt::Display for PlanFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)
    }
}

impl std::error::Error for PlanFileError {}

impl PlanFile {
    /// Reads the text of a file. Programs that act on a plan may rely on its tree: a root, and one parent for every other node.
    pub fn parse(text: &str) -> Result<Self, PlanFileError> {
        let file = Self::from_json(text)?;
        file.check_tree().map_err(|error| error.located(text))?;
        Ok(file)
    }

    /// Reads the text of a file, whatever its rows say: for [`Self::check`], which lists all its errors.
    pub fn from_json(text: &str) -> Result<Self, PlanFileError> {
        serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(|error| {
            let said = error.to_string();
            let what = said.split(" at line ").next().unwrap_or_default();
            let problem = format!("expected a plan as `hitless clock plan --json` prints it: {what}");
            PlanFileError { line: (error.line() > 0).then(|| error.line()), problem }
        })
    }

    /// The plan that the text of a file has for this graph.
    pub fn read(text: &str, graph: &Graph) -> Result<ClockPlan, PlanFileError> {
        let names = GraphNames::of(graph);
        Self::from_json(text)?.resolve(&names).map_err(|error| error.located(text))
    }

    /// A plan by the names of its graph. What is measured, `plan_ms` and `worst_single_failure_depth`, is for the caller to add.
    pub fn of(plan: &ClockPlan, graph: &Graph) -> Self {
        let bounds = plan.bounds();
        let covered = |node: &GraphNode| *node == plan.root || plan.backup[node.index()].is_some();
        let uncovered = |(node, reason): &(GraphNode, UncoveredReason)| {
            let parent = plan.parent[node.index()];
            UncoveredRow {
                node: graph.name(*node).to_owned(),
                parent: parent.map(|uplink| graph.name(uplink.node).to_owned()),
                depth: plan.depth[node.index()],
                because: reason.describe(graph, *node),
                parent_link: parent.and_then(|uplink| distinguished(graph, uplink)),
            }
        };
        let failed_links = graph.links().filter(|link| graph.is_link_failed(*link)).count();
        let failed_nodes = graph.nodes().filter(|node| graph.is_failed(*node)).count();
        Self {
            root: graph.name(plan.root).to_owned(),
            backup_root: graph.name(plan.backup_root).to_owned(),
            complete: plan.is_complete(),
            covers_all: Some(plan.uncovered.is_empty()),
            nodes: graph.node_count() - failed_nodes,
            links: graph.link_count() - failed_links,
            domains: graph.domains().len(),
            max_depth: plan.max_depth(),
            max_depth_backup: plan.max_depth_backup(),
            worst_single_failure_depth: None,
            ring: plan.ring.iter().map(|node| graph.name(*node).to_owned()).collect(),
            first_score: plan.search.first_score,
            iterations: plan.search.iterations,
            method: plan.search.method.to_string(),
            plan_ms: 0.0,
            eps_normal_ns: bounds.normal_ns,
            eps_failure_ns: bounds.failure_ns,
            eps_root_ns: bounds.root_ns,
            epoch: Some(plan.epoch),
            plan: plan.nodes().filter(covered).map(|node| PlanRow::of(plan, graph, node)).collect(),
            uncovered: plan.uncovered.iter().map(uncovered).collect(),
        }
    }

    /// The plan that it is in a graph.
    pub fn resolve(&self, names: &GraphNames<'_>) -> Result<ClockPlan, PlanFileError> {
        self.check_names(names)?;
        let mut plan = self.assemble(names)?;
        plan.set_ring(names.graph())?;
        super::depth::set_backup_depths(&mut plan);
        Ok(plan)
    }

    /// Assembles a plan without a check of its backup edges.
    pub(super) fn assemble(&self, names: &GraphNames<'_>) -> Result<ClockPlan, PlanFileError> {
        let graph = names.graph();
        let mut plan = self.empty(names)?;
        let mut known = vec![false; graph.node_count()];
        let rows = self.plan.iter().map(|row| (&row.node, &row.parent, &row.parent_link, Some(row)));
        let others = self.uncovered.iter().map(|row| (&row.node, &row.parent, &row.parent_link, None));
        for (name, parent, link, row) in rows.chain(others) {
            let node = working(names, name)?;
            if std::mem::replace(&mut known[node.index()], true) {
                return Err(about(name, "is there twice"));
            }
            let entry = PlanEntry { names, name, node };
            plan.parent[node.index()] = entry.uplink("parent", parent.as_ref(), link.as_ref())?;
            if let Some(row) = row {
                plan.backup[node.index()] = entry.uplink("backup", row.backup.as_ref(), row.backup_link.as_ref())?;
                entry.check_uplinks(row, plan.root)?;
            }
        }
        if let Some(missing) = graph.nodes().find(|node| !known[node.index()] && !graph.is_failed(*node)) {
            return Err(PlanFileError {
                line: None,
                problem: format!("'{}' is missing: is this the plan of another topology?", graph.name(missing)),
            });
        }
        plan.set_depths(graph)?;
        for row in &self.uncovered {
            plan.uncovered.push((working(names, &row.node)?, UncoveredReason::Other(row.because.clone())));
        }
        plan.epoch = self.epoch.unwrap_or_else(|| plan.digest(graph));
        Ok(plan)
    }

    /// Refuses a plan of another topology before its first foreign name is blamed.
    fn check_names(&self, names: &GraphNames<'_>) -> Result<(), PlanFileError> {
        let foreign: Vec<&String> =
            self.plan.iter().map(|row| &row.node).filter(|name| names.find(name).is_none()).collect();
        match foreign.first() {
            Some(first) if foreign.len() * 2 > self.plan.len() => {
                let problem = format!(
                    "{} of its {} nodes are not in this topology, '{first}' first: is this the plan of another one?",
                    foreign.len(),
                    self.plan.len()
                );
                Err(PlanFileError { line: None, problem })
            }
            _ => Ok(()),
        }
    }

    fn empty(&self, names: &GraphNames<'_>) -> Result<ClockPlan, PlanFileError> {
        let count = names.graph().node_count();
        let method = if self.method == PlanMethod::Order.to_string() { PlanMethod::Order } else { PlanMethod::Search };
        Ok(ClockPlan {
            root: working(names, &self.root)?,
            backup_root: working(names, &self.backup_root)?,
            parent: vec![None; count],
            backup: vec![None; count],
            depth: vec![None; count],
            depth_backup: vec![None; count],
            ring: Vec::new(),
            uncovered: Vec::new(),
            epoch: 0,
            search: SearchSummary { first_score: self.first_score, iterations: self.iterations, method },
        })
    }
}

/// The name of the link, if its ends have several.
fn distinguished(graph: &Graph, Uplink { link, .. }: Uplink) -> Option<String> {
    graph.is_parallel(link).then(|| graph.link_name(link).to_string())
}

impl PlanRow {
    fn of(plan: &ClockPlan, graph: &Graph, node: GraphNode) -> Self {
        let [parent, backup] = [plan.parent[node.index()], plan.backup[node.index()]];
        let name = |uplink: Option<Uplink>| uplink.map(|uplink| graph.name(uplink.node).to_owned());
        Self {
            node: graph.name(node).to_owned(),
            parent: name(parent),
            backup: name(backup),
            depth: plan.depth[node.index()].unwrap_or_default(),
            depth_backup: plan.depth_backup[node.index()],
            parent_link: parent.and_then(|uplink| distinguished(graph, uplink)),
            backup_link: backup.and_then(|uplink| distinguished(graph, uplink)),
        }
    }
}

/// A problem with the entry of a node; [`PlanFileError::located`] finds its line.
pub(super) fn about(node: &str, problem: impl fmt::Display) -> PlanFileError {
    PlanFileError { line: None, problem: format!("'{node}' {problem}") }
}

impl PlanFileError {
    /// Adds the line of the entry that the error is about.
    #[must_use]
    pub fn located(self, text: &str) -> Self {
        let name = self.problem.split('\'').nth(1).unwrap_or_default();
        let place =
            |key: &str| text.find(&format!("\"{key}\": \"{name}\"")).or(text.find(&format!("\"{key}\":\"{name}\"")));
        let at = ["node", "root", "backup_root"].into_iter().find_map(place);
        let line = self.line.or(at.map(|at| text[..at].matches('\n').count() + 1));
        Self { line, ..self }
    }
}

fn working(names: &GraphNames<'_>, name: &str) -> Result<GraphNode, PlanFileError> {
    let unknown = |error| about(name, format_args!("is foreign: {error}"));
    let node = names.node(name).map_err(unknown)?;
    if names.graph().is_failed(node) { Err(about(name, "has failed, but the plan has it")) } else { Ok(node) }
}

/// The entry of one node while it is read.
struct PlanEntry<'a> {
    names: &'a GraphNames<'a>,
    name: &'a str,
    node: GraphNode,
}

impl PlanEntry<'_> {
    fn uplink(&self, what: &str, to: Option<&String>, link: Option<&String>) -> Result<Option<Uplink>, PlanFileError> {
        let Some(to) = to else { return Ok(None) };
        let wrong = |problem: String| about(self.name, problem);
        let node = self.names.node(to).map_err(|error| wrong(format!("has a foreign {what}: {error}")))?;
        let links: Vec<GraphLink> = self.names.graph().links_between(self.node, node).collect();
        let link = match (link, &links[..]) {
            (_, []) => return Err(wrong(format!("has '{to}' as its {what}, but no link that works to it"))),
            (None, [only]) => *only,
            (None, several) => {
                let problem = format!("has {} links to its {what} '{to}': expected {what}_link", several.len());
                return Err(wrong(problem));
            }
            (Some(name), links) => match self.names.find_link(name).filter(|link| links.contains(link)) {
                Some(link) => link,
                None => return Err(wrong(format!("has no link '{name}' to its {what} '{to}'"))),
            },
        };
        Ok(Some(Uplink { node, link }))
    }

    fn check_uplinks(&self, row: &PlanRow, root: GraphNode) -> Result<(), PlanFileError> {
        match (self.node == root, &row.parent, &row.backup) {
            (true, None, None) | (false, Some(_), Some(_)) => Ok(()),
            (true, ..) => Err(about(self.name, "is the root, but has a parent or a backup parent")),
            (false, None, _) => Err(about(self.name, "has no parent")),
            (false, _, None) => {
                Err(about(self.name, "has no backup parent: expected it under \"uncovered\", with the reason"))
            }
        }
    }
}

impl ClockPlan {
    /// Depths by the parents; an error if they form a loop.
    fn set_depths(&mut self, graph: &Graph) -> Result<(), PlanFileError> {
        self.depth[self.root.index()] = Some(0);
        for start in graph.nodes() {
            let (mut way, mut here) = (Vec::new(), start);
            let above = loop {
                match (self.depth[here.index()], self.parent[here.index()]) {
                    (Some(depth), _) => break Some(depth),
                    (None, None) => break None,
                    (None, Some(_)) if way.len() > graph.node_count() => {
                        return Err(about(graph.name(start), "does not reach the root: its parents form a loop"));
                    }
                    (None, Some(uplink)) => {
                        way.push(here);
                        here = uplink.node;
                    }
                }
            };
            for (node, depth) in way.into_iter().rev().zip((1..).map(|steps| above.map(|above| above + steps))) {
                self.depth[node.index()] = depth;
            }
        }
        match graph.nodes().find(|node| self.parent[node.index()].is_some() && self.depth[node.index()].is_none()) {
            Some(node) => Err(about(graph.name(node), "does not reach the root by its parents")),
            None => Ok(()),
        }
    }

    /// The loop through the backup root.
    pub(super) fn set_ring(&mut self, graph: &Graph) -> Result<(), PlanFileError> {
        let mut places: HashMap<GraphNode, usize> = HashMap::new();
        let mut here = self.backup_root;
        while places.insert(here, places.len()).is_none() {
            self.ring.push(here);
            match self.backup[here.index()] {
                Some(uplink) => here = uplink.node,
                None => {
                    self.ring.clear();
                    return Err(about(graph.name(here), "has no backup parent, but the backup root needs it"));
                }
            }
        }
        if here == self.backup_root {
            return Ok(());
        }
        self.ring.clear();
        Err(about(graph.name(self.backup_root), "is the backup root, but not on the loop of backup edges"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ring of four: a is the root, b its backup root.
    const RING: &str = r#"{
      "root": "a", "backup_root": "b",
      "plan": [
        { "node": "a", "depth": 0 },
        { "node": "b", "parent": "a", "backup": "c", "depth": 1 },
        { "node": "c", "parent": "d", "backup": "b", "depth": 2 },
        { "node": "d", "parent": "a", "backup": "c", "depth": 1 }
      ]
    }"#;

    fn ring() -> Graph {
        Graph::new(["a", "b", "c", "d"], [[0, 1], [1, 2], [2, 3], [3, 0]]).unwrap()
    }

    fn problem(text: &str) -> (Option<usize>, String) {
        let error = PlanFile::read(text, &ring()).unwrap_err();
        (error.line, error.problem)
    }

    #[test]
    fn a_plan_that_is_written_is_read_again() {
        let graph = ring();
        let plan = PlanFile::read(RING, &graph).unwrap();
        assert_eq!(plan.depth, [0, 1, 2, 1].map(Some));
        assert_eq!(plan.depth_backup, [None, Some(3), Some(2), Some(3)]);
        assert_eq!(plan.ring, [1, 2].map(GraphNode));
        let text = serde_json::to_string_pretty(&PlanFile::of(&plan, &graph)).unwrap();
        assert_eq!(PlanFile::read(&text, &graph).unwrap(), plan);
        assert_eq!(plan.epoch, plan.digest(&graph));
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said_with_its_line() {
        for (from, to, line, says) in [
            ("\"node\": \"c\"", "\"node\": \"x\"", Some(6), "'x' is foreign"),
            ("\"node\": \"c\"", "\"node\": \"b\"", Some(5), "'b' is there twice"),
            ("\"parent\": \"d\"", "\"parent\": \"a\"", Some(6), "no link that works"),
            (
                "\"parent\": \"a\", \"backup\": \"c\", \"depth\": 1 }\n",
                "\"parent\": \"c\", \"backup\": \"c\" }\n",
                Some(6),
                "form a loop",
            ),
            ("\"backup\": \"b\", ", "", Some(6), "under \"uncovered\""),
            ("\"root\": \"a\"", "\"root\": 3", Some(2), "expected a plan"),
            ("\"plan\"", "\"plans\"", Some(9), "missing field `plan`"),
        ] {
            assert!(RING.contains(from), "{from}");
            let (at, problem) = problem(&RING.replace(from, to));
            assert!(problem.contains(says), "{problem}");
            assert_eq!(at, line, "{problem}");
        }
        let other = RING.replace("\"b\"", "\"x\"").replace("\"c\"", "\"y\"").replace("\"d\"", "\"z\"");
        assert!(problem(&other).1.contains("another one?"));
    }

    #[test]
    fn parallel_links_are_named() {
        let graph = Graph::new(["a", "b", "c"], [[0, 1], [1, 0], [1, 2], [2, 0]]).unwrap();
        let text = r#"{ "root": "a", "backup_root": "b", "plan": [ { "node": "a" },
            { "node": "b", "parent": "a", "parent_link": "b--a#2", "backup": "c" }, { "node": "c", "parent": "a", "backup": "b" } ] }"#;
        let plan = PlanFile::read(text, &graph).unwrap();
        assert_eq!(plan.parent[1].unwrap().link, GraphLink(1));
        assert_eq!(PlanFile::of(&plan, &graph).plan[1].parent_link.as_deref(), Some("b--a#2"));
        let without = text.replace("\"parent_link\": \"b--a#2\", ", "");
        assert!(PlanFile::read(&without, &graph).unwrap_err().problem.contains("expected parent_link"));
    }
}
