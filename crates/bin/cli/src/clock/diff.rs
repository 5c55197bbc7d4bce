//! `hitless clock diff`.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use clock::plan::{GroupReason, PlanChange, PlanFile, PlanStep, StepKind};
use files::WholeFolder;

use super::{load_plan, wrong_plan};
use crate::args::ClockDiffArgs;
use crate::output::{CommandResult, Failure, print, say};
use crate::results::unwritten;
use crate::terminal::end_on_ctrl_c;

pub(super) fn run(args: &ClockDiffArgs, json: bool) -> CommandResult {
    let (old, _) = load_plan(&args.old)?;
    let (new, text) = load_plan(&args.new)?;
    let change = PlanChange::between(&old, &new).map_err(|error| wrong_plan(&args.new, &error.located(&text)))?;
    if let Some(folder) = &args.write {
        // The number is that of the plan to come, so that neighbours name nobody who has it already.
        let stages: Vec<PlanFile> =
            change.stages([&old, &new]).into_iter().map(|stage| PlanFile { epoch: new.epoch, ..stage }).collect();
        write(folder, &stages)?;
        let folder = folder.display();
        say(&format!("step N: `hitless clock replan {folder}/N.json NODE` for each node of the step, in this order"));
    }
    print(json, &change, || describe(&change))
}

/// A file for each step, in a new folder: all of them or none.
fn write(folder: &Path, stages: &[PlanFile]) -> CommandResult {
    if fs::symlink_metadata(folder).is_ok() {
        return Err(Failure::Usage(format!("--write {}: exists; expected a new folder", folder.display())));
    }
    end_on_ctrl_c();
    let whole = WholeFolder::create(folder).map_err(|error| unwritten("--write", &error))?;
    let write = |(number, stage): (usize, &PlanFile)| {
        fs::write(whole.path().join(format!("{number:03}.json")), serde_json::to_string_pretty(stage)? + "\n")
    };
    let failed = |error: io::Error| Failure::Outside(format!("--write {}: {error}", folder.display()));
    (1..).zip(stages).try_for_each(write).map_err(failed)?;
    whole.finish().map_err(|error| unwritten("--write", &error))
}

fn describe(change: &PlanChange) -> String {
    let mut text = String::new();
    let together = |a: &PlanStep, b: &PlanStep| a.at_once.is_some() && a.at_once == b.at_once;
    let mut count = 0;
    for (number, steps) in (1..).zip(change.steps.chunk_by(together)) {
        count = number;
        let group = steps[0].at_once.and_then(|number| change.at_once.iter().find(|group| group.number == number));
        match group {
            None => text.push_str(&format!("{number:>5}  {}\n", line(&steps[0]))),
            Some(group) => {
                text.push_str(&format!(
                    "{number:>5}  {} nodes at once: {}\n",
                    group.nodes.len(),
                    because(group.because)
                ));
                steps.iter().for_each(|step| text.push_str(&format!("         {}\n", line(step))));
            }
        }
    }
    let nodes: BTreeSet<&str> = change.steps.iter().map(|step| step.node.as_str()).collect();
    let (changed, unchanged) = (nodes.len(), change.unchanged);
    text.push_str(&format!(
        "{changed} nodes change in {count} steps, {unchanged} do not; after every step every node hears the root (played through)\n"
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

fn because(reason: GroupReason) -> &'static str {
    match reason {
        GroupReason::BackupRoot => "there is one backup root at any time",
        GroupReason::NoOrderExists => {
            "one by one, every order would expose a node to a single failure (all were tried)"
        }
        GroupReason::NoOrderFound => "one by one, no order was found that exposes no node to a single failure",
    }
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
        StepKind::BackupRoot => format!("{}  becomes the backup root", step.node),
        StepKind::Resign => format!("{}  is the backup root no longer", step.node),
        StepKind::Add => format!("{}  is new{uplinks}", step.node),
        StepKind::Remove => format!("{}  is gone", step.node),
        StepKind::Change if uplinks.is_empty() => format!("{}  other link or depth after failures", step.node),
        StepKind::Change => format!("{}{uplinks}", step.node),
    }
}
