//! `hitless bench clock`: how fast plans are, fabric by fabric, and through a series of failures; how fast Jupiter is simulated.

use chart::table::{Align, Table, thousands};
use clock::graph::{Graph, GraphError, GraphLink, GraphNode, HostLinks};
use clock::plan::{ClockPlan, PlanRequest, Survival, plan};
use clocksim::{ClockFailure, ClockOutcome, ClockSetup, TimedFailure, simulate};
use faults::Random;
use serde::Serialize;
use units::{Span, Time, Unwatched};

use crate::args::BenchClockArgs;
use crate::output::{CommandResult, Failure, print, say};
use crate::terminal::{now, stop_on_ctrl_c};

#[derive(Serialize)]
struct ClockBenchResult {
    fabrics: Vec<FabricPlanTiming>,
    failures: Vec<FailurePlanTiming>,
    replan_ms_median: f64,
    replan_ms_max: f64,
    peak_rss_bytes: u64,
    jupiter: Option<JupiterTiming>,
}

/// Milliseconds of Jupiter, wave by wave and with quiet waves in closed form.
#[derive(Serialize)]
struct JupiterTiming {
    simulated_ms: u64,
    full_seconds: f64,
    full_events: u64,
    short_seconds: f64,
    short_events: u64,
    /// True if both have the same result.
    same: bool,
}

/// A plan for one fabric, with the best time of all rounds.
#[derive(Serialize)]
struct FabricPlanTiming {
    fabric: String,
    nodes: usize,
    links: usize,
    domains: usize,
    complete: bool,
    max_depth: u32,
    max_depth_backup: u32,
    worst_single_failure_depth: u32,
    eps_root_ns: u32,
    first_score: usize,
    iterations: usize,
    plan_ms: f64,
}

/// A plan after one more failure.
#[derive(Serialize)]
struct FailurePlanTiming {
    failed: String,
    complete: bool,
    uncovered: usize,
    max_depth: u32,
    max_depth_backup: u32,
    plan_ms: f64,
}

pub(super) fn run(args: &BenchClockArgs, json: bool) -> CommandResult {
    let stop = stop_on_ctrl_c();
    let mut answer = ClockBenchResult {
        fabrics: Vec::new(),
        failures: Vec::new(),
        replan_ms_median: 0.0,
        replan_ms_max: 0.0,
        peak_rss_bytes: 0,
        jupiter: None,
    };
    let failed = |error: GraphError| Failure::Outside(error.to_string());
    for (name, graph, prefix) in fabrics() {
        if stop.is_stopped() {
            break;
        }
        say(&format!("plans for {name}"));
        let graph = graph.map_err(failed)?.with_domains_named(prefix);
        let graph = graph.map_err(|error| Failure::Outside(error.to_string()))?;
        answer.fabrics.push(timed(name, &graph, args.rounds)?);
    }
    let jupiter = Graph::jupiter(HostLinks::Dual).map_err(failed)?.with_domains_named("agg");
    let mut jupiter = jupiter.map_err(|error| Failure::Outside(error.to_string()))?;
    say(&format!("{} failures of Jupiter, a plan after each", args.failures));
    let mut random = Random::new(args.seed, 0);
    for _ in 0..args.failures {
        if stop.is_stopped() {
            break;
        }
        let failed = fail(&mut jupiter, &mut random);
        let (plan, plan_ms) = best(&jupiter, args.rounds)?;
        answer.failures.push(FailurePlanTiming {
            failed,
            complete: plan.is_complete(),
            uncovered: plan.uncovered.len(),
            max_depth: plan.max_depth(),
            max_depth_backup: plan.max_depth_backup(),
            plan_ms,
        });
    }
    let mut times: Vec<f64> = answer.failures.iter().map(|row| row.plan_ms).collect();
    times.sort_by(f64::total_cmp);
    answer.replan_ms_median = times.get(times.len() / 2).copied().unwrap_or_default();
    answer.replan_ms_max = times.last().copied().unwrap_or_default();
    answer.peak_rss_bytes = crate::memory::peak();
    if !stop.is_stopped() {
        say(&format!("{SIMULATED_MS} ms of Jupiter, every wave"));
        answer.jupiter = Some(simulated()?);
    }
    print(json, &answer, || describe(&answer))?;
    if stop.is_stopped() { Err(Failure::Interrupted) } else { Ok(()) }
}

/// Simulated time of Jupiter, in ms; its root fails in the middle.
const SIMULATED_MS: u64 = 10;

fn simulated() -> Result<JupiterTiming, Failure> {
    let outside = |error: &dyn std::fmt::Display| Failure::Outside(error.to_string());
    let graph = Graph::jupiter(HostLinks::Dual).map_err(|error| outside(&error))?;
    let graph = graph.with_domains_named("agg").map_err(|error| outside(&error))?;
    let plan = plan(&graph, &PlanRequest::default()).map_err(|error| outside(&error))?;
    let at = Time::ZERO + Span::from_ms(SIMULATED_MS) / 2;
    let failures = vec![TimedFailure { what: ClockFailure::Root, at, until: Time::NEVER }];
    let setup = ClockSetup { failures, ..ClockSetup::new(&graph, &plan, Span::from_ms(SIMULATED_MS)) };
    let run = |in_full| -> Result<(ClockOutcome, f64), Failure> {
        let begun = now();
        let outcome =
            simulate(&ClockSetup { in_full, ..setup.clone() }, &Unwatched).map_err(|error| outside(&error))?;
        Ok((outcome, begun.elapsed().as_secs_f64()))
    };
    let ((full, full_seconds), (short, short_seconds)) = (run(true)?, run(false)?);
    Ok(JupiterTiming {
        simulated_ms: SIMULATED_MS,
        full_seconds,
        full_events: full.events,
        short_seconds,
        short_events: short.events,
        same: short.is_same_as(&full),
    })
}

