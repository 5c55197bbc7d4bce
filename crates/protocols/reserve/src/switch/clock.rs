//! `clock`: each port has a time at which it becomes free.
//!
//! An RSV gets `start = max(now, free)` and moves `free` behind its burst, at both ports. There is no counter that could
//! drift: an unused slot simply passes. A port queues at most contexts · K frames, however late hosts are, if each context has
//! at most one open burst of K frames, slots are no shorter than a frame and no host is early.

use units::{Bytes, Span, Time};
use wire::ethernet::{MIN_FRAME, on_wire};
use wire::reserve::Grant;

use super::scheduler::{AdmittedRsv, Charge, FrameVisit, PortReservation, PortTouches, RsvPlacement, Scheduler};
use crate::params::{RackParams, SlotTable};
use crate::registers::{InputPorts, OutputPorts, RegisterArray};

/// Times from which each port is free, as input and as output.
#[derive(Clone, Debug)]
pub(crate) struct PortClocks {
    pub(super) slots: SlotTable,
    /// t as a time.
    unsolicited_below: Span,
    /// Time that a GRT takes on the wire.
    answer: Span,
    input: RegisterArray<Time, InputPorts>,
    output: RegisterArray<Time, OutputPorts>,
}

impl PortClocks {
    pub(super) fn new(params: &RackParams) -> Self {
        let slots = SlotTable::new(params);
        let ports = usize::from(params.ports);
        Self {
            slots,
            unsolicited_below: slots.slot() * u64::from(params.t),
            answer: params.rate.span_of(Bytes::new(u64::from(on_wire(MIN_FRAME)))),
            input: RegisterArray::new(ports, Time::ZERO),
            output: RegisterArray::new(ports, Time::ZERO),
        }
    }

    /// Reserves both ports, unless the input is reserved for longer than `at_most` already.
    pub(super) fn reserve(
        &mut self,
        now: Time,
        touches: PortTouches,
        rsv: &AdmittedRsv,
        at_most: Span,
    ) -> Option<Grant> {
        let takes = self.slots.time(self.slots.units(rsv.about.demand));
        let send = self.input.touch(touches.input, usize::from(rsv.from), |free| {
            let wait = free.since(now);
            (wait <= at_most).then(|| {
                *free = now + wait + takes;
                wait
            })
        })?;
        let recv = self.output.touch(touches.output, usize::from(rsv.to), |free| {
            let wait = free.since(now);
            *free = now + wait + takes;
            wait
        });
        Some(Grant { send, recv, kept: now.since(rsv.asked) })
    }

    /// Lets a frame pass that was not reserved and takes its own slot; if it is limited, only if its output is nearly free.
    pub(super) fn unasked(
        &mut self,
        now: Time,
        touches: PortTouches,
        frame: FrameVisit,
        limited: bool,
    ) -> Option<Charge> {
        let below = if limited { self.unsolicited_below } else { Span::from_ps(u64::MAX) };
        let takes = self.slots.time(self.slots.units_of_frame(frame.len));
        self.output.touch(touches.output, usize::from(frame.to), |free| {
            let wait = free.since(now);
            (wait < below).then(|| {
                *free = now + wait + takes;
                Charge::default()
            })
        })
    }

    /// The GRT of a burst went out by the port that its frames come from.
    pub(super) fn answered(&mut self, now: Time, touches: PortTouches, frame: FrameVisit) -> Charge {
        let takes = self.answer;
        self.output.touch(touches.output, usize::from(frame.from), |free| *free = now + free.since(now) + takes);
        Charge::default()
    }

    /// Time from which on the output of a port is free.
    pub(super) fn output_free(&self, port: u16) -> Time {
        *self.output.read(usize::from(port))
    }

    pub(super) fn reserved(&self, now: Time, port: u16) -> PortReservation {
        let (send, recv) = (self.input.read(usize::from(port)).since(now), self.output_free(port).since(now));
        PortReservation { send, recv, counted: (0, 0) }
    }

