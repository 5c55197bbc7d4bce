//! Flows: who sends how much to whom, and when.
//!
//! [`FlowSchedule`] are lazy: a run of a million flows holds one at a time. They come sorted by their start, and the same
//! configuration and randomness give the same flows. [`FlowSizes`] are distributions of flow sizes.
//!
//! **Load** is the share of the senders' access links that payload fills on average: at a load of 0.5, n senders at
//! 100G start flows of 50n Gb/s in sum. Headers and retransmissions come on top. It says nothing of receivers, which
//! are overloaded if there are too few of them.

mod arrivals;
mod error;
mod file;
mod hpcc_ns3;
mod incast;
mod job;
mod patterns;
mod poisson;
mod sizes;
mod traces;
mod vgg16;

use std::iter::Peekable;
use std::vec;

use units::{Span, Time};

pub use arrivals::ArrivalStop;
pub use error::WorkloadError;
pub use hpcc_ns3::hpcc_start;
pub use incast::{BurstPace, Incast};
pub use job::JobWork;
pub use poisson::Poisson;
pub use sizes::{FlowSizes, SizeTrace};

use crate::topology::NodeId;

/// A flow of bytes from one host to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkloadFlow {
    pub start: Time,
    pub src: NodeId,
    pub dst: NodeId,
    pub bytes: u64,
    /// Group that it is counted with: background, incast, …
    pub group: u16,
}

/// Flows one after another, each started `gap` after the one before it was complete: a closed loop, which only the
/// simulator can time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowSeries {
    pub src: NodeId,
    pub dst: NodeId,
    pub bytes: u64,
    pub count: u64,
    pub gap: Span,
    pub group: u16,
}

#[derive(Clone, Debug)]
pub enum Workload {
    /// Flows that start at their own times, independent of other flows.
    Open(FlowSchedule),
    Series(FlowSeries),
    /// Transfers that wait for each other.
    Job(JobWork),
}

/// Flows in the order of their starts.
#[derive(Clone, Debug)]
pub struct FlowSchedule {
    source: FlowSource,
    /// Instead of each flow's own.
    group: Option<u16>,
}

#[derive(Clone, Debug)]
enum FlowSource {
    Poisson(poisson::PoissonStream),
    Incast(incast::IncastStream),
    AllToAll(patterns::AllToAll),
    List(vec::IntoIter<WorkloadFlow>),
    Merged(Vec<Peekable<FlowSchedule>>),
}

impl FlowSchedule {
    /// The flows of a list, which may be in any order.
    pub fn list(mut flows: Vec<WorkloadFlow>) -> Self {
        flows.sort_by_key(|flow| flow.start);
        Self::from(FlowSource::List(flows.into_iter()))
    }

    /// The flows of several sources. Flows that start at the same time come in the order of the sources.
    pub fn merge(sources: Vec<Self>) -> Self {
        Self::from(FlowSource::Merged(sources.into_iter().map(Iterator::peekable).collect()))
    }

    /// Expected number of flows that are still to come, if known.
    pub fn expected_left(&self) -> Option<f64> {
        match &self.source {
            FlowSource::Poisson(stream) => Some(stream.expected_left()),
            FlowSource::Incast(stream) => Some(stream.expected_left()),
            FlowSource::AllToAll(pairs) => Some(pairs.left() as f64),
            FlowSource::List(flows) => Some(flows.len() as f64),
            FlowSource::Merged(_) => None,
        }
    }

    /// Counts the flows in this group.
    pub fn in_group(self, group: u16) -> Self {
        Self { group: Some(group), ..self }
    }
}

impl From<FlowSource> for FlowSchedule {
    fn from(source: FlowSource) -> Self {
        Self { source, group: None }
    }
}

impl Iterator for FlowSchedule {
    type Item = WorkloadFlow;

    fn next(&mut self) -> Option<WorkloadFlow> {
        let flow = match &mut self.source {
            FlowSource::Poisson(stream) => stream.next(),
            FlowSource::Incast(stream) => stream.next(),
            FlowSource::AllToAll(pairs) => pairs.next(),
            FlowSource::List(flows) => flows.next(),
            FlowSource::Merged(sources) => earliest(sources),
        }?;
        Some(WorkloadFlow { group: self.group.unwrap_or(flow.group), ..flow })
    }
}

fn earliest(sources: &mut [Peekable<FlowSchedule>]) -> Option<WorkloadFlow> {
    let starts = sources.iter_mut().enumerate();
    let (_, first) = starts.filter_map(|(index, flows)| Some((flows.peek()?.start, index))).min()?;
    sources[first].next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(start: u64, bytes: u64) -> WorkloadFlow {
        WorkloadFlow { start: Time::from_ps(start), src: NodeId(0), dst: NodeId(1), bytes, group: 0 }
    }

    #[test]
    fn a_list_is_sorted_and_keeps_the_order_of_equals() {
        let flows: Vec<WorkloadFlow> = FlowSchedule::list(vec![flow(5, 1), flow(3, 2), flow(5, 3)]).collect();
        assert_eq!(flows, [flow(3, 2), flow(5, 1), flow(5, 3)]);
    }

    #[test]
    fn merged_flows_are_sorted_and_the_first_source_goes_first() {
        let background = FlowSchedule::list(vec![flow(1, 1), flow(5, 2), flow(9, 3)]);
        let incast = FlowSchedule::list(vec![flow(5, 4), flow(6, 5)]).in_group(1);
        let merged = FlowSchedule::merge(vec![background, incast, FlowSchedule::list(vec![])]);
        let order: Vec<(u64, u16)> = merged.map(|flow| (flow.bytes, flow.group)).collect();
        assert_eq!(order, [(1, 0), (2, 0), (4, 1), (5, 1), (3, 0)]);
    }
}
