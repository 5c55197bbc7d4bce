//! What is looked at while a network runs.

use machine::SwitchProgram;
use units::Time;

use super::events::Event;
use super::outcome::{PortSample, Sample};
use super::packet::Packet;
use super::protect::each;
use super::setup::Sampling;
use super::world::Network;

/// What is looked at, and what counters were when it last was.
#[derive(Debug)]
pub struct Sampler {
    sampling: Option<Sampling>,
    ports: Vec<(u64, u64)>,
    received: Vec<u64>,
    repaired: (u64, u64),
}

impl Sampler {
    pub fn new(sampling: Option<Sampling>, traffic: usize) -> Self {
        let ports = sampling.iter().flat_map(|sampling| &sampling.ports).map(|_| (0, 0)).collect();
        Self { sampling, ports, received: vec![0; traffic], repaired: (0, 0) }
    }

    /// When it looks for the first time.
    pub fn first(&self) -> Option<Time> {
        self.sampling.as_ref().map(|sampling| Time::ZERO + sampling.every)
    }
}

impl<P: SwitchProgram<Frame = Packet>> Network<'_, P> {
    pub(super) fn sample(&mut self, now: Time) {
        let Some(sampling) = self.sampler.sampling.take() else { return };
        let mut ports = Vec::with_capacity(sampling.ports.len());
        for (at, before) in sampling.ports.iter().zip(&mut self.sampler.ports) {
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
        let received = self.received.iter().zip(&self.sampler.received).map(|(now, before)| now - before).collect();
        self.sampler.received.clone_from(&self.received);
        let repaired = self.repaired();
        let (retransmitted, timeouts) = (repaired.0 - self.sampler.repaired.0, repaired.1 - self.sampler.repaired.1);
        self.sampler.repaired = repaired;
        self.outcome.samples.push(Sample { at: now, received, retransmitted, timeouts, ports });
        self.queue.schedule(now + sampling.every, Event::Sample);
        self.sampler.sampling = Some(sampling);
    }

    /// Segments sent again and timeouts so far.
    fn repaired(&self) -> (u64, u64) {
        let running = self.ends.iter().filter(|end| !end.over).map(|end| end.tally);
        running.fold((self.retransmitted, self.timeouts), |(segments, timeouts), tally| {
            (segments + u64::from(tally.retransmitted), timeouts + u64::from(tally.timeouts))
        })
    }
}