    /// The host of a port is gone. As output, the port keeps its time: other hosts may have slots there, which must not meet
    /// new ones.
    pub(super) fn clear_input(&mut self, port: u16) {
        *self.input.write(usize::from(port)) = Time::ZERO;
    }
}

/// Answers every RSV at once.
#[derive(Clone, Debug)]
pub(crate) struct ClockScheduler {
    clocks: PortClocks,
    /// Longest time ahead that the contexts of one port can have reserved, each one burst.
    most_ahead: Span,
}

impl ClockScheduler {
    pub(crate) fn new(params: &RackParams) -> Self {
        let clocks = PortClocks::new(params);
        let most_ahead = clocks.slots.slot() * (u64::from(params.contexts) * u64::from(params.k));
        Self { clocks, most_ahead }
    }
}

impl Scheduler for ClockScheduler {
    fn reserve(&mut self, now: Time, touches: PortTouches, rsv: &AdmittedRsv) -> RsvPlacement {
        match self.clocks.reserve(now, touches, rsv, self.most_ahead) {
            Some(grant) => RsvPlacement::Granted(grant),
            None => RsvPlacement::TooMany,
        }
    }

    #[inline]
    fn on_first_reserved(&mut self, now: Time, touches: PortTouches, frame: FrameVisit) -> Charge {
        self.clocks.answered(now, touches, frame)
    }

    #[inline]
    fn on_unasked(&mut self, now: Time, touches: PortTouches, frame: FrameVisit, limited: bool) -> Option<Charge> {
        self.clocks.unasked(now, touches, frame, limited)
    }

    fn reserved(&self, now: Time, port: u16) -> PortReservation {
        self.clocks.reserved(now, port)
    }

    fn on_port_down(&mut self, port: u16) {
        self.clocks.clear_input(port);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{admitted, frame, params, touches};
    use super::*;
    use crate::params::SchedulerKind;

    fn rack() -> ClockScheduler {
        ClockScheduler::new(&params(SchedulerKind::Clock))
    }

    fn chosen(placement: RsvPlacement) -> Span {
        match placement {
            RsvPlacement::Granted(grant) => grant.chosen(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_burst_starts_where_the_last_one_ends_and_an_unused_slot_passes() {
        let mut clock = rack();
        let slot = clock.clocks.slots.slot();
        assert_eq!(chosen(clock.reserve(Time::ZERO, touches(), &admitted(0, 5, 4))), Span::ZERO);
        assert_eq!(chosen(clock.reserve(Time::ZERO, touches(), &admitted(1, 5, 4))), slot * 4);
        let later = Time::ZERO + slot * 100;
        assert_eq!(clock.reserved(later, 5), PortReservation::default());
        assert_eq!(chosen(clock.reserve(later, touches(), &admitted(2, 5, 4))), Span::ZERO);
    }

    #[test]
    fn a_port_cannot_reserve_more_than_its_contexts_may() {
        let mut clock = rack();
        let placed = |clock: &mut ClockScheduler| clock.reserve(Time::ZERO, touches(), &admitted(0, 5, 4));
        for _ in 0..13 {
            chosen(placed(&mut clock));
        }
        assert_eq!(placed(&mut clock), RsvPlacement::TooMany);
        chosen(clock.reserve(Time::ZERO, touches(), &admitted(1, 5, 4)));
    }

    #[test]
    fn an_unsolicited_frame_moves_the_clock_by_its_own_slot_or_is_refused() {
        let mut clock = rack();
        let slot = clock.clocks.slots.slot();
        let passed = [0; 17].map(|_| clock.on_unasked(Time::ZERO, touches(), frame(0, 5), true).is_some());
        assert_eq!(passed.iter().filter(|passed| **passed).count(), 15);
        assert_eq!(clock.reserved(Time::ZERO, 5).recv, slot * 15);
    }
}
