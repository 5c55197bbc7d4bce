//! The network at work: its parts, and the loop that takes events in their order.

use std::collections::BTreeMap;

use faults::Random;
use guard::endpoint::Command;
use machine::SwitchProgram;
use units::Time;

use super::end::End;
use super::events::Event;
use super::flows::{FlowState, Shared, Source};
use super::host::Host;
use super::outcome::Outcome;
use super::packet::{Packet, Packets, Tags};
use super::port::Port;
use super::protect::{Protected, Surroundings, each};
use super::rules::Rules;
use super::sampling::Sampler;
use super::switch::Switch;
use crate::engine::Queue;
use crate::link::Watch;
use crate::topology::{Routes, Unreachable};

/// How often a run looks up from its work.
const EVENTS_BETWEEN_LOOKS: u64 = 1 << 16;

#[derive(Debug)]
pub struct Network<'p, P: SwitchProgram> {
    pub(super) program: &'p mut P,
    pub(super) routes: Routes,
    pub(super) queue: Queue<Event>,
    pub(super) packets: Packets,
    pub(super) tags: Tags<P::Tag>,
    pub(super) ports: Vec<Port>,
    /// The place of each port among those of its switch.
    pub(super) places: Vec<u32>,
    pub(super) switches: Vec<Switch>,
    pub(super) hosts: Vec<Host>,
    /// The host or switch that a node is, by number.
    pub(super) numbers: Vec<u32>,
    /// By link.
    pub(super) links: Vec<Option<Box<Protected>>>,
    /// Where packets go, hop by hop: a port, or a host with its highest bit set.
    pub(super) hops: Vec<u32>,
    /// Whether TCP connections begin with a handshake.
    pub(super) handshakes: bool,
    /// What tables of switches say that they should not.
    pub(super) rules: Option<Box<Rules>>,
    pub(super) ends: Vec<End>,
    pub(super) flows: Vec<FlowState>,
    /// Queue pairs that flows share, with their places.
    pub(super) standing: BTreeMap<Shared, u32>,
    pub(super) sources: Vec<Source>,
    /// Flows that have not ended, those still to begin not counted.
    pub(super) active: usize,
    /// Places of flows that are over and whose last packet has ended.
    pub(super) vacant: Vec<u32>,
    pub(super) random: Random,
    pub(super) flow_random: Random,
    /// What a link protocol did to packets, until it is dealt with.
    pub(super) taken: Vec<u32>,
    pub(super) kept: Vec<(u32, u32)>,
    pub(super) sent: Vec<(u32, bool)>,
    pub(super) delivered: Vec<u32>,
    pub(super) released: Vec<u32>,
    pub(super) sampler: Sampler,
    /// Payload that has arrived in order, by traffic.
    pub(super) received: Vec<u64>,
    pub(super) retransmitted: u64,
    pub(super) timeouts: u64,
    pub(super) outcome: Outcome,
    pub(super) until: Time,
    /// Flows that have begun.
    pub(super) begun: u32,
}

impl<P: SwitchProgram<Frame = Packet>> Network<'_, P> {
    pub fn run(mut self, watch: &dyn Watch) -> Result<Outcome, Unreachable> {
        for source in 0..self.sources.len() {
            self.schedule_next_flow(source as u32, Time::ZERO);
        }
        if let Some(at) = self.sampler.first() {
            self.queue.schedule(at, Event::Sample);
        }
        while let Some((now, event)) = self.queue.take() {
            if now > self.until {
                self.outcome.ended = self.until;
                break;
            }
            self.outcome.events += 1;
            self.outcome.ended = now;
            self.handle(now, event)?;
            if self.outcome.events.is_multiple_of(EVENTS_BETWEEN_LOOKS) {
                watch.simulated(now, self.share(now));
                if !watch.go_on(self.outcome.flows.len() as u64) {
                    self.outcome.interrupted = true;
                    break;
                }
            }
            if self.active == 0 && self.sources.iter().all(Source::is_exhausted) {
                break;
            }
        }
        // Nothing happens any more, and somebody still waits: until the end.
        if self.active > 0 && self.queue.is_empty() && self.until != Time::NEVER {
            self.outcome.ended = self.until;
        }
        Ok(self.conclude())
    }

    /// About how much of the run is over: by its time, or by the bytes that have arrived where flows end it earlier.
    fn share(&self, now: Time) -> f64 {
        let by_time = now.as_ps() as f64 / self.until.as_ps().max(1) as f64;
        let expected: Option<f64> = self.sources.iter().map(Source::expected_bytes).sum();
        let received = self.received.iter().sum::<u64>() as f64;
        let by_bytes = expected.filter(|bytes| *bytes > 0.0).map_or(0.0, |bytes| received / bytes);
        by_time.max(by_bytes).min(1.0)
    }

    #[inline]
    fn handle(&mut self, now: Time, event: Event) -> Result<(), Unreachable> {
        match event {
            Event::Arrive { packet } => self.arrive(now, packet),
            Event::Look { port } => self.look_again(now, port),
            Event::HostTold { host } => {
                let at = self.hosts[host as usize].tell(now);
                self.queue.schedule(at, Event::HostReceives { host });
            }
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
            Event::Shake { place } => self.shake_again(now, place),
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
            kept: &mut self.kept,
            tagged: Tags::<P::Tag>::ANY,
            taken: &mut self.taken,
            sent: &mut self.sent,
            delivered: &mut self.delivered,
            released: &mut self.released,
        };
        act(link, port as usize % 2, &mut around);
        while let Some((packet, copy)) = self.kept.pop() {
            self.tags.copy(packet, copy);
        }
        self.leave_queue(now, port);
        while let Some((packet, corrupted)) = self.sent.pop() {
            self.capture(now, port, packet, corrupted);
        }
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

    fn conclude(mut self) -> Outcome {
        self.end_all_flows();
        self.outcome.ports = self.ports.iter().map(|port| port.counters).collect();
        self.outcome.packet_hops = self.outcome.ports.iter().map(|port| port.frames).sum();
        self.outcome.most_packets = self.packets.most();
        self.outcome.pfc_pauses = self.switches.iter().map(|switch| switch.pauses).sum();
        if let Some(rules) = &self.rules {
            self.outcome.ruled = rules.counts();
            self.outcome.expired = rules.expired;
        }
        self.outcome.pools = self.hosts.iter().filter_map(Host::pool_use).collect();
        for (link, protected) in self.links.iter().enumerate() {
            if let Some(protected) = protected {
                self.outcome.links.push((link as u32, each!(&**protected, pair => pair.tally())));
            }
        }
        self.outcome
    }
}
