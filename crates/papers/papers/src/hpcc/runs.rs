//! Runs of the scenarios under `experiments/hpcc`, with every flow counted by itself.
//!
//! Flows that start in the same instant would keep their order for ever, and all seeds would be the same: each start is put off
//! by up to one packet's time.

use faults::Random;
use report::claim::{ClaimError, MeasuredValue, RunScale, number};
use report::runner::Effort;
use sim::net::{NetworkOutcome, NetworkSetup, TrafficSetup};
use sim::topology::DirectedLink;
use sim::workload::{FlowSchedule, Workload, WorkloadFlow};
use units::{Bytes, Rate};
use wire::ethernet::on_wire;

use crate::files;

/// Traffic of more flows is counted together.
const MOST_APART: usize = 32;
/// Stream of randomness.
const STARTS: u64 = 3;

/// Run to make: a scenario of the paper's folder, and its changed settings.
#[derive(Clone, Debug)]
pub(super) struct HpccTask {
    file: &'static str,
    sets: Vec<String>,
}

/// Result of a run.
#[derive(Debug)]
pub(super) struct HpccRun {
    pub outcome: NetworkOutcome,
    /// Share of payload in a full packet's bytes on the wire.
    pub payload_share: f64,
    /// Bytes of a full packet in a queue.
    frame: f64,
    /// The first port that is watched, and its rate.
    pub port: DirectedLink,
    pub rate: Rate,
}

impl HpccTask {
    pub(super) fn new(file: &'static str, sets: &[&str]) -> Self {
        Self { file, sets: sets.iter().map(|set| (*set).to_owned()).collect() }
    }

    #[must_use]
    pub(super) fn with(mut self, set: impl Into<String>) -> Self {
        self.sets.push(set.into());
        self
    }

    fn setup(&self, seed: u64) -> Result<NetworkSetup, ClaimError> {
        let mut setup = files::setup(&format!("hpcc/{}", self.file), &self.sets, seed)?;
        let mut random = Random::new(seed, STARTS);
        let access = setup.topology.links.iter().map(|link| link.rate).min().unwrap_or(Rate::gbps(1));
        setup.traffic = setup.traffic.into_iter().flat_map(|traffic| apart(traffic, access, &mut random)).collect();
        Ok(setup)
    }

    /// `None` if it was stopped early.
    fn run(&self, seed: u64, effort: &Effort<'_>) -> Result<Option<HpccRun>, ClaimError> {
        let setup = self.setup(seed)?;
        let traffic = setup.traffic.first().ok_or_else(|| ClaimError::new("no traffic"))?;
        let sizes = traffic.transport.sizes();
        let payload_share = f64::from(sizes.payload) / f64::from(on_wire(sizes.frame));
        let frame = f64::from(sizes.frame);
        let watched = setup.sampling.as_ref().and_then(|sampling| sampling.ports.first());
        let port = *watched.ok_or_else(|| ClaimError::new("no port is watched"))?;
        let rate = setup.topology.link(port.link()).rate;
        let outcome = sim::net::run(setup, effort.progress).map_err(ClaimError::new)?;
        Ok((!outcome.interrupted).then_some(HpccRun { outcome, payload_share, frame, port, rate }))
    }
}

/// Splits traffic into one `TrafficSetup` per flow.
fn apart(traffic: TrafficSetup, access: Rate, random: &mut Random) -> Vec<TrafficSetup> {
    let Workload::Open(flows) = &traffic.work else { return vec![traffic] };
    let flows: Vec<WorkloadFlow> = flows.clone().take(MOST_APART + 1).collect();
    if flows.len() > MOST_APART {
        return vec![traffic];
    }
    let packet = access.span_of(Bytes::new(u64::from(on_wire(traffic.transport.sizes().frame))));
    let mut alone = |(number, flow): (usize, WorkloadFlow)| {
        let flow = WorkloadFlow { start: flow.start + packet.scale(random.unit()), ..flow };
        let (name, work) = (format!("{}, {number}", traffic.name), Workload::Open(FlowSchedule::list(vec![flow])));
        TrafficSetup { name, work, ..traffic.clone() }
    };
    flows.into_iter().enumerate().map(&mut alone).collect()
}

