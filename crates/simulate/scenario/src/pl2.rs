//! `[pl2]`, `[[restart]]` and `[[dead]]`: hosts that reserve before they send, and what may happen to their racks.

use reserve::host::WaitRule;
use reserve::{RackParamError, RackParams, SchedulerKind, SlotUnit};
use settings::{KeyError, ReadResult, SettingsReader};
use sim::net::{HostLatency, LONGEST_SPAN, NetworkSetup, RackSetup, SwitchSettings};
use sim::topology::{DirectedLink, NodeId, Topology};
use units::{Prob, Rate, Span, Time};
use wire::ethernet::HEADER_AND_CHECK;

use crate::faulty::node;

/// A thread that takes longer for a burst is not there to send; nor is a rack that large.
const LONGEST_SOFTWARE: Span = Span::from_ms(10);
const LONGEST_SLOT: Span = Span::from_ms(1);
const LONGEST_TIMEOUT: Span = Span::from_ms(1_000);
const MOST_SLOTS: u32 = 1_000_000;
const LARGEST_SIGMA: f64 = 2.0;
/// A frame of the usual MTU: slots are no shorter where frames are.
const USUAL_FRAME: u32 = 1_500 + HEADER_AND_CHECK;

/// The word for a context of each destination.
const PER_DESTINATION: &str = "per-destination";

/// Rule by which a burst may leave without waiting.
#[derive(Clone, Copy, PartialEq)]
enum UnsolicitedWay {
    Off,
    Paper,
    Safe,
}

/// Parts of a rack besides `[pl2]`.
pub(crate) struct RackSite<'a> {
    pub(crate) topology: &'a Topology,
    pub(crate) switches: &'a SwitchSettings,
    /// True if switches repeat packets.
    pub(crate) repeats: bool,
    /// The longest frame of all traffic.
    pub(crate) longest: u32,
}

/// `None` without the table.
pub(crate) fn read(reader: &SettingsReader<'_>, site: &RackSite<'_>) -> ReadResult<Option<RackSetup>> {
    let restarts = reader.tables("restart");
    let Some(table) = reader.inner("pl2") else {
        return match restarts.first() {
            Some(restart) => Err(restart.wrong("switch", "expected [pl2]: a restart is the end of all reservations")),
            None => Ok(None),
        };
    };
    if site.repeats {
        return Err(table.wrong("scheduler", "expected no repeat_naks or repeat_requested: copies are not reserved"));
    }
    let mut params = params(&table, site)?;
    let per_destination = table.text("contexts")?.as_deref() == Some(PER_DESTINATION);
    params.contexts = contexts(&table, per_destination, site.topology)?;
    params.per_destination = per_destination;
    check(&table, site.topology, &params)?;
    Ok(Some(RackSetup {
        params,
        per_destination,
        wait: table
            .choice("hosts", &[("never-early", WaitRule::NeverEarly), ("printed", WaitRule::Printed)])?
            .unwrap_or(WaitRule::NeverEarly),
        too_early: table.span("early", Span::ZERO..=LONGEST_SOFTWARE)?.unwrap_or(Span::ZERO),
        software: table.span("software", Span::ZERO..=LONGEST_SOFTWARE)?.unwrap_or(Span::ZERO),
        answer: answer(&table)?,
        recent: table.span("recent", Span::ZERO..=LONGEST_TIMEOUT)?.unwrap_or(params.horizon),
        resets: table.flag("resets")?.unwrap_or(false),
        restarts: restarts.iter().map(|table| event(table, "switch", site.topology)).collect::<ReadResult<_>>()?,
    }))
}

/// Warning for the user about a rack's bound.
pub(crate) fn warning(network: &NetworkSetup) -> Option<String> {
    let scheduler = network.rack.as_ref().map(|rack| rack.params.scheduler)?;
    let protected = network.topology.link_ids().any(|link| network.protects(link));
    (protected && scheduler != SchedulerKind::Paper).then(|| {
        let name = scheduler.name();
        format!(
            "pl2.scheduler = {name}: protected links repeat frames or hold them back, so queues may exceed the bound"
        )
    })
}

/// `[[dead]]`: hosts, and when they die.
pub(crate) fn dead(reader: &SettingsReader<'_>, topology: &Topology) -> ReadResult<Vec<(Time, NodeId)>> {
    reader.tables("dead").iter().map(|table| event(table, "host", topology)).collect()
}

/// Event at a host or a switch, with its time.
fn event(table: &SettingsReader<'_>, key: &str, topology: &Topology) -> ReadResult<(Time, NodeId)> {
    let node = node(table, key, topology, key == "host")?;
    let at = table.needed("at", table.span("at", Span::ZERO..=LONGEST_SPAN)?, "when, such as 1ms")?;
    Ok((Time::ZERO + at, node))
}

/// Ports of the switches that have hosts, each with its rate.
fn racks(topology: &Topology) -> impl Iterator<Item = Vec<Rate>> {
    let of = move |node| topology.directed().filter(move |link: &DirectedLink| topology.from(*link) == node);
    let racks = topology.switches().filter(move |node| of(*node).any(|link| topology.is_host(topology.to(link))));
    racks.map(move |node| of(node).map(|link| topology.link(link.link()).rate).collect())
}

