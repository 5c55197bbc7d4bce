//! The clock without sockets: frames and readings of the oscillator in, frames out.
//!
//! Around Sundial's machine ([`clock::node::ClockNode`]) this adds what a real network asks for:
//!
//! - the interval that a neighbour's frames prove ([`crate::bounds`]), and requests to get it;
//! - who hears whom: a node sends waves to whoever has asked for them lately, whatever its own plan says of that neighbour;
//! - beginnings: a node that has heard nothing yet waits for its parent, or, if only that is there, for its backup parent; a root
//!   listens first whether its neighbours have the time of a root before it, and then follows that one;
//! - what neighbours say of other roots, in all their frames: a root that has a successor hears of it so.
//!
//! The machine counts in ticks of any length. Here a tick is a nanosecond.

mod events;

use std::collections::VecDeque;

use clock::bound::ClockInterval;
use clock::node::{ClockNode, Neighbour, NodeNote, NodeParams, NodeState, PlanPart, PlannedRole, SyncArrival};
use units::{Span, Time};
use wire::exchange::ExchangeFrame;
use wire::sync::{SyncEpoch, SyncMessage, SyncTerm};

pub(crate) use events::{ClockCounters, CoreEvent};
use events::{CoreOut, OutboundFrame};

use crate::bounds::TimeBound;
use crate::duties::{ClockDuties, DutyError, name_digest};
use crate::neighbour::NeighbourState;

/// A root listens for so long before it begins; a node waits for its parent for so long before it takes its backup parent.
const LISTENS_NS: u64 = 50_000_000;
/// Time, and number of intervals, for which a neighbour that has asked for waves gets them.
const ASKED_NS: u64 = 100_000_000;
const ASKED_INTERVALS: u64 = 4;
/// Factor on the waiting time of a backup root: a node that follows for this long is as planned.
const SETTLES: u64 = 5;

/// One clock.
#[derive(Debug)]
pub(crate) struct ClockCore {
    params: NodeParams,
    pub(crate) duties: ClockDuties,
    part: PlanPart,
    instance: u32,
    sender: u32,
    node: ClockNode,
    /// Time at which a root has listened for long enough.
    begins_ns: Option<u64>,
    pub(crate) neighbours: Vec<NeighbourState>,
    next_request_ns: u64,
    queue: VecDeque<OutboundFrame>,
    wave_made_ns: u64,
    pub(crate) counters: ClockCounters,
    pub(crate) events: Vec<CoreEvent>,
    /// Time of the last message that was believed, on the oscillator.
    heard_ns: Option<u64>,
    /// Time since which the node hears its parent without a gap, after it was given its plan; none if it does so for long
    /// enough.
    settling_ns: Option<u64>,
    /// The longest time without a message that was believed, since the node was given its plan.
    silence_ns: u64,
    /// Term that neighbours were told of.
    told_term: SyncTerm,
    /// Kept for its room.
    out: CoreOut,
}

fn ticks(ns: u64) -> Time {
    Time::from_ps(ns)
}

fn ns_of(span: Span) -> u64 {
    span.as_ps()
}

impl ClockCore {
    /// `ports` are the names of the neighbours, in the order of their links.
    pub(crate) fn new(
        params: NodeParams,
        duties: ClockDuties,
        ports: &[String],
        instance: u32,
        now_ns: u64,
    ) -> Result<Self, DutyError> {
        let part = duties.part(ports)?;
        let neighbours = ports.iter().map(|name| NeighbourState::new(name, params.drift)).collect();
        let is_root = part.role == PlannedRole::Root;
        let mut core = Self {
            params,
            sender: name_digest(&duties.node),
            duties,
            part,
            instance,
            node: ClockNode::joining(&params, instance, part, ticks(now_ns)),
            begins_ns: is_root.then(|| now_ns + LISTENS_NS),
            neighbours,
            next_request_ns: now_ns,
            queue: VecDeque::new(),
            wave_made_ns: now_ns,
            counters: ClockCounters::default(),
            events: Vec::new(),
            heard_ns: None,
            settling_ns: Some(now_ns),
            silence_ns: 0,
            told_term: SyncTerm::default(),
            out: CoreOut::default(),
        };
        core.assign_neighbours();
        Ok(core)
    }

