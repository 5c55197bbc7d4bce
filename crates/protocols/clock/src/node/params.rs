//! Parameters of a node: its part of a plan, and the intervals and rules of the network.

use units::Span;

use crate::bound::{DriftBound, PerHop};

/// A neighbour, by the number that the node's driver gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Neighbour(pub u32);

/// One node's part of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanPart {
    /// The plan's number, another one for every plan. It decides nothing but how a backup root that has taken over reads a plan.
    pub plan: u32,
    /// Role of the node in the plan.
    pub role: PlannedRole,
}

/// Role that a plan gives a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlannedRole {
    /// The node's clock is the time.
    Root,
    /// The node listens to others.
    Follower {
        /// Parent, and the node's depth while it listens there.
        parent: Upstream,
        /// Backup parent, if the parent falls silent; none if the plan could not cover the node.
        backup: Option<Upstream>,
        /// The node becomes the root if the backup parent is silent as well.
        backup_root: bool,
    },
}

/// A neighbour to listen to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// The neighbour.
    pub neighbour: Neighbour,
    /// The node's depth while it listens there; the plan's bound on it for a backup parent.
    pub depth: u16,
}

/// Source of a node's ε_base.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DepthRule {
    /// The plan's depth, or more if the message has come over more hops: the thesis's way.
    #[default]
    Planned,
    /// The hops that the message has come over.
    Carried,
    /// The uncertainty that the sender states and the width of the interval that was measured: for real networks.
    Measured,
}

/// Treatment of ε when a node turns to its backup parent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeoutRule {
    /// The larger ε_base of both parents counts until the first valid message of the new one.
    #[default]
    KeepLarger,
    /// §3.4.2.2 as written: the backup's ε_base counts at once. Wrong where the node was deeper before than it will be; kept
    /// to show that.
    Thesis,
}

/// Criterion by which a node believes a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ValidityRule {
    /// The node's interval and the sender's overlap: an honest message is never rejected.
    #[default]
    Overlap,
    /// §3.4.1.2 as written: the time is within the node's own ε. Rejects honest messages after a change of parents, where
    /// the errors of both ways have opposite signs.
    OwnBound,
}

/// Parameters that all nodes of a network share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeParams {
    /// Interval between waves, by the root's oscillator.
    pub interval: Span,
    /// Time without a valid message after which a node turns to its backup parent.
    pub first_timeout: Span,
    /// Further time after which the backup root makes itself the root.
    pub second_timeout: Span,
    /// Maximum rate at which oscillators drift apart.
    pub drift: DriftBound,
    /// Contribution of each hop to ε_base.
    pub per_hop: PerHop,
    /// Source of ε_base.
    pub depth: DepthRule,
    /// Rule for ε after a timeout.
    pub timeout: TimeoutRule,
    /// Rule by which messages are believed.
    pub validity: ValidityRule,
}

impl NodeParams {
    /// The testbed's: waves of 90 µs, timeouts of 185 and 180 µs, 200 ppm, 5 ns a hop (§3.6.1); half a microsecond from node
    /// to node, of which the thesis says nothing.
    pub const THESIS: Self = Self {
        interval: Span::from_us(90),
        first_timeout: Span::from_us(185),
        second_timeout: Span::from_us(180),
        drift: DriftBound::THESIS,
        per_hop: PerHop { measurement: Span::from_ns(5), dwell: Span::from_ns(500) },
        depth: DepthRule::Planned,
        timeout: TimeoutRule::KeepLarger,
        validity: ValidityRule::Overlap,
    };

    /// Scales the timeouts to waves of another interval: a node turns after it has missed two waves and a bit.
    pub fn with_interval(self, interval: Span) -> Self {
        let first_timeout = interval * 185 / 90;
        Self { interval, first_timeout, second_timeout: interval * 2, ..self }
    }

    /// ε_base of a depth.
    pub fn base(&self, depth: u16) -> Span {
        self.per_hop.total(self.drift) * u64::from(depth)
    }
}

impl PlanPart {
    /// The backup parent, if there is one.
    pub fn backup(&self) -> Option<Upstream> {
        match self.role {
            PlannedRole::Root => None,
            PlannedRole::Follower { backup, .. } => backup,
        }
    }
}
