//! Two links on a wire of memory, in a time of our own: what the daemon does to frames, without Linux.

#[path = "memory/keys.rs"]
mod keys;
#[path = "memory/stamps.rs"]
mod stamps;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::os::fd::RawFd;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use faults::Random;
use guard::auto::Level;
use guard::{EndpointCommand, Params, SessionState};
use link::datapath::{DatapathSetup, InitAction, Link, LinkEvent};
use link::frame::{Framing, Mac};
use link::seal::Seal;
use linux::offload::{Coalescer, Pieces, VnetHeader};
use machine::Machine;
use standin::FramePool;
use standin::backend::{Host, Wire, WireFrame, outgoing_runs};
use units::{Bytes, Prob, Span, Time};
use wire::link::Class;

type Frames = Rc<RefCell<VecDeque<Vec<u8>>>>;
type SuperFrames = Rc<RefCell<VecDeque<(VnetHeader, Vec<u8>)>>>;

/// A host that sends what the test gives it and keeps what it is given, cut as a cable would have carried it.
struct MemoryHost {
    sends: Frames,
    super_frames: SuperFrames,
    got: Frames,
}

impl Host for MemoryHost {
    fn fd(&self) -> RawFd {
        -1
    }

    fn receive(&mut self, each: &mut dyn FnMut(&VnetHeader, &[u8])) -> io::Result<bool> {
        if let Some((vnet, frame)) = self.super_frames.borrow_mut().pop_front() {
            each(&vnet, &frame);
            return Ok(true);
        }
        let Some(frame) = self.sends.borrow_mut().pop_front() else { return Ok(false) };
        each(&VnetHeader::default(), &frame);
        Ok(true)
    }

    fn deliver(&mut self, parts: &[io::IoSlice<'_>]) -> io::Result<bool> {
        let whole: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
        let (vnet, frame) = whole.split_first_chunk().expect("a vnet header comes first");
        let mut pieces = Pieces::default();
        let vnet = VnetHeader::parse(*vnet);
        let pieces = pieces.of(&vnet, frame).expect("the host is handed what it can cut");
        self.got.borrow_mut().extend(pieces.map(<[u8]>::to_vec));
        Ok(true)
    }

    fn overflowed(&mut self) -> u64 {
        0
    }

    fn error(&mut self) -> Option<io::Error> {
        None
    }
}

/// A wire that carries single frames. A kernel cuts super-frames before it, and joins segments behind it, unless the backend
/// is one that has none.
struct MemoryWire {
    arrives: Frames,
    leaves: Frames,
    no_super_frames: Option<&'static str>,
}

impl Wire for MemoryWire {
    fn fd(&self) -> RawFd {
        -1
    }

    fn receive(&mut self, most: usize, each: &mut dyn FnMut(&[u8])) -> io::Result<usize> {
        let mut arrives = self.arrives.borrow_mut();
        let count = most.min(arrives.len());
        arrives.drain(..count).for_each(|frame| each(&frame));
        Ok(count)
    }

    fn receive_joined(&mut self, most: usize, each: &mut dyn FnMut(&VnetHeader, &[u8])) -> io::Result<usize> {
        let count = most.min(self.arrives.borrow().len());
        let frames: Vec<Vec<u8>> = self.arrives.borrow_mut().drain(..count).collect();
        let mut coalescer = Coalescer::default();
        for (number, frame) in frames.iter().enumerate() {
            coalescer.push(number, frame);
        }
        coalescer.flush();
        while let Some(batch) = coalescer.pop() {
            let mut bytes = batch.prefix()[VnetHeader::LEN..].to_vec();
            batch.parts().iter().for_each(|part| bytes.extend_from_slice(part.of(&frames[part.handle])));
            each(&batch.vnet(), &bytes);
        }
        Ok(count)
    }

    fn no_super_frames(&self) -> Option<&'static str> {
        self.no_super_frames
    }

