use super::*;
use crate::read::{DEPTH, packet, packet_of_headers};
use capture::LinkType;

/// A segment from its IP header on, with timestamps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SampleSegment {
    pub six: bool,
    pub id: u16,
    pub seq: u32,
    pub flags: u8,
    pub payload: usize,
}

/// Byte of a stream at a position.
fn byte_at(position: u32) -> u8 {
    (position.wrapping_mul(2_654_435_761) >> 24) as u8
}

impl SampleSegment {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let behind = 32 + self.payload;
        let mut packet = if self.six {
            let mut packet = vec![0x60, 0, 0, 0];
            packet.extend((behind as u16).to_be_bytes());
            packet.extend([6, 64]);
            packet.extend([[0xfd; 15].as_slice(), &[1], &[0xfd; 15], &[2]].concat());
            packet
        } else {
            let mut packet = vec![0x45, 0];
            packet.extend(((20 + behind) as u16).to_be_bytes());
            packet.extend(self.id.to_be_bytes());
            packet.extend([0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
            packet
        };
        packet.extend([0x9c, 0x40, 0x01, 0xbb]);
        packet.extend(self.seq.to_be_bytes());
        packet.extend([0, 0, 0, 9, 0x80, self.flags, 1, 0, 0, 0, 0, 0]);
        packet.extend([1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 3]);
        packet.extend((0..self.payload as u32).map(|nth| byte_at(self.seq.wrapping_add(nth))));
        packet
    }
}

fn segments(sample: &SampleSegment, size: usize, snap: usize) -> Vec<(Vec<u8>, usize)> {
    let whole = sample.bytes();
    let kept = &whole[..whole.len().min(snap)];
    let part = TransportPart::of(kept, whole.len()).unwrap();
    let mut frame = SuperFrame::default();
    frame.load(kept, part, size);
    let mut segments = Vec::new();
    while let Some(segment) = frame.next() {
        segments.push((segment.bytes.to_vec(), segment.len));
    }
    segments
}

/// The segments that the wire carries instead.
fn on_wire(sample: &SampleSegment, size: usize) -> Vec<Vec<u8>> {
    let count = sample.payload.div_ceil(size);
    let segment = |nth: usize| {
        let mut flags = sample.flags;
        flags &= if nth > 0 { !0x80 } else { !0 };
        flags &= if nth + 1 < count { !0x09 } else { !0 };
        SampleSegment {
            id: sample.id.wrapping_add(nth as u16),
            seq: sample.seq.wrapping_add((nth * size) as u32),
            flags,
            payload: size.min(sample.payload - nth * size),
            ..*sample
        }
    };
    (0..count).map(|nth| segment(nth).bytes()).collect()
}

#[test]
fn a_super_frame_becomes_the_packets_that_the_wire_carries() {
    for (six, payload, size, flags) in [
        (false, 60_000, 1_448, 0x18),
        (true, 60_000, 1_428, 0x99),
        (false, 2 * 1_448, 1_448, 0x10),
        (false, 3_000, 536, 0x91),
    ] {
        let sample = SampleSegment { six, id: 65_530, seq: u32::MAX - 5_000, flags, payload };
        let made: Vec<Vec<u8>> = segments(&sample, size, usize::MAX).into_iter().map(|(bytes, _)| bytes).collect();
        assert_eq!(made, on_wire(&sample, size), "{sample:?}");
    }
}

#[test]
fn where_no_payload_was_kept_headers_and_lengths_are_the_same() {
    let sample = SampleSegment { six: false, id: 7, seq: 99, flags: 0x18, payload: 10_000 };
    for snap in [52, 60, 114, 1_000] {
        let (cut, wire) = (segments(&sample, 1_448, snap), on_wire(&sample, 1_448));
        assert_eq!(cut.len(), wire.len());
        for ((bytes, len), whole) in cut.iter().zip(&wire) {
            assert_eq!(*len, whole.len());
            let [one, other] = [bytes, whole].map(|bytes| packet_of_headers(bytes, LinkType::Ip, DEPTH).unwrap());
            assert_eq!(one, other, "snap length {snap}");
        }
    }
}

#[test]
fn packets_of_a_datagram_say_their_own_length() {
    let mut whole = SampleSegment { six: false, id: 3, seq: 0, flags: 0, payload: 2_980 }.bytes();
    whole[9] = 17;
    whole[24..28].copy_from_slice(&[0x0b, 0xe4, 0, 0]);
    let part = TransportPart::of(&whole, whole.len()).unwrap();
    assert_eq!((part.header, part.payload), (8, 3_004));
    let mut frame = SuperFrame::default();
    frame.load(&whole, part, 1_200);
    let mut lengths = Vec::new();
    while let Some(segment) = frame.next() {
        let half = |at: usize| u16::from_be_bytes([segment.bytes[at], segment.bytes[at + 1]]);
        lengths.push((half(2), half(4), half(24)));
    }
    assert_eq!(lengths, [(1_228, 3, 1_208), (1_228, 4, 1_208), (632, 5, 612)]);
}

/// Any bytes do.
#[test]
fn headers_that_claim_anything_are_cut_or_left() {
    let sample = SampleSegment { six: false, id: 3, seq: 0, flags: 0x18, payload: 5_000 }.bytes();
    for at in 0..60 {
        for value in [0, 0x7f, 0xff] {
            let mut bytes = sample.clone();
            bytes[at] = value;
            for kept in [20, 33, 40, bytes.len()] {
                let Some(part) = TransportPart::of(&bytes[..kept], sample.len()) else { continue };
                let mut frame = SuperFrame::default();
                frame.load(&bytes[..kept], part, 1_000);
                while let Some(segment) = frame.next() {
                    assert!(segment.bytes.len() <= segment.len);
                    let _ = packet(segment.bytes, LinkType::Ip, DEPTH);
                }
            }
        }
    }
}
