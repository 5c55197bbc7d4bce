//! Requests for a plan, reasons for which no plan can be made, and the choice of the roots.

use std::fmt;

use super::largest::BackupGraph;
use super::order::NodeBlocks;
use super::reserve::Sides;
use super::search::{Candidate, Search};
use super::tree::{NONE, Tree};
use super::{ClockPlan, PlanMethod, SearchSummary, UncoveredReason, Uplink};
use crate::graph::{DomainId, Graph, GraphLink, GraphNode};

/// Wishes for a plan. The planner chooses everything that is not given.
#[derive(Clone, Debug, Default)]
pub struct PlanRequest {
    /// Node at which waves begin.
    pub root: Option<GraphNode>,
    /// Node that elects itself when the root is dead: a neighbour of the root.
    pub backup_root: Option<GraphNode>,
    /// Links that are used only where nothing else is.
    pub avoid: Vec<GraphLink>,
}

/// Reason why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// The root has failed, or none of its links works.
    RootCutOff(String),
    /// No path joins the two nodes although nothing has failed.
    Disconnected(String, String),
    /// The backup root is not linked to the root.
    NoChild {
        /// The backup root's name.
        backup_root: String,
        /// The root's name.
        root: String,
    },
    /// A domain holds both roots.
    SharedDomain {
        /// The backup root's name.
        backup_root: String,
        /// The root's name.
        root: String,
        /// The domain's name.
        domain: String,
    },
    /// Each of the root's children shares a domain with the root; the domain is one of these.
    ChildrenInDomain {
        /// The root's name.
        root: String,
        /// The domain's name.
        domain: String,
    },
    /// Every child of the root depends on its link to the root to learn that the root lives.
    NoLoop(String),
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RootCutOff(root) => write!(f, "root '{root}' is unreachable: none of its links works"),
            Self::Disconnected(node, root) => {
                write!(f, "'{node}' is disconnected: no links lead from it to '{root}'")
            }
            Self::NoChild { backup_root, root } => {
                write!(f, "backup root '{backup_root}' is no child of the root: no link joins it to '{root}'")
            }
            Self::SharedDomain { backup_root, root, domain } => write!(
                f,
                "root '{root}' and backup root '{backup_root}' are both in domain '{domain}': nobody would be left to elect itself"
            ),
            Self::ChildrenInDomain { root, domain } => write!(
                f,
                "root '{root}' and all its children share a domain, '{domain}' for one, so there is no backup root: choose a root \
                 with a neighbour outside"
            ),
            Self::NoLoop(root) => write!(
                f,
                "no backup root for root '{root}': no second way without it leads to any of its children that survives every single \
                 failure"
            ),
        }
    }
}

impl std::error::Error for PlanError {}

/// Nodes and links that trees are tried for, in sum: a search that stalls ends in a second or so.
const MOST_WORK: usize = 20_000_000;
/// Roots and backup roots that are tried.
const MOST_ROOTS: usize = 4;
/// Largest number of children of which every choice is tried.
const SMALL: usize = 10;
/// Largest number of nodes for which a second division of the root's children is tried for its depth.
const MEDIUM: usize = 4_096;

/// A plan for the nodes that work.
pub fn plan(graph: &Graph, request: &PlanRequest) -> Result<ClockPlan, PlanError> {
    if let Some(root) = request.root {
        return Planner { graph, request, root }.plan();
    }
    let first = graph.usual_root().map_or_else(|| centres(graph), |root| vec![root]);
    let found = best_of(graph, request, &first);
    match found {
        // The error would be the same for every root.
        Err(PlanError::Disconnected(..)) | Ok(_) => found,
        Err(error) => {
            let most = (MOST_WORK / (graph.node_count() + 2 * graph.link_count())).max(32);
            let others = other_roots(graph, &first);
            best_of(graph, request, &others[..others.len().min(most)]).map_err(|_| error)
        }
    }
}

/// The best plan of these roots. A complete one ends it, and so do enough others.
fn best_of(graph: &Graph, request: &PlanRequest, roots: &[GraphNode]) -> Result<ClockPlan, PlanError> {
    let mut best: Option<ClockPlan> = None;
    let (mut count, mut failed) = (0, None);
    for root in roots {
        match (Planner { graph, request, root: *root }).plan() {
            Ok(found) => {
                count += 1;
                let is_last = found.is_complete() || count == MOST_ROOTS;
                if best.as_ref().is_none_or(|best| found.uncovered.len() < best.uncovered.len()) {
                    best = Some(found);
                }
                if is_last {
                    break;
                }
            }
            Err(error) => failed = Some(error),
        }
    }
    let unreachable =
        || PlanError::RootCutOff(roots.first().map(|root| graph.name(*root).to_owned()).unwrap_or_default());
    best.ok_or_else(|| failed.unwrap_or_else(unreachable))
}

