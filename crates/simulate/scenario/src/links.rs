//! `[[link]]`: what is wrong with a link, and what protects it.
//!
//! `between` also gives the link its direction: `forward` is from the first node to the second, and that is the
//! direction that is protected. `among = "switches"` means all links between switches, `toward` all links of one node, with
//! `forward` leading to it.

use std::collections::BTreeMap;

use faults::{FaultSchedule, FaultStep, LossModel, StepError};
use settings::{ReadResult, SettingsReader};
use sim::link::{FrameSizes, LinkSimConfig};
use sim::net::{LinkSetup, Protection};
use sim::protocols;
use sim::topology::{DirectedLink, Topology, TopologyLinkId};
use units::Prob;

use crate::fabric::delay;

/// The links of the topology that a table is about, turned to the direction in which it speaks of them, with their own
/// rate and delay.
pub(crate) fn place(
    table: &SettingsReader<'_>,
    topology: &mut Topology,
    taken: &[Vec<TopologyLinkId>],
) -> ReadResult<Vec<TopologyLinkId>> {
    let is_taken = |id: TopologyLinkId| taken.iter().any(|links| links.contains(&id));
    let ports = match (table.has("among"), table.has("toward")) {
        (true, false) if !table.has("between") => among(table, topology, is_taken)?,
        (false, true) if !table.has("between") => toward(table, topology, is_taken)?,
        (false, false) => vec![between(table, topology, is_taken)?],
        _ => return Err(table.wrong("between", "expected only one of between, among and toward")),
    };
    let (rate, delay) = (table.parsed("rate")?, delay(table)?);
    for port in &ports {
        let link = &mut topology.links[port.link().index()];
        if *port != port.link().forward() {
            std::mem::swap(&mut link.a, &mut link.b);
        }
        link.rate = rate.unwrap_or(link.rate);
        link.delay = delay.unwrap_or(link.delay);
    }
    Ok(ports.iter().map(|port| port.link()).collect())
}

/// One link, by the nodes at its ends.
fn between(
    table: &SettingsReader<'_>,
    topology: &Topology,
    is_taken: impl Fn(TopologyLinkId) -> bool,
) -> ReadResult<DirectedLink> {
    let [a, b] = table.needed("between", table.pair("between")?, "two nodes that are linked")?;
    let port = topology.link_between(&a, &b).map_err(|error| table.wrong("between", error))?;
    if is_taken(port.link()) {
        return Err(table.wrong("between", format_args!("'{a}' and '{b}': there is a [[link]] for them before")));
    }
    Ok(port)
}

/// All links between switches that no table before is about.
fn among(
    table: &SettingsReader<'_>,
    topology: &Topology,
    is_taken: impl Fn(TopologyLinkId) -> bool,
) -> ReadResult<Vec<DirectedLink>> {
    table.choice("among", &[("switches", ())])?;
    let ports = topology.directed().step_by(2);
    let between_switches =
        |port: &DirectedLink| [topology.from(*port), topology.to(*port)].map(|node| topology.is_host(node));
    let ports: Vec<DirectedLink> =
        ports.filter(|port| between_switches(port) == [false, false] && !is_taken(port.link())).collect();
    if ports.is_empty() { Err(table.wrong("among", "there is no link between switches")) } else { Ok(ports) }
}

/// All links of a node that no table before is about; `forward` leads to it.
fn toward(
    table: &SettingsReader<'_>,
    topology: &Topology,
    is_taken: impl Fn(TopologyLinkId) -> bool,
) -> ReadResult<Vec<DirectedLink>> {
    let name = table.text("toward")?.unwrap_or_default();
    let node = topology.node(&name).map_err(|error| table.wrong("toward", error))?;
    let ports = topology.directed().filter(|port| topology.to(*port) == node && !is_taken(port.link()));
    let ports: Vec<DirectedLink> = ports.collect();
    if ports.is_empty() { Err(table.wrong("toward", format_args!("'{name}' has no link"))) } else { Ok(ports) }
}

/// The losses that the topology's file gives, for links that no table is about.
pub(crate) fn add_lossy(links: &mut Vec<LinkSetup>, losses: &BTreeMap<TopologyLinkId, Prob>) {
    for (link, loss) in losses {
        if links.iter().all(|setup| setup.link != *link) {
            let schedule = always_lossy(Some(*loss));
            let (link, forward, reverse) = (*link, schedule.clone(), schedule);
            links.push(LinkSetup { link, forward, reverse, protection: Protection::None, activate_at: None });
        }
    }
}

fn always_lossy(loss: Option<Prob>) -> FaultSchedule {
    loss.map_or_else(FaultSchedule::default, |loss| FaultSchedule::always(LossModel::PerFrame(loss)))
}

/// `longest` is the longest frame that the network carries; `losses` are those of the topology's file, which hold where
/// the table says nothing.
pub(crate) fn read(
    table: &SettingsReader<'_>,
    topology: &Topology,
    losses: &BTreeMap<TopologyLinkId, Prob>,
    link: TopologyLinkId,
    longest: u32,
) -> ReadResult<LinkSetup> {
    let of_file = always_lossy(losses.get(&link).copied());
    let given = |schedule: FaultSchedule| if schedule.steps().is_empty() { of_file.clone() } else { schedule };
    let (forward, reverse) = (given(forward(table)?), given(schedule(table, "reverse")?));
    let mut setup = LinkSetup { link, forward, reverse, protection: Protection::None, activate_at: None };
    let path = path_of(&setup, topology, longest);
    protocols::read(table, path, &mut setup)?;
    Ok(setup)
}

/// Properties of the link that every protocol needs.
fn path_of(setup: &LinkSetup, topology: &Topology, longest: u32) -> LinkSimConfig {
    let link = topology.link(setup.link);
    LinkSimConfig {
        rate: link.rate,
        delay: link.delay,
        sizes: FrameSizes::Fixed(longest),
        frames: 1,
        forward: setup.forward.clone(),
        reverse: setup.reverse.clone(),
        ..LinkSimConfig::default()
    }
}

/// `loss` of the link itself is short for one entry of `forward`.
fn forward(table: &SettingsReader<'_>) -> ReadResult<FaultSchedule> {
    let Some(loss) = table.text("loss")? else { return schedule(table, "forward") };
    if table.has("forward") {
        return Err(table.wrong("loss", "expected either loss or forward, which says the same and more"));
    }
    let step = FaultStep { loss: Some(loss), ..FaultStep::default() };
    FaultSchedule::from_steps(&[step]).map_err(|error| table.wrong("loss", error.problem))
}

/// Reads a schedule with the entries of a fault file.
fn schedule(table: &SettingsReader<'_>, direction: &str) -> ReadResult<FaultSchedule> {
    let entries = table.tables(direction);
    let steps: Vec<FaultStep> = entries.iter().map(step).collect::<ReadResult<_>>()?;
    FaultSchedule::from_steps(&steps).map_err(|StepError { step, key, problem }| entries[step].wrong(key, problem))
}

fn step(entry: &SettingsReader<'_>) -> ReadResult<FaultStep> {
    let frames = entry.several("frames")?;
    let number =
        |text: String| units::whole(&text).ok_or_else(|| entry.wrong("frames", "expected numbers of frames, from 0"));
    Ok(FaultStep {
        at: entry.text("at")?,
        loss: entry.text("loss")?,
        burst: entry.number("burst", |length| length >= 1.0, "a mean length of at least 1")?,
        bit_errors: entry.text("bit_errors")?,
        frames: frames.map(|frames| frames.into_iter().map(number).collect()).transpose()?,
        every: entry.whole("every", 1..=u64::MAX)?,
    })
}
