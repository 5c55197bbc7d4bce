//! Rounds with a barrier: a closed loop of several flows at a time.
//!
//! A round has lanes, each from one host to another. The flows of a lane begin one after the other, the lanes side by
//! side, and the next round begins when the last flow of the last lane is complete. Only the simulator knows when that
//! is: it reports completions and asks for the flows that may begin.

use std::collections::VecDeque;

use units::{Span, Time};

use super::error::expect;
use super::{WorkloadError, WorkloadFlow};
use crate::topology::NodeId;

/// Flows from one host to another, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundLane {
    pub src: NodeId,
    pub dst: NodeId,
    /// Size of each flow, in bytes.
    pub sizes: Vec<u64>,
}

/// Rounds over the same lanes, and their progress. The group of a flow is the number of its round.
#[derive(Clone, Debug)]
pub struct FlowRounds {
    lanes: Vec<RoundLane>,
    rounds: u64,
    /// Time from the end of a round to the next.
    gap: Span,
    round: u64,
    /// Flows of each lane that are complete in this round.
    complete: Vec<usize>,
    /// Flows that may begin.
    ready: VecDeque<WorkloadFlow>,
}

/// Bytes of VGG16's layers (Simonyan and Zisserman, ICLR'15, configuration D): 13 convolutions and 3 full connections,
/// each with its weights and biases as 32-bit numbers.
const VGG16: [u64; 16] = [
    4 * 1_792,
    4 * 36_928,
    4 * 73_856,
    4 * 147_584,
    4 * 295_168,
    4 * 590_080,
    4 * 590_080,
    4 * 1_180_160,
    4 * 2_359_808,
    4 * 2_359_808,
    4 * 2_359_808,
    4 * 2_359_808,
    4 * 2_359_808,
    4 * 102_764_544,
    4 * 16_781_312,
    4 * 4_097_000,
];

impl FlowRounds {
    /// `rounds` times all lanes.
    pub fn new(lanes: Vec<RoundLane>, rounds: u64, gap: Span) -> Result<Self, WorkloadError> {
        expect(!lanes.is_empty(), "at least one sender and one receiver")?;
        expect(lanes.iter().all(|lane| !lane.sizes.is_empty()), "at least one flow in each lane")?;
        expect(lanes.iter().flat_map(|lane| &lane.sizes).all(|bytes| *bytes >= 1), "at least one byte per flow")?;
        let mut new = Self { complete: Vec::new(), ready: VecDeque::new(), lanes, rounds, gap, round: 0 };
        new.begin_round(Time::ZERO);
        Ok(new)
    }

    /// The gradients of VGG16, `bytes` of each worker in a round. Every layer is split evenly over the servers: its first
    /// full connection alone is three quarters of all.
    pub fn vgg16(
        workers: &[NodeId],
        servers: &[NodeId],
        bytes: u64,
        rounds: u64,
        gap: Span,
    ) -> Result<Self, WorkloadError> {
        let all: u64 = VGG16.iter().sum();
        let shares = (all * servers.len().max(1) as u64) as f64;
        let sizes: Vec<u64> =
            VGG16.iter().map(|layer| (bytes as f64 * *layer as f64 / shares).round().max(1.0) as u64).collect();
        let pairs = workers.iter().flat_map(|src| servers.iter().map(move |dst| (*src, *dst)));
        let pairs = pairs.filter(|(src, dst)| src != dst);
        Self::new(pairs.map(|(src, dst)| RoundLane { src, dst, sizes: sizes.clone() }).collect(), rounds, gap)
    }

    /// The next flow that may begin, with the time from which on.
    pub fn next_flow(&mut self) -> Option<WorkloadFlow> {
        self.ready.pop_front()
    }

    /// A flow of these has ended, whether or not it succeeded.
    pub fn on_end(&mut self, now: Time, src: NodeId, dst: NodeId) {
        let Some(lane) = self.lanes.iter().position(|lane| lane.src == src && lane.dst == dst) else { return };
        self.complete[lane] += 1;
        if self.complete[lane] < self.lanes[lane].sizes.len() {
            self.begin_flow(now, lane);
        } else if self.lanes.iter().zip(&self.complete).all(|(lane, complete)| *complete == lane.sizes.len()) {
            self.round += 1;
            self.begin_round(now + self.gap);
        }
    }

