//! The half of a connection that sends.
//!
//! As the requester of a queue pair, with WRITEs alone, and with what the receiver misses sent again before anything else:
//!
//! ```text
//!                        what NACKs named
//!                 ┌────────── · ·  · ─────────┐
//!   0 ─acked─── una ───────── cursor ───in flight─── sent ───waiting─── posted
//!                 ▲──────────────┘
//!                 timeout, nothing to remember holes with
//! ```
//!
//! Going back ends early: `cursor` is never behind `una`, and steps over what is known to have arrived.
//!
//! Invariants: `una <= cursor <= sent <= posted`; the front message holds `una`; messages complete in order, once; while
//! anything is outstanding the timer is armed, no later than progress is due.

use std::collections::VecDeque;

use machine::Out;
use units::Time;

use crate::roce::psn::{Numbering, Psn};
use crate::roce::{self, MAX_MESSAGE, Part};

use super::config::Config;
use super::packet::{Gaps, Kind, Packet};
use super::recovery::{Learned, Recovery, Window};
use super::{Cause, Connection, Done, Note, TimerKey};

#[derive(Clone, Copy, Debug)]
struct Message {
    bytes: u64,
    /// Place of its first packet, and the one behind its last.
    first: u64,
    end: u64,
}

#[derive(Debug)]
pub(super) struct Sender {
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
    /// Packets since the last that asked for an acknowledgement.
    unasked: u32,
    /// Why the cursor went back the last time.
    cause: Cause,
    /// Timeouts in a row.
    timeouts: u32,
    /// Since when there has been no progress. The timer follows only when it goes off, unless it must sooner.
    since: Time,
    armed: Option<Time>,
}

