//! Arbitrary lists of operations: the invariants hold for any events on the link, in any order.

mod common;

use common::*;
use guard::backpressure::PauseThresholds;
use guard::params::AutoLimits;
use guard::reorder::ReorderBuild;
use guard::{Endpoint, EndpointCommand, Params};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use testkit::{Duo, Fate, Side};
use units::{Bytes, Prob, Span};
use wire::Seq;
use wire::link::{Class, FrameKind};

#[derive(Clone, Debug)]
enum Op {
    Send {
        left: bool,
        second_class: bool,
        frames: u32,
    },
    /// Let this many things happen, each frame lost with this chance of 256.
    Run {
        steps: u16,
        loss: u8,
    },
    /// The same, but control frames may be late and overtaken.
    Shuffle {
        steps: u16,
        loss: u8,
    },
    Wait {
        us: u16,
    },
    Activate {
        left: bool,
    },
    Deactivate {
        left: bool,
    },
    Restart {
        left: bool,
    },
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (any::<bool>(), any::<bool>(), 1..60u32)
            .prop_map(|(left, second_class, frames)| Op::Send { left, second_class, frames }),
        4 => (1..400u16, 0..90u8).prop_map(|(steps, loss)| Op::Run { steps, loss }),
        2 => (1..400u16, 0..40u8).prop_map(|(steps, loss)| Op::Shuffle { steps, loss }),
        1 => (1..50u16).prop_map(|us| Op::Wait { us }),
        1 => any::<bool>().prop_map(|left| Op::Activate { left }),
        1 => any::<bool>().prop_map(|left| Op::Deactivate { left }),
    ]
}

fn op_with_restarts() -> impl Strategy<Value = Op> {
    prop_oneof![
        9 => op(),
        1 => any::<bool>().prop_map(|left| Op::Restart { left }),
    ]
}

fn setup() -> impl Strategy<Value = Params> {
    let classes = prop_oneof![Just(vec![Class::Ordered]), Just(vec![Class::NonBlocking]), Just(Class::ALL.to_vec()),];
    (classes, any::<bool>(), 1..4u8, 1..4u8, 1..3u8, 1..6u8, 4..64u32, any::<u16>(), any::<bool>()).prop_map(
        |(classes, rotating, copies, asks, control_copies, ack_every, window, first, era)| {
            let mut params = params(classes[0]);
            params.classes = classes;
            params.copies = copies;
            params.asks = asks;
            params.control_copies = control_copies;
            params.ack_every = ack_every;
            params.window_frames = window;
            params.window_bytes = Bytes::new(40_000);
            params.first_seq = Seq::new(first, era);
            params.patience = Span::from_us(200);
            params.ordering.limit = Bytes::new(12_000);
            params.ordering.backpressure = Some(PauseThresholds {
                pause_at: Bytes::new(4_000),
                resume_at: Bytes::new(2_000),
                headroom: Bytes::new(8_000),
            });
            if rotating {
                params.ordering.build = ReorderBuild::TOFINO;
            }
            params
        },
    )
}

/// Record of one direction.
#[derive(Default)]
struct Tally {
    next: u32,
    /// Numbers of each class that came out.
    out: [Vec<u32>; 2],
}

struct World {
    link: Link,
    params: Params,
    tallies: [Tally; 2],
    random: u32,
    lives: u32,
}

