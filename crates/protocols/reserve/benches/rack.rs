//! Benchmarks of the cost of reservations per data frame, without any wire. The switch's part: an RSV for each burst of
//! four, its answer, four frames matched with it. The host's part: frames taken from a queue, an RSV for four of them, its
//! GRT, four frames sent, and the same frames received by another host. The time for passing frames from one to the other
//! is included.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use machine::{Machine, Out, Port, QueueId};
use reserve::host::HOST_WIRE;
use reserve::{
    DataAnswer, FrameVisit, HostCommand, HostParams, HostTimer, MessageAnswer, MessageVisit, RackFrame, RackParams,
    ReservePacket, ReservingHost, ReservingSwitch, SchedulerKind,
};
use units::{Rate, Span, Time};
use wire::reserve::{BurstId, DataMark, Demand, Grant, HostKey, Reservation, ReserveMessage, ReserveVerb};

const BURSTS: u64 = 256;
const FRAMES: u64 = BURSTS * 4;

fn switch_part(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("switch, per data frame");
    group.throughput(Throughput::Elements(FRAMES));
    for kind in SchedulerKind::ALL {
        let params = RackParams { contexts: 12, ..RackParams::new(kind, 6, Rate::gbps(100)) };
        let mut switch = ReservingSwitch::new(params, 1).expect("valid parameters");
        let mut now = Time::ZERO;
        let mut burst = 0;
        group.bench_function(kind.name(), |bencher| {
            bencher.iter(|| {
                for _ in 0..BURSTS {
                    burst += 1;
                    now += Span::from_ns(600);
                    one_burst(&mut switch, now, burst);
                }
            });
        });
    }
    group.finish();
}

/// Host `burst % 5` sends a burst to host 5 by one of its contexts.
#[inline]
fn one_burst(switch: &mut ReservingSwitch, now: Time, burst: u32) {
    let (from, context) = ((burst % 5) as u16, (burst / 5 % 12) as u16);
    let id = BurstId { host_epoch: 1, context, burst };
    let demand = Demand { frames: 4, bytes: 4 * 1_538 };
    let about = Reservation { id, demand, peer: HostKey::new(6), switch_epoch: 1, ..Reservation::default() };
    let at = MessageVisit { from, peer: Some(5), source: Some(from), token: 0 };
    let answer = switch.on_message(now, at, &ReserveMessage { verb: ReserveVerb::Rsv, about });
    assert!(matches!(answer, MessageAnswer::Reply(_)));
    black_box(answer);
    for index in 0..4 {
        let mark = DataMark { id, switch_epoch: 1, index, of: 4, ..DataMark::default() };
        match switch.on_data(now, FrameVisit { from, to: 5, len: 1_518 }, Some(black_box(&mark))) {
            DataAnswer::Pass(charge) => switch.on_gone(charge),
            other => panic!("{other:?}"),
        }
    }
    while switch.wake_at() <= now {
        black_box(switch.on_wake(now));
    }
}

#[derive(Clone, Copy, Debug)]
struct Frame(u32);

impl RackFrame for Frame {
    #[inline]
    fn len(&self) -> u32 {
        1_518
    }
    #[inline]
    fn destination(&self) -> Option<HostKey> {
        Some(HostKey::new(2))
    }
    #[inline]
    fn source(&self) -> HostKey {
        HostKey::new(1)
    }
    #[inline]
    fn class(&self) -> u8 {
        0
    }
}

/// A driver with endless queues above.
#[derive(Default)]
struct Driver {
    next: u32,
    sent: Option<ReservePacket<Frame>>,
    deadline: Option<Time>,
}

impl Out<ReservingHost<Frame>> for Driver {
    #[inline]
    fn transmit(&mut self, _: Port, packet: ReservePacket<Frame>) {
        self.sent = Some(packet);
    }
    #[inline]
    fn wake(&mut self, _: Port) {}
    #[inline]
    fn waiting(&self, lane: QueueId) -> bool {
        lane.0 < 12
    }
    #[inline]
    fn take(&mut self, lane: QueueId) -> Option<Frame> {
        self.next += 1;
        (lane.0 < 12).then_some(Frame(self.next))
    }
    #[inline]
    fn keep(&mut self, frame: &Frame) -> Frame {
        *frame
    }
    fn release(&mut self, _: Frame) {}
    #[inline]
    fn deliver(&mut self, _: QueueId, frame: Frame) {
        black_box(frame.0);
    }
    #[inline]
    fn arm(&mut self, _: HostTimer, at: Time) {
        self.deadline = Some(at);
    }
    fn disarm(&mut self, _: HostTimer) {}
    fn complete(&mut self, (): ()) {}
    fn note(&mut self, (): ()) {}
}

fn host_part(criterion: &mut Criterion) {
    let params = RackParams { contexts: 12, ..RackParams::new(SchedulerKind::Clock, 6, Rate::gbps(100)) };
    let host = |number| {
        let key = HostKey::new(number);
        ReservingHost::<Frame>::new(params, HostParams::new(key, 1, &params)).expect("valid parameters")
    };
    let (mut sender, mut receiver) = (host(1), host(2));
    let (mut above, mut below) = (Driver::default(), Driver::default());
    let mut now = Time::ZERO;
    for lane in 0..12 {
        sender.on_command(now, HostCommand::Queued(QueueId(lane)), &mut above);
    }
    let mut group = criterion.benchmark_group("host, per data frame");
    group.throughput(Throughput::Elements(FRAMES));
    group.bench_function("sent and received", |bencher| {
        bencher.iter(|| {
            let mut frames = 0;
            while frames < FRAMES {
                now += Span::from_ns(123);
                if above.deadline.take_if(|at| *at <= now).is_some() {
                    sender.on_timer(now, HostTimer::Deadline, &mut above);
                }
                sender.pull(now, HOST_WIRE, &mut above);
                match above.sent.take() {
                    Some(ReservePacket::Message(message)) => {
                        let verb = ReserveVerb::Grt(Grant::default());
                        let reply = ReserveMessage { verb, about: Reservation { switch_epoch: 1, ..message.about } };
                        sender.on_frame(now, HOST_WIRE, ReservePacket::Message(reply), &mut above);
                    }
                    Some(packet) => {
                        frames += 1;
                        receiver.on_frame(now, HOST_WIRE, packet, &mut below);
                    }
                    None => panic!("nothing to send"),
                }
            }
        });
    });
    group.finish();
}

criterion_group!(benches, switch_part, host_part);
criterion_main!(benches);