    fn assign_neighbours(&mut self) {
        let Self { neighbours, duties, .. } = self;
        for neighbour in neighbours {
            let name = neighbour.name.as_str();
            neighbour.is_heard = [duties.parent(), duties.backup()].contains(&Some(name));
            neighbour.told_of_plan = false;
        }
    }

    /// Takes another plan. The node keeps what it knows of the time, unless that is not to be trusted.
    pub(crate) fn on_plan(&mut self, duties: ClockDuties, now_ns: u64) -> Result<(), DutyError> {
        let ports: Vec<String> = self.neighbours.iter().map(|neighbour| neighbour.name.clone()).collect();
        let part = duties.part(&ports)?;
        if let Some(missing) = duties.listeners.iter().find(|name| !ports.contains(name)) {
            return Err(DutyError(format!("no interface leads to '{missing}', which is to listen to this node")));
        }
        (self.part, self.duties) = (part, duties);
        (self.silence_ns, self.settling_ns) = (0, Some(now_ns));
        self.begins_ns = None;
        self.assign_neighbours();
        // The new neighbour may not know yet that this node listens to it.
        self.next_request_ns = now_ns;
        self.node.on_plan(&self.params, ticks(now_ns), self.part, &mut self.out);
        if self.interval(now_ns).is_none() {
            self.heard_ns = None;
        }
        self.act(now_ns);
        Ok(())
    }

    /// The oscillator stood still, or jumped.
    pub(crate) fn on_clock_step(&mut self, now_ns: u64) {
        self.neighbours.iter_mut().for_each(|neighbour| neighbour.bounds.forget());
        self.node.on_clock_step(ticks(now_ns), &mut self.out);
        self.act(now_ns);
    }

    /// A frame that came on the link to a neighbour, not after `arrived_ns`. Call [`Self::settle`] when there are no more.
    pub(crate) fn on_frame(&mut self, port: usize, frame: &ExchangeFrame, arrived_ns: u64, now_ns: u64) {
        let most = self.interval(now_ns).map(|(_, latest)| TimeBound { local_ns: now_ns, time_ns: latest });
        let (drift, instance) = (self.params.drift, self.instance);
        let neighbour = &mut self.neighbours[port];
        if !neighbour.sent(frame) {
            self.counters.foreign += 1;
            if !std::mem::replace(&mut neighbour.told_of_stranger, true) {
                self.events.push(CoreEvent::WrongNeighbour(neighbour.name.clone()));
            }
            return;
        }
        neighbour.on_frame(frame, arrived_ns, instance);
        if let Some(most) = most {
            neighbour.note_arrival(frame.number, arrived_ns, most, drift);
        }
        if frame.given != self.part.plan {
            self.counters.other_plan += 1;
            if !std::mem::replace(&mut neighbour.told_of_plan, true) {
                self.events.push(CoreEvent::OtherPlan(neighbour.name.clone(), frame.given));
            }
        }
        self.look_for_other_roots(port, frame, arrived_ns, now_ns);
    }

    /// Handles a frame's statement of whose time its sender has.
    fn look_for_other_roots(&mut self, port: usize, frame: &ExchangeFrame, arrived_ns: u64, now_ns: u64) {
        let (own, is_synchronized) = (self.node.term(), self.node.reading(ticks(now_ns)).is_some());
        let (neighbour, from) = (&mut self.neighbours[port], Neighbour(port as u32));
        match neighbour.has_later(frame, own, arrived_ns, ns_of(self.params.interval)) {
            None => self.node.on_no_later_term(from),
            Some(true) => self.node.on_later_term(&self.params, ticks(now_ns), from, frame.term),
            // Said once, it may be a lie, or not be so any more.
            Some(false) => {}
        }
        neighbour.is_behind = is_synchronized && frame.synchronized && frame.term < own;
    }

    /// Neighbours cannot be heard yet: a root that has not begun goes on listening.
    pub(crate) fn listen_longer(&mut self, now_ns: u64) {
        self.begins_ns = self.begins_ns.map(|begins| begins.max(now_ns + LISTENS_NS));
    }

