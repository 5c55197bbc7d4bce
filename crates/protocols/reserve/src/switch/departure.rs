//! `departure`: counters as in the paper, counted down when a frame leaves its queue or is dropped at it.
//!
//! Frames that stand in a queue are then counted as well, so the counter says how long a port is really taken, and errors
//! do not add up. A reservation that a context did not use is given back with its next RSV. If that goes to another port,
//! the switch does so in a pass of its own: one frame can touch one output port.

use units::{Span, Time};
use wire::reserve::Grant;

use super::scheduler::{
    AdmittedRsv, Charge, FrameVisit, PortReservation, PortTouches, RsvPlacement, Scheduler, UnusedUnits,
    counted_reservation,
};
use crate::params::{RackParams, SlotTable};
use crate::registers::{InputPorts, OutputPorts, RegisterArray};

/// Two arrays of counters.
#[derive(Clone, Debug)]
pub(crate) struct DepartureScheduler {
    slots: SlotTable,
    /// t in units.
    unsolicited_below: i64,
    input: RegisterArray<i64, InputPorts>,
    output: RegisterArray<i64, OutputPorts>,
    /// Reservations to be given back, each in a pass of its own.
    unused: Vec<UnusedUnits>,
}

impl DepartureScheduler {
    pub(crate) fn new(params: &RackParams) -> Self {
        let slots = SlotTable::new(params);
        let ports = usize::from(params.ports);
        Self {
            slots,
            unsolicited_below: slots.units_of_slots(params.t),
            input: RegisterArray::new(ports, 0),
            output: RegisterArray::new(ports, 0),
            unused: Vec::new(),
        }
    }
}

impl Scheduler for DepartureScheduler {
    fn holds(&self) -> bool {
        true
    }

    fn reserve(&mut self, _: Time, touches: PortTouches, rsv: &AdmittedRsv) -> RsvPlacement {
        let units = i64::from(self.slots.units(rsv.about.demand));
        let unused = rsv.unused;
        let given_back = unused.map_or(0, |unused| i64::from(unused.units));
        let same_output = unused.is_none_or(|unused| unused.to == rsv.to);
        if let Some(unused) = unused.filter(|_| !same_output) {
            self.unused.push(UnusedUnits { from: Charge::NO_INPUT, ..unused });
        }
        let add = |given_back: i64| {
            move |entry: &mut i64| {
                let before = *entry - given_back;
                *entry = before + units;
                before
            }
        };
        let send = self.input.touch(touches.input, usize::from(rsv.from), add(given_back));
        let recv =
            self.output.touch(touches.output, usize::from(rsv.to), add(if same_output { given_back } else { 0 }));
        let (send, recv) = (self.slots.time_of_count(send), self.slots.time_of_count(recv));
        RsvPlacement::Granted(Grant { send, recv, kept: Span::ZERO })
    }

    #[inline]
    fn on_reserved(&mut self, _: PortTouches, frame: FrameVisit) -> Charge {
        Charge { from: frame.from, to: frame.to, units: self.slots.units_of_frame(frame.len), ..Charge::default() }
    }

    fn on_unasked(&mut self, _: Time, touches: PortTouches, frame: FrameVisit, limited: bool) -> Option<Charge> {
        let below = if limited { self.unsolicited_below } else { i64::MAX };
        let units = self.slots.units_of_frame(frame.len);
        let passes = self.output.touch(touches.output, usize::from(frame.to), |entry| {
            let passes = *entry < below;
            *entry += if passes { i64::from(units) } else { 0 };
            passes
        });
        // Its input is behind it; only its output is charged.
        passes.then_some(Charge { from: Charge::NO_INPUT, to: frame.to, units, ..Charge::default() })
    }

