//! The half of a connection that receives.
//!
//! Data in order is delivered. Data out of order is placed in memory off the chip (MELO §3.2.2), where it costs nothing
//! that is scarce, if the way of recovery can remember that it is there. Messages are announced in order.
//!
//! An acknowledgement is owed when a packet asks for one, when one arrives again, and when one fills a gap: the request of
//! a packet that arrived out of order has been passed over.

use std::collections::VecDeque;

use machine::Out;
use wire::ip::Ecn;

use crate::MessagePart;
use crate::psn::{Numbering, Psn};

use crate::CongestionHeader;

use super::config::SelectiveConfig;
use super::packet::{SelectivePacket, SelectivePacketKind};
use super::recovery::{LossRecovery, PacketArrival};
use super::{RoceCompletion, RoceNote, SelectiveConnection};

/// A data packet as it arrives.
pub(super) struct DataPacket {
    pub part: MessagePart,
    pub payload: u32,
    pub ack_request: bool,
}

/// The last packet of a message.
#[derive(Debug)]
struct MessageEnd {
    place: u64,
    /// Bytes by which it is shorter than a full packet.
    shortfall: u64,
}

#[derive(Debug)]
pub(super) struct SelectiveReceiver {
    numbering: Numbering,
    max_outstanding: u64,
    mtu: u64,
    /// ePSN, as a place.
    next: u64,
    /// Last packets of messages that arrived out of order, ascending by place; beside the data, off the chip.
    ends: VecDeque<MessageEnd>,
    /// Bytes by which packets before `next` were shorter than full ones.
    shortfall: u64,
    ack_owed: bool,
    received: u64,
}

impl SelectiveReceiver {
    pub(super) fn new(config: &SelectiveConfig) -> Self {
        Self {
            numbering: Numbering::starting_at(config.first_psn),
            max_outstanding: u64::from(config.max_outstanding),
            mtu: u64::from(config.mtu),
            next: 0,
            ends: VecDeque::new(),
            shortfall: 0,
            ack_owed: false,
            received: 0,
        }
    }

    #[inline]
    pub(super) fn on_data<R: LossRecovery, O: Out<SelectiveConnection<R>>>(
        &mut self,
        psn: Psn,
        DataPacket { part, payload, ack_request }: DataPacket,
        recovery: &mut R,
        out: &mut O,
    ) {
        let place = self.numbering.place(psn, self.next).filter(|place| *place < self.next + self.max_outstanding);
        let Some(place) = place else { return out.note(RoceNote::Invalid) };
        if place < self.next {
            self.ack_owed = true;
            return out.note(RoceNote::Duplicate);
        }
        match recovery.arrive(place) {
            PacketArrival::Next { passed, filled } => {
                self.next += passed;
                self.ack_owed |= ack_request || filled;
                self.shortfall += self.missing(payload);
                self.announce(part.is_last(), out);
            }
            PacketArrival::Ahead => {
                if part.is_last() {
                    let end = MessageEnd { place, shortfall: self.missing(payload) };
                    self.ends.insert(self.ends.partition_point(|end| end.place < place), end);
                }
                out.note(RoceNote::OutOfOrder);
            }
            PacketArrival::Held => out.note(RoceNote::Duplicate),
            PacketArrival::Dropped => out.note(RoceNote::Dropped),
        }
    }

    pub(super) fn has_passed(&self, psn: Psn) -> bool {
        self.numbering.place(psn, self.next).is_none_or(|place| place < self.next)
    }

    /// Tells of the messages that are whole now.
    #[inline]
    fn announce<R: LossRecovery, O: Out<SelectiveConnection<R>>>(&mut self, ended: bool, out: &mut O) {
        let before = self.received;
        self.received += u64::from(ended);
        while let Some(end) = self.ends.pop_front_if(|end| end.place < self.next) {
            self.shortfall += end.shortfall;
            self.received += 1;
        }
        if self.received > before {
            out.complete(RoceCompletion::Received(self.received));
        }
    }

    /// Bytes by which a packet is shorter than a full one.
    fn missing(&self, payload: u32) -> u64 {
        self.mtu.saturating_sub(u64::from(payload))
    }

    /// Payload that has arrived in order.
    pub(super) fn received_bytes(&self) -> u64 {
        (self.next * self.mtu).saturating_sub(self.shortfall)
    }

    /// Data arrived with an ECN mark.
    pub(super) fn notification(&self) -> SelectivePacket {
        let congestion = CongestionHeader::default();
        SelectivePacket {
            kind: SelectivePacketKind::Notification,
            psn: self.numbering.psn(0),
            ecn: Ecn::NotCapable,
            congestion,
        }
    }

    /// Forgets the packets that arrived out of order, which will come again.
    pub(super) fn forget(&mut self) {
        self.ends.clear();
    }

    pub(super) fn owes_acknowledge<R: LossRecovery>(&self, recovery: &R) -> bool {
        self.ack_owed || recovery.owes_nack()
    }

    /// The ACK or NACK that is due. A NACK acknowledges, too.
    pub(super) fn next_acknowledge<R: LossRecovery, O: Out<SelectiveConnection<R>>>(
        &mut self,
        recovery: &mut R,
        out: &mut O,
    ) -> Option<SelectivePacket> {
        let (kind, place) = if let Some(gaps) = recovery.next_nack() {
            out.note(RoceNote::NakSent);
            (SelectivePacketKind::Nack(gaps), self.next)
        } else if self.ack_owed {
            (SelectivePacketKind::Ack, self.next - 1)
        } else {
            return None;
        };
        self.ack_owed = false;
        let congestion = CongestionHeader::default();
        Some(SelectivePacket { kind, psn: self.numbering.psn(place), ecn: Ecn::NotCapable, congestion })
    }
}