    /// Looks at the last wave of each neighbour that came since, unless it has waited for so long that later ones must have come: a
    /// socket keeps the first frames that come while a program does not run, not the last ones.
    pub(crate) fn settle(&mut self, now_ns: u64) {
        for port in 0..self.neighbours.len() {
            let neighbour = &mut self.neighbours[port];
            let waited_ns = now_ns.saturating_sub(neighbour.wave_at.unwrap_or(now_ns));
            if let Some(wave) = neighbour.pending.take().filter(|_| waited_ns <= ns_of(self.params.first_timeout)) {
                self.hear(port, wave, now_ns);
            }
        }
    }

    fn hear(&mut self, port: usize, wave: SyncMessage, now_ns: u64) {
        let neighbour = &mut self.neighbours[port];
        let Some((least, most)) = neighbour.bounds_in(wave.term, now_ns) else {
            self.counters.unbounded += 1;
            return;
        };
        if least > most {
            self.counters.contradictions += 1;
            return neighbour.bounds.forget();
        }
        self.return_to_parent(port, &wave, now_ns);
        let sender = ClockInterval { earliest: ticks(least), latest: ticks(most) };
        // The interval has in it what the sender does not know.
        let arrival = SyncArrival { message: SyncMessage { uncertainty: Span::ZERO, ..wave }, sender };
        self.node.on_message(&self.params, ticks(now_ns), Neighbour(port as u32), &arrival, &mut self.out);
        self.act(now_ns);
    }

    /// Returns to a parent that sends new waves, if the backup parent is silent too. A program that does not run for some
    /// milliseconds has not failed, but if it is the root, all its children turn to each other at once and hear nothing. A node
    /// that was just given a plan returns as well: while roots change, nodes hear nothing for some waves, and the plan still
    /// holds. Waves are numbered, so no message can circulate.
    fn return_to_parent(&mut self, port: usize, wave: &SyncMessage, now_ns: u64) {
        let node = &mut self.node;
        let PlannedRole::Follower { parent, .. } = self.part.role else { return };
        let silence_ns = self.heard_ns.map_or(0, |heard| now_ns.saturating_sub(heard));
        let backup_is_silent = silence_ns > ns_of(self.params.first_timeout + self.params.interval);
        let is_newer = (wave.term, wave.wave) > (node.term(), node.wave());
        let is_current =
            (wave.term, wave.wave.saturating_add(1)) >= (node.term(), node.wave()) && self.settling_ns.is_some();
        let is_parent = parent.neighbour == Neighbour(port as u32);
        if node.state() == NodeState::Turned && is_parent && (backup_is_silent && is_newer || is_current) {
            self.counters.returned += 1;
            self.events.push(CoreEvent::Returned);
            node.on_plan(&self.params, ticks(now_ns), self.part, &mut self.out);
        }
    }

    /// Ends the settling of a node that has heard and followed a parent for longer than a change of roots takes.
    fn settle_in(&mut self, now_ns: u64) {
        let Some(since_ns) = &mut self.settling_ns else { return };
        let lasts_ns = ns_of(self.params.first_timeout + self.params.second_timeout) * SETTLES;
        let is_heard =
            self.heard_ns.is_some_and(|heard| now_ns.saturating_sub(heard) <= ns_of(self.params.first_timeout));
        if self.node.state() != NodeState::Following || !is_heard {
            *since_ns = now_ns;
        } else if now_ns.saturating_sub(*since_ns) > lasts_ns {
            self.settling_ns = None;
        }
    }

    /// Does what the machine wants.
    fn act(&mut self, now_ns: u64) {
        for note in std::mem::take(&mut self.out.notes) {
            self.on_note(note, now_ns);
        }
        if self.told_term != self.node.term() {
            self.told_term = self.node.term();
            let bound = |time_ns| TimeBound { local_ns: now_ns, time_ns };
            let interval = self.interval(now_ns).map(|(least, most)| [bound(least), bound(most)]);
            self.neighbours.iter_mut().for_each(|neighbour| neighbour.restate(interval, self.params.drift));
        }
        if let Some(wave) = self.out.wave.take() {
            self.counters.waves += 1;
            self.wave_made_ns = now_ns;
            let listeners = self.neighbours.iter().enumerate().filter(|(_, neighbour)| neighbour.listens);
            self.queue.extend(listeners.map(|(port, _)| OutboundFrame { port, wave: Some(wave) }));
        }
    }

