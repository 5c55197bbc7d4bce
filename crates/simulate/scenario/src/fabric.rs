//! `[topology]`, `[switch]` and `[host]`: what the network is made of.

use std::collections::BTreeMap;
use std::path::Path;

use roce::repeat;
use settings::{ReadResult, SettingsReader};
use sim::net::{HostLatency, HostProcessor, Marking, MarkingPoint, Pfc, PfcHeadroom, SwitchSettings};
use sim::topology::{LossyTopology, NodeId, NodeKind, Routes, Topology, TopologyError, TopologyLink, TopologyNode};
use units::{Bytes, Prob, Rate, Span};

use crate::files::contents;

/// Ten metres of fibre.
const DELAY: Span = Span::from_ns(50);

/// Longest delay of a link; no cable on earth has more.
const LONGEST_DELAY: Span = Span::from_ms(1_000);

/// Largest burst that segmentation offload joins.
const LARGEST_BURST: u32 = 65_536;

/// Longest latency of a host; beyond it, an unlucky draw with the largest sigma would not fit the clock.
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
    HpccNs3,
    HpccTestbed,
    Custom,
}

const SHAPES: [(&str, FabricShape); 11] = [
    ("testbed", FabricShape::Testbed),
    ("pair", FabricShape::Pair),
    ("single-switch", FabricShape::SingleSwitch),
    ("dumbbell", FabricShape::Dumbbell),
    ("leaf-spine", FabricShape::LeafSpine),
    ("fat-tree", FabricShape::FatTree),
    ("chain", FabricShape::Chain),
    ("hpcc", FabricShape::Hpcc),
    ("hpcc-ns3", FabricShape::HpccNs3),
    ("hpcc-testbed", FabricShape::HpccTestbed),
    ("custom", FabricShape::Custom),
];

/// Topology of a scenario; a file may also give the losses of links.
pub(crate) fn topology(table: &SettingsReader<'_>, folder: &Path) -> ReadResult<LossyTopology> {
    let kind = table.needed("kind", table.choice("kind", &SHAPES)?, "a topology such as testbed or leaf-spine")?;
    let rate = || table.needed("rate", table.parsed("rate")?, "a rate such as 100G");
    let delay = || Ok(delay(table)?.unwrap_or(DELAY));
    let count = |key| table.needed(key, table.small(key, 1..=u32::MAX)?, "how many");
    let blame = |key| move |error: TopologyError| table.wrong(key, error);
    let topology = match kind {
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
        FabricShape::HpccNs3 => return of_file(table, folder),
        FabricShape::HpccTestbed => Ok(Topology::hpcc_testbed()),
        FabricShape::Custom => custom(table),
    };
    Ok(LossyTopology { topology: topology?, losses: BTreeMap::new() })
}

/// A file of HPCC's authors.
fn of_file(table: &SettingsReader<'_>, folder: &Path) -> ReadResult<LossyTopology> {
    let name = table.needed("file", table.text("file")?, "a topology file of HPCC's authors")?;
    let text = contents(table, "file", folder, &name)?;
    let lossy = Topology::parse_hpcc_ns3(&text);
    let LossyTopology { topology, losses } =
        lossy.map_err(|error| table.wrong("file", format_args!("{name}: {error}")))?;
    Ok(LossyTopology { topology: check_lengths(table, "file", topology)?, losses })
}

pub(crate) fn delay(table: &SettingsReader<'_>) -> ReadResult<Option<Span>> {
    table.span("delay", Span::ZERO..=LONGEST_DELAY)
}

/// Nodes by name, and the links between them.
fn custom(table: &SettingsReader<'_>) -> ReadResult<Topology> {
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

fn check_lengths(table: &SettingsReader<'_>, key: &str, topology: Topology) -> ReadResult<Topology> {
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

/// Time from a packet's last bit until a switch has routed it; most switches take about as long.
const SWITCH_LATENCY: Span = Span::from_ns(400);

/// Latency of a switch if the scenario does not give it: none where the delays of links include it.
pub(crate) fn usual_latency(topology: &SettingsReader<'_>) -> ReadResult<Span> {
    Ok(match topology.choice("kind", &SHAPES)? {
        Some(FabricShape::HpccTestbed) => Span::ZERO,
        _ => SWITCH_LATENCY,
    })
}

pub(crate) fn switches(table: &SettingsReader<'_>, topology: &Topology, usual_latency: Span) -> ReadResult<Switches> {
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
        latency: table.span("latency", Span::ZERO..=LONGEST_DELAY)?.unwrap_or(usual_latency),
    })
}

