//! The network at work: its parts, and the loop that takes events in their order.

use faults::Random;
use guard::endpoint::Command;
use guard::{Endpoint, fec, llr};
use machine::{Lane, SwitchProgram};
use units::{Span, Time};

use super::end::End;
use super::events::Event;
use super::flows::{FlowState, Source};
use super::host::Host;
use super::outcome::{Outcome, PortSample, Sample};
use super::packet::{Handle, Packet, Packets};
use super::port::{Port, Queues};
use super::protect::{Pair, Protected, Surroundings, each};
use super::setup::{Protection, Sampling, Setup};
use super::switch::Switch;
use crate::engine::Queue;
use crate::hardware::Hardware;
use crate::link::{Config, Mode, Profile, Watch};
use crate::topology::{Kind, LinkId, Routes, Topology, Unreachable};

/// How often a run looks up from its work.
const EVENTS_BETWEEN_LOOKS: u64 = 1 << 16;

/// Streams of randomness, by what they are for; links and hosts add their number.
const LINK_STREAM: u64 = 1_000;
const HOST_STREAM: u64 = 1_000_000;
const MARKING_STREAM: u64 = 1;
pub const FLOW_STREAM: u64 = 2;

#[derive(Debug)]
pub struct Network<'p, P> {
    pub(super) program: &'p mut P,
    pub(super) topology: Topology,
    pub(super) routes: Routes,
    pub(super) queue: Queue<Event>,
    pub(super) packets: Packets,
    pub(super) ports: Vec<Port>,
    /// The place of each port among those of its switch.
    pub(super) places: Vec<u16>,
    pub(super) switches: Vec<Switch>,
    pub(super) hosts: Vec<Host>,
    /// The host or switch that a node is, by number.
    pub(super) numbers: Vec<u32>,
    /// By link.
    pub(super) links: Vec<Option<Box<Protected>>>,
    /// Where packets go, hop by hop: a port, or a host with its highest bit set.
    pub(super) hops: Vec<u32>,
    pub(super) ends: Vec<End>,
    pub(super) flows: Vec<FlowState>,
    pub(super) sources: Vec<Source>,
    /// Flows that have not ended, those still to begin not counted.
    pub(super) active: usize,
    /// Places of flows that are over and whose last packet has ended.
    pub(super) vacant: Vec<u32>,
    pub(super) random: Random,
    pub(super) flow_random: Random,
    /// What a link protocol did to packets, until it is dealt with.
    pub(super) taken: Vec<u32>,
    delivered: Vec<u32>,
    released: Vec<u32>,
    sampling: Option<Sampling>,
    /// What port and flow counters were at the last sample.
    sampled: Vec<(u64, u64)>,
    pub(super) received: Vec<u64>,
    received_before: Vec<u64>,
    pub(super) retransmitted: u64,
    pub(super) timeouts: u64,
    repaired_before: (u64, u64),
    pub(super) outcome: Outcome,
    until: Time,
}

