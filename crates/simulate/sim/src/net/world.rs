//! The network at work: its parts, and the loop that takes events in their order.

use std::collections::BTreeMap;
use std::hint::black_box;

use faults::Random;
use reserve::HostCounters;
use units::{Progress, Span, Time};

use super::events::NetworkEvent;
use super::fabric::NetworkFabric;
use super::flows::Flows;
use super::host::{Hosts, SimHost};
use super::index::{EndId, PacketId};
use super::observe::RunObservations;
use super::outcome::NetworkOutcome;
use super::packet::{Packets, Tags};
use super::programs::NetworkProgram;
use super::protected::LinkActions;
use super::setup::IntCharge;
use crate::engine::EventQueue;
use crate::protocols::each_protocol;
use crate::topology::{DirectedLink, Unreachable};

/// Events between two checks for an interruption.
const EVENTS_BETWEEN_LOOKS: u64 = 1 << 16;

/// A network: four owners, what is in flight between them, and the program of its switches.
#[derive(Debug)]
pub(super) struct Network<'p, P: NetworkProgram> {
    pub(super) queue: EventQueue<NetworkEvent>,
    pub(super) fabric: NetworkFabric,
    pub(super) hosts: Hosts,
    pub(super) flows: Flows,
    pub(super) observed: RunObservations,
    pub(super) packets: Packets,
    pub(super) tags: Tags<P::Tag>,
    /// Tag of the latest data packet that collected telemetry, by end, for its acknowledgement.
    pub(super) echoes: Tags<P::Tag, EndId>,
    /// Charge for telemetry, if there is any.
    pub(super) int: Option<(IntCharge, [u16; 2])>,
    /// T of congestion control, if it is the same for all.
    pub(super) base_rtt: Option<Span>,
    /// Packets that switches hold for the program, each with the port that it was routed to.
    pub(super) held: BTreeMap<PacketId, DirectedLink>,
    pub(super) program: &'p mut P,
    /// Time of the program's next action for which an event is scheduled.
    pub(super) program_wakes: Time,
    pub(super) link_actions: LinkActions,
    /// Randomness of ECN marks.
    pub(super) random: Random,
    pub(super) until: Time,
}