    fn send(&mut self, frames: &[WireFrame], pool: &FramePool) -> io::Result<usize> {
        let mut cut = Pieces::default();
        for run in outgoing_runs(frames, pool) {
            let (vnet, message) = run.message(pool);
            let pieces = cut.of(&vnet, &message).expect("a kernel can cut it");
            self.leaves.borrow_mut().extend(pieces.map(<[u8]>::to_vec));
        }
        Ok(frames.len())
    }

    fn overflowed(&mut self) -> u64 {
        0
    }

    fn error(&mut self) -> Option<io::Error> {
        None
    }
}

struct End {
    link: Link,
    sends: Frames,
    super_frames: SuperFrames,
    got: Frames,
    arrives: Frames,
    leaves: Frames,
}

const MACS: [Mac; 2] = [Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2])];
const LONGEST: u32 = 1_522;

fn end(number: usize, seal: Seal, mode: Class, change: impl Fn(&mut DatapathSetup)) -> End {
    let [sends, got, arrives, leaves] = std::array::from_fn(|_| Frames::default());
    let framing = Framing::new(MACS[number], None, seal);
    let mut params = Params::host(LONGEST, mode, 2, 256, Span::from_ms(50));
    params.seal = framing.seal_code();
    let mut setup = DatapathSetup {
        params,
        longest: LONGEST as usize,
        framing,
        instance: 10 + number as u32,
        init: InitAction::BestEffort,
        rate: None,
        queue: Bytes::new(1 << 20),
        target: Some(Prob::literal(1e-8)),
        no_stamps: None,
    };
    change(&mut setup);
    let super_frames = SuperFrames::default();
    let host = MemoryHost { sends: Rc::clone(&sends), super_frames: Rc::clone(&super_frames), got: Rc::clone(&got) };
    let wire =
        MemoryWire { arrives: Rc::clone(&arrives), leaves: Rc::clone(&leaves), no_super_frames: setup.no_stamps };
    End { link: Link::new(setup, Box::new(host), Box::new(wire)), sends, super_frames, got, arrives, leaves }
}

struct Pair {
    ends: [End; 2],
    now: Time,
}

/// Effect of the wire on a frame.
type Fate<'a> = &'a mut dyn FnMut(&mut Vec<u8>) -> bool;

impl Pair {
    fn new(ends: [End; 2]) -> Self {
        Self { ends, now: Time::ZERO }
    }

    fn alike(seal: fn() -> Seal, mode: Class) -> Self {
        Self::new([end(0, seal(), mode, |_| ()), end(1, seal(), mode, |_| ())])
    }

    /// Both ends take their turns every twenty microseconds; the wire carries what its fate lets through.
    fn run(&mut self, span: Span, fate: Fate<'_>) {
        let until = self.now + span;
        while self.now < until {
            for at in 0..2 {
                self.ends[at].link.turn(self.now).unwrap();
                self.ends[at].link.endpoint().check_invariants();
                let leaving: Vec<Vec<u8>> = self.ends[at].leaves.borrow_mut().drain(..).collect();
                let passing = leaving.into_iter().filter_map(|mut frame| fate(&mut frame).then_some(frame));
                self.ends[1 - at].arrives.borrow_mut().extend(passing);
            }
            self.now += Span::from_us(20);
        }
    }

    fn activate(&mut self) {
        self.ends[0].link.command(self.now, EndpointCommand::Activate);
    }

    fn states(&self) -> [SessionState; 2] {
        [0, 1].map(|end| self.ends[end].link.endpoint().state())
    }
}

fn frame(from: usize, number: u32, len: usize) -> Vec<u8> {
    let mut frame = [&MACS[1 - from].0[..], &MACS[from].0, &[0x12, 0x34], &number.to_be_bytes()].concat();
    frame.extend((0..len).map(|byte| (byte as u32 ^ number) as u8));
    frame
}

/// A seal with the same key each time, as a new incarnation.
fn keyed() -> Seal {
    static LIVES: AtomicU64 = AtomicU64::new(1);
    Seal::keyed([5; 16], u128::from(LIVES.fetch_add(1, Ordering::Relaxed)) << 64)
}

fn seals() -> [fn() -> Seal; 3] {
    [|| Seal::None, || Seal::Crc, keyed]
}

