//! Builds a network from its setup.

use std::collections::BTreeMap;

use faults::{FaultSchedule, Random};
use units::{Span, Time};

use super::events::NetworkEvent;
use super::fabric::NetworkFabric;
use super::flows::Flows;
use super::host::{Hosts, SimHost};
use super::index::{HostId, IndexVec, SwitchId};
use super::marking::MarkingPoint;
use super::observe::RunObservations;
use super::packet::{Packets, Tags};
use super::pfc::slowest_host;
use super::port::{Owner, Queues, SimPort};
use super::processor::RunningProcessor;
use super::programs::NetworkProgram;
use super::protected::LinkActions;
use super::reserving_host::RackNic;
use super::rules::SwitchRules;
use super::setup::{LinkSetup, NetworkSetup};
use super::switch::{Ingress, Ports, SimSwitch};
use super::world::Network;
use crate::engine::EventQueue;
use crate::protocols::LinkSite;
use crate::topology::{DirectedLink, NodeId, NodeKind, Routes, Topology};

/// Streams of randomness, by what they are for, far enough apart that no number added reaches the next.
const MARKING_STREAM: u64 = 1;
const FLOW_STREAM: u64 = 2;
const FAULT_STREAM: u64 = 1 << 32;
const RECOVERY_STREAM: u64 = 2 << 32;
const HOST_STREAM: u64 = 3 << 32;
const RACK_STREAM: u64 = 4 << 32;

impl<'p, P: NetworkProgram> Network<'p, P> {
    pub(super) fn new(setup: NetworkSetup, program: &'p mut P) -> Self {
        let rules = SwitchRules::new(&setup).map(Box::new);
        let ports = ports(&setup, program.watches_departures());
        let (switches, ingress) = switches(&setup);
        let routes = Routes::chosen_by(&setup.topology, setup.profile.route_hash());
        let mut fabric = NetworkFabric::new(routes, ports, ingress, switches);
        fabric.profile = setup.profile;
        fabric.rules = rules;
        for port in &setup.capture {
            fabric.ports[*port].watched = true;
        }
        let mut queue = EventQueue::default();
        for link in &setup.links {
            set_faults(&mut fabric, link, setup.seed);
            protect(&mut fabric, &mut queue, link, &setup);
        }
        let hosts = Hosts::new(hosts(&setup), setup.topology.nodes.len());
        for (at, node) in &setup.dead {
            queue.schedule(*at, NetworkEvent::HostDies { host: hosts.at(*node) });
        }
        let observed = RunObservations::new(setup.sampling.clone(), setup.traffic.len(), setup.rtt);
        let random = Random::new(setup.seed, MARKING_STREAM);
        let int = setup.int.as_ref().map(|int| (int.charge, int.room));
        let (base_rtt, until, seed) = (setup.base_rtt, setup.until, setup.seed);
        let flows = Flows::new(setup, Random::new(seed, FLOW_STREAM));
        Self {
            queue,
            hosts,
            flows,
            fabric,
            observed,
            packets: Packets::new(),
            tags: Tags::default(),
            echoes: Tags::default(),
            int,
            base_rtt,
            held: BTreeMap::new(),
            program,
            program_wakes: Time::NEVER,
            link_actions: LinkActions::default(),
            random,
            until,
        }
    }
}

fn set_faults(fabric: &mut NetworkFabric, link: &LinkSetup, seed: u64) {
    let set = |fabric: &mut NetworkFabric, port: DirectedLink, schedule: &FaultSchedule| {
        if !schedule.steps().is_empty() {
            let running = schedule.run(seed, FAULT_STREAM + u64::from(port.0));
            fabric.ports[port].faults = Some(Box::new(running));
        }
    };
    set(fabric, link.link.forward(), &link.forward);
    set(fabric, link.link.backward(), &link.reverse);
}

fn protect(fabric: &mut NetworkFabric, queue: &mut EventQueue<NetworkEvent>, link: &LinkSetup, setup: &NetworkSetup) {
    let id = link.link;
    let site = LinkSite {
        id,
        link: *setup.topology.link(id),
        pipeline: setup.switch_latency,
        dormant: link.activate_at.is_some(),
        random: Random::new(setup.seed, RECOVERY_STREAM + u64::from(id.0)),
    };
    let Some(protected) = link.protection.protect(site) else { return };
    fabric.links[id] = Some(Box::new(protected));
    for port in [id.forward(), id.backward()] {
        let port = &mut fabric.ports[port];
        port.protected = true;
        port.queues.get_or_insert_default();
    }
    if let Some(at) = link.activate_at {
        queue.schedule(Time::ZERO + at, NetworkEvent::Activate { link: id });
    }
}

