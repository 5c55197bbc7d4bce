//! tb.periodic: sources of one rate whose phases are random (ΣD/D/1), simulated packet by packet, beside the formula.

use congestion::theory::periodic::PeriodicSources;
use faults::Random;
use report::claim::{ClaimError, MeasuredValue, RunScale};
use report::runner::{ComputedValues, Effort};
use sim::net::{NetworkSetup, QueueLengths};
use sim::workload::{FlowSchedule, Workload, WorkloadFlow};
use units::Span;

use crate::files;

/// Stream of randomness.
const PHASES: u64 = 4;

/// A packet on the wire, in bytes, and how long it takes.
const PACKET: f64 = 1_538.0;
const SERVICE: Span = Span::from_ps(1_230_400);

/// Sources and their load, each with its name.
const QUEUES: [(&str, PeriodicSources); 3] = [
    ("10.0.8", PeriodicSources { sources: 10, load: 0.8 }),
    ("50.0.8", PeriodicSources { sources: 50, load: 0.8 }),
    ("50.0.95", PeriodicSources { sources: 50, load: 0.95 }),
];

pub(super) fn compute(effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let seeds = if effort.scale == RunScale::Quick { 400 } else { 4_000 };
    let mut computed = ComputedValues::default();
    for (name, sources) in QUEUES {
        let tasks: Vec<u64> = (0..seeds).map(|n| effort.seed.wrapping_mul(100_000) + n).collect();
        effort.progress.expect_parts(tasks.len());
        let queues = parallel::map(&tasks, effort.jobs, |seed| run(sources, *seed, effort));
        let Some(queues) = queues.into_iter().collect::<Result<Option<Vec<_>>, _>>()? else { return Ok(None) };
        let mut all = QueueLengths::default();
        queues.iter().for_each(|queue| all.add(queue));
        computed.value(format!("mean.{name}"), MeasuredValue::exact(waiting(&all), seeds));
        for packets in [2_u32, 5] {
            let above = all.shares().filter(|(bytes, _)| *bytes as f64 > (f64::from(packets) - 0.5) * PACKET);
            let share = above.map(|(_, share)| share).sum();
            computed.value(format!("above-{packets}.{name}"), MeasuredValue::exact(share, seeds));
        }
    }
    Ok(Some(computed))
}

/// Packets that wait behind the one being sent, on average over time.
fn waiting(queue: &QueueLengths) -> f64 {
    queue.shares().map(|(bytes, share)| bytes as f64 / PACKET * share).sum()
}

/// The queue of one draw of phases; `None` if it was stopped.
fn run(sources: PeriodicSources, seed: u64, effort: &Effort<'_>) -> Result<Option<QueueLengths>, ClaimError> {
    let setup = setup(sources, seed)?;
    let port = setup.sampling.as_ref().and_then(|sampling| sampling.ports.first()).copied();
    let outcome = sim::net::run(setup, effort.progress).map_err(ClaimError::new)?;
    effort.progress.part_done();
    let port = port.ok_or_else(|| ClaimError::new("no port is watched"))?;
    Ok((!outcome.interrupted).then(|| outcome.queue_lengths(&[port])))
}

fn setup(sources: PeriodicSources, seed: u64) -> Result<NetworkSetup, ClaimError> {
    let count = sources.sources;
    let period = SERVICE.scale(f64::from(count) / sources.load);
    // Datagrams are paced by what they take on the wire.
    let rate = PACKET * 8.0 / period.as_secs();
    let sets = [
        format!("topology.hosts={}", count + 1),
        format!("traffic.from=h0..h{}", count - 1),
        format!("traffic.to=h{count}"),
        format!("traffic.rate={:.6}M", rate / 1e6),
        format!("measure.watch=[[\"sw0\",\"h{count}\"]]"),
    ];
    let mut setup = files::setup("textbook/sources.toml", &sets, seed)?;
    let mut random = Random::new(seed, PHASES);
    for traffic in &mut setup.traffic {
        if let Workload::Open(flows) = &traffic.work {
            let late = |flow: WorkloadFlow| WorkloadFlow { start: flow.start + period.scale(random.unit()), ..flow };
            traffic.work = Workload::Open(FlowSchedule::list(flows.clone().map(late).collect()));
        }
    }
    Ok(setup)
}
