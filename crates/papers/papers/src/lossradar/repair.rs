//! lr.repair and lr.delay: flows moved away from what loses them, as soon as that is found (§5.7.4, §5.7).

use radar::causes::{CauseThresholds, classify};
use radar::loss::{Loss, LossCause};
use report::claim::{ClaimError, MeasuredValue};
use report::runner::{ComputedValues, Effort};
use scenario::Scenario;
use sim::net::metering::{MeteringResult as Metered, SegmentLoss};
use sim::net::{FaultyAction, FaultyRule, NetworkOutcome, NetworkSetup};
use sim::topology::{NodeId, Topology};
use units::{Span, Time};

use crate::files;

const BREAKS_AT: Span = Span::from_ms(500);
/// Time from the finding until the switches carry out the controller's orders.
const CONTROLLER: Span = Span::from_ms(5);
/// A throughput is looked at over this many samples.
const SAMPLES: usize = 5;
/// A flow is back with this share of what is fair.
const ENOUGH: f64 = 0.5;
/// Paths of the flows: the hosts, and the ToR and the core switch that each goes by.
const WAYS: [(&str, &str, &str); 4] =
    [("h4", "edge0-0", "core0"), ("h5", "edge0-0", "core0"), ("h6", "edge0-1", "core1"), ("h7", "edge0-1", "core1")];

/// Failure, which decides the flows that are moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FailureKind {
    /// The first core switch has nothing for the first host.
    Blackhole,
    /// The link to it drops packets at random.
    Random,
}

impl FailureKind {
    fn moved(self) -> usize {
        match self {
            Self::Blackhole => 1,
            Self::Random => 2,
        }
    }

    fn cause(self) -> LossCause {
        match self {
            Self::Blackhole => LossCause::Blackhole,
            Self::Random => LossCause::Random,
        }
    }

    fn setup(self, seed: u64) -> Result<NetworkSetup, ClaimError> {
        let breaks = format!("{BREAKS_AT}");
        let sets = match self {
            Self::Blackhole => Vec::new(),
            Self::Random => vec![format!(
                "link=[{{ between = [\"agg0-0\", \"core0\"], forward = [{{ at = \"{breaks}\", loss = \"1e-2\" }}] }}]"
            )],
        };
        let (name, text) = files::named("lossradar/repair-network.toml")?;
        let scenario = Scenario::parse(name, text, &sets).map_err(ClaimError::new)?;
        let point = scenario.points.first().ok_or_else(|| ClaimError::new("no point"))?;
        let mut setup = point.setup(seed);
        if let Some(radar) = &mut setup.radar {
            radar.keep_truth = true;
        }
        let topology = setup.topology.clone();
        if self == Self::Blackhole {
            let (switch, to) = (node(&topology, "core0")?, node(&topology, WAYS[0].0)?);
            setup.rules.push(FaultyRule { from: Time::ZERO + BREAKS_AT, ..always(switch, to, FaultyAction::Drop) });
        }
        for (host, edge, core) in WAYS {
            let to = node(&topology, host)?;
            for (from, next) in [(edge, "agg0-0"), ("agg0-0", core)] {
                setup.rules.push(always(node(&topology, from)?, to, send(&topology, from, next)?));
            }
        }
        Ok(setup)
    }

    /// Setup in which flows with losses use the other core switch from `at` on. The first rule that applies decides.
    fn repaired(self, at: Time, seed: u64) -> Result<NetworkSetup, ClaimError> {
        let mut setup = self.setup(seed)?;
        let topology = setup.topology.clone();
        for (host, ..) in &WAYS[..self.moved()] {
            let (switch, to) = (node(&topology, "agg0-0")?, node(&topology, host)?);
            let rule = FaultyRule { from: at, ..always(switch, to, send(&topology, "agg0-0", "core1")?) };
            setup.rules.insert(0, rule);
        }
        Ok(setup)
    }
}

fn node(topology: &Topology, name: &str) -> Result<NodeId, ClaimError> {
    topology.node(name).map_err(ClaimError::new)
}

fn always(switch: NodeId, to: NodeId, action: FaultyAction) -> FaultyRule {
    FaultyRule { switch, to, from: Time::ZERO, until: Time::NEVER, action }
}

fn send(topology: &Topology, from: &str, next: &str) -> Result<FaultyAction, ClaimError> {
    topology.link_between(from, next).map(FaultyAction::Send).map_err(ClaimError::new)
}

