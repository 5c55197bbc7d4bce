//! State machine of a node: its reactions to a message, and to the lack of one (§3.4.1, §3.4.2.2, §3.4.3).
//!
//! The root sends a wave every interval, by its own oscillator. Everybody else sends *only because it has just received*, so
//! who hears anything knows that its whole way to the root was alive a moment ago, and who hears nothing turns to its backup
//! parent without asking anybody:
//!
//! ```text
//!              silence for the first timeout,                     silence for the second timeout,
//!              or a message that cannot be true                   if it is the backup root
//!   Following ──────────────────────────────────────▶ Turned ──────────────────────────────────────▶ Root (elected)
//!      ▲                                                │ a message that cannot be true
//!      │ a new plan (from any state)                    ▼
//!      ├───────────────────────────────────────────  Evicted: its own clock is the broken one; it says no time any more
//!      └──▶ Root, if the new plan says so
//! ```
//!
//! A message that *cannot be true* is one whose interval does not meet the node's own, by ε before the update. It is not
//! applied, not sent on, and does not count as heard. Messages of earlier terms, of earlier waves or of waves that cannot
//! have been yet, and of neighbours that the node does not listen to, are counted and otherwise ignored. Which root is believed
//! where there are two, and how that ends with one, is in `terms`.
//!
//! `now` is the node's own oscillator, and everything here is measured by it. ε bounds the difference to the clock of the
//! root *of the node's term*. A change of root moves the time itself, by no more than ε of the new root at that moment;
//! the sum of these travels with the messages ([`ClockNode::handover`]), and nodes allow for it when they hear of a new root.
//!
//! This is no `machine::Machine`: that has up to 256 ports whose wires ask for frames when they are free. Here one message
//! goes to any number of listeners at once, and one that waited would be wrong. The spirit is the same: the driver owns
//! clock and wire, the node acts through [`NodeOut`], and [`ClockNode::deadline`] says when it wants to be called.
//!
//! Invariants: a node sends each wave of a term at most once; while it hears a root it goes back to no earlier one; ε is never smaller than
//! what passed since the last valid message explains; an unsynchronised or evicted node has no ε at all.

mod events;
mod params;
mod terms;

use units::{Span, Time};
use wire::sync::{SyncEpoch, SyncMessage, SyncTerm};

use crate::bound::{ClockInterval, ErrorBound};

pub use events::{NodeNote, NodeOut, NodeState, SyncArrival, SyncRejection};
pub use params::{DepthRule, Neighbour, NodeParams, PlanPart, PlannedRole, TimeoutRule, Upstream, ValidityRule};
use terms::Rivals;

/// Reading of the node's clock at `bound.since`.
#[derive(Clone, Copy, Debug)]
struct TimeAnchor {
    reading: Time,
    bound: ErrorBound,
}

/// One clock of the network.
#[derive(Clone, Debug)]
pub struct ClockNode {
    /// Stands for the node in the terms that it begins.
    identity: u32,
    part: PlanPart,
    state: NodeState,
    anchor: Option<TimeAnchor>,
    /// Time at which the last valid message came, or at which the node began to listen.
    heard: Time,
    next_wave: Time,
    term: SyncTerm,
    line: u32,
    epoch: SyncEpoch,
    wave: u64,
    depth: u16,
    handover: Span,
    /// Knowledge of other roots.
    rivals: Rivals,
    /// The latest time that the node was called at.
    latest: Time,
}

impl ClockNode {
    /// A node that has heard nothing yet; a root whose time begins with what its oscillator shows. No other node has this
    /// `identity`.
    pub fn new(params: &NodeParams, identity: u32, part: PlanPart, now: Time) -> Self {
        let mut node = Self::joining(params, identity, part, now);
        if part.role == PlannedRole::Root {
            node.state = NodeState::Root;
            node.anchor = Some(TimeAnchor { reading: now, bound: ErrorBound { base: Span::ZERO, since: now } });
            node.epoch = SyncEpoch { plan: part.plan, elected: false };
            node.begin_term(false);
        }
        node
    }

