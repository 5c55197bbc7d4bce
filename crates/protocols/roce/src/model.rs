//! Probability that corruption costs a timeout, and the cost of making that unlikely.
//!
//! "Packet corruption in RDMA" §3.2–§4.3 and §5.2: Theorems 1–12 and Eq. 1. Where they are:
//!
//! | part of the paper | here |
//! | --- | --- |
//! | Theorems 1–3: bits, packets, headers, paths | [`FrameLengths`], [`CorruptionSeverity`], [`FlowPath`] |
//! | Theorems 4–12 as printed | [`theorems`] |
//! | the same without approximation | `exact`, through [`TimeoutModel::estimate`] |
//! | Eq. 1 and the other bandwidth terms | [`TimeoutModel::cost`] |
//! | §3.1: what a timeout costs | [`TimeoutModel::penalty`], [`PenaltyTiming`] |
//! | §5.2: the T of the dummies; what to set | [`TimeoutModel::advise`] |
//!
//! A link corrupts with probability ω and stays as it is; the two directions of a path have nothing to do with each
//! other. So everything that happens to one flow is independent once the numbers of corrupting links ahead and back are
//! known: the exact forms take the mean over both.
//!
//! Points where the paper is loose, and our choices:
//!
//! - Theorem 6 and 7 are for one link; Theorem 10 with no dummy has an L. Here L counts always.
//! - Approximations hold where few links corrupt. With ω = 1 a packet and its retransmission meet all L links again:
//!   P_twice is L² β², not L β².
//! - E(1/S) is the chance that a packet is a tail if the flow is drawn first. The share of tails among all packets on a link is 1/E(S).
//!   "Per packet" is the paper's; "per flow" is what somebody who waits for flows meets.
//! - Dummies cost E(1/S)·62/1086 of a flow's bytes on average over flows, and 62/1086/E(S) of a link's.
//! - A tail is as long as any other packet in the paper; in truth it is shorter, and suffers less ([`FrameLengths::tail`]).
//! - Theorem 12 takes the way ahead as clean. If that link corrupts too, a dummy may be lost in either direction. Copies of a
//!   repeated tail are as long as the tail. Its dummies are answered each by itself; but behind one that is lost, all others
//!   draw a single NAK. So more dummies help less than it says, and copies of NAKs help here, too.
//! - The retransmission can be lost only if a NAK came through; a tail can be NAKed only if a dummy did.
//! - 0.06 stands for both 62/1086 (0.0571) and 68/1086 (0.0626), and Eq. 1 says 0.000 6 β where that gives 0.06 β.
//!   "P_dummy = 0.06^(N+1) P_repeat" should have N. Two theorems are called 8; the second is 9 here.
//! - §6.3: without copies of NAKs 2·0.06/128² is 7·10⁻⁶, not 7·10⁻⁵; and "7 (without twice repeat) and 12 (without NAK
//!   repeat)" are the wrong way round.

mod advise;
mod cost;
mod exact;
mod late;
mod penalty;
pub mod theorems;

use units::{Bytes, Prob};

pub use advise::{Advice, AdvisedSetting, Goal, GoalObstacle, MOST_COPIES};
pub use cost::{Cost, Costs};
pub use exact::{Causes, Estimate, Forms};
pub use penalty::{FlowPenalty, PenaltyTiming, gap_between_flows};

use super::packet;

/// Bytes of what can be corrupted, from the destination address to the frame check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLengths {
    /// A packet without payload: S_h.
    pub header: Bytes,
    /// A full packet: S_p.
    pub packet: Bytes,
    /// An ACK or NAK: S_NAK.
    pub ack: Bytes,
    /// The last packet of a flow; full in the paper.
    pub tail: Bytes,
}

impl FrameLengths {
    /// Packets of a SEND, or behind the first of a WRITE. For a WRITE of one packet add [`packet::RETH`] to the packet, and
    /// to the header if dummies are WRITEs.
    pub const fn of_mtu(mtu: Bytes) -> Self {
        let header = packet::HEADERS as u64;
        let packet = Bytes::new(header + mtu.get());
        Self { header: Bytes::new(header), packet, ack: Bytes::new(packet::ACK_LEN as u64), tail: packet }
    }

    fn ratio(&self, part: Bytes) -> f64 {
        part.get() as f64 / self.packet.get() as f64
    }
}

impl Default for FrameLengths {
    /// The paper's: 62, 1,086 and 68.
    fn default() -> Self {
        Self::of_mtu(Bytes::new(1_024))
    }
}

/// Loss behaviour of a corrupting link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CorruptionSeverity {
    /// α: each bit by itself.
    Bits(Prob),
    /// β: bits, at the rate that corrupts a full packet with this probability.
    Packets(Prob),
    /// Every packet with this probability, regardless of its length: a switch that drops.
    Drops(Prob),
}

impl CorruptionSeverity {
    /// Theorem 1 and 2: how likely `length` bytes are corrupted on one corrupting link.
    pub fn of(self, length: Bytes, lengths: &FrameLengths) -> Prob {
        let bits = |bytes: Bytes| 8.0 * bytes.get() as f64;
        literal(match self {
            Self::Bits(alpha) => any_of(alpha.get(), bits(length)),
            Self::Packets(beta) => any_of(beta.get(), lengths.ratio(length)),
            Self::Drops(share) => share.get(),
        })
    }