#[test]
fn frames_of_both_ways_arrive_once_in_order_and_unaltered_over_a_lossy_wire() {
    for seal in seals() {
        let mut random = Random::new(3, 1);
        let mut pair = Pair::alike(seal, Class::Ordered);
        pair.activate();
        pair.run(Span::from_ms(5), &mut |_| true);
        assert_eq!(pair.states(), [SessionState::Active; 2]);
        let sent: [Vec<Vec<u8>>; 2] =
            [0, 1].map(|from| (0..3_000).map(|n| frame(from, n, 40 + n as usize % 1_400)).collect());
        for chunk in 0..300 {
            for (from, frames) in sent.iter().enumerate() {
                pair.ends[from].sends.borrow_mut().extend(frames[chunk * 10..chunk * 10 + 10].iter().cloned());
            }
            pair.run(Span::from_us(100), &mut |_| random.unit() >= 0.02);
        }
        pair.run(Span::from_ms(60), &mut |_| random.unit() >= 0.02);
        for (to, end) in pair.ends.iter().enumerate() {
            let got: Vec<Vec<u8>> = end.got.borrow().iter().cloned().collect();
            assert_eq!(got.len(), 3_000);
            assert!(got == sent[1 - to], "towards {to}");
            assert!(end.link.endpoint().counters().recovered > 30);
            assert_eq!(end.link.endpoint().counters().given_up, 0);
        }
    }
}

#[test]
fn a_wire_that_alters_bits_unnoticed_delivers_nothing_altered_if_frames_are_sealed() {
    for seal in &seals()[1..] {
        let mut random = Random::new(4, 1);
        let mut pair = Pair::alike(*seal, Class::Ordered);
        pair.activate();
        pair.run(Span::from_ms(5), &mut |_| true);
        let sent: Vec<Vec<u8>> = (0..2_000).map(|n| frame(0, n, 100)).collect();
        let mut flipped = 0;
        let mut flip = |frame: &mut Vec<u8>| {
            // Behind the addresses and the type: those decide whose frame it is.
            if random.unit() < 0.02 {
                let bit = 14 * 8 + random.below((frame.len() as u64 - 14) * 8) as usize;
                frame[bit / 8] ^= 1 << (bit % 8);
                flipped += 1;
            }
            true
        };
        for chunk in sent.chunks(10) {
            pair.ends[0].sends.borrow_mut().extend(chunk.iter().cloned());
            pair.run(Span::from_us(100), &mut flip);
        }
        pair.run(Span::from_ms(60), &mut flip);
        let got: Vec<Vec<u8>> = pair.ends[1].got.borrow().iter().cloned().collect();
        assert!(got == sent, "{} of {}", got.len(), sent.len());
        let counted: u64 = pair.ends.iter().map(|end| end.link.context().statistics.tally).map(rejected).sum();
        assert!(flipped > 40 && counted > 40, "{flipped} flipped, {counted} rejected");
    }
}

fn rejected(tally: standin::Tally) -> u64 {
    tally.rx_corrupted + tally.rx_forged + tally.rx_malformed
}

#[test]
fn recorded_frames_played_again_change_nothing_if_a_key_is_used() {
    let mut pair = Pair::alike(keyed, Class::Ordered);
    pair.activate();
    let mut recorded = Vec::new();
    pair.ends[0].sends.borrow_mut().extend((0..50).map(|n| frame(0, n, 100)));
    pair.run(Span::from_ms(10), &mut |frame| {
        recorded.push(frame.clone());
        true
    });
    let before = (pair.states(), pair.ends[1].got.borrow().len());
    for end in &pair.ends {
        end.arrives.borrow_mut().extend(recorded.iter().cloned());
    }
    pair.run(Span::from_ms(10), &mut |_| true);
    assert_eq!((pair.states(), pair.ends[1].got.borrow().len()), before);
    let tallies = pair.ends.each_ref().map(|end| end.link.context().statistics.tally);
    assert!(tallies.iter().all(|tally| tally.rx_replayed > 0), "{tallies:?}");
}