fn params(table: &SettingsReader<'_>, site: &RackSite<'_>) -> ReadResult<RackParams> {
    let schedulers = SchedulerKind::ALL.map(|kind| (kind.name(), kind));
    let scheduler = table.choice("scheduler", &schedulers)?.unwrap_or(SchedulerKind::Late);
    let rate = racks(site.topology).flatten().next().unwrap_or(Rate::gbps(100));
    let usual = RackParams::new(scheduler, 2, rate);
    let mtu = site.longest.max(USUAL_FRAME);
    let slot = slot(table, rate, mtu)?;
    Ok(RackParams {
        mtu,
        slot,
        k: table.tiny("k", 0..=u8::MAX)?.unwrap_or(usual.k),
        t: table.small("t", 0..=MOST_SLOTS)?.unwrap_or(usual.t),
        drop_above: table.small("drop_above", 0..=MOST_SLOTS)?.unwrap_or(usual.drop_above),
        unit: table.choice("unit", &SlotUnit::ALL.map(|unit| (unit.name(), unit)))?.unwrap_or(usual.unit),
        unsolicited: unsolicited(table, scheduler)?,
        timeout: table.span("timeout", Span::from_ps(1)..=LONGEST_TIMEOUT)?.unwrap_or(usual.timeout),
        ingress_share: ingress_share(table)?,
        horizon: table.span("horizon", Span::ZERO..=LONGEST_SOFTWARE)?.unwrap_or(usual.horizon),
        early: slot * 4,
        buffer: site.switches.port_limit.unwrap_or(site.switches.buffer).min(site.switches.buffer),
        ..usual
    })
}

fn slot(table: &SettingsReader<'_>, rate: Rate, mtu: u32) -> ReadResult<Span> {
    match table.text("slot")?.as_deref() {
        None | Some("wire") => Ok(RackParams::wire_slot(rate, mtu)),
        Some("printed") => Ok(RackParams::printed_slot(rate, mtu)),
        Some(text) => {
            let slot: Option<Span> = text.parse().ok().filter(|slot| *slot <= LONGEST_SLOT);
            let problem = format_args!("'{text}': expected wire, printed or a time up to {LONGEST_SLOT} such as 124ns");
            slot.ok_or_else(|| table.wrong("slot", problem))
        }
    }
}

fn contexts(table: &SettingsReader<'_>, per_destination: bool, topology: &Topology) -> ReadResult<u16> {
    if per_destination {
        return Ok(u16::try_from(topology.hosts().count()).unwrap_or(u16::MAX));
    }
    let contexts = table.small("contexts", 0..=u32::from(u16::MAX)).map_err(|error| {
        let problem = format!("{}, or {PER_DESTINATION}", error.problem);
        KeyError { problem, ..error }
    })?;
    Ok(contexts.map_or(12, |contexts| contexts as u16))
}

fn unsolicited(table: &SettingsReader<'_>, scheduler: SchedulerKind) -> ReadResult<bool> {
    let ways = [("off", UnsolicitedWay::Off), ("paper", UnsolicitedWay::Paper), ("safe", UnsolicitedWay::Safe)];
    let way = table.choice("unsolicited", &ways)?.unwrap_or(UnsolicitedWay::Off);
    let own = if scheduler == SchedulerKind::Paper { UnsolicitedWay::Paper } else { UnsolicitedWay::Safe };
    if way == UnsolicitedWay::Off || way == own {
        return Ok(way == own);
    }
    let expected = if own == UnsolicitedWay::Paper { "off or paper" } else { "off or safe" };
    let problem = format!("expected {expected} with the scheduler {}", scheduler.name());
    Err(table.wrong("unsolicited", problem))
}

fn ingress_share(table: &SettingsReader<'_>) -> ReadResult<Prob> {
    Ok(table.parsed("ingress_share")?.unwrap_or(Prob::literal(0.0)))
}

fn answer(table: &SettingsReader<'_>) -> ReadResult<HostLatency> {
    let Some(median) = table.span("answer", Span::ZERO..=LONGEST_SOFTWARE)? else { return Ok(HostLatency::None) };
    let fits = |sigma| (0.0..=LARGEST_SIGMA).contains(&sigma);
    let sigma = table.number("answer_sigma", fits, "0 to 2, of the logarithm")?.unwrap_or(0.0);
    Ok(if sigma == 0.0 { HostLatency::Fixed(median) } else { HostLatency::LogNormal { median, sigma } })
}

/// Checks that every rack can keep the promise of its parameters.
fn check(table: &SettingsReader<'_>, topology: &Topology, params: &RackParams) -> ReadResult<()> {
    let blame = |error: RackParamError| {
        let key = if matches!(error.key, "rate" | "ports") { "scheduler" } else { error.key };
        table.wrong(key, error.expected)
    };
    for rates in racks(topology) {
        let rack = RackParams { ports: u16::try_from(rates.len()).unwrap_or(u16::MAX), ..*params };
        rack.check().and_then(|()| rack.check_rates(rates)).map_err(blame)?;
    }
    Ok(())
}
