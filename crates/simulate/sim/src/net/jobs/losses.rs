//! Losses of jobs' packets, and connections that fail.

use collective::{DelayCause, JobFailure, RecoveredLoss};
use machine::DropReason;
use units::Time;

use crate::net::index::{ConnectionId, PacketId};
use crate::net::programs::NetworkProgram;
use crate::net::world::Network;
use crate::topology::DirectedLink;

/// Cause of the delay that a loss leads to.
fn cause(reason: DropReason) -> DelayCause {
    match reason {
        DropReason::Corrupted => DelayCause::Loss,
        DropReason::Full => DelayCause::Queue,
        DropReason::Blackhole | DropReason::Filtered | DropReason::Expired => DelayCause::Down,
    }
}

impl<P: NetworkProgram> Network<'_, P> {
    /// Writes down that a packet is lost behind the upstream end of a link, if it is a job's.
    #[cold]
    pub(in crate::net) fn note_loss(&mut self, now: Time, link: DirectedLink, reason: DropReason, id: PacketId) {
        let packet = self.packets.get(id);
        let (to, (_, number)) = (packet.to(), packet.body.signature());
        let connection = &mut self.flows.connections[to.connection()];
        let Some(lane) = &mut connection.lane else { return };
        let loss = RecoveredLoss { at: now, link: link.link().0, cause: cause(reason) };
        lane.latest_loss = Some(loss);
        if !to.is_source() {
            lane.losses.push((loss, number));
        }
        if let Some(job) = &mut self.flows.sources[connection.source].job {
            job.latest_loss = Some((job.run.complete(), loss));
            job.tally.on_loss();
        }
    }

    /// A connection has failed: so has its job, if it is one's.
    pub(in crate::net) fn fail_job(&mut self, now: Time, id: ConnectionId) {
        let connection = &self.flows.connections[id];
        let (traffic, Some(lane)) = (connection.source, &connection.lane) else { return };
        let Some(job) = &mut self.flows.sources[traffic].job else { return };
        let first = lane.in_flight.front().or_else(|| lane.unacknowledged.front().map(|(transfer, _)| transfer));
        let Some(first) = first.filter(|_| !job.run.is_over()) else { return };
        let lost = lane.latest_loss;
        let timeouts = self.hosts.ends[id.source()].counters.timeouts;
        job.tally.on_timeouts(timeouts.saturating_sub(lane.timeouts));
        job.tally.outcome.failed = Some(JobFailure {
            iteration: first.iteration,
            at: now + job.tally.skipped,
            transfer: first.transfer,
            link: lost.map(|loss| loss.link),
            cause: lost.map_or(DelayCause::Timeout, |loss| loss.cause),
        });
        job.run.fail();
        self.schedule_next_flow(traffic, now);
    }
}
