//! MELO over arbitrary arrivals, against naive bitmaps: both keep the same and report the same. Every block of a pool
//! is free or in exactly one bitmap, while connections come, go, and are swapped out and in arbitrarily.

use std::collections::BTreeSet;

use proptest::prelude::*;
use roce::Psn;
use roce::melo::{ArrivalPosition, BlockPointer, BlockPool, OffChip, PoolConfig, ReceiveTrack, Resend};
use roce::selective::Hole;

/// A bitmap with all the room it wants, that drops fills in the middle as MELO does. Places instead of PSNs.
#[derive(Debug)]
struct Naive {
    first: Psn,
    next: u64,
    /// One behind the last that arrived.
    high: u64,
    arrived: BTreeSet<u64>,
}

impl Naive {
    fn new(first: Psn) -> Self {
        Self { first, next: 0, high: 0, arrived: BTreeSet::new() }
    }

    fn arrive(&mut self, place: u64) -> ArrivalPosition {
        if place < self.next {
            return ArrivalPosition::Behind;
        }
        if place > self.next && place < self.high {
            return ArrivalPosition::Middle;
        }
        if place > self.next {
            let hole = place > self.high;
            self.arrived.insert(place);
            self.high = place + 1;
            return ArrivalPosition::Ahead { hole };
        }
        let filled = self.high > self.next;
        let before = self.next;
        self.next += 1;
        while self.arrived.remove(&self.next) {
            self.next += 1;
        }
        self.high = self.high.max(self.next);
        ArrivalPosition::Next { passed: (self.next - before) as u32, filled }
    }

    /// The three latest gaps.
    fn holes(&self) -> Vec<Hole> {
        let missing: Vec<u64> = (self.next..self.high).filter(|place| !self.arrived.contains(place)).collect();
        let runs = missing.chunk_by(|one, other| one + 1 == *other);
        let holes = runs.map(|run| Hole { start: self.psn(run[0]).number() as u16, len: run.len() as u16 });
        let holes: Vec<Hole> = holes.collect();
        holes[holes.len().saturating_sub(3)..].to_vec()
    }

    fn psn(&self, place: u64) -> Psn {
        self.first.plus(place)
    }

    /// Number of blocks in which `from..to` lies.
    fn span(&self, from: u64, to: u64, block: u64) -> u64 {
        if from == to {
            return 0;
        }
        let first = u64::from(self.first.number());
        (first + to - 1) / block - (first + from) / block + 1
    }

    fn forget(&mut self) {
        self.high = self.next;
        self.arrived.clear();
    }
}

/// Place of an arriving packet, as seen from what is there.
#[derive(Clone, Copy, Debug)]
enum Where {
    Next,
    /// So many behind the last one.
    Ahead(u64),
    /// So many from a little before the next one.
    Anywhere(u64),
}

impl Where {
    fn place(self, naive: &Naive) -> u64 {
        match self {
            Self::Next => naive.next,
            Self::Ahead(gap) => naive.high + gap,
            Self::Anywhere(offset) => (naive.next + offset).saturating_sub(5),
        }
    }
}

fn place() -> impl Strategy<Value = Where> {
    let gap = prop_oneof![6 => Just(0u64), 3 => 1..4u64, 1 => 4..80u64];
    prop_oneof![3 => Just(Where::Next), 4 => gap.prop_map(Where::Ahead), 1 => (0..60u64).prop_map(Where::Anywhere)]
}

fn first_psn() -> impl Strategy<Value = Psn> {
    prop_oneof![Just(0), (1u32 << 24) - 300..1 << 24, 0xFF00..0x1_0100u32].prop_map(Psn::new)
}

fn block() -> impl Strategy<Value = u32> {
    (0..7u32).prop_map(|power| 1 << power)
}

fn holes<S: BlockPointer>(track: &ReceiveTrack<S>) -> Vec<Hole> {
    track.holes().iter().collect()
}

/// One connection of many, at the receiver.
#[derive(Debug)]
struct Seat {
    track: ReceiveTrack<u8>,
    naive: Naive,
    away: Option<OffChip>,
}

impl Seat {
    fn new(first: Psn) -> Self {
        Self { track: ReceiveTrack::new(first), naive: Naive::new(first), away: None }
    }

    /// Blocks that it holds.
    fn span(&self, block: u64) -> u64 {
        if self.away.is_some() { 0 } else { self.naive.span(self.naive.next, self.naive.high, block) }
    }

