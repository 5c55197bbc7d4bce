//! `[topology]`, `[switch]` and `[host]`: what the network is made of.

use settings::{ReadResult, ScenarioReader};
use sim::net::{HostLatency, Marking, Pfc, SwitchSettings};
use sim::topology::{NodeId, NodeKind, Routes, Topology, TopologyError, TopologyLink, TopologyNode};
use transport::roce::repeat;
use units::{Bytes, Prob, Rate, Span};

/// Ten metres of fibre.
const DELAY: Span = Span::from_ns(50);

/// Nothing on earth is farther away.
const LONGEST_DELAY: Span = Span::from_ms(1_000);

/// Beyond this and with the largest sigma, an unlucky draw would not fit the clock.
const LONGEST_HOST_LATENCY: Span = Span::from_ms(10);
const LARGEST_SIGMA: f64 = 2.0;

/// The delay of a longer queue on the slowest link does not fit the clock, which counts picoseconds.
const LARGEST_BUFFER: Bytes = Bytes::new(1_000_000_000);

/// Longer routes have no room in a packet's list of hops.
const MOST_SWITCHES_IN_A_ROW: usize = 30;

#[derive(Clone, Copy)]
enum FabricShape {
    Testbed,
    Pair,
    SingleSwitch,
    Dumbbell,
    LeafSpine,
    FatTree,
    Chain,
    Hpcc,
    Custom,
}

const SHAPES: [(&str, FabricShape); 9] = [
    ("testbed", FabricShape::Testbed),
    ("pair", FabricShape::Pair),
    ("single-switch", FabricShape::SingleSwitch),
    ("dumbbell", FabricShape::Dumbbell),
    ("leaf-spine", FabricShape::LeafSpine),
    ("fat-tree", FabricShape::FatTree),
    ("chain", FabricShape::Chain),
    ("hpcc", FabricShape::Hpcc),
    ("custom", FabricShape::Custom),
];

pub(crate) fn topology(table: &ScenarioReader<'_>) -> ReadResult<Topology> {
    let kind = table.needed("kind", table.choice("kind", &SHAPES)?, "a topology such as testbed or leaf-spine")?;
    let rate = || table.needed("rate", table.parsed("rate")?, "a rate such as 100G");
    let delay = || Ok(delay(table)?.unwrap_or(DELAY));
    let count = |key| table.needed(key, table.small(key, 1..=u32::MAX)?, "how many");
    let blame = |key| move |error: TopologyError| table.wrong(key, error);
    match kind {
        FabricShape::Testbed => Ok(Topology::testbed(rate()?)),
        FabricShape::Pair => Ok(Topology::pair(rate()?, delay()?)),
        FabricShape::SingleSwitch => {
            Topology::single_switch(count("hosts")?, rate()?, delay()?).map_err(blame("hosts"))
        }
        FabricShape::Dumbbell => {
            let edge = rate()?;
            let bottleneck = table.parsed("bottleneck")?.unwrap_or(edge);
            Topology::dumbbell(count("pairs")?, edge, bottleneck, delay()?).map_err(blame("pairs"))
        }
        FabricShape::LeafSpine => {
            let host = rate()?;
            let fabric = table.parsed("fabric")?.unwrap_or(host);
            let [leaves, spines, hosts] = [count("leaves")?, count("spines")?, count("hosts_per_leaf")?];
            Topology::leaf_spine(leaves, spines, hosts, host, fabric, delay()?).map_err(blame("leaves"))
        }
        FabricShape::FatTree => Topology::fat_tree(count("k")?, rate()?, delay()?).map_err(blame("k")),
        FabricShape::Chain => {
            let chain = Topology::chain(count("switches")?, rate()?, delay()?).map_err(blame("switches"))?;
            check_lengths(table, "switches", chain)
        }
        FabricShape::Hpcc => Ok(Topology::hpcc()),
        FabricShape::Custom => custom(table),
    }
}

