//! Packets on their way: from a host's interface through switches to another host.

use machine::{Pull, SwitchPort, SwitchProgram};
use units::Time;
use wire::ethernet::on_wire;

use super::end::Segment;
use super::events::Event;
use super::outcome::Captured;
use super::packet::{Body, NONE, Packet};
use super::protect::each;
use super::switch::PauseChange;
use super::world::Network;

/// Set in a hop that is a host and not a port.
pub const TO_HOST: u32 = 1 << 31;

impl<P: SwitchProgram<Frame = Packet>> Network<'_, P> {
    /// A packet has come to the end of a hop.
    #[inline]
    pub(super) fn arrive(&mut self, now: Time, id: u32) {
        let packet = self.packets.get_mut(id);
        let hop = self.hops[packet.route as usize];
        packet.route += 1;
        if hop & TO_HOST == 0 {
            self.enqueue(now, hop, id);
        } else {
            self.reach_host(now, hop & !TO_HOST, id);
        }
    }

    /// A packet joins the queue of a switch port, unless there is no room.
    #[inline]
    fn enqueue(&mut self, now: Time, at: u32, id: u32) {
        let packet = self.packets.get_mut(id);
        let place = SwitchPort { switch: self.ports[at as usize].owner, port: at };
        if !self.program.on_route(now, place, packet) {
            return self.discard(id);
        }
        let bytes = u64::from(on_wire(u32::from(packet.len)));
        let switch = &mut self.switches[place.switch as usize];
        if !switch.admits(now, &self.ports, at as usize, bytes) {
            self.ports[at as usize].counters.dropped += 1;
            return self.discard(id);
        }
        let port = &mut self.ports[at as usize];
        let backlog = port.backlog(now);
        if port.marks(backlog, || self.random.unit()) {
            packet.ecn = packet.ecn.marked();
            port.counters.marked += 1;
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
    fn transmit(&mut self, begin: Time, at: u32, id: u32) {
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
            return self.discard(id);
        }
        self.queue.schedule(arrival, Event::Arrive { packet: id });
    }

    pub(super) fn capture(&mut self, now: Time, at: u32, id: u32, corrupted: bool) {
        let packet = *self.packets.get(id);
        let flow = self.ends[packet.to as usize].flow;
        let (src, dst) = self.flow_ends_of(flow);
        let forward = !packet.to.is_multiple_of(2);
        self.outcome.captured.push(Captured { at: now, port: at, src, dst, flow, forward, packet, corrupted });
    }

    /// A packet is gone before it came to its end.
    pub(super) fn discard(&mut self, id: u32) {
        let packet = self.packets.remove(id);
        self.packet_ends(packet.to);
    }

    pub(super) fn look_again(&mut self, now: Time, at: u32) {
        let port = &mut self.ports[at as usize];
        if port.look_at <= now {
            port.look_at = Time::NEVER;
        }
        self.serve(now, at);
    }

    fn look(&mut self, at: u32, when: Time) {
        let port = &mut self.ports[at as usize];
        if when < port.look_at {
            port.look_at = when;
            self.queue.schedule(when, Event::Look { port: at });
        }
    }

    /// Puts the next packet of a port on the wire, if that is free and there is one.
    pub(super) fn serve(&mut self, now: Time, at: u32) {
        let port = &self.ports[at as usize];
        let (of_host, owner) = (port.of_host, port.owner);
        if port.busy_until > now {
            let when = port.busy_until;
            return self.look(at, when);
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
        self.program.on_departure(now, SwitchPort { switch, port: at }, left, self.packets.get_mut(id));
        if self.switches[switch as usize].has_pfc() {
            self.account(now, id, switch, -1);
        }
        self.transmit(now, at, id);
        if more {
            self.look(at, when);
        }
    }

    /// Packets have left the queue of a port for its link protocol.
    pub(super) fn leave_queue(&mut self, now: Time, at: u32) {
        let port = &self.ports[at as usize];
        let counted = !port.of_host && self.switches[port.owner as usize].has_pfc();
        let switch = port.owner;
        while let Some(id) = self.taken.pop() {
            if counted {
                self.account(now, id, switch, -1);
            }
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
        let place = usize::from(self.places[(came_by ^ 1) as usize]);
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

    fn reach_host(&mut self, now: Time, host: u32, id: u32) {
        if self.hosts[host as usize].is_immediate() {
            return self.receive_one(now, host, id);
        }
        // RDMA is what an interface does without asking its host.
        if let Body::Roce(_) = self.packets.get(id).body {
            let at = self.hosts[host as usize].pipe(now);
            return self.queue.schedule(at, Event::PipeEnds { host, packet: id });
        }
        if let Some(at) = self.hosts[host as usize].receive(now, id) {
            self.queue.schedule(at, Event::HostReceives { host });
        }
    }

    pub(super) fn receive_one(&mut self, now: Time, host: u32, id: u32) {
        self.hand_over(now, id);
        let port = self.hosts[host as usize].port;
        self.serve(now, port);
    }

    /// A host gets to what its interface has received. Segments that follow each other are dealt with as one, as
    /// receive offload does, and one acknowledgement is enough for them; one that does not ends the run, and what it
    /// makes its receiver say is said before what comes behind.
    pub(super) fn host_receives(&mut self, now: Time, host: u32) {
        let mut received = std::mem::take(&mut self.hosts[host as usize].received);
        let mut run = None;
        for id in received.drain(..) {
            let packet = self.packets.get(id);
            let follows = match packet.body {
                Body::Tcp(segment) if segment.len > 0 => Some((packet.to, segment.seq, segment.len)),
                _ => None,
            };
            if let (Some((end, next)), Some((to, seq, _))) = (run, follows)
                && (end, next) != (to, seq)
            {
                self.answer(now, host, end);
            }
            run = follows.map_or(run, |(to, seq, len)| Some((to, seq + u64::from(len))));
            self.hand_over(now, id);
        }
        self.hosts[host as usize].received = received;
        let port = self.hosts[host as usize].port;
        self.serve(now, port);
    }

    /// Lets an end say what it has to say now, behind whatever the interface is sending.
    fn answer(&mut self, now: Time, host: u32, id: u32) {
        let at = self.hosts[host as usize].port;
        let end = &mut self.ends[id as usize];
        if end.over || self.ports[at as usize].protected {
            return;
        }
        let (_, segment) = end.pull(now, id, &mut self.queue);
        let Some(segment) = segment else { return };
        let packet = self.packet(id, segment);
        let port = &mut self.ports[at as usize];
        let begin = port.busy_until.max(now);
        port.busy_until = begin + port.time_of(segment.len);
        self.transmit(begin, at, packet);
    }

    /// A packet of an end's segment.
    fn packet(&mut self, id: u32, segment: Segment) -> u32 {
        let end = &mut self.ends[id as usize];
        end.made += 1;
        self.packets.insert(Packet {
            route: end.route,
            to: id ^ 1,
            came_by: NONE,
            next: NONE,
            len: segment.len,
            class: end.class,
            ecn: segment.ecn,
            body: segment.body,
        })
    }

    /// The next packet of a host that has any, by turns.
    fn next_of_host(&mut self, now: Time, host: u32) -> Option<u32> {
        loop {
            let ends = &self.ends;
            let id = self.hosts[host as usize].next(|end| ends[end as usize].class)?;
            let end = &mut self.ends[id as usize];
            if end.over {
                end.ready = false;
                self.vacate(id / 2);
                continue;
            }
            let (pull, segment) = end.pull(now, id, &mut self.queue);
            match pull {
                Pull::Sent => self.hosts[host as usize].ready.push_back(id),
                Pull::Last | Pull::Idle => end.ready = false,
                Pull::NotBefore(at) => {
                    end.ready = false;
                    if at < end.wake_at {
                        end.wake_at = at;
                        self.queue.schedule(at, Event::EndWakes { end: id });
                    }
                }
            }
            let Some(segment) = segment else { continue };
            return Some(self.packet(id, segment));
        }
    }

    fn serve_host(&mut self, now: Time, host: u32) {
        let Some(id) = self.next_of_host(now, host) else { return };
        let at = self.hosts[host as usize].port;
        let port = &mut self.ports[at as usize];
        port.busy_until = now + port.time_of(self.packets.get(id).len);
        let when = port.busy_until;
        self.transmit(now, at, id);
        if !self.hosts[host as usize].ready.is_empty() {
            self.look(at, when);
        }
    }

    /// A link protocol takes packets from a queue: keeps one there for it.
    fn offer(&mut self, now: Time, host: u32) {
        let at = self.hosts[host as usize].port as usize;
        if self.ports[at].queues.as_ref().is_some_and(|queues| queues.has_any()) {
            return;
        }
        let Some(id) = self.next_of_host(now, host) else { return };
        let port = &mut self.ports[at];
        let time = port.time_of(self.packets.get(id).len);
        if let Some(queues) = &mut port.queues {
            queues.push(&mut self.packets, id, time);
        }
    }
}
