//! Settings of a connection, on which both ends agree when it is set up.

use congestion::{ControlSite, ControllerConfig};
use units::{Rate, Span};
use wire::ip::Ecn;

use super::congestion_header::RdmaFraming;
use super::psn::Psn;

/// The longest message that the specification allows.
pub const MAX_MESSAGE: u64 = 1 << 31;

/// The most packets that may be outstanding, and the most of one message: together less than half the circle of PSNs,
/// so that two of them can always be compared.
pub const MAX_OUTSTANDING: u32 = 1 << 22;

/// A NIC of 100 Gb/s, 10 µs away.
const DEFAULT_SITE: ControlSite =
    ControlSite { line_rate: Rate::gbps(100), base_rtt: Span::from_us(10), mtu: 1_024, hops: 1 };

/// Configuration of a connection, which must be equal at both ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoceConfig {
    /// Payload of a full packet.
    pub mtu: u32,
    /// PSNs that may be outstanding; at most [`MAX_OUTSTANDING`]. The last response of a READ may exceed this limit.
    pub max_outstanding: u32,
    /// READs that may be outstanding (verbs' `max_rd_atomic`).
    pub max_reads: u32,
    /// The requester asks for an acknowledgement with the last packet of a message, and once per this many packets
    /// within it. Linux's Soft-RoCE asks every 64 packets, a ConnectX NIC every 256.
    pub ack_every: u32,
    /// Time without progress after which everything outstanding is sent again. See [`RoceConfig::timeout_for`].
    pub timeout: Span,
    /// Timeouts in a row before the connection fails.
    pub retry_count: u32,
    /// Lets the responder report gaps. Without NAKs, every loss waits for the timeout.
    pub naks: bool,
    /// Time for which a responder that has sent a NAK sends no other, whatever is missing; then it reports the same gap
    /// again. Zero for one NAK for each gap.
    pub nak_interval: Span,
    /// Lets each copy of a NAK send the requester back as long as its PSN is outstanding; otherwise only the first copy
    /// does.
    pub obey_nak_copies: bool,
    /// Empty messages behind the last of a queue that has drained: "dummy headers".
    pub dummies: u32,
    /// Time without posts after which they are sent; at once if zero.
    pub dummies_after: Span,
    /// Copies of the last packet of a queue that has drained, SENDs and WRITEs only.
    pub tail_copies: u32,
    /// Pace of requests and READ responses, if there is one.
    pub rate: Option<Rate>,
    /// ECN code point of requests and READ responses, which decides whether switches may mark them.
    pub ecn: Ecn,
    /// Congestion control, which sets window and pace besides; READ responses have only the pace.
    pub congestion: ControllerConfig,
    /// Path on which the connection runs, for its controller.
    pub site: ControlSite,
    /// Lengths of headers.
    pub framing: RdmaFraming,
    /// PSN of the first packet, in both directions.
    pub first_psn: Psn,
}

impl RoceConfig {
    /// The local ACK timeout of a queue pair, 4.096 µs · 2ᵗ. The specification has 5 bits for `t`.
    pub const fn timeout_for(t: u8) -> Span {
        Span::from_ps(4_096_000 << if t > 31 { 31 } else { t })
    }
}

/// Packets of a message, and PSNs that it takes: an empty one takes one.
pub(super) fn packets(bytes: u64, mtu: u32) -> u64 {
    bytes.div_ceil(u64::from(mtu)).max(1)
}

impl Default for RoceConfig {
    /// Settings that verbs programs mostly use: `t` = 14 (67 ms), seven retries, 16 READs.
    fn default() -> Self {
        Self {
            mtu: 1_024,
            max_outstanding: MAX_OUTSTANDING,
            max_reads: 16,
            ack_every: 64,
            timeout: Self::timeout_for(14),
            retry_count: 7,
            naks: true,
            nak_interval: Span::ZERO,
            obey_nak_copies: true,
            dummies: 0,
            dummies_after: Span::ZERO,
            tail_copies: 0,
            rate: None,
            ecn: Ecn::NotCapable,
            congestion: ControllerConfig::None,
            site: DEFAULT_SITE,
            framing: RdmaFraming::ROCE,
            first_psn: Psn::new(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_double_with_t() {
        assert_eq!(RoceConfig::timeout_for(0), Span::from_ps(4_096_000));
        assert_eq!(RoceConfig::timeout_for(8).as_us().round(), 1_049.0);
        assert_eq!(RoceConfig::timeout_for(14).as_us().round(), 67_109.0);
    }
}