    /// True if every flow has begun.
    pub fn is_exhausted(&self) -> bool {
        let last = |(lane, complete): (&RoundLane, &usize)| complete + 1 >= lane.sizes.len();
        self.round >= self.rounds
            || self.round + 1 == self.rounds && self.ready.is_empty() && self.lanes.iter().zip(&self.complete).all(last)
    }

    /// Bytes of all flows of all rounds.
    pub fn total_bytes(&self) -> f64 {
        let round: u64 = self.lanes.iter().flat_map(|lane| &lane.sizes).sum();
        round as f64 * self.rounds as f64
    }

    fn begin_round(&mut self, at: Time) {
        self.complete = vec![0; self.lanes.len()];
        if self.round < self.rounds {
            (0..self.lanes.len()).for_each(|lane| self.begin_flow(at, lane));
        }
    }

    fn begin_flow(&mut self, start: Time, lane: usize) {
        let RoundLane { src, dst, ref sizes } = self.lanes[lane];
        let group = self.round.min(u16::MAX.into()) as u16;
        self.ready.push_back(WorkloadFlow { start, src, dst, bytes: sizes[self.complete[lane]], group });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(rounds: &mut FlowRounds) -> Vec<(u32, u64, u16)> {
        std::iter::from_fn(|| rounds.next_flow()).map(|flow| (flow.src.0, flow.bytes, flow.group)).collect()
    }

    #[test]
    fn a_round_waits_for_its_last_flow_and_lanes_do_not_wait_for_each_other() {
        let lane = |src, sizes: &[u64]| RoundLane { src: NodeId(src), dst: NodeId(9), sizes: sizes.to_vec() };
        let mut rounds = FlowRounds::new(vec![lane(0, &[10, 20]), lane(1, &[30])], 2, Span::from_us(5)).unwrap();
        let at = |us| Time::ZERO + Span::from_us(us);
        assert_eq!(begun(&mut rounds), [(0, 10, 0), (1, 30, 0)]);
        rounds.on_end(at(1), NodeId(0), NodeId(9));
        assert_eq!(begun(&mut rounds), [(0, 20, 0)]);
        rounds.on_end(at(2), NodeId(1), NodeId(9));
        assert_eq!(begun(&mut rounds), [], "the other lane is not through");
        rounds.on_end(at(3), NodeId(0), NodeId(9));
        assert_eq!(rounds.ready.front().map(|flow| flow.start), Some(at(8)));
        assert_eq!(begun(&mut rounds), [(0, 10, 1), (1, 30, 1)]);
        assert!(!rounds.is_exhausted());
        rounds.on_end(at(9), NodeId(0), NodeId(9));
        assert_eq!(begun(&mut rounds), [(0, 20, 1)]);
        assert!(rounds.is_exhausted());
        for src in [1, 0] {
            rounds.on_end(at(10), NodeId(src), NodeId(9));
        }
        assert!(begun(&mut rounds).is_empty() && rounds.is_exhausted());
    }

    #[test]
    fn vgg16_is_split_evenly_over_its_servers() {
        let nodes: Vec<NodeId> = (0..6).map(NodeId).collect();
        let bytes = 500 << 20;
        let mut rounds = FlowRounds::vgg16(&nodes[..4], &nodes[4..], bytes, 1, Span::ZERO).unwrap();
        assert!((rounds.total_bytes() / (4.0 * bytes as f64) - 1.0).abs() < 1e-6);
        assert_eq!(begun(&mut rounds).len(), 8);
        assert_eq!(VGG16.iter().sum::<u64>(), 4 * 138_357_544, "parameters of the published network");
        assert_eq!(rounds.lanes[0].sizes.len(), 16);
        let largest = rounds.lanes[0].sizes[13] as f64 / rounds.lanes[0].sizes.iter().sum::<u64>() as f64;
        assert!((largest - 0.743).abs() < 0.001, "{largest}");
    }

    #[test]
    fn nobody_to_send_is_refused() {
        let alone = FlowRounds::vgg16(&[NodeId(1)], &[NodeId(1)], 1_000, 1, Span::ZERO).unwrap_err();
        assert_eq!(alone.to_string(), "expected at least one sender and one receiver");
    }
}
