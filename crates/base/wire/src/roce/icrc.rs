//! The invariant CRC (InfiniBand specification, vol. 1, §7.8.1 and annex A17.3).
//!
//! Ethernet's CRC-32 over eight bytes of ones, where InfiniBand has a header of its own, and the packet from its IP
//! header on, with ones in place of what may change on the way: type of service or traffic class, flow label, hops left,
//! both checksums, and the byte of the base header that has the congestion bits. Sent least significant byte first.

use super::parse::transport;
use super::{BASE, PORT, RoceHeader};
use crate::layers::IpLayer;
use crate::udp;

/// The longest IP header, UDP's, and the base header.
const LONGEST: usize = 60 + udp::UdpHeader::LEN + BASE;

/// Appends the check to a packet that is whole but for it, and whose IP header begins at `ip`.
///
/// # Panics
/// If headers are missing: this is for what was just emitted.
pub fn append_icrc(out: &mut Vec<u8>, ip: usize) {
    let udp = IpLayer::of(out, ip).expect("an IP header").transport;
    out.extend(icrc(&out[ip..], udp - ip));
}

/// True if the check of a RoCEv2 frame is right; `None` if it has none: not RoCEv2, malformed, or a fragment.
pub fn icrc_is_valid(frame: &[u8]) -> Option<bool> {
    let datagram = udp::find(frame).filter(|datagram| datagram.destination == PORT && !datagram.is_fragment)?;
    if transport(&datagram).ok()?.len() < BASE + RoceHeader::CHECK {
        return None;
    }
    let (packet, check) = datagram.packet.split_last_chunk()?;
    Some(icrc(packet, datagram.at) == *check)
}

/// Check of a packet without the check, with UDP's header at `udp`.
fn icrc(packet: &[u8], udp: usize) -> [u8; RoceHeader::CHECK] {
    let (head, rest) = packet.split_at(udp + udp::UdpHeader::LEN + BASE);
    let mut room = [0; LONGEST];
    let masked = &mut room[..head.len()];
    masked.copy_from_slice(head);
    let changeable = if head[0] >> 4 == 4 {
        [1, 8, 10, 11]
    } else {
        masked[0] |= 0x0f;
        [1, 2, 3, 7]
    };
    let base = udp + udp::UdpHeader::LEN;
    for at in changeable.into_iter().chain([udp + 6, udp + 7, base + 4]) {
        masked[at] = 0xff;
    }
    let mut crc = crc32fast::Hasher::new();
    crc.update(&[0xff; 8]);
    crc.update(masked);
    crc.update(rest);
    crc.finalize().to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A congestion notification as a ConnectX-4 Lx sent it, check and all; published among the tests of Scapy.
    const CAPTURED: [u8; 74] = [
        0xe4, 0x1d, 0x2d, 0xab, 0x2b, 0xc2, 0x7c, 0xfe, 0x90, 0x64, 0x3b, 0x32, 0x08, 0x00, 0x45, 0xc2, 0x00, 0x3c,
        0x71, 0x8c, 0x40, 0x00, 0x40, 0x11, 0x91, 0x61, 0x0a, 0x00, 0x11, 0x01, 0x0a, 0x00, 0x12, 0x01, 0x00, 0x00,
        0x12, 0xb7, 0x00, 0x28, 0x00, 0x00, 0x81, 0x00, 0xff, 0xff, 0x40, 0x00, 0x01, 0x18, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x82, 0xfd,
        0x00, 0x2a,
    ];

    #[test]
    fn what_a_network_card_sent_has_the_check_that_we_compute() {
        assert_eq!(icrc_is_valid(&CAPTURED), Some(true));
        let mut again = CAPTURED[..70].to_vec();
        append_icrc(&mut again, 14);
        assert_eq!(again, CAPTURED);
    }

    #[test]
    fn what_switches_change_does_not_matter_and_everything_else_does() {
        for at in 14..CAPTURED.len() {
            let mut changed = CAPTURED;
            changed[at] ^= 1;
            // Lengths, version and port decide whether it is looked at at all.
            let Some(valid) = icrc_is_valid(&changed) else { continue };
            let may_change = [15, 22, 24, 25, 40, 41, 46].contains(&at);
            assert_eq!(valid, may_change, "byte {at}");
        }
    }
}
