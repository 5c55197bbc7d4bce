//! The rules of MELO's receiver and sender, one story each, on a pool of eight blocks of four bits.

use roce::Psn;
use roce::melo::{ArrivalPosition, BlockPool, PoolConfig, ReceiveTrack, Resend};

const AHEAD: ArrivalPosition = ArrivalPosition::Ahead { hole: false };
const HOLE: ArrivalPosition = ArrivalPosition::Ahead { hole: true };
const IN_ORDER: ArrivalPosition = ArrivalPosition::Next { passed: 1, filled: false };

fn filled(passed: u32) -> ArrivalPosition {
    ArrivalPosition::Next { passed, filled: true }
}

struct Receiver {
    pool: BlockPool<u8>,
    track: ReceiveTrack<u8>,
}

impl Receiver {
    fn new() -> Self {
        Self { pool: BlockPool::new(PoolConfig { bits: 32, block: 4 }).unwrap(), track: ReceiveTrack::new(Psn::new(0)) }
    }

    fn arrive<const N: usize>(&mut self, psns: [u32; N]) -> [ArrivalPosition; N] {
        psns.map(|psn| self.track.arrive(&mut self.pool, Psn::new(psn)))
    }

    /// Start and length of each.
    fn holes(&self) -> Vec<(u16, u16)> {
        self.track.holes().iter().map(|hole| (hole.start, hole.len)).collect()
    }

    fn used(&self) -> u32 {
        self.pool.usage().used
    }
}

#[test]
fn packets_in_order_take_no_bits() {
    let mut receiver = Receiver::new();
    assert_eq!(receiver.arrive([0, 1, 2]), [IN_ORDER; 3]);
    assert_eq!((receiver.used(), receiver.pool.usage().peak), (0, 0));
}

#[test]
fn a_packet_behind_a_gap_takes_blocks_from_the_gap_on() {
    let mut receiver = Receiver::new();
    assert_eq!(receiver.arrive([0, 1, 3, 4, 5]), [IN_ORDER, IN_ORDER, HOLE, AHEAD, AHEAD]);
    assert_eq!(receiver.holes(), [(2, 1)]);
    assert_eq!(receiver.used(), 2, "2 and 3 are in one block, 4 and 5 in the next");
}

#[test]
fn a_filled_hole_is_passed_with_all_that_follows_and_its_blocks_are_free_again() {
    let mut receiver = Receiver::new();
    receiver.arrive([1, 2, 3, 4, 6]);
    assert_eq!(receiver.holes(), [(0, 1), (5, 1)]);
    assert_eq!(receiver.arrive([0]), [filled(5)]);
    assert_eq!((receiver.track.next(), receiver.holes(), receiver.used()), (Psn::new(5), vec![(5, 1)], 1));
    assert_eq!(receiver.arrive([5, 7]), [filled(2), IN_ORDER]);
    assert_eq!(receiver.used(), 0);
}

#[test]
fn only_the_three_latest_holes_are_told() {
    let mut receiver = Receiver::new();
    receiver.arrive([1, 3, 5, 8]);
    assert_eq!(receiver.holes(), [(2, 1), (4, 1), (6, 2)]);
    receiver.arrive([0, 2]);
    assert_eq!(receiver.holes(), [(4, 1), (6, 2)]);
}

#[test]
fn a_hole_that_is_filled_from_its_front_gets_shorter() {
    let mut receiver = Receiver::new();
    receiver.arrive([3]);
    assert_eq!(receiver.arrive([0]), [filled(1)]);
    assert_eq!(receiver.holes(), [(1, 2)]);
}

#[test]
fn a_fill_in_the_middle_is_dropped_until_it_is_the_next() {
    let mut receiver = Receiver::new();
    receiver.arrive([1, 3]);
    assert_eq!(receiver.arrive([2, 1]), [ArrivalPosition::Middle, ArrivalPosition::Middle]);
    assert_eq!(receiver.arrive([0, 2]), [filled(2), filled(2)]);
    assert_eq!(receiver.arrive([2]), [ArrivalPosition::Behind]);
}

#[test]
fn without_bits_a_packet_is_dropped_and_later_one_makes_a_hole_of_it() {
    let mut receiver = Receiver::new();
    let mut other = ReceiveTrack::new(Psn::new(0));
    assert_eq!(other.arrive(&mut receiver.pool, Psn::new(27)), HOLE);
    assert_eq!(receiver.used(), 7);
    assert_eq!(
        receiver.arrive([1, 2, 3, 4, 5]),
        [HOLE, AHEAD, AHEAD, ArrivalPosition::NoBits, ArrivalPosition::NoBits]
    );
    assert_eq!(receiver.pool.usage().refusals, 2);
    assert_eq!(receiver.arrive([0, 6]), [filled(4), HOLE]);
    assert_eq!(receiver.holes(), [(4, 2)]);
}