pub(crate) fn delay(table: &ScenarioReader<'_>) -> ReadResult<Option<Span>> {
    table.span("delay", Span::ZERO..=LONGEST_DELAY)
}

/// Nodes by name, and the links between them.
fn custom(table: &ScenarioReader<'_>) -> ReadResult<Topology> {
    let mut nodes = Vec::new();
    for (key, kind) in [("hosts", NodeKind::Host), ("switches", NodeKind::Switch)] {
        let names = table.several(key)?.unwrap_or_default();
        nodes.extend(names.into_iter().map(|name| TopologyNode { name, kind }));
    }
    let unlinked = Topology { nodes, links: Vec::new() };
    let mut links = Vec::new();
    for wire in table.tables("link") {
        let names = wire.needed("between", wire.pair("between")?, "the two nodes that it joins")?;
        let [a, b] = names.map(|name| unlinked.node(&name).map_err(|error| wire.wrong("between", error)));
        let rate = match wire.parsed("rate")? {
            Some(rate) => rate,
            None => wire.needed("rate", table.parsed("rate")?, "a rate, here or for all in [topology]")?,
        };
        let delay = delay(&wire)?.or(delay(table)?).unwrap_or(DELAY);
        links.push(TopologyLink { a: a?, b: b?, rate, delay });
    }
    let topology = Topology::new(unlinked.nodes, links).map_err(|error| match error {
        TopologyError::Empty | TopologyError::DuplicateName(_) => table.wrong("hosts", error),
        _ => table.wrong("link", error),
    })?;
    check_lengths(table, "link", topology)
}

fn check_lengths(table: &ScenarioReader<'_>, key: &str, topology: Topology) -> ReadResult<Topology> {
    if topology.switches().count() <= MOST_SWITCHES_IN_A_ROW {
        return Ok(topology);
    }
    let routes = Routes::of(&topology);
    let hosts: Vec<NodeId> = topology.hosts().collect();
    let mut path = Vec::new();
    for (from, to) in hosts.iter().flat_map(|from| hosts.iter().map(move |to| (*from, *to))) {
        path.clear();
        let found = routes.path(from, to, 0, &mut path);
        if found.is_err() || path.len() > MOST_SWITCHES_IN_A_ROW + 1 {
            let [from, to] = [from, to].map(|node| topology.name(node));
            let expected = format!("expected at most {MOST_SWITCHES_IN_A_ROW} switches");
            return Err(table.wrong(key, format_args!("{} hops from {from} to {to}: {expected}", path.len())));
        }
    }
    Ok(topology)
}

/// All that `[switch]` says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Switches {
    pub settings: SwitchSettings,
    pub marking: Option<Marking>,
    pub repeat: Option<repeat::RepeaterConfig>,
    pub latency: Span,
}

/// More than any loss calls for.
const MOST_COPIES: u32 = 16;

/// Most switches take about as long from a packet's last bit to its having been routed.
const SWITCH_LATENCY: Span = Span::from_ns(400);

pub(crate) fn switches(table: &ScenarioReader<'_>, topology: &Topology) -> ReadResult<Switches> {
    let usual = SwitchSettings::default();
    let buffer = table.bytes("buffer", Bytes::new(1)..=LARGEST_BUFFER)?.unwrap_or(usual.buffer);
    let pfc = table.inner("pfc").map(|pfc| pauses(&pfc, buffer, topology)).transpose()?;
    Ok(Switches {
        settings: SwitchSettings {
            buffer,
            alpha: alpha(table)?.unwrap_or(usual.alpha),
            port_limit: table.bytes("port_limit", Bytes::new(1)..=LARGEST_BUFFER)?,
            pfc,
        },
        marking: marking(table)?,
        repeat: repeating(table)?,
        latency: table.span("latency", Span::ZERO..=LONGEST_DELAY)?.unwrap_or(SWITCH_LATENCY),
    })
}

