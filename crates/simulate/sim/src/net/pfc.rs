//! PFC (802.1Qbb): what each ingress port may take of a switch's buffer, and how long and how far pauses silence a
//! network.

use std::collections::BTreeMap;

use units::{Bytes, Rate, Span, Time};

use super::port::CLASSES;
use crate::topology::{DirectedLink, Topology, TopologyLink};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pfc {
    /// Share of the free buffer that the packets of one ingress port and class may take before it is paused.
    pub alpha: f64,
    /// `alpha` is for ingress ports as fast as the hosts', and doubles with each doubling of a port's rate.
    pub per_rate: bool,
    pub headroom: PfcHeadroom,
    /// A port resumes this far below where it would be paused.
    pub hysteresis: Bytes,
}

/// Headroom of each ingress port, for frames that arrive after the pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PfcHeadroom {
    Fixed(Bytes),
    /// Three times what is on the way to the port, as HPCC's authors configure it; besides, each port has 4 KB of its own.
    Auto,
}

/// Reserve that an ingress port with automatic headroom always has.
const RESERVE: Bytes = Bytes::new(4_000);

impl Pfc {
    /// Settings that are the same for all ports.
    pub fn new(alpha: f64, headroom: Bytes, hysteresis: Bytes) -> Self {
        Self { alpha, per_rate: false, headroom: PfcHeadroom::Fixed(headroom), hysteresis }
    }

    /// Number of ports of each node, and the bytes that it keeps free for all of them together.
    pub fn reserved(&self, topology: &Topology) -> Vec<(usize, Bytes)> {
        let mut kept = vec![(0, Bytes::ZERO); topology.nodes.len()];
        for link in &topology.links {
            for end in [link.a, link.b] {
                let (ports, bytes) = &mut kept[end.index()];
                *ports += 1;
                *bytes += Bytes::new(self.share(link, None).kept());
            }
        }
        kept
    }

    /// Share of the port at the end of a link, where the slowest host has this rate.
    pub(super) fn share(&self, link: &TopologyLink, hosts: Option<Rate>) -> IngressShare {
        let times = |hosts: Rate| link.rate.bits_per_second() as f64 / hosts.bits_per_second() as f64;
        let times = hosts.filter(|_| self.per_rate).map_or(1.0, times);
        let (headroom, reserve) = match self.headroom {
            PfcHeadroom::Fixed(bytes) => (bytes, Bytes::ZERO),
            PfcHeadroom::Auto => (link.rate.bytes_in(link.delay * 3), RESERVE),
        };
        IngressShare { alpha: self.alpha * times.max(1.0), headroom: headroom.get(), reserve: reserve.get() }
    }
}

/// The rate of the slowest host.
pub(super) fn slowest_host(topology: &Topology) -> Option<Rate> {
    let of_host = |link: &&TopologyLink| topology.is_host(link.a) || topology.is_host(link.b);
    topology.links.iter().filter(of_host).map(|link| link.rate).min()
}

/// Share of the buffer of one ingress port, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IngressShare {
    /// Factor of the free buffer.
    pub alpha: f64,
    pub headroom: u64,
    /// Bytes that it may always hold.
    pub reserve: u64,
}

impl IngressShare {
    /// Bytes that are kept from all others.
    pub(super) fn kept(&self) -> u64 {
        self.headroom.saturating_add(self.reserve)
    }
}

/// Log of paused ports: since when, and how far from the cause.
#[derive(Debug, Default)]
pub(super) struct PauseLog {
    /// Ports that were ever paused.
    ports: BTreeMap<DirectedLink, PausedPort>,
    most_hops: u8,
}

#[derive(Debug, Default)]
struct PausedPort {
    /// A bit for each class.
    paused: u8,
    since: [Time; CLASSES],
    hops: [u8; CLASSES],
    /// Time since which at least one class is paused.
    silent_since: Time,
    /// Time paused, all classes together, and time with at least one class paused.
    paused_for: Span,
    silent_for: Span,
}

impl PauseLog {
    /// A switch with these ports is about to pause a class: how many hops the pause has spread then. One that is due to
    /// the switch itself has gone one hop; one that it sends because it may not send itself, one more than that pause.
    pub(super) fn hops(&mut self, ports: &[DirectedLink], class: u8) -> u8 {
        let class = usize::from(class) % CLASSES;
        let paused = ports.iter().filter_map(|port| self.ports.get(port)).filter(|port| port.paused & 1 << class != 0);
        let hops = paused.map(|port| port.hops[class]).max().unwrap_or_default().saturating_add(1);
        self.most_hops = self.most_hops.max(hops);
        hops
    }

