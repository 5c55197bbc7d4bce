//! RoCEv2, reliable connection: what an RDMA NIC does about loss.
//!
//! InfiniBand specification, vol. 1, §9.7–9.9, with annex A17 for UDP; how commodity NICs behave is described in
//! "Packet corruption in RDMA" §2.1 (measured on ConnectX-6). Where the parts are:
//!
//! | part | here |
//! | --- | --- |
//! | packets and their lengths | [`RocePacket`], [`RoceOperation`], [`Psn`] |
//! | messages into packets, window and pace, timeout and retry | `send_queue` |
//! | ACKs, NAKs, go-back-N, READs | `requester` |
//! | dummies and copies behind a tail | `tail` |
//! | switches that repeat NAKs and what they ask for | [`repeat`] |
//! | expected PSN, one NAK for each, acknowledgements, READ responses | `responder` |
//! | what leaves next, and when | [`Qp`] |
//! | selective retransmission instead of go-back-N | [`selective`], by [`melo`] or [`irn`] |
//! | how likely corruption costs a timeout, and what to do about it | [`model`] |
//!
//! A [`Qp`] is established from the start and stands at both ends: each posts requests of its own and answers the
//! peer's. It has one wire. When that pulls, strictly in this order: ACK or NAK, which do wait for the READ
//! responses before them; packets that are sent again; READ responses; new requests. Congestion notifications come before all of
//! them. All but notifications and acknowledgements are paced, if there is a rate. A controller of the `congestion` crate may set
//! window and pace.
//!
//! Left out: receiver-not-ready (a SEND always finds a buffer), atomics, immediate data, end-to-end credits,
//! and errors that have nothing to do with loss.

mod config;
mod congestion_header;
mod echo;
pub mod irn;
pub mod melo;
pub mod model;
mod pacer;
mod packet;
mod psn;
pub mod repeat;
mod requester;
mod responder;
pub mod selective;
mod send_queue;
mod tail;

use congestion::{Controller, TelemetrySample};
use machine::{Machine, Out, Port, Pull};
use units::Time;

pub use config::{MAX_MESSAGE, MAX_OUTSTANDING, RoceConfig};
pub use congestion_header::{CongestionHeader, RdmaFraming, Telemetry};
pub use packet::{ACK_LEN, AckSyndrome, HEADERS, MessagePart, RETH, RoceOperation, RocePacket};
pub use psn::Psn;

use echo::ArrivalEcho;
use requester::Requester;
use responder::Responder;

/// A queue pair has one wire.
pub const WIRE: Port = Port(0);

/// Operation of a work request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Into a receive buffer that the responder chooses; there always is one.
    Send,
    /// Into memory of the responder at an address that the requester names.
    Write,
    /// Reads memory of the responder; takes one PSN for each packet of the response.
    Read,
}

/// Commands of the owner of a [`Qp`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoceCommand {
    /// A work request of at most [`MAX_MESSAGE`] bytes and [`MAX_OUTSTANDING`] packets.
    Post {
        /// Direction of the data, and the end that chooses its place.
        verb: Verb,
        /// Payload of the message; of 0 bytes it is still one packet.
        bytes: u64,
    },
}

/// Report of a connection to its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoceCompletion {
    /// Number of work requests posted here that are complete, in the order of posting.
    Completed(u64),
    /// Number of SENDs and WRITEs of the peer that have been placed here, in order and without gaps. It does not know yet.
    Received(u64),
    /// The peer does not answer any more. What is not complete is given up; what is posted from now on fails at once.
    Failed,
}

/// Reason why packets are sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoceRetransmitCause {
    /// A NAK or NACK asked for them, or a connection that was swapped out forgot what NACKs had asked for.
    Nak,
    /// An answer from behind a READ response that did not come.
    ImpliedNak,
    /// There was no progress for [`RoceConfig::timeout`].
    Timeout,
}

/// An event for counters and traces; the owner need not react to any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoceNote {
    /// A NAK or NACK left.
    NakSent,
    /// A NAK of an outstanding PSN arrived, or a NACK of anything that was sent.
    NakReceived,
    /// Go-back-N went back by this many PSNs; a READ counts with all its responses. Selective retransmission sends this many
    /// packets again now.
    Retransmitted {
        /// Reason, which all of these packets share.
        cause: RoceRetransmitCause,
        /// PSNs with go-back-N; always 1 with selective retransmission.
        packets: u64,
    },
    /// The retransmission timer expired with work requests outstanding.
    Timeout,
    /// A timeout when nothing but dummies was waited for: nobody was kept waiting.
    IdleTimeout,
    /// A dummy was sent for the first time.
    Dummy,
    /// A tail packet was sent again in advance.
    TailRepeated,
    /// A request, data or an answer that had come before.
    Duplicate,
    /// Selective retransmission placed a packet before one that was sent earlier.
    OutOfOrder,
    /// A packet from behind a gap arrived and was not kept. Go-back-N keeps none; MELO has no bits left, or the packet's bit
    /// is in the middle, where it cannot look: a second copy of a packet that it holds counts here, too.
    Dropped,
    /// A packet that no peer in its right mind sends: dropped.
    Invalid,
}

/// The timers of a connection. A [`SelectiveConnection`](selective::SelectiveConnection) has the first alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoceTimer {
    /// Runs while any PSN is outstanding.
    Retransmission,
    /// Runs from the last packet of a queue until [`RoceConfig::dummies_after`] has passed since the last post.
    Dummies,
}

impl From<RoceTimer> for usize {
    fn from(key: RoceTimer) -> usize {
        key as usize
    }
}

/// One end of a reliable connection.
#[derive(Debug)]
pub struct Qp {
    requester: Requester,
    responder: Responder,
    echo: ArrivalEcho,
    failed: bool,
}

