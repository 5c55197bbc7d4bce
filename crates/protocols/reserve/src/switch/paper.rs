//! `paper`: Algorithms 1 and 2 to the letter.
//!
//! ```text
//!   RSV    sendTimeslot ← inReservation[src],  inReservation[src] += demand
//!          recvTimeslot ← outReservation[dst], outReservation[dst] += demand,  send GRT
//!   else   outReservation[dst] −= 1,  inReservation[src] −= 1
//! ```
//!
//! App. D.4, text only: an unsolicited frame is dropped if more than T slots are reserved. Counters are signed; frames lost on
//! the way to the switch stay counted, and a burst that was sent unsolicited and then again is counted down twice. These are
//! the paper's, and the reason for the other three schedulers.

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
pub(crate) struct PaperScheduler {
    slots: SlotTable,
    drop_above: i64,
    input: RegisterArray<i64, InputPorts>,
    output: RegisterArray<i64, OutputPorts>,
}

impl PaperScheduler {
    pub(crate) fn new(params: &RackParams) -> Self {
        let slots = SlotTable::new(params);
        let ports = usize::from(params.ports);
        Self {
            slots,
            drop_above: slots.units_of_slots(params.drop_above),
            input: RegisterArray::new(ports, 0),
            output: RegisterArray::new(ports, 0),
        }
    }

    /// Counts a frame down, without regard to its sender.
    #[inline]
    fn count_down(&mut self, touches: PortTouches, from: u16, to: u16, units: u32) {
        let down = |entry: &mut i64| *entry -= i64::from(units);
        self.output.touch(touches.output, usize::from(to), down);
        self.input.touch(touches.input, usize::from(from), down);
    }
}

impl Scheduler for PaperScheduler {
    fn tracks(&self) -> bool {
        false
    }

    fn reserve(&mut self, _: Time, touches: PortTouches, rsv: &AdmittedRsv) -> RsvPlacement {
        let units = i64::from(self.slots.units(rsv.about.demand));
        let up = |entry: &mut i64| {
            let before = *entry;
            *entry += units;
            before
        };
        let send = self.input.touch(touches.input, usize::from(rsv.from), up);
        let recv = self.output.touch(touches.output, usize::from(rsv.to), up);
        let (send, recv) = (self.slots.time_of_count(send), self.slots.time_of_count(recv));
        RsvPlacement::Granted(Grant { send, recv, kept: Span::ZERO })
    }

    #[inline]
    fn on_reserved(&mut self, touches: PortTouches, frame: FrameVisit) -> Charge {
        self.count_down(touches, frame.from, frame.to, self.slots.units_of_frame(frame.len));
        Charge::default()
    }

    /// A frame that is dropped is not counted down: its reservation waits for the frame that is sent again, if one is.
    fn on_unasked(&mut self, _: Time, touches: PortTouches, frame: FrameVisit, limited: bool) -> Option<Charge> {
        let units = i64::from(self.slots.units_of_frame(frame.len));
        let drop_above = if limited { self.drop_above } else { i64::MAX };
        let down = |entry: &mut i64| {
            let passes = *entry <= drop_above;
            *entry -= if passes { units } else { 0 };
            passes
        };
        let passes = self.output.touch(touches.output, usize::from(frame.to), down)
            && self.input.touch(touches.input, usize::from(frame.from), down);
        passes.then(Charge::default)
    }

    /// A receiver's reset.
    fn release(&mut self, touches: PortTouches, unused: UnusedUnits) {
        self.count_down(touches, unused.from, unused.to, unused.units);
    }

    fn reserved(&self, _: Time, port: u16) -> PortReservation {
        counted_reservation(&self.slots, *self.input.read(usize::from(port)), *self.output.read(usize::from(port)))
    }

    /// The paper leaves the reservations of a sender that has failed to its receivers' resets.
    fn on_port_down(&mut self, _: u16) {}
}

#[cfg(test)]
mod tests {
    use super::super::tests::{admitted, frame, params, touches};
    use super::*;
    use crate::params::SchedulerKind;

    fn rack() -> PaperScheduler {
        PaperScheduler::new(&params(SchedulerKind::Paper))
    }

    #[test]
    fn a_grant_says_what_was_reserved_before_it_and_each_frame_takes_one_off() {
        let mut paper = rack();
        let waits = |placement| match placement {
            RsvPlacement::Granted(grant) => (grant.send, grant.recv),
            other => panic!("{other:?}"),
        };
        let slot = paper.slots.slot();
        assert_eq!(waits(paper.reserve(Time::ZERO, touches(), &admitted(0, 5, 4))), (Span::ZERO, Span::ZERO));
        assert_eq!(waits(paper.reserve(Time::ZERO, touches(), &admitted(1, 5, 4))), (Span::ZERO, slot * 4));
        paper.on_reserved(touches(), frame(0, 5));
        assert_eq!(waits(paper.reserve(Time::ZERO, touches(), &admitted(0, 5, 1))), (slot * 3, slot * 7));
    }

    #[test]
    fn what_was_never_reserved_drives_the_counters_below_zero() {
        let mut paper = rack();
        paper.on_unasked(Time::ZERO, touches(), frame(2, 3), false);
        assert_eq!((paper.reserved(Time::ZERO, 2).counted, paper.reserved(Time::ZERO, 3).counted), ((-1, 0), (0, -1)));
        assert_eq!(paper.reserved(Time::ZERO, 3).recv, Span::ZERO);
    }

    #[test]
    fn unsolicited_frames_are_dropped_above_the_threshold_and_their_reservation_stays() {
        let mut paper = rack();
        for _ in 0..64 {
            paper.reserve(Time::ZERO, touches(), &admitted(0, 5, 4));
        }
        assert!(paper.on_unasked(Time::ZERO, touches(), frame(0, 5), true).is_some(), "256 are reserved, and T is 256");
        paper.reserve(Time::ZERO, touches(), &admitted(0, 5, 4));
        assert!(paper.on_unasked(Time::ZERO, touches(), frame(0, 5), true).is_none());
        assert_eq!(paper.reserved(Time::ZERO, 5).counted, (0, 259));
    }

    #[test]
    fn a_receivers_reset_takes_off_what_did_not_come() {
        let mut paper = rack();
        paper.reserve(Time::ZERO, touches(), &admitted(0, 5, 4));
        paper.on_reserved(touches(), frame(0, 5));
        paper.release(touches(), UnusedUnits { from: 0, to: 5, units: 3 });
        assert_eq!((paper.reserved(Time::ZERO, 0).counted, paper.reserved(Time::ZERO, 5).counted), ((0, 0), (0, 0)));
    }
}
