//! Thousands of random runs: no node is ever wrong by more than it says, and no second root arises from one failure.

use clock::graph::{DomainId, Graph, GraphLink, GraphNode, HostLinks};
use clock::node::{DepthRule, NodeParams, TimeoutRule};
use clock::plan::{ClockPlan, PlanRequest, plan};
use clocksim::{
    ChainEnd, ClockFailure, ClockOutcome, ClockScheme, ClockSetup, DriftModel, TimedFailure, WayError, simulate,
};
use faults::Random;
use units::{Span, Time, Unwatched};

const DRIFTS: [DriftModel; 4] = [DriftModel::Constant, DriftModel::Walk, DriftModel::Ramp, DriftModel::Adversary];

/// Fabrics with pods as domains, each with its plan.
fn fabrics() -> Vec<(Graph, ClockPlan)> {
    let ring = Graph::new((0..8).map(|n| format!("n{n}")), (0..8u32).map(|n| [n, (n + 1) % 8])).unwrap();
    let tree = Graph::fat_tree(4, HostLinks::None).unwrap().with_domains_named("pod").unwrap();
    let planned = |graph: Graph| {
        let plan = plan(&graph, &PlanRequest::default()).unwrap();
        assert!(plan.is_complete());
        (graph, plan)
    };
    [ring, tree].into_iter().map(planned).collect()
}

/// A failure of a kind, somewhere, between two waves.
fn failure(graph: &Graph, kind: u64, random: &mut Random) -> TimedFailure {
    let mut any = |count: usize| random.below(count as u64) as u32;
    let what = match kind {
        0 => ClockFailure::Root,
        1 if !graph.domains().is_empty() => ClockFailure::Domain(DomainId(any(graph.domains().len()))),
        2 | 3 => ClockFailure::Node(GraphNode(any(graph.node_count()))),
        _ => ClockFailure::Link(GraphLink(any(graph.link_count()))),
    };
    let at = Time::ZERO + Span::from_ns(400_000 + random.below(400_000));
    TimedFailure { what, at, until: Time::NEVER }
}

/// One run of each number: its drift, its failures and its losses follow from it.
fn run((graph, plan): &(Graph, ClockPlan), number: u64, failures: u64, node: NodeParams) -> ClockOutcome {
    let mut random = Random::new(number, 9);
    let kinds = [0, 1, 2, 3, 4, 5];
    let failures = (0..failures).map(|_| failure(graph, kinds[random.below(6) as usize], &mut random)).collect();
    let setup = ClockSetup {
        node,
        drift: DRIFTS[(number % 4) as usize].clone(),
        way_error: WayError::PerMessage,
        loss: 1e-3,
        failures,
        controller: Span::from_us(1_500),
        seed: number,
        ..ClockSetup::new(graph, plan, Span::from_us(3_000))
    };
    simulate(&setup, &Unwatched).unwrap()
}

#[test]
fn ten_thousand_single_failures_make_nobody_wrong_and_no_second_root() {
    let fabrics = fabrics();
    let (mut elections, mut turns) = (0, 0);
    for number in 0..10_000 {
        let depth = if number % 8 < 4 { DepthRule::Planned } else { DepthRule::Carried };
        let outcome = run(&fabrics[(number / 8 % 2) as usize], number, 1, NodeParams { depth, ..NodeParams::THESIS });
        assert_eq!((outcome.wrong, outcome.second_roots), (0, 0), "run {number}: {outcome:?}");
        assert_eq!((outcome.rejected, outcome.evicted), (0, 0), "run {number}: honest messages are believed");
        elections += outcome.elections;
        turns += outcome.turns;
    }
    assert!(elections > 1_000 && turns > 20_000, "{elections} elections, {turns} turns");
}

/// At 88,064 nodes it takes a controller a while to tell everybody: some have the new plan already, others not yet.
#[test]
fn while_a_plan_is_told_node_by_node_nobody_is_wrong_and_no_second_root_arises() {
    let fabrics = fabrics();
    for number in 0..1_000 {
        let (graph, plan) = &fabrics[(number / 8 % 2) as usize];
        let mut random = Random::new(number, 9);
        let failures = vec![failure(graph, number % 6, &mut random)];
        let setup = ClockSetup {
            drift: DRIFTS[(number % 4) as usize].clone(),
            way_error: WayError::PerMessage,
            failures,
            controller: Span::from_us(1_500),
            rollout: Span::from_us(2_000),
            seed: number,
            ..ClockSetup::new(graph, plan, Span::from_us(6_000))
        };
        let outcome = simulate(&setup, &Unwatched).unwrap();
        assert_eq!((outcome.wrong, outcome.second_roots), (0, 0), "run {number}: {outcome:?}");
        assert_eq!((outcome.rejected, outcome.evicted), (0, 0), "run {number}: {outcome:?}");
    }
}