/// The same cases every time, unless asked for others:
/// `HITLESS_CASES=1000000 HITLESS_SEED=7 cargo test --release -p hitless-guard --test properties`.
fn settings() -> ProptestConfig {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    ProptestConfig {
        cases: number("HITLESS_CASES").map_or(4_000, |cases| cases as u32),
        rng_seed: RngSeed::Fixed(number("HITLESS_SEED").unwrap_or(1)),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// Bodies of the second class have odd numbers.
fn class_of(number: u32) -> usize {
    (number % 2) as usize
}

impl World {
    fn new(params: Params) -> Self {
        let link = Duo::new(Endpoint::new(params.clone(), 1), Endpoint::new(params.clone(), 2), SLOT, FLIGHT);
        Self { link, params, tallies: Default::default(), random: 1, lives: 2 }
    }

    fn draw(random: &mut u32) -> u32 {
        *random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *random >> 16
    }

    fn side(left: bool) -> Side {
        if left { Side::Left } else { Side::Right }
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Send { left, second_class, frames } => {
                let side = Self::side(left);
                let second =
                    second_class && self.params.classes.len() == 2 || self.params.classes == [Class::NonBlocking];
                let class = if second { Class::NonBlocking } else { Class::Ordered };
                for _ in 0..frames {
                    let tally = &mut self.tallies[side as usize];
                    let number = tally.next * 2 + class as u32;
                    tally.next += 1;
                    self.link.send(side, machine::QueueId(class as u8), Numbered(number));
                }
            }
            Op::Run { steps, loss } => self.run(steps, loss, false),
            Op::Shuffle { steps, loss } => self.run(steps, loss, true),
            Op::Wait { us } => {
                let deadline = self.link.now + Span::from_us(u64::from(us));
                self.link.run(deadline, &mut |_, _| Fate::Arrives);
            }
            Op::Activate { left } => self.link.command(Self::side(left), EndpointCommand::Activate),
            Op::Deactivate { left } => self.link.command(Self::side(left), EndpointCommand::Deactivate),
            Op::Restart { left } => {
                self.lives += 1;
                self.collect();
                self.link.replace(Self::side(left), Endpoint::new(self.params.clone(), self.lives));
            }
        }
        self.collect();
    }

    fn run(&mut self, steps: u16, loss: u8, shuffle: bool) {
        let random = &mut self.random;
        for _ in 0..steps {
            let mut fate = |_: Side, packet: &guard::LinkPacket<Numbered>| {
                let draw = Self::draw(random);
                if draw & 0xff < u32::from(loss) {
                    return Fate::Lost;
                }
                let control = matches!(packet.header.kind(), FrameKind::Ack | FrameKind::Notice);
                if shuffle && control && draw & 0x100 != 0 {
                    Fate::Late(Span::from_ns(u64::from(draw & 0x7ff)))
                } else {
                    Fate::Arrives
                }
            };
            if !self.link.step(&mut fate) {
                break;
            }
        }
    }

    fn collect(&mut self) {
        for side in Side::BOTH {
            let tally = &mut self.tallies[side.other() as usize];
            for number in numbers(self.link.delivered(side)) {
                tally.out[class_of(number)].push(number);
            }
            let end = self.link.machine(side);
            assert!(end.rx_peak() <= Bytes::new(12_000), "reorder buffer out of bounds");
            assert!(end.tx_peak() <= Bytes::new(80_000), "Tx buffers out of bounds");
        }
    }

    /// Invariants 1 and 2: once, and in order where asked.
    fn check(&mut self) {
        for tally in &mut self.tallies {
            let [ordered, other] = &mut tally.out;
            assert!(ordered.is_sorted_by(|a, b| a < b), "not once and in order: {ordered:?}");
            other.sort_unstable();
            assert!(other.is_sorted_by(|a, b| a < b), "twice: {other:?}");
        }
    }

    /// Everything that went in came out, or was counted. Frames lost while unprotected are not.
    fn account(&self, unprotected: [u64; 2]) {
        for side in Side::BOTH {
            let tally = &self.tallies[side.other() as usize];
            let out: usize = tally.out.iter().map(Vec::len).sum();
            let receiver = self.link.machine(side).counters();
            let sender = self.link.machine(side.other()).counters();
            let lost = u64::from(tally.next) - out as u64;
            let counted = receiver.given_up + sender.flushed + unprotected[side as usize];
            assert!(lost <= counted, "{lost} lost, {counted} counted: {receiver:?} {sender:?}");
        }
    }
}

proptest! {
    #![proptest_config(settings())]

    #[test]
    fn frames_come_out_once_and_in_order_whatever_happens(
        params in setup(),
        ops in proptest::collection::vec(op_with_restarts(), 1..40),
    ) {
        let mut world = World::new(params);
        for op in &ops {
            world.apply(op);
        }
        let deadline = world.link.now + Span::from_ms(50);
        let quiet = world.link.run(deadline, &mut |_, _| Fate::Arrives);
        world.collect();
        world.check();
        prop_assert!(quiet, "the link never falls quiet: {:?}", Side::BOTH.map(|side| world.link.machine(side).state()));
        prop_assert_eq!(world.link.waiting(Side::Left) + world.link.waiting(Side::Right), 0, "stalled");
    }

    /// The mode changes between in order, non-blocking and none; in all of them a frame arrives at most once.
    #[test]
    fn the_automatic_mode_duplicates_nothing(params in setup(), ops in proptest::collection::vec(op(), 1..40)) {
        let limits = AutoLimits {
            target: Prob::literal(1e-6),
            window: 40,
            ordered_up_to: Prob::literal(0.05),
            protect_up_to: Prob::literal(0.2),
            patience: 1,
            rest: 60,
        };
        // The link carries both classes; frames come by one queue only.
        let both = Params { auto: Some(limits), classes: Class::ALL.to_vec(), ..params };
        let mut world = World::new(Params { classes: vec![Class::Ordered], ..both.clone() });
        world.link = established(&both);
        for op in &ops {
            world.apply(op);
        }
        let deadline = world.link.now + Span::from_ms(50);
        prop_assert!(world.link.run(deadline, &mut |_, _| Fate::Arrives), "the link never falls quiet");
        world.collect();
        for tally in &mut world.tallies {
            tally.out.iter_mut().for_each(|numbers| numbers.sort_unstable());
        }
        world.check();
        prop_assert_eq!(world.link.waiting(Side::Left) + world.link.waiting(Side::Right), 0, "stalled");
    }

    /// Protected from the first frame on: not one is missing without being counted.
    #[test]
    fn every_gap_is_counted(params in setup(), ops in proptest::collection::vec(op(), 1..40)) {
        let mut world = World::new(params.clone());
        world.link = established(&params);
        for op in ops.iter().filter(|op| !matches!(op, Op::Activate { .. } | Op::Deactivate { .. })) {
            world.apply(op);
        }
        let deadline = world.link.now + Span::from_ms(50);
        prop_assert!(world.link.run(deadline, &mut |_, _| Fate::Arrives), "the link never falls quiet");
        world.collect();
        world.check();
        let lost_bare = Side::BOTH.map(|side| world.link.machine(side.other()).counters().tx_plain);
        world.account(lost_bare);
    }
}
