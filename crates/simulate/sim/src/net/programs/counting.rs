//! FlowRadar's flowsets at every switch, slot by slot: li-thesis §4.4.
//!
//! A switch counts a packet when it has routed it, before its buffer: what is lost in that buffer or on the wire behind it
//! is counted here and not at the next switch; what its tables drop is counted at the switch before and not here. Hosts
//! count what they send and receive, as their hypervisors would, so that first and last hops can be compared too.
//!
//! At the end of each slot `on_slot` is given the flowsets of all nodes, by node, and they begin anew. The slot
//! that is open when the run ends is handed out by [`CountingProgram::finish`].

use std::fmt;

use machine::{Conversation, DropReason, Forward, SwitchPort, SwitchProgram, Visit};
use radar::flowset::{FlowKey, Flowset, FlowsetShape};
use radar::packet::Flow;
use units::{Span, Time};

use super::NetworkProgram;
use crate::net::address;
use crate::net::packet::SimPacket;
use crate::topology::{DirectedLink, NodeId, Topology};

/// Counts of all nodes in one slot.
#[derive(Debug)]
pub struct CountedSlot<'a> {
    pub number: u64,
    /// Time at which it ended.
    pub end: Time,
    /// Flowsets by node.
    pub flowsets: &'a [Flowset],
}

/// A packet that was really lost: ground truth, which decoders never see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DroppedPacket {
    pub at: Time,
    /// Link behind whose upstream end the packet was lost.
    pub link: DirectedLink,
    pub why: DropReason,
    pub flow: Flow,
}

pub struct CountingProgram<F> {
    slot: Span,
    number: u64,
    end: Time,
    flowsets: Vec<Flowset>,
    /// The node of each switch, and of each host's link.
    switches: Vec<NodeId>,
    sends: Vec<NodeId>,
    receives: Vec<NodeId>,
    pub dropped: Vec<DroppedPacket>,
    on_slot: F,
}

impl<F: FnMut(CountedSlot<'_>)> CountingProgram<F> {
    /// `on_slot` is called at the end of every slot. Switches hash with different seeds, as decoding across a network wants it.
    pub fn new(topology: &Topology, slot: Span, shape: FlowsetShape, on_slot: F) -> Self {
        assert!(slot > Span::ZERO, "a slot takes some time");
        let nodes = topology.nodes.len() as u64;
        Self {
            slot,
            number: 0,
            end: Time::ZERO + slot,
            flowsets: (0..nodes).map(|node| Flowset::new(shape.with_seed(node))).collect(),
            switches: topology.switches().collect(),
            sends: topology.directed().map(|link| topology.from(link)).collect(),
            receives: topology.directed().map(|link| topology.to(link)).collect(),
            dropped: Vec::new(),
            on_slot,
        }
    }

    /// Hands out the slot that is still open; what was really lost.
    pub fn finish(mut self) -> Vec<DroppedPacket> {
        self.end_slot();
        self.dropped
    }

    #[inline]
    fn count(&mut self, now: Time, node: NodeId, flow: &FlowTag) {
        while now >= self.end {
            self.end_slot();
        }
        if let Some(flow) = &flow.0 {
            self.flowsets[node.index()].insert(flow);
        }
    }

    #[cold]
    fn end_slot(&mut self) {
        (self.on_slot)(CountedSlot { number: self.number, end: self.end, flowsets: &self.flowsets });
        self.flowsets.iter_mut().for_each(Flowset::clear);
        self.number += 1;
        self.end += self.slot;
    }
}

/// Flow of a packet, kept so that it is looked up once.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlowTag(Option<FlowKey>);

impl<F: FnMut(CountedSlot<'_>)> NetworkProgram for CountingProgram<F> {}

impl<F: FnMut(CountedSlot<'_>)> SwitchProgram for CountingProgram<F> {
    type Frame = SimPacket;
    type Tag = FlowTag;

    fn watches_hosts(&self) -> bool {
        true
    }

    #[inline]
    fn on_route(&mut self, now: Time, at: Visit, _frame: &mut SimPacket, tag: &mut FlowTag) -> Forward {
        self.count(now, self.switches[at.at.switch as usize], tag);
        Forward::Pass
    }

    fn on_copied(&mut self, now: Time, at: SwitchPort, extra: u32, _frame: &mut SimPacket, tag: &mut FlowTag) {
        for _ in 0..extra {
            self.count(now, self.switches[at.switch as usize], tag);
        }
    }

    fn on_sent(&mut self, now: Time, at: SwitchPort, _frame: &mut SimPacket, tag: &mut FlowTag) {
        self.count(now, self.switches[at.switch as usize], tag);
    }

    fn on_host_sends(&mut self, now: Time, link: u32, who: Conversation, frame: &mut SimPacket, tag: &mut FlowTag) {
        *tag = FlowTag(Some(FlowKey::from(&address::flow(who, &frame.body))));
        self.count(now, self.sends[link as usize], tag);
    }

    #[inline]
    fn on_host_receives(&mut self, now: Time, link: u32, _frame: &mut SimPacket, tag: &mut FlowTag) {
        self.count(now, self.receives[link as usize], tag);
    }

    fn on_drop(&mut self, now: Time, link: u32, why: DropReason, _frame: &mut SimPacket, tag: &mut FlowTag) {
        let flow = tag.0.map(|key| key.flow());
        self.dropped.extend(flow.map(|flow| DroppedPacket { at: now, link: DirectedLink(link), why, flow }));
    }
}

impl<F> fmt::Debug for CountingProgram<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, nodes) = (self.number, self.flowsets.len());
        f.debug_struct("Counting").field("number", &number).field("nodes", &nodes).finish_non_exhaustive()
    }
}
