//! Messages that links lose or send again, clocks that are broken, and waves in closed form against all of them.

use clock::graph::{Graph, GraphNode, HostLinks};
use clock::plan::{ClockPlan, PlanRequest, plan};
use clocksim::{ClockFailure, ClockOutcome, ClockSetup, DriftModel, TimedFailure, simulate};
use units::{Span, Time, Unwatched};

fn fat_tree() -> (Graph, ClockPlan) {
    let graph = Graph::fat_tree(4, HostLinks::None).unwrap().with_domains_named("pod").unwrap();
    let plan = plan(&graph, &PlanRequest::default()).unwrap();
    (graph, plan)
}

fn run(setup: &ClockSetup<'_>) -> ClockOutcome {
    simulate(setup, &Unwatched).unwrap()
}

/// A node turns when it misses two waves in a row. Each hop on its way loses a wave with chance p.
#[test]
fn false_turns_over_lossy_links_are_as_many_as_the_square_of_the_loss_predicts() {
    let (graph, plan) = fat_tree();
    for loss in [1e-2, 5e-3f64] {
        let controller = Span::from_us(300);
        let setup = ClockSetup { loss, controller, ..ClockSetup::new(&graph, &plan, Span::from_ms(4_500)) };
        let outcome = run(&setup);
        let chance = |node: GraphNode| {
            let missed = 1.0 - (1.0 - loss).powi(plan.depth[node.index()].unwrap() as i32);
            missed * missed * (1.0 - missed)
        };
        let expected: f64 = plan.nodes().map(chance).sum::<f64>() * outcome.waves as f64;
        let share = outcome.turns as f64 / expected;
        // A loss near the root moves a whole subtree, so counts scatter more than Poisson's.
        assert!(share > 0.6 && share < 1.5, "{} turns where {expected:.0} were expected", outcome.turns);
        assert_eq!(outcome.wrong, 0, "{outcome:?}");
    }
}

#[test]
fn a_link_that_sends_again_with_a_new_stamp_moves_nobody() {
    let (graph, plan) = fat_tree();
    let duration = Span::from_ms(450);
    let setup = ClockSetup { loss: 1e-2, link_retries: Some(true), ..ClockSetup::new(&graph, &plan, duration) };
    let outcome = run(&setup);
    assert_eq!((outcome.wrong, outcome.turns, outcome.rejected), (0, 0, 0), "{outcome:?}");
}

/// A late message looks like a broken clock, and two of them like one's own. Only who knows the time to no better than the
/// message is late, or not at all, believes it.
#[test]
fn a_late_copy_with_the_old_stamp_is_believed_only_by_who_heard_nothing_for_long() {
    let (graph, plan) = fat_tree();
    let (duration, begun) = (Span::from_ms(450), Time::ZERO + Span::from_us(300));
    for seed in 1..=8 {
        let setup = ClockSetup { loss: 1e-2, link_retries: Some(false), ..ClockSetup::new(&graph, &plan, duration) };
        let outcome = run(&ClockSetup { seed, log: true, ..setup });
        assert!(outcome.rejected > 20 && outcome.turns > 20 && outcome.evicted > 0, "{seed}: {outcome:?}");
        let mut is_unsure = vec![false; graph.node_count()];
        for row in &outcome.log {
            let Some(node) = row.node.map(|node| node as usize) else { continue };
            match row.event {
                "wrong" => assert!(is_unsure[node] || row.at < begun, "{seed}: {row:?}"),
                "evicted" | "elected" => is_unsure[node] = true,
                "recovered" => is_unsure[node] |= row.epsilon.is_some_and(|epsilon| epsilon > Span::from_us(2)),
                _ => {}
            }
        }
    }
}

