use proptest::prelude::*;

use super::*;
use crate::{CollectiveAlgorithm, CollectivePattern, CollectiveShape, GraphInput, GraphTransfer, TransferGraph};

fn ns(ns: u64) -> Time {
    Time::ZERO + Span::from_ns(ns)
}

/// What a job did: starts, arrivals and acknowledgements, each with its iteration, transfer and time.
#[derive(Debug, Default)]
struct JobLog {
    starts: BTreeMap<(u32, u32), Time>,
    arrivals: BTreeMap<(u32, u32), Time>,
    acknowledgements: BTreeMap<(u32, u32), Time>,
    ended: Vec<EndedIteration>,
}

/// Carries a job out; a transfer takes what `takes` says, its acknowledgement as long again.
fn carry_out(job: CollectiveJob, takes: impl Fn(u32, u32) -> Span) -> JobLog {
    let (mut run, mut log) = (JobRun::new(job, ns(5)), JobLog::default());
    let mut events: BTreeMap<(Time, u32), (u32, u32, InputEvent, PathAccount)> = BTreeMap::new();
    let mut order = 0;
    let mut now = Time::ZERO;
    loop {
        let next = [run.next_at(), events.first_key_value().map(|((at, _), _)| *at)].into_iter().flatten().min();
        let Some(at) = next else { break };
        assert!(at >= now);
        now = at;
        while let Some(ready) = run.take_ready(now) {
            let (iteration, transfer) = (ready.iteration, ready.transfer);
            assert_eq!(log.starts.insert((iteration, transfer), now), None, "twice");
            let mut account = ready.account;
            let span = takes(iteration, transfer);
            account.parts.wire += span;
            for (event, at) in [(InputEvent::Arrived, now + span), (InputEvent::Acknowledged, now + span * 2)] {
                if event == InputEvent::Acknowledged {
                    account.parts.wire += span;
                }
                events.insert((at, order), (iteration, transfer, event, account));
                order += 1;
            }
        }
        while let Some(((at, order), what)) = events.first_key_value().map(|(key, what)| (*key, *what)) {
            if at > now {
                break;
            }
            events.remove(&(at, order));
            let (iteration, transfer, event, account) = what;
            match event {
                InputEvent::Arrived => {
                    assert_eq!(log.arrivals.insert((iteration, transfer), now), None, "twice");
                    run.arrived(now, iteration, transfer, account);
                }
                InputEvent::Acknowledged => {
                    log.acknowledgements.insert((iteration, transfer), now);
                    run.acknowledged(now, iteration, transfer, account);
                }
            }
        }
        log.ended.extend(std::iter::from_fn(|| run.take_ended()));
    }
    assert!(run.is_over(), "{run:?}");
    log
}

/// Source, distance to the receiver, inputs and start of a transfer.
type DrawnTransfer = (u32, u32, Vec<(u32, bool, u64)>, u64);

fn graphs() -> impl Strategy<Value = TransferPlan> {
    let input = (0u32..1000, any::<bool>(), prop_oneof![Just(0u64), 0u64..300]);
    let transfer = (0u32..6, 1u32..6, proptest::collection::vec(input, 0..4), prop_oneof![Just(0u64), 0u64..500]);
    proptest::collection::vec(transfer, 1..30).prop_map(|list| {
        let listed = |(place, (src, distance, inputs, start)): (usize, DrawnTransfer)| {
            let mut after: Vec<GraphInput> = Vec::new();
            for (transfer, acknowledged, delay) in inputs.into_iter().filter(|_| place > 0) {
                let transfer = transfer % place as u32;
                if after.iter().all(|input| input.transfer != transfer) {
                    let event = if acknowledged { InputEvent::Acknowledged } else { InputEvent::Arrived };
                    after.push(GraphInput { transfer, event, delay: Span::from_ns(delay) });
                }
            }
            let dst = (src + distance) % 6;
            let name = place.to_string();
            GraphTransfer { name, src, dst, bytes: 1, lane: 0, not_before: Span::from_ns(start), after }
        };
        TransferPlan::graph(TransferGraph::new(6, list.into_iter().enumerate().map(listed).collect()).unwrap())
    })
}

/// A span between 1 and 256 ns that depends on the seed and both numbers.
fn some_span(seed: u64, iteration: u32, transfer: u32) -> Span {
    let mixed = (seed ^ u64::from(iteration) << 40 ^ u64::from(transfer) << 8).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Span::from_ns(1 + (mixed >> 56))
}

