//! Whose rules a network follows: ours, or those of the simulator of HPCC's authors.
//!
//! The profile decides what a frame takes of a wire, how equal paths are chosen, and what a flow would take alone; all else
//! that their simulator does is a matter of settings.

use units::{Bytes, Rate, Span};
use wire::ethernet::WireFraming;

use crate::topology::RouteHash;
use crate::workload::WorkloadFlow;

/// Source ports of flows between two hosts are counted from here.
const FIRST_PORT: u16 = 10_000;
/// The destination port of a flow without a group.
const USUAL_PORT: u16 = 100;
/// Headers that a packet has at least there, without telemetry.
const HEADERS: u64 = 48;

/// Rules that a network follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NetworkProfile {
    /// Ours: Ethernet's framing, ideal times that nothing can beat.
    #[default]
    Ethernet,
    /// Behaviour of the ns-3 simulator of HPCC's authors.
    HpccNs3,
}

impl NetworkProfile {
    /// Bytes that a frame takes of a wire.
    pub fn framing(self) -> WireFraming {
        match self {
            Self::Ethernet => WireFraming::Ethernet,
            Self::HpccNs3 => WireFraming::HpccNs3,
        }
    }

    /// Hash that chooses among equal paths.
    pub fn route_hash(self) -> RouteHash {
        match self {
            Self::Ethernet => RouteHash::Mixed,
            Self::HpccNs3 => RouteHash::HpccNs3,
        }
    }

    /// True if a flow that becomes ready while a packet of another is being sent goes before that flow's next packet.
    pub(super) fn newcomers_first(self) -> bool {
        self == Self::HpccNs3
    }

    /// Hashes that choose the paths of a connection's two directions: the number drawn for it, or its addresses and ports.
    /// `before` connections between its hosts have taken the first ports.
    pub(super) fn hashes(self, drawn: u64, flow: &WorkloadFlow, before: u16) -> [u64; 2] {
        match self {
            Self::Ethernet => [drawn; 2],
            Self::HpccNs3 => {
                let source = FIRST_PORT.wrapping_add(before);
                let destination = if flow.group == 0 { USUAL_PORT } else { flow.group };
                [RouteHash::key(flow.src, [source, destination]), RouteHash::key(flow.dst, [destination, source])]
            }
        }
    }
}

/// A round trip as the simulator of HPCC's authors computes it: twice the propagation, and a full payload at every hop on
/// the way there, in whole nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HpccNs3Path {
    pub round_trip: Span,
    pub bottleneck: Rate,
}

impl HpccNs3Path {
    /// Path along links of these rates and delays, with packets of this payload.
    pub fn new(links: impl Iterator<Item = (Rate, Span)>, payload: u32) -> Self {
        let none = Self { round_trip: Span::ZERO, bottleneck: Rate::gbps(10_000) };
        links.fold(none, |path, (rate, delay)| {
            let packet = WireFraming::HpccNs3.busy(rate.span_of(Bytes::new(u64::from(payload))));
            Self { round_trip: path.round_trip + delay * 2 + packet, bottleneck: path.bottleneck.min(rate) }
        })
    }

    /// Bytes of payload that the bottleneck carries in a round trip.
    pub fn window(&self) -> Bytes {
        self.bottleneck.bytes_in(self.round_trip)
    }

    /// Time that a flow is assumed to need alone: the round trip, and all its bytes at the bottleneck, with headers but
    /// without telemetry.
    pub fn ideal(&self, bytes: u64, payload: u32) -> Span {
        let packets = bytes.div_ceil(u64::from(payload)).max(1);
        let all = Bytes::new(bytes + HEADERS * packets);
        self.round_trip + WireFraming::HpccNs3.busy(self.bottleneck.span_of(all))
    }
}
