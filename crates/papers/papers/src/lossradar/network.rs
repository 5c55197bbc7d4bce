//! LossRadar in a whole network: lr.capture, lr.cause and lr.partial (li-thesis §5.7.2, §5.7.3).
//!
//! The first two share their runs. What is broken in that run is decided as the thesis
//! does it: a run up to the moment of the injection shows which switch has much to do for which host.

mod busy;
mod capture;
mod cause;
mod partial;

use radar::packet::Flow;
use scenario::Scenario;
use sim::net::metering::{MeteringResult as Metered, SegmentLoss, TrueDrop};
use sim::net::{FaultyAction, FaultyRule, NetworkSetup};
use sim::topology::{NodeId, Topology};
use units::Timestamp;
use units::{Span, Time};

pub(super) use partial::compute as partial;

use crate::files;
use report::claim::{ClaimError, RunScale};
use report::runner::{ComputedValues, Effort};

/// Time at which links and switches break, as the scenario has it of links.
const BREAKS_AT: Span = Span::from_ms(50);

/// One simulation.
#[derive(Clone, Copy, Debug)]
struct LossRadarTask {
    fan_in: u32,
    /// Bytes that each server answers.
    answer: u64,
    seed: u64,
}

/// The answers to a query together, as in DCTCP's incasts, and each of them as in DCTCP's traces of partition and aggregate,
/// ten times as long for links ten times as fast.
const TOGETHER: u64 = 1_000_000;
const EACH: u64 = 20_000;

impl LossRadarTask {
    /// Causes need several intervals, and answers are compared over as long a time.
    fn is_long(self) -> bool {
        self.fan_in == 20
    }
}

/// Result of one simulation.
struct LossRadarRun {
    fan_in: u32,
    answer: u64,
    topology: Topology,
    setup_links: Vec<u32>,
    rules: Vec<FaultyRule>,
    metered: Metered,
    /// Packets that hosts sent.
    sent: u64,
    seed: u64,
}

/// lr.capture, lr.cause, or both from the same runs.
pub(super) fn compute(effort: &Effort<'_>, wanted: &[&str]) -> Result<Option<Vec<ComputedValues>>, ClaimError> {
    let tasks = tasks(effort, wanted);
    effort.progress.expect_parts(tasks.len());
    let results = parallel::map(&tasks, effort.jobs, |task| {
        let run = simulate(*task, effort);
        effort.progress.part_done();
        run
    });
    let runs = results.into_iter().collect::<Result<Vec<_>, _>>()?;
    let Some(runs) = runs.into_iter().collect::<Option<Vec<LossRadarRun>>>() else { return Ok(None) };
    let computed = |id: &&str| if *id == "lr.capture" { capture::compute(&runs) } else { cause::compute(&runs) };
    Ok(Some(wanted.iter().map(computed).collect()))
}

fn tasks(effort: &Effort<'_>, wanted: &[&str]) -> Vec<LossRadarTask> {
    let cause = [(20, TOGETHER / 20)];
    let capture = [cause[0], (40, TOGETHER / 40), (20, EACH), (40, EACH)];
    let cases: &[(u32, u64)] = if wanted.contains(&"lr.capture") { &capture } else { &cause };
    let seeds = if effort.scale == RunScale::Quick { 1 } else { 4 };
    let of_seed =
        |seed| cases.iter().map(move |(fan_in, answer)| LossRadarTask { fan_in: *fan_in, answer: *answer, seed });
    (0..seeds).flat_map(|n| of_seed(effort.seed.wrapping_mul(1_000) + n)).collect()
}

/// `None` if it was stopped early.
fn simulate(task: LossRadarTask, effort: &Effort<'_>) -> Result<Option<LossRadarRun>, ClaimError> {
    let mut sets = vec![format!("traffic.1.fan_in={}", task.fan_in), format!("traffic.1.size={}", task.answer)];
    match (effort.scale, task.is_long()) {
        (RunScale::Quick, false) => sets.push("run.until=105ms".to_owned()),
        (RunScale::Quick, true) => {}
        (RunScale::Full, _) => sets.push("run.until=1015ms".to_owned()),
    }
    let (name, text) = files::named("lossradar/capture-network.toml")?;
    let scenario = Scenario::parse(name, text, &sets).map_err(ClaimError::new)?;
    let point = scenario.points.first().ok_or_else(|| ClaimError::new("no point"))?;
    let mut setup = point.setup(task.seed);
    let Some(rules) = blackholes(&setup, effort)? else { return Ok(None) };
    setup.rules.clone_from(&rules);
    if let Some(radar) = &mut setup.radar {
        radar.keep_truth = true;
    }
    let (topology, seed) = (setup.topology.clone(), setup.seed);
    let setup_links = setup.links.iter().flat_map(|link| [link.link.forward().0, link.link.backward().0]).collect();
    let outcome = sim::net::run(setup, effort.progress).map_err(ClaimError::new)?;
    let at_hosts = topology.directed().filter(|link| topology.is_host(topology.from(*link)));
    let sent = at_hosts.map(|link| outcome.ports[link.index()].frames).sum();
    let Some(metered) = outcome.radar.filter(|_| !outcome.interrupted) else { return Ok(None) };
    Ok(Some(LossRadarRun {
        fan_in: task.fan_in,
        answer: task.answer,
        topology,
        setup_links,
        rules,
        metered,
        sent,
        seed,
    }))
}

/// A ToR, an aggregation and a core switch, of different pods, and a host for which each has much to do.
fn blackholes(setup: &NetworkSetup, effort: &Effort<'_>) -> Result<Option<Vec<FaultyRule>>, ClaimError> {
    let from = Time::ZERO + BREAKS_AT;
    let Some(busy) = busy::busiest(setup, from, effort)? else { return Ok(None) };
    let topology = &setup.topology;
    let pod_of = |host: NodeId| host.0 / 16;
    let rule = |layer: &str, pod: u32| {
        let of_layer =
            |(switch, to, _): &&busy::HostLoad| topology.name(*switch).starts_with(layer) && pod_of(*to) == pod;
        let (switch, to, _) = *busy.iter().find(of_layer)?;
        Some(FaultyRule { switch, to, from, until: Time::NEVER, action: FaultyAction::Drop })
    };
    let rules: Option<Vec<FaultyRule>> =
        [("edge0", 0), ("agg2", 2), ("core", 6)].map(|(layer, pod)| rule(layer, pod)).into_iter().collect();
    rules.map(Some).ok_or_else(|| ClaimError::new("no flow under way where a blackhole is to be"))
}

/// Key that distinguishes a lost packet from all others.
type PacketKey = (u32, Timestamp, Flow, Option<u16>);

fn key_of_lost(lost: &SegmentLoss) -> PacketKey {
    (lost.segment, lost.loss.at, lost.loss.flow, lost.loss.ip_id)
}

fn key_of_dropped(dropped: &TrueDrop) -> PacketKey {
    let loss = dropped.signature.loss(None);
    (dropped.segment, loss.at, loss.flow, loss.ip_id)
}

impl LossRadarRun {
    /// Packets that were really lost, of the batches that were compared.
    fn dropped(&self) -> impl Iterator<Item = &TrueDrop> {
        let until = self.metered.until.as_ps() / 1_000;
        self.metered.truth.dropped.iter().filter(move |dropped| dropped.signature.loss(None).at.0 < until)
    }
}

#[cfg(test)]
mod tests;
