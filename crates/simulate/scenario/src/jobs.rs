//! Work whose transfers wait for each other: collectives, graphs from files, the training of VGG16.

use std::collections::BTreeMap;
use std::sync::Arc;

use collective::{
    CollectiveAlgorithm, CollectiveJob, CollectivePattern, CollectiveShape, InputEvent, RowChoice, TransferPlan,
};
use settings::{ReadResult, SettingsReader};
use sim::net::LONGEST_SPAN;
use sim::topology::{NodeId, Topology};
use sim::workload::JobWork;
use units::{Bytes, Span, Time};

use crate::plan::JobPlan;
use crate::work::WorkloadReader;

/// Gradients of one worker in a round of VGG16, as PL2 has them.
const GRADIENTS: u64 = 500 << 20;

/// Rings or trees side by side.
const MOST_CHANNELS: u32 = 1_024;

#[derive(Clone, Copy, PartialEq)]
enum RankPlacement {
    AsGiven,
    Spread,
    Random,
}

const PLACEMENTS: [(&str, RankPlacement); 3] =
    [("as-given", RankPlacement::AsGiven), ("spread", RankPlacement::Spread), ("random", RankPlacement::Random)];

impl WorkloadReader<'_> {
    /// A collective of `ranks`, `iterations` times.
    pub(crate) fn collective(&self) -> ReadResult<JobPlan> {
        self.check_reliable()?;
        let table = self.table;
        let expected = "all-reduce, all-gather, reduce-scatter, all-to-all, broadcast or pipeline";
        let pattern: CollectivePattern = table.needed("pattern", table.parsed("pattern")?, expected)?;
        let algorithm: Option<CollectiveAlgorithm> = table.parsed("algorithm")?;
        let hosts = self.hosts("ranks")?;
        let size: Bytes = table.needed("size", table.parsed("size")?, "a size such as 4MB")?;
        let shape = CollectiveShape {
            pattern,
            algorithm: algorithm.unwrap_or(pattern.usual_algorithm()),
            ranks: hosts.len() as u32,
            size: size.get(),
            channels: table.small("channels", 1..=MOST_CHANNELS)?.unwrap_or(1) as u16,
            pieces: table.small("pieces", 1..=u32::MAX)?.unwrap_or(1),
        };
        let payload = self.transport.sizes().payload;
        shape.check(payload).map_err(|error| table.wrong(error.key, error))?;
        let placement = table.choice("placement", &PLACEMENTS)?.unwrap_or(RankPlacement::AsGiven);
        let hosts = if placement == RankPlacement::Spread { spread(self.topology(), &hosts) } else { hosts };
        let job = self.job(TransferPlan::of(&shape))?;
        Ok(JobPlan {
            work: JobWork { start: self.start()?, ..JobWork::new(job, hosts) },
            shape: Some(shape),
            name: "",
            shuffled: placement == RankPlacement::Random,
        })
    }

    /// A graph from a file, `iterations` times.
    pub(crate) fn graph(&self, name: &str, text: &str) -> ReadResult<JobPlan> {
        self.check_reliable()?;
        let read = JobWork::parse_graph(text, self.topology());
        let (graph, hosts) = read.map_err(|error| self.table.wrong("file", format_args!("{name}: {error}")))?;
        let plan = TransferPlan::graph(graph);
        for id in 0..plan.transfers() {
            self.check_size("file", Bytes::new(plan.transfer(id).bytes))?;
        }
        let work = JobWork::new(self.job(plan)?, hosts);
        Ok(JobPlan { work, shape: None, name: "file", shuffled: false })
    }

    fn job(&self, plan: TransferPlan) -> ReadResult<CollectiveJob> {
        let compute = self.table.span("compute", Span::ZERO..=LONGEST_SPAN)?;
        Ok(CollectiveJob {
            plan: Arc::new(plan),
            iterations: self.table.small("iterations", 1..=u32::MAX - 1)?.unwrap_or(1),
            compute: compute.unwrap_or(Span::ZERO),
            barrier: self.table.flag("barrier")?.unwrap_or(true),
            ends: InputEvent::Arrived,
        })
    }

    /// The gradients of all workers (`from`) to all servers (`to`), `count` times.
    pub(crate) fn vgg16(&self) -> ReadResult<JobPlan> {
        self.check_reliable()?;
        let [workers, servers] = [self.hosts("from")?, self.hosts("to")?];
        if let Some(both) = workers.iter().find(|host| servers.contains(host)) {
            let problem = format!("'{}' is a worker: expected other hosts", self.topology().name(*both));
            return Err(self.table.wrong("to", problem));
        }
        let bytes = if self.table.has("size") { self.bytes()? } else { GRADIENTS };
        self.check_size("size", Bytes::new(bytes))?;
        let count = self.table.small("count", 1..=u32::MAX - 1)?.unwrap_or(100);
        let work = JobWork::vgg16(&workers, &servers, bytes, count, self.gap()?);
        let work = work.map_err(|error| self.blame(error))?;
        Ok(JobPlan { work, shape: None, name: "vgg16", shuffled: false })
    }
}

/// Hosts by turns from each switch, so that neighbours in the list have different ones.
fn spread(topology: &Topology, hosts: &[NodeId]) -> Vec<NodeId> {
    let mut switches: BTreeMap<NodeId, NodeId> = BTreeMap::new();
    for port in topology.directed().filter(|port| topology.is_host(topology.from(*port))) {
        switches.insert(topology.from(port), topology.to(port));
    }
    let mut below: BTreeMap<NodeId, Vec<NodeId>> = BTreeMap::new();
    let mut order = Vec::new();
    for host in hosts {
        let switch = switches.get(host).copied().unwrap_or(*host);
        if !order.contains(&switch) {
            order.push(switch);
        }
        below.entry(switch).or_default().push(*host);
    }
    let longest = below.values().map(Vec::len).max().unwrap_or_default();
    let turns = (0..longest).flat_map(|turn| order.iter().map(move |switch| (switch, turn)));
    turns.filter_map(|(switch, turn)| below[switch].get(turn).copied()).collect()
}

/// Rows of jobs that a scenario asks for.
pub(crate) fn rows(measure: &SettingsReader<'_>) -> ReadResult<RowChoice> {
    let all = measure.choice("iterations", &[("all", true), ("late", false)])?;
    Ok(RowChoice { all_iterations: all.unwrap_or(false), transfers: measure.flag("transfers")?.unwrap_or(false) })
}

/// A job as its scenario describes it.
#[derive(Clone, Copy, Debug)]
pub struct JobDescription<'a> {
    /// Name of its traffic.
    pub name: &'a str,
    /// `None` for a graph that is no pattern.
    pub shape: Option<CollectiveShape>,
    /// Name of the graph, if it is none.
    pub graph: &'static str,
    pub job: &'a CollectiveJob,
    /// Time at which it starts.
    pub start: Time,
}

impl<'a> JobDescription<'a> {
    pub(crate) fn of(name: &'a str, plan: &'a JobPlan) -> Self {
        let JobPlan { work, shape, name: graph, .. } = plan;
        Self { name, shape: *shape, graph, job: &work.job, start: work.start }
    }
}
