//! Support of the network for congestion control: telemetry, and the shortest round trip.
//!
//! `[switch] int = true`, or `int = { charge = "filled" }`; `int_rate` of a `[[link]]` is what its ports report instead of their
//! rate. T is the longest round trip between two hosts: a full packet there and an acknowledgement back, without queues.

use congestion::ControllerConfig;
use congestion::hpcc::{HpccConfig, IntForm};
use roce::RdmaFraming;
use settings::{ReadResult, SettingsReader};
use sim::net::{IntCharge, IntSettings, NetworkProfile, TransportSetup};
use sim::topology::{DirectedLink, NodeId, Routes, Topology};
use units::{Bytes, Rate, Span};
use wire::ethernet::on_wire;
use wire::int::{IntHeader, IntWord};

use crate::profile;
use crate::traffic::TrafficTemplate;

/// Most hops that telemetry can count.
const MOST_HOPS: usize = IntHeader::MAX_HOPS;
/// Packets have room for as many.
const USUAL_HOPS: usize = 5;

/// The longest way between two hosts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LongestWay {
    pub round_trip: Span,
    pub switches: usize,
}

/// The longest round trip of full packets and acknowledgements of these lengths, and the most switches on a way.
pub(crate) fn longest_way(topology: &Topology, latency: Span, [data, ack]: [u32; 2]) -> LongestWay {
    let routes = Routes::of(topology);
    let hosts = one_host_of_each_kind(topology);
    let mut longest = LongestWay::default();
    let mut path = Vec::new();
    for (from, to) in hosts.iter().flat_map(|from| hosts.iter().map(move |to| (*from, *to))) {
        path.clear();
        if from == to || routes.path(from, to, 0, &mut path).is_err() {
            continue;
        }
        let hop = |at: &DirectedLink| {
            let link = topology.link(at.link());
            let time = |len| link.rate.span_of(Bytes::new(u64::from(on_wire(len))));
            link.delay * 2 + time(data) + time(ack)
        };
        let hops = path.iter().map(hop).fold(Span::ZERO, |sum, span| sum + span);
        let switches = path.len() - 1;
        longest.round_trip = longest.round_trip.max(hops + latency * (2 * switches as u64));
        longest.switches = longest.switches.max(switches);
    }
    longest
}

/// Two hosts of each rate and delay at each switch: the others have the same paths.
pub(crate) fn one_host_of_each_kind(topology: &Topology) -> Vec<NodeId> {
    let mut kinds: Vec<(NodeId, Rate, Span, u32)> = Vec::new();
    let mut hosts = Vec::new();
    for host in topology.hosts() {
        let Some(at) = topology.directed().find(|at| topology.from(*at) == host) else { continue };
        let (switch, link) = (topology.to(at), topology.link(at.link()));
        match kinds.iter_mut().find(|kind| (kind.0, kind.1, kind.2) == (switch, link.rate, link.delay)) {
            Some(kind) if kind.3 >= 2 => continue,
            Some(kind) => kind.3 += 1,
            None => kinds.push((switch, link.rate, link.delay, 1)),
        }
        hosts.push(host);
    }
    hosts
}

fn hpcc(transport: &TransportSetup) -> Option<HpccConfig> {
    match transport.congestion() {
        ControllerConfig::Hpcc(hpcc) => Some(hpcc),
        _ => None,
    }
}

/// Functions of the network for congestion control.
#[derive(Debug, Default)]
pub(crate) struct ControlSupport {
    pub int: Option<IntSettings>,
    /// T, if any traffic has a controller.
    pub base_rtt: Option<Span>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// Parts of a round trip besides links.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeLatencies {
    pub switch: Span,
    /// Typical latency of a host.
    pub host: Span,
}