    fn on_note(&mut self, note: NodeNote, now_ns: u64) {
        use clock::node::SyncRejection::{EarlierTerm, Future, Invalid, NotParent, Replay, Unconfirmed};
        let (counter, event) = match note {
            NodeNote::Synchronised => {
                let is_first = self.heard(now_ns).is_none();
                (&mut self.counters.synchronized, is_first.then_some(CoreEvent::Synchronized))
            }
            NodeNote::Rejected(NotParent) => (&mut self.counters.rejected_not_parent, None),
            NodeNote::Rejected(EarlierTerm) => (&mut self.counters.rejected_epoch, None),
            NodeNote::Rejected(Replay) => (&mut self.counters.rejected_replay, None),
            NodeNote::Rejected(Future) => (&mut self.counters.rejected_future, None),
            NodeNote::Rejected(Invalid) => {
                self.settling_ns = None;
                (&mut self.counters.rejected_invalid, None)
            }
            NodeNote::Rejected(Unconfirmed) => (&mut self.counters.rejected_unconfirmed, None),
            NodeNote::Turned => (&mut self.counters.turned, Some(CoreEvent::Turned)),
            NodeNote::Elected => {
                self.heard(now_ns);
                (&mut self.counters.elected, Some(CoreEvent::Elected))
            }
            NodeNote::Reigns => {
                let is_first = self.heard_ns.is_none();
                let event = if is_first { CoreEvent::Synchronized } else { CoreEvent::Reigns };
                (&mut self.counters.reigns, Some(event))
            }
            NodeNote::Replaced => {
                let by = self.listens_to().unwrap_or_default().to_owned();
                (&mut self.counters.replaced, Some(CoreEvent::Replaced(by)))
            }
            NodeNote::Evicted => (&mut self.counters.evicted, Some(CoreEvent::Evicted)),
            NodeNote::ClockStep => (&mut self.counters.clock_steps, Some(CoreEvent::ClockStep)),
        };
        *counter += 1;
        self.events.extend(event);
    }

    /// A message was believed, or the node is the root from now on; when it was before that.
    fn heard(&mut self, now_ns: u64) -> Option<u64> {
        let before = self.heard_ns.replace(now_ns);
        let silence_ns = before.map_or(0, |before| now_ns.saturating_sub(before));
        self.silence_ns = self.silence_ns.max(silence_ns);
        before
    }

    /// Does what is due.
    pub(crate) fn on_time(&mut self, now_ns: u64) {
        if self.begins_ns.is_some_and(|begins| begins <= now_ns) {
            self.begins_ns = None;
            self.node.listen_from(ticks(now_ns));
            // A node that hears of a root waits for its waves, like a node that hears nothing any more.
            let hears_of_none = self.neighbours.iter().all(|neighbour| !neighbour.says_later());
            if self.node.is_guest() && self.node.known_term() == SyncTerm::default() && hears_of_none {
                self.node.reign(&self.params, ticks(now_ns), &mut self.out);
            }
        }
        if self.may_act(now_ns) {
            self.node.on_time(&self.params, ticks(now_ns), &mut self.out);
        }
        self.act(now_ns);
        if self.next_request_ns <= now_ns {
            let next = self.next_request_ns + ns_of(self.params.interval);
            self.next_request_ns = if next > now_ns { next } else { now_ns + ns_of(self.params.interval) };
            let lately_ns = ASKED_NS.max(ns_of(self.params.interval) * ASKED_INTERVALS);
            self.settle_in(now_ns);
            for port in 0..self.neighbours.len() {
                self.neighbours[port].forget_request(now_ns, lately_ns);
                if std::mem::take(&mut self.neighbours[port].is_behind) || self.asks(port) {
                    self.queue.push_back(OutboundFrame { port, wave: None });
                }
            }
        }
    }

