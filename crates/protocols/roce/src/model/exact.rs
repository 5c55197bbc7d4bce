//! The four causes without approximation.
//!
//! "Packet corruption in RDMA" §3.3–§4.3. K of the L links ahead and K′ of the L links back corrupt. Given K and K′, packets
//! are lost independently. [`GivenLinks`] has the chances then; [`TimeoutModel::estimate`] takes the mean over K and K′.
//!
//! A body packet (any but the tail) is always followed by something that draws a NAK: that all of the rest of a flow is lost
//! is left to the tail. Each packet meets its fate on its first chance to be the one that the responder expects; what is
//! sent between a loss and its retransmission is dropped anyhow, and counts for nothing.

use super::theorems::{self, Ratios};
use super::{TailProtection, TimeoutModel, TimeoutSetting, any_of, power};

/// A value for each cause of a timeout.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Causes<T> {
    /// A packet and its NAK.
    pub nak: T,
    /// A packet and its retransmission.
    pub twice: T,
    /// The last packet of a flow.
    pub tail: T,
    /// The ACK of the last packet.
    pub tail_ack: T,
}

impl<T: Copy> Causes<T> {
    /// Values with their names, in the paper's order.
    pub fn named(&self) -> [(&'static str, T); 4] {
        [("nak", self.nak), ("twice", self.twice), ("tail", self.tail), ("tail_ack", self.tail_ack)]
    }

    /// Applies `with` to each of the four.
    pub fn map<U>(&self, with: impl Fn(T) -> U) -> Causes<U> {
        Causes { nak: with(self.nak), twice: with(self.twice), tail: with(self.tail), tail_ack: with(self.tail_ack) }
    }

    fn join<U: Copy, V>(&self, other: &Causes<U>, with: impl Fn(T, U) -> V) -> Causes<V> {
        Causes {
            nak: with(self.nak, other.nak),
            twice: with(self.twice, other.twice),
            tail: with(self.tail, other.tail),
            tail_ack: with(self.tail_ack, other.tail_ack),
        }
    }
}

impl Causes<f64> {
    /// Sum over the four causes.
    pub fn total(&self) -> f64 {
        self.nak + self.twice + self.tail + self.tail_ack
    }
}

impl Causes<Forms> {
    /// Sum over the four causes, in each form by itself.
    pub fn total(&self) -> Forms {
        let sum = |of: fn(Forms) -> f64| self.map(of).total();
        Forms {
            exact: sum(|forms| forms.exact),
            approximate: sum(|forms| forms.approximate),
            rounded: sum(|forms| forms.rounded),
        }
    }
}

/// One quantity in three ways.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Forms {
    /// Exact share: the mean over the numbers of corrupting links.
    pub exact: f64,
    /// The paper's first term, with exact ratios of lengths.
    pub approximate: f64,
    /// The paper's first term, with its 0.06.
    pub rounded: f64,
}

/// Expected numbers of timeouts. All are small, so that a number of timeouts is as good as the chance of one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Timeouts per packet of a random flow, as the paper counts.
    pub per_packet: Causes<Forms>,
    /// Timeouts per flow.
    pub per_flow: Causes<Forms>,
    /// Losses of a flow that go-back-N repairs, exactly.
    pub retransmissions: f64,
    /// Probability that a flow has a timeout at all, exactly. Less than the sum of causes where some flows have many.
    pub flow_with_timeout: f64,
}

