//! What a frame occupies on an Ethernet wire, and what it says of its inside.

/// The shortest frame, from destination address to frame check sequence.
pub const MIN_FRAME: u32 = 64;
/// The longest frame that we accept: a 9,000-byte jumbo payload with header, VLAN tag and check.
pub const MAX_FRAME: u32 = 9_022;
/// Preamble, start delimiter and the gap between frames.
pub const GAP_AND_PREAMBLE: u32 = 20;
/// Addresses, type and frame check sequence: what a frame of ours carries beside its payload.
pub const HEADER_AND_CHECK: u32 = 18;

/// Bytes of wire time that a frame of `len` bytes takes.
pub const fn on_wire(len: u32) -> u32 {
    (if len < MIN_FRAME { MIN_FRAME } else { len }) + GAP_AND_PREAMBLE
}

/// Addresses and a type.
pub const ETHERNET: usize = 14;
/// A VLAN tag that a frame may have.
pub const TAG: usize = 4;

/// Types of what a frame carries.
pub const IPV4: u16 = 0x0800;
pub const IPV6: u16 = 0x86dd;
/// A VLAN tag of 802.1Q, and the outer one of two.
const TAGS: [u16; 2] = [0x8100, 0x88a8];

/// The type of what a frame carries and where that begins, behind at most two VLAN tags.
#[inline]
pub fn inside(frame: &[u8]) -> Option<(u16, usize)> {
    let kind = |at: usize| Some(u16::from_be_bytes(*frame.get(at..)?.first_chunk()?));
    let mut at = 12;
    for _ in 0..2 {
        at += if TAGS.contains(&kind(at)?) { 4 } else { 0 };
    }
    Some((kind(at)?, at + 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_tags_are_looked_through_and_a_third_is_not() {
        let frame = |tags: usize| [&[0; 12][..], &[0x88, 0xa8, 0, 7].repeat(tags), &[0x08, 0x00, 0x45]].concat();
        assert_eq!([0, 1, 2].map(|tags| inside(&frame(tags))), [14, 18, 22].map(|at| Some((IPV4, at))));
        assert_eq!(inside(&frame(3)), Some((0x88a8, 22)));
        assert_eq!((inside(&frame(1)[..17]), inside(&[])), (None, None));
    }

    #[test]
    fn a_full_frame_occupies_1538_bytes_and_a_short_one_84() {
        assert_eq!((on_wire(1_518), on_wire(64), on_wire(21)), (1_538, 84, 84));
    }
}
