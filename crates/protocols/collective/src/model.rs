//! Closed forms: how long a collective takes, and what the losses of one host's cable do to it.
//!
//! | question | file |
//! | --- | --- |
//! | time without losses, by pattern and algorithm | `times` |
//! | packets that cross the cable, messages whose last packet nothing follows | `crossing` |
//! | how much later one loss makes a transfer, by remedy | `recovery` |
//! | losses of an iteration together: all of them, or the worst | `lateness` |
//!
//! τ is the time of a full packet on a cable, α what a message takes beyond its own packets: a packet time and the latency of
//! each switch, and the delay of each cable. With M packets that cross the cable and losses of p, an iteration has
//! Mp losses, and tails·p + Mp² timeouts: a last packet that nothing follows on its queue pair waits for the timeout, and so
//! does a packet that is lost again. Where a queue pair goes on with the next step, its first packet reveals the loss.
//!
//! Rings are exact up to the rounding of one packet time. For all other patterns the recovered losses of an iteration add up,
//! which is the most that they can do.

mod crossing;
mod lateness;
mod recovery;
mod times;

use units::{Bytes, Rate, Span};

use crate::shape::{CollectivePattern, CollectiveShape};
pub use crossing::CableLoad;
use lateness::LatenessCurve;
pub use recovery::{Remedy, RemedySetting};

/// Hosts and switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelTopology {
    OneSwitch,
    LeafSpine {
        hosts_per_leaf: u32,
    },
    /// Pods of three tiers, of switches with `k` ports.
    FatTree {
        k: u32,
    },
}

impl ModelTopology {
    /// Switches between two hosts.
    fn switches(self, one: u32, other: u32) -> u32 {
        let same = |hosts: u32| one / hosts.max(1) == other / hosts.max(1);
        match self {
            Self::OneSwitch => 1,
            Self::LeafSpine { hosts_per_leaf } => 1 + 2 * u32::from(!same(hosts_per_leaf)),
            Self::FatTree { k } if same(k / 2) => 1,
            Self::FatTree { k } => 3 + 2 * u32::from(!same(k / 2 * (k / 2))),
        }
    }
}

/// Cables and packets. All cables are alike.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelNetwork {
    pub topology: ModelTopology,
    /// Host of each rank.
    pub hosts: Vec<u32>,
    pub rate: Rate,
    /// Delay of a cable, and latency of a switch.
    pub delay: Span,
    pub latency: Span,
    /// Payload of a full packet, what it has besides on the wire, an acknowledgement on the wire.
    pub payload: u32,
    pub overhead: u32,
    pub ack: u32,
}

impl ModelNetwork {
    /// Microseconds that bytes take on a cable.
    fn wire_us(&self, bytes: u64) -> f64 {
        bytes as f64 * 8e6 / self.rate.bits_per_second() as f64
    }

    /// τ.
    fn packet_us(&self) -> f64 {
        self.wire_us(u64::from(self.payload + self.overhead))
    }

    fn packets(&self, bytes: u64) -> u64 {
        bytes.div_ceil(u64::from(self.payload.max(1)))
    }

    /// A message's own time on a cable, which may be a fraction of a byte long: rings cut their bytes into any shares.
    fn message_us(&self, bytes: f64) -> f64 {
        let packets = (bytes / f64::from(self.payload)).ceil().max(1.0);
        (bytes + packets * f64::from(self.overhead)) * 8e6 / self.rate.bits_per_second() as f64
    }

    /// One way without serialization at the sender, for packets that take `packet` µs at each switch.
    fn way_us(&self, switches: u32, packet: f64) -> f64 {
        let switches = f64::from(switches);
        switches * (packet + self.latency.as_us()) + (switches + 1.0) * self.delay.as_us()
    }

    /// α between two ranks.
    fn alpha_us(&self, one: u32, other: u32) -> f64 {
        let [one, other] = [one, other].map(|rank| self.hosts[rank as usize]);
        self.way_us(self.topology.switches(one, other), self.packet_us())
    }
}

