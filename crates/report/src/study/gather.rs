//! What is kept of a run for its measures and charts.

use sim::net::{FlowRow, Outcome, Setup};
use transport::roce;
use units::Time;
use wire::ethernet::on_wire;

/// What a dummy takes on each wire that it passes: an empty WRITE.
const DUMMY: u64 = on_wire(roce::HEADERS + roce::RETH) as u64;

/// What a packet of RDMA takes besides its payload.
const AROUND: u32 = on_wire(roce::HEADERS + 1_024) - 1_024;

/// One run, or several that differ in their seed.
#[derive(Clone, Debug, Default)]
pub struct Gathered {
    /// Flow completion times in µs, and how many times longer they are than alone; in order once [`Gathered::sort`] was
    /// called.
    pub fct: Vec<f64>,
    pub slowdown: Vec<f64>,
    pub flows: u64,
    /// Payload of the flows that were completed, and the time from the first start to the last finish, of all seeds.
    pub completed_bytes: u64,
    pub completed_seconds: f64,
    /// Flows that noticed a loss.
    pub touched: u64,
    /// Flows whose own packets waited for a timer, and how often they did. Those behind them on a shared queue pair are
    /// not counted, though they wait as well.
    pub hit: u64,
    pub timeouts: u64,
    /// Packets sent again by hosts; packets that arrived, and those of them that were placed before an earlier one.
    pub retransmitted: u64,
    pub packets: u64,
    pub out_of_order: u64,
    /// Flows whose segments arrived out of order; of these, those that reduced their window with something left to
    /// send, and how much at most.
    pub sacked: u64,
    pub reduced_early: u64,
    pub most_pending: u64,
    pub traffic: Traffic,
    pub corrupted: u64,
    pub overflows: u64,
    pub recovered: u64,
    pub given_up: u64,
    pub tx_peak: u64,
    pub rx_peak: u64,
    /// Hosts with a pool of bits; the highest share of one that was ever taken to follow arrivals, and packets refused
    /// for want of a block.
    pub pools: u64,
    pub pool_peak: f64,
    pub pool_refused: u64,
    /// Of the first seed.
    pub moments: Vec<Moment>,
    pub interrupted: bool,
}

/// Wire time in bytes, preambles and gaps included; without frames of a link protocol that carry no packet, since these
/// only fill what would be idle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// On all wires.
    pub wire: u64,
    /// What the packets of the flows take on one wire, each sent once.
    pub data: u64,
    /// What dummies take on one wire.
    pub dummies: u64,
    /// Copies that switches made, on the first wire that they were sent by; and how many, and how many packets of
    /// another connection than that of the NAK were copied.
    pub copied: u64,
    pub copies: u64,
    pub wrong: u64,
    /// Tails that hosts sent twice; how long they were is not known.
    pub tails: u64,
}

/// What a run's numbers are related to.
#[derive(Clone, Debug, Default)]
pub struct Basis {
    /// Payload of a full packet, by traffic.
    payloads: Vec<u32>,
}

/// A moment of a run, by what was sampled: rates since the last one, levels as they were.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moment {
    pub seconds: f64,
    /// Since the last one.
    pub span: f64,
    /// Payload received, of all traffic.
    pub goodput_gbps: f64,
    /// Of the first port watched.
    pub queue: u64,
    pub tx_buffer: u64,
    pub rx_buffer: u64,
    pub retransmitted: u64,
    pub dropped: u64,
}

impl Basis {
    pub fn of(setup: &Setup) -> Self {
        Self { payloads: setup.traffic.iter().map(|traffic| traffic.transport.sizes().payload).collect() }
    }

    /// Packets that so much payload of a flow fills.
    fn packets(&self, flow: &FlowRow) -> u64 {
        let payload = self.payloads.get(usize::from(flow.traffic)).copied().unwrap_or_default();
        flow.received.div_ceil(u64::from(payload.max(1)))
    }
}

impl Gathered {
    pub fn new(outcome: &Outcome, basis: &Basis) -> Self {
        let mut gathered = Self {
            flows: outcome.flows.len() as u64,
            traffic: Traffic::of(outcome, basis),
            corrupted: outcome.ports.iter().map(|port| port.corrupted).sum(),
            completed_seconds: completed_seconds(&outcome.flows),
            pools: outcome.pools.len() as u64,
            moments: moments(outcome),
            interrupted: outcome.interrupted,
            ..Self::default()
        };
        for (_, link) in &outcome.links {
            gathered.overflows += link.overflows;
            gathered.recovered += link.counters.iter().map(|counters| counters.recovered).sum::<u64>();
            gathered.given_up += link.counters.iter().map(|counters| counters.given_up).sum::<u64>();
            gathered.tx_peak = gathered.tx_peak.max(link.tx_peak.get());
            gathered.rx_peak = gathered.rx_peak.max(link.rx_peak.get());
        }
        for pool in &outcome.pools {
            gathered.pool_peak = gathered.pool_peak.max(f64::from(pool.receive_peak) / f64::from(pool.size.max(1)));
            gathered.pool_refused += pool.refused;
        }
        for flow in &outcome.flows {
            gathered.count(flow, basis);
        }
        gathered
    }

