//! A host: one interface that its connections take turns at, and a processor that takes its time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::{Index, IndexMut};

use faults::Random;
use homa::GrantScheduler;
use roce::melo::Nic;
use units::{Span, Time};

use super::end::FlowEnd;
use super::index::{ConnectionId, EndId, HostId, IndexVec, PacketId};
use super::outcome::PoolUse;
use super::processor::RunningProcessor;
use super::reserving_host::RackNic;
use super::setup::HostLatency;
use crate::topology::{DirectedLink, NodeId};

/// All hosts of a network, and the ends of their connections.
#[derive(Debug)]
pub(super) struct Hosts {
    all: IndexVec<HostId, SimHost>,
    by_node: IndexVec<NodeId, Option<HostId>>,
    pub ends: IndexVec<EndId, FlowEnd>,
}

impl Hosts {
    /// `nodes` is how many nodes the topology has.
    pub(super) fn new(all: IndexVec<HostId, SimHost>, nodes: usize) -> Self {
        let mut by_node: IndexVec<NodeId, Option<HostId>> = (0..nodes).map(|_| None).collect();
        for (id, host) in all.enumerate() {
            by_node[host.node] = Some(id);
        }
        Self { all, by_node, ends: IndexVec::new() }
    }

    /// The host that a node is.
    ///
    /// # Panics
    /// Panics if the node is a switch: flows begin and end at hosts.
    pub(super) fn at(&self, node: NodeId) -> HostId {
        self.by_node[node].expect("flows begin and end at hosts")
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &SimHost> {
        self.all.iter()
    }

    /// The host of an end.
    pub(super) fn of(&self, end: EndId) -> &SimHost {
        &self.all[self.ends[end].host]
    }

    /// The port by which an end sends.
    #[inline]
    pub(super) fn port_of(&self, end: EndId) -> DirectedLink {
        self.of(end).port
    }

    /// The next end of a host that may send: those with acknowledgements first, then those with data, by turns.
    pub(super) fn next_end(&mut self, host: HostId, lane: u8) -> Option<EndId> {
        let (ends, host) = (&mut self.ends, &mut self.all[host]);
        let (paused, mixed) = (host.paused, host.mixed);
        let line = host.line_mut(lane);
        let urgent = take_turn(&mut line.urgent, paused, mixed, |end| ends[end].ack_class);
        if let Some(end) = urgent {
            ends[end].urgent = false;
            return Some(end);
        }
        let end = take_turn(&mut line.ready, paused, mixed, |end| ends[end].turn())?;
        ends[end].ready = false;
        host.sending = Some(end);
        Some(end)
    }

    /// True if a host has something to send.
    #[inline]
    pub(super) fn has_any(&self, host: HostId) -> bool {
        self.all[host].line.has_any()
    }

    /// An end must not be asked before this time. When its host is to be woken, if no event is scheduled that early.
    pub(super) fn wait_until(&mut self, id: EndId, at: Time) -> Option<Time> {
        let end = &mut self.ends[id];
        if at >= end.wake_at {
            return None;
        }
        end.wake_at = at;
        let host = &mut self.all[end.host];
        host.paced.push(Reverse((at, id)));
        (at < host.wakes_at).then(|| {
            host.wakes_at = at;
            at
        })
    }

    /// The time has come for which a host was to be woken: the next end that may be asked again.
    pub(super) fn next_woken(&mut self, now: Time, host: HostId) -> Option<EndId> {
        while let Some(Reverse((at, id))) = self.all[host].paced.peek().copied() {
            if at > now {
                return None;
            }
            self.all[host].paced.pop();
            let end = &mut self.ends[id];
            if end.wake_at == at && !end.over {
                end.wake_at = Time::NEVER;
                return Some(id);
            }
        }
        None
    }

    /// Next time at which a host is to be woken, after this event.
    pub(super) fn wakes_next(&mut self, host: HostId) -> Option<Time> {
        let host = &mut self.all[host];
        host.wakes_at = host.paced.peek().map_or(Time::NEVER, |Reverse((at, _))| *at);
        (host.wakes_at != Time::NEVER).then_some(host.wakes_at)
    }

    /// Queues an end that has something to send for its turn, unless it waits already.
    #[inline]
    pub(super) fn line_up(&mut self, id: EndId, urgent: bool) {
        let end = &mut self.ends[id];
        let (host, lane) = (&mut self.all[end.host], end.lane);
        if urgent && !end.urgent {
            end.urgent = true;
            host.line_mut(lane).urgent.push_back(id);
        }
        if !urgent && !end.ready {
            end.ready = true;
            let (newcomers_first, sending) = (host.newcomers_first, host.sending);
            let ready = &mut host.line_mut(lane).ready;
            let before_last = newcomers_first && ready.back().is_some_and(|last| sending == Some(*last));
            ready.insert(ready.len() - usize::from(before_last), id);
        }
        if host.reserves {
            host.fill(lane);
        }
    }

    /// Ends of the same host that have grants to send since their scheduler was last called.
    pub(super) fn line_up_granted(&mut self, id: EndId) {
        let host = self.ends[id].host;
        while let Some(end) = self.all[host].grants.as_ref().and_then(GrantScheduler::next_woken) {
            let end = EndId(end);
            if !self.ends[end].over {
                self.line_up(end, true);
            }
        }
    }

    /// True if an end must not send: its connection has ended, or its class is paused.
    pub(super) fn is_held(&self, id: EndId) -> bool {
        let end = &self.ends[id];
        end.over || self.all[end.host].paused & 1 << end.class != 0
    }

    /// True if no packet of a connection is under way and neither end waits for its turn. Such an end is checked once more.
    pub(super) fn is_vacant(&self, connection: ConnectionId) -> bool {
        let [a, b] = connection.ends().map(|end| &self.ends[end]);
        a.made + b.made == a.ended + b.ended && !a.ready && !b.ready && !a.urgent && !b.urgent
    }
}

impl Index<HostId> for Hosts {
    type Output = SimHost;