impl<'p, P: SwitchProgram<Frame = Packet>> Network<'p, P> {
    pub fn new(setup: Setup, program: &'p mut P) -> Result<Self, Unreachable> {
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
            ports,
            places,
            switches,
            hosts,
            numbers,
            links,
            hops: Vec::new(),
            ends: Vec::new(),
            flows: Vec::new(),
            sources: Vec::new(),
            active: 0,
            vacant: Vec::new(),
            random: Random::new(setup.seed, MARKING_STREAM),
            flow_random: Random::new(setup.seed, FLOW_STREAM),
            taken: Vec::new(),
            delivered: Vec::new(),
            released: Vec::new(),
            sampled: setup.sampling.iter().flat_map(|sampling| &sampling.ports).map(|_| (0, 0)).collect(),
            sampling: setup.sampling,
            received: vec![0; traffic],
            received_before: vec![0; traffic],
            retransmitted: 0,
            timeouts: 0,
            repaired_before: (0, 0),
            outcome: Outcome::default(),
            until: setup.until,
            topology: setup.topology,
        };
        for port in &setup.capture {
            network.ports[port.index()].watched = true;
        }
        for link in setup.links {
            network.set_faults(link.link, [&link.forward, &link.reverse], setup.seed);
            network.protect(link.link, &link.protection, link.activate_at, setup.switch_latency, setup.seed);
        }
        for traffic in setup.traffic {
            network.sources.push(Source::new(traffic));
        }
        Ok(network)
    }

    fn set_faults(&mut self, link: LinkId, schedules: [&faults::Schedule; 2], seed: u64) {
        for (port, schedule) in [link.forward(), link.backward()].into_iter().zip(schedules) {
            if !schedule.steps().is_empty() {
                let running = schedule.run(seed, LINK_STREAM + u64::from(port.0));
                self.ports[port.index()].faults = Some(Box::new(running));
            }
        }
    }

    fn protect(&mut self, link: LinkId, protection: &Protection, at: Option<Span>, pipeline: Span, seed: u64) {
        let spec = *self.topology.link(link);
        let random = Random::new(seed, LINK_STREAM / 2 + u64::from(link.0));
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

    pub fn run(mut self, watch: &dyn Watch) -> Result<Outcome, Unreachable> {
        for source in 0..self.sources.len() {
            self.schedule_next_flow(source as u32, Time::ZERO);
        }
        if let Some(sampling) = &self.sampling {
            self.queue.schedule(Time::ZERO + sampling.every, Event::Sample);
        }
        while let Some((now, event)) = self.queue.take() {
            if now > self.until {
                break;
            }
            self.outcome.events += 1;
            self.outcome.ended = now;
            self.handle(now, event)?;
            if self.outcome.events.is_multiple_of(EVENTS_BETWEEN_LOOKS) && !watch.go_on(self.outcome.flows.len() as u64)
            {
                self.outcome.interrupted = true;
                break;
            }
            if self.active == 0 && self.sources.iter().all(Source::is_exhausted) {
                break;
            }
        }
        Ok(self.conclude())
    }

    #[inline]
    fn handle(&mut self, now: Time, event: Event) -> Result<(), Unreachable> {
        match event {
            Event::Arrive { packet } => self.arrive(now, packet),
            Event::Look { port } => self.look_again(now, port),
            Event::HostReceives { host } => self.host_receives(now, host),
            Event::PipeEnds { host, packet } => {
                self.hosts[host as usize].piped();
                self.receive_one(now, host, packet);
            }
            Event::EndWakes { end } => self.end_wakes(now, end),
            Event::EndTimer { end, slot } => self.end_timer(now, end, slot),
            Event::LinkArrive { port, frame } => self.link_arrives(now, port, frame, false),
            Event::LinkActs { port, frame } => self.link_arrives(now, port, frame, true),
            Event::LinkTimer { port, slot } => self.with_link(now, port, |link, side, around| {
                each!(link, pair => pair.ring(side, around, slot));
            }),
            Event::Activate { link } => self.activate(now, link),
            Event::Pause { port, class, hold } => self.pause(now, port, class, hold),
            Event::FlowStarts { traffic } => self.flow_starts(now, traffic)?,
            Event::Sample => self.sample(now),
        }
        Ok(())
    }

    /// Lets the machine at the sending side of a port act, then sends its packets on their way.
    pub(super) fn with_link(
        &mut self,
        now: Time,
        port: u32,
        act: impl FnOnce(&mut Protected, usize, &mut Surroundings<'_>),
    ) {
        let link = &mut self.links[port as usize / 2];
        let Some(link) = link else { return };
        let mut around = Surroundings {
            now,
            at: port,
            port: &mut self.ports[port as usize],
            packets: &mut self.packets,
            queue: &mut self.queue,
            ends: &mut self.ends,
            taken: &mut self.taken,
            delivered: &mut self.delivered,
            released: &mut self.released,
        };
        act(link, port as usize % 2, &mut around);
        self.leave_queue(now, port);
        while let Some(packet) = self.released.pop() {
            self.discard(packet);
        }
        if !self.delivered.is_empty() {
            let mut delivered = std::mem::take(&mut self.delivered);
            for packet in delivered.drain(..) {
                self.packets.get_mut(packet).came_by = port ^ 1;
                self.arrive(now, packet);
            }
            self.delivered = delivered;
        }
    }

    /// A frame that left by `port` is for the machine that sends the other way.
    fn link_arrives(&mut self, now: Time, port: u32, frame: u32, slow: bool) {
        let mut later = None;
        self.with_link(now, port ^ 1, |link, side, around| {
            each!(link, pair => if slow { pair.act(side, around, frame) } else { later = pair.arrive(side, around, frame) });
        });
        if let Some(at) = later {
            self.queue.schedule(at, Event::LinkActs { port, frame });
        }
    }

    fn activate(&mut self, now: Time, link: u32) {
        self.with_link(now, link * 2, |link, side, around| {
            if let Protected::Guard(pair) = link {
                pair.command(side, around, Command::Activate);
            }
        });
    }

    fn sample(&mut self, now: Time) {
        let Some(sampling) = self.sampling.take() else { return };
        let mut ports = Vec::with_capacity(sampling.ports.len());
        for (at, before) in sampling.ports.iter().zip(&mut self.sampled) {
            let port = &self.ports[at.index()];
            let side = at.index() % 2;
            let levels = self.links[at.link().index()].as_ref().map(|link| each!(&**link, pair => pair.levels(side)));
            let (tx, rx) = levels.unwrap_or_default();
            let seen = (port.counters.wire_bytes, port.counters.dropped);
            ports.push(PortSample {
                wire_bytes: seen.0 - before.0,
                queue: port.backlog_bytes(now),
                tx_buffer: tx.get(),
                rx_buffer: rx.get(),
                dropped: seen.1 - before.1,
            });
            *before = seen;
        }
        let received = self.received.iter().zip(&self.received_before).map(|(now, before)| now - before).collect();
        self.received_before.clone_from(&self.received);
        let repaired = self.repaired();
        let (retransmitted, timeouts) = (repaired.0 - self.repaired_before.0, repaired.1 - self.repaired_before.1);
        self.repaired_before = repaired;
        self.outcome.samples.push(Sample { at: now, received, retransmitted, timeouts, ports });
        self.queue.schedule(now + sampling.every, Event::Sample);
        self.sampling = Some(sampling);
    }

    /// Segments sent again and timeouts so far.
    fn repaired(&self) -> (u64, u64) {
        let running = self.ends.iter().filter(|end| !end.over).map(|end| end.tally);
        running.fold((self.retransmitted, self.timeouts), |(segments, timeouts), tally| {
            (segments + u64::from(tally.retransmitted), timeouts + u64::from(tally.timeouts))
        })
    }

    fn conclude(mut self) -> Outcome {
        self.end_all_flows();
        self.outcome.ports = self.ports.iter().map(|port| port.counters).collect();
        self.outcome.packet_hops = self.outcome.ports.iter().map(|port| port.frames).sum();
        self.outcome.most_packets = self.packets.most();
        self.outcome.pfc_pauses = self.switches.iter().map(|switch| switch.pauses).sum();
        for (link, protected) in self.links.iter().enumerate() {
            if let Some(protected) = protected {
                self.outcome.links.push((link as u32, each!(&**protected, pair => pair.tally())));
            }
        }
        self.outcome
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
fn ports(setup: &Setup, watched: bool) -> (Vec<Port>, Vec<u32>) {
    let mut counts = [0; 2];
    let numbers: Vec<u32> = (setup.topology.nodes.iter())
        .map(|node| {
            let count = &mut counts[usize::from(node.kind == Kind::Host)];
            *count += 1;
            *count - 1
        })
        .collect();
    let topology = &setup.topology;
    let queued = setup.no_express || watched || setup.switches.pfc.is_some() || has_priorities(setup);
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
            if queued {
                port.queues = Some(Box::<Queues>::default());
            }
        }
        port
    };
    (topology.link_ids().flat_map(|link| [link.forward(), link.backward()]).map(port).collect(), numbers)
}

fn has_priorities(setup: &Setup) -> bool {
    setup.traffic.windows(2).any(|pair| pair[0].class != pair[1].class)
}

fn switches(setup: &Setup) -> (Vec<Switch>, Vec<u16>) {
    let topology = &setup.topology;
    let mut places = vec![0; topology.links.len() * 2];
    let mut own: Vec<Vec<u32>> = vec![Vec::new(); topology.nodes.len()];
    for port in topology.link_ids().flat_map(|link| [link.forward(), link.backward()]) {
        let ports = &mut own[topology.from(port).index()];
        places[port.index()] = ports.len() as u16;
        ports.push(port.0);
    }
    let switches = topology.switches().map(|node| Switch::new(setup.switches, std::mem::take(&mut own[node.index()])));
    (switches.collect(), places)
}

fn hosts(setup: &Setup) -> Vec<Host> {
    let topology = &setup.topology;
    let mut access = vec![0; topology.nodes.len()];
    for port in topology.link_ids().flat_map(|link| [link.forward(), link.backward()]) {
        access[topology.from(port).index()] = port.0;
    }
    let host = |node: crate::topology::NodeId| {
        let random = Random::new(setup.seed, HOST_STREAM + u64::from(node.0));
        Host::new(access[node.index()], setup.host_latency, random)
    };
    topology.hosts().map(host).collect()
}
