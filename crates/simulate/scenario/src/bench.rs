//! Networks to measure the simulator with: the two workloads on which simulators are usually compared, on fat-trees of
//! two sizes, because what a simulator loses between them is what cache misses cost it; congestion control of RDMA, and
//! reservations in a rack, with and without; collectives of a thousand ranks.

mod collective;
mod rack;
mod rdma;

use ::collective::CollectiveAlgorithm;
use collective::CollectiveCase;
use faults::Random;
use rdma::RdmaCase;
use tcp::{self, cc::Algorithm};
use units::{Bytes, Rate, Span, Time};

use sim::net::{Marking, NetworkSetup, TrafficSetup, TransportSetup};
use sim::topology::{NodeId, Topology, TopologyError};
use sim::workload::{ArrivalStop, FlowSchedule, Poisson, SizeTrace, Workload, WorkloadError};

/// A network with its traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimBenchCase {
    pub name: &'static str,
    /// Description in a line.
    pub about: &'static str,
    work: SimBenchWork,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SimBenchWork {
    /// Every host of a fat-tree sends this many bytes to another, no two to the same.
    Permutation { k: u32, bytes: u64 },
    /// This many flows of WebSearch at half of the hosts' capacity of a fat-tree.
    WebSearch { k: u32, flows: u64 },
    /// RDMA on the fabric of HPCC's paper.
    Rdma(RdmaCase),
    /// PL2's rack.
    Rack,
    /// An all-reduce.
    AllReduce(CollectiveCase),
}

pub const CASES: [SimBenchCase; 9] = [
    SimBenchCase {
        name: "k8-permutation",
        about: "fat-tree of 128 hosts at 100G, 10 MB from each to another, DCTCP",
        work: SimBenchWork::Permutation { k: 8, bytes: 10_000_000 },
    },
    SimBenchCase {
        name: "k8-websearch",
        about: "the same, WebSearch at 50 % load, DCTCP",
        work: SimBenchWork::WebSearch { k: 8, flows: 2_000 },
    },
    SimBenchCase {
        name: "k16-permutation",
        about: "fat-tree of 1,024 hosts at 100G, 10 MB from each to another, DCTCP",
        work: SimBenchWork::Permutation { k: 16, bytes: 10_000_000 },
    },
    SimBenchCase {
        name: "hpcc-hadoop",
        about: "HPCC's fabric of 320 hosts, 1 ms of FB_Hadoop at 30 % load, RDMA with HPCC, telemetry and PFC",
        work: SimBenchWork::Rdma(RdmaCase::Hpcc(SizeTrace::FbHadoop)),
    },
    SimBenchCase {
        name: "hpcc-websearch",
        about: "the same with WebSearch",
        work: SimBenchWork::Rdma(RdmaCase::Hpcc(SizeTrace::WebSearch)),
    },
    SimBenchCase {
        name: "dcqcn-incast",
        about: "the same fabric, 60 hosts at a time send 500 KB to one every 100 µs for 1 ms, RDMA with DCQCN and PFC",
        work: SimBenchWork::Rdma(RdmaCase::DcqcnIncast),
    },
    SimBenchCase {
        name: "pl2-incast",
        about: "six hosts at 100G, four of which send to one over TCP for 30 ms, with reservations (PL2, late)",
        work: SimBenchWork::Rack,
    },
    SimBenchCase {
        name: "k16-allreduce",
        about: "fat-tree of 1,024 hosts at 100G, an all-reduce of 16 MiB by halving and doubling, RDMA",
        work: SimBenchWork::AllReduce(CollectiveCase {
            algorithm: CollectiveAlgorithm::HalvingNearest,
            size: 16 << 20,
        }),
    },
    SimBenchCase {
        name: "ring-1024",
        about: "the same fat-tree, an all-reduce of 4 MiB in a ring: 2.1 million transfers of a packet",
        work: SimBenchWork::AllReduce(CollectiveCase { algorithm: CollectiveAlgorithm::Ring, size: 4 << 20 }),
    },
];

/// Cannot happen for the cases above; they are built as any scenario is.
#[derive(Debug)]
pub enum SimBenchError {
    Topology(TopologyError),
    Workload(WorkloadError),
    Scenario(String),
}

impl From<TopologyError> for SimBenchError {
    fn from(error: TopologyError) -> Self {
        Self::Topology(error)
    }
}

impl From<WorkloadError> for SimBenchError {
    fn from(error: WorkloadError) -> Self {
        Self::Workload(error)
    }
}

impl SimBenchCase {
    /// The case without congestion control or reservations, if it has any.
    pub fn uncontrolled(&self) -> Option<Result<NetworkSetup, SimBenchError>> {
        match self.work {
            SimBenchWork::Rdma(case) => Some(rdma::setup(case, 1, false)),
            SimBenchWork::Rack => Some(rack::setup(1, false)),
            SimBenchWork::Permutation { .. } | SimBenchWork::WebSearch { .. } | SimBenchWork::AllReduce(_) => None,
        }
    }

    /// The network; of the traffic, one part in `shrink`.
    pub fn setup(&self, shrink: u64) -> Result<NetworkSetup, SimBenchError> {
        let rate = Rate::gbps(100);
        let fat_tree = |k| -> Result<(Topology, Vec<NodeId>), TopologyError> {
            let topology = Topology::fat_tree(k, rate, Span::from_us(1))?;
            let hosts = topology.hosts().collect();
            Ok((topology, hosts))
        };
        let mut random = Random::new(1, 0);
        let (topology, flows) = match self.work {
            SimBenchWork::Rdma(case) => return rdma::setup(case, shrink, true),
            SimBenchWork::Rack => return rack::setup(shrink, true),
            SimBenchWork::AllReduce(case) => return collective::setup(case, shrink),
            SimBenchWork::Permutation { k, bytes } => {
                let (topology, hosts) = fat_tree(k)?;
                (topology, FlowSchedule::permutation(&hosts, bytes / shrink, Time::ZERO, &mut random)?)
            }
            SimBenchWork::WebSearch { k, flows } => {
                let (topology, hosts) = fat_tree(k)?;
                let poisson = Poisson {
                    load: 0.5,
                    rate,
                    sizes: SizeTrace::WebSearch.sizes(),
                    senders: hosts.clone(),
                    receivers: hosts,
                    matched: false,
                    stop: ArrivalStop::After(flows / shrink),
                };
                (topology, FlowSchedule::poisson(poisson, random)?)
            }
        };
        let mut setup = NetworkSetup::new(topology);
        setup.marking = Some(Marking::step(Bytes::new(100_000)));
        let config = tcp::TcpConfig { algorithm: Algorithm::Dctcp, ..tcp::TcpConfig::default() };
        setup.traffic.push(TrafficSetup::new(self.name, TransportSetup::Tcp(config), Workload::Open(flows)));
        Ok(setup)
    }
}
