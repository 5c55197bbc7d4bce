//! Observations of a network while it runs, and their totals at the end.

use units::{Span, Time};

use super::end::FlowCounters;
use super::fabric::NetworkFabric;
use super::host::Hosts;
use super::index::{IndexVec, TrafficId};
use super::outcome::{NetworkOutcome, NetworkSample, PortSample};
use super::setup::Sampling;
use crate::histogram::SpanHistogram;
use crate::protocols::each_protocol;

/// Findings of a run so far.
#[derive(Debug)]
pub(super) struct RunObservations {
    pub outcome: NetworkOutcome,
    /// Payload that has arrived in order, by traffic.
    pub received: IndexVec<TrafficId, u64>,
    /// `retransmitted`, `timeouts`: totals of connections that have ended.
    retransmitted: u64,
    timeouts: u64,
    /// Round trips of data packets, if they are wanted.
    round_trips: Option<Box<SpanHistogram>>,
    sampling: Option<Sampling>,
    last: LastSample,
}

/// Counters at the time of the last sample.
#[derive(Debug)]
struct LastSample {
    ports: Vec<(u64, u64)>,
    received: Vec<u64>,
    repaired: (u64, u64),
}

impl RunObservations {
    pub(super) fn new(sampling: Option<Sampling>, traffic: usize, round_trips: bool) -> Self {
        let ports = sampling.iter().flat_map(|sampling| &sampling.ports).map(|_| (0, 0)).collect();
        Self {
            outcome: NetworkOutcome::default(),
            received: (0..traffic).map(|_| 0).collect(),
            retransmitted: 0,
            timeouts: 0,
            round_trips: round_trips.then(Box::default),
            sampling,
            last: LastSample { ports, received: vec![0; traffic], repaired: (0, 0) },
        }
    }

    /// A data packet took this long, there and back.
    #[inline]
    pub(super) fn round_trip(&mut self, span: Span) {
        if let Some(round_trips) = &mut self.round_trips {
            round_trips.record(span);
        }
    }

    /// All that was found.
    pub(super) fn finish(self) -> NetworkOutcome {
        NetworkOutcome { round_trips: self.round_trips, ..self.outcome }
    }

    /// Time of the first sample.
    pub(super) fn first_sample(&self) -> Option<Time> {
        self.sampling.as_ref().map(|sampling| Time::ZERO + sampling.every)
    }

    /// A connection has ended.
    pub(super) fn connection_ended(&mut self, counters: &FlowCounters) {
        self.retransmitted += u64::from(counters.retransmitted);
        self.timeouts += u64::from(counters.timeouts);
    }

    /// Takes a sample and returns the time of the next one.
    pub(super) fn sample(&mut self, now: Time, fabric: &NetworkFabric, hosts: &Hosts) -> Option<Time> {
        let sampling = self.sampling.as_ref()?;
        let mut ports = Vec::with_capacity(sampling.ports.len());
        for (at, before) in sampling.ports.iter().zip(&mut self.last.ports) {
            let port = &fabric.ports[*at];
            let levels = fabric.links[at.link()].as_ref();
            let levels = levels.map(|link| each_protocol!(&**link, pair => pair.levels(at.side())));
            let (tx, rx) = levels.unwrap_or_default();
            let counters = (port.counters.wire_bytes, port.counters.dropped);
            ports.push(PortSample {
                wire_bytes: counters.0 - before.0,
                queue: port.backlog_bytes(now),
                tx_buffer: tx.get(),
                rx_buffer: rx.get(),
                dropped: counters.1 - before.1,
            });
            *before = counters;
        }
        let next = now + sampling.every;
        let received = self.received.iter().zip(&self.last.received).map(|(now, before)| now - before).collect();
        self.last.received.copy_from_slice(self.received.as_slice());
        let repaired = self.repaired(hosts);
        let (retransmitted, timeouts) = (repaired.0 - self.last.repaired.0, repaired.1 - self.last.repaired.1);
        self.last.repaired = repaired;
        self.outcome.samples.push(NetworkSample { at: now, received, retransmitted, timeouts, ports });
        Some(next)
    }

    /// Segments sent again and timeouts so far.
    fn repaired(&self, hosts: &Hosts) -> (u64, u64) {
        let running = hosts.ends.iter().filter(|end| !end.over).map(|end| end.counters);
        running.fold((self.retransmitted, self.timeouts), |(segments, timeouts), counters| {
            (segments + u64::from(counters.retransmitted), timeouts + u64::from(counters.timeouts))
        })
    }
}
