//! Arrivals at a host: answers of the switch, and frames of other hosts.

use std::cmp::Reverse;

use machine::Out;
use units::{Span, Time};
use wire::reserve::{DataMark, Grant, Refusal, Reservation, ReserveMessage, ReserveVerb};

use super::context::{BurstMarking, ContextState};
use super::{HostTimer, RECEIVED, ReservingHost, WaitRule};
use crate::frame::RackFrame;

impl<B: RackFrame> ReservingHost<B> {
    pub(super) fn on_message<O: Out<Self>>(&mut self, now: Time, message: &ReserveMessage, out: &mut O) {
        let about = &message.about;
        if let ReserveVerb::Copy(grant) = message.verb {
            self.expect(now, about, grant, out);
            return;
        }
        let ours = about.id.host_epoch == self.params.epoch && about.id.context < self.rack.contexts;
        if !ours {
            self.counters.stale += 1;
            return;
        }
        match message.verb {
            ReserveVerb::Grt(grant) => self.on_grant(now, about, grant, out),
            ReserveVerb::Refused(reason) => self.on_refusal(now, about, reason, out),
            ReserveVerb::Cut(index) => self.on_cut(now, about, index, out),
            // Messages that only hosts send.
            ReserveVerb::Copy(_) | ReserveVerb::Rsv | ReserveVerb::Reset | ReserveVerb::Release => {
                self.counters.stale += 1;
            }
        }
    }

    /// A message names the run of the switch. If it is another one, all that was granted before is gone.
    fn on_epoch<O: Out<Self>>(&mut self, epoch: u16, out: &mut O) {
        let before = std::mem::replace(&mut self.switch_epoch, epoch);
        if before == epoch || before == 0 {
            return;
        }
        self.counters.switch_restarts += 1;
        self.granted
            .retain(|Reverse((_, context))| self.contexts[usize::from(*context)].marking != BurstMarking::Reserved);
        for number in 0..self.rack.contexts {
            let context = &mut self.contexts[usize::from(number)];
            let open = matches!(context.state, ContextState::Granted | ContextState::Sending);
            if open && context.marking == BurstMarking::Reserved {
                self.sending = self.sending.filter(|sending| *sending != number);
                context.begin_again();
                self.list(number, out);
            }
        }
    }

    fn on_grant<O: Out<Self>>(&mut self, now: Time, about: &Reservation, grant: Grant, out: &mut O) {
        self.on_epoch(about.switch_epoch, out);
        self.silent = None;
        let number = about.id.context;
        let context = &mut self.contexts[usize::from(number)];
        let ContextState::Asking { sent, attempt } = context.state else {
            self.counters.stale += 1;
            return;
        };
        if context.burst != about.id.burst {
            self.counters.stale += 1;
            return;
        }
        self.counters.grants += 1;
        // An answer to an earlier attempt is as good, but says nothing about the round trip.
        let sent = sent.filter(|_| attempt == about.attempt);
        let round_trip = sent.map(|sent| now.since(sent).saturating_sub(grant.kept));
        if let Some(round_trip) = round_trip {
            self.round_trip.add(now, round_trip);
        }
        let chosen = grant.chosen();
        self.destinations.learn(now, about.peer, chosen);
        let context = &mut self.contexts[usize::from(number)];
        if context.copied && chosen <= self.slots.slot() * u64::from(self.rack.t) {
            self.on_copies_passed(number, out);
            return;
        }
        self.counters.resent += if context.copied { u64::from(context.demand.frames) } else { 0 };
        context.copying = None;
        context.state = ContextState::Granted;
        let at = now + self.wait(chosen, round_trip);
        self.granted.push(Reverse((at, number)));
        out.wake(super::HOST_WIRE);
    }

    /// The paper's way: the burst has gone unsolicited, and its GRT says that it passed.
    fn on_copies_passed<O: Out<Self>>(&mut self, number: u16, out: &mut O) {
        let context = &mut self.contexts[usize::from(number)];
        if context.copying.is_some() {
            context.state = ContextState::Copying;
            return;
        }
        context.finish(out);
        self.list(number, out);
    }

