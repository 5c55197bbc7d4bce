//! IPv4 in Ethernet: the headers before the payload of a packet.

use crate::checksum::Sum;
use crate::ethernet;
use crate::ip::Ecn;
pub use crate::ip::{TCP, UDP};

/// An Ethernet header and an IPv4 header without options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4Header {
    /// Source addresses.
    pub from: Station,
    /// Destination addresses.
    pub to: Station,
    /// Protocol number of the payload.
    pub protocol: u8,
    /// Explicit congestion notification.
    pub ecn: Ecn,
    /// Bytes behind the header.
    pub payload: u16,
}

/// Sender or receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Station {
    /// Ethernet address.
    pub mac: [u8; 6],
    /// IPv4 address.
    pub ip: [u8; 4],
}

impl Ipv4Header {
    /// Length of both headers.
    pub const LEN: usize = 14 + 20;

    /// Appends both headers.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend(self.to.mac);
        out.extend(self.from.mac);
        out.extend(ethernet::IPV4.to_be_bytes());
        let start = out.len();
        let total = self.payload.saturating_add(20);
        let ecn = match self.ecn {
            Ecn::NotCapable => 0b00,
            Ecn::Capable => 0b10,
            Ecn::Experienced => 0b11,
        };
        out.extend([0x45, ecn]);
        out.extend(total.to_be_bytes());
        // No identification, never to be fragmented, 64 hops.
        out.extend([0, 0, 0x40, 0, 64, self.protocol, 0, 0]);
        out.extend(self.from.ip);
        out.extend(self.to.ip);
        let checksum = Sum::of(&out[start..]).checksum();
        out[start + 10..start + 12].copy_from_slice(&checksum);
    }

    /// Sum of the pseudo-header, which the checksums of TCP and UDP cover beside themselves.
    pub(crate) fn pseudo_sum(&self) -> Sum {
        let addresses = [self.from.ip, self.to.ip];
        Sum::pseudo_header(addresses.as_flattened(), self.protocol, usize::from(self.payload))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_sums_up_to_nothing() {
        let from = Station { mac: [2, 0, 0, 0, 0, 1], ip: [10, 0, 0, 1] };
        let to = Station { mac: [2, 0, 0, 0, 0, 2], ip: [10, 0, 0, 2] };
        let mut out = Vec::new();
        Ipv4Header { from, to, protocol: UDP, ecn: Ecn::Experienced, payload: 100 }.emit(&mut out);
        assert_eq!(out.len(), Ipv4Header::LEN);
        assert!(Sum::of(&out[14..]).verifies());
        assert_eq!(out[12..18], [8, 0, 0x45, 3, 0, 120]);
    }
}
