//! `hitless clock` on real interfaces: the daemon, and what can be asked of it.

mod demo;
mod now;
mod up;

use std::io;

use chart::table::{Align, Table, thousands};
use daemon::RunDirectory;
use timekeeper::{ClockControlReply, ClockControlRequest, ClockDuties, ClockStatus, ask_clock, clock_names};

use crate::args::{ClockLiveCommand, ClockReplanArgs};
use crate::output::{CommandResult, Failure, print, say};
use crate::terminal::stop_on_ctrl_c;

pub(super) fn run(command: &ClockLiveCommand, json: bool) -> CommandResult {
    match command {
        ClockLiveCommand::Up(args) => up::run(args, json),
        ClockLiveCommand::Now(args) => now::run(args, json),
        ClockLiveCommand::Status(args) => {
            let directory = RunDirectory::of_this_system();
            let status = status_of(&directory, &find(&directory, args.node.as_deref())?)?;
            print(json, &status, || describe(&status))
        }
        ClockLiveCommand::Replan(args) => replan(args),
        ClockLiveCommand::Down(args) => {
            let directory = RunDirectory::of_this_system();
            let node = find(&directory, args.node.as_deref())?;
            done(&node, ask(&directory, &node, &ClockControlRequest::Down)?)
        }
        ClockLiveCommand::Demo(args) => demo::run(args, json),
    }
}

fn replan(args: &ClockReplanArgs) -> CommandResult {
    // It is read here: what has no end, or never begins, is this command's business and not the daemon's.
    let stop = stop_on_ctrl_c();
    let plan = timekeeper::read_plan(&args.plan, &stop);
    if stop.is_stopped() {
        return Err(Failure::Interrupted);
    }
    let plan = plan.map_err(Failure::Usage)?;
    let directory = RunDirectory::of_this_system();
    let node = find(&directory, args.which.node.as_deref())?;
    // The node's name in the plan; names of files have no slashes.
    let node = status_of(&directory, &node)?.node;
    let duties = ClockDuties::of(&plan, &node);
    let duties = duties.map_err(|error| Failure::Usage(format!("{}: {error}", args.plan.display())))?;
    let request = ClockControlRequest::Plan(Box::new(duties));
    done(&node, ask(&directory, &node, &request)?)?;
    say(&format!("{node} has the plan of {}", args.plan.display()));
    Ok(())
}

fn done(node: &str, reply: ClockControlReply) -> CommandResult {
    match reply {
        ClockControlReply::Refused(why) => Err(Failure::Outside(format!("{node}: {why}"))),
        ClockControlReply::Done | ClockControlReply::Status(_) => Ok(()),
    }
}

fn ask(directory: &RunDirectory, node: &str, request: &ClockControlRequest) -> Result<ClockControlReply, Failure> {
    ask_clock(directory, node, request).map_err(|error| {
        use io::ErrorKind::{ConnectionRefused, NotFound, PermissionDenied};
        Failure::Outside(match error.kind() {
            NotFound | ConnectionRefused => format!("{node}: no clock of this name runs here"),
            PermissionDenied => format!("{node}: permission denied; ask as root, or with sudo"),
            _ => format!("{node}: {error}"),
        })
    })
}

fn status_of(directory: &RunDirectory, node: &str) -> Result<ClockStatus, Failure> {
    match ask(directory, node, &ClockControlRequest::Status)? {
        ClockControlReply::Status(status) => Ok(*status),
        reply => done(node, reply).and(Err(Failure::Outside(format!("{node} gave no status")))),
    }
}

/// The node that is named, or the only one there is.
fn find(directory: &RunDirectory, given: Option<&str>) -> Result<String, Failure> {
    if let Some(given) = given {
        return Ok(given.to_owned());
    }
    let names = clock_names(directory).map_err(|error| Failure::Outside(error.to_string()))?;
    match names.as_slice() {
        [only] => Ok(only.clone()),
        [] => Err(Failure::Outside(
            "no clock runs here; `hitless clock up --plan FILE --node NAME --link NEIGHBOUR=IFACE` starts one"
                .to_owned(),
        )),
        names => Err(Failure::Usage(format!("which one? these run: {}", names.join(", ")))),
    }
}

/// Table of a clock's state, for people.
fn describe(status: &ClockStatus) -> String {
    let mut table = Table::new(&[("", Align::Left), ("", Align::Left)]);
    let mut row = |name: &str, value: String| table.row(vec![name.to_owned(), value]);
    let unknown = || "not known".to_owned();
    row("state", status.state.to_string());
    if let Some(problem) = status.problem() {
        row("problem", problem);
    }
    row("may be wrong by", status.eps_ns.map_or_else(unknown, |ns| format!("{:.1} µs", ns as f64 / 1e3)));
    row("heard", status.heard_us_ago.map_or_else(|| "nobody".to_owned(), |us| format!("{:.1} ms ago", us / 1e3)));
    row("listens to", status.listens_to.clone().unwrap_or_else(|| "nobody".to_owned()));
    let planned = |name: &Option<String>| name.clone().unwrap_or_else(|| "none".to_owned());
    row("parent, backup", format!("{}, {}", planned(&status.parent), planned(&status.backup)));
    row("depth", status.depth.to_string());
    let elected = if status.elected { ", its backup root has taken over" } else { "" };
    row("epoch", format!("{}{elected}", status.epoch));
    if let Some(behind) = status.system_behind_ns {
        row("system's clock", format!("{:.3} µs behind when it was adjusted last", behind as f64 / 1e3));
    }
    row("up for", format!("{:.0} s", status.up_seconds));
    for link in &status.links {
        let session = if link.session == Some(false) { ", no session yet" } else { "" };
        let state = link.problem.clone().unwrap_or_else(|| format!("up{session}"));
        row(&format!("link to {}", link.neighbour), format!("{}, {state}", link.interface));
    }
    let counted: Vec<String> = status
        .counters
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(name, count)| format!("{name} {}", thousands(*count)))
        .collect();
    row("counted", counted.join(", "));
    format!("{}\n{table}", status.node)
}
