//! Networks of a comparison: their names, and the scenario of each remedy.

use std::fmt::Write as _;

use collective::model::{ModelNetwork, ModelTopology, ROCE_ACK, ROCE_OVERHEAD, Remedy};

use super::{CABLE, DUMMIES, RemedySettings, SWITCH};

/// Shape of a network that is as large as the ranks need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkShape {
    OneSwitch,
    LeafSpine,
    FatTree,
}

units::named!(NetworkShape, "one-switch, leaf-spine or fat-tree",
    "one-switch" => Self::OneSwitch,
    "leaf-spine" => Self::LeafSpine,
    "fat-tree" => Self::FatTree,
);

/// Hosts of the ranks, in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RankOrder {
    /// Neighbours in rank are neighbours in the network.
    AsGiven,
    /// Round robin over leaves.
    Spread,
}

units::named!(RankOrder, "as-given or spread",
    "as-given" => Self::AsGiven,
    "spread" => Self::Spread,
);

impl NetworkShape {
    fn topology(self, ranks: u32) -> ModelTopology {
        match self {
            Self::OneSwitch => ModelTopology::OneSwitch,
            Self::LeafSpine => ModelTopology::LeafSpine { hosts_per_leaf: hosts_per_leaf(ranks) },
            Self::FatTree => ModelTopology::FatTree { k: pod_ports(ranks) },
        }
    }
}

/// As many hosts as leaves, or nearly.
fn hosts_per_leaf(ranks: u32) -> u32 {
    let mut hosts = 2_u32;
    while hosts * hosts < ranks {
        hosts *= 2;
    }
    hosts
}

/// Leaves, at least two.
fn leaves(ranks: u32) -> u32 {
    ranks.div_ceil(hosts_per_leaf(ranks)).max(2)
}

/// The fewest ports of switches of a fat-tree with enough hosts.
fn pod_ports(ranks: u32) -> u32 {
    let mut ports = 4;
    while ports * ports * ports / 4 < ranks {
        ports += 2;
    }
    ports
}

/// The switch of a host.
fn switch_of(topology: ModelTopology, host: u32) -> String {
    match topology {
        ModelTopology::OneSwitch => "sw0".into(),
        ModelTopology::LeafSpine { hosts_per_leaf } => format!("leaf{}", host / hosts_per_leaf),
        ModelTopology::FatTree { k } => {
            let edge = host / (k / 2);
            format!("edge{}-{}", edge / (k / 2), edge % (k / 2))
        }
    }
}

/// Hosts of the ranks.
fn hosts(settings: &RemedySettings) -> Vec<u32> {
    let ranks = settings.shape.ranks;
    let per_switch = match settings.network.topology(ranks) {
        ModelTopology::OneSwitch => return (0..ranks).collect(),
        ModelTopology::LeafSpine { hosts_per_leaf } => hosts_per_leaf,
        ModelTopology::FatTree { k } => k / 2,
    };
    match settings.placement {
        RankOrder::AsGiven => (0..ranks).collect(),
        RankOrder::Spread => {
            let mut hosts: Vec<u32> = (0..ranks).collect();
            hosts.sort_by_key(|host| (host % per_switch, host / per_switch));
            hosts
        }
    }
}

pub(super) fn model(settings: &RemedySettings) -> ModelNetwork {
    ModelNetwork {
        topology: settings.network.topology(settings.shape.ranks),
        hosts: hosts(settings),
        rate: settings.rate,
        delay: CABLE,
        latency: SWITCH,
        payload: settings.mtu,
        overhead: ROCE_OVERHEAD.get() as u32,
        ack: ROCE_ACK.get() as u32,
    }
}

/// Nodes of the link, from the first to the second.
pub(super) fn link(settings: &RemedySettings) -> String {
    let topology = settings.network.topology(settings.shape.ranks);
    settings.link.clone().unwrap_or_else(|| format!("h0-{}", switch_of(topology, 0)))
}

