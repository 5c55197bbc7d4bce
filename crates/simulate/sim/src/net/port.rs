//! The sending side of one direction of a link.
//!
//! Most ports have one queue and are never paused. Such a port is *express*: the departure time of a packet is known when it
//! joins the queue, so it is sent at once, and one event takes it over a whole hop.
//! A port with priorities, one that may be paused and one under a link protocol keep their packets and decide when
//! the wire is free.
//!
//! The length of a queue is kept as wire time: what is still to be sent, preamble and gap included. Both kinds of port
//! give the same number.

use faults::RunningSchedule;
use units::{Rate, Span, Time};
use wire::ethernet::WireFraming;

use super::index::{HostId, PacketId, SwitchId};
use super::levels::LevelClock;
use super::marking::{Marking, MarkingPoint};
use super::packet::{Fifo, Packets};

/// Strict priorities, 0 first.
pub(super) const CLASSES: usize = 8;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    pub frames: u64,
    /// Wire time taken, in bytes.
    pub wire_bytes: u64,
    /// Part of it for frames of a link protocol that carry no packet: acknowledgements and dummies, which fill idle time.
    pub idle_bytes: u64,
    pub dropped: u64,
    pub marked: u64,
    pub corrupted: u64,
    /// Pauses received.
    pub paused: u64,
}

#[derive(Debug)]
pub(crate) struct SimPort {
    pub busy_until: Time,
    /// Picoseconds that a byte takes, in 1024ths.
    byte_time: u64,
    pub framing: WireFraming,
    /// Propagation, and what the far node takes before it acts.
    pub flight: Span,
    /// Backlog beyond which a packet may be marked that joins the queue, and one that leaves it.
    mark_from: Span,
    mark_leaving_from: Span,
    pub counters: PortCounters,
    pub owner: Owner,
    /// A link protocol stands between the queue and the wire.
    pub protected: bool,
    pub watched: bool,
    /// The earliest event scheduled for it, and another one that is.
    look_at: Time,
    look_later: Time,
    pub queues: Option<Box<Queues>>,
    pub faults: Option<Box<RunningSchedule>>,
    /// Marking with this port's thresholds.
    marking: Option<Box<Marking>>,
}

const NEVER_MARKED: Span = Span::from_ps(u64::MAX);

/// The host or switch that a port belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    number: u32,
    is_host: bool,
}

impl Owner {
    pub(crate) fn of_host(host: HostId) -> Self {
        Self { number: host.0, is_host: true }
    }

    pub(crate) fn of_switch(switch: SwitchId) -> Self {
        Self { number: switch.0, is_host: false }
    }

    /// The host that it is, if it is one.
    #[inline]
    pub(crate) fn host(self) -> Option<HostId> {
        self.is_host.then_some(HostId(self.number))
    }

    /// The switch that it is: ask only for ports that packets are routed to.
    #[inline]
    pub(crate) fn switch(self) -> SwitchId {
        debug_assert!(!self.is_host, "a host is no switch");
        SwitchId(self.number)
    }
}

/// Queues of a port that decides for itself.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    classes: [Fifo; CLASSES],
    /// A bit for each class that has packets, and for each that is paused.
    waiting: u8,
    pub paused: u8,
    /// Wire time of all of it.
    time: Span,
    /// Times at each length, if queue lengths are measured.
    pub(super) levels: Option<Box<LevelClock>>,
}

impl Queues {
    pub(crate) fn push(&mut self, packets: &mut Packets, packet: PacketId, time: Span) {
        let class = usize::from(packets.get(packet).class) % CLASSES;
        self.classes[class].push(packets, packet);
        self.waiting |= 1 << class;
        self.time += time;
    }

    /// The first packet of the first class that is not paused.
    pub(crate) fn pop(&mut self, packets: &Packets) -> Option<PacketId> {
        let class = (self.waiting & !self.paused).trailing_zeros() as usize;
        let fifo = self.classes.get_mut(class)?;
        let packet = fifo.pop(packets)?;
        if fifo.is_empty() {
            self.waiting &= !(1 << class);
        }
        Some(packet)
    }

    pub(crate) fn has_any(&self) -> bool {
        self.waiting & !self.paused != 0
    }