/// Chances where K and K′ links corrupt.
#[derive(Clone, Copy, Debug)]
pub(super) struct GivenLinks {
    /// Probability that K and K′ links corrupt.
    pub weight: f64,
    /// A body packet is lost.
    pub lost: f64,
    /// All its NAKs are lost, so that the requester times out.
    pub nak: f64,
    /// All sends of its retransmission are.
    pub twice: f64,
    pub tail: GivenTail,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct GivenTail {
    /// The tail is lost, and so is every packet that could have shown the loss.
    pub unseen: f64,
    /// The packet arrives, and no ACK comes back.
    pub unacknowledged: f64,
    /// The packet is lost, and a dummy shows it.
    pub seen: f64,
    /// Probability that all NAKs are lost, or the tail again.
    naks_lost: f64,
    lost_again: f64,
    pub in_vain: f64,
}

impl GivenTail {
    pub(super) fn repaired(&self) -> f64 {
        self.seen * (1.0 - self.in_vain)
    }
}

impl GivenLinks {
    fn causes_of_flow(&self, packets: f64) -> Causes<f64> {
        let body = packets - 1.0;
        Causes {
            nak: body * self.nak + self.tail.seen * self.tail.naks_lost,
            twice: body * self.twice + self.tail.seen * self.tail.lost_again,
            tail: self.tail.unseen,
            tail_ack: self.tail.unacknowledged,
        }
    }

    /// A body packet that is lost, NAKed and sent again in time.
    pub(super) fn repaired(&self) -> f64 {
        (self.lost - self.nak - self.twice).max(0.0)
    }

    /// A body packet ends in a timeout.
    pub(super) fn body_timeout(&self) -> f64 {
        (self.nak + self.twice).min(1.0)
    }

    fn flow_with_timeout(&self, packets: u64) -> f64 {
        let tail = self.tail.unseen + self.tail.unacknowledged + self.tail.seen * self.tail.in_vain;
        let body = any_of(self.body_timeout(), (packets - 1) as f64);
        body + (1.0 - body) * tail.min(1.0)
    }
}

impl TimeoutModel {
    /// Theorems 4 to 12, as printed and without approximation.
    pub fn estimate(&self, setting: &TimeoutSetting) -> Estimate {
        let given = self.given(setting);
        let mean = |of: &dyn Fn(&GivenLinks) -> f64| given.iter().map(|given| given.weight * of(given)).sum::<f64>();
        let of_flow = given.iter().fold(Causes::default(), |sum: Causes<f64>, given| {
            sum.join(&given.causes_of_flow(self.flows.mean), |sum, one| sum + given.weight * one)
        });
        let tails = self.flows.mean_inverse;
        let of_packet = Causes {
            nak: mean(&|given| given.nak),
            twice: mean(&|given| given.twice),
            tail: tails * mean(&|given| given.tail.unseen),
            tail_ack: tails * mean(&|given| given.tail.unacknowledged),
        };
        let approximate = theorems::per_packet(self, setting, Ratios::of(&self.lengths, self.corruption));
        let rounded = theorems::per_packet(self, setting, Ratios::ROUNDED);
        let flow = |causes: Causes<f64>| self.of_packet_to_flow(causes);
        Estimate {
            per_packet: forms(of_packet, approximate, rounded),
            per_flow: forms(of_flow, flow(approximate), flow(rounded)),
            retransmissions: mean(&|given| (self.flows.mean - 1.0) * given.repaired() + given.tail.repaired()),
            flow_with_timeout: mean(&|given| {
                self.flows.shares.iter().map(|(packets, share)| share * given.flow_with_timeout(*packets)).sum()
            }),
        }
    }

    /// A flow has E(S) packets and one tail.
    fn of_packet_to_flow(&self, causes: Causes<f64>) -> Causes<f64> {
        let (packets, tails) = (self.flows.mean, self.flows.mean_inverse);
        Causes {
            nak: causes.nak * packets,
            twice: causes.twice * packets,
            tail: causes.tail / tails,
            tail_ack: causes.tail_ack / tails,
        }
    }

    /// Probability that a full packet is lost on its way.
    pub(super) fn lost(&self) -> f64 {
        let beta = self.packet_corruption().get();
        let links = self.path.corrupting_links();
        links.iter().enumerate().map(|(k, weight)| weight * any_of(beta, k as f64)).sum()
    }

    pub(super) fn given(&self, setting: &TimeoutSetting) -> Vec<GivenLinks> {
        let links = self.path.corrupting_links();
        let likely = || links.iter().enumerate().filter(|(_, weight)| **weight > 0.0);
        let one = |(ahead, weight): (usize, &f64)| {
            let weight = *weight;
            likely().map(move |(back, other)| self.given_links(setting, weight * other, ahead, back))
        };
        likely().flat_map(one).collect()
    }

