//! Congestion control in RDMA connections, packet by packet.

use congestion::{ControlSite, ControllerConfig, DcqcnConfig, FixedRateConfig, RdmaControl};
use machine::{Machine, Pull};
use roce::{AckSyndrome, MessagePart, Qp, RoceCommand, RoceConfig, RoceOperation, RocePacket, Telemetry, Verb, WIRE};
use testkit::{RecordedAction, Recorder};
use units::{Rate, Span, Time};
use wire::ip::Ecn;

const SITE: ControlSite = ControlSite { line_rate: Rate::gbps(100), base_rtt: Span::from_us(8), mtu: 1_000, hops: 1 };

fn us(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

fn qp(congestion: ControllerConfig) -> Qp {
    let ecn = if congestion.wants_marks() { Ecn::Capable } else { Ecn::NotCapable };
    Qp::new(RoceConfig { mtu: 1_000, ack_every: 1, congestion, site: SITE, ecn, ..RoceConfig::default() })
}

/// Packet that a machine sends now, if any.
fn pull(qp: &mut Qp, now: Time) -> (Pull, Option<RocePacket>) {
    let mut out = Recorder::default();
    let pull = qp.pull(now, WIRE, &mut out);
    let sent = out.acts().into_iter().find_map(|act| match act {
        RecordedAction::Transmit(packet) => Some(packet),
        _ => None,
    });
    (pull, sent)
}

fn post(qp: &mut Qp, bytes: u64) {
    qp.on_command(Time::ZERO, RoceCommand::Post { verb: Verb::Write, bytes }, &mut Recorder::default());
}

#[test]
fn a_marked_packet_causes_a_notification_before_its_acknowledgement_and_no_second_one_too_early() {
    let dcqcn = ControllerConfig::Dcqcn(DcqcnConfig::VENDOR);
    let (mut sender, mut receiver) = (qp(dcqcn), qp(dcqcn));
    post(&mut sender, 2_000);
    for (now, expected) in [(us(5), true), (us(20), false)] {
        let (_, data) = pull(&mut sender, now);
        let data = RocePacket { ecn: Ecn::Experienced, ..data.unwrap() };
        receiver.on_frame(now + Span::from_us(1), WIRE, data, &mut Recorder::default());
        assert!(receiver.owes_control());
        let (_, first) = pull(&mut receiver, now + Span::from_us(1));
        let first = first.unwrap();
        assert_eq!(first.opcode == RoceOperation::Notification, expected);
        let ack = if expected { pull(&mut receiver, now + Span::from_us(1)).1.unwrap() } else { first };
        assert_eq!(ack.opcode, RoceOperation::Acknowledge(AckSyndrome::Ack));
        assert_eq!((ack.congestion.marked, ack.congestion.sent_at), (1, Some(now)));
        assert_eq!(ack.congestion.one_way, Span::from_us(1));
    }
}

#[test]
fn a_notification_slows_its_receiver_down_and_marks_without_one_do_not() {
    let mut sender = qp(ControllerConfig::Dcqcn(DcqcnConfig::VENDOR));
    post(&mut sender, 100_000);
    pull(&mut sender, us(1));
    let before = sender.controller().rate();
    let notification =
        RocePacket { opcode: RoceOperation::Notification, ..pull(&mut sender, us(2)).1.expect("a second packet") };
    sender.on_frame(us(3), WIRE, notification, &mut Recorder::default());
    pull(&mut sender, us(20));
    assert!(sender.controller().rate() < before, "{before:?} before, {:?} now", sender.controller().rate());
}

#[test]
fn a_pace_holds_packets_back_but_not_acknowledgements() {
    let fixed = ControllerConfig::Fixed(FixedRateConfig { rate: Some(Rate::gbps(1)) });
    let (mut sender, mut peer) = (qp(fixed), qp(ControllerConfig::None));
    post(&mut sender, 10_000);
    let (_, first) = pull(&mut sender, us(1));
    let wire = first.unwrap().wire_bytes();
    let until = us(1) + Rate::gbps(1).span_of(wire);
    assert_eq!(pull(&mut sender, us(2)), (Pull::NotBefore(until), None));
    post(&mut peer, 100);
    let (_, request) = pull(&mut peer, us(2));
    sender.on_frame(us(3), WIRE, request.unwrap(), &mut Recorder::default());
    let (_, ack) = pull(&mut sender, us(3));
    assert_eq!(ack.unwrap().opcode, RoceOperation::Acknowledge(AckSyndrome::Ack));
    assert_eq!(pull(&mut sender, until).1.unwrap().opcode, RoceOperation::Write(MessagePart::Middle));
}

#[test]
fn data_of_hpcc_collects_telemetry_and_its_acknowledgement_returns_it() {
    let hpcc = ControllerConfig::Hpcc(congestion::HpccConfig::default());
    let (mut sender, mut receiver) = (qp(hpcc), qp(hpcc));
    post(&mut sender, 1_000);
    let data = pull(&mut sender, us(1)).1.unwrap();
    assert_eq!((data.congestion.telemetry, data.frame_len()), (Telemetry::Collects, 1_000 + 62 + 16 + 42));
    receiver.on_frame(us(2), WIRE, data, &mut Recorder::default());
    let ack = pull(&mut receiver, us(2)).1.unwrap();
    assert_eq!((ack.congestion.telemetry, ack.frame_len()), (Telemetry::Returns, 68 + 42));
}

#[test]
fn a_window_of_bytes_lets_one_packet_overshoot() {
    // W_init is what 1 Gb/s carries in 8 µs: 1,000 bytes. Two packets of 600 are more.
    let site = ControlSite { line_rate: Rate::gbps(1), mtu: 600, ..SITE };
    let hpcc = ControllerConfig::Hpcc(congestion::HpccConfig::default());
    let mut sender = Qp::new(RoceConfig { mtu: 600, ack_every: 1, congestion: hpcc, site, ..RoceConfig::default() });
    post(&mut sender, 6_000);
    let later = |packets: u64| us(1) + Span::from_us(20) * packets;
    assert!(pull(&mut sender, later(0)).1.is_some() && pull(&mut sender, later(1)).1.is_some());
    assert_eq!(pull(&mut sender, later(2)), (Pull::Idle, None), "1,200 bytes are under way");
}
