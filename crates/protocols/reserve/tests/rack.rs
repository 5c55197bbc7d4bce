//! A whole rack: what a port queues, who gets how much, and what is left when all is quiet.

mod common;

use common::{Packet, Rack, Way, numbers};
use reserve::host::WaitRule;
use reserve::{HostParams, RackParams, ReservePacket, SchedulerKind, SlotUnit};
use units::{Prob, Rate, Span, Time};
use wire::reserve::ReserveVerb;

const BOUNDED: [SchedulerKind; 3] = [SchedulerKind::Departure, SchedulerKind::Clock, SchedulerKind::Late];

fn params(scheduler: SchedulerKind) -> RackParams {
    RackParams { contexts: 4, ..RackParams::new(scheduler, 6, Rate::gbps(100)) }
}

/// Hosts 0 to 4 send to host 5, with all their contexts.
fn incast(rack: &mut Rack, frames: u32) {
    for from in 0..5 {
        for lane in 0..rack.params.contexts as u8 {
            rack.queue(from, 5, lane, frames);
        }
    }
}

/// Short messages from everybody, now and then more at once than the port can take.
fn scattered(rack: &mut Rack) {
    let mut number = numbers(7);
    for step in 0..600 {
        rack.queue((number() % 5) as u16, 5, (number() % 4) as u8, 1 + (number() % 9) as u32);
        rack.run(after(20 + step / 2));
    }
    rack.run(END);
}

