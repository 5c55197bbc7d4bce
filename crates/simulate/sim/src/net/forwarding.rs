//! Packets on their way through switches.

use machine::{DropReason, Forward, QueueRoom, SwitchPort, Ticket, Visit};
use units::{Span, Time};

use super::events::NetworkEvent;
use super::fabric::{Hop, NextHop};
use super::index::{PacketId, SwitchId};
use super::outcome::PortCapture;
use super::packet::SimPacket;
use super::port::SimPort;
use super::programs::NetworkProgram;
use super::rules::FaultyAction;
use super::switch::PauseChange;
use super::world::Network;
use crate::protocols::each_protocol;
use crate::topology::DirectedLink;

impl<P: NetworkProgram> Network<'_, P> {
    /// A packet has come to the end of a hop; the next one on its route is `hop`.
    #[inline]
    pub(super) fn arrive(&mut self, now: Time, id: PacketId, hop: Hop) {
        let hop = if self.fabric.rules.is_none() {
            let packet = self.packets.get_mut(id);
            packet.route = packet.route.next();
            hop
        } else {
            let Some(hop) = self.hop_by_rules(now, id) else { return };
            hop
        };
        match hop.next() {
            NextHop::Port(port) => self.enqueue(now, port, id),
            NextHop::Host(host) => self.reach_host(now, host, id),
        }
    }

    /// Next hop of a packet where switches may have wrong rules; `None` if a rule loses it.
    #[cold]
    fn hop_by_rules(&mut self, now: Time, id: PacketId) -> Option<Hop> {
        let rules = self.fabric.rules.as_mut()?;
        let packet = self.packets.get_mut(id);
        let (link, to) = (packet.came_by, packet.to());
        let host = self.hosts.ends[to].host;
        let (at, destination) = (self.fabric.routes.leads_to(link), self.hosts[host].node);
        if at == destination {
            return Some(Hop::host(host));
        }
        let reason = if rules.detours && packet.route.time_to_live() == 0 {
            rules.expired += 1;
            DropReason::Expired
        } else {
            let (detours, action) = (rules.detours, rules.apply(now, at, destination));
            let listed = self.fabric.hop(packet.route);
            packet.route = packet.route.next();
            let hash = self.flows.connections[to.connection()].hashes[usize::from(to.is_source())];
            match action {
                None if !detours => return Some(listed),
                None => match self.fabric.routes.next(at, destination, hash) {
                    Some(port) => return Some(Hop::port(port)),
                    None => DropReason::Blackhole,
                },
                Some(FaultyAction::Send(port)) => return Some(Hop::port(port)),
                Some(FaultyAction::Drop) => DropReason::Blackhole,
                Some(FaultyAction::Filter) => DropReason::Filtered,
            }
        };
        self.lose(now, link, reason, id);
        None
    }

    /// A packet has been routed to a switch port: the program decides whether it joins the queue.
    #[inline]
    fn enqueue(&mut self, now: Time, at: DirectedLink, id: PacketId) {
        let switch = self.fabric.ports[at].owner.switch();
        let (packet, tag) = (self.packets.get_mut(id), self.tags.get_mut(id));
        let visit = Visit { at: SwitchPort { switch: switch.0, port: at.0 }, ticket: Ticket(id.0) };
        match self.program.on_route(now, visit, packet, tag) {
            Forward::Pass => self.join_queue(now, switch, at, id),
            other => self.forward(now, at, id, other),
        }
        self.wake_program(now);
    }

    /// Carries out a program's decision other than to let the packet pass.
    pub(super) fn forward(&mut self, now: Time, at: DirectedLink, id: PacketId, forward: Forward) {
        let switch = self.fabric.ports[at].owner.switch();
        match forward {
            Forward::Pass => self.join_queue(now, switch, at, id),
            Forward::Drop => self.discard(id),
            Forward::Hold => {
                self.held.insert(id, at);
            }
            Forward::Back => self.send_back(now, switch, id),
            Forward::Copies(copies) => {
                let (packet, tag) = (*self.packets.get(id), *self.tags.get_mut(id));
                // Before any of them can come to its end: the number of their connection is theirs until all have.
                self.hosts.ends[packet.to()].made += u64::from(copies - 1);
                self.join_queue(now, switch, at, id);
                for _ in 1..copies {
                    let bytes = self.fabric.ports[at].on_wire(packet.len);
                    self.observed.outcome.repeated_bytes += bytes;
                    let copy = self.packets.insert(packet);
                    self.tags.put(copy, tag);
                    self.join_queue(now, switch, at, copy);
                }
            }
        }
    }

    /// A packet goes back to where its connection's packets come from: along the route of the other direction, which must
    /// lead through this switch. If it does not, the packet is dropped.
    fn send_back(&mut self, now: Time, switch: SwitchId, id: PacketId) {
        let packet = self.packets.get_mut(id);
        let (from, to) = (packet.route.from(), packet.to());
        let Some((port, route)) = self.fabric.position_behind(to, switch) else { return self.discard(id) };
        packet.route = route;
        // It counts for the end that it is for, and that has changed.
        self.hosts.ends[to].ended += 1;
        self.hosts.ends[from].made += 1;
        self.send_for_program(now, switch, port, id);
    }

    /// A packet of the program's joins the queue of a port.
    pub(super) fn send_for_program(&mut self, now: Time, switch: SwitchId, at: DirectedLink, id: PacketId) {
        let place = SwitchPort { switch: switch.0, port: at.0 };
        self.program.on_sent(now, place, self.packets.get_mut(id), self.tags.get_mut(id));
        self.join_queue(now, switch, at, id);
    }

    /// A packet joins the queue of a switch port if there is room.
    #[inline]
    fn join_queue(&mut self, now: Time, switch: SwitchId, at: DirectedLink, id: PacketId) {
        let bytes = self.fabric.ports[at].on_wire(self.packets.get(id).len);
        if !self.admits(now, switch, at, bytes, id) {
            self.fabric.ports[at].counters.dropped += 1;
            return self.lose(now, at, DropReason::Full, id);
        }
        let (port, packet) = (&mut self.fabric.ports[at], self.packets.get_mut(id));
        let backlog = port.backlog(now);
        if port.marks(backlog, packet.class, || self.random.unit()) {
            mark(port, packet);
        }
        let (time, passes) = (port.time_of(packet.len), port.lets_pass(now, packet.class));
        match &mut port.queues {
            None => {
                let begin = port.busy_until.max(now);
                port.busy_until = begin + port.framing.busy(time);
                return self.transmit(begin, at, id);
            }
            Some(queues) if !passes => {
                queues.push(&mut self.packets, id, time);
                port.queue_changed(now);
            }
            Some(_) => {}
        }
        if self.fabric.switches[switch].has_pfc() {
            self.account(now, at, id, switch, 1);
        }
        if passes { self.depart(now, at, id, time) } else { self.serve(now, at) }
    }

    /// Decides whether a packet of this many bytes joins the queue of a switch port, and counts it if so.
    #[inline]
    fn admits(&mut self, now: Time, switch: SwitchId, at: DirectedLink, bytes: u64, id: PacketId) -> bool {
        if !P::REPLAYS {
            return self.fabric.admits(now, switch, at, bytes);
        }
        let fabric = &mut self.fabric;
        let left = fabric.switches[switch].room(now, &fabric.ports, at);
        let fits = fabric.admits(now, switch, at, bytes);
        let place = SwitchPort { switch: switch.0, port: at.0 };
        let joins = self.program.admits(place, QueueRoom { fits, left }, self.tags.get_mut(id));
        if joins != fits {
            fabric.switches[switch].overrule(bytes, joins);
        }
        joins
    }

    /// A packet's first bit is on the wire at `begin`, its last when the port is free again.
    #[inline]
    pub(super) fn transmit(&mut self, begin: Time, at: DirectedLink, id: PacketId) {
        let packet = self.packets.get_mut(id);
        let hop = self.fabric.hop(packet.route);
        let port = &mut self.fabric.ports[at];
        let len = u32::from(packet.len);
        packet.came_by = at;
        port.counters.frames += 1;
        port.counters.wire_bytes += port.on_wire(packet.len);
        let (watched, arrival) = (port.watched, port.busy_until + port.flight);
        let corrupted = port.faults.as_mut().is_some_and(|faults| faults.at(begin).corrupts(len));
        port.counters.corrupted += u64::from(corrupted);
        if watched {
            self.capture(begin, at, id, corrupted);
        }
        if self.program.watches_ends() && self.fabric.ports[at].owner.host().is_some() {
            self.program.on_leaving(begin, self.packets.get(id).route.from(), self.tags.get(id));
        }
        if corrupted {
            return self.lose(begin, at, DropReason::Corrupted, id);
        }
        self.queue.schedule(arrival, NetworkEvent::Arrive { packet: id, hop });
    }

    pub(super) fn capture(&mut self, now: Time, port: DirectedLink, id: PacketId, corrupted: bool) {
        let packet = *self.packets.get(id);
        let connection = &self.flows.connections[packet.to().connection()];
        let (src, dst, flow) = (connection.row.src, connection.row.dst, connection.number);
        let forward = !packet.to().is_source();
        let reserve = P::reserve_header(self.tags.get(id)).copied();
        let captured = PortCapture { at: now, port, src, dst, flow, forward, packet, reserve, corrupted };
        self.observed.outcome.captured.push(captured);
    }

    /// A packet is lost behind the upstream end of a link.
    pub(super) fn lose(&mut self, now: Time, link: DirectedLink, reason: DropReason, id: PacketId) {
        if self.flows.has_jobs {
            self.note_loss(now, link, reason, id);
        }
        self.program.on_drop(now, link.0, reason, self.packets.get_mut(id), self.tags.get_mut(id));
        self.discard(id);
    }

    /// A packet is gone before it came to its end.
    pub(super) fn discard(&mut self, id: PacketId) {
        let packet = self.packets.remove(id);
        self.packet_ends(packet.to());
    }

    pub(super) fn look_again(&mut self, now: Time, at: DirectedLink) {
        self.fabric.ports[at].looked(now);
        self.serve(now, at);
    }

    pub(super) fn look(&mut self, now: Time, at: DirectedLink, when: Time) {
        if self.fabric.ports[at].look(now, when) {
            self.queue.schedule(when, NetworkEvent::Look { port: at });
        }
    }

    /// Puts the next packet of a port on the wire, if that is free and there is one.
    pub(super) fn serve(&mut self, now: Time, at: DirectedLink) {
        let port = &self.fabric.ports[at];
        let host = port.owner.host();
        if port.busy_until > now {
            let when = port.busy_until;
            return self.look(now, at, when);
        }
        if port.protected {
            if let Some(host) = host {
                self.offer(now, host);
            }
            return self.with_link(
                now,
                at,
                |link, side, around| each_protocol!(link, pair => pair.serve(side, around)),
            );
        }
        if let Some(host) = host {
            return self.serve_host(now, host);
        }
        let port = &mut self.fabric.ports[at];
        let Some(id) = port.queues.as_mut().and_then(|queues| queues.pop(&self.packets)) else { return };
        let (time, mut more) = (port.time_of(self.packets.get(id).len), false);
        if let Some(queues) = &mut port.queues {
            queues.shorten(time);
            more = queues.has_any();
        }
        port.queue_changed(now);
        self.depart(now, at, id, time);
        if more {
            let when = self.fabric.ports[at].busy_until;
            self.look(now, at, when);
        }
    }

    /// A packet that takes this long leaves a switch port that is free, and whose queue it has left.
    fn depart(&mut self, now: Time, at: DirectedLink, id: PacketId, time: Span) {
        let port = &mut self.fabric.ports[at];
        let (left, switch) = (port.backlog_bytes(now), port.owner.switch());
        port.busy_until = now + port.framing.busy(time);
        self.mark_leaving(at, id);
        self.leave_switch(now, at, switch, left, id);
        self.transmit(now, at, id);
    }

    /// A packet that has left the queue of a port is marked if what stays behind calls for it.
    #[inline]
    pub(super) fn mark_leaving(&mut self, at: DirectedLink, id: PacketId) {
        let (port, packet) = (&mut self.fabric.ports[at], self.packets.get_mut(id));
        if port.marks_leaving(packet.class, || self.random.unit()) {
            mark(port, packet);
        }
    }

    /// Packets have left the queue of a port for its link protocol.
    pub(super) fn leave_queue(&mut self, now: Time, at: DirectedLink) {
        if self.link_actions.taken.is_empty() {
            return;
        }
        let port = &mut self.fabric.ports[at];
        port.queue_changed(now);
        let (owner, left) = (port.owner, port.bytes_of_time(port.waiting()));
        while let Some(id) = self.link_actions.taken.pop() {
            if owner.host().is_none() {
                self.leave_switch(now, at, owner.switch(), left, id);
            }
        }
    }

    fn leave_switch(&mut self, now: Time, at: DirectedLink, switch: SwitchId, left: u64, id: PacketId) {
        let place = SwitchPort { switch: switch.0, port: at.0 };
        self.program.on_departure(now, place, left, self.packets.get_mut(id), self.tags.get_mut(id));
        if self.fabric.switches[switch].has_pfc() {
            self.account(now, at, id, switch, -1);
        }
    }

    /// Accounts for a packet that joins or leaves the queue of `at` at the port that it came by, which may have to pause.
    #[inline]
    fn account(&mut self, now: Time, at: DirectedLink, id: PacketId, switch: SwitchId, sign: i64) {
        let packet = self.packets.get(id);
        let (came_by, class) = (packet.came_by, packet.class);
        if came_by == SimPacket::NOWHERE {
            return;
        }
        // The port that leads back along the link belongs to this switch.
        let fabric = &mut self.fabric;
        let bytes = fabric.ports[at].on_wire(packet.len) as i64;
        let change = fabric.switches[switch].account(&mut fabric.ingress[came_by.reversed()], class, sign * bytes);
        if change != PauseChange::None {
            self.send_pause(now, switch, came_by, class, change);
        }
    }

    /// A switch pauses the port that leads to it, or lets it go on.
    #[cold]
    fn send_pause(&mut self, now: Time, switch: SwitchId, came_by: DirectedLink, class: u8, change: PauseChange) {
        let hold = change == PauseChange::Pause;
        let hops = if hold { self.fabric.pauses.hops(&self.fabric.switches[switch].ports, class) } else { 0 };
        let back = &self.fabric.ports[came_by.reversed()];
        // A pause frame waits at most for the frame being sent.
        let when = back.busy_until.max(now).min(now + back.time_of(1_518)) + back.time_of(64) + back.flight;
        self.queue.schedule(when, NetworkEvent::Pause { port: came_by, class, hold, hops });
    }

    /// A pause has reached a port, with the hops that it has spread, or its end.
    pub(super) fn pause(&mut self, now: Time, at: DirectedLink, class: u8, hold: Option<u8>) {
        let port = &mut self.fabric.ports[at];
        port.counters.paused += u64::from(hold.is_some());
        let paused = match (port.owner.host(), &mut port.queues) {
            (Some(host), _) => &mut self.hosts[host].paused,
            (None, Some(queues)) => &mut queues.paused,
            (None, None) => return,
        };
        if let Some(hops) = hold {
            *paused |= 1 << class;
            self.fabric.pauses.pause(now, at, class, hops);
        } else {
            *paused &= !(1 << class);
            self.fabric.pauses.resume(now, at, class);
            self.serve(now, at);
        }
    }
}

fn mark(port: &mut SimPort, packet: &mut SimPacket) {
    let marked = packet.ecn.marked();
    port.counters.marked += u64::from(marked != packet.ecn);
    packet.ecn = marked;
}