impl Sender {
    pub fn new(config: Config) -> Self {
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
            unasked: 0,
            cause: Cause::Timeout,
            timeouts: 0,
            since: Time::ZERO,
            armed: None,
        }
    }

    /// # Panics
    /// If the message is longer than one may be.
    pub fn post(&mut self, bytes: u64) {
        let packets = self.config.packets(bytes);
        let most = u64::from(roce::MAX_OUTSTANDING);
        assert!(bytes <= MAX_MESSAGE && packets <= most, "no message may have {bytes} bytes");
        let first = self.posted;
        self.posted += packets;
        self.messages.push_back(Message { bytes, first, end: self.posted });
    }

    pub fn pending(&self) -> usize {
        self.messages.len()
    }

    pub fn outstanding(&self) -> u64 {
        self.sent - self.una
    }

    pub fn una(&self) -> u64 {
        self.una
    }

    fn window(&self) -> Window {
        Window { una: self.una, cursor: self.cursor, sent: self.sent }
    }

    #[inline]
    pub fn may_send<R: Recovery>(&self, recovery: &R) -> bool {
        let has_room = self.outstanding() < u64::from(self.config.max_outstanding);
        let in_order = self.cursor < self.sent || self.cursor < self.posted && has_room;
        in_order || recovery.again(self.una).is_some()
    }

    /// # Panics
    /// Unless [`Sender::may_send`].
    #[inline]
    pub fn next_packet<R: Recovery, O: Out<Connection<R>>>(
        &mut self,
        now: Time,
        recovery: &mut R,
        out: &mut O,
    ) -> Packet {
        if let Some(place) = recovery.again(self.una) {
            recovery.sent_again();
            out.note(Note::Retransmitted { cause: Cause::Nack, packets: 1 });
            return self.data(self.message_at(place), place, true);
        }
        if self.cursor < self.sent {
            out.note(Note::Retransmitted { cause: self.cause, packets: 1 });
        }
        let message = self.messages[self.sending];
        let place = self.cursor;
        self.unasked += 1;
        let ack_request = place + 1 == message.end || self.unasked >= self.config.ack_every;
        if ack_request {
            self.unasked = 0;
        }
        let was_quiet = self.una == self.sent;
        self.move_cursor(place + 1);
        self.sent = self.sent.max(self.cursor);
        self.step_over_arrived(recovery);
        if was_quiet {
            self.restart_timer(now, recovery, out);
        }
        self.data(message, place, ack_request)
    }

    #[inline]
    fn data(&self, message: Message, place: u64, ack_request: bool) -> Packet {
        let mtu = u64::from(self.config.mtu);
        let left = message.bytes - (place - message.first) * mtu;
        let part = Part::new(place == message.first, place + 1 == message.end);
        let kind = Kind::Data { part, payload: left.min(mtu) as u32, ack_request };
        Packet { kind, psn: self.numbering.psn(place), ecn: self.config.ecn }
    }

    fn index_at(&self, place: u64) -> usize {
        self.messages.partition_point(|message| message.end <= place)
    }

    fn message_at(&self, place: u64) -> Message {
        self.messages[self.index_at(place)]
    }

    /// Forward, by no more than one message.
    #[inline]
    fn move_cursor(&mut self, place: u64) {
        self.cursor = place;
        if self.messages.get(self.sending).is_some_and(|message| message.end <= place) {
            self.sending += 1;
        }
    }

    fn step_over_arrived<R: Recovery>(&mut self, recovery: &R) {
        while self.cursor < self.sent && recovery.has_arrived(self.cursor) {
            self.move_cursor(self.cursor + 1);
        }
    }

    pub fn on_ack<R: Recovery, O: Out<Connection<R>>>(&mut self, now: Time, psn: Psn, recovery: &mut R, out: &mut O) {
        match self.numbering.place(psn, self.una).filter(|place| *place < self.sent) {
            None => out.note(Note::Invalid),
            Some(place) if place < self.una => out.note(Note::Duplicate),
            Some(place) => self.acknowledge(now, place + 1, recovery, out),
        }
    }

    pub fn on_nack<R: Recovery, O: Out<Connection<R>>>(
        &mut self,
        now: Time,
        (psn, gaps): (Psn, Gaps),
        recovery: &mut R,
        out: &mut O,
    ) {
        let place = self.numbering.place(psn, self.una).filter(|place| *place <= self.sent);
        let Some(expected) = place else { return out.note(Note::Invalid) };
        out.note(Note::NackReceived);
        if expected > self.una {
            self.acknowledge(now, expected, recovery, out);
        }
        if self.una == self.sent {
            return;
        }
        match recovery.learn(gaps, expected, self.window()) {
            Learned::Nothing => out.note(Note::Duplicate),
            Learned::News => self.step_over_arrived(recovery),
            Learned::GoBack(place) => self.go_back(now, place, Cause::Nack, recovery, out),
            Learned::Invalid => out.note(Note::Invalid),
        }
    }

    #[inline]
    fn acknowledge<R: Recovery, O: Out<Connection<R>>>(&mut self, now: Time, upto: u64, recovery: &mut R, out: &mut O) {
        let completed = self.completed;
        self.una = upto;
        while self.messages.pop_front_if(|message| message.end <= upto).is_some() {
            self.completed += 1;
            self.sending = self.sending.saturating_sub(1);
        }
        if self.cursor < upto {
            self.cursor = upto;
            self.sending = 0;
        }
        recovery.acknowledged(upto);
        self.step_over_arrived(recovery);
        debug_assert!(self.cursor <= self.sent && self.sent <= self.posted, "places out of order: {self:?}");
        debug_assert!(self.messages.front().is_none_or(|message| (message.first..message.end).contains(&self.una)));
        self.timeouts = 0;
        self.restart_timer(now, recovery, out);
        if self.completed > completed {
            out.complete(Done::Completed(self.completed));
        }
    }

    /// Sends everything from `place` on again.
    pub fn go_back<R: Recovery, O: Out<Connection<R>>>(
        &mut self,
        now: Time,
        place: u64,
        cause: Cause,
        recovery: &mut R,
        out: &mut O,
    ) {
        debug_assert!((self.una..=self.cursor).contains(&place), "back to {place}: {self:?}");
        self.cause = cause;
        self.cursor = place;
        self.sending = self.index_at(place);
        self.unasked = 0;
        self.step_over_arrived(recovery);
        self.restart_timer(now, recovery, out);
    }

    fn due<R: Recovery>(&self, recovery: &R) -> Time {
        self.since + recovery.patience(self.config.timeout, self.outstanding())
    }

    fn restart_timer<R: Recovery, O: Out<Connection<R>>>(&mut self, now: Time, recovery: &R, out: &mut O) {
        self.since = now;
        if self.una == self.sent {
            if self.armed.take().is_some() {
                out.disarm(TimerKey::Retransmission);
            }
            return;
        }
        let due = self.due(recovery);
        if self.armed.is_none_or(|armed| due < armed) {
            self.arm(due, out);
        }
    }

    fn arm<R: Recovery, O: Out<Connection<R>>>(&mut self, at: Time, out: &mut O) {
        self.armed = Some(at);
        out.arm(TimerKey::Retransmission, at);
    }

    /// False when there have been too many timeouts in a row.
    #[must_use]
    pub fn on_timer<R: Recovery, O: Out<Connection<R>>>(&mut self, now: Time, recovery: &mut R, out: &mut O) -> bool {
        self.armed = None;
        if self.una == self.sent {
            return true;
        }
        let due = self.due(recovery);
        if now < due {
            self.arm(due, out);
            return true;
        }
        if self.cursor == self.una || recovery.again(self.una) == Some(self.una) {
            // The wire has not let the first one out since the last time.
            self.restart_timer(now, recovery, out);
            return true;
        }
        self.timeouts += 1;
        out.note(Note::Timeout);
        if self.timeouts > self.config.retry_count {
            return false;
        }
        recovery.restart(self.una);
        self.go_back(now, self.una, Cause::Timeout, recovery, out);
        true
    }

    /// Gives up on everything posted.
    pub fn flush<R: Recovery, O: Out<Connection<R>>>(&mut self, out: &mut O) {
        self.messages.clear();
        self.sending = 0;
        (self.una, self.cursor, self.sent) = (self.posted, self.posted, self.posted);
        if self.armed.take().is_some() {
            out.disarm(TimerKey::Retransmission);
        }
    }
}
