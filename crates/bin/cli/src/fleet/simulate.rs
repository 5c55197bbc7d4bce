//! `hitless fleet simulate`.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use fleet::Fabric;
use fleet::fabric::SwitchNames;
use fleet::ledger::{LedgerTerms, PipeLayout, PipeNumbering};
use fleet::protection::ProtectionTable as Protections;
use fleet::simulate::report::{YearRun, YearRuns};
use fleet::simulate::{FleetOutcome, FleetSample, FleetSetup, Policy, simulate};
use fleet::trace::{self, CorruptionEvent, TraceModel};
use fleet::upgrade::{Exposure, UpgradeOrder, capable};
use units::{Moment, Progress};

use super::series::{self, SeriesFormat};
use crate::args::{NumberingArg, PolicyArg, SimulateArgs};
use crate::output::{CommandResult, Failure, print};
use crate::results::write_file;
use crate::terminal::{TerminalProgress, jobs, now};

/// Context that all runs share.
struct SimulationContext<'a> {
    args: &'a SimulateArgs,
    fabric: &'a Fabric,
    model: TraceModel,
    until: Moment,
    protections: Protections,
    /// Trace from a file, for all runs.
    trace: Option<Vec<CorruptionEvent>>,
    terminal: &'a TerminalProgress,
    /// True if progress is shown in days of the only run; false for runs.
    alone: bool,
}

pub(super) fn run(args: &SimulateArgs, json: bool) -> CommandResult {
    let fabric = super::fabric(&args.fabric)?;
    let (model, until) = super::year(&args.year)?;
    let seeds: Vec<Option<u64>> = match (&args.seeds, &args.trace) {
        (_, Some(_)) => vec![None],
        (Some(seeds), None) => seeds.iter().map(Some).collect(),
        (None, None) => vec![Some(args.seed)],
    };
    check_out(args.out.as_deref(), seeds.len())?;
    if let UpgradeOrder::Levels(_) = args.upgrade_order {
        upgrade_order(&args.upgrade_order, &fabric, &Exposure::even(&fabric), 0)?;
    }
    let trace = match &args.trace {
        Some(path) => {
            Some(trace::load(path, &SwitchNames::of(&fabric)).map_err(|error| Failure::Usage(error.to_string()))?)
        }
        None => None,
    };
    let alone = seeds.len() == 1;
    let terminal =
        if alone { TerminalProgress::counting(args.year.days as u64, "days") } else { TerminalProgress::of_runs() };
    if !alone {
        terminal.expect_parts(seeds.len());
    }
    let protections = Protections::measured();
    let common =
        SimulationContext { args, fabric: &fabric, model, until, protections, trace, terminal: &terminal, alone };
    let runs = parallel::map(&seeds, jobs(args.year.jobs), |seed| common.carry_out(*seed));
    terminal.finish();
    let runs: Vec<YearRun> = runs.into_iter().filter_map(Result::transpose).collect::<Result<_, Failure>>()?;
    if alone && let [run] = &runs[..] {
        print(json, run, || run.text())?;
    } else {
        let runs = YearRuns::new(runs);
        print(json, &runs, || runs.text())?;
    }
    if terminal.stopped() { Err(Failure::Interrupted) } else { Ok(()) }
}

/// One file is for one run.
fn check_out(out: Option<&Path>, runs: usize) -> Result<(), Failure> {
    let Some(out) = out else { return Ok(()) };
    match SeriesFormat::of(out) {
        Some(format) if !format.is_written() => {
            Err(Failure::Usage(format!("--out {}: {}", out.display(), tables::NO_PARQUET)))
        }
        Some(_) if runs == 1 => Ok(()),
        Some(_) => Err(Failure::Usage(format!("--out {}: expected a folder, for {runs} runs", out.display()))),
        None if out.extension().is_some() && !out.is_dir() => Err(Failure::Usage(format!(
            "--out {}: expected a file that ends in .csv or .parquet, or a folder",
            out.display()
        ))),
        None => {
            std::fs::create_dir_all(out).map_err(|error| Failure::Usage(format!("--out {}: {error}", out.display())))
        }
    }
}

fn upgrade_order(
    order: &UpgradeOrder,
    fabric: &Fabric,
    exposure: &Exposure,
    seed: u64,
) -> Result<Vec<fleet::SwitchId>, Failure> {
    let wrong = |error| Failure::Usage(format!("--upgrade-order {order}: {error}"));
    order.switches(fabric, exposure, seed).map_err(wrong)
}

