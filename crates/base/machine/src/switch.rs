//! Programs that act on the frames which pass a switch, besides queueing them: meters, repeaters, telemetry, reservations.
//!
//! A [`SwitchProgram`] is called at fixed points of a frame's way through a switch. It may pass a frame, drop it, multiply
//! it, hold it, or send it back where it came from; it may write a tag on a frame to read it at the next hook; and it may
//! act at a time of its own. Like a [`Machine`](crate::Machine) it has no clock, socket or random source, so the same
//! program runs in the simulator and in a software switch.
//!
//! Programs compose: `(A, B)` runs `A`, then `B`, and `Option<P>` runs `P` if there is one. Programs that drop, hold,
//! multiply or return frames stand before those that count them.
//!
//! ```text
//!   arrives ──▶ routed ──▶ on_route ──Pass──▶ queue ──▶ on_departure ──▶ leaves
//!                            │ Hold: kept until release        ▲
//!                            │ Back: by the port it came in by ─┤ on_sent
//!   on_wake ── send, release ──────────────────────────────────┘
//! ```

mod compose;

use std::fmt::Debug;

use units::Time;
use wire::int::TelemetrySample;
use wire::reserve::ReserveHeader;

/// A program that runs in every switch of a network, or in one switch.
///
/// Parts of the same scheme that sit at the interfaces of hosts are called here too.
pub trait SwitchProgram {
    /// Frames that pass through the switch.
    type Frame;

    /// Tag that the program writes on a frame to read it at the next hook; `()` if nothing.
    type Tag: Copy + Default + Debug;

    /// True if all frames are the program's own, sent again as they were in another run: hosts take them and do nothing,
    /// and [`admits`](Self::admits) says which join a queue.
    const REPLAYS: bool = false;

    /// True if the program wants to see frames leave. If not, a driver may forward them ahead of time.
    fn watches_departures(&self) -> bool {
        false
    }

    /// True if the program wants to see frames at hosts.
    fn watches_hosts(&self) -> bool {
        false
    }

    /// A frame has been routed to a port and is about to join its queue.
    fn on_route(&mut self, now: Time, at: Visit, frame: &mut Self::Frame, tag: &mut Self::Tag) -> Forward;

    /// True if a frame that has been routed joins its queue; asked only of a program that replays.
    #[inline]
    fn admits(&mut self, _at: SwitchPort, room: QueueRoom, _tag: &mut Self::Tag) -> bool {
        room.fits
    }

    /// Called when another program of the switch makes `extra` more copies of a frame that this program has passed.
    #[inline]
    fn on_copied(&mut self, _now: Time, _at: SwitchPort, _extra: u32, _frame: &mut Self::Frame, _tag: &mut Self::Tag) {}

    /// Called when another program of the switch drops or holds a frame before this program has seen it.
    #[inline]
    fn on_taken(&mut self, _now: Time, _at: SwitchPort, _frame: &mut Self::Frame, _tag: &mut Self::Tag) {}

    /// A frame that a program sends back, releases or makes is about to join the queue of this port.
    #[inline]
    fn on_sent(&mut self, _now: Time, _at: SwitchPort, _frame: &mut Self::Frame, _tag: &mut Self::Tag) {}

    /// A frame leaves a queue in which `left` bytes stay behind. Only if the program watches departures.
    #[inline]
    fn on_departure(
        &mut self,
        _now: Time,
        _at: SwitchPort,
        _left: u64,
        _frame: &mut Self::Frame,
        _tag: &mut Self::Tag,
    ) {
    }

    /// A host sends a frame by this link. Only if the program watches hosts.
    #[inline]
    fn on_host_sends(
        &mut self,
        _now: Time,
        _link: u32,
        _who: Conversation,
        _frame: &mut Self::Frame,
        _tag: &mut Self::Tag,
    ) {
    }

