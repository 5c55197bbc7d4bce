//! The send queue of a reliable connection: messages, their packets, and how far these have come.
//!
//! InfiniBand specification, vol. 1, §9.7.3 and §9.9.2. Go-back-N ([`Qp`](super::Qp)) and selective retransmission
//! ([`selective`](super::selective)) share it. A message is cut into packets of one MTU, each with its PSN; places are PSNs
//! counted from 0 without wrapping:
//!
//! ```text
//!                 ┌── go back to a place ──┐
//!                 ▼                        │
//!   0 ─acked─── una ───sent again─── cursor ───in flight─── sent ───waiting─── posted
//! ```
//!
//! [`SendQueue::window_is_open`] alone consults the windows, that of packets and the controller's; [`SendQueue::held_until`] alone
//! the pace. They apply to what is sent in order, first or again; what a NACK asks for by name is paced, too, but passes the
//! windows, because it is in them. The controller's window may be overshot by one packet, so that no window is too small.
//!
//! Invariants: `una <= cursor <= sent <= posted`; the front message holds `una`, the message at `sending` the cursor; messages
//! are adjacent and complete in order, once; while anything is outstanding the timer is armed, no later than progress is due.

mod control;

use std::collections::VecDeque;

use congestion::{Controller, RdmaControl};
use machine::{Machine, Out};
use units::{Bytes, Rate, Time};

use super::config::{MAX_MESSAGE, MAX_OUTSTANDING, packets};
use super::irn::Timeouts;
use super::pacer::{PaceRule, RocePacer};
use super::packet::MessagePart;
use super::psn::{Numbering, Psn};
use super::selective::{SelectiveConfig, SendWindow};
use super::{RoceCompletion, RoceNote, RoceTimer, Verb};

/// The machines that have a send queue.
pub(super) trait Reliable: Machine<Timer = RoceTimer, Done = RoceCompletion, Note = RoceNote> {}

impl<M: Machine<Timer = RoceTimer, Done = RoceCompletion, Note = RoceNote>> Reliable for M {}

/// A message to send, or a READ.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkRequest {
    pub verb: Verb,
    pub bytes: u64,
    /// Place of its first packet, and the one behind its last.
    pub first: u64,
    pub end: u64,
    /// Bytes of all messages before it.
    pub offset: u64,
    /// Sent behind a tail, not posted; its completion is not reported.
    pub dummy: bool,
}

/// Action after the retransmission timer has gone off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expiry {
    /// Progress is not due yet, or the wire has let nothing out.
    Wait,
    GoBack,
    /// There were too many timeouts in a row.
    GiveUp,
}

#[derive(Debug)]
pub(super) struct SendQueue {
    config: SelectiveConfig,
    patience: Timeouts,
    numbering: Numbering,
    /// Posted and not completed.
    messages: VecDeque<WorkRequest>,
    /// Index of the message that `cursor` lies in.
    sending: usize,
    una: u64,
    cursor: u64,
    sent: u64,
    posted: u64,
    /// Bytes of all messages posted.
    posted_bytes: u64,
    completed: u64,
    /// Packets since the last that asked for an acknowledgement.
    unasked: u32,
    /// Timeouts in a row.
    timeouts: u32,
    /// Time since which there has been no progress. The timer follows only when it goes off, unless it must go off sooner.
    since: Time,
    armed: Option<Time>,
    pacer: RocePacer,
    controller: Controller,
}

impl SendQueue {
    pub(super) fn new(config: SelectiveConfig, patience: Timeouts) -> Self {
        Self {
            config,
            patience,
            numbering: Numbering::starting_at(config.first_psn),
            messages: VecDeque::new(),
            sending: 0,
            una: 0,
            cursor: 0,
            sent: 0,
            posted: 0,
            posted_bytes: 0,
            completed: 0,
            unasked: 0,
            timeouts: 0,
            since: Time::ZERO,
            armed: None,
            pacer: RocePacer::new(config.framing.wire, PaceRule::of(config.framing.wire, &config.congestion)),
            controller: Controller::new(&config.congestion, &config.site),
        }
    }

    pub(super) fn config(&self) -> &SelectiveConfig {
        &self.config
    }

    /// # Panics
    /// If the message is longer than one may be.
    pub(super) fn post(&mut self, verb: Verb, bytes: u64) {
        let fits = bytes <= MAX_MESSAGE && packets(bytes, self.config.mtu) <= u64::from(MAX_OUTSTANDING);
        assert!(fits, "no message may have {bytes} bytes");
        self.append(verb, bytes, false);
    }

    pub(super) fn append_dummy(&mut self, verb: Verb) {
        self.append(verb, 0, true);
    }

