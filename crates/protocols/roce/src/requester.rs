//! The half of a queue pair that sends requests and sees them completed.
//!
//! InfiniBand specification, vol. 1, §9.7.3, §9.7.6 and §9.9.2; "Packet corruption in RDMA" §2.1. Messages and places are in
//! `send_queue`; a READ is one packet, but takes the PSNs of its responses. Recovery is go-back-N: what is outstanding is
//! sent again, all of it, from the first packet not acknowledged.
//!
//! A READ is acknowledged by its data alone. An answer from behind a response that has not come says that it is lost
//! (an implied NAK): the READ is issued again from there, once; if that fails too, the timeout is left.
//!
//! `tail` says what follows a tail. Dummies are messages like any other, but their completion is not reported, and those
//! that were not sent yet make way for what is posted; behind a READ they are READs, to pull empty responses. Those that
//! the window, the limit of READs or a rate held back until the tail was acknowledged are dropped.

use congestion::TelemetrySample;
use machine::Out;
use units::Time;

use super::config::{MAX_OUTSTANDING, RoceConfig};
use super::congestion_header::CongestionHeader;
use super::irn::Timeouts;
use super::packet::{AckSyndrome, RoceOperation, RocePacket};
use super::psn::Psn;
use super::selective::{self, SendWindow};
use super::send_queue::{Expiry, SendQueue, WorkRequest};
use super::tail::{DummyAction, TailState};
use super::{Qp, RoceNote, RoceRetransmitCause, RoceTimer, Verb};

#[derive(Debug)]
pub(super) struct Requester {
    pub queue: SendQueue,
    max_reads: u32,
    obey_nak_copies: bool,
    /// READs that were sent and are not complete.
    reads: u32,
    /// Place to which the last NAK, spoken or implied, led back.
    went_back_to: Option<u64>,
    tail: TailState,
}

impl Requester {
    pub(super) fn new(config: &RoceConfig) -> Self {
        let common = selective::SelectiveConfig::of(config).clamped(MAX_OUTSTANDING);
        Self {
            queue: SendQueue::new(common, Timeouts::ALWAYS_HIGH),
            max_reads: config.max_reads,
            obey_nak_copies: config.obey_nak_copies,
            reads: 0,
            went_back_to: None,
            tail: TailState::new(config),
        }
    }

    /// # Panics
    /// If the message is longer than one may be.
    pub(super) fn post(&mut self, now: Time, verb: Verb, bytes: u64) {
        self.queue.drop_unsent_dummies();
        self.tail.on_post(now);
        self.queue.post(verb, bytes);
    }

    /// True if a packet may be sent now; [`SendQueue::is_behind`] decides which one is next.
    #[inline]
    pub(super) fn may_send(&self) -> bool {
        let Some(message) = self.queue.next_message() else { return self.tail.has_copy(self.queue.una()) };
        let read_waits = message.verb == Verb::Read && !self.queue.is_behind() && self.reads >= self.max_reads;
        self.queue.window_is_open() && !read_waits
    }

    /// `None` unless [`Requester::may_send`].
    #[inline]
    pub(super) fn next_packet<O: Out<Qp>>(&mut self, now: Time, out: &mut O) -> Option<RocePacket> {
        let first_time = !self.queue.is_behind();
        if first_time && self.tail.has_copy(self.queue.una()) {
            return Some(self.tail_copy(now, out));
        }
        let message = self.queue.next_message()?;
        let was_quiet = self.queue.outstanding() == 0;
        let packet = if message.verb == Verb::Read { self.read_request(&message) } else { self.data(now, &message) };
        if first_time {
            self.after_first_sending(now, &message, out);
        }
        if was_quiet {
            self.queue.restart_timer(now, out);
        }
        Some(packet)
    }