/// Copies that switches make for their hosts.
fn repeating(table: &SettingsReader<'_>) -> ReadResult<Option<repeat::RepeaterConfig>> {
    let copies = |key| table.small(key, 0..=MOST_COPIES);
    // The second is the old name.
    let (requested, before) = (copies("repeat_requested")?, copies("repeat_naked")?);
    if requested.is_some() && before.is_some() {
        return Err(table.wrong("repeat_naked", "expected only repeat_requested, its new name"));
    }
    let (naks, requested) = (copies("repeat_naks")?.unwrap_or(0), requested.or(before).unwrap_or(0));
    Ok((naks + requested > 0).then(|| repeat::RepeaterConfig::new(naks, requested)))
}

/// Share of the free buffer that one port may take.
fn alpha(table: &SettingsReader<'_>) -> ReadResult<Option<f64>> {
    table.number("alpha", |alpha| alpha > 0.0 && alpha <= 1_024.0, "more than 0 and at most 1024")
}

/// Length of a queue at which something happens.
fn level(table: &SettingsReader<'_>, key: &str) -> ReadResult<Option<Bytes>> {
    table.bytes(key, Bytes::ZERO..=LARGEST_BUFFER)
}

fn pauses(table: &SettingsReader<'_>, buffer: Bytes, topology: &Topology) -> ReadResult<Pfc> {
    let headroom = match table.text("headroom")?.as_deref() {
        Some("auto") => PfcHeadroom::Auto,
        _ => PfcHeadroom::Fixed(level(table, "headroom")?.unwrap_or(Bytes::new(100_000))),
    };
    let pfc = Pfc {
        alpha: alpha(table)?.unwrap_or(0.125),
        per_rate: table.flag("per_rate")?.unwrap_or(false),
        headroom,
        hysteresis: level(table, "hysteresis")?.unwrap_or(Bytes::new(3_000)),
    };
    let reserved = pfc.reserved(topology);
    let Some(switch) = topology.switches().max_by_key(|switch| reserved[switch.index()].1) else { return Ok(pfc) };
    let (ports, kept) = reserved[switch.index()];
    if kept < buffer {
        return Ok(pfc);
    }
    let expected = format!("expected less than the buffer of {buffer}");
    let problem = match headroom {
        PfcHeadroom::Fixed(each) => format!("{each} at each of {ports} ports: {expected} together"),
        PfcHeadroom::Auto => format!("{kept} for the {ports} ports of '{}': {expected}", topology.name(switch)),
    };
    Err(table.wrong("headroom", problem))
}

const MARKING_POINTS: [(&str, MarkingPoint); 2] =
    [("arrival", MarkingPoint::Arrival), ("departure", MarkingPoint::Departure)];

/// `ecn = "100KB"`, or `ecn = { min = "100KB", max = "400KB", probability = 0.2 }` and more.
fn marking(table: &SettingsReader<'_>) -> ReadResult<Option<Marking>> {
    let Some(ramp) = table.inner("ecn") else { return Ok(level(table, "ecn")?.map(Marking::step)) };
    let some = ramp.needed("min", level(&ramp, "min")?, "the queue from which on some packets are marked")?;
    let all = ramp.needed("max", level(&ramp, "max")?, "the queue from which on all packets are marked")?;
    if all < some {
        return Err(ramp.wrong("max", format_args!("{all}: expected at least min, {some}")));
    }
    let most: Option<Prob> = ramp.parsed("probability")?;
    let most = match most {
        None if some == all => 1.0,
        most => ramp.needed("probability", most, "the share marked just below max")?.get(),
    };
    Ok(Some(Marking {
        at: ramp.choice("at", &MARKING_POINTS)?.unwrap_or_default(),
        per: ramp.parsed("per")?,
        classes: marked_classes(&ramp)?,
        ..Marking::ramp(some, all, most)
    }))
}

