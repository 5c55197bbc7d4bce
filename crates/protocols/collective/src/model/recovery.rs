//! Delay of a transfer by one loss, by remedy.
//!
//! A packet is lost at the beginning of its slot. The next packet arrives 2τ + α later and draws a NAK, whose way back is short:
//!
//! | remedy | delay of a loss in the middle | last packet of a step |
//! | --- | --- | --- |
//! | go-back-N | 2τ + α + back, to the next whole packet | α more: the next step's first packet reveals it |
//! | with dummies | the same | a dummy follows at once |
//! | IRN, MELO | τ, or what is left of 2τ + α + back when the message ends | as go-back-N |
//! | LinkGuardian in order, LLR | 2τ, the cable twice and a switch's latency; LLR to the next whole packet | the same |
//! | LinkGuardian out of order under go-back-N | both, one after the other | a dummy on the link reveals it |

use units::Span;

use super::{CableLoad, CollectiveModel};

/// Measure against the losses of the cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Go-back-N as a NIC has it.
    Nothing,
    Dummies,
    Irn,
    Melo,
    /// LinkGuardian in order, and out of order.
    Ordered,
    Nonblocking,
    UecLlr,
}

units::named!(Remedy, "none, dummies, irn, melo, ordered, nonblocking or uec-llr",
    "none" => Self::Nothing,
    "dummies" => Self::Dummies,
    "irn" => Self::Irn,
    "melo" => Self::Melo,
    "ordered" => Self::Ordered,
    "nonblocking" => Self::Nonblocking,
    "uec-llr" => Self::UecLlr,
);

impl Remedy {
    pub const ALL: [Self; 7] =
        [Self::Nothing, Self::Dummies, Self::Irn, Self::Melo, Self::Ordered, Self::Nonblocking, Self::UecLlr];

    /// True if the link recovers its losses itself.
    pub fn is_of_link(self) -> bool {
        matches!(self, Self::Ordered | Self::Nonblocking | Self::UecLlr)
    }
}

/// A remedy and what its parts are set to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RemedySetting {
    pub remedy: Remedy,
    /// Timeout of the queue pairs.
    pub timeout: Span,
    pub dummies: u32,
    /// Loss above the link, if it recovers its own.
    pub effective_loss: f64,
}

/// Effect of losses under a remedy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RecoveryTimes {
    /// Chances that the transport misses a packet, that it misses the last one for good, and that the retransmission is lost.
    pub loss: f64,
    pub tail_loss: f64,
    pub again: f64,
    /// Chance that a packet is late, recovered by the link or above it.
    pub delayed: f64,
    /// Delays that packets of a message have, the last one, and by how much the cable is behind afterwards.
    pub spread: DelaySpread,
    pub tail_us: f64,
    pub lag_us: f64,
    pub timeout: Span,
}

/// Delays of a packet, by its place in the message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct DelaySpread {
    pub middle_us: f64,
    /// A packet with k others behind it is later by this less kτ, if that is more.
    pub near_end_us: f64,
    pub packet_us: f64,
}

impl DelaySpread {
    /// Delay with `behind` packets behind it.
    pub(super) fn at(&self, behind: u64) -> f64 {
        self.middle_us.max(self.near_end_us - behind as f64 * self.packet_us)
    }
}

impl RemedySetting {
    pub(super) fn recovery(&self, model: &CollectiveModel, load: &CableLoad) -> RecoveryTimes {
        let network = &model.network;
        let peer = if model.sends { model.rank + 1 } else { model.rank + model.shape.ranks - 1 } % model.shape.ranks;
        let switches = network.topology.switches(network.hosts[model.rank as usize], network.hosts[peer as usize]);
        let packet = network.packet_us();
        let alpha = network.way_us(switches, packet);
        let ack = network.wire_us(network.ack.into());
        let back = ack + network.way_us(switches, ack);
        let heard = 2.0 * packet + alpha + back;
        let whole = |us: f64| (us / packet).ceil() * packet;
        let link = 2.0 * (packet + network.delay.as_us() + network.wire_us(84)) + network.latency.as_us();
        let dummy = packet + network.wire_us(u64::from(network.overhead)) + network.way_us(switches, 0.0) + back;
        // The next message of the queue pair follows at once if pieces fill the cable.
        let gap = model.period().idle_us.min(alpha);
        let p = model.loss;
        let above = RecoveryTimes {
            loss: p,
            tail_loss: p,
            again: p,
            delayed: p,
            spread: DelaySpread { middle_us: whole(heard), near_end_us: 0.0, packet_us: packet },
            tail_us: heard + gap,
            lag_us: whole(heard),
            timeout: self.timeout,
        };
        let selective = RecoveryTimes {
            spread: DelaySpread { middle_us: packet, near_end_us: heard, packet_us: packet },
            lag_us: packet,
            ..above
        };
        let of_link = |us: f64, tail: f64| RecoveryTimes {
            loss: self.effective_loss,
            tail_loss: self.effective_loss,
            again: self.effective_loss,
            spread: DelaySpread { middle_us: us, near_end_us: 0.0, packet_us: packet },
            tail_us: tail,
            lag_us: us,
            ..above
        };
        let per_message = load.packets / load.messages.max(1);
        match self.remedy {
            Remedy::Nothing => above,
            Remedy::Dummies => RecoveryTimes { tail_loss: p.powi(self.dummies as i32 + 1), tail_us: dummy, ..above },
            Remedy::Irn | Remedy::Melo => selective,
            Remedy::Ordered => of_link(link, link - packet),
            Remedy::UecLlr => of_link(whole(link), whole(link)),
            // A message shorter than the link's own recovery has nothing behind the gap that would be missed.
            Remedy::Nonblocking if per_message < (link / packet) as u64 => of_link(link, link - packet),
            Remedy::Nonblocking => of_link((link / packet).floor() * packet + whole(heard), link - packet),
        }
    }
}
