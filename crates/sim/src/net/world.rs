//! The network at work: its parts, and the loop that takes events in their order.

use std::collections::BTreeMap;

use faults::Random;
use machine::SwitchProgram;
use units::Time;

use super::events::Event;
use super::fabric::Fabric;
use super::flows::Flows;
use super::host::{Host, Hosts};
use super::index::PacketId;
use super::observe::Observed;
use super::outcome::Outcome;
use super::packet::{Packet, Packets, Tags};
use super::protected::LinkActions;
use crate::engine::Queue;
use crate::link::Watch;
use crate::protocols::each_protocol;
use crate::topology::{DirectedLink, Unreachable};

/// How often a run looks up from its work.
const EVENTS_BETWEEN_LOOKS: u64 = 1 << 16;

/// A network: four owners, what is in flight between them, and the program of its switches.
#[derive(Debug)]
pub(super) struct Network<'p, P: SwitchProgram> {
    pub(super) queue: Queue<Event>,
    pub(super) fabric: Fabric,
    pub(super) hosts: Hosts,
    pub(super) flows: Flows,
    pub(super) observed: Observed,
    pub(super) packets: Packets,
    pub(super) tags: Tags<P::Tag>,
    /// Packets that switches hold for the program, each with the port that it was routed to.
    pub(super) held: BTreeMap<PacketId, DirectedLink>,
    pub(super) program: &'p mut P,
    /// When the program acts next, as far as an event is scheduled.
    pub(super) program_wakes: Time,
    pub(super) link_actions: LinkActions,
    /// For ECN marks.
    pub(super) random: Random,
    pub(super) until: Time,
}

impl<P: SwitchProgram<Frame = Packet>> Network<'_, P> {
    pub(super) fn run(mut self, watch: &dyn Watch) -> Result<Outcome, Unreachable> {
        for source in self.flows.sources.numbers() {
            self.schedule_next_flow(source, Time::ZERO);
        }
        if let Some(at) = self.observed.first_sample() {
            self.queue.schedule(at, Event::Sample);
        }
        self.wake_program(Time::ZERO);
        while let Some((now, event)) = self.queue.take() {
            if now > self.until {
                self.observed.outcome.ended = self.until;
                break;
            }
            self.observed.outcome.events += 1;
            self.observed.outcome.ended = now;
            self.handle(now, event)?;
            if self.observed.outcome.events.is_multiple_of(EVENTS_BETWEEN_LOOKS) && !self.goes_on(now, watch) {
                self.observed.outcome.interrupted = true;
                break;
            }
            if self.flows.are_over() {
                break;
            }
        }
        // Nothing happens any more, and flows still wait: until the end.
        if self.flows.active > 0 && self.queue.is_empty() && self.until != Time::NEVER {
            self.observed.outcome.ended = self.until;
        }
        Ok(self.conclude())
    }

    /// Reports how far the run is, and asks whether it should go on.
    fn goes_on(&self, now: Time, watch: &dyn Watch) -> bool {
        if cfg!(debug_assertions) {
            self.check_invariants();
        }
        watch.simulated(now, self.share(now));
        watch.go_on(self.observed.outcome.flows.len() as u64)
    }

    /// About how much of the run is over: by its time, or by the bytes that have arrived where flows end it earlier.
    fn share(&self, now: Time) -> f64 {
        let by_time = now.as_ps() as f64 / self.until.as_ps().max(1) as f64;
        let received = self.observed.received.iter().sum::<u64>() as f64;
        let expected = self.flows.expected_bytes().filter(|bytes| *bytes > 0.0);
        by_time.max(expected.map_or(0.0, |bytes| received / bytes)).min(1.0)
    }

    #[inline]
    fn handle(&mut self, now: Time, event: Event) -> Result<(), Unreachable> {
        match event {
            Event::Arrive { packet } => self.arrive(now, packet),
            Event::Look { port } => self.look_again(now, port),
            Event::Interrupt { host } => {
                let at = self.hosts[host].interrupt(now);
                self.queue.schedule(at, Event::HostReceives { host });
            }
            Event::HostReceives { host } => self.host_receives(now, host),
            Event::PipeEnds { host, packet } => {
                self.hosts[host].piped();
                self.receive_one(now, host, packet);
            }
            Event::EndWakes { end } => self.end_wakes(now, end),
            Event::EndTimer { end, slot } => self.end_timer(now, end, slot),
            Event::LinkArrive { port, frame } => self.link_arrives(now, port, frame, false),
            Event::LinkActs { port, frame } => self.link_arrives(now, port, frame, true),
            Event::LinkTimer { port, slot } => self.with_link(now, port, |link, side, around| {
                each_protocol!(link, pair => pair.ring(side, around, slot));
            }),
            Event::Activate { link } => {
                self.with_link(now, link.forward(), |link, side, around| link.activate(side, around));
            }
            Event::Pause { port, class, hold } => self.pause(now, port, class, hold),
            Event::FlowStarts { traffic } => self.flow_starts(now, traffic)?,
            Event::Shake { connection } => self.shake_again(now, connection),
            Event::ProgramWakes => self.program_acts(now),
            Event::Sample => {
                if let Some(next) = self.observed.sample(now, &self.fabric, &self.hosts) {
                    self.queue.schedule(next, Event::Sample);
                }
            }
        }
        Ok(())
    }

    /// Every packet in flight belongs to a connection that waits for it, so that no number is used again too early.
    fn check_invariants(&self) {
        let waited_for: u64 = self.hosts.ends.iter().map(|end| end.made).sum();
        let ended: u64 = self.hosts.ends.iter().map(|end| end.ended).sum();
        assert_eq!(
            waited_for - ended,
            self.packets.count() as u64,
            "packets that connections wait for, and packets in flight"
        );
    }

    fn conclude(mut self) -> Outcome {
        if cfg!(debug_assertions) {
            self.check_invariants();
        }
        self.end_all_flows();
        let mut outcome = self.observed.outcome;
        outcome.ports = self.fabric.ports.iter().map(|port| port.counters).collect();
        outcome.packet_hops = outcome.ports.iter().map(|port| port.frames).sum();
        outcome.most_packets = self.packets.most();
        outcome.pfc_pauses = self.fabric.switches.iter().map(|switch| switch.pauses).sum();
        if let Some(rules) = &self.fabric.rules {
            outcome.ruled = rules.counts();
            outcome.expired = rules.expired;
        }
        outcome.pools = self.hosts.iter().filter_map(Host::pool_use).collect();
        for (link, protected) in self.fabric.links.enumerate() {
            if let Some(protected) = protected {
                outcome.links.push((link, each_protocol!(&**protected, pair => pair.tally())));
            }
        }
        outcome
    }
}
