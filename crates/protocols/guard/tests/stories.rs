//! Behaviour of the protocol, one scenario per test.

mod common;

use common::*;
use guard::backpressure::PauseThresholds;
use guard::reorder::ReorderBuild;
use guard::{Endpoint, EndpointNote};
use testkit::{Duo, Fate, Side};
use units::{Bytes, Span};
use wire::Seq;
use wire::link::{Class, FlowControl, FrameKind};

const MODES: [Class; 2] = Class::ALL;

#[test]
fn frames_pass_once_and_in_order_and_the_link_falls_quiet() {
    for class in MODES {
        let mut link = established(&params(class));
        send(&mut link, Side::Left, class, 0..200);
        send(&mut link, Side::Right, class, 1_000..1_100);
        settle(&mut link);
        assert_eq!(numbers(link.delivered(Side::Right)), Vec::from_iter(0..200));
        assert_eq!(numbers(link.delivered(Side::Left)), Vec::from_iter(1_000..1_100));
        assert_eq!(link.machine(Side::Left).tx_buffered(), Bytes::ZERO);
    }
}

#[test]
fn a_lost_frame_is_recovered_in_its_place() {
    let mut link = established(&params(Class::Ordered));
    send(&mut link, Side::Left, Class::Ordered, 0..20);
    run(&mut link, &mut lose(Side::Left, &[3]));
    assert_eq!(numbers(link.delivered(Side::Right)), Vec::from_iter(0..20));
    let counters = link.machine(Side::Right).counters();
    assert_eq!((counters.rx_missing_seq, counters.recovered, counters.given_up), (1, 1, 0));
}

#[test]
fn without_order_a_lost_frame_arrives_late_and_alone() {
    let mut link = established(&params(Class::NonBlocking));
    send(&mut link, Side::Left, Class::NonBlocking, 0..20);
    run(&mut link, &mut lose(Side::Left, &[3]));
    let mut got = numbers(link.delivered(Side::Right));
    assert_ne!(got, Vec::from_iter(0..20));
    got.sort_unstable();
    assert_eq!(got, Vec::from_iter(0..20));
    assert_eq!(link.machine(Side::Right).rx_peak(), Bytes::ZERO);
}

#[test]
fn lost_tail_is_recovered_by_dummy() {
    for class in MODES {
        let mut link = established(&params(class));
        send(&mut link, Side::Left, class, 0..5);
        run(&mut link, &mut lose(Side::Left, &[4]));
        assert_eq!(numbers(link.delivered(Side::Right)), Vec::from_iter(0..5));
        assert_eq!(link.machine(Side::Left).counters().tx_dummy, 1 + 1, "one behind the tail, one behind the copy");
    }
}

/// The first dummy behind the tail is what detects it, in an endless stream as in ours.
#[test]
fn a_lost_tail_is_found_as_fast_as_by_an_endless_stream() {
    let found_after = |endless: bool, lost: &'static [usize]| {
        let mut params = params(Class::Ordered);
        params.dummies.endless = endless;
        params.dummies.copies = 3;
        let mut link = established(&params);
        send(&mut link, Side::Left, Class::Ordered, 0..5);
        let mut fate = lose(Side::Left, lost);
        while !link.notes(Side::Right).iter().any(|note| matches!(note, EndpointNote::Missing { .. })) {
            link.step(&mut fate);
        }
        link.now
    };
    for lost in [&[4][..], &[3, 4], &[4, 5], &[4, 5, 6]] {
        assert_eq!(found_after(false, lost), found_after(true, lost), "losing {lost:?}");
    }
}

#[test]
fn consecutive_losses_of_any_length_are_recovered_unless_limited_as_in_the_paper() {
    let lost: &[usize] = &[2, 3, 4, 5, 6, 7, 8, 9];
    for (limit, given_up) in [(None, 0), (Some(5), 3)] {
        let mut params = params(Class::Ordered);
        params.max_consecutive = limit;
        let mut link = established(&params);
        send(&mut link, Side::Left, Class::Ordered, 0..20);
        run(&mut link, &mut lose(Side::Left, lost));
        let got = numbers(link.delivered(Side::Right));
        assert_eq!(got.len(), 20 - given_up);
        assert!(got.is_sorted());
        assert_eq!(link.machine(Side::Right).counters().given_up, given_up as u64);
    }
}

