//! Settings of a connection, on which both ends agree when it is set up.

use congestion::{ControlSite, ControllerConfig};
use units::{Rate, Span};
use wire::ip::Ecn;

use crate::{Psn, RdmaFraming};

/// The most packets that may be outstanding: half of what the two bytes for the start of a hole can distinguish.
pub const MAX_OUTSTANDING: u32 = 1 << 15;

/// Configuration of a connection, which must be equal at both ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SelectiveConfig {
    /// Payload of a full packet.
    pub mtu: u32,
    /// Packets that may be outstanding; at most [`MAX_OUTSTANDING`]. IRN sets it to the bandwidth-delay product (BDP-FC).
    pub max_outstanding: u32,
    /// The sender asks for an acknowledgement with the last packet of a message, with each that it sends again because of a
    /// NACK, and otherwise once per this many packets.
    pub ack_every: u32,
    /// Time without progress of the cumulative acknowledgement after which everything outstanding is sent again.
    pub timeout: Span,
    /// Timeouts in a row before the connection fails.
    pub retry_count: u32,
    /// Pace of data, if there is one.
    pub rate: Option<Rate>,
    /// ECN code point of data, which decides whether switches may mark it.
    pub ecn: Ecn,
    /// Congestion control, which sets the window in bytes, and a pace.
    pub congestion: ControllerConfig,
    /// Path on which the connection runs, for its controller.
    pub site: ControlSite,
    /// Lengths of headers.
    pub framing: RdmaFraming,
    /// PSN of the first packet, in both directions.
    pub first_psn: Psn,
}

impl SelectiveConfig {
    /// The part of a queue pair's that both kinds of connection have.
    pub(crate) fn of(config: &crate::RoceConfig) -> Self {
        Self {
            mtu: config.mtu,
            max_outstanding: config.max_outstanding,
            ack_every: config.ack_every,
            timeout: config.timeout,
            retry_count: config.retry_count,
            rate: config.rate,
            ecn: config.ecn,
            congestion: config.congestion,
            site: config.site,
            framing: config.framing,
            first_psn: config.first_psn,
        }
    }

    /// Brings impossible values into range.
    pub(crate) fn clamped(mut self, most_outstanding: u32) -> Self {
        self.max_outstanding = self.max_outstanding.clamp(1, most_outstanding);
        // Half a window, or a full one would never be acknowledged.
        self.ack_every = self.ack_every.clamp(1, self.max_outstanding.div_ceil(2));
        self
    }
}

impl Default for SelectiveConfig {
    /// The queue pair's, with a window of a thousand packets: 1 MB, the bandwidth-delay product that the paper plans for.
    fn default() -> Self {
        Self { max_outstanding: 1_024, ..Self::from(crate::RoceConfig::default()) }
    }
}

impl From<crate::RoceConfig> for SelectiveConfig {
    /// Converts the configuration of a go-back-N connection.
    fn from(config: crate::RoceConfig) -> Self {
        Self { max_outstanding: config.max_outstanding.min(MAX_OUTSTANDING), ..Self::of(&config) }
    }
}
