//! Missing frames: asked for, waited for, given up.

use machine::{FrameBody, Out};
use units::Time;
use wire::Seq;
use wire::link::Gap;

use super::Receiver;
use crate::counters::Counters;
use crate::endpoint::{Endpoint, EndpointNote, EndpointTimer};
use crate::losses::MissingRun;

impl<B: FrameBody> Receiver<B> {
    /// The next `frames` expected are missing.
    pub(super) fn miss<O: Out<Endpoint<B>>>(&mut self, now: Time, frames: u32, counters: &mut Counters, out: &mut O) {
        counters.rx_missing_seq += u64::from(frames);
        out.note(EndpointNote::Missing { class: self.class, frames });
        let asked = self.max_consecutive.map_or(frames, |most| frames.min(most));
        self.open_loss(now, self.expected, asked, None, out);
        if asked < frames {
            self.give_up(self.expected.plus(asked), frames - asked, counters, out);
        }
    }

    /// `before` if it was missing, and arrived, and could not be held.
    fn open_loss<O>(&mut self, now: Time, first: Seq, frames: u32, before: Option<MissingRun>, out: &mut O)
    where
        O: Out<Endpoint<B>>,
    {
        let deadline = self.deadline(now, frames);
        let (round, waits) = before.map_or((0, 0), |run| (run.round + 1, run.waits + 1));
        let ask_at = now + self.round_trip.wait(round);
        self.losses.open(MissingRun { first, frames, since: now, deadline, ask_at, round, waits, unheard: 0 });
        self.notices = self.control_copies;
        self.set_timer(out);
    }

    /// Time by which `frames` more should have come. A long run takes its time to be sent again, and so do the frames that
    /// were asked for before it.
    fn deadline(&self, now: Time, frames: u32) -> Time {
        let queued = (self.losses.frames() + frames).saturating_sub(self.burst);
        now + self.timeout + self.timeout_each * u64::from(queued)
    }

    fn give_up<O: Out<Endpoint<B>>>(&mut self, first: Seq, frames: u32, counters: &mut Counters, out: &mut O) {
        counters.given_up += u64::from(frames);
        out.note(EndpointNote::GivenUp { class: self.class, frames });
        if let Some(order) = &mut self.order {
            order.step_over(first, frames);
        }
    }

    /// A frame arrived and could not be held. The paper's switch loses it; we ask for it again.
    pub(super) fn lose_for_want_of_room<O>(
        &mut self,
        now: Time,
        seq: Seq,
        run: Option<MissingRun>,
        counters: &mut Counters,
        out: &mut O,
    ) where
        O: Out<Endpoint<B>>,
    {
        if self.paper_acks || run.is_some_and(|run| run.waits >= Gap::MAX_ROUND) {
            self.give_up(seq, 1, counters, out);
        } else {
            self.open_loss(now, seq, 1, run, out);
        }
    }

    /// The paper's ackNoTimeout: ask again, or stop waiting.
    pub(crate) fn on_timeout<O: Out<Endpoint<B>>>(&mut self, now: Time, counters: &mut Counters, out: &mut O) {
        let mut given_up = Vec::new();
        let (heard, renew) = (std::mem::take(&mut self.heard), self.deadline(now, 0));
        let round_trip = &self.round_trip;
        let wait = |round| round_trip.wait(round);
        if self.losses.expire(now, self.patience, heard, renew, wait, |run| given_up.push(run)) {
            self.notices = self.control_copies;
        }
        for run in given_up {
            self.owes_ack = true;
            self.give_up(run.first, run.frames, counters, out);
        }
        self.set_timer(out);
        self.settle(counters, out);
    }

    pub(super) fn set_timer<O: Out<Endpoint<B>>>(&self, out: &mut O) {
        match self.losses.earliest_deadline() {
            Some(at) => out.arm(EndpointTimer::Timeout(self.class), at),
            None => out.disarm(EndpointTimer::Timeout(self.class)),
        }
    }
}
