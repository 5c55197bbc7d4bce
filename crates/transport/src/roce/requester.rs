//! The half of a queue pair that sends requests and sees them completed.
//!
//! InfiniBand specification, vol. 1, §9.7.3, §9.7.6 and §9.9.2; "Packet corruption in RDMA" §2.1. A message is cut into
//! packets of one MTU, each with its PSN; a READ is one packet, but takes the PSNs of its responses. Recovery is
//! go-back-N: what is outstanding is sent again, all of it, from the first packet not acknowledged.
//!
//! ```text
//!                 ┌────── NAK, response missing, timeout ──────┐
//!                 ▼                                            │
//!   0 ─acked─── una ───sent again─── cursor ───in flight─── sent ───waiting─── posted
//! ```
//!
//! A READ is acknowledged by its data alone. An answer from behind a response that has not come says that it is lost
//! (an implied NAK): the READ is issued again from there, once; if that fails too, the timeout is left.
//!
//! What follows a tail is `tail`'s to say. Dummies are messages like any other, but nobody is told of their completion,
//! and those that were not sent yet make way for what is posted; behind a READ they are READs, to pull empty responses.
//! Those that the window, the limit of READs or a rate held back until the tail was acknowledged are dropped.
//!
//! Invariants: `una <= cursor <= sent <= posted`; the front message holds `una`; messages complete in order, once.

use std::collections::VecDeque;

use machine::Out;
use units::Time;

use super::config::{Config, MAX_MESSAGE, MAX_OUTSTANDING};
use super::packet::{Opcode, Packet, Part, Syndrome};
use super::psn::{Numbering, Psn};
use super::tail::{Dummies, Tail};
use super::{Cause, Done, Note, Qp, TimerKey, Verb};

/// A work request.
#[derive(Clone, Copy, Debug)]
struct Message {
    verb: Verb,
    bytes: u64,
    /// Place of its first packet, and the one behind its last.
    first: u64,
    end: u64,
    /// Nobody asked for it.
    dummy: bool,
}

#[derive(Debug)]
pub(super) struct Requester {
    config: Config,
    numbering: Numbering,
    /// Posted and not completed.
    messages: VecDeque<Message>,
    /// Index of the message that `cursor` lies in.
    sending: usize,
    una: u64,
    cursor: u64,
    sent: u64,
    posted: u64,
    completed: u64,
    /// READs that were sent and are not complete.
    reads: u32,
    /// Packets since the last that asked for an acknowledgement.
    unasked: u32,
    /// Where the last NAK, spoken or implied, led back to.
    went_back_to: Option<u64>,
    /// Timeouts in a row.
    timeouts: u32,
    /// When progress must have been made. Moves with every answer that is news and whenever the requester goes back; the
    /// timer follows only when it goes off.
    deadline: Time,
    armed: bool,
    tail: Tail,
}

impl Requester {
    pub fn new(mut config: Config) -> Self {
        config.max_outstanding = config.max_outstanding.clamp(1, MAX_OUTSTANDING);
        // Half a window, or a full one would never be acknowledged.
        config.ack_every = config.ack_every.clamp(1, config.max_outstanding.div_ceil(2));
        Self {
            config,
            numbering: Numbering::starting_at(config.first_psn),
            messages: VecDeque::new(),
            sending: 0,
            una: 0,
            cursor: 0,
            sent: 0,
            posted: 0,
            completed: 0,
            reads: 0,
            unasked: 0,
            went_back_to: None,
            timeouts: 0,
            deadline: Time::ZERO,
            armed: false,
            tail: Tail::new(&config),
        }
    }

    /// # Panics
    /// If the message is longer than one may be.
    pub fn post(&mut self, now: Time, verb: Verb, bytes: u64) {
        let packets = self.config.packets(bytes);
        assert!(bytes <= MAX_MESSAGE && packets <= u64::from(MAX_OUTSTANDING), "no message may have {bytes} bytes");
        self.drop_unsent_dummies();
        self.tail.on_post(now);
        self.append(verb, bytes, false);
    }

    /// They are the last, if there are any: dummies are appended only where nothing else waits.
    fn drop_unsent_dummies(&mut self) {
        let sent = self.sent;
        while let Some(dummy) = self.messages.pop_back_if(|message| message.dummy && message.first >= sent) {
            self.posted = dummy.first;
        }
    }

    fn append(&mut self, verb: Verb, bytes: u64, dummy: bool) {
        let first = self.posted;
        self.posted += self.config.packets(bytes);
        self.messages.push_back(Message { verb, bytes, first, end: self.posted, dummy });
    }

    /// Messages posted and not completed.
    pub fn pending(&self) -> usize {
        self.messages.iter().filter(|message| !message.dummy).count()
    }

    /// PSNs sent and not acknowledged.
    pub fn outstanding(&self) -> u64 {
        self.sent - self.una
    }

