//! The `work` of a `[[traffic]]`: when flows begin, between whom, and how large they are.

use std::path::Path;

use collective::graph;
use faults::Random;
use settings::{KeyError, ReadResult, SettingsReader};
use sim::net::{LONGEST_SPAN, TransportSetup};
use sim::topology::{NodeId, Topology};
use sim::workload::{
    ArrivalStop, BurstPace, FlowSchedule, FlowSeries, FlowSizes, Incast, Poisson, SizeTrace, WorkloadError,
    WorkloadFlow,
};
use units::{Bytes, Rate, Span, Time};
use wire::ethernet::on_wire;

use crate::TrafficContext;
use crate::fabric::access_rate;
use crate::files::contents;
use crate::plan::{TrafficPattern, TrafficPlan};

/// A flow that takes longer than this on its slowest link is a mistake in the unit.
const LONGEST_FLOW: Span = Span::from_ms(3_600_000);

/// Bulk transfers at a time from one host to another.
const MOST_CONNECTIONS: u32 = 10_000;

#[derive(Clone, Copy)]
enum WorkloadKind {
    Series,
    Poisson,
    Incast,
    Permutation,
    AllToAll,
    Bulk,
    File,
    Vgg16,
    Collective,
}

const KINDS: [(&str, WorkloadKind); 9] = [
    ("series", WorkloadKind::Series),
    ("poisson", WorkloadKind::Poisson),
    ("incast", WorkloadKind::Incast),
    ("permutation", WorkloadKind::Permutation),
    ("all-to-all", WorkloadKind::AllToAll),
    ("bulk", WorkloadKind::Bulk),
    ("file", WorkloadKind::File),
    ("vgg16", WorkloadKind::Vgg16),
    ("collective", WorkloadKind::Collective),
];

pub(crate) fn read(
    table: &SettingsReader<'_>,
    transport: &TransportSetup,
    around: &TrafficContext<'_>,
) -> ReadResult<TrafficPlan> {
    let kind = table.needed("work", table.choice("work", &KINDS)?, "what to do: series, poisson, incast, bulk, …")?;
    let task = WorkloadReader { table, transport, around };
    let plan = match kind {
        WorkloadKind::Series => task.series(),
        WorkloadKind::Poisson => task.poisson(),
        WorkloadKind::Incast => task.incast(),
        WorkloadKind::Permutation => task.pattern().map(TrafficPlan::Permutation),
        WorkloadKind::AllToAll => task.pattern().map(TrafficPlan::AllToAll),
        WorkloadKind::Bulk => task.bulk(),
        WorkloadKind::File => task.file(),
        WorkloadKind::Vgg16 => task.vgg16().map(TrafficPlan::Job),
        WorkloadKind::Collective => task.collective().map(TrafficPlan::Job),
    }?;
    plan.workload(Random::new(1, 0)).map_err(|error| task.blame(error))?;
    Ok(plan)
}

pub(crate) struct WorkloadReader<'a> {
    pub table: &'a SettingsReader<'a>,
    pub transport: &'a TransportSetup,
    around: &'a TrafficContext<'a>,
}