#[test]
fn a_lost_notice_costs_a_frame_in_the_paper_and_none_here() {
    for (paper, got) in [(true, 19), (false, 20)] {
        let mut params = params(Class::Ordered);
        params.paper_acks = paper;
        let mut link = established(&params);
        send(&mut link, Side::Left, Class::Ordered, 0..20);
        let mut lose_frame = lose(Side::Left, &[3]);
        let mut lose_notice = lose_first(1, |kind| matches!(kind, FrameKind::Notice));
        run(&mut link, &mut |side, packet| match lose_notice(side, packet) {
            Fate::Lost => Fate::Lost,
            _ => lose_frame(side, packet),
        });
        assert_eq!(link.delivered(Side::Right).len(), got, "paper: {paper}");
    }
}

#[test]
fn a_frame_whose_copies_are_all_lost_is_given_up_and_passed_over() {
    for class in MODES {
        let mut link = established(&params(class));
        send(&mut link, Side::Left, class, 0..20);
        let mut lose_original = lose(Side::Left, &[3]);
        run(&mut link, &mut |side, packet| match packet.header.kind() {
            FrameKind::Retransmission(..) => Fate::Lost,
            _ => lose_original(side, packet),
        });
        let got = numbers(link.delivered(Side::Right));
        assert_eq!(got, Vec::from_iter((0..20).filter(|n| *n != 3)));
        assert_eq!(link.machine(Side::Right).counters().given_up, 1);
        assert_eq!(link.machine(Side::Left).tx_buffered(), Bytes::ZERO, "the sender lets go as well");
    }
}

#[test]
fn a_second_ask_recovers_what_the_first_did_not() {
    let mut params = params(Class::Ordered);
    params.asks = 3;
    let mut link = established(&params);
    send(&mut link, Side::Left, Class::Ordered, 0..20);
    let mut lose_original = lose(Side::Left, &[3]);
    let mut lose_copies = lose_first(2, |kind| matches!(kind, FrameKind::Retransmission(..)));
    run(&mut link, &mut |side, packet| match lose_copies(side, packet) {
        Fate::Lost => Fate::Lost,
        _ => lose_original(side, packet),
    });
    assert_eq!(numbers(link.delivered(Side::Right)), Vec::from_iter(0..20));
    assert_eq!(link.machine(Side::Left).counters().tx_replay, 3);
}

#[test]
fn the_number_of_copies_can_be_changed_at_work() {
    let mut link = established(&params(Class::Ordered));
    send(&mut link, Side::Left, Class::Ordered, 0..20);
    link.command(Side::Left, guard::EndpointCommand::SetCopies(4));
    run(&mut link, &mut lose(Side::Left, &[3]));
    assert_eq!(link.machine(Side::Left).counters().tx_replay, 4);
}

#[test]
fn every_copy_beyond_the_first_is_dropped_as_a_duplicate() {
    for class in MODES {
        let mut params = params(class);
        params.copies = 3;
        let mut link = established(&params);
        send(&mut link, Side::Left, class, 0..20);
        run(&mut link, &mut lose(Side::Left, &[3]));
        assert_eq!(link.delivered(Side::Right).len(), 20);
        assert_eq!(link.machine(Side::Right).counters().rx_duplicate_seq, 2);
    }
}

fn short_buffer(build: ReorderBuild) -> guard::Params {
    let mut params = params(Class::Ordered);
    params.ordering.build = build;
    params.ordering.limit = Bytes::new(20_000);
    params.ordering.backpressure = Some(PauseThresholds {
        pause_at: Bytes::new(4_000),
        resume_at: Bytes::new(2_000),
        headroom: Bytes::new(10_000),
    });
    params
}

const BUILDS: [ReorderBuild; 2] = [ReorderBuild::Sorted, ReorderBuild::TOFINO];

#[test]
fn a_full_reorder_buffer_pauses_the_sender_and_lets_it_go_on() {
    for build in BUILDS {
        let mut link = established(&short_buffer(build));
        send(&mut link, Side::Left, Class::Ordered, 0..100);
        run(&mut link, &mut lose(Side::Left, &[3]));
        assert_eq!(numbers(link.delivered(Side::Right)), Vec::from_iter(0..100));
        let receiver = link.machine(Side::Right);
        assert!(receiver.counters().pauses > 0);
        assert!(receiver.rx_peak() < Bytes::new(20_000));
        assert_eq!(receiver.counters().rx_overflow, 0);
    }
}

