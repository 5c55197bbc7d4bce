//! Results of a run.

use collective::JobOutcome;
use reserve::HostCounters;
use roce::repeat;
use units::{Span, Time};
use wire::reserve::ReserveHeader;

use super::HeaderWriter;
use super::address::Conversation;
use super::end::FlowCounters;
use super::levels::QueueLengths;
use super::packet::SimPacket;
use super::pfc::PauseTotals;
use super::port::PortCounters;
use super::programs::metering;
use super::programs::reserving::RackOutcome;
use super::protected::LinkTally;
use crate::histogram::SpanHistogram;
use crate::topology::{DirectedLink, NodeId, TopologyLinkId};

/// One flow, complete or not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowRow {
    /// `traffic`: traffic that the flow belongs to. `group`: group within that traffic.
    pub traffic: u16,
    pub group: u16,
    pub src: NodeId,
    pub dst: NodeId,
    pub bytes: u64,
    pub start: Time,
    pub finish: Option<Time>,
    /// Duration that it would have had alone, if hosts took no time.
    pub ideal: Span,
    /// Counts a slowdown below 1 as 1.
    pub is_cut: bool,
    /// Payload that had arrived in order.
    pub received: u64,
    pub failed: bool,
    pub tally: FlowCounters,
}

impl FlowRow {
    /// Flow completion time.
    pub fn fct(&self) -> Option<Span> {
        self.finish.map(|finish| finish.since(self.start))
    }

    /// Ratio of its duration to the duration alone.
    pub fn slowdown(&self) -> Option<f64> {
        let least = if self.is_cut { 1.0 } else { 0.0 };
        self.fct().map(|fct| (fct.as_ps() as f64 / self.ideal.as_ps().max(1) as f64).max(least))
    }
}

/// Result of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobResult {
    /// Number of the traffic that it is.
    pub traffic: u16,
    /// Host of each rank.
    pub hosts: Vec<NodeId>,
    pub outcome: JobOutcome,
}

/// Values that were sampled at one time.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkSample {
    pub at: Time,
    /// Payload received in order since the last one, by traffic.
    pub received: Vec<u64>,
    /// Segments sent again since the last one.
    pub retransmitted: u64,
    pub timeouts: u64,
    pub ports: Vec<PortSample>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PortSample {
    /// Wire time since the previous sample, in bytes.
    pub wire_bytes: u64,
    pub queue: u64,
    /// Kept by the link's sender, and held back by its receiver.
    pub tx_buffer: u64,
    pub rx_buffer: u64,
    pub dropped: u64,
}

/// A packet as it left a port.
#[derive(Clone, Copy, Debug)]
pub struct PortCapture {
    pub at: Time,
    pub port: DirectedLink,
    pub src: NodeId,
    pub dst: NodeId,
    /// The number of its connection, in the order of their starts; each flow has its own, but for queue pairs that are
    /// shared.
    pub flow: u32,
    /// True in the direction from the host that began the flow.
    pub forward: bool,
    pub packet: SimPacket,
    /// The message that it is, or the mark that it has, where hosts reserve.
    pub reserve: Option<ReserveHeader>,
    /// The wire corrupted it.
    pub corrupted: bool,
}

impl PortCapture {
    /// Bytes of the headers on a wire, as long as the packet says, without payload and check.
    pub fn headers(&self) -> Vec<u8> {
        /// Ethernet with its check, and IP.
        const AROUND: u32 = 18 + 20;
        let mut out = Vec::with_capacity(128);
        let (from, to) = if self.forward { (self.src.0, self.dst.0) } else { (self.dst.0, self.src.0) };
        let inside = u32::from(self.packet.len).saturating_sub(AROUND) as u16;
        let who = Conversation { from, to, flow: self.flow, forward: self.forward };
        let mut writer = HeaderWriter { who, ecn: self.packet.ecn, inside, out: &mut out };
        self.packet.body.write_headers(&mut writer);
        // A mark takes no bytes here, and is not shown.
        if let Some(message @ ReserveHeader::Message(_)) = &self.reserve {
            message.emit(&mut out);
        }
        out
    }
}

/// Most bits in use of a host's pools (MELO).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolUse {
    pub host: NodeId,
    /// Size of each pool, in bits.
    pub size: u32,
    /// The most bits that were ever taken: to follow arrivals, and to follow what is to be sent again.
    pub receive_peak: u32,
    pub send_peak: u32,
    /// Packets that arrived and found no block left.
    pub refused: u64,
}

#[derive(Debug, Default)]
pub struct NetworkOutcome {
    pub captured: Vec<PortCapture>,
    pub flows: Vec<FlowRow>,
    pub jobs: Vec<JobResult>,
    pub samples: Vec<NetworkSample>,
    /// Counters by directed link.
    pub ports: Vec<PortCounters>,
    /// The queues of all switch ports, in the order of their numbers, if they are measured.
    pub queues: Vec<(DirectedLink, QueueLengths)>,
    /// Counts of each protected link.
    pub links: Vec<(TopologyLinkId, LinkTally)>,
    /// Packets that switches repeated, and the bytes that these took on the wires.
    pub repeated: repeat::Counters,
    pub repeated_bytes: u64,
    /// The pools of bits of hosts that share them among their connections.
    pub pools: Vec<PoolUse>,
    /// Findings of the meters, where there are any.
    pub radar: Option<metering::MeteringResult>,
    /// Counters of hosts that reserve, and the results of their switches.
    pub rack_hosts: HostCounters,
    pub rack: Option<RackOutcome>,
    /// Packets that each of the setup's rules was applied to, in their order.
    pub ruled: Vec<u64>,
    /// Packets that went round in circles until they were dropped.
    pub expired: u64,
    pub pfc_pauses: u64,
    /// Round trips of data packets of RDMA; only if they were wanted.
    pub round_trips: Option<Box<SpanHistogram>>,
    /// Telemetry that hosts received, in bytes, and how much they received in all.
    pub int_bytes: u64,
    pub host_bytes: u64,
    /// Times that controllers could not use telemetry.
    pub int_resets: u64,
    /// Totals of PFC, where switches have it.
    pub pfc: Option<PauseTotals>,
    pub packet_hops: u64,
    pub events: u64,
    /// Packets in flight at most, copies that links keep included.
    pub most_packets: usize,
    pub ended: Time,
    pub interrupted: bool,
}

impl NetworkOutcome {
    /// The queues of these ports, or of all switch ports if there are none, together.
    pub fn queue_lengths(&self, ports: &[DirectedLink]) -> QueueLengths {
        let mut all = QueueLengths::default();
        let chosen = self.queues.iter().filter(|(port, _)| ports.is_empty() || ports.contains(port));
        chosen.for_each(|(_, lengths)| all.add(lengths));
        all
    }
}
