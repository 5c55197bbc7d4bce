//! Police and identities, for all schedulers; and what their own tests share.

use units::Rate;
use wire::reserve::{BurstId, DataMark};

use super::*;

pub(super) fn params(scheduler: SchedulerKind) -> RackParams {
    RackParams::new(scheduler, 6, Rate::gbps(100))
}

pub(super) fn touches() -> PortTouches {
    let pass = PipelinePass::begin();
    PortTouches { input: pass.input, output: pass.output }
}

pub(super) fn frame(from: u16, to: u16) -> FrameVisit {
    FrameVisit { from, to, len: 1_518 }
}

pub(super) fn admitted_in_class(from: u16, to: u16, frames: u8, class: u8) -> AdmittedRsv {
    let about = Reservation { class, ..rsv(1, 0, frames).about };
    AdmittedRsv { from, to, context: u32::from(from) * 12, token: 0, asked: Time::ZERO, about, unused: None }
}

pub(super) fn admitted(from: u16, to: u16, frames: u8) -> AdmittedRsv {
    admitted_in_class(from, to, frames, 0)
}

fn rsv(burst: u32, context: u16, frames: u8) -> ReserveMessage {
    let demand = Demand { frames, bytes: u32::from(frames) * 1_538 };
    let id = BurstId { host_epoch: 7, context, burst };
    ReserveMessage { verb: ReserveVerb::Rsv, about: Reservation { id, demand, ..Reservation::default() } }
}

fn at(from: u16, to: u16) -> MessageVisit {
    MessageVisit { from, peer: Some(to), source: Some(from), token: u64::from(from) }
}

fn mark(switch: &ReservingSwitch, burst: u32, context: u16) -> DataMark {
    let id = BurstId { host_epoch: 7, context, burst };
    DataMark { id, switch_epoch: switch.epoch(), of: 4, ..DataMark::default() }
}

fn switches() -> impl Iterator<Item = ReservingSwitch> {
    SchedulerKind::ALL.into_iter().map(switch)
}

fn switch(kind: SchedulerKind) -> ReservingSwitch {
    ReservingSwitch::new(params(kind), 9).expect("parameters")
}

/// The schedulers that match frames with reservations.
fn tracking() -> impl Iterator<Item = ReservingSwitch> {
    switches().filter(|switch| switch.scheduler.tracks())
}

