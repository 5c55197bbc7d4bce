//! `hitless bench fleet`: how fast the planner is on this machine, on one core.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;

use bus::{Condition, Evidence, Message, PortId, PortState};
use chart::table::{Align, Table, thousands};
use faults::Random;
use fleet::fabric::Facebook;
use fleet::ledger::{LedgerTerms, PipeLayout};
use fleet::paths::{Constraint, Paths};
use fleet::plan;
use fleet::protection::ProtectionTable as Protections;
use fleet::simulate::{FleetSample, FleetSetup, Policy, simulate};
use fleet::trace::{CorruptionEvent, TraceModel};
use fleet::watch::{PROMPT, Watcher, repaired};
use fleet::{Fabric, LinkId};
use serde::Serialize;
use units::samples::upper_median;
use units::{Moment, StopFlag};

use crate::args::BenchFleetArgs;
use crate::fleet::{MOST_DAYS, terms};
use crate::output::{CommandResult, Failure, print, say};
use crate::terminal::{now, stop_on_ctrl_c};

const CONSTRAINTS: [f64; 2] = [0.5, 0.75];
const POLICIES: [Policy; 2] = [Policy::CorrOpt, Policy::CorrOptGuard];
/// Days of events that are planned one by one.
const WATCHED_DAYS: f64 = 60.0;

#[derive(Debug, Serialize)]
struct FleetBenchResult {
    links: usize,
    days: f64,
    years: Vec<YearTiming>,
    checks: Vec<FastCheckTiming>,
    replans: Vec<ReplanTiming>,
    peak_rss_bytes: u64,
}

/// A simulated year.
#[derive(Debug, Serialize)]
struct YearTiming {
    constraint: f64,
    policy: String,
    events: u64,
    optimizer_runs: u64,
    /// Median over the rounds, without making the trace.
    seconds: f64,
}

/// One fast check.
#[derive(Debug, Serialize)]
struct FastCheckTiming {
    what: &'static str,
    /// Median over batches.
    nanoseconds: f64,
}

/// One event of the loop: from a message to decisions.
#[derive(Debug, Serialize)]
struct ReplanTiming {
    what: &'static str,
    constraint: f64,
    events: usize,
    milliseconds_p50: f64,
    milliseconds_p99: f64,
    milliseconds_max: f64,
    /// Events after which a search ended before it was sure.
    unsure: usize,
}

pub(super) fn run(args: &BenchFleetArgs, json: bool) -> CommandResult {
    if !(args.days > 0.0 && args.days <= MOST_DAYS) {
        return Err(Failure::Usage(format!("--days {}: expected more than 0, at most {}", args.days, MOST_DAYS)));
    }
    let usage = |error: &dyn std::fmt::Display| Failure::Usage(error.to_string());
    let fabric = Fabric::facebook(&Facebook::pods(args.pods)).map_err(|error| usage(&error))?;
    let until = Moment::from_hours(args.days * 24.0);
    let trace = TraceModel::default().generate(&fabric, until, 1).map_err(|error| usage(&error))?;
    let stop = stop_on_ctrl_c();
    let mut answer = FleetBenchResult {
        links: fabric.links().len(),
        days: args.days,
        years: Vec::new(),
        checks: Vec::new(),
        replans: Vec::new(),
        peak_rss_bytes: 0,
    };
    let protections = Protections::measured();
    for (share, policy) in CONSTRAINTS.into_iter().flat_map(|share| POLICIES.map(|policy| (share, policy))) {
        say(&format!("a year at {} % under {policy}", share * 100.0));
        let terms = LedgerTerms { constraint: constraint(share), healthy_loss: 1e-18, pipes: PipeLayout::default() };
        let setup = FleetSetup {
            fabric: &fabric,
            trace: &trace,
            until,
            policy,
            terms,
            protection: &protections,
            capable: None,
        };
        answer.years.extend(year(&setup, args.rounds, &stop));
    }
    answer.peak_rss_bytes = crate::memory::peak();
    for share in CONSTRAINTS {
        say(&format!("events one by one at {} %", share * 100.0));
        answer.replans.extend(replans(&fabric, &trace, share, &stop));
        answer.replans.extend(storm(&fabric, share, &stop));
    }
    answer.checks = checks(&fabric);
    print(json, &answer, || describe(&answer))?;
    if stop.is_stopped() { Err(Failure::Interrupted) } else { Ok(()) }
}

