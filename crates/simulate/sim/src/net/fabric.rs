//! The switches and links of a network: ports, routes, and what protects or misleads packets on their way.

use units::{Span, Time};

use super::index::{EndId, HostId, IndexVec};
use super::levels::QueueLengths;
use super::packet::{MOST_HOPS, RoutePosition};
use super::pfc::{PauseLog, PauseTotals};
use super::port::SimPort;
use super::profile::{HpccNs3Path, NetworkProfile};
use super::rules::SwitchRules;
use super::switch::{Ingress, Ports, SimSwitch};
use super::transports::TransportSetup;
use crate::net::index::SwitchId;
use crate::protocols::Protected;
use crate::topology::{DirectedLink, NodeId, Routes, TopologyLinkId, Unreachable};

/// Switches, ports and routes that packets pass through.
#[derive(Debug)]
pub(super) struct NetworkFabric {
    pub profile: NetworkProfile,
    pub routes: Routes,
    pub ports: Ports,
    /// Bytes that came in by the link of each switch port and have not left.
    pub ingress: IndexVec<DirectedLink, Ingress>,
    pub switches: IndexVec<SwitchId, SimSwitch>,
    pub pauses: PauseLog,
    pub links: IndexVec<TopologyLinkId, Option<Box<Protected>>>,
    /// Wrong rules in tables of switches.
    pub rules: Option<Box<SwitchRules>>,
    /// Next hops of packets, by [`RoutePosition`].
    hops: Vec<Hop>,
}

/// Next hop of a packet: a port, or a host with the highest bit set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hop(u32);

/// Decoded form of a [`Hop`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextHop {
    Port(DirectedLink),
    Host(HostId),
}

impl Hop {
    const TO_HOST: u32 = 1 << 31;

    #[inline]
    pub(super) fn port(port: DirectedLink) -> Self {
        Self(port.0)
    }

    #[inline]
    pub(super) fn host(host: HostId) -> Self {
        Self(host.0 | Self::TO_HOST)
    }

    #[inline]
    pub(super) fn next(self) -> NextHop {
        if self.0 & Self::TO_HOST == 0 {
            NextHop::Port(DirectedLink(self.0))
        } else {
            NextHop::Host(HostId(self.0 & !Self::TO_HOST))
        }
    }
}

impl NetworkFabric {
    pub(super) fn new(
        routes: Routes,
        ports: Ports,
        ingress: IndexVec<DirectedLink, Ingress>,
        switches: IndexVec<SwitchId, SimSwitch>,
    ) -> Self {
        let links = (0..ports.len() / 2).map(|_| None).collect();
        Self {
            profile: NetworkProfile::default(),
            routes,
            ports,
            ingress,
            switches,
            pauses: PauseLog::default(),
            links,
            rules: None,
            hops: Vec::new(),
        }
    }

    #[inline]
    pub(super) fn hop(&self, at: RoutePosition) -> Hop {
        self.hops[at.index()]
    }

    /// Writes a route where its packets will look for it: the hops behind the first port, then the host.
    pub(super) fn write_route(
        &mut self,
        end: EndId,
        [from, to]: [NodeId; 2],
        host: HostId,
        hash: u64,
    ) -> Result<Vec<DirectedLink>, Unreachable> {
        let at = RoutePosition::of(end).index();
        self.hops.resize(self.hops.len().max(at + MOST_HOPS as usize), Hop(0));
        let mut path = Vec::new();
        self.routes.path(from, to, hash, &mut path)?;
        assert!(path.len() < MOST_HOPS as usize && !path.is_empty(), "a route of {} hops", path.len());
        for (slot, port) in self.hops[at..].iter_mut().zip(path.iter().skip(1)) {
            *slot = Hop::port(*port);
        }
        self.hops[at + path.len() - 1] = Hop::host(host);
        Ok(path)
    }

    /// The ports of a route that was written, from the first, which is its host's.
    pub(super) fn route(&self, end: EndId, first: DirectedLink) -> Vec<DirectedLink> {
        let ports = self.hops[RoutePosition::of(end).index()..].iter().map_while(|hop| match hop.next() {
            NextHop::Port(port) => Some(port),
            NextHop::Host(_) => None,
        });
        std::iter::once(first).chain(ports).collect()
    }

    /// Position at which a packet of `end` continues if it leaves this switch; `None` if its route does not lead through
    /// the switch.
    pub(super) fn position_behind(&self, end: EndId, switch: SwitchId) -> Option<(DirectedLink, RoutePosition)> {
        let mut at = RoutePosition::of(end);
        loop {
            let NextHop::Port(port) = self.hop(at).next() else { return None };
            at = at.next();
            if self.ports[port].owner.switch() == switch {
                return Some((port, at));
            }
        }
    }

