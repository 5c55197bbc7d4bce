use proptest::prelude::*;

use super::*;
use crate::TcpSink;

const LEN: u16 = 1_000;

pub(super) fn sink() -> TcpSink {
    TcpSink::default()
}

fn at(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

/// Segments that left a microsecond apart.
fn board(segments: u64) -> Scoreboard {
    let mut board = Scoreboard::default();
    (0..segments).for_each(|n| board.push(n * u64::from(LEN), LEN, at(n), DeliveryStamp::default()));
    board
}

fn got(now: Time) -> DeliveredBytes {
    DeliveredBytes::new(now, Span::ZERO, u32::MAX >> 1)
}

/// State after the segment that left at `sent_us` has just arrived, a round trip of 40 us later.
fn judge(sent_us: u64, patience_us: u64) -> RackState {
    RackState { now: at(sent_us + 40), sent_at: at(sent_us), start: u64::MAX, patience: Span::from_us(patience_us) }
}

fn sums(board: &Scoreboard) -> (u64, u64, u64) {
    (board.flight() / 1_000, board.lost() / 1_000, board.sacked() / 1_000)
}

fn repairs(board: &mut Scoreboard, now: Time) -> Vec<u64> {
    let mut starts = Vec::new();
    while let Some(index) = board.next_repair() {
        starts.push(board.resend(index, now, DeliveryStamp::default()).0);
    }
    starts
}

#[test]
fn an_acknowledgement_frees_what_lies_below_it() {
    let mut board = board(5);
    let mut acked = got(at(50));
    board.ack(2_500, &mut acked, &mut sink());
    assert_eq!((acked.bytes, board.flight()), (2_500, 2_500));
    assert_eq!(acked.measured(), Some((at(0), at(1))));
    board.ack(5_000, &mut acked, &mut sink());
    assert!(board.is_empty());
}

#[test]
fn blocks_count_for_whole_segments_and_once() {
    let mut board = board(6);
    let mut acked = got(at(50));
    board.sack(1_500, 4_500, &mut acked, &mut sink());
    assert_eq!(sums(&board), (4, 0, 2));
    board.sack(1_000, 5_000, &mut acked, &mut sink());
    board.sack(1_000, 5_000, &mut acked, &mut sink());
    assert_eq!((sums(&board), acked.bytes), ((2, 0, 4), 4_000));
    assert_eq!(board.sacked_end(), Some(5_000));
    board.ack(6_000, &mut acked, &mut sink());
    assert_eq!((sums(&board), acked.bytes), ((0, 0, 0), 6_000));
}

#[test]
fn segments_that_left_long_before_one_that_arrived_are_lost() {
    let mut board = board(10);
    board.sack(8_000, 9_000, &mut got(at(48)), &mut sink());
    // Those that left in the last 5 us before it may still come: the last of them within 4.
    assert_eq!(board.detect(&judge(8, 45), &mut sink()), Span::from_us(4));
    assert_eq!(sums(&board), (5, 4, 1));
    assert_eq!(repairs(&mut board, at(48)), [0, 1_000, 2_000, 3_000]);
    assert_eq!(sums(&board), (9, 0, 1));
}

#[test]
fn a_copy_is_lost_when_something_that_left_later_arrives() {
    let mut board = board(4);
    board.sack(3_000, 4_000, &mut got(at(43)), &mut sink());
    assert_eq!(board.detect(&judge(3, 40), &mut sink()), Span::ZERO);
    assert_eq!(repairs(&mut board, at(43)), [0, 1_000, 2_000]);
    board.push(4_000, LEN, at(44), DeliveryStamp::default());
    board.sack(1_000, 2_000, &mut got(at(83)), &mut sink());
    board.sack(4_000, 5_000, &mut got(at(84)), &mut sink());
    assert_eq!(board.detect(&judge(44, 40), &mut sink()), Span::ZERO);
    assert_eq!(repairs(&mut board, at(84)), [0, 2_000]);
}

#[test]
fn a_timeout_spares_what_left_within_a_round_trip() {
    let mut board = board(30);
    board.time_out(at(50), Span::from_us(40), &mut sink());
    assert_eq!(sums(&board), (19, 11, 0));
}

#[test]
fn a_peer_that_gave_up_what_it_held_gets_it_again() {
    let mut board = board(3);
    board.sack(0, 2_000, &mut got(at(50)), &mut sink());
    board.time_out(at(1_000), Span::from_us(40), &mut sink());
    assert_eq!(repairs(&mut board, at(1_000)), [0, 1_000, 2_000]);
}

#[test]
fn losses_that_were_none_are_forgotten() {
    let mut board = board(3);
    board.time_out(at(1_000), Span::from_us(40), &mut sink());
    board.forget_losses();
    assert_eq!(sums(&board), (3, 0, 0));
    assert_eq!(board.next_repair(), None);
}

#[derive(Clone, Debug)]
enum Op {
    Push(u16),
    Ack(u64),
    Sack(u64, u64),
    Detect(u64),
    Repair,
    TimeOut,
    Forget,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (1u16..2_000).prop_map(Op::Push),
        2 => (0u64..3_000).prop_map(Op::Ack),
        4 => (0u64..20_000, 0u64..4_000).prop_map(|(from, len)| Op::Sack(from, from + len)),
        2 => (0u64..60).prop_map(Op::Detect),
        2 => Just(Op::Repair),
        1 => Just(Op::TimeOut),
        1 => Just(Op::Forget),
    ]
}

/// The invariants of the module's documentation.
fn check(board: &Scoreboard) {
    let sum =
        |state| board.records.iter().filter(|record| record.state == state).map(SegmentRecord::bytes).sum::<u64>();
    assert_eq!(sum(SegmentState::Flight), board.flight);
    assert_eq!(sum(SegmentState::Lost), board.lost);
    assert_eq!(sum(SegmentState::Sacked), board.sacked);
    for (index, record) in board.records.iter().enumerate() {
        assert_eq!(board.index_of(record.start), index);
        assert_eq!(record.state == SegmentState::Sacked, board.sacked_ranges.holding(record.start).is_some());
        let listed = || board.repairs.iter().any(|start| board.index_of(*start) == index);
        assert!(record.state != SegmentState::Lost || listed(), "nobody will repair {record:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sums_and_lists_agree_with_the_records(ops in prop::collection::vec(op(), 1..80)) {
        let mut board = Scoreboard::default();
        let (mut una, mut nxt, mut us) = (0, 0, 0);
        for op in ops {
            us += 1;
            match op {
                Op::Push(len) => {
                    board.push(nxt, len, at(us), DeliveryStamp::default());
                    nxt += u64::from(len);
                }
                Op::Ack(bytes) => {
                    una = nxt.min(una + bytes);
                    board.ack(una, &mut got(at(us)), &mut sink());
                }
                Op::Sack(from, to) if to > from => board.sack(una + from, una + to, &mut got(at(us)), &mut sink()),
                Op::Sack(..) => {}
                Op::Detect(ago) => {
                    let sent_at = at(us.saturating_sub(ago));
                    board.detect(&RackState { now: at(us), sent_at, start: 0, patience: Span::from_us(ago + 2) }, &mut sink());
                }
                Op::Repair => {
                    if let Some(index) = board.next_repair() {
                        board.resend(index, at(us), DeliveryStamp::default());
                    }
                }
                Op::TimeOut => board.time_out(at(us), Span::from_us(5), &mut sink()),
                Op::Forget => board.forget_losses(),
            }
            check(&board);
        }
    }
}
