//! Cost of a loss in time.
//!
//! "Packet corruption in RDMA" §3.1 and §5.2. A loss that is NAKed costs a round trip. Else the requester waits for its
//! timer; but where flows share a queue pair, the next flow shows that a tail is missing, or has its ACK acknowledge all
//! that went before. Then the gap between flows is the penalty, if it is shorter.
//!
//! So a tail on a shared queue pair is charged min(gap, RTO) and nothing else. [`TimeoutModel::late`] also counts the round
//! trip of the tail's repair, and the chance that the NAK which the next flow draws is lost in turn.

use units::{Bytes, Prob, Rate, Span};

use super::{TailProtection, TimeoutModel, TimeoutSetting};

/// The times that decide what a loss costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PenaltyTiming {
    /// Time until the requester gives up waiting: 4.096 µs × 2^t.
    pub rto: Span,
    /// Round trip without losses: what a NAK and the retransmission take.
    pub rtt: Span,
    /// Mean time between flows on one queue pair; none if every flow has its own.
    pub gap: Option<Span>,
    /// T: how long a queue pair is idle before dummies are sent.
    pub wait: Span,
}

impl PenaltyTiming {
    /// Mean of what a tail waits if it waits for so long, or for the next flow. Flows arrive at random.
    fn at_most(&self, span: Span) -> Span {
        match self.gap {
            None => span,
            Some(Span::ZERO) => Span::ZERO,
            Some(gap) => gap.scale(-(-span.as_secs() / gap.as_secs()).exp_m1()),
        }
    }

    /// Probability that no flow follows within `span`.
    pub(super) fn nothing_within(&self, span: Span) -> f64 {
        match self.gap {
            None => 1.0,
            Some(Span::ZERO) => 0.0,
            Some(gap) => (-span.as_secs() / gap.as_secs()).exp(),
        }
    }
}

/// Mean gap between flows of `mean` bytes on one of `queue_pairs`, if the flows fill the share `load` of a host's link.
pub fn gap_between_flows(mean: Bytes, rate: Rate, load: Prob, queue_pairs: u32) -> Span {
    rate.span_of(mean).scale(f64::from(queue_pairs) / load.get())
}

/// Mean time that corruption adds to a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowPenalty {
    /// NAKs and retransmissions lost.
    pub timeouts: Span,
    /// Tails and their ACKs lost.
    pub tails: Span,
    /// Time of go-back-N repairs.
    pub retransmissions: Span,
}

impl FlowPenalty {
    /// The sum of the three, at most the largest span.
    pub fn total(&self) -> Span {
        plus(plus(self.timeouts, self.tails), self.retransmissions)
    }
}

/// A link that corrupts everything has a penalty beyond all clocks.
fn plus(one: Span, other: Span) -> Span {
    Span::from_ps(one.as_ps().saturating_add(other.as_ps()))
}

impl TimeoutModel {
    /// Mean time that a flow loses to corruption with this setting (§3.1).
    pub fn penalty(&self, setting: &TimeoutSetting, timing: &PenaltyTiming) -> FlowPenalty {
        let estimate = self.estimate(setting);
        let causes = estimate.per_flow.map(|forms| forms.exact);
        let waiting = match setting.tail {
            TailProtection::Dummies(1..) => self.mean_repaired_tails(setting),
            TailProtection::Dummies(0) | TailProtection::Repeat(_) => 0.0,
        };
        FlowPenalty {
            timeouts: timing.rto.scale(causes.nak + causes.twice),
            tails: plus(
                timing.at_most(timing.rto).scale(causes.tail + causes.tail_ack),
                timing.at_most(timing.wait).scale(waiting),
            ),
            retransmissions: timing.rtt.scale(estimate.retransmissions),
        }
    }

    fn mean_repaired_tails(&self, setting: &TimeoutSetting) -> f64 {
        self.given(setting).iter().map(|given| given.weight * given.tail.repaired()).sum()
    }
}
