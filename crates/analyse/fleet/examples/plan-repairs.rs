//! Plans the repairs of a fabric in which three links corrupt: which links to disable, which to protect, and why.
//! `cargo run -p hitless-fleet --example plan-repairs`.

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;

use fleet::Fabric;
use fleet::corropt::BUDGET;
use fleet::corrupting;
use fleet::fabric::SwitchNames;
use fleet::ledger::{LedgerTerms, PipeLayout};
use fleet::paths::Constraint;
use fleet::plan::report::plan_text;
use fleet::plan::{Plan, PlanTerms, plan};
use fleet::protection::ProtectionTable;
use units::Rate;

const CORRUPTING: &str = "link,loss\nleaf5--spine0,1e-5\nleaf5--spine2,1e-3\nleaf6--spine1,1e-4\n";

/// Plans so that each ToR keeps three of its four paths.
pub(crate) fn repairs() -> Result<Plan, Box<dyn Error>> {
    let fabric = Fabric::leaf_spine(8, 4, Rate::gbps(100))?;
    let faulty = corrupting::parse("links.csv", CORRUPTING, &SwitchNames::of(&fabric))?;
    let constraint = Constraint::new(0.75).ok_or("expected a share")?;
    let ledger = LedgerTerms { constraint, healthy_loss: 0.0, pipes: PipeLayout::default() };
    let protection = ProtectionTable::measured();
    let terms = PlanTerms { ledger, protection: &protection, capable: None, budget: BUDGET };
    Ok(plan(&fabric, &faulty, &terms))
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    println!("{}", plan_text(&repairs()?, true));
    Ok(())
}
