//! Agreement of the shadow with the kernel: many connections under random losses.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use chart::table::{Align, Table};
use explain::answer::ConnectionAnswer;
use explain::terms::TimeCause;
use faults::Random;
use files::whole_file;
use linux::SystemError;
use serde::Serialize;
use units::Progress;

use crate::cases::{Draw, MSS};
use crate::ends::{AppPlan, AppStep};
use crate::explained::explain_one;
use crate::run::{StagePlan, play};
use crate::wire::{RandomLoss, WireDelay};

/// Chances that a packet is lost.
const LOSSES: [f64; 3] = [0.0, 1e-3, 1e-2];
/// Connections that share a stage, one after another.
const ON_A_STAGE: u64 = 20;
const AT_A_TIME: usize = 10;
/// Least share of segments with which the shadow agrees, and largest share of time of unknown cause.
const LEAST_AGREEMENT: f64 = 0.95;
const MOST_UNKNOWN: f64 = 0.02;

/// Plan of the runs.
#[derive(Clone, Copy, Debug)]
pub struct AgreementPlan<'a> {
    /// Connections at each loss.
    pub connections: u64,
    pub seed: u64,
    /// Folder that keeps captures.
    pub keep: Option<&'a Path>,
}

/// All connections at one loss.
#[derive(Clone, Debug, Default, Serialize)]
pub struct AgreementRow {
    pub loss: f64,
    pub connections: u64,
    /// Segments with payload of the sender next to the capture.
    pub segments: u64,
    /// The share of them that the shadow would have sent as well.
    pub agreement: f64,
    /// The share of connections that agree with all of their segments.
    pub whole: f64,
    /// The share of time whose cause is not known.
    pub unknown: f64,
    pub holds: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct AgreementReport {
    pub rows: Vec<AgreementRow>,
    pub holds: bool,
    /// True unless the run was interrupted.
    pub complete: bool,
}

/// Sums over connections.
#[derive(Clone, Copy, Debug, Default)]
struct AgreementSum {
    connections: u64,
    segments: f64,
    agreed: f64,
    whole: u64,
    time: u64,
    unknown: u64,
}

/// Runs everything, or until it is interrupted. The calling process may make namespaces.
pub fn run(plan: &AgreementPlan<'_>, progress: &(dyn Progress + Sync)) -> Result<AgreementReport, SystemError> {
    let stages = plan.connections.div_ceil(ON_A_STAGE);
    let jobs: Vec<(usize, u64)> =
        (0..stages).flat_map(|stage| (0..LOSSES.len()).map(move |loss| (loss, stage))).collect();
    progress.expect_parts(jobs.len());
    let sums = parallel::map(&jobs, AT_A_TIME, |(loss, stage)| {
        if !progress.go_on(0) {
            return Ok(None);
        }
        let connections = ON_A_STAGE.min(plan.connections - stage * ON_A_STAGE);
        let sums = run_stage(*loss, *stage, connections, plan).map(Some);
        progress.part_done();
        sums
    });
    let sums: Vec<Option<AgreementSum>> = sums.into_iter().collect::<Result<_, _>>()?;
    let of = |loss: usize| jobs.iter().zip(&sums).filter(move |((of, _), _)| *of == loss).filter_map(|(_, sum)| *sum);
    let rows: Vec<AgreementRow> = (0..LOSSES.len()).map(|loss| row(LOSSES[loss], of(loss))).collect();
    let holds = rows.iter().all(|row| row.holds);
    Ok(AgreementReport { rows, holds, complete: sums.iter().all(Option::is_some) })
}

/// Transfers and requests of any size, one after another, over one path.
fn run_stage(loss: usize, stage: u64, connections: u64, plan: &AgreementPlan<'_>) -> Result<AgreementSum, SystemError> {
    let stream = 1 << 40 | (loss as u64) << 32 | stage;
    let mut draw = Draw::new(plan.seed, stream);
    let delay = Duration::from_micros(draw.between(2_000, 20_000).into());
    let apps: Vec<[AppPlan; 2]> = (0..connections).map(|_| connection(&mut draw)).collect();
    let [client, server] = [0, 1].map(|end| apps.iter().map(|apps| apps[end].clone()).collect::<Vec<_>>());
    let record = play(StagePlan {
        delay: WireDelay { each: delay, payload: Duration::ZERO },
        connections: [&client, &server],
        rules: Vec::new(),
        settings: &Default::default(),
        loss: Some(RandomLoss { random: Random::new(plan.seed, stream | 1 << 41), chance: LOSSES[loss] }),
        settle: Duration::ZERO,
    })?;
    let capture = record.capture(0);
    if let Some(folder) = plan.keep {
        let path = folder.join(format!("agreement-{}-{}.pcapng", LOSSES[loss], stage + 1));
        whole_file(&path, |out| out.write_all(&capture)).map_err(|error| SystemError(error.to_string()))?;
    }
    let answer = explain_one(&capture).map_err(SystemError)?;
    let mut sum = AgreementSum::default();
    answer.connections.iter().for_each(|connection| sum.add(connection));
    Ok(sum)
}

/// The client sends: all at once, in several writes, or requests that are answered.
fn connection(draw: &mut Draw) -> [AppPlan; 2] {
    let mut apps = [AppPlan::default(), AppPlan::default()];
    let mut say = |from: usize, bytes: u32| {
        apps[from].steps.push(AppStep::Send(bytes as usize));
        apps[1 - from].steps.push(AppStep::Receive(bytes as usize));
    };
    match draw.between(0, 2) {
        0 => say(0, draw.between(1, 200) * MSS),
        1 => (0..draw.between(2, 6)).for_each(|_| say(0, draw.between(200, 30 * MSS))),
        _ => {
            for _ in 0..draw.between(1, 6) {
                say(0, draw.between(100, 20 * MSS));
                say(1, draw.between(100, 4 * MSS));
            }
        }
    }
    apps
}

impl AgreementSum {
    fn add(&mut self, connection: &ConnectionAnswer) {
        let Some(agreement) = connection.agreement else { return };
        let segments = connection.bytes_up.div_ceil(u64::from(connection.mss.max(1))).max(1) as f64;
        self.connections += 1;
        self.segments += segments;
        self.agreed += agreement * segments;
        self.whole += u64::from(agreement >= 1.0);
        self.time += connection.duration_ns;
        let unknown = connection.parts.iter().filter(|part| part.cause == TimeCause::Unknown);
        self.unknown += unknown.map(|part| part.ns).sum::<u64>();
    }
}

fn row(loss: f64, sums: impl Iterator<Item = AgreementSum>) -> AgreementRow {
    let mut all = AgreementSum::default();
    for sum in sums {
        all.connections += sum.connections;
        all.segments += sum.segments;
        all.agreed += sum.agreed;
        all.whole += sum.whole;
        all.time += sum.time;
        all.unknown += sum.unknown;
    }
    let agreement = all.agreed / all.segments.max(1.0);
    let unknown = all.unknown as f64 / all.time.max(1) as f64;
    AgreementRow {
        loss,
        connections: all.connections,
        segments: all.segments as u64,
        agreement,
        whole: all.whole as f64 / all.connections.max(1) as f64,
        unknown,
        holds: agreement >= LEAST_AGREEMENT && unknown <= MOST_UNKNOWN,
    }
}

impl AgreementReport {
    pub fn text(&self) -> String {
        let columns = ["loss", "connections", "segments", "shadow agrees", "agrees with all", "unknown time"];
        let mut table = Table::new(&columns.map(|name| (name, Align::Right)));
        for row in &self.rows {
            let share = |share: f64| format!("{:.2} %", 100.0 * share);
            table.row(vec![
                format!("{}", row.loss),
                row.connections.to_string(),
                row.segments.to_string(),
                share(row.agreement),
                share(row.whole),
                share(row.unknown),
            ]);
        }
        let verdict = if self.holds { "holds" } else { "DOES NOT HOLD" };
        format!("{table}at least 95 % of segments, at most 2 % unknown: {verdict}")
    }
}
