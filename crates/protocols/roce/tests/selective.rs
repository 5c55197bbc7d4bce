//! Connections with selective retransmission, tested in stories and over channels that drop, delay and duplicate.
//!
//! Packets are written as the wire sees them: `> 2` is data with PSN 2 from left to right, `> 2!` asks for an
//! acknowledgement; `< nack 1 [1+1]` expects PSN 1 and misses one packet from there on. The left end posts. A packet takes
//! 100 ns to send and 1 µs to arrive; the timeout is 100 µs.

use std::cell::RefCell;

use machine::{Machine, Pull};
use proptest::prelude::*;
use roce::irn::{Irn, Timeouts};
use roce::melo::{Melo, Nic, PoolConfig, PoolUsage};
use roce::selective::{
    Gaps, Hole, Holes, LossRecovery, RoceCompletion, RoceNote, RoceRetransmitCause, RoceTimer, SelectiveCommand,
    SelectiveConfig, SelectiveConnection, SelectivePacket, SelectivePacketKind,
};
use roce::{self, CongestionHeader, MessagePart, Psn, WIRE};
use testkit::{Duo, Fate, RecordedAction, Recorder, Side};
use units::{Rate, Span, Time};
use wire::ip::Ecn;

const SLOT: Span = Span::from_ns(100);
const FLIGHT: Span = Span::from_us(1);
const TIMEOUT: Span = Span::from_us(100);

fn config() -> SelectiveConfig {
    SelectiveConfig { mtu: 1_000, timeout: TIMEOUT, ..SelectiveConfig::default() }
}

fn nic(bits: u32) -> Nic<u8> {
    Nic::new(PoolConfig { bits, block: 8 }).unwrap()
}

/// A connection and what passes over it.
struct Story<R: LossRecovery> {
    duo: Duo<SelectiveConnection<R>>,
    wire: Vec<String>,
}

fn melo(config: SelectiveConfig) -> Story<Melo<u8>> {
    melo_with(config, &nic(1_024), &nic(1_024))
}

fn melo_with(config: SelectiveConfig, left: &Nic<u8>, right: &Nic<u8>) -> Story<Melo<u8>> {
    Story::new(SelectiveConnection::melo(config, left), SelectiveConnection::melo(config, right))
}

fn irn(config: SelectiveConfig) -> Story<Irn> {
    let end = || SelectiveConnection::irn(config, Timeouts { low: Span::from_us(20), few: 3 });
    Story::new(end(), end())
}

impl<R: LossRecovery> Story<R> {
    fn new(left: SelectiveConnection<R>, right: SelectiveConnection<R>) -> Self {
        Self { duo: Duo::new(left, right, SLOT, FLIGHT), wire: Vec::new() }
    }

    fn post(&mut self, bytes: u64) {
        self.duo.command(Side::Left, SelectiveCommand::Post { bytes });
    }

    /// Runs until quiet; the packets listed are lost, each once for each time it is listed.
    fn losing(&mut self, lost: &[&str]) {
        let mut lost = lost.to_vec();
        let wire = &mut self.wire;
        let deadline = self.duo.now + Span::from_ms(20);
        let quiet = self.duo.run(deadline, &mut |side, packet| {
            let text = format!("{} {}", if side == Side::Left { '>' } else { '<' }, describe(packet));
            let at = lost.iter().position(|other| *other == text.trim_end_matches('!'));
            wire.push(if at.is_some() { format!("{text} lost") } else { text });
            at.map_or(Fate::Arrives, |at| {
                lost.remove(at);
                Fate::Lost
            })
        });
        assert!(quiet, "never falls quiet: {:#?}", self.wire);
        assert!(lost.is_empty(), "never sent: {lost:?}");
    }

    /// Steps until the wire has carried this many packets; every packet arrives.
    fn after(&mut self, packets: usize) {
        let wire = &mut self.wire;
        while wire.len() < packets {
            self.duo.step(&mut |side, packet| {
                wire.push(format!("{} {}", if side == Side::Left { '>' } else { '<' }, describe(packet)));
                Fate::Arrives
            });
        }
    }

