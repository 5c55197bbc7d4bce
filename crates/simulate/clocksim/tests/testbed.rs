//! The thesis's testbed (§3.6.1): what it says of ε and of recovery, from a simulation of every node.

use clock::graph::{Graph, HostLinks};
use clock::plan::{ClockPlan, PlanRequest, plan};
use clocksim::{ClockFailure, ClockOutcome, ClockScheme, ClockSetup, DriftModel, TimedFailure, simulate};
use units::{Span, Time, Unwatched};

fn testbed() -> (Graph, ClockPlan) {
    let graph = Graph::testbed(HostLinks::Dual).unwrap().with_domains_named("pod").unwrap();
    let plan = plan(&graph, &PlanRequest::default()).unwrap();
    assert!(plan.is_complete());
    (graph, plan)
}

fn run(setup: &ClockSetup<'_>) -> ClockOutcome {
    let outcome = simulate(setup, &Unwatched).unwrap();
    assert_eq!((outcome.second_roots, outcome.evicted), (0, 0), "{outcome:?}");
    assert_eq!(outcome.wrong, 0, "{outcome:?}");
    outcome
}

fn fails(what: ClockFailure, at: Span) -> TimedFailure {
    TimedFailure { what, at: Time::ZERO + at, until: Time::NEVER }
}

fn within(found: f64, [low, high]: [f64; 2], what: &str) {
    assert!(found >= low && found <= high, "{what}: {found} is not within {low} to {high}");
}

/// The plan's own sums, plus a tenth of a nanosecond for each hop of residence.
fn expected(plan: &ClockPlan, depth: u32, us: f64) -> f64 {
    assert!(plan.max_depth() == 5, "the testbed's depth");
    f64::from(depth) * 5.1 + 0.2 * us
}

#[test]
fn nothing_fails() {
    let (graph, plan) = testbed();
    let outcome = run(&ClockSetup::new(&graph, &plan, Span::from_ms(20)));
    let sum = expected(&plan, 5, 90.0);
    within(outcome.eps_normal_max_ns, [sum - 0.5, sum + 0.5], "43 ns");
    assert_eq!((outcome.affected, outcome.elections, outcome.turns), (0, 0, 0));
}

#[test]
fn a_link_fails() {
    let (graph, plan) = testbed();
    let node = plan.nodes().find(|node| plan.depth[node.index()] == Some(1)).unwrap();
    let link = plan.parent[node.index()].unwrap().link;
    // Right behind a wave: the longest time without a message.
    let failures = vec![fails(ClockFailure::Link(link), Span::from_us(90 * 20 + 10))];
    let outcome = run(&ClockSetup { failures, ..ClockSetup::new(&graph, &plan, Span::from_ms(200)) });
    within(outcome.recovery_us_max, [265.0, 275.0], "270 us");
    within(outcome.eps_failure_max_ns, [77.0, 91.0], "84 ns");
    assert_eq!(outcome.elections, 0);
}

#[test]
fn the_root_fails() {
    let (graph, plan) = testbed();
    let failures = vec![fails(ClockFailure::Root, Span::from_us(90 * 20 + 10))];
    let outcome = run(&ClockSetup { failures, ..ClockSetup::new(&graph, &plan, Span::from_ms(200)) });
    within(outcome.root_recovery_us, [360.0, 370.0], "365 us");
    within(outcome.eps_root_max_ns, [96.0, 110.0], "103 ns");
    assert_eq!((outcome.elections, outcome.affected), (1, graph.node_count() - 2));
    within(outcome.impacted_ms, [295.0, 310.0], "all devices: 828 times 365 us");
    within(outcome.impacted_switches_ms, [97.0, 103.0], "276 switches");
}

#[test]
fn six_minutes_with_fifty_failures() {
    let (graph, plan) = testbed();
    let duration = Span::from_ms(360_000);
    let failures = TimedFailure::random(&graph, plan.root, 50, duration, 1);
    for drift in [DriftModel::Constant, DriftModel::Adversary] {
        let setup = ClockSetup { failures: failures.clone(), drift, ..ClockSetup::new(&graph, &plan, duration) };
        let outcome = run(&setup);
        assert_eq!(outcome.elections, 1, "{outcome:?}");
        within(outcome.waves as f64, [3_990_000.0, 4_010_000.0], "waves");
        within(outcome.impacted_switches_ms, [90.0, 200.0], "thesis: 131 ms");
    }
}

#[test]
fn other_schemes_have_the_bounds_of_the_thesis() {
    let (graph, plan) = testbed();
    let setup = |scheme| ClockSetup { scheme, ..ClockSetup::new(&graph, &plan, Span::from_ms(20_000)) };
    let normal = |scheme| run(&setup(scheme)).eps_normal_max_ns / 1e3;
    within(normal(ClockScheme::Ptp), [795.0, 805.0], "PTP");
    within(normal(ClockScheme::PtpDtp), [19.9, 20.1], "PTP + DTP");
    within(normal(ClockScheme::Huygens), [399.0, 401.0], "Huygens");
    within(normal(ClockScheme::PtpFrequent), [19.9, 20.2], "PTP, frequent");
    within(normal(ClockScheme::PtpFrequentSynchronous), [0.042, 0.045], "PTP, frequent, synchronous");
}
