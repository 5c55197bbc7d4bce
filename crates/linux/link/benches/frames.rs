//! Time that the daemon spends on a frame outside of the kernel: cutting and joining super-frames, sealing, finding a
//! place; and that the repeater spends on reading one.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use emulator::Repeat;
use link::frame::{Framing, Mac, introduce};
use link::seal::Seal;
use linux::offload::{Coalescer, FrameSink, VnetHeader, segment};
use roce::repeat;
use seal::keyed::KeyedSeal;
use wire::exchange::EXCHANGE_LONGEST;
use wire::ip::Ecn;
use wire::ipv4::{self, Station};
use wire::link::{Class, Epoch, FrameKind, LinkHeader};
use wire::roce::{self as format, ExtensionHeader, Opcode, Syndrome};
use wire::{Seq, udp};

const HERE: Mac = Mac([2, 0, 0, 0, 0, 1]);
const THERE: Mac = Mac([2, 0, 0, 0, 0, 2]);
const SEGMENTS: usize = 44;
const PAYLOAD: usize = 1_448;

/// Frames in one piece of memory, as the pool has them.
struct Cut {
    memory: Vec<u8>,
    ends: Vec<usize>,
}

impl FrameSink for Cut {
    fn next(&mut self, len: usize) -> Option<&mut [u8]> {
        let start = self.ends.last().copied().unwrap_or(0);
        self.ends.push(start + len);
        self.memory.get_mut(start..start + len)
    }
}

