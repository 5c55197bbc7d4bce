//! From a setup to a network.

use std::collections::BTreeMap;

use faults::Random;
use guard::{Endpoint, fec, llr};
use machine::{Lane, SwitchProgram};
use units::{Span, Time};

use super::events::Event;
use super::flows::Source;
use super::host::Host;
use super::outcome::Outcome;
use super::packet::{Handle, Packet, Packets, Tags};
use super::port::{Port, Queues};
use super::protect::{Pair, Protected};
use super::rules::Rules;
use super::sampling::Sampler;
use super::setup::{Protection, Setup};
use super::switch::Switch;
use super::world::Network;
use crate::engine::Queue;
use crate::hardware::Hardware;
use crate::link::{Config, Mode, Profile};
use crate::topology::{DirectedLink, Kind, Link, LinkId, NodeId, Routes};

/// Streams of randomness, by what they are for, far enough apart that no number added reaches the next.
const MARKING_STREAM: u64 = 1;
const FLOW_STREAM: u64 = 2;
const FAULT_STREAM: u64 = 1 << 32;
const RECOVERY_STREAM: u64 = 2 << 32;
const HOST_STREAM: u64 = 3 << 32;

impl<'p, P: SwitchProgram<Frame = Packet>> Network<'p, P> {
    pub fn new(setup: Setup, program: &'p mut P) -> Self {
        let routes = Routes::of(&setup.topology);
        let (ports, numbers) = ports(&setup, P::WATCHES_DEPARTURES);
        let (switches, places) = switches(&setup);
        let hosts = hosts(&setup);
        let traffic = setup.traffic.len();
        let links = setup.topology.links.iter().map(|_| None).collect();
        let mut network = Self {
            program,
            routes,
            queue: Queue::default(),
            packets: Packets::new(),
            tags: Tags::default(),
            ports,
            places,
            switches,
            hosts,
            numbers,
            links,
            hops: Vec::new(),
            handshakes: setup.handshakes,
            rules: Rules::new(&setup).map(Box::new),
            ends: Vec::new(),
            flows: Vec::new(),
            standing: BTreeMap::new(),
            sources: Vec::new(),
            active: 0,
            vacant: Vec::new(),
            random: Random::new(setup.seed, MARKING_STREAM),
            flow_random: Random::new(setup.seed, FLOW_STREAM),
            taken: Vec::new(),
            kept: Vec::new(),
            delivered: Vec::new(),
            released: Vec::new(),
            sent: Vec::new(),
            sampler: Sampler::new(setup.sampling, traffic),
            received: vec![0; traffic],
            retransmitted: 0,
            timeouts: 0,
            outcome: Outcome::default(),
            until: setup.until,
            begun: 0,
        };
        for port in &setup.capture {
            network.ports[port.index()].watched = true;
        }
        for link in setup.links {
            network.set_faults(link.link, [&link.forward, &link.reverse], setup.seed);
            let spec = *setup.topology.link(link.link);
            network.protect(link.link, &spec, &link.protection, link.activate_at, setup.switch_latency, setup.seed);
        }
        for traffic in setup.traffic {
            network.sources.push(Source::new(traffic));
        }
        network
    }

    fn set_faults(&mut self, link: LinkId, schedules: [&faults::Schedule; 2], seed: u64) {
        for (port, schedule) in [link.forward(), link.backward()].into_iter().zip(schedules) {
            if !schedule.steps().is_empty() {
                let running = schedule.run(seed, FAULT_STREAM + u64::from(port.0));
                self.ports[port.index()].faults = Some(Box::new(running));
            }
        }
    }

    fn protect(
        &mut self,
        link: LinkId,
        spec: &Link,
        protection: &Protection,
        at: Option<Span>,
        pipeline: Span,
        seed: u64,
    ) {
        let random = Random::new(seed, RECOVERY_STREAM + u64::from(link.0));
        let protected = match protection {
            Protection::None => return,
            Protection::Fec(config) => {
                let ends = [0, 1].map(|_| fec::Endpoint::<Handle>::new(*config));
                Protected::Fec(Pair::new(ends, None, random, Lane(0)))
            }
            Protection::Link(config) => {
                let config = Config { rate: spec.rate, delay: spec.delay, pipeline, ..(**config).clone() };
                by_mode(&config, random, link, at.is_some())
            }
        };
        self.links[link.index()] = Some(Box::new(protected));
        for port in [link.forward(), link.backward()] {
            let port = &mut self.ports[port.index()];
            port.protected = true;
            port.queues.get_or_insert_default();
        }
        if let Some(at) = at {
            self.queue.schedule(Time::ZERO + at, Event::Activate { link: link.0 });
        }
    }
}

