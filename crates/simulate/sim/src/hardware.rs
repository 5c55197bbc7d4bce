//! Delays of the paper's switch that the protocol does not have: recirculation and PFC.
//!
//! LinkGuardian (SIGCOMM'23) App. B.1 and Fig. 19. A frame that is to be sent again circulates in the
//! sender's buffer and is found when it comes round, so recovering it takes anything from 2 to 5.5 µs at
//! 100G, 6 µs at 25G. The paper gives the maxima; the minimum, the uniform distribution between them and
//! the time that a pause takes are our calibration. The delay is drawn: a constant one resonates with
//! the frame clock.

use std::collections::VecDeque;

use faults::Random;
use guard::LinkTiming;
use units::{Bytes, Rate, Span, Time};
use wire::ethernet::on_wire;
use wire::link::{DATA_HEADER, FlowControl};

/// Latencies beyond those of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Hardware {
    /// Time from a request until the copy reaches the port: least and most.
    pub find_copy: (Span, Span),
    /// Time from a notice's arrival until it takes effect.
    pub pause: Span,
    pub resume: Span,
}

impl Hardware {
    pub(crate) fn tofino(path: &LinkTiming, copies: u8) -> Self {
        let fast = path.rate >= Rate::gbps(100);
        let slowest_recovery = if fast { Span::from_ns(5_500) } else { Span::from_us(6) };
        let slowest_resume = if fast { Span::from_ns(1_600) } else { Span::from_ns(1_900) };
        let frame = path.rate.span_of(Bytes::new(u64::from(on_wire(path.mtu + DATA_HEADER))));
        let notice = path.rate.span_of(Bytes::new(u64::from(on_wire(0)))) + path.delay + path.pipeline;
        let there_and_back = notice + frame + path.delay + path.pipeline;
        // The last copy may find a new frame just begun before the first.
        let last_copy = there_and_back + frame * u64::from(copies);
        let least = Span::from_us(2).saturating_sub(there_and_back);
        Self {
            find_copy: (least, slowest_recovery.saturating_sub(last_copy).max(least)),
            pause: Span::from_ns(800).saturating_sub(notice),
            resume: slowest_resume.saturating_sub(there_and_back),
        }
    }

    /// Time until this copy is found.
    pub(crate) fn draw(&self, random: &mut Random) -> Span {
        let (least, most) = self.find_copy;
        least + Span::from_ps(random.below((most - least).as_ps() + 1))
    }
}

/// Copies on their way through a switch to the port, with the time of their arrival there.
#[derive(Debug)]
pub(crate) struct CopiesInFlight<F> {
    coming: VecDeque<(Time, F)>,
    last: Option<((u8, u16), Time)>,
}

impl<F> CopiesInFlight<F> {
    pub(crate) fn new() -> Self {
        Self { coming: VecDeque::new(), last: None }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.coming.is_empty()
    }

    /// Arrival of the next one.
    pub(crate) fn next(&self) -> Option<Time> {
        self.coming.front().map(|(at, _)| *at)
    }

    /// One that is there.
    pub(crate) fn take(&mut self, now: Time) -> Option<F> {
        self.coming.pop_front_if(|(at, _)| *at <= now).map(|(_, frame)| frame)
    }

    /// A copy of the frame `of` sets out; all copies of one frame are found together. When it will be there.
    pub(crate) fn find(
        &mut self,
        now: Time,
        hardware: &Hardware,
        random: &mut Random,
        of: (u8, u16),
        frame: F,
    ) -> Time {
        let at = match self.last {
            Some((last, at)) if last == of && at >= now => at,
            _ => now + hardware.draw(random),
        };
        self.last = Some((of, at));
        let place = self.coming.partition_point(|(other, _)| *other <= at);
        self.coming.insert(place, (at, frame));
        at
    }
}

/// Delays the effect of what arrives: PFC is slow, and holds up what comes behind it.
#[derive(Debug)]
pub(crate) struct PauseReaction {
    last: FlowControl,
    until: Time,
}

impl PauseReaction {
    pub(crate) fn new() -> Self {
        Self { last: FlowControl::Flow, until: Time::ZERO }
    }

    pub(crate) fn acts_at(&mut self, now: Time, hardware: &Hardware, wish: Option<FlowControl>) -> Time {
        let mut at = now;
        if let Some(wish) = wish
            && wish != self.last
        {
            self.last = wish;
            at += if wish == FlowControl::Hold { hardware.pause } else { hardware.resume };
        }
        self.until = at.max(self.until);
        self.until
    }
}
