//! The half of a queue pair that receives requests and answers them.
//!
//! InfiniBand specification, vol. 1, §9.7.4–9.7.5; "Packet corruption in RDMA" §2.1, Fig. 1. Only the expected PSN
//! (ePSN) is accepted. One that lies ahead is dropped and causes one NAK; one that lies behind is a duplicate and is
//! answered again: a WRITE or SEND with the latest acknowledgement, a READ with its data.
//!
//! ```text
//!   InOrder ──PSN > ePSN──▶ NakOwed ──sent──▶ NakSent
//!      ▲                       └──────────┬──────┘
//!      └──────────── PSN = ePSN ──────────┘
//! ```
//!
//! With `nak_interval` no NAK follows another within that time, whatever is missing, and afterwards the same one is sent again.
//!
//! Answers leave in the order of their PSNs: an ACK or NAK waits for the READ responses before it, because it would
//! otherwise report to the requester that those were lost.
//!
//! Like the paper's figure, it leaves out everything that does not bear on order: the sequence of opcodes is not checked.

use std::collections::VecDeque;

use machine::Out;
use units::{Span, Time};
use wire::ip::Ecn;

use super::config::{MAX_OUTSTANDING, RoceConfig, packets};
use super::congestion_header::CongestionHeader;
use super::packet::{AckSyndrome, MessagePart, RoceOperation, RocePacket};
use super::psn::{Numbering, Psn};
use super::{Qp, RoceCompletion, RoceNote};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResponderState {
    InOrder,
    NakOwed,
    NakSent,
}

/// Rest of a READ's data that is still to be sent.
#[derive(Clone, Copy, Debug)]
struct ReadReply {
    /// Place of the next response, and the one behind the last.
    next: u64,
    end: u64,
    bytes: u64,
    started: bool,
}

#[derive(Debug)]
pub(super) struct Responder {
    config: RoceConfig,
    numbering: Numbering,
    /// ePSN, as a place.
    expected: u64,
    state: ResponderState,
    /// Time before which no NAK is sent.
    nak_after: Time,
    /// The last place for which an acknowledgement is due.
    ack_owed: Option<u64>,
    /// READs to be answered, in the order of their PSNs.
    replies: VecDeque<ReadReply>,
    /// Requests executed; on the wire, 24 bits of it.
    msn: u32,
    /// Messages placed: SENDs and WRITEs.
    received: u64,
    /// Payload that arrived in order.
    pub received_bytes: u64,
}

impl Responder {
    pub(super) fn new(config: RoceConfig) -> Self {
        Self {
            config,
            numbering: Numbering::starting_at(config.first_psn),
            expected: 0,
            state: ResponderState::InOrder,
            nak_after: Time::ZERO,
            ack_owed: None,
            replies: VecDeque::new(),
            msn: 0,
            received: 0,
            received_bytes: 0,
        }
    }

    /// A SEND or WRITE.
    #[inline]
    pub(super) fn on_message<O: Out<Qp>>(&mut self, now: Time, packet: &RocePacket, part: MessagePart, out: &mut O) {
        let Some(place) = self.numbering.place(packet.psn, self.expected) else { return out.note(RoceNote::Invalid) };
        if place > self.expected {
            return self.on_gap(now, out);
        }
        if place < self.expected {
            out.note(RoceNote::Duplicate);
            self.ack_owed = Some(self.expected - 1);
            return;
        }
        self.accept(1);
        self.received_bytes += u64::from(packet.payload);
        if packet.ack_request {
            self.ack_owed = Some(place);
        }
        if part.is_last() {
            self.count_request();
            // An empty WRITE places nothing, so its arrival cannot be observed.
            if packet.dma_len > 0 || matches!(packet.opcode, RoceOperation::Send(_)) {
                self.received += 1;
                out.complete(RoceCompletion::Received(self.received));
            }
        }
    }

    pub(super) fn has_passed(&self, psn: Psn) -> bool {
        self.numbering.place(psn, self.expected).is_none_or(|place| place < self.expected)
    }