#[test]
fn a_node_with_a_broken_clock_evicts_itself_and_nobody_else_is_wrong() {
    let (graph, plan) = fat_tree();
    let node = plan.nodes().find(|node| plan.depth[node.index()] == Some(2)).unwrap();
    let drift = DriftModel::Broken(graph.name(node).to_owned(), 5_000);
    let setup = ClockSetup { drift, log: true, ..ClockSetup::new(&graph, &plan, Span::from_ms(20)) };
    let outcome = run(&setup);
    assert_eq!(outcome.evicted, 1, "{outcome:?}");
    let wrong: Vec<_> = outcome.log.iter().filter(|row| row.event == "wrong").map(|row| row.node).collect();
    assert!(!wrong.is_empty(), "until it notices, a broken clock is wrong");
    assert!(wrong.iter().all(|wrong| *wrong == Some(node.0)), "{wrong:?}");
}

#[test]
fn everybody_leaves_a_root_with_a_broken_clock_for_the_backup_root() {
    let (graph, plan) = fat_tree();
    let drift = DriftModel::Broken(graph.name(plan.root).to_owned(), 3_000);
    let setup = ClockSetup { drift, log: true, ..ClockSetup::new(&graph, &plan, Span::from_ms(20)) };
    let outcome = run(&setup);
    assert_eq!((outcome.elections, outcome.second_roots, outcome.evicted), (1, 0, 0), "{outcome:?}");
    let elected = outcome.log.iter().find(|row| row.event == "elected").unwrap();
    assert_eq!(elected.node, Some(plan.backup_root.0));
    let settled = elected.at + Span::from_us(20);
    let late: Vec<_> = outcome.log.iter().filter(|row| row.event == "wrong" && row.at > settled).collect();
    assert!(late.is_empty(), "{late:?}");
}

/// Second roots are common then, but whoever follows one knows by how much it may differ from it.
#[test]
fn losses_of_one_in_a_hundred_to_one_in_three_make_second_roots_and_nobody_wrong() {
    let graph = Graph::fat_tree(4, HostLinks::None).unwrap();
    let plan = plan(&graph, &PlanRequest::default()).unwrap();
    for (seed, loss) in [1e-2, 3e-2, 1e-1, 3e-1].into_iter().enumerate() {
        let drift = [DriftModel::Constant, DriftModel::Adversary][seed % 2].clone();
        let duration = Span::from_ms(2_000);
        let setup = ClockSetup { loss, drift, seed: seed as u64, ..ClockSetup::new(&graph, &plan, duration) };
        let outcome = run(&setup);
        assert_eq!((outcome.wrong, outcome.rejected, outcome.evicted), (0, 0, 0), "{loss}: {outcome:?}");
        assert!(loss < 3e-2 || outcome.second_roots > 5, "{loss}: {outcome:?}");
    }
}

/// A root that is a little too fast is followed by everybody, each outside its ε; one that is much too fast only until the backup root
/// takes over.
#[test]
fn a_root_beyond_the_drift_that_is_allowed_makes_others_wrong_and_the_outcome_says_whom() {
    let (graph, plan) = fat_tree();
    let with_root_at = |ppm| {
        let drift = DriftModel::Broken(graph.name(plan.root).to_owned(), ppm);
        run(&ClockSetup { drift, log: true, ..ClockSetup::new(&graph, &plan, Span::from_ms(50)) })
    };
    let [slightly, much] = [200, 1_000].map(with_root_at);
    assert_eq!((slightly.rejected, slightly.elections), (0, 0), "{slightly:?}");
    assert!(slightly.wrong > 0 && slightly.wrong_nodes > 1 && slightly.wrong_until_us > 49_000.0, "{slightly:?}");
    assert!(slightly.worst_margin_ns > -10.0, "{slightly:?}");
    assert_eq!((much.elections, much.second_roots), (1, 0), "{much:?}");
    assert!(much.wrong_nodes == graph.node_count() - 1 && much.wrong_until_us < 600.0, "{much:?}");
    assert!((-500.0..-200.0).contains(&much.worst_margin_ns), "{much:?}");
}

