//! Interface of a scheduler, which decides when a burst may go, and whether a frame that did not ask may pass.

use units::{Span, Time};
use wire::reserve::{Grant, Reservation};

use super::clock::ClockScheduler;
use super::departure::DepartureScheduler;
use super::late::LateScheduler;
use super::paper::PaperScheduler;
use crate::params::{RackParams, SchedulerKind, SlotTable};
use crate::registers::{InputPorts, OutputPorts, Touch};

/// An RSV that has passed the police.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdmittedRsv {
    /// The port that it came from.
    pub(crate) from: u16,
    /// The port that its burst will leave by.
    pub(crate) to: u16,
    /// Index of its context among those of all ports.
    pub(crate) context: u32,
    /// Key by which the driver finds the asker, or the RSV itself; opaque here.
    pub(crate) token: u64,
    /// Arrival time of the RSV.
    pub(crate) asked: Time,
    /// Contents of the RSV.
    pub(crate) about: Reservation,
    /// Units that its context has reserved before and will not use.
    pub(crate) unused: Option<UnusedUnits>,
}

/// Units that were reserved before and will not be used, with their ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnusedUnits {
    pub(crate) from: u16,
    pub(crate) to: u16,
    pub(crate) units: u32,
}

/// Decision on an RSV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RsvPlacement {
    /// The RSV is answered now.
    Granted(Grant),
    /// The RSV is answered later. The RSV with this token, kept until now for the same context, is never answered.
    Kept(Option<u64>),
    /// The sender has reserved too much already.
    TooMany,
}

/// Units that are counted for a frame in a queue. The driver keeps them with the frame and hands them back when the frame
/// leaves or is dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Charge {
    pub(crate) from: u16,
    pub(crate) to: u16,
    pub(crate) units: u32,
    /// Run of the switch that charged the frame; 0 if nothing was charged. A later run does not count it down.
    pub(crate) epoch: u16,
}

impl Charge {
    /// Stands for no input port: only the output is charged.
    pub(crate) const NO_INPUT: u16 = u16::MAX;
}

/// A frame on its way through the switch.
#[derive(Clone, Copy, Debug)]
pub struct FrameVisit {
    /// The port that it came from.
    pub from: u16,
    /// The port that it leaves by.
    pub to: u16,
    /// Length, check included.
    pub len: u32,
}

/// Reservations at a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortReservation {
    /// Time for which the port is reserved as input.
    pub send: Span,
    /// Time for which the port is reserved as output.
    pub recv: Span,
    /// Units counted as input and as output, in frames or bytes; may be below zero with `paper`. Zero with clocks.
    pub counted: (i64, i64),
}

/// Reservations of a port by its counters.
pub(crate) fn counted_reservation(slots: &SlotTable, input: i64, output: i64) -> PortReservation {
    let (send, recv) = (slots.time_of_count(input), slots.time_of_count(output));
    PortReservation { send, recv, counted: (input, output) }
}

/// One access to each of the two arrays of ports.
#[derive(Debug)]
pub(crate) struct PortTouches {
    pub(crate) input: Touch<InputPorts>,
    pub(crate) output: Touch<OutputPorts>,
}

/// Decides when bursts may go. Every call but [`wake_at`](Self::wake_at) is one frame's pass through the switch.
pub(crate) trait Scheduler {
    /// True if reservations are remembered by context: repeated RSVs recognised, frames matched with what was reserved.
    fn tracks(&self) -> bool {
        true
    }

    /// True if a reservation is valid however late its frames come, and has to be given back if they never do.
    fn holds(&self) -> bool {
        false
    }

    /// Finds room for a burst, and gives back what its context has not used before.
    fn reserve(&mut self, now: Time, touches: PortTouches, rsv: &AdmittedRsv) -> RsvPlacement;

    /// A reserved frame comes.
    #[inline]
    fn on_reserved(&mut self, _touches: PortTouches, _frame: FrameVisit) -> Charge {
        Charge::default()
    }

    /// The first reserved frame of a burst comes. Clocks charge the port that it came from with the GRT that its sender got
    /// by it: a host that sends much while it receives would get more than its port carries. The pass of the RSV itself
    /// has touched another entry of that array already.
    #[inline]
    fn on_first_reserved(&mut self, _now: Time, touches: PortTouches, frame: FrameVisit) -> Charge {
        self.on_reserved(touches, frame)
    }

