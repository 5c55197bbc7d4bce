//! The switch with reservations, in memory: hosts ask, are answered, and send what they reserved.

use proptest::prelude::*;
use rack::switch::{PortConfig, RackSwitch, SwitchConfig, SwitchCore};
use reserve::{RackParams, ReservingSwitch, SchedulerKind};
use units::{Bytes, Prob, Rate, Span, Time};
use wire::reserve::{
    BurstId, DataMark, Demand, Grant, HostKey, OUI_EXTENDED, Refusal, Reservation, ReserveHeader, ReserveMessage,
    ReserveVerb,
};

const FULL: usize = 1_514;
const RATE: Rate = Rate::gbps(1);
const CLIENT: usize = 0;
/// A full frame with its mark.
const ON_WIRE: u64 = 1_559;

fn params(scheduler: SchedulerKind) -> RackParams {
    // With the mark, a frame of 1518 B has 1539.
    let (mtu, slot) = (1_539, RATE.span_of(Bytes::new(ON_WIRE)).scale(1.01));
    let fixed = RackParams::new(scheduler, 4, RATE);
    RackParams { contexts: 2, unsolicited: true, horizon: Span::from_us(20), mtu, slot, ..fixed }
}

/// Every host has been heard.
fn switch(scheduler: SchedulerKind) -> SwitchCore {
    switch_with(params(scheduler))
}

fn switch_with(params: RackParams) -> SwitchCore {
    let port = |name: usize| PortConfig {
        name: format!("p{name}"),
        rate: RATE,
        buffer: Bytes::new(128_000),
        longest: FULL + 29,
        trusts_priority: false,
    };
    let ports: Vec<PortConfig> = (0..4).map(port).collect();
    let reserving = ReservingSwitch::new(params, 7).unwrap();
    let mut switch = SwitchCore::new(&ports, Span::from_ms(300_000)).reserving(reserving);
    (0..4).for_each(|host| switch.on_frame(at(0), host, &[&mac(host)[..], &mac(host), &[8, 0]].concat()));
    switch
}