fn assert_same(short: &ClockOutcome, full: &ClockOutcome) {
    assert!(short.is_same_as(full), "{short:?}\n{full:?}");
    let late = ClockOutcome { recovery_us_max: full.recovery_us_max + 0.03, ..full.clone() };
    let more = ClockOutcome { turns: full.turns + 1, ..full.clone() };
    assert!(!short.is_same_as(&late) && !short.is_same_as(&more));
}

#[test]
fn waves_in_closed_form_and_all_waves_give_the_same() {
    let (graph, plan) = fat_tree();
    let child = plan.nodes().find(|node| plan.depth[node.index()] == Some(1)).unwrap();
    let fails = |what, at, until| TimedFailure { what, at: Time::ZERO + at, until: Time::ZERO + until };
    let failures = vec![
        fails(
            ClockFailure::Link(plan.parent[child.index()].unwrap().link),
            Span::from_us(70_010),
            Span::from_us(150_100),
        ),
        fails(ClockFailure::Root, Span::from_us(300_001), Span::from_us(400_000)),
    ];
    for drift in [DriftModel::Constant, DriftModel::Walk, DriftModel::Ramp, DriftModel::Adversary] {
        let controller = Span::from_ms(20);
        let failures = failures.clone();
        let setup = ClockSetup { drift, failures, controller, ..ClockSetup::new(&graph, &plan, Span::from_ms(500)) };
        let (short, full) = (run(&setup), run(&ClockSetup { in_full: true, ..setup.clone() }));
        assert_same(&short, &full);
        assert_eq!((short.wrong, short.elections), (0, 1), "{short:?}");
        assert!(short.events * 2 < full.events, "{} of {} events", short.events, full.events);
    }
}

#[test]
fn jupiter_in_closed_form_and_in_full_give_the_same() {
    let graph = Graph::jupiter(HostLinks::Dual).unwrap().with_domains_named("agg").unwrap();
    let plan = plan(&graph, &PlanRequest::default()).unwrap();
    let failures =
        vec![TimedFailure { what: ClockFailure::Root, at: Time::from_ps(1_500_000_000), until: Time::NEVER }];
    let setup = ClockSetup { failures, ..ClockSetup::new(&graph, &plan, Span::from_us(3_000)) };
    let (short, full) = (run(&setup), run(&ClockSetup { in_full: true, ..setup.clone() }));
    assert_same(&short, &full);
    assert_eq!((short.wrong, short.elections, short.second_roots), (0, 1, 0), "{short:?}");
    assert!(short.eps_root_max_ns < 145.0 && short.eps_root_max_ns > 120.0, "{short:?}");
}

/// Within the tolerance and beyond, at any node, with failures: a broken clock drifts through the waves that others may skip.
#[test]
fn a_broken_clock_does_the_same_whether_every_wave_is_simulated_or_not() {
    let (graph, plan) = fat_tree();
    let nodes: Vec<GraphNode> = plan.nodes().collect();
    let mut skipped = 0;
    for seed in 1..=6 {
        for (turn, ppm) in [-5_000, -400, -120, -100, 40, 100, 120, 250, 700, 3_000].into_iter().enumerate() {
            let node = nodes[(seed as usize * 7 + turn * 3) % nodes.len()];
            let drift = DriftModel::Broken(graph.name(node).to_owned(), ppm);
            let duration = Span::from_ms(150);
            let failures = match seed % 2 {
                0 => TimedFailure::random(&graph, plan.root, 2, duration, seed),
                _ => Vec::new(),
            };
            let controller = Span::from_ms(10);
            let setup = ClockSetup { drift, failures, controller, seed, ..ClockSetup::new(&graph, &plan, duration) };
            let (short, full) = (run(&setup), run(&ClockSetup { in_full: true, ..setup.clone() }));
            assert!(short.is_same_as(&full), "seed {seed}, {} off by {ppm} ppm: {short:?}\n{full:?}", graph.name(node));
            skipped += u32::from(short.events < full.events);
        }
    }
    assert_eq!(skipped, 18, "within the tolerance quiet waves are skipped as ever");
}