    /// A packet has been sent for the first time.
    #[inline]
    fn after_first_sending<O: Out<Qp>>(&mut self, now: Time, message: &WorkRequest, out: &mut O) {
        if message.dummy {
            out.note(RoceNote::Dummy);
        } else if self.queue.has_drained() {
            self.tail.on_drained(message.end - 1, message.verb != Verb::Read);
            self.attend_tail(now, out);
        }
    }

    /// Sends dummies behind the tail, unless it is too early, or known to have arrived.
    pub(super) fn attend_tail<O: Out<Qp>>(&mut self, now: Time, out: &mut O) {
        let Some(last) = self.queue.messages().back().copied() else { return };
        if last.dummy || !self.queue.has_drained() {
            return;
        }
        match self.tail.dummies(now) {
            DummyAction::None => {}
            DummyAction::At(at) => out.arm(RoceTimer::Dummies, at),
            DummyAction::Now(dummies) => {
                let verb = if last.verb == Verb::Read { Verb::Read } else { Verb::Write };
                (0..dummies).for_each(|_| self.queue.append_dummy(verb));
            }
        }
    }

    /// The last packet of the queue, once more. Its message is there as long as it is not acknowledged.
    fn tail_copy<O: Out<Qp>>(&mut self, now: Time, out: &mut O) -> RocePacket {
        let place = self.tail.take_copy();
        out.note(RoceNote::TailRepeated);
        RocePacket { ack_request: true, ..self.data_at(now, &self.queue.message_at(place), place) }
    }

    #[inline]
    fn data(&mut self, now: Time, message: &WorkRequest) -> RocePacket {
        let packet = self.data_at(now, message, self.queue.cursor());
        RocePacket { ack_request: self.queue.send_next(message), ..packet }
    }

    #[inline]
    fn data_at(&self, now: Time, message: &WorkRequest, place: u64) -> RocePacket {
        let (part, payload) = self.queue.payload(message, place);
        let is_write = message.verb != Verb::Send;
        RocePacket {
            opcode: if is_write { RoceOperation::Write(part) } else { RoceOperation::Send(part) },
            psn: self.queue.psn(place),
            payload,
            dma_len: message.bytes as u32,
            msn: 0,
            ack_request: false,
            ecn: self.queue.config().ecn,
            congestion: self.queue.data_header(now, is_write && part.is_first()),
        }
    }

    /// Asks for what is missing of a READ's data, all of it at first.
    fn read_request(&mut self, message: &WorkRequest) -> RocePacket {
        self.reads += u32::from(!self.queue.is_behind());
        let place = self.queue.cursor();
        let received = (place - message.first) * u64::from(self.queue.config().mtu);
        self.queue.move_cursor(message.end);
        RocePacket {
            opcode: RoceOperation::ReadRequest,
            psn: self.queue.psn(place),
            payload: 0,
            dma_len: (message.bytes - received) as u32,
            msn: 0,
            ack_request: false,
            ecn: self.queue.config().ecn,
            congestion: CongestionHeader::default(),
        }
    }

    pub(super) fn on_acknowledge<O: Out<Qp>>(
        &mut self,
        now: Time,
        (packet, syndrome): (&RocePacket, AckSyndrome),
        telemetry: Option<TelemetrySample<'_>>,
        out: &mut O,
    ) {
        let before = self.queue.acked();
        self.acknowledged(now, packet.psn, syndrome, out);
        self.queue.on_feedback(now, before, &packet.congestion, telemetry);
    }

    fn acknowledged<O: Out<Qp>>(&mut self, now: Time, psn: Psn, syndrome: AckSyndrome, out: &mut O) {
        let Some(place) = self.outstanding_place(psn, out) else { return };
        match syndrome {
            AckSyndrome::Ack => {
                self.acknowledge(now, place + 1, out);
                if self.queue.una() <= place {
                    self.go_back_once(now, RoceRetransmitCause::ImpliedNak, out);
                }
            }
            AckSyndrome::SequenceError => {
                out.note(RoceNote::NakReceived);
                self.acknowledge(now, place, out);
                if self.obey_nak_copies {
                    self.go_back(now, RoceRetransmitCause::Nak, out);
                } else {
                    self.go_back_once(now, RoceRetransmitCause::Nak, out);
                }
            }
        }
    }

