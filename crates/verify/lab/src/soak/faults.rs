//! The fault bench: bad days, one after the other, and an account of every datagram.
//!
//! ```text
//!   left                                                    right
//!   supervisor ▶ hitless link up      the wire      hitless link up ◀ supervisor
//!   witnesses ─────── hit0 ─ w0 ═══ x0 ▸◂ x1 ═══ w1 ─ hit0 ─────── witnesses
//!                                      ↑ forged frames
//! ```
//!
//! Two hosts in network namespaces, and daemons that are processes of their own: SIGKILL and SIGSTOP are real. A run is
//! cut into acts of a few minutes, without a key and with one in turn; each builds everything anew and looks afterwards
//! whether anything is left. Within an act, faults come from a `Deck`; after each the link has a few seconds to be
//! protected again. One that needs longer is a problem of its own; then both daemons are restarted, and the run goes on.
//!
//! | file | what it is |
//! | --- | --- |
//! | `act`, `episode` | the course of an act, and how it is cut for the ledger |
//! | `plan` | which faults come |
//! | `actions`, `forge`, `bridge`, `guests`, `names` | how they are done |
//! | `supervisor`, `process` | daemons, and systemd's part |
//! | `traffic` | what flows meanwhile |
//! | `ledger` | the outcome of the traffic: what may be lost, and how a loss is explained |
//! | `leftovers`, `outcome` | what is left, and the result |

mod act;
mod actions;
mod bridge;
mod episode;
mod forge;
mod guests;
pub mod ledger;
mod leftovers;
mod names;
mod outcome;
mod plan;
mod supervisor;
mod traffic;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use linux::SystemError;
use linux::clock::Clock;
use linux::net::NetworkPrivilege;
use standin::HostBackend;
use units::StopFlag;

use act::FaultAct;

pub(crate) use ledger::AccountCounts;
pub use outcome::{FaultBench, FaultReport};
pub use plan::{FaultKind, PlannedFault};
pub(crate) use supervisor::Supervisor;

/// Plan of a fault bench.
#[derive(Clone, Debug)]
pub struct FaultPlan {
    pub duration: Duration,
    pub seed: u64,
    pub kinds: Vec<FaultKind>,
    /// Length of each fault, of those that last at all; at random if not given.
    pub lasting: Option<Duration>,
    /// The hitless program, whose daemons are tried.
    pub program: PathBuf,
    pub host: HostBackend,
    /// Folder in which to keep the output of the daemons; none if not given.
    pub logs: Option<PathBuf>,
}

/// Observer of the fault bench.
pub trait FaultObserver: Sync {
    /// Every now and then, in the course of the whole run.
    fn tick(&self, elapsed: Duration);
    /// A fault is about to come; the number counts from one.
    fn fault(&self, number: usize, fault: &PlannedFault);
    fn remark(&self, text: &str);
}

/// The longest act; what the witnesses wrote down is kept for so long.
const LONGEST_ACT: Duration = Duration::from_mins(5);
/// Shortest run that also has an act with a key.
const TWO_ACTS: Duration = Duration::from_secs(16);
/// Name of an end.
fn side(end: usize) -> &'static str {
    ["left", "right"][end]
}

/// Runs it in namespaces that are ours already. `None` if it was stopped before the first fault.
pub fn run(
    plan: &FaultPlan,
    standing: NetworkPrivilege,
    stop: &StopFlag,
    watch: &dyn FaultObserver,
) -> Result<Option<FaultBench>, SystemError> {
    let possible = plan.possible(watch)?;
    let plan = &possible;
    let clock = Clock::start();
    let waits = knows_wait(&plan.program)?;
    let acts = plan.acts();
    let mut bench =
        FaultBench { seed: plan.seed, rootless: standing == NetworkPrivilege::Rootless, ..FaultBench::default() };
    for number in 0..acts {
        if stop.is_stopped() {
            break;
        }
        let (keyed, until) = (plan.is_keyed(number), plan.duration * (number + 1) / acts);
        let act = FaultAct { plan, number, keyed, waits, until, clock, stop, watch, before: bench.faults.len() };
        bench.append(act.play()?);
    }
    bench.complete = !stop.is_stopped();
    bench.seconds = clock.elapsed().as_secs_f64();
    Ok((bench.complete || !bench.faults.is_empty()).then_some(bench))
}

impl FaultPlan {
    /// Plan without the kinds for which a program is missing.
    fn possible(&self, watch: &dyn FaultObserver) -> Result<Self, SystemError> {
        let mut possible = self.clone();
        if self.kinds.contains(&FaultKind::Firewall) && !names::can_filter() {
            let missing = format!("{} needs nft (nftables), which is not installed", FaultKind::Firewall);
            possible.kinds.retain(|kind| *kind != FaultKind::Firewall);
            if possible.kinds.is_empty() {
                return Err(SystemError(missing));
            }
            watch.remark(&missing);
        }
        Ok(possible)
    }

    fn acts(&self) -> u32 {
        if self.duration < TWO_ACTS {
            return 1;
        }
        let acts = self.duration.as_secs_f64() / LONGEST_ACT.as_secs_f64();
        (acts.ceil() as u32).next_multiple_of(2)
    }

    fn is_keyed(&self, act: u32) -> bool {
        act % 2 == 1 || self.kinds.iter().all(|kind| !kind.applies(false))
    }
}

/// True if `link up` can wait for an interface that is down or absent, as the unit wants it to.
fn knows_wait(program: &Path) -> Result<bool, SystemError> {
    let output = Command::new(program).args(["link", "up", "--help"]).output();
    let output = output.map_err(|error| SystemError(format!("start {}: {error}", program.display())))?;
    Ok(String::from_utf8_lossy(&output.stdout).contains("--wait"))
}
