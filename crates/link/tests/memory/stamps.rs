//! Numbers in the Ethernet addresses of frames: super-frames over a wire that loses, doubles, alters or filters frames.

use link::stamp::StampState;
use linux::offload::Pieces;
use wire::Seq;
use wire::checksum::Sum;
use wire::link::{AddressStamp, Epoch, SegmentSpan, StampedData};

use super::*;

const CLEAN: fn(&mut Vec<u8>) -> bool = |_| true;

/// A TCP segment of the first end's, or what stands for several.
#[derive(Clone, Copy)]
struct TcpSample {
    v6: bool,
    payload: usize,
    size: usize,
    seq: u32,
    port: u16,
}

impl TcpSample {
    fn new(payload: usize, size: usize, seq: u32) -> Self {
        Self { v6: false, payload, size, seq, port: 5_201 }
    }

    fn super_frame(&self) -> (VnetHeader, Vec<u8>) {
        let mut tcp =
            [&self.port.to_be_bytes()[..], &[0, 80], &self.seq.to_be_bytes(), &[0, 0, 0, 9, 0x50, 0x10, 1, 0]].concat();
        tcp.extend([0; 4]);
        tcp.extend((0..self.payload).map(|at| (at * 7 + at / 251) as u8 ^ self.seq as u8));
        let len = tcp.len();
        let mut ip = if self.v6 {
            [&[0x60, 0, 0, 0][..], &(len as u16).to_be_bytes(), &[6, 64], &[0x20; 32]].concat()
        } else {
            let total = (20 + len) as u16;
            // Where identifications are equal, segments that are joined get others.
            let id = (self.seq as u16).to_be_bytes();
            let rest = [0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
            [&[0x45, 0][..], &total.to_be_bytes(), &id, &rest].concat()
        };
        let addresses = if self.v6 { &ip[8..40] } else { &ip[12..20] };
        let pseudo = Sum::pseudo_header(addresses, 6, len).folded();
        tcp[16..18].copy_from_slice(&pseudo);
        if !self.v6 {
            let checksum = Sum::of(&ip).checksum();
            ip[10..12].copy_from_slice(&checksum);
        }
        let kind: [u8; 2] = if self.v6 { [0x86, 0xdd] } else { [8, 0] };
        let frame = [&MACS[1].0[..], &MACS[0].0, &kind, &ip, &tcp].concat();
        let is_cut = self.payload > self.size;
        let vnet = VnetHeader {
            flags: VnetHeader::NEEDS_CSUM,
            gso_type: match (is_cut, self.v6) {
                (false, _) => VnetHeader::GSO_NONE,
                (true, false) => VnetHeader::GSO_TCPV4,
                (true, true) => 4,
            },
            hdr_len: (14 + ip.len() + 20) as u16,
            gso_size: if is_cut { self.size as u16 } else { 0 },
            csum_start: (14 + ip.len()) as u16,
            csum_offset: 16,
        };
        (vnet, frame)
    }

    /// What a cable would have carried.
    fn segments(&self) -> Vec<Vec<u8>> {
        let (vnet, frame) = self.super_frame();
        let mut pieces = Pieces::default();
        pieces.of(&vnet, &frame).unwrap().map(<[u8]>::to_vec).collect()
    }
}

fn stamping() -> Pair {
    let mut pair = Pair::alike(|| Seal::None, Class::Ordered);
    pair.activate();
    pair.run(Span::from_ms(50), &mut { CLEAN });
    assert_eq!(states(&pair), [StampState::Used; 2]);
    pair
}

fn states(pair: &Pair) -> [StampState; 2] {
    [0, 1].map(|end| pair.ends[end].link.context().stamper.state())
}

fn tally(pair: &Pair, end: usize) -> link::tally::Tally {
    pair.ends[end].link.context().tally
}

fn is_data(frame: &[u8]) -> bool {
    matches!(AddressStamp::parse(frame), Ok(Some(AddressStamp::Data(_))))
}

/// Whether a TCP segment has PSH.
fn asks_for_delivery(frame: &[u8]) -> bool {
    let ip_len = if frame[12] == 8 { 20 } else { 40 };
    frame[14 + ip_len + 13] & 8 != 0
}

/// Super-frames of one to 64 segments, of both versions, with odd tails, some across the end of the sequence numbers.
fn samples() -> Vec<TcpSample> {
    let mut samples = Vec::new();
    for segments in 1..=64usize {
        for (v6, tail) in [(false, 1_000), (true, 1_000), (false, 1), (true, 999)] {
            let payload = (segments - 1) * 1_000 + tail;
            for seq in [7, 0xffff_fff0, 0x0001_ff00] {
                let port = 1_000 + segments as u16;
                samples.push(TcpSample { v6, payload, size: 1_000, seq, port });
            }
        }
    }
    samples
}

#[test]
fn super_frames_of_any_length_arrive_as_they_left_and_leave_in_few_messages() {
    let mut pair = stamping();
    let mut asking = 0;
    for sample in samples() {
        pair.ends[0].super_frames.borrow_mut().push_back(sample.super_frame());
        pair.run(Span::from_us(40), &mut |frame| {
            asking += u64::from(is_data(frame) && asks_for_delivery(frame));
            true
        });
        let got: Vec<Vec<u8>> = pair.ends[1].got.borrow_mut().drain(..).collect();
        assert!(got == sample.segments(), "{} of {} bytes from {:x}", got.len(), sample.payload, sample.seq);
    }
    let (sent, got) = (tally(&pair, 0), tally(&pair, 1));
    assert_eq!((sent.tx_stamped, got.rx_stamped), (sent.host_rx_frames, sent.host_rx_frames));
    assert_eq!(asking, sent.tx_stamped_runs, "the last segment of each, so that the next does not overtake it");
    assert!(sent.tx_stamped > 10 * sent.tx_stamped_runs && got.rx_stamped > 10 * got.rx_stamped_runs);
    assert_eq!((got.rx_stamp_bad, got.rx_stamp_dropped, got.rx_looped), (0, 0, 0));
    assert_eq!(pair.ends[1].link.endpoint().counters().rx_missing_seq, 0);
}

#[test]
fn over_a_lossy_wire_each_segment_arrives_once_and_in_its_place() {
    for mode in [Class::Ordered, Class::NonBlocking] {
        let mut random = Random::new(21, 1);
        let mut pair = Pair::alike(|| Seal::None, mode);
        pair.activate();
        pair.run(Span::from_ms(5), &mut { CLEAN });
        let mut expected = Vec::new();
        let mut seq = 0xfff0_0000u32;
        for n in 0..400u32 {
            let payload = 1 + (n as usize * 7_919) % 60_000;
            let sample = TcpSample { v6: n % 3 == 0, ..TcpSample::new(payload, 1_400, seq) };
            seq = seq.wrapping_add(payload as u32);
            expected.extend(sample.segments());
            pair.ends[0].super_frames.borrow_mut().push_back(sample.super_frame());
            // The other way too, so that acknowledgements ride on stamps.
            pair.ends[1].sends.borrow_mut().push_back(frame(1, n, 80));
            pair.run(Span::from_us(200), &mut |_| random.unit() >= 0.02);
        }
        pair.run(Span::from_ms(60), &mut |_| random.unit() >= 0.02);
        let mut got: Vec<Vec<u8>> = pair.ends[1].got.borrow().iter().cloned().collect();
        for frames in [&mut got, &mut expected] {
            match mode {
                // The two versions are two flows, and only within a flow there is an order.
                Class::Ordered => frames.sort_by_key(|frame| frame[12]),
                Class::NonBlocking => frames.sort(),
            }
        }
        assert_eq!(got.len(), expected.len());
        assert!(got == expected, "{mode:?}");
        assert_eq!(pair.ends[0].got.borrow().len(), 400);
        let counters = pair.ends[1].link.endpoint().counters();
        assert!(counters.recovered > 50 && counters.given_up == 0, "{counters:?}");
        assert!(tally(&pair, 1).rx_stamped > 5_000 && tally(&pair, 1).rx_stamp_bad == 0);
    }
}

#[test]
fn frames_for_others_broadcasts_datagrams_and_all_but_new_frames_keep_the_header() {
    let mut pair = stamping();
    let to_all = [&[0xff; 6][..], &frame(0, 1, 80)[6..]].concat();
    let bridged = [&MACS[1].0[..], &[2, 9, 9, 9, 9, 9], &frame(0, 2, 80)[12..]].concat();
    let elsewhere = [&[2, 7, 7, 7, 7, 7][..], &frame(0, 3, 80)[6..]].concat();
    // The kernel might hold back such a frame, and let others overtake it.
    let datagram = frame(0, 4, 80);
    let sent = [to_all, bridged, elsewhere, datagram];
    pair.ends[0].sends.borrow_mut().extend(sent.iter().cloned());
    let mut stamped = 0;
    pair.run(Span::from_ms(2), &mut |frame| {
        stamped += usize::from(is_data(frame));
        true
    });
    assert_eq!(stamped, 0);
    assert!(*pair.ends[1].got.borrow() == sent);
    // A stamped frame that is lost comes again behind a header.
    pair.ends[0].super_frames.borrow_mut().push_back(TcpSample::new(5_000, 1_000, 1).super_frame());
    let mut headers = 0;
    pair.run(Span::from_ms(5), &mut |frame| {
        headers += usize::from(frame[12..14] == [0x88, 0xb5] && frame.len() > 1_000);
        !is_data(frame)
    });
    assert!(headers >= 5, "{headers}");
    let got: Vec<Vec<u8>> = pair.ends[1].got.borrow().iter().skip(sent.len()).cloned().collect();
    assert!(got == TcpSample::new(5_000, 1_000, 1).segments());
}

#[test]
fn a_peer_without_stamps_or_with_a_seal_gets_none() {
    for (here, there) in [(false, true), (true, false)] {
        let make = |number, has: bool| {
            end(number, Seal::None, Class::Ordered, |setup| setup.no_stamps = (!has).then_some("not here"))
        };
        let mut pair = Pair::new([make(0, here), make(1, there)]);
        pair.activate();
        pair.ends[0].super_frames.borrow_mut().push_back(TcpSample::new(5_000, 1_000, 1).super_frame());
        let mut stamped = 0;
        pair.run(Span::from_ms(50), &mut |frame| {
            stamped += usize::from(AddressStamp::marks(frame));
            true
        });
        pair.ends[0].super_frames.borrow_mut().push_back(TcpSample::new(5_000, 1_000, 1).super_frame());
        pair.run(Span::from_ms(50), &mut { CLEAN });
        assert_eq!((pair.states(), states(&pair)), ([SessionState::Active; 2], [StampState::Unused; 2]));
        assert_eq!((stamped, pair.ends[1].got.borrow().len()), (0, 10));
        assert!(pair.ends[0].link.context().stamper.describe().1.is_some());
    }
    for seal in &seals()[1..] {
        let mut pair = Pair::alike(*seal, Class::Ordered);
        pair.activate();
        pair.run(Span::from_ms(50), &mut |frame| !AddressStamp::marks(frame));
        assert_eq!((pair.states(), states(&pair)), ([SessionState::Active; 2], [StampState::Unused; 2]));
    }
}

#[test]
fn a_wire_that_drops_stamped_frames_is_noticed_before_and_while_they_are_used() {
    let mut pair = Pair::alike(|| Seal::None, Class::Ordered);
    pair.activate();
    pair.run(Span::from_ms(500), &mut |frame| !AddressStamp::marks(frame));
    assert_eq!((pair.states(), states(&pair)), ([SessionState::Active; 2], [StampState::Unanswered; 2]));
    assert!(pair.ends[0].link.context().stamper.describe().1.unwrap().contains("switch"));
    // The cable is put in directly.
    pair.run(Span::from_ms(1_100), &mut { CLEAN });
    assert_eq!(states(&pair), [StampState::Used; 2]);
    // And again not: under load at once, and else when probes are missed.
    let mut seq = 1;
    let started = pair.now;
    while states(&pair)[0] == StampState::Used {
        let sample = TcpSample::new(30_000, 1_000, seq);
        seq += 30_000;
        pair.ends[0].super_frames.borrow_mut().push_back(sample.super_frame());
        pair.run(Span::from_us(500), &mut |frame| !AddressStamp::marks(frame));
        assert!(pair.now.since(started) < Span::from_ms(100));
    }
    pair.run(Span::from_ms(6_000), &mut |frame| !AddressStamp::marks(frame));
    assert_eq!((pair.states(), states(&pair)), ([SessionState::Active; 2], [StampState::Unanswered; 2]));
    let got: Vec<Vec<u8>> = pair.ends[1].got.borrow().iter().cloned().collect();
    let sent = (1..seq).step_by(30_000).flat_map(|seq| TcpSample::new(30_000, 1_000, seq).segments());
    assert!(got == sent.collect::<Vec<_>>(), "nothing was lost meanwhile");
}

/// A switch with two ports that learns addresses. What it knows to be behind the port that a frame came from it does not
/// pass on.
#[test]
fn a_learning_switch_does_not_answer_though_it_floods_what_it_does_not_know() {
    let mut pair = Pair::alike(|| Seal::None, Class::Ordered);
    pair.activate();
    let mut learnt: Vec<([u8; 6], usize)> = Vec::new();
    for _ in 0..50_000 {
        for at in 0..2 {
            pair.ends[at].link.turn(pair.now).unwrap();
            for frame in pair.ends[at].leaves.borrow_mut().drain(..) {
                let address = |at: usize| <[u8; 6]>::try_from(&frame[at..at + 6]).unwrap();
                learnt.retain(|(known, _)| *known != address(6));
                learnt.push((address(6), at));
                if !learnt.contains(&(address(0), at)) {
                    pair.ends[1 - at].arrives.borrow_mut().push_back(frame);
                }
            }
        }
        pair.now += Span::from_us(20);
    }
    assert_eq!((pair.states(), states(&pair)), ([SessionState::Active; 2], [StampState::Unanswered; 2]));
}

#[test]
fn nonsense_in_a_stamp_is_dropped_and_counted_and_no_stamp_drives_the_life_cycle() {
    let mut pair = stamping();
    let epoch = pair.ends[0].link.endpoint().epoch();
    let segment = TcpSample::new(1_000, 1_000, 5_000).segments().remove(0);
    let stamp = StampedData {
        lower: true,
        class: Class::Ordered,
        epoch,
        number: Seq::default(),
        acknowledges: None,
        run: Some(SegmentSpan { first: 5_000, size: 1_000 }),
        pushed: false,
    };
    let stamped = |stamp: StampedData, body: &[u8]| [&AddressStamp::Data(stamp).emit()[..], &body[12..]].concat();
    let span = |first, size| Some(SegmentSpan { first, size });
    let udp = frame(0, 1, 80);
    let bad = [
        stamped(StampedData { run: span(4_999, 1_000), ..stamp }, &segment),
        stamped(StampedData { run: span(6_000, 1_000), ..stamp }, &segment),
        stamped(stamp, &udp),
        stamped(stamp, &segment[..20]),
        stamped(stamp, &segment[..12]),
        stamped(StampedData { run: None, pushed: true, ..stamp }, &segment),
    ];
    pair.ends[1].arrives.borrow_mut().extend(bad.iter().cloned());
    pair.run(Span::from_ms(1), &mut { CLEAN });
    assert_eq!(tally(&pair, 1).rx_stamp_bad, bad.len() as u64);
    let other = Epoch::new(u32::from(epoch.number()) + 1);
    let dropped = stamped(StampedData { epoch: other, ..stamp }, &segment);
    let looped = stamped(StampedData { lower: false, ..stamp }, &segment);
    pair.ends[1].arrives.borrow_mut().extend([dropped.clone(), looped]);
    pair.run(Span::from_ms(1), &mut { CLEAN });
    assert_eq!((tally(&pair, 1).rx_stamp_dropped, tally(&pair, 1).rx_looped), (1, 1));
    assert_eq!((pair.states(), pair.ends[1].got.borrow().len()), ([SessionState::Active; 2], 0));
    // An end that is dormant says nothing of a stamped frame, where it would answer one behind a header.
    let mut dormant = Pair::alike(|| Seal::None, Class::Ordered);
    dormant.ends[1].arrives.borrow_mut().extend([dropped, stamped(stamp, &segment)]);
    let mut said = 0;
    dormant.run(Span::from_ms(5), &mut |_| {
        said += 1;
        true
    });
    assert_eq!((said, dormant.states()), (0, [SessionState::Dormant; 2]));
    assert_eq!((tally(&dormant, 1).rx_stamp_dropped, dormant.ends[1].got.borrow().len()), (2, 0));
}

#[test]
fn a_peer_that_restarts_is_stamped_to_again_and_frames_of_two_flows_share_the_wire() {
    let mut pair = stamping();
    pair.ends[1] = end(1, Seal::None, Class::Ordered, |setup| setup.instance = 99);
    pair.ends[1].link.command(pair.now, EndpointCommand::Offer);
    pair.run(Span::from_ms(600), &mut { CLEAN });
    assert_eq!((pair.states(), states(&pair)), ([SessionState::Active; 2], [StampState::Used; 2]));
    for n in 0..10 {
        for port in [1, 2] {
            let sample = TcpSample { port, ..TcpSample::new(20_000, 1_000, n * 20_000) };
            pair.ends[0].super_frames.borrow_mut().push_back(sample.super_frame());
        }
    }
    pair.run(Span::from_ms(5), &mut { CLEAN });
    assert_eq!(pair.ends[1].got.borrow().len(), 400);
    let sent = tally(&pair, 0);
    assert!(sent.tx_stamped >= 400 && sent.tx_stamped_runs < 60, "{sent:?}");
}
