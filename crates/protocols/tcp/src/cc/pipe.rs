//! Drives a controller over an ideal path, segment by segment: one bottleneck with a queue, and a fixed delay.

use std::collections::VecDeque;

use units::{Bytes, Rate, Span, Time};

use super::rounds::MSS;
use super::{AckSample, CongestionControl, RateSample};

#[derive(Clone, Copy)]
pub(super) struct Path {
    pub rate: Rate,
    /// Round trip without a queue or a frame's own time.
    pub delay: Span,
    /// Segments that find more than this in the queue are marked.
    pub mark_at: u64,
    /// One in this many segments is lost, at random; 0 for none.
    pub lose_one_in: u32,
    /// Time between segments that the application has; zero if it always has one.
    pub app_gap: Span,
}

struct Sent {
    seq: u64,
    at: Time,
    arrives: Time,
    lost: bool,
    marked: bool,
    /// Total delivered, for the delivery rate, with its time and the departure of the segment that was delivered last.
    delivered: u64,
    delivered_at: Time,
    first_sent: Time,
}

struct Recovery {
    /// Losses of what left before belong to this episode.
    point: u64,
    /// Bytes delivered once the last of them is repaired: resent at once, behind what is in flight.
    repaired_at: u64,
}

pub(super) struct Pipe<C> {
    pub control: C,
    pub path: Path,
    pub now: Time,
    pub delivered: u64,
    pub queue: u64,
    sent: VecDeque<Sent>,
    next_send: Time,
    link_free: Time,
    delivered_at: Time,
    first_sent: Time,
    round_end: u64,
    next_seq: u64,
    recovery: Option<Recovery>,
    random: u32,
}

impl<C: CongestionControl> Pipe<C> {
    pub(super) fn new(control: C, path: Path) -> Self {
        Self {
            control,
            path,
            now: Time::ZERO,
            delivered: 0,
            queue: 0,
            sent: VecDeque::new(),
            next_send: Time::ZERO,
            link_free: Time::ZERO,
            delivered_at: Time::ZERO,
            first_sent: Time::ZERO,
            round_end: 0,
            next_seq: 0,
            recovery: None,
            random: 1,
        }
    }

    /// Runs for `span`, telling `watch` the controller, the time and the queue at every event.
    pub(super) fn run(&mut self, span: Span, mut watch: impl FnMut(&Self)) {
        let end = self.now + span;
        while self.now < end {
            self.step();
            watch(self);
        }
    }

    fn flight(&self) -> u64 {
        self.sent.len() as u64 * MSS
    }

    fn step(&mut self) {
        let sends = self.flight() + MSS <= self.control.window();
        let send_at = self.next_send.max(self.now);
        match self.sent.front().map(|sent| sent.arrives) {
            Some(arrives) if !sends || arrives < send_at => self.arrive(arrives),
            Some(_) | None => self.send(send_at),
        }
    }

    fn send(&mut self, now: Time) {
        self.now = now;
        let pacing = self.control.pacing().map_or(Span::ZERO, |pace| pace.span_of(Bytes::new(MSS)));
        self.next_send = now + pacing.max(self.path.app_gap);
        self.queue = self.path.rate.bytes_in(self.link_free.since(now)).get();
        self.link_free = self.link_free.max(now) + self.path.rate.span_of(Bytes::new(MSS));
        if self.sent.is_empty() {
            (self.first_sent, self.delivered_at) = (now, now);
        }
        let lost = self.is_lost();
        self.sent.push_back(Sent {
            seq: self.next_seq,
            at: now,
            arrives: self.link_free + self.path.delay,
            lost,
            marked: self.queue > self.path.mark_at,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
        });
        self.next_seq += 1;
    }

    fn is_lost(&mut self) -> bool {
        self.random = self.random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.path.lose_one_in > 0 && (self.random >> 8).is_multiple_of(self.path.lose_one_in)
    }

    fn arrive(&mut self, now: Time) {
        self.now = now;
        let flight_before = self.flight();
        let mut lost = 0;
        while let Some(sent) = self.sent.pop_front_if(|sent| sent.lost) {
            self.lose(sent.seq);
            lost += MSS;
        }
        match self.sent.pop_front() {
            None => self.control.on_timeout(now, 0),
            Some(sent) => self.acknowledge(&sent, flight_before, lost),
        }
    }

    fn lose(&mut self, seq: u64) {
        let repaired_at = self.delivered + self.flight();
        match &mut self.recovery {
            Some(recovery) if seq >= recovery.point => {}
            Some(recovery) => recovery.repaired_at = repaired_at,
            None => {
                self.recovery = Some(Recovery { point: self.next_seq, repaired_at });
                self.control.on_loss(self.now, self.flight());
            }
        }
    }

    fn acknowledge(&mut self, sent: &Sent, flight_before: u64, lost: u64) {
        self.now = self.now.max(sent.arrives);
        self.delivered += MSS;
        self.delivered_at = self.now;
        self.first_sent = sent.at;
        let rtt = self.now.since(sent.at);
        let round_start = sent.delivered >= self.round_end;
        if round_start {
            self.round_end = self.delivered;
        }
        self.control.acked(&AckSample {
            now: self.now,
            delivered: MSS,
            advanced: MSS,
            marked: if sent.marked { MSS } else { 0 },
            flight_before,
            flight: self.flight(),
            rtt: Some(rtt),
            srtt: rtt,
            round_start,
            window_limited: flight_before + MSS > self.control.window(),
            in_recovery: self.recovery.is_some(),
            rate: Some(RateSample {
                delivered: self.delivered - sent.delivered,
                interval: self.now.since(sent.delivered_at).max(sent.at.since(sent.first_sent)),
                app_limited: self.path.app_gap > Span::ZERO,
                prior_delivered: sent.delivered,
                lost,
            }),
        });
        if self.recovery.take_if(|recovery| self.delivered >= recovery.repaired_at).is_some() {
            self.control.on_recovered(self.now);
        }
    }
}
