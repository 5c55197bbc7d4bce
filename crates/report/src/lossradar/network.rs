//! LossRadar in a whole network: lr.capture, lr.cause and lr.partial (li-thesis §5.7.2, §5.7.3).
//!
//! The first two share a run, so all three are one part of the paper. What is broken in that run is decided as the thesis
//! does it: a run up to the moment of the injection shows which switch has much to do for which host.

mod busy;
mod capture;
mod cause;
mod partial;

use radar::packet::{Flow, Stamp};
use sim::net::metering::{Dropped, Found as Metered, Lost};
use sim::net::{FaultyAction, FaultyRule, Setup};
use sim::scenario::Scenario;
use sim::topology::{NodeId, Topology};
use units::{Span, Time};

use crate::experiment::{ExperimentError, Scale};
use crate::files::{File, files};
use crate::paper::{Effort, Found, Part, Statement};
use crate::parallel;
use crate::stopwatch::Stopwatch;

const SCENARIO: File = files!("lossradar": "capture-network.toml")[0];
const CLAIMS: [File; 3] = *files!("lossradar": "capture.toml", "cause.toml", "partial.toml");

/// When links and switches break, as the scenario has it of links.
const BREAKS_AT: Span = Span::from_ms(50);

#[derive(Clone, Debug)]
pub struct InNetwork(Vec<Statement>);

/// One simulation.
#[derive(Clone, Copy, Debug)]
struct Task {
    fan_in: u32,
    seed: u64,
}

/// What came of one.
struct Run {
    fan_in: u32,
    topology: Topology,
    setup_links: Vec<u32>,
    rules: Vec<FaultyRule>,
    metered: Metered,
    /// Packets that hosts sent.
    sent: u64,
    seed: u64,
}

impl InNetwork {
    pub fn read() -> Result<Self, ExperimentError> {
        CLAIMS.iter().map(|(name, text)| Statement::parse(name, text)).collect::<Result<_, _>>().map(Self)
    }

    fn wants(&self, id: &str) -> bool {
        self.0.iter().any(|statement| statement.id == id)
    }

    fn tasks(&self, effort: &Effort<'_>) -> Vec<Task> {
        let fan_ins: &[u32] = match (self.wants("lr.capture"), self.wants("lr.cause")) {
            (true, _) => &[20, 40],
            (false, true) => &[20],
            (false, false) => &[],
        };
        let seeds = if effort.scale == Scale::Quick { 1 } else { 4 };
        let of_seed = |seed| fan_ins.iter().map(move |fan_in| Task { fan_in: *fan_in, seed });
        (0..seeds).flat_map(|n| of_seed(effort.seed.wrapping_mul(1_000) + n)).collect()
    }
}

impl Part for InNetwork {
    fn name(&self) -> &'static str {
        "net"
    }

    fn ids(&self) -> Vec<&str> {
        self.0.iter().map(|statement| statement.id.as_str()).collect()
    }

    fn retain(&mut self, wanted: &dyn Fn(&str) -> bool) {
        self.0.retain(|statement| wanted(&statement.id));
    }

    fn run(&self, effort: &Effort<'_>) -> Result<Vec<Found>, ExperimentError> {
        let begun = Stopwatch::start();
        let tasks = self.tasks(effort);
        effort.watch.expect_runs(tasks.len());
        let results = parallel::map(&tasks, effort.jobs, |task| {
            let run = simulate(*task, effort);
            effort.watch.run_done();
            run
        });
        let runs = results.into_iter().collect::<Result<Vec<_>, _>>()?;
        let Some(runs) = runs.into_iter().collect::<Option<Vec<Run>>>() else { return Ok(Vec::new()) };
        let seconds = begun.seconds();
        let found = |statement: &Statement| match statement.id.as_str() {
            "lr.capture" => statement.found(capture::compute(&runs), seconds),
            "lr.cause" => statement.found(cause::compute(&runs), seconds),
            _ => statement.found(partial::compute()?, 0.0),
        };
        self.0.iter().map(found).collect()
    }
}