/// Runs of every task, with several seeds each; `None` if they were stopped early.
pub(super) fn run_all(effort: &Effort<'_>, tasks: &[HpccTask]) -> Result<Option<Vec<Vec<HpccRun>>>, ClaimError> {
    let seeds = if effort.scale == RunScale::Quick { 3 } else { 20 };
    let of_task = |task| (0..seeds).map(move |n| (task, effort.seed.wrapping_mul(1_000) + n));
    let all: Vec<(&HpccTask, u64)> = tasks.iter().flat_map(of_task).collect();
    effort.progress.expect_parts(all.len());
    let results = parallel::map(&all, effort.jobs, |(task, seed)| {
        let run = task.run(*seed, effort);
        effort.progress.part_done();
        run
    });
    let runs: Option<Vec<HpccRun>> = results.into_iter().collect::<Result<Option<Vec<_>>, _>>()?;
    let Some(mut runs) = runs else { return Ok(None) };
    let mut of_tasks: Vec<Vec<HpccRun>> = Vec::new();
    while !runs.is_empty() {
        of_tasks.push(runs.drain(..seeds as usize).collect());
    }
    Ok(Some(of_tasks))
}

impl HpccRun {
    /// Queue at the port, with the packet that is being sent: times in µs, and lengths in bytes.
    pub(super) fn queue(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        let of_port = |sample: &sim::net::NetworkSample| sample.ports.first().map_or(0, |port| port.queue) as f64;
        self.outcome.samples.iter().map(move |sample| (sample.at.since(units::Time::ZERO).as_us(), of_port(sample)))
    }

    /// The longest queue of the samples.
    pub(super) fn peak(&self) -> f64 {
        self.queue().fold(0.0, |most, (_, bytes)| bytes.max(most))
    }

    /// Length in KB that the port's queue did not exceed for this share of the whole time.
    pub(super) fn queue_kb(&self, share: f64) -> Option<f64> {
        self.outcome.queue_lengths(&[self.port]).quantile(share).map(|bytes| bytes as f64 / 1e3)
    }

    /// The same in whole packets.
    pub(super) fn queue_packets(&self, share: f64) -> Option<f64> {
        self.queue_kb(share).map(|kb| (kb * 1e3 / self.frame).round())
    }

    /// Payload received from each sample to the next, in Gb/s, and when that ended in µs; of all flows, or of one.
    pub(super) fn goodput(&self, flow: Option<usize>) -> impl Iterator<Item = (f64, f64)> + '_ {
        let mut before = 0.0;
        self.outcome.samples.iter().map(move |sample| {
            let at = sample.at.since(units::Time::ZERO).as_us();
            let bytes = flow.map_or_else(|| sample.received.iter().sum(), |flow| sample.received[flow]);
            let gbps = bytes as f64 * 8e-3 / (at - before);
            before = at;
            (at, gbps)
        })
    }

    /// The mean goodput of each flow within a time in µs, in Gb/s.
    pub(super) fn means(&self, from: f64, to: f64) -> Vec<f64> {
        let flows = self.outcome.samples.first().map_or(0, |sample| sample.received.len());
        let mean = |flow| {
            let within = self.goodput(Some(flow)).filter(|(at, _)| *at > from && *at <= to).map(|(_, gbps)| gbps);
            let (sum, count) = within.fold((0.0, 0), |(sum, count), gbps| (sum + gbps, count + 1));
            sum / f64::from(count.max(1))
        };
        (0..flows).map(mean).collect()
    }

    /// Payload that a link carries when it is as full as it should be, in Gb/s.
    pub(super) fn ceiling(&self, eta: f64) -> f64 {
        self.rate.bits_per_second() as f64 / 1e9 * eta * self.payload_share
    }
}

/// Jain's index: 1 if all have the same, 1/n if one has everything.
pub(super) fn jain(shares: &[f64]) -> f64 {
    let (sum, squares) = shares.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    sum * sum / (shares.len() as f64 * squares).max(f64::MIN_POSITIVE)
}

/// A measure of every run of a task.
pub(super) struct SeedValues(Vec<f64>);

impl SeedValues {
    pub(super) fn from(runs: &[HpccRun], take: impl Fn(&HpccRun) -> Option<f64>) -> Self {
        Self(runs.iter().filter_map(take).collect())
    }

    fn extremes(&self) -> (f64, f64) {
        self.0.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(*x), high.max(*x)))
    }

    fn with_spread(&self, value: f64) -> Option<MeasuredValue> {
        let (low, high) = self.extremes();
        let measured = MeasuredValue::exact(value, self.0.len() as u64);
        let [low, high] = [low, high].map(number);
        let spread = format!("{low} to {high}");
        let measured = if low == high { measured } else { measured.with_note(spread) };
        (!self.0.is_empty()).then_some(measured)
    }

    pub(super) fn mean(&self) -> Option<MeasuredValue> {
        self.with_spread(self.0.iter().sum::<f64>() / self.0.len().max(1) as f64)
    }

    pub(super) fn least(&self) -> Option<MeasuredValue> {
        self.with_spread(self.extremes().0)
    }

    pub(super) fn most(&self) -> Option<MeasuredValue> {
        self.with_spread(self.extremes().1)
    }
}