    /// True if the node listens to this neighbour, or may have to.
    fn asks(&self, port: usize) -> bool {
        let listens = self.node.listens_to() == Some(Neighbour(port as u32));
        self.neighbours[port].is_heard || listens || self.node.is_guest()
    }

    /// A root that begins listens first. A node that has heard nothing yet turns to its backup parent only if that one is there.
    fn may_act(&self, now_ns: u64) -> bool {
        if self.node.is_guest() && self.begins_ns.is_some_and(|begins| begins > now_ns) {
            return false;
        }
        if self.node.reading(ticks(now_ns)).is_some() || self.node.is_guest() {
            return true;
        }
        let named = |name: Option<&str>| self.neighbours.iter().find(|neighbour| Some(neighbour.name.as_str()) == name);
        let since = |at: Option<u64>| at.map(|at| now_ns.saturating_sub(at));
        let is_silent = |neighbour: &NeighbourState| since(neighbour.wave_at).is_none_or(|passed| passed > LISTENS_NS);
        let backup = named(self.duties.backup()).filter(|backup| !is_silent(backup));
        // Long enough there that the parent's first wave would have come too.
        let is_there =
            backup.and_then(|backup| since(backup.first_wave_at)).is_some_and(|passed| passed > LISTENS_NS / 2);
        is_there && named(self.duties.parent()).is_none_or(is_silent)
    }

    /// Time at which [`Self::on_time`] wants to be called.
    pub(crate) fn deadline_ns(&self, now_ns: u64) -> u64 {
        let node = self.node.deadline(&self.params).filter(|_| self.may_act(now_ns)).map_or(u64::MAX, Time::as_ps);
        node.min(self.begins_ns.unwrap_or(u64::MAX)).min(self.next_request_ns)
    }

    /// The next frame to send, made now; none if there is nothing to send.
    pub(crate) fn next_frame(&mut self, now_ns: u64) -> Option<(usize, ExchangeFrame)> {
        let OutboundFrame { port, wave } = self.queue.pop_front()?;
        let passed = now_ns.saturating_sub(self.wave_made_ns);
        // Not more than has passed on any oscillator.
        let correction = Span::from_ps(passed - passed.min(ns_of(self.params.drift.over(Span::from_ps(passed)))));
        let frame = ExchangeFrame {
            sender: self.sender,
            instance: self.instance,
            given: self.part.plan,
            term: self.node.term(),
            epoch: self.epoch(),
            synchronized: self.interval(now_ns).is_some(),
            asks: self.asks(port),
            // A wave made before the node had another root's time does not belong to that root.
            wave: wave.filter(|wave| wave.term == self.node.term()).map(|wave| SyncMessage { correction, ..wave }),
            ..ExchangeFrame::default()
        };
        Some((port, self.neighbours[port].next_frame(frame, now_ns)))
    }

    /// The kernel has sent a frame, not before `left_ns`.
    pub(crate) fn on_departure(&mut self, port: usize, number: u32, left_ns: u64, now_ns: u64) {
        let least = self.interval(now_ns).map(|(earliest, _)| TimeBound { local_ns: now_ns, time_ns: earliest });
        self.neighbours[port].note_departure(number, left_ns, least, self.params.drift);
    }

    /// The time is between these.
    pub(crate) fn interval(&self, now_ns: u64) -> Option<(u64, u64)> {
        let interval = self.node.interval(&self.params, ticks(now_ns))?;
        Some((interval.earliest.as_ps(), interval.latest.as_ps()))
    }

    pub(crate) fn epoch(&self) -> SyncEpoch {
        self.node.epoch()
    }

    pub(crate) fn heard_ns(&self) -> Option<u64> {
        self.heard_ns
    }

    pub(crate) fn silence_ns(&self) -> u64 {
        self.silence_ns
    }

    /// The machine.
    pub(crate) fn node(&self) -> &ClockNode {
        &self.node
    }

    /// The neighbour that it listens to now.
    pub(crate) fn listens_to(&self) -> Option<&str> {
        let Neighbour(port) = self.node.listens_to()?;
        self.neighbours.get(port as usize).map(|neighbour| neighbour.name.as_str())
    }
}

#[cfg(test)]
mod tests;
