//! The clock without sockets: frames and readings of the oscillator in, frames out.
//!
//! Around Sundial's machine ([`clock::node::ClockNode`]) this adds what a real network asks for:
//!
//! - the interval that a neighbour's frames prove ([`crate::bounds`]), and requests to get it;
//! - beginnings: a node that has heard nothing yet waits for its parent, or, if only that is there, for its backup parent; a root
//!   listens first whether its neighbours have the time of a root before it, and then does not begin: they would not believe it;
//! - an end: a root that hears of its successor says no time any more.
//!
//! The machine counts in ticks of any length. Here a tick is a nanosecond.

mod events;

use std::collections::VecDeque;

use clock::bound::ClockInterval;
use clock::node::{ClockNode, Neighbour, NodeNote, NodeParams, NodeState, PlanPart, PlannedRole, SyncArrival};
use units::{Span, Time};
use wire::exchange::ExchangeFrame;
use wire::sync::{SyncEpoch, SyncMessage};

pub(crate) use events::{ClockCounters, CoreEvent};
use events::{CoreOut, OutboundFrame};

use crate::bounds::TimeBound;
use crate::duties::{ClockDuties, DutyError, name_digest};
use crate::neighbour::NeighbourState;

/// A root listens for so long before it begins; a node waits for its parent for so long before it takes its backup parent.
const LISTENS_NS: u64 = 50_000_000;