fn constraint(share: f64) -> Constraint {
    Constraint::new(share).expect("a share that is written down here")
}

/// `None` if it was called off.
fn year(setup: &FleetSetup<'_>, rounds: u32, stop: &StopFlag) -> Option<YearTiming> {
    let mut seconds = Vec::new();
    let mut last = None;
    for _ in 0..rounds {
        let begun = now();
        let outcome = simulate(setup, |_: &FleetSample| (), stop);
        seconds.push(begun.elapsed().as_secs_f64());
        if stop.is_stopped() {
            return None;
        }
        last = Some(outcome);
    }
    let outcome = last?;
    Some(YearTiming {
        constraint: setup.terms.constraint.share(),
        policy: setup.policy.to_string(),
        events: outcome.events,
        optimizer_runs: outcome.optimizer_runs,
        seconds: upper_median(&mut seconds)?,
    })
}

/// Measures fast checks of links of a ToR, and of links higher up, which concern a whole pod; in any order, so that little
/// is in a cache.
fn checks(fabric: &Fabric) -> Vec<FastCheckTiming> {
    const BATCH: usize = 1_000;
    const BATCHES: usize = 201;
    let mut paths = Paths::new(fabric, constraint(0.75));
    let of_tors = |tor: bool| -> Vec<LinkId> {
        let all = (0..fabric.links().len() as u32).map(LinkId);
        all.filter(|link| fabric.down(fabric.link(*link).lower).is_empty() == tor).collect()
    };
    let kinds = [("a link of a ToR", true), ("a link to a spine", false)];
    let mut random = Random::new(1, 0);
    kinds
        .into_iter()
        .filter_map(|(what, tor)| {
            let links = of_tors(tor);
            let batches = (0..BATCHES).map(|_| {
                let pick = |random: &mut Random| links[(random.unit() * links.len() as f64) as usize % links.len()];
                let batch: Vec<LinkId> = (0..BATCH).map(|_| pick(&mut random)).collect();
                let begun = now();
                for link in &batch {
                    black_box(paths.can_disable(*link));
                }
                begun.elapsed().as_nanos() as f64 / BATCH as f64
            });
            Some(FastCheckTiming { what, nanoseconds: upper_median(&mut batches.collect::<Vec<_>>())? })
        })
        .collect()
}

/// Sends every corruption and repair of some weeks to a watcher that acts. Returns `None` if the user stopped the run.
fn replans(fabric: &Fabric, trace: &[CorruptionEvent], share: f64, stop: &StopFlag) -> Option<ReplanTiming> {
    let protections = Protections::measured();
    let terms = plan::PlanTerms { budget: PROMPT, ..terms(constraint(share), &protections, None) };
    let mut watcher = Watcher::acting(fabric, terms, 1);
    let mut repairs: BinaryHeap<Reverse<(Moment, LinkId)>> = BinaryHeap::new();
    let (mut times, mut unsure) = (Vec::new(), 0);
    let mut duration = vec![std::time::Duration::ZERO; fabric.links().len()];
    for (number, corruption) in (1..).zip(trace.iter().take_while(|corruption| corruption.at.as_days() < WATCHED_DAYS))
    {
        let mut messages = Vec::new();
        while let Some(Reverse((at, link))) = repairs.peek().copied().filter(|Reverse((at, _))| *at <= corruption.at) {
            repairs.pop();
            messages.extend(repaired(watcher.reports(), link, at, 1, "repaired").into_iter().map(Message::Order));
        }
        duration[corruption.link.index()] = corruption.repair;
        messages.push(report(fabric, corruption, number));
        for message in messages {
            let begun = now();
            let decisions = watcher.on_message(corruption.at, &message).unwrap_or_default();
            times.push(begun.elapsed().as_secs_f64() * 1e3);
            unsure += usize::from(decisions.iter().any(|decision| decision.missed > 0.0));
            for decision in decisions.iter().filter(|decision| !decision.ordered.is_empty()) {
                let back = corruption.at.after(duration[decision.id.index()]);
                repairs.push(Reverse((back, decision.id)));
            }
        }
        watcher.take_orders();
        if stop.is_stopped() {
            return None;
        }
    }
    summary("links as they fail", share, times, unsure)
}

