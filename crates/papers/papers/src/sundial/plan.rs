//! sun.plan: a plan for Jupiter, and plans through a series of failures (§3.6.1.3, §3.6.2).

use clock::graph::{Graph, GraphLink, GraphNode};
use clock::plan::{PlanRequest, plan};
use faults::Random;
use parallel::Stopwatch;
use report::claim::{ClaimError, MeasuredValue};
use report::runner::{ComputedValues, Effort};

use super::testbed::PlannedFabric;

const FAILURES: u64 = 50;
/// One failure in this many is a device, the others are links.
const DEVICES: u64 = 2;
/// Stream of randomness.
const FAILURE_STREAM: u64 = 3;

pub(super) fn compute(effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    effort.progress.expect_parts(FAILURES as usize);
    let PlannedFabric { mut graph, .. } = PlannedFabric::jupiter()?;
    let planned = Stopwatch::start();
    let first = plan(&graph, &PlanRequest::default()).map_err(ClaimError::new)?;
    let ms = planned.seconds() * 1e3;
    let (mut found, mut all_ms) = (0_u64, 0.0);
    let mut random = Random::new(effort.seed, FAILURE_STREAM);
    for _ in 0..FAILURES {
        if !effort.progress.go_on(0) {
            return Ok(None);
        }
        fail(&mut graph, &mut random);
        let begun = Stopwatch::start();
        found += u64::from(plan(&graph, &PlanRequest::default()).is_ok_and(|plan| plan.is_complete()));
        all_ms += begun.seconds() * 1e3;
        effort.progress.part_done();
    }
    let mut computed = ComputedValues::default();
    for (name, value, of) in [
        ("nodes", graph.node_count() as f64, 1),
        ("complete", f64::from(u8::from(first.is_complete())), 1),
        ("found", found as f64, FAILURES),
        ("eps.root", f64::from(first.bounds().root_ns), 1),
        ("depth.backup", f64::from(first.max_depth_backup()), 1),
        ("ms", ms, 1),
        ("ms.after-failures", all_ms / FAILURES as f64, FAILURES),
    ] {
        computed.value(name, MeasuredValue::exact(value, of));
    }
    Ok(Some(computed))
}

/// One more link or device fails, any that works still.
fn fail(graph: &mut Graph, random: &mut Random) {
    if random.below(DEVICES) == 0 {
        let works = |node: &GraphNode| !graph.is_failed(*node);
        let node = drawn(random, graph.node_count(), GraphNode, works);
        graph.fail_node(node);
    } else {
        let works = |link: &GraphLink| !graph.is_link_failed(*link);
        let link = drawn(random, graph.link_count(), GraphLink, works);
        graph.fail_link(link);
    }
}

fn drawn<T>(random: &mut Random, count: usize, make: fn(u32) -> T, works: impl Fn(&T) -> bool) -> T {
    loop {
        let one = make(random.below(count as u64) as u32);
        if works(&one) {
            return one;
        }
    }
}