    fn wire(&mut self) -> Vec<String> {
        std::mem::take(&mut self.wire)
    }

    fn completed(&mut self) -> Vec<RoceCompletion> {
        self.duo.events(Side::Left)
    }

    fn received(&mut self) -> Vec<RoceCompletion> {
        self.duo.events(Side::Right)
    }

    fn notes(&mut self) -> [Vec<RoceNote>; 2] {
        Side::BOTH.map(|side| self.duo.notes(side))
    }

    fn took(&self) -> Span {
        self.duo.now.since(Time::ZERO)
    }
}

fn describe(packet: &SelectivePacket) -> String {
    let psn = packet.psn.number();
    match packet.kind {
        SelectivePacketKind::Data { ack_request, .. } => format!("{psn}{}", if ack_request { "!" } else { "" }),
        SelectivePacketKind::Ack => format!("ack {psn}"),
        SelectivePacketKind::Notification => "cnp".to_string(),
        SelectivePacketKind::Nack(Gaps::Holes(holes)) => format!("nack {psn} {holes:?}"),
        SelectivePacketKind::Nack(Gaps::Sacked(sacked)) => format!("nack {psn} sacks {}", sacked.number()),
    }
}

fn again(cause: RoceRetransmitCause) -> RoceNote {
    RoceNote::Retransmitted { cause, packets: 1 }
}

fn count(notes: &[RoceNote], note: RoceNote) -> usize {
    notes.iter().filter(|other| **other == note).count()
}

#[test]
fn without_loss_a_message_is_acknowledged_once_and_takes_no_bits() {
    let (left, right) = (nic(1_024), nic(1_024));
    let mut story = melo_with(config(), &left, &right);
    story.post(3_500);
    story.losing(&[]);
    assert_eq!(story.wire(), ["> 0", "> 1", "> 2", "> 3!", "< ack 3"]);
    assert_eq!(
        (story.completed(), story.received()),
        (vec![RoceCompletion::Completed(1)], vec![RoceCompletion::Received(1)])
    );
    assert_eq!(story.notes(), [vec![], vec![]]);
    let unused = PoolUsage { blocks: 128, used: 0, peak: 0, refusals: 0 };
    assert_eq!([left.send().usage(), right.receive().usage()], [unused; 2]);
}

#[test]
fn a_lost_packet_costs_one_nack_and_one_packet() {
    let mut story = melo(config());
    story.post(5_000);
    story.losing(&["> 1"]);
    assert_eq!(story.wire(), ["> 0", "> 1 lost", "> 2", "> 3", "> 4!", "< nack 1 [1+1]", "> 1!", "< ack 4"]);
    assert_eq!(
        (story.completed(), story.received()),
        (vec![RoceCompletion::Completed(1)], vec![RoceCompletion::Received(1)])
    );
    let [left, right] = story.notes();
    assert_eq!(left, [RoceNote::NakReceived, again(RoceRetransmitCause::Nak)]);
    assert_eq!(right, [RoceNote::OutOfOrder, RoceNote::NakSent, RoceNote::OutOfOrder, RoceNote::OutOfOrder]);
}

#[test]
fn a_message_behind_a_hole_is_announced_only_when_the_hole_is_filled() {
    let mut story = melo(config());
    (0..4).for_each(|_| story.post(1_000));
    story.losing(&["> 0", "> 2"]);
    assert_eq!(story.received(), [RoceCompletion::Received(2), RoceCompletion::Received(4)]);
    assert_eq!(story.completed().last(), Some(&RoceCompletion::Completed(4)));
}

#[test]
fn a_lost_nack_is_made_up_for_by_the_next() {
    let mut story = melo(config());
    story.post(8_000);
    story.losing(&["> 1", "> 4", "< nack 1 [1+1]"]);
    let wire = story.wire();
    assert!(wire.contains(&"< nack 1 [1+1, 4+1]".to_string()), "{wire:?}");
    assert!(story.took() < TIMEOUT, "no timeout: {wire:?}");
}

