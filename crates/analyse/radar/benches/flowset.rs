//! FlowRadar: a packet of a known flow into a flowset, and 100,000 flows out of one.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use radar::flowset::sizing::DecoderKind;
use radar::flowset::{FlowKey, Flowset, FlowsetShape};
use radar::packet::Flow;
use units::Prob;

const FLOWS: u32 = 100_000;

fn keys() -> Vec<FlowKey> {
    let key = |nth: u32| {
        let src = (0x0a00_0000 | nth).to_be_bytes().into();
        FlowKey::from(&Flow { src, dst: [10, 9, 9, 9].into(), protocol: 6, src_port: nth as u16, dst_port: 443 })
    };
    (0..FLOWS).map(key).collect()
}

fn flowsets(criterion: &mut Criterion) {
    let keys = keys();
    for rows in [3, 4] {
        let mut flowset =
            Flowset::new(FlowsetShape::for_flows(FLOWS.into(), Prob::literal(0.99), rows, DecoderKind::Single, 1));
        keys.iter().for_each(|key| flowset.insert(key));
        let mut group = criterion.benchmark_group(format!("flowset of {rows} rows"));
        group.sample_size(20).throughput(Throughput::Elements(FLOWS.into()));
        group.bench_function("packets of known flows", |bencher| {
            let mut counting = flowset.clone();
            bencher.iter(|| keys.iter().for_each(|key| counting.insert(black_box(key))));
        });
        group.bench_function("decode", |bencher| bencher.iter(|| black_box(&flowset).decode()));
        group.finish();
    }
}

criterion_group!(benches, flowsets);
criterion_main!(benches);