/// Once paused, every message that says to go on is lost for a while; dummies keep asking.
#[test]
fn a_lost_resume_cannot_silence_both_ends() {
    for build in BUILDS {
        let mut link = established(&short_buffer(build));
        send(&mut link, Side::Left, Class::Ordered, 0..100);
        let mut lose_frame = lose(Side::Left, &[3]);
        let (mut paused, mut resumes_lost) = (false, 0);
        run(&mut link, &mut |side, packet| {
            if let Some(wish) = packet.header.wish() {
                paused |= wish == FlowControl::Hold;
                if paused && wish == FlowControl::Flow && resumes_lost < 20 {
                    resumes_lost += 1;
                    return Fate::Lost;
                }
            }
            lose_frame(side, packet)
        });
        assert_eq!(resumes_lost, 20);
        assert_eq!(numbers(link.delivered(Side::Right)), Vec::from_iter(0..100));
    }
}

/// A frame that was never protected arrives while the receiver holds others back and has paused the sender.
#[test]
fn a_stray_frame_waits_for_those_held_and_stalls_nothing() {
    for build in BUILDS {
        let mut link = established(&short_buffer(build));
        send(&mut link, Side::Left, Class::Ordered, 0..100);
        let mut lossy = lose(Side::Left, &[3]);
        while link.machine(Side::Right).counters().pauses == 0 {
            link.step(&mut lossy);
        }
        link.inject(Side::Right, guard::LinkPacket::bare(Numbered(1_000)));
        run(&mut link, &mut lossy);
        let got = numbers(link.delivered(Side::Right));
        assert_eq!(got.iter().copied().filter(|n| *n < 1_000).collect::<Vec<_>>(), Vec::from_iter(0..100));
        assert_eq!(got.iter().filter(|n| **n == 1_000).count(), 1);
        assert!(got.iter().position(|n| *n == 1_000) > got.iter().position(|n| *n == 4), "behind what was held");
        assert_eq!(link.machine(Side::Right).counters().given_up, 0);
    }
}

/// Thirty frames in a row are lost, and then their first copies as well.
#[test]
fn a_long_run_of_losses_is_waited_for_as_long_as_it_takes() {
    let mut params = params(Class::Ordered);
    params.copies = 2;
    params.asks = 2;
    params.timeout = Span::from_us(2);
    params.timeout_each = Span::from_ns(200);
    params.ordering.limit = Bytes::new(200_000);
    for copies_lost in [0, 60] {
        let mut link = established(&params);
        send(&mut link, Side::Left, Class::Ordered, 0..100);
        let (mut sent, mut copies) = (0, 0);
        run(&mut link, &mut |side, packet| {
            let copy = matches!(packet.header.kind(), FrameKind::Retransmission(..));
            copies += u32::from(copy);
            sent += u32::from(side == Side::Left && !copy);
            let run = side == Side::Left && !copy && (10..40).contains(&sent);
            if run || (copy && copies <= copies_lost) { Fate::Lost } else { Fate::Arrives }
        });
        assert_eq!(numbers(link.delivered(Side::Right)), Vec::from_iter(0..100), "{copies_lost} copies lost");
    }
}

#[test]
fn neither_class_keeps_the_other_from_acknowledging() {
    let mut params = params(Class::Ordered);
    params.classes = Class::ALL.to_vec();
    params.ack_every = 1;
    params.window_frames = 16;
    let mut link = established(&params);
    for class in Class::ALL {
        send(&mut link, Side::Left, class, 0..300);
    }
    send(&mut link, Side::Right, Class::Ordered, 0..600);
    let start = link.now;
    let mut arrives = |_: Side, _: &guard::LinkPacket<Numbered>| Fate::Arrives;
    while link.waiting(Side::Left) > 0 {
        assert!(link.step(&mut arrives));
    }
    assert!(link.now.since(start) < Span::from_us(75), "{:?}", link.now.since(start));
}

#[test]
fn endless_dummies_leave_room_for_frames() {
    let mut params = params(Class::Ordered);
    params.classes = Class::ALL.to_vec();
    params.dummies.endless = true;
    let mut link = established(&params);
    send(&mut link, Side::Left, Class::NonBlocking, 0..50);
    let deadline = link.now + Span::from_us(50);
    link.run(deadline, &mut |_, _| Fate::Arrives);
    assert_eq!(link.delivered(Side::Right).len(), 50);
}