    pub(crate) fn shorten(&mut self, time: Span) {
        self.time = self.time.saturating_sub(time);
    }
}

impl SimPort {
    pub(crate) fn new(rate: Rate, flight: Span, owner: Owner) -> Self {
        let byte_time = (8_192_000_000_000_000u64).div_ceil(rate.bits_per_second());
        Self {
            busy_until: Time::ZERO,
            byte_time,
            framing: WireFraming::default(),
            flight,
            mark_from: NEVER_MARKED,
            mark_leaving_from: NEVER_MARKED,
            counters: PortCounters::default(),
            owner,
            protected: false,
            watched: false,
            look_at: Time::NEVER,
            look_later: Time::NEVER,
            queues: None,
            faults: None,
            marking: None,
        }
    }

    /// True if an event must be scheduled to look at the port then: none is pending that comes no later.
    pub(crate) fn look(&mut self, now: Time, at: Time) -> bool {
        if at >= self.look_at || at == self.look_later {
            return false;
        }
        if self.look_at != Time::NEVER && (self.look_later == Time::NEVER || self.look_later <= now) {
            self.look_later = self.look_at;
        }
        self.look_at = at;
        true
    }

    /// An event has come that was scheduled for it.
    pub(crate) fn looked(&mut self, now: Time) {
        if self.look_at <= now {
            self.look_at = if self.look_later > now { self.look_later } else { Time::NEVER };
            self.look_later = Time::NEVER;
        }
    }

    /// Marks packets from now on; the thresholds are those of this port.
    pub(crate) fn mark(&mut self, marking: Marking) {
        let from = self.time_of_bytes(marking.some.get());
        (self.mark_from, self.mark_leaving_from) = match marking.at {
            MarkingPoint::Arrival => (from, NEVER_MARKED),
            MarkingPoint::Departure => (NEVER_MARKED, from),
        };
        self.marking = Some(Box::new(marking));
    }

    #[inline]
    pub(crate) fn time_of_bytes(&self, bytes: u64) -> Span {
        Span::from_ps(bytes.saturating_mul(self.byte_time).div_ceil(1_024))
    }

    /// Rate of the port, to the nearest megabit per second.
    pub(crate) fn rate(&self) -> Rate {
        let bits = 8_192_000_000_000_000u64 / self.byte_time;
        Rate::from_bits_per_second((bits + 500_000) / 1_000_000 * 1_000_000)
    }

    pub(crate) fn bits_per_second(&self) -> f64 {
        8_192e12 / self.byte_time as f64
    }

    /// Wire time of a frame of this length.
    #[inline]
    pub(crate) fn time_of(&self, len: u16) -> Span {
        self.time_of_bytes(self.on_wire(len))
    }

    /// Bytes of wire time that a frame of this length takes.
    #[inline]
    pub(crate) fn on_wire(&self, len: u16) -> u64 {
        u64::from(self.framing.on_wire(u32::from(len)))
    }

    /// Time for which the wire is busy with a frame of this length.
    #[inline]
    pub(crate) fn sending_time(&self, len: u16) -> Span {
        self.framing.busy(self.time_of(len))
    }

    /// True if a packet of this class that joins the queue would leave it at once: the wire is free and nothing waits.
    #[inline]
    pub(crate) fn lets_pass(&self, now: Time, class: u8) -> bool {
        let is_open = |queues: &Queues| queues.waiting == 0 && queues.paused & 1 << (usize::from(class) % CLASSES) == 0;
        self.busy_until <= now && !self.protected && self.queues.as_deref().is_some_and(is_open)
    }

    /// Time that the wire needs for everything still to be sent.
    #[inline]
    pub(crate) fn backlog(&self, now: Time) -> Span {
        let sending = self.busy_until.since(now);
        match &self.queues {
            None => sending,
            Some(queues) => sending + queues.time,
        }
    }

    /// Backlog in bytes.
    pub(crate) fn backlog_bytes(&self, now: Time) -> u64 {
        self.bytes_of_time(self.backlog(now))
    }

    /// Time that the wire needs for what waits, without the packet that is being sent.
    #[inline]
    pub(crate) fn waiting(&self) -> Span {
        self.queues.as_ref().map_or(Span::ZERO, |queues| queues.time)
    }

