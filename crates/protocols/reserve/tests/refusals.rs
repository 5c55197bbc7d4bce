//! A host reacts to refusals of the switch.

mod common;

use common::{Frame, key};
use machine::{Machine, Pull, QueueId};
use reserve::host::HOST_WIRE;
use reserve::{HostCommand, HostParams, HostTimer, RackParams, ReservePacket, ReservingHost, SchedulerKind};
use testkit::{RecordedAction, Recorder};
use units::{Rate, Span, Time};
use wire::reserve::{Refusal, Reservation, ReserveMessage, ReserveVerb};

type Host = ReservingHost<Frame>;

fn rack() -> RackParams {
    RackParams { contexts: 1, ..RackParams::new(SchedulerKind::Clock, 6, Rate::gbps(100)) }
}

/// A host with one frame whose RSV has just left.
fn asking() -> (Host, Recorder<Host>, Reservation) {
    let mut host = Host::new(rack(), HostParams::new(key(0), 1, &rack())).expect("parameters");
    let mut out = Recorder::default();
    out.above[0].push_back(Frame { from: 0, to: 5, lane: 0, number: 1, len: 1_518, class: 0, reserves: true });
    host.on_command(Time::ZERO, HostCommand::Queued(QueueId(0)), &mut out);
    let Some(ReservePacket::Message(ReserveMessage { verb: ReserveVerb::Rsv, about })) = sent(&mut host, &mut out, 0)
    else {
        panic!("no RSV")
    };
    (host, out, about)
}

/// Packet that leaves at this time.
fn sent(host: &mut Host, out: &mut Recorder<Host>, us: u64) -> Option<ReservePacket<Frame>> {
    out.acts();
    if host.pull(at(us), HOST_WIRE, out) != Pull::Sent {
        return None;
    }
    out.acts().into_iter().find_map(|act| match act {
        RecordedAction::Transmit(packet) => Some(packet),
        _ => None,
    })
}

fn at(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

fn refuse(host: &mut Host, out: &mut Recorder<Host>, about: Reservation, reason: Refusal) {
    let about = Reservation { switch_epoch: 4, ..about };
    let message = ReserveMessage { verb: ReserveVerb::Refused(reason), about };
    host.on_frame(at(1), HOST_WIRE, ReservePacket::Message(message), out);
}

#[test]
fn a_burst_that_can_never_be_reserved_goes_without_a_mark() {
    use Refusal::{AboveLimit, ForeignSource, OwnPort, UnknownContext, UnknownPort};
    for reason in [AboveLimit, UnknownPort, OwnPort, ForeignSource, UnknownContext] {
        let (mut host, mut out, about) = asking();
        refuse(&mut host, &mut out, about, reason);
        let packet = sent(&mut host, &mut out, 1);
        assert!(matches!(packet, Some(ReservePacket::Data { mark: None, .. })), "{reason:?}: {packet:?}");
        assert_eq!((host.counters().refused, host.held_frames()), (1, 0));
        assert!(host.is_guaranteed(), "the switch answers");
    }
}

#[test]
fn a_switch_that_has_restarted_is_asked_again_at_once_and_by_its_new_epoch() {
    let (mut host, mut out, about) = asking();
    refuse(&mut host, &mut out, about, Refusal::OldEpoch);
    let Some(ReservePacket::Message(again)) = sent(&mut host, &mut out, 1) else { panic!("no RSV") };
    let expected = Reservation { switch_epoch: 4, attempt: 1, ..about };
    assert_eq!(again, ReserveMessage { verb: ReserveVerb::Rsv, about: expected });
}

#[test]
fn a_switch_with_too_many_reservations_is_asked_again_after_the_timeout() {
    let (mut host, mut out, about) = asking();
    refuse(&mut host, &mut out, about, Refusal::TooMany);
    assert_eq!(sent(&mut host, &mut out, 1), None);
    host.on_timer(at(100), HostTimer::Deadline, &mut out);
    let packet = sent(&mut host, &mut out, 100);
    assert!(matches!(packet, Some(ReservePacket::Message(again)) if again.about.attempt == 1), "{packet:?}");
}

#[test]
fn a_refusal_of_another_burst_or_attempt_changes_nothing() {
    let (mut host, mut out, about) = asking();
    let mut other = about;
    other.id.burst += 1;
    for stale in [Reservation { attempt: 3, ..about }, other] {
        refuse(&mut host, &mut out, stale, Refusal::UnknownPort);
        assert_eq!(sent(&mut host, &mut out, 1), None);
    }
    assert_eq!((host.counters().refused, host.counters().stale), (0, 2));
}

#[test]
fn a_reserved_frame_that_is_cut_is_lost_and_counted() {
    let (mut host, mut out, about) = asking();
    let about = Reservation { switch_epoch: 4, ..about };
    let hear = |host: &mut Host, out: &mut Recorder<Host>, verb| {
        host.on_frame(at(1), HOST_WIRE, ReservePacket::Message(ReserveMessage { verb, about }), out);
    };
    hear(&mut host, &mut out, ReserveVerb::Grt(Default::default()));
    assert!(matches!(sent(&mut host, &mut out, 1), Some(ReservePacket::Data { mark: Some(_), .. })));
    hear(&mut host, &mut out, ReserveVerb::Cut(0));
    assert_eq!((host.counters().lost, host.counters().stale), (1, 0), "no copy of it was kept");
}