impl WorkloadReader<'_> {
    /// The key that an error of a workload is about.
    pub(crate) fn blame(&self, error: WorkloadError) -> KeyError {
        let key = match error {
            WorkloadError::Load(_) => "load",
            WorkloadError::FanIn { .. } => "fan_in",
            WorkloadError::UnknownTrace { .. } => "size",
            WorkloadError::Line { .. } | WorkloadError::Graph(_) => "file",
            WorkloadError::Expected(_) => "from",
        };
        self.table.wrong(key, error)
    }

    pub(crate) fn topology(&self) -> &Topology {
        self.around.topology
    }

    fn series(&self) -> ReadResult<TrafficPlan> {
        let [src, dst] = self.one_pair()?;
        self.check_reliable()?;
        let count = self.table.whole("count", 1..=u64::MAX)?;
        Ok(TrafficPlan::Series(FlowSeries {
            src,
            dst,
            bytes: self.bytes()?,
            count: self.table.needed("count", count, "how many, one after the other")?,
            gap: self.gap()?,
            group: 0,
        }))
    }

    pub(crate) fn gap(&self) -> ReadResult<Span> {
        Ok(self.table.span("gap", Span::ZERO..=LONGEST_SPAN)?.unwrap_or(Span::ZERO))
    }

    /// Checks that work which others wait for arrives.
    pub(crate) fn check_reliable(&self) -> ReadResult<()> {
        if self.transport.is_reliable() {
            return Ok(());
        }
        let problem = "expected another work with datagrams: the next would wait for one that was lost";
        Err(self.table.wrong("work", problem))
    }

    fn poisson(&self) -> ReadResult<TrafficPlan> {
        let senders = self.hosts("from")?;
        Ok(TrafficPlan::Poisson(Poisson {
            load: self.table.needed("load", self.load()?, "a share of the senders' links such as 0.5")?,
            rate: self.access_rate(&senders)?,
            sizes: self.sizes()?,
            receivers: self.hosts("to")?,
            matched: self.table.flag("matched")?.unwrap_or(false),
            stop: self.stop()?,
            senders,
        }))
    }

    fn incast(&self) -> ReadResult<TrafficPlan> {
        let hosts = self.hosts("from")?;
        let receiver = if self.table.has("to") { Some(self.one_host("to")?) } else { None };
        let fan_in = self.table.small("fan_in", 1..=u32::MAX)?;
        let every = self.table.span("every", Span::from_ps(1)..=LONGEST_SPAN)?;
        let pace = match (every, self.load()?) {
            (Some(_), Some(_)) => return Err(self.table.wrong("load", "expected either this or every")),
            (Some(every), None) => BurstPace::Every(every),
            (None, Some(load)) => BurstPace::Load { load, rate: self.access_rate(&hosts)? },
            (None, None) => return Err(self.table.wrong("every", "missing: expected a time between bursts, or load")),
        };
        Ok(TrafficPlan::Incast(Incast {
            fan_in: self.table.needed("fan_in", fan_in, "how many send at once")?,
            bytes: self.bytes()?,
            hosts,
            receiver,
            pace,
            stop: self.stop()?,
        }))
    }

    fn pattern(&self) -> ReadResult<TrafficPattern> {
        Ok(TrafficPattern { hosts: self.hosts("from")?, bytes: self.bytes()?, start: self.start()? })
    }

    /// One flow for each pair, endless unless it has a size.
    fn bulk(&self) -> ReadResult<TrafficPlan> {
        let [senders, receivers] = ["from", "to"].map(|key| {
            let given = self.table.has(key).then(|| self.hosts(key)).transpose()?;
            self.table.needed(key, given, "one host, or several")
        });
        let (senders, receivers) = (senders?, receivers?);
        if receivers.len() != 1 && receivers.len() != senders.len() {
            return Err(self.table.wrong("to", "expected one host, or as many as in from"));
        }
        let given = if self.table.has("size") { Some(self.bytes()?) } else { None };
        if given.is_none() {
            self.check_endless()?;
        }
        let start = self.start()?;
        let connections = self.table.small("connections", 1..=MOST_CONNECTIONS)?.unwrap_or(1);
        let mut flows = Vec::new();
        for (src, dst) in senders.iter().copied().zip(receivers.iter().copied().cycle()) {
            self.check_pair(src, dst)?;
            let bytes = given.unwrap_or_else(|| self.endless(src));
            flows.extend((0..connections).map(|_| WorkloadFlow { start, src, dst, bytes, group: 0 }));
        }
        Ok(TrafficPlan::List(FlowSchedule::list(flows)))
    }

    fn check_endless(&self) -> ReadResult<()> {
        let missing = |why| Err(self.table.wrong("size", format_args!("missing: expected one, {why}")));
        if !self.around.until_given {
            return missing("or until in [run]: this would have no end");
        }
        Ok(())
    }

    /// More than the sender's link carries in all the time there is.
    fn endless(&self, src: NodeId) -> u64 {
        let rate = access_rate(self.topology(), &[src]).unwrap_or(Rate::gbps(1));
        rate.bytes_in(self.around.until).min(largest(self.transport, self.topology())).get().max(1)
    }

    fn file(&self) -> ReadResult<TrafficPlan> {
        let name = self.table.needed(
            "file",
            self.table.text("file")?,
            "a file of lines start,src,dst,bytes, also with id and after, or of HPCC's authors",
        )?;
        let text = self.contents("file", &name)?;
        if graph::file::is_graph(&text) {
            return self.graph(&name, &text).map(TrafficPlan::Job);
        }
        let flows = FlowSchedule::parse(&text, self.topology());
        let flows = flows.map_err(|error| self.table.wrong("file", format_args!("{name}: {error}")))?;
        for flow in flows.clone() {
            self.check_size("file", Bytes::new(flow.bytes))?;
        }
        Ok(TrafficPlan::List(flows))
    }

    fn load(&self) -> ReadResult<Option<f64>> {
        self.table.number("load", |load| load > 0.0 && load <= 1.0, "more than 0 and at most 1 (100 %)")
    }

    pub(crate) fn start(&self) -> ReadResult<Time> {
        Ok(Time::ZERO + self.table.span("start", Span::ZERO..=LONGEST_SPAN)?.unwrap_or(Span::ZERO))
    }

    /// End of arrivals: after `count` of them, at the time `stop`, or at the end of the whole run.
    fn stop(&self) -> ReadResult<ArrivalStop> {
        let count = self.table.whole("count", 1..=u64::MAX)?;
        match (count, self.table.span("stop", Span::from_ps(1)..=LONGEST_SPAN)?) {
            (Some(_), Some(_)) => Err(self.table.wrong("stop", "expected either this or count")),
            (Some(count), None) => Ok(ArrivalStop::After(count)),
            (None, Some(at)) => Ok(ArrivalStop::At(Time::ZERO + at)),
            (None, None) if self.around.until_given => Ok(ArrivalStop::At(Time::ZERO + self.around.until)),
            (None, None) => Err(self.table.wrong("count", "missing: expected this, stop, or until in [run]")),
        }
    }

    fn access_rate(&self, hosts: &[NodeId]) -> ReadResult<Rate> {
        access_rate(self.topology(), hosts)
            .ok_or_else(|| self.table.wrong("load", "expected senders whose links all have the same rate"))
    }

    /// Hosts by name, such as `h0`, `["h0", "h5"]` or `h0..h7`; all if no name is given.
    pub(crate) fn hosts(&self, key: &str) -> ReadResult<Vec<NodeId>> {
        let Some(names) = self.table.several(key)? else { return Ok(self.topology().hosts().collect()) };
        let mut hosts = Vec::new();
        for name in &names {
            match name.split_once("..") {
                None => hosts.push(self.host(key, name)?),
                Some((first, last)) => {
                    let [first, last] = [self.host(key, first)?, self.host(key, last)?];
                    hosts.extend(self.topology().hosts().filter(|host| (first..=last).contains(host)));
                }
            }
        }
        let mut seen = std::collections::BTreeSet::new();
        if let Some(twice) = hosts.iter().find(|host| !seen.insert(**host)) {
            let problem = format!("'{}' is there twice: expected each host once", self.topology().name(*twice));
            return Err(self.table.wrong(key, problem));
        }
        if hosts.is_empty() { Err(self.table.wrong(key, "expected at least one host")) } else { Ok(hosts) }
    }

    fn host(&self, key: &str, name: &str) -> ReadResult<NodeId> {
        let node = self.topology().node(name).map_err(|error| self.table.wrong(key, error))?;
        let switch = || self.table.wrong(key, format_args!("'{name}' is a switch: expected a host"));
        if self.topology().is_host(node) { Ok(node) } else { Err(switch()) }
    }

    fn one_host(&self, key: &str) -> ReadResult<NodeId> {
        let name = self.table.needed(key, self.table.text(key)?, "a host")?;
        self.host(key, &name)
    }

    fn one_pair(&self) -> ReadResult<[NodeId; 2]> {
        let [src, dst] = [self.one_host("from")?, self.one_host("to")?];
        self.check_pair(src, dst)?;
        Ok([src, dst])
    }

    fn check_pair(&self, src: NodeId, dst: NodeId) -> ReadResult<()> {
        if src == dst {
            let name = self.topology().name(src);
            return Err(self.table.wrong("to", format_args!("'{name}' would send to itself: expected another host")));
        }
        Ok(())
    }

    /// Reads the size that all flows have.
    pub(crate) fn bytes(&self) -> ReadResult<u64> {
        let size: Bytes = self.table.needed("size", self.table.parsed("size")?, "a size such as 24387 or 1MB")?;
        self.check_size("size", size)?;
        Ok(size.get())
    }

    /// One size, a trace by name, or a file.
    fn sizes(&self) -> ReadResult<FlowSizes> {
        let expected = "a size such as 1MB, a trace such as web-search, or a file such as sizes.txt";
        let text = self.table.needed("size", self.table.text("size")?, expected)?;
        if text.starts_with(|first: char| first.is_ascii_digit()) && Path::new(&text).extension().is_none() {
            return Ok(FlowSizes::fixed(self.bytes()?));
        }
        let sizes = match text.parse::<SizeTrace>() {
            Ok(trace) => trace.sizes(),
            Err(_) if text.contains(['.', '/']) => FlowSizes::parse(&self.contents("size", &text)?)
                .map_err(|error| self.table.wrong("size", format_args!("{text}: {error}")))?,
            Err(error) => return Err(self.table.wrong("size", error)),
        };
        self.check_size("size", Bytes::new(sizes.quantile(units::Prob::literal(1.0))))?;
        Ok(sizes)
    }

    pub(crate) fn check_size(&self, key: &str, size: Bytes) -> ReadResult<()> {
        let is_answered = self.table.has("reply");
        let largest = if is_answered { largest_answered } else { largest };
        let most = largest(self.transport, self.topology());
        if size == Bytes::ZERO {
            return Err(self.table.wrong(key, "expected at least one byte"));
        }
        if size > most {
            return Err(self.table.wrong(key, format_args!("{size}: expected at most {most}")));
        }
        Ok(())
    }

    fn contents(&self, key: &str, name: &str) -> ReadResult<String> {
        contents(self.table, key, self.around.folder, name)
    }
}

/// Largest flow: an hour of the slowest link.
pub(crate) fn largest(transport: &TransportSetup, topology: &Topology) -> Bytes {
    let slowest = topology.links.iter().map(|link| link.rate).min().unwrap_or(Rate::gbps(1));
    let sizes = transport.sizes();
    Bytes::new(slowest.bytes_in(LONGEST_FLOW).get() / u64::from(on_wire(sizes.frame)) * u64::from(sizes.payload))
}

/// Largest flow that is answered, and largest answer: one message.
pub(crate) fn largest_answered(transport: &TransportSetup, topology: &Topology) -> Bytes {
    largest(transport, topology).min(Bytes::new(transport.largest_message()))
}