    pub(super) fn on_read<O: Out<Qp>>(&mut self, now: Time, packet: &RocePacket, out: &mut O) {
        let bytes = u64::from(packet.dma_len);
        let packets = packets(bytes, self.config.mtu);
        let place = self.numbering.place(packet.psn, self.expected).filter(|_| packets <= u64::from(MAX_OUTSTANDING));
        let Some(place) = place else { return out.note(RoceNote::Invalid) };
        let reply = ReadReply { next: place, end: place + packets, bytes, started: false };
        if place > self.expected {
            self.on_gap(now, out);
        } else if place < self.expected {
            out.note(RoceNote::Duplicate);
            self.replay(reply, out);
        } else if self.has_room() {
            self.accept(packets);
            self.count_request();
            self.replies.push_back(reply);
        } else {
            out.note(RoceNote::Invalid);
        }
    }

    fn accept(&mut self, packets: u64) {
        self.expected += packets;
        self.state = ResponderState::InOrder;
    }

    fn count_request(&mut self) {
        self.msn = (self.msn + 1) % (1 << 24);
    }

    fn on_gap<O: Out<Qp>>(&mut self, now: Time, out: &mut O) {
        out.note(RoceNote::Dropped);
        let again = self.config.nak_interval > Span::ZERO && self.state == ResponderState::NakSent;
        if self.config.naks && now >= self.nak_after && (again || self.state == ResponderState::InOrder) {
            self.state = ResponderState::NakOwed;
            self.nak_after = now + self.config.nak_interval;
        }
    }

    /// Answers a READ again, from where its requester misses data.
    fn replay<O: Out<Qp>>(&mut self, reply: ReadReply, out: &mut O) {
        if reply.end > self.expected {
            return out.note(RoceNote::Invalid);
        }
        let has_room = self.has_room();
        let at = self.replies.partition_point(|other| other.end <= reply.next);
        match self.replies.get_mut(at) {
            // The requested responses are still to be sent.
            Some(same) if same.next <= reply.next => {}
            Some(same) if same.next < reply.end => *same = reply,
            _ if has_room => self.replies.insert(at, reply),
            _ => out.note(RoceNote::Invalid),
        }
    }

    /// A requester that keeps to `max_reads` has no more than that sent again, either; both may wait at a time.
    fn has_room(&self) -> bool {
        self.replies.len() < 2 * self.config.max_reads as usize
    }

    pub(super) fn has_reply(&self) -> bool {
        !self.replies.is_empty()
    }

    /// # Panics
    /// Unless [`Responder::has_reply`].
    pub(super) fn next_reply(&mut self) -> RocePacket {
        let mtu = u64::from(self.config.mtu);
        let reply = self.replies.front_mut().expect("a READ is to be answered");
        let payload = reply.bytes.min(mtu);
        let place = reply.next;
        let last = place + 1 == reply.end;
        let part = MessagePart::new(!reply.started, last);
        *reply = ReadReply { next: place + 1, bytes: reply.bytes - payload, started: true, ..*reply };
        if last {
            self.replies.pop_front();
        }
        RocePacket {
            payload: payload as u32,
            ecn: self.config.ecn,
            ..self.answer(RoceOperation::ReadResponse(part), place)
        }
    }

    pub(super) fn owes_acknowledge(&self) -> bool {
        if self.state == ResponderState::NakOwed {
            return self.replies.is_empty();
        }
        self.ack_owed.is_some_and(|place| self.replies.front().is_none_or(|reply| reply.next > place))
    }

    /// The ACK or NAK that is due.
    pub(super) fn next_acknowledge<O: Out<Qp>>(&mut self, out: &mut O) -> Option<RocePacket> {
        if !self.owes_acknowledge() {
            return None;
        }
        self.ack_owed = None;
        if self.state == ResponderState::NakOwed {
            self.state = ResponderState::NakSent;
            out.note(RoceNote::NakSent);
            return Some(self.answer(RoceOperation::Acknowledge(AckSyndrome::SequenceError), self.expected));
        }
        let arrived = self.replies.front().map_or(self.expected, |reply| reply.next);
        Some(self.answer(RoceOperation::Acknowledge(AckSyndrome::Ack), arrived - 1))
    }

    fn answer(&self, opcode: RoceOperation, place: u64) -> RocePacket {
        RocePacket {
            opcode,
            psn: self.numbering.psn(place),
            payload: 0,
            dma_len: 0,
            msn: self.msn,
            ack_request: false,
            ecn: Ecn::NotCapable,
            congestion: CongestionHeader::default(),
        }
    }

    /// Packets of the peer arrived with an ECN mark.
    pub(super) fn notification(&self) -> RocePacket {
        self.answer(RoceOperation::Notification, 0)
    }
}