#[test]
fn a_hole_that_is_told_twice_is_filled_once() {
    let mut story = melo(config());
    story.post(8_000);
    story.losing(&["> 1", "> 4"]);
    let wire = story.wire();
    assert_eq!(wire.iter().filter(|text| *text == "> 1!").count(), 1, "{wire:?}");
    assert_eq!(count(&story.notes()[0], again(RoceRetransmitCause::Nak)), 2);
}

#[test]
fn a_packet_lost_twice_waits_for_the_timeout() {
    let mut story = melo(config());
    story.post(9_000);
    story.losing(&["> 1", "> 1", "> 6"]);
    let wire = story.wire();
    // 6 comes while 1 is still missing, and is dropped.
    let from = wire.iter().position(|text| text == "> 6!").unwrap();
    assert_eq!(wire[from + 1], "> 1");
    let [left, right] = story.notes();
    assert_eq!(count(&left, RoceNote::Timeout), 1);
    assert!(count(&right, RoceNote::Dropped) >= 1);
    assert_eq!(story.completed(), [RoceCompletion::Completed(1)]);
}

#[test]
fn going_back_after_a_timeout_steps_over_what_is_acknowledged_meanwhile() {
    let mut story = melo(SelectiveConfig { ack_every: 1, ..config() });
    story.post(200_000);
    story.losing(&["> 1", "> 1"]);
    let [left, _] = story.notes();
    let resent = count(&left, again(RoceRetransmitCause::Timeout));
    assert!((1..40).contains(&resent), "{resent} of 199");
    assert_eq!(story.completed(), [RoceCompletion::Completed(1)]);
}

#[test]
fn a_lost_tail_waits_for_the_timeout() {
    let mut story = melo(config());
    story.post(3_000);
    story.losing(&["> 2"]);
    let sent = ["> 0", "> 1", "> 2! lost", "> 0", "> 1", "> 2!"];
    assert_eq!(story.wire(), [&sent[..], &["< ack 1", "< ack 1", "< ack 2"]].concat());
    assert!(story.took() > TIMEOUT);
}

#[test]
fn a_lost_acknowledgement_is_given_again_when_the_timeout_asks() {
    let mut story = melo(config());
    story.post(1_000);
    story.losing(&["< ack 0"]);
    assert_eq!(story.wire(), ["> 0!", "< ack 0 lost", "> 0!", "< ack 0"]);
    assert_eq!(story.notes()[1], [RoceNote::Duplicate]);
}

#[test]
fn a_receiver_without_bits_asks_to_go_back_once() {
    // One bit is too few for a gap and what follows it.
    let right = Nic::new(PoolConfig { bits: 1, block: 1 }).unwrap();
    let mut story = melo_with(config(), &nic(1_024), &right);
    story.post(5_000);
    story.losing(&["> 1"]);
    assert_eq!(
        story.wire(),
        ["> 0", "> 1 lost", "> 2", "> 3", "> 4!", "< nack 1 []", "> 1", "> 2", "> 3", "> 4!", "< ack 4"]
    );
    assert_eq!(count(&story.notes()[1], RoceNote::Dropped), 3);
    assert_eq!(right.receive().usage().refusals, 3);
}

#[test]
fn what_a_full_pool_dropped_is_a_hole_for_the_next_packet_that_finds_room() {
    let right = nic(8);
    let mut story = melo_with(config(), &nic(1_024), &right);
    story.post(60_000);
    story.losing(&["> 1"]);
    let wire = story.wire();
    let holes: Vec<_> = wire.iter().filter(|text| text.starts_with("< nack")).collect();
    assert_eq!(holes[0], "< nack 1 [1+1]");
    assert!(holes.len() > 1 && story.took() < TIMEOUT, "{wire:?}");
    assert_eq!(story.completed(), [RoceCompletion::Completed(1)]);
}

