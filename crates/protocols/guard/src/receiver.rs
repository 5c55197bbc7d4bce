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

mod missing;

use machine::{FrameBody, Out, QueueId};
use units::{Bytes, Span, Time};
use wire::Seq;
use wire::link::{Class, Feedback, FlowControl, Gap};

use crate::counters::Counters;
use crate::endpoint::{Endpoint, EndpointNote, EndpointTimer, lane};
use crate::losses::{Losses, MissingRun, Patience};
use crate::order::{DeliveryOrder, OrderPlacement};
use crate::params::Params;
use crate::pool::PoolShare;
use crate::round_trip::RoundTrip;

#[derive(Debug)]
pub(crate) struct Receiver<B> {
    class: Class,
    first: Seq,
    expected: Seq,
    losses: Losses,
    round_trip: RoundTrip,
    /// `None` in non-blocking mode.
    order: Option<DeliveryOrder<B>>,
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
    /// True if a frame of the peer arrived since the last timeout.
    heard: bool,
    control_copies: u8,
    paper_acks: bool,
    max_consecutive: Option<u32>,
    /// The most frames that the peer keeps outstanding, as it announced.
    peer_window: i32,
    /// Queue to which frames are delivered.
    lane: QueueId,
}

impl<B: FrameBody> Receiver<B> {
    pub(crate) fn new(params: &Params, class: Class, peer_window: u32) -> Self {
        let order = (class == Class::Ordered).then(|| DeliveryOrder::new(params));
        Self {
            class,
            first: params.first_seq,
            expected: params.first_seq,
            losses: Losses::default(),
            // A second question at least is to come before a frame is given up.
            round_trip: RoundTrip::new(params.timeout, params.timeout * u64::from(params.asks) / 2),
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
            peer_window: peer_window.min(Seq::MAX_WINDOW) as i32,
            lane: if params.auto.is_some() { QueueId(0) } else { lane(class) },
        }
    }

    /// True if nothing is missing or held.
    pub(crate) fn is_empty(&self) -> bool {
        self.losses.is_empty() && self.order.as_ref().is_none_or(DeliveryOrder::is_empty)
    }

    /// A frame of the peer's has arrived, or was found missing.
    pub(crate) fn has_heard(&self) -> bool {
        self.expected != self.first
    }

    /// True if nothing is missing and nobody is paused.
    pub(crate) fn is_calm(&self) -> bool {
        self.losses.is_empty() && self.wish() == FlowControl::Flow
    }

    /// See [`crate::reorder::ReorderBuffer::fingerprint`].
    pub(crate) fn fingerprint(&self, now: Time, mut mix: impl FnMut(u64)) {
        mix(u64::from(self.unacknowledged));
        if let Some(order) = &self.order {
            mix(self.expected.offset_from(order.next()) as u64);
            order.fingerprint(now, mix);
        }
    }

    pub(crate) fn held(&self) -> Bytes {
        self.order.as_ref().map_or(Bytes::ZERO, DeliveryOrder::level)
    }

    pub(crate) fn peak(&self) -> Bytes {
        self.order.as_ref().map_or(Bytes::ZERO, DeliveryOrder::peak)
    }

    #[inline]
    pub(crate) fn owes_ack(&self) -> bool {
        self.owes_ack
    }

    /// True if an acknowledgement that is not due would say something new, and may ride along.
    #[inline]
    pub(crate) fn may_ack(&self) -> bool {
        self.eager_acks && self.unacknowledged > 0
    }

    #[inline]
    pub(crate) fn owes_notice(&self) -> bool {
        self.notices > 0
    }