#[test]
fn a_gap_that_needs_more_blocks_than_there_are_takes_none() {
    let mut receiver = Receiver::new();
    assert_eq!(receiver.arrive([32]), [ArrivalPosition::NoBits]);
    assert_eq!((receiver.used(), receiver.holes()), (0, vec![]));
    assert_eq!(receiver.arrive([31]), [HOLE]);
    assert_eq!(receiver.used(), 8);
}

#[test]
fn a_hole_reaches_no_further_than_its_two_bytes() {
    let mut pool = BlockPool::<u16>::new(PoolConfig { bits: 1 << 20, block: 64 }).unwrap();
    let mut track = ReceiveTrack::new(Psn::new(0));
    assert_eq!(track.arrive(&mut pool, Psn::new(1 << 15)), ArrivalPosition::NoBits);
    assert_eq!(track.arrive(&mut pool, Psn::new((1 << 15) - 1)), HOLE);
    assert_eq!(track.holes().iter().map(|hole| hole.len).collect::<Vec<_>>(), [(1 << 15) - 1]);
}

#[test]
fn a_connection_comes_back_from_off_chip_as_it_went() {
    let mut receiver = Receiver::new();
    receiver.arrive([1, 2, 5]);
    let off = receiver.track.swap_out(&mut receiver.pool);
    assert_eq!((receiver.used(), receiver.holes()), (0, vec![]));
    assert!(receiver.track.swap_in(&mut receiver.pool, off));
    assert_eq!((receiver.used(), receiver.holes()), (2, vec![(0, 1), (3, 2)]));
    assert_eq!(receiver.arrive([0, 3, 4]), [filled(3), filled(1), filled(2)]);
}

#[test]
fn a_connection_that_finds_no_room_again_forgets_what_was_out_of_order() {
    let mut receiver = Receiver::new();
    receiver.arrive([0, 2, 3]);
    let off = receiver.track.swap_out(&mut receiver.pool);
    let mut other = ReceiveTrack::new(Psn::new(0));
    assert_eq!(other.arrive(&mut receiver.pool, Psn::new(31)), HOLE);
    assert!(!receiver.track.swap_in(&mut receiver.pool, off));
    assert_eq!((receiver.track.next(), receiver.track.high()), (Psn::new(1), Psn::new(1)));
    assert_eq!(receiver.arrive([2, 1, 2]), [ArrivalPosition::NoBits, IN_ORDER, IN_ORDER]);
}

#[test]
fn a_sender_takes_what_is_missing_from_front_to_end_and_appends_what_is_newer() {
    let mut pool = BlockPool::<u8>::new(PoolConfig { bits: 32, block: 4 }).unwrap();
    let mut resend = Resend::new(Psn::new(0));
    assert!(resend.learn(&mut pool, Psn::new(2), 2) && resend.learn(&mut pool, Psn::new(9), 1));
    assert_eq!(pool.usage().used, 3);
    let mut sent = Vec::new();
    while let Some(psn) = resend.front() {
        sent.push(psn.number());
        resend.pass_front(&mut pool);
        if sent.len() == 3 {
            assert!(resend.learn(&mut pool, Psn::new(20), 1));
            assert_eq!(pool.usage().used, 1, "nothing was left, so nothing leads to the new hole");
        }
    }
    assert_eq!(sent, [2, 3, 9, 20]);
    assert_eq!((pool.usage().used, resend.known_before()), (0, Psn::new(21)));
}

#[test]
fn a_sender_does_not_send_again_what_was_acknowledged_meanwhile() {
    let mut pool = BlockPool::<u8>::new(PoolConfig { bits: 32, block: 4 }).unwrap();
    let mut resend = Resend::new(Psn::new(0));
    assert!(resend.learn(&mut pool, Psn::new(2), 2) && resend.learn(&mut pool, Psn::new(9), 1));
    resend.acknowledged(&mut pool, Psn::new(3));
    assert_eq!(resend.front(), Some(Psn::new(3)));
    resend.acknowledged(&mut pool, Psn::new(4));
    assert_eq!((resend.front(), pool.usage().used), (Some(Psn::new(9)), 1));
    resend.acknowledged(&mut pool, Psn::new(12));
    assert_eq!((resend.front(), resend.known_before(), pool.usage().used), (None, Psn::new(12), 0));
}

#[test]
fn a_sender_without_bits_keeps_what_it_had() {
    let mut pool = BlockPool::<u8>::new(PoolConfig { bits: 8, block: 4 }).unwrap();
    let mut resend = Resend::new(Psn::new(0));
    assert!(resend.learn(&mut pool, Psn::new(1), 1));
    assert!(!resend.learn(&mut pool, Psn::new(8), 1));
    assert_eq!((resend.front(), resend.known_before()), (Some(Psn::new(1)), Psn::new(2)));
    assert!(resend.learn(&mut pool, Psn::new(7), 1));
}