#[test]
fn overflow_is_counted_and_asked_for_again_where_the_paper_loses_it() {
    for (paper, lost) in [(false, false), (true, true)] {
        let mut params = params(Class::Ordered);
        params.ordering.backpressure = None;
        params.ordering.limit = Bytes::new(3_000);
        params.paper_acks = paper;
        params.asks = 20;
        let mut link = established(&params);
        send(&mut link, Side::Left, Class::Ordered, 0..50);
        run(&mut link, &mut lose(Side::Left, &[3]));
        let counters = *link.machine(Side::Right).counters();
        assert!(counters.rx_overflow > 0);
        let got = numbers(link.delivered(Side::Right));
        assert!(got.is_sorted());
        assert_eq!(got.len() < 50, lost, "{counters:?}");
        assert!(link.machine(Side::Right).rx_peak() <= Bytes::new(3_000));
    }
}

#[test]
fn the_window_stays_within_its_bounds() {
    let mut params = params(Class::Ordered);
    params.window_frames = 4;
    let mut link = established(&params);
    send(&mut link, Side::Left, Class::Ordered, 0..100);
    settle(&mut link);
    assert_eq!(link.machine(Side::Left).tx_peak(), Bytes::new(4_000));
    params.window_frames = 100;
    params.window_bytes = Bytes::new(5_000);
    let mut link = established(&params);
    send(&mut link, Side::Left, Class::Ordered, 0..100);
    settle(&mut link);
    assert!(link.machine(Side::Left).tx_peak() <= Bytes::new(5_000));
    assert_eq!(link.delivered(Side::Right).len(), 100);
}

/// Left saturates one class while the other sends a single frame, which is lost.
#[test]
fn the_lost_tail_of_one_class_is_found_while_the_other_fills_the_wire() {
    for (quiet, busy) in [(Class::Ordered, Class::NonBlocking), (Class::NonBlocking, Class::Ordered)] {
        let mut params = params(busy);
        params.classes = Class::ALL.to_vec();
        let mut link = established(&params);
        send(&mut link, Side::Left, busy, 100..1_100);
        send(&mut link, Side::Left, quiet, 0..1);
        let mut first = lose_first(
            1,
            match quiet {
                Class::Ordered => |kind| matches!(kind, FrameKind::Data(Class::Ordered, _)),
                Class::NonBlocking => |kind| matches!(kind, FrameKind::Data(Class::NonBlocking, _)),
            },
        );
        let mut got = Vec::new();
        while !got.contains(&0) {
            assert!(link.step(&mut first));
            got.extend(numbers(link.delivered(Side::Right)));
        }
        assert!(got.len() < 100, "{quiet:?} came after {} frames of the other class", got.len());
        settle(&mut link);
        got.extend(numbers(link.delivered(Side::Right)));
        assert_eq!(got.len(), 1_001);
    }
}

#[test]
fn both_directions_recover_in_parallel() {
    for class in MODES {
        let mut params = params(class);
        params.control_copies = 2;
        let mut link = established(&params);
        send(&mut link, Side::Left, class, 0..200);
        send(&mut link, Side::Right, class, 0..200);
        let mut count = 0;
        run(&mut link, &mut |_, _| {
            count += 1;
            if count % 13 == 5 { Fate::Lost } else { Fate::Arrives }
        });
        for side in Side::BOTH {
            let mut got = numbers(link.delivered(side));
            if class == Class::NonBlocking {
                got.sort_unstable();
            }
            assert!(got.is_sorted() && got.len() > 190, "{class:?}: {} frames", got.len());
            let counters = link.machine(side).counters();
            assert_eq!(got.len() as u64 + counters.given_up, 200, "every gap is counted");
        }
    }
}

#[test]
fn sequence_numbers_wrap_many_times_under_loss() {
    for class in MODES {
        let mut params = params(class);
        params.first_seq = Seq::new(65_530, true);
        params.asks = 10;
        let mut link = established(&params);
        let mut got = Vec::new();
        let mut count = 0u32;
        for batch in 0..40 {
            send(&mut link, Side::Left, class, batch * 10_000..(batch + 1) * 10_000);
            run(&mut link, &mut |_, _| {
                count = count.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                if count >> 24 == 0 { Fate::Lost } else { Fate::Arrives }
            });
            got.extend(numbers(link.delivered(Side::Right)));
        }
        if class == Class::NonBlocking {
            got.sort_unstable();
        }
        assert!(got.iter().copied().eq(0..400_000), "{} frames", got.len());
    }
}

