//! Jobs: transfers that wait for each other, and the connections that carry them.
//!
//! A transfer has arrived when the last of its messages is placed at its receiver, not when its sender knows. It is reported to
//! its [`JobRun`] there and then, with the account of its path; what becomes ready begins with one event, at the same time.
//! Connections of a job keep their paths and random numbers whatever is lost: these are drawn from what the connection is, and not
//! from the order in which connections begin, so that a run without losses can be held against it.

mod accuse;
mod bound;
mod losses;
mod shortcut;

use std::collections::VecDeque;

use collective::{
    EndedIteration, InputEvent, JobRun, JobTally, PathAccount, ReadyTransfer, RecoveredLoss, RowChoice, RunLengths,
    TransferArrival, TransferBefore, TransferRow,
};
use faults::Random;
use units::{Span, Time};

pub(super) use self::shortcut::IterationShortcut;
use super::flows::{SharedQp, row};
use super::index::{ConnectionId, HostId, PacketId, TrafficId};
use super::outcome::JobResult;
use super::programs::NetworkProgram;
use super::world::Network;
use crate::topology::{DirectedLink, NodeId, Unreachable};
use crate::workload::{JobWork, WorkloadFlow};

/// Randomness of connections that jobs use.
const JOB_STREAM: u64 = 5 << 32;

/// Packets of a connection that a host takes as long for.
const ALIKE: u64 = 16;

/// A job at work.
#[derive(Debug)]
pub(super) struct RunningJob {
    pub run: JobRun,
    pub tally: JobTally,
    hosts: Vec<NodeId>,
    has_flows: bool,
    /// Bytes of all iterations.
    pub total_bytes: f64,
    /// Latest loss of any of its packets, and iterations that were complete then.
    latest_loss: Option<(u32, RecoveredLoss)>,
    /// The iteration that ended last, until the next begins, and whether it lost nothing.
    ended: Option<(EndedIteration, bool)>,
    /// Present if iterations may be counted instead of simulated.
    shortcut: Option<Box<IterationShortcut>>,
    /// The earliest event that is scheduled for it.
    scheduled: Time,
}

impl RunningJob {
    pub(super) fn new(
        work: &JobWork,
        baseline: Option<RunLengths>,
        rows: RowChoice,
        shortcut: Option<Box<IterationShortcut>>,
    ) -> Self {
        let job = work.job.clone();
        let tally = JobTally::new(baseline, rows, job.barrier, job.compute);
        Self {
            run: JobRun::new(job, work.start),
            tally,
            hosts: work.hosts.clone(),
            has_flows: work.has_flows,
            total_bytes: work.total_bytes(),
            latest_loss: None,
            ended: None,
            shortcut,
            scheduled: Time::NEVER,
        }
    }

    /// Time of the next start, unless an event is scheduled for it.
    pub(super) fn next_event(&mut self) -> Option<Time> {
        let at = self.run.next_at().filter(|at| *at < self.scheduled)?;
        self.scheduled = at;
        Some(at)
    }

    /// A transfer as a flow that begins now, and its lane.
    fn flow(&self, now: Time, ready: &ReadyTransfer) -> (WorkloadFlow, u16) {
        let transfer = self.run.job().plan.transfer(ready.transfer);
        let [src, dst] = [transfer.src, transfer.dst].map(|rank| self.hosts[rank as usize]);
        let group = ready.iteration.min(u16::MAX.into()) as u16;
        (WorkloadFlow { start: now, src, dst, bytes: transfer.bytes, group }, transfer.lane)
    }
}

/// A transfer that was posted and has not arrived.
#[derive(Clone, Copy, Debug)]
struct InFlightTransfer {
    iteration: u32,
    transfer: u32,
    messages: u64,
    released: Time,
    account: PathAccount,
    alone: Span,
    serial: Span,
}

