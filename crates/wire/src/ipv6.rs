//! IPv6 headers (RFC 8200), without extension headers: what has any is not looked into.

use crate::ipv4::Outline;

pub const LEN: usize = 40;

/// `None` for what is no IPv6 header. The protocol is that of the next header, which may be an extension.
#[inline]
pub fn outline(packet: &[u8]) -> Option<Outline> {
    let head: &[u8; LEN] = packet.first_chunk()?;
    let payload = usize::from(u16::from_be_bytes([head[4], head[5]]));
    (head[0] >> 4 == 6).then_some(Outline { protocol: head[6], header: LEN, total: LEN + payload, has_more: false })
}
