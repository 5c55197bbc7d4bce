//! `hitless fleet`: a year of it, a plan for now, the loop, and which switches to upgrade first.

mod plan;
mod repaired;
mod series;
mod simulate;
mod topology;
mod upgrade;
mod watch;

use std::path::Path;

use bus::Bus;
use bus::key::OrderKey;
use fleet::Fabric;
use fleet::corropt::BUDGET;
use fleet::fabric::{Facebook, SwitchNames};
use fleet::ledger;
use fleet::paths::Constraint;
use fleet::plan::PlanTerms;
use fleet::protection::Protect;
use fleet::trace::TraceModel;
use units::{Moment, Rate};

use crate::args::{FabricArgs, FleetCommand, OrderBusArgs, YearArgs};
use crate::output::{CommandResult, Failure};

pub(crate) fn run(command: &FleetCommand, json: bool) -> CommandResult {
    match command {
        FleetCommand::Simulate(args) => simulate::run(args, json),
        FleetCommand::Plan(args) => plan::run(args, json),
        FleetCommand::Watch(args) => watch::run(args, json),
        FleetCommand::Repaired(args) => repaired::run(args, json),
        FleetCommand::Upgrade(args) => upgrade::run(args, json),
        FleetCommand::Topology(args) => topology::run(args, json),
    }
}

const PODS: u32 = 261;
/// Longer than anybody plans for.
pub(crate) const MOST_DAYS: f64 = 36_525.0;

fn fabric(args: &FabricArgs) -> Result<Fabric, Failure> {
    let usage = |option: &str, error: &dyn std::fmt::Display| Failure::Usage(format!("{option}: {error}"));
    match (args.pods, args.fat_tree, &args.topology) {
        (_, _, Some(path)) => load(path),
        (_, Some(k), _) => {
            Fabric::fat_tree(k, Rate::gbps(100)).map_err(|error| usage(&format!("--fat-tree {k}"), &error))
        }
        (pods, None, None) => {
            let pods = pods.unwrap_or(PODS);
            Fabric::facebook(&Facebook::pods(pods)).map_err(|error| usage(&format!("--pods {pods}"), &error))
        }
    }
}

fn load(path: &Path) -> Result<Fabric, Failure> {
    Fabric::load(path).map_err(|error| Failure::Usage(error.to_string()))
}

/// Model of the events of a simulated year, and its end.
fn year(args: &YearArgs) -> Result<(TraceModel, Moment), Failure> {
    if !(args.days > 0.0 && args.days <= MOST_DAYS) {
        return Err(Failure::Usage(format!("--days {}: expected more than 0 and at most {MOST_DAYS}", args.days)));
    }
    let model =
        TraceModel { mttf: args.mttf.0, shape: args.shape, repairs: args.repair.0.clone(), ..TraceModel::default() };
    model.check().map_err(|error| Failure::Usage(error.to_string()))?;
    Ok((model, Moment::from_hours(args.days * 24.0)))
}

pub(crate) fn terms<'a>(
    constraint: Constraint,
    protection: &'a dyn Protect,
    capable: Option<&'a [bool]>,
) -> PlanTerms<'a> {
    let ledger = ledger::LedgerTerms { constraint, healthy_loss: 0.0, pipes: ledger::PipeLayout::default() };
    PlanTerms { ledger, protection, capable, budget: BUDGET }
}

/// Opens the bus, and reads the key that signs orders if there is one.
fn order_bus(args: &OrderBusArgs) -> Result<(Box<dyn Bus>, Option<OrderKey>), Failure> {
    let bus = bus::open_with_ca(&args.bus, args.bus_ca.as_deref());
    let bus = bus.map_err(|error| Failure::Usage(format!("--bus: {error}")))?;
    let key = args.order_key.as_deref().map(OrderKey::read).transpose();
    Ok((bus, key.map_err(|why| Failure::Usage(format!("--order-{why}")))?))
}

/// Reads a file that names switches, and marks each of them.
fn capable(path: Option<&Path>, names: &SwitchNames<'_>) -> Result<Option<Vec<bool>>, Failure> {
    let Some(path) = path else { return Ok(None) };
    let file = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| Failure::Usage(format!("{file}: {error}")))?;
    let mut capable = vec![false; names.fabric().switches().len()];
    for (line, name) in text.lines().map(str::trim).enumerate() {
        if !name.is_empty() && !name.starts_with('#') {
            let unknown = |error| Failure::Usage(format!("{file}:{}: {error}", line + 1));
            capable[names.switch(name).map_err(unknown)?.index()] = true;
        }
    }
    Ok(Some(capable))
}