/// Both ends of a protected link, as its mode has them.
fn by_mode(config: &Config, random: Random, link: LinkId, dormant: bool) -> Protected {
    let path = config.path();
    if config.mode == Mode::UecLlr {
        let profile = llr::Profile::for_path(&path);
        let ends = [0, 1].map(|_| llr::Endpoint::<Handle>::new(profile));
        return Protected::Llr(Pair::new(ends, None, random, Lane(0)));
    }
    let hardware = (config.profile == Profile::Tofino).then(|| Hardware::tofino(&path, config.copies()));
    let lane = Lane(u8::from(config.mode == Mode::NonBlocking));
    let ids = [link.0 * 2 + 1, link.0 * 2 + 2];
    let [a, b] = config.both_params();
    let ends = if dormant {
        [Endpoint::new(a, ids[0]), Endpoint::new(b, ids[1])]
    } else {
        [Endpoint::established(a, ids[0], ids[1]), Endpoint::established(b, ids[1], ids[0])]
    };
    Protected::Guard(Pair::new(ends, hardware, random, lane))
}

/// All ports, by directed link; and for each node its number among the hosts or the switches.
fn ports(setup: &Setup, departures: bool) -> (Vec<Port>, Vec<u32>) {
    let mut counts = [0; 2];
    let numbers: Vec<u32> = (setup.topology.nodes.iter())
        .map(|node| {
            let count = &mut counts[usize::from(node.kind == Kind::Host)];
            *count += 1;
            *count - 1
        })
        .collect();
    let topology = &setup.topology;
    let queued = setup.no_express || departures || setup.switches.pfc.is_some() || has_priorities(setup);
    let sampled = setup.sampling.iter().flat_map(|sampling| &sampling.ports);
    let watched: Vec<DirectedLink> = sampled.chain(&setup.capture).copied().collect();
    let port = |at| {
        let (from, to) = (topology.from(at), topology.to(at));
        let link = topology.link(at.link());
        let latency = if topology.is_host(to) { Span::ZERO } else { setup.switch_latency };
        let of_host = topology.is_host(from);
        let mut port = Port::new(link.rate, link.delay + latency, numbers[from.index()], of_host);
        if !of_host {
            if let Some(marking) = setup.marking {
                port.mark(marking);
            }
            // What is looked at while it runs has to be there when it is looked at.
            if queued || watched.contains(&at) {
                port.queues = Some(Box::<Queues>::default());
            }
        }
        port
    };
    (topology.directed().map(port).collect(), numbers)
}

fn has_priorities(setup: &Setup) -> bool {
    setup.traffic.windows(2).any(|pair| pair[0].class != pair[1].class)
}

fn switches(setup: &Setup) -> (Vec<Switch>, Vec<u32>) {
    let topology = &setup.topology;
    let mut places = vec![0; topology.links.len() * 2];
    let mut own: Vec<Vec<u32>> = vec![Vec::new(); topology.nodes.len()];
    for port in topology.directed() {
        let ports = &mut own[topology.from(port).index()];
        places[port.index()] = ports.len() as u32;
        ports.push(port.0);
    }
    let switches = topology.switches().map(|node| Switch::new(setup.switches, std::mem::take(&mut own[node.index()])));
    (switches.collect(), places)
}

fn hosts(setup: &Setup) -> Vec<Host> {
    let topology = &setup.topology;
    let mut access = vec![0; topology.nodes.len()];
    for port in topology.directed() {
        access[topology.from(port).index()] = port.0;
    }
    let mixed = has_priorities(setup);
    let host = |node: NodeId| {
        let random = Random::new(setup.seed, HOST_STREAM + u64::from(node.0));
        Host::new(node, access[node.index()], mixed, setup.host_latency, random)
    };
    topology.hosts().map(host).collect()
}
