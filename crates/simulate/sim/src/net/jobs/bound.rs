//! The least time that an iteration of a job can take.

use std::collections::BTreeMap;

use collective::InputEvent;
use units::Span;

use crate::net::index::TrafficId;
use crate::net::programs::NetworkProgram;
use crate::net::world::Network;
use crate::topology::{NodeId, Unreachable};

/// Least times of transfers between two hosts: alone, and on the links of either host; and of an acknowledgement on its way home.
type LeastTimes = BTreeMap<(NodeId, NodeId, u64), (Span, [Span; 2], Span)>;

impl<P: NetworkProgram> Network<'_, P> {
    /// Finds the bounds of all jobs.
    pub(in crate::net) fn bound_jobs(&mut self) -> Result<(), Unreachable> {
        for traffic in self.flows.sources.numbers() {
            let (bound, home) = self.bound_of(traffic)?;
            let packet = self.packet_time(traffic);
            if let Some(job) = &mut self.flows.sources[traffic].job {
                job.tally.outcome.bound = bound;
                job.tally.tolerate(packet / 2);
                if job.run.job().ends == InputEvent::Arrived {
                    // Twice, because it may wait for another packet on its way.
                    job.run.settle(home * 2);
                }
            }
        }
        Ok(())
    }

    /// The longest chain of transfers that wait for each other, each alone in the network; or what one host has to send or to
    /// receive, if that takes longer. Also the longest way home of an acknowledgement.
    fn bound_of(&self, traffic: TrafficId) -> Result<(Span, Span), Unreachable> {
        let Some(job) = &self.flows.sources[traffic].job else { return Ok((Span::ZERO, Span::ZERO)) };
        let plan = &job.run.job().plan;
        let mut times = LeastTimes::new();
        let mut starts = vec![Span::ZERO; plan.transfers() as usize];
        let mut at_host = vec![[Span::ZERO; 2]; plan.ranks() as usize];
        let mut bound = Span::ZERO;
        for id in plan.in_order() {
            let transfer = plan.transfer(id);
            let [src, dst] = [transfer.src, transfer.dst].map(|rank| job.hosts[rank as usize]);
            let (alone, [out, into], _) = self.least_times(traffic, (src, dst, transfer.bytes), &mut times)?;
            let end = starts[id as usize].max(plan.not_before(id)) + alone;
            bound = bound.max(end);
            for event in [InputEvent::Arrived, InputEvent::Acknowledged] {
                plan.followers(id, event, |follower| {
                    let start = &mut starts[follower.transfer as usize];
                    *start = (*start).max(end + follower.delay);
                });
            }
            at_host[transfer.src as usize][0] += out;
            at_host[transfer.dst as usize][1] += into;
        }
        let homes = times.values().map(|(.., home)| *home);
        Ok((at_host.into_iter().flatten().fold(bound, Span::max), homes.fold(Span::ZERO, Span::max)))
    }

    /// Time of a full packet on the slowest link of a job's hosts.
    fn packet_time(&self, traffic: TrafficId) -> Span {
        let source = &self.flows.sources[traffic];
        let Some(job) = &source.job else { return Span::ZERO };
        let links: Vec<_> = job.hosts.iter().map(|host| self.hosts[self.hosts.at(*host)].port).collect();
        self.fabric.serial(&links, &source.traffic.transport, source.traffic.transport.sizes().payload.into())
    }

    fn least_times(
        &self,
        traffic: TrafficId,
        of: (NodeId, NodeId, u64),
        known: &mut LeastTimes,
    ) -> Result<(Span, [Span; 2], Span), Unreachable> {
        if let Some(times) = known.get(&of) {
            return Ok(*times);
        }
        let (src, dst, bytes) = of;
        let mut path = Vec::new();
        self.fabric.routes.path(src, dst, 0, &mut path)?;
        let transport = &self.flows.sources[traffic].traffic.transport;
        let last = path.len().saturating_sub(1);
        let of_hosts =
            [0..path.len().min(1), last..path.len()].map(|link| self.fabric.serial(&path[link], transport, bytes));
        let mut back = Vec::new();
        self.fabric.routes.path(dst, src, 0, &mut back)?;
        let home = match transport.sizes().acknowledge {
            0 => Span::ZERO,
            len => self.fabric.trip(&back, len) + self.typical_latency(dst) + self.typical_latency(src),
        };
        let times = (self.fabric.ideal(&path, transport, bytes), of_hosts, home);
        known.insert(of, times);
        Ok(times)
    }
}