#[test]
fn a_sender_without_bits_goes_back_to_the_first_hole_it_cannot_keep() {
    let left = nic(8);
    let mut story = melo_with(config(), &left, &nic(1_024));
    story.post(16_000);
    story.losing(&["> 1", "> 2", "> 9", "> 10", "< nack 1 [1+2]"]);
    let wire = story.wire();
    let nack = wire.iter().position(|text| text == "< nack 1 [1+2, 9+2]").unwrap();
    let from_there = wire[nack + 1..].iter().filter(|text| text.starts_with('>'));
    assert_eq!(from_there.take(4).collect::<Vec<_>>(), ["> 1!", "> 2!", "> 9", "> 10"]);
    assert_eq!(left.send().usage().refusals, 1);
    assert!(story.took() < TIMEOUT);
    assert_eq!(story.completed(), [RoceCompletion::Completed(1)]);
}

#[test]
fn a_connection_that_ends_gives_its_blocks_to_the_others() {
    let right = nic(1_024);
    let mut story = melo_with(config(), &nic(1_024), &right);
    story.duo.inject(Side::Right, data(40, MessagePart::Middle));
    assert_eq!(right.receive().usage().used, 6);
    drop(story);
    assert_eq!(right.receive().usage(), PoolUsage { blocks: 128, used: 0, peak: 6, refusals: 0 });
}

#[test]
fn a_connection_that_is_swapped_out_goes_on_where_it_was() {
    let right = nic(1_024);
    let mut story = melo_with(config(), &nic(1_024), &right);
    story.duo.inject(Side::Right, data(1, MessagePart::Last));
    story.after(1);
    assert_eq!(right.receive().usage().used, 1);
    story.duo.act(Side::Right, |end, _, _| end.swap_out());
    assert_eq!(right.receive().usage().used, 0);
    story.duo.inject(Side::Right, data(0, MessagePart::First));
    assert_eq!(story.received(), [RoceCompletion::Received(1)]);
}

#[test]
fn a_connection_that_finds_no_room_when_it_comes_back_asks_to_go_back() {
    let right = nic(8);
    let mut story = melo_with(config(), &nic(1_024), &right);
    let mut other = SelectiveConnection::melo(config(), &right);
    story.post(4_000);
    story.wire.clear();
    // 0 is lost, 1 arrives.
    story.duo.inject(Side::Right, data(1, MessagePart::Middle));
    story.duo.act(Side::Right, |end, _, _| end.swap_out());
    other.on_frame(Time::ZERO, WIRE, data(7, MessagePart::Middle), &mut Recorder::default());
    assert_eq!(right.receive().usage().used, 1);
    story.losing(&[]);
    let wire = story.wire();
    assert!(wire.contains(&"< nack 0 []".to_string()), "{wire:?}");
    assert_eq!(
        (story.completed(), story.received()),
        (vec![RoceCompletion::Completed(1)], vec![RoceCompletion::Received(1)])
    );
}

#[test]
fn a_receiver_that_forgot_everything_says_so_even_if_it_has_room_again() {
    let right = nic(8);
    let mut end = SelectiveConnection::melo(config(), &right);
    let mut other = SelectiveConnection::melo(config(), &right);
    let mut out = Recorder::default();
    let mut arrives = |end: &mut SelectiveConnection<_>, psn| {
        end.on_frame(Time::ZERO, WIRE, data(psn, MessagePart::Middle), &mut out)
    };
    arrives(&mut end, 1);
    arrives(&mut end, 2);
    end.swap_out();
    arrives(&mut other, 7);
    arrives(&mut end, 3);
    assert!(end.recovery().track().is_empty(), "1 and 2 are forgotten");
    drop(other);
    // A sender that knows all holes before 5 already would learn nothing from [0+5], and not send 1 and 2 again.
    arrives(&mut end, 5);
    assert_eq!(end.recovery().track().holes().iter().count(), 1);
    end.pull(Time::ZERO, WIRE, &mut out);
    let sent = out
        .acts()
        .into_iter()
        .find_map(|act| if let RecordedAction::Transmit(packet) = act { Some(packet) } else { None });
    assert_eq!(describe(&sent.expect("a NACK is due")), "nack 0 []");
}