/// The owner of the ports of each node.
fn owners(topology: &Topology) -> IndexVec<NodeId, Owner> {
    let (mut hosts, mut switches) = (0.., 0..);
    let owner = |kind| match kind {
        NodeKind::Host => Owner::of_host(HostId(hosts.next().unwrap_or_default())),
        NodeKind::Switch => Owner::of_switch(SwitchId(switches.next().unwrap_or_default())),
    };
    topology.nodes.iter().map(|node| node.kind).map(owner).collect()
}

fn ports(setup: &NetworkSetup, departures: bool) -> Ports {
    let topology = &setup.topology;
    let owners = owners(topology);
    let marks_departures = setup.marking.is_some_and(|marking| marking.at == MarkingPoint::Departure);
    let pauses = setup.switches.pfc.is_some();
    let queued = setup.no_express || setup.queues || departures || marks_departures || pauses || has_priorities(setup);
    let sampled = setup.sampling.iter().flat_map(|sampling| &sampling.ports);
    let watched: Vec<DirectedLink> = sampled.chain(&setup.capture).copied().collect();
    let port = |at| {
        let (from, to) = (topology.from(at), topology.to(at));
        let link = topology.link(at.link());
        let latency = if topology.is_host(to) { Span::ZERO } else { setup.switch_latency };
        let mut port = SimPort::new(link.rate, link.delay + latency, owners[from]);
        port.framing = setup.profile.framing();
        if !topology.is_host(from) {
            if let Some(marking) = setup.marking {
                port.mark(marking.for_port(link.rate));
            }
            // Queues that are sampled during the run must exist by then.
            if queued || watched.contains(&at) {
                let mut queues = Box::<Queues>::default();
                queues.levels = setup.queues.then(Box::default);
                port.queues = Some(queues);
            }
        }
        port
    };
    topology.directed().map(port).collect()
}

fn has_priorities(setup: &NetworkSetup) -> bool {
    let mut classes =
        setup.traffic.iter().flat_map(|traffic| [traffic.class, traffic.ack_class.unwrap_or(traffic.class)]);
    let first = classes.next();
    classes.any(|class| Some(class) != first) || setup.traffic.iter().any(|traffic| traffic.transport.has_levels())
}

/// All switches, and the ingress state of each port.
fn switches(setup: &NetworkSetup) -> (IndexVec<SwitchId, SimSwitch>, IndexVec<DirectedLink, Ingress>) {
    let topology = &setup.topology;
    let mut own: IndexVec<NodeId, Vec<DirectedLink>> = topology.nodes.iter().map(|_| Vec::new()).collect();
    for port in topology.directed() {
        own[topology.from(port)].push(port);
    }
    let (pfc, hosts) = (setup.switches.pfc, slowest_host(topology));
    let share = |port: DirectedLink| pfc.map(|pfc| pfc.share(topology.link(port.link()), hosts)).unwrap_or_default();
    let switch = |node| {
        let ports = std::mem::take(&mut own[node]);
        let kept = ports.iter().map(|port| share(*port).kept()).sum();
        SimSwitch::new(setup.switches, ports, kept)
    };
    let switches = topology.switches().map(switch).collect();
    (switches, topology.directed().map(|port| Ingress::new(share(port))).collect())
}

fn hosts(setup: &NetworkSetup) -> IndexVec<HostId, SimHost> {
    let topology = &setup.topology;
    let mut access: IndexVec<NodeId, DirectedLink> = topology.nodes.iter().map(|_| DirectedLink(0)).collect();
    for port in topology.directed() {
        access[topology.from(port)] = port;
    }
    let mixed = has_priorities(setup);
    let host = |node: NodeId| {
        let random = Random::new(setup.seed, HOST_STREAM + u64::from(node.0));
        let mut host = SimHost::new(node, access[node], mixed, setup.host_latency, random);
        host.newcomers_first = setup.profile.newcomers_first();
        host.processor = setup.processor.map(|terms| Box::new(RunningProcessor::new(terms)));
        host
    };
    let mut hosts: IndexVec<HostId, SimHost> = topology.hosts().map(host).collect();
    if let Some(rack) = &setup.rack {
        for id in hosts.numbers() {
            let random = Random::new(setup.seed, RACK_STREAM + u64::from(id.0));
            hosts[id].reserve(rack.params.contexts, RackNic::new(rack, id, random));
        }
    }
    hosts
}
