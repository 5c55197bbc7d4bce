//! Values kept of a run for its measures and charts.

use sim::histogram::SpanHistogram;
use sim::net::{FlowRow, NetworkOutcome, NetworkSetup, PauseTotals, PoolUse, QueueLengths};
use sim::topology::DirectedLink;
use units::Time;
use wire::ethernet::{HEADER_AND_CHECK, on_wire};

use super::racks::{self, RackTotals};

/// Bytes of a dummy, an empty WRITE, on each wire that it passes.
const DUMMY: u64 = on_wire(roce::HEADERS + roce::RETH) as u64;

/// Bytes on the wire of an RDMA packet besides its payload.
const AROUND: u32 = on_wire(roce::HEADERS + 1_024) - 1_024;

/// One run, or several that differ in their seed.
#[derive(Clone, Debug, Default)]
pub struct NetworkRun {
    /// Flow completion times in µs, and how many times longer they are than alone; in order once [`NetworkRun::sort`] was
    /// called.
    pub fct: Vec<f64>,
    pub slowdown: Vec<f64>,
    /// Completion times and slowdowns with the flows' sizes, in the order of their ends.
    pub flows: Vec<SizedFlow>,
    pub counts: RunCounts,
    pub traffic: Traffic,
    /// Time from the first start to the last finish of completed flows, of all seeds.
    pub completed_seconds: f64,
    /// The highest share of its pool of bits that a host ever took to follow arrivals.
    pub pool_peak: f64,
    /// Queue lengths of the ports that are watched, or of all switch ports if none is, where queues are measured.
    pub queues: QueueLengths,
    /// Round-trip times of data packets, where they are measured.
    pub round_trips: Option<Box<SpanHistogram>>,
    /// Pauses, where switches have PFC.
    pub pfc: Option<PauseTotals>,
    /// Totals of racks, where hosts reserve.
    pub rack: Option<RackTotals>,
    /// Jain's index of the hosts' shares, of the first seed.
    pub jain: f64,
    /// Sampled moments of the first seed.
    pub moments: Vec<SampledMoment>,
    pub interrupted: bool,
}

/// A flow that is complete or failed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizedFlow {
    pub bytes: u64,
    /// Completion time in µs.
    pub fct: f64,
    pub slowdown: f64,
}

units::counters! {
    /// Counts of a run.
    RunCounts:
    /// Seeds.
    seeds,
    flows,
    /// Payload of the flows that were completed.
    completed_bytes,
    /// Flows that noticed a loss.
    touched,
    /// Flows whose own packets waited for a timer. Those behind them on a shared queue pair are not counted, though they
    /// wait as well.
    hit,
    /// Times that packets of these flows waited for a timer.
    timeouts,
    /// Packets sent again by hosts.
    retransmitted,
    /// Packets that arrived.
    packets,
    /// Packets that arrived and were placed before an earlier one.
    out_of_order,
    /// Flows whose segments arrived out of order.
    sacked,
    /// Flows with segments out of order that reduced their window with something left to send.
    reduced_early,
    /// Flows with segments out of order of which never more than two segments were SACKed at once.
    sacked_few,
    /// Flows with segments out of order of which more than two were SACKed at once, but with nothing left to send.
    sacked_late,
    corrupted,
    /// Packets that switches dropped.
    dropped,
    overflows,
    recovered,
    given_up,
    /// Hosts with a pool of bits.
    pools,
    /// Packets refused for want of a block.
    pool_refused,
    ; most u64:
    /// Amount that a flow had left to send when it reduced its window early.
    most_pending,
    tx_peak,
    rx_peak,
}

units::counters! {
    /// Wire time in bytes, preambles and gaps included; without frames of a link protocol that carry no packet, since these
    /// only fill what would be idle.
    Traffic:
    /// On all wires.
    wire,
    /// Packets of the flows on one wire, each sent once.
    data,
    /// Dummies on one wire.
    dummies,
    /// Copies that switches made, on the first wire that they were sent by.
    copied,
    /// Number of these copies.
    copies,
    /// Number of packets copied that belonged to another connection than the NAK.
    wrong,
    /// Copies of tails on one wire.
    tails,
}

/// Reference values for a run's numbers.
#[derive(Clone, Debug, Default)]
pub struct MeasureBasis {
    /// Payload of a full packet, by traffic, and what it has with its headers but Ethernet's.
    payloads: Vec<u32>,
    packets: Vec<u32>,
    /// Ports whose queues count; all if there are none.
    watched: Vec<DirectedLink>,
}

