//! Eight clocks in network namespaces while links, nodes, a domain and the root are killed (Sundial, §3.6 on hosts).
//!
//! ```text
//!      h6 ──── h7         a cube: h0 is the root at first; every clock is a process of its own, with an oscillator that is
//!     ╱│      ╱│          off by a known share
//!   h4 ──── h5 │
//!   │ h2 ────│ h3
//!   │╱       │╱
//!   h0 ──── h1
//! ```
//!
//! This process reads all clocks from their pages the whole time. It knows the oscillator of each root, and so the true time,
//! and counts every reading whose interval does not contain it as wrong. It is the controller, too. After each kill it restarts
//! the victim and sends everybody the plan; after a root's death, a plan with the new root. At the end it stops the root for
//! moments, and hands out plans for the old root, the new one and others.

mod forge;
mod judge;
mod network;
mod page;
mod ptp;
mod rows;
mod text;

use std::process::Command;
use std::time::Duration;

use linux::SystemError;
use linux::clock::{Clock, KernelClock};
use serde::Serialize;
use units::StopFlag;

use judge::Judge;
use network::ClockNetwork;

pub use forge::ForgedFrames;
pub use page::page;
pub use ptp::Ptp4lOutcome;
pub use rows::{ClockDemoResult, ClockVerdict, DepthRow, KillRow, PlannedFor, StopRow};
pub use text::text;

/// Extent and options of the demonstration.
#[derive(Clone, Copy, Debug)]
pub struct ClockDemoPlan {
    /// Number of things to kill, in turn.
    pub kills: u32,
    /// Number of times to stop the root for a moment, after that, and to give a plan by hand.
    pub stops: u32,
    /// Time at first in which nothing is killed.
    pub idle: Duration,
    /// Time between waves.
    pub interval: Duration,
    /// Seals waves with a key.
    pub key: bool,
    /// Runs ptp4l on the same plan, if it is installed.
    pub ptp4l: bool,
}

/// Kind of thing that is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum KillKind {
    /// The link of a node to its parent.
    Link,
    /// A node that others may listen to.
    Node,
    /// All that fails together.
    Domain,
    /// The root.
    Root,
    /// No node is killed, but forged frames say that the root has a successor.
    Forged,
}

impl KillKind {
    const ALL: [Self; 5] = [Self::Link, Self::Node, Self::Domain, Self::Root, Self::Forged];

    fn name(self) -> &'static str {
        match self {
            Self::Link => "link",
            Self::Node => "node",
            Self::Domain => "domain",
            Self::Root => "root",
            Self::Forged => "forged",
        }
    }
}

/// Observer of the demonstration's progress.
pub trait ClockDemoObserver {
    /// A step begins.
    fn begin(&self, step: u32, steps: u32, what: &str);
    /// Reports a remark to the user.
    fn remark(&self, text: &str);
}

/// Time that clocks have to find the time, or to find it again.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time that they have to hear a root again after a kill; more is never.
const RECOVERY: Duration = Duration::from_secs(3);

/// Pause before a kill, for each microsecond between waves.
const SETTLES: Duration = Duration::from_micros(100);

/// Intervals between two stops of the root.
const STOPS_SETTLE: u32 = 40;