/// A super-frame of TCP over IPv4 with timestamps, its checksum left to us.
fn super_frame() -> (VnetHeader, Vec<u8>) {
    let payload = SEGMENTS * PAYLOAD;
    let mut frame = [&THERE.0[..], &HERE.0, &[8, 0]].concat();
    let total = (20 + 32 + payload) as u16;
    frame.extend([0x45, 0]);
    frame.extend(total.to_be_bytes());
    frame.extend([0, 1, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend([0x1f, 0x90, 0x13, 0x88, 0, 0, 0, 1, 0, 0, 0, 1, 0x80, 0x10, 1, 0, 0, 0, 0, 0]);
    frame.extend([1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 1]);
    frame.extend((0..payload).map(|byte| byte as u8));
    let vnet = VnetHeader {
        flags: VnetHeader::NEEDS_CSUM,
        gso_type: VnetHeader::GSO_TCPV4,
        hdr_len: 66,
        gso_size: PAYLOAD as u16,
        csum_start: 34,
        csum_offset: 16,
    };
    (vnet, frame)
}

fn offload(c: &mut Criterion) {
    let (vnet, frame) = super_frame();
    let mut group = c.benchmark_group("offload");
    group.throughput(Throughput::Elements(SEGMENTS as u64));
    let empty = || Cut { memory: vec![0; 80_000], ends: Vec::with_capacity(64) };
    group.bench_function("cut", |b| {
        b.iter_batched_ref(empty, |cut| segment(&vnet, black_box(&frame), cut), BatchSize::SmallInput);
    });
    let mut cut = empty();
    assert!(segment(&vnet, &frame, &mut cut).is_ok_and(|cut| cut.frames as usize == SEGMENTS));
    let mut coalescer = Coalescer::<u32>::default();
    group.bench_function("join", |b| {
        b.iter(|| {
            let mut start = 0;
            for (number, end) in cut.ends.iter().enumerate() {
                coalescer.push(number as u32, black_box(&cut.memory[start..*end]));
                start = *end;
                while coalescer.pop().is_some() {}
            }
            coalescer.flush();
            while coalescer.pop().is_some() {}
        });
    });
    group.finish();
}

fn framing(c: &mut Criterion) {
    let body = [&THERE.0[..], &HERE.0, &[8, 0], &[7; 1_500]].concat();
    let header = LinkHeader::new(Epoch::new(1), FrameKind::Data(Class::Ordered, Seq::default()), None);
    let mut group = c.benchmark_group("frame of 1500 bytes, out and in");
    let keyed = |life| Seal::keyed([1; 16], life);
    for (name, seals) in
        [("no seal", [Seal::None, Seal::None]), ("crc", [Seal::Crc, Seal::Crc]), ("key", [1, 1 << 64].map(keyed))]
    {
        let [ours, theirs] = seals;
        let mut here = Framing::new(HERE, Some(THERE), ours);
        let mut there = Framing::new(THERE, Some(HERE), theirs);
        introduce([&mut here, &mut there]);
        let mut on_wire = Vec::with_capacity(2_000);
        group.bench_function(name, |b| {
            b.iter(|| {
                let emitted = here.emit(&header, Some(black_box(&body)));
                on_wire.clear();
                on_wire.extend_from_slice(&emitted.head[..emitted.head_len]);
                on_wire.extend_from_slice(&body[emitted.skip..]);
                there.parse(black_box(&on_wire)).is_ok()
            });
        });
    }
    group.finish();
}

/// A clock's wave, as `timekeeper` seals it: what is before its seal, and what is behind it.
fn sealed_wave(c: &mut Criterion) {
    let mut ends = [1, 1 << 64].map(|life| KeyedSeal::new([1; 16], life));
    for _ in 0..4 {
        for from in 0..2 {
            let macs = [HERE, THERE];
            while let Some(greeting) = ends[from].greet(macs[from], macs[1 - from]) {
                assert!(ends[1 - from].on_greeting(&greeting, macs[from], macs[1 - from]).is_ok());
            }
        }
    }
    let [mut here, mut there] = ends;
    let (head, body, mut seal) = ([5; 14], [7; EXCHANGE_LONGEST], [0; 16]);
    let mut opened = 0;
    c.bench_function("seal of a wave, out and in", |b| {
        b.iter(|| {
            here.write(&[black_box(&head), &body], &mut seal);
            opened += u64::from(there.check(&seal, &[black_box(&head), &body]).is_ok());
        });
    });
    assert!(opened > 0);
}

/// A RoCEv2 frame with so much payload.
fn roce_frame(opcode: Opcode, psn: u32, extended: Option<ExtensionHeader>, payload: usize) -> Vec<u8> {
    let header = format::RoceHeader { opcode, queue_pair: 0x11, psn, ack_request: false, pad: 0, extended };
    let station = |mac: Mac, last| Station { mac: mac.0, ip: [10, 0, 0, last] };
    let inside = udp::UdpHeader::LEN + header.size() + payload + format::RoceHeader::CHECK;
    let (from, to) = (station(HERE, 1), station(THERE, 2));
    let ip = ipv4::Ipv4Header { from, to, protocol: ipv4::UDP, ecn: Ecn::Capable, payload: inside as u16 };
    let mut out = Vec::new();
    ip.emit(&mut out);
    udp::UdpHeader { source: 0xc000, destination: format::PORT, checked: false }.emit(&ip, &mut out);
    header.emit(&mut out);
    out.resize(out.len() + payload, 0);
    format::append_icrc(&mut out, 14);
    out
}

fn repeater(c: &mut Criterion) {
    let (_, foreign) = super_frame();
    let requests: Vec<Vec<u8>> = (0..64).map(|psn| roce_frame(Opcode::WriteMiddle, psn, None, 1_024)).collect();
    let nak = |psn| {
        let extended = Some(ExtensionHeader::Ack { syndrome: Syndrome::SEQUENCE_ERROR, msn: 1 });
        roce_frame(Opcode::Acknowledge, psn, extended, 0)
    };
    let naks: Vec<Vec<u8>> = (0..64).map(nak).collect();
    let mut repeat = Repeat::new(repeat::RepeaterConfig::new(1, 3));
    let mut group = c.benchmark_group("repeater, parse and decide");
    group.throughput(Throughput::Elements(64));
    group.bench_function("frame of something else", |b| {
        b.iter(|| (0..64).map(|_| repeat.on_leaving(black_box(&foreign))).sum::<u32>());
    });
    group.bench_function("request", |b| {
        b.iter(|| requests.iter().map(|frame| repeat.on_leaving(black_box(frame))).sum::<u32>());
    });
    group.throughput(Throughput::Elements(128));
    group.bench_function("nak, and the request that it asks for", |b| {
        b.iter(|| {
            naks.iter().for_each(|frame| repeat.on_arriving(black_box(frame)));
            requests.iter().map(|frame| repeat.on_leaving(black_box(frame))).sum::<u32>()
        });
    });
    group.finish();
}

criterion_group!(benches, offload, framing, sealed_wave, repeater);
criterion_main!(benches);