    fn given_links(&self, setting: &TimeoutSetting, weight: f64, ahead: usize, back: usize) -> GivenLinks {
        let lost_of = |length| any_of(self.corruption.of(length, &self.lengths).get(), ahead as f64);
        let lost = lost_of(self.lengths.packet);
        let ack_lost = any_of(self.ack_corruption().get(), back as f64);
        let again = RetransmissionChance { setting, ack_lost };
        GivenLinks {
            weight,
            lost,
            nak: lost * again.naks_lost(),
            twice: lost * again.lost_again(lost),
            tail: match setting.tail {
                TailProtection::Dummies(dummies) => {
                    behind_tail(lost_of(self.lengths.tail), lost_of(self.lengths.header), dummies, &again)
                }
                TailProtection::Repeat(copies) => repeated_tail(lost_of(self.lengths.tail), copies, &again),
            },
        }
    }
}

/// Chances of the retransmission that follows once a loss has been seen.
struct RetransmissionChance<'a> {
    setting: &'a TimeoutSetting,
    /// An ACK or NAK is lost.
    ack_lost: f64,
}

impl RetransmissionChance<'_> {
    fn naks_lost(&self) -> f64 {
        power(self.ack_lost, self.setting.naks + 1)
    }

    /// A NAK arrives, and what is sent again is lost, all of it.
    fn lost_again(&self, lost: f64) -> f64 {
        let naks = self.setting.naks + 1;
        if self.setting.obeys_copies {
            // Summed over how many NAKs arrive, each of which has the packet sent once.
            let each = self.ack_lost + (1.0 - self.ack_lost) * lost;
            power(lost, self.setting.naked) * (power(each, naks) - self.naks_lost())
        } else {
            power(lost, self.setting.naked + 1) * (1.0 - self.naks_lost())
        }
    }

    fn tail(&self, lost: f64) -> GivenTail {
        let (naks_lost, lost_again) = (self.naks_lost(), self.lost_again(lost));
        let in_vain = (naks_lost + lost_again).min(1.0);
        GivenTail { unseen: 0.0, unacknowledged: 0.0, seen: 0.0, naks_lost, lost_again, in_vain }
    }
}

fn behind_tail(lost: f64, dummy_lost: f64, dummies: u32, again: &RetransmissionChance<'_>) -> GivenTail {
    let none_arrives = power(dummy_lost, dummies);
    GivenTail {
        unseen: lost * none_arrives,
        unacknowledged: (1.0 - lost) * again.ack_lost * dummies_unanswered(dummy_lost, dummies, again),
        seen: lost * (1.0 - none_arrives),
        ..again.tail(lost)
    }
}

/// Probability that no answer to any dummy comes back, though the tail arrived. The receiver acknowledges dummies one by one
/// until one is lost; those behind it cause one NAK together.
fn dummies_unanswered(lost: f64, dummies: u32, again: &RetransmissionChance<'_>) -> f64 {
    let ack_lost = (1.0 - lost) * again.ack_lost;
    let first_lost = |before: u32| {
        let none_behind = power(lost, dummies - before - 1);
        power(ack_lost, before) * lost * (none_behind + (1.0 - none_behind) * again.naks_lost())
    };
    (0..dummies).map(first_lost).sum::<f64>() + power(ack_lost, dummies)
}

/// A copy that arrives is as good as the tail; nothing shows that one was lost.
fn repeated_tail(lost: f64, copies: u32, again: &RetransmissionChance<'_>) -> GivenTail {
    let unseen = power(lost, copies + 1);
    let unanswered = lost + (1.0 - lost) * again.ack_lost;
    GivenTail { unseen, unacknowledged: (power(unanswered, copies + 1) - unseen).max(0.0), ..again.tail(lost) }
}

fn forms(exact: Causes<f64>, approximate: Causes<f64>, rounded: Causes<f64>) -> Causes<Forms> {
    exact
        .join(&approximate, |exact, approximate| (exact, approximate))
        .join(&rounded, |(exact, approximate), rounded| Forms { exact, approximate, rounded })
}
