//! Where packets begin and end: the interfaces of hosts.

use machine::{Conversation, Pull, SwitchProgram};
use units::Time;

use super::end::Segment;
use super::events::Event;
use super::packet::{Body, NONE, Packet};
use super::world::Network;

impl<P: SwitchProgram<Frame = Packet>> Network<'_, P> {
    /// A packet has come to the host that it is for.
    pub(super) fn reach_host(&mut self, now: Time, host: u32, id: u32) {
        if P::WATCHES_HOSTS {
            let packet = self.packets.get_mut(id);
            self.program.on_host_receives(now, packet.came_by, packet, self.tags.get_mut(id));
        }
        if self.hosts[host as usize].is_immediate() {
            return self.receive_one(now, host, id);
        }
        // RDMA is what an interface does without asking its host.
        if let Body::Roce(_) | Body::Selective(_) = self.packets.get(id).body {
            let at = self.hosts[host as usize].pipe(now);
            return self.queue.schedule(at, Event::PipeEnds { host, packet: id });
        }
        if let Some(at) = self.hosts[host as usize].receive(now, id) {
            self.queue.schedule(at, Event::HostTold { host });
        }
    }

    pub(super) fn receive_one(&mut self, now: Time, host: u32, id: u32) {
        self.hand_over(now, id);
        let port = self.hosts[host as usize].port;
        self.serve(now, port);
    }

    /// A host gets to what its interface has received. Segments of a flow that follow each other are dealt with as one, as
    /// receive offload does, and one acknowledgement is enough for them; what one that does not follow makes its
    /// receiver say is said after what those before it did.
    pub(super) fn host_receives(&mut self, now: Time, host: u32) {
        let mut received = self.hosts[host as usize].dealt_with();
        let batch = self.hosts[host as usize].batches;
        for id in received.drain(..) {
            let packet = self.packets.get(id);
            let to = packet.to();
            if let Body::Tcp(segment) = packet.body
                && segment.len > 0
                && self.ends[to as usize].run.takes(batch, segment.seq, segment.len)
            {
                self.answer(now, host, to);
            }
            self.hand_over(now, id);
        }
        self.hosts[host as usize].put_back(received);
        let port = self.hosts[host as usize].port;
        self.serve(now, port);
    }

    /// Lets an end say what it has to say now, behind whatever the interface is sending.
    fn answer(&mut self, now: Time, host: u32, id: u32) {
        let at = self.hosts[host as usize].port;
        let end = &mut self.ends[id as usize];
        let paused = self.hosts[host as usize].paused & 1 << end.class != 0;
        if end.over || paused || self.ports[at as usize].protected {
            return;
        }
        let (_, segment) = end.pull(now, id, &mut self.queue);
        let Some(segment) = segment else { return };
        let packet = self.packet(now, id, segment);
        self.send_behind(now, at, packet);
    }

    /// A packet leaves a host behind whatever its interface is sending.
    pub(super) fn send_behind(&mut self, now: Time, at: u32, id: u32) {
        let port = &mut self.ports[at as usize];
        let begin = port.busy_until.max(now);
        port.busy_until = begin + port.time_of(self.packets.get(id).len);
        self.transmit(begin, at, id);
    }

    /// A packet of an end's segment.
    pub(super) fn packet(&mut self, now: Time, id: u32, segment: Segment) -> u32 {
        let end = &mut self.ends[id as usize];
        end.made += 1;
        let host = end.host;
        let packet = self.packets.insert(Packet {
            route: end.route,
            came_by: NONE,
            next: NONE,
            len: segment.len,
            class: end.class,
            ecn: segment.ecn,
            body: segment.body,
        });
        self.tags.reset(packet);
        if P::WATCHES_HOSTS {
            self.show_sent(now, host, id, packet);
        }
        packet
    }

    /// Shows the program a packet that an end has made.
    fn show_sent(&mut self, now: Time, host: u32, end: u32, id: u32) {
        let (src, dst, flow) = self.flow_of(end / 2);
        let forward = end.is_multiple_of(2);
        let (from, to) = if forward { (src.0, dst.0) } else { (dst.0, src.0) };
        let (who, link) = (Conversation { from, to, flow, forward }, self.hosts[host as usize].port);
        self.program.on_host_sends(now, link, who, self.packets.get_mut(id), self.tags.get_mut(id));
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
            return Some(self.packet(now, id, segment));
        }
    }

    pub(super) fn serve_host(&mut self, now: Time, host: u32) {
        let Some(id) = self.next_of_host(now, host) else { return };
        let at = self.hosts[host as usize].port;
        let port = &mut self.ports[at as usize];
        port.busy_until = now + port.time_of(self.packets.get(id).len);
        let when = port.busy_until;
        self.transmit(now, at, id);
        if !self.hosts[host as usize].ready.is_empty() {
            self.look(now, at, when);
        }
    }

    /// A link protocol takes packets from a queue: keeps one there for it.
    pub(super) fn offer(&mut self, now: Time, host: u32) {
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