impl<P: NetworkProgram> Network<'_, P> {
    pub(super) fn run(mut self, progress: &dyn Progress) -> Result<NetworkOutcome, Unreachable> {
        if self.flows.has_jobs {
            self.bound_jobs()?;
        }
        for source in self.flows.sources.numbers() {
            self.schedule_next_flow(source, Time::ZERO);
        }
        if let Some(at) = self.observed.first_sample() {
            self.queue.schedule(at, NetworkEvent::Sample);
        }
        self.wake_program(Time::ZERO);
        let end = self.until;
        let mut turn = 0;
        while let Some((now, event)) = self.queue.take() {
            if turn != self.queue.turn() {
                turn = self.queue.turn();
                self.read_ahead();
            }
            if now > self.until {
                self.observed.outcome.ended = self.until;
                break;
            }
            self.observed.outcome.events += 1;
            self.observed.outcome.ended = now;
            self.handle(now, event)?;
            if self.observed.outcome.events.is_multiple_of(EVENTS_BETWEEN_LOOKS) && !self.goes_on(now, progress) {
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
        let skipped = self.skipped();
        self.observed.outcome.ended = (self.observed.outcome.ended + skipped).min(end);
        Ok(self.conclude())
    }

    /// Prefetches the packets that arrive next. Independent reads wait for memory together, so their arrival finds them in the
    /// cache.
    fn read_ahead(&self) {
        for event in self.queue.opened() {
            if let NetworkEvent::Arrive { packet, .. } = event {
                black_box(*self.packets.get(*packet));
            }
        }
        if !Tags::<P::Tag>::ANY {
            return;
        }
        for event in self.queue.opened() {
            if let NetworkEvent::Arrive { packet, .. } = event
                && self.packets.get(*packet).body.collects_telemetry()
            {
                black_box(*self.tags.get(*packet));
            }
        }
    }

    /// Reports how far the run is, and asks whether it should go on.
    fn goes_on(&self, now: Time, progress: &dyn Progress) -> bool {
        if cfg!(debug_assertions) {
            self.check_invariants();
        }
        progress.simulated(now, self.share(now));
        progress.go_on(self.observed.outcome.flows.len() as u64)
    }

    /// Estimated share of the run that is over: by its time, or by the bytes that have arrived if flows may end it earlier.
    fn share(&self, now: Time) -> f64 {
        let by_time = now.as_ps() as f64 / self.until.as_ps().max(1) as f64;
        let received = self.observed.received.iter().sum::<u64>() as f64;
        let expected = self.flows.expected_bytes().filter(|bytes| *bytes > 0.0);
        by_time.max(expected.map_or(0.0, |bytes| received / bytes)).min(1.0)
    }

    #[inline]
    fn handle(&mut self, now: Time, event: NetworkEvent) -> Result<(), Unreachable> {
        match event {
            NetworkEvent::Arrive { packet, hop } => self.arrive(now, packet, hop),
            NetworkEvent::Look { port } => self.look_again(now, port),
            NetworkEvent::Interrupt { host } if self.hosts[host].processor.is_some() => self.poll(now, host),
            NetworkEvent::HostReceives { host } if self.hosts[host].processor.is_some() => self.polled(now, host),
            NetworkEvent::Interrupt { host } => {
                let at = self.hosts[host].interrupt(now);
                self.queue.schedule(at, NetworkEvent::HostReceives { host });
            }
            NetworkEvent::HostReceives { host } => self.host_receives(now, host),
            NetworkEvent::PipeEnds { host, packet } => {
                self.hosts[host].piped();
                self.receive_one(now, host, packet);
            }
            NetworkEvent::HostWakes { host } => self.host_wakes(now, host),
            NetworkEvent::EndTimer { end, slot } => self.end_timer(now, end, slot),
            NetworkEvent::LinkArrive { port, frame } => self.link_arrives(now, port, frame, false),
            NetworkEvent::LinkActs { port, frame } => self.link_arrives(now, port, frame, true),
            NetworkEvent::LinkTimer { port, slot } => self.with_link(now, port, |link, side, around| {
                each_protocol!(link, pair => pair.ring(side, around, slot));
            }),
            NetworkEvent::Activate { link } => {
                self.with_link(now, link.forward(), |link, side, around| link.activate(side, around));
            }
            NetworkEvent::Pause { port, class, hold, hops } => self.pause(now, port, class, hold.then_some(hops)),
            NetworkEvent::FlowStarts { traffic } => self.flow_starts(now, traffic)?,
            NetworkEvent::Shake { connection } => self.shake_again(now, connection),
            NetworkEvent::RackTimer { host, slot } => self.rack_timer(now, host, slot),
            NetworkEvent::RackAnswers { host, packet } => self.rack_answers(now, host, packet),
            NetworkEvent::ThreadIsFree { host, lane } => self.thread_is_free(now, host, lane),
            NetworkEvent::HostDies { host } => self.hosts[host].dead = true,
            NetworkEvent::ProgramWakes => self.program_acts(now),
            NetworkEvent::Sample => {
                self.count_arrived();
                if let Some(next) = self.observed.sample(now, &self.fabric, &self.hosts) {
                    self.queue.schedule(next, NetworkEvent::Sample);
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

    fn conclude(mut self) -> NetworkOutcome {
        if cfg!(debug_assertions) {
            self.check_invariants();
        }
        self.end_all_flows();
        let jobs = self.conclude_jobs();
        let mut outcome = self.observed.finish();
        outcome.jobs = jobs;
        outcome.ports = self.fabric.ports.iter().map(|port| port.counters).collect();
        outcome.host_bytes = self.hosts.iter().map(|host| outcome.ports[host.port.reversed().index()].wire_bytes).sum();
        outcome.packet_hops = outcome.ports.iter().map(|port| port.frames).sum();
        outcome.most_packets = self.packets.most();
        outcome.queues = self.fabric.queue_lengths(outcome.ended);
        outcome.pfc = self.fabric.pause_totals(outcome.ended);
        outcome.pfc_pauses = self.fabric.switches.iter().map(|switch| switch.pauses).sum();
        if let Some(rules) = &self.fabric.rules {
            outcome.ruled = rules.counts();
            outcome.expired = rules.expired;
        }
        outcome.rack_hosts = self.hosts.iter().filter_map(|host| host.rack.as_ref()).map(|rack| rack.counters()).fold(
            HostCounters::default(),
            |mut sum, counters| {
                sum += counters;
                sum
            },
        );
        outcome.pools = self.hosts.iter().filter_map(SimHost::pool_use).collect();
        for (link, protected) in self.fabric.links.enumerate() {
            if let Some(protected) = protected {
                outcome.links.push((link, each_protocol!(&**protected, pair => pair.tally())));
            }
        }
        outcome
    }
}
