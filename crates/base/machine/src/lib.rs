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

#![warn(missing_docs)]

mod body;
mod switch;

use std::fmt::Debug;

use units::Time;

pub use body::FrameBody;
pub use switch::{Conversation, DropReason, Forward, QueueRoom, SwitchOut, SwitchPort, SwitchProgram, Ticket, Visit};

/// Number of one of a machine's wires. A link endpoint has one, port 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port(pub u8);

/// Number of the queue above a machine that a frame comes from or goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueId(pub u8);

/// A place in a machine where the time decides something. The machine numbers its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeSite(pub u8);

/// Result of a pull.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pull {
    /// One frame went to [`Out::transmit`]; pull again when the wire is free.
    Sent,
    /// One frame went to [`Out::transmit`], and none follows until the machine wakes the port.
    Last,
    /// The machine has nothing to send until it wakes the port.
    Idle,
    /// The machine has nothing to send before this time, unless it wakes the port earlier.
    NotBefore(Time),
}

/// A protocol without I/O: a driver calls it, and it acts through [`Out`].
///
/// This one sends every frame twice, so a frame may be lost once. `testkit::Duo` is the driver: two machines and a wire.
///
/// ```
/// # use machine::{Machine, Out, Port, Pull, QueueId};
/// # use testkit::{Duo, Fate, Side};
/// # use units::{Span, Time};
/// # #[derive(Default)]
/// struct TwoCopies { sent: u32, copies: Vec<(u32, char)>, received: u32 }
/// impl Machine for TwoCopies {
///     type Frame = (u32, char); // on the wire, a letter has a number
///     type Inner = char;
/// #     type Timer = usize;
/// #     type Command = ();
/// #     type Done = ();
/// #     type Note = ();
///     fn pull<O: Out<Self>>(&mut self, _: Time, port: Port, out: &mut O) -> Pull {
///         if self.copies.is_empty() && let Some(letter) = out.take(QueueId(0)) {
///             self.sent += 1;
///             self.copies = vec![(self.sent, letter); 2];
///         }
///         let Some(copy) = self.copies.pop() else { return Pull::Idle };
///         out.transmit(port, copy);
///         Pull::Sent
///     }
///     fn on_frame<O: Out<Self>>(&mut self, _: Time, _: Port, (number, letter): (u32, char), out: &mut O) {
///         if number > self.received { // else the second copy
///             self.received = number;
///             out.deliver(QueueId(0), letter);
///         }
///     }
/// #     fn on_timer<O: Out<Self>>(&mut self, _: Time, _: usize, _: &mut O) {}
/// #     fn on_command<O: Out<Self>>(&mut self, _: Time, _: (), _: &mut O) {}
/// }
/// let mut link = Duo::new(TwoCopies::default(), TwoCopies::default(), Span::from_ns(100), Span::from_ns(300));
/// "abc".chars().for_each(|letter| link.send(Side::Left, QueueId(0), letter));
/// let mut fates = [Fate::Arrives, Fate::Arrives, Fate::Lost].into_iter(); // the first copy of `b`
/// link.run(Time::NEVER, &mut |_, _| fates.next().unwrap_or(Fate::Arrives));
/// assert_eq!(link.delivered(Side::Right), ['a', 'b', 'c']);
/// ```
pub trait Machine {
    /// Frames on the wires.
    type Frame;
    /// Frames that are taken from the queues above and delivered to them.
    type Inner;
    /// A dense small index; arming an armed key replaces its deadline.
    type Timer: Copy + Eq + Debug + Into<usize>;
    /// Commands of the owner.
    type Command;
    /// Reports of the machine to its owner.
    type Done: Debug;
    /// Facts for traces and measurements; a driver may drop them.
    type Note: Debug;

    /// A frame arrived at `port`.
    fn on_frame<O: Out<Self>>(&mut self, now: Time, port: Port, frame: Self::Frame, out: &mut O);
    /// A timer expired.
    fn on_timer<O: Out<Self>>(&mut self, now: Time, key: Self::Timer, out: &mut O);
    /// The owner asks for something.
    fn on_command<O: Out<Self>>(&mut self, now: Time, command: Self::Command, out: &mut O);
    /// The wire at `port` is free: transmits at most one frame.
    fn pull<O: Out<Self>>(&mut self, now: Time, port: Port, out: &mut O) -> Pull;

    /// Panics if the state between two calls is one that cannot be. Checks nothing in release builds.
    fn check_invariants(&self) {}
}

/// Output of a machine, by which it acts on the world.
pub trait Out<M: Machine + ?Sized> {
    /// Puts one frame on the wire. Only from [`Machine::pull`], once for each [`Pull::Sent`] or
    /// [`Pull::Last`].
    fn transmit(&mut self, port: Port, frame: M::Frame);

    /// Asks to be pulled.
    fn wake(&mut self, port: Port);

    /// True if the queue above has a frame to take.
    fn waiting(&self, lane: QueueId) -> bool;

    /// The next frame of the queue above. Taken only when it goes on the wire at once, so that the
    /// queue, with its depth and its marking, stays its owner's.
    fn take(&mut self, lane: QueueId) -> Option<M::Inner>;

    /// A second handle on a frame, to send again later: what is written into the first one
    /// downstream never shows in the second.
    fn keep(&mut self, inner: &M::Inner) -> M::Inner;

    /// Gives back a handle that will not be used again.
    fn release(&mut self, inner: M::Inner);

    /// Hands a frame up.
    fn deliver(&mut self, lane: QueueId, inner: M::Inner);

    /// Sets a timer, or moves one that is set.
    fn arm(&mut self, key: M::Timer, at: Time);
    /// Stops a timer, if it is set.
    fn disarm(&mut self, key: M::Timer);
    /// Reports to the owner.
    fn complete(&mut self, done: M::Done);
    /// Records a fact for traces and measurements.
    fn note(&mut self, note: M::Note);

    /// The time answers a question of the machine: `computed`, which is usually no. A log keeps the answer, and a replay,
    /// which does not know the exact time, gives the one of the log instead. All others answer what was computed.
    #[inline]
    fn decide(&mut self, _site: TimeSite, computed: bool) -> bool {
        computed
    }

    /// Asks for a number that follows from the time and seldom changes, as [`Out::decide`] does for a yes or no.
    #[inline]
    fn tick(&mut self, _site: TimeSite, computed: u64) -> u64 {
        computed
    }
}
