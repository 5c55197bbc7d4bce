//! Scripts made at random, on which our TCP and the kernel's must agree segment by segment.
//!
//! A `RandomScript` is a list of what happens to a sender: writes, and acknowledgements with their blocks, windows and
//! marks. It is made by letting our TCP send into a network that loses, reorders, marks and thins out acknowledgements by
//! a seed; what came back is then fixed, and played to both. A difference is shrunk: steps are left out as long as both
//! still differ.
//!
//! A kernel's timers go off on its ticks, and a busy machine is late. So the kernel comes first, and our TCP then gets
//! the same ticks and everything at the times at which it happened to the kernel. Scripts in which an event comes close to
//! a timer are not used, because the order of both is then chance.

mod compare;
mod network;
mod play;
mod render;
mod shrink;
mod ticks;

use std::io::Write;
use std::path::Path;

use files::whole_file;
use linux::net::Namespace;
use tcp::LinuxVersion;
use units::{Span, Time};

use crate::batch::{DrillTarget, DrillVerdict, ScriptRow};
use crate::kernel::KernelSubject;
use crate::subject::{DrillStop, Subject};
use compare::Difference;
use play::{PlayResult, Schedule};
use ticks::KernelTicks;

/// An event at the sender.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RandomAction {
    Write(u32),
    Acknowledge {
        ack: u32,
        /// Blocks as the receiver lists them, the latest first.
        blocks: Vec<(u32, u32)>,
        window: u16,
        /// ECN-echo.
        marked: bool,
    },
}

/// Action, and its time after the handshake.
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

/// Number of scripts to draw, their seed, and the folder for scripts that differ.
#[derive(Clone, Copy, Debug)]
pub struct RandomPlan<'a> {
    pub scripts: u64,
    pub seed: u64,
    pub version: LinuxVersion,
    pub folder: &'a Path,
}

/// Scripts that wait beside each other.
const AT_A_TIME: usize = 48;
/// A difference must show in this many runs that say something, of all that are tried; without one, one run is enough.
const RUNS_THAT_DIFFER: usize = 2;
const MOST_RUNS: usize = 12;
/// Runs of a candidate of shrinking. There are many candidates, so these are few.
const MOST_SHRINKING_RUNS: usize = 3;
/// A run says nothing if it is not known when things happened to the kernel.
const MOST_DOUBT: Span = Span::from_us(400);
/// A tick may be seen this much earlier or later than it was measured.
const TICK_ERROR: Span = Span::from_us(1_000);

/// Draws scripts and compares; one row for each. The process must have the right to make network namespaces.
pub fn compare(plan: &RandomPlan<'_>) -> Result<Vec<ScriptRow>, String> {
    let ticks = KernelTicks::measure()?;
    let numbers: Vec<u64> = (0..plan.scripts).collect();
    Ok(parallel::map(&numbers, AT_A_TIME, |number| one(plan, &ticks, *number)))
}

fn one(plan: &RandomPlan<'_>, ticks: &KernelTicks, number: u64) -> ScriptRow {
    let script = network::draw(plan.seed, number, plan.version);
    let row = |file, result, why| ScriptRow { file, against: DrillTarget::Both, result, line: None, why };
    match difference(&script, plan.version, ticks, MOST_RUNS) {
        Ok(None) => row(script.name, DrillVerdict::Passed, None),
        Err(why) => row(script.name, DrillVerdict::NotApplicable, Some(why)),
        Ok(Some(found)) => {
            let (script, found) = shrink::shrunk(script, found, |candidate| {
                difference(candidate, plan.version, ticks, MOST_SHRINKING_RUNS).ok().flatten()
            });
            let file = plan.folder.join(format!("{}.pkt", script.name));
            let text = render::rendered(&script, plan.version, &found);
            let written = whole_file(&file, |out| out.write_all(text.as_bytes()));
            let written = written.err().map(|error| format!(" (not written: {error})"));
            row(
                file.display().to_string(),
                DrillVerdict::Failed,
                Some(found.to_string() + &written.unwrap_or_default()),
            )
        }
    }
}

/// First difference between both.
fn difference(
    script: &RandomScript,
    version: LinuxVersion,
    ticks: &KernelTicks,
    most_runs: usize,
) -> Result<Option<Difference>, String> {
    let mut runs_that_differ = 0;
    for _ in 0..most_runs {
        let (kernel, phase) = on_kernel(script, ticks)?;
        let found = compare_with(script, version, &kernel, phase);
        if let KernelComparison::Equal = found {
            return Ok(None);
        }
        if let KernelComparison::Different(found) = found {
            runs_that_differ += usize::from(kernel.doubt <= MOST_DOUBT);
            if runs_that_differ == RUNS_THAT_DIFFER {
                return Ok(Some(found));
            }
        }
    }
    Err("this machine was too busy for the times of the script".to_owned())
}

/// Comparison with a run of the kernel.
enum KernelComparison {
    Equal,
    Different(Difference),
    /// The outcome was chance.
    Nothing,
}

/// Our TCP beside a run of the kernel. If the kernel may have seen a tick earlier or later, either is right.
fn compare_with(script: &RandomScript, version: LinuxVersion, kernel: &PlayResult, phase: Span) -> KernelComparison {
    let mut different = None;
    for phase in [phase, phase + TICK_ERROR, phase.saturating_sub(TICK_ERROR)] {
        match play::repeated(script, version, phase, Schedule::Repeated(&kernel.timeline)) {
            Ok(Some(ours)) => match compare::first_difference(&ours, kernel) {
                None => return KernelComparison::Equal,
                found => different = different.or(found),
            },
            Ok(None) | Err(_) => return KernelComparison::Nothing,
        }
    }
    different.map_or(KernelComparison::Nothing, KernelComparison::Different)
}

/// Segments that the kernel sent, and the phase of its ticks.
fn on_kernel(script: &RandomScript, ticks: &KernelTicks) -> Result<(PlayResult, Span), String> {
    in_namespace(|subject| {
        play::prepare(script, subject)?;
        let phase = ticks.phase_of(subject.now());
        // Scripts are drawn with ticks that begin with the SYN.
        let mut syn = Time::ZERO + phase;
        while syn < subject.now() {
            syn += ticks.period();
        }
        let played = play::play(script, subject, Schedule::Planned(syn), |_| {})?;
        Ok((played, phase))
    })
}

/// Lets `run` have this host's TCP in a network namespace of its own.
fn in_namespace<T: Send>(run: impl FnOnce(&mut KernelSubject) -> Result<T, DrillStop> + Send) -> Result<T, String> {
    let run = || {
        let mut subject = KernelSubject::open().map_err(|error| error.to_string())?;
        run(&mut subject).map_err(|stop| match stop {
            DrillStop::Failed(why) | DrillStop::NotApplicable(why) => why,
        })
    };
    Namespace::new().and_then(|namespace| namespace.with(run)).map_err(|error| error.to_string())?
}