/// Transfers of a connection, in their order.
#[derive(Debug)]
pub(super) struct TransferLane {
    in_flight: VecDeque<InFlightTransfer>,
    /// Those that have arrived, until their sender knows.
    unacknowledged: VecDeque<(InFlightTransfer, Time)>,
    /// Messages of transfers that have arrived.
    placed: u64,
    /// The one that arrived last, and its iteration.
    before: Option<(u32, TransferBefore)>,
    /// Losses that the receiver is not past, each with the number of its packet; and the latest of all, in either direction.
    losses: Vec<(RecoveredLoss, u64)>,
    latest_loss: Option<RecoveredLoss>,
    /// Timeouts of the sender that have been counted.
    timeouts: u32,
    /// Times at which the last packet came out of the interface at the receiver, and at the sender.
    out_at: [Time; 2],
    path: Vec<DirectedLink>,
    /// Times of a transfer of this many bytes, alone and behind others.
    times: (u64, Span, Span),
    /// A row of flows is written for what it carries.
    pub has_flows: bool,
}

/// Seed of a job's connection.
pub(super) fn connection_draws(seed: u64, parts: [u32; 5]) -> Random {
    let mix = |mixed: u64, part: u32| (mixed ^ u64::from(part)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    Random::new(seed, JOB_STREAM ^ parts.into_iter().fold(0, mix))
}

impl<P: NetworkProgram> Network<'_, P> {
    /// Takes a packet of a job through the interface of a host: when it comes out. Packets of a connection that follow each
    /// other closely take as long, the same whatever was lost before.
    #[cold]
    pub(super) fn pipe_of_job(&mut self, now: Time, host: HostId, id: PacketId) -> Option<Time> {
        let packet = self.packets.get(id);
        let (to, (_, number)) = (packet.to(), packet.body.signature());
        let connection = &mut self.flows.connections[to.connection()];
        let (side, path) = (usize::from(to.is_source()), connection.hashes[0]);
        let lane = connection.lane.as_mut()?;
        let block = (number / ALIKE) as u32;
        let draws = connection_draws(self.flows.seed, [path as u32, (path >> 32) as u32, block, side as u32, u32::MAX]);
        let at = self.hosts[host].pipe_drawn(now, lane.out_at[side], draws);
        lane.out_at[side] = at;
        Some(at)
    }

    /// Starts all transfers of a job that may start.
    pub(super) fn start_transfers(&mut self, now: Time, traffic: TrafficId) -> Result<(), Unreachable> {
        if let Some((ended, quiet)) = self.flows.sources[traffic].job.as_mut().and_then(|job| job.ended.take()) {
            self.shorten(now, traffic, &ended, quiet);
        }
        while let Some(job) = &mut self.flows.sources[traffic].job {
            if job.scheduled <= now {
                job.scheduled = Time::NEVER;
            }
            let Some(ready) = job.run.take_ready(now) else { break };
            self.start_transfer(now, traffic, ready)?;
        }
        self.schedule_next_flow(traffic, now);
        Ok(())
    }

    fn start_transfer(&mut self, now: Time, traffic: TrafficId, ready: ReadyTransfer) -> Result<(), Unreachable> {
        let source = &mut self.flows.sources[traffic];
        let Some(job) = &source.job else { return Ok(()) };
        let (has_flows, (flow, lane)) = (job.has_flows, job.flow(now, &ready));
        let shared = source.shared(&flow, traffic, lane);
        let shakes = self.flows.handshakes && source.traffic.transport.shakes_hands();
        let standing = shared.and_then(|shared| self.flows.standing.get(&shared).copied());
        let id = match standing {
            Some(id) if has_flows => {
                self.join(now, id, &flow);
                id
            }
            Some(id) => {
                self.flows.join(id, row(now, traffic, &flow));
                id
            }
            None => self.connect_lane(now, traffic, (&flow, lane), &ready, shared)?,
        };
        self.post_transfer(now, id, &ready, flow.bytes);
        self.flows.active += 1;
        if shakes {
            self.shake(now, id);
        } else {
            self.first_bytes(now, id, flow.bytes);
        }
        Ok(())
    }

    fn connect_lane(
        &mut self,
        now: Time,
        traffic: TrafficId,
        (flow, lane): (&WorkloadFlow, u16),
        ready: &ReadyTransfer,
        shared: Option<SharedQp>,
    ) -> Result<ConnectionId, Unreachable> {
        // One with a connection of its own draws its numbers anew in every iteration, but always takes the same path.
        let own = if shared.is_some() { u32::MAX } else { ready.transfer };
        let pair = shared.map_or(lane.into(), |shared| shared.pair);
        let draws =
            |own, again| connection_draws(self.flows.seed, [traffic.0 ^ again, flow.src.0, flow.dst.0, pair, own]);
        let path = draws(own, 0).below(u64::MAX);
        let again = if shared.is_some() { 1 << 16 } else { (1 << 16) + ready.iteration };
        let seed = draws(own, again).below(u64::from(u32::MAX)) as u32;
        let id = self.connect(now, traffic, flow, shared, Some((path, seed)))?;
        let port = self.hosts.port_of(id.source());
        let path = self.fabric.route(id.source(), port);
        let has_flows = self.flows.sources[traffic].job.as_ref().is_some_and(|job| job.has_flows);
        self.flows.connections[id].lane = Some(Box::new(TransferLane {
            in_flight: VecDeque::new(),
            unacknowledged: VecDeque::new(),
            placed: 0,
            before: None,
            losses: Vec::new(),
            latest_loss: None,
            out_at: [Time::ZERO; 2],
            timeouts: 0,
            path,
            times: (0, Span::ZERO, Span::ZERO),
            has_flows,
        }));
        self.flows.standing.extend(shared.map(|shared| (shared, id)));
        Ok(id)
    }

    /// Writes down a transfer that its connection is about to carry.
    fn post_transfer(&mut self, now: Time, id: ConnectionId, ready: &ReadyTransfer, bytes: u64) {
        let latency = self.typical_latency(self.flows.connections[id].row.dst);
        let timeouts = self.hosts.ends[id.source()].counters.timeouts;
        let connection = &mut self.flows.connections[id];
        let messages = bytes.div_ceil(connection.message).max(1);
        let transport = &self.flows.sources[connection.source].traffic.transport;
        let Some(lane) = &mut connection.lane else { return };
        if lane.times.0 != bytes {
            let alone = self.fabric.ideal(&lane.path, transport, bytes) + latency;
            lane.times = (bytes, alone, self.fabric.serial(&lane.path, transport, bytes));
        }
        if lane.in_flight.is_empty() {
            lane.timeouts = timeouts;
        }
        let ReadyTransfer { iteration, transfer, account } = *ready;
        let (_, alone, serial) = lane.times;
        lane.in_flight.push_back(InFlightTransfer {
            iteration,
            transfer,
            messages,
            released: now,
            account,
            alone,
            serial,
        });
    }

    /// The receiving end of a job's connection has `placed` messages in all.
    pub(super) fn transfers_arrive(&mut self, now: Time, id: ConnectionId, placed: u64) {
        let next = |network: &Self| {
            let lane = network.flows.connections[id].lane.as_ref()?;
            lane.in_flight.front().map(|first| lane.placed + first.messages)
        };
        while next(self).is_some_and(|next| next <= placed) {
            self.transfer_arrives(now, id);
        }
    }

    /// The first transfer under way on a connection has arrived.
    fn transfer_arrives(&mut self, now: Time, id: ConnectionId) {
        let connection = &mut self.flows.connections[id];
        let (traffic, Some(lane)) = (connection.source, &mut connection.lane) else { return };
        let Some(first) = lane.in_flight.pop_front() else { return };
        let receiver = &self.hosts.ends[id.destination()];
        let recovered = lane.losses.extract_if(.., |(_, number)| receiver.has_passed(*number));
        let losses: Vec<RecoveredLoss> = recovered.map(|(loss, _)| loss).collect();
        let timeouts = self.hosts.ends[id.source()].counters.timeouts;
        let timed_out = timeouts - lane.timeouts;
        lane.timeouts = timeouts;
        let before = lane
            .before
            .map(|(iteration, before)| TransferBefore { of_iteration: iteration == first.iteration, ..before });
        let InFlightTransfer { iteration, transfer, released, account, alone, serial, .. } = first;
        let arrival = TransferArrival {
            transfer,
            now,
            released,
            account,
            before,
            alone,
            serial,
            losses: &losses,
            timed_out: timed_out > 0,
        };
        let account = arrival.account();
        lane.placed += first.messages;
        lane.before = Some((iteration, TransferBefore { at: now, account, of_iteration: true }));
        lane.unacknowledged.push_back((InFlightTransfer { account, ..first }, now));
        let Some(job) = &mut self.flows.sources[traffic].job else { return };
        job.tally.on_timeouts(timed_out);
        if let Some(shortcut) = &mut job.shortcut {
            shortcut.arrival(now, transfer);
        }
        if job.tally.wants_transfers() {
            let (losses, timeouts) = (losses.len() as u32, timed_out);
            job.tally.on_transfer(TransferRow { iteration, transfer, released, arrived: now, losses, timeouts });
        }
        job.run.arrived(now, iteration, transfer, account);
        self.job_advances(now, traffic);
    }

    /// A flow of a job's connection has ended at its sender, or at its receiver if no other report comes.
    pub(super) fn transfer_ends(&mut self, now: Time, id: ConnectionId) {
        let lane =
            |network: &Self| network.flows.connections[id].lane.as_ref().map(|lane| lane.unacknowledged.is_empty());
        if lane(self) == Some(true) {
            self.transfer_arrives(now, id);
        }
        let connection = &mut self.flows.connections[id];
        let (traffic, Some(lane)) = (connection.source, &mut connection.lane) else { return };
        let Some((transfer, arrived)) = lane.unacknowledged.pop_front() else { return };
        let Some(job) = &mut self.flows.sources[traffic].job else { return };
        let plan = &job.run.job().plan;
        if job.run.job().barrier && job.run.job().ends == InputEvent::Arrived && !plan.waits_for_acknowledgements() {
            return;
        }
        let mut account = transfer.account;
        account.parts.wire += now.since(arrived);
        job.run.acknowledged(now, transfer.iteration, transfer.transfer, account);
        self.job_advances(now, traffic);
    }

    /// Takes in what a job's latest arrival has ended, and has an event scheduled for what it has released.
    fn job_advances(&mut self, now: Time, traffic: TrafficId) {
        while let Some(ended) = self.flows.sources[traffic].job.as_mut().and_then(|job| job.run.take_ended()) {
            let Some(job) = &mut self.flows.sources[traffic].job else { return };
            let ((_, late), quiet) = (job.tally.lateness_of(&ended), job.tally.is_quiet());
            let accused = late.then(|| self.accuse(traffic, &ended));
            if let Some(job) = &mut self.flows.sources[traffic].job {
                job.tally.on_iteration(&ended, accused);
                job.ended = Some((ended, quiet));
            }
        }
        self.schedule_next_flow(traffic, now);
    }

    /// Time of iterations that were counted and not simulated.
    pub(super) fn skipped(&self) -> Span {
        let jobs = self.flows.sources.iter().filter_map(|source| source.job.as_ref());
        jobs.map(|job| job.tally.skipped).fold(Span::ZERO, Span::max)
    }

    /// Results of all jobs, by traffic.
    pub(super) fn conclude_jobs(&mut self) -> Vec<JobResult> {
        let mut outcomes = Vec::new();
        for traffic in self.flows.sources.numbers() {
            if let Some(job) = self.flows.sources[traffic].job.take() {
                let RunningJob { hosts, tally, .. } = *job;
                outcomes.push(JobResult { traffic: traffic.0 as u16, hosts, outcome: tally.finish() });
            }
        }
        outcomes
    }
}
