//! A parent and a backup parent for every node, such that any single failure is survived (§3.4.2.1).
//!
//! Words: the *primary tree* leads from the root to every node over parents; the *backup graph* leads from the backup root to every
//! node over backup parents. What must hold, for every node v but the root:
//!
//! 1. no loop of backup edges lies inside the subtree of a node other than the root;
//! 2. the backup parent of v is no ancestor of v;
//! 3. v is reached from the backup root along backup edges;
//! 4. a domain that holds something on v's way to the root, and also v's backup parent or backup link, holds v itself;
//! 5. the backup root is a child of the root, on the loop, and the loop visits subtrees of at least two of the root's children;
//! 6. no domain holds both the root and the backup root;
//! 7. no domain that spares the root cuts off the whole loop.
//!
//! The last two are not in the thesis. Without 6 nobody is left to elect itself; without 7 the backup root elects itself while the root
//! lives. A node for which this cannot be had, such as a host with one link, is *uncovered*: it has a parent and no backup parent.
//!
//! | file | what it does |
//! | --- | --- |
//! | `request` | what is asked for, what no plan can be made of, and the choice of the roots |
//! | `tree` | primary trees: grown by breadth, re-hung, with ancestors in two comparisons |
//! | `reserve` | which of the root's children the backup graph gets |
//! | `largest` | Alg. 3 and 4: the largest backup graph of a primary tree, and its loop |
//! | `search` | Alg. 2 and 5: from tree to tree until the backup graph is complete |
//! | `order` | st-numbering: the exact answer without domains, and who is behind whom |
//! | `survive` | what becomes of a plan after each single failure |
//! | `check` | whether a plan holds what it promises, by other code |
//! | `change` | from one plan to another, node by node |
//! | `explain` | why a node has its parents and no others |
//! | `depth` | how deep nodes are, now and after failures, and what ε follows |
//! | `file` | plans as JSON, written and read |
//! | `form` | whether the rows of a file are a tree |

mod change;
mod check;
mod depth;
mod explain;
mod file;
mod form;
mod largest;
mod order;
mod request;
mod reserve;
mod search;
mod survive;
mod tree;

use std::fmt;

use crate::graph::{Graph, GraphLink, GraphNode};

pub use change::{GroupReason, PlanChange, PlanStep, StepGroup, StepKind};
pub use check::PlanViolation;
pub use depth::PlanBounds;
pub use file::{PlanFile, PlanFileError, PlanRow, UncoveredRow};
pub use request::{PlanError, PlanRequest, plan};
pub use survive::{FailureOutcome, SingleFailure, Survival};

/// Neighbour that a node listens to, and the link to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uplink {
    /// The parent, or the backup parent.
    pub node: GraphNode,
    /// The link to it.
    pub link: GraphLink,
}

/// Parents and backup parents of all nodes. Lists have an entry for every node of the graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockPlan {
    /// Node at which waves begin.
    pub root: GraphNode,
    /// Node that elects itself when the root is dead.
    pub backup_root: GraphNode,
    /// The root has none; nor has a node that failed or is cut off.
    pub parent: Vec<Option<Uplink>>,
    /// The root and uncovered nodes have none.
    pub backup: Vec<Option<Uplink>>,
    /// Steps to the root; none of a node that failed or is cut off.
    pub depth: Vec<Option<u32>>,
    /// The most steps after any combination of failures, for nodes with a backup parent.
    pub depth_backup: Vec<Option<u32>>,
    /// The loop of backup edges, from the backup root on: each node's backup parent is the next.
    pub ring: Vec<GraphNode>,
    /// Nodes without a backup parent, in order, and why.
    pub uncovered: Vec<(GraphNode, UncoveredReason)>,
    /// A number that differs between different plans: messages of another plan are not believed.
    pub epoch: u32,
    /// Statistics of the search.
    pub search: SearchSummary,
}