/// The receiver has room for sixteen, and says so.
#[test]
fn the_window_in_use_is_the_smaller_one_of_the_two_ends() {
    let ends = [200, 16].map(|window_frames| guard::Params { window_frames, ..params(Class::NonBlocking) });
    let [left, right] = &ends;
    let mut link = Duo::new(Endpoint::new(left.clone(), 1), Endpoint::new(right.clone(), 2), Span::from_ns(10), FLIGHT);
    link.command(Side::Left, guard::EndpointCommand::Activate);
    settle(&mut link);
    send(&mut link, Side::Left, Class::NonBlocking, 0..100);
    // Nothing is acknowledged.
    let mut first_sent = 0;
    let deadline = link.now + Span::from_us(3);
    link.run(deadline, &mut |_, packet| {
        first_sent += u32::from(matches!(packet.header.kind(), FrameKind::Data(..)));
        Fate::Lost
    });
    assert_eq!(first_sent, 16);
}

/// Nothing that the peer's window allows lies so far ahead.
#[test]
fn a_frame_beyond_the_announced_window_is_bad() {
    for class in MODES {
        let narrow = guard::Params { window_frames: 100, ..params(class) };
        let mut link = established(&narrow);
        send(&mut link, Side::Left, class, 0..10);
        settle(&mut link);
        let epoch = wire::link::Epoch::new(1);
        for (ahead, bad) in [(101, 1), (30_000, 2), (99, 2)] {
            let kind = FrameKind::Data(class, narrow.first_seq.plus(10 + ahead));
            link.inject(Side::Right, guard::LinkPacket::new(epoch, kind, None, Some(Numbered(9_999))));
            assert_eq!(link.machine(Side::Right).counters().rx_bad, bad, "{ahead} ahead");
        }
        assert_eq!(link.machine(Side::Right).counters().rx_missing_seq, 99);
    }
}

/// Both classes have much to send again; neither waits until the other is done.
#[test]
fn classes_take_turns_in_sending_again() {
    let both = guard::Params { classes: Class::ALL.to_vec(), ..params(Class::Ordered) };
    let mut link = established(&both);
    for class in Class::ALL {
        send(&mut link, Side::Left, class, 0..60);
    }
    let mut copies = Vec::new();
    let (mut sent, mut over) = (0, false);
    run(&mut link, &mut |side, packet| match packet.header.kind() {
        FrameKind::Data(..) if side == Side::Left => {
            sent += 1;
            over |= sent > 100;
            if over { Fate::Arrives } else { Fate::Lost }
        }
        FrameKind::Dummy(..) if sent <= 100 => Fate::Lost,
        FrameKind::Retransmission(class, _) => {
            copies.push(class);
            Fate::Arrives
        }
        _ => Fate::Arrives,
    });
    let turns = copies.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert!(copies.len() >= 8 && turns * 2 > copies.len(), "{turns} turns in {copies:?}");
}

/// Frames that wait behind held ones are bounded in bytes, as more come and as they leave.
#[test]
fn unprotected_frames_that_wait_are_bounded_in_bytes() {
    let mut link = established(&params(Class::Ordered));
    let limit = params(Class::Ordered).ordering.limit.get() / 1_000;
    for round in 0..3 {
        send(&mut link, Side::Left, Class::Ordered, 0..2);
        let lost = link.machine(Side::Right).counters().rx_missing_seq;
        let mut lossy = lose(Side::Left, &[0]);
        while link.machine(Side::Right).counters().rx_missing_seq == lost {
            link.step(&mut lossy);
        }
        for stray in 0..limit as u32 {
            link.inject(Side::Right, guard::LinkPacket::bare(Numbered(100 + stray)));
        }
        assert!(numbers(link.delivered(Side::Right)).iter().all(|number| *number < 100), "round {round}");
        link.inject(Side::Right, guard::LinkPacket::bare(Numbered(9_999)));
        assert_eq!(numbers(link.delivered(Side::Right)).last(), Some(&9_999), "round {round}");
        settle(&mut link);
        link.delivered(Side::Right);
    }
}