fn after(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

const END: Time = Time::from_ps(100_000_000_000);

#[test]
fn incast_is_delivered_in_order_within_the_bound_and_leaves_nothing_reserved() {
    for kind in SchedulerKind::ALL {
        let mut rack = Rack::new(params(kind));
        incast(&mut rack, 100);
        rack.run(after(260));
        let share = rack.delivered(5).len() as f64 * 0.123_04 / 260.0;
        assert!(
            share > if kind == SchedulerKind::Departure { 0.85 } else { 0.92 },
            "{kind:?} uses {share} of the wire"
        );
        rack.run(END);
        rack.check_delivered(0);
        rack.check_quiet();
        if kind != SchedulerKind::Paper {
            rack.check_bound(5);
        }
        let early: u64 = rack.switch.counters().early + rack.switch.counters().uncovered;
        assert_eq!((early, rack.dropped), (0, 0), "{kind:?}");
    }
}

#[test]
fn hosts_may_be_as_late_as_they_like() {
    for kind in BOUNDED {
        for seed in 1..6 {
            let mut rack = Rack::new(params(kind));
            let mut number = numbers(seed);
            rack.lateness = Box::new(move || match number() % 8 {
                0 => Span::from_us(number() % 40),
                _ => Span::from_ns(number() % 600),
            });
            incast(&mut rack, 60);
            rack.run(END);
            rack.check_delivered(0);
            rack.check_quiet();
            rack.check_bound(5);
        }
    }
}

#[test]
fn any_message_or_frame_may_be_lost() {
    for kind in BOUNDED {
        for seed in 1..6 {
            let mut rack = Rack::new(params(kind));
            let mut number = numbers(seed);
            rack.loses = Box::new(move |_, _| number().is_multiple_of(50));
            incast(&mut rack, 60);
            rack.run(END);
            rack.check_delivered(rack.lost);
            rack.check_quiet();
            rack.check_bound(5);
        }
    }
}

/// The paper's reset heals what lost data leave behind; a lost GRT costs a second reservation, which heals as well.
#[test]
fn the_papers_counters_return_to_zero_once_receivers_have_reset() {
    let mut rack = Rack::new(params(SchedulerKind::Paper));
    let mut number = numbers(3);
    rack.loses = Box::new(move |way, packet: &Packet| match packet {
        ReservePacket::Data { .. } => way == Way::Up && number().is_multiple_of(20),
        ReservePacket::Message(message) => matches!(message.verb, ReserveVerb::Grt(_)) && number().is_multiple_of(20),
    });
    incast(&mut rack, 60);
    rack.run(END);
    rack.check_delivered(rack.lost);
    assert!(rack.switch.counters().resets > 0 && rack.lost > 0);
    rack.check_quiet();
}

#[test]
fn all_to_all_is_delivered_within_the_bound() {
    for kind in BOUNDED {
        for unit in SlotUnit::ALL {
            let mut rack = Rack::new(RackParams { contexts: 5, unit, ..params(kind) });
            for from in 0..6 {
                for step in 1..6 {
                    rack.queue_frames(from, (from + step) % 6, step as u8 - 1, 80, 300 * u32::from(step), 0);
                }
            }
            rack.run(END);
            rack.check_delivered(0);
            rack.check_quiet();
            rack.check_bound(5);
        }
    }
}

#[test]
fn short_frames_cost_their_bytes_if_bytes_are_counted() {
    let duration = |unit| {
        let mut rack = Rack::new(RackParams { unit, ..params(SchedulerKind::Clock) });
        for from in 0..5 {
            for lane in 0..4 {
                rack.queue_frames(from, 5, lane, 160, 64, 0);
            }
        }
        let mut us = 0;
        while rack.delivered(5).len() < 3_200 {
            us += 1;
            rack.run(after(us));
        }
        us
    };
    let (frames, bytes) = (duration(SlotUnit::Frames), duration(SlotUnit::Bytes));
    assert!(bytes * 10 < frames, "{bytes} µs against {frames}");
}

#[test]
fn a_host_that_dies_takes_nothing_with_it() {
    for kind in BOUNDED {
        let mut rack = Rack::new(params(kind));
        incast(&mut rack, 60);
        rack.run(after(20));
        rack.kill(1);
        let before = rack.delivered(5).len();
        rack.run(after(120));
        let share = (rack.delivered(5).len() - before) as f64 * 0.123_04 / 100.0;
        assert!(share > 0.85, "{kind:?}: the others use {share}");
        rack.run(END);
        rack.check_quiet();
        rack.check_bound(5);
        for from in [0, 2, 3, 4] {
            assert_eq!(rack.delivered(5).iter().filter(|frame| frame.from == from).count(), 240);
        }
    }
}

#[test]
fn a_switch_that_restarts_is_asked_again() {
    for kind in SchedulerKind::ALL {
        let mut rack = Rack::new(params(kind));
        incast(&mut rack, 60);
        rack.run(after(20));
        rack.restart_switch();
        rack.run(END);
        let cut: u64 = rack.cut;
        rack.check_delivered(cut);
        assert!(cut <= 5 * 4 * 4, "{kind:?} lost {cut} frames of the run before");
        assert!((0..5).all(|host| rack.host(host).counters().switch_restarts == 1));
        rack.check_quiet();
    }
}

#[test]
fn a_host_that_leaves_gives_back_what_it_reserved_and_sends_the_rest_without_a_mark() {
    for kind in SchedulerKind::ALL {
        let mut rack = Rack::new(params(kind));
        incast(&mut rack, 30);
        rack.run(after(10));
        rack.leave(1);
        rack.run(END);
        assert!(!rack.host(1).is_guaranteed() && rack.host(1).counters().unmarked > 0, "{kind:?}");
        assert!(rack.switch.counters().released > 0, "{kind:?}");
        rack.check_delivered(0);
        // The paper's switch counts every frame down, also those that were not reserved.
        if kind != SchedulerKind::Paper {
            rack.check_quiet();
        }
    }
}

/// The paper's own remedy for a sender that has failed: its receivers have copies of the GRTs, and miss its frames.
#[test]
fn what_a_dead_sender_has_reserved_is_freed_by_the_resets_of_its_receivers() {
    let mut rack = Rack::new(params(SchedulerKind::Paper));
    incast(&mut rack, 60);
    rack.run(after(20));
    rack.kill(1);
    assert_ne!(rack.switch.reserved(rack.now, 1).counted, (0, 0), "it has something reserved");
    rack.run(END);
    assert!((1..=4).contains(&rack.switch.counters().resets), "{}", rack.switch.counters().resets);
    rack.check_quiet();
    for from in [0, 2, 3, 4] {
        assert_eq!(rack.delivered(5).iter().filter(|frame| frame.from == from).count(), 240);
    }
}

#[test]
fn unsolicited_frames_cost_no_rsv_and_are_delivered_once_and_in_order() {
    for kind in BOUNDED {
        let mut rack = Rack::new(RackParams { unsolicited: true, ..params(kind) });
        rack.queue(0, 5, 0, 1);
        rack.run(after(10));
        let rsvs = rack.host(0).counters().rsvs;
        rack.queue(0, 5, 0, 3);
        rack.run(after(12));
        assert_eq!((rack.delivered(5).len(), rack.host(0).counters().rsvs), (4, rsvs), "{kind:?}");
        scattered(&mut rack);
        assert!(rack.cut > 0, "{kind:?}: some found no room");
        rack.check_delivered(0);
        rack.check_quiet();
        rack.check_bound(5);
    }
}

#[test]
fn the_papers_unsolicited_bursts_are_sent_twice_and_delivered_once() {
    let rack_params = RackParams { unsolicited: true, ..params(SchedulerKind::Paper) };
    let mut rack = Rack::with_hosts(rack_params, |host| HostParams { recent: Span::from_us(50), ..host });
    rack.queue(0, 5, 0, 1);
    rack.run(after(5));
    for from in 1..5 {
        (0..4).for_each(|lane| rack.queue(from, 5, lane, 4));
    }
    rack.run(after(6));
    rack.queue(0, 5, 0, 4); // what it knows of the port is no longer true
    rack.run(END);
    rack.check_delivered(0);
    let duplicates = rack.host(5).counters().duplicates;
    assert!(duplicates > 0, "bursts that had passed were sent again");
    let counted: i64 = (0..6).map(|port| rack.switch.reserved(END, port).counted.1).sum();
    assert_eq!(counted, -(duplicates as i64), "and were counted down twice, for ever");
}

/// Hosts that subtract the round trip of a slow exchange and the pending data are early, and the queue grows.
#[test]
fn hosts_that_wait_as_printed_are_early() {
    let most = |wait, too_early| {
        let mut rack = Rack::with_hosts(params(SchedulerKind::Paper), |host| HostParams { wait, too_early, ..host });
        incast(&mut rack, 300);
        rack.run(END);
        rack.check_delivered(rack.dropped);
        rack.most_queued[5]
    };
    let never = most(WaitRule::NeverEarly, Span::ZERO);
    let printed = most(WaitRule::Printed, Span::ZERO);
    let early = most(WaitRule::NeverEarly, Span::from_ns(500));
    assert!(never < 60_000, "{never} bytes");
    assert!(
        printed > never && early > 2 * never,
        "{printed} as printed and {early} when early, {never} bytes otherwise"
    );
}

/// MTU / rate leaves out header, preamble and gap: 2.5 % more is granted than fits the wire, and the queue keeps it all.
#[test]
fn the_slot_as_printed_overbooks_the_wire() {
    let most = |slot| {
        let mut rack = Rack::new(RackParams { slot, ..params(SchedulerKind::Paper) });
        incast(&mut rack, 200);
        rack.run(END);
        rack.check_delivered(0);
        rack.most_queued[5]
    };
    let ours = most(params(SchedulerKind::Paper).slot);
    let printed = most(RackParams::printed_slot(Rate::gbps(100), 1_518));
    assert!(printed > ours + 50_000, "{printed} bytes with the slot as printed, {ours} with ours");
}

#[test]
fn a_request_of_class_0_does_not_wait_for_all_that_was_reserved_before_it() {
    let wait = |scheduler| {
        let mut rack = Rack::new(RackParams { contexts: 12, ..params(scheduler) });
        for from in 0..4 {
            for lane in 0..12 {
                rack.queue_frames(from, 5, lane, 100, 1_518, 1);
            }
        }
        rack.run(after(50));
        rack.queue_frames(4, 5, 0, 1, 1_518, 0);
        let mut ns = 50_000;
        while !rack.delivered(5).iter().any(|frame| frame.from == 4) {
            ns += 100;
            rack.run(Time::ZERO + Span::from_ns(ns));
        }
        ns - 50_000
    };
    let (late, clock) = (wait(SchedulerKind::Late), wait(SchedulerKind::Clock));
    assert!(late < 6_000 && clock > 15_000, "{late} ns with late grants, {clock} ns without");
}

#[test]
fn shares_are_equal_per_host_with_late_grants_however_many_contexts_one_has() {
    let mut rack = Rack::new(RackParams { contexts: 36, k: 2, ..params(SchedulerKind::Late) });
    for (from, lanes) in [(0, 36), (1, 6), (2, 6), (3, 6)] {
        for lane in 0..lanes {
            rack.queue(from, 5, lane, 400);
        }
    }
    rack.run(after(300));
    let of = |from| rack.delivered(5).iter().filter(|frame| frame.from == from).count();
    let counts: Vec<usize> = (0..4).map(of).collect();
    let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
    assert!(least * 100 >= most * 95, "{counts:?}");
}

#[test]
fn frames_that_do_not_reserve_pass_within_their_share_and_harm_nobody() {
    for kind in [SchedulerKind::Clock, SchedulerKind::Late] {
        let mut rack = Rack::new(RackParams { ingress_share: Prob::literal(0.1), ..params(kind) });
        incast(&mut rack, 60);
        let lane = rack.host(0).unreserved_lane().0;
        rack.queue(0, 5, lane, 400);
        rack.run(END);
        rack.check_delivered(rack.dropped);
        assert!(rack.dropped > 0 && rack.switch.counters().policed == rack.dropped);
        rack.check_bound(5);
        rack.check_quiet();
    }
}

#[test]
fn a_switch_without_reservations_is_noticed_and_frames_pass() {
    let mut rack = Rack::new(params(SchedulerKind::Clock));
    rack.loses = Box::new(|way, packet: &Packet| way == Way::Up && matches!(packet, ReservePacket::Message(_)));
    rack.queue(0, 5, 0, 40);
    rack.run(END);
    rack.check_delivered(0);
    assert!(!rack.host(0).is_guaranteed());
    assert_eq!(rack.host(0).counters().unmarked, 40);
    rack.loses = Box::new(|_, _| false);
    for step in 0..200 {
        rack.queue(0, 5, 0, 1);
        rack.run(END + Span::from_us(100 * step));
    }
    assert!(rack.host(0).is_guaranteed(), "it answers again");
}
