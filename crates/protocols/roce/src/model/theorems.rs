//! Theorems 4–12 as the paper prints them: first terms, for small β and few corrupting links.
//!
//! β is that of a full packet on one corrupting link; what a shorter packet suffers is a share of it: [`Ratios`]. Copies are
//! those besides the original, so the N of Theorems 8 and 9 is one more. All are chances per packet; of a tail they have to
//! be multiplied by E(1/S), which is left to [`per_packet`].

use units::Prob;

use super::exact::Causes;
use super::{CorruptionSeverity, FlowPath, FrameLengths, TailProtection, TimeoutModel, TimeoutSetting, power};

/// Corruption of a header and of an ACK, as a share of that of a full packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratios {
    pub(super) header: f64,
    pub(super) ack: f64,
}

impl Ratios {
    /// The paper's 0.06 for both.
    pub const ROUNDED: Self = Self { header: 0.06, ack: 0.06 };

    /// 62/1086 and 68/1086, or what other lengths make of it.
    pub fn of(lengths: &FrameLengths, corruption: CorruptionSeverity) -> Self {
        match corruption {
            CorruptionSeverity::Drops(_) => Self { header: 1.0, ack: 1.0 },
            CorruptionSeverity::Bits(_) | CorruptionSeverity::Packets(_) => {
                Self { header: lengths.ratio(lengths.header), ack: lengths.ratio(lengths.ack) }
            }
        }
    }
}

/// Theorems 4 and 8, 0.06^N L² β^(N+1) ω²: a packet, its NAK and all copies of that.
pub fn nak(path: &FlowPath, beta: Prob, ratios: Ratios, copies: u32) -> f64 {
    expected_links(path).powi(2) * beta.get() * power(ratios.ack * beta.get(), copies + 1)
}

/// Theorems 5 and 9, L β^(N+1) ω: a packet, its retransmission and all copies of that.
pub fn twice(path: &FlowPath, beta: Prob, copies: u32) -> f64 {
    expected_links(path) * power(beta.get(), copies + 2)
}

/// Theorems 6 and 10, 0.06^N L β^(N+1) ω: a tail and all dummies behind it.
pub(crate) fn tail_with_dummies(path: &FlowPath, beta: Prob, ratios: Ratios, dummies: u32) -> f64 {
    expected_links(path) * beta.get() * power(ratios.header * beta.get(), dummies)
}

/// Theorem 11, L β^(N+1) ω: a tail and all its copies.
pub(crate) fn tail_with_copies(path: &FlowPath, beta: Prob, copies: u32) -> f64 {
    expected_links(path) * power(beta.get(), copies + 1)
}

/// Theorems 7 and 12, 0.06^(N+1) L β^(N+1) ω: the ACKs of a tail and of all that was sent behind it.
pub fn tail_ack(path: &FlowPath, beta: Prob, ratios: Ratios, behind: u32) -> f64 {
    expected_links(path) * power(ratios.ack * beta.get(), behind + 1)
}

/// All four, per packet, as the paper counts.
pub fn per_packet(model: &TimeoutModel, setting: &TimeoutSetting, ratios: Ratios) -> Causes<f64> {
    let (path, beta, tails) = (&model.path, model.packet_corruption(), model.flows.mean_inverse);
    let (tail, behind) = match setting.tail {
        TailProtection::Dummies(dummies) => (tail_with_dummies(path, beta, ratios, dummies), dummies),
        TailProtection::Repeat(copies) => (tail_with_copies(path, beta, copies), copies),
    };
    Causes {
        nak: nak(path, beta, ratios, setting.naks),
        twice: twice(path, beta, setting.naked),
        tail: tails * tail,
        tail_ack: tails * tail_ack(path, beta, ratios, behind),
    }
}

/// L ω.
fn expected_links(path: &FlowPath) -> f64 {
    f64::from(path.links) * path.corrupting.get()
}
