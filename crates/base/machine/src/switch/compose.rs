//! Programs that run together: `(A, B)` one after the other, `Option<P>` if there is one.

use units::Time;
use wire::int::TelemetrySample;
use wire::reserve::ReserveHeader;

use super::{Conversation, DropReason, Forward, SwitchOut, SwitchPort, SwitchProgram, Visit};

impl<A: SwitchProgram, B: SwitchProgram<Frame = A::Frame>> SwitchProgram for (A, B) {
    type Frame = A::Frame;
    type Tag = (A::Tag, B::Tag);

    #[inline]
    fn watches_departures(&self) -> bool {
        self.0.watches_departures() || self.1.watches_departures()
    }

    #[inline]
    fn watches_hosts(&self) -> bool {
        self.0.watches_hosts() || self.1.watches_hosts()
    }

    #[inline]
    fn on_route(&mut self, now: Time, at: Visit, frame: &mut A::Frame, tag: &mut Self::Tag) -> Forward {
        match self.0.on_route(now, at, frame, &mut tag.0) {
            Forward::Pass => {
                let forward = self.1.on_route(now, at, frame, &mut tag.1);
                if let Forward::Copies(copies) = forward {
                    self.0.on_copied(now, at.at, copies - 1, frame, &mut tag.0);
                }
                forward
            }
            Forward::Copies(copies) => match self.1.on_route(now, at, frame, &mut tag.1) {
                Forward::Pass => {
                    self.1.on_copied(now, at.at, copies - 1, frame, &mut tag.1);
                    Forward::Copies(copies)
                }
                Forward::Copies(each) => {
                    self.0.on_copied(now, at.at, copies * (each - 1), frame, &mut tag.0);
                    self.1.on_copied(now, at.at, (copies - 1) * each, frame, &mut tag.1);
                    Forward::Copies(copies * each)
                }
                taken => taken,
            },
            Forward::Back => Forward::Back,
            taken => {
                self.1.on_taken(now, at.at, frame, &mut tag.1);
                taken
            }
        }
    }

    #[inline]
    fn on_copied(&mut self, now: Time, at: SwitchPort, extra: u32, frame: &mut A::Frame, tag: &mut Self::Tag) {
        self.0.on_copied(now, at, extra, frame, &mut tag.0);
        self.1.on_copied(now, at, extra, frame, &mut tag.1);
    }

    #[inline]
    fn on_taken(&mut self, now: Time, at: SwitchPort, frame: &mut A::Frame, tag: &mut Self::Tag) {
        self.0.on_taken(now, at, frame, &mut tag.0);
        self.1.on_taken(now, at, frame, &mut tag.1);
    }

    #[inline]
    fn on_sent(&mut self, now: Time, at: SwitchPort, frame: &mut A::Frame, tag: &mut Self::Tag) {
        self.0.on_sent(now, at, frame, &mut tag.0);
        self.1.on_sent(now, at, frame, &mut tag.1);
    }

    #[inline]
    fn on_departure(&mut self, now: Time, at: SwitchPort, left: u64, frame: &mut A::Frame, tag: &mut Self::Tag) {
        self.0.on_departure(now, at, left, frame, &mut tag.0);
        self.1.on_departure(now, at, left, frame, &mut tag.1);
    }

    #[inline]
    fn on_host_sends(&mut self, now: Time, link: u32, who: Conversation, frame: &mut A::Frame, tag: &mut Self::Tag) {
        self.0.on_host_sends(now, link, who, frame, &mut tag.0);
        self.1.on_host_sends(now, link, who, frame, &mut tag.1);
    }

    #[inline]
    fn on_host_receives(&mut self, now: Time, link: u32, frame: &mut A::Frame, tag: &mut Self::Tag) {
        self.0.on_host_receives(now, link, frame, &mut tag.0);
        self.1.on_host_receives(now, link, frame, &mut tag.1);
    }

    #[inline]
    fn on_drop(&mut self, now: Time, link: u32, reason: DropReason, frame: &mut A::Frame, tag: &mut Self::Tag) {
        self.0.on_drop(now, link, reason, frame, &mut tag.0);
        self.1.on_drop(now, link, reason, frame, &mut tag.1);
    }

    #[inline]
    fn clear(tag: &mut Self::Tag) {
        A::clear(&mut tag.0);
        B::clear(&mut tag.1);
    }

