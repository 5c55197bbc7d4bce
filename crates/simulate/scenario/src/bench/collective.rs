//! Collectives of all 1,024 hosts of a fat-tree at 100G, over RDMA, with room for what piles up.

use std::sync::Arc;

use collective::{CollectiveAlgorithm, CollectiveJob, CollectivePattern, CollectiveShape, InputEvent, TransferPlan};
use roce::RoceConfig;
use units::{Bytes, Rate, Span};

use super::SimBenchError;
use sim::net::{NetworkSetup, SwitchSettings, TrafficSetup, TransportSetup};
use sim::topology::{NodeId, Topology};
use sim::workload::{JobWork, Workload};

/// An all-reduce of this many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CollectiveCase {
    pub algorithm: CollectiveAlgorithm,
    pub size: u64,
}

/// The network; of the ranks and the bytes of each, one part in `shrink`.
pub(super) fn setup(case: CollectiveCase, shrink: u64) -> Result<NetworkSetup, SimBenchError> {
    let topology = Topology::fat_tree(16, Rate::gbps(100), Span::from_us(1))?;
    let all = topology.hosts().count() as u64;
    let ranks = 1 << (all / shrink).max(2).ilog2();
    let hosts: Vec<NodeId> = topology.hosts().take(ranks as usize).collect();
    let shape = CollectiveShape {
        pattern: CollectivePattern::AllReduce,
        algorithm: case.algorithm,
        ranks,
        size: (case.size / shrink).max(u64::from(ranks)),
        channels: 1,
        pieces: 1,
    };
    let job = CollectiveJob {
        plan: Arc::new(TransferPlan::of(&shape)),
        iterations: 1,
        compute: Span::ZERO,
        barrier: true,
        ends: InputEvent::Arrived,
    };
    let mut setup = NetworkSetup::new(topology);
    setup.switches = SwitchSettings { buffer: Bytes::new(1 << 30), ..SwitchSettings::default() };
    let config = RoceConfig { mtu: 4_096, ..RoceConfig::default() };
    let work = Workload::Job(JobWork::new(job, hosts));
    let traffic = TrafficSetup::new("all-reduce", TransportSetup::Roce(config), work);
    setup.traffic.push(TrafficSetup { queue_pairs: Some(1), ..traffic });
    Ok(setup)
}