/// Reads `int` of `[switch]`, finds T, and makes room for telemetry in the packets of the traffic. `rates` are ports that report
/// another rate than theirs.
pub(crate) fn read(
    reader: &SettingsReader<'_>,
    topology: &Topology,
    (latencies, profile): (NodeLatencies, NetworkProfile),
    rates: Vec<(DirectedLink, Rate)>,
    traffic: &mut [TrafficTemplate],
) -> ReadResult<ControlSupport> {
    let switch = reader.table("switch");
    let charge = charge(&switch)?;
    let is_controlled = |kind: &TrafficTemplate| kind.transport.congestion() != ControllerConfig::None;
    let any_controlled = traffic.iter().any(is_controlled);
    if charge.is_none() && !any_controlled {
        return Ok(ControlSupport::default());
    }
    let most_hops = longest_way(topology, latencies.switch, [0, 0]).switches;
    let mut int = charge.map(|charge| IntSettings { charge, rates, most_hops, room: RdmaFraming::ROCE.telemetry });
    if int.is_some() && most_hops > MOST_HOPS {
        let expected = format!("expected at most {MOST_HOPS}, as telemetry counts them");
        return Err(switch.wrong("int", format_args!("{most_hops} switches between two hosts: {expected}")));
    }
    for kind in traffic.iter_mut() {
        if let (Some(int), Some(framing)) = (&mut int, kind.transport.framing_mut()) {
            framing.telemetry = room(int, framing.telemetry);
            int.room = framing.telemetry;
        }
    }
    let sizes = traffic.iter().filter(|kind| is_controlled(kind)).map(|kind| kind.transport.sizes());
    let sizes = sizes.fold([0, 0], |[data, ack], sizes| [data.max(sizes.frame), ack.max(sizes.acknowledge)]);
    let base_rtt = match profile {
        NetworkProfile::Ethernet => longest_way(topology, latencies.switch, sizes).round_trip + latencies.host * 2,
        NetworkProfile::HpccNs3 => {
            let payload = traffic.iter().filter(|kind| is_controlled(kind)).map(|kind| kind.transport.sizes().payload);
            let t = profile::longest_round_trip(topology, payload.max().unwrap_or_default());
            profile::set_hpcc(traffic, topology, t);
            t
        }
    };
    let mut warnings = check(&reader.tables("traffic"), traffic, topology, int.as_ref(), base_rtt)?;
    if !switch.has("ecn") {
        warnings.extend(traffic.iter().filter(|kind| kind.transport.congestion().wants_marks()).map(unmarked));
    }
    Ok(ControlSupport { int, base_rtt: any_controlled.then_some(base_rtt), warnings })
}

/// A controller that goes by marks, where no switch makes any.
fn unmarked(kind: &TrafficTemplate) -> String {
    format!(
        "{}: nothing limits what it sends: its congestion control goes by marks, and [switch] has no ecn",
        kind.name
    )
}

/// `int = true`, or `int = { charge = "filled" }`.
fn charge(switch: &SettingsReader<'_>) -> ReadResult<Option<IntCharge>> {
    if let Some(table) = switch.inner("int") {
        let charges = [("room", IntCharge::Room), ("filled", IntCharge::Filled)];
        return Ok(Some(table.choice("charge", &charges)?.unwrap_or_default()));
    }
    Ok(switch.flag("int")?.unwrap_or(false).then_some(IntCharge::Room))
}

/// Bytes of telemetry in data and acknowledgements when they leave their hosts.
fn room(int: &IntSettings, usual: [u16; 2]) -> [u16; 2] {
    match int.charge {
        IntCharge::Filled => [IntCharge::HEADER; 2],
        IntCharge::Room => {
            let more = int.most_hops.saturating_sub(USUAL_HOPS) as u16 * IntCharge::HOP;
            usual.map(|bytes| bytes + more)
        }
    }
}

/// Checks what HPCC needs; `tables` are those of the traffic. Warnings that a user should see.
fn check(
    tables: &[SettingsReader<'_>],
    traffic: &[TrafficTemplate],
    topology: &Topology,
    int: Option<&IntSettings>,
    base_rtt: Span,
) -> ReadResult<Vec<String>> {
    let mut warnings = Vec::new();
    for (table, kind) in tables.iter().zip(traffic) {
        let given = match kind.transport.congestion() {
            ControllerConfig::Hpcc(hpcc) => hpcc.t,
            ControllerConfig::Dctcp(dctcp) => dctcp.t,
            _ => None,
        };
        if let Some(t) = given.filter(|t| *t < base_rtt) {
            let name = &kind.name;
            warnings.push(format!("{name}: T = {t} is less than the round trip without queues, {base_rtt}"));
        }
        let Some(hpcc) = hpcc(&kind.transport) else { continue };
        let Some(int) = int else {
            return Err(table.wrong("congestion", "hpcc needs telemetry of switches: expected int = true in [switch]"));
        };
        if hpcc.int.is_some_and(|form| form != IntForm::Exact) {
            check_rates(table, topology, int)?;
        }
    }
    Ok(warnings)
}

/// Packed telemetry has names for some rates only.
fn check_rates(table: &SettingsReader<'_>, topology: &Topology, int: &IntSettings) -> ReadResult<()> {
    let given = |at: DirectedLink| int.rates.iter().find(|(port, _)| *port == at).map(|(_, rate)| *rate);
    let switch_ports = topology.directed().filter(|at| !topology.is_host(topology.from(*at)));
    let rates = switch_ports.map(|at| given(at).unwrap_or(topology.link(at.link()).rate));
    for rate in rates {
        if !IntWord::names(rate) {
            let inner = table.inner("hpcc");
            let problem = format!(
                "packed: telemetry has no name for a port of {rate}; expected 10, 25, 40, 50, 100, 200, 400 or 800G"
            );
            return Err(inner.as_ref().unwrap_or(table).wrong("int", problem));
        }
    }
    Ok(())
}