/// A moment of a run, by what was sampled: rates since the last one, levels as they were.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SampledMoment {
    pub seconds: f64,
    /// Time since the previous sample.
    pub span: f64,
    /// Payload received, of all traffic.
    pub goodput_gbps: f64,
    /// Payload and headers of full packets received, of all traffic.
    pub packets_gbps: f64,
    /// Rate of the first port watched, preambles and gaps included.
    pub port_gbps: f64,
    /// Queue of the first port watched.
    pub queue: u64,
    pub tx_buffer: u64,
    pub rx_buffer: u64,
    pub retransmitted: u64,
    pub dropped: u64,
}

impl MeasureBasis {
    pub fn of(setup: &NetworkSetup, watched: &[DirectedLink]) -> Self {
        let sizes = || setup.traffic.iter().map(|traffic| traffic.transport.sizes());
        Self {
            payloads: sizes().map(|sizes| sizes.payload).collect(),
            packets: sizes().map(|sizes| sizes.frame - HEADER_AND_CHECK).collect(),
            watched: watched.to_vec(),
        }
    }

    /// Packets that this payload of a flow fills.
    fn packets(&self, flow: &FlowRow) -> u64 {
        flow.received.div_ceil(self.payload(flow).max(1))
    }

    /// Payload of a full packet of a flow.
    fn payload(&self, flow: &FlowRow) -> u64 {
        self.payloads.get(usize::from(flow.traffic)).copied().unwrap_or_default().into()
    }

    /// Bytes of a flow's last packet on a wire.
    fn tail(&self, flow: &FlowRow) -> u64 {
        let payload = self.payloads.get(usize::from(flow.traffic)).copied().unwrap_or_default();
        let before = self.packets(flow).saturating_sub(1) * u64::from(payload);
        flow.received.saturating_sub(before) + u64::from(AROUND)
    }

    /// Bytes of payload, by traffic, as full packets with their headers.
    fn with_headers(&self, received: &[u64]) -> f64 {
        let sizes = self.payloads.iter().zip(&self.packets);
        received
            .iter()
            .zip(sizes)
            .map(|(bytes, (payload, packet))| *bytes as f64 / f64::from(*payload) * f64::from(*packet))
            .sum()
    }
}

impl NetworkRun {
    pub fn new(outcome: &NetworkOutcome, basis: &MeasureBasis) -> Self {
        let share = |pool: &PoolUse| f64::from(pool.receive_peak) / f64::from(pool.size.max(1));
        let mut run = Self {
            traffic: Traffic::of(outcome, basis),
            completed_seconds: completed_seconds(&outcome.flows),
            pool_peak: outcome.pools.iter().map(share).fold(0.0, f64::max),
            queues: outcome.queue_lengths(&basis.watched),
            round_trips: outcome.round_trips.clone(),
            pfc: outcome.pfc,
            rack: RackTotals::of(outcome),
            jain: racks::jain(&outcome.flows),
            moments: moments(outcome, basis),
            interrupted: outcome.interrupted,
            ..Self::default()
        };
        run.counts += RunCounts {
            seeds: 1,
            flows: outcome.flows.len() as u64,
            corrupted: outcome.ports.iter().map(|port| port.corrupted).sum(),
            dropped: outcome.ports.iter().map(|port| port.dropped).sum(),
            pools: outcome.pools.len() as u64,
            pool_refused: outcome.pools.iter().map(|pool| pool.refused).sum(),
            ..RunCounts::default()
        };
        for (_, link) in &outcome.links {
            run.counts += RunCounts {
                overflows: link.overflows,
                recovered: link.counters.iter().map(|counters| counters.recovered).sum(),
                given_up: link.counters.iter().map(|counters| counters.given_up).sum(),
                tx_peak: link.tx_peak.get(),
                rx_peak: link.rx_peak.get(),
                ..RunCounts::default()
            };
        }
        for flow in &outcome.flows {
            run.count(flow, basis);
        }
        run
    }

