//! `hitless fleet plan`.

use std::io::Read;
use std::path::Path;

use fleet::corrupting::{self, FaultyLinks};
use fleet::fabric::SwitchNames;
use fleet::plan::plan;
use fleet::plan::report::plan_text;
use fleet::protection::ProtectionTable as Protections;

use crate::args::PlanArgs;
use crate::output::{CommandResult, Failure, print};

/// More than all ports of a large datacenter have to say.
const LONGEST_INPUT: u64 = 1 << 30;

pub(super) fn run(args: &PlanArgs, json: bool) -> CommandResult {
    let fabric = super::load(&args.topology)?;
    let names = SwitchNames::of(&fabric);
    let situation = situation(&args.corrupting, &names)?;
    let capable = super::capable(args.capable.as_deref(), &names)?;
    let protections = Protections::measured();
    let terms = super::terms(args.constraint, &protections, capable.as_deref());
    let plan = plan(&fabric, &situation, &terms);
    print(json, &plan, || plan_text(&plan, args.explain))
}

fn situation(path: &Path, names: &SwitchNames<'_>) -> Result<FaultyLinks, Failure> {
    let read = if path == Path::new("-") {
        let mut text = String::new();
        let read = std::io::stdin().lock().take(LONGEST_INPUT).read_to_string(&mut text);
        read.map_err(|error| Failure::Usage(format!("standard input: {error}")))?;
        corrupting::parse("standard input", &text, names)
    } else {
        corrupting::load(path, names)
    };
    read.map_err(|error| Failure::Usage(error.to_string()))
}
