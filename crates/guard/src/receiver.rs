//! The receiving side of one class: notice what is missing, ask for it, deliver.
//!
//! LinkGuardian (SIGCOMM'23) §3.1, §3.3 and App. A.1. A number beyond `expected` (the paper's
//! latestRxSeqNo + 1) opens a gap, and a notice goes out at once. A frame before `expected` is welcome
//! only while it is an open loss; any other is a duplicate. In order, frames behind a gap wait in the
//! reorder buffer until `next` (the paper's ackNo) reaches them; a gap that was given up is stepped over.
//!
//! ```text
//!      next                 expected
//!       │  missing or held     │  not seen yet
//!   ────┼──────────────────────┼──▶
//! ```
//!
//! Invariants: a frame is delivered at most once; in order, unless non-blocking; `next` never rests on
//! a frame that was given up; the reorder buffer stays within its limit.

use machine::{Lane, Out};
use units::{Bytes, Span, Time};
use wire::Seq;
use wire::link::{Class, Feedback, Gap, Wish};

use crate::counters::Counters;
use crate::endpoint::{Endpoint, Note, TimerKey, lane};
use crate::losses::{Losses, Patience, Run};
use crate::order::{Order, Place};
use crate::packet::Body;
use crate::params::Params;
use crate::pool::Share;

#[derive(Debug)]
pub struct Receiver<B> {
    class: Class,
    expected: Seq,
    losses: Losses,
    /// `None` in non-blocking mode.
    order: Option<Order<B>>,
    owes_ack: bool,
    /// Frames delivered in order since the last acknowledgement.
    unacknowledged: u8,
    ack_every: u8,
    eager_acks: bool,
    notices: u8,
    timeout: Span,
    timeout_each: Span,
    burst: u32,
    patience: Patience,
    /// The peer was heard of since the last timeout.
    heard: bool,
    control_copies: u8,
    paper_acks: bool,
    max_consecutive: Option<u32>,
    /// Where frames are handed up.
    lane: Lane,
}

/// The most that the latest frame may lie ahead of the oldest still awaited: the sender's window, and as
/// much again for what is acknowledged and held. Further than that no honest peer gets, and numbers
/// would no longer tell which is first.
const MAX_SPAN: i32 = 2 * Seq::MAX_WINDOW as i32;

impl<B: Body> Receiver<B> {
    pub fn new(params: &Params, class: Class) -> Self {
        let order = (class == Class::Ordered).then(|| Order::new(params));
        Self {
            class,
            expected: params.first_seq,
            losses: Losses::default(),
            order,
            owes_ack: false,
            unacknowledged: 0,
            ack_every: params.ack_every,
            eager_acks: params.eager_acks,
            notices: 0,
            timeout: params.timeout,
            timeout_each: params.timeout_each,
            burst: params.burst,
            patience: Patience {
                asks: params.asks.min(Gap::MAX_ROUND),
                unheard: params.unheard_asks.min(Gap::MAX_ROUND.saturating_sub(params.asks)),
            },
            heard: false,
            control_copies: params.control_copies,
            paper_acks: params.paper_acks,
            max_consecutive: params.max_consecutive,
            lane: if params.auto.is_some() { Lane(0) } else { lane(class) },
        }
    }

    /// Nothing missing, nothing held.
    pub fn is_empty(&self) -> bool {
        self.losses.is_empty() && self.order.as_ref().is_none_or(Order::is_empty)
    }

    /// Nothing missing, nobody paused.
    pub fn is_calm(&self) -> bool {
        self.losses.is_empty() && self.wish() == Wish::Flow
    }

    /// See [`crate::reorder::Reorder::fingerprint`].
    pub fn fingerprint(&self, now: Time, mut mix: impl FnMut(u64)) {
        mix(u64::from(self.unacknowledged));
        if let Some(order) = &self.order {
            mix(self.expected.offset_from(order.next()) as u64);
            order.fingerprint(now, mix);
        }
    }

    pub fn held(&self) -> Bytes {
        self.order.as_ref().map_or(Bytes::ZERO, Order::level)
    }

    pub fn peak(&self) -> Bytes {
        self.order.as_ref().map_or(Bytes::ZERO, Order::peak)
    }

    #[inline]
    pub fn owes_ack(&self) -> bool {
        self.owes_ack
    }

    /// Whether an acknowledgement that is not due would say something new, and may ride along.
    #[inline]
    pub fn may_ack(&self) -> bool {
        self.eager_acks && self.unacknowledged > 0
    }

    #[inline]
    pub fn owes_notice(&self) -> bool {
        self.notices > 0
    }