    /// Duration of a flow that has the network for itself, its answer included, or its last acknowledgement for RDMA.
    pub(super) fn ideal_flow(
        &self,
        [there, back]: [&[DirectedLink]; 2],
        transport: &TransportSetup,
        bytes: u64,
        reply: u64,
    ) -> Span {
        if self.profile == NetworkProfile::Ethernet {
            return self.ideal(there, transport, bytes) + self.ideal_answer(back, transport, reply);
        }
        let payload = transport.sizes().payload;
        let alone = |path: &[DirectedLink], bytes| {
            let links = path.iter().map(|at| (self.ports[*at].rate(), self.ports[*at].flight));
            HpccNs3Path::new(links, payload).ideal(bytes, payload)
        };
        alone(there, bytes) + if reply == 0 { Span::ZERO } else { alone(back, reply) }
    }

    /// Duration of `bytes` along a path without other traffic: the first packet hop by hop, the rest behind it at the rate
    /// of the slowest hop.
    pub(super) fn ideal(&self, path: &[DirectedLink], transport: &TransportSetup, bytes: u64) -> Span {
        let sizes = transport.sizes();
        let (payload, full) = (sizes.payload, sizes.frame);
        let (headers, extra) = (full - payload, sizes.longest - full);
        let on_wire = |len| u64::from(self.profile.framing().on_wire(len));
        let packets = bytes.div_ceil(u64::from(payload)).max(1);
        let last = (bytes - (packets - 1) * u64::from(payload)) as u32;
        let (first, rest) = match packets {
            1 => (last + headers, 0),
            _ => {
                let between = (packets - 2).saturating_mul(on_wire(full));
                (full, between.saturating_add(on_wire(last + headers)))
            }
        };
        let mut slowest = Span::ZERO;
        let mut sum = Span::ZERO;
        for hop in path {
            let port = &self.ports[*hop];
            sum += port.flight + port.time_of((first + extra) as u16);
            slowest = slowest.max(port.time_of_bytes(rest));
        }
        sum + slowest
    }

    /// Time that the packets of `bytes` take one behind the other on the slowest of these links.
    pub(super) fn serial(&self, links: &[DirectedLink], transport: &TransportSetup, bytes: u64) -> Span {
        let sizes = transport.sizes();
        let packets = bytes.div_ceil(u64::from(sizes.payload)).max(1);
        let last = (bytes - (packets - 1) * u64::from(sizes.payload)) as u32 + sizes.frame - sizes.payload;
        let on_wire = |len| u64::from(self.profile.framing().on_wire(len));
        let all = (packets - 1).saturating_mul(on_wire(sizes.frame)).saturating_add(on_wire(last));
        links.iter().map(|link| self.ports[*link].time_of_bytes(all)).max().unwrap_or(Span::ZERO)
    }

    /// Duration of one frame of this length along a path without other traffic.
    pub(super) fn trip(&self, path: &[DirectedLink], len: u32) -> Span {
        let hop = |hop: &DirectedLink| self.ports[*hop].flight + self.ports[*hop].time_of(len as u16);
        path.iter().map(hop).fold(Span::ZERO, |sum, span| sum + span)
    }

    /// Duration of the answer, or of the acknowledgement for RDMA, for which the sender waits besides.
    fn ideal_answer(&self, path: &[DirectedLink], transport: &TransportSetup, reply: u64) -> Span {
        match reply {
            0 if transport.is_rdma() => self.trip(path, transport.sizes().acknowledge),
            0 => Span::ZERO,
            reply => self.ideal(path, transport, reply),
        }
    }

    /// Totals of PFC until the end of a run; `None` if no port can be paused.
    pub(super) fn pause_totals(&mut self, ended: Time) -> Option<PauseTotals> {
        if !self.switches.iter().any(SimSwitch::has_pfc) {
            return None;
        }
        let pauses = self.switches.iter().map(|switch| switch.pauses).sum();
        let log = std::mem::take(&mut self.pauses);
        let totals = log.conclude(ended, pauses, |port| self.ports[port].bits_per_second());
        let capacity: f64 = self.ports.iter().map(SimPort::bits_per_second).sum();
        Some(PauseTotals { capacity_bits: capacity * ended.since(Time::ZERO).as_secs(), ..totals })
    }

    /// Queue lengths until the end of a run, where they are measured.
    pub(super) fn queue_lengths(&mut self, ended: Time) -> Vec<(DirectedLink, QueueLengths)> {
        let mut lengths = Vec::new();
        for at in self.ports.numbers() {
            if let Some(clock) = self.ports[at].queues.as_mut().and_then(|queues| queues.levels.take()) {
                lengths.push((at, clock.conclude(ended)));
            }
        }
        lengths
    }

    /// Asks a switch with all its ports whether it takes these bytes: see [`SimSwitch::admits`].
    #[inline]
    pub(super) fn admits(&mut self, now: Time, switch: SwitchId, at: DirectedLink, bytes: u64) -> bool {
        self.switches[switch].admits(now, &self.ports, at, bytes)
    }
}