    /// α: the share of bits in error. None if packets are dropped regardless of their length.
    pub fn bit_errors(self, lengths: &FrameLengths) -> Option<Prob> {
        match self {
            Self::Bits(alpha) => Some(alpha),
            Self::Packets(beta) => Some(literal(any_of(beta.get(), (8.0 * lengths.packet.get() as f64).recip()))),
            Self::Drops(_) => None,
        }
    }
}

/// 1 − (1 − p)^n without losing small probabilities to rounding.
fn any_of(p: f64, n: f64) -> f64 {
    if n == 0.0 { 0.0 } else { -(n * (-p).ln_1p()).exp_m1() }
}

/// `powf` makes 1 of 0 to the 0, as it must be: no copy, none lost.
fn power(base: f64, exponent: u32) -> f64 {
    base.powf(f64::from(exponent))
}

/// Rounding may leave a sum a hair outside.
fn literal(value: f64) -> Prob {
    Prob::literal(value.clamp(0.0, 1.0))
}

/// The way of a flow through the network; the way back is like it, and independent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowPath {
    /// L.
    pub links: u32,
    /// ω: the share of links that corrupt.
    pub corrupting: Prob,
}

impl FlowPath {
    /// Probabilities that 0, 1, … L links corrupt.
    fn corrupting_links(&self) -> Vec<f64> {
        let (omega, links) = (self.corrupting.get(), self.links as usize);
        let mut chances = vec![0.0; links + 1];
        chances[0] = 1.0;
        for _ in 0..links {
            for k in (0..=links).rev() {
                let below = if k > 0 { chances[k - 1] } else { 0.0 };
                chances[k] = chances[k] * (1.0 - omega) + below * omega;
            }
        }
        chances
    }

    /// Theorem 3: a packet that a corrupting link corrupts with probability `beta` does not come through.
    pub fn corrupts(&self, beta: Prob) -> Prob {
        literal(any_of(beta.get() * self.corrupting.get(), f64::from(self.links)))
    }
}

/// Distribution of the lengths of flows in packets.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowLengths {
    /// E(S).
    pub mean: f64,
    /// E(1/S).
    pub mean_inverse: f64,
    /// Numbers of packets, each with the share of flows that have that number: needed beyond the two means.
    shares: Vec<(u64, f64)>,
}

impl FlowLengths {
    /// Every flow has the same number of packets.
    ///
    /// # Panics
    /// If it has none.
    pub fn fixed(packets: u64) -> Self {
        assert!(packets > 0, "a flow has packets");
        Self { mean: packets as f64, mean_inverse: (packets as f64).recip(), shares: vec![(packets, 1.0)] }
    }

    /// The two means as exactly as they are known, and many flows, each as likely as the other.
    ///
    /// # Panics
    /// If there are no flows, or one has no packets.
    pub fn new(mean: f64, mean_inverse: f64, flows: impl IntoIterator<Item = u64>) -> Self {
        let mut flows: Vec<u64> = flows.into_iter().collect();
        assert!(flows.iter().all(|packets| *packets > 0) && !flows.is_empty(), "flows have packets");
        flows.sort_unstable();
        let share = |alike: &[u64]| (alike[0], alike.len() as f64 / flows.len() as f64);
        let shares = flows.chunk_by(|one, other| one == other).map(share).collect();
        Self { mean, mean_inverse, shares }
    }
}

/// Packets that are sent behind a tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TailProtection {
    /// Headers without payload.
    Dummies(u32),
    /// The tail itself again.
    Repeat(u32),
}

/// Measures against timeouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeoutSetting {
    /// Copies of each NAK, besides the NAK itself.
    pub naks: u32,
    /// Copies of the packet that a NAK asked for, besides the packet itself.
    pub naked: u32,
    /// Sent behind the last packet of every flow, lost or not.
    pub tail: TailProtection,
    /// The requester goes back once for each copy of a NAK, so that each sends the packet again. Copies travel back to back:
    /// the switch, which forgets a PSN when it has repeated it, sees them all before the first retransmission, and
    /// repeats only that one. It holds for a requester that is idle when NAKs arrive; one that is still sending takes
    /// them all in before its next packet, and sends again once.
    pub obeys_copies: bool,
}

impl TimeoutSetting {
    /// No copies and no dummies: go-back-N as a NIC has it.
    pub const NONE: Self = Self { naks: 0, naked: 0, tail: TailProtection::Dummies(0), obeys_copies: false };
    /// "All" in the paper's §6.3.
    pub const ALL: Self = Self { naks: 1, naked: 3, tail: TailProtection::Dummies(2), obeys_copies: false };
    /// "All Optimized".
    pub const ALL_OPTIMIZED: Self = Self { naks: 2, naked: 4, tail: TailProtection::Dummies(3), obeys_copies: false };
}

/// Flows on a path.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeoutModel {
    /// Lengths of the frames of every flow.
    pub lengths: FrameLengths,
    /// Severity of each corrupting link, in both directions.
    pub corruption: CorruptionSeverity,
    /// Path of every flow.
    pub path: FlowPath,
    /// Distribution of the number of packets, at least 1 each.
    pub flows: FlowLengths,
}

impl TimeoutModel {
    /// β, of a full packet on one corrupting link.
    pub fn packet_corruption(&self) -> Prob {
        self.corruption.of(self.lengths.packet, &self.lengths)
    }

    /// γ, of a header.
    pub fn header_corruption(&self) -> Prob {
        self.corruption.of(self.lengths.header, &self.lengths)
    }

    /// δ, of an ACK or NAK.
    pub fn ack_corruption(&self) -> Prob {
        self.corruption.of(self.lengths.ack, &self.lengths)
    }
}

#[cfg(test)]
mod tests;
