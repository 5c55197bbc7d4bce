//! `hitless fleet upgrade`: which switches first.

use fleet::ledger::{LedgerTerms, PipeLayout};
use fleet::protection::ProtectionTable as Protections;
use fleet::simulate::{FleetSetup, Policy};
use fleet::upgrade::report::{UPGRADE_STEPS, UpgradeAnswer};
use fleet::upgrade::{Exposure, UpgradeCurve, UpgradeOrder, curve};
use units::Progress;

use crate::args::UpgradeArgs;
use crate::output::{CommandResult, Failure, print};
use crate::results::write_file;
use crate::terminal::{TerminalProgress, jobs};

pub(super) fn run(args: &UpgradeArgs, json: bool) -> CommandResult {
    let fabric = super::fabric(&args.fabric)?;
    let (model, until) = super::year(&args.year)?;
    let orders = if args.orders.is_empty() { UpgradeOrder::all(&fabric) } else { args.orders.clone() };
    let wrong = |order: &UpgradeOrder, error| Failure::Usage(format!("--orders {order}: {error}"));
    for order in orders.iter().filter(|order| **order != UpgradeOrder::Greedy) {
        order.switches(&fabric, &Exposure::even(&fabric), 0).map_err(|error| wrong(order, error))?;
    }
    let seeds: Vec<u64> = args.seeds.iter().collect();
    let terminal = TerminalProgress::of_runs();
    terminal.expect_parts(seeds.len());
    let protections = Protections::measured();
    let terms = LedgerTerms { constraint: args.year.constraint, healthy_loss: 0.0, pipes: PipeLayout::default() };
    let exposures = parallel::map(&seeds, jobs(args.year.jobs), |seed| {
        let made = model.generate(&fabric, until, *seed).map_err(|error| Failure::Usage(error.to_string()))?;
        let setup = FleetSetup {
            fabric: &fabric,
            trace: &made,
            until,
            policy: Policy::CorrOpt,
            terms,
            protection: &protections,
            capable: None,
        };
        let exposure = Exposure::record(&setup, &terminal);
        terminal.part_done();
        Ok(exposure.map(|exposure| (*seed, exposure)))
    });
    terminal.finish();
    let exposures = exposures.into_iter().filter_map(Result::transpose).collect::<Result<Vec<_>, Failure>>()?;
    let seeds: Vec<u64> = exposures.iter().map(|(seed, _)| *seed).collect();
    let mut exposures = exposures.into_iter().map(|(_, exposure)| exposure);
    let Some(mut exposure) = exposures.next() else { return Err(Failure::Interrupted) };
    exposures.for_each(|other| exposure.add(&other));
    let curve = |order: &UpgradeOrder| {
        let switches = order.switches(&fabric, &exposure, seeds[0]).map_err(|error| wrong(order, error))?;
        Ok(curve(&fabric, &exposure, &order.to_string(), &switches, UPGRADE_STEPS))
    };
    let mut curves: Vec<UpgradeCurve> = orders.iter().map(curve).collect::<Result<_, Failure>>()?;
    curves.sort_by(|one, other| one.area.total_cmp(&other.area));
    let answer = UpgradeAnswer {
        links: fabric.links().len(),
        switches: fabric.switches().len(),
        constraint: args.year.constraint.share(),
        days: until.as_days(),
        seeds,
        orders: curves,
    };
    if let Some(path) = &args.out {
        write_file("--out", path, |out| answer.csv(out))?;
    }
    print(json, &answer, || answer.text())?;
    if terminal.stopped() { Err(Failure::Interrupted) } else { Ok(()) }
}
