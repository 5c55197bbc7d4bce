//! Cost of a hop: small networks whose whole run is timed, so that a change to the hot path shows.

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use scenario::bench::CASES;
use sim::net::{self, NetworkSetup};
use units::Unwatched;

/// A fiftieth of what `hitless bench sim` runs.
const SHRINK: u64 = 50;

fn networks(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("packet-hops");
    group.sample_size(20);
    for case in CASES {
        let setup = case.setup(SHRINK).expect("a case can be built");
        let hops = net::run(setup.clone(), &Unwatched).expect("hosts that are connected").packet_hops;
        group.throughput(Throughput::Elements(hops));
        group.bench_with_input(BenchmarkId::from_parameter(case.name), &setup, |bencher, setup| {
            let run = |setup: NetworkSetup| net::run(setup, &Unwatched).map(|outcome| outcome.events);
            bencher.iter_batched(|| setup.clone(), run, BatchSize::LargeInput);
        });
    }
    group.finish();
}

criterion_group!(benches, networks);
criterion_main!(benches);
