//! Frames that leave when the wire is free: messages, RSVs, the burst that has begun, the next one whose time has come.

use std::cmp::Reverse;

use machine::{Out, Pull};
use units::Time;
use wire::reserve::{DataMark, ReserveMessage, ReserveVerb};

use super::context::{BurstAssembly, BurstMarking, ContextState};
use super::{HOST_WIRE, ReservingHost};
use crate::frame::{RackFrame, ReservePacket};
use crate::params::SchedulerKind;

/// Stands for no attempt: this deadline is not about an RSV.
const NO_ATTEMPT: u8 = u8::MAX;

impl<B: RackFrame> ReservingHost<B> {
    #[inline]
    pub(super) fn next_frame<O: Out<Self>>(&mut self, now: Time, out: &mut O) -> Pull {
        if let Some(message) = self.messages.pop_front() {
            out.transmit(HOST_WIRE, ReservePacket::Message(message));
            return Pull::Sent;
        }
        while let Some(context) = self.ready.pop_front() {
            self.contexts[usize::from(context)].listed = false;
            if self.ask(now, context, out) {
                return Pull::Sent;
            }
        }
        match self.sending {
            Some(context) => self.send_one(now, context, out),
            None => self.begin_next(now, out),
        }
    }

    /// Begins the next burst, or sends a frame that needs none, when no burst is being sent.
    fn begin_next<O: Out<Self>>(&mut self, now: Time, out: &mut O) -> Pull {
        if self.unreserved_turn && self.send_unreserved(out) {
            self.unreserved_turn = false;
            return Pull::Sent;
        }
        if let Some(&context) = self.copying.front() {
            return self.send_copy(now, context, out);
        }
        let next = self.granted.peek().map(|Reverse(next)| *next);
        match next {
            Some((at, context)) if at <= now => {
                self.granted.pop();
                self.contexts[usize::from(context)].state = ContextState::Sending;
                self.sending = Some(context);
                self.unreserved_turn = true;
                self.send_one(now, context, out)
            }
            _ if self.send_unreserved(out) => Pull::Sent,
            Some((at, _)) => Pull::NotBefore(at),
            None => Pull::Idle,
        }
    }

    fn send_unreserved<O: Out<Self>>(&mut self, out: &mut O) -> bool {
        let Some(frame) = out.take(self.unreserved_lane()) else { return false };
        self.transmit_data(None, frame, out);
        true
    }

    #[inline]
    fn transmit_data<O: Out<Self>>(&mut self, mark: Option<DataMark>, body: B, out: &mut O) {
        match &mark {
            None => self.counters.unmarked += 1,
            Some(mark) => {
                self.counters.sent += 1;
                self.counters.unsolicited += u64::from(mark.unsolicited);
            }
        }
        out.transmit(HOST_WIRE, ReservePacket::Data { mark, body });
    }

    /// Sends an RSV or a frame of this context, if there is one to send; true if something was sent.
    fn ask<O: Out<Self>>(&mut self, now: Time, number: u16, out: &mut O) -> bool {
        let context = &mut self.contexts[usize::from(number)];
        match context.state {
            ContextState::Asking { sent: None, .. } => {
                self.send_rsv(now, number, out);
                true
            }
            ContextState::Idle => match context.assemble(out) {
                BurstAssembly::Nothing => false,
                BurstAssembly::Unreserved(frame) => {
                    self.list(number, out);
                    self.transmit_data(None, frame, out);
                    true
                }
                BurstAssembly::Burst => self.begin_burst(now, number, out),
            },
            _ => false,
        }
    }

    /// Asks for a new burst, or lets it go without asking. Whether an RSV was sent.
    fn begin_burst<O: Out<Self>>(&mut self, now: Time, number: u16, out: &mut O) -> bool {
        if self.left || self.silent.is_some_and(|probe_at| now < probe_at) {
            self.send_unmarked(now, number, out);
            return false;
        }
        if self.silent.is_some() {
            self.silent = Some(now + self.params.probe);
        }
        let context = &mut self.contexts[usize::from(number)];
        let paper = self.rack.scheduler == SchedulerKind::Paper;
        let knows_switch = self.rack.unsolicited && self.switch_epoch != 0 && self.silent.is_none();
        if knows_switch && !paper && context.may_be_unsolicited(now, out) {
            context.grant_unsolicited();
            self.granted.push(Reverse((now, number)));
            return false;
        }
        let t = self.slots.slot() * u64::from(self.rack.t);
        if knows_switch && paper && self.destinations.is_free(now, context.to, t, self.params.recent) {
            (context.copying, context.copied) = (Some(0), true);
            self.copying.push_back(number);
        }
        self.send_rsv(now, number, out);
        true
    }

    fn send_rsv<O: Out<Self>>(&mut self, now: Time, number: u16, out: &mut O) {
        let context = &mut self.contexts[usize::from(number)];
        let (attempt, burst) = (context.asked(now), context.burst);
        if let Some(about) = context.reservation(self.params.epoch, self.switch_epoch) {
            out.transmit(HOST_WIRE, ReservePacket::Message(ReserveMessage { verb: ReserveVerb::Rsv, about }));
        }
        self.counters.rsvs += 1;
        self.set_deadline(now, number, burst, attempt, out);
    }

    /// The next frame of the burst that is being sent.
    #[inline]
    fn send_one<O: Out<Self>>(&mut self, now: Time, number: u16, out: &mut O) -> Pull {
        let context = &mut self.contexts[usize::from(number)];
        let Some((index, frame)) = context.next_frame() else {
            // The rest of the burst had been sent as copies.
            self.end_burst(now, number, out);
            return self.next_frame(now, out);
        };
        let unsolicited = context.marking == BurstMarking::Unsolicited;
        let mark = (context.marking != BurstMarking::Unmarked)
            .then(|| context.mark(self.params.epoch, self.switch_epoch, index, unsolicited));
        if unsolicited {
            context.remember(now, index, out.keep(&frame));
        }
        let over = context.frames.is_empty();
        self.transmit_data(mark, frame, out);
        if over {
            self.end_burst(now, number, out);
        }
        Pull::Sent
    }

    #[inline]
    fn end_burst<O: Out<Self>>(&mut self, now: Time, number: u16, out: &mut O) {
        self.sending = None;
        let context = &mut self.contexts[usize::from(number)];
        let unsolicited = context.marking == BurstMarking::Unsolicited;
        let burst = context.burst;
        context.finish(out);
        if context.has_more(out) {
            self.list(number, out);
        }
        if unsolicited {
            self.set_deadline(now, number, burst, NO_ATTEMPT, out);
        }
    }

    /// The paper's way: the next copy of a burst whose RSV has just left.
    fn send_copy<O: Out<Self>>(&mut self, now: Time, number: u16, out: &mut O) -> Pull {
        let context = &mut self.contexts[usize::from(number)];
        let next = context.copying.and_then(|index| Some((index, context.frames.get(usize::from(index))?)));
        let Some((index, frame)) = next else {
            self.copying.pop_front();
            self.end_copies(number, out);
            return self.next_frame(now, out);
        };
        let copy = out.keep(frame);
        context.copying = Some(index + 1);
        let mark = context.mark(self.params.epoch, self.switch_epoch, index, true);
        self.transmit_data(Some(mark), copy, out);
        Pull::Sent
    }

    fn end_copies<O: Out<Self>>(&mut self, number: u16, out: &mut O) {
        let context = &mut self.contexts[usize::from(number)];
        context.copying = None;
        if context.state == ContextState::Copying {
            context.finish(out);
            self.list(number, out);
        }
    }
}