    #[inline]
    fn on_gone(&mut self, touches: PortTouches, charge: Charge) {
        let units = i64::from(charge.units);
        if charge.from != Charge::NO_INPUT {
            self.input.touch(touches.input, usize::from(charge.from), |entry| *entry -= units);
        }
        self.output.touch(touches.output, usize::from(charge.to), |entry| *entry -= units);
    }

    fn release(&mut self, touches: PortTouches, unused: UnusedUnits) {
        let UnusedUnits { from, to, units } = unused;
        self.on_gone(touches, Charge { from, to, units, ..Charge::default() });
    }

    fn wake_at(&self) -> Time {
        if self.unused.is_empty() { Time::NEVER } else { Time::ZERO }
    }

    fn on_wake(&mut self, _: Time, touches: PortTouches) -> Option<(AdmittedRsv, Grant)> {
        if let Some(unused) = self.unused.pop() {
            self.release(touches, unused);
        }
        None
    }

    fn reserved(&self, _: Time, port: u16) -> PortReservation {
        counted_reservation(&self.slots, *self.input.read(usize::from(port)), *self.output.read(usize::from(port)))
    }

    /// Needs nothing: the table of contexts has given all reservations back, and queued frames still leave.
    fn on_port_down(&mut self, _: u16) {}
}

#[cfg(test)]
mod tests {
    use super::super::tests::{admitted, frame, params, touches};
    use super::*;
    use crate::params::SchedulerKind;

    fn rack() -> DepartureScheduler {
        DepartureScheduler::new(&params(SchedulerKind::Departure))
    }

    #[test]
    fn a_frame_counts_until_it_leaves() {
        let mut departure = rack();
        departure.reserve(Time::ZERO, touches(), &admitted(0, 5, 2));
        let charges = [departure.on_reserved(touches(), frame(0, 5)), departure.on_reserved(touches(), frame(0, 5))];
        assert_eq!(
            (departure.reserved(Time::ZERO, 0).counted, departure.reserved(Time::ZERO, 5).counted),
            ((2, 0), (0, 2)),
            "both are in the queue"
        );
        for charge in charges {
            departure.on_gone(touches(), charge);
        }
        assert_eq!(
            (departure.reserved(Time::ZERO, 0).counted, departure.reserved(Time::ZERO, 5).counted),
            ((0, 0), (0, 0))
        );
    }

    #[test]
    fn what_was_not_used_is_given_back_by_the_next_rsv_to_whichever_port() {
        let mut departure = rack();
        departure.reserve(Time::ZERO, touches(), &admitted(0, 5, 4));
        let unused = Some(UnusedUnits { from: 0, to: 5, units: 3 });
        departure.reserve(Time::ZERO, touches(), &AdmittedRsv { unused, ..admitted(0, 5, 2) });
        assert_eq!(
            (departure.reserved(Time::ZERO, 0).counted, departure.reserved(Time::ZERO, 5).counted),
            ((3, 0), (0, 3))
        );
        departure.reserve(Time::ZERO, touches(), &AdmittedRsv { unused, ..admitted(0, 4, 2) });
        assert_eq!(
            (
                departure.reserved(Time::ZERO, 0).counted,
                departure.reserved(Time::ZERO, 4).counted,
                departure.reserved(Time::ZERO, 5).counted
            ),
            ((2, 0), (0, 2), (0, 3))
        );
        assert_eq!(departure.wake_at(), Time::ZERO);
        departure.on_wake(Time::ZERO, touches());
        assert_eq!((departure.reserved(Time::ZERO, 5).counted, departure.wake_at()), ((0, 0), Time::NEVER));
    }

    #[test]
    fn an_unsolicited_frame_is_charged_while_little_is_reserved() {
        let mut departure = rack();
        let passed = [0; 17].map(|_| departure.on_unasked(Time::ZERO, touches(), frame(0, 5), true).is_some());
        assert_eq!(passed.iter().filter(|passed| **passed).count(), 15, "t");
        assert_eq!(departure.reserved(Time::ZERO, 5).counted, (0, 15));
    }
}
