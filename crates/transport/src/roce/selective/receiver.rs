//! The half of a connection that receives.
//!
//! What is in order is delivered; what is not is placed in memory off the chip (MELO §3.2.2), where it costs nothing that
//! is scarce, if the way of recovery can remember that it is there. Messages are announced in order.
//!
//! An acknowledgement is owed when a packet asks for one, when one arrives again, and when one fills a gap: the request of
//! a packet that arrived out of order has been passed over.

use std::collections::VecDeque;

use machine::Out;
use wire::ip::Ecn;

use crate::roce::Part;
use crate::roce::psn::{Numbering, Psn};

use super::config::Config;
use super::packet::{Kind, Packet};
use super::recovery::{Arrival, Recovery};
use super::{Connection, Done, Note};

#[derive(Debug)]
pub(super) struct Receiver {
    numbering: Numbering,
    max_outstanding: u64,
    /// ePSN, as a place.
    next: u64,
    /// Places of last packets of messages that arrived out of order, ascending; beside the data, off the chip.
    ends: VecDeque<u64>,
    ack_owed: bool,
    received: u64,
}

impl Receiver {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            numbering: Numbering::starting_at(config.first_psn),
            max_outstanding: u64::from(config.max_outstanding),
            next: 0,
            ends: VecDeque::new(),
            ack_owed: false,
            received: 0,
        }
    }

    #[inline]
    pub(super) fn on_data<R: Recovery, O: Out<Connection<R>>>(
        &mut self,
        (psn, part, ack_request): (Psn, Part, bool),
        recovery: &mut R,
        out: &mut O,
    ) {
        let place = self.numbering.place(psn, self.next).filter(|place| *place < self.next + self.max_outstanding);
        let Some(place) = place else { return out.note(Note::Invalid) };
        if place < self.next {
            self.ack_owed = true;
            return out.note(Note::Duplicate);
        }
        match recovery.arrive(place) {
            Arrival::Next { passed, filled } => {
                self.next += passed;
                self.ack_owed |= ack_request || filled;
                self.announce(part.is_last(), out);
            }
            Arrival::Ahead => {
                if part.is_last() {
                    self.ends.insert(self.ends.partition_point(|end| *end < place), place);
                }
                out.note(Note::OutOfOrder);
            }
            Arrival::Held => out.note(Note::Duplicate),
            Arrival::Dropped => out.note(Note::Dropped),
        }
    }

    /// Tells of the messages that are whole now.
    #[inline]
    fn announce<R: Recovery, O: Out<Connection<R>>>(&mut self, ended: bool, out: &mut O) {
        let before = self.received;
        self.received += u64::from(ended);
        while self.ends.pop_front_if(|end| *end < self.next).is_some() {
            self.received += 1;
        }
        if self.received > before {
            out.complete(Done::Received(self.received));
        }
    }

    /// What arrived out of order has been forgotten, and will come again.
    pub(super) fn forget(&mut self) {
        self.ends.clear();
    }

    pub(super) fn owes_acknowledge<R: Recovery>(&self, recovery: &R) -> bool {
        self.ack_owed || recovery.owes_nack()
    }

    /// The ACK or NACK that is due. A NACK acknowledges, too.
    pub(super) fn next_acknowledge<R: Recovery, O: Out<Connection<R>>>(
        &mut self,
        recovery: &mut R,
        out: &mut O,
    ) -> Option<Packet> {
        let (kind, place) = if let Some(gaps) = recovery.next_nack() {
            out.note(Note::NakSent);
            (Kind::Nack(gaps), self.next)
        } else if self.ack_owed {
            (Kind::Ack, self.next - 1)
        } else {
            return None;
        };
        self.ack_owed = false;
        Some(Packet { kind, psn: self.numbering.psn(place), ecn: Ecn::NotCapable })
    }
}
