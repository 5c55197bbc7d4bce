//! Congestion notification packets (InfiniBand specification, vol. 1, annex A17.9.3).
//!
//! ```text
//!   BTH: opcode 0x81, BECN, queue pair of the sender of what was marked, PSN 0   16 bytes of zeros   invariant CRC
//! ```

use super::parse::transport;
use super::{BASE, PARTITION, PORT, RoceHeader};
use crate::udp;

/// Says that packets of a queue pair arrived with a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CongestionNotification {
    /// Queue pair whose packets were marked, at the host that this goes to; 24 bits.
    pub queue_pair: u32,
}

/// Backward explicit congestion notification, among the bits before the queue pair.
const BECN: u32 = 0x4000_0000;

impl CongestionNotification {
    /// Opcode in place of those of a reliable connection.
    pub(crate) const OPCODE: u8 = 0x81;
    /// Zeros behind the base header.
    pub(crate) const RESERVED: usize = 16;
    /// Base header and what follows, without the invariant CRC.
    pub const LEN: usize = BASE + Self::RESERVED;

    /// Appends the packet, without its invariant CRC.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend([Self::OPCODE, 0]);
        out.extend(PARTITION);
        out.extend((BECN | self.queue_pair & 0xff_ffff).to_be_bytes());
        out.resize(out.len() + Self::LEN - 8, 0);
    }

    /// Takes any frame; `None` if it is none, or not whole.
    pub fn parse(frame: &[u8]) -> Option<Self> {
        let datagram = udp::find(frame).filter(|datagram| datagram.destination == PORT && !datagram.is_fragment)?;
        let bytes = transport(&datagram).ok()?;
        if bytes.len() != Self::LEN + RoceHeader::CHECK || bytes[0] != Self::OPCODE || bytes[1] & 0x0f != 0 {
            return None;
        }
        let queue_pair = u32::from_be_bytes([0, bytes[5], bytes[6], bytes[7]]);
        Some(Self { queue_pair })
    }
}
