//! Plans of flows: checked once, carried out for every seed.

use collective::CollectiveShape;
use faults::Random;
use sim::topology::NodeId;
use sim::workload::{BurstPace, FlowSchedule, FlowSeries, Incast, JobWork, Poisson, Workload, WorkloadError};
use units::Time;

/// Plan from which every run makes its flows.
#[derive(Clone, Debug)]
pub(crate) enum TrafficPlan {
    Series(FlowSeries),
    Poisson(Poisson),
    Incast(Incast),
    Permutation(TrafficPattern),
    AllToAll(TrafficPattern),
    Job(JobPlan),
    /// A list of flows, equal in every run.
    List(FlowSchedule),
}

/// A job of every run.
#[derive(Clone, Debug)]
pub(crate) struct JobPlan {
    pub work: JobWork,
    /// `None` for a graph that is no pattern.
    pub shape: Option<CollectiveShape>,
    /// Name of the graph, if it is none.
    pub name: &'static str,
    /// Every run has its ranks at the hosts in another order.
    pub shuffled: bool,
}

impl JobPlan {
    fn work(&self, random: &mut Random) -> JobWork {
        let mut work = self.work.clone();
        if self.shuffled {
            for last in (1..work.hosts.len()).rev() {
                work.hosts.swap(last, random.below(last as u64 + 1) as usize);
            }
        }
        work
    }
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
            Self::Job(job) => return Ok(Workload::Job(job.work(&mut random))),
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
