//! Packets on the wire, and captures of them with offloads at both ends: the comparison finds every lost packet all the
//! same.

use std::io::{self, Cursor, Read};

use proptest::prelude::*;
use units::Unwatched;

use super::*;
use crate::compare::{CaptureInput, CompareError, CompareOptions, Comparison, compare};
use crate::superframe::tests::SampleSegment;
use capture::{CaptureRecord, CaptureWriter};
use units::Timestamp;

const MSS: usize = 1_448;
const START: u64 = 1_700_000_000_000_000_000;
const PUSH: u8 = 0x18;

/// A frame of a capture, from its IP header on, and when it passed.
type Passed = (u64, SampleSegment);

/// A stream as the wire carries it: writes of these lengths, 100 µs apart, the last segment of each with PSH.
fn on_wire(writes: &[usize], mss: usize, six: bool) -> Vec<Passed> {
    let (mut packets, mut seq, mut id) = (Vec::new(), 1_u32, 65_000_u16);
    for (nth, write) in writes.iter().enumerate() {
        let mut left = *write;
        while left > 0 {
            let payload = left.min(mss);
            left -= payload;
            let flags = if left == 0 { PUSH } else { 0x10 };
            packets.push((START + nth as u64 * 100_000, SampleSegment { six, id, seq, flags, payload }));
            seq = seq.wrapping_add(payload as u32);
            // Zero stands for identifications that do not count, and is another test's.
            id = if id == u16::MAX { 1 } else { id + 1 };
        }
    }
    packets
}

/// Joined as hosts do: segments in a row, as long as the first, and a shorter one as the last; PSH ends it. At most so many.
fn joined(packets: &[Passed], most: impl Fn(usize) -> usize) -> Vec<Passed> {
    let mut frames: Vec<Passed> = Vec::new();
    let (mut size, mut count) = (0, 0);
    for (at, packet) in packets {
        let most = most(frames.len());
        if let Some((_, last)) = frames.last_mut()
            && last.seq.wrapping_add(last.payload as u32) == packet.seq
            && last.id.wrapping_add(count as u16) == packet.id
            && last.payload == size * count
            && packet.payload <= size
            && last.flags & 8 == 0
            && count < most
            && last.payload + packet.payload < 65_000
        {
            let (_, last) = frames.last_mut().unwrap();
            last.payload += packet.payload;
            last.flags |= packet.flags;
            count += 1;
        } else {
            frames.push((*at, *packet));
            (size, count) = (packet.payload, 1);
        }
    }
    frames
}

/// A SYN and its answer, with the MSS that both announce.
fn handshake(mss: usize) -> Vec<(u64, Vec<u8>)> {
    let packet = |from: u8, to: u8, ports: [u8; 4], flags: u8| {
        let mut packet = vec![0x45, 0, 0, 44, 0, 9, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, from, 10, 0, 0, to];
        packet.extend(ports);
        packet.extend([0, 0, 0, 0, 0, 0, 0, 0, 0x60, flags, 1, 0, 0, 0, 0, 0, 2, 4]);
        packet.extend((mss as u16).to_be_bytes());
        packet
    };
    let there = packet(1, 2, [0x9c, 0x40, 0x01, 0xbb], 2);
    vec![(START - 2_000, there), (START - 1_000, packet(2, 1, [0x01, 0xbb, 0x9c, 0x40], 0x12))]
}

fn capture(opening: &[(u64, Vec<u8>)], frames: &[Passed], snap: usize) -> Vec<u8> {
    let mut writer = CaptureWriter::new(Vec::new()).unwrap();
    let frames = frames.iter().map(|(at, frame)| (*at, frame.bytes()));
    for (at, packet) in opening.iter().cloned().chain(frames) {
        let kind: [u8; 2] = if packet[0] >> 4 == 6 { [0x86, 0xdd] } else { [8, 0] };
        let frame = [&[2; 12][..], &kind, &packet].concat();
        let bytes = &frame[..frame.len().min(snap)];
        let (at, len) = (Timestamp(at), frame.len() as u32);
        writer.write(&CaptureRecord { at, len, bytes, link_number: 1, link: Some(LinkType::Ethernet) }).unwrap();
    }
    writer.into_inner()
}