    /// A node that has heard nothing yet. A root listens to all its neighbours at first; see [`Self::reign`].
    pub fn joining(params: &NodeParams, identity: u32, part: PlanPart, now: Time) -> Self {
        Self {
            identity,
            part,
            state: NodeState::Following,
            anchor: None,
            heard: now,
            next_wave: now + params.interval,
            term: SyncTerm::default(),
            line: 0,
            epoch: SyncEpoch::default(),
            wave: 0,
            depth: 0,
            handover: Span::ZERO,
            rivals: Rivals::at(now),
            latest: now,
        }
    }

    /// The state.
    pub fn state(&self) -> NodeState {
        self.state
    }

    /// Term of the root whose time the node has, or had last.
    pub fn term(&self) -> SyncTerm {
        self.term
    }

    /// The line of roots that the term is of.
    pub fn line(&self) -> u32 {
        self.line
    }

    /// Epoch of the plan that makes that node the root.
    pub fn epoch(&self) -> SyncEpoch {
        self.epoch
    }

    /// Latest wave that it heard or sent.
    pub fn wave(&self) -> u64 {
        self.wave
    }

    /// Number of hops that this wave had come over.
    pub fn depth(&self) -> u16 {
        self.depth
    }

    /// Maximum by which all changes of root of this line may have moved the time.
    pub fn handover(&self) -> Span {
        self.handover
    }

    /// The part of the plan that it plays.
    pub fn part(&self) -> PlanPart {
        self.part
    }

    /// Neighbour that the node listens to.
    pub fn listens_to(&self) -> Option<Neighbour> {
        self.upstream().map(|upstream| upstream.neighbour)
    }

    /// Reading of its clock; `None` before the first message.
    #[inline]
    pub fn reading(&self, now: Time) -> Option<Time> {
        self.anchor.map(|anchor| anchor.reading + now.since(anchor.bound.since))
    }

    /// ε: by how much its clock may differ from the root's; nothing if that is unbounded.
    #[inline]
    pub fn epsilon(&self, params: &NodeParams, now: Time) -> Option<Span> {
        match self.state {
            NodeState::Root => Some(Span::ZERO),
            NodeState::Evicted => None,
            NodeState::Following | NodeState::Turned => self.anchor.map(|anchor| anchor.bound.at(now, params.drift)),
        }
    }

    /// Interval that contains the root's clock, as far as this node knows.
    pub fn interval(&self, params: &NodeParams, now: Time) -> Option<ClockInterval> {
        Some(ClockInterval::around(self.reading(now)?, self.epsilon(params, now)?))
    }

    /// Time at which the node wants [`Self::on_time`] to be called, unless a message comes before.
    #[inline]
    pub fn deadline(&self, params: &NodeParams) -> Option<Time> {
        let backup = |chosen: fn(Option<Upstream>, bool) -> bool| match self.part.role {
            PlannedRole::Root => false,
            PlannedRole::Follower { backup, backup_root, .. } => chosen(backup, backup_root),
        };
        match self.state {
            NodeState::Root => Some(self.rivals.claim.map_or(self.next_wave, |claim| claim.min(self.next_wave))),
            NodeState::Following if self.part.role == PlannedRole::Root => Some(self.returns(params)),
            NodeState::Following => {
                backup(|backup, backup_root| backup.is_some() || backup_root).then(|| self.heard + params.first_timeout)
            }
            // A node that never heard a root cannot know that it is missing.
            NodeState::Turned => (backup(|_, backup_root| backup_root) && self.anchor.is_some())
                .then(|| self.heard + params.first_timeout + params.second_timeout),
            NodeState::Evicted => None,
        }
    }

    /// Time has passed: does what is due.
    pub fn on_time(&mut self, params: &NodeParams, now: Time, out: &mut impl NodeOut) {
        self.observe(now, out);
        if self.deadline(params).is_none_or(|deadline| now < deadline) {
            return;
        }
        match self.state {
            NodeState::Root if self.rivals.claim.is_some_and(|claim| claim <= now) => self.reign(params, now, out),
            NodeState::Following if self.part.role == PlannedRole::Root => self.reign(params, now, out),
            NodeState::Root => {
                let next = self.next_wave + params.interval;
                self.next_wave = if next > now { next } else { now + params.interval };
                self.send_own_wave(now, out);
            }
            NodeState::Following => self.turn(params, out),
            NodeState::Turned => {
                out.note(NodeNote::Elected);
                self.become_root(params, now, true, out);
            }
            NodeState::Evicted => {}
        }
    }

