//! Headers of the packets that a super-frame stands for (`tcp_gso_segment`, `inet_gso_segment`).
//!
//! A host hands a card one frame with the payload of many packets (TSO, GSO), and gets one back (GRO, LRO). Every packet on
//! the wire has the headers of that frame with its own lengths, IP identification and sequence number. FIN and PSH speak of
//! the end of the payload and are the last packet's; CWR is an answer given once and is the first one's.

/// CWR of TCP's flags.
pub const TCP_CWR: u8 = 0x80;

const TCP_FIN: u8 = 0x01;
const TCP_PSH: u8 = 0x08;
/// Offset of the identification in a header of IPv4.
const ID: usize = 4;

/// Makes the identification of a header of IPv4 that of the packet with this number, from 0.
#[inline]
pub fn patch_identification(header: &mut [u8], nth: usize) {
    if let Some(field) = header.get_mut(ID..).and_then(<[u8]>::first_chunk_mut) {
        *field = u16::from_be_bytes(*field).wrapping_add(nth as u16).to_be_bytes();
    }
}

/// Makes a header of TCP that of the packet whose payload begins `start` bytes into the super-frame's. Packets after the
/// first do not repeat the flags in `first_only`.
#[inline]
pub fn patch_tcp(header: &mut [u8], start: usize, is_last: bool, first_only: u8) {
    let Some(head) = header.first_chunk_mut::<14>() else { return };
    let seq = u32::from_be_bytes([head[4], head[5], head[6], head[7]]).wrapping_add(start as u32);
    head[4..8].copy_from_slice(&seq.to_be_bytes());
    let first_only = if start > 0 { first_only } else { 0 };
    let last_only = if is_last { 0 } else { TCP_FIN | TCP_PSH };
    head[13] &= !(first_only | last_only);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_stay_with_the_packet_that_they_speak_of() {
        let header = |start, is_last| {
            let mut header = [0; 20];
            header[4..8].copy_from_slice(&u32::MAX.to_be_bytes());
            header[13] = 0x99;
            patch_tcp(&mut header, start, is_last, TCP_CWR);
            (u32::from_be_bytes([header[4], header[5], header[6], header[7]]), header[13])
        };
        assert_eq!([header(0, false), header(10, false), header(20, true)], [(u32::MAX, 0x90), (9, 0x10), (19, 0x19)]);
    }

    #[test]
    fn identifications_go_on_from_the_first_and_begin_again_behind_the_last() {
        let mut header = [0x45, 0, 0, 40, 0xff, 0xff];
        patch_identification(&mut header, 2);
        assert_eq!(header[ID..], [0, 1]);
        patch_identification(&mut header[..5], 1);
        assert_eq!(header[ID..], [0, 1], "a header that is not there is left alone");
    }
}
