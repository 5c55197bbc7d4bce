//! Scripts made at random, on which our TCP and the kernel's must agree segment by segment.
//!
//! A `RandomScript` is a list of what happens to a sender: writes, and acknowledgements with their blocks, windows and
//! marks. It is made by letting our TCP send into a network that loses, reorders, marks and thins out acknowledgements by
//! a seed; what came back is then fixed, and played to both. A difference is shrunk: steps are left out as long as both
//! still differ.
//!
//! A timer of a kernel goes off on a tick, ours on a tick of its own. Scripts in which an event comes close to a timer are
//! not used, because the order of both is then chance.

mod network;
mod play;
mod shrink;

use std::path::Path;

use linux::net::Namespace;
use tcp::LinuxVersion;
use units::Span;

use crate::batch::{DrillTarget, DrillVerdict, ScriptRow, in_parallel};
use crate::kernel::KernelSubject;
use crate::subject::Subject;
use play::{Difference, Played};

/// Something that happens to the sender.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RandomAction {
    Write(u32),
    Acknowledge {
        ack: u32,
        /// As the receiver lists them, the latest first.
        blocks: Vec<(u32, u32)>,
        window: u16,
        /// ECN-echo.
        marked: bool,
    },
}

/// What happens, and how long after the handshake.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RandomStep {
    pub(crate) at: Span,
    pub(crate) action: RandomAction,
}

/// A script that was drawn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RandomScript {
    pub(crate) name: String,
    pub(crate) sack: bool,
    pub(crate) ecn: bool,
    pub(crate) rtt: Span,
    pub(crate) steps: Vec<RandomStep>,
}

/// How many to draw, from which seed, and where to write what differs.
#[derive(Clone, Copy, Debug)]
pub struct RandomPlan<'a> {
    pub scripts: u64,
    pub seed: u64,
    pub version: LinuxVersion,
    pub folder: &'a Path,
}

/// Scripts that wait beside each other.
const AT_A_TIME: usize = 48;
/// A difference must show in this many runs, of all that are tried, that were on time; without one, one run is enough.
const RUNS_THAT_DIFFER: usize = 2;
const MOST_RUNS: usize = 12;
/// The same for a candidate of shrinking, of which there are many.
const MOST_SHRINKING_RUNS: usize = 3;
/// A run that was further behind its times than this may differ for that reason alone.
const BUSY: Span = Span::from_ms(2);

/// Draws scripts and compares; one row for each. The process must have the right to make network namespaces.
pub fn compare(plan: &RandomPlan<'_>) -> Vec<ScriptRow> {
    let numbers: Vec<u64> = (0..plan.scripts).collect();
    in_parallel(&numbers, AT_A_TIME, |number| one(plan, *number))
}

fn one(plan: &RandomPlan<'_>, number: u64) -> ScriptRow {
    let script = network::draw(plan.seed, number, plan.version);
    let row = |file, result, why| ScriptRow { file, against: DrillTarget::Both, result, line: None, why };
    match difference(&script, plan.version, MOST_RUNS) {
        Ok(None) => row(script.name, DrillVerdict::Passed, None),
        Err(why) => row(script.name, DrillVerdict::NotApplicable, Some(why)),
        Ok(Some(found)) => {
            let (script, found) = shrink::shrunk(script, found, |candidate| {
                difference(candidate, plan.version, MOST_SHRINKING_RUNS).ok().flatten()
            });
            let file = plan.folder.join(format!("{}.pkt", script.name));
            let text = play::rendered(&script, plan.version, &found);
            let written = std::fs::write(&file, text).err().map(|error| format!(" (not written: {error})"));
            row(
                file.display().to_string(),
                DrillVerdict::Failed,
                Some(found.to_string() + &written.unwrap_or_default()),
            )
        }
    }
}

/// Where both differ.
fn difference(script: &RandomScript, version: LinuxVersion, most_runs: usize) -> Result<Option<Difference>, String> {
    let ours = play::on_machine(script, version)?;
    let mut runs_that_differ = 0;
    for _ in 0..most_runs {
        let (kernel, lag) = on_kernel(script)?;
        let Some(found) = play::first_difference(&ours, &kernel) else { return Ok(None) };
        runs_that_differ += usize::from(lag <= BUSY);
        if runs_that_differ == RUNS_THAT_DIFFER {
            return Ok(Some(found));
        }
    }
    Err("this machine was too busy for the times of the script".to_owned())
}

/// What the kernel sent, and how far behind its times the script was.
fn on_kernel(script: &RandomScript) -> Result<(Played, Span), String> {
    let run = || {
        let mut subject = KernelSubject::open().map_err(|error| error.to_string())?;
        let played = play::play(script, &mut subject)?;
        Ok((played, subject.lag()))
    };
    Namespace::new().and_then(|namespace| namespace.with(run)).map_err(|error| error.to_string())?
}
