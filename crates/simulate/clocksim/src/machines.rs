//! Clocks as the simulator needs them: Sundial's node, and one that sends whether or not it has heard anything.

use clock::bound::{DriftBound, ErrorBound};
use clock::node::{
    ClockNode, Neighbour, NodeNote, NodeOut, NodeParams, NodeState, PlanPart, PlannedRole, SyncArrival, SyncRejection,
};
use units::{Span, Time};
use wire::sync::{SyncEpoch, SyncMessage, SyncTerm};

/// A clock, as its driver sees it. Times are the node's own oscillator's.
pub(crate) trait SimulatedClock: Sized {
    type Params;

    fn new(params: &Self::Params, identity: u32, part: PlanPart, now: Time) -> Self;
    fn deadline(&self, params: &Self::Params) -> Option<Time>;
    fn on_time(&mut self, params: &Self::Params, now: Time, out: &mut impl NodeOut);
    fn on_message(
        &mut self,
        params: &Self::Params,
        now: Time,
        message: (Neighbour, &SyncArrival),
        out: &mut impl NodeOut,
    );
    fn on_plan(&mut self, params: &Self::Params, now: Time, part: PlanPart, out: &mut impl NodeOut);
    fn reading(&self, now: Time) -> Option<Time>;
    fn epsilon(&self, params: &Self::Params, now: Time) -> Option<Span>;
    fn is_root(&self) -> bool;
    fn term(&self) -> SyncTerm;
    fn listens_to(&self) -> Option<Neighbour>;
    fn skip_waves(&mut self, params: &Self::Params, waves: u64);
    /// Time after the last disturbance beyond which nothing can change any more.
    fn settles_within(params: &Self::Params) -> Span;
    /// True if it also sends when it hears nothing.
    const SENDS_ALONE: bool;
}

impl SimulatedClock for ClockNode {
    type Params = NodeParams;
    const SENDS_ALONE: bool = false;

    fn new(params: &NodeParams, identity: u32, part: PlanPart, now: Time) -> Self {
        Self::new(params, identity, part, now)
    }

    #[inline]
    fn deadline(&self, params: &NodeParams) -> Option<Time> {
        self.deadline(params)
    }

    fn on_time(&mut self, params: &NodeParams, now: Time, out: &mut impl NodeOut) {
        self.on_time(params, now, out);
    }

    #[inline]
    fn on_message(
        &mut self,
        params: &NodeParams,
        now: Time,
        (from, arrival): (Neighbour, &SyncArrival),
        out: &mut impl NodeOut,
    ) {
        self.on_message(params, now, from, arrival, out);
    }

    fn on_plan(&mut self, params: &NodeParams, now: Time, part: PlanPart, out: &mut impl NodeOut) {
        self.on_plan(params, now, part, out);
    }

    #[inline]
    fn reading(&self, now: Time) -> Option<Time> {
        self.reading(now)
    }

    #[inline]
    fn epsilon(&self, params: &NodeParams, now: Time) -> Option<Span> {
        self.epsilon(params, now)
    }

    fn is_root(&self) -> bool {
        self.state() == NodeState::Root
    }

    #[inline]
    fn term(&self) -> SyncTerm {
        self.term()
    }

    #[inline]
    fn listens_to(&self) -> Option<Neighbour> {
        self.listens_to()
    }

    fn skip_waves(&mut self, params: &NodeParams, waves: u64) {
        self.skip_waves(params, waves);
    }

    fn settles_within(params: &NodeParams) -> Span {
        params.first_timeout + params.second_timeout + params.interval * 2
    }
}

/// Parameters that clocks of PTP + ε have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PtpParams {
    pub(crate) node: NodeParams,
    /// T_recovery.
    pub(crate) recovery: Span,
}

impl PtpParams {
    /// Time after which a message of a sender is missing: an interval by the slowest oscillator, and the way.
    fn patience(&self) -> Span {
        let interval = self.node.interval;
        interval + interval / 1_024
    }
}

/// A clock of PTP + ε (§3.6.1.1): it passes on what it hears, and sends its own time when it hears nothing. Those below it cannot
/// tell, so all but the root's children allow for T_recovery.
#[derive(Clone, Debug)]
pub(crate) struct PtpClock {
    part: PlanPart,
    anchor: Option<(Time, ErrorBound)>,
    next: Time,
    term: SyncTerm,
    wave: u64,
    depth: u16,
    handover: Span,
}