/// All other nodes that may be a root: on a cycle, since some child must learn over a second way that the root lives. Those near the
/// first of the roots that were tried come first.
fn other_roots(graph: &Graph, tried: &[GraphNode]) -> Vec<GraphNode> {
    let (mut is_reached, mut is_root) = (vec![false; graph.node_count()], vec![false; graph.node_count()]);
    for node in graph.nodes() {
        if let Some((neighbour, _)) = graph.neighbours(node).first().filter(|_| !is_reached[node.index()]) {
            let blocks = NodeBlocks::of(graph, node, *neighbour);
            blocks.reached().iter().for_each(|node| is_reached[node.index()] = true);
            blocks.on_cycles().for_each(|node| is_root[node.index()] = true);
        }
    }
    tried.iter().for_each(|root| is_root[root.index()] = false);
    let near = Tree::grow(graph, tried[0], &[], &[]).order;
    let mut take = |node: &GraphNode| std::mem::take(&mut is_root[node.index()]);
    let mut others: Vec<GraphNode> = near.into_iter().filter(&mut take).collect();
    others.extend(graph.nodes().filter(&mut take));
    others
}

/// Nodes from which no other is far, best first: those in the middle of a longest shortest way.
fn centres(graph: &Graph) -> Vec<GraphNode> {
    let widest = graph.nodes().max_by_key(|node| (graph.neighbours(*node).len(), std::cmp::Reverse(*node)));
    let start = widest.unwrap_or(GraphNode(0));
    let farthest = |from| Tree::grow(graph, from, &[], &[]);
    let one = farthest(start).order.last().copied().unwrap_or(start);
    let tree = farthest(one);
    let mut middle = tree.order.last().copied().unwrap_or(start);
    for _ in 0..tree.depth[middle.index()] / 2 {
        middle = GraphNode(tree.parent[middle.index()].0);
    }
    let mut found = vec![middle, start];
    let beside = graph.neighbours(middle).iter().map(|(there, _)| *there);
    found.extend(beside.filter(|node| *node != start));
    found.dedup();
    found.truncate(MOST_ROOTS);
    found
}

/// A plan for one root.
struct Planner<'a> {
    graph: &'a Graph,
    request: &'a PlanRequest,
    root: GraphNode,
}

/// The best so far.
struct Answer {
    candidate: Candidate,
    backup_root: GraphNode,
    summary: SearchSummary,
    /// Known if somebody had to be left out.
    blocks: Option<NodeBlocks>,
    missing: usize,
}

