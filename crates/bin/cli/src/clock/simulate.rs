//! `hitless clock simulate`.

use std::collections::{BTreeSet, HashMap};
use std::io::Write;
use std::path::Path;

use clock::graph::{Graph, GraphNames};
use clock::node::NodeParams;
use clock::plan::{ClockPlan, PlanFile, PlanRequest, plan};
use clocksim::{ClockLogRow, ClockOutcome, ClockSetup, TimedFailure, simulate};
use serde::Serialize;
use units::{Progress, Span, Time};

use super::graph::graph;
use super::{load_plan, wrong_plan};
use crate::args::{ClockSimulateArgs, ClockWiringArgs};
use crate::output::{CommandResult, Failure, print, say};
use crate::results::write_file;
use crate::terminal::TerminalProgress;

/// Printed result: the outcome, and the time that it took.
#[derive(Serialize)]
struct SimulatedClocks {
    #[serde(flatten)]
    outcome: ClockOutcome,
    /// False if any clock was ever off by more than its ε.
    bound_held: bool,
    wall_seconds: f64,
}

/// Shows the share of the time that has been simulated.
struct SharedProgress<'a>(&'a TerminalProgress);

impl Progress for SharedProgress<'_> {
    fn go_on(&self, _: u64) -> bool {
        !self.0.stopped()
    }

    fn simulated(&self, now: Time, share: f64) {
        let text = format!("{} simulated", now.since(Time::ZERO));
        self.0.show(share, text);
        let _ = self.0.go_on((share * 10_000.0) as u64);
    }
}

pub(super) fn run(args: &ClockSimulateArgs, json: bool) -> CommandResult {
    if args.duration == Span::ZERO {
        return Err(Failure::Usage("--for 0s: expected more than that".to_owned()));
    }
    let (graph, plan) = planned(args)?;
    let failures = failures(args, &graph, &plan)?;
    let node = NodeParams { depth: args.depth.rule(), ..NodeParams::THESIS };
    let setup = ClockSetup {
        scheme: args.scheme,
        node,
        drift: args.drift.clone(),
        loss: args.loss.map_or(0.0, |loss| loss.get()),
        failures,
        controller: args.controller,
        rollout: args.rollout,
        seed: args.seed,
        in_full: args.full,
        log: args.csv.is_some(),
        ..ClockSetup::new(&graph, &plan, args.duration)
    };
    let terminal = TerminalProgress::of_shares();
    let outcome = simulate(&setup, &SharedProgress(&terminal)).map_err(|error| Failure::Usage(error.to_string()))?;
    terminal.finish();
    if let Some(path) = &args.csv {
        write_log(path, &outcome.log, &graph)?;
    }
    let bound_held = outcome.wrong == 0;
    let found = SimulatedClocks { outcome, bound_held, wall_seconds: terminal.elapsed().as_secs_f64() };
    print(json, &found, || describe(&found, &graph))?;
    if !bound_held {
        say(&warning(&found.outcome));
    }
    if found.outcome.interrupted { Err(Failure::Interrupted) } else { Ok(()) }
}

/// The fabric and its plan: from a file, or made for the fabric.
fn planned(args: &ClockSimulateArgs) -> Result<(Graph, ClockPlan), Failure> {
    let Some(path) = &args.plan else {
        let graph = graph(&args.graph)?;
        let plan = plan(&graph, &PlanRequest::default()).map_err(|error| Failure::Usage(error.to_string()))?;
        return Ok((graph, plan));
    };
    let (file, text) = load_plan(path)?;
    let ClockWiringArgs { topology, fat_tree, pods, jupiter, testbed } = &args.graph.wiring;
    let named = topology.is_some() || fat_tree.is_some() || pods.is_some() || *jupiter || *testbed;
    let graph = if named { graph(&args.graph)? } else { graph_of(&file, path)? };
    let plan = file.resolve(&GraphNames::of(&graph)).map_err(|error| wrong_plan(path, &error.located(&text)))?;
    Ok((graph, plan))
}

/// The nodes of a plan, and those of their links that the plan uses.
fn graph_of(file: &PlanFile, path: &Path) -> Result<Graph, Failure> {
    let nodes = file.plan.iter().map(|row| (&row.node, &row.parent, &row.backup));
    let rows: Vec<_> = nodes.chain(file.uncovered.iter().map(|row| (&row.node, &row.parent, &None))).collect();
    let numbers: HashMap<&str, u32> = rows.iter().map(|(node, ..)| node.as_str()).zip(0..).collect();
    let mut links = BTreeSet::new();
    for (node, parent, backup) in &rows {
        for other in parent.iter().chain(backup.iter()) {
            // Whoever is listened to has a row: that was seen when the plan was read.
            let (one, other) = (numbers[node.as_str()], numbers[other.as_str()]);
            links.insert([one.min(other), one.max(other)]);
        }
    }
    Graph::new(rows.iter().map(|(node, ..)| node.as_str()), links)
        .map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))
}