/// Statistics of the search for a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchSummary {
    /// Backup edges that the first primary tree allowed.
    pub first_score: usize,
    /// Changes of the primary tree until the last.
    pub iterations: usize,
    /// Method that gave the answer.
    pub method: PlanMethod,
}

/// Method that gave the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanMethod {
    /// Alg. 2 to 5.
    Search,
    /// An st-numbering of the nodes.
    Order,
}

impl fmt::Display for PlanMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Search => "search",
            Self::Order => "order",
        })
    }
}

/// Words for [`UncoveredReason::NotFound`].
const NOT_FOUND: &str = "none was found that survives every single failure";

/// Reason why a node has no backup parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UncoveredReason {
    /// No path leads to the node; it is not in the primary tree either.
    CutOff,
    /// Every way from the root, or from the backup root, leads through this node.
    BehindNode(GraphNode),
    /// Every way leads through this domain, by its name.
    BehindDomain(String),
    /// A backup parent is possible, but none was found.
    NotFound,
    /// Another reason, as a file states it.
    Other(String),
}

impl UncoveredReason {
    /// True if it is certain that no plan with this root covers the node.
    pub fn is_proof(&self) -> bool {
        matches!(self, Self::CutOff | Self::BehindNode(_) | Self::BehindDomain(_))
    }

    /// Describes the reason in words.
    pub fn describe(&self, graph: &Graph, node: GraphNode) -> String {
        match self {
            Self::CutOff => "cut off: no link that works leads to it".to_owned(),
            Self::BehindNode(_) if graph.neighbours(node).len() == 1 => {
                format!("its only link leads to {}", graph.name(graph.neighbours(node)[0].0))
            }
            Self::BehindNode(gate) => format!("every way to it leads through {}", graph.name(*gate)),
            Self::BehindDomain(domain) => format!("every way to it leads through domain {domain}"),
            Self::NotFound => NOT_FOUND.to_owned(),
            Self::Other(text) => text.clone(),
        }
    }
}

impl ClockPlan {
    /// True if every node that can have a backup parent has one.
    pub fn is_complete(&self) -> bool {
        self.uncovered.iter().all(|(_, reason)| reason.is_proof())
    }

    /// Nodes that are in the primary tree.
    pub fn nodes(&self) -> impl Iterator<Item = GraphNode> + '_ {
        (0..).map(GraphNode).zip(&self.depth).filter(|(_, depth)| depth.is_some()).map(|(node, _)| node)
    }

    /// The largest depth in the primary tree.
    pub fn max_depth(&self) -> u32 {
        self.depth.iter().flatten().copied().max().unwrap_or_default()
    }

    /// The largest depth after any combination of failures.
    pub fn max_depth_backup(&self) -> u32 {
        self.depth_backup.iter().flatten().copied().max().unwrap_or_default()
    }

    /// A digest of who listens to whom, by names: the same plan has the same epoch, wherever it was made.
    pub fn digest(&self, graph: &Graph) -> u32 {
        let name = |node: GraphNode| graph.name_digest(node);
        let uplink = |uplink: Option<Uplink>| {
            uplink.map_or(1, |uplink| mix(name(uplink.node), u64::from(graph.link_number(uplink.link))))
        };
        let node = |node: GraphNode| {
            let [parent, backup] = [self.parent[node.index()], self.backup[node.index()]].map(uplink);
            mix(mix(name(node), parent), backup)
        };
        // A sum, so that the order of the nodes does not matter.
        let sum = self.nodes().map(node).fold(mix(name(self.root), name(self.backup_root)), u64::wrapping_add);
        // Never 0, which a message without a plan may have.
        ((sum >> 32) as u32 ^ sum as u32).max(1)
    }
}

/// Two numbers as one, each bit of which depends on all of theirs.
fn mix(one: u64, other: u64) -> u64 {
    let mut mixed = (one ^ other.rotate_left(29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^= mixed >> 32;
    mixed.wrapping_mul(0xd6e8_feb8_6659_fd93)
}
