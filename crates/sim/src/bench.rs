//! Networks to measure the simulator with: the two workloads on which simulators are usually compared, on fat-trees of
//! two sizes, because what a simulator loses between them is what cache misses cost it.

use faults::Random;
use transport::tcp::{self, cc::Algorithm};
use units::{Bytes, Rate, Span, Time};

use crate::net::{Marking, NetworkSetup, TrafficSetup, TransportSetup};
use crate::topology::{NodeId, Topology, TopologyError};
use crate::workload::{ArrivalStop, FlowSchedule, Poisson, SizeTrace, Workload, WorkloadError};

/// A network with its traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimBenchCase {
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    k: u32,
    work: SimBenchWork,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SimBenchWork {
    /// Every host sends so much to another, no two to the same.
    Permutation(u64),
    /// So many flows of WebSearch at half of the hosts' capacity.
    WebSearch(u64),
}

pub const CASES: [SimBenchCase; 3] = [
    SimBenchCase {
        name: "k8-permutation",
        about: "fat-tree of 128 hosts at 100G, 10 MB from each to another, DCTCP",
        k: 8,
        work: SimBenchWork::Permutation(10_000_000),
    },
    SimBenchCase {
        name: "k8-websearch",
        about: "the same, WebSearch at 50 % load, DCTCP",
        k: 8,
        work: SimBenchWork::WebSearch(2_000),
    },
    SimBenchCase {
        name: "k16-permutation",
        about: "fat-tree of 1,024 hosts at 100G, 10 MB from each to another, DCTCP",
        k: 16,
        work: SimBenchWork::Permutation(10_000_000),
    },
];

/// Cannot happen for the cases above; they are built as any scenario is.
#[derive(Debug)]
pub enum SimBenchError {
    Topology(TopologyError),
    Workload(WorkloadError),
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
    /// The network; of the traffic, one part in `shrink`.
    pub fn setup(&self, shrink: u64) -> Result<NetworkSetup, SimBenchError> {
        let rate = Rate::gbps(100);
        let topology = Topology::fat_tree(self.k, rate, Span::from_us(1))?;
        let hosts: Vec<NodeId> = topology.hosts().collect();
        let mut random = Random::new(1, 0);
        let flows = match self.work {
            SimBenchWork::Permutation(bytes) => {
                FlowSchedule::permutation(&hosts, bytes / shrink, Time::ZERO, &mut random)?
            }
            SimBenchWork::WebSearch(flows) => FlowSchedule::poisson(
                Poisson {
                    load: 0.5,
                    rate,
                    sizes: SizeTrace::WebSearch.sizes(),
                    senders: hosts.clone(),
                    receivers: hosts,
                    matched: false,
                    stop: ArrivalStop::After(flows / shrink),
                },
                random,
            )?,
        };
        let mut setup = NetworkSetup::new(topology);
        setup.marking = Some(Marking::step(Bytes::new(100_000)));
        let config = tcp::TcpConfig { algorithm: Algorithm::Dctcp, ..tcp::TcpConfig::default() };
        setup.traffic.push(TrafficSetup {
            name: self.name.into(),
            transport: TransportSetup::Tcp(config),
            work: Workload::Open(flows),
            reply: 0,
            class: 0,
            queue_pairs: None,
        });
        Ok(setup)
    }
}
