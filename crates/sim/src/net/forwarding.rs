//! Packets on their way through switches.

use machine::{SwitchPort, SwitchProgram, Why};
use units::Time;
use wire::ethernet::on_wire;

use super::events::Event;
use super::outcome::Captured;
use super::packet::{NONE, Packet};
use super::protect::each;
use super::switch::PauseChange;
use super::world::Network;

/// Set in a hop that is a host and not a port.
pub const TO_HOST: u32 = 1 << 31;

impl<P: SwitchProgram<Frame = Packet>> Network<'_, P> {
    /// A packet has come to the end of a hop.
    #[inline]
    pub(super) fn arrive(&mut self, now: Time, id: u32) {
        let hop = if self.rules.is_none() {
            let packet = self.packets.get_mut(id);
            packet.route += 1;
            self.hops[packet.route as usize - 1]
        } else {
            let Some(hop) = self.hop_by_rules(now, id) else { return };
            hop
        };
        if hop & TO_HOST == 0 {
            self.enqueue(now, hop, id);
        } else {
            self.reach_host(now, hop & !TO_HOST, id);
        }
    }

    /// A packet has been routed to a switch port, and joins its queue if there is room.
    #[inline]
    fn enqueue(&mut self, now: Time, at: u32, id: u32) {
        let packet = self.packets.get_mut(id);
        let place = SwitchPort { switch: self.ports[at as usize].owner, port: at };
        let tag = self.tags.get_mut(id);
        match self.program.on_route(now, place, packet, tag) {
            1 => self.join_queue(now, place, id),
            0 => self.discard(id),
            several => {
                let (packet, tag) = (*packet, *tag);
                // Before any of them can come to its end: the place of their connection is theirs until all have.
                self.ends[packet.to() as usize].made += u64::from(several - 1);
                self.join_queue(now, place, id);
                (1..several).for_each(|_| self.repeat(now, place, packet, tag));
            }
        }
    }

    /// A copy of a packet joins the queue that the packet joined.
    fn repeat(&mut self, now: Time, place: SwitchPort, packet: Packet, tag: P::Tag) {
        self.outcome.repeated_bytes += u64::from(on_wire(u32::from(packet.len)));
        let copy = self.packets.insert(packet);
        self.tags.reset(copy);
        *self.tags.get_mut(copy) = tag;
        self.join_queue(now, place, copy);
    }

    #[inline]
    fn join_queue(&mut self, now: Time, place: SwitchPort, id: u32) {
        let at = place.port;
        let packet = self.packets.get_mut(id);
        let bytes = u64::from(on_wire(u32::from(packet.len)));
        let switch = &mut self.switches[place.switch as usize];
        if !switch.admits(now, &self.ports, at as usize, bytes) {
            self.ports[at as usize].counters.dropped += 1;
            return self.lose(now, at, Why::Full, id);
        }
        let port = &mut self.ports[at as usize];
        let backlog = port.backlog(now);
        if port.marks(backlog, || self.random.unit()) {
            let marked = packet.ecn.marked();
            port.counters.marked += u64::from(marked != packet.ecn);
            packet.ecn = marked;
        }
        let time = port.time_of(packet.len);
        if port.queues.is_none() {
            let begin = port.busy_until.max(now);
            port.busy_until = begin + time;
            return self.transmit(begin, at, id);
        }
        if let Some(queues) = &mut port.queues {
            queues.push(&mut self.packets, id, time);
        }
        if self.switches[place.switch as usize].has_pfc() {
            self.account(now, id, place.switch, 1);
        }
        self.serve(now, at);
    }

    /// A packet's first bit is on the wire at `begin`, its last when the port is free again.
    #[inline]
    pub(super) fn transmit(&mut self, begin: Time, at: u32, id: u32) {
        let port = &mut self.ports[at as usize];
        let packet = self.packets.get_mut(id);
        let len = u32::from(packet.len);
        packet.came_by = at;
        port.counters.frames += 1;
        port.counters.wire_bytes += u64::from(on_wire(len));
        let (watched, arrival) = (port.watched, port.busy_until + port.flight);
        let corrupted = port.faults.as_mut().is_some_and(|faults| faults.at(begin).corrupts(len));
        port.counters.corrupted += u64::from(corrupted);
        if watched {
            self.capture(begin, at, id, corrupted);
        }
        if corrupted {
            return self.lose(begin, at, Why::Corrupted, id);
        }
        self.queue.schedule(arrival, Event::Arrive { packet: id });
    }

    pub(super) fn capture(&mut self, now: Time, at: u32, id: u32, corrupted: bool) {
        let packet = *self.packets.get(id);
        let to = packet.to();
        let (src, dst, flow) = self.flow_of(to / 2);
        let forward = !to.is_multiple_of(2);
        self.outcome.captured.push(Captured { at: now, port: at, src, dst, flow, forward, packet, corrupted });
    }

    /// A packet is lost behind the upstream end of a link.
    pub(super) fn lose(&mut self, now: Time, link: u32, why: Why, id: u32) {
        self.program.on_drop(now, link, why, self.packets.get_mut(id), self.tags.get_mut(id));
        self.discard(id);
    }

    /// A packet is gone before it came to its end.
    pub(super) fn discard(&mut self, id: u32) {
        let packet = self.packets.remove(id);
        self.packet_ends(packet.to());
    }

    pub(super) fn look_again(&mut self, now: Time, at: u32) {
        self.ports[at as usize].looked(now);
        self.serve(now, at);
    }

    pub(super) fn look(&mut self, now: Time, at: u32, when: Time) {
        if self.ports[at as usize].look(now, when) {
            self.queue.schedule(when, Event::Look { port: at });
        }
    }

    /// Puts the next packet of a port on the wire, if that is free and there is one.
    pub(super) fn serve(&mut self, now: Time, at: u32) {
        let port = &self.ports[at as usize];
        let (of_host, owner) = (port.of_host, port.owner);
        if port.busy_until > now {
            let when = port.busy_until;
            return self.look(now, at, when);
        }
        if port.protected {
            if of_host {
                self.offer(now, owner);
            }
            return self.with_link(now, at, |link, side, around| each!(link, pair => pair.serve(side, around)));
        }
        if of_host {
            return self.serve_host(now, owner);
        }
        let Some(queues) = &mut self.ports[at as usize].queues else { return };
        let Some(id) = queues.pop(&self.packets) else { return };
        self.depart(now, at, id);
    }

    /// A packet leaves the queue of a switch port for the wire.
    fn depart(&mut self, now: Time, at: u32, id: u32) {
        let port = &mut self.ports[at as usize];
        let time = port.time_of(self.packets.get(id).len);
        let mut more = false;
        if let Some(queues) = &mut port.queues {
            queues.shorten(time);
            more = queues.has_any();
        }
        let (left, switch) = (port.backlog_bytes(now), port.owner);
        port.busy_until = now + time;
        let when = port.busy_until;
        self.leave_switch(now, at, switch, left, id);
        self.transmit(now, at, id);
        if more {
            self.look(now, at, when);
        }
    }

    /// Packets have left the queue of a port for its link protocol.
    pub(super) fn leave_queue(&mut self, now: Time, at: u32) {
        let port = &self.ports[at as usize];
        let (switch, of_host, left) = (port.owner, port.of_host, port.backlog_bytes(now));
        while let Some(id) = self.taken.pop() {
            if !of_host {
                self.leave_switch(now, at, switch, left, id);
            }
        }
    }

    fn leave_switch(&mut self, now: Time, at: u32, switch: u32, left: u64, id: u32) {
        self.program.on_departure(now, SwitchPort { switch, port: at }, left, self.packets.get_mut(id));
        if self.switches[switch as usize].has_pfc() {
            self.account(now, id, switch, -1);
        }
    }

    /// What a packet's coming or going means for whoever sends by the port that it came by.
    fn account(&mut self, now: Time, id: u32, switch: u32, sign: i64) {
        let packet = self.packets.get(id);
        let (came_by, class) = (packet.came_by, packet.class);
        if came_by == NONE {
            return;
        }
        // The port that leads back along the link belongs to this switch.
        let place = self.places[(came_by ^ 1) as usize] as usize;
        let bytes = i64::from(on_wire(u32::from(packet.len)));
        let hold = match self.switches[switch as usize].account(place, class, sign * bytes) {
            PauseChange::None => return,
            PauseChange::Pause => true,
            PauseChange::Resume => false,
        };
        let back = &self.ports[(came_by ^ 1) as usize];
        // A pause frame waits at most for the frame being sent.
        let when = back.busy_until.max(now).min(now + back.time_of(1_518)) + back.time_of(64) + back.flight;
        self.queue.schedule(when, Event::Pause { port: came_by, class, hold });
    }

    pub(super) fn pause(&mut self, now: Time, at: u32, class: u8, hold: bool) {
        let port = &mut self.ports[at as usize];
        port.counters.paused += u64::from(hold);
        let paused = match (&mut port.queues, port.of_host) {
            (_, true) => &mut self.hosts[port.owner as usize].paused,
            (Some(queues), false) => &mut queues.paused,
            (None, false) => return,
        };
        if hold {
            *paused |= 1 << class;
        } else {
            *paused &= !(1 << class);
            self.serve(now, at);
        }
    }
}