fn compared(up: &[u8], down: &[u8], options: &CompareOptions) -> Result<Comparison, CompareError> {
    let open = |bytes: &[u8]| {
        let bytes = bytes.to_vec();
        move || -> io::Result<Box<dyn Read>> { Ok(Box::new(Cursor::new(bytes.clone()))) }
    };
    let (up, down) = (open(up), open(down));
    compare(CaptureInput { open: &up }, CaptureInput { open: &down }, options, &Unwatched)
}

/// Sequence numbers and lengths of what is called lost.
fn lost(comparison: &Comparison) -> Vec<(u32, usize)> {
    comparison.lost.iter().map(|lost| lost.loss.tcp.map(|tcp| (tcp.seq, usize::from(tcp.len))).unwrap()).collect()
}

struct Run {
    writes: Vec<usize>,
    mss: usize,
    announced: Option<usize>,
    six: bool,
    snap: [usize; 2],
    /// Segments in a frame at most, at both ends.
    most: [usize; 2],
    dropped: Vec<usize>,
}

impl Run {
    fn new(announced: Option<usize>, dropped: Vec<usize>) -> Self {
        let writes = (0..200).map(|nth| 1 + nth * 977 % 40_000).collect();
        Self { writes, mss: MSS, announced, six: false, snap: [usize::MAX; 2], most: [44, 44], dropped }
    }

    fn captures(&self) -> (Vec<u8>, Vec<u8>, Vec<(u32, usize)>) {
        let sent = on_wire(&self.writes, self.mss, self.six);
        let is_dropped = |nth: &usize| self.dropped.iter().any(|dropped| dropped % sent.len() == *nth);
        let came: Vec<Passed> =
            sent.iter().enumerate().filter(|(nth, _)| !is_dropped(nth)).map(|(_, packet)| *packet).collect();
        let opening = self.announced.map(handshake).unwrap_or_default();
        let up = capture(&opening, &joined(&sent, |nth| 1 + nth % self.most[0]), self.snap[0]);
        let down = capture(&opening, &joined(&came, |nth| 1 + nth * 7 % self.most[1]), self.snap[1]);
        let truth = sent.iter().enumerate().filter(|(nth, _)| is_dropped(nth));
        (up, down, truth.map(|(_, (_, packet))| (packet.seq, packet.payload)).collect())
    }

    /// Checks that both ways of comparing find the dropped packets.
    fn check(&self) -> Comparison {
        let (up, down, truth) = self.captures();
        let mut found = None;
        for exact in [false, true] {
            let options = CompareOptions { exact, whole: false, ..CompareOptions::default() };
            let comparison = compared(&up, &down, &options).unwrap();
            assert_eq!(lost(&comparison), truth, "{:?}", comparison.up);
            assert_eq!((comparison.only_down, comparison.misfits, comparison.unnamed), (0, 0, 0));
            found = Some(comparison);
        }
        found.unwrap()
    }
}

#[test]
fn of_super_frames_at_the_sender_the_lost_packets_are_named_and_no_others() {
    let found = Run { most: [44, 1], ..Run::new(Some(1_460), vec![5, 17, 18, 400, 1_000]) }.check();
    assert!(found.up.super_frames > 100 && found.down.super_frames == 0, "{found:?}");
    assert_eq!((found.up.inferred, found.without_ids), (0, false));
    let expected = on_wire(&Run::new(None, vec![]).writes, MSS, false).len() as u64;
    assert_eq!(found.up.packets, expected + 2, "packets of the wire are counted");
}

#[test]
fn of_super_frames_at_both_ends_the_lost_packets_are_named_and_no_others() {
    let found = Run::new(Some(1_460), vec![0, 1, 44, 45, 46, 900]).check();
    assert!(found.up.super_frames > 100 && found.down.super_frames > 100, "{found:?}");
}