/// A collective over a network with one corrupting cable.
#[derive(Clone, Debug)]
pub struct CollectiveModel {
    pub shape: CollectiveShape,
    pub network: ModelNetwork,
    /// Rank whose cable corrupts frames.
    pub rank: u32,
    /// True if it corrupts what the rank sends; false if it corrupts what the rank receives.
    pub sends: bool,
    /// Share of frames.
    pub loss: f64,
    /// Queue pairs end with their transfer, so that nothing follows a last packet.
    pub per_transfer: bool,
    /// All ranks wait for all at the end of an iteration.
    pub barrier: bool,
}

/// Expectation for one remedy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RemedyOutlook {
    /// Losses that the transport meets, and timeouts, of an iteration.
    pub losses: f64,
    pub timeouts: f64,
    /// Chance that an iteration is late, and that it waits for a timeout.
    pub late_share: f64,
    pub stall_share: f64,
    pub mean_us: f64,
    pub p50_lateness_us: f64,
    pub p99_lateness_us: f64,
    pub p999_lateness_us: f64,
}

impl CollectiveModel {
    /// Time of an iteration that loses nothing.
    pub fn time_us(&self) -> f64 {
        times::without_loss(&self.shape, &self.network)
    }

    /// Traffic across the cable in an iteration.
    pub fn load(&self) -> CableLoad {
        CableLoad::of(&self.shape, &self.network, self.rank, self.sends, self.per_transfer, self.barrier)
    }

    /// GB/s of all bytes, and of the bus as nccl-tests define it.
    pub fn bandwidths(&self, time_us: f64) -> [f64; 2] {
        let all = self.shape.size as f64 / time_us / 1e3;
        [all, all * self.shape.pattern.bus_factor(self.shape.ranks)]
    }

    pub fn outlook(&self, setting: &RemedySetting) -> RemedyOutlook {
        let load = self.load();
        let recovery = setting.recovery(self, &load);
        // Under a link protocol the transport meets few losses, and the link recovers the others.
        let losses = load.packets as f64 * recovery.loss;
        let timeouts =
            load.open_tails as f64 * recovery.tail_loss + load.packets as f64 * recovery.loss * recovery.again;
        let stall_share = -(-timeouts).exp_m1();
        let delayed = load.packets as f64 * recovery.delayed;
        let curve = LatenessCurve::new(&recovery, &load, self.period());
        let late_share = -(-(delayed + timeouts)).exp_m1();
        let timeout = recovery.timeout.as_us();
        let at = |share: f64| curve.with_stalls(share, stall_share, timeouts, timeout);
        RemedyOutlook {
            losses,
            timeouts,
            late_share,
            stall_share,
            mean_us: self.time_us() + timeouts * timeout + curve.mean(),
            p50_lateness_us: at(0.5),
            p99_lateness_us: at(0.99),
            p999_lateness_us: at(0.999),
        }
    }

    /// The steps of the lossy cable: how many messages follow each other, and how long it is idle between two.
    fn period(&self) -> StepPeriod {
        let load = self.load();
        let is_ring = self.shape.algorithm == crate::CollectiveAlgorithm::Ring
            && !matches!(self.shape.pattern, CollectivePattern::Broadcast | CollectivePattern::Pipeline);
        if !is_ring {
            return StepPeriod { steps: 1, lap: 0, idle_us: 0.0 };
        }
        let steps = times::ring_steps(&self.shape);
        let chunk = self.network.message_us(load.bytes as f64 / f64::from(steps));
        let [from, to] = [self.rank, (self.rank + 1) % self.shape.ranks];
        let alpha = self.network.alpha_us(from, to);
        let pieces = f64::from(self.shape.pieces);
        StepPeriod { steps, lap: self.shape.ranks, idle_us: (chunk / pieces + alpha - chunk).max(0.0) }
    }
}

/// Rhythm of the messages that cross the cable.
#[derive(Clone, Copy, Debug)]
struct StepPeriod {
    steps: u32,
    /// Steps until a chunk comes back to the cable; 0 if it never does.
    lap: u32,
    idle_us: f64,
}

/// Bytes on the wire of RoCEv2: beside the payload of a packet, and an acknowledgement; with preamble and gap.
pub const ROCE_OVERHEAD: Bytes = Bytes::new(82);
pub const ROCE_ACK: Bytes = Bytes::new(88);

#[cfg(test)]
mod tests;