/// Every link of a pod begins to corrupt, and none may go. `None` if it was called off.
fn storm(fabric: &Fabric, share: f64, stop: &StopFlag) -> Option<ReplanTiming> {
    let protections = Protections::measured();
    let terms = plan::PlanTerms { budget: PROMPT, ..terms(constraint(share), &protections, None) };
    let mut watcher = Watcher::new(fabric, terms);
    let mut random = Random::new(1, 0);
    let mut links: Vec<LinkId> = fabric.segments()[0].links.clone().map(LinkId).collect();
    for last in (1..links.len()).rev() {
        links.swap(last, (random.unit() * (last + 1) as f64) as usize);
    }
    let (mut times, mut unsure) = (Vec::new(), 0);
    for (number, link) in (1..).zip(links) {
        let loss = 10f64.powf(-8.0 + 6.0 * random.unit());
        let corruption = CorruptionEvent { at: Moment::ZERO, link, loss, repair: std::time::Duration::ZERO };
        let message = report(fabric, &corruption, number);
        let begun = now();
        let decisions = watcher.on_message(Moment::ZERO, &message).unwrap_or_default();
        times.push(begun.elapsed().as_secs_f64() * 1e3);
        unsure += usize::from(decisions.iter().any(|decision| decision.missed > 0.0));
        if stop.is_stopped() {
            return None;
        }
    }
    summary("every link of a pod", share, times, unsure)
}

fn summary(what: &'static str, constraint: f64, mut milliseconds: Vec<f64>, unsure: usize) -> Option<ReplanTiming> {
    milliseconds.sort_by(f64::total_cmp);
    let last = milliseconds.len().checked_sub(1)? as f64;
    let at = |share: f64| milliseconds.get((share * last) as usize).copied();
    Some(ReplanTiming {
        what,
        constraint,
        events: milliseconds.len(),
        milliseconds_p50: at(0.5)?,
        milliseconds_p99: at(0.99)?,
        milliseconds_max: at(1.0)?,
        unsure,
    })
}

/// Report that the monitor of the lower switch would publish.
fn report(fabric: &Fabric, corruption: &CorruptionEvent, number: u64) -> Message {
    let link = fabric.link(corruption.link);
    let [lower, upper] = [link.lower, link.upper].map(|end| fabric.switch(end).name.clone());
    let name = corruption.link.0;
    Message::Port(PortState {
        earliest_ns: None,
        latest_ns: None,
        time_of: None,
        id: PortId::new(lower, format!("up{name}")),
        peer: Some(PortId::new(upper, format!("down{name}"))),
        at: corruption.at,
        life: 1,
        number,
        condition: Condition::Corrupting,
        sticky: false,
        evidence: Evidence { loss: corruption.loss, ..Evidence::default() },
        why: "simulated".to_owned(),
    })
}

fn describe(answer: &FleetBenchResult) -> String {
    let mut years = Table::new(&[
        ("constraint", Align::Left),
        ("policy", Align::Left),
        ("events", Align::Right),
        ("optimizer runs", Align::Right),
        ("seconds", Align::Right),
    ]);
    for year in &answer.years {
        years.row(vec![
            format!("{} %", year.constraint * 100.0),
            year.policy.clone(),
            thousands(year.events),
            thousands(year.optimizer_runs),
            format!("{:.2}", year.seconds),
        ]);
    }
    let mut replans = Table::new(&[
        ("", Align::Left),
        ("constraint", Align::Left),
        ("events", Align::Right),
        ("p50", Align::Right),
        ("p99", Align::Right),
        ("max", Align::Right),
        ("unsure", Align::Right),
    ]);
    for replan in &answer.replans {
        let share = format!("{} %", replan.constraint * 100.0);
        let mut cells = vec![replan.what.to_owned(), share, thousands(replan.events as u64)];
        let times = [replan.milliseconds_p50, replan.milliseconds_p99, replan.milliseconds_max];
        cells.extend(times.map(|time| format!("{time:.3} ms")));
        cells.push(thousands(replan.unsure as u64));
        replans.row(cells);
    }
    let checks = answer.checks.iter().map(|check| format!("{:.0} ns for {}", check.nanoseconds, check.what));
    format!(
        "{} links, {} days\n{years}peak memory {:.0} MB\n\na fast check: {}\n\nfrom a message to decisions\n{replans}",
        thousands(answer.links as u64),
        answer.days,
        answer.peak_rss_bytes as f64 / 1e6,
        checks.collect::<Vec<_>>().join(", "),
    )
}