    /// The queue has become longer or shorter.
    #[inline]
    pub(crate) fn queue_changed(&mut self, now: Time) {
        let Some(queues) = &mut self.queues else { return };
        if let Some(levels) = &mut queues.levels {
            levels.change(now, queues.time.as_ps() * 1_024 / self.byte_time);
        }
    }

    #[inline]
    pub(crate) fn bytes_of_time(&self, time: Span) -> u64 {
        time.as_ps() * 1_024 / self.byte_time
    }

    /// Decides whether a packet that finds this backlog is marked; `draw` gives a number from 0 to 1.
    #[inline]
    pub(crate) fn marks(&self, backlog: Span, class: u8, draw: impl FnOnce() -> f64) -> bool {
        backlog > self.mark_from && self.is_marked_at(backlog, class, draw)
    }

    /// Decides whether a packet that leaves the queue is marked.
    #[inline]
    pub(crate) fn marks_leaving(&self, class: u8, draw: impl FnOnce() -> f64) -> bool {
        self.waiting() > self.mark_leaving_from && self.is_marked_at(self.waiting(), class, draw)
    }

    /// True if [`SimPort::marks_leaving`] can ever be true.
    pub(crate) fn may_mark_leaving(&self) -> bool {
        self.mark_leaving_from != NEVER_MARKED
    }

    fn is_marked_at(&self, backlog: Span, class: u8, draw: impl FnOnce() -> f64) -> bool {
        let bytes = self.bytes_of_time(backlog);
        self.marking.as_ref().is_some_and(|marking| marking.applies(class, bytes, draw))
    }
}

#[cfg(test)]
mod tests {
    use units::Bytes;

    use super::*;

    #[test]
    fn wire_time_is_exact_for_the_usual_rates() {
        for gbps in [1, 10, 25, 40, 50, 100, 200, 400, 800] {
            let rate = Rate::gbps(gbps);
            let port = SimPort::new(rate, Span::ZERO, Owner::of_switch(SwitchId(0)));
            assert_eq!(port.time_of(1_518), rate.span_of(Bytes::new(1_538)), "{rate}");
        }
    }

    #[test]
    fn a_port_is_looked_at_when_it_asked_for_it_and_no_event_is_scheduled_twice() {
        let mut port = SimPort::new(Rate::gbps(8), Span::ZERO, Owner::of_switch(SwitchId(0)));
        let at = Time::from_ps;
        assert!(port.look(at(0), at(900)));
        for now in [10, 20, 30] {
            assert!(port.look(at(now), at(now + 5)) && !port.look(at(now), at(900)));
            port.looked(at(now + 5));
            assert!(!port.look(at(now + 5), at(900)), "still to come");
        }
        port.looked(at(900));
        assert!(port.look(at(900), at(901)));
    }

    #[test]
    fn marking_is_a_step_or_a_ramp() {
        let mut port = SimPort::new(Rate::gbps(8), Span::ZERO, Owner::of_switch(SwitchId(0)));
        let at = |port: &SimPort, bytes: u64, draw: f64| port.marks(port.time_of_bytes(bytes), 0, || draw);
        assert!(!at(&port, 1_000_000, 0.0));
        port.mark(Marking::step(Bytes::new(1_000)));
        assert_eq!([999, 1_000, 1_001].map(|bytes| at(&port, bytes, 0.99)), [false, false, true]);
        port.mark(Marking::ramp(Bytes::new(1_000), Bytes::new(2_000), 0.5));
        assert!(at(&port, 1_500, 0.24) && !at(&port, 1_500, 0.26) && at(&port, 2_000, 0.99));
    }

    #[test]
    fn thresholds_grow_with_the_port_and_only_the_classes_named_are_marked() {
        let marking = Marking { per: Some(Rate::gbps(25)), classes: 1 << 3, ..Marking::step(Bytes::new(1_000)) };
        let mut port = SimPort::new(Rate::gbps(100), Span::ZERO, Owner::of_switch(SwitchId(0)));
        port.mark(marking.for_port(Rate::gbps(100)));
        let at = |bytes: u64, class| port.marks(port.time_of_bytes(bytes), class, || 0.99);
        assert_eq!([at(4_000, 3), at(4_001, 3), at(4_001, 2)], [false, true, false]);
        assert!(!port.may_mark_leaving());
    }
}