    /// A protected frame.
    #[inline(always)]
    pub(crate) fn on_data<O>(&mut self, now: Time, seq: Seq, body: B, counters: &mut Counters, out: &mut O)
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
                self.accept(now, seq, body, None, counters, out);
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
            self.accept(now, seq, body, None, counters, out);
        } else if let Some(run) = self.losses.close(seq) {
            self.set_timer(out);
            self.round_trip.on_answer(now.since(run.since), run.round == 0);
            if self.accept(now, seq, body, Some(run), counters, out) {
                counters.recovered += 1;
                out.note(EndpointNote::Recovered { class: self.class, after: now.since(run.since) });
            }
        } else {
            counters.rx_duplicate_seq += 1;
            out.release(body);
        }
    }

    /// A dummy: the latest number sent so far.
    pub(crate) fn on_dummy<O>(&mut self, now: Time, latest: Seq, counters: &mut Counters, out: &mut O)
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

    /// True if an honest peer can be so far ahead of what we expect: it does not get further than its window.
    fn is_plausible(&self, ahead: i32) -> bool {
        let oldest = match &self.order {
            Some(order) => order.next(),
            None => self.losses.first().unwrap_or(self.expected),
        };
        // The window, and as much again for what is acknowledged and held.
        ahead <= self.peer_window && self.expected.offset_from(oldest) + ahead <= 2 * self.peer_window
    }

    /// Delivers a frame that is neither duplicate nor bogus, now or in its turn. False if there was no room
    /// for it; it is asked for again, after the times it was as part of a `run`.
    #[inline(never)]
    fn accept<O>(
        &mut self,
        now: Time,
        seq: Seq,
        body: B,
        run: Option<MissingRun>,
        counters: &mut Counters,
        out: &mut O,
    ) -> bool
    where
        O: Out<Endpoint<B>>,
    {
        let Some(order) = &mut self.order else {
            out.deliver(self.lane, body);
            return true;
        };
        let fits = match order.place(now, seq, body) {
            OrderPlacement::Next(body) => {
                out.deliver(self.lane, body);
                true
            }
            OrderPlacement::Held => true,
            OrderPlacement::Full(body) => {
                counters.rx_overflow += 1;
                out.note(EndpointNote::Overflow);
                out.release(body);
                self.lose_for_want_of_room(now, seq, run, counters, out);
                false
            }
        };
        self.settle(counters, out);
        fits
    }

    /// Delivers every frame that has its turn, then updates backpressure and the timers.
    fn settle<O: Out<Endpoint<B>>>(&mut self, counters: &mut Counters, out: &mut O) {
        let Some(order) = &mut self.order else { return };
        while let Some(body) = order.pop() {
            out.deliver(self.lane, body);
        }
        if let Some(at) = order.next_turn() {
            out.arm(EndpointTimer::Examine, at);
        }
        self.press_back(counters, out);
    }

    fn press_back<O: Out<Endpoint<B>>>(&mut self, counters: &mut Counters, out: &mut O) {
        let Some(order) = &mut self.order else { return };
        if let Some(wish) = order.press_back() {
            let hold = wish == FlowControl::Hold;
            counters.pauses += u64::from(hold);
            out.note(if hold { EndpointNote::Paused } else { EndpointNote::Resumed });
            self.notices = self.control_copies;
        }
    }

    /// A frame of the rotating buffer has come round (Alg. 1).
    pub(crate) fn on_turn<O: Out<Endpoint<B>>>(&mut self, now: Time, counters: &mut Counters, out: &mut O) {
        let Some(order) = &mut self.order else { return };
        if let Some(body) = order.on_turn(now) {
            out.deliver(self.lane, body);
        }
        self.settle(counters, out);
    }

    /// Feedback for the sender at lowest priority, or on a frame that goes there anyway.
    #[inline(always)]
    pub(crate) fn acknowledge(&mut self) -> Feedback {
        self.owes_ack = false;
        self.unacknowledged = 0;
        let mut feedback = self.report();
        if !self.paper_acks && !self.losses.is_empty() {
            self.losses.list(&mut feedback, false);
        }
        feedback
    }

    /// Feedback for the sender that leaves at once.
    pub(crate) fn notify(&mut self) -> Feedback {
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
    fn wish(&self) -> FlowControl {
        self.order.as_ref().map_or(FlowControl::Flow, DeliveryOrder::wish)
    }

    /// The switch has this much room for us.
    pub(crate) fn limit<O: Out<Endpoint<B>>>(&mut self, share: PoolShare, counters: &mut Counters, out: &mut O) {
        let Some(order) = &mut self.order else { return };
        order.share(share);
        self.press_back(counters, out);
    }

    /// The peer is gone: deliver what is held, in order, and forget what is missing.
    pub(crate) fn flush<O: Out<Endpoint<B>>>(&mut self, counters: &mut Counters, out: &mut O) {
        let mut missing = 0;
        let none = Patience { asks: 0, unheard: 0 };
        self.losses.expire(Time::NEVER, none, true, Time::NEVER, |_| Span::ZERO, |run| missing += run.frames);
        if missing > 0 {
            counters.given_up += u64::from(missing);
            out.note(EndpointNote::GivenUp { class: self.class, frames: missing });
        }
        if let Some(order) = &mut self.order {
            for (_, body) in order.drain(self.expected) {
                out.deliver(self.lane, body);
            }
            out.disarm(EndpointTimer::Examine);
        }
        out.disarm(EndpointTimer::Timeout(self.class));
        self.owes_ack = true;
        self.press_back(counters, out);
    }
    /// Panics if the module's invariants do not hold: each number from `next` to `expected` is missing, held or given up.
    pub(crate) fn check_invariants(&self) {
        assert_eq!(self.order.is_some(), self.class == Class::Ordered, "order is not what the class asks for");
        let next = self.order.as_ref().map(DeliveryOrder::next);
        self.losses.check_invariants(next, self.expected);
        let oldest = next.or(self.losses.first()).unwrap_or(self.expected);
        let open = self.expected.offset_from(oldest);
        assert!((0..=2 * self.peer_window).contains(&open), "{open} frames open");
        if let Some(order) = &self.order {
            order.check_invariants();
            assert_eq!(open as u32, self.losses.frames() + order.accounted(), "a frame is nowhere, or in two places");
        }
    }
}
