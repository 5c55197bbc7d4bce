//! Benchmark of the protocol's cost per frame, without any wire: the sender numbers and keeps a frame, the receiver
//! delivers it and acknowledges when it is due, the sender frees it. Eight frames are in flight, about as many as on a 100G
//! link; the receiver is pulled when it asks to be, as by any driver. The time for passing frames from one to the other is
//! included.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use guard::{Endpoint, LinkPacket, LinkTiming, Params};
use machine::{FrameBody, Machine, Out, Port, QueueId};
use units::{Rate, Span, Time};
use wire::link::Class;

#[derive(Clone, Copy, Debug)]
struct Frame(u32);

impl FrameBody for Frame {
    fn len(&self) -> u32 {
        1_518
    }
}

/// A driver that does nothing but pass frames on, through a wire that is `DEPTH` frames long.
#[derive(Default)]
struct Wire {
    flying: [Option<LinkPacket<Frame>>; DEPTH],
    sent: usize,
    next: u32,
    endless: bool,
    woken: bool,
}

impl Wire {
    /// Takes the oldest packet in flight, whose place is needed again.
    #[inline]
    fn arrival(&mut self) -> Option<LinkPacket<Frame>> {
        self.flying[self.sent % DEPTH].take()
    }
}

impl Out<Endpoint<Frame>> for Wire {
    #[inline]
    fn transmit(&mut self, _: Port, packet: LinkPacket<Frame>) {
        self.flying[self.sent % DEPTH] = Some(packet);
        self.sent += 1;
    }
    #[inline]
    fn wake(&mut self, _: Port) {
        self.woken = true;
    }
    #[inline]
    fn waiting(&self, _: QueueId) -> bool {
        self.endless
    }
    #[inline]
    fn take(&mut self, _: QueueId) -> Option<Frame> {
        self.next += 1;
        self.endless.then_some(Frame(self.next))
    }
    #[inline]
    fn keep(&mut self, frame: &Frame) -> Frame {
        *frame
    }
    #[inline]
    fn release(&mut self, frame: Frame) {
        black_box(frame.0);
    }
    #[inline]
    fn deliver(&mut self, _: QueueId, frame: Frame) {
        black_box(frame.0);
    }
    fn arm(&mut self, _: guard::EndpointTimer, _: Time) {}
    fn disarm(&mut self, _: guard::EndpointTimer) {}
    fn complete(&mut self, _: guard::EndpointEvent) {}
    fn note(&mut self, _: guard::EndpointNote) {}
}

const WIRE: Port = Port(0);
const DEPTH: usize = 8;
const FRAMES: u64 = 1_024;

fn loss_free(criterion: &mut Criterion) {
    let path = LinkTiming {
        rate: Rate::gbps(100),
        delay: Span::from_ns(50),
        pipeline: Span::from_ns(400),
        mtu: 1_518,
        burst: 5,
    };
    let mut group = criterion.benchmark_group("loss-free frame, sender and receiver");
    group.throughput(Throughput::Elements(FRAMES));
    for class in Class::ALL {
        let params = Params::ideal(&path, class, 2);
        let mut ends = [Endpoint::established(params.clone(), 1, 2), Endpoint::established(params, 2, 1)];
        let mut wires = [Wire { endless: true, ..Wire::default() }, Wire::default()];
        let now = Time::from_ps(1);
        group.bench_function(format!("{class:?}"), |bencher| {
            bencher.iter(|| {
                for _ in 0..FRAMES {
                    let [left, right] = &mut ends;
                    let [there, back] = &mut wires;
                    left.pull(now, WIRE, there);
                    if let Some(packet) = there.arrival() {
                        right.on_frame(now, WIRE, packet, back);
                    }
                    if std::mem::take(&mut back.woken) {
                        right.pull(now, WIRE, back);
                    }
                    if let Some(ack) = back.arrival() {
                        left.on_frame(now, WIRE, ack, there);
                    }
                }
            });
        });
    }
    group.finish();
}

criterion_group!(benches, loss_free);
criterion_main!(benches);