#[test]
fn a_dormant_link_passes_frames_until_either_end_is_told_of_a_loss_and_then_both_protect() {
    for told in 0..2 {
        // Shut while it asks for protection; a dormant link does not ask.
        let ends = [0, 1].map(|number| end(number, Seal::None, Class::Ordered, |setup| setup.init = InitAction::Block));
        let mut pair = Pair::new(ends);
        pair.ends[0].sends.borrow_mut().extend((0..5).map(|n| frame(0, n, 60)));
        pair.run(Span::from_ms(2), &mut |_| true);
        assert_eq!((pair.states(), pair.ends[1].got.borrow().len()), ([SessionState::Dormant; 2], 5));
        pair.ends[told].link.command(pair.now, EndpointCommand::Expect(Prob::literal(0.02)));
        assert_eq!(pair.states(), [SessionState::Dormant; 2]);
        pair.ends[told].link.command(pair.now, EndpointCommand::Activate);
        pair.run(Span::from_ms(5), &mut |_| true);
        assert_eq!(pair.states(), [SessionState::Active; 2]);
        // Eq. 2: 0.02 to the power of five is below 1e-8. The other end still has what it was made with.
        assert_eq!(pair.ends[told].link.endpoint().copies(), (4, None));
        assert_eq!(pair.ends[1 - told].link.endpoint().copies(), (2, None));
    }
}

#[test]
fn where_the_mode_is_automatic_a_measured_loss_decides_it_before_the_first_frame() {
    let automatic = |setup: &mut DatapathSetup| {
        setup.params = setup.params.clone().automatic_up_to(Prob::literal(0.02), Prob::literal(1e-8));
        setup.target = None;
    };
    for (loss, level, copies) in [(1e-3, Level::Ordered, 2), (0.05, Level::NonBlocking, 6)] {
        let mut pair = Pair::new([0, 1].map(|number| end(number, Seal::None, Class::Ordered, automatic)));
        pair.ends[0].link.command(pair.now, EndpointCommand::Expect(Prob::literal(loss)));
        pair.activate();
        pair.run(Span::from_ms(5), &mut |_| true);
        assert_eq!(pair.states(), [SessionState::Active; 2]);
        assert_eq!(pair.ends[0].link.endpoint().copies(), (copies, Some(level)));
    }
}

#[test]
fn until_the_peer_answers_frames_pass_wait_or_are_dropped_as_asked() {
    for (init, before, after) in
        [(InitAction::BestEffort, 5, 5), (InitAction::Block, 0, 5), (InitAction::Discard, 0, 0)]
    {
        let here = end(0, Seal::None, Class::Ordered, |setup| setup.init = init);
        let mut pair = Pair::new([here, end(1, Seal::None, Class::Ordered, |_| ())]);
        pair.activate();
        pair.ends[0].sends.borrow_mut().extend((0..5).map(|n| frame(0, n, 60)));
        // Greetings are lost; other frames are not.
        pair.run(Span::from_ms(2), &mut |frame| frame[12..14] != [0x88, 0xb5]);
        assert_eq!(pair.ends[1].got.borrow().len(), before, "{init:?}");
        pair.run(Span::from_ms(200), &mut |_| true);
        assert_eq!(pair.states(), [SessionState::Active; 2]);
        assert_eq!(pair.ends[1].got.borrow().len(), after, "{init:?}");
    }
}

#[test]
fn a_link_that_starts_over_at_time_zero_loses_no_memory_and_carries_on() {
    let mut pair = Pair::alike(|| Seal::None, Class::Ordered);
    pair.activate();
    pair.ends[0].sends.borrow_mut().extend((0..50).map(|n| frame(0, n, 100)));
    pair.run(Span::from_ms(10), &mut |_| true);
    // In the middle of something, too: what is unacknowledged is let go.
    pair.ends[0].sends.borrow_mut().extend((50..60).map(|n| frame(0, n, 100)));
    pair.run(Span::from_us(20), &mut |_| false);
    for (number, end) in pair.ends.iter_mut().enumerate() {
        end.link.start_over(20 + number as u32);
        assert_eq!(end.link.context().memory.pool.free(), end.link.context().memory.pool.slots());
    }
    pair.now = Time::ZERO;
    pair.activate();
    pair.run(Span::from_ms(5), &mut |_| true);
    pair.ends[0].sends.borrow_mut().extend((60..70).map(|n| frame(0, n, 100)));
    pair.run(Span::from_ms(5), &mut |_| true);
    assert_eq!(pair.states(), [SessionState::Active; 2]);
    assert_eq!(pair.ends[1].got.borrow().back(), Some(&frame(0, 69, 100)));
}