    /// A message came.
    pub fn on_message(
        &mut self,
        params: &NodeParams,
        now: Time,
        from: Neighbour,
        arrival: &SyncArrival,
        out: &mut impl NodeOut,
    ) {
        self.observe(now, out);
        match self.judge(params, now, from, arrival) {
            Ok(base) => {
                self.give_way(from, out);
                self.apply(now, arrival, base, out);
                if self.rivals.claim.is_some() {
                    self.reign(params, now, out);
                }
            }
            Err(rejection) => {
                out.note(NodeNote::Rejected(rejection));
                match rejection {
                    SyncRejection::Invalid => self.suspect(params, out),
                    SyncRejection::Unconfirmed => self.doubt(arrival.message.term, now),
                    _ => {}
                }
            }
        }
    }

    /// The controller has a new plan, or the same again, which sends a node that turned back to its parent. A backup root that has
    /// taken over remains the root of its plan until the planned root, which hears of it, takes over again.
    pub fn on_plan(&mut self, params: &NodeParams, now: Time, part: PlanPart, out: &mut impl NodeOut) {
        self.observe(now, out);
        self.part = part;
        self.rivals = self.rivals.anew(now);
        if self.state == NodeState::Evicted {
            self.anchor = None;
        }
        match part.role {
            PlannedRole::Root => self.claim(params, now, out),
            PlannedRole::Follower { .. } if self.has_taken_over(part.plan) => (),
            PlannedRole::Follower { .. } => {
                if self.state == NodeState::Root {
                    // It cannot know since when somebody else is the root, and its own time is worth nothing from then on.
                    self.anchor = None;
                }
                self.state = NodeState::Following;
                self.heard = now;
            }
        }
    }

    /// True if the node is the root of this plan by election.
    fn has_taken_over(&self, plan: u32) -> bool {
        self.state == NodeState::Root && self.epoch == SyncEpoch { plan, elected: true }
    }

    /// The oscillator was set, suspended or replaced: what was known of the time is void until the next message.
    pub fn on_clock_step(&mut self, now: Time, out: &mut impl NodeOut) {
        out.note(NodeNote::ClockStep);
        let bound = ErrorBound { base: Span::ZERO, since: now };
        // A root's time goes on from where it was, and is another time than that of those who follow; nobody else knows the time.
        let reading = self.reading(self.latest).filter(|_| self.state == NodeState::Root);
        self.anchor = reading.map(|reading| TimeAnchor { reading, bound });
        if self.state == NodeState::Root {
            self.begin_term(false);
        }
        self.rivals = self.rivals.anew(now);
        self.latest = now;
        self.heard = now;
        self.next_wave = now;
    }

    /// Advances a root by `waves` waves without sending them: for simulations that leave out quiet ones.
    pub fn skip_waves(&mut self, params: &NodeParams, waves: u64) {
        if self.state == NodeState::Root {
            self.next_wave += params.interval * waves;
            self.wave += waves;
        }
    }

    /// Time that went back means that the oscillator was set.
    #[inline]
    fn observe(&mut self, now: Time, out: &mut impl NodeOut) {
        if now < self.latest {
            self.on_clock_step(now, out);
        }
        self.latest = now;
    }

    fn upstream(&self) -> Option<Upstream> {
        match (self.state, self.part.role) {
            (NodeState::Following, PlannedRole::Follower { parent, .. }) => Some(parent),
            (NodeState::Turned, PlannedRole::Follower { backup, .. }) => backup,
            (NodeState::Root, _) | (NodeState::Following, PlannedRole::Root) => self.rivals.upstream(),
            _ => None,
        }
    }

