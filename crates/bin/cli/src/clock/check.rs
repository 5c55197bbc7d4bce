//! `hitless clock check`.

use std::process::ExitCode;

use clock::graph::GraphNames;
use clock::plan::{PlanFile, PlanFileError};
use serde::Serialize;

use super::graph::{faults, graph};
use super::{plan_text, wrong_plan};
use crate::args::ClockCheckArgs;
use crate::output::{Failure, print};

#[derive(Serialize)]
struct PlanCheckResult {
    holds: bool,
    /// True if every node has a backup parent.
    covers_all: bool,
    violations: Vec<String>,
}

pub(super) fn run(args: &ClockCheckArgs, json: bool) -> Result<ExitCode, Failure> {
    let mut graph = graph(&args.graph)?;
    faults(args.without.as_deref(), &graph, true)?.fail(&mut graph);
    // Errors in the file's rows are the answer of this command, all of them, and not a failure.
    let file = PlanFile::from_json(&plan_text(&args.plan)?).map_err(|error| wrong_plan(&args.plan, &error))?;
    let names = GraphNames::of(&graph);
    let foreign = file.plan.iter().filter(|row| names.find(&row.node).is_none()).count();
    if foreign * 2 > file.plan.len() {
        // A line for each of its nodes would help nobody.
        let error = file.resolve(&names).err();
        return Err(error
            .map_or(Failure::Usage("a plan of another topology".to_owned()), |error| wrong_plan(&args.plan, &error)));
    }
    let known = file.plan.len() + file.uncovered.len() - foreign;
    if known * 2 < graph.node_count() {
        let problem =
            format!("it has {known} of this topology's {} nodes: is this the plan of another one?", graph.node_count());
        return Err(wrong_plan(&args.plan, &PlanFileError { line: None, problem }));
    }
    let violations: Vec<String> = file.check(&names).iter().map(ToString::to_string).collect();
    let uncovered = file.uncovered.len();
    let result = PlanCheckResult { holds: violations.is_empty(), covers_all: uncovered == 0, violations };
    let plan = args.plan.display();
    print(json, &result, || match (&result.violations[..], uncovered) {
        ([], 0) => format!("{plan}: every property holds, and every single failure is survived"),
        ([], some) => format!(
            "{plan}: every property holds, and every single failure is survived, except by {some} nodes that can have no backup parent"
        ),
        (violations, _) => violations.join("\n"),
    })?;
    Ok(if result.holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