impl Planner<'_> {
    fn name(&self, node: GraphNode) -> String {
        self.graph.name(node).to_owned()
    }

    fn plan(&self) -> Result<ClockPlan, PlanError> {
        if self.graph.neighbours(self.root).is_empty() {
            return Err(PlanError::RootCutOff(self.name(self.root)));
        }
        let sides = Sides::of(self.graph, self.root);
        let is_small = self.graph.node_count() <= SMALL;
        let mut best: Option<Answer> = None;
        let mut summary = None;
        for backup_root in self.backup_roots(&sides)?.into_iter().take(if is_small { SMALL } else { MOST_ROOTS }) {
            let answer = self.answer(&sides, backup_root, is_small)?;
            let (first, iterations) = summary.unwrap_or((answer.summary.first_score, 0));
            summary = Some((first, iterations + answer.summary.iterations));
            let is_better = best.as_ref().is_none_or(|best| answer.candidate.cost() < best.candidate.cost());
            if is_better && answer.candidate.backup.score > 0 {
                best = Some(answer);
            }
            if best.as_ref().is_some_and(|best| best.missing == 0) {
                break;
            }
        }
        let mut best = best.ok_or_else(|| PlanError::NoLoop(self.name(self.root)))?;
        (best.summary.first_score, best.summary.iterations) = summary.unwrap_or_default();
        Ok(self.finish(best))
    }

    /// Children that may become the root, best first.
    fn backup_roots(&self, sides: &Sides) -> Result<Vec<GraphNode>, PlanError> {
        if let Some(backup_root) = self.request.backup_root {
            if !sides.children().contains(&backup_root) {
                return Err(PlanError::NoChild { backup_root: self.name(backup_root), root: self.name(self.root) });
            }
            return match self.shared_domain(backup_root) {
                Some(domain) => Err(PlanError::SharedDomain {
                    backup_root: self.name(backup_root),
                    root: self.name(self.root),
                    domain: self.graph.domain(domain).name.clone(),
                }),
                None => Ok(vec![backup_root]),
            };
        }
        let is_avoided = |child: GraphNode| {
            let mut links = self.graph.links_between(self.root, child);
            !self.request.avoid.is_empty() && links.all(|link| self.request.avoid.contains(&link))
        };
        let mut children: Vec<GraphNode> = sides.children().to_vec();
        children.retain(|child| self.shared_domain(*child).is_none());
        let Some(first) = sides.children().first().filter(|_| children.is_empty()) else {
            let degree = |child: GraphNode| self.graph.neighbours(child).len();
            children.sort_by_key(|child| {
                (is_avoided(*child), !sides.is_second(*child), std::cmp::Reverse(degree(*child)), *child)
            });
            return Ok(children);
        };
        let domain = self.shared_domain(*first).map(|domain| self.graph.domain(domain).name.clone());
        Err(PlanError::ChildrenInDomain { root: self.name(self.root), domain: domain.unwrap_or_default() })
    }

    /// A domain that holds the root and this node.
    fn shared_domain(&self, node: GraphNode) -> Option<DomainId> {
        let [own, roots] = [node, self.root].map(|node| self.graph.domain_set(self.graph.domains_of(node)));
        own.iter().find(|domain| roots.contains(domain)).copied()
    }

    fn answer(&self, sides: &Sides, backup_root: GraphNode, is_small: bool) -> Result<Answer, PlanError> {
        let Self { graph, request, root } = *self;
        let work = graph.node_count() + 2 * graph.link_count();
        let search = Search { graph, backup_root, avoid: &request.avoid, budget: (MOST_WORK / work).max(32) };
        let held = sides.held(backup_root);
        let first = search.judge(Tree::grow(graph, root, &held, &request.avoid));
        if first.tree.order.len() < graph.node_count() {
            self.check_connected(&first.tree)?;
        }
        let mut answer = Answer {
            summary: SearchSummary { first_score: first.backup.score, iterations: 0, method: PlanMethod::Search },
            missing: first.tree.order.len() - 1 - first.backup.score,
            candidate: first,
            backup_root,
            blocks: None,
        };
        if held.len() > 1 && graph.node_count() <= MEDIUM {
            let other = search.judge(Tree::grow(graph, root, &[backup_root], &request.avoid));
            answer.take(other, 0, PlanMethod::Search);
        }
        let nodes = &answer.candidate.tree.order;
        let lonely = nodes.iter().filter(|node| answer.is_missing(**node) && self.only_neighbour(**node).is_some());
        if answer.missing > 0 && lonely.count() == answer.missing {
            answer.missing = 0;
        }
        if answer.missing > 0 {
            self.improve(&search, &mut answer, is_small);
        }
        Ok(answer)
    }

    /// The one node that all links of a node lead to, as those of a host with one link: nobody can be behind another more plainly.
    fn only_neighbour(&self, node: GraphNode) -> Option<GraphNode> {
        let neighbours = self.graph.neighbours(node);
        let (first, _) = neighbours.first()?;
        (node != self.root && neighbours.iter().all(|(there, _)| there == first)).then_some(*first)
    }

    /// Combines the search with st-numbering, which decides where the search stalls.
    fn improve(&self, search: &Search<'_>, answer: &mut Answer, is_small: bool) {
        let blocks = NodeBlocks::of(self.graph, self.root, answer.backup_root);
        let nodes = &answer.candidate.tree.order;
        let behind = nodes.iter().filter(|node| blocks.gate(**node).is_some()).count();
        let target = nodes.len() - 1 - behind;
        answer.missing -= behind;
        if answer.missing > 0 {
            let (found, iterations) = search.run(answer.candidate.tree.clone(), target);
            answer.take(found, iterations, PlanMethod::Search);
        }
        if answer.missing > 0 {
            let ordered = blocks.tree(self.graph);
            let found = search.judge(ordered);
            answer.take(found, 0, PlanMethod::Order);
        }
        if answer.missing > 0 && !self.graph.domains().is_empty() {
            let (found, iterations) = search.run(blocks.tree(self.graph), target);
            answer.take(found, iterations, PlanMethod::Search);
            if answer.missing > 0 && is_small {
                let found = search.exhaust(self.root, target);
                found.into_iter().for_each(|found| answer.take(found, 1, PlanMethod::Search));
            }
        }
        answer.blocks = Some(blocks);
    }

    fn check_connected(&self, tree: &Tree) -> Result<(), PlanError> {
        let graph = self.graph;
        let has_failed =
            graph.links().any(|link| graph.is_link_failed(link)) || graph.nodes().any(|node| graph.is_failed(node));
        match graph.nodes().find(|node| !tree.has(*node)) {
            Some(node) if !has_failed => Err(PlanError::Disconnected(self.name(node), self.name(self.root))),
            _ => Ok(()),
        }
    }

    fn finish(&self, answer: Answer) -> ClockPlan {
        let Candidate { tree, backup: BackupGraph { backup, depth, ring, .. } } = &answer.candidate;
        let uplink = |(node, link): &(u32, u32)| {
            (*node != NONE).then_some(Uplink { node: GraphNode(*node), link: GraphLink(*link) })
        };
        let known = |depth: &u32| (*depth != NONE).then_some(*depth);
        let mut plan = ClockPlan {
            root: self.root,
            backup_root: answer.backup_root,
            parent: tree.parent.iter().map(uplink).collect(),
            backup: backup.iter().map(uplink).collect(),
            depth: tree.depth.iter().map(known).collect(),
            depth_backup: depth.iter().map(known).collect(),
            ring: ring.clone(),
            uncovered: Vec::new(),
            epoch: 0,
            search: answer.summary,
        };
        if answer.candidate.backup.score + 1 < self.graph.node_count() {
            plan.uncovered = self.uncovered(&answer);
        }
        plan.epoch = plan.digest(self.graph);
        plan
    }

    fn uncovered(&self, answer: &Answer) -> Vec<(GraphNode, UncoveredReason)> {
        let Candidate { tree, backup } = &answer.candidate;
        let mut cuts =
            DomainCuts { graph: self.graph, root: self.root, backup_root: answer.backup_root, reached: Vec::new() };
        let is_covered = |node: GraphNode| node == self.root || backup.depth[node.index()] != NONE;
        let nodes = self.graph.nodes().filter(|node| !self.graph.is_failed(*node) && !is_covered(*node));
        let mut reason = |node: GraphNode| {
            if !tree.has(node) {
                return UncoveredReason::CutOff;
            }
            let gate = self.only_neighbour(node).or_else(|| answer.blocks.as_ref()?.gate(node));
            match gate {
                Some(gate) => UncoveredReason::BehindNode(gate),
                None => cuts.reason(tree, node),
            }
        };
        nodes.map(|node| (node, reason(node))).collect()
    }
}

