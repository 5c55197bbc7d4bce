//! What a frame occupies on an Ethernet wire, and the types of what it carries.

/// The shortest frame, from destination address to frame check sequence.
pub const MIN_FRAME: u32 = 64;
/// The longest frame that we accept: a 9,000-byte jumbo payload with header, VLAN tag and check.
pub const MAX_FRAME: u32 = 9_022;
/// Preamble, start delimiter and the gap between frames.
pub(crate) const GAP_AND_PREAMBLE: u32 = 20;
/// Addresses, type and frame check sequence: what a frame of ours carries beside its payload.
pub const HEADER_AND_CHECK: u32 = 18;

/// Bytes of wire time that a frame of `len` bytes takes.
pub const fn on_wire(len: u32) -> u32 {
    (if len < MIN_FRAME { MIN_FRAME } else { len }) + GAP_AND_PREAMBLE
}

/// Addresses and a type.
pub const ETHERNET: usize = 14;
/// Where the type is, or the first tag.
pub const TYPE: usize = 12;
/// A VLAN tag that a frame may have.
pub const TAG: usize = 4;

/// EtherType of IPv4.
pub const IPV4: u16 = 0x0800;
/// EtherType of IPv6.
pub const IPV6: u16 = 0x86dd;

/// Whether a type is that of a VLAN tag: of 802.1Q, or of the outer one of two.
#[inline]
pub fn is_tag(ethertype: u16) -> bool {
    matches!(ethertype, 0x8100 | 0x88a8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_frame_occupies_1538_bytes_and_a_short_one_84() {
        assert_eq!((on_wire(1_518), on_wire(64), on_wire(21)), (1_538, 84, 84));
    }
}