    fn count(&mut self, flow: &FlowRow, basis: &MeasureBasis) {
        let tally = &flow.tally;
        // A flow that failed took longer than any other.
        let late = flow.failed.then_some(f64::INFINITY);
        let fct = late.or_else(|| flow.fct().map(|fct| fct.as_us()));
        if let Some((fct, slowdown)) = fct.zip(late.or_else(|| flow.slowdown())) {
            self.fct.push(fct);
            self.slowdown.push(slowdown);
            self.flows.push(SizedFlow { bytes: flow.bytes, fct, slowdown });
        }
        let completed = flow.finish.is_some() && !flow.failed;
        let sacked = tally.most_sacked > 0;
        let pending = if sacked && tally.reductions > 0 { tally.pending_when_reduced } else { 0 };
        let few = tally.most_sacked <= 2 * basis.payload(flow);
        self.counts += RunCounts {
            completed_bytes: if completed { flow.bytes } else { 0 },
            touched: (sacked || tally.retransmitted > 0 || tally.naks > 0 || tally.timeouts > 0).into(),
            hit: (tally.timeouts > 0).into(),
            timeouts: tally.timeouts.into(),
            retransmitted: tally.retransmitted.into(),
            packets: basis.packets(flow),
            out_of_order: tally.out_of_order.into(),
            sacked: sacked.into(),
            reduced_early: (pending > 0).into(),
            sacked_few: (sacked && few).into(),
            sacked_late: (sacked && !few && pending == 0).into(),
            most_pending: pending,
            ..RunCounts::default()
        };
    }

    /// Takes the results of another seed in.
    pub fn pool(&mut self, other: Self) {
        self.fct.extend(other.fct);
        self.slowdown.extend(other.slowdown);
        self.flows.extend(other.flows);
        self.queues.add(&other.queues);
        match (&mut self.round_trips, other.round_trips) {
            (Some(round_trips), Some(other)) => round_trips.add(&other),
            (none, other) => *none = other,
        }
        self.pfc = self.pfc.zip(other.pfc).map(|(one, other)| one.with(other));
        if let (Some(rack), Some(other)) = (&mut self.rack, &other.rack) {
            rack.pool(other);
        }
        self.counts += other.counts;
        self.traffic += other.traffic;
        self.completed_seconds += other.completed_seconds;
        self.pool_peak = self.pool_peak.max(other.pool_peak);
    }

    pub fn sort(&mut self) {
        self.fct.sort_by(f64::total_cmp);
        self.slowdown.sort_by(f64::total_cmp);
    }
}

impl Traffic {
    fn of(outcome: &NetworkOutcome, basis: &MeasureBasis) -> Self {
        let carried = |port: &sim::net::PortCounters| port.wire_bytes - port.idle_bytes;
        let tallies = || outcome.flows.iter().map(|flow| &flow.tally);
        Self {
            wire: outcome.ports.iter().map(carried).sum(),
            data: outcome.flows.iter().map(|flow| flow.received + basis.packets(flow) * u64::from(AROUND)).sum(),
            dummies: tallies().map(|tally| u64::from(tally.dummies) * DUMMY).sum(),
            copied: outcome.repeated_bytes,
            copies: outcome.repeated.naks + outcome.repeated.naked,
            wrong: outcome.repeated.wrong,
            tails: outcome.flows.iter().map(|flow| u64::from(flow.tally.tails_repeated) * basis.tail(flow)).sum(),
        }
    }
}

/// Time from the first start to the last finish of completed flows.
fn completed_seconds(flows: &[FlowRow]) -> f64 {
    let completed = || flows.iter().filter(|flow| !flow.failed && flow.finish.is_some());
    let first = completed().map(|flow| flow.start).min();
    let last = completed().filter_map(|flow| flow.finish).max();
    first.zip(last).map_or(0.0, |(first, last)| last.since(first).as_secs())
}

fn moments(outcome: &NetworkOutcome, basis: &MeasureBasis) -> Vec<SampledMoment> {
    let mut before = Time::ZERO;
    let moment = |sample: &sim::net::NetworkSample| {
        let span = sample.at.since(before).as_secs();
        before = sample.at;
        let port = sample.ports.first().copied().unwrap_or_default();
        let gbps = |bytes: f64| bytes * 8.0 / span / 1e9;
        SampledMoment {
            seconds: sample.at.since(Time::ZERO).as_secs(),
            span,
            goodput_gbps: gbps(sample.received.iter().sum::<u64>() as f64),
            packets_gbps: gbps(basis.with_headers(&sample.received)),
            port_gbps: gbps(port.wire_bytes as f64),
            queue: port.queue,
            tx_buffer: port.tx_buffer,
            rx_buffer: port.rx_buffer,
            retransmitted: sample.retransmitted,
            dropped: port.dropped,
        }
    };
    outcome.samples.iter().map(moment).collect()
}
