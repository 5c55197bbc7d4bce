//! A protocol is a machine: frames and time come in, actions go out through a sink, in order.
//!
//! A [`Machine`] has no clock, socket, thread, lock or random source of its own. Whoever drives it (the
//! simulator, the live loop, a test) owns those, and owns the [`Out`] that the machine acts through.
//! The machine is generic over `Out`, so a driver's sink is inlined into the protocol's hot path.
//!
//! Bulk egress is *pulled*: a machine puts frames on a wire only from [`Machine::pull`], because only
//! the wire knows when it is free. That is also where strict priorities are decided. Anything that
//! makes a machine want to send calls [`Out::wake`]; the driver then pulls until it hears anything but
//! [`Pull::Sent`].

use std::fmt::Debug;

use units::Time;

/// Which of a machine's wires. A link endpoint has one, port 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port(pub u8);

/// Which of the queues above a machine a frame comes from or goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lane(pub u8);

/// What a pull came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pull {
    /// One frame went to [`Out::transmit`]; pull again when the wire is free.
    Sent,
    /// One frame went to [`Out::transmit`], and none follows until the machine wakes the port.
    Last,
    /// Nothing to send until the machine wakes the port.
    Idle,
    /// Nothing to send now, but something at this time, unless it wakes the port before.
    NotBefore(Time),
}

pub trait Machine {
    /// What travels on the wires.
    type Frame;
    /// What is taken from the queues above and delivered to them.
    type Inner;
    /// A dense small index; arming an armed key replaces its deadline.
    type Timer: Copy + Eq + Debug + Into<usize>;
    /// What the owner asks.
    type Command;
    /// What the owner is told.
    type Done: Debug;
    /// Facts for traces and measurements; a driver may drop them.
    type Note: Debug;

    fn on_frame<O: Out<Self>>(&mut self, now: Time, port: Port, frame: Self::Frame, out: &mut O);
    fn on_timer<O: Out<Self>>(&mut self, now: Time, key: Self::Timer, out: &mut O);
    fn on_command<O: Out<Self>>(&mut self, now: Time, command: Self::Command, out: &mut O);
    fn pull<O: Out<Self>>(&mut self, now: Time, port: Port, out: &mut O) -> Pull;
}

/// What a machine can do to the world.
pub trait Out<M: Machine + ?Sized> {
    /// Puts one frame on the wire. Only from [`Machine::pull`], once for each [`Pull::Sent`] or
    /// [`Pull::Last`].
    fn transmit(&mut self, port: Port, frame: M::Frame);

    /// Asks to be pulled.
    fn wake(&mut self, port: Port);

    /// Whether the queue above has a frame to take.
    fn waiting(&self, lane: Lane) -> bool;

    /// The next frame of the queue above. Taken only when it goes on the wire at once, so that the
    /// queue, with its depth and its marking, stays its owner's.
    fn take(&mut self, lane: Lane) -> Option<M::Inner>;

    /// A second handle on a frame, to send again later: what is written into the first one
    /// downstream never shows in the second.
    fn keep(&mut self, inner: &M::Inner) -> M::Inner;

    /// Gives back a handle that will not be used again.
    fn release(&mut self, inner: M::Inner);

    /// Hands a frame up.
    fn deliver(&mut self, lane: Lane, inner: M::Inner);

    fn arm(&mut self, key: M::Timer, at: Time);
    fn disarm(&mut self, key: M::Timer);
    fn complete(&mut self, done: M::Done);
    fn note(&mut self, note: M::Note);
}

/// What a switch does to passing frames besides queueing them: meters, marks, reservations, telemetry. What sits at the
/// interfaces of hosts and belongs to the same scheme is called here too.
pub trait SwitchProgram {
    type Frame;

    /// What it writes on a frame to read it where the frame passes next; `()` if nothing.
    type Tag: Copy + Default + Debug;

    /// Whether it wants to see frames leave. If not, a driver may send them on their way ahead of time.
    const WATCHES_DEPARTURES: bool;

    /// Whether it wants to see frames at hosts.
    const WATCHES_HOSTS: bool = false;

    /// A frame has been routed to a port of this switch and is about to join its queue. How many of it do: none if it is
    /// dropped, several if it is repeated.
    fn on_route(&mut self, now: Time, at: SwitchPort, frame: &mut Self::Frame, tag: &mut Self::Tag) -> u32;

    /// A frame leaves a queue; so many bytes stay behind.
    fn on_departure(&mut self, now: Time, at: SwitchPort, left: u64, frame: &mut Self::Frame);

    /// A host sends a frame by this link. Only if it watches hosts.
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

    /// A frame has come by this link to the host that it is for. Only if it watches hosts.
    #[inline]
    fn on_host_receives(&mut self, _now: Time, _link: u32, _frame: &mut Self::Frame, _tag: &mut Self::Tag) {}

    /// A frame is lost between the upstream end of this link and where the next switch would have routed it. For
    /// comparison: a program that finds losses must find them without it.
    #[inline]
    fn on_drop(&mut self, _now: Time, _link: u32, _why: Why, _frame: &mut Self::Frame, _tag: &mut Self::Tag) {}
}

/// Who speaks to whom: two hosts by number, and the number of the flow between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conversation {
    pub from: u32,
    pub to: u32,
    pub flow: u32,
    /// Whether it goes from the host that began the flow to the other.
    pub forward: bool,
}

/// Why a frame is lost, as only whoever loses it can know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// The queue that it was to join is full.
    Full,
    /// The wire corrupted it.
    Corrupted,
    /// The next switch has lost its rule for the destination.
    Blackhole,
    /// It has been through too many switches.
    Expired,
    /// The next switch is told to drop such frames, and knows that it does.
    Filtered,
}

/// A port of a switch, both by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchPort {
    pub switch: u32,
    pub port: u32,
}