    /// A protected frame.
    #[inline(always)]
    pub fn on_data<O>(&mut self, now: Time, seq: Seq, body: B, counters: &mut Counters, out: &mut O)
    where
        O: Out<Endpoint<B>>,
    {
        self.heard = true;
        let ahead = seq.offset_from(self.expected);
        if ahead == 0 {
            counters.rx_expected_seq_good += 1;
            self.expected = seq.next();
            self.unacknowledged = self.unacknowledged.saturating_add(1);
            self.owes_ack |= self.unacknowledged >= self.ack_every;
            if self.order.as_mut().is_none_or(|order| order.pass(seq)) {
                out.deliver(self.lane, body);
            } else {
                self.accept(now, seq, body, 0, counters, out);
            }
            return;
        }
        self.on_unexpected(now, seq, ahead, body, counters, out);
    }

    /// A frame that is not the next: what came between is missing, or it was missing itself, or it has
    /// been here before.
    #[inline(never)]
    fn on_unexpected<O>(&mut self, now: Time, seq: Seq, ahead: i32, body: B, counters: &mut Counters, out: &mut O)
    where
        O: Out<Endpoint<B>>,
    {
        if !self.is_plausible(ahead) {
            counters.rx_bad += 1;
            return out.release(body);
        }
        self.owes_ack = true;
        if ahead > 0 {
            self.miss(now, ahead as u32, counters, out);
            self.expected = seq.next();
            self.accept(now, seq, body, 0, counters, out);
        } else if let Some(run) = self.losses.close(seq) {
            self.set_timer(out);
            if self.accept(now, seq, body, run.round + 1, counters, out) {
                counters.recovered += 1;
                out.note(Note::Recovered { class: self.class, after: now.since(run.since) });
            }
        } else {
            counters.rx_duplicate_seq += 1;
            out.release(body);
        }
    }

    /// A dummy: the latest number sent so far.
    pub fn on_dummy<O>(&mut self, now: Time, latest: Seq, counters: &mut Counters, out: &mut O)
    where
        O: Out<Endpoint<B>>,
    {
        self.heard = true;
        let ahead = latest.next().offset_from(self.expected);
        if !self.is_plausible(ahead) {
            counters.rx_bad += 1;
            return;
        }
        self.owes_ack = true;
        if ahead > 0 {
            self.miss(now, ahead as u32, counters, out);
            self.expected = latest.next();
            self.settle(counters, out);
        }
    }

    /// Whether an honest peer can be so far ahead of what we expect.
    fn is_plausible(&self, ahead: i32) -> bool {
        let oldest = match &self.order {
            Some(order) => order.next(),
            None => self.losses.first().unwrap_or(self.expected),
        };
        ahead <= Seq::MAX_WINDOW as i32 && self.expected.offset_from(oldest) + ahead <= MAX_SPAN
    }

    /// The next `frames` expected are missing.
    fn miss<O: Out<Endpoint<B>>>(&mut self, now: Time, frames: u32, counters: &mut Counters, out: &mut O) {
        counters.rx_missing_seq += u64::from(frames);
        out.note(Note::Missing { class: self.class, frames });
        let asked = self.max_consecutive.map_or(frames, |most| frames.min(most));
        self.open_loss(now, self.expected, asked, 0, out);
        if asked < frames {
            self.give_up(self.expected.plus(asked), frames - asked, counters, out);
        }
    }

    fn open_loss<O: Out<Endpoint<B>>>(&mut self, now: Time, first: Seq, frames: u32, round: u8, out: &mut O) {
        let deadline = self.deadline(now, frames);
        self.losses.open(Run { first, frames, since: now, deadline, round, unheard: 0 });
        self.notices = self.control_copies;
        self.set_timer(out);
    }

    /// When `frames` more should have come. A long run takes its time to be sent again, and so does what
    /// was asked for before it.
    fn deadline(&self, now: Time, frames: u32) -> Time {
        let queued = (self.losses.frames() + frames).saturating_sub(self.burst);
        now + self.timeout + self.timeout_each * u64::from(queued)
    }

    fn give_up<O: Out<Endpoint<B>>>(&mut self, first: Seq, frames: u32, counters: &mut Counters, out: &mut O) {
        counters.given_up += u64::from(frames);
        out.note(Note::GivenUp { class: self.class, frames });
        if let Some(order) = &mut self.order {
            order.step_over(first, frames);
        }
    }

    /// Delivers a frame that is neither duplicate nor bogus, now or in its turn. False if there was no room
    /// for it; it is asked for again, in this `round`.
    #[inline(never)]
    fn accept<O>(&mut self, now: Time, seq: Seq, body: B, round: u8, counters: &mut Counters, out: &mut O) -> bool
    where
        O: Out<Endpoint<B>>,
    {
        let Some(order) = &mut self.order else {
            out.deliver(self.lane, body);
            return true;
        };
        let fits = match order.place(now, seq, body) {
            Place::Next(body) => {
                out.deliver(self.lane, body);
                true
            }
            Place::Held => true,
            Place::Full(body) => {
                counters.rx_overflow += 1;
                out.note(Note::Overflow);
                out.release(body);
                self.lose_for_want_of_room(now, seq, round, counters, out);
                false
            }
        };
        self.settle(counters, out);
        fits
    }

