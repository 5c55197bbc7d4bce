//! Links that a late iteration is blamed on.

use collective::{Accusation, DelayCause, EndedIteration};

use crate::net::flows::SharedQp;
use crate::net::index::TrafficId;
use crate::net::programs::NetworkProgram;
use crate::net::world::Network;
use crate::topology::DirectedLink;

impl<P: NetworkProgram> Network<'_, P> {
    /// The link that an iteration is late for: the one with most recovery on its critical path; without any, the one that lost
    /// something in this iteration or the one before, which may have left acknowledgements behind that get in the way; without
    /// a loss, the link with most traffic on the way of the transfer that waited most.
    pub(super) fn accuse(&self, traffic: TrafficId, ended: &EndedIteration) -> Accusation {
        if let Some(suspect) = ended.account.suspect() {
            return Accusation { link: Some(suspect.link), cause: suspect.cause, transfer: suspect.transfer };
        }
        let transfer = ended.account.slowest();
        let latest = self.flows.sources[traffic].job.as_ref().and_then(|job| job.latest_loss);
        if let Some((_, loss)) = latest.filter(|(iteration, _)| iteration + 1 >= ended.iteration) {
            return Accusation { link: Some(loss.link), cause: loss.cause, transfer };
        }
        let path = self.path_of(traffic, transfer);
        let counters = |port: &DirectedLink| self.fabric.ports[*port].counters;
        let busiest = path.iter().max_by_key(|port| counters(port).wire_bytes);
        let is_paused = path.iter().any(|port| counters(port).paused > 0);
        let cause = if is_paused { DelayCause::Pause } else { DelayCause::Queue };
        Accusation { link: busiest.map(|port| port.link().0), cause, transfer }
    }

    /// The way of a transfer whose queue pair stands; empty if it had one of its own.
    fn path_of(&self, traffic: TrafficId, transfer: u32) -> &[DirectedLink] {
        let Some(job) = &self.flows.sources[traffic].job else { return &[] };
        let transfer = job.run.job().plan.transfer(transfer);
        let [src, dst] = [transfer.src, transfer.dst].map(|rank| job.hosts[rank as usize].0);
        let first = SharedQp { traffic, src, dst, pair: 0 };
        let pairs = self.flows.standing.range(first..=SharedQp { pair: u32::MAX, ..first });
        let lanes = pairs.filter_map(|(_, id)| self.flows.connections[*id].lane.as_ref());
        lanes.map(|lane| lane.path.as_slice()).next().unwrap_or(&[])
    }
}
