//! Counters of simulated nodes, decoded slot by slot, and the order in which a flow passes the nodes of a FatTree.

use std::collections::BTreeMap;

use radar::flowset::sizing::DecoderKind;
use radar::flowset::{FlowKey, FlowsetShape};
use report::claim::ClaimError;
use report::runner::Effort;
use sim::net::address;
use sim::net::counting::{CountedSlot, CountingProgram, DroppedPacket};
use sim::net::{self, NetworkSetup};
use sim::topology::{NodeId, Topology};
use units::{Prob, Span};

pub(super) const SLOT: Span = Span::from_ms(10);
/// Flows that a node may have in a slot.
const FLOWS: u64 = 4_000;

/// Packets of each flow, by slot, at each node that counted some.
pub(super) type SlotFlowCounts = BTreeMap<FlowKey, BTreeMap<NodeId, BTreeMap<u64, u32>>>;

/// Contents of a run's flowsets.
#[derive(Debug)]
pub(super) struct FlowsetCounts {
    pub counters: SlotFlowCounts,
    /// Flowsets that could not be decoded to the end.
    pub undecoded: u64,
    pub slots: u64,
    /// Packets that were really lost.
    pub dropped: Vec<DroppedPacket>,
}

/// Runs a network and decodes what all nodes counted; `None` if it was stopped early.
pub(super) fn count(setup: NetworkSetup, effort: &Effort<'_>) -> Result<Option<FlowsetCounts>, ClaimError> {
    let shape = FlowsetShape::for_flows(FLOWS, Prob::literal(0.9999), 3, DecoderKind::Single, 0);
    let (mut counters, mut undecoded, mut slots) = (SlotFlowCounts::new(), 0, 0);
    let topology = setup.topology.clone();
    let mut program = CountingProgram::new(&topology, SLOT, shape, |slot: CountedSlot<'_>| {
        slots = slot.number + 1;
        for (node, flowset) in (0..).zip(slot.flowsets).filter(|(_, flowset)| !flowset.is_empty()) {
            let decoded = flowset.decode();
            undecoded += u64::from(!decoded.is_complete());
            for (flow, packets) in decoded.flows {
                counters.entry(flow).or_default().entry(NodeId(node)).or_default().insert(slot.number, packets);
            }
        }
    });
    let outcome = net::run_with(setup, &mut program, effort.progress).map_err(ClaimError::new)?;
    let dropped = program.finish();
    Ok((!outcome.interrupted).then_some(FlowsetCounts { counters, undecoded, slots, dropped }))
}

/// The nodes of a FatTree that a flow may pass, and their order.
#[derive(Debug)]
pub(super) struct PathOrder {
    neighbours: Vec<Vec<usize>>,
}

impl PathOrder {
    pub(super) fn new(topology: &Topology) -> Self {
        let mut neighbours = vec![Vec::new(); topology.nodes.len()];
        topology.directed().for_each(|link| neighbours[topology.from(link).index()].push(topology.to(link).index()));
        Self { neighbours }
    }

    pub(super) fn neighbours(&self) -> &[Vec<usize>] {
        &self.neighbours
    }

    /// These nodes in the order in which a flow passes them: by how far they are from its source, then from its destination.
    pub(super) fn sort(&self, flow: &FlowKey, nodes: impl Iterator<Item = NodeId>) -> Vec<usize> {
        let ends = [flow.flow().src, flow.flow().dst].map(address::host_of);
        let [Some(src), Some(dst)] = ends else { return Vec::new() };
        let near = |host: NodeId, node: usize| {
            let edge = self.neighbours[host.index()][0];
            match node {
                _ if node == host.index() => 0,
                _ if node == edge => 1,
                _ if self.neighbours[edge].contains(&node) => 2,
                _ => 3,
            }
        };
        let mut nodes: Vec<usize> = nodes.map(NodeId::index).collect();
        nodes.sort_by_key(|node| (near(src, *node), 3 - near(dst, *node)));
        nodes
    }
}