/// Copies that switches make for their hosts.
fn repeating(table: &ScenarioReader<'_>) -> ReadResult<Option<repeat::RepeaterConfig>> {
    let copies = |key| table.small(key, 0..=MOST_COPIES);
    // The second is the old name.
    let (requested, before) = (copies("repeat_requested")?, copies("repeat_naked")?);
    if requested.is_some() && before.is_some() {
        return Err(table.wrong("repeat_naked", "expected only repeat_requested, its new name"));
    }
    let (naks, requested) = (copies("repeat_naks")?.unwrap_or(0), requested.or(before).unwrap_or(0));
    Ok((naks + requested > 0).then(|| repeat::RepeaterConfig::new(naks, requested)))
}

/// Of what is free, how much one port may take.
fn alpha(table: &ScenarioReader<'_>) -> ReadResult<Option<f64>> {
    table.number("alpha", |alpha| alpha > 0.0 && alpha <= 1_024.0, "more than 0 and at most 1024")
}

/// How far a queue may fill until something happens.
fn level(table: &ScenarioReader<'_>, key: &str) -> ReadResult<Option<Bytes>> {
    table.bytes(key, Bytes::ZERO..=LARGEST_BUFFER)
}

fn pauses(table: &ScenarioReader<'_>, buffer: Bytes, topology: &Topology) -> ReadResult<Pfc> {
    let headroom = level(table, "headroom")?.unwrap_or(Bytes::new(100_000));
    let mut ports = vec![0_u64; topology.nodes.len()];
    topology.links.iter().flat_map(|link| [link.a, link.b]).for_each(|end| ports[end.index()] += 1);
    let most = topology.switches().map(|switch| ports[switch.index()]).max().unwrap_or_default();
    if headroom * most >= buffer {
        let problem = format!("{headroom} at each of {most} ports: expected less than the buffer of {buffer} together");
        return Err(table.wrong("headroom", problem));
    }
    Ok(Pfc {
        alpha: alpha(table)?.unwrap_or(0.125),
        headroom,
        hysteresis: level(table, "hysteresis")?.unwrap_or(Bytes::new(3_000)),
    })
}

/// `ecn = "100KB"`, or `ecn = { min = "100KB", max = "400KB", probability = 0.2 }`.
fn marking(table: &ScenarioReader<'_>) -> ReadResult<Option<Marking>> {
    let Some(ramp) = table.inner("ecn") else { return Ok(level(table, "ecn")?.map(Marking::step)) };
    let some = ramp.needed("min", level(&ramp, "min")?, "the queue from which on some packets are marked")?;
    let all = ramp.needed("max", level(&ramp, "max")?, "the queue from which on all packets are marked")?;
    let most: Prob = ramp.needed("probability", ramp.parsed("probability")?, "the share marked just below max")?;
    if all < some {
        return Err(ramp.wrong("max", format_args!("{all}: expected at least min, {some}")));
    }
    Ok(Some(Marking { some, all, most: most.get() }))
}

pub(crate) fn host_latency(table: &ScenarioReader<'_>) -> ReadResult<HostLatency> {
    let latency = table.span("latency", Span::ZERO..=LONGEST_HOST_LATENCY)?;
    let Some(median) = latency else { return Ok(HostLatency::None) };
    let sigma = table.number("sigma", |sigma| (0.0..=LARGEST_SIGMA).contains(&sigma), "0 to 2, of the logarithm")?;
    Ok(match sigma {
        None | Some(0.0) => HostLatency::Fixed(median),
        Some(sigma) => HostLatency::LogNormal { median, sigma },
    })
}

/// The rate of the links by which these hosts send, if it is one.
pub(crate) fn access_rate(topology: &Topology, hosts: &[NodeId]) -> Option<Rate> {
    let mut sends = vec![false; topology.nodes.len()];
    hosts.iter().for_each(|host| sends[host.index()] = true);
    let mut links = topology.links.iter().filter(|link| sends[link.a.index()] || sends[link.b.index()]);
    let first = links.next()?.rate;
    links.all(|link| link.rate == first).then_some(first)
}