    #[inline]
    pub(super) fn on_read_response<O: Out<Qp>>(&mut self, now: Time, psn: Psn, out: &mut O) {
        let Some(place) = self.outstanding_place(psn, out) else { return };
        self.acknowledge(now, place, out);
        if self.queue.una() < place {
            out.note(RoceNote::Dropped);
            return self.go_back_once(now, RoceRetransmitCause::ImpliedNak, out);
        }
        match self.queue.messages().front() {
            Some(message) if message.verb == Verb::Read => {
                self.reads -= u32::from(message.end == place + 1);
                self.advance(now, place + 1, out);
            }
            _ => out.note(RoceNote::Invalid),
        }
    }

    /// The place that an answer is about, unless it comes late or cannot be.
    fn outstanding_place<O: Out<Qp>>(&self, psn: Psn, out: &mut O) -> Option<u64> {
        let SendWindow { una, sent, .. } = self.queue.window();
        let place = self.queue.place(psn);
        if place.is_some_and(|place| place < una) {
            out.note(RoceNote::Duplicate);
        } else if place.is_none_or(|place| place >= sent) {
            out.note(RoceNote::Invalid);
        }
        place.filter(|place| (una..sent).contains(place))
    }

    /// Acknowledges everything before `upto`: it has arrived, or, if it is a READ, been executed.
    #[inline]
    fn acknowledge<O: Out<Qp>>(&mut self, now: Time, upto: u64, out: &mut O) {
        let upto = if self.reads > 0 { self.first_read_before(upto) } else { upto };
        if upto > self.queue.una() {
            self.advance(now, upto, out);
        }
    }

    /// The first place before `upto` that waits for a READ's data; `upto` if none does.
    fn first_read_before(&self, upto: u64) -> u64 {
        let mut covered = self.queue.messages().iter().take_while(|message| message.first < upto);
        covered.find(|message| message.verb == Verb::Read).map_or(upto, |read| read.first.max(self.queue.una()))
    }

    fn advance<O: Out<Qp>>(&mut self, now: Time, upto: u64, out: &mut O) {
        self.queue.acknowledge(now, upto, out);
        // Dummies in a row are few, so that this looks at few messages.
        if self.queue.messages().iter().all(|message| message.dummy) {
            self.queue.drop_unsent_dummies();
        }
    }

    fn go_back_once<O: Out<Qp>>(&mut self, now: Time, cause: RoceRetransmitCause, out: &mut O) {
        if self.went_back_to != Some(self.queue.una()) {
            self.go_back(now, cause, out);
        }
    }

    fn go_back<O: Out<Qp>>(&mut self, now: Time, cause: RoceRetransmitCause, out: &mut O) {
        let una = self.queue.una();
        out.note(RoceNote::Retransmitted { cause, packets: self.queue.cursor() - una });
        self.went_back_to = (cause != RoceRetransmitCause::Timeout).then_some(una);
        self.tail.forget_copies();
        if cause != RoceRetransmitCause::Timeout {
            self.queue.on_missing(now);
        }
        self.queue.go_back(now, una, out);
    }

    /// False when there have been too many timeouts in a row.
    #[must_use]
    pub(super) fn on_timer<O: Out<Qp>>(&mut self, now: Time, out: &mut O) -> bool {
        let waits = self.queue.cursor() == self.queue.una();
        match self.queue.on_timer(now, waits, out) {
            Expiry::Wait => {}
            Expiry::GoBack => self.go_back(now, RoceRetransmitCause::Timeout, out),
            Expiry::GiveUp => return false,
        }
        true
    }

    /// Gives up on everything posted.
    pub(super) fn flush<O: Out<Qp>>(&mut self, out: &mut O) {
        self.tail.forget_copies();
        out.disarm(RoceTimer::Dummies);
        self.queue.flush(out);
    }
}