    /// Whether a packet may be sent now; which is next, [`Requester::is_behind`] tells.
    #[inline]
    pub fn may_send(&self) -> bool {
        let Some(message) = self.messages.get(self.sending) else { return self.tail.has_copy(self.una) };
        let read_waits = message.verb == Verb::Read && !self.is_behind() && self.reads >= self.config.max_reads;
        self.cursor - self.una < u64::from(self.config.max_outstanding) && !read_waits
    }

    /// Whether the next packet was sent before.
    pub fn is_behind(&self) -> bool {
        self.cursor < self.sent
    }

    /// # Panics
    /// Unless [`Requester::may_send`].
    #[inline]
    pub fn next_packet<O: Out<Qp>>(&mut self, now: Time, out: &mut O) -> Packet {
        if !self.is_behind() && self.tail.has_copy(self.una) {
            return self.tail_copy(out);
        }
        let message = self.messages[self.sending];
        let packet = if message.verb == Verb::Read { self.read_request(&message) } else { self.data(&message) };
        if self.cursor == message.end {
            self.sending += 1;
        }
        let was_quiet = self.una == self.sent;
        if self.cursor > self.sent {
            self.sent = self.cursor;
            self.after_first_sending(now, &message, out);
        }
        if was_quiet {
            self.restart_timer(now, out);
        }
        packet
    }

    /// A packet has been sent for the first time.
    #[inline]
    fn after_first_sending<O: Out<Qp>>(&mut self, now: Time, message: &Message, out: &mut O) {
        if message.dummy {
            out.note(Note::Dummy);
        } else if self.sent == self.posted {
            self.tail.on_drained(self.sent - 1, message.verb != Verb::Read);
            self.attend_tail(now, out);
        }
    }

    /// Sends dummies behind the tail, unless it is too early, or known to have arrived.
    fn attend_tail<O: Out<Qp>>(&mut self, now: Time, out: &mut O) {
        let Some(last) = self.messages.back().copied() else { return };
        if last.dummy || self.sent < self.posted {
            return;
        }
        match self.tail.dummies(now) {
            Dummies::None => {}
            Dummies::At(at) => out.arm(TimerKey::Dummies, at),
            Dummies::Now => {
                let verb = if last.verb == Verb::Read { Verb::Read } else { Verb::Write };
                (0..self.config.dummies).for_each(|_| self.append(verb, 0, true));
            }
        }
    }

    /// It may be time for dummies.
    pub fn on_tail_timer<O: Out<Qp>>(&mut self, now: Time, out: &mut O) {
        self.attend_tail(now, out);
    }

    /// The last packet of the queue, once more. Its message is there as long as it is not acknowledged.
    fn tail_copy<O: Out<Qp>>(&mut self, out: &mut O) -> Packet {
        let place = self.tail.take_copy();
        out.note(Note::TailRepeated);
        let at = self.messages.partition_point(|message| message.end <= place);
        Packet { ack_request: true, ..self.data_at(&self.messages[at], place) }
    }

    #[inline]
    fn data(&mut self, message: &Message) -> Packet {
        self.unasked += 1;
        let mut packet = self.data_at(message, self.cursor);
        self.cursor += 1;
        packet.ack_request = self.cursor == message.end || self.unasked >= self.config.ack_every;
        if packet.ack_request {
            self.unasked = 0;
        }
        packet
    }

    #[inline]
    fn data_at(&self, message: &Message, place: u64) -> Packet {
        let sent_of_it = (place - message.first) * u64::from(self.config.mtu);
        let part = Part::new(place == message.first, place + 1 == message.end);
        Packet {
            opcode: if message.verb == Verb::Send { Opcode::Send(part) } else { Opcode::Write(part) },
            psn: self.numbering.psn(place),
            payload: (message.bytes - sent_of_it).min(u64::from(self.config.mtu)) as u32,
            dma_len: message.bytes as u32,
            msn: 0,
            ack_request: false,
            ecn: self.config.ecn,
        }
    }

    /// Asks for what is missing of a READ's data, all of it at first.
    fn read_request(&mut self, message: &Message) -> Packet {
        if !self.is_behind() {
            self.reads += 1;
        }
        let received = (self.cursor - message.first) * u64::from(self.config.mtu);
        let packet = Packet {
            opcode: Opcode::ReadRequest,
            psn: self.numbering.psn(self.cursor),
            payload: 0,
            dma_len: (message.bytes - received) as u32,
            msn: 0,
            ack_request: false,
            ecn: self.config.ecn,
        };
        self.cursor = message.end;
        packet
    }

    pub fn on_acknowledge<O: Out<Qp>>(&mut self, now: Time, psn: Psn, syndrome: Syndrome, out: &mut O) {
        let Some(place) = self.outstanding_place(psn, out) else { return };
        match syndrome {
            Syndrome::Ack => {
                self.acknowledge(now, place + 1, out);
                if self.una <= place {
                    self.go_back_once(now, Cause::ImpliedNak, out);
                }
            }
            Syndrome::SequenceError => {
                out.note(Note::NakReceived);
                self.acknowledge(now, place, out);
                if self.config.obey_nak_copies {
                    self.go_back(now, Cause::Nak, out);
                } else {
                    self.go_back_once(now, Cause::Nak, out);
                }
            }
        }
    }