#[test]
fn on_a_slow_wire_too_a_lone_frame_that_is_lost_is_noticed() {
    let slow = |number| end(number, Seal::None, Class::Ordered, |setup| setup.rate = Some("10M".parse().unwrap()));
    let mut pair = Pair::new([slow(0), slow(1)]);
    pair.activate();
    pair.run(Span::from_ms(20), &mut |_| true);
    pair.ends[0].sends.borrow_mut().push_back(frame(0, 1, 1_400));
    let mut lost = false;
    pair.run(Span::from_ms(40), &mut |frame| {
        let first = !lost && frame.len() > 1_000;
        lost |= first;
        !first
    });
    assert!(lost);
    assert_eq!(pair.ends[1].got.borrow().len(), 1);
}

#[test]
fn two_ends_that_do_not_agree_say_why_and_go_on_unprotected() {
    type Change = fn(&mut DatapathSetup);
    let cases: [(Change, wire::link::SessionRefusal); 3] = [
        (|setup| setup.params.mtu = 1_000, wire::link::SessionRefusal::Mtu),
        (|setup| setup.params.classes = vec![Class::NonBlocking], wire::link::SessionRefusal::Classes),
        (|setup| setup.params.seal = 1, wire::link::SessionRefusal::Seal),
    ];
    for (change, reason) in cases {
        let there = end(1, Seal::None, Class::Ordered, change);
        let mut pair = Pair::new([end(0, Seal::None, Class::Ordered, |_| ()), there]);
        pair.activate();
        pair.run(Span::from_ms(5), &mut |_| true);
        assert_eq!(pair.states(), [SessionState::Dormant; 2]);
        for end in &mut pair.ends {
            let refused = LinkEvent::Endpoint(guard::EndpointEvent::Refused(reason));
            assert!(end.link.take_events().contains(&refused), "{reason:?}");
        }
        pair.ends[0].sends.borrow_mut().push_back(frame(0, 1, 60));
        pair.run(Span::from_ms(1), &mut |_| true);
        assert_eq!(pair.ends[1].got.borrow().len(), 1);
    }
}

#[test]
fn a_daemon_that_restarts_does_not_undo_its_peers_deactivation() {
    let blocking = |number, instance| {
        end(number, Seal::None, Class::Ordered, |setup| {
            (setup.init, setup.instance) = (InitAction::Block, instance);
        })
    };
    let mut pair = Pair::new([blocking(0, 10), blocking(1, 11)]);
    for end in &mut pair.ends {
        end.link.command(pair.now, EndpointCommand::Offer);
    }
    pair.run(Span::from_ms(5), &mut |_| true);
    assert_eq!(pair.states(), [SessionState::Active; 2]);
    pair.ends[0].link.command(pair.now, EndpointCommand::Deactivate);
    pair.run(Span::from_ms(20), &mut |_| true);
    pair.ends[1] = blocking(1, 99);
    pair.ends[1].link.command(pair.now, EndpointCommand::Offer);
    pair.ends[1].sends.borrow_mut().push_back(frame(1, 1, 60));
    pair.run(Span::from_ms(1_500), &mut |_| true);
    assert_eq!(pair.states(), [SessionState::Dormant; 2]);
    // The peer refused: there is nothing to wait for.
    assert!(!pair.ends[1].link.wants_protection());
    assert_eq!(pair.ends[0].got.borrow().len(), 1);
    let declined = LinkEvent::Endpoint(guard::EndpointEvent::Refused(wire::link::SessionRefusal::Deactivated));
    assert_eq!(pair.ends[1].link.take_events(), [declined], "once, though it keeps offering");
    pair.ends[1].link.command(pair.now, EndpointCommand::Activate);
    pair.run(Span::from_ms(5), &mut |_| true);
    assert_eq!(pair.states(), [SessionState::Active; 2]);
}