/// Time at which the collector has decoded a batch.
fn decoded_at(setup: &NetworkSetup, batch: u64) -> Option<Time> {
    let radar = setup.radar.as_ref()?;
    Some(Time::ZERO + radar.batch.scale((batch + 1) as f64) + radar.timeout)
}

/// Time at which losses of the segment that loses are first given their cause, by all that is known then: at the end of an
/// interval.
fn found_at(setup: &NetworkSetup, metered: &Metered, broken: FailureKind) -> Option<Time> {
    let thresholds = CauseThresholds::default();
    let segment = setup.topology.link_between("agg0-0", "core0").ok()?.0;
    let batches = thresholds.interval.as_ps() / setup.radar.as_ref()?.batch.as_ps();
    let last = metered.losses.last()?.batch;
    (0..=last + batches).filter(|batch| (batch + 1).is_multiple_of(batches)).find_map(|batch| {
        let of_segment = |lost: &&SegmentLoss| lost.segment == segment && lost.batch <= batch;
        let known: Vec<Loss> = metered.losses.iter().filter(of_segment).map(|lost| lost.loss).collect();
        let is_it = classify(&known, &thresholds).contains(&broken.cause());
        if is_it { decoded_at(setup, batch) } else { None }
    })
}

/// Milliseconds from the breakdown until the flows that were moved are back, the slowest of them.
fn back_after(outcome: &NetworkOutcome, broken: FailureKind, moved_at: Time) -> Option<f64> {
    let link = 1e9 / 8.0;
    // With the two that were on the other path before.
    let fair = link / (2 + broken.moved()) as f64;
    let back = |flow: usize| {
        let recovered = outcome.samples.windows(SAMPLES + 1).find(|window| {
            let seconds = window[SAMPLES].at.since(window[0].at).as_secs();
            let received: u64 = window[1..].iter().map(|sample| sample.received[flow]).sum();
            window[0].at >= moved_at && received as f64 / seconds >= ENOUGH * fair
        })?;
        Some(recovered[0].at.since(Time::ZERO + BREAKS_AT).as_secs() * 1e3)
    };
    (0..broken.moved()).map(back).try_fold(0.0, |most: f64, back| Some(most.max(back?)))
}

pub(super) fn compute(effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let mut computed = ComputedValues::default();
    let mut delays = Vec::new();
    effort.progress.expect_parts(4);
    for broken in [FailureKind::Blackhole, FailureKind::Random] {
        let name = broken.cause().to_string();
        let Some(outcome) = run(broken.setup(effort.seed)?, effort)? else { return Ok(None) };
        let setup = broken.setup(effort.seed)?;
        let metered = outcome.radar.unwrap_or_default();
        let found = found_at(&setup, &metered, broken);
        let after = |at: Time| at.since(Time::ZERO + BREAKS_AT).as_secs() * 1e3;
        computed.values.push((format!("{name}.found"), found.map(|at| MeasuredValue::exact(after(at), 1))));
        let named = metered.losses.iter().filter_map(|lost| Some((decoded_at(&setup, lost.batch)?, lost.loss.at)));
        delays.extend(named.map(|(at, lost)| (at.as_ps() / 1_000).saturating_sub(lost.0) as f64 / 1e6));
        let mut back = None;
        if let Some(found) = found {
            let moved_at = found + CONTROLLER;
            let Some(outcome) = run(broken.repaired(moved_at, effort.seed)?, effort)? else { return Ok(None) };
            back = back_after(&outcome, broken, moved_at);
        }
        computed.values.push((format!("{name}.back"), back.map(|back| MeasuredValue::exact(back, 1))));
    }
    let most = delays.iter().copied().fold(0.0, f64::max);
    computed.value("first.mean", MeasuredValue::mean(&delays));
    computed.value("first.most", MeasuredValue::exact(most, delays.len() as u64));
    Ok(Some(computed))
}

/// `None` if it was stopped early.
fn run(setup: NetworkSetup, effort: &Effort<'_>) -> Result<Option<NetworkOutcome>, ClaimError> {
    let outcome = sim::net::run(setup, effort.progress).map_err(ClaimError::new)?;
    effort.progress.part_done();
    Ok((!outcome.interrupted).then_some(outcome))
}
