//! Numbers in the Ethernet addresses of frames: super-frames over a wire that loses, doubles, alters or filters frames.

use link::stamp::StampState;
use linux::offload::Pieces;
use wire::Seq;
use wire::checksum::Sum;
use wire::link::{AddressStamp, ProbeKind, ProbePaths, SegmentSpan, StampProbe, StampTag, StampableFrame, StampedData};

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
            // Equal identifications would change when segments are joined.
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

    /// Segments that a cable would have carried.
    fn segments(&self) -> Vec<Vec<u8>> {
        let (vnet, frame) = self.super_frame();
        let mut pieces = Pieces::default();
        pieces.of(&vnet, &frame).unwrap().map(<[u8]>::to_vec).collect()
    }
}

fn stamping() -> Pair {
    let mut pair = Pair::alike(|| Seal::None, Class::Ordered);
    pair.activate();
    pair.run(PROVED, &mut { CLEAN });
    assert_eq!(states(&pair), [StampState::Used; 2]);
    pair
}

/// Time by which two ends of a cable have found that it is one.
const PROVED: Span = Span::from_ms(150);

fn states(pair: &Pair) -> [StampState; 2] {
    [0, 1].map(|end| pair.ends[end].link.context().stamper.state())
}

fn tally(pair: &Pair, end: usize) -> standin::Tally {
    pair.ends[end].link.context().statistics.tally
}

fn is_data(frame: &[u8]) -> bool {
    matches!(AddressStamp::parse(frame), Ok(Some(AddressStamp::Data(_))))
}