    #[inline]
    fn index(&self, host: HostId) -> &SimHost {
        &self.all[host]
    }
}

impl IndexMut<HostId> for Hosts {
    #[inline]
    fn index_mut(&mut self, host: HostId) -> &mut SimHost {
        &mut self.all[host]
    }
}

#[derive(Debug)]
pub(super) struct SimHost {
    pub node: NodeId,
    /// Port by which the host sends.
    pub port: DirectedLink,
    line: SendLine,
    /// Lines of all contexts but the first, of a host that reserves.
    pub lanes: Vec<SendLine>,
    /// The machine between these lines and the port.
    pub rack: Option<Box<RackNic>>,
    /// True if the host reserves.
    pub reserves: bool,
    /// Contexts whose line has an end that the interface has not heard of.
    pub filled: Vec<u8>,
    /// True once the host neither sends nor receives.
    pub dead: bool,
    /// The end whose data was sent last; whether those that become ready while it is on the wire go before its next packet.
    sending: Option<EndId>,
    pub newcomers_first: bool,
    /// Ends that wait for their pace, the earliest first, and the event that is scheduled for them. An end whose time has
    /// changed is in it more than once; only the time that it knows counts.
    paced: BinaryHeap<Reverse<(Time, EndId)>>,
    pub wakes_at: Time,
    /// Classes that may not send now.
    pub paused: u8,
    /// True if its ends are of several classes.
    mixed: bool,
    /// Batches that its processor has worked on.
    pub batches: u32,
    /// Packets that the interface has received since the last interrupt.
    received: Vec<PacketId>,
    /// Batches that wait for the processor, one for each interrupt; `spare` keeps their lists for reuse.
    batches_waiting: VecDeque<Vec<PacketId>>,
    spare: Vec<Vec<PacketId>>,
    last_processed: Time,
    /// Packets in the pipeline of an interface that handles them itself, how long the pipeline takes now, and when the
    /// last of them comes out.
    in_pipeline: u32,
    pipeline: Span,
    last_out: Time,
    latency: HostLatency,
    random: Random,
    /// Processor of the host, if its work takes time.
    pub processor: Option<Box<RunningProcessor>>,
    /// Pools of bits that its connections share, if they do.
    pub nic: Option<Nic<u16>>,
    /// Scheduler of the messages that it receives, if there is one.
    pub grants: Option<GrantScheduler>,
}

/// Ends that have something to send, in turn; those that have acknowledgements or the like apart.
#[derive(Debug, Default)]
pub(super) struct SendLine {
    ready: VecDeque<EndId>,
    urgent: VecDeque<EndId>,
}

impl SendLine {
    #[inline]
    pub(super) fn has_any(&self) -> bool {
        !self.ready.is_empty() || !self.urgent.is_empty()
    }
}

impl SimHost {
    #[inline]
    pub(super) fn line(&self, lane: u8) -> &SendLine {
        if lane == 0 { &self.line } else { &self.lanes[usize::from(lane) - 1] }
    }

    #[inline]
    fn line_mut(&mut self, lane: u8) -> &mut SendLine {
        if lane == 0 { &mut self.line } else { &mut self.lanes[usize::from(lane) - 1] }
    }