fn wait(answer: MessageAnswer) -> Span {
    match answer {
        MessageAnswer::Reply(ReserveMessage { verb: ReserveVerb::Grt(grant), .. }) => grant.chosen(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn rsvs_that_make_no_sense_are_refused_with_a_reason_and_counted() {
    for mut switch in switches() {
        let mut refused = |at: MessageVisit, message: ReserveMessage| {
            let MessageAnswer::Reply(reply) = switch.on_message(Time::ZERO, at, &message) else { panic!("no reply") };
            assert_eq!(reply.about.switch_epoch, 9, "a host that asks learns the epoch");
            match reply.verb {
                ReserveVerb::Refused(reason) => reason,
                other => panic!("{other:?}"),
            }
        };
        let with_epoch =
            |switch_epoch| ReserveMessage { about: Reservation { switch_epoch, ..rsv(1, 0, 4).about }, ..rsv(1, 0, 4) };
        assert_eq!(refused(at(0, 5), rsv(1, 0, 5)), Refusal::AboveLimit);
        assert_eq!(refused(at(0, 5), rsv(1, 0, 0)), Refusal::AboveLimit);
        assert_eq!(refused(at(0, 6), rsv(1, 0, 4)), Refusal::UnknownPort);
        assert_eq!(refused(MessageVisit { peer: None, ..at(0, 5) }, rsv(1, 0, 4)), Refusal::UnknownPort);
        assert_eq!(refused(at(0, 0), rsv(1, 0, 4)), Refusal::OwnPort);
        assert_eq!(refused(MessageVisit { source: Some(1), ..at(0, 5) }, rsv(1, 0, 4)), Refusal::ForeignSource);
        assert_eq!(refused(at(0, 5), rsv(1, 12, 4)), Refusal::UnknownContext);
        assert_eq!(refused(at(0, 5), with_epoch(8)), Refusal::OldEpoch);
        assert_eq!(switch.counters().above_limit, 2);
        assert_eq!(switch.reserved(Time::ZERO, 5), PortReservation::default());
        assert_eq!(wait(switch.on_message(Time::ZERO, at(0, 5), &with_epoch(9))), Span::ZERO);
    }
}

#[test]
fn a_repeated_rsv_reserves_nothing_more() {
    for mut switch in tracking() {
        wait(switch.on_message(Time::ZERO, at(1, 5), &rsv(1, 0, 4)));
        let first = wait(switch.on_message(Time::ZERO, at(0, 5), &rsv(1, 0, 4)));
        let reserved = switch.reserved(Time::ZERO, 5);
        assert_eq!(wait(switch.on_message(Time::ZERO, at(0, 5), &rsv(1, 0, 4))), first);
        assert_eq!((switch.reserved(Time::ZERO, 5), switch.counters().repeated), (reserved, 1));
    }
}

#[test]
fn an_rsv_of_a_burst_that_was_sent_gets_no_answer() {
    for mut switch in tracking() {
        for burst in 1..3 {
            wait(switch.on_message(Time::ZERO, at(0, 5), &rsv(burst, 0, 1)));
            let mark = mark(&switch, burst, 0);
            assert!(matches!(switch.on_data(Time::ZERO, frame(0, 5), Some(&mark)), DataAnswer::Pass(_)));
        }
        for burst in 1..3 {
            assert_eq!(switch.on_message(Time::ZERO, at(0, 5), &rsv(burst, 0, 1)), MessageAnswer::Done);
        }
        assert_eq!(switch.counters().stale, 2);
    }
}

#[test]
fn a_host_that_restarts_may_begin_its_numbers_again() {
    for mut switch in tracking() {
        wait(switch.on_message(Time::ZERO, at(0, 5), &rsv(100, 0, 4)));
        let mut again = rsv(1, 0, 4);
        again.about.id.host_epoch = 8;
        wait(switch.on_message(Time::ZERO, at(0, 5), &again));
    }
}

/// Port 5 is reserved for 32 slots; the ports of others are free.
fn fill(switch: &mut ReservingSwitch) {
    for context in 0..8 {
        switch.on_message(Time::ZERO, at(1, 5), &rsv(1, context, 4));
    }
}

#[test]
fn frames_that_were_never_reserved_or_come_early_are_cut_while_others_have_the_port() {
    for mut switch in tracking() {
        fill(&mut switch);
        let never = mark(&switch, 1, 3);
        let answer = switch.on_data(Time::ZERO, frame(0, 5), Some(&never));
        let DataAnswer::Cut(message) = answer else { panic!("{answer:?}") };
        assert_eq!((message.verb, message.about.id), (ReserveVerb::Cut(0), never.id));

        switch.on_message(Time::ZERO, at(0, 5), &rsv(1, 0, 4));
        let early = mark(&switch, 1, 0);
        assert!(matches!(switch.on_data(Time::ZERO, frame(0, 5), Some(&early)), DataAnswer::Cut(_)));
        assert_eq!((switch.counters().early, switch.counters().uncovered, switch.counters().cut), (1, 1, 2));

        let old = DataMark { switch_epoch: 3, ..early };
        assert!(matches!(switch.on_data(Time::ZERO, frame(0, 5), Some(&old)), DataAnswer::Cut(_)), "of another run");
    }
}

#[test]
fn a_reserved_frame_passes_however_late_it_comes_and_only_as_often_as_reserved() {
    for mut switch in tracking() {
        wait(switch.on_message(Time::ZERO, at(0, 5), &rsv(1, 0, 2)));
        fill(&mut switch);
        let late = Time::ZERO + Span::from_ns(500);
        let mark = mark(&switch, 1, 0);
        let passed = [0, 1, 2].map(|index| {
            let mark = DataMark { index, ..mark };
            matches!(switch.on_data(late, frame(0, 5), Some(&mark)), DataAnswer::Pass(_))
        });
        assert_eq!(passed, [true, true, false], "{:?}", switch.params().scheduler);
    }
}

#[test]
fn a_frame_that_comes_twice_uses_one_slot() {
    for mut switch in tracking() {
        wait(switch.on_message(Time::ZERO, at(0, 5), &rsv(1, 0, 2)));
        fill(&mut switch);
        let mark = mark(&switch, 1, 0);
        let passed = [0, 0, 1, 200].map(|index| {
            let mark = DataMark { index, ..mark };
            matches!(switch.on_data(Time::ZERO, frame(0, 5), Some(&mark)), DataAnswer::Pass(_))
        });
        assert_eq!(passed, [true, false, true, false], "{:?}", switch.params().scheduler);
        assert_eq!(switch.counters().uncovered, 2);
    }
}

/// The host may have heard the first answer and sent already: with a second slot its frames would be early.
#[test]
fn an_rsv_that_comes_again_after_its_slot_gets_the_same_slot() {
    for mut switch in tracking() {
        wait(switch.on_message(Time::ZERO, at(0, 5), &rsv(1, 0, 4)));
        let later = Time::ZERO + Span::from_us(50);
        for context in 0..8 {
            switch.on_message(later, at(1, 5), &rsv(1, context, 4));
        }
        assert_eq!(wait(switch.on_message(later, at(0, 5), &rsv(1, 0, 4))), Span::ZERO);
        let mark = mark(&switch, 1, 0);
        assert!(matches!(switch.on_data(later, frame(0, 5), Some(&mark)), DataAnswer::Pass(_)));
        assert_eq!((switch.counters().repeated, switch.counters().early), (1, 0));
    }
}

#[test]
fn a_frame_that_is_cut_because_it_is_early_leaves_its_reservation_to_be_given_back() {
    let mut switch = switch(SchedulerKind::Departure);
    fill(&mut switch);
    switch.on_message(Time::ZERO, at(0, 5), &rsv(1, 0, 1));
    let early = mark(&switch, 1, 0);
    assert!(matches!(switch.on_data(Time::ZERO, frame(0, 5), Some(&early)), DataAnswer::Cut(_)));
    switch.on_port_down(0, |_| ());
    switch.on_port_down(1, |_| ());
    assert_eq!(switch.reserved(Time::ZERO, 5).counted, (0, 0));
}

#[test]
fn slots_at_a_port_stay_taken_when_its_host_goes_down() {
    for kind in [SchedulerKind::Clock, SchedulerKind::Late] {
        let mut switch = switch(kind);
        wait(switch.on_message(Time::ZERO, at(0, 5), &rsv(1, 0, 4)));
        switch.on_port_down(5, |_| ());
        let next = wait(switch.on_message(Time::ZERO, at(1, 5), &rsv(1, 0, 4)));
        assert_eq!(next, params(kind).slot * 4, "{kind:?}: the first burst is on its way");
    }
}

#[test]
fn behind_a_cut_frame_all_unsolicited_ones_are_cut_until_a_reserved_one_comes() {
    for mut switch in tracking() {
        fill(&mut switch);
        let unsolicited = DataMark { unsolicited: true, ..mark(&switch, 1, 0) };
        let later = Time::ZERO + Span::from_us(100);
        assert!(matches!(switch.on_data(Time::ZERO, frame(0, 5), Some(&unsolicited)), DataAnswer::Cut(_)));
        switch.on_port_down(1, |_| ());
        assert!(matches!(switch.on_data(later, frame(0, 5), Some(&unsolicited)), DataAnswer::Cut(_)));
        wait(switch.on_message(later, at(0, 4), &rsv(2, 0, 1)));
        let reserved = mark(&switch, 2, 0);
        assert!(matches!(switch.on_data(later, frame(0, 4), Some(&reserved)), DataAnswer::Pass(_)));
        assert!(matches!(switch.on_data(later, frame(0, 5), Some(&unsolicited)), DataAnswer::Pass(_)));
    }
}

#[test]
fn a_port_that_goes_down_leaves_nothing_reserved() {
    for mut switch in tracking() {
        for context in 0..12 {
            let message = rsv(1, context, 4);
            switch.on_message(Time::ZERO, at(0, 5), &message);
        }
        let mut dropped = Vec::new();
        switch.on_port_down(0, |token| dropped.push(token));
        assert_eq!((switch.reserved(Time::ZERO, 0).counted, switch.reserved(Time::ZERO, 5).counted), ((0, 0), (0, 0)));
        assert_eq!(dropped.is_empty(), switch.params().scheduler != SchedulerKind::Late);
        assert_eq!(switch.reserved(Time::ZERO, 0), PortReservation::default());
        assert_eq!(switch.on_wake(Time::ZERO + Span::from_us(100)), None);
    }
}

#[test]
fn what_is_given_back_is_not_counted() {
    let mut switch = switch(SchedulerKind::Departure);
    wait(switch.on_message(Time::ZERO, at(0, 5), &rsv(1, 0, 4)));
    let release = ReserveMessage { verb: ReserveVerb::Release, ..rsv(1, 0, 4) };
    for _ in 0..2 {
        assert_eq!(switch.on_message(Time::ZERO, at(0, 5), &release), MessageAnswer::Done);
    }
    assert_eq!((switch.reserved(Time::ZERO, 0).counted, switch.reserved(Time::ZERO, 5).counted), ((0, 0), (0, 0)));
}

#[test]
fn a_kept_rsv_that_is_given_back_is_never_answered() {
    let mut switch = switch(SchedulerKind::Late);
    fill(&mut switch);
    assert_eq!(switch.on_message(Time::ZERO, at(0, 5), &rsv(1, 0, 4)), MessageAnswer::Kept(None));
    let release = ReserveMessage { verb: ReserveVerb::Release, ..rsv(1, 0, 4) };
    assert_eq!(switch.on_message(Time::ZERO, at(0, 5), &release), MessageAnswer::Kept(Some(0)));
    let later = Time::ZERO + Span::from_us(100);
    while let Some(answer) = switch.on_wake(later) {
        assert_ne!(answer.port, 0);
    }
}

#[test]
fn only_a_receiver_resets_its_own_port() {
    let mut switch = switch(SchedulerKind::Paper);
    wait(switch.on_message(Time::ZERO, at(0, 5), &rsv(1, 0, 4)));
    let about = Reservation { switch_epoch: 9, ..rsv(1, 0, 4).about };
    let reset = ReserveMessage { verb: ReserveVerb::Reset, about };
    switch.on_message(Time::ZERO, at(5, 0), &reset);
    assert_eq!((switch.reserved(Time::ZERO, 0).counted, switch.reserved(Time::ZERO, 5).counted), ((0, 0), (0, 0)));
}

#[test]
fn a_context_whose_slot_is_still_to_come_gets_no_other() {
    for kind in [SchedulerKind::Clock, SchedulerKind::Late] {
        let mut switch = switch(kind);
        wait(switch.on_message(Time::ZERO, at(1, 5), &rsv(1, 0, 4)));
        let slot = wait(switch.on_message(Time::ZERO, at(0, 5), &rsv(1, 0, 4)));
        let reserved = switch.reserved(Time::ZERO, 5);
        assert_eq!(wait(switch.on_message(Time::ZERO, at(0, 5), &rsv(2, 0, 4))), slot, "the next burst takes it over");
        let elsewhere = switch.on_message(Time::ZERO, at(0, 4), &rsv(3, 0, 4));
        assert!(
            matches!(elsewhere, MessageAnswer::Reply(reply) if reply.verb == ReserveVerb::Refused(Refusal::TooMany))
        );
        assert_eq!(switch.reserved(Time::ZERO, 5), reserved, "{kind:?}");
        let over = Time::ZERO + slot;
        assert_eq!(wait(switch.on_message(over, at(0, 4), &rsv(4, 0, 4))), reserved.send.saturating_sub(slot));
    }
}
