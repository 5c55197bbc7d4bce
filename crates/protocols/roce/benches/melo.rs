//! Benchmarks of MELO's cost to a receiver per packet, with and without loss.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use roce::melo::bench::LossyArrivals;

const PACKETS: u64 = 10_000;

fn arrivals(c: &mut Criterion) {
    let mut group = c.benchmark_group("arrival of a packet");
    group.throughput(Throughput::Elements(PACKETS));
    for (name, loss_every) in [("no loss", 0), ("0.1 % lost", 1_000), ("1 % lost", 100), ("10 % lost", 10)] {
        let mut arrivals = LossyArrivals::new(loss_every);
        group.bench_function(BenchmarkId::from_parameter(name), |b| {
            b.iter(|| black_box(arrivals.run(black_box(PACKETS))))
        });
    }
    group.finish();
}

criterion_group!(benches, arrivals);
criterion_main!(benches);