    fn append(&mut self, verb: Verb, bytes: u64, dummy: bool) {
        let first = self.posted;
        self.posted += packets(bytes, self.config.mtu);
        let offset = self.posted_bytes;
        self.posted_bytes += bytes;
        self.messages.push_back(WorkRequest { verb, bytes, first, end: self.posted, offset, dummy });
    }

    /// Drops unsent dummies, which are always last: they are appended only where nothing else waits.
    pub(super) fn drop_unsent_dummies(&mut self) {
        let sent = self.sent;
        while let Some(dummy) = self.messages.pop_back_if(|message| message.dummy && message.first >= sent) {
            (self.posted, self.posted_bytes) = (dummy.first, dummy.offset);
        }
    }

    /// Messages posted and not completed.
    pub(super) fn pending(&self) -> usize {
        self.messages.iter().filter(|message| !message.dummy).count()
    }

    /// PSNs sent and not acknowledged.
    #[inline]
    pub(super) fn outstanding(&self) -> u64 {
        self.sent - self.una
    }

    #[inline]
    pub(super) fn una(&self) -> u64 {
        self.una
    }

    #[inline]
    pub(super) fn cursor(&self) -> u64 {
        self.cursor
    }

    pub(super) fn window(&self) -> SendWindow {
        SendWindow { una: self.una, cursor: self.cursor, sent: self.sent }
    }

    /// True if everything posted has been sent.
    #[inline]
    pub(super) fn has_drained(&self) -> bool {
        self.sent == self.posted
    }

    /// True if the next packet in order was sent before.
    #[inline]
    pub(super) fn is_behind(&self) -> bool {
        self.cursor < self.sent
    }

    /// Messages posted and not completed, dummies among them.
    pub(super) fn messages(&self) -> &VecDeque<WorkRequest> {
        &self.messages
    }

    /// The message that the next packet in order belongs to.
    #[inline]
    pub(super) fn next_message(&self) -> Option<WorkRequest> {
        self.messages.get(self.sending).copied()
    }

    /// # Panics
    /// If the place is acknowledged or not posted.
    pub(super) fn message_at(&self, place: u64) -> WorkRequest {
        self.messages[self.index_at(place)]
    }

    fn index_at(&self, place: u64) -> usize {
        self.messages.partition_point(|message| message.end <= place)
    }

    /// True if the window lets the next packet in order leave, if there is one.
    #[inline]
    pub(super) fn window_is_open(&self) -> bool {
        self.cursor < self.posted
            && self.cursor - self.una < u64::from(self.config.max_outstanding)
            && (matches!(self.controller, Controller::None) || self.bytes_in_flight() < self.controller.window())
    }

    /// Payload between the first byte that is not acknowledged and the next to be sent.
    #[inline]
    fn bytes_in_flight(&self) -> u64 {
        self.offset(self.sending, self.cursor) - self.offset(0, self.una)
    }

    /// Bytes before a place, which lies in the message of this index.
    #[inline]
    fn offset(&self, index: usize, place: u64) -> u64 {
        let before = |message: &WorkRequest| {
            message.offset + message.bytes.min((place - message.first) * u64::from(self.config.mtu))
        };
        self.messages.get(index).map_or(self.posted_bytes, before)
    }

    fn rate(&self) -> Option<Rate> {
        match (self.controller.rate(), self.config.rate) {
            (Some(controlled), Some(given)) => Some(controlled.min(given)),
            (controlled, given) => controlled.or(given),
        }
    }

    /// Time until which the pace holds the next packet back, if it does.
    #[inline]
    pub(super) fn held_until(&mut self, now: Time) -> Option<Time> {
        self.controller.advance(now);
        let until = self.pacer.holds(now, self.rate())?;
        let change = if self.pacer.follows_changes() { self.controller.changes_at() } else { Time::NEVER };
        Some(until.min(change))
    }

    /// A packet leaves whose frame has this length.
    #[inline]
    pub(super) fn on_leaving(&mut self, now: Time, frame_len: u32) {
        let bytes = Bytes::new(u64::from(self.config.framing.wire.on_wire(frame_len)));
        self.pacer.sends(now, bytes, self.rate());
        self.controller.on_sent(now, bytes.get());
    }

    #[inline]
    pub(super) fn psn(&self, place: u64) -> Psn {
        self.numbering.psn(place)
    }

    /// The place closest to what is acknowledged that has this PSN; `None` if that lies before the first.
    #[inline]
    pub(super) fn place(&self, psn: Psn) -> Option<u64> {
        self.numbering.place(psn, self.una)
    }

    /// Part of its message that the packet at `place` carries, and its payload in bytes.
    #[inline]
    pub(super) fn payload(&self, message: &WorkRequest, place: u64) -> (MessagePart, u32) {
        let mtu = u64::from(self.config.mtu);
        let left = message.bytes - (place - message.first) * mtu;
        (MessagePart::new(place == message.first, place + 1 == message.end), left.min(mtu) as u32)
    }

