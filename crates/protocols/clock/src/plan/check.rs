//! Verifies a plan: every property and every single failure.
//!
//! Works on a plan as its file has it, by other code than the planner's: ways are walked node by node, domains are looked up in
//! their lists of members, loops are followed. What is found is a list of violations; an empty one is the proof.

mod uncovered;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use super::depth::set_backup_depths;
use super::survive::{SingleFailure, Survival};
use super::{ClockPlan, PlanFile, Uplink};
use crate::graph::{DomainId, Graph, GraphNames, GraphNode};

/// Violation of a property, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanViolation {
    /// Name of the property: `form`, `property 1` to `property 7`, `uncovered`, `complete`, `covers_all`, `depth`, `epoch`, or the
    /// failure that is not survived.
    pub what: String,
    /// Description of the violation.
    pub how: String,
}

impl fmt::Display for PlanViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.how)
    }
}

impl PlanFile {
    /// All that is wrong with the plan on this graph. A plan whose form is wrong is not looked at any further.
    pub fn check(&self, names: &GraphNames<'_>) -> Vec<PlanViolation> {
        let mut form = self.check_form(names);
        if !form.is_empty() {
            return form;
        }
        match self.assemble(names) {
            Ok(mut plan) => {
                // Other code below reports errors in the loop.
                if plan.set_ring(names.graph()).is_ok() {
                    set_backup_depths(&mut plan);
                }
                let mut check = PlanCheck::of(names.graph(), &plan);
                check.properties();
                check.uncovered(self.complete);
                check.covers_all(self.covers_all);
                check.figures(self);
                check.failures();
                check.found
            }
            Err(error) => {
                form.push(PlanViolation { what: "form".to_owned(), how: error.problem });
                form
            }
        }
    }

    /// Names, entries that are missing or there twice, and links that there are not.
    fn check_form(&self, names: &GraphNames<'_>) -> Vec<PlanViolation> {
        let graph = names.graph();
        let mut found = Vec::new();
        let mut wrong = |how: String| found.push(PlanViolation { what: "form".to_owned(), how });
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let covered = self.plan.iter().map(|row| (&row.node, [&row.parent, &row.backup]));
        let uncovered = self.uncovered.iter().map(|row| (&row.node, [&row.parent, &None]));
        for (node, uplinks) in covered.chain(uncovered) {
            if !seen.insert(node) {
                wrong(format!("'{node}' is there twice"));
            }
            let Some(here) = names.find(node) else {
                wrong(format!("'{node}' is foreign: no node is called so"));
                continue;
            };
            for to in uplinks.into_iter().flatten() {
                match names.find(to) {
                    None => wrong(format!("'{node}' has a foreign parent or backup parent: no node is called '{to}'")),
                    Some(there) if graph.links_between(here, there).next().is_none() => {
                        wrong(format!("'{node}' is to listen to '{to}', but no link that works joins them"));
                    }
                    Some(_) => (),
                }
            }
        }
        for node in graph.nodes().filter(|node| !graph.is_failed(*node) && !seen.contains(graph.name(*node))) {
            wrong(format!("'{}' is missing", graph.name(node)));
        }
        found
    }
}

struct PlanCheck<'a> {
    graph: &'a Graph,
    plan: &'a ClockPlan,
    /// Domains of each node that is in one, and of each link.
    of_node: HashMap<GraphNode, Vec<DomainId>>,
    of_link: HashMap<u32, Vec<DomainId>>,
    found: Vec<PlanViolation>,
}

impl<'a> PlanCheck<'a> {
    fn of(graph: &'a Graph, plan: &'a ClockPlan) -> Self {
        let mut check = Self { graph, plan, of_node: HashMap::new(), of_link: HashMap::new(), found: Vec::new() };
        for (id, domain) in (0..).map(DomainId).zip(graph.domains()) {
            domain.nodes.iter().for_each(|node| check.of_node.entry(*node).or_default().push(id));
            domain.links.iter().for_each(|link| check.of_link.entry(link.0).or_default().push(id));
        }
        check
    }

