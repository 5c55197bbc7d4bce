//! Iterations that lose nothing are counted, not simulated.
//!
//! With a barrier and nothing drawn, an iteration that finds the network as the one before found it is the same to the
//! picosecond, and crosses each link with the same number of frames. Losses are drawn ahead, so that it is known how many
//! iterations pass before the next: these are counted, and the loss falls where it would have fallen.
//!
//! ```text
//!   iteration ends ──alike two times──▶ steady ──like it, or all calm──▶ count up to the next loss ──▶ simulate that one
//! ```
//!
//! Alike means: every transfer arrived at the same time after the start, every port sent as many frames and is busy for as
//! long, and as many packets are in flight. Calm means that no packet is on its way and no sender waits. What depends on anything
//! else (draws, marks, other traffic, windows that adapt, values over time) is never shortened.

use collective::EndedIteration;
use congestion::ControllerConfig;
use faults::LossModel;
use units::{Span, Time};

use crate::net::index::TrafficId;
use crate::net::port::{PortCounters, SimPort};
use crate::net::programs::NetworkProgram;
use crate::net::setup::{HostLatency, LinkSetup, NetworkSetup};
use crate::net::world::Network;
use crate::workload::Workload;

/// Fewer iterations are all simulated: two alike must have been seen first.
const FEWEST: u32 = 4;

#[derive(Debug)]
pub(in crate::net) struct IterationShortcut {
    /// Digest of all arrivals since the last iteration began, and when that was.
    arrivals: u64,
    since: Time,
    /// Mark of the iteration before, if that lost nothing.
    last: Option<u64>,
    steady: Option<SteadyIteration>,
    /// Counters of all ports, and bytes received, when the last iteration began.
    ports: Vec<PortCounters>,
    received: u64,
}

/// An iteration that was like the one before it.
#[derive(Debug)]
struct SteadyIteration {
    mark: u64,
    /// Nothing was on its way when the next began.
    is_calm: bool,
    ended: EndedIteration,
    /// From its start to the next.
    apart: Span,
    /// Frames of each port, and their bytes; and bytes received.
    ports: Vec<PortCounters>,
    received: u64,
}

fn mix(mixed: u64, with: u64) -> u64 {
    (mixed ^ with).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31)
}

impl IterationShortcut {
    /// A shortcut for the only traffic of a network, if nothing there forbids it.
    pub(in crate::net) fn of(setup: &NetworkSetup) -> Option<Box<Self>> {
        let [traffic] = &setup.traffic[..] else { return None };
        let Workload::Job(work) = &traffic.work else { return None };
        let draws_nothing = matches!(setup.host_latency, HostLatency::None | HostLatency::Fixed(_))
            && setup.processor.is_none()
            && setup.marking.is_none()
            && setup.rack.is_none()
            && setup.rules.is_empty()
            && setup.dead.is_empty()
            && setup.links.iter().all(counts_frames);
        let watches_nothing = setup.sampling.is_none()
            && setup.radar.is_none()
            && setup.capture.is_empty()
            && !setup.queues
            && !setup.rtt
            && !setup.rows.transfers
            && !work.has_flows;
        let adapts_nothing = traffic.transport.is_rdma() && traffic.transport.congestion() == ControllerConfig::None;
        let repeats = work.job.barrier && work.job.iterations >= FEWEST;
        let may = !setup.exact && draws_nothing && watches_nothing && adapts_nothing && repeats;
        may.then(|| {
            Box::new(Self { arrivals: 0, since: Time::ZERO, last: None, steady: None, ports: Vec::new(), received: 0 })
        })
    }

    /// A transfer has arrived.
    pub(super) fn arrival(&mut self, now: Time, transfer: u32) {
        // A sum: what arrives at the same time may do so in any order.
        self.arrivals = self.arrivals.wrapping_add(mix(u64::from(transfer) + 1, now.since(self.since).as_ps()));
    }
}

/// True if losses on a link depend on the number of frames alone.
fn counts_frames(link: &LinkSetup) -> bool {
    let is_counted = |(at, model): &(Span, LossModel)| *at == Span::ZERO && !matches!(model, LossModel::PerBit(_));
    let schedules = [&link.forward, &link.reverse];
    schedules.iter().all(|faults| faults.steps().len() <= 1 && faults.steps().iter().all(is_counted))
        && link.activate_at.is_none()
}

