//! A reliable connection, tested in stories: what is posted, what is lost, and every packet that follows.
//!
//! Packets are written as the wire sees them: `> write last 2` goes from left to right with PSN 2. The left end posts
//! unless a story says otherwise. A packet takes 100 ns to send and 1 µs to arrive; the timeout is 100 µs.

use machine::{Machine, Pull};
use roce::{
    AckSyndrome, MessagePart, Psn, Qp, RoceCommand, RoceCompletion, RoceConfig, RoceNote, RoceOperation, RocePacket,
    RoceRetransmitCause, Verb, WIRE,
};
use testkit::{Duo, Fate, RecordedAction, Recorder, Side};
use units::{Rate, Span, Time};

const SLOT: Span = Span::from_ns(100);
const FLIGHT: Span = Span::from_us(1);
const TIMEOUT: Span = Span::from_us(100);

fn config() -> RoceConfig {
    RoceConfig { mtu: 1_000, timeout: TIMEOUT, ..RoceConfig::default() }
}

/// A connection and what passes over it.
struct Story {
    duo: Duo<Qp>,
    wire: Vec<String>,
}

impl Story {
    fn new(config: RoceConfig) -> Self {
        Self { duo: Duo::new(Qp::new(config), Qp::new(config), SLOT, FLIGHT), wire: Vec::new() }
    }

    fn post(&mut self, verb: Verb, bytes: u64) {
        self.duo.command(Side::Left, RoceCommand::Post { verb, bytes });
    }

    /// Runs until quiet; the packets listed are lost, each once for each time it is listed.
    fn losing(&mut self, lost: &[&str]) {
        let mut lost = lost.to_vec();
        self.run(&mut |text| match lost.iter().position(|other| *other == text) {
            Some(at) => {
                lost.remove(at);
                Fate::Lost
            }
            None => Fate::Arrives,
        });
        assert!(lost.is_empty(), "never sent: {lost:?}");
    }

