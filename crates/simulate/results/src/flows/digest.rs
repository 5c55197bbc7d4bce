//! Digest of a run whose rows are gone: enough to pool it with others.

use guard::Counters;
use scenario::SweepPoint;
use sim::histogram::SpanHistogram;
use sim::net::{FlowRow, NetworkOutcome, PauseTotals, PoolUse, QueueLengths};
use units::{Bytes, Span, Time};

use super::jobs::{self, JobDigest};
use super::losses::RunLosses;
use super::racks::RackSummary;

/// Sizes from which on flows are counted apart, as most papers do; a class ends where the next begins.
pub(super) const CLASSES: [Bytes; 4] = [Bytes::ZERO, Bytes::new(10_000), Bytes::new(100_000), Bytes::new(1_000_000)];

/// One run, or several of the same point.
#[derive(Clone, Debug, Default)]
pub struct RunDigest {
    /// Digests by traffic.
    pub(super) traffic: Vec<TrafficDigest>,
    /// Digests of protected links.
    pub(super) links: Vec<LinkDigest>,
    pub(super) simulated: Span,
    pub(super) counts: DigestCounts,
    pub(super) pfc: Option<PauseTotals>,
    /// Queue lengths of the ports that are watched, or of all switch ports if none is, where they are measured.
    pub(super) queues: Option<QueueLengths>,
    /// Round-trip times of RDMA data packets, where they are measured.
    pub(super) round_trips: Option<SpanHistogram>,
    /// Counts of telemetry, where switches write it.
    pub(super) int: Option<IntCounts>,
    pub(super) repeated: Repeated,
    pub(super) pools: Option<PoolLevels>,
    /// Counts of reservations, where hosts reserve.
    pub(super) pl2: Option<RackSummary>,
    pub(super) losses: Option<RunLosses>,
    pub(super) jobs: Vec<JobDigest>,
}

units::counters! {
    /// Over all ports.
    DigestCounts:
    dropped,
    marked,
    corrupted,
    pfc_pauses,
    events,
}

units::counters! {
    /// Cost of telemetry.
    IntCounts:
    /// Bytes of telemetry that hosts received, and all that they received.
    bytes,
    of,
    /// Times that a controller could not use telemetry.
    resets,
}

units::counters! {
    /// Packets that switches repeated for their hosts.
    #[derive(serde::Serialize)]
    Repeated:
    /// Copies of NAKs.
    naks,
    /// Copies of what they asked for.
    naked,
    /// Packets copied that belonged to another connection than the NAK.
    wrong,
}

/// The bits that connections of a host share (MELO): the fullest of all hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct PoolLevels {
    pub bits: u32,
    pub receive_peak: u32,
    pub send_peak: u32,
    /// Packets that found no block left, at all hosts.
    pub refused: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct TrafficDigest {
    pub counts: FlowCounts,
    /// Completion times in microseconds.
    pub fct: Vec<f64>,
    /// Slowdowns by class of size.
    pub slowdown: [Vec<f32>; CLASSES.len()],
    /// The smallest and the largest flow.
    pub sizes: Option<(u64, u64)>,
    pub repairs: Repairs,
}

units::counters! {
    /// Flows of a traffic, and payload received in order.
    FlowCounts:
    flows,
    complete,
    failed,
    received,
}

units::counters! {
    /// Reactions of the ends to losses, or to what they took for one.
    #[derive(serde::Serialize)]
    Repairs:
    /// Segments or packets sent again, for any cause.
    retransmitted,
    /// Sent to find out whether the tail was lost.
    probes,
    timeouts,
    /// RDMA: asked for by the receiver.
    naks,
    /// Windows reduced because of a loss.
    reductions,
    /// Reductions that turned out to be unnecessary.
    undone,
}

#[derive(Clone, Debug)]
pub(super) struct LinkDigest {
    pub between: [String; 2],
    /// Counters of both directions.
    pub counters: Counters,
    pub overflows: u64,
    /// Recovery times in microseconds.
    pub recovery: Vec<f64>,
    pub tx_peak: Bytes,
    pub rx_peak: Bytes,
}

impl RunDigest {
    pub fn of(point: &SweepPoint, outcome: &NetworkOutcome) -> Self {
        let mut traffic: Vec<TrafficDigest> = point.traffic_names().map(|_| TrafficDigest::default()).collect();
        for flow in &outcome.flows {
            traffic[usize::from(flow.traffic)].count(flow);
        }
        for job in &outcome.jobs {
            let traffic = &mut traffic[usize::from(job.traffic)];
            if traffic.counts.flows == 0 {
                traffic.counts += jobs::transfers_of(point, job);
            }
        }
        let sum = |count: fn(&sim::net::PortCounters) -> u64| outcome.ports.iter().map(count).sum();
        Self {
            traffic,
            links: links(point, outcome),
            simulated: outcome.ended.since(Time::ZERO),
            counts: DigestCounts {
                dropped: sum(|port| port.dropped),
                marked: sum(|port| port.marked),
                corrupted: sum(|port| port.corrupted),
                pfc_pauses: outcome.pfc_pauses,
                events: outcome.events,
            },
            pfc: outcome.pfc,
            queues: point.measures_queues().then(|| outcome.queue_lengths(point.watched())),
            round_trips: outcome.round_trips.as_deref().cloned(),
            int: point.has_telemetry().then_some(IntCounts {
                bytes: outcome.int_bytes,
                of: outcome.host_bytes,
                resets: outcome.int_resets,
            }),
            repeated: Repeated {
                naks: outcome.repeated.naks,
                naked: outcome.repeated.naked,
                wrong: outcome.repeated.wrong,
            },
            pools: outcome.pools.iter().map(PoolLevels::of).reduce(PoolLevels::with),
            pl2: RackSummary::of(point, outcome),
            losses: RunLosses::of(point, outcome),
            jobs: outcome.jobs.iter().map(JobDigest::of).collect(),
        }
    }

