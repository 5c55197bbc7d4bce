//! The soak of a rack: daemons that are killed, and hosts that leave and join again, while everybody sends.
//!
//! ```text
//!   host 0    asks for values of memcached; all datagrams go there
//!   host 1    memcached; iperf3 from and to host 0
//!   host 2 …  numbered datagrams to host 0, all together more than its port carries
//!   the last two, between them: transfers whose every byte is compared
//! ```
//!
//! The switch and the hosts are processes of their own, started again as their units would. The wire of host 2 may lose
//! frames, bare or under `hitless link`. What is counted in a process is lost with it: it is asked ten times a second.

mod bench;
mod commands;
mod daemons;
mod flows;
mod ledger;
mod outcome;
mod recovery;
mod requests;

pub use flows::RackFlow;
pub use outcome::{RackSoak, RackSoakEvent, text};

use std::path::PathBuf;
use std::time::Duration;

use linux::SystemError;
use linux::net::NetworkPrivilege;
use reserve::SchedulerKind;
use units::{Bytes, Prob, Rate, StopFlag};

/// Plan of a soak of a rack.
#[derive(Clone, Debug)]
pub struct RackSoakPlan {
    pub duration: Duration,
    pub rate: Rate,
    pub buffer: Bytes,
    pub hosts: usize,
    pub scheduler: SchedulerKind,
    /// Daemons to kill, hosts and the switch in turn.
    pub kills: u32,
    /// Number of times that the last host leaves and joins again.
    pub joins: u32,
    /// Share of frames that the wire of host 2 loses, each way.
    pub loss: Prob,
    /// Puts that wire under `hitless link`.
    pub protect: bool,
    /// The hitless program, whose daemons are tried.
    pub program: PathBuf,
}

/// The host with the wire that may lose frames.
const LOSSY: usize = 2;

/// Observer of the soak.
pub trait RackSoakObserver: Sync {
    /// Every now and then.
    fn tick(&self, elapsed: Duration);
    /// Reports a remark to the user.
    fn remark(&self, text: &str);
}

/// Runs it in namespaces that are ours already. `None` if it was stopped before it began.
pub fn run(
    plan: &RackSoakPlan,
    standing: NetworkPrivilege,
    stop: &StopFlag,
    watch: &dyn RackSoakObserver,
) -> Result<Option<RackSoak>, SystemError> {
    let soak = bench::run(plan, stop, watch)?;
    Ok(soak.map(|mut soak| {
        soak.rootless = standing == NetworkPrivilege::Rootless;
        soak.judge(plan);
        soak
    }))
}