    /// Admits a frame without reservation. `None` if it is `limited` and there is no room.
    fn on_unasked(&mut self, now: Time, touches: PortTouches, frame: FrameVisit, limited: bool) -> Option<Charge>;

    /// A frame has left its queue, or was dropped at it.
    #[inline]
    fn on_gone(&mut self, _touches: PortTouches, _charge: Charge) {}

    /// Returns a reservation that will not be used.
    fn release(&mut self, _touches: PortTouches, _unused: UnusedUnits) {}

    /// Discards the RSV that is kept for a context, if any.
    fn forget(&mut self, _context: u32) -> Option<u64> {
        None
    }

    /// Time at which the next kept RSV is to be answered.
    #[inline]
    fn wake_at(&self) -> Time {
        Time::NEVER
    }

    /// Answers one kept RSV, if one is due. The caller repeats this until it returns `None`.
    fn on_wake(&mut self, _now: Time, _touches: PortTouches) -> Option<(AdmittedRsv, Grant)> {
        None
    }

    /// Reservations at a port.
    fn reserved(&self, now: Time, port: u16) -> PortReservation;

    /// A port has lost its host: nothing of it stays reserved.
    fn on_port_down(&mut self, port: u16);
}

/// One of the four, chosen at run time.
#[derive(Clone, Debug)]
pub(crate) enum AnyScheduler {
    Paper(PaperScheduler),
    Departure(DepartureScheduler),
    Clock(ClockScheduler),
    Late(LateScheduler),
}

impl AnyScheduler {
    /// Scheduler that the parameters name.
    pub(crate) fn new(params: &RackParams) -> Self {
        match params.scheduler {
            SchedulerKind::Paper => Self::Paper(PaperScheduler::new(params)),
            SchedulerKind::Departure => Self::Departure(DepartureScheduler::new(params)),
            SchedulerKind::Clock => Self::Clock(ClockScheduler::new(params)),
            SchedulerKind::Late => Self::Late(LateScheduler::new(params)),
        }
    }
}

macro_rules! each {
    ($any:expr, $scheduler:ident => $call:expr) => {
        match $any {
            AnyScheduler::Paper($scheduler) => $call,
            AnyScheduler::Departure($scheduler) => $call,
            AnyScheduler::Clock($scheduler) => $call,
            AnyScheduler::Late($scheduler) => $call,
        }
    };
}

impl Scheduler for AnyScheduler {
    #[inline]
    fn tracks(&self) -> bool {
        each!(self, scheduler => scheduler.tracks())
    }

    #[inline]
    fn holds(&self) -> bool {
        each!(self, scheduler => scheduler.holds())
    }

    #[inline]
    fn reserve(&mut self, now: Time, touches: PortTouches, rsv: &AdmittedRsv) -> RsvPlacement {
        each!(self, scheduler => scheduler.reserve(now, touches, rsv))
    }

    #[inline]
    fn on_reserved(&mut self, touches: PortTouches, frame: FrameVisit) -> Charge {
        each!(self, scheduler => scheduler.on_reserved(touches, frame))
    }

    #[inline]
    fn on_first_reserved(&mut self, now: Time, touches: PortTouches, frame: FrameVisit) -> Charge {
        each!(self, scheduler => scheduler.on_first_reserved(now, touches, frame))
    }

    #[inline]
    fn on_unasked(&mut self, now: Time, touches: PortTouches, frame: FrameVisit, limited: bool) -> Option<Charge> {
        each!(self, scheduler => scheduler.on_unasked(now, touches, frame, limited))
    }

    #[inline]
    fn on_gone(&mut self, touches: PortTouches, charge: Charge) {
        each!(self, scheduler => scheduler.on_gone(touches, charge));
    }

    fn release(&mut self, touches: PortTouches, unused: UnusedUnits) {
        each!(self, scheduler => scheduler.release(touches, unused));
    }

    fn forget(&mut self, context: u32) -> Option<u64> {
        each!(self, scheduler => scheduler.forget(context))
    }

    #[inline]
    fn wake_at(&self) -> Time {
        each!(self, scheduler => scheduler.wake_at())
    }

    fn on_wake(&mut self, now: Time, touches: PortTouches) -> Option<(AdmittedRsv, Grant)> {
        each!(self, scheduler => scheduler.on_wake(now, touches))
    }

    fn reserved(&self, now: Time, port: u16) -> PortReservation {
        each!(self, scheduler => scheduler.reserved(now, port))
    }

    fn on_port_down(&mut self, port: u16) {
        each!(self, scheduler => scheduler.on_port_down(port));
    }
}