    /// A pause has reached a port.
    pub(super) fn pause(&mut self, now: Time, at: DirectedLink, class: u8, hops: u8) {
        let port = self.ports.entry(at).or_default();
        let class = usize::from(class) % CLASSES;
        if port.paused == 0 {
            port.silent_since = now;
        }
        if port.paused & 1 << class == 0 {
            port.since[class] = now;
        }
        port.paused |= 1 << class;
        port.hops[class] = hops;
    }

    /// A port may send again.
    pub(super) fn resume(&mut self, now: Time, at: DirectedLink, class: u8) {
        if let Some(port) = self.ports.get_mut(&at) {
            port.resume(now, usize::from(class) % CLASSES);
        }
    }

    /// Totals of all pauses at the end of a run, with the rate of each port in bits per second.
    pub(super) fn conclude(mut self, ended: Time, pauses: u64, rate: impl Fn(DirectedLink) -> f64) -> PauseTotals {
        let mut totals = PauseTotals { pauses, most_hops: u32::from(self.most_hops), ..PauseTotals::default() };
        for (at, port) in &mut self.ports {
            (0..CLASSES).for_each(|class| port.resume(ended, class));
            totals.paused_seconds += port.paused_for.as_secs();
            totals.silenced_bits += port.silent_for.as_secs() * rate(*at);
        }
        totals
    }
}

impl PausedPort {
    fn resume(&mut self, now: Time, class: usize) {
        if self.paused & 1 << class == 0 {
            return;
        }
        self.paused &= !(1 << class);
        self.paused_for += now.since(self.since[class]);
        if self.paused == 0 {
            self.silent_for += now.since(self.silent_since);
        }
    }
}

/// Totals of PFC over a run, or over several.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PauseTotals {
    /// Pauses that switches sent.
    pub pauses: u64,
    /// Time paused, over all ports and classes.
    pub paused_seconds: f64,
    /// Bits that ports with a paused class could have sent meanwhile.
    pub silenced_bits: f64,
    /// Bits that all ports together can send in the time of the run.
    pub capacity_bits: f64,
    /// Most hops over which a pause spread.
    pub most_hops: u32,
}

impl PauseTotals {
    /// Share of the network's capacity that was silenced.
    pub fn silenced_share(&self) -> f64 {
        if self.capacity_bits > 0.0 { self.silenced_bits / self.capacity_bits } else { 0.0 }
    }

    /// Totals of both runs together.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self {
            pauses: self.pauses + other.pauses,
            paused_seconds: self.paused_seconds + other.paused_seconds,
            silenced_bits: self.silenced_bits + other.silenced_bits,
            capacity_bits: self.capacity_bits + other.capacity_bits,
            most_hops: self.most_hops.max(other.most_hops),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: DirectedLink = DirectedLink(4);

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    #[test]
    fn a_faster_ingress_port_gets_more_and_headroom_covers_its_link_three_times() {
        let topology = Topology::hpcc();
        let pfc = Pfc { per_rate: true, headroom: PfcHeadroom::Auto, ..Pfc::new(0.125, Bytes::ZERO, Bytes::ZERO) };
        let hosts = slowest_host(&topology);
        let share = |from: &str, to: &str| {
            let port = topology.link_between(from, to).unwrap();
            let share = pfc.share(topology.link(port.link()), hosts);
            (share.alpha, share.headroom, share.reserve)
        };
        assert_eq!(share("h0", "tor0-0"), (0.125, 37_500, 4_000));
        assert_eq!(share("tor0-0", "agg0-0"), (0.5, 150_000, 4_000));
        // 16 hosts and four ways up.
        let tor = topology.node("tor0-0").unwrap();
        assert_eq!(pfc.reserved(&topology)[tor.index()], (20, Bytes::new(16 * 41_500 + 4 * 154_000)));
    }

    #[test]
    fn paused_time_counts_each_class_and_silence_each_port_once() {
        let mut log = PauseLog::default();
        assert_eq!(log.hops(&[AT], 0), 1);
        log.pause(at(10), AT, 0, 1);
        log.pause(at(20), AT, 3, 2);
        assert_eq!([log.hops(&[AT], 0), log.hops(&[AT], 3), log.hops(&[AT], 1)], [2, 3, 1]);
        log.resume(at(30), AT, 0);
        log.resume(at(30), AT, 0);
        log.resume(at(40), AT, 3);
        log.pause(at(50), AT, 0, 1);
        let totals = log.conclude(at(60), 3, |_| 1e9);
        // Twice 20 µs and the last 10; silent from 10 to 40 and from 50 to 60.
        assert!((totals.paused_seconds - 50e-6).abs() < 1e-12, "{totals:?}");
        assert!((totals.silenced_bits - 40_000.0).abs() < 1e-6, "{totals:?}");
        assert_eq!((totals.pauses, totals.most_hops), (3, 3));
    }
}