    /// Time from now until the burst may leave.
    fn wait(&self, chosen: Span, round_trip: Option<Span>) -> Span {
        let off = match self.params.wait {
            WaitRule::NeverEarly => self.round_trip.smallest().unwrap_or(Span::ZERO),
            WaitRule::Printed => round_trip.unwrap_or(Span::ZERO) + self.pending_delay(),
        };
        chosen.saturating_sub(off + self.params.too_early)
    }

    /// The paper's pendingDataDelay: what was granted before and has not left.
    fn pending_delay(&self) -> Span {
        let scheduled = self
            .contexts
            .iter()
            .filter(|context| matches!(context.state, ContextState::Granted | ContextState::Sending));
        let frames = scheduled.flat_map(|context| context.frames.iter());
        let bytes: u64 = frames.map(|frame| u64::from(wire::ethernet::on_wire(frame.len()))).sum();
        self.rack.rate.span_of(units::Bytes::new(bytes))
    }

    fn on_refusal<O: Out<Self>>(&mut self, now: Time, about: &Reservation, reason: Refusal, out: &mut O) {
        self.on_epoch(about.switch_epoch, out);
        let number = about.id.context;
        let context = &mut self.contexts[usize::from(number)];
        if !context.is_asking(about.id.burst, about.attempt) {
            self.counters.stale += 1;
            return;
        }
        self.counters.refused += 1;
        match reason {
            Refusal::OldEpoch => {
                context.ask_again();
                self.list(number, out);
            }
            // Its deadline asks again.
            Refusal::TooMany => (),
            Refusal::AboveLimit
            | Refusal::UnknownPort
            | Refusal::OwnPort
            | Refusal::ForeignSource
            | Refusal::UnknownContext => self.send_unmarked(now, number, out),
        }
    }

    fn on_cut<O: Out<Self>>(&mut self, now: Time, about: &Reservation, index: u8, out: &mut O) {
        self.on_epoch(about.switch_epoch, out);
        let number = about.id.context;
        let context = &mut self.contexts[usize::from(number)];
        let given_back = context.reservation(self.params.epoch, self.switch_epoch);
        let Some(count) = context.take_back(about.id.burst, index, now + self.params.recent) else {
            // Behind an unsolicited frame that was cut, all are; those came back with the first. Of a reserved one there
            // is no copy.
            match context.was_unsolicited(about.id.burst) {
                true => self.counters.stale += 1,
                false => self.counters.lost += 1,
            }
            return;
        };
        self.counters.resent += count as u64;
        self.granted.retain(|Reverse((_, granted))| *granted != number);
        self.sending = self.sending.filter(|sending| *sending != number);
        if let Some(about) = given_back {
            self.messages.push_back(ReserveMessage { verb: ReserveVerb::Release, about });
        }
        self.list(number, out);
    }

    #[inline]
    pub(super) fn on_data<O: Out<Self>>(&mut self, mark: Option<DataMark>, body: B, out: &mut O) {
        if let Some(mark) = mark
            && !self.receiver.accepts(body.source(), &mark)
        {
            self.counters.duplicates += 1;
            out.release(body);
            return;
        }
        if let Some(mark) = mark {
            self.receiver.on_arrival(body.source(), &mark);
        }
        self.counters.delivered += 1;
        out.deliver(RECEIVED, body);
    }

    /// The switch announces a burst for this host.
    fn expect<O: Out<Self>>(&mut self, now: Time, about: &Reservation, grant: Grant, out: &mut O) {
        let due = now + grant.chosen() + self.params.reset_after;
        if let Some(at) = self.receiver.expect(about, due) {
            out.arm(HostTimer::Silence, at);
        }
    }

    pub(super) fn on_silence<O: Out<Self>>(&mut self, now: Time, out: &mut O) {
        while let Some(about) = self.receiver.next_missing(now) {
            self.counters.resets += 1;
            self.messages.push_back(ReserveMessage { verb: ReserveVerb::Reset, about });
            out.wake(super::HOST_WIRE);
        }
        if let Some(at) = self.receiver.next_due() {
            out.arm(HostTimer::Silence, at);
        }
    }
}