#[test]
fn a_connection_that_fails_gives_its_blocks_back() {
    let nic = nic(1_024);
    let mut end = SelectiveConnection::melo(SelectiveConfig { retry_count: 0, ..config() }, &nic);
    let mut out = Recorder::default();
    end.on_command(Time::ZERO, SelectiveCommand::Post { bytes: 10_000 }, &mut out);
    (0..10).for_each(|_| _ = end.pull(Time::ZERO, WIRE, &mut out));
    // The wire takes nothing from here on, so that what the NACK asks for is not sent again.
    end.on_frame(Time::ZERO, WIRE, data(40, MessagePart::Middle), &mut out);
    let mut holes = Holes::none();
    holes.push(Hole { start: 4, len: 1 });
    end.on_frame(Time::ZERO, WIRE, packet(SelectivePacketKind::Nack(Gaps::Holes(holes)), 0), &mut out);
    let used = || [nic.receive().usage().used, nic.send().usage().used];
    assert_eq!(used(), [6, 1]);
    end.on_timer(Time::ZERO + TIMEOUT, RoceTimer::Retransmission, &mut out);
    assert!(end.has_failed());
    assert_eq!(used(), [0, 0]);
}

#[test]
fn a_peer_that_stays_silent_fails_the_connection() {
    let mut story = melo(SelectiveConfig { retry_count: 2, ..config() });
    story.post(1_000);
    story.duo.run(Time::ZERO + Span::from_ms(1), &mut |_, _| Fate::Lost);
    assert_eq!(story.completed(), [RoceCompletion::Failed]);
    assert!(story.duo.machine(Side::Left).has_failed());
    story.post(1_000);
    assert_eq!(story.completed(), [RoceCompletion::Failed]);
}

#[test]
fn data_is_paced_and_acknowledgements_are_not() {
    let nic = nic(1_024);
    let mut end = SelectiveConnection::melo(SelectiveConfig { rate: Some(Rate::gbps(10)), ..config() }, &nic);
    let mut out = Recorder::default();
    end.on_command(Time::ZERO, SelectiveCommand::Post { bytes: 2_000 }, &mut out);
    assert_eq!(end.pull(Time::ZERO, WIRE, &mut out), Pull::Sent);
    // 1,078 bytes and 20 of gap and preamble.
    assert_eq!(end.pull(Time::ZERO, WIRE, &mut out), Pull::NotBefore(Time::ZERO + Span::from_ps(878_400)));
    end.on_frame(Time::ZERO, WIRE, data(0, MessagePart::Only), &mut out);
    assert_eq!(end.pull(Time::ZERO, WIRE, &mut out), Pull::Sent);
}

#[test]
fn a_queue_pairs_settings_serve_here_too() {
    let config = SelectiveConfig::from(roce::RoceConfig { mtu: 4_096, ..roce::RoceConfig::default() });
    assert_eq!((config.mtu, config.max_outstanding), (4_096, 1 << 15));
}

#[test]
fn irn_sends_what_was_lost_once_and_accepts_it_in_any_order() {
    let mut story = irn(config());
    story.post(8_000);
    story.losing(&["> 1", "> 4"]);
    let wire = story.wire();
    assert_eq!(wire.iter().filter(|text| text.starts_with("< nack")).count(), 5, "one for each out of order: {wire:?}");
    assert_eq!(count(&story.notes()[0], again(RoceRetransmitCause::Nak)), 2);
    assert!(story.took() < Span::from_us(20));
}