#[test]
fn any_bytes_off_the_wire_are_survived_and_no_memory_is_lost() {
    let rounds: u64 =
        std::env::var("HITLESS_FUZZ_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(20_000);
    let mut random = Random::new(11, 2);
    for seal in seals() {
        let mut pair = Pair::alike(seal, Class::Ordered);
        pair.activate();
        let mut seen: Vec<Vec<u8>> = Vec::new();
        for round in 0..rounds {
            if round % 7 == 0 {
                pair.ends[(round % 2) as usize].sends.borrow_mut().push_back(frame(
                    (round % 2) as usize,
                    round as u32,
                    80,
                ));
            }
            pair.run(Span::from_us(40), &mut |frame| {
                if seen.len() < 2_000 {
                    seen.push(frame.clone());
                }
                true
            });
            let strange = strange_frame(&mut random, &seen);
            pair.ends[(round % 2) as usize].arrives.borrow_mut().push_back(strange);
        }
        // The ends protect again, even if strange frames ended the session.
        pair.run(Span::from_ms(2_000), &mut |_| true);
        assert_eq!(pair.states(), [SessionState::Active; 2]);
        for end in &mut pair.ends {
            end.link.command(pair.now, EndpointCommand::Deactivate);
        }
        pair.run(Span::from_ms(10_000), &mut |_| true);
        for end in &pair.ends {
            let pool = &end.link.context().memory.pool;
            assert_eq!(pool.free(), pool.slots(), "a frame was forgotten");
        }
    }
}

#[test]
fn frames_of_full_size_with_two_tags_pass_protected_and_those_of_the_wires_full_size_unprotected() {
    // A wire of MTU 1,600 under a stand-in of MTU 1,500; `frame` adds 18 bytes.
    let (wires, hosts) = (1_600 + 22, 1_500 + 22);
    let wide = |setup: &mut DatapathSetup| {
        setup.params.second_tag = 4;
        setup.longest = wires;
    };
    let mut pair = Pair::new([0, 1].map(|number| end(number, Seal::None, Class::Ordered, wide)));
    let bare = frame(0, 1, wires - 18);
    pair.ends[1].arrives.borrow_mut().push_back(bare.clone());
    pair.run(Span::from_ms(1), &mut |_| true);
    pair.activate();
    pair.run(Span::from_ms(5), &mut |_| true);
    assert_eq!(pair.states(), [SessionState::Active; 2]);
    let tagged = frame(0, 2, hosts - 18);
    pair.ends[0].sends.borrow_mut().push_back(tagged.clone());
    pair.run(Span::from_ms(5), &mut |_| true);
    let got: Vec<Vec<u8>> = pair.ends[1].got.borrow().iter().cloned().collect();
    let oversize = pair.ends[0].link.endpoint().counters().tx_oversize;
    assert!(got == [bare, tagged], "{} of 2, {oversize} oversize", got.len());
}

/// Nonsense, or a frame that was seen before with something changed.
fn strange_frame(random: &mut Random, seen: &[Vec<u8>]) -> Vec<u8> {
    if seen.is_empty() || random.unit() < 0.2 {
        let len = random.below(200) as usize;
        let mut frame: Vec<u8> = (0..len).map(|_| random.below(256) as u8).collect();
        if len > 14 && random.unit() < 0.8 {
            frame[..12].copy_from_slice(&[MACS[0].0, MACS[1].0].concat());
            frame[12..14].copy_from_slice(&[0x88, if random.unit() < 0.5 { 0xb5 } else { 0xb6 }]);
        }
        return frame;
    }
    let mut frame = seen[random.below(seen.len() as u64) as usize].clone();
    for _ in 0..random.below(4) {
        let at = random.below(frame.len() as u64) as usize;
        frame[at] = random.below(256) as u8;
    }
    frame.truncate(frame.len() - random.below(3) as usize);
    frame
}