impl<P: NetworkProgram> Network<'_, P> {
    /// The next iteration is about to begin: counts those to come that are like the steady one, if the network is as it was
    /// then. Everything that happened at the time of the last arrival has happened by now, in any order.
    pub(super) fn shorten(&mut self, now: Time, traffic: TrafficId, ended: &EndedIteration, quiet: bool) {
        let Some(mut shortcut) = self.flows.sources[traffic].job.as_mut().and_then(|job| job.shortcut.take()) else {
            return;
        };
        let (mark, is_calm) = (self.mark(now, &shortcut), self.packets.count() == 0 && self.flows.active == 0);
        let last = shortcut.last.take();
        shortcut.last = quiet.then_some(mark);
        if quiet && last == Some(mark) && shortcut.steady.as_ref().is_none_or(|steady| steady.mark != mark) {
            shortcut.steady = Some(self.steady(now, traffic, ended, &shortcut, (mark, is_calm)));
        }
        let like = |steady: &&SteadyIteration| quiet && steady.mark == mark || is_calm && steady.is_calm;
        if let Some(steady) = shortcut.steady.as_ref().filter(like) {
            self.count_iterations(now, traffic, ended.iteration, steady);
        }
        shortcut.ports.clear();
        shortcut.ports.extend(self.fabric.ports.iter().map(|port| port.counters));
        shortcut.received = self.observed.received[traffic];
        (shortcut.arrivals, shortcut.since) = (0, now);
        if let Some(job) = &mut self.flows.sources[traffic].job {
            job.shortcut = Some(shortcut);
        }
    }

    /// Digest of the iteration that has ended and of what it left.
    fn mark(&self, now: Time, shortcut: &IterationShortcut) -> u64 {
        let mut mark = mix(shortcut.arrivals, now.since(shortcut.since).as_ps());
        mark = mix(mark, self.packets.count() as u64);
        for (at, port) in self.fabric.ports.iter().enumerate() {
            let before = shortcut.ports.get(at).map_or(0, |counters| counters.frames);
            mark = mix(mark, port.counters.frames - before);
            mark = mix(mark, port.busy_until.since(now).as_ps());
        }
        mark
    }

    fn steady(
        &self,
        now: Time,
        traffic: TrafficId,
        ended: &EndedIteration,
        shortcut: &IterationShortcut,
        (mark, is_calm): (u64, bool),
    ) -> SteadyIteration {
        let since = |(port, before): (&SimPort, &PortCounters)| PortCounters {
            frames: port.counters.frames - before.frames,
            wire_bytes: port.counters.wire_bytes - before.wire_bytes,
            idle_bytes: port.counters.idle_bytes - before.idle_bytes,
            ..PortCounters::default()
        };
        SteadyIteration {
            mark,
            is_calm,
            ended: *ended,
            apart: now.since(ended.started),
            ports: self.fabric.ports.iter().zip(&shortcut.ports).map(since).collect(),
            received: self.observed.received[traffic] - shortcut.received,
        }
    }

    /// Counts iterations like a steady one behind that of this number, up to the next loss or the last iteration.
    fn count_iterations(&mut self, now: Time, traffic: TrafficId, behind: u32, steady: &SteadyIteration) {
        let Some(job) = &self.flows.sources[traffic].job else { return };
        let apart = steady.apart;
        let in_time = self.until.since(now).as_ps() / apart.as_ps().max(1);
        let left = job.run.job().iterations - job.run.complete();
        let mut count = u64::from(left.saturating_sub(1)).min(in_time);
        for (at, each) in self.fabric.ports.numbers().zip(&steady.ports).filter(|(_, each)| each.frames > 0) {
            if let Some(faults) = &mut self.fabric.ports[at].faults {
                count = count.min(faults.at(now).clear(0) / each.frames);
            }
        }
        if count == 0 {
            return;
        }
        for (at, each) in self.fabric.ports.numbers().zip(&steady.ports) {
            let port = &mut self.fabric.ports[at];
            if let Some(faults) = port.faults.as_mut().filter(|_| each.frames > 0) {
                faults.at(now).pass(each.frames * count, 0);
            }
            port.counters.frames += each.frames * count;
            port.counters.wire_bytes += each.wire_bytes * count;
            port.counters.idle_bytes += each.idle_bytes * count;
        }
        self.observed.received[traffic] += steady.received * count;
        if self.until != Time::NEVER {
            self.until = Time::ZERO + self.until.since(Time::ZERO + apart * count);
        }
        if let Some(job) = &mut self.flows.sources[traffic].job {
            job.run.skip(count as u32);
            // As if the steady one had just ended.
            let time = steady.ended.ended.since(steady.ended.started);
            let started = Time::ZERO + now.since(Time::ZERO + apart);
            let like = EndedIteration { iteration: behind, started, ended: started + time, ..steady.ended };
            job.tally.skip(&like, count as u32, apart);
        }
    }
}