    fn count(&mut self, flow: &FlowRow, basis: &Basis) {
        let tally = &flow.tally;
        // A flow that failed took longer than any other.
        let late = flow.failed.then_some(f64::INFINITY);
        self.fct.extend(late.or_else(|| flow.fct().map(|fct| fct.as_us())));
        self.slowdown.extend(late.or_else(|| flow.slowdown()));
        if flow.finish.is_some() && !flow.failed {
            self.completed_bytes += flow.bytes;
        }
        let sacked = tally.most_sacked > 0;
        self.touched += u64::from(sacked || tally.retransmitted > 0 || tally.naks > 0 || tally.timeouts > 0);
        self.hit += u64::from(tally.timeouts > 0);
        self.timeouts += u64::from(tally.timeouts);
        self.retransmitted += u64::from(tally.retransmitted);
        self.packets += basis.packets(flow);
        self.out_of_order += u64::from(tally.out_of_order);
        self.sacked += u64::from(sacked);
        if sacked && tally.reductions > 0 {
            self.reduced_early += u64::from(tally.pending_when_reduced > 0);
            self.most_pending = self.most_pending.max(tally.pending_when_reduced);
        }
    }

    /// Takes the results of another seed in.
    pub fn pool(&mut self, other: Self) {
        self.fct.extend(other.fct);
        self.slowdown.extend(other.slowdown);
        self.flows += other.flows;
        self.completed_bytes += other.completed_bytes;
        self.completed_seconds += other.completed_seconds;
        self.touched += other.touched;
        self.hit += other.hit;
        self.timeouts += other.timeouts;
        self.retransmitted += other.retransmitted;
        self.packets += other.packets;
        self.out_of_order += other.out_of_order;
        self.sacked += other.sacked;
        self.reduced_early += other.reduced_early;
        self.most_pending = self.most_pending.max(other.most_pending);
        self.traffic.add(&other.traffic);
        self.corrupted += other.corrupted;
        self.overflows += other.overflows;
        self.recovered += other.recovered;
        self.given_up += other.given_up;
        self.tx_peak = self.tx_peak.max(other.tx_peak);
        self.rx_peak = self.rx_peak.max(other.rx_peak);
        self.pools += other.pools;
        self.pool_peak = self.pool_peak.max(other.pool_peak);
        self.pool_refused += other.pool_refused;
    }

    pub fn sort(&mut self) {
        self.fct.sort_by(f64::total_cmp);
        self.slowdown.sort_by(f64::total_cmp);
    }
}

impl Traffic {
    fn of(outcome: &Outcome, basis: &Basis) -> Self {
        let carried = |port: &sim::net::PortCounters| port.wire_bytes - port.idle_bytes;
        let tallies = || outcome.flows.iter().map(|flow| &flow.tally);
        Self {
            wire: outcome.ports.iter().map(carried).sum(),
            data: outcome.flows.iter().map(|flow| flow.received + basis.packets(flow) * u64::from(AROUND)).sum(),
            dummies: tallies().map(|tally| u64::from(tally.dummies) * DUMMY).sum(),
            copied: outcome.repeated_bytes,
            copies: outcome.repeated.naks + outcome.repeated.naked,
            wrong: outcome.repeated.wrong,
            tails: tallies().map(|tally| u64::from(tally.tails_repeated)).sum(),
        }
    }

    fn add(&mut self, other: &Self) {
        self.wire += other.wire;
        self.data += other.data;
        self.dummies += other.dummies;
        self.copied += other.copied;
        self.copies += other.copies;
        self.wrong += other.wrong;
        self.tails += other.tails;
    }
}

/// From the first start to the last finish of flows that were completed.
fn completed_seconds(flows: &[FlowRow]) -> f64 {
    let completed = || flows.iter().filter(|flow| !flow.failed && flow.finish.is_some());
    let first = completed().map(|flow| flow.start).min();
    let last = completed().filter_map(|flow| flow.finish).max();
    first.zip(last).map_or(0.0, |(first, last)| last.since(first).as_secs())
}

fn moments(outcome: &Outcome) -> Vec<Moment> {
    let mut before = Time::ZERO;
    let moment = |sample: &sim::net::Sample| {
        let span = sample.at.since(before).as_secs();
        before = sample.at;
        let port = sample.ports.first().copied().unwrap_or_default();
        Moment {
            seconds: sample.at.since(Time::ZERO).as_secs(),
            span,
            goodput_gbps: sample.received.iter().sum::<u64>() as f64 * 8.0 / span / 1e9,
            queue: port.queue,
            tx_buffer: port.tx_buffer,
            rx_buffer: port.rx_buffer,
            retransmitted: sample.retransmitted,
            dropped: port.dropped,
        }
    };
    outcome.samples.iter().map(moment).collect()
}
