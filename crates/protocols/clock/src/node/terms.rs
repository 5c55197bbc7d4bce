//! Several roots, and how that ends with one.
//!
//! A *term* is the time of one root. Whoever becomes the root, by a plan or by election, begins a term after all that it knows
//! of, and of two terms the later one is believed, whatever the plans of the nodes are. So a plan may reach some nodes only, in
//! any order.
//!
//! ```text
//!                 waves of a later root, from a neighbour that has its time
//!      Root ───────────────────────────────────────────────────────────────▶ Following: its parent or, if it is the planned
//!        ▲                                                                       │      root, whoever of its neighbours sends
//!        └───────────────────────────────────────────────────────────────────────┘
//!          the planned root: it is given a plan, or hears nothing for longer than a backup root would wait
//! ```
//!
//! - A root gives way only to waves that it can follow, from a neighbour that has reported a later root's time repeatedly
//!   ([`ClockNode::on_later_term`]); until these waves arrive it stays the root. A single frame changes nothing.
//! - A plan that makes a node the root overrules roots that it hears of soon after: it takes their time over if it still can.
//! - A time that does not fit a node's own is no reason to suspect anybody if it is that of a later root: it may be of another
//!   *line*, say of a root that was stopped while another one took over. It is believed when it has come several times in a row.
//! - Who hears nobody of its own term for long takes what its parents have: it begins anew, in an earlier term if need be.

use units::{Span, Time};
use wire::sync::{SyncEpoch, SyncTerm};

use super::{
    ClockNode, ErrorBound, Neighbour, NodeNote, NodeOut, NodeParams, NodeState, PlannedRole, TimeAnchor, Upstream,
};

/// Waves in a row of a later root whose time does not fit, until it is believed.
const CONFIRMS: u32 = 3;

/// Knowledge that a node has of other roots than its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rivals {
    /// The latest term that there is.
    pub(super) known: SyncTerm,
    /// At a root: the neighbour that has a later root's time. At a planned root that does not act as root: the neighbour
    /// that it heard last.
    successor: Option<Neighbour>,
    /// Time at which a planned root becomes the root, even if it has not heard the current one.
    pub(super) claim: Option<Time>,
    /// End of the time in which its plan overrules roots that it hears of.
    overrules: Time,
    /// A later term whose time does not fit, and how often it came in a row.
    doubted: (SyncTerm, u32),
}

impl Rivals {
    pub(super) fn at(now: Time) -> Self {
        let nobody = SyncTerm::default();
        Self { known: nobody, successor: None, claim: None, overrules: now, doubted: (nobody, 0) }
    }

    /// Forgets every change of roots that is under way.
    pub(super) fn anew(self, now: Time) -> Self {
        Self { known: self.known, ..Self::at(now) }
    }

    pub(super) fn upstream(&self) -> Option<Upstream> {
        self.successor.map(|neighbour| Upstream { neighbour, depth: 0 })
    }

    pub(super) fn believe(&mut self, term: SyncTerm) {
        self.known = self.known.max(term);
        self.doubted = (term, 0);
    }
}

impl ClockNode {
    /// A neighbour says, again and again, that it has the time of this term, which is later than the node's own.
    pub fn on_later_term(&mut self, params: &NodeParams, now: Time, from: Neighbour, term: SyncTerm) {
        self.rivals.known = self.rivals.known.max(term);
        if self.state != NodeState::Root || term <= self.term {
            return;
        }
        self.rivals.successor.get_or_insert(from);
        if now < self.rivals.overrules && self.rivals.claim.is_none() {
            self.rivals.claim = Some(now + params.first_timeout * 2);
        }
    }

    /// A neighbour has no later root's time, or none any more.
    pub fn on_no_later_term(&mut self, from: Neighbour) {
        if self.state == NodeState::Root && self.rivals.successor == Some(from) {
            self.rivals.successor = None;
        }
    }

    /// True if the node is the planned root and listens to its neighbours instead, to all of them.
    pub fn is_guest(&self) -> bool {
        self.part.role == PlannedRole::Root && self.state == NodeState::Following
    }

    /// A planned root that has no time yet could hear nobody before: its wait for other roots begins.
    pub fn listen_from(&mut self, now: Time) {
        if self.is_guest() && self.anchor.is_none() {
            self.heard = now;
        }
    }

    /// The latest term that it knows of.
    pub fn known_term(&self) -> SyncTerm {
        self.rivals.known.max(self.term)
    }

