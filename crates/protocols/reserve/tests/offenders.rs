//! Offending packets from the wire are refused or policed, counted, and at the expense of the offender alone.
//!
//! Four hosts send to one. The fifth sends nothing that the rules allow. The four are done as soon as beside a fifth one that
//! sends all it can by the rules, lose nothing, and the port queues no more than is promised.

mod common;

use common::{Frame, Packet, Rack, key};
use reserve::{RackParams, ReservePacket, SchedulerKind, SwitchCounters};
use units::{Rate, Span, Time};
use wire::reserve::{BurstId, DataMark, Demand, Reservation, ReserveMessage, ReserveVerb};

const BOUNDED: [SchedulerKind; 3] = [SchedulerKind::Departure, SchedulerKind::Clock, SchedulerKind::Late];
const OFFENDER: u16 = 4;
const RECEIVER: u16 = 5;

fn rack(kind: SchedulerKind) -> Rack {
    let mut rack = Rack::new(RackParams { contexts: 4, t: 0, ..RackParams::new(kind, 6, Rate::gbps(100)) });
    for from in 0..4 {
        (0..4).for_each(|lane| rack.queue(from, RECEIVER, lane, 40));
    }
    rack
}

/// Microseconds until the four are done; `offend` is called four times in each.
fn duration(rack: &mut Rack, mut offend: impl FnMut(&mut Rack, u32)) -> u64 {
    let mut us = 0;
    while rack.delivered(RECEIVER).iter().filter(|frame| frame.from < 4).count() < 4 * 4 * 40 {
        assert!(us < 2_000, "the others are not done");
        rack.run(Time::ZERO + Span::from_us(us));
        (0..4).for_each(|step| offend(rack, us as u32 * 4 + step));
        us += 1;
    }
    us
}

fn beside_a_greedy_host(kind: SchedulerKind) -> u64 {
    let mut rack = rack(kind);
    (0..4).for_each(|lane| rack.queue(OFFENDER, RECEIVER, lane, 1_000));
    duration(&mut rack, |_, _| ())
}

/// The offence harms nobody, and is counted here.
fn harms_nobody(offend: impl Fn(&mut Rack, u32), counted: impl Fn(&SwitchCounters) -> u64) {
    for kind in BOUNDED {
        let mut rack = rack(kind);
        let took = duration(&mut rack, |rack, step| offend(rack, step));
        let greedy = beside_a_greedy_host(kind);
        assert!(took * 10 <= greedy * 11, "{kind:?}: {took} µs, and {greedy} beside a host that keeps the rules");
        assert!(counted(rack.switch.counters()) > 0, "{kind:?}: {:?}", rack.switch.counters());
        rack.check_bound(5);
    }
}

fn rsv(burst: u32, context: u16, frames: u8, to: u16) -> Reservation {
    let id = BurstId { host_epoch: 1, context, burst };
    Reservation {
        id,
        peer: key(to),
        demand: Demand { frames, bytes: u32::from(frames) * 1_538 },
        ..Reservation::default()
    }
}

fn ask(rack: &mut Rack, about: Reservation) {
    ask_as(rack, OFFENDER, about);
}

fn ask_as(rack: &mut Rack, source: u16, about: Reservation) {
    let message = ReserveMessage { verb: ReserveVerb::Rsv, about };
    rack.forge(OFFENDER, source, ReservePacket::Message(message));
}

fn data(rack: &mut Rack, about: Reservation, switch_epoch: u16) {
    let mark = DataMark { id: about.id, switch_epoch, of: 4, ..DataMark::default() };
    let body = Frame { from: OFFENDER, to: RECEIVER, lane: 0, number: 0, len: 1_518, class: 0, reserves: true };
    rack.forge(OFFENDER, OFFENDER, Packet::Data { mark: Some(mark), body });
}

#[test]
fn a_demand_above_k_is_refused() {
    harms_nobody(|rack, step| ask(rack, rsv(step, 0, 5, RECEIVER)), |counters| counters.above_limit);
}

#[test]
fn a_demand_of_more_bytes_than_k_frames_have_is_refused() {
    let large = |step| Reservation { demand: Demand { frames: 1, bytes: 1 << 20 }, ..rsv(step, 0, 1, RECEIVER) };
    harms_nobody(|rack, step| ask(rack, large(step)), |counters| counters.above_limit);
}

#[test]
fn a_demand_for_a_port_that_is_not_there_is_refused() {
    harms_nobody(|rack, step| ask(rack, rsv(step, 0, 4, 6)), |counters| counters.unknown_port);
}

#[test]
fn a_demand_for_the_askers_own_port_is_refused() {
    harms_nobody(|rack, step| ask(rack, rsv(step, 0, 4, OFFENDER)), |counters| counters.own_port);
}

#[test]
fn a_context_that_there_is_no_room_for_is_refused() {
    harms_nobody(|rack, step| ask(rack, rsv(step, 4, 4, RECEIVER)), |counters| counters.unknown_context);
}

#[test]
fn a_source_address_of_another_port_is_refused() {
    harms_nobody(|rack, step| ask_as(rack, 2, rsv(step, 0, 4, RECEIVER)), |counters| counters.foreign_source);
}

#[test]
fn an_rsv_of_an_old_epoch_is_refused() {
    let old = |step| Reservation { switch_epoch: 77, ..rsv(step, 0, 4, RECEIVER) };
    harms_nobody(|rack, step| ask(rack, old(step)), |counters| counters.old_epoch);
}

/// Every one of them is for another burst, and none is ever used.
#[test]
fn rsvs_without_end_get_the_share_of_one_host() {
    let offend = |rack: &mut Rack, step: u32| (0..4).for_each(|context| ask(rack, rsv(step + 1, context, 4, RECEIVER)));
    harms_nobody(offend, |counters| counters.rsvs);
}

#[test]
fn data_that_was_never_reserved_is_cut() {
    harms_nobody(
        |rack, step| data(rack, rsv(step, 0, 4, RECEIVER), 1),
        |counters| counters.uncovered.min(counters.cut),
    );
}

#[test]
fn data_of_an_old_epoch_is_cut() {
    harms_nobody(|rack, step| data(rack, rsv(step, 0, 4, RECEIVER), 77), |counters| counters.uncovered);
}

/// It asks as it should, and does not wait for its slot.
#[test]
fn data_before_its_slot_is_cut() {
    let offend = |rack: &mut Rack, step: u32| {
        ask(rack, rsv(step + 1, 0, 4, RECEIVER));
        data(rack, rsv(step + 1, 0, 4, RECEIVER), 1);
    };
    harms_nobody(offend, |counters| counters.early.min(counters.cut));
}

#[test]
fn what_only_switches_say_is_ignored() {
    let offend = |rack: &mut Rack, step: u32| {
        let verbs = [ReserveVerb::Grt(Default::default()), ReserveVerb::Copy(Default::default()), ReserveVerb::Cut(0)];
        let message = ReserveMessage { verb: verbs[step as usize % 3], about: rsv(step, 0, 4, RECEIVER) };
        rack.forge(OFFENDER, OFFENDER, ReservePacket::Message(message));
    };
    harms_nobody(offend, |counters| counters.nonsense);
}