/// The host whose cable the link is, and whether it sends into it.
pub(super) fn cable(settings: &RemedySettings) -> Result<(u32, bool), String> {
    let topology = settings.network.topology(settings.shape.ranks);
    let link = link(settings);
    let found = (0..settings.shape.ranks).find_map(|host| {
        let switch = switch_of(topology, host);
        let ends = [(format!("h{host}-{switch}"), true), (format!("{switch}-h{host}"), false)];
        ends.into_iter().find(|(name, _)| *name == link).map(|(_, sends)| (host, sends))
    });
    found.ok_or_else(|| {
        let switch = switch_of(topology, 0);
        format!("--link {link}: expected the cable of a host that has a rank, such as h0-{switch}, or {switch}-h0 for the way to it")
    })
}

/// The scenario of a remedy.
pub fn scenario_text(settings: &RemedySettings, remedy: Remedy) -> String {
    let RemedySettings { shape, rate, mtu, loss, iterations, seed, .. } = settings;
    let link = link(settings);
    // Names of switches may have dashes, names of hosts have none.
    let [from, to] = match link.split_once('-') {
        Some((from, to)) if from.starts_with('h') => [from, to],
        _ => link.rsplit_once('-').map_or([link.as_str(), ""], |(from, to)| [from, to]),
    };
    let mut out = String::from("# Run it: hitless sim run FILE\n");
    let ranks = shape.ranks;
    // Writing to a string cannot fail.
    let _ = write!(out, "name = \"{} of {ranks} ranks with {remedy}\"\n\n[topology]\n", shape.pattern);
    let _ = match settings.network.topology(ranks) {
        ModelTopology::OneSwitch => write!(out, "kind = \"single-switch\"\nhosts = {ranks}\n"),
        ModelTopology::LeafSpine { hosts_per_leaf } => {
            let leaves = leaves(ranks);
            write!(
                out,
                "kind = \"leaf-spine\"\nleaves = {leaves}\nspines = {hosts_per_leaf}\nhosts_per_leaf = {hosts_per_leaf}\n"
            )
        }
        ModelTopology::FatTree { k } => write!(out, "kind = \"fat-tree\"\nk = {k}\n"),
    };
    let _ =
        write!(out, "rate = \"{rate}\"\ndelay = \"{}ns\"\n\n[switch]\nlatency = \"{}ns\"\n\n", ns(CABLE), ns(SWITCH));
    let protect = if remedy.is_of_link() { remedy.to_string() } else { "none".into() };
    let _ = write!(out, "[[link]]\nbetween = [\"{from}\", \"{to}\"]\nloss = \"{loss}\"\nprotect = \"{protect}\"\n\n");
    let _ = write!(out, "[[traffic]]\ntransport = \"rdma\"\nmtu = {mtu}\n{}", recovery(settings, remedy));
    let _ =
        write!(out, "work = \"collective\"\npattern = \"{}\"\nalgorithm = \"{}\"\n", shape.pattern, shape.algorithm);
    let names: Vec<String> = hosts(settings).iter().map(|host| format!("\"h{host}\"")).collect();
    let _ = match settings.placement {
        RankOrder::AsGiven => writeln!(out, "ranks = \"h0..h{}\"", ranks - 1),
        RankOrder::Spread => writeln!(out, "ranks = [{}]", names.join(", ")),
    };
    let _ = write!(out, "size = {}\nchannels = {}\npieces = {}\n", shape.size, shape.channels, shape.pieces);
    let _ = write!(
        out,
        "iterations = {iterations}\ncompute = \"{}ns\"\nbarrier = {}\n",
        ns(settings.compute),
        settings.barrier
    );
    if settings.per_transfer {
        out += "queue_pairs = \"per-transfer\"\n";
    }
    let _ = write!(out, "\n[run]\nseeds = {seed}\n");
    out
}

fn ns(span: units::Span) -> u64 {
    span.as_ps() / 1_000
}

/// Keys of the transport.
fn recovery(settings: &RemedySettings, remedy: Remedy) -> String {
    let timeout = settings.setting(remedy).timeout;
    let recovery = match remedy {
        Remedy::Irn | Remedy::Melo => format!("recovery = \"{remedy}\"\n"),
        Remedy::Dummies => format!("recovery = \"go-back-n\"\ndummies = {DUMMIES}\n"),
        _ => "recovery = \"go-back-n\"\n".into(),
    };
    format!("{recovery}timeout = \"{}ns\"\n", ns(timeout))
}