    fn run(&mut self, fate: &mut impl FnMut(&str) -> Fate) {
        let wire = &mut self.wire;
        let deadline = self.duo.now + Span::from_ms(20);
        let quiet = self.duo.run(deadline, &mut |side, packet| {
            let text = format!("{} {}", if side == Side::Left { '>' } else { '<' }, describe(packet));
            let fate = fate(&text);
            wire.push(if fate == Fate::Lost { format!("{text} lost") } else { text });
            fate
        });
        assert!(quiet, "never falls quiet: {:#?}", self.wire);
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

    fn notes(&mut self) -> Vec<RoceNote> {
        self.duo.notes(Side::Left)
    }
}

fn describe(packet: &RocePacket) -> String {
    let part = |part: MessagePart| format!("{part:?}").to_lowercase();
    let what = match packet.opcode {
        RoceOperation::Send(of) => format!("send {}", part(of)),
        RoceOperation::Write(of) => format!("write {}", part(of)),
        RoceOperation::ReadRequest => "read".to_string(),
        RoceOperation::ReadResponse(of) => format!("data {}", part(of)),
        RoceOperation::Acknowledge(AckSyndrome::Ack) => "ack".to_string(),
        RoceOperation::Acknowledge(AckSyndrome::SequenceError) => "nak".to_string(),
        RoceOperation::Notification => "cnp".to_string(),
    };
    format!("{what} {}", packet.psn.number())
}

fn went_back(cause: RoceRetransmitCause, packets: u64) -> RoceNote {
    RoceNote::Retransmitted { cause, packets }
}

#[test]
fn a_message_is_cut_into_packets_and_acknowledged_once() {
    let mut story = Story::new(config());
    story.post(Verb::Write, 3_500);
    story.losing(&[]);
    assert_eq!(story.wire(), ["> write first 0", "> write middle 1", "> write middle 2", "> write last 3", "< ack 3"]);
    assert_eq!(story.completed(), [RoceCompletion::Completed(1)]);
    assert_eq!(story.received(), [RoceCompletion::Received(1)]);
    assert_eq!(story.notes(), []);
}

#[test]
fn an_empty_message_takes_a_psn_too() {
    let mut story = Story::new(config());
    story.post(Verb::Send, 0);
    story.post(Verb::Write, 1_000);
    story.losing(&[]);
    assert_eq!(story.wire(), ["> send only 0", "> write only 1", "< ack 0", "< ack 1"]);
}

#[test]
fn a_long_message_is_acknowledged_on_the_way() {
    let mut story = Story::new(RoceConfig { ack_every: 4, ..config() });
    story.post(Verb::Write, 10_000);
    story.losing(&[]);
    let acks: Vec<_> = story.wire().into_iter().filter(|text| text.starts_with('<')).collect();
    assert_eq!(acks, ["< ack 3", "< ack 7", "< ack 9"]);
}

#[test]
fn a_lost_packet_costs_one_nak_and_everything_behind_it() {
    let mut story = Story::new(config());
    story.post(Verb::Write, 5_000);
    story.losing(&["> write middle 1"]);
    assert_eq!(
        story.wire(),
        [
            "> write first 0",
            "> write middle 1 lost",
            "> write middle 2",
            "> write middle 3",
            "> write last 4",
            "< nak 1",
            "> write middle 1",
            "> write middle 2",
            "> write middle 3",
            "> write last 4",
            "< ack 4",
        ]
    );
    assert_eq!(story.notes(), [RoceNote::NakReceived, went_back(RoceRetransmitCause::Nak, 4)]);
    assert_eq!(story.received(), [RoceCompletion::Received(1)]);
    assert_eq!(
        story.duo.notes(Side::Right),
        [RoceNote::Dropped, RoceNote::NakSent, RoceNote::Dropped, RoceNote::Dropped],
        "one NAK for three packets out of order"
    );
}

#[test]
fn a_lost_nak_leaves_only_the_timeout() {
    let mut story = Story::new(config());
    story.post(Verb::Write, 3_000);
    story.losing(&["> write first 0", "< nak 0"]);
    assert_eq!(story.notes(), [RoceNote::Timeout, went_back(RoceRetransmitCause::Timeout, 3)]);
    assert_eq!(story.completed(), [RoceCompletion::Completed(1)]);
    assert!(story.duo.now > Time::ZERO + TIMEOUT);
}

#[test]
fn a_packet_lost_twice_leaves_only_the_timeout() {
    let mut story = Story::new(config());
    story.post(Verb::Write, 3_000);
    story.losing(&["> write middle 1", "> write middle 1"]);
    assert_eq!(
        story.notes(),
        [
            RoceNote::NakReceived,
            went_back(RoceRetransmitCause::Nak, 2),
            RoceNote::Timeout,
            went_back(RoceRetransmitCause::Timeout, 2)
        ]
    );
    assert_eq!(story.wire().iter().filter(|text| *text == "< nak 1").count(), 1);
}

#[test]
fn a_lost_tail_leaves_only_the_timeout() {
    let mut story = Story::new(config());
    story.post(Verb::Write, 2_000);
    story.losing(&["> write last 1"]);
    assert_eq!(
        story.wire(),
        ["> write first 0", "> write last 1 lost", "> write first 0", "> write last 1", "< ack 0", "< ack 1"],
        "the first packet was not acknowledged by itself, so it goes again"
    );
    assert_eq!(story.notes(), [RoceNote::Timeout, went_back(RoceRetransmitCause::Timeout, 2)]);
}

#[test]
fn a_lost_tail_is_found_by_the_next_message_of_a_shared_connection() {
    let mut story = Story::new(config());
    story.post(Verb::Write, 500);
    story.post(Verb::Send, 500);
    story.losing(&["> write only 0"]);
    assert_eq!(
        story.wire(),
        ["> write only 0 lost", "> send only 1", "< nak 0", "> write only 0", "> send only 1", "< ack 0", "< ack 1"]
    );
    assert_eq!(story.completed(), [RoceCompletion::Completed(1), RoceCompletion::Completed(2)]);
}

#[test]
fn a_lost_acknowledgement_is_repeated_for_the_duplicate_tail() {
    let mut story = Story::new(config());
    story.post(Verb::Write, 500);
    story.losing(&["< ack 0"]);
    assert_eq!(story.wire(), ["> write only 0", "< ack 0 lost", "> write only 0", "< ack 0"]);
    assert_eq!(story.received(), [RoceCompletion::Received(1)], "placed once");
    assert_eq!(story.duo.notes(Side::Right), [RoceNote::Duplicate]);
}

#[test]
fn an_acknowledgement_covers_the_messages_before_it() {
    let mut story = Story::new(config());
    (0..3).for_each(|_| story.post(Verb::Write, 500));
    story.losing(&["< ack 0", "< ack 1"]);
    assert_eq!(story.completed(), [RoceCompletion::Completed(3)]);
    assert_eq!(story.notes(), []);
}

#[test]
fn reordering_costs_a_nak_and_everything_in_flight() {
    let mut story = Story::new(config());
    story.post(Verb::Write, 5_000);
    let mut late = Some(Fate::Late(SLOT * 5));
    story.run(&mut |text| late.take_if(|_| text == "> write middle 1").unwrap_or(Fate::Arrives));
    assert_eq!(story.notes(), [RoceNote::NakReceived, went_back(RoceRetransmitCause::Nak, 4)]);
    assert_eq!(story.received(), [RoceCompletion::Received(1)]);
    let sent = story.wire().iter().filter(|text| text.starts_with('>')).count();
    assert_eq!(sent, 9, "five packets and four again, although none was lost");
}

#[test]
fn every_copy_of_a_nak_is_obeyed_unless_told_otherwise() {
    for (obey_nak_copies, times) in [(true, 3), (false, 1)] {
        let mut story = Story::new(RoceConfig { obey_nak_copies, ..config() });
        story.post(Verb::Write, 3_000);
        let mut nak = None;
        story.duo.run(Time::ZERO + Span::from_us(2), &mut |_, packet| {
            nak = nak.or(packet.is_nak().then_some(*packet));
            if packet.psn == Psn::new(0) && nak.is_none() { Fate::Lost } else { Fate::Arrives }
        });
        (0..2).for_each(|_| story.duo.inject(Side::Left, nak.expect("a NAK was sent")));
        story.losing(&[]);
        let backs = story.notes().iter().filter(|note| matches!(note, RoceNote::Retransmitted { .. })).count();
        assert_eq!(backs, times);
        assert_eq!(story.completed(), [RoceCompletion::Completed(1)]);
    }
}

#[test]
fn a_stale_nak_is_not_obeyed() {
    let mut story = Story::new(config());
    story.post(Verb::Write, 3_000);
    story.losing(&[]);
    story.wire();
    story.post(Verb::Write, 3_000);
    story.duo.run(story.duo.now + SLOT * 5, &mut |_, _| Fate::Arrives);
    assert_eq!(story.duo.machine(Side::Left).outstanding(), 3);
    let nak = |psn| RocePacket {
        opcode: RoceOperation::Acknowledge(AckSyndrome::SequenceError),
        psn: Psn::new(psn),
        ..packet_of(Verb::Write)
    };
    story.duo.inject(Side::Left, nak(2));
    assert_eq!(story.notes(), [RoceNote::Duplicate]);
    story.losing(&[]);
    assert_eq!(story.wire(), ["< ack 5"], "nothing is sent again");
    // One place further on it would have been.
    story.post(Verb::Write, 3_000);
    story.duo.run(story.duo.now + SLOT * 5, &mut |_, _| Fate::Arrives);
    story.duo.inject(Side::Left, nak(6));
    assert_eq!(story.notes(), [RoceNote::NakReceived, went_back(RoceRetransmitCause::Nak, 3)]);
}

/// The first packet of a message.
fn packet_of(verb: Verb) -> RocePacket {
    let (mut qp, mut out) = (Qp::new(config()), Recorder::default());
    qp.on_command(Time::ZERO, RoceCommand::Post { verb, bytes: 2_000 }, &mut out);
    qp.pull(Time::ZERO, WIRE, &mut out);
    out.acts()
        .into_iter()
        .find_map(|act| if let RecordedAction::Transmit(packet) = act { Some(packet) } else { None })
        .unwrap()
}

#[test]
fn a_read_takes_the_psns_of_its_responses() {
    let mut story = Story::new(config());
    story.post(Verb::Read, 2_500);
    story.post(Verb::Write, 100);
    story.losing(&[]);
    assert_eq!(
        story.wire(),
        ["> read 0", "> write only 3", "< data first 0", "< data middle 1", "< data last 2", "< ack 3"],
        "the acknowledgement does not overtake the data"
    );
    assert_eq!(story.completed(), [RoceCompletion::Completed(1), RoceCompletion::Completed(2)]);
    assert_eq!(story.received(), [RoceCompletion::Received(1)], "a READ places nothing at the responder");
}

#[test]
fn a_lost_response_is_asked_for_again_from_where_it_is_missing() {
    let mut story = Story::new(config());
    story.post(Verb::Read, 4_000);
    story.losing(&["< data middle 1"]);
    assert_eq!(
        story.wire(),
        [
            "> read 0",
            "< data first 0",
            "< data middle 1 lost",
            "< data middle 2",
            "< data last 3",
            "> read 1",
            "< data first 1",
            "< data middle 2",
            "< data last 3",
        ]
    );
    assert_eq!(
        story.notes(),
        [RoceNote::Dropped, went_back(RoceRetransmitCause::ImpliedNak, 3), RoceNote::Dropped],
        "the second response behind the gap does not ask again"
    );
    assert_eq!(story.completed(), [RoceCompletion::Completed(1)]);
}

#[test]
fn a_lost_tail_response_leaves_only_the_timeout() {
    let mut story = Story::new(config());
    story.post(Verb::Read, 2_000);
    story.losing(&["< data last 1"]);
    assert_eq!(
        story.wire(),
        ["> read 0", "< data first 0", "< data last 1 lost", "> read 1", "< data only 1"],
        "what has arrived is not read again"
    );
    assert_eq!(story.notes(), [RoceNote::Timeout, went_back(RoceRetransmitCause::Timeout, 1)]);
}

#[test]
fn a_lost_read_request_is_found_by_what_follows_it() {
    let mut story = Story::new(config());
    story.post(Verb::Read, 2_000);
    story.post(Verb::Write, 100);
    story.losing(&["> read 0"]);
    assert_eq!(
        story.wire(),
        [
            "> read 0 lost",
            "> write only 2",
            "< nak 0",
            "> read 0",
            "> write only 2",
            "< data first 0",
            "< data last 1",
            "< ack 2"
        ]
    );
}

#[test]
fn a_lost_read_request_alone_leaves_only_the_timeout() {
    let mut story = Story::new(config());
    story.post(Verb::Read, 2_000);
    story.losing(&["> read 0"]);
    assert_eq!(story.wire(), ["> read 0 lost", "> read 0", "< data first 0", "< data last 1"]);
    assert_eq!(story.notes(), [RoceNote::Timeout, went_back(RoceRetransmitCause::Timeout, 2)]);
}

#[test]
fn an_acknowledgement_from_behind_a_read_implies_that_its_data_was_lost() {
    let mut story = Story::new(config());
    story.post(Verb::Read, 1_000);
    story.post(Verb::Write, 100);
    story.losing(&["< data only 0"]);
    assert_eq!(
        story.wire(),
        [
            "> read 0",
            "> write only 1",
            "< data only 0 lost",
            "< ack 1",
            "> read 0",
            "> write only 1",
            "< data only 0",
            "< ack 1",
        ]
    );
    assert_eq!(story.notes()[0], went_back(RoceRetransmitCause::ImpliedNak, 2));
    assert_eq!(story.received(), [RoceCompletion::Received(1)]);
}

#[test]
fn reads_beyond_the_limit_wait_for_one_to_complete() {
    let mut story = Story::new(RoceConfig { max_reads: 2, ..config() });
    (0..3).for_each(|_| story.post(Verb::Read, 1_000));
    story.losing(&[]);
    assert_eq!(story.wire()[..3], ["> read 0", "> read 1", "< data only 0"]);
    assert_eq!(story.completed(), (1..=3).map(RoceCompletion::Completed).collect::<Vec<_>>());
}

#[test]
fn a_limit_of_no_reads_is_taken_for_one() {
    let mut story = Story::new(RoceConfig { max_reads: 0, ..config() });
    story.post(Verb::Read, 1_000);
    story.losing(&[]);
    assert_eq!(story.completed(), [RoceCompletion::Completed(1)]);
}

#[test]
fn numbers_wrap_inside_a_message() {
    let mut story = Story::new(RoceConfig { first_psn: Psn::new((1 << 24) - 2), ..config() });
    story.post(Verb::Write, 4_000);
    story.losing(&["> write middle 0"]);
    assert_eq!(
        story.wire()[..6],
        [
            "> write first 16777214",
            "> write middle 16777215",
            "> write middle 0 lost",
            "> write last 1",
            "< nak 0",
            "> write middle 0",
        ]
    );
    assert_eq!(story.completed(), [RoceCompletion::Completed(1)]);
}

#[test]
fn both_ends_may_post() {
    let mut story = Story::new(config());
    story.post(Verb::Write, 5_000);
    story.duo.command(Side::Right, RoceCommand::Post { verb: Verb::Read, bytes: 5_000 });
    story.losing(&["> write middle 2", "> data middle 1"]);
    assert_eq!(story.completed(), [RoceCompletion::Completed(1)]);
    assert_eq!(story.received(), [RoceCompletion::Received(1), RoceCompletion::Completed(1)]);
}

#[test]
fn the_window_bounds_what_is_outstanding() {
    let mut story = Story::new(RoceConfig { max_outstanding: 4, ..config() });
    story.post(Verb::Write, 100_000);
    let mut most = 0;
    while story.duo.step(&mut |_, _| Fate::Arrives) {
        most = most.max(story.duo.machine(Side::Left).outstanding());
    }
    assert_eq!(most, 4);
    assert_eq!(story.completed(), [RoceCompletion::Completed(1)]);
}

#[test]
fn a_peer_that_is_gone_fails_the_connection_after_all_retries() {
    let mut story = Story::new(config());
    (0..2).for_each(|_| story.post(Verb::Write, 500));
    story.run(&mut |_| Fate::Lost);
    assert_eq!(story.completed(), [RoceCompletion::Failed]);
    assert_eq!(story.wire().len(), 2 * 8, "once, and seven times again");
    assert!(story.duo.now >= Time::ZERO + TIMEOUT * 8);
    story.post(Verb::Send, 1);
    assert_eq!(story.completed(), [RoceCompletion::Failed]);
}

#[test]
fn progress_gives_all_retries_back() {
    let mut story = Story::new(config());
    story.post(Verb::Write, 500);
    story.losing(&["> write only 0"; 7]);
    story.post(Verb::Write, 500);
    story.losing(&["> write only 1"; 7]);
    assert_eq!(story.completed(), [RoceCompletion::Completed(1), RoceCompletion::Completed(2)]);
}

#[test]
fn a_rate_spaces_packets_out() {
    let (mut qp, mut out) = (Qp::new(RoceConfig { rate: Some(Rate::gbps(1)), ..config() }), Recorder::default());
    qp.on_command(Time::ZERO, RoceCommand::Post { verb: Verb::Write, bytes: 2_000 }, &mut out);
    assert_eq!(qp.pull(Time::ZERO, WIRE, &mut out), Pull::Sent);
    let first_on_wire = Span::from_ns((1_000 + 62 + 16 + 20) * 8);
    assert_eq!(qp.pull(Time::ZERO, WIRE, &mut out), Pull::NotBefore(Time::ZERO + first_on_wire));
    assert_eq!(qp.pull(Time::ZERO + first_on_wire, WIRE, &mut out), Pull::Last);
    assert_eq!(qp.pull(Time::ZERO + first_on_wire, WIRE, &mut out), Pull::Idle);
}

#[test]
fn without_naks_a_loss_in_the_middle_waits_for_the_timeout_too() {
    let mut story = Story::new(RoceConfig { naks: false, ..config() });
    story.post(Verb::Write, 3_000);
    story.losing(&["> write middle 1"]);
    assert_eq!(story.wire()[3..6], ["> write first 0", "> write middle 1", "> write last 2"]);
    assert!(story.notes().contains(&RoceNote::Timeout) && story.duo.now > Time::ZERO + TIMEOUT);
}

#[test]
fn a_lost_tail_is_recovered_by_a_dummy() {
    let mut story = Story::new(RoceConfig { dummies: 2, ..config() });
    story.post(Verb::Write, 2_000);
    story.losing(&["> write last 1"]);
    let wire = [
        "> write first 0",
        "> write last 1 lost",
        "> write only 2",
        "> write only 3",
        "< nak 1",
        "> write last 1",
        "> write only 2",
        "> write only 3",
        "< ack 1",
        "< ack 2",
        "< ack 3",
    ];
    assert_eq!(story.wire(), wire);
    assert_eq!(story.completed(), [RoceCompletion::Completed(1)], "nobody asked for the dummies");
    assert_eq!(story.received(), [RoceCompletion::Received(1)]);
    assert!(!story.notes().contains(&RoceNote::Timeout));
}

#[test]
fn a_lost_acknowledgement_of_the_tail_is_made_good_by_that_of_a_dummy() {
    let mut story = Story::new(RoceConfig { dummies: 1, ..config() });
    story.post(Verb::Send, 1_000);
    story.losing(&["< ack 0"]);
    assert_eq!(story.wire(), ["> send only 0", "> write only 1", "< ack 0 lost", "< ack 1"]);
    assert_eq!((story.completed(), story.notes()), (vec![RoceCompletion::Completed(1)], vec![RoceNote::Dummy]));
}

#[test]
fn a_lost_tail_of_a_read_is_noticed_by_the_answer_to_an_empty_read() {
    let mut story = Story::new(RoceConfig { dummies: 1, ..config() });
    story.post(Verb::Read, 2_000);
    story.losing(&["< data last 1"]);
    let wire =
        ["> read 0", "> read 2", "< data first 0", "< data last 1 lost", "< data only 2", "> read 1", "> read 2"];
    assert_eq!(story.wire()[..7], wire);
    assert_eq!(story.completed(), [RoceCompletion::Completed(1)]);
    assert!(!story.notes().contains(&RoceNote::Timeout));
}

#[test]
fn a_lost_read_request_is_noticed_by_an_empty_read_behind_it() {
    let mut story = Story::new(RoceConfig { dummies: 1, ..config() });
    story.post(Verb::Read, 1_000);
    story.losing(&["> read 0"]);
    assert_eq!(story.wire()[..4], ["> read 0 lost", "> read 1", "< nak 0", "> read 0"]);
    assert_eq!(story.completed(), [RoceCompletion::Completed(1)]);
}

#[test]
fn a_second_gap_within_the_interval_of_naks_waits_for_the_timeout() {
    let spoken = |nak_interval| {
        let mut story = Story::new(RoceConfig { nak_interval, ..config() });
        story.post(Verb::Write, 4_000);
        story.losing(&["> write first 0", "> write last 3"]);
        story.post(Verb::Write, 3_000);
        story.losing(&["> write first 4"]);
        let naks = story.wire().iter().filter(|line| line.starts_with("< nak")).count();
        (naks, story.duo.now < Time::ZERO + TIMEOUT)
    };
    assert!(spoken(Span::ZERO).0 > spoken(Span::from_ms(100)).0);
    assert_eq!(spoken(Span::from_ms(100)).0, 1);
}

#[test]
fn dummies_wait_until_nothing_has_been_posted_for_some_time() {
    let after = Span::from_us(10);
    let mut story = Story::new(RoceConfig { dummies: 1, dummies_after: after, ..config() });
    let mut lost = false;
    story.post(Verb::Write, 1_000);
    story.run(&mut |_| if std::mem::replace(&mut lost, true) { Fate::Arrives } else { Fate::Lost });
    assert_eq!(story.wire()[..4], ["> write only 0 lost", "> write only 1", "< nak 0", "> write only 0"]);
    assert!(story.duo.now > Time::ZERO + after && story.duo.now < Time::ZERO + TIMEOUT);
}

#[test]
fn a_tail_that_is_known_to_have_arrived_needs_no_dummies() {
    let mut story = Story::new(RoceConfig { dummies: 1, dummies_after: Span::from_us(10), ..config() });
    story.post(Verb::Write, 1_000);
    story.losing(&[]);
    assert_eq!(story.wire(), ["> write only 0", "< ack 0"]);
}

#[test]
fn a_request_that_comes_in_time_takes_the_place_of_dummies_not_sent() {
    let mut story = Story::new(RoceConfig { dummies: 3, ..config() });
    story.post(Verb::Write, 1_000);
    let mut sent = 0;
    while sent < 2 {
        story.duo.step(&mut |_, _| {
            sent += 1;
            Fate::Arrives
        });
    }
    story.post(Verb::Write, 1_000);
    story.losing(&[]);
    assert_eq!(story.wire()[0], "> write only 2", "behind one dummy, before three others");
    assert_eq!(story.completed().last(), Some(&RoceCompletion::Completed(2)));
}

#[test]
fn dummies_that_the_window_held_back_are_dropped_when_the_tail_is_acknowledged() {
    let mut story = Story::new(RoceConfig { dummies: 3, max_outstanding: 2, ..config() });
    story.post(Verb::Write, 2_000);
    story.losing(&[]);
    assert_eq!(
        story.wire(),
        ["> write first 0", "> write last 1", "< ack 0", "< ack 1", "> write only 2", "< ack 2"],
        "one dummy of three: there was room for it before the second acknowledgement"
    );
    story.post(Verb::Write, 500);
    story.losing(&["> write only 3"]);
    assert_eq!(story.wire()[..2], ["> write only 3 lost", "> write only 4"], "the others took no PSNs");
    assert_eq!(story.completed(), [RoceCompletion::Completed(1), RoceCompletion::Completed(2)]);
}

#[test]
fn dummies_that_the_limit_of_reads_held_back_are_dropped_when_the_data_is_here() {
    let mut story = Story::new(RoceConfig { dummies: 2, max_reads: 1, ..config() });
    story.post(Verb::Read, 2_000);
    story.losing(&[]);
    assert_eq!(story.wire(), ["> read 0", "< data first 0", "< data last 1"]);
    assert_eq!((story.completed(), story.notes()), (vec![RoceCompletion::Completed(1)], vec![]));
    story.post(Verb::Write, 500);
    story.losing(&[]);
    assert_eq!(story.wire()[0], "> write only 2");
}

#[test]
fn dummies_behind_a_later_tail_stay_when_earlier_dummies_are_acknowledged() {
    let mut story = Story::new(RoceConfig { dummies: 2, max_outstanding: 3, ..config() });
    story.post(Verb::Write, 500);
    while story.duo.machine(Side::Left).pending() > 0 {
        story.duo.step(&mut |_, _| Fate::Arrives);
    }
    story.notes();
    story.post(Verb::Write, 500);
    story.losing(&["> write only 3"]);
    let sent: Vec<_> = story.wire().into_iter().filter(|text| text.starts_with('>')).collect();
    assert_eq!(sent[..3], ["> write only 3 lost", "> write only 4", "> write only 5"]);
    assert_eq!(story.completed().last(), Some(&RoceCompletion::Completed(2)));
    assert!(!story.notes().contains(&RoceNote::Timeout));
}

#[test]
fn a_tail_may_be_sent_more_than_once_in_advance() {
    let mut story = Story::new(RoceConfig { tail_copies: 1, ..config() });
    story.post(Verb::Write, 2_000);
    story.losing(&["> write last 1"]);
    assert_eq!(story.wire(), ["> write first 0", "> write last 1 lost", "> write last 1", "< ack 1"]);
    assert_eq!((story.completed(), story.notes()), (vec![RoceCompletion::Completed(1)], vec![RoceNote::TailRepeated]));
}

#[test]
fn losing_every_dummy_keeps_nobody_waiting() {
    let mut story = Story::new(RoceConfig { dummies: 1, ..config() });
    story.post(Verb::Write, 1_000);
    story.losing(&["> write only 1"]);
    assert_eq!(story.completed(), [RoceCompletion::Completed(1)]);
    assert_eq!(story.notes()[..2], [RoceNote::Dummy, RoceNote::IdleTimeout]);
}