    #[inline]
    pub fn on_read_response<O: Out<Qp>>(&mut self, now: Time, psn: Psn, out: &mut O) {
        let Some(place) = self.outstanding_place(psn, out) else { return };
        self.acknowledge(now, place, out);
        if self.una < place {
            out.note(Note::OutOfOrder);
            return self.go_back_once(now, Cause::ImpliedNak, out);
        }
        if self.messages.front().is_some_and(|message| message.verb == Verb::Read) {
            let completed = self.completed;
            self.advance_to(place + 1);
            self.after_progress(now, completed, out);
        } else {
            out.note(Note::Invalid);
        }
    }

    /// The place that an answer is about, unless it comes late or cannot be.
    fn outstanding_place<O: Out<Qp>>(&self, psn: Psn, out: &mut O) -> Option<u64> {
        let place = self.numbering.place(psn, self.una);
        if place.is_some_and(|place| place < self.una) {
            out.note(Note::Duplicate);
        } else if place.is_none_or(|place| place >= self.sent) {
            out.note(Note::Invalid);
        }
        place.filter(|place| (self.una..self.sent).contains(place))
    }

    /// Everything before `upto` has arrived, or, if it is a READ, been executed.
    #[inline]
    fn acknowledge<O: Out<Qp>>(&mut self, now: Time, upto: u64, out: &mut O) {
        let (una, completed) = (self.una, self.completed);
        while self.una < upto {
            match self.messages.front() {
                Some(message) if message.verb != Verb::Read => self.advance_to(upto.min(message.end)),
                _ => break,
            }
        }
        if self.una > una {
            self.after_progress(now, completed, out);
        }
    }

    /// Moves `una` within the front message, which completes at its end.
    #[inline]
    fn advance_to(&mut self, place: u64) {
        self.una = place;
        if let Some(done) = self.messages.pop_front_if(|message| message.end == place) {
            self.completed += u64::from(!done.dummy);
            self.reads -= u32::from(done.verb == Verb::Read);
            self.sending = self.sending.saturating_sub(1);
        }
        self.cursor = self.cursor.max(self.una);
        debug_assert!(self.cursor <= self.sent && self.sent <= self.posted, "places out of order: {self:?}");
        debug_assert!(self.messages.front().is_none_or(|message| (message.first..message.end).contains(&self.una)));
    }

    fn after_progress<O: Out<Qp>>(&mut self, now: Time, completed: u64, out: &mut O) {
        self.timeouts = 0;
        // Dummies in a row are few, so that this looks at few messages.
        if self.messages.iter().all(|message| message.dummy) {
            self.drop_unsent_dummies();
        }
        self.restart_timer(now, out);
        if self.completed > completed {
            out.complete(Done::Completed(self.completed));
        }
    }

    fn go_back_once<O: Out<Qp>>(&mut self, now: Time, cause: Cause, out: &mut O) {
        if self.went_back_to != Some(self.una) {
            self.go_back(now, cause, out);
        }
    }

    fn go_back<O: Out<Qp>>(&mut self, now: Time, cause: Cause, out: &mut O) {
        out.note(Note::Retransmitted { cause, packets: self.cursor - self.una });
        self.went_back_to = (cause != Cause::Timeout).then_some(self.una);
        self.cursor = self.una;
        self.sending = 0;
        self.unasked = 0;
        self.tail.forget_copies();
        self.restart_timer(now, out);
    }

    fn restart_timer<O: Out<Qp>>(&mut self, now: Time, out: &mut O) {
        self.deadline = now + self.config.timeout;
        let needed = self.una < self.sent;
        if needed && !self.armed {
            out.arm(TimerKey::Retransmission, self.deadline);
        } else if !needed && self.armed {
            out.disarm(TimerKey::Retransmission);
        }
        self.armed = needed;
    }

    /// False when there have been too many timeouts in a row.
    #[must_use]
    pub fn on_timer<O: Out<Qp>>(&mut self, now: Time, out: &mut O) -> bool {
        self.armed = false;
        if self.una == self.sent {
            return true;
        }
        if now < self.deadline {
            self.armed = true;
            out.arm(TimerKey::Retransmission, self.deadline);
            return true;
        }
        if self.cursor == self.una {
            // The wire has not let anything out since the last time.
            self.restart_timer(now, out);
            return true;
        }
        self.timeouts += 1;
        let idle = self.messages.front().is_none_or(|message| message.dummy);
        out.note(if idle { Note::IdleTimeout } else { Note::Timeout });
        if self.timeouts > self.config.retry_count {
            return false;
        }
        self.go_back(now, Cause::Timeout, out);
        true
    }

    /// Gives up on everything posted.
    pub fn flush<O: Out<Qp>>(&mut self, out: &mut O) {
        self.messages.clear();
        self.sending = 0;
        (self.una, self.cursor, self.sent) = (self.posted, self.posted, self.posted);
        self.tail.forget_copies();
        out.disarm(TimerKey::Dummies);
        if std::mem::take(&mut self.armed) {
            out.disarm(TimerKey::Retransmission);
        }
    }
}