impl PtpClock {
    fn send(&mut self, now: Time, out: &mut impl NodeOut) {
        let Some(timestamp) = self.reading(now) else { return };
        self.wave += 1;
        out.send(SyncMessage {
            term: self.term,
            line: 0,
            epoch: SyncEpoch { plan: self.part.plan, elected: false },
            wave: self.wave,
            depth: self.depth,
            timestamp,
            correction: Span::ZERO,
            uncertainty: Span::ZERO,
            handover: self.handover,
        });
    }

    fn bound(&self, drift: DriftBound, now: Time, recovery: Span) -> Option<Span> {
        let (_, bound) = self.anchor?;
        let elapsed = now.since(bound.since) + if self.depth > 1 { recovery } else { Span::ZERO };
        Some(bound.base + drift.over(elapsed))
    }
}

impl SimulatedClock for PtpClock {
    type Params = PtpParams;
    const SENDS_ALONE: bool = true;

    /// Makes a node whose terms are the numbers of plans, which count up here.
    fn new(params: &PtpParams, _: u32, part: PlanPart, now: Time) -> Self {
        let root = part.role == PlannedRole::Root;
        let anchor = root.then_some((now, ErrorBound { base: Span::ZERO, since: now }));
        let term = SyncTerm { number: part.plan, root: 0 };
        let next = now + if root { params.node.interval } else { params.patience() };
        Self { part, anchor, next, term, wave: 0, depth: 0, handover: Span::ZERO }
    }

    fn deadline(&self, _: &PtpParams) -> Option<Time> {
        self.anchor.map(|_| self.next)
    }

    fn on_time(&mut self, params: &PtpParams, now: Time, out: &mut impl NodeOut) {
        if self.anchor.is_some() && now >= self.next {
            self.next += params.node.interval;
            self.send(now, out);
        }
    }

    fn on_message(
        &mut self,
        params: &PtpParams,
        now: Time,
        (from, arrival): (Neighbour, &SyncArrival),
        out: &mut impl NodeOut,
    ) {
        if self.listens_to() != Some(from) || arrival.message.term < self.term {
            out.note(NodeNote::Rejected(SyncRejection::NotParent));
            return;
        }
        let message = &arrival.message;
        self.depth = message.depth.saturating_add(1);
        let bound = ErrorBound { base: params.node.base(self.depth), since: now };
        self.anchor = Some((arrival.sender.middle(), bound));
        self.term = message.term;
        self.wave = message.wave - 1;
        self.handover = message.handover;
        self.next = now + params.patience();
        out.note(NodeNote::Synchronised);
        self.send(now, out);
    }

    fn on_plan(&mut self, params: &PtpParams, now: Time, part: PlanPart, out: &mut impl NodeOut) {
        let was_root = self.is_root();
        self.part = part;
        if !self.is_root() {
            return;
        }
        self.term = SyncTerm { number: part.plan, root: 0 };
        if !was_root {
            self.handover += self.bound(params.node.drift, now, params.recovery).unwrap_or_default();
            let reading = self.reading(now).unwrap_or(now);
            self.anchor = Some((reading, ErrorBound { base: Span::ZERO, since: now }));
            self.depth = 0;
            self.next = now + params.node.interval;
            self.send(now, out);
        }
    }

    fn reading(&self, now: Time) -> Option<Time> {
        self.anchor.map(|(reading, bound)| reading + now.since(bound.since))
    }

    fn epsilon(&self, params: &PtpParams, now: Time) -> Option<Span> {
        if self.is_root() { Some(Span::ZERO) } else { self.bound(params.node.drift, now, params.recovery) }
    }

    fn is_root(&self) -> bool {
        self.part.role == PlannedRole::Root
    }

    fn term(&self) -> SyncTerm {
        self.term
    }

    fn listens_to(&self) -> Option<Neighbour> {
        match self.part.role {
            PlannedRole::Root => None,
            PlannedRole::Follower { parent, .. } => Some(parent.neighbour),
        }
    }

    fn skip_waves(&mut self, params: &PtpParams, waves: u64) {
        self.next += params.node.interval * waves;
        self.wave += waves;
    }

    fn settles_within(params: &PtpParams) -> Span {
        params.node.interval * 3
    }
}
