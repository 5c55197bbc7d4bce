//! Flows under way: what their ends do and are told, until they are over.

use machine::SwitchProgram;
use units::Time;

use super::end::{After, Progress, Tally};
use super::flows::FlowState;
use super::outcome::FlowRow;
use super::packet::{Body, Packet};
use super::world::Network;
use crate::topology::NodeId;

impl<P: SwitchProgram<Frame = Packet>> Network<'_, P> {
    /// A packet is handed to the end that it is for.
    #[inline]
    pub(super) fn hand_over(&mut self, now: Time, id: u32) {
        let packet = self.packets.remove(id);
        let at = packet.to();
        let end = &mut self.ends[at as usize];
        if end.over {
            return self.packet_ends(at);
        }
        end.ended += 1;
        if let Body::Handshake(step) = packet.body {
            return self.shaken(now, at, step);
        }
        let after = end.receive(now, at, packet.body, packet.ecn, &mut self.queue);
        self.after(now, at, after);
    }

    pub(super) fn end_timer(&mut self, now: Time, at: u32, slot: u8) {
        let end = &mut self.ends[at as usize];
        if end.over {
            return;
        }
        let after = end.ring(now, at, slot, &mut self.queue);
        let host = end.host;
        if self.after(now, at, after) {
            let port = self.hosts[host as usize].port;
            self.serve(now, port);
        }
    }

    pub(super) fn end_wakes(&mut self, now: Time, at: u32) {
        let end = &mut self.ends[at as usize];
        if end.wake_at <= now {
            end.wake_at = Time::NEVER;
        }
        let host = end.host;
        if self.after(now, at, After { woken: true, ..After::default() }) {
            let port = self.hosts[host as usize].port;
            self.serve(now, port);
        }
    }

    /// What a call to an end leads to; true if it wants to send. Its host is to be served afterwards.
    #[inline]
    pub(super) fn after(&mut self, now: Time, at: u32, after: After) -> bool {
        if after.progress.is_some() {
            self.progress(now, at, after.progress);
        }
        let end = &mut self.ends[at as usize];
        let wakes = after.woken && !end.over;
        if wakes && !end.ready {
            end.ready = true;
            self.hosts[end.host as usize].ready.push_back(at);
        }
        wakes
    }

    fn progress(&mut self, now: Time, at: u32, progress: Progress) {
        let starts = at.is_multiple_of(2);
        let place = self.ends[at as usize].flow;
        if progress.failed {
            return self.connection_fails(now, place);
        }
        if let Some(bytes) = progress.received
            && !starts
        {
            self.count_received(place, bytes);
        }
        let flow = &self.flows[place as usize];
        let all_there = flow.row.received >= flow.row.bytes;
        let done = match (starts, flow.reply) {
            // What the sender knows to have arrived, and what came back to it.
            (true, 0) => progress.completed,
            (true, _) => progress.placed.or(progress.received.filter(|bytes| *bytes >= flow.reply).map(|_| 1)),
            (false, 0) => all_there.then_some(1),
            (false, _) => {
                let placed = progress.placed.unwrap_or(u64::from(all_there));
                return self.answer_flows(now, at, placed);
            }
        };
        let is_done = |flow: &FlowState| done.is_some_and(|done| flow.done + flow.messages() <= done);
        while is_done(&self.flows[place as usize]) && self.flows[place as usize].under_way {
            self.flow_ends(now, place);
        }
    }

    /// So many bytes of a stream are there.
    fn count_received(&mut self, place: u32, bytes: u64) {
        let flow = &mut self.flows[place as usize];
        self.received[flow.source as usize] += bytes.saturating_sub(flow.row.received);
        flow.row.received = bytes;
    }

    /// The receiver has so many messages in all: answers those that are new.
    fn answer_flows(&mut self, now: Time, at: u32, placed: u64) {
        let flow = &mut self.flows[at as usize / 2];
        let (new, reply) = (placed.saturating_sub(flow.answered), flow.reply);
        flow.answered += new;
        for _ in 0..new {
            let after = self.ends[at as usize].send(now, at, reply, &mut self.queue);
            self.after(now, at, after);
        }
    }

    /// The flow under way is over; the next one that shares its connection is under way.
    fn flow_ends(&mut self, now: Time, place: u32) {
        let flow = &mut self.flows[place as usize];
        flow.done += flow.messages();
        flow.row.finish = (!flow.row.failed).then_some(now);
        let source = flow.source;
        if flow.row.finish.is_some() {
            let bytes = flow.row.bytes;
            self.count_received(place, bytes);
        }
        self.write_row(place);
        self.active -= 1;
        if self.sources[source as usize].is_series() {
            self.schedule_next_flow(source, now);
        }
        let flow = &mut self.flows[place as usize];
        match flow.behind.pop_front() {
            Some(row) => (flow.row, flow.under_way) = (row, true),
            None if flow.shared.is_some() => {}
            None => self.close(place),
        }
    }

    /// All flows that a connection carries have failed; the next to come begins another.
    pub(super) fn connection_fails(&mut self, now: Time, place: u32) {
        if let Some(shared) = self.flows[place as usize].shared.take() {
            self.standing.remove(&shared);
        }
        while self.flows[place as usize].under_way {
            self.flows[place as usize].row.failed = true;
            self.flow_ends(now, place);
        }
        // Nobody may have been using it, when dummies or the last answer failed.
        if !self.flows[place as usize].over {
            self.close(place);
        }
    }

    /// Writes down what became of the flow under way, as far as it came.
    fn write_row(&mut self, place: u32) {
        let mut tally = Tally::default();
        for at in [place * 2, place * 2 + 1] {
            tally += self.ends[at as usize].tally;
        }
        let flow = &mut self.flows[place as usize];
        flow.under_way = false;
        self.outcome.flows.push(FlowRow { tally: tally.since(&flow.told), ..flow.row });
        flow.told = tally;
    }

    /// Ends a connection.
    fn close(&mut self, place: u32) {
        let flow = &mut self.flows[place as usize];
        flow.over = true;
        self.retransmitted += u64::from(flow.told.retransmitted);
        self.timeouts += u64::from(flow.told.timeouts);
        for at in [place * 2, place * 2 + 1] {
            let end = &mut self.ends[at as usize];
            end.over = true;
            end.transport.let_go();
        }
        self.vacate(place);
    }

    /// Writes down all flows that are not over.
    pub(super) fn end_all_flows(&mut self) {
        for place in 0..self.flows.len() {
            while self.flows[place].under_way {
                self.write_row(place as u32);
                let flow = &mut self.flows[place];
                if let Some(row) = flow.behind.pop_front() {
                    (flow.row, flow.under_way) = (row, true);
                }
            }
        }
    }

    /// The hosts at which a flow begins and ends, and its number.
    pub(super) fn flow_of(&self, place: u32) -> (NodeId, NodeId, u32) {
        let flow = &self.flows[place as usize];
        (flow.row.src, flow.row.dst, flow.number)
    }

    /// A packet for this end came to its own.
    pub(super) fn packet_ends(&mut self, at: u32) {
        let end = &mut self.ends[at as usize];
        end.ended += 1;
        if end.over {
            self.vacate(at / 2);
        }
    }

    pub(super) fn vacate(&mut self, place: u32) {
        let [a, b] = [0, 1].map(|side| &self.ends[(place * 2 + side) as usize]);
        // An end that still waits for its turn is looked at once more.
        if a.made + b.made == a.ended + b.ended && !a.ready && !b.ready {
            let flow = &mut self.flows[place as usize];
            assert!(!std::mem::replace(&mut flow.vacated, true), "a packet outlived the place of its connection");
            self.vacant.push(place);
        }
    }
}