/// Runs the demo in namespaces of this process. `program` makes the command that runs `hitless`. `None` if it was interrupted
/// before there was a result.
pub fn run(
    plan: &ClockDemoPlan,
    program: &dyn Fn() -> Command,
    stop: &StopFlag,
    observer: &dyn ClockDemoObserver,
) -> Result<Option<ClockDemoResult>, SystemError> {
    let read_ns = judge::read_cost()?;
    let mut network = ClockNetwork::start(plan, program)?;
    observer.begin(0, plan.kills + plan.stops + 2, "the clocks find the time");
    network.wait_until_as_planned(PATIENCE, stop, &|| ())?;
    let judge = Judge::new(network.pages()?);
    let (mut result, ended) = std::thread::scope(|scope| {
        let judging = scope.spawn(|| judge.run());
        let ended = story(plan, &mut network, &judge, stop, observer);
        judge.end();
        let judged = judging.join().map_err(|_| SystemError("the judge panicked".to_owned()));
        judged.map(|judgement| (ClockDemoResult::new(plan, judgement, read_ns), ended))
    })?;
    let (rows, counted) = ended?;
    result.add_kills(rows.kills, counted);
    result.stops = rows.stops;
    result.forged = network.forged();
    drop(network);
    if plan.ptp4l && !stop.is_stopped() {
        let steps = plan.kills + plan.stops;
        observer.begin(steps + 1, steps + 2, "ptp4l on the same plan");
        result.ptp4l = run_ptp4l(stop).map_err(|error| SystemError(format!("ptp4l: {error}")))?;
    }
    result.conclude();
    Ok((!stop.is_stopped() || result.reads > 0).then_some(result))
}

/// ptp4l alone, on the same plan; none if it is not installed.
pub fn run_ptp4l(stop: &StopFlag) -> Result<Option<Ptp4lOutcome>, SystemError> {
    ptp::run(stop)
}

/// Rows of kills and stops.
#[derive(Debug, Default)]
struct DemoRows {
    kills: Vec<KillRow>,
    stops: Vec<StopRow>,
}

/// All kills and stops, and how often backup roots elected themselves after kills.
fn story(
    plan: &ClockDemoPlan,
    network: &mut ClockNetwork<'_>,
    judge: &Judge,
    stop: &StopFlag,
    observer: &dyn ClockDemoObserver,
) -> Result<(DemoRows, u64), SystemError> {
    observer.begin(1, plan.kills + plan.stops + 2, "nothing is killed");
    judge.set_idle(true);
    wait(plan.idle, stop);
    judge.set_idle(false);
    let clock = Clock::start();
    let look: &dyn Fn() = &|| judge.look_at_roots();
    let mut rows = DemoRows::default();
    for number in 0..plan.kills {
        if stop.is_stopped() {
            break;
        }
        let kind = KillKind::ALL[number as usize % KillKind::ALL.len()];
        // The program that just started kept others from the processor: a node that turned for that would be struck twice.
        wait(SETTLES * plan.interval.as_micros() as u32, stop);
        network.wait_until_as_planned(PATIENCE, stop, look)?;
        observer.begin(
            number + 1,
            plan.kills + plan.stops + 2,
            &format!("kill {} of {}: {}", number + 1, plan.kills, kind.name()),
        );
        let at_seconds = clock.elapsed().as_secs_f64() + plan.idle.as_secs_f64();
        look();
        judge.mark(KernelClock::Raw.nanoseconds());
        let killed = network.kill(kind, number)?;
        let recovery = network.wait_until_recovered(&killed, RECOVERY, stop);
        let (what, root) = (killed.what.clone(), killed.root);
        let (recovery_ms, stranded) = (recovery.as_ref().ok().copied(), recovery.err());
        rows.kills.push(KillRow { kind, what, root, at_seconds, recovery_ms, stranded });
        network.heal(&killed, look)?;
        network.wait_until_as_planned(PATIENCE, stop, look)?;
    }
    let elections = network.elections();
    for number in 0..plan.stops {
        if stop.is_stopped() {
            break;
        }
        wait(plan.interval * STOPS_SETTLE, stop);
        network.wait_until_as_planned(PATIENCE, stop, look)?;
        let step = plan.kills + number + 1;
        observer.begin(step, plan.kills + plan.stops + 2, &format!("stop {} of {}", number + 1, plan.stops));
        rows.stops.push(network.stop_root(number, stop, look)?);
    }
    Ok((rows, elections))
}

/// Sleeps, unless it is stopped.
fn wait(duration: Duration, stop: &StopFlag) {
    let clock = Clock::start();
    while clock.elapsed() < duration && !stop.is_stopped() {
        std::thread::sleep(Duration::from_millis(10));
    }
}
