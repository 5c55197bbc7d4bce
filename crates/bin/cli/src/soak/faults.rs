//! `hitless soak --faults`: bad days, one after the other, and an account of every datagram.

use std::collections::BTreeMap;
use std::time::Duration;

use chart::table::{Align, Table, thousands};
use lab::soak::faults::{FaultBench, FaultKind, FaultObserver, FaultPlan, FaultReport, PlannedFault};
use units::Span;

use super::SoakProgress;
use crate::args::SoakArgs;
use crate::output::{CommandResult, Failure, print};

pub(super) fn run(args: &SoakArgs, json: bool) -> CommandResult {
    let plan = plan(args)?;
    let (standing, stop) = super::begin(args.rootless)?;
    let progress = SoakProgress::new(plan.duration);
    let bench = lab::soak::faults::run(&plan, standing, &stop, &progress);
    progress.bar.finish_and_clear();
    let Some(bench) = bench.map_err(|trouble| Failure::Outside(trouble.0))? else {
        return Err(Failure::Interrupted);
    };
    print(json, &bench, || text(&bench))?;
    match bench.holds() {
        _ if !bench.complete => Err(Failure::Interrupted),
        true => Ok(()),
        false => Err(Failure::Outside(faulty(&bench))),
    }
}

fn plan(args: &SoakArgs) -> Result<FaultPlan, Failure> {
    let outside = |what: String| move |error: std::io::Error| Failure::Outside(format!("{what}: {error}"));
    let kinds: Result<Vec<FaultKind>, String> = args.kinds.iter().map(|name| name.trim().parse()).collect();
    let kinds = kinds.map_err(|error| Failure::Usage(format!("--kinds {error}")))?;
    let host = args.backend.parse().map_err(|error| Failure::Usage(format!("--backend {}: {error}", args.backend)))?;
    let duration = super::duration(args, Duration::from_mins(10))?;
    let lasting = args.lasting.map(lasting).transpose()?;
    if let Some(lasting) = lasting.filter(|lasting| *lasting + Duration::from_secs(8) > duration / 2) {
        let least = 2 * (lasting.as_secs() + 9);
        return Err(Failure::Usage(format!("--lasting {}s: --for must be {least}s or more", lasting.as_secs_f64())));
    }
    if let Some(logs) = &args.logs {
        std::fs::create_dir_all(logs).map_err(|error| Failure::Usage(format!("--logs {}: {error}", logs.display())))?;
    }
    Ok(FaultPlan {
        duration,
        seed: args.seed,
        kinds: if kinds.is_empty() { FaultKind::ALL.to_vec() } else { kinds },
        lasting,
        program: std::env::current_exe().map_err(outside("find this program".to_owned()))?,
        host,
        logs: args.logs.clone(),
    })
}

fn lasting(given: Span) -> Result<Duration, Failure> {
    let lasting = Duration::from_nanos(given.as_ps() / 1_000);
    match (Duration::from_millis(10)..=Duration::from_mins(10)).contains(&lasting) {
        true => Ok(lasting),
        false => Err(Failure::Usage(format!("--lasting {given}: expected 10ms to 10m"))),
    }
}

impl FaultObserver for SoakProgress {
    fn tick(&self, elapsed: Duration) {
        self.advance(elapsed);
    }

    fn fault(&self, number: usize, fault: &PlannedFault) {
        let side = ["left", "right"][fault.end];
        self.bar.set_message(format!("fault {number}: {} on the {side}", fault.kind));
    }

    fn remark(&self, text: &str) {
        self.print(text);
    }
}

fn text(bench: &FaultBench) -> String {
    let FaultBench { totals, .. } = bench;
    let root = if bench.rootless { ", without root" } else { "" };
    let mut text = format!(
        "{:.0} s, {} faults, seed {}{root}\n\n{}\n",
        bench.seconds,
        bench.faults.len(),
        bench.seed,
        kinds(bench)
    );
    text += &format!(
        "datagrams: {} sent = {} delivered + {} given up + {} refused + {} dropped + {} unaccounted for\n",
        thousands(totals.sent),
        thousands(totals.delivered),
        thousands(totals.given_up),
        thousands(totals.refused),
        thousands(totals.dropped),
        thousands(totals.unaccounted),
    );
    text += &format!(
        "duplicated {}, reordered {}, corrupted {}; over TCP {} transfers and {} requests\n\n",
        thousands(totals.duplicated),
        thousands(totals.reordered),
        thousands(totals.corrupted),
        thousands(bench.transfers),
        thousands(bench.requests),
    );
    for (what, list) in [("left behind", &bench.left_behind), ("problem", &bench.problems)] {
        for line in list {
            text += &format!("{what}: {line}\n");
        }
    }
    text += match bench.holds() {
        true => {
            "ok     every datagram is accounted for, none was duplicated, reordered or corrupted, nothing is left behind"
        }
        false => "FAULT  ",
    };
    if !bench.holds() {
        text += &faulty(bench);
    }
    text
}

/// Lists everything that does not hold, in one line.
fn faulty(bench: &FaultBench) -> String {
    let FaultBench { totals, .. } = bench;
    let counts = [
        (totals.unaccounted, "unaccounted for"),
        (totals.duplicated, "duplicated"),
        (totals.reordered, "reordered"),
        (totals.corrupted, "corrupted"),
        (bench.left_behind.len() as u64, "left behind"),
        (bench.problems.len() as u64, "problems"),
    ];
    let wrong = counts.iter().filter(|(count, _)| *count > 0);
    let wrong: Vec<String> = wrong.map(|(count, what)| format!("{} {what}", thousands(*count))).collect();
    wrong.join(", ")
}

fn middle_and_longest(faults: &[&FaultReport], ms: fn(&FaultReport) -> f64) -> [String; 2] {
    let mut all: Vec<f64> = faults.iter().map(|fault| ms(fault)).collect();
    all.sort_by(f64::total_cmp);
    let last = all.len().saturating_sub(1);
    [last / 2, last].map(|at| all.get(at).map_or(String::new(), |ms| format!("{ms:.0} ms")))
}

fn kinds(bench: &FaultBench) -> Table {
    let mut table = Table::new(&[
        ("fault", Align::Left),
        ("times", Align::Right),
        ("silence p50", Align::Right),
        ("longest", Align::Right),
        ("protected after, p50", Align::Right),
        ("longest", Align::Right),
        ("lost", Align::Right),
        ("counted", Align::Right),
        ("verdict", Align::Left),
    ]);
    let mut by_kind: BTreeMap<&str, Vec<&FaultReport>> = BTreeMap::new();
    for fault in &bench.faults {
        by_kind.entry(fault.kind).or_default().push(fault);
    }
    for (kind, faults) in by_kind {
        let [silence, silences] = middle_and_longest(&faults, |fault| fault.silence_ms);
        let [protected, all_protected] = middle_and_longest(&faults, |fault| fault.protected_after_ms);
        let sum = |of: fn(&FaultReport) -> u64| faults.iter().map(|fault| of(fault)).sum::<u64>();
        let unclean = faults.iter().filter(|fault| !fault.is_clean()).count();
        table.row(vec![
            kind.to_owned(),
            faults.len().to_string(),
            silence,
            silences,
            protected,
            all_protected,
            thousands(sum(|fault| fault.lost)),
            thousands(sum(|fault| fault.counted)),
            if unclean == 0 { "ok".to_owned() } else { format!("FAULT in {unclean}") },
        ]);
    }
    table
}