impl Answer {
    fn is_missing(&self, node: GraphNode) -> bool {
        node != self.candidate.tree.root && self.candidate.backup.depth[node.index()] == NONE
    }

    /// Takes a candidate if it is better.
    fn take(&mut self, other: Candidate, iterations: usize, method: PlanMethod) {
        if other.cost() < self.candidate.cost() {
            self.missing -= other.backup.score.saturating_sub(self.candidate.backup.score).min(self.missing);
            self.candidate = other;
            self.summary.iterations += iterations;
            self.summary.method = method;
        }
    }
}

/// Finds domains that are on every way to a node.
struct DomainCuts<'a> {
    graph: &'a Graph,
    root: GraphNode,
    backup_root: GraphNode,
    /// Nodes that are reached without a domain, for each domain that was asked for.
    reached: Vec<(DomainId, Vec<bool>)>,
}

impl DomainCuts<'_> {
    fn reason(&mut self, tree: &Tree, node: GraphNode) -> UncoveredReason {
        for domain in tree.domains_on_way(node) {
            let is_inside = self.graph.domain(*domain).nodes.binary_search(&node).is_ok();
            if !is_inside && !self.is_reached(*domain, node) {
                return UncoveredReason::BehindDomain(self.graph.domain(*domain).name.clone());
            }
        }
        UncoveredReason::NotFound
    }

    fn is_reached(&mut self, domain: DomainId, node: GraphNode) -> bool {
        if let Some((_, reached)) = self.reached.iter().find(|(known, _)| *known == domain) {
            return reached[node.index()];
        }
        let mut rest = self.graph.clone();
        rest.fail_domain(domain);
        let start = if rest.is_failed(self.root) { self.backup_root } else { self.root };
        let tree = Tree::grow(&rest, start, &[], &[]);
        let reached: Vec<bool> = self.graph.nodes().map(|node| tree.has(node)).collect();
        let answer = reached[node.index()];
        self.reached.push((domain, reached));
        answer
    }
}