#[test]
fn captures_without_payload_are_compared_by_headers() {
    for snap in [[128, 128], [96, usize::MAX], [usize::MAX, 70]] {
        Run { snap, ..Run::new(Some(1_460), vec![7, 8, 9, 1_200]) }.check();
    }
}

#[test]
fn six_has_no_identifications_and_needs_none() {
    Run { six: true, mss: 1_428, snap: [128, 128], ..Run::new(Some(1_440), vec![3, 77]) }.check();
}

#[test]
fn without_a_handshake_the_other_capture_shows_how_long_packets_are() {
    let found = Run { most: [44, 1], ..Run::new(None, vec![5, 500]) }.check();
    assert!(found.up.inferred > 0 && found.up.inferred == found.up.super_frames);
    Run { most: [1, 44], ..Run::new(None, vec![5, 500]) }.check();
    Run::new(None, vec![5, 500]).check();
}

/// A path with a smaller MTU than either end's interface.
#[test]
fn where_packets_are_shorter_than_announced_what_was_seen_decides() {
    let found = Run { mss: 1_348, most: [44, 1], ..Run::new(Some(1_460), vec![5, 500]) }.check();
    assert_eq!(found.up.inferred, found.up.super_frames);
    Run { mss: 1_348, ..Run::new(Some(1_460), vec![5, 500]) }.check();
}

#[test]
fn identifications_that_stay_zero_are_not_compared() {
    let sent = on_wire(&[20_000; 50], MSS, false);
    let zero = |packets: Vec<Passed>| -> Vec<Passed> {
        packets.into_iter().map(|(at, packet)| (at, SampleSegment { id: 0, ..packet })).collect()
    };
    let came: Vec<Passed> = sent.iter().enumerate().filter(|(nth, _)| *nth != 30).map(|(_, packet)| *packet).collect();
    let (up, down) = (zero(joined(&sent, |_| 14)), zero(came));
    let found = compared(
        &capture(&handshake(1_460), &up, 128),
        &capture(&handshake(1_460), &down, 128),
        &CompareOptions::default(),
    );
    let found = found.unwrap();
    assert_eq!((lost(&found).len(), found.without_ids, found.only_down), (1, true, 0));
}

/// A card that leaves the identification of a super-frame in all its packets.
#[test]
fn identifications_that_do_not_count_on_are_left_out_once_that_shows() {
    let sent = on_wire(&[20_000; 50], MSS, false);
    let frames = joined(&sent, |_| 14);
    let mut wire = Vec::new();
    for (at, packet) in sent.iter().enumerate().filter(|(nth, _)| *nth != 30).map(|(_, packet)| packet) {
        let of = frames.iter().rev().find(|(_, frame)| frame.seq <= packet.seq).unwrap();
        wire.push((*at, SampleSegment { id: of.1.id, ..*packet }));
    }
    let [up, down] = [capture(&handshake(1_460), &frames, 128), capture(&handshake(1_460), &wire, 128)];
    let found = compared(&up, &down, &CompareOptions::default()).unwrap();
    assert_eq!((lost(&found).len(), found.without_ids), (1, true));
}

#[test]
fn what_fits_nowhere_is_refused() {
    // Packets of two lengths below what was announced, both joined.
    let mut sent = on_wire(&[30_000; 30], 700, false);
    let behind = sent.last().map(|(_, last)| last.seq + last.payload as u32).unwrap();
    sent.extend(on_wire(&[30_000; 30], 900, false).into_iter().map(|(at, packet)| {
        (at + 10_000_000, SampleSegment { seq: packet.seq + behind, id: packet.id.wrapping_add(9_000), ..packet })
    }));
    let came: Vec<Passed> =
        sent.iter().enumerate().filter(|(nth, _)| nth % 50 != 7).map(|(_, packet)| *packet).collect();
    let up = capture(&handshake(1_460), &joined(&sent, |nth| 1 + nth % 40), 128);
    let down = capture(&handshake(1_460), &joined(&came, |nth| 1 + nth % 3), 128);
    assert!(matches!(compared(&up, &down, &CompareOptions::default()), Err(CompareError::SuperFrames(_))));
}