    /// The next packet in order leaves, one of `message`. Whether it asks to be acknowledged.
    #[inline]
    pub(super) fn send_next(&mut self, message: &WorkRequest) -> bool {
        self.unasked += 1;
        let ack_request = self.cursor + 1 == message.end || self.unasked >= self.config.ack_every;
        if ack_request {
            self.unasked = 0;
        }
        self.move_cursor(self.cursor + 1);
        ack_request
    }

    /// Forward, to the end of its message at most.
    #[inline]
    pub(super) fn move_cursor(&mut self, place: u64) {
        self.cursor = place;
        self.sent = self.sent.max(place);
        if self.messages.get(self.sending).is_some_and(|message| message.end <= place) {
            self.sending += 1;
        }
    }

    /// Acknowledges everything before `upto`.
    #[inline]
    pub(super) fn acknowledge<M: Reliable, O: Out<M>>(&mut self, now: Time, upto: u64, out: &mut O) {
        let completed = self.completed;
        self.una = upto;
        while let Some(done) = self.messages.pop_front_if(|message| message.end <= upto) {
            self.completed += u64::from(!done.dummy);
            self.sending = self.sending.saturating_sub(1);
        }
        if self.cursor < upto {
            self.cursor = upto;
            self.sending = 0;
        }
        self.timeouts = 0;
        self.restart_timer(now, out);
        if self.completed > completed {
            out.complete(RoceCompletion::Completed(self.completed));
        }
        self.check_invariants();
    }

    /// Sends everything from `place` on again.
    pub(super) fn go_back<M: Reliable, O: Out<M>>(&mut self, now: Time, place: u64, out: &mut O) {
        debug_assert!((self.una..=self.cursor).contains(&place), "back to {place}: {self:?}");
        self.cursor = place;
        self.sending = self.index_at(place);
        self.unasked = 0;
        self.restart_timer(now, out);
    }

    /// Time by which progress must have been made.
    fn due(&self) -> Time {
        self.since + self.patience.choose(self.config.timeout, self.outstanding())
    }

    pub(super) fn restart_timer<M: Reliable, O: Out<M>>(&mut self, now: Time, out: &mut O) {
        self.since = now;
        if self.una == self.sent {
            return self.disarm(out);
        }
        let due = self.due();
        if self.armed.is_none_or(|armed| due < armed) {
            self.arm(due, out);
        }
    }

    fn arm<M: Reliable, O: Out<M>>(&mut self, at: Time, out: &mut O) {
        self.armed = Some(at);
        out.arm(RoceTimer::Retransmission, at);
    }

    fn disarm<M: Reliable, O: Out<M>>(&mut self, out: &mut O) {
        if self.armed.take().is_some() {
            out.disarm(RoceTimer::Retransmission);
        }
    }

    /// The retransmission timer went off. `waits`: the packet at `una` has not left since it was to be sent again.
    #[must_use]
    pub(super) fn on_timer<M: Reliable, O: Out<M>>(&mut self, now: Time, waits: bool, out: &mut O) -> Expiry {
        self.armed = None;
        if self.una == self.sent {
            return Expiry::Wait;
        }
        let due = self.due();
        if now < due {
            self.arm(due, out);
            return Expiry::Wait;
        }
        if waits {
            self.restart_timer(now, out);
            return Expiry::Wait;
        }
        self.timeouts += 1;
        self.controller.on_timeout(now);
        let idle = self.messages.front().is_none_or(|message| message.dummy);
        out.note(if idle { RoceNote::IdleTimeout } else { RoceNote::Timeout });
        if self.timeouts > self.config.retry_count { Expiry::GiveUp } else { Expiry::GoBack }
    }

    /// Gives up on everything posted.
    pub(super) fn flush<M: Reliable, O: Out<M>>(&mut self, out: &mut O) {
        self.messages.clear();
        self.sending = 0;
        (self.una, self.cursor, self.sent) = (self.posted, self.posted, self.posted);
        self.disarm(out);
    }
    /// Panics if the module's invariants do not hold. Checks nothing in release builds.
    pub(super) fn check_invariants(&self) {
        if !cfg!(debug_assertions) {
            return;
        }
        let ordered = self.una <= self.cursor && self.cursor <= self.sent && self.sent <= self.posted;
        assert!(ordered, "places out of order: {self:?}");
        let holds = |index: usize, place: u64| match self.messages.get(index) {
            Some(message) => (message.first..message.end).contains(&place),
            None => index == self.messages.len() && place == self.posted,
        };
        assert!(holds(0, self.una) && holds(self.sending, self.cursor), "messages and places differ: {self:?}");
        let armed_in_time = self.una == self.sent || self.armed.is_some_and(|armed| armed <= self.due());
        assert!(armed_in_time, "nothing guards what is outstanding: {self:?}");
    }
}
