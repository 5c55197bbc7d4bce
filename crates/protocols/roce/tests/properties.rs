//! A reliable connection over a channel that drops, delays and duplicates arbitrary packets: everything posted
//! completes, once and in order, and the connection survives any arrivals.

use std::cell::RefCell;

use proptest::prelude::*;
use roce::{
    AckSyndrome, CongestionHeader, MessagePart, Psn, Qp, RoceCommand, RoceCompletion, RoceConfig, RoceOperation,
    RocePacket, Verb,
};
use testkit::{Duo, Fate, Side};
use units::{Rate, Span, Time};
use wire::ip::Ecn;

const SLOT: Span = Span::from_ns(100);
const FLIGHT: Span = Span::from_us(1);

/// Action of the channel on one packet.
#[derive(Clone, Copy, Debug)]
enum Whim {
    Passes,
    Drops,
    Delays(u8),
    /// A copy arrives at once, before anything in flight.
    Duplicates,
}

fn whim() -> impl Strategy<Value = Whim> {
    prop_oneof![
        6 => Just(Whim::Passes),
        2 => Just(Whim::Drops),
        1 => (1..60u8).prop_map(Whim::Delays),
        1 => Just(Whim::Duplicates),
    ]
}

fn verb() -> impl Strategy<Value = Verb> {
    prop_oneof![Just(Verb::Send), Just(Verb::Write), Just(Verb::Read)]
}

fn config() -> impl Strategy<Value = RoceConfig> {
    let window = prop_oneof![Just(1), Just(2), 3..40u32];
    let rate = prop_oneof![Just(None), Just(Some(Rate::gbps(20)))];
    let tail = (0..4u32, 0..3u32, prop_oneof![Just(Span::ZERO), Just(Span::from_us(5))]);
    (window, 1..4u32, 1..10u32, any::<bool>(), rate, (1u32 << 24) - 60..1 << 24, tail).prop_map(
        |(max_outstanding, max_reads, ack_every, obey_nak_copies, rate, first, tail)| RoceConfig {
            mtu: 1_000,
            dummies: tail.0,
            tail_copies: tail.1,
            dummies_after: tail.2,
            max_outstanding,
            max_reads,
            ack_every,
            obey_nak_copies,
            rate,
            timeout: Span::from_us(50),
            retry_count: u32::MAX,
            first_psn: Psn::new(first),
            ..RoceConfig::default()
        },
    )
}

type Posts = Vec<(Verb, u64)>;

fn posts() -> impl Strategy<Value = Posts> {
    proptest::collection::vec((verb(), prop_oneof![Just(0), 1..9_000u64]), 0..8)
}

/// Checks, event by event, that nothing completes before it happened, twice or out of order.
#[derive(Debug, Default)]
struct Ledger {
    completed: [u64; 2],
    received: [u64; 2],
}

impl Ledger {
    fn record(&mut self, duo: &mut Duo<Qp>, posts: &[Posts; 2]) {
        for side in Side::BOTH {
            for event in duo.events(side) {
                match event {
                    RoceCompletion::Completed(so_far) => self.complete(side, so_far, posts),
                    RoceCompletion::Received(so_far) => {
                        assert_eq!(so_far, self.received[side as usize] + 1, "one message at a time");
                        self.received[side as usize] = so_far;
                    }
                    RoceCompletion::Failed => panic!("failed with endless retries"),
                }
            }
        }
    }

    fn complete(&mut self, side: Side, so_far: u64, posts: &[Posts; 2]) {
        assert!(so_far > self.completed[side as usize], "counts up");
        self.completed[side as usize] = so_far;
        let placed = messages(&posts[side as usize][..so_far as usize]);
        assert!(self.received[side.other() as usize] >= placed, "complete before it arrived");
    }

    fn settle(&self, posts: &[Posts; 2]) {
        for side in Side::BOTH {
            let posted = &posts[side as usize];
            assert_eq!(self.completed[side as usize], posted.len() as u64, "all complete");
            assert_eq!(self.received[side.other() as usize], messages(posted), "each placed once");
        }
    }
}