fn job(plan: &TransferPlan, iterations: u32, barrier: bool) -> CollectiveJob {
    let compute = Span::from_ns(40);
    CollectiveJob { plan: Arc::new(plan.clone()), iterations, compute, barrier, ends: InputEvent::Arrived }
}

proptest! {
    #[test]
    fn no_transfer_starts_before_its_inputs_and_each_once(plan in graphs(), seed: u64, barrier: bool) {
        let log = carry_out(job(&plan, 3, barrier), |iteration, transfer| some_span(seed, iteration, transfer));
        prop_assert_eq!(log.starts.len(), 3 * plan.transfers() as usize);
        prop_assert_eq!(log.arrivals.len(), 3 * plan.transfers() as usize);
        for iteration in 0..3 {
            for (place, one) in plan.to_list().iter().enumerate() {
                let start = log.starts[&(iteration, place as u32)];
                for input in &one.after {
                    let key = (iteration, input.transfer);
                    let event = match input.event {
                        InputEvent::Arrived => log.arrivals[&key],
                        InputEvent::Acknowledged => log.acknowledgements[&key],
                    };
                    prop_assert!(start >= event + input.delay, "{one:?} at {start:?}, {input:?} at {event:?}");
                }
            }
        }
        prop_assert_eq!(log.ended.iter().map(|ended| ended.iteration).collect::<Vec<_>>(), vec![0, 1, 2]);
    }

    #[test]
    fn parts_of_an_iteration_add_up_to_its_time(plan in graphs(), seed: u64) {
        let log = carry_out(job(&plan, 2, true), |iteration, transfer| some_span(seed, iteration, transfer));
        for ended in log.ended {
            prop_assert_eq!(ended.account.parts.sum(), ended.ended.since(ended.started), "{:?}", ended);
        }
    }

    #[test]
    fn a_list_of_a_pattern_is_carried_out_as_the_pattern_is(seed: u64, barrier: bool, ranks in 2u32..9) {
        for pattern in CollectivePattern::ALL {
            for algorithm in CollectiveAlgorithm::ALL {
                let shape = CollectiveShape { pattern, algorithm, ranks, size: 10_000, channels: 2, pieces: 1 };
                if shape.check(64).is_err() {
                    continue;
                }
                let plan = TransferPlan::of(&shape);
                let list = TransferPlan::graph(TransferGraph::new(ranks, plan.to_list()).unwrap());
                let run = |plan: &TransferPlan| carry_out(job(plan, 3, barrier), |a, b| some_span(seed, a, b));
                let (one, other) = (run(&plan), run(&list));
                prop_assert_eq!(one.starts, other.starts);
                prop_assert_eq!(one.ended, other.ended);
            }
        }
    }
}

#[test]
fn ranks_without_a_barrier_run_ahead_as_far_as_their_inputs_let_them() {
    let shape = CollectiveShape {
        pattern: CollectivePattern::Broadcast,
        algorithm: CollectiveAlgorithm::Ring,
        ranks: 3,
        size: 10,
        channels: 1,
        pieces: 1,
    };
    let plan = TransferPlan::of(&shape);
    let log = carry_out(job(&plan, 2, false), |_, _| Span::from_ns(100));
    // The root begins again when its transfer is acknowledged and its computation is done.
    assert_eq!(log.starts[&(1, 0)], ns(5 + 200 + 40));
    assert_eq!(log.starts[&(1, 1)], ns(5 + 200 + 40 + 100));
}

#[test]
fn iterations_that_are_skipped_count_as_complete() {
    let shape = CollectiveShape {
        pattern: CollectivePattern::AllGather,
        algorithm: CollectiveAlgorithm::Ring,
        ranks: 2,
        size: 10,
        channels: 1,
        pieces: 1,
    };
    let mut run = JobRun::new(job(&TransferPlan::of(&shape), 10, true), Time::ZERO);
    run.skip(9);
    let ready: Vec<_> = std::iter::from_fn(|| run.take_ready(Time::ZERO)).collect();
    assert_eq!(ready.iter().map(|ready| (ready.iteration, ready.transfer)).collect::<Vec<_>>(), [(9, 0), (9, 1)]);
    for ready in ready {
        run.arrived(ns(3), 9, ready.transfer, ready.account);
    }
    assert!(run.is_over());
}