fn failures(args: &ClockSimulateArgs, graph: &Graph, plan: &ClockPlan) -> Result<Vec<TimedFailure>, Failure> {
    let names = GraphNames::of(graph);
    let mut failures = Vec::new();
    for text in &args.fail {
        match text.strip_prefix("random:") {
            Some(count) => {
                let wrong = |_| Failure::Usage(format!("--fail {text}: expected random: and a number up to 100000"));
                let count = count.parse::<u32>().map_err(wrong)?;
                if count > 100_000 || graph.node_count() < 2 {
                    return Err(Failure::Usage(format!(
                        "--fail {text}: expected at most 100000, and two nodes or more"
                    )));
                }
                failures.extend(TimedFailure::random(graph, plan.root, count, args.duration, args.seed));
            }
            None => failures.push(
                TimedFailure::parse(text, &names).map_err(|error| Failure::Usage(format!("--fail {text}: {error}")))?,
            ),
        }
    }
    if let Some(late) = failures.iter().find(|failure| failure.at >= Time::ZERO + args.duration) {
        let at = late.at.since(Time::ZERO);
        return Err(Failure::Usage(format!("--fail at {at}: the run ends at {}", args.duration)));
    }
    Ok(failures)
}

fn write_log(path: &Path, rows: &[ClockLogRow], graph: &Graph) -> CommandResult {
    let ns = |ps: Option<f64>| ps.map(|ps| format!("{:.3}", ps / 1e3)).unwrap_or_default();
    write_file("--csv", path, |out| {
        writeln!(out, "time_us,node,event,eps_ns,error_ns")?;
        for row in rows {
            let node = row.node.map(|node| graph.name(clock::graph::GraphNode(node))).unwrap_or_default();
            let (epsilon, error) =
                (ns(row.epsilon.map(|span| span.as_ps() as f64)), ns(row.error_ps.map(|ps| ps as f64)));
            writeln!(out, "{:.6},{node},{},{epsilon},{error}", row.at.since(Time::ZERO).as_us(), row.event)?;
        }
        Ok(())
    })
}

/// Text for standard error, so that nobody takes ε from a run in which it did not hold.
fn warning(outcome: &ClockOutcome) -> String {
    let ClockOutcome { wrong, wrong_nodes, worst_margin_ns, wrong_until_us, .. } = outcome;
    let beyond = Span::from_ps((worst_margin_ns.abs() * 1e3) as u64);
    format!(
        "warning: ε did not hold: {wrong_nodes} clocks differed from their root's by more than it, at {wrong} instants until \
         {wrong_until_us:.1} us, by up to {beyond} more (docs/clock-protocol.md#where-ε-ends)"
    )
}

fn describe(found: &SimulatedClocks, graph: &Graph) -> String {
    let SimulatedClocks { outcome, wall_seconds, .. } = found;
    let time = |ns: f64| Span::from_ps((ns * 1e3) as u64);
    let mut lines = vec![format!(
        "{}, {} nodes, {} waves ({} events, {wall_seconds:.2} s)",
        outcome.scheme, outcome.nodes, outcome.waves, outcome.events
    )];
    let mut line = |name: &str, value: String| lines.push(format!("{name:<26}{value}"));
    line(
        "ε, nothing failing",
        format!("{} at most, {} median", time(outcome.eps_normal_max_ns), time(outcome.eps_p50_ns)),
    );
    if outcome.recovery_us_max > 0.0 {
        let silent = Span::from_ps((outcome.recovery_us_max * 1e6) as u64);
        line("ε after a failure", format!("{} at most, {silent} without a message", time(outcome.eps_failure_max_ns)));
    }
    if outcome.root_recovery_us > 0.0 {
        let silent = Span::from_ps((outcome.root_recovery_us * 1e6) as u64);
        line("ε after the root's", format!("{} at most, {silent} without a message", time(outcome.eps_root_max_ns)));
    }
    if outcome.affected > 0 {
        let (affected, switches) = (outcome.affected, outcome.affected_switches);
        let (all, of_switches) = (outcome.impacted_ms, outcome.impacted_switches_ms);
        line(
            "nodes that missed a wave",
            format!("{affected} for {all:.3} ms together; {switches} switches for {of_switches:.3} ms"),
        );
    }
    let (turns, elections, second) = (outcome.turns, outcome.elections, outcome.second_roots);
    line("turns, elections", format!("{turns}, {elections} ({second} beside a root that others followed)"));
    line("rejected, evicted", format!("{} messages, {} nodes", outcome.rejected, outcome.evicted));
    line("wrong", format!("{} times; the smallest margin was {:.3} ns", outcome.wrong, outcome.worst_margin_ns));
    for second in &outcome.second_root_causes {
        let names: Vec<&str> = second.chain.iter().map(|node| graph.name(clock::graph::GraphNode(*node))).collect();
        lines.push(format!("second root at {:.1} us: {} ({:?})", second.at_us, names.join(" listens to "), second.end));
    }
    if outcome.interrupted {
        lines.push("interrupted: this is what was known then".to_owned());
    }
    lines.join("\n")
}