#[test]
fn irn_accepts_a_fill_in_the_middle_where_melo_drops_it() {
    let mut story = irn(config());
    story.post(9_000);
    story.losing(&["> 1", "> 1", "> 6"]);
    let [left, right] = story.notes();
    assert_eq!(count(&right, RoceNote::Dropped), 0);
    // By the timeout only 1 is missing, and nothing else is sent.
    assert_eq!((count(&left, RoceNote::Timeout), count(&left, again(RoceRetransmitCause::Timeout))), (1, 1));
    assert_eq!(story.completed(), [RoceCompletion::Completed(1)]);
}

#[test]
fn irn_waits_less_when_hardly_anything_is_outstanding() {
    let [short, long] = [2_000, 5_000].map(|bytes| {
        let mut story = irn(config());
        story.post(bytes);
        let last = format!("> {}", bytes / 1_000 - 1);
        story.losing(&[&last]);
        story.took()
    });
    assert!(short < Span::from_us(30) && long > TIMEOUT, "{short:?}, {long:?}");
}

#[test]
fn irn_waits_less_again_once_most_is_acknowledged() {
    let mut story = irn(SelectiveConfig { ack_every: 1, ..config() });
    story.post(9_000);
    story.losing(&["> 8"]);
    assert!(story.took() < Span::from_us(30), "{:?}", story.took());
}

/// Sends a long message while every `lost_every`-th packet of data is lost, whether new or sent again, over a wire of 40
/// Gbit/s with a round trip of 16 µs. Returns the time that it took, and the sender's notes.
fn long_transfer<R: LossRecovery>(end: impl Fn() -> SelectiveConnection<R>, lost_every: u64) -> (Span, Vec<RoceNote>) {
    let mut duo = Duo::new(end(), end(), Span::from_ns(200), Span::from_us(8));
    duo.command(Side::Left, SelectiveCommand::Post { bytes: 20_000_000 });
    let mut sent = 0;
    let quiet = duo.run(Time::ZERO + Span::from_ms(50), &mut |_, packet| {
        sent += u64::from(packet.is_data());
        if packet.is_data() && sent.is_multiple_of(lost_every) { Fate::Lost } else { Fate::Arrives }
    });
    assert!(quiet && duo.events(Side::Left) == [RoceCompletion::Completed(1)]);
    (duo.now.since(Time::ZERO), duo.notes(Side::Left))
}

#[test]
fn at_one_percent_both_ways_send_little_more_than_what_was_lost() {
    let config = SelectiveConfig { max_outstanding: 160, timeout: Span::from_us(25), ack_every: 4, ..config() };
    let nic = nic(1_024);
    let whole = Span::from_ns(200) * 20_000;
    let (melo, notes) = long_transfer(|| SelectiveConnection::melo(config, &nic), 101);
    let resent = [RoceRetransmitCause::Nak, RoceRetransmitCause::Timeout].map(|cause| count(&notes, again(cause)));
    assert!(melo < whole * 105 / 100, "{melo} instead of {whole}");
    assert!((198..=230).contains(&(resent[0] + resent[1])), "{resent:?}");
    assert!(nic.receive().usage().peak < 64 && nic.receive().usage().refusals == 0);

    let (irn, notes) = long_transfer(|| SelectiveConnection::irn(config, Timeouts::default()), 101);
    assert!(irn < whole * 105 / 100, "{irn} instead of {whole}");
    let resent = count(&notes, again(RoceRetransmitCause::Nak));
    assert_eq!(resent, 199, "as many as were lost");
}

fn data(psn: u32, part: MessagePart) -> SelectivePacket {
    packet(SelectivePacketKind::Data { part, payload: 1_000, ack_request: true }, psn)
}

fn packet(kind: SelectivePacketKind, psn: u32) -> SelectivePacket {
    SelectivePacket { kind, psn: Psn::new(psn), ecn: Ecn::NotCapable, congestion: CongestionHeader::default() }
}

/// Action of the channel on one packet, or of somebody on an end.
#[derive(Clone, Copy, Debug)]
enum Whim {
    Passes,
    Drops,
    Delays(u8),
    /// A copy arrives at once, before anything in flight.
    Duplicates,
    /// Passes, and the sending end is swapped out behind it.
    SwapsOut,
}