    /// Remembers that a line has got an end.
    pub(super) fn fill(&mut self, lane: u8) {
        if !self.filled.contains(&lane) {
            self.filled.push(lane);
        }
    }

    /// Makes the host reserve from now on, with a line for each context.
    pub(super) fn reserve(&mut self, contexts: u16, rack: RackNic) {
        self.lanes = (1..contexts).map(|_| SendLine::default()).collect();
        self.rack = Some(Box::new(rack));
        self.reserves = true;
    }

    pub(super) fn new(node: NodeId, port: DirectedLink, mixed: bool, latency: HostLatency, random: Random) -> Self {
        Self {
            node,
            port,
            line: SendLine::default(),
            lanes: Vec::new(),
            rack: None,
            reserves: false,
            filled: Vec::new(),
            dead: false,
            sending: None,
            newcomers_first: false,
            paced: BinaryHeap::new(),
            wakes_at: Time::NEVER,
            paused: 0,
            mixed,
            batches: 0,
            received: Vec::new(),
            batches_waiting: VecDeque::new(),
            spare: Vec::new(),
            last_processed: Time::ZERO,
            in_pipeline: 0,
            pipeline: Span::ZERO,
            last_out: Time::ZERO,
            latency,
            random,
            processor: None,
            nic: None,
            grants: None,
        }
    }

    /// Most bits in use of the host's pools, if it has any.
    pub(super) fn pool_use(&self) -> Option<PoolUse> {
        let nic = self.nic.as_ref()?;
        let block = nic.receive().block();
        let (receive, send) = (nic.receive().usage(), nic.send().usage());
        Some(PoolUse {
            host: self.node,
            size: receive.blocks * block,
            receive_peak: receive.peak * block,
            send_peak: send.peak * block,
            refused: receive.refusals,
        })
    }

    pub(super) fn is_immediate(&self) -> bool {
        self.latency == HostLatency::None && self.processor.is_none()
    }

    pub(super) fn typical_latency(&self) -> Span {
        self.latency.typical()
    }

    /// A packet comes in. If nothing waits, when the interrupt comes for it and for what arrives until then: half of the
    /// latency is waiting, half is work.
    pub(super) fn receive(&mut self, now: Time, packet: PacketId) -> Option<Time> {
        self.received.push(packet);
        let first = self.received.len() == 1;
        if first {
            self.pipeline = self.latency.draw(&mut self.random);
        } else if self.latency.is_per_packet() {
            self.pipeline = self.pipeline.max(self.latency.draw(&mut self.random));
        }
        first.then(|| now + self.pipeline / 2)
    }

    /// The interrupt has come. When the processor will be done with all of it.
    pub(super) fn interrupt(&mut self, now: Time) -> Time {
        let next = self.spare.pop().unwrap_or_default();
        self.batches_waiting.push_back(std::mem::replace(&mut self.received, next));
        self.last_processed = self.last_processed.max(now + self.pipeline / 2);
        self.last_processed
    }

    /// The packets that the processor is done with.
    pub(super) fn processed(&mut self) -> Vec<PacketId> {
        self.batches += 1;
        self.batches_waiting.pop_front().unwrap_or_default()
    }

    /// Keeps an emptied list for reuse.
    pub(super) fn put_back(&mut self, list: Vec<PacketId>) {
        self.spare.push(list);
    }

    /// Takes a packet that the interface handles itself, in order of arrival. Returns the time at which it is done.
    pub(super) fn pipe(&mut self, now: Time) -> Time {
        if self.in_pipeline == 0 || self.latency.is_per_packet() {
            self.pipeline = self.latency.draw(&mut self.random);
        }
        self.in_pipeline += 1;
        self.last_out = self.last_out.max(now + self.pipeline);
        self.last_out
    }

    /// The same for a packet of a job: its latency is drawn from randomness of its own, behind the packet before it on its
    /// connection, whatever else comes.
    pub(super) fn pipe_drawn(&mut self, now: Time, before: Time, mut draws: Random) -> Time {
        self.in_pipeline += 1;
        before.max(now + self.latency.draw(&mut draws))
    }

    pub(super) fn draw_latency(&mut self) -> Span {
        self.latency.draw(&mut self.random)
    }

    /// Time at which its data may leave, if that is later than now.
    #[inline]
    pub(super) fn holds_data(&mut self, now: Time) -> Option<Time> {
        let processor = self.processor.as_mut()?;
        if self.line.ready.is_empty() || !self.line.urgent.is_empty() {
            return None;
        }
        processor.holds_data(now)
    }

    /// A frame of this length leaves.
    #[inline]
    pub(super) fn sent(&mut self, len: u16) {
        if let Some(processor) = &mut self.processor {
            processor.sent(len, !self.line.ready.is_empty());
        }
    }

