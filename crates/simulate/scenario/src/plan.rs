//! Plans of flows: checked once, carried out for every seed.

use faults::Random;
use sim::topology::NodeId;
use sim::workload::{BurstPace, FlowRounds, FlowSchedule, FlowSeries, Incast, Poisson, Workload, WorkloadError};
use units::Time;

/// Plan from which every run makes its flows.
#[derive(Clone, Debug)]
pub(crate) enum TrafficPlan {
    Series(FlowSeries),
    Poisson(Poisson),
    Incast(Incast),
    Permutation(TrafficPattern),
    AllToAll(TrafficPattern),
    Rounds(FlowRounds),
    /// A list of flows, equal in every run.
    List(FlowSchedule),
}

/// Everyone at once.
#[derive(Clone, Debug)]
pub(crate) struct TrafficPattern {
    pub hosts: Vec<NodeId>,
    pub bytes: u64,
    pub start: Time,
}

impl TrafficPlan {
    /// Draws the workload; equal randomness gives equal flows.
    pub(crate) fn workload(&self, mut random: Random) -> Result<Workload, WorkloadError> {
        let flows = match self {
            Self::Series(series) => return Ok(Workload::Series(*series)),
            Self::Rounds(rounds) => return Ok(Workload::Rounds(rounds.clone())),
            Self::Poisson(config) => FlowSchedule::poisson(config.clone(), random)?,
            Self::Incast(config) => FlowSchedule::incast(config.clone(), random)?,
            Self::Permutation(TrafficPattern { hosts, bytes, start }) => {
                FlowSchedule::permutation(hosts, *bytes, *start, &mut random)?
            }
            Self::AllToAll(TrafficPattern { hosts, bytes, start }) => {
                FlowSchedule::all_to_all(hosts.clone(), *bytes, *start)?
            }
            Self::List(flows) => flows.clone(),
        };
        Ok(Workload::Open(flows))
    }

    /// The share of their links that these hosts fill.
    pub(crate) fn load(&self) -> Option<(f64, &[NodeId])> {
        match self {
            Self::Poisson(config) => Some((config.load, &config.senders)),
            Self::Incast(Incast { pace: BurstPace::Load { load, .. }, hosts, .. }) => Some((*load, hosts)),
            _ => None,
        }
    }
}
