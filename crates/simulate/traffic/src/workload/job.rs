//! Jobs: transfers that wait for each other, between the hosts of their ranks. Only the simulator can time them.

use std::collections::BTreeMap;

use collective::graph::{self, file::GraphFileError};
use collective::{CollectiveJob, TransferGraph};
use units::Time;

use super::WorkloadError;
use super::file::no_such_host;
use crate::topology::{NodeId, Topology};

/// A job and where it runs.
#[derive(Clone, Debug)]
pub struct JobWork {
    pub job: CollectiveJob,
    /// Host of each rank.
    pub hosts: Vec<NodeId>,
    pub start: Time,
    /// Its transfers are flows like others, each with a row.
    pub has_flows: bool,
}

impl JobWork {
    /// One that begins at once and whose transfers are no rows of flows.
    pub fn new(job: CollectiveJob, hosts: Vec<NodeId>) -> Self {
        Self { job, hosts, start: Time::ZERO, has_flows: false }
    }

    /// Bytes of all iterations.
    pub fn total_bytes(&self) -> f64 {
        let plan = &self.job.plan;
        let bytes: f64 = (0..plan.transfers()).map(|id| plan.transfer(id).bytes as f64).sum();
        bytes * f64::from(self.job.iterations)
    }
}

impl JobWork {
    /// Reads a graph of transfers from a file; ranks are the hosts of the topology. Anything wrong is named with its line.
    pub fn parse_graph(text: &str, topology: &Topology) -> Result<(TransferGraph, Vec<NodeId>), WorkloadError> {
        let hosts: Vec<NodeId> = topology.hosts().collect();
        let ranks: BTreeMap<&str, u32> = hosts.iter().map(|host| topology.name(*host)).zip(0..).collect();
        let rank = |name: &str| ranks.get(name).copied().ok_or_else(|| no_such_host(name, topology));
        let list = graph::file::parse(text, rank);
        let list = list.map_err(|GraphFileError { line, problem }| WorkloadError::Line { line, problem })?;
        let graph = TransferGraph::new(hosts.len() as u32, list);
        Ok((graph.map_err(|error| WorkloadError::Graph(error.to_string()))?, hosts))
    }
}
