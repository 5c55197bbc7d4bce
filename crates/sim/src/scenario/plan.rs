//! What a scenario makes flows from: checked once, carried out for every seed.

use faults::Random;
use units::Time;

use crate::topology::NodeId;
use crate::workload::{Flows, Incast, Pace, Poisson, Series, Workload, WorkloadError};

/// What every run makes its flows from.
#[derive(Clone, Debug)]
pub(super) enum Plan {
    Series(Series),
    Poisson(Poisson),
    Incast(Incast),
    Permutation(Pattern),
    AllToAll(Pattern),
    /// The same in every run.
    List(Flows),
}

/// Everyone at once.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    pub hosts: Vec<NodeId>,
    pub bytes: u64,
    pub start: Time,
}

impl Plan {
    /// The same for the same randomness.
    pub(super) fn workload(&self, mut random: Random) -> Result<Workload, WorkloadError> {
        let flows = match self {
            Self::Series(series) => return Ok(Workload::Series(*series)),
            Self::Poisson(config) => Flows::poisson(config.clone(), random)?,
            Self::Incast(config) => Flows::incast(config.clone(), random)?,
            Self::Permutation(Pattern { hosts, bytes, start }) => {
                Flows::permutation(hosts, *bytes, *start, &mut random)?
            }
            Self::AllToAll(Pattern { hosts, bytes, start }) => Flows::all_to_all(hosts.clone(), *bytes, *start)?,
            Self::List(flows) => flows.clone(),
        };
        Ok(Workload::Open(flows))
    }

    /// The share of their links that these hosts fill.
    pub(super) fn load(&self) -> Option<(f64, &[NodeId])> {
        match self {
            Self::Poisson(config) => Some((config.load, &config.senders)),
            Self::Incast(Incast { pace: Pace::Load { load, .. }, hosts, .. }) => Some((*load, hosts)),
            _ => None,
        }
    }
}
