//! Fields that packets carry for congestion control, there and back, and lengths of headers.
//!
//! A data packet says when it was sent; its acknowledgement brings that back, with what happened to the packet on its way.
//! Lengths are RoCEv2's unless an experiment frames packets otherwise.

use units::{Span, Time};
use wire::ethernet::WireFraming;

use super::packet::{ACK_LEN, HEADERS, RETH};

/// Role of a packet in telemetry, which switches write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Telemetry {
    /// The packet has nothing to do with telemetry.
    #[default]
    None,
    /// A data packet that collects it.
    Collects,
    /// An acknowledgement that brings it back.
    Returns,
}

/// Fields that a packet carries for congestion control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CongestionHeader {
    /// Data: when it was sent. Acknowledgement: when the latest data packet that had arrived by then was sent.
    pub sent_at: Option<Time>,
    /// Acknowledgement: how long that packet was under way.
    pub one_way: Span,
    /// Acknowledgement: packets that arrived with an ECN mark since the last one.
    pub marked: u16,
    /// Telemetry for which the packet has room.
    pub telemetry: Telemetry,
    /// Difference of the length of headers to RoCEv2's, in bytes.
    pub extra_bytes: i16,
}

/// Lengths of headers in bytes, as Ethernet frames with their check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RdmaFraming {
    /// Headers of a data packet.
    pub headers: u16,
    /// Additional headers of the first packet of a WRITE.
    pub first: u16,
    /// A whole acknowledgement.
    pub ack: u16,
    /// Telemetry in a data packet that collects it, and in an acknowledgement that returns it.
    pub telemetry: [u16; 2],
    /// Rule for the time that a frame of some length takes on the wire.
    pub wire: WireFraming,
}

impl RdmaFraming {
    /// Bytes of telemetry with room for five switches, in every packet from its sender on.
    const INT_ROOM: u16 = 42;

    /// RoCEv2, with room for the telemetry of five switches where it is collected.
    pub const ROCE: Self = Self {
        headers: HEADERS as u16,
        first: RETH as u16,
        ack: ACK_LEN as u16,
        telemetry: [Self::INT_ROOM, Self::INT_ROOM],
        wire: WireFraming::Ethernet,
    };

    /// Lengths in the simulator of HPCC's authors: PPP (14), IP (20), UDP (8) and sequence number (6); an acknowledgement
    /// is padded to 60 bytes, and telemetry takes the place of some of that padding.
    pub const HPCC_NS3: Self =
        Self { headers: 48, first: 0, ack: 60, telemetry: [Self::INT_ROOM, 28], wire: WireFraming::HpccNs3 };

    /// Length of a full data packet's headers, without what only the first of a WRITE has.
    pub fn data_headers(&self, collects: bool) -> u16 {
        self.headers + if collects { self.telemetry[0] } else { 0 }
    }

    /// Length of an acknowledgement.
    pub fn ack_len(&self, returns: bool) -> u16 {
        self.ack + if returns { self.telemetry[1] } else { 0 }
    }

    /// Difference of the length of a data packet's headers to RoCEv2's.
    pub(super) fn data_extra(&self, is_first_write: bool, collects: bool) -> i16 {
        let usual = HEADERS as i16 + if is_first_write { RETH as i16 } else { 0 };
        let headers = self.data_headers(collects) + if is_first_write { self.first } else { 0 };
        headers as i16 - usual
    }

    /// Difference of the length of an acknowledgement to RoCEv2's.
    pub(super) fn ack_extra(&self, returns: bool) -> i16 {
        self.ack_len(returns) as i16 - ACK_LEN as i16
    }
}

impl Default for RdmaFraming {
    fn default() -> Self {
        Self::ROCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn telemetry_takes_42_bytes_of_data_and_acknowledgements() {
        let framing = RdmaFraming::ROCE;
        assert_eq!([framing.data_extra(false, false), framing.data_extra(true, false)], [0, 0]);
        assert_eq!([framing.data_extra(true, true), framing.ack_extra(true)], [42, 42]);
        assert_eq!([framing.data_headers(true), framing.ack_len(true)], [104, 110]);
    }

    #[test]
    fn headers_may_be_shorter_than_roces() {
        let framing = RdmaFraming::HPCC_NS3;
        assert_eq!([framing.data_extra(false, false), framing.data_extra(true, true)], [-14, 12]);
        assert_eq!([framing.ack_extra(false), framing.ack_extra(true)], [-8, 20]);
    }
}