fn whim() -> impl Strategy<Value = Whim> {
    prop_oneof![
        6 => Just(Whim::Passes),
        2 => Just(Whim::Drops),
        1 => (1..60u8).prop_map(Whim::Delays),
        1 => Just(Whim::Duplicates),
        1 => Just(Whim::SwapsOut),
    ]
}

fn any_config() -> impl Strategy<Value = SelectiveConfig> {
    let window = prop_oneof![Just(1), Just(2), 3..60u32];
    let rate = prop_oneof![Just(None), Just(Some(Rate::gbps(20)))];
    (window, 1..10u32, rate, prop_oneof![(1u32 << 24) - 60..1 << 24, 0xFFC0..0x1_0000u32]).prop_map(
        |(max_outstanding, ack_every, rate, first)| SelectiveConfig {
            mtu: 1_000,
            max_outstanding,
            ack_every,
            rate,
            timeout: Span::from_us(50),
            retry_count: u32::MAX,
            first_psn: Psn::new(first),
            ..SelectiveConfig::default()
        },
    )
}

/// From one that is always empty to one that is always enough.
fn pool() -> impl Strategy<Value = PoolConfig> {
    prop_oneof![
        Just(PoolConfig { bits: 1, block: 1 }),
        Just(PoolConfig { bits: 8, block: 8 }),
        Just(PoolConfig { bits: 8, block: 1 }),
        Just(PoolConfig { bits: 32, block: 4 }),
        Just(PoolConfig::default()),
    ]
}

fn posts() -> impl Strategy<Value = [Vec<u64>; 2]> {
    let some = || proptest::collection::vec(prop_oneof![Just(0), 1..30_000u64], 0..6);
    [some(), some()]
}

/// Lets both ends post and the channel do what it likes; everything completes once and in order.
fn transfer<R: LossRecovery>(
    mut duo: Duo<SelectiveConnection<R>>,
    posts: &[Vec<u64>; 2],
    whims: Vec<Whim>,
    swap_out: fn(&mut SelectiveConnection<R>),
) {
    for side in Side::BOTH {
        posts[side as usize].iter().for_each(|&bytes| duo.command(side, SelectiveCommand::Post { bytes }));
    }
    let (mut whims, copies, swapped) = (whims.into_iter(), RefCell::new(Vec::new()), RefCell::new(Vec::new()));
    let mut channel = |side: Side, packet: &SelectivePacket| match whims.next().unwrap_or(Whim::Passes) {
        Whim::Passes => Fate::Arrives,
        Whim::Drops => Fate::Lost,
        Whim::Delays(slots) => Fate::Late(SLOT * u64::from(slots)),
        Whim::Duplicates => {
            copies.borrow_mut().push((side.other(), *packet));
            Fate::Arrives
        }
        Whim::SwapsOut => {
            swapped.borrow_mut().push(side);
            Fate::Arrives
        }
    };
    let (mut completed, mut received) = ([0u64; 2], [0u64; 2]);
    while duo.step(&mut channel) {
        copies.take().into_iter().for_each(|(side, packet)| duo.inject(side, packet));
        swapped.take().into_iter().for_each(|side| duo.act(side, |end, _, _| swap_out(end)));
        for side in Side::BOTH {
            for event in duo.events(side) {
                let (before, now) = match event {
                    RoceCompletion::Completed(now) => (&mut completed[side as usize], now),
                    RoceCompletion::Received(now) => (&mut received[side as usize], now),
                    RoceCompletion::Failed => panic!("failed with endless retries"),
                };
                assert!(now > *before, "counts up");
                *before = now;
            }
        }
        for side in Side::BOTH {
            assert!(received[side.other() as usize] >= completed[side as usize], "complete before it arrived");
        }
        assert!(duo.now < Time::ZERO + Span::from_ms(100), "stalled: {completed:?} {received:?}");
    }
    let posted = [posts[0].len() as u64, posts[1].len() as u64];
    assert_eq!((completed, received), (posted, [posted[1], posted[0]]), "everything, once");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn with_any_pool_everything_completes_once_and_every_block_comes_back(
        config in any_config(),
        pool in pool(),
        posts in posts(),
        whims in proptest::collection::vec(whim(), 0..200),
    ) {
        // Both ends share a NIC, so that they take bits from each other.
        let nic = Nic::<u8>::new(pool).unwrap();
        let duo = Duo::new(SelectiveConnection::melo(config, &nic), SelectiveConnection::melo(config, &nic), SLOT, FLIGHT);
        transfer(duo, &posts, whims, SelectiveConnection::swap_out);
        prop_assert_eq!((nic.receive().usage().used, nic.send().usage().used), (0, 0));
    }

    #[test]
    fn irn_completes_everything_once(
        config in any_config(),
        posts in posts(),
        whims in proptest::collection::vec(whim(), 0..200),
    ) {
        let end = || SelectiveConnection::irn(config, Timeouts { low: Span::from_us(10), few: 3 });
        transfer(Duo::new(end(), end(), SLOT, FLIGHT), &posts, whims, |_| ());
    }

    #[test]
    fn any_packet_is_survived(
        config in any_config(),
        pool in pool(),
        posts in posts(),
        garbage in proptest::collection::vec((garbage(), 0..8usize), 0..200),
    ) {
        let nic = Nic::<u8>::new(pool).unwrap();
        let melo = Duo::new(SelectiveConnection::melo(config, &nic), SelectiveConnection::melo(config, &nic), SLOT, FLIGHT);
        survive(melo, &posts[0], &garbage);
        prop_assert_eq!((nic.receive().usage().used, nic.send().usage().used), (0, 0), "with its connections gone");
        let end = || SelectiveConnection::irn(config, Timeouts::default());
        survive(Duo::new(end(), end(), SLOT, FLIGHT), &posts[0], &garbage);
    }
}