    /// A frame arrived and could not be held. The paper's switch loses it; we ask for it again.
    fn lose_for_want_of_room<O>(&mut self, now: Time, seq: Seq, round: u8, counters: &mut Counters, out: &mut O)
    where
        O: Out<Endpoint<B>>,
    {
        if self.paper_acks || round > Gap::MAX_ROUND {
            self.give_up(seq, 1, counters, out);
        } else {
            self.open_loss(now, seq, 1, round, out);
        }
    }

    /// Delivers whatever has its turn, and lets backpressure and the timers follow.
    fn settle<O: Out<Endpoint<B>>>(&mut self, counters: &mut Counters, out: &mut O) {
        let Some(order) = &mut self.order else { return };
        while let Some(body) = order.pop() {
            out.deliver(self.lane, body);
        }
        if let Some(at) = order.next_turn() {
            out.arm(TimerKey::Examine, at);
        }
        self.press_back(counters, out);
    }

    fn press_back<O: Out<Endpoint<B>>>(&mut self, counters: &mut Counters, out: &mut O) {
        let Some(order) = &mut self.order else { return };
        if let Some(wish) = order.press_back() {
            let hold = wish == Wish::Hold;
            counters.pauses += u64::from(hold);
            out.note(if hold { Note::Paused } else { Note::Resumed });
            self.notices = self.control_copies;
        }
    }

    /// A frame of the rotating buffer has come round (Alg. 1).
    pub fn on_turn<O: Out<Endpoint<B>>>(&mut self, now: Time, counters: &mut Counters, out: &mut O) {
        let Some(order) = &mut self.order else { return };
        if let Some(body) = order.on_turn(now) {
            out.deliver(self.lane, body);
        }
        self.settle(counters, out);
    }

    /// The paper's ackNoTimeout: ask again, or stop waiting.
    pub fn on_timeout<O: Out<Endpoint<B>>>(&mut self, now: Time, counters: &mut Counters, out: &mut O) {
        let mut given_up = Vec::new();
        let (heard, renew) = (std::mem::take(&mut self.heard), self.deadline(now, 0));
        if self.losses.expire(now, self.patience, heard, renew, |run| given_up.push(run)) {
            self.notices = self.control_copies;
        }
        for run in given_up {
            self.owes_ack = true;
            self.give_up(run.first, run.frames, counters, out);
        }
        self.set_timer(out);
        self.settle(counters, out);
    }

    fn set_timer<O: Out<Endpoint<B>>>(&self, out: &mut O) {
        match self.losses.earliest_deadline() {
            Some(at) => out.arm(TimerKey::Timeout(self.class), at),
            None => out.disarm(TimerKey::Timeout(self.class)),
        }
    }

    /// What to tell the sender at lowest priority, or on a frame that goes there anyway.
    #[inline(always)]
    pub fn acknowledge(&mut self) -> Feedback {
        self.owes_ack = false;
        self.unacknowledged = 0;
        let mut feedback = self.report();
        if !self.paper_acks && !self.losses.is_empty() {
            self.losses.list(&mut feedback, false);
        }
        feedback
    }

    /// What to tell the sender at once.
    pub fn notify(&mut self) -> Feedback {
        self.notices -= 1;
        self.owes_ack = false;
        self.unacknowledged = 0;
        let mut feedback = self.report();
        self.losses.list(&mut feedback, true);
        feedback
    }

    #[inline]
    fn report(&self) -> Feedback {
        Feedback::new(self.class, self.expected.previous(), self.wish())
    }

    #[inline]
    fn wish(&self) -> Wish {
        self.order.as_ref().map_or(Wish::Flow, Order::wish)
    }

    /// The switch has this much room for us.
    pub fn limit<O: Out<Endpoint<B>>>(&mut self, share: Share, counters: &mut Counters, out: &mut O) {
        let Some(order) = &mut self.order else { return };
        order.share(share);
        self.press_back(counters, out);
    }

    /// The peer is gone: deliver what is held, in order, and forget what is missing.
    pub fn flush<O: Out<Endpoint<B>>>(&mut self, counters: &mut Counters, out: &mut O) {
        let mut missing = 0;
        let none = Patience { asks: 0, unheard: 0 };
        self.losses.expire(Time::NEVER, none, true, Time::NEVER, |run| missing += run.frames);
        if missing > 0 {
            counters.given_up += u64::from(missing);
            out.note(Note::GivenUp { class: self.class, frames: missing });
        }
        if let Some(order) = &mut self.order {
            for (_, body) in order.drain(self.expected) {
                out.deliver(self.lane, body);
            }
            out.disarm(TimerKey::Examine);
        }
        out.disarm(TimerKey::Timeout(self.class));
        self.owes_ack = true;
        self.press_back(counters, out);
    }
}