fn udp(at: u64, id: u16, payload: usize) -> (u64, Vec<u8>) {
    let mut packet = vec![0x45, 0];
    packet.extend((28 + payload as u16).to_be_bytes());
    packet.extend(id.to_be_bytes());
    packet.extend([0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x13, 0x88, 0x01, 0xbb]);
    packet.extend((8 + payload as u16).to_be_bytes());
    packet.extend([0, 0]);
    packet.extend((0..payload).map(|nth| (nth / 1_200) as u8 ^ id as u8));
    (START + at * 1_000, packet)
}

/// Datagrams of 1,200 bytes, ten in a frame at the sender.
fn datagrams() -> [Vec<(u64, Vec<u8>)>; 2] {
    let up: Vec<_> = (0..40).map(|nth| udp(nth * 100, 1 + nth as u16 * 10, 12_000)).collect();
    let mut down = Vec::new();
    for (at, frame) in &up {
        for nth in 0..10_usize {
            let mut packet = udp(0, 0, 1_200).1;
            let id = u16::from_be_bytes([frame[4], frame[5]]) + nth as u16;
            packet[4..6].copy_from_slice(&id.to_be_bytes());
            packet[28..].copy_from_slice(&frame[28 + nth * 1_200..][..1_200]);
            down.push((at + 50, packet));
        }
    }
    [up, down]
}

#[test]
fn datagrams_that_a_card_cut_are_named() {
    let [up, mut down] = datagrams();
    down.remove(133);
    let found = compared(&capture(&up, &[], 65_535), &capture(&down, &[], 65_535), &CompareOptions::default()).unwrap();
    let ids: Vec<_> = found.lost.iter().map(|lost| lost.loss.ip_id).collect();
    assert_eq!((ids, found.up.super_frames, found.only_down), (vec![Some(134)], 40, 0));
}

#[test]
fn datagrams_of_which_too_little_was_kept_are_refused() {
    let [up, down] = datagrams();
    let found = compared(&capture(&up, &[], 128), &capture(&down, &[], 128), &CompareOptions::default());
    let Err(CompareError::SuperFrames(found)) = found else { panic!("{found:?}") };
    assert_eq!((found.up.uncut, found.down.uncut), (40, 0));
}

#[test]
fn jumbo_frames_are_packets() {
    let writes = [40_000; 30];
    let sent = on_wire(&writes, 8_948, false);
    let came: Vec<Passed> = sent.iter().enumerate().filter(|(nth, _)| *nth != 9).map(|(_, packet)| *packet).collect();
    for opening in [handshake(8_960), Vec::new()] {
        let [up, down] = [capture(&opening, &sent, 128), capture(&opening, &came, 128)];
        let found = compared(&up, &down, &CompareOptions::default()).unwrap();
        assert_eq!((lost(&found).len(), found.up.super_frames, found.down.super_frames), (1, 0, 0));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn whatever_is_joined_and_dropped_is_named(
        writes in proptest::collection::vec(1..60_000_usize, 20..80),
        dropped in proptest::collection::vec(any::<prop::sample::Index>(), 0..30),
        most in [1..45_usize, 1..45_usize],
        six: bool,
        snap in [prop_oneof![Just(128_usize), Just(usize::MAX)], prop_oneof![Just(128_usize), Just(usize::MAX)]],
    ) {
        let (mss, announced) = if six { (1_428, 1_440) } else { (MSS, 1_460) };
        let packets = on_wire(&writes, mss, six).len();
        let dropped = dropped.into_iter().map(|index| index.index(packets)).collect();
        Run { writes, mss, announced: Some(announced), six, snap, most, dropped }.check();
    }
}