/// True if a TCP segment has PSH.
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
        pair.run(PROVED, &mut { CLEAN });
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
        pair.run(PROVED, &mut |frame| {
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
    assert!(pair.ends[0].link.context().stamper.describe().1.unwrap().contains("filter"));
    // The filter is removed.
    pair.run(Span::from_ms(61_000), &mut { CLEAN });
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

#[test]
fn nonsense_in_a_stamp_is_dropped_and_counted_and_no_stamp_drives_the_life_cycle() {
    let mut pair = stamping();
    let segment = TcpSample::new(1_000, 1_000, 5_000).segments().remove(0);
    let good = forged(&pair, 5_000);
    let stamped = |stamp: StampedData, body: &[u8]| [&AddressStamp::Data(stamp).emit()[..], &body[12..]].concat();
    let span = |first, size| SegmentSpan { first, size };
    let udp = frame(0, 1, 80);
    let bad = [
        stamped(StampedData { run: span(4_999, 1_000), ..good }, &segment),
        stamped(StampedData { run: span(6_000, 1_000), ..good }, &segment),
        stamped(good, &udp),
        stamped(good, &segment[..20]),
        stamped(good, &segment[..12]),
        [&AddressStamp::Probe { lower: true }.emit()[..], &segment[12..]].concat(),
    ];
    pair.ends[1].arrives.borrow_mut().extend(bad.iter().cloned());
    pair.run(Span::from_ms(1), &mut { CLEAN });
    assert_eq!(tally(&pair, 1).rx_stamp_bad, bad.len() as u64);
    let [own, other] = [tags(&pair, 1)[0], StampTag::from_bits(good.tag.bits() ^ 0x40)];
    let strange = stamped(StampedData { tag: other, ..good }, &segment);
    let looped = stamped(StampedData { tag: own, ..good }, &segment);
    pair.ends[1].arrives.borrow_mut().extend([strange.clone(), looped]);
    pair.run(Span::from_ms(1), &mut { CLEAN });
    assert_eq!((tally(&pair, 1).rx_stamp_stranger, tally(&pair, 1).rx_looped), (1, 1));
    assert_eq!((pair.states(), pair.ends[1].got.borrow().len()), ([SessionState::Active; 2], 0));
    // An end that is dormant says nothing of a stamped frame, where it would answer one behind a header.
    let mut dormant = Pair::alike(|| Seal::None, Class::Ordered);
    dormant.ends[1].arrives.borrow_mut().extend([strange, stamped(good, &segment)]);
    let mut said = 0;
    dormant.run(Span::from_ms(5), &mut |_| {
        said += 1;
        true
    });
    assert_eq!((said, dormant.states()), (0, [SessionState::Dormant; 2]));
    assert_eq!((tally(&dormant, 1).rx_stamp_stranger, dormant.ends[1].got.borrow().len()), (2, 0));
}

/// The tags of frames from an end, and of frames to it.
fn tags(pair: &Pair, end: usize) -> [StampTag; 2] {
    let session = pair.ends[end].link.endpoint().identity();
    let tag = |from, to| StampTag::new(from, to, session.epoch);
    [tag(session.instance, session.peer), tag(session.peer, session.instance)]
}

/// The stamp of a segment from the first end, as nobody but that end knows it.
fn forged(pair: &Pair, seq: u16) -> StampedData {
    let frame = StampableFrame { class: Class::Ordered, number: Seq::default(), acknowledges: None };
    StampedData { tag: tags(pair, 0)[0], frame, run: SegmentSpan { first: seq, size: 1_000 }, pushed: false }
}

/// `stamp_forge`: somebody who does not know the session sends stamps with every tag, and many numbers with each.
fn forge_stamps(pair: &mut Pair, random: &mut Random) -> u64 {
    let segment = TcpSample::new(1_000, 1_000, 5_000).segments().remove(0);
    let known = [0, 1].map(|end| tags(pair, end)[1]);
    let mut sent = 0;
    for bits in 0..=u16::MAX {
        let tag = StampTag::from_bits(bits);
        if known.contains(&tag) {
            continue;
        }
        let number = Seq::new((random.below(146) * 900) as u16, random.below(2) == 0);
        let acknowledges =
            (bits % 3 == 0).then_some((Class::Ordered, Seq::new(random.below(1 << 16) as u16, random.below(2) == 0)));
        let frame = StampableFrame { number, acknowledges, ..forged(pair, 5_000).frame };
        let stamp = StampedData { tag, frame, ..forged(pair, 5_000) };
        let bytes = [&AddressStamp::Data(stamp).emit()[..], &segment[12..]].concat();
        for end in &pair.ends {
            end.arrives.borrow_mut().push_back(bytes.clone());
        }
        sent += 1;
        if bits % 64 == 0 {
            pair.run(Span::from_us(40), &mut { CLEAN });
        }
    }
    pair.run(Span::from_ms(5), &mut { CLEAN });
    sent
}

#[test]
fn stamps_forged_by_somebody_who_does_not_know_the_session_reach_nobody_whether_stamps_are_used_or_not() {
    let mut random = Random::new(8, 1);
    let switched: fn(&mut Vec<u8>) -> bool = |frame| !is_for_a_cable(frame);
    for (wire, state) in [(CLEAN, StampState::Used), (switched, StampState::Unanswered)] {
        let with_peer = |number: usize| {
            end(number, Seal::None, Class::Ordered, |setup| {
                setup.framing = Framing::new(MACS[number], Some(MACS[1 - number]), Seal::None);
            })
        };
        let mut pair = Pair::new([with_peer(0), with_peer(1)]);
        pair.activate();
        pair.run(Span::from_ms(400), &mut { wire });
        assert_eq!(states(&pair), [state; 2]);
        let sessions = [0, 1].map(|at| pair.ends[at].link.endpoint().identity());
        let sent = forge_stamps(&mut pair, &mut random);
        let tallies = [tally(&pair, 0), tally(&pair, 1)];
        assert_eq!(tallies.map(|tally| (tally.rx_stamp_stranger, tally.rx_stamped)), [(sent, 0); 2]);
        assert_eq!([0, 1].map(|at| pair.ends[at].link.endpoint().identity()), sessions);
        // Nothing reached an application, no window jumped: honest frames pass as before.
        pair.ends[0].super_frames.borrow_mut().push_back(TcpSample::new(30_000, 1_000, 1).super_frame());
        pair.run(Span::from_ms(60), &mut { wire });
        let got: Vec<Vec<u8>> = pair.ends[1].got.borrow().iter().cloned().collect();
        assert!(got == TcpSample::new(30_000, 1_000, 1).segments() && pair.ends[0].got.borrow().is_empty());
        let counters = [0, 1].map(|at| *pair.ends[at].link.endpoint().counters());
        assert!(counters.iter().all(|all| all.given_up == 0 && all.rx_missing_seq == 0), "{counters:?}");
    }
}

/// True if it goes to an address that no bridge passes on, or back to where it comes from.
fn is_for_a_cable(frame: &[u8]) -> bool {
    frame[..6] == wire::link::RESERVED_ADDRESS || frame[..6] == frame[6..12]
}

/// A frame that no stamp is believed in is right only in its tag.
#[test]
fn the_right_tag_is_not_believed_unless_our_own_probes_are_answered() {
    let mut pair = Pair::alike(|| Seal::None, Class::Ordered);
    pair.activate();
    pair.run(Span::from_ms(400), &mut |frame| !is_for_a_cable(frame));
    assert_eq!(states(&pair), [StampState::Unanswered; 2]);
    // Nor does an answer count that has the addresses of a stamp instead of the peer's.
    let session = pair.ends[1].link.endpoint().identity();
    let (instance, heard) = (session.peer, session.instance);
    let answers = (0..200).map(|token| {
        let kind = ProbeKind::Answer(ProbePaths::ALL);
        let probe = StampProbe { kind, proved: true, token, instance, heard }.emit();
        [&AddressStamp::Probe { lower: true }.emit()[..], &[8, 0], &[0; 20], &probe].concat()
    });
    pair.ends[1].arrives.borrow_mut().extend(answers);
    pair.run(Span::from_ms(1), &mut |frame| !is_for_a_cable(frame));
    assert_eq!((tally(&pair, 1).rx_stamp_dropped, states(&pair)), (200, [StampState::Unanswered; 2]));
    let segment = TcpSample::new(1_000, 1_000, 5_000).segments().remove(0);
    let bytes = [&AddressStamp::Data(forged(&pair, 5_000)).emit()[..], &segment[12..]].concat();
    pair.ends[1].arrives.borrow_mut().push_back(bytes);
    pair.run(Span::from_ms(60), &mut |frame| !is_for_a_cable(frame));
    assert_eq!((tally(&pair, 1).rx_stamp_dropped, pair.ends[1].got.borrow().len()), (201, 0));
    assert_eq!(pair.ends[1].link.endpoint().counters().given_up, 0);
}

/// Segment that joins the ends of several pairs and a third host, which sees what is flooded.
#[derive(Default)]
struct Segment {
    /// A hub does not.
    learns: bool,
    /// Against the standard.
    passes_reserved: bool,
    learnt: std::collections::BTreeMap<[u8; 6], usize>,
    /// Frames that the third host sees, but for those that are for everybody.
    seen: Vec<Vec<u8>>,
    /// Addresses that no interface has.
    invented: std::collections::BTreeSet<[u8; 6]>,
}

impl Segment {
    /// Ports at which a frame leaves that came in at `from`.
    fn pass(&mut self, from: usize, frame: &[u8], ports: usize) -> Vec<usize> {
        let [to, source]: [[u8; 6]; 2] = [0, 6].map(|at| frame[at..at + 6].try_into().unwrap());
        if self.learns {
            self.learnt.insert(source, from);
        }
        if source[..5] != MACS[0].0[..5] {
            self.invented.insert(source);
        }
        if to == wire::link::RESERVED_ADDRESS && !self.passes_reserved {
            return Vec::new();
        }
        match self.learnt.get(&to) {
            Some(port) => [*port].into_iter().filter(|port| *port != from).collect(),
            None => {
                if to[0] & 1 == 0 {
                    self.seen.push(frame.to_vec());
                }
                (0..ports).filter(|port| *port != from).collect()
            }
        }
    }

    /// All ends take their turns; `fate` is that of a frame between the first end and the segment.
    fn run(&mut self, ends: &mut [End], now: &mut Time, span: Span, fate: &mut dyn FnMut() -> bool) {
        let until = *now + span;
        while *now < until {
            for from in 0..ends.len() {
                ends[from].link.turn(*now).unwrap();
                let leaving: Vec<Vec<u8>> = ends[from].leaves.borrow_mut().drain(..).collect();
                for frame in leaving {
                    if from == 0 && !fate() {
                        continue;
                    }
                    for to in self.pass(from, &frame, ends.len()) {
                        if to != 0 || fate() {
                            ends[to].arrives.borrow_mut().push_back(frame.clone());
                        }
                    }
                }
            }
            *now += Span::from_us(20);
        }
    }
}

fn stamped_among(frames: &[Vec<u8>]) -> usize {
    frames.iter().filter(|frame| is_data(frame)).count()
}

#[test]
fn nothing_is_flooded_through_a_learning_switch_whatever_frames_are_lost() {
    for (seed, passes_reserved, loss) in [(1, false, 0.05), (2, true, 0.05), (3, true, 0.3), (4, false, 0.3)] {
        let mut random = Random::new(seed, 1);
        let mut pair = Pair::alike(|| Seal::None, Class::Ordered);
        pair.activate();
        let mut switch = Segment { learns: true, passes_reserved, ..Segment::default() };
        let (mut now, mut seq) = (Time::ZERO, 1);
        for round in 0..2_000 {
            if round % 4 == 0 {
                pair.ends[0].super_frames.borrow_mut().push_back(TcpSample::new(5_000, 1_000, seq).super_frame());
                seq += 5_000;
            }
            if round % 100 == 99 {
                switch.learnt.clear();
            }
            switch.run(&mut pair.ends, &mut now, Span::from_ms(1), &mut || random.unit() >= loss);
        }
        assert_eq!((stamped_among(&switch.seen), switch.invented.len()), (0, 0), "seed {seed}");
        assert!(!states(&pair).contains(&StampState::Used), "seed {seed}");
        assert_eq!(tally(&pair, 0).tx_stamped, 0);
        assert!(pair.ends[1].got.borrow().len() > 2_000);
    }
}

/// A switch that takes the place of the cable without a moment's pause.
#[test]
fn a_switch_that_takes_the_cables_place_sees_stamps_for_a_quarter_of_a_second_at_most() {
    for passes_reserved in [false, true] {
        let mut pair = stamping();
        let mut switch = Segment { learns: true, passes_reserved, ..Segment::default() };
        let (mut seq, begun) = (1, pair.now);
        let mut latest = begun;
        for _ in 0..6_000 {
            if seq < 4_000_000 {
                pair.ends[0].super_frames.borrow_mut().push_back(TcpSample::new(5_000, 1_000, seq).super_frame());
                seq += 5_000;
            }
            let before = stamped_among(&switch.seen);
            let mut now = pair.now;
            switch.run(&mut pair.ends, &mut now, Span::from_ms(1), &mut || true);
            pair.now = now;
            if stamped_among(&switch.seen) > before {
                latest = now;
            }
        }
        assert!(latest.since(begun) <= Span::from_ms(252), "{:?}", latest.since(begun));
        assert_eq!(states(&pair), [StampState::Unanswered; 2]);
        assert_eq!(tally(&pair, 0).stamp_relapses, 1);
        assert_eq!(pair.ends[1].got.borrow().len(), 4_000, "nothing was lost");
    }
}

/// A wire that is quiet for longer than it takes to plug in a switch.
#[test]
fn a_switch_that_is_plugged_in_sees_no_stamp() {
    let mut pair = stamping();
    pair.run(Span::from_ms(300), &mut |_| false);
    let mut switch = Segment { learns: true, passes_reserved: true, ..Segment::default() };
    let mut now = pair.now;
    for n in 0..1_000 {
        pair.ends[0].super_frames.borrow_mut().push_back(TcpSample::new(5_000, 1_000, n * 5_000).super_frame());
        switch.run(&mut pair.ends, &mut now, Span::from_ms(1), &mut || true);
    }
    assert_eq!(stamped_among(&switch.seen), 0);
    assert_eq!((pair.states(), states(&pair)), ([SessionState::Active; 2], [StampState::Unanswered; 2]));
    assert_eq!(pair.ends[1].got.borrow().len(), 5_000);
}

#[test]
fn two_pairs_on_a_hub_take_none_of_each_others_frames() {
    for passes_reserved in [false, true] {
        let mac = |number: usize| Mac([2, 0, 0, 0, 0, 1 + number as u8]);
        let member = |number: usize| {
            end(number % 2, Seal::None, Class::Ordered, |setup| {
                setup.framing = Framing::new(mac(number), Some(mac(number ^ 1)), Seal::None);
                setup.instance = 1_000 + 77 * number as u32;
            })
        };
        let mut ends: Vec<End> = (0..4).map(member).collect();
        let mut hub = Segment { passes_reserved, ..Segment::default() };
        let (mut now, mut sent) = (Time::ZERO, 0);
        for pair in [0, 2] {
            ends[pair].link.command(now, EndpointCommand::Activate);
            for n in 0..2_000u32 {
                for from in if pair == 0 { 0..1 } else { 0..2 } {
                    let (vnet, mut bytes) = TcpSample::new(5_000, 1_000, n * 5_000).super_frame();
                    bytes[..6].copy_from_slice(&mac(2 * from + 1).0);
                    bytes[6..12].copy_from_slice(&mac(2 * from).0);
                    ends[2 * from].super_frames.borrow_mut().push_back((vnet, bytes));
                    sent += usize::from(from == 0);
                }
                hub.run(&mut ends, &mut now, Span::from_us(200), &mut || true);
            }
            let state = ends[0].link.context().stamper.state();
            assert_eq!(
                state == StampState::Used,
                passes_reserved && pair == 0,
                "a hub is like a cable until others speak"
            );
        }
        hub.run(&mut ends, &mut now, Span::from_ms(200), &mut || true);
        for (number, expected) in [0, 5 * sent, 0, 10_000].into_iter().enumerate() {
            let end = &ends[number];
            let (tally, counters) = (end.link.context().statistics.tally, end.link.endpoint().counters());
            // The host ignores what the other pair sends before it is protected.
            let got = end.got.borrow().iter().filter(|frame| frame[..6] == mac(number).0).count();
            assert_eq!(end.link.endpoint().state(), SessionState::Active);
            assert_eq!((got, counters.rx_duplicate_seq, tally.rx_stamp_bad), (expected, 0, 0), "{tally:?}");
            assert_eq!(end.link.context().stamper.state(), StampState::Unanswered);
        }
    }
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