fn survive<R: LossRecovery>(mut duo: Duo<SelectiveConnection<R>>, posts: &[u64], garbage: &[(SelectivePacket, usize)]) {
    posts.iter().for_each(|&bytes| duo.command(Side::Left, SelectiveCommand::Post { bytes }));
    for (packet, steps) in garbage {
        duo.inject(Side::Left, *packet);
        for _ in 0..*steps {
            duo.step(&mut |_, _| Fate::Arrives);
        }
    }
    duo.run(duo.now + Span::from_us(500), &mut |_, _| Fate::Arrives);
}

/// Packets of any kind whose numbers are mostly close to what is expected.
fn garbage() -> impl Strategy<Value = SelectivePacket> {
    let near = || prop_oneof![8 => (1u32 << 24) - 70..(1 << 24) + 70, 1 => any::<u32>()];
    let part = prop_oneof![
        Just(MessagePart::First),
        Just(MessagePart::Middle),
        Just(MessagePart::Last),
        Just(MessagePart::Only)
    ];
    let hole = (near(), prop_oneof![0..20u16, any::<u16>()]).prop_map(|(psn, len)| Hole { start: psn as u16, len });
    let holes = proptest::collection::vec(hole, 0..4).prop_map(|list| {
        let mut holes = Holes::none();
        list.into_iter().for_each(|hole| holes.push(hole));
        SelectivePacketKind::Nack(Gaps::Holes(holes))
    });
    let kind = prop_oneof![
        (part, any::<bool>()).prop_map(|(part, ack_request)| SelectivePacketKind::Data {
            part,
            payload: 1_000,
            ack_request
        }),
        Just(SelectivePacketKind::Ack),
        holes,
        near().prop_map(|psn| SelectivePacketKind::Nack(Gaps::Sacked(Psn::new(psn)))),
    ];
    (kind, near()).prop_map(|(kind, psn)| packet(kind, psn))
}
