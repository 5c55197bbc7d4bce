//! The half of a connection that sends.
//!
//! It works like the requester of a queue pair, with WRITEs alone, and sends again what the receiver misses before anything
//! else:
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

use machine::Out;
use units::Time;

use crate::Verb;
use crate::irn::Timeouts;
use crate::psn::Psn;
use crate::send_queue::{Expiry, SendQueue, WorkRequest};

use super::config::SelectiveConfig;
use super::packet::{Gaps, SelectivePacket, SelectivePacketKind};
use super::recovery::{LossRecovery, NackInfo};
use super::{RoceNote, RoceRetransmitCause, SelectiveConnection};

#[derive(Debug)]
pub(super) struct SelectiveSender {
    pub queue: SendQueue,
    /// Reason why the cursor went back the last time.
    cause: RoceRetransmitCause,
}

impl SelectiveSender {
    pub(super) fn new(config: SelectiveConfig, patience: Timeouts) -> Self {
        Self { queue: SendQueue::new(config, patience), cause: RoceRetransmitCause::Timeout }
    }

    /// # Panics
    /// If the message is longer than one may be.
    pub(super) fn post(&mut self, bytes: u64) {
        self.queue.post(Verb::Write, bytes);
    }

    #[inline]
    pub(super) fn may_send<R: LossRecovery>(&self, recovery: &R) -> bool {
        self.queue.window_is_open() || recovery.again(self.queue.una()).is_some()
    }

    /// `None` unless [`SelectiveSender::may_send`].
    #[inline]
    pub(super) fn next_packet<R: LossRecovery, O: Out<SelectiveConnection<R>>>(
        &mut self,
        now: Time,
        recovery: &mut R,
        out: &mut O,
    ) -> Option<SelectivePacket> {
        if let Some(place) = recovery.again(self.queue.una()) {
            recovery.sent_again();
            out.note(RoceNote::Retransmitted { cause: RoceRetransmitCause::Nak, packets: 1 });
            return Some(self.data(now, &self.queue.message_at(place), place, true));
        }
        let message = self.queue.next_message()?;
        if self.queue.is_behind() {
            out.note(RoceNote::Retransmitted { cause: self.cause, packets: 1 });
        }
        let (place, was_quiet) = (self.queue.cursor(), self.queue.outstanding() == 0);
        let ack_request = self.queue.send_next(&message);
        self.step_over_arrived(recovery);
        if was_quiet {
            self.queue.restart_timer(now, out);
        }
        Some(self.data(now, &message, place, ack_request))
    }

    #[inline]
    fn data(&self, now: Time, message: &WorkRequest, place: u64, ack_request: bool) -> SelectivePacket {
        let (part, payload) = self.queue.payload(message, place);
        let kind = SelectivePacketKind::Data { part, payload, ack_request };
        let congestion = self.queue.data_header(now, part.is_first());
        SelectivePacket { kind, psn: self.queue.psn(place), ecn: self.queue.config().ecn, congestion }
    }

    fn step_over_arrived<R: LossRecovery>(&mut self, recovery: &R) {
        while self.queue.is_behind() && recovery.has_arrived(self.queue.cursor()) {
            self.queue.move_cursor(self.queue.cursor() + 1);
        }
    }

    pub(super) fn on_ack<R: LossRecovery, O: Out<SelectiveConnection<R>>>(
        &mut self,
        now: Time,
        psn: Psn,
        recovery: &mut R,
        out: &mut O,
    ) {
        let window = self.queue.window();
        match self.queue.place(psn).filter(|place| *place < window.sent) {
            None => out.note(RoceNote::Invalid),
            Some(place) if place < window.una => out.note(RoceNote::Duplicate),
            Some(place) => self.acknowledge(now, place + 1, recovery, out),
        }
    }

    pub(super) fn on_nack<R: LossRecovery, O: Out<SelectiveConnection<R>>>(
        &mut self,
        now: Time,
        (psn, gaps): (Psn, Gaps),
        recovery: &mut R,
        out: &mut O,
    ) {
        let window = self.queue.window();
        let place = self.queue.place(psn).filter(|place| *place <= window.sent);
        let Some(expected) = place else { return out.note(RoceNote::Invalid) };
        out.note(RoceNote::NakReceived);
        if expected > window.una {
            self.acknowledge(now, expected, recovery, out);
        }
        if self.queue.outstanding() == 0 {
            return;
        }
        match recovery.learn(gaps, expected, self.queue.window()) {
            NackInfo::Nothing => out.note(RoceNote::Duplicate),
            NackInfo::News => {
                self.queue.on_missing(now);
                self.step_over_arrived(recovery);
            }
            NackInfo::GoBack(place) => self.go_back(now, place, RoceRetransmitCause::Nak, recovery, out),
            NackInfo::Invalid => out.note(RoceNote::Invalid),
        }
    }

    #[inline]
    fn acknowledge<R: LossRecovery, O: Out<SelectiveConnection<R>>>(
        &mut self,
        now: Time,
        upto: u64,
        recovery: &mut R,
        out: &mut O,
    ) {
        self.queue.acknowledge(now, upto, out);
        recovery.acknowledged(upto);
        self.step_over_arrived(recovery);
    }

    /// Sends everything from `place` on again.
    pub(super) fn go_back<R: LossRecovery, O: Out<SelectiveConnection<R>>>(
        &mut self,
        now: Time,
        place: u64,
        cause: RoceRetransmitCause,
        recovery: &mut R,
        out: &mut O,
    ) {
        self.cause = cause;
        self.queue.go_back(now, place, out);
        self.step_over_arrived(recovery);
    }

    /// False when there have been too many timeouts in a row.
    #[must_use]
    pub(super) fn on_timer<R: LossRecovery, O: Out<SelectiveConnection<R>>>(
        &mut self,
        now: Time,
        recovery: &mut R,
        out: &mut O,
    ) -> bool {
        let una = self.queue.una();
        let waits = self.queue.cursor() == una || recovery.again(una) == Some(una);
        match self.queue.on_timer(now, waits, out) {
            Expiry::Wait => {}
            Expiry::GoBack => {
                recovery.restart(una);
                self.go_back(now, una, RoceRetransmitCause::Timeout, recovery, out);
            }
            Expiry::GiveUp => return false,
        }
        true
    }
}