impl Qp {
    /// # Panics
    /// If the MTU is zero.
    pub fn new(mut config: RoceConfig) -> Self {
        assert!(config.mtu > 0, "a packet must be able to carry something");
        // Without room for one, a READ would wait for ever.
        config.max_reads = config.max_reads.max(1);
        let echo = ArrivalEcho::new(&config.congestion, config.framing);
        Self { requester: Requester::new(&config), responder: Responder::new(config), echo, failed: false }
    }

    /// Work requests posted and not complete.
    pub fn pending(&self) -> usize {
        self.requester.queue.pending()
    }

    /// PSNs sent and not acknowledged.
    pub fn outstanding(&self) -> u64 {
        self.requester.queue.outstanding()
    }

    /// Payload of the peer's SENDs and WRITEs that has arrived in order.
    pub fn received_bytes(&self) -> u64 {
        self.responder.received_bytes
    }

    /// True if everything up to the peer's packet of this PSN has arrived.
    pub fn has_passed(&self, psn: Psn) -> bool {
        self.responder.has_passed(psn)
    }

    /// Controller of its window and pace.
    pub fn controller(&self) -> &Controller {
        self.requester.queue.controller()
    }

    /// True if an acknowledgement or a notification is the next to be sent.
    #[inline]
    pub fn owes_control(&self) -> bool {
        self.echo.owes_cnp() || self.responder.owes_acknowledge()
    }

    fn has_data(&self) -> bool {
        self.responder.has_reply() || self.requester.may_send()
    }

    fn wants_to_send(&self) -> bool {
        self.owes_control() || self.has_data()
    }

    fn next_data<O: Out<Self>>(&mut self, now: Time, out: &mut O) -> Option<RocePacket> {
        let again = self.requester.queue.is_behind() && self.requester.may_send();
        if self.responder.has_reply() && !again {
            Some(self.responder.next_reply())
        } else {
            self.requester.next_packet(now, out)
        }
    }

    fn transmit<O: Out<Self>>(&self, packet: RocePacket, out: &mut O) -> Pull {
        out.transmit(WIRE, packet);
        if self.wants_to_send() { Pull::Sent } else { Pull::Last }
    }

    /// A packet has come; with it, if it is an acknowledgement, what switches wrote on the data that it answers.
    pub fn on_packet<O: Out<Self>>(
        &mut self,
        now: Time,
        packet: RocePacket,
        telemetry: Option<TelemetrySample<'_>>,
        out: &mut O,
    ) {
        if self.failed {
            return;
        }
        match packet.opcode {
            RoceOperation::Send(part) | RoceOperation::Write(part) => {
                self.echo.on_data(now, packet.ecn, &packet.congestion);
                self.responder.on_message(now, &packet, part, out);
            }
            RoceOperation::ReadRequest => self.responder.on_read(now, &packet, out),
            RoceOperation::ReadResponse(_) => self.requester.on_read_response(now, packet.psn, out),
            RoceOperation::Acknowledge(syndrome) => {
                self.requester.on_acknowledge(now, (&packet, syndrome), telemetry, out);
            }
            RoceOperation::Notification => self.requester.queue.on_notification(now),
        }
        if self.wants_to_send() {
            out.wake(WIRE);
        }
    }

    /// The notification or acknowledgement that is due.
    fn next_control<O: Out<Self>>(&mut self, out: &mut O) -> Option<RocePacket> {
        if self.echo.take_cnp() {
            return Some(self.responder.notification());
        }
        let acknowledge = self.responder.next_acknowledge(out)?;
        Some(RocePacket { congestion: self.echo.take(), ..acknowledge })
    }

    fn fail<O: Out<Self>>(&mut self, out: &mut O) {
        self.failed = true;
        self.requester.flush(out);
        out.complete(RoceCompletion::Failed);
    }
}

impl Machine for Qp {
    type Frame = RocePacket;
    type Inner = ();
    type Timer = RoceTimer;
    type Command = RoceCommand;
    type Done = RoceCompletion;
    type Note = RoceNote;

    #[inline]
    fn on_frame<O: Out<Self>>(&mut self, now: Time, _port: Port, packet: RocePacket, out: &mut O) {
        self.on_packet(now, packet, None, out);
    }

    fn on_timer<O: Out<Self>>(&mut self, now: Time, key: RoceTimer, out: &mut O) {
        let goes_on = match key {
            RoceTimer::Retransmission => self.requester.on_timer(now, out),
            RoceTimer::Dummies => {
                self.requester.attend_tail(now, out);
                true
            }
        };
        if !goes_on {
            self.fail(out);
        } else if self.wants_to_send() {
            out.wake(WIRE);
        }
    }

    fn on_command<O: Out<Self>>(&mut self, now: Time, command: RoceCommand, out: &mut O) {
        let RoceCommand::Post { verb, bytes } = command;
        if self.failed {
            return out.complete(RoceCompletion::Failed);
        }
        self.requester.post(now, verb, bytes);
        out.wake(WIRE);
    }

    fn pull<O: Out<Self>>(&mut self, now: Time, _port: Port, out: &mut O) -> Pull {
        if self.failed {
            return Pull::Idle;
        }
        if let Some(control) = self.next_control(out) {
            return self.transmit(control, out);
        }
        if !self.has_data() {
            return Pull::Idle;
        }
        if let Some(until) = self.requester.queue.held_until(now) {
            return Pull::NotBefore(until);
        }
        let Some(packet) = self.next_data(now, out) else { return Pull::Idle };
        self.requester.queue.on_leaving(now, packet.frame_len());
        self.transmit(packet, out)
    }

    fn check_invariants(&self) {
        self.requester.queue.check_invariants();
    }
}