    fn swap_in(&mut self, pool: &mut BlockPool<u8>, block: u64) {
        let Some(off) = self.away.take() else { return };
        let fits = self.naive.span(self.naive.next, self.naive.high, block) <= pool.free_slots().len() as u64;
        assert_eq!(self.track.swap_in(pool, off), fits);
        if !fits {
            self.naive.forget();
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Arrive(Where),
    SwapOut,
    SwapIn,
    /// Ends, and another takes its place.
    Close,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![20 => place().prop_map(Op::Arrive), 2 => Just(Op::SwapOut), 2 => Just(Op::SwapIn), 1 => Just(Op::Close)]
}

/// Every block is free or in one of these lists, once.
fn assert_whole(pool: &BlockPool<u8>, taken: impl Iterator<Item = u8>) {
    let taken: Vec<u8> = taken.collect();
    assert_eq!(taken.len() as u32, pool.usage().used, "leaked or shared");
    pool.check_invariants(taken.into_iter());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn with_bits_enough_a_receiver_keeps_and_tells_what_the_naive_one_does(
        first in first_psn(),
        block in block(),
        arrivals in proptest::collection::vec(place(), 0..200),
    ) {
        let mut pool = BlockPool::<u16>::new(PoolConfig { bits: 1 << 16, block }).unwrap();
        let (mut track, mut naive) = (ReceiveTrack::new(first), Naive::new(first));
        for arrival in arrivals {
            let place = arrival.place(&naive);
            if place >= naive.next + (1 << 15) {
                break;
            }
            prop_assert_eq!(track.arrive(&mut pool, naive.psn(place)), naive.arrive(place));
            prop_assert_eq!((track.next(), track.high()), (naive.psn(naive.next), naive.psn(naive.high)));
            prop_assert_eq!(holes(&track), naive.holes());
            let span = naive.span(naive.next, naive.high, u64::from(block));
            prop_assert_eq!(u64::from(pool.usage().used), span);
        }
        track.clear(&mut pool);
        prop_assert_eq!(pool.usage().used, 0);
    }

    #[test]
    fn connections_that_share_a_small_pool_neither_leak_nor_share_a_block(
        first in first_psn(),
        block in block(),
        blocks in 1..40u32,
        ops in proptest::collection::vec((0..4usize, op()), 0..200),
    ) {
        let mut pool = BlockPool::<u8>::new(PoolConfig { bits: blocks * block, block }).unwrap();
        let block = u64::from(block);
        let mut seats: Vec<Seat> = (0..4).map(|_| Seat::new(first)).collect();
        for (which, op) in ops {
            let seat = &mut seats[which];
            match op {
                Op::Arrive(arrival) => {
                    seat.swap_in(&mut pool, block);
                    let place = arrival.place(&seat.naive);
                    let needed = seat.naive.span(seat.naive.next, place.max(seat.naive.next) + 1, block);
                    let room = pool.free_slots().len() as u64 + seat.span(block);
                    let fits = place <= seat.naive.next || place < seat.naive.high || needed <= room;
                    let refusals = pool.usage().refusals;
                    let seen = seat.track.arrive(&mut pool, seat.naive.psn(place));
                    prop_assert_eq!(seen == ArrivalPosition::NoBits, !fits);
                    prop_assert_eq!(pool.usage().refusals, refusals + u64::from(!fits));
                    if fits {
                        prop_assert_eq!(seen, seat.naive.arrive(place));
                    }
                }
                Op::SwapOut if seat.away.is_none() => seat.away = Some(seat.track.swap_out(&mut pool)),
                Op::SwapOut => {}
                Op::SwapIn => seat.swap_in(&mut pool, block),
                Op::Close => {
                    seat.track.clear(&mut pool);
                    *seat = Seat::new(first);
                }
            }
            for seat in seats.iter().filter(|seat| seat.away.is_none()) {
                prop_assert_eq!(holes(&seat.track), seat.naive.holes());
                prop_assert_eq!(seat.track.blocks(&pool).count() as u64, seat.span(block));
            }
            assert_whole(&pool, seats.iter().flat_map(|seat| seat.track.blocks(&pool)));
        }
    }

    #[test]
    fn a_sender_sends_each_hole_once_and_nothing_else(
        first in first_psn(),
        block in block(),
        blocks in 1..40u32,
        ops in proptest::collection::vec(sending(), 0..300),
    ) {
        let mut pool = BlockPool::<u8>::new(PoolConfig { bits: blocks * block, block }).unwrap();
        let mut resend = Resend::new(first);
        let psn = |place: u64| first.plus(place);
        let (mut una, mut known, mut missing) = (0u64, 0u64, BTreeSet::new());
        let mut away: Option<Vec<bool>> = None;
        for op in ops {
            if let Some(bits) = away.take() && !resend.swap_in(&mut pool, &bits) {
                known = missing.first().copied().unwrap_or(known);
                missing.clear();
            }
            match op {
                Sending::Hole { behind, len } => {
                    let start = known + behind;
                    if resend.learn(&mut pool, psn(start), len) {
                        missing.extend(start..start + u64::from(len));
                        known = start + u64::from(len);
                    } else if missing.is_empty() {
                        known = start;
                    }
                }
                Sending::Again => {
                    if missing.pop_first().is_some() {
                        resend.pass_front(&mut pool);
                    }
                }
                Sending::Ack(packets) => {
                    una += packets;
                    known = known.max(una);
                    missing.retain(|place| *place >= una);
                    resend.acknowledged(&mut pool, psn(una));
                }
                Sending::Timeout => {
                    missing.clear();
                    known = una;
                    resend.clear(&mut pool, psn(una));
                }
                Sending::SwapOut => {
                    away = Some(resend.swap_out(&mut pool));
                    prop_assert_eq!(pool.usage().used, 0);
                    continue;
                }
            }
            prop_assert_eq!(resend.front(), missing.first().map(|place| psn(*place)));
            prop_assert_eq!(resend.known_before(), psn(known));
            assert_whole(&pool, resend.blocks(&pool));
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Sending {
    /// So far behind what is known.
    Hole {
        behind: u64,
        len: u32,
    },
    Again,
    Ack(u64),
    Timeout,
    SwapOut,
}

fn sending() -> impl Strategy<Value = Sending> {
    prop_oneof![
        6 => (0..30u64, 1..20u32).prop_map(|(behind, len)| Sending::Hole { behind, len }),
        12 => Just(Sending::Again),
        3 => (0..60u64).prop_map(Sending::Ack),
        1 => Just(Sending::Timeout),
        1 => Just(Sending::SwapOut),
    ]
}
