//! `hitless clock diff`.

use clock::plan::{PlanChange, PlanStep, StepKind};

use super::{load_plan, wrong_plan};
use crate::args::ClockDiffArgs;
use crate::output::{CommandResult, print};

pub(super) fn run(args: &ClockDiffArgs, json: bool) -> CommandResult {
    let (old, _) = load_plan(&args.old)?;
    let (new, text) = load_plan(&args.new)?;
    let change = PlanChange::between(&old, &new).map_err(|error| wrong_plan(&args.new, &error.located(&text)))?;
    print(json, &change, || describe(&change))
}

fn describe(change: &PlanChange) -> String {
    let mut text = String::new();
    for (number, step) in (1..).zip(&change.steps) {
        text.push_str(&format!("{number:>5}  {}\n", line(step)));
    }
    let (steps, unchanged) = (change.steps.len(), change.unchanged);
    text.push_str(&format!(
        "{steps} nodes change, {unchanged} do not; after every step every node hears the root (played through)\n"
    ));
    if change.steps_with_two_roots > 0 {
        let until = change.steps_with_two_roots;
        text.push_str(&format!(
            "two roots from step 1 to step {until}: make them at once, the bounds of both halves drift apart\n"
        ));
    }
    if let Some([before, worst, after]) = change.exposed {
        text.push_str(&format!(
            "nodes that a single failure of a link or node would strand: {before} before, {worst} at the worst step, {after} after\n"
        ));
    }
    text
}

fn line(step: &PlanStep) -> String {
    let shown = |name: &Option<String>| name.clone().unwrap_or_else(|| "–".to_owned());
    let moved = |what: &str, old: &Option<String>, new: &Option<String>| match old == new {
        true => String::new(),
        false => format!("  {what} {} → {}", shown(old), shown(new)),
    };
    let uplinks = moved("parent", &step.old_parent, &step.parent) + &moved("backup", &step.old_backup, &step.backup);
    match step.kind {
        StepKind::Root => format!("{}  becomes the root{uplinks}", step.node),
        StepKind::Add => format!("{}  is new{uplinks}", step.node),
        StepKind::Remove => format!("{}  is gone", step.node),
        StepKind::Change if uplinks.is_empty() => format!("{}  other link or depth after failures", step.node),
        StepKind::Change => format!("{}{uplinks}", step.node),
    }
}