/// Fabrics to plan for, each with its name and its kind of domain.
fn fabrics() -> Vec<(String, Result<Graph, GraphError>, &'static str)> {
    let fat_tree = |k: u32| (format!("fat tree k = {k}"), Graph::fat_tree(k, HostLinks::None), "pod");
    let mut fabrics: Vec<_> = [4, 8, 16, 32, 64].map(fat_tree).into();
    fabrics.push(("261 pods".to_owned(), Graph::pods(261, HostLinks::None), "pod"));
    fabrics.push(("testbed".to_owned(), Graph::testbed(HostLinks::Dual), "pod"));
    fabrics.push(("Jupiter".to_owned(), Graph::jupiter(HostLinks::Dual), "agg"));
    fabrics
}

/// Computes a plan several times. Returns it with the best time in milliseconds.
fn best(graph: &Graph, rounds: u32) -> Result<(ClockPlan, f64), Failure> {
    let mut best = f64::INFINITY;
    let mut made = None;
    for _ in 0..rounds {
        let begun = now();
        let found = plan(graph, &PlanRequest::default());
        best = best.min(begun.elapsed().as_secs_f64() * 1e3);
        made = Some(found.map_err(|error| Failure::Outside(error.to_string()))?);
    }
    made.map(|plan| (plan, best)).ok_or_else(|| Failure::Usage("--rounds: expected at least 1".to_owned()))
}

fn timed(fabric: String, graph: &Graph, rounds: u32) -> Result<FabricPlanTiming, Failure> {
    let (plan, plan_ms) = best(graph, rounds)?;
    Ok(FabricPlanTiming {
        fabric,
        nodes: graph.node_count(),
        links: graph.link_count(),
        domains: graph.domains().len(),
        complete: plan.is_complete(),
        max_depth: plan.max_depth(),
        max_depth_backup: plan.max_depth_backup(),
        worst_single_failure_depth: Survival::of(graph, &plan).worst_depth(),
        eps_root_ns: plan.bounds().root_ns,
        first_score: plan.search.first_score,
        iterations: plan.search.iterations,
        plan_ms,
    })
}

/// Lets one more link or node fail; one in five is a node, and one in ten is near the root.
fn fail(graph: &mut Graph, random: &mut Random) -> String {
    let pick = |random: &mut Random, count: usize| (random.unit() * count as f64) as u32 % count as u32;
    let near_root = graph.usual_root().filter(|_| random.unit() < 0.1);
    let is_node = random.unit() < 0.2;
    if let Some(root) = near_root {
        if is_node {
            graph.fail_node(root);
            return format!("node:{}", graph.name(root));
        }
        let links = graph.neighbours(root).to_vec();
        let (_, link) = links[pick(random, links.len()) as usize];
        graph.fail_link(link);
        return format!("link:{}", graph.link_name(link));
    }
    if is_node {
        let node = GraphNode(pick(random, graph.node_count()));
        graph.fail_node(node);
        return format!("node:{}", graph.name(node));
    }
    let link = GraphLink(pick(random, graph.link_count()));
    graph.fail_link(link);
    format!("link:{}", graph.link_name(link))
}

fn describe(answer: &ClockBenchResult) -> String {
    let mut table = Table::new(&[
        ("fabric", Align::Left),
        ("nodes", Align::Right),
        ("links", Align::Right),
        ("complete", Align::Left),
        ("depth", Align::Right),
        ("after failures", Align::Right),
        ("single", Align::Right),
        ("ε, root dead", Align::Right),
        ("first score", Align::Right),
        ("steps", Align::Right),
        ("best", Align::Right),
    ]);
    for row in &answer.fabrics {
        table.row(vec![
            row.fabric.clone(),
            thousands(row.nodes as u64),
            thousands(row.links as u64),
            if row.complete { "yes" } else { "no" }.to_owned(),
            row.max_depth.to_string(),
            row.max_depth_backup.to_string(),
            row.worst_single_failure_depth.to_string(),
            format!("{} ns", row.eps_root_ns),
            thousands(row.first_score as u64),
            row.iterations.to_string(),
            format!("{:.3} ms", row.plan_ms),
        ]);
    }
    let deepest = answer.failures.iter().map(|row| row.max_depth_backup).max().unwrap_or_default();
    let complete = answer.failures.iter().filter(|row| row.complete).count();
    let uncovered = answer.failures.last().map_or(0, |row| row.uncovered);
    let jupiter = answer.jupiter.as_ref().map(|jupiter| {
        let same = if jupiter.same { "the same result" } else { "ANOTHER RESULT" };
        format!(
            "{} ms of Jupiter with the root's failure, every wave: {:.1} s ({} events); quiet waves in closed form: {:.1} s, {same}\n",
            jupiter.simulated_ms,
            jupiter.full_seconds,
            thousands(jupiter.full_events),
            jupiter.short_seconds
        )
    });
    format!(
        "{table}\n{} successive failures of Jupiter: {complete} plans complete, {uncovered} nodes cut off or behind one switch at the end, \
         depth after failures {deepest} at most\na plan after each: median {:.1} ms, at most {:.1} ms\npeak memory {:.0} MB\n{}",
        answer.failures.len(),
        answer.replan_ms_median,
        answer.replan_ms_max,
        answer.peak_rss_bytes as f64 / 1e6,
        jupiter.unwrap_or_default(),
    )
}