/// `None` if the watch ended it early.
fn simulate(task: Task, effort: &Effort<'_>) -> Result<Option<Run>, ExperimentError> {
    let mut sets =
        vec![format!("traffic.1.fan_in={}", task.fan_in), format!("traffic.1.size={}", 1_000_000 / task.fan_in)];
    match (effort.scale, task.fan_in) {
        (Scale::Quick, 40) => sets.push("run.until=105ms".to_owned()),
        (Scale::Quick, _) => {}
        (Scale::Full, _) => sets.push("run.until=1015ms".to_owned()),
    }
    let (name, text) = SCENARIO;
    let scenario = Scenario::parse(name, text, &sets).map_err(ExperimentError::new)?;
    let point = scenario.points.first().ok_or_else(|| ExperimentError::new("no point"))?;
    let mut setup = point.setup(task.seed);
    let Some(rules) = blackholes(&setup, effort)? else { return Ok(None) };
    setup.rules.clone_from(&rules);
    if let Some(radar) = &mut setup.radar {
        radar.keep_truth = true;
    }
    let (topology, seed) = (setup.topology.clone(), setup.seed);
    let setup_links = setup.links.iter().flat_map(|link| [link.link.forward().0, link.link.backward().0]).collect();
    let outcome = sim::net::run(setup, effort.watch).map_err(ExperimentError::new)?;
    let at_hosts = topology.directed().filter(|link| topology.is_host(topology.from(*link)));
    let sent = at_hosts.map(|link| outcome.ports[link.index()].frames).sum();
    let Some(metered) = outcome.radar.filter(|_| !outcome.interrupted) else { return Ok(None) };
    Ok(Some(Run { fan_in: task.fan_in, topology, setup_links, rules, metered, sent, seed }))
}

/// A ToR, an aggregation and a core switch, of different pods, and a host for which each has much to do.
fn blackholes(setup: &Setup, effort: &Effort<'_>) -> Result<Option<Vec<FaultyRule>>, ExperimentError> {
    let from = Time::ZERO + BREAKS_AT;
    let Some(busy) = busy::busiest(setup, from, effort)? else { return Ok(None) };
    let topology = &setup.topology;
    let pod_of = |host: NodeId| host.0 / 16;
    let rule = |layer: &str, pod: u32| {
        let of_layer = |(switch, to, _): &&busy::Load| topology.name(*switch).starts_with(layer) && pod_of(*to) == pod;
        let (switch, to, _) = *busy.iter().find(of_layer)?;
        Some(FaultyRule { switch, to, from, until: Time::NEVER, action: FaultyAction::Drop })
    };
    let rules: Option<Vec<FaultyRule>> =
        [("edge0", 0), ("agg2", 2), ("core", 6)].map(|(layer, pod)| rule(layer, pod)).into_iter().collect();
    rules.map(Some).ok_or_else(|| ExperimentError::new("no flow under way where a blackhole is to be"))
}

/// What tells a lost packet from all others.
type Key = (u32, Stamp, Flow, Option<u16>);

fn key_of_lost(lost: &Lost) -> Key {
    (lost.segment, lost.loss.at, lost.loss.flow, lost.loss.ip_id)
}

fn key_of_dropped(dropped: &Dropped) -> Key {
    let loss = dropped.signature.loss(None);
    (dropped.segment, loss.at, loss.flow, loss.ip_id)
}

impl Run {
    /// What was really lost, of the batches that were looked at.
    fn dropped(&self) -> impl Iterator<Item = &Dropped> {
        let until = self.metered.until.as_ps() / 1_000;
        self.metered.truth.dropped.iter().filter(move |dropped| dropped.signature.loss(None).at.0 < until)
    }
}

#[cfg(test)]
mod tests;
