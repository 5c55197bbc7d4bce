//! Status of a clock.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::page::ClockState;
use crate::run::Timekeeper;

/// Status of a clock.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ClockStatus {
    /// The node.
    pub node: String,
    /// The process.
    pub pid: u32,
    /// State of the clock.
    pub state: ClockState,
    /// Hops to the root.
    pub depth: u32,
    /// Epoch of the plan whose root's time it has.
    pub epoch: u32,
    /// True if that plan's backup root has taken over.
    pub elected: bool,
    /// Maximum error of its time; none if it does not know the time.
    pub eps_ns: Option<u64>,
    /// Maximum by which all changes of root so far may have moved the time.
    pub handover_ns: u64,
    /// Time since the last message that was believed.
    pub heard_us_ago: Option<f64>,
    /// Longest time between two such messages since it was given its plan.
    pub silence_us: f64,
    /// Time by which the system's clock was behind when it was adjusted last; none if it is left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_behind_ns: Option<i64>,
    /// Neighbour that it listens to.
    pub listens_to: Option<String>,
    /// Parent in the plan.
    pub parent: Option<String>,
    /// Backup parent in the plan.
    pub backup: Option<String>,
    /// Interval between waves.
    pub interval_us: f64,
    /// Uptime.
    pub up_seconds: f64,
    /// Page from which programs read the time.
    #[serde(default)]
    pub page: PathBuf,
    /// Links, one for each neighbour.
    pub links: Vec<ClockLinkStatus>,
    /// All counters, by name.
    pub counters: BTreeMap<String, u64>,
}

/// Status of one link of a clock.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ClockLinkStatus {
    /// Node at its other end.
    pub neighbour: String,
    /// The interface here.
    pub interface: String,
    /// Problem of the link, if it has one.
    pub problem: Option<String>,
    /// True if this node may listen to the neighbour.
    pub is_heard: bool,
    /// True if the neighbour may listen to this node.
    pub listens: bool,
    /// True if the two ends have agreed on a session; none without a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<bool>,
}

impl ClockStatus {
    pub(crate) fn of(keeper: &Timekeeper) -> Self {
        let core = &keeper.core;
        let links = keeper.ports.iter().zip(&core.neighbours).map(|(port, neighbour)| ClockLinkStatus {
            neighbour: neighbour.name.clone(),
            interface: port.link.interface.clone(),
            problem: port.problem.clone().or_else(|| port.seal.problem(&neighbour.name)),
            is_heard: neighbour.is_heard,
            listens: neighbour.listens,
            session: port.seal.has_session(),
        });
        let node = core.node();
        Self {
            node: core.duties.node.clone(),
            pid: std::process::id(),
            state: keeper.state(),
            depth: node.depth().into(),
            epoch: core.epoch().plan,
            elected: core.epoch().elected,
            eps_ns: keeper.interval().map(|(earliest, latest)| latest.saturating_sub(earliest).div_ceil(2)),
            handover_ns: node.handover().as_ps(),
            heard_us_ago: keeper.heard_ns_ago().map(|ns| ns as f64 / 1e3),
            silence_us: core.silence_ns() as f64 / 1e3,
            system_behind_ns: keeper.discipline.and_then(|discipline| discipline.behind_ns),
            listens_to: core.listens_to().map(str::to_owned),
            parent: core.duties.parent().map(str::to_owned),
            backup: core.duties.backup().map(str::to_owned),
            interval_us: keeper.config.params.interval.as_ps() as f64 / 1e3,
            up_seconds: keeper.clock.elapsed().as_secs_f64(),
            page: keeper.page_path.clone(),
            links: links.collect(),
            counters: core.counters.iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        }
    }

    /// Problem of the clock in a few words; none if it knows the time as planned.
    pub fn problem(&self) -> Option<String> {
        let link = || self.links.iter().find_map(|link| link.problem.clone());
        match self.state {
            ClockState::Unsynchronized => Some(link().unwrap_or_else(|| "it has heard no time yet".to_owned())),
            ClockState::Evicted => Some("its time is not to be trusted: give it a new plan".to_owned()),
            ClockState::Turned => Some("its parent is silent, it listens to its backup parent".to_owned()),
            ClockState::Elected => Some("the root is silent, it has taken over".to_owned()),
            ClockState::Root | ClockState::Following => link(),
        }
    }

    /// True if it knows the time.
    pub(crate) fn is_synchronized(&self) -> bool {
        self.eps_ns.is_some()
    }
}
