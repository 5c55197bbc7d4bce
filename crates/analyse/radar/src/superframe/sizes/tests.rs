use super::*;
use crate::read::{DEPTH, packet};
use crate::superframe::tests::SampleSegment;
use capture::LinkType;

const FULL: SampleSegment = SampleSegment { six: false, id: 1, seq: 0, flags: 0x10, payload: 1_448 };

/// Sizes of one flow in both captures, from the payloads of its packets.
fn seen(up: &[usize], down: &[usize]) -> SegmentSizes {
    let mut sizes = SegmentSizes::default();
    for (payloads, second) in [(up, false), (down, true)] {
        payloads
            .iter()
            .for_each(|payload| see(&mut sizes, &SampleSegment { payload: *payload, ..FULL }.bytes(), second));
    }
    sizes
}

fn see(sizes: &mut SegmentSizes, bytes: &[u8], second: bool) {
    let part = TransportPart::of(bytes, bytes.len()).unwrap();
    let flow = packet(bytes, LinkType::Ip, DEPTH).unwrap().flow;
    sizes.see(&flow, &part, &bytes[part.layer.transport..], second);
}

fn shake_hands(sizes: &mut SegmentSizes, mss: u16) {
    let mut syn = SampleSegment { flags: 2, payload: 0, ..FULL }.bytes();
    syn.truncate(40);
    syn[32] = 0x60;
    syn.extend([2, 4]);
    syn.extend(mss.to_be_bytes());
    syn[2..4].copy_from_slice(&44_u16.to_be_bytes());
    see(sizes, &syn, false);
}

fn cut(sizes: &SegmentSizes, payload: usize) -> FrameCut {
    let bytes = SampleSegment { payload, ..FULL }.bytes();
    let part = TransportPart::of(&bytes, bytes.len()).unwrap();
    sizes.cut(&packet(&bytes, LinkType::Ip, DEPTH).unwrap().flow, &part)
}

const INFERRED: FrameCut = FrameCut::Into { size: 1_448, is_inferred: true };

#[test]
fn what_was_announced_counts_without_the_options_that_a_packet_has() {
    let mut sizes = seen(&[28_960], &[28_960]);
    shake_hands(&mut sizes, 1_460);
    assert_eq!(cut(&sizes, 28_960), FrameCut::Into { size: 1_448, is_inferred: false });
    assert_eq!(cut(&sizes, 1_448), FrameCut::One);
    assert_eq!(cut(&sizes, 1_449), FrameCut::Into { size: 1_448, is_inferred: false });
    // A smaller one, of an interface with a smaller MTU or of a middlebox, makes shorter packets.
    shake_hands(&mut sizes, 512);
    assert_eq!(cut(&sizes, 1_448), FrameCut::Into { size: 500, is_inferred: false });
    assert!(sizes.least() < 600);
}

#[test]
fn without_a_handshake_the_capture_with_shorter_frames_shows_the_wire() {
    assert_eq!(cut(&seen(&[28_960, 1_448], &[1_448, 900]), 28_960), INFERRED);
    assert_eq!(cut(&seen(&[1_448, 900], &[28_960]), 28_960), INFERRED);
    let jumbo = seen(&[35_792, 8_948], &[8_948, 8_948, 8_948]);
    assert_eq!(cut(&jumbo, 35_792), FrameCut::Into { size: 8_948, is_inferred: true });
}

#[test]
fn where_both_captures_join_packets_the_longest_ordinary_one_counts() {
    assert_eq!(cut(&seen(&[28_960, 1_448], &[28_960, 2_896]), 28_960), INFERRED);
    assert_eq!(cut(&seen(&[28_960, 1_448], &[2_896, 1_448, 2_896]), 28_960), INFERRED);
}

#[test]
fn jumbo_frames_that_both_captures_have_are_packets() {
    let sizes = seen(&[8_948; 3], &[8_948; 2]);
    assert_eq!(cut(&sizes, 8_948), FrameCut::One);
    // So are those that were all lost.
    assert_eq!(cut(&seen(&[8_948, 100], &[100]), 8_948), FrameCut::One);
}

#[test]
fn flows_that_contradict_their_handshake_are_cut_by_what_was_seen() {
    let mut sizes = seen(&[27_760], &[1_388, 1_388]);
    shake_hands(&mut sizes, 1_460);
    let flow = packet(&FULL.bytes(), LinkType::Ip, DEPTH).unwrap().flow;
    assert!(sizes.distrust(&flow) && !sizes.distrust(&flow));
    assert_eq!(cut(&sizes, 27_760), FrameCut::Into { size: 1_388, is_inferred: true });
}

#[test]
fn options_that_never_end_are_read_no_further() {
    let mut syn = SampleSegment { flags: 2, payload: 0, ..FULL }.bytes();
    for options in [[3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], [1; 12], [255; 12], [1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 4, 5]] {
        syn[40..52].copy_from_slice(&options);
        let part = TransportPart::of(&syn, syn.len()).unwrap();
        assert_eq!(announced(&part, &syn[20..]), None);
    }
}
