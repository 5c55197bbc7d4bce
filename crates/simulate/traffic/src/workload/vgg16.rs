//! The gradients of VGG16, from workers to parameter servers: a job whose iterations are rounds.
//!
//! The layers of a worker go to each server one after the other, side by side with those to other servers, and the next round
//! begins when the last is complete.

use std::sync::Arc;

use collective::{CollectiveJob, GraphInput, GraphTransfer, InputEvent, TransferGraph, TransferPlan};
use units::Span;

use super::error::expect;
use super::{JobWork, WorkloadError};
use crate::topology::NodeId;

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

impl JobWork {
    /// The gradients of VGG16, `bytes` of each worker in a round. Every layer is split evenly over the servers: its first
    /// full connection alone is three quarters of all.
    pub fn vgg16(
        workers: &[NodeId],
        servers: &[NodeId],
        bytes: u64,
        rounds: u32,
        gap: Span,
    ) -> Result<Self, WorkloadError> {
        let all: u64 = VGG16.iter().sum();
        let shares = (all * servers.len().max(1) as u64) as f64;
        let sizes = VGG16.map(|layer| (bytes as f64 * layer as f64 / shares).round().max(1.0) as u64);
        let servers_first = workers.len() as u32;
        let pairs = (0..workers.len() as u32).flat_map(|src| (0..servers.len() as u32).map(move |to| (src, to)));
        let mut list: Vec<GraphTransfer> = Vec::new();
        for (src, to) in pairs.filter(|(src, to)| workers[*src as usize] != servers[*to as usize]) {
            for (layer, bytes) in sizes.into_iter().enumerate() {
                let before = (layer > 0).then(|| GraphInput {
                    transfer: list.len() as u32 - 1,
                    event: InputEvent::Acknowledged,
                    delay: Span::ZERO,
                });
                list.push(GraphTransfer {
                    name: format!("w{src}-s{to}-{}", layer + 1),
                    src,
                    dst: servers_first + to,
                    bytes,
                    lane: 0,
                    not_before: Span::ZERO,
                    after: before.into_iter().collect(),
                });
            }
        }
        expect(!list.is_empty(), "at least one sender and one receiver")?;
        let hosts: Vec<NodeId> = workers.iter().chain(servers).copied().collect();
        let graph = TransferGraph::new(hosts.len() as u32, list);
        let graph = graph.map_err(|_| WorkloadError::Expected("a graph of layers"))?;
        let job = CollectiveJob {
            plan: Arc::new(TransferPlan::graph(graph)),
            iterations: rounds,
            compute: gap,
            barrier: true,
            ends: InputEvent::Acknowledged,
        };
        Ok(Self { has_flows: true, ..Self::new(job, hosts) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vgg16_is_split_evenly_over_its_servers() {
        let nodes: Vec<NodeId> = (0..6).map(NodeId).collect();
        let bytes = 500 << 20;
        let work = JobWork::vgg16(&nodes[..4], &nodes[4..], bytes, 1, Span::ZERO).unwrap();
        assert!((work.total_bytes() / (4.0 * bytes as f64) - 1.0).abs() < 1e-6);
        let plan = &work.job.plan;
        assert_eq!((0..plan.transfers()).filter(|id| plan.inputs(*id) == 0).count(), 8);
        assert_eq!(VGG16.iter().sum::<u64>(), 4 * 138_357_544, "parameters of the published network");
        assert_eq!(plan.transfers(), 8 * 16);
        let sizes: Vec<u64> = (0..16).map(|id| plan.transfer(id).bytes).collect();
        let largest = sizes[13] as f64 / sizes.iter().sum::<u64>() as f64;
        assert!((largest - 0.743).abs() < 0.001, "{largest}");
    }

    #[test]
    fn nobody_to_send_is_refused() {
        let alone = JobWork::vgg16(&[NodeId(1)], &[NodeId(1)], 1_000, 1, Span::ZERO).unwrap_err();
        assert_eq!(alone.to_string(), "expected at least one sender and one receiver");
    }
}