/// One clock.
#[derive(Debug)]
pub(crate) struct ClockCore {
    params: NodeParams,
    pub(crate) duties: ClockDuties,
    part: PlanPart,
    instance: u32,
    sender: u32,
    /// Absent while a root listens, and after it was replaced.
    node: Option<ClockNode>,
    /// When a root begins; none if it has been replaced.
    begins_ns: Option<u64>,
    scale: u32,
    pub(crate) neighbours: Vec<NeighbourState>,
    next_request_ns: u64,
    queue: VecDeque<OutboundFrame>,
    wave_made_ns: u64,
    pub(crate) counters: ClockCounters,
    pub(crate) events: Vec<CoreEvent>,
    /// On the oscillator, when a message was believed last.
    heard_ns: Option<u64>,
    /// The longest time without a message that was believed, since the node was given its plan.
    silence_ns: u64,
    /// Whose time neighbours were told of.
    told_epoch: SyncEpoch,
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
            node: (!is_root).then(|| ClockNode::new(&params, part, ticks(now_ns))),
            begins_ns: Some(now_ns + LISTENS_NS),
            scale: 0,
            neighbours,
            next_request_ns: now_ns,
            queue: VecDeque::new(),
            wave_made_ns: now_ns,
            counters: ClockCounters::default(),
            events: Vec::new(),
            heard_ns: None,
            silence_ns: 0,
            told_epoch: SyncEpoch::default(),
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
            neighbour.listens = duties.listeners.iter().any(|listener| listener == name);
            neighbour.told_of_plan = false;
        }
    }

    /// Another plan. What the node knows of the time it keeps, unless it is not to be trusted.
    pub(crate) fn on_plan(&mut self, duties: ClockDuties, now_ns: u64) -> Result<(), DutyError> {
        let ports: Vec<String> = self.neighbours.iter().map(|neighbour| neighbour.name.clone()).collect();
        self.part = duties.part(&ports)?;
        if let Some(missing) = duties.listeners.iter().find(|name| !ports.contains(name)) {
            return Err(DutyError(format!("no interface leads to '{missing}', which is to listen to this node")));
        }
        self.duties = duties;
        self.silence_ns = 0;
        self.assign_neighbours();
        let is_synchronized = self.interval(now_ns).is_some();
        match (&mut self.node, self.part.role) {
            (Some(node), _) if is_synchronized => {
                node.on_plan(&self.params, ticks(now_ns), self.part, &mut self.out);
                self.act(now_ns);
            }
            (_, PlannedRole::Root) => (self.node, self.begins_ns) = (None, Some(now_ns + LISTENS_NS)),
            (_, PlannedRole::Follower { .. }) => self.begin_anew(now_ns),
        }
        Ok(())
    }

    fn begin_anew(&mut self, now_ns: u64) {
        self.node = Some(ClockNode::new(&self.params, self.part, ticks(now_ns)));
        self.heard_ns = None;
    }

    /// The oscillator stood still, or jumped.
    pub(crate) fn on_clock_step(&mut self, now_ns: u64) {
        self.neighbours.iter_mut().for_each(|neighbour| neighbour.bounds.forget());
        if let Some(node) = &mut self.node {
            node.on_clock_step(ticks(now_ns), &mut self.out);
        }
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
        self.look_for_successor(port, frame);
    }

    /// A root that was replaced, or would not be believed, says no time.
    fn look_for_successor(&mut self, port: usize, frame: &ExchangeFrame) {
        if self.part.role != PlannedRole::Root && !self.is_root() || !frame.synchronized {
            return;
        }
        let is_replaced = match &self.node {
            Some(node) => {
                let epoch = node.epoch();
                node.state() == NodeState::Root && frame.epoch.plan == epoch.plan && frame.epoch > epoch
            }
            None => self.begins_ns.is_some() && frame.epoch.plan == self.part.plan,
        };
        if is_replaced {
            (self.node, self.begins_ns) = (None, None);
            self.counters.replaced += 1;
            self.events.push(CoreEvent::Replaced(self.neighbours[port].name.clone()));
        }
    }

    /// Neighbours cannot be heard yet: a root that has not begun goes on listening.
    pub(crate) fn listen_longer(&mut self, now_ns: u64) {
        if self.node.is_none() {
            self.begins_ns = self.begins_ns.map(|begins| begins.max(now_ns + LISTENS_NS));
        }
    }

    fn is_root(&self) -> bool {
        self.node.as_ref().is_some_and(|node| node.state() == NodeState::Root)
    }

    /// Looks at the last wave of each neighbour that came since.
    pub(crate) fn settle(&mut self, now_ns: u64) {
        for port in 0..self.neighbours.len() {
            if let Some((wave, scale)) = self.neighbours[port].pending.take() {
                self.hear(port, wave, scale, now_ns);
            }
        }
    }

    fn hear(&mut self, port: usize, wave: SyncMessage, scale: u32, now_ns: u64) {
        let neighbour = &mut self.neighbours[port];
        let Some((least, most)) = neighbour.bounds.at(now_ns) else {
            self.counters.unbounded += 1;
            return;
        };
        if least > most {
            self.counters.contradictions += 1;
            return neighbour.bounds.forget();
        }
        let Some(node) = &self.node else { return };
        let is_new_plan = wave.epoch.plan == self.part.plan && node.epoch().plan != self.part.plan;
        if scale != self.scale && is_new_plan && self.heard_ns.is_some() && !self.is_root() {
            // The plan's root has a time of its own, and this node has that of another one.
            self.begin_anew(now_ns);
        }
        self.return_to_parent(port, &wave, now_ns);
        let sender = ClockInterval { earliest: ticks(least), latest: ticks(most) };
        // The interval has in it what the sender does not know.
        let arrival = SyncArrival { message: SyncMessage { uncertainty: Span::ZERO, ..wave }, sender };
        if let Some(node) = &mut self.node {
            node.on_message(&self.params, ticks(now_ns), Neighbour(port as u32), &arrival, &mut self.out);
        }
        if self.out.notes.contains(&NodeNote::Synchronised) {
            self.scale = scale;
        }
        self.act(now_ns);
    }

    /// A program that did not run for some milliseconds is no failure, but if the root is such a one all its children turn at
    /// once, to each other, and nobody hears anything: who hears nothing from its backup parent either goes back to a parent
    /// that sends new waves. Waves are counted, so nothing can circulate.
    fn return_to_parent(&mut self, port: usize, wave: &SyncMessage, now_ns: u64) {
        let Some(node) = &mut self.node else { return };
        let PlannedRole::Follower { parent, .. } = self.part.role else { return };
        let silence_ns = self.heard_ns.map_or(0, |heard| now_ns.saturating_sub(heard));
        let backup_is_silent = silence_ns > ns_of(self.params.first_timeout + self.params.interval);
        let is_newer = wave.epoch == node.epoch() && wave.wave > node.wave();
        let is_parent = parent.neighbour == Neighbour(port as u32);
        if node.state() == NodeState::Turned && is_parent && backup_is_silent && is_newer {
            self.counters.returned += 1;
            self.events.push(CoreEvent::Returned);
            node.on_plan(&self.params, ticks(now_ns), self.part, &mut self.out);
        }
    }

    /// Does what the machine wants.
    fn act(&mut self, now_ns: u64) {
        for note in std::mem::take(&mut self.out.notes) {
            self.on_note(note, now_ns);
        }
        if self.told_epoch != self.epoch() {
            self.told_epoch = self.epoch();
            self.neighbours.iter_mut().for_each(NeighbourState::forget_told);
        }
        if let Some(wave) = self.out.wave.take() {
            self.counters.waves += 1;
            self.wave_made_ns = now_ns;
            let listeners = self.neighbours.iter().enumerate().filter(|(_, neighbour)| neighbour.listens);
            self.queue.extend(listeners.map(|(port, _)| OutboundFrame { port, wave: Some(wave) }));
        }
    }

    fn on_note(&mut self, note: NodeNote, now_ns: u64) {
        use clock::node::SyncRejection::{Future, Invalid, NotParent, Replay, WrongEpoch};
        let (counter, event) = match note {
            NodeNote::Synchronised => {
                let is_first = self.heard(now_ns).is_none();
                (&mut self.counters.synchronized, is_first.then_some(CoreEvent::Synchronized))
            }
            NodeNote::Rejected(NotParent) => (&mut self.counters.rejected_not_parent, None),
            NodeNote::Rejected(WrongEpoch) => (&mut self.counters.rejected_epoch, None),
            NodeNote::Rejected(Replay) => (&mut self.counters.rejected_replay, None),
            NodeNote::Rejected(Future) => (&mut self.counters.rejected_future, None),
            NodeNote::Rejected(Invalid) => (&mut self.counters.rejected_invalid, None),
            NodeNote::Turned => (&mut self.counters.turned, Some(CoreEvent::Turned)),
            NodeNote::Elected => {
                self.heard(now_ns);
                (&mut self.counters.elected, Some(CoreEvent::Elected))
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
        if self.node.is_none() && self.begins_ns.is_some_and(|begins| begins <= now_ns) {
            self.node = Some(ClockNode::new(&self.params, self.part, ticks(now_ns)));
            (self.scale, self.begins_ns) = (self.instance, None);
            self.events.push(CoreEvent::Synchronized);
        }
        let may_act = self.may_act(now_ns);
        if let Some(node) = self.node.as_mut().filter(|_| may_act) {
            node.on_time(&self.params, ticks(now_ns), &mut self.out);
            self.act(now_ns);
        }
        if self.next_request_ns <= now_ns {
            let next = self.next_request_ns + ns_of(self.params.interval);
            self.next_request_ns = if next > now_ns { next } else { now_ns + ns_of(self.params.interval) };
            let heard = self.neighbours.iter().enumerate().filter(|(_, neighbour)| neighbour.is_heard);
            self.queue.extend(heard.map(|(port, _)| OutboundFrame { port, wave: None }));
        }
    }

    /// A node that has heard nothing yet turns to its backup parent only if that one is there.
    fn may_act(&self, now_ns: u64) -> bool {
        let Some(node) = &self.node else { return false };
        if node.reading(ticks(now_ns)).is_some() {
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

    /// When [`Self::on_time`] wants to be called.
    pub(crate) fn deadline_ns(&self, now_ns: u64) -> u64 {
        let node = self.node.as_ref().filter(|_| self.may_act(now_ns));
        let node = node.and_then(|node| node.deadline(&self.params)).map_or(u64::MAX, Time::as_ps);
        let begins = self.begins_ns.filter(|_| self.node.is_none()).unwrap_or(u64::MAX);
        node.min(begins).min(self.next_request_ns)
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
            scale: self.scale,
            given: self.part.plan,
            epoch: self.epoch(),
            synchronized: self.interval(now_ns).is_some(),
            wave: wave.map(|wave| SyncMessage { correction, ..wave }),
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
        let interval = self.node.as_ref()?.interval(&self.params, ticks(now_ns))?;
        Some((interval.earliest.as_ps(), interval.latest.as_ps()))
    }

    pub(crate) fn epoch(&self) -> SyncEpoch {
        self.node.as_ref().map(ClockNode::epoch).unwrap_or_default()
    }

    pub(crate) fn heard_ns(&self) -> Option<u64> {
        self.heard_ns
    }

    pub(crate) fn silence_ns(&self) -> u64 {
        self.silence_ns
    }

    /// The machine; none while a root listens, and after it was replaced.
    pub(crate) fn node(&self) -> Option<&ClockNode> {
        self.node.as_ref()
    }

    /// Whether it was the root, or should be, and others have another one.
    pub(crate) fn is_replaced(&self) -> bool {
        self.node.is_none() && self.begins_ns.is_none()
    }

    /// The neighbour that it listens to now.
    pub(crate) fn listens_to(&self) -> Option<&str> {
        let Neighbour(port) = self.node.as_ref()?.listens_to()?;
        self.neighbours.get(port as usize).map(|neighbour| neighbour.name.as_str())
    }
}

#[cfg(test)]
mod tests;
