//! `[[link]]`: what is wrong with a link, and what protects it.
//!
//! `between` also gives the link its direction: `forward` is from the first node to the second, and that is the
//! direction that is protected. `among = "switches"` means all links between switches, `toward` all links of one node, with
//! `forward` leading to it.

use faults::{Schedule, Step, StepError};
use guard::fec;
use guard::reorder::Build;
use units::{Prob, Span};

use super::LONGEST;
use super::fabric::delay;
use super::reader::{Read, Reader};
use crate::link::{Config, Mode, Profile, Sizes};
use crate::net::{LinkSetup, Protection};
use crate::topology::{DirectedLink, LinkId, Topology};

/// The links of the topology that a table is about, turned to the direction in which it speaks of them, with their own
/// rate and delay.
pub(super) fn place(table: &Reader<'_>, topology: &mut Topology, taken: &[Vec<LinkId>]) -> Read<Vec<LinkId>> {
    let is_taken = |id: LinkId| taken.iter().any(|links| links.contains(&id));
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
fn between(table: &Reader<'_>, topology: &Topology, is_taken: impl Fn(LinkId) -> bool) -> Read<DirectedLink> {
    let [a, b] = table.needed("between", table.pair("between")?, "two nodes that are linked")?;
    let port = topology.link_between(&a, &b).map_err(|error| table.wrong("between", error))?;
    if is_taken(port.link()) {
        return Err(table.wrong("between", format_args!("'{a}' and '{b}': there is a [[link]] for them before")));
    }
    Ok(port)
}

/// All links between switches that no table before is about.
fn among(table: &Reader<'_>, topology: &Topology, is_taken: impl Fn(LinkId) -> bool) -> Read<Vec<DirectedLink>> {
    table.choice("among", &[("switches", ())])?;
    let ports = topology.directed().step_by(2);
    let between_switches =
        |port: &DirectedLink| [topology.from(*port), topology.to(*port)].map(|node| topology.is_host(node));
    let ports: Vec<DirectedLink> =
        ports.filter(|port| between_switches(port) == [false, false] && !is_taken(port.link())).collect();
    if ports.is_empty() { Err(table.wrong("among", "there is no link between switches")) } else { Ok(ports) }
}

/// All links of a node that no table before is about; `forward` leads to it.
fn toward(table: &Reader<'_>, topology: &Topology, is_taken: impl Fn(LinkId) -> bool) -> Read<Vec<DirectedLink>> {
    let name = table.text("toward")?.unwrap_or_default();
    let node = topology.node(&name).map_err(|error| table.wrong("toward", error))?;
    let ports = topology.directed().filter(|port| topology.to(*port) == node && !is_taken(port.link()));
    let ports: Vec<DirectedLink> = ports.collect();
    if ports.is_empty() { Err(table.wrong("toward", format_args!("'{name}' has no link"))) } else { Ok(ports) }
}

/// `longest` is the longest frame that the network carries.
pub(super) fn read(table: &Reader<'_>, topology: &Topology, link: LinkId, longest: u32) -> Read<LinkSetup> {
    let (forward, reverse) = (forward(table)?, schedule(table, "reverse")?);
    let mut setup = LinkSetup { link, forward, reverse, protection: Protection::None, activate_at: None };
    match table.choice("protect", &PROTOCOLS)?.unwrap_or(Protocol::None) {
        Protocol::None => {}
        Protocol::Fec => setup.protection = Protection::Fec(parity(table, &path_of(&setup, topology, longest))?),
        Protocol::Guard(mode) => {
            setup.activate_at = table.span("activate_at", Span::ZERO..=LONGEST)?;
            setup.protection = guard(table, mode, path_of(&setup, topology, longest))?;
        }
        Protocol::Llr => {
            let config = Config { mode: Mode::UecLlr, ..path_of(&setup, topology, longest) };
            setup.protection = checked(table, config)?;
        }
    }
    Ok(setup)
}

#[derive(Clone, Copy)]
enum Protocol {
    None,
    Guard(Mode),
    Llr,
    Fec,
}

const PROTOCOLS: [(&str, Protocol); 6] = [
    ("none", Protocol::None),
    ("ordered", Protocol::Guard(Mode::Ordered)),
    ("nonblocking", Protocol::Guard(Mode::NonBlocking)),
    ("auto", Protocol::Guard(Mode::Auto)),
    ("uec-llr", Protocol::Llr),
    ("fec", Protocol::Fec),
];

/// What every protocol must know of the link.
fn path_of(setup: &LinkSetup, topology: &Topology, longest: u32) -> Config {
    let link = topology.link(setup.link);
    Config {
        rate: link.rate,
        delay: link.delay,
        sizes: Sizes::Fixed(longest),
        frames: 1,
        forward: setup.forward.clone(),
        reverse: setup.reverse.clone(),
        ..Config::default()
    }
}

fn guard(table: &Reader<'_>, mode: Mode, path: Config) -> Read<Protection> {
    let profile = table.choice("profile", &[("ideal", Profile::Ideal), ("tofino", Profile::Tofino)])?;
    let reorder = table.choice("reorder", &[("sorted", Build::Sorted), ("rotating", Build::TOFINO)])?;
    let config = Config {
        mode,
        profile: profile.unwrap_or(path.profile),
        protect_reverse: table.flag("protect_reverse")?.unwrap_or(path.protect_reverse),
        target: table.parsed("target_loss")?.unwrap_or(path.target),
        copies: table.tiny("copies", 1..=100)?,
        control_copies: table.tiny("control_copies", 1..=16)?.unwrap_or(path.control_copies),
        dummy_copies: table.tiny("dummy_copies", 1..=16)?,
        asks: table.tiny("asks", 1..=100)?.unwrap_or(path.asks),
        backpressure: table.flag("backpressure")?.unwrap_or(path.backpressure),
        paper_acks: table.flag("paper_acks")?.unwrap_or(path.paper_acks),
        endless_dummies: table.flag("endless_dummies")?.unwrap_or(path.endless_dummies),
        tail: table.flag("tail")?.unwrap_or(path.tail),
        max_consecutive: table.small("max_consecutive", 1..=u32::MAX)?,
        reorder,
        ..path
    };
    checked(table, config)
}

fn checked(table: &Reader<'_>, config: Config) -> Read<Protection> {
    config.check().map_err(|error| table.wrong("protect", error))?;
    Ok(Protection::Link(Box::new(config)))
}

/// Frames and parity frames of a block: what is best for the link's worst loss, if not given.
fn parity(table: &Reader<'_>, path: &Config) -> Read<fec::Config> {
    let longest = path.sizes.longest();
    let losses = path.forward.steps().iter().map(|(_, model)| model.mean_loss(longest));
    let (k, h) = fec::best_parameters(Prob::new(losses.fold(0.0, f64::max)).unwrap_or_default());
    let k = table.small("k", 1..=1_000)?.map_or(k, |k| k as u16);
    let h = table.small("h", 1..=u32::from(fec::Config::MAX_PARITY))?.map_or(h, |h| h as u16);
    let ordered = table.flag("ordered")?.unwrap_or(true);
    Ok(fec::Config { ordered, ..fec::Config::for_path(&path.path(), k, h) })
}

/// `loss` of the link itself is short for one entry of `forward`.
fn forward(table: &Reader<'_>) -> Read<Schedule> {
    let Some(loss) = table.text("loss")? else { return schedule(table, "forward") };
    if table.has("forward") {
        return Err(table.wrong("loss", "expected either loss or forward, which says the same and more"));
    }
    let step = Step { loss: Some(loss), ..Step::default() };
    Schedule::from_steps(&[step]).map_err(|error| table.wrong("loss", error.problem))
}

/// The same entries as in a fault file.
fn schedule(table: &Reader<'_>, direction: &str) -> Read<Schedule> {
    let entries = table.tables(direction);
    let steps: Vec<Step> = entries.iter().map(step).collect::<Read<_>>()?;
    Schedule::from_steps(&steps).map_err(|StepError { step, key, problem }| entries[step].wrong(key, problem))
}

fn step(entry: &Reader<'_>) -> Read<Step> {
    let frames = entry.several("frames")?;
    let number =
        |text: String| units::whole(&text).ok_or_else(|| entry.wrong("frames", "expected numbers of frames, from 0"));
    Ok(Step {
        at: entry.text("at")?,
        loss: entry.text("loss")?,
        burst: entry.number("burst", |length| length >= 1.0, "a mean length of at least 1")?,
        bit_errors: entry.text("bit_errors")?,
        frames: frames.map(|frames| frames.into_iter().map(number).collect()).transpose()?,
    })
}