    fn name(&self, node: GraphNode) -> &'a str {
        self.graph.name(node)
    }

    fn wrong(&mut self, what: impl fmt::Display, how: String) {
        self.found.push(PlanViolation { what: what.to_string(), how });
    }

    fn holds(&self, domain: DomainId, node: GraphNode) -> bool {
        self.of_node.get(&node).is_some_and(|domains| domains.contains(&domain))
    }

    /// Domains that break a node's way to the root: those of all nodes above it and of all links on the way.
    fn on_way(&self, node: GraphNode) -> BTreeSet<DomainId> {
        let (mut domains, mut here) = (BTreeSet::new(), node);
        while let Some(up) = self.plan.parent[here.index()] {
            domains.extend(self.of_link.get(&up.link.0).into_iter().flatten());
            domains.extend(self.of_node.get(&up.node).into_iter().flatten());
            here = up.node;
        }
        domains
    }

    /// The child of the root whose subtree contains the node.
    fn branch(&self, node: GraphNode) -> GraphNode {
        let mut here = node;
        while let Some(up) = self.plan.parent[here.index()].filter(|up| up.node != self.plan.root) {
            here = up.node;
        }
        here
    }

    fn properties(&mut self) {
        let covered: Vec<GraphNode> =
            self.plan.nodes().filter(|node| self.plan.backup[node.index()].is_some()).collect();
        self.loops(&covered);
        for node in &covered {
            self.ancestors(*node);
            self.domains(*node);
        }
        self.reach(&covered);
        self.roots();
    }

    /// Properties 1, 5 and 7.
    fn loops(&mut self, covered: &[GraphNode]) {
        let mut visited: HashMap<GraphNode, GraphNode> = HashMap::new();
        for start in covered {
            let mut here = *start;
            while let Some(up) = self.plan.backup[here.index()].filter(|_| !visited.contains_key(&here)) {
                visited.insert(here, *start);
                here = up.node;
            }
            let closes = self.plan.backup[here.index()].is_some() && visited.get(&here) == Some(start);
            // Only the walk that closed it reports a loop.
            if closes {
                let next =
                    |node: &GraphNode| self.plan.backup[node.index()].map(|up| up.node).filter(|node| *node != here);
                let ring: Vec<GraphNode> = std::iter::successors(Some(here), next).collect();
                self.ring(&ring);
            }
        }
    }

    fn ring(&mut self, ring: &[GraphNode]) {
        let names: Vec<&str> = ring.iter().map(|node| self.name(*node)).collect();
        let names = names.join(", ");
        let branches: BTreeSet<GraphNode> = ring.iter().map(|node| self.branch(*node)).collect();
        if let (1, Some(branch)) = (branches.len(), branches.first()) {
            let branch = self.name(*branch);
            self.wrong("property 1", format!("the backup edges of {names} form a loop in the subtree of '{branch}'"));
            self.wrong("property 5", format!("the loop {names} visits only the subtree of '{branch}'"));
        }
        if !ring.contains(&self.plan.backup_root) {
            let backup_root = self.name(self.plan.backup_root);
            self.wrong("property 5", format!("the backup root '{backup_root}' is not on the loop {names}"));
        }
        let mut common: Option<BTreeSet<DomainId>> = None;
        for node in ring {
            let mut cuts = self.on_way(*node);
            cuts.retain(|domain| !self.holds(*domain, *node) && !self.holds(*domain, self.plan.root));
            common = Some(common.map_or(cuts.clone(), |common| common.intersection(&cuts).copied().collect()));
        }
        for domain in common.into_iter().flatten() {
            let domain = &self.graph.domain(domain).name;
            self.wrong("property 7", format!("domain '{domain}' spares the root, but cuts off the whole loop {names}"));
        }
    }

    /// Property 2.
    fn ancestors(&mut self, node: GraphNode) {
        let Some(backup) = self.plan.backup[node.index()] else { return };
        let mut here = node;
        while let Some(up) = self.plan.parent[here.index()] {
            here = up.node;
            if here == backup.node {
                let how = format!("the backup parent '{}' of '{}' is its ancestor", self.name(here), self.name(node));
                return self.wrong("property 2", how);
            }
        }
    }

    /// Property 4.
    fn domains(&mut self, node: GraphNode) {
        let Some(backup) = self.plan.backup[node.index()] else { return };
        for domain in self.shared_domains(node, backup) {
            let (domain, node, backup) = (&self.graph.domain(domain).name, self.name(node), self.name(backup.node));
            self.wrong(
                "property 4",
                format!("domain '{domain}' breaks both the way of '{node}' and its backup '{backup}'"),
            );
        }
    }

    /// Domains that would break both a node's way and this backup edge.
    fn shared_domains(&self, node: GraphNode, backup: Uplink) -> Vec<DomainId> {
        let of_backup = self.of_node.get(&backup.node).into_iter().chain(self.of_link.get(&backup.link.0)).flatten();
        let of_backup: BTreeSet<DomainId> = of_backup.copied().filter(|domain| !self.holds(*domain, node)).collect();
        if of_backup.is_empty() { Vec::new() } else { self.on_way(node).intersection(&of_backup).copied().collect() }
    }

    /// Property 3.
    fn reach(&mut self, covered: &[GraphNode]) {
        let mut reached: HashMap<GraphNode, bool> = HashMap::from([(self.plan.backup_root, true)]);
        for start in covered {
            let (mut way, mut here) = (BTreeSet::new(), *start);
            let is_reached = loop {
                match (reached.get(&here), self.plan.backup[here.index()]) {
                    (Some(known), _) => break *known,
                    (None, Some(up)) if way.insert(here) => here = up.node,
                    _ => break false,
                }
            };
            way.into_iter().for_each(|node| {
                reached.insert(node, is_reached);
            });
            if !is_reached {
                let how = format!("'{}' is not reached from the backup root along backup edges", self.name(*start));
                self.wrong("property 3", how);
            }
        }
    }

    /// Properties 5 and 6.
    fn roots(&mut self) {
        let [root, backup_root] = [self.plan.root, self.plan.backup_root];
        if self.plan.parent[backup_root.index()].is_none_or(|up| up.node != root) {
            let how =
                format!("the backup root '{}' is no child of the root '{}'", self.name(backup_root), self.name(root));
            self.wrong("property 5", how);
        }
        for domain in (0..self.graph.domains().len() as u32).map(DomainId) {
            if self.holds(domain, root) && self.holds(domain, backup_root) {
                let name = &self.graph.domain(domain).name;
                self.wrong("property 6", format!("domain '{name}' holds both the root and the backup root"));
            }
        }
    }

    /// Checks the depths and the epoch that the file states.
    fn figures(&mut self, file: &PlanFile) {
        let numbers: BTreeMap<&str, GraphNode> = self.graph.nodes().map(|node| (self.graph.name(node), node)).collect();
        for row in &file.plan {
            let Some(node) = numbers.get(row.node.as_str()) else { continue };
            let says = [Some(row.depth), row.depth_backup];
            let is = [self.plan.depth[node.index()], self.plan.depth_backup[node.index()]];
            for ((says, is), what) in says.into_iter().zip(is).zip(["depth", "depth_backup"]) {
                if let (Some(says), Some(is)) = (says, is)
                    && says != is
                {
                    self.wrong("depth", format!("'{}' is said to have {what} {says}, but has {is}", row.node));
                }
            }
        }
        let epoch = self.plan.digest(self.graph);
        if let Some(says) = file.epoch.filter(|says| *says != epoch) {
            self.wrong("epoch", format!("{says} is the epoch of another plan: expected {epoch}"));
        }
    }

    /// Every single failure.
    fn failures(&mut self) {
        let mut survival = Survival::of(self.graph, self.plan);
        for failure in SingleFailure::all(self.graph, self.plan) {
            let outcome = survival.after(failure);
            if let Some(first) = outcome.stranded.first() {
                let who = match outcome.stranded.len() {
                    1 => format!("'{}' hears nobody", self.name(*first)),
                    many => format!("{many} nodes hear nobody, '{}' for one", self.name(*first)),
                };
                let second =
                    if outcome.second_root { ", and the backup root elects itself while the root lives" } else { "" };
                self.wrong(format_args!("failure {}", failure.describe(self.graph)), format!("{who}{second}"));
            }
        }
    }
}