/// Bit mask of the classes whose packets are marked.
fn marked_classes(table: &SettingsReader<'_>) -> ReadResult<u8> {
    let Some(classes) = table.several("classes")? else { return Ok(u8::MAX) };
    let bit = |class: &String| match class.parse() {
        Ok(class @ 0..8_u8) => Ok(1 << class),
        _ => Err(table.wrong("classes", format_args!("'{class}': expected classes from 0 to 7"))),
    };
    classes.iter().map(bit).try_fold(0, |bits, bit| Ok(bits | bit?))
}

pub(crate) fn host_latency(table: &SettingsReader<'_>) -> ReadResult<HostLatency> {
    let latency = table.span("latency", Span::ZERO..=LONGEST_HOST_LATENCY)?;
    let Some(median) = latency else { return Ok(HostLatency::None) };
    let sigma = table.number("sigma", |sigma| (0.0..=LARGEST_SIGMA).contains(&sigma), "0 to 2, of the logarithm")?;
    let deviation = table.span("deviation", Span::ZERO..=LONGEST_HOST_LATENCY)?;
    match (sigma, deviation) {
        (Some(_), Some(_)) => Err(table.wrong("deviation", "expected either sigma or deviation")),
        (None, Some(deviation)) => Ok(HostLatency::Normal { mean: median, deviation }),
        (None | Some(0.0), None) => Ok(HostLatency::Fixed(median)),
        (Some(sigma), None) => Ok(HostLatency::LogNormal { median, sigma }),
    }
}

/// `[host.processor]`: what a host's processor takes.
pub(crate) fn processor(host: &SettingsReader<'_>) -> ReadResult<Option<HostProcessor>> {
    let Some(table) = host.inner("processor") else { return Ok(None) };
    let span = |key| Ok(table.span(key, Span::ZERO..=LONGEST_HOST_LATENCY)?.unwrap_or_default());
    let burst: Option<Bytes> = table.bytes("burst", Bytes::new(1)..=Bytes::new(1 << 20))?;
    let burst = burst.map_or(LARGEST_BURST, |burst| burst.get() as u32);
    Ok(Some(HostProcessor {
        per_packet: span("per_packet")?,
        per_call: span("per_call")?,
        per_burst: span("per_burst")?,
        burst,
    }))
}

