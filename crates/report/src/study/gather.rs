//! What is kept of a run for its measures and charts.

use sim::net::{FlowRow, Outcome};
use units::Time;

/// One run, or several that differ in their seed.
#[derive(Clone, Debug, Default)]
pub struct Gathered {
    /// Flow completion times in µs, in order once [`Gathered::sort`] was called.
    pub fct: Vec<f64>,
    pub flows: u64,
    /// Flows that noticed a loss.
    pub touched: u64,
    /// Flows whose segments arrived out of order; of these, those that reduced their window with something left to
    /// send, and how much at most.
    pub sacked: u64,
    pub reduced_early: u64,
    pub most_pending: u64,
    pub corrupted: u64,
    pub overflows: u64,
    pub recovered: u64,
    pub given_up: u64,
    pub tx_peak: u64,
    pub rx_peak: u64,
    /// Of the first seed.
    pub moments: Vec<Moment>,
    pub interrupted: bool,
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

impl Gathered {
    pub fn new(outcome: Outcome) -> Self {
        let mut gathered = Self {
            flows: outcome.flows.len() as u64,
            corrupted: outcome.ports.iter().map(|port| port.corrupted).sum(),
            moments: moments(&outcome),
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
        for flow in &outcome.flows {
            gathered.count(flow);
        }
        gathered
    }

    fn count(&mut self, flow: &FlowRow) {
        let tally = &flow.tally;
        // A flow that failed took longer than any other.
        let fct = if flow.failed { Some(f64::INFINITY) } else { flow.fct().map(|fct| fct.as_us()) };
        self.fct.extend(fct);
        let sacked = tally.most_sacked > 0;
        self.touched += u64::from(sacked || tally.retransmitted > 0 || tally.naks > 0 || tally.timeouts > 0);
        self.sacked += u64::from(sacked);
        if sacked && tally.reductions > 0 {
            self.reduced_early += u64::from(tally.pending_when_reduced > 0);
            self.most_pending = self.most_pending.max(tally.pending_when_reduced);
        }
    }

    /// Takes the results of another seed in.
    pub fn pool(&mut self, other: Self) {
        self.fct.extend(other.fct);
        self.flows += other.flows;
        self.touched += other.touched;
        self.sacked += other.sacked;
        self.reduced_early += other.reduced_early;
        self.most_pending = self.most_pending.max(other.most_pending);
        self.corrupted += other.corrupted;
        self.overflows += other.overflows;
        self.recovered += other.recovered;
        self.given_up += other.given_up;
        self.tx_peak = self.tx_peak.max(other.tx_peak);
        self.rx_peak = self.rx_peak.max(other.rx_peak);
    }

    pub fn sort(&mut self) {
        self.fct.sort_by(f64::total_cmp);
    }
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