    #[inline]
    fn telemetry(tag: &Self::Tag) -> Option<TelemetrySample<'_>> {
        A::telemetry(&tag.0).or_else(|| B::telemetry(&tag.1))
    }

    #[inline]
    fn write_reserve(tag: &mut Self::Tag, header: Option<ReserveHeader>) {
        A::write_reserve(&mut tag.0, header);
        B::write_reserve(&mut tag.1, header);
    }

    #[inline]
    fn reserve_header(tag: &Self::Tag) -> Option<&ReserveHeader> {
        A::reserve_header(&tag.0).or_else(|| B::reserve_header(&tag.1))
    }

    #[inline]
    fn wake_at(&self) -> Time {
        self.0.wake_at().min(self.1.wake_at())
    }

    fn on_wake<O: SwitchOut<A::Frame>>(&mut self, now: Time, out: &mut O) {
        if self.0.wake_at() <= now {
            self.0.on_wake(now, out);
        }
        if self.1.wake_at() <= now {
            self.1.on_wake(now, out);
        }
    }
}

impl<P: SwitchProgram> SwitchProgram for Option<P> {
    type Frame = P::Frame;
    type Tag = P::Tag;

    #[inline]
    fn watches_departures(&self) -> bool {
        self.as_ref().is_some_and(P::watches_departures)
    }

    #[inline]
    fn watches_hosts(&self) -> bool {
        self.as_ref().is_some_and(P::watches_hosts)
    }

    #[inline]
    fn on_route(&mut self, now: Time, at: Visit, frame: &mut P::Frame, tag: &mut P::Tag) -> Forward {
        self.as_mut().map_or(Forward::Pass, |program| program.on_route(now, at, frame, tag))
    }

    #[inline]
    fn on_copied(&mut self, now: Time, at: SwitchPort, extra: u32, frame: &mut P::Frame, tag: &mut P::Tag) {
        if let Some(program) = self {
            program.on_copied(now, at, extra, frame, tag);
        }
    }

    #[inline]
    fn on_taken(&mut self, now: Time, at: SwitchPort, frame: &mut P::Frame, tag: &mut P::Tag) {
        if let Some(program) = self {
            program.on_taken(now, at, frame, tag);
        }
    }

    #[inline]
    fn on_sent(&mut self, now: Time, at: SwitchPort, frame: &mut P::Frame, tag: &mut P::Tag) {
        if let Some(program) = self {
            program.on_sent(now, at, frame, tag);
        }
    }

    #[inline]
    fn on_departure(&mut self, now: Time, at: SwitchPort, left: u64, frame: &mut P::Frame, tag: &mut P::Tag) {
        if let Some(program) = self {
            program.on_departure(now, at, left, frame, tag);
        }
    }

    #[inline]
    fn on_host_sends(&mut self, now: Time, link: u32, who: Conversation, frame: &mut P::Frame, tag: &mut P::Tag) {
        if let Some(program) = self {
            program.on_host_sends(now, link, who, frame, tag);
        }
    }

    #[inline]
    fn on_host_receives(&mut self, now: Time, link: u32, frame: &mut P::Frame, tag: &mut P::Tag) {
        if let Some(program) = self {
            program.on_host_receives(now, link, frame, tag);
        }
    }

    #[inline]
    fn on_drop(&mut self, now: Time, link: u32, reason: DropReason, frame: &mut P::Frame, tag: &mut P::Tag) {
        if let Some(program) = self {
            program.on_drop(now, link, reason, frame, tag);
        }
    }

    #[inline]
    fn clear(tag: &mut P::Tag) {
        P::clear(tag);
    }

    #[inline]
    fn telemetry(tag: &P::Tag) -> Option<TelemetrySample<'_>> {
        P::telemetry(tag)
    }

    #[inline]
    fn write_reserve(tag: &mut P::Tag, header: Option<ReserveHeader>) {
        P::write_reserve(tag, header);
    }

    #[inline]
    fn reserve_header(tag: &P::Tag) -> Option<&ReserveHeader> {
        P::reserve_header(tag)
    }

    #[inline]
    fn wake_at(&self) -> Time {
        self.as_ref().map_or(Time::NEVER, P::wake_at)
    }

    fn on_wake<O: SwitchOut<P::Frame>>(&mut self, now: Time, out: &mut O) {
        if let Some(program) = self {
            program.on_wake(now, out);
        }
    }
}