/// The rate of the links by which these hosts send, if it is one.
pub(crate) fn access_rate(topology: &Topology, hosts: &[NodeId]) -> Option<Rate> {
    let mut sends = vec![false; topology.nodes.len()];
    hosts.iter().for_each(|host| sends[host.index()] = true);
    let mut links = topology.links.iter().filter(|link| sends[link.a.index()] || sends[link.b.index()]);
    let first = links.next()?.rate;
    links.all(|link| link.rate == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;
    use sim::net::NetworkSetup;

    /// Setup of a scenario with this `[switch]` and `[topology]`, or its error.
    fn setup(topology: &str, switch: &str) -> Result<NetworkSetup, String> {
        let text = format!(
            "[topology]\n{topology}\n[switch]\n{switch}\n\
             [[traffic]]\ntransport = \"rdma\"\nwork = \"series\"\nfrom = \"h0\"\nto = \"h1\"\nsize = 1000\ncount = 1\n"
        );
        let scenario = Scenario::parse("it.toml", &text, &[]).map_err(|error| error.to_string())?;
        Ok(scenario.points[0].setup(1))
    }

    #[test]
    fn a_processor_takes_what_is_said_and_nothing_else() {
        let processor = |keys: &str| {
            setup(
                "kind = \"single-switch\"\nhosts = 2\nrate = \"10G\"\ndelay = \"1us\"",
                &format!("[host.processor]\n{keys}"),
            )
            .map(|it| it.processor)
        };
        let per_packet = Span::from_ns(200);
        let rest = HostProcessor { per_packet, per_call: Span::ZERO, per_burst: Span::ZERO, burst: LARGEST_BURST };
        assert_eq!(processor("per_packet = \"200ns\""), Ok(Some(rest)));
        assert_eq!(
            processor("per_packet = \"200ns\"\nburst = \"10KB\""),
            Ok(Some(HostProcessor { burst: 10_000, ..rest }))
        );
        assert!(processor("burst = 0").is_err() && processor("per_call = \"1s\"").is_err());
    }

    #[test]
    fn marking_says_when_for_which_rate_and_for_which_classes() {
        let marking = |ecn: &str| setup("kind = \"hpcc\"", &format!("ecn = {ecn}")).map(|setup| setup.marking.unwrap());
        let (some, all) = (Bytes::new(100_000), Bytes::new(400_000));
        assert_eq!(
            marking("{ min = \"100KB\", max = \"400KB\", probability = 0.2 }"),
            Ok(Marking::ramp(some, all, 0.2))
        );
        assert_eq!(
            marking(
                "{ min = \"100KB\", max = \"400KB\", probability = 0.2, at = \"departure\", per = \"25G\", classes = [0, 3] }"
            ),
            Ok(Marking {
                at: MarkingPoint::Departure,
                per: Some(Rate::gbps(25)),
                classes: 0b1001,
                ..Marking::ramp(some, all, 0.2)
            })
        );
        assert_eq!(
            marking("{ min = \"100KB\", max = \"100KB\", at = \"departure\" }"),
            Ok(Marking { at: MarkingPoint::Departure, ..Marking::step(some) })
        );
        for (ecn, expected) in [
            ("{ min = 2, max = 1 }", "it.toml:4: switch.ecn.max: 1 B: expected at least min, 2 B"),
            (
                "{ min = 1, max = 2 }",
                "it.toml:4: switch.ecn.probability: missing: expected the share marked just below max",
            ),
            ("{ min = 1, max = 1, at = \"arival\" }", "it.toml:4: switch.ecn.at: 'arival': did you mean 'arrival'?"),
            ("{ min = 1, max = 1, classes = [8] }", "it.toml:4: switch.ecn.classes: '8': expected classes from 0 to 7"),
        ] {
            assert_eq!(marking(ecn), Err(expected.to_owned()));
        }
    }

    #[test]
    fn pauses_go_by_the_port_if_wanted() {
        let pfc = |topology: &str, keys: &str| setup(topology, keys).map(|setup| setup.switches.pfc.unwrap());
        let usual = Pfc::new(0.125, Bytes::new(100_000), Bytes::new(3_000));
        assert_eq!(pfc("kind = \"hpcc\"", "pfc = {}"), Ok(usual));
        assert_eq!(
            pfc("kind = \"hpcc\"", "pfc = { per_rate = true, headroom = \"auto\" }"),
            Ok(Pfc { per_rate: true, headroom: PfcHeadroom::Auto, ..usual })
        );
        let five = "kind = \"single-switch\"\nhosts = 5\nrate = \"100G\"\ndelay = \"1us\"";
        assert_eq!(
            pfc(five, "buffer = \"200KB\"\npfc = { headroom = \"auto\" }"),
            Err("it.toml:8: switch.pfc.headroom: 207.5 KB for the 5 ports of 'sw0': expected less than the \
                 buffer of 200.0 KB"
                .to_owned())
        );
    }

    #[test]
    fn hosts_vary_by_the_logarithm_or_by_packets_and_not_by_both() {
        let one = "kind = \"single-switch\"\nhosts = 2\nrate = \"10G\"\ndelay = \"1us\"";
        let latency =
            |keys: &str| setup(one, &format!("\n[host]\nlatency = \"10us\"\n{keys}")).map(|it| it.host_latency);
        let (mean, deviation) = (Span::from_us(10), Span::from_ns(100));
        assert_eq!(latency("deviation = \"100ns\""), Ok(HostLatency::Normal { mean, deviation }));
        assert_eq!(latency(""), Ok(HostLatency::Fixed(mean)));
        let both = latency("sigma = 0.5\ndeviation = \"100ns\"").unwrap_err();
        assert!(both.ends_with("host.deviation: expected either sigma or deviation"), "{both}");
    }

    #[test]
    fn the_delays_of_hpccs_testbed_include_its_switches() {
        let latency = |kind: &str, switch: &str| setup(kind, switch).unwrap().switch_latency;
        assert_eq!(latency("kind = \"hpcc-testbed\"", ""), Span::ZERO);
        assert_eq!(latency("kind = \"hpcc-testbed\"", "latency = \"1us\""), Span::from_us(1));
        assert_eq!(latency("kind = \"hpcc\"", ""), SWITCH_LATENCY);
    }
}
