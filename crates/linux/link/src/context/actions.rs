//! Actions of the endpoint that wait for the data path: frames for both sides, events, timers.

use guard::{EndpointEvent, EndpointTimer};
use standin::backend::WireFrame;
use standin::{PoolFrame, WirePace};
use units::{Rate, Time};

const TIMERS: [EndpointTimer; 4] = [
    EndpointTimer::Timeout(wire::link::Class::Ordered),
    EndpointTimer::Timeout(wire::link::Class::NonBlocking),
    EndpointTimer::Examine,
    EndpointTimer::Session,
];

/// Actions of the endpoint that the data path has yet to carry out.
#[derive(Debug)]
pub struct EndpointActions {
    /// Frames for the wire, in order.
    pub outgoing: Vec<WireFrame>,
    /// Frames for the host, in order.
    pub delivered: Vec<PoolFrame>,
    pub events: Vec<EndpointEvent>,
    /// The endpoint has something to send.
    pub woken: bool,
    timers: [Time; TIMERS.len()],
    pace: Option<WirePace>,
}

impl EndpointActions {
    pub(super) fn new(rate: Option<Rate>) -> Self {
        Self {
            outgoing: Vec::with_capacity(64),
            delivered: Vec::with_capacity(256),
            events: Vec::new(),
            woken: true,
            timers: [Time::NEVER; TIMERS.len()],
            pace: rate.map(WirePace::new),
        }
    }

    /// Time begins again; handles of frames are forgotten, not released.
    pub(super) fn start_over(&mut self) {
        self.timers = [Time::NEVER; TIMERS.len()];
        if let Some(pace) = &mut self.pace {
            pace.start_over();
        }
        self.outgoing.clear();
        self.delivered.clear();
        self.events.clear();
        self.woken = true;
    }

    /// A timer whose time has come; it is disarmed.
    #[inline]
    pub(crate) fn due(&mut self, now: Time) -> Option<EndpointTimer> {
        let at = self.timers.iter().position(|deadline| *deadline <= now)?;
        self.timers[at] = Time::NEVER;
        Some(TIMERS[at])
    }

    pub(crate) fn earliest_timer(&self) -> Time {
        self.timers.iter().copied().fold(Time::NEVER, Time::min)
    }

    /// Sets the time of a timer; [`Time::NEVER`] disarms it.
    #[inline]
    pub(super) fn set_timer(&mut self, key: EndpointTimer, at: Time) {
        self.timers[usize::from(key)] = at;
    }

    /// Time at which the wire takes the next frame, if that is not now.
    #[inline]
    pub(crate) fn busy_until(&self, now: Time) -> Option<Time> {
        self.pace.as_ref()?.busy_until(now)
    }

    /// Puts a frame behind those that are on their way out.
    #[inline]
    pub(super) fn send(&mut self, now: Time, frame: WireFrame) {
        if let Some(pace) = &mut self.pace {
            pace.occupy(now, frame.bytes());
        }
        self.outgoing.push(frame);
    }
}