    /// The same, of a run with this seed.
    #[must_use]
    pub(super) fn seeded(mut self, seed: u64) -> Self {
        self.jobs.iter_mut().for_each(|job| job.seeded(seed));
        self
    }

    /// Pools another run of the same point.
    pub fn add(&mut self, other: Self) {
        if self.traffic.is_empty() {
            *self = other;
            return;
        }
        self.traffic.iter_mut().zip(other.traffic).for_each(|(mine, other)| mine.add(other));
        self.links.iter_mut().zip(other.links).for_each(|(mine, other)| mine.add(other));
        self.simulated += other.simulated;
        self.counts += other.counts;
        self.pfc = self.pfc.into_iter().chain(other.pfc).reduce(PauseTotals::with);
        if let (Some(mine), Some(other)) = (&mut self.queues, &other.queues) {
            mine.add(other);
        }
        if let (Some(mine), Some(other)) = (&mut self.round_trips, &other.round_trips) {
            mine.add(other);
        }
        if let (Some(mine), Some(other)) = (&mut self.int, other.int) {
            *mine += other;
        }
        self.repeated += other.repeated;
        self.pools = self.pools.into_iter().chain(other.pools).reduce(PoolLevels::with);
        self.pl2 = self.pl2.take().into_iter().chain(other.pl2).reduce(RackSummary::with);
        self.jobs.iter_mut().zip(other.jobs).for_each(|(mine, other)| mine.add(other));
        self.losses = self.losses.take().into_iter().chain(other.losses).reduce(RunLosses::with);
    }
}

impl PoolLevels {
    fn of(used: &PoolUse) -> Self {
        let PoolUse { size, receive_peak, send_peak, refused, .. } = *used;
        Self { bits: size, receive_peak, send_peak, refused }
    }

    fn with(self, other: Self) -> Self {
        Self {
            bits: self.bits,
            receive_peak: self.receive_peak.max(other.receive_peak),
            send_peak: self.send_peak.max(other.send_peak),
            refused: self.refused + other.refused,
        }
    }
}

impl TrafficDigest {
    fn count(&mut self, flow: &FlowRow) {
        let (least, most) = self.sizes.unwrap_or((flow.bytes, flow.bytes));
        self.sizes = Some((least.min(flow.bytes), most.max(flow.bytes)));
        let completed = flow.fct().zip(flow.slowdown());
        if let Some((fct, slowdown)) = completed {
            self.fct.push(fct.as_us());
            let class = CLASSES.partition_point(|from| from.get() <= flow.bytes) - 1;
            self.slowdown[class].push(slowdown as f32);
        }
        self.counts += FlowCounts {
            flows: 1,
            complete: completed.is_some().into(),
            failed: flow.failed.into(),
            received: if flow.finish.is_some() { flow.bytes } else { flow.received },
        };
        let tally = &flow.tally;
        self.repairs += Repairs {
            retransmitted: tally.retransmitted.into(),
            probes: tally.probes.into(),
            timeouts: tally.timeouts.into(),
            naks: tally.naks.into(),
            reductions: tally.reductions.into(),
            undone: tally.undone.into(),
        };
    }

    fn add(&mut self, other: Self) {
        self.counts += other.counts;
        self.fct.extend(other.fct);
        self.slowdown.iter_mut().zip(other.slowdown).for_each(|(mine, other)| mine.extend(other));
        self.sizes = match (self.sizes, other.sizes) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (mine, other) => mine.or(other),
        };
        self.repairs += other.repairs;
    }

    pub(super) fn sizes_vary(&self) -> bool {
        self.sizes.is_some_and(|(least, most)| least < most)
    }
}

impl LinkDigest {
    fn add(&mut self, other: Self) {
        self.counters += other.counters;
        self.overflows += other.overflows;
        self.recovery.extend(other.recovery);
        self.tx_peak = self.tx_peak.max(other.tx_peak);
        self.rx_peak = self.rx_peak.max(other.rx_peak);
    }
}

fn links(point: &SweepPoint, outcome: &NetworkOutcome) -> Vec<LinkDigest> {
    let topology = point.topology();
    let link = |(link, tally): &(sim::topology::TopologyLinkId, sim::net::LinkTally)| {
        let ends = topology.link(*link);
        let mut counters = tally.counters[0];
        counters += tally.counters[1];
        LinkDigest {
            between: [ends.a, ends.b].map(|end| topology.name(end).to_owned()),
            counters,
            overflows: tally.overflows,
            recovery: tally.recovery.iter().map(|span| span.as_us()).collect(),
            tx_peak: tally.tx_peak,
            rx_peak: tally.rx_peak,
        }
    };
    outcome.links.iter().map(link).collect()
}
