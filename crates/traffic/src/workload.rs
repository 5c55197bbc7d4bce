//! Who sends how much to whom, and when.
//!
//! [`Flows`] are lazy: a run of a million flows holds one at a time. They come sorted by their start, and the same
//! configuration and randomness give the same flows. [`Sizes`] are distributions of flow sizes.
//!
//! **Load** is the share of the senders' access links that payload fills on average: at a load of 0.5, n senders at
//! 100G start flows of 50n Gb/s in sum. Headers and retransmissions come on top. It says nothing of receivers, which
//! are overloaded if there are too few of them.

mod arrivals;
mod error;
mod file;
mod incast;
mod patterns;
mod poisson;
mod sizes;
mod traces;

use std::iter::Peekable;
use std::vec;

use units::{Span, Time};

pub use arrivals::Stop;
pub use error::WorkloadError;
pub use incast::{Incast, Pace};
pub use poisson::Poisson;
pub use sizes::{Sizes, Trace};

use crate::topology::NodeId;

/// So many bytes from one host to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    pub start: Time,
    pub src: NodeId,
    pub dst: NodeId,
    pub bytes: u64,
    /// What it is counted with: background, incast, …
    pub group: u16,
}

/// Flows one after another, each started `gap` after the one before it was complete: a closed loop, which only the
/// simulator can time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Series {
    pub src: NodeId,
    pub dst: NodeId,
    pub bytes: u64,
    pub count: u64,
    pub gap: Span,
    pub group: u16,
}

#[derive(Clone, Debug)]
pub enum Workload {
    /// Flows start when it is their time, whatever became of others.
    Open(Flows),
    Series(Series),
}

/// Flows in the order of their starts.
#[derive(Clone, Debug)]
pub struct Flows {
    source: Source,
    /// Instead of each flow's own.
    group: Option<u16>,
}

#[derive(Clone, Debug)]
enum Source {
    Poisson(poisson::Stream),
    Incast(incast::Stream),
    AllToAll(patterns::AllToAll),
    List(vec::IntoIter<Flow>),
    Merged(Vec<Peekable<Flows>>),
}

impl Flows {
    /// Those of a list, in whatever order it is.
    pub fn list(mut flows: Vec<Flow>) -> Self {
        flows.sort_by_key(|flow| flow.start);
        Self::from(Source::List(flows.into_iter()))
    }

    /// Those of several sources. Flows that start at the same time come in the order of the sources.
    pub fn merge(sources: Vec<Self>) -> Self {
        Self::from(Source::Merged(sources.into_iter().map(Iterator::peekable).collect()))
    }

    /// About how many are still to come, if that is known.
    pub fn expected_left(&self) -> Option<f64> {
        match &self.source {
            Source::Poisson(stream) => Some(stream.expected_left()),
            Source::Incast(stream) => Some(stream.expected_left()),
            Source::AllToAll(pairs) => Some(pairs.left() as f64),
            Source::List(flows) => Some(flows.len() as f64),
            Source::Merged(_) => None,
        }
    }

    /// The same flows, counted in this group.
    pub fn in_group(self, group: u16) -> Self {
        Self { group: Some(group), ..self }
    }
}

impl From<Source> for Flows {
    fn from(source: Source) -> Self {
        Self { source, group: None }
    }
}

impl Iterator for Flows {
    type Item = Flow;

    fn next(&mut self) -> Option<Flow> {
        let flow = match &mut self.source {
            Source::Poisson(stream) => stream.next(),
            Source::Incast(stream) => stream.next(),
            Source::AllToAll(pairs) => pairs.next(),
            Source::List(flows) => flows.next(),
            Source::Merged(sources) => earliest(sources),
        }?;
        Some(Flow { group: self.group.unwrap_or(flow.group), ..flow })
    }
}

fn earliest(sources: &mut [Peekable<Flows>]) -> Option<Flow> {
    let starts = sources.iter_mut().enumerate();
    let (_, first) = starts.filter_map(|(index, flows)| Some((flows.peek()?.start, index))).min()?;
    sources[first].next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(start: u64, bytes: u64) -> Flow {
        Flow { start: Time::from_ps(start), src: NodeId(0), dst: NodeId(1), bytes, group: 0 }
    }

    #[test]
    fn a_list_is_sorted_and_keeps_the_order_of_equals() {
        let flows: Vec<Flow> = Flows::list(vec![flow(5, 1), flow(3, 2), flow(5, 3)]).collect();
        assert_eq!(flows, [flow(3, 2), flow(5, 1), flow(5, 3)]);
    }

    #[test]
    fn merged_flows_are_sorted_and_the_first_source_goes_first() {
        let background = Flows::list(vec![flow(1, 1), flow(5, 2), flow(9, 3)]);
        let incast = Flows::list(vec![flow(5, 4), flow(6, 5)]).in_group(1);
        let merged = Flows::merge(vec![background, incast, Flows::list(vec![])]);
        let order: Vec<(u64, u16)> = merged.map(|flow| (flow.bytes, flow.group)).collect();
        assert_eq!(order, [(1, 0), (2, 0), (4, 1), (5, 1), (3, 0)]);
    }
}