    /// A planned root begins, with the time that it has or with what its oscillator shows.
    pub fn reign(&mut self, params: &NodeParams, now: Time, out: &mut impl NodeOut) {
        out.note(NodeNote::Reigns);
        self.become_root(params, now, false, out);
    }

    /// A plan makes the node the root. Who does not have the time of the latest root that it knows of asks for it first.
    pub(super) fn claim(&mut self, params: &NodeParams, now: Time, out: &mut impl NodeOut) {
        self.rivals.overrules = now + params.first_timeout + params.second_timeout;
        let is_latest = self.anchor.is_some() && self.rivals.known <= self.term;
        match self.state {
            NodeState::Root if is_latest => self.epoch = SyncEpoch { plan: self.part.plan, elected: false },
            _ if is_latest => self.become_root(params, now, false, out),
            NodeState::Root => self.rivals.claim = Some(now + params.first_timeout * 2),
            NodeState::Following | NodeState::Turned | NodeState::Evicted => {
                (self.state, self.heard) = (NodeState::Following, now);
                self.rivals.claim = Some(now + params.first_timeout * 2);
            }
        }
    }

    /// Time at which a planned root that does not act as root becomes it: later than a backup root, so that only one of
    /// both does.
    pub(super) fn returns(&self, params: &NodeParams) -> Time {
        self.rivals.claim.unwrap_or(self.heard + params.first_timeout + params.second_timeout * 2)
    }

    /// Upstream entry of this neighbour if the node listens to it.
    pub(super) fn upstream_of(&self, from: Neighbour) -> Option<Upstream> {
        match self.is_guest() {
            true => Some(Upstream { neighbour: from, depth: 0 }),
            false => self.upstream().filter(|upstream| upstream.neighbour == from),
        }
    }

    /// True if the node has heard nobody of its term for so long that it accepts any root.
    pub(super) fn is_forsaken(&self, params: &NodeParams, now: Time) -> bool {
        self.state != NodeState::Root && now.since(self.heard) >= params.first_timeout + params.second_timeout
    }

    /// True if the node began this term, and so cannot hear it from anybody else.
    pub(super) fn is_own(&self, term: SyncTerm) -> bool {
        self.state == NodeState::Root && term == self.term
    }

    pub(super) fn is_confirmed(&self, term: SyncTerm) -> bool {
        let (doubted, times) = self.rivals.doubted;
        term > self.term && doubted == term && times + 1 >= CONFIRMS
    }

    /// A later root's time does not fit. There is a root, so it is no silence.
    pub(super) fn doubt(&mut self, term: SyncTerm, now: Time) {
        let (doubted, times) = self.rivals.doubted;
        self.rivals.doubted = (term, if doubted == term { times + 1 } else { 1 });
        self.heard = now;
    }

    /// A wave of this neighbour is about to be applied.
    pub(super) fn give_way(&mut self, from: Neighbour, out: &mut impl NodeOut) {
        if self.state == NodeState::Root {
            self.state = NodeState::Following;
            out.note(NodeNote::Replaced);
        }
        self.rivals.successor = self.is_guest().then_some(from);
    }

    /// Begins a term after all that are known, in the line of the last one if its time `goes_on`.
    pub(super) fn begin_term(&mut self, goes_on: bool) {
        self.term = SyncTerm::after(self.known_term(), self.identity);
        self.rivals.known = self.term;
        if !goes_on {
            self.line = self.term.root.wrapping_add(self.term.number.wrapping_mul(0x9e37_79b9));
            self.handover = Span::ZERO;
        }
    }

    pub(super) fn become_root(&mut self, params: &NodeParams, now: Time, elected: bool, out: &mut impl NodeOut) {
        let goes_on = self.anchor.is_some() && self.term == self.known_term();
        self.handover += self.epsilon(params, now).unwrap_or_default();
        self.begin_term(goes_on);
        let reading = self.reading(now).unwrap_or(now);
        self.anchor = Some(TimeAnchor { reading, bound: ErrorBound { base: Span::ZERO, since: now } });
        self.state = NodeState::Root;
        self.epoch = SyncEpoch { plan: self.part.plan, elected };
        (self.rivals.successor, self.rivals.claim) = (None, None);
        self.depth = 0;
        self.next_wave = now + params.interval;
        self.send_own_wave(now, out);
    }
}
