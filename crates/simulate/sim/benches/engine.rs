//! Cost of an event, at the numbers of pending events that simulations have.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use sim::engine::EventQueue;
use units::{Span, Time};

const EVENTS: u64 = 10_000;

/// A gap until the next event, between 0 and about 2 µs.
fn gap(state: &mut u64) -> Span {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    Span::from_ps(*state >> 43)
}

fn hold(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("take one event, schedule another");
    group.throughput(Throughput::Elements(EVENTS));
    for pending in [8u64, 1_024, 16_384, 131_072, 1_048_576] {
        group.bench_with_input(BenchmarkId::from_parameter(pending), &pending, |bencher, &pending| {
            let (mut queue, mut state) = (EventQueue::default(), 1);
            (0..pending).for_each(|n| queue.schedule(Time::ZERO + gap(&mut state), n));
            bencher.iter(|| {
                for _ in 0..EVENTS {
                    if let Some((now, event)) = queue.take() {
                        queue.schedule(now + gap(&mut state), black_box(event));
                    }
                }
            });
        });
    }
    group.finish();
}

criterion_group!(benches, hold);
criterion_main!(benches);
