//! All runs of all cases, several at a time: they mostly wait.

use std::io::Write;
use std::path::Path;
use std::thread;
use std::time::Duration;

use chart::table::{Align, Table};
use files::whole_file;
use linux::SystemError;
use serde::Serialize;
use units::Progress;

use crate::case::TestCase;
use crate::cases::{self, CasePlan, Draw};
use crate::check::{self, LossCounts, RunCheck};
use crate::explained::explain_both;
use crate::run::{StagePlan, TestRunRecord, play};

/// Runs at a time.
const AT_A_TIME: usize = 8;
/// A run that does not count is tried again so often.
const ATTEMPTS: u64 = 8;
/// Extra wait of a busy machine before each attempt.
const PATIENCE: Duration = Duration::from_millis(500);
/// Share that one capture must name of the losses that it can show.
const NAMED_SHARE: f64 = 0.95;

/// Plan of the runs.
#[derive(Clone, Copy, Debug)]
pub struct SelftestPlan<'a> {
    pub cases: &'a [TestCase],
    pub runs: u64,
    pub seed: u64,
    /// Folder that keeps captures.
    pub keep: Option<&'a Path>,
}

/// One case, all of its runs.
#[derive(Clone, Debug, Serialize)]
pub struct CaseRow {
    pub case: TestCase,
    pub runs: u64,
    pub right: u64,
    pub wrong: u64,
    /// Runs that do not count: this machine was too busy, or its kernel did something else than the case is about.
    pub not_counted: u64,
    /// Packets that the wire dropped.
    pub losses: u64,
    /// Losses that one capture alone can show, counted for each end, and those of them that it names.
    pub visible_losses: u64,
    pub named_losses: u64,
    /// Errors found, with the number of the run.
    pub faults: Vec<String>,
    /// Notes that no verdict depends on: losses that one capture missed, and reasons for which a run was not counted.
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct SelftestReport {
    pub cases: Vec<CaseRow>,
    pub runs: u64,
    pub wrong: u64,
    pub not_counted: u64,
    /// True unless the run was interrupted.
    pub complete: bool,
}

/// Outcome of one run.
#[derive(Debug)]
enum RunOutcome {
    Right,
    Wrong,
    /// This machine was too busy to say.
    Late,
    /// The kernel did something else than the case is about, and that was told rightly.
    Other,
}

#[derive(Debug)]
struct RunRow {
    outcome: RunOutcome,
    check: RunCheck,
    lag: Option<Duration>,
}

/// Runs everything, or until it is interrupted. The calling process may make namespaces.
pub fn run(plan: &SelftestPlan<'_>, progress: &(dyn Progress + Sync)) -> Result<SelftestReport, SystemError> {
    let jobs: Vec<(TestCase, u64)> =
        (0..plan.runs).flat_map(|run| plan.cases.iter().map(move |case| (*case, run))).collect();
    progress.expect_parts(jobs.len());
    let rows = parallel::map(&jobs, AT_A_TIME, |(case, run)| {
        if !progress.go_on(0) {
            return Ok(None);
        }
        let row = attempt(*case, *run, plan).map(Some);
        progress.part_done();
        row
    });
    let rows: Vec<Option<RunRow>> = rows.into_iter().collect::<Result<_, _>>()?;
    let ended = || jobs.iter().zip(&rows).filter_map(|((case, run), row)| Some((*case, *run, row.as_ref()?)));
    let of = |case: TestCase| ended().filter(move |(of, ..)| *of == case).map(|(_, run, row)| (run, row));
    let cases: Vec<CaseRow> = plan.cases.iter().map(|case| summary(*case, of(*case))).collect();
    let (wrong, not_counted) = (cases.iter().map(|row| row.wrong).sum(), cases.iter().map(|row| row.not_counted).sum());
    let runs = ended().count() as u64;
    Ok(SelftestReport { cases, runs, wrong, not_counted, complete: rows.iter().all(Option::is_some) })
}

/// One run; again if it does not count, with other numbers.
fn attempt(case: TestCase, run: u64, plan: &SelftestPlan<'_>) -> Result<RunRow, SystemError> {
    let stream = |attempt: u64| (case as u64) << 32 | run << 8 | attempt;
    let mut attempts = (0..ATTEMPTS).map(|attempt| {
        thread::sleep(PATIENCE * attempt as u32);
        let drawn = cases::plan(case, &mut Draw::new(plan.seed, stream(attempt)));
        run_once(&drawn, |captures| keep(plan.keep, case, run, captures))
    });
    let mut last = None;
    for row in &mut attempts {
        let row = row?;
        if matches!(row.outcome, RunOutcome::Right | RunOutcome::Wrong) {
            return Ok(row);
        }
        last = Some(row);
    }
    last.ok_or_else(|| SystemError("no attempt was made".into()))
}

fn run_once(plan: &CasePlan, keep: impl Fn(&[Vec<u8>; 2]) -> Result<(), SystemError>) -> Result<RunRow, SystemError> {
    let [client, server] = plan.apps.each_ref().map(std::slice::from_ref);
    let record: TestRunRecord = play(StagePlan {
        delay: plan.delay,
        connections: [client, server],
        rules: plan.rules.clone(),
        settings: &plan.settings,
        loss: None,
        settle: plan.delay.each * 4 + Duration::from_millis(60),
    })?;
    let captures = [record.capture(0), record.capture(1)];
    keep(&captures)?;
    let lag = record.wire.lag(plan.delay);
    let check = match explain_both(&captures) {
        Ok(answers) => check::check(plan, &record, &answers),
        Err(error) => RunCheck { faults: vec![error], ..RunCheck::default() },
    };
    let outcome = match (check.faults.is_empty(), check::is_late(plan, lag)) {
        (true, _) if check.is_other => RunOutcome::Other,
        (true, _) => RunOutcome::Right,
        (false, true) => RunOutcome::Late,
        (false, false) => RunOutcome::Wrong,
    };
    Ok(RunRow { outcome, check, lag })
}

fn keep(folder: Option<&Path>, case: TestCase, run: u64, captures: &[Vec<u8>; 2]) -> Result<(), SystemError> {
    let Some(folder) = folder else { return Ok(()) };
    for (end, capture) in ["client", "server"].iter().zip(captures) {
        let path = folder.join(format!("{case}-{}-{end}.pcapng", run + 1));
        whole_file(&path, |out| out.write_all(capture)).map_err(|error| SystemError(error.to_string()))?;
    }
    Ok(())
}

fn summary<'a>(case: TestCase, rows: impl Iterator<Item = (u64, &'a RunRow)>) -> CaseRow {
    let mut row = CaseRow {
        case,
        runs: 0,
        right: 0,
        wrong: 0,
        not_counted: 0,
        losses: 0,
        visible_losses: 0,
        named_losses: 0,
        faults: Vec::new(),
        notes: Vec::new(),
    };
    for (number, RunRow { outcome, check, lag }) in rows {
        let LossCounts { dropped, visible, named } = check.losses;
        row.runs += 1;
        row.losses += dropped;
        let said = |text: &String| format!("run {}: {text}", number + 1);
        match outcome {
            RunOutcome::Right => row.right += 1,
            RunOutcome::Wrong => row.wrong += 1,
            RunOutcome::Late => row.not_counted += 1,
            RunOutcome::Other => {
                row.not_counted += 1;
                row.notes.push(said(&"not counted: the kernel did something else".to_owned()));
            }
        }
        if let RunOutcome::Late = outcome {
            let lag = lag
                .map_or("lost packets by itself".into(), |lag| format!("was {:.1} ms late", lag.as_secs_f64() * 1e3));
            row.notes.push(said(&format!("not counted: the machine {lag}")));
            row.notes.extend(check.faults.iter().map(said));
            continue;
        }
        row.visible_losses += visible;
        row.named_losses += named;
        row.faults.extend(check.faults.iter().map(said));
        row.notes.extend(check.missed.iter().map(said));
    }
    if (row.named_losses as f64) < NAMED_SHARE * row.visible_losses as f64 {
        row.wrong += 1;
        row.faults.push(format!("one capture names {} of {} losses", row.named_losses, row.visible_losses));
    }
    row
}

impl SelftestReport {
    pub fn text(&self) -> String {
        let right = |name| (name, Align::Right);
        let columns = ["runs", "right", "wrong", "not counted", "losses", "named by one end"].map(right);
        let mut table = Table::new(&[&[("case", Align::Left)], &columns[..]].concat());
        for row in &self.cases {
            let mut cells = vec![row.case.to_string()];
            cells.extend([row.runs, row.right, row.wrong, row.not_counted, row.losses].map(|count| count.to_string()));
            cells.push(format!("{} of {}", row.named_losses, row.visible_losses));
            table.row(cells);
        }
        let faults =
            self.cases.iter().flat_map(|row| row.faults.iter().map(move |fault| format!("{}: {fault}", row.case)));
        let notes =
            self.cases.iter().flat_map(|row| row.notes.iter().map(move |note| format!("{}: note: {note}", row.case)));
        let lines: Vec<String> = faults.chain(notes).collect();
        format!(
            "{table}{}\n{} runs, {} wrong, {} not counted",
            lines.join("\n"),
            self.runs,
            self.wrong,
            self.not_counted
        )
    }
}