    pub(super) fn piped(&mut self) {
        self.in_pipeline -= 1;
    }
}

/// Takes the next end that may send out of a line: of the first class that has one, by turns.
fn take_turn(line: &mut VecDeque<EndId>, paused: u8, mixed: bool, class_of: impl Fn(EndId) -> u8) -> Option<EndId> {
    if paused == 0 && !mixed {
        return line.pop_front();
    }
    let classes = line.iter().map(|end| class_of(*end)).enumerate();
    let (at, _) = classes.filter(|(_, class)| paused & 1 << class == 0).min_by_key(|(_, class)| *class)?;
    line.remove(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrives_before_the_interrupt_is_processed_together() {
        let mut host =
            SimHost::new(NodeId(0), DirectedLink(0), false, HostLatency::Fixed(Span::from_us(8)), Random::new(1, 0));
        let us = |us| Time::ZERO + Span::from_us(us);
        assert_eq!((host.receive(us(1), PacketId(1)), host.receive(us(4), PacketId(2))), (Some(us(5)), None));
        assert_eq!(host.interrupt(us(5)), us(9));
        assert_eq!(host.receive(us(6), PacketId(3)), Some(us(10)), "another batch, while the first is processed");
        assert_eq!(host.processed(), [PacketId(1), PacketId(2)]);
        assert_eq!(host.interrupt(us(10)), us(14));
        assert_eq!(host.processed(), [PacketId(3)]);
    }

    #[test]
    fn an_interface_handles_packets_one_by_one_and_in_order() {
        let latency = HostLatency::LogNormal { median: Span::from_us(5), sigma: 0.5 };
        let mut host = SimHost::new(NodeId(0), DirectedLink(0), false, latency, Random::new(1, 0));
        let us = |us| Time::ZERO + Span::from_us(us);
        let (first, second) = (host.pipe(us(1)), host.pipe(us(2)));
        assert_eq!(second.since(first), Span::from_us(1));
        host.piped();
        host.piped();
        assert_ne!(host.pipe(us(100)).since(us(100)), first.since(us(1)), "drawn anew");
    }

    #[test]
    fn a_normal_latency_is_drawn_for_every_packet_and_without_deviation_it_is_fixed() {
        let (mean, us) = (Span::from_us(10), |us| Time::ZERO + Span::from_us(us));
        let run = |latency| {
            let mut host = SimHost::new(NodeId(0), DirectedLink(0), false, latency, Random::new(1, 0));
            let first = host.receive(us(1), PacketId(1));
            (2..50).for_each(|number| assert_eq!(host.receive(us(2), PacketId(number)), None));
            (first, host.interrupt(us(6)))
        };
        let normal = |deviation| run(HostLatency::Normal { mean, deviation });
        assert_eq!(normal(Span::ZERO), run(HostLatency::Fixed(mean)));
        let (first, processed) = normal(Span::from_ns(100));
        let first = first.unwrap();
        assert!(first != us(6) && first.since(us(5)) < Span::from_us(2), "{first:?}");
        assert!(processed > us(11) + Span::from_ns(50), "the slowest of 49: {processed:?}");
    }

    #[test]
    fn a_paused_class_lets_others_pass() {
        let mut line: VecDeque<EndId> = [0, 1, 2].map(EndId).into();
        let class = |end: EndId| if end.0 == 1 { 0 } else { 3 };
        assert_eq!([0; 2].map(|_| take_turn(&mut line, 1 << 3, false, class)), [Some(EndId(1)), None]);
    }

    #[test]
    fn the_first_class_goes_first_and_its_ends_by_turns() {
        let mut line: VecDeque<EndId> = [0, 1, 2, 3].map(EndId).into();
        let class = |end: EndId| if end.0 % 2 == 1 { 0 } else { 3 };
        assert_eq!([0; 4].map(|_| take_turn(&mut line, 0, true, class)), [1, 3, 0, 2].map(|end| Some(EndId(end))));
    }

    #[test]
    fn the_median_of_the_draws_is_the_one_asked_for() {
        let latency = HostLatency::LogNormal { median: Span::from_us(10), sigma: 0.5 };
        let mut random = Random::new(1, 0);
        let mut draws: Vec<Span> = (0..10_001).map(|_| latency.draw(&mut random)).collect();
        draws.sort_unstable();
        let (median, high) = (draws[5_000].as_us(), draws[9_772].as_us());
        assert!((median - 10.0).abs() < 0.3, "{median}");
        assert!((high / 10.0 - 1f64.exp()).abs() < 0.25, "two sigma: {high}");
    }
}