/// Number of these of which the peer is notified: the arrival of an empty WRITE cannot be observed.
fn messages(posts: &[(Verb, u64)]) -> u64 {
    posts.iter().filter(|(verb, bytes)| *verb == Verb::Send || (*verb == Verb::Write && *bytes > 0)).count() as u64
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn everything_posted_completes_once_and_in_order(
        config in config(),
        left in posts(),
        right in posts(),
        whims in proptest::collection::vec(whim(), 0..120),
        pause in 0..40usize,
    ) {
        let mut duo = Duo::new(Qp::new(config), Qp::new(config), SLOT, FLIGHT);
        let posts = [left, right];
        // Some at once, the others one by one with pauses, so that queues drain in between.
        let mut later = posts.clone().map(|posts| posts.into_iter());
        for side in Side::BOTH {
            for (verb, bytes) in later[side as usize].by_ref().take(if pause == 0 { 8 } else { 2 }) {
                duo.command(side, RoceCommand::Post { verb, bytes });
            }
        }
        let mut steps = 0;
        let (mut whims, copies) = (whims.into_iter(), RefCell::new(Vec::new()));
        let mut channel = |side: Side, packet: &RocePacket| match whims.next().unwrap_or(Whim::Passes) {
            Whim::Passes => Fate::Arrives,
            Whim::Drops => Fate::Lost,
            Whim::Delays(slots) => Fate::Late(SLOT * u64::from(slots)),
            Whim::Duplicates => {
                copies.borrow_mut().push((side.other(), *packet));
                Fate::Arrives
            }
        };
        let mut ledger = Ledger::default();
        loop {
            steps += 1;
            let goes_on = duo.step(&mut channel);
            if !goes_on || (pause > 0 && steps % pause == 0) {
                for side in Side::BOTH {
                    if let Some((verb, bytes)) = later[side as usize].next() {
                        duo.command(side, RoceCommand::Post { verb, bytes });
                    }
                }
            }
            if !goes_on && duo.next_event().is_none() {
                break;
            }
            copies.take().into_iter().for_each(|(side, packet)| duo.inject(side, packet));
            ledger.record(&mut duo, &posts);
            prop_assert!(duo.now < Time::ZERO + Span::from_ms(100), "stalled: {ledger:?}");
        }
        ledger.settle(&posts);
    }

    #[test]
    fn any_packet_is_survived(
        config in config(),
        posted in posts(),
        garbage in proptest::collection::vec((garbage(), 0..8usize), 0..200),
    ) {
        let mut duo = Duo::new(Qp::new(config), Qp::new(config), SLOT, FLIGHT);
        for (verb, bytes) in posted {
            duo.command(Side::Left, RoceCommand::Post { verb, bytes });
        }
        for (packet, steps) in garbage {
            duo.inject(Side::Left, packet);
            for _ in 0..steps {
                duo.step(&mut |_, _| Fate::Arrives);
            }
        }
        duo.run(duo.now + Span::from_us(500), &mut |_, _| Fate::Arrives);
    }
}

/// Packets of any kind whose numbers are mostly close to what is expected.
fn garbage() -> impl Strategy<Value = RocePacket> {
    let part = prop_oneof![
        Just(MessagePart::First),
        Just(MessagePart::Middle),
        Just(MessagePart::Last),
        Just(MessagePart::Only)
    ];
    let opcode = (0..6u8, part).prop_map(|(kind, part)| match kind {
        0 => RoceOperation::Send(part),
        1 => RoceOperation::Write(part),
        2 => RoceOperation::ReadRequest,
        3 => RoceOperation::ReadResponse(part),
        4 => RoceOperation::Acknowledge(AckSyndrome::Ack),
        _ => RoceOperation::Acknowledge(AckSyndrome::SequenceError),
    });
    let psn = prop_oneof![8 => (1u32 << 24) - 70..(1 << 24) + 70, 1 => any::<u32>()];
    let len = prop_oneof![4 => 0..20_000u32, 1 => any::<u32>()];
    (opcode, psn, len, any::<bool>()).prop_map(|(opcode, psn, dma_len, ack_request)| RocePacket {
        opcode,
        psn: Psn::new(psn),
        payload: 1_000,
        dma_len,
        msn: 0,
        ack_request,
        ecn: Ecn::NotCapable,
        congestion: CongestionHeader::default(),
    })
}