    /// ε_base with this message applied, if it is to be.
    fn judge(
        &self,
        params: &NodeParams,
        now: Time,
        from: Neighbour,
        arrival: &SyncArrival,
    ) -> Result<Span, SyncRejection> {
        let SyncArrival { message, sender } = arrival;
        let upstream = self.upstream_of(from).ok_or(SyncRejection::NotParent)?;
        if message.term < self.term && !self.is_forsaken(params, now) || self.is_own(message.term) {
            return Err(SyncRejection::EarlierTerm);
        }
        if message.term == self.term && message.wave <= self.wave {
            return Err(SyncRejection::Replay);
        }
        let base = self.base(params, upstream, arrival);
        let (Some(anchor), Some(own)) = (self.anchor, self.interval(params, now)) else { return Ok(base) };
        if self.state == NodeState::Root || message.term < self.term {
            return Ok(base);
        }
        let passed = now.since(anchor.bound.since).as_ps() / params.interval.as_ps().max(1);
        if message.term == self.term && message.wave > self.wave.saturating_add(passed + passed / 64 + 2) {
            return Err(SyncRejection::Future);
        }
        let moved = message.handover.saturating_sub(self.handover);
        let doubt = match params.validity {
            ValidityRule::Overlap => base + moved,
            ValidityRule::OwnBound => sender.half() + moved,
        };
        let claimed = ClockInterval::around(sender.middle(), doubt);
        let fits = message.line == self.line && own.intersection(claimed).is_some();
        match fits || self.is_confirmed(message.term) {
            true => Ok(base),
            false if message.term == self.term => Err(SyncRejection::Invalid),
            false => Err(SyncRejection::Unconfirmed),
        }
    }

    fn base(&self, params: &NodeParams, upstream: Upstream, arrival: &SyncArrival) -> Span {
        let carried = arrival.message.depth.saturating_add(1);
        match (params.depth, params.timeout) {
            (DepthRule::Planned, TimeoutRule::KeepLarger) => params.base(upstream.depth.max(carried)),
            (DepthRule::Planned, TimeoutRule::Thesis) => params.base(upstream.depth),
            (DepthRule::Carried, _) => params.base(carried),
            (DepthRule::Measured, _) => {
                arrival.message.uncertainty + arrival.sender.half() + params.per_hop.total(params.drift)
            }
        }
    }

    fn apply(&mut self, now: Time, arrival: &SyncArrival, base: Span, out: &mut impl NodeOut) {
        let SyncArrival { message, sender } = arrival;
        debug_assert!(message.term != self.term || message.wave > self.wave);
        self.anchor = Some(TimeAnchor { reading: sender.middle(), bound: ErrorBound { base, since: now } });
        self.heard = now;
        self.rivals.believe(message.term);
        (self.term, self.line, self.epoch) = (message.term, message.line, message.epoch);
        self.wave = message.wave;
        self.depth = message.depth.saturating_add(1);
        self.handover = message.handover;
        out.note(NodeNote::Synchronised);
        out.send(self.message(sender.middle(), base));
    }

    fn message(&self, timestamp: Time, uncertainty: Span) -> SyncMessage {
        let Self { term, line, epoch, wave, depth, handover, .. } = *self;
        SyncMessage { term, line, epoch, wave, depth, timestamp, correction: Span::ZERO, uncertainty, handover }
    }

    /// A message cannot be true: its sender's clock is broken or, if both parents' seem to be, the node's own.
    fn suspect(&mut self, params: &NodeParams, out: &mut impl NodeOut) {
        let covered = matches!(self.part.role, PlannedRole::Follower { backup: Some(_), .. });
        match self.state {
            NodeState::Following if covered => self.turn(params, out),
            NodeState::Turned => {
                self.state = NodeState::Evicted;
                out.note(NodeNote::Evicted);
            }
            NodeState::Root | NodeState::Following | NodeState::Evicted => {}
        }
    }

    fn turn(&mut self, params: &NodeParams, out: &mut impl NodeOut) {
        self.state = NodeState::Turned;
        if let (Some(anchor), Some(backup)) = (&mut self.anchor, self.part.backup())
            && params.depth == DepthRule::Planned
        {
            let of_backup = params.base(backup.depth);
            anchor.bound.base = match params.timeout {
                TimeoutRule::KeepLarger => anchor.bound.base.max(of_backup),
                TimeoutRule::Thesis => of_backup,
            };
        }
        out.note(NodeNote::Turned);
    }

    fn send_own_wave(&mut self, now: Time, out: &mut impl NodeOut) {
        self.wave = self.wave.saturating_add(1);
        let reading = self.reading(now).unwrap_or(now);
        out.send(self.message(reading, Span::ZERO));
    }
}

#[cfg(test)]
mod tests;
