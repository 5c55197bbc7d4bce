//! Arbitrary bytes as messages and marks of a rack. `fuzz/` has these targets, too.

#![allow(dead_code, reason = "a fuzz target calls one of the two functions")]

use machine::{Machine, Pull, QueueId};
use reserve::host::HOST_WIRE;
use reserve::{
    DataAnswer, FrameVisit, HostCommand, HostParams, MessageVisit, RackParams, ReservePacket, ReservingHost,
    ReservingSwitch, SchedulerKind,
};
use testkit::Recorder;
use units::{Rate, Span, Time};
use wire::reserve::{MESSAGE_LEN, ReserveHeader};

use crate::common::{Frame, key};

fn params(kind: SchedulerKind) -> RackParams {
    RackParams { contexts: 1, unsolicited: true, ..RackParams::new(kind, 4, Rate::gbps(100)) }
}

/// The headers among these bytes, each behind a byte that says what to do with it.
pub(crate) fn headers(bytes: &[u8], mut each: impl FnMut(u8, ReserveHeader)) {
    let mut rest = bytes;
    while let Some((&first, behind)) = rest.split_first() {
        let message = behind.split_at_checked(MESSAGE_LEN).and_then(|(message, behind)| {
            let (header, _) = ReserveHeader::parse(message).ok()?;
            matches!(header, ReserveHeader::Message(_)).then_some((header, behind))
        });
        rest = match message.or_else(|| ReserveHeader::parse(behind).ok()) {
            Some((header, behind)) => {
                each(first, header);
                behind
            }
            None => behind,
        };
    }
}

/// Gives the headers among these bytes to a switch.
pub(crate) fn switch(bytes: &[u8]) {
    for kind in SchedulerKind::ALL {
        let mut switch = ReservingSwitch::new(params(kind), 1).expect("parameters");
        let mut now = Time::ZERO;
        headers(bytes, |first, header| {
            now += Span::from_ns(u64::from(first) * 50);
            let (from, to) = (u16::from(first) % 4, u16::from(first >> 2) % 6);
            match header {
                ReserveHeader::Message(message) => {
                    let visit = MessageVisit { from, peer: Some(to), source: Some(from), token: 0 };
                    switch.on_message(now, visit, &message);
                }
                ReserveHeader::Mark(mark) => {
                    let frame = FrameVisit { from, to: to % 4, len: 64 + u32::from(first) * 6 };
                    if let DataAnswer::Pass(charge) = switch.on_data(now, frame, Some(&mark)) {
                        switch.on_gone(charge);
                    }
                }
            }
            let answers = std::iter::from_fn(|| switch.on_wake(now)).count();
            assert!(answers <= 4, "a context has one RSV");
        });
        (0..4).for_each(|port| switch.on_port_down(port, |_| ()));
        let later = now + Span::from_ms(1_000);
        while switch.on_wake(later).is_some() {}
        for port in (0..4).filter(|_| kind != SchedulerKind::Paper) {
            assert_eq!(switch.reserved(later, port), Default::default(), "{kind:?}");
        }
    }
}

/// Gives the headers among these bytes to a host.
pub(crate) fn host(bytes: &[u8]) {
    for kind in SchedulerKind::ALL {
        let rack = params(kind);
        let mut host = ReservingHost::<Frame>::new(rack, HostParams::new(key(0), 1, &rack)).expect("parameters");
        let mut out = Recorder::default();
        let mut now = Time::ZERO;
        let frame = Frame { from: 0, to: 3, lane: 0, number: 1, len: 1_518, class: 0, reserves: true };
        headers(bytes, |first, header| {
            now += Span::from_ns(u64::from(first) * 500);
            out.above[0].push_back(frame);
            host.on_command(now, HostCommand::Queued(QueueId(0)), &mut out);
            let packet = match header {
                ReserveHeader::Message(message) => ReservePacket::Message(message),
                ReserveHeader::Mark(mark) => ReservePacket::Data { mark: Some(mark), body: frame },
            };
            host.on_frame(now, HOST_WIRE, packet, &mut out);
            while let Some(timer) = out.due(now) {
                host.on_timer(now, timer, &mut out);
            }
            (0..9).take_while(|_| host.pull(now, HOST_WIRE, &mut out) == Pull::Sent).count();
            host.check_invariants();
            assert!(host.held_frames() <= 200, "{} frames held", host.held_frames());
        });
    }
}