impl SimulationContext<'_> {
    /// `None` if it was called off before it began.
    fn carry_out(&self, seed: Option<u64>) -> Result<Option<YearRun>, Failure> {
        if self.terminal.stopped() {
            return Ok(None);
        }
        let begun = now();
        let trace = self.trace(seed)?;
        if let Some(path) = &self.args.write_trace {
            write_file("--write-trace", path, |out| trace::write_csv(&trace, self.fabric, out))?;
        }
        let capable = self.capable(&trace, seed)?;
        let mut samples = Vec::new();
        let setup = self.setup(&trace, capable.as_deref());
        let outcome = self.simulate(&setup, &mut samples);
        let seconds = begun.elapsed().as_secs_f64();
        // A series that ends early looks like one that is complete.
        let is_whole = outcome.until >= setup.until;
        for (path, format) in self.files(seed).into_iter().filter(|_| is_whole) {
            series::write(&path, format, self.fabric, &samples)?;
        }
        if !self.alone {
            self.terminal.part_done();
        }
        Ok(Some(YearRun::new(seed, &setup, &outcome, seconds, crate::memory::peak())))
    }

    fn trace(&self, seed: Option<u64>) -> Result<Cow<'_, [CorruptionEvent]>, Failure> {
        match (&self.trace, seed) {
            (Some(trace), _) => Ok(Cow::Borrowed(trace)),
            (None, seed) => {
                let made = self.model.generate(self.fabric, self.until, seed.unwrap_or_default());
                made.map(Cow::Owned).map_err(|error| Failure::Usage(error.to_string()))
            }
        }
    }

    /// True for each switch that can protect; `None` if all can.
    fn capable(&self, trace: &[CorruptionEvent], seed: Option<u64>) -> Result<Option<Vec<bool>>, Failure> {
        let (share, order) = (self.args.upgraded.get(), &self.args.upgrade_order);
        if share >= 1.0 {
            return Ok(None);
        }
        let exposure = match order {
            UpgradeOrder::Greedy => Exposure::record(&self.setup(trace, None), self.terminal.stop_flag()),
            _ => None,
        };
        let exposure = exposure.unwrap_or_else(|| Exposure::even(self.fabric));
        let switches = upgrade_order(order, self.fabric, &exposure, seed.unwrap_or_default())?;
        Ok(Some(capable(self.fabric, &switches, share)))
    }

    fn setup<'a>(&'a self, trace: &'a [CorruptionEvent], capable: Option<&'a [bool]>) -> FleetSetup<'a> {
        FleetSetup {
            fabric: self.fabric,
            trace,
            until: self.until,
            policy: match self.args.policy {
                PolicyArg::Corropt => Policy::CorrOpt,
                PolicyArg::CorroptGuard => Policy::CorrOptGuard,
                PolicyArg::GuardOnly => Policy::GuardOnly,
                PolicyArg::None => Policy::None,
            },
            terms: LedgerTerms {
                constraint: self.args.year.constraint,
                healthy_loss: self.args.healthy_loss.get(),
                pipes: PipeLayout {
                    ports: self.args.ports_per_pipe,
                    numbering: match self.args.pipe_numbering {
                        NumberingArg::RoundRobin => PipeNumbering::RoundRobin,
                        NumberingArg::Contiguous => PipeNumbering::Contiguous,
                    },
                },
            },
            protection: &self.protections,
            capable,
        }
    }

    fn simulate(&self, setup: &FleetSetup<'_>, samples: &mut Vec<FleetSample>) -> FleetOutcome {
        let wanted = self.args.out.is_some();
        let observer = |sample: &FleetSample| samples.extend(wanted.then_some(*sample));
        simulate(setup, observer, self.terminal)
    }

    fn files(&self, seed: Option<u64>) -> Vec<(PathBuf, SeriesFormat)> {
        let Some(out) = &self.args.out else { return Vec::new() };
        if let Some(format) = SeriesFormat::of(out) {
            return vec![(out.clone(), format)];
        }
        let name = seed.map_or("trace".to_owned(), |seed| format!("seed-{seed}"));
        let formats = [(SeriesFormat::Csv, "csv"), (SeriesFormat::Parquet, "parquet")];
        let formats = formats.into_iter().filter(|(format, _)| format.is_written());
        formats.map(|(format, end)| (out.join(format!("{name}.{end}")), format)).collect()
    }
}