fn at(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

fn mac(host: usize) -> [u8; 6] {
    [2, 0, 0, 0, 0, host as u8]
}

fn frame(from: usize, to: usize, header: &ReserveHeader, body: &[u8]) -> Vec<u8> {
    let mut frame = [&mac(to)[..], &mac(from), &OUI_EXTENDED.to_be_bytes()].concat();
    header.emit(&mut frame);
    frame.extend_from_slice(body);
    frame
}

fn about(to: usize, frames: u8) -> Reservation {
    let id = BurstId { host_epoch: 3, context: 0, burst: 1 };
    let demand = Demand { frames, bytes: u32::from(frames) * ON_WIRE as u32 };
    Reservation { id, peer: HostKey::from_mac(mac(to)), demand, ..Reservation::default() }
}

fn ask(switch: &mut SwitchCore, now: Time, from: usize, to: usize, frames: u8) {
    let message = ReserveMessage { verb: ReserveVerb::Rsv, about: about(to, frames) };
    switch.on_frame(now, from, &frame(from, to, &ReserveHeader::Message(message), &[]));
}

fn marked(from: usize, index: u8, of: u8) -> Vec<u8> {
    let mark = DataMark { id: about(0, of).id, switch_epoch: 7, index, of, ..DataMark::default() };
    frame(from, CLIENT, &ReserveHeader::Mark(mark), &[&[8, 0][..], &[0x5a; 1_500]].concat())
}

fn departed(switch: &mut SwitchCore, now: Time, port: usize) -> Vec<Vec<u8>> {
    switch.serve(now);
    let mut frames = Vec::new();
    let taken = switch.take_departed(port, |frame| {
        frames.push(frame.to_vec());
        Ok::<_, ()>(true)
    });
    taken.unwrap();
    frames
}

/// The only message that has left a port by then.
fn answer(switch: &mut SwitchCore, now: Time, port: usize) -> ReserveMessage {
    let [frame] = &departed(switch, now, port)[..] else { panic!("one frame") };
    assert_eq!((&frame[..6], frame.len()), (&mac(port)[..], 60));
    match ReserveHeader::parse(&frame[14..]) {
        Ok((ReserveHeader::Message(message), [])) => message,
        other => panic!("{other:?}"),
    }
}

fn grant(message: ReserveMessage) -> Grant {
    match message.verb {
        ReserveVerb::Grt(grant) => grant,
        other => panic!("{other:?}"),
    }
}

#[test]
fn two_hosts_that_ask_at_once_get_slots_one_after_the_other() {
    let mut switch = switch(SchedulerKind::Clock);
    ask(&mut switch, at(10), 1, CLIENT, 4);
    ask(&mut switch, at(10), 2, CLIENT, 4);
    let (first, second) = (answer(&mut switch, at(20), 1), answer(&mut switch, at(20), 2));
    assert_eq!((first.about.switch_epoch, grant(first).chosen()), (7, Span::ZERO));
    assert_eq!(grant(second).chosen(), params(SchedulerKind::Clock).slot * 4);
    assert_eq!(switch.counters(1).messages, 1);
}

#[test]
fn a_late_answer_comes_when_its_slot_is_near_and_the_loop_is_told_when() {
    let mut switch = switch(SchedulerKind::Late);
    ask(&mut switch, at(10), 1, CLIENT, 4);
    ask(&mut switch, at(10), 2, CLIENT, 4);
    switch.serve(at(11));
    answer(&mut switch, at(20), 1);
    assert!(departed(&mut switch, at(20), 2).is_empty(), "four slots are 50 µs, the horizon is 20");
    let due = switch.next_event();
    assert!(due > at(20) && due < at(60), "{due:?}");
    switch.serve(at(60));
    assert!(grant(answer(&mut switch, at(70), 2)).kept > Span::ZERO);
}

#[test]
fn what_was_reserved_passes_and_a_host_that_has_not_joined_gets_it_without_its_mark() {
    let mut switch = switch(SchedulerKind::Clock);
    ask(&mut switch, at(10), 1, CLIENT, 1);
    answer(&mut switch, at(20), 1);
    switch.on_frame(at(30), 1, &marked(1, 0, 1));
    let plain = [&mac(CLIENT)[..], &mac(1), &[8, 0], &[0x5a; 1_500]].concat();
    assert_eq!(departed(&mut switch, at(100), CLIENT), [plain]);
    assert_eq!(switch.reservations().unwrap().counters().reserved, 1);
    // Once it has asked for something itself, it gets them as they are.
    ask(&mut switch, at(200), CLIENT, 2, 1);
    answer(&mut switch, at(210), CLIENT);
    ask(&mut switch, at(300), 2, CLIENT, 1);
    answer(&mut switch, at(310), 2);
    switch.on_frame(at(320), 2, &marked(2, 0, 1));
    assert_eq!(departed(&mut switch, at(400), CLIENT), [marked(2, 0, 1)]);
}

#[test]
fn frames_that_nobody_reserved_are_cut_at_their_senders_expense() {
    let mut switch = switch(SchedulerKind::Clock);
    // Far more than may go unsolicited.
    (0..40).for_each(|_| switch.on_frame(at(10), 3, &marked(3, 0, 1)));
    let passed = departed(&mut switch, at(10_000), CLIENT).len();
    let cut = departed(&mut switch, at(10_000), 3).len();
    assert!((1..=17).contains(&passed), "{passed}");
    assert_eq!((passed + cut, switch.counters(3).policed), (40, cut as u64));
    assert_eq!(switch.counters(CLIENT).dropped, 0);
}

#[test]
fn a_host_that_has_not_joined_is_held_to_its_share_and_the_bound_includes_it() {
    let tenth = RackParams { ingress_share: Prob::literal(0.1), ..params(SchedulerKind::Clock) };
    let mut switch = switch_with(tenth);
    let plain = |from: usize| [&mac(CLIENT)[..], &mac(from), &[8, 0], &[0x5a; 1_500]].concat();
    // Hosts 2 and 3 send to the client as fast as their cables carry, while host 1 reserves whatever it can.
    let (mut now, mut reserved, mut granted) = (at(0), 0, None);
    for step in 0..4_000 {
        now = at(10) + Span::from_ps(u64::from(step) * 12_304_000);
        [2, 3].into_iter().for_each(|host| switch.on_frame(now, host, &plain(host)));
        granted = match granted {
            None => {
                let id = BurstId { host_epoch: 3, context: 0, burst: step };
                let message = ReserveMessage { verb: ReserveVerb::Rsv, about: Reservation { id, ..about(CLIENT, 4) } };
                switch.on_frame(now, 1, &frame(1, CLIENT, &ReserveHeader::Message(message), &[]));
                let heard = now + Span::from_us(1);
                Some((id, heard + grant(answer(&mut switch, heard, 1)).chosen()))
            }
            Some((id, start)) if start <= now => {
                for index in 0..4 {
                    let mark = DataMark { id, switch_epoch: 7, index, of: 4, ..DataMark::default() };
                    let body = [&[8, 0][..], &[0x5a; 1_500]].concat();
                    switch.on_frame(now, 1, &frame(1, CLIENT, &ReserveHeader::Mark(mark), &body));
                }
                reserved += 4;
                None
            }
            waiting => waiting,
        };
        switch.serve(now);
    }
    departed(&mut switch, now + Span::from_ms(10), CLIENT);
    let counters = *switch.reservations().unwrap().counters();
    assert_eq!((counters.reserved, switch.counters(CLIENT).dropped), (reserved, 0));
    let seconds = now.since(at(10)).as_secs();
    let share = counters.unreserved as f64 * 1_538.0 * 8.0 / (seconds * 1e9);
    assert!((0.095..0.11).contains(&share), "{share}");
    let policed = [1, 2, 3].map(|host| switch.counters(host).policed);
    assert!(policed[0] == 0 && policed[1] > 3_000 && policed[2] > 3_000, "{policed:?}");
    assert!(reserved > 2_000, "{reserved} frames of host 1 in {seconds} s");
    assert!(switch.occupancy(CLIENT).1 <= tenth.bound(3).total().get());
}

#[test]
fn a_host_of_another_version_is_not_answered_and_its_frames_pass_as_they_are() {
    let mut switch = switch(SchedulerKind::Clock);
    let other_version = |mut frame: Vec<u8>| {
        frame[19] = 0x20 | frame[19] & 0x0f;
        frame
    };
    let message = ReserveMessage { verb: ReserveVerb::Rsv, about: about(CLIENT, 1) };
    let asked = other_version(frame(1, CLIENT, &ReserveHeader::Message(message), &[]));
    switch.on_frame(at(10), 1, &asked);
    assert!(departed(&mut switch, at(20), 1).is_empty(), "no answer: the host goes on without reservations");
    let data = other_version(marked(1, 0, 1));
    switch.on_frame(at(30), 1, &data);
    assert_eq!(departed(&mut switch, at(100), CLIENT), [asked, data]);
    let counters = switch.reservations().unwrap().counters();
    assert_eq!((switch.counters(1).messages, counters.rsvs, counters.unreserved), (0, 0, 2));
    // It counts as one that has not joined: marks of this version are taken off before it gets a frame.
    let mut to_it = marked(2, 0, 1);
    to_it[..6].copy_from_slice(&mac(1));
    switch.on_frame(at(200), 2, &to_it);
    assert_eq!(departed(&mut switch, at(300), 1), [[&mac(1)[..], &mac(2), &[8, 0], &[0x5a; 1_500]].concat()]);
}

#[test]
fn a_mark_with_a_message_or_another_mark_inside_is_refused() {
    let mut switch = switch(SchedulerKind::Late);
    // The rest of the frame, once the mark is removed, for a host that has not joined.
    let grant = ReserveMessage { verb: ReserveVerb::Grt(Grant::default()), about: about(1, 1) };
    let mark = DataMark { id: about(0, 1).id, switch_epoch: 7, index: 0, of: 1, ..DataMark::default() };
    for inner in [ReserveHeader::Message(grant), ReserveHeader::Mark(mark)] {
        let mut inside = OUI_EXTENDED.to_be_bytes().to_vec();
        inner.emit(&mut inside);
        switch.on_frame(at(10), 2, &frame(2, 1, &ReserveHeader::Mark(mark), &inside));
    }
    assert!(departed(&mut switch, at(1_000), 1).is_empty());
    assert_eq!(switch.counters(2).malformed, 2);
    // Another organization's frames are not ours to judge.
    let other = [&OUI_EXTENDED.to_be_bytes()[..], &[0xaa; 40]].concat();
    switch.on_frame(at(2_000), 2, &frame(2, 1, &ReserveHeader::Mark(mark), &other));
    assert_eq!(departed(&mut switch, at(3_000), 1).len(), 1);
}

#[test]
fn ports_of_unequal_rates_are_refused_before_anything_runs() {
    let port = |rate| PortConfig {
        name: "p".to_owned(),
        rate,
        buffer: Bytes::new(128_000),
        longest: FULL + 29,
        trusts_priority: false,
    };
    let config = SwitchConfig {
        name: "switch0".to_owned(),
        ports: [1, 1, 1, 10].map(|gbps| port(Rate::gbps(gbps))).into(),
        aging: Span::from_ms(300_000),
        bound: Vec::new(),
        reserve: Some(params(SchedulerKind::Late)),
    };
    let refused = RackSwitch::new(config, Vec::new()).unwrap_err().to_string();
    assert_eq!(refused, "rate: a port has 10G, another 1G; expected ports of one rate");
}

#[test]
fn a_demand_that_makes_no_sense_is_refused_with_its_reason() {
    for (to, frames, reason) in [(9, 1, Refusal::UnknownPort), (1, 1, Refusal::OwnPort), (0, 50, Refusal::AboveLimit)] {
        let mut switch = switch(SchedulerKind::Late);
        ask(&mut switch, at(10), 1, to, frames);
        assert_eq!(answer(&mut switch, at(20), 1).verb, ReserveVerb::Refused(reason));
    }
}

#[test]
fn a_host_whose_cable_is_pulled_out_leaves_nothing_reserved() {
    for scheduler in [SchedulerKind::Departure, SchedulerKind::Late, SchedulerKind::Clock] {
        let mut switch = switch(scheduler);
        ask(&mut switch, at(10), 1, CLIENT, 4);
        switch.serve(at(11));
        answer(&mut switch, at(20), 1);
        switch.port_down(1);
        let reserving = switch.reservations().unwrap();
        let left = reserving.reserved(at(1_000), CLIENT as u16);
        assert_eq!((left.send, left.recv, left.counted), (Span::ZERO, Span::ZERO, (0, 0)), "{scheduler:?}");
    }
}

proptest! {
    #[test]
    fn any_bytes_behind_our_type_are_read_without_a_panic_and_buffers_hold(
        frames in prop::collection::vec((0..40_u64, 0..4_usize, 0..5_usize, prop::collection::vec(any::<u8>(), 0..70), 0..12_u8), 0..100),
        scheduler in 0..4_usize,
    ) {
        let mut switch = switch(SchedulerKind::ALL[scheduler]);
        let mut now = 10;
        for (gap, port, to, bytes, kind) in &frames {
            now += gap;
            // With our prefix, any kind and any rest; half of them as long as a message.
            let mut body = [&[0x02, 0x68, 0x69, 0x00, 0x02, 0x10 | kind][..], bytes].concat();
            if gap % 2 == 0 {
                body.resize(46, *kind);
            }
            let head = [&mac(*to)[..], &mac(*port), &OUI_EXTENDED.to_be_bytes()].concat();
            switch.on_frame(at(now), *port, &[head, body].concat());
            switch.serve(at(now));
            for port in 0..4 {
                prop_assert!(switch.occupancy(port).0 <= 128_000);
            }
        }
        (0..4).for_each(|port| _ = departed(&mut switch, at(now + 1_000_000), port));
        prop_assert!((0..4).all(|port| switch.occupancy(port).0 == 0));
    }
}
