//! Cost of a packet to a meter, and of a loss to a collector.

use capture::LinkType;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use radar::digest::{Digest, DigestShape};
use radar::packet::{Flow, Packet, TcpFields};
use radar::read;
use radar::rounds::RoundTable;
use radar::signature::{Fields, Signature};
use radar::trail::{Trail, trail_hash};
use std::hint::black_box;

const PACKETS: u32 = 4_096;

fn packet(nth: u32, is_v6: bool) -> Packet {
    let src =
        if is_v6 { std::net::Ipv6Addr::from(u128::from(nth) << 64 | 1).into() } else { [10, 0, 0, nth as u8].into() };
    let dst = if is_v6 { std::net::Ipv6Addr::from(7u128 << 96).into() } else { [10, 1, 0, 1].into() };
    let flow = Flow { src, dst, protocol: 6, src_port: nth as u16, dst_port: 80 };
    let tcp = Some(TcpFields { seq: nth.wrapping_mul(1_448), len: 1_448, syn: false });
    Packet { flow, ip_id: Some(0), fragment: 0, tcp, ttl: 64, content: u64::from(nth) }
}

fn frame(nth: u32) -> Vec<u8> {
    let mut frame = vec![0; 12];
    frame.extend([0x08, 0x00, 0x45, 0, 5, 220, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, nth as u8, 10, 1, 0, 1]);
    frame.extend([0x9c, 0x40, 0, 80]);
    frame.extend((nth * 1_448).to_be_bytes());
    frame.extend([0, 0, 0, 9, 0x80, 0x10, 1, 0, 0, 0, 0, 0, 1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
    frame.resize(192, 7);
    frame
}

fn insertion(c: &mut Criterion) {
    let mut group = c.benchmark_group("insert");
    group.throughput(Throughput::Elements(u64::from(PACKETS)));
    for (name, is_v6) in [("ipv4", false), ("ipv6", true)] {
        let packets: Vec<Packet> = (0..PACKETS).map(|nth| packet(nth, is_v6)).collect();
        let mut digest = Digest::new(DigestShape::new(1_536, 1, Fields::ALL));
        group.bench_function(name, |b| {
            b.iter(|| packets.iter().for_each(|packet| digest.insert(&Signature::new(black_box(packet), Fields::ALL))));
        });
    }
    let frames: Vec<Vec<u8>> = (0..PACKETS).map(frame).collect();
    let mut digest = Digest::new(DigestShape::new(1_536, 1, Fields::ALL));
    group.bench_function("from a frame", |b| {
        b.iter(|| {
            for frame in &frames {
                let Some(packet) = read::packet(black_box(frame), LinkType::Ethernet, read::DEPTH) else { continue };
                digest.insert(&Signature::new(&packet, Fields::ALL));
            }
        });
    });
    let (mut digest, mut nth) = (Digest::new(DigestShape::new(1_536, 1, Fields::ALL)), 0);
    let (mut trail, mut rounds) = (Trail::new(8 << 20), RoundTable::default());
    group.bench_function("from a frame, with a trail", |b| {
        b.iter(|| {
            for frame in &frames {
                let Some(packet) = read::packet(black_box(frame), LinkType::Ethernet, read::DEPTH) else { continue };
                let signature = Signature::new(&packet, Fields::ALL);
                let hash = trail_hash(&signature);
                rounds.on_packet(0, hash, packet.ttl, &packet.flow);
                trail.record(nth >> 13, nth * 1_000, hash, &packet.flow, packet.ttl);
                digest.insert(&signature);
                nth += 1;
            }
        });
    });
    group.finish();
}

fn decoding(c: &mut Criterion) {
    let mut group = c.benchmark_group("decode");
    let losses = 1_000;
    group.throughput(Throughput::Elements(u64::from(losses)));
    let mut digest = Digest::new(DigestShape::new(1_536, 1, Fields::ALL));
    (0..losses).for_each(|nth| digest.insert(&Signature::new(&packet(nth, false), Fields::ALL)));
    group.bench_function("1000 losses", |b| {
        b.iter_batched(|| digest.clone(), |mut digest| digest.decode(), BatchSize::SmallInput);
    });
    group.finish();
}

criterion_group!(benches, insertion, decoding);
criterion_main!(benches);