    /// Called when a frame reaches its destination host over this link, if the program watches hosts.
    #[inline]
    fn on_host_receives(&mut self, _now: Time, _link: u32, _frame: &mut Self::Frame, _tag: &mut Self::Tag) {}

    /// A frame is lost between the upstream end of this link and where the next switch would have routed it. For
    /// comparison: a program that finds losses must find them without it.
    #[inline]
    fn on_drop(&mut self, _now: Time, _link: u32, _reason: DropReason, _frame: &mut Self::Frame, _tag: &mut Self::Tag) {
    }

    /// Makes a tag as good as new: a frame begins its way, and the tag may be that of another that is gone.
    #[inline]
    fn clear(tag: &mut Self::Tag) {
        *tag = Self::Tag::default();
    }

    /// The telemetry in a tag, if the program writes any.
    #[inline]
    fn telemetry(_tag: &Self::Tag) -> Option<TelemetrySample<'_>> {
        None
    }

    /// Writes on a frame the header about reservations that a host's interface gives it. A program that reads none ignores it.
    #[inline]
    fn write_reserve(_tag: &mut Self::Tag, _header: Option<ReserveHeader>) {}

    /// Header about reservations that a host or the program has written on a frame.
    #[inline]
    fn reserve_header(_tag: &Self::Tag) -> Option<&ReserveHeader> {
        None
    }

    /// Time at which the program wants to act by itself next; asked after every hook that may have changed it.
    #[inline]
    fn wake_at(&self) -> Time {
        Time::NEVER
    }

    /// The time that [`wake_at`](Self::wake_at) gave has come.
    fn on_wake<O: SwitchOut<Self::Frame>>(&mut self, _now: Time, _out: &mut O) {}
}

/// Decision on a frame that has been routed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forward {
    /// The frame joins the queue.
    Pass,
    /// The frame is dropped on purpose.
    Drop,
    /// This many of it join the queue; at least two.
    Copies(u32),
    /// The switch keeps it under its ticket until the program releases it.
    Hold,
    /// The frame leaves by the port that it came in by.
    Back,
}

/// Actions of a program at a time of its own.
pub trait SwitchOut<F> {
    /// The frame that is held under this ticket.
    fn held(&mut self, ticket: Ticket) -> &mut F;

    /// Ends the holding of a frame: [`Forward::Pass`] to the port that it was routed to, [`Forward::Back`], or
    /// [`Forward::Drop`].
    fn release(&mut self, ticket: Ticket, forward: Forward);

    /// Puts a frame of the program's own into the queue of a port.
    fn send(&mut self, at: SwitchPort, frame: F);
}

/// A frame at a port that it has been routed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit {
    /// The port.
    pub at: SwitchPort,
    /// Ticket under which the frame is held if the program answers [`Forward::Hold`].
    pub ticket: Ticket,
}

/// A frame that a switch may hold for a program; unique as long as the frame is in the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u32);

/// Sender and receiver of a frame, which are two hosts by number, and the number of the flow between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conversation {
    /// The host that sends.
    pub from: u32,
    /// The host that receives.
    pub to: u32,
    /// The flow that the frame belongs to.
    pub flow: u32,
    /// True if it goes from the host that began the flow to the other.
    pub forward: bool,
}

/// Reason why a frame is lost, as only the one who loses it can know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropReason {
    /// The queue that it was to join is full.
    Full,
    /// The wire corrupted it.
    Corrupted,
    /// The next switch has lost its rule for the destination.
    Blackhole,
    /// The frame has been through too many switches.
    Expired,
    /// The next switch has a rule to drop such frames, and counts them.
    Filtered,
}

/// Room of a queue for a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueRoom {
    /// True if the buffer takes the frame.
    pub fits: bool,
    /// Bytes until the queue is as long as it may be now: exact if there are few, otherwise no fewer than said.
    pub left: i64,
}

/// A port of a switch, both by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchPort {
    /// Number of the switch.
    pub switch: u32,
    /// Number of the port.
    pub port: u32,
}