/// The same runs with ε_base of the backup parent from the timeout on (§3.4.2.2), whatever the node's own error is by then.
#[test]
fn the_thesis_rule_for_epsilon_at_the_timeout_makes_nodes_wrong() {
    let fabrics = fabrics();
    let thesis = NodeParams { timeout: TimeoutRule::Thesis, ..NodeParams::THESIS };
    let wrong =
        (0..2_000).filter(|number| run(&fabrics[(number / 8 % 2) as usize], *number, 1, thesis).wrong > 0).count();
    assert!(wrong > 0, "the thesis's rule for ε at the timeout was expected to fail, and did not");
}

#[test]
fn after_two_failures_nobody_is_wrong_and_every_second_root_is_explained() {
    let fabrics = fabrics();
    let (runs, mut with_second) = (4_000, 0);
    for number in 0..runs {
        let outcome = run(&fabrics[(number / 8 % 2) as usize], number + 1_000_000, 2, NodeParams::THESIS);
        assert_eq!(outcome.wrong, 0, "run {number}: {outcome:?}");
        with_second += u64::from(outcome.second_roots > 0);
        for second in &outcome.second_root_causes {
            assert!(second.end != ChainEnd::Loss, "run {number}: {second:?}");
        }
    }
    // The ring has no third way: two failures there cut it into halves.
    assert!(with_second > 0 && with_second < runs / 5, "{with_second} of {runs} runs have a second root");
}

/// Many losses alone may let the backup root take over while somebody still hears the root; the next plan then makes the old
/// root a follower.
#[test]
fn an_old_root_that_a_plan_makes_a_follower_follows() {
    let ring = Graph::new((0..3).map(|n| format!("n{n}")), [[0, 1], [1, 2], [2, 0]]).unwrap();
    let plan = plan(&ring, &PlanRequest::default()).unwrap();
    let mut second_roots = 0;
    for seed in 0..40 {
        let controller = Span::from_ms(2);
        let setup = ClockSetup { loss: 1e-1, controller, seed, ..ClockSetup::new(&ring, &plan, Span::from_ms(300)) };
        let outcome = simulate(&setup, &Unwatched).unwrap();
        assert_eq!((outcome.wrong, outcome.evicted, outcome.rejected), (0, 0, 0), "{seed}: {outcome:?}");
        second_roots += outcome.second_roots;
    }
    assert!(second_roots > 10, "{second_roots}");
}

#[test]
fn every_scheme_is_right_under_every_drift() {
    let (graph, plan) = fabrics().pop().unwrap();
    for scheme in ClockScheme::ALL {
        for (place, drift) in DRIFTS.into_iter().enumerate() {
            for kind in 0..5 {
                let interval = scheme.interval(&NodeParams::THESIS);
                let duration = interval * 30;
                let mut random = Random::new(kind, 11);
                let at = Time::ZERO + interval * 8 + Span::from_ps(random.below(interval.as_ps()));
                let failures = vec![TimedFailure { at, ..failure(&graph, kind, &mut random) }];
                let seed = place as u64 * 8 + kind;
                let controller = Span::from_ms(100).min(interval * 9);
                let setup = ClockSetup {
                    scheme,
                    drift: drift.clone(),
                    failures,
                    seed,
                    controller,
                    ..ClockSetup::new(&graph, &plan, duration)
                };
                let outcome = simulate(&setup, &Unwatched).unwrap();
                assert_eq!((outcome.wrong, outcome.second_roots), (0, 0), "{scheme} {drift} {kind}: {outcome:?}");
                assert!(outcome.worst_margin_ns > 0.0 && outcome.eps_normal_max_ns > 0.0, "{scheme}: {outcome:?}");
            }
        }
    }
}

/// Whoever comes back after a failure knows nothing, so it may begin a term with a number that it had before: its terms are told apart
/// by the run of the node that began them.
#[test]
fn a_backup_root_that_comes_back_and_is_elected_again_begins_another_term() {
    let [_, (graph, plan)] = &fabrics()[..] else { panic!("two fabrics") };
    let (duration, seed) = (Span::from_ms(2_000), 356_814);
    let failures = TimedFailure::random(graph, plan.root, 50, Span::from_ms(5_000), seed);
    let controller = Span::from_ms(1_000);
    let setup = ClockSetup { loss: 1e-2, failures, controller, seed, ..ClockSetup::new(graph, plan, duration) };
    let outcome = simulate(&setup, &Unwatched).unwrap();
    assert!(outcome.elections > 2, "{outcome:?}");
    assert_eq!((outcome.wrong, outcome.wrong_nodes, outcome.wrong_until_us), (0, 0, 0.0), "{outcome:?}");
}
