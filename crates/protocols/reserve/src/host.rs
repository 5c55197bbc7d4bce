//! The host's part: frames wait in contexts until the switch has room for them.
//!
//! PL2, §2, App. D.2 and D.4 (Algorithm 3). A context has at most one burst open, to one destination:
//!
//! ```text
//!            frames above                GRT, or refused                     at its time
//!   Idle ───────────────────▶ Asking ───────────────────▶ Granted ─────────────────────▶ Sending ──▶ Idle
//!     │   RSV                 │    ▲ RSV again                                              ▲
//!     │                       └────┘ after a timeout                                        │
//!     └── nothing to ask: unsolicited, or the switch does not answer ───────────────────────┘
//! ```
//!
//! A burst is never early: from its wait the host takes off the *smallest* round trip of late, because a slow RSV says
//! nothing about how fast the data will be. The paper takes off the round trip of this very exchange and the data still
//! pending; [`WaitRule::Printed`] does that too, to show what comes of it.
//!
//! Invariants: frames of a lane leave in order, unless the switch cuts one while others are being sent; a context's next RSV
//! leaves behind its last frame, which the driver must not reorder; a frame is delivered once.

mod context;
mod counters;
mod destination_memory;
mod egress;
mod ingress;
mod receiver;
mod round_trip;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use machine::{Machine, Out, Port, Pull, QueueId};
use units::{Span, Time};
use wire::reserve::{HostKey, ReserveMessage, ReserveVerb};

pub use counters::HostCounters;

use self::context::SendContext;
use self::destination_memory::DestinationMemory;
use self::receiver::BurstReceiver;
use self::round_trip::SmallestRoundTrip;
use crate::frame::{RackFrame, ReservePacket};
use crate::params::{RackParamError, RackParams, SlotTable};

/// The only wire of a host.
pub const HOST_WIRE: Port = Port(0);
/// Queue to which received frames are delivered.
const RECEIVED: QueueId = QueueId(0);

/// Time subtracted from the wait that a GRT gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitRule {
    /// The smallest round trip of late.
    NeverEarly,
    /// Paper's formula: the round trip of this exchange and the data still pending. Makes hosts early.
    Printed,
}

/// Settings of a host besides those of the rack.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostParams {
    /// The address of this host.
    pub key: HostKey,
    /// The run of this host; to differ from the one before.
    pub epoch: u16,
    /// Time subtracted from the wait that a GRT gives.
    pub wait: WaitRule,
    /// Time by which the host is early on purpose, for experiments.
    pub too_early: Span,
    /// Number of times an RSV is sent before the switch counts as one without reservations.
    pub attempts: u8,
    /// Number of attempts for a switch that has answered before, because it may only be restarting.
    pub attempts_known: u8,
    /// Interval at which such a switch is asked again.
    pub probe: Span,
    /// Least time for which the smallest round trip is remembered. One that has become too small makes a host late,
    /// which is harmless; one that is too large makes it early.
    pub round_trip_window: Span,
    /// Exchanges before their smallest round trip is believed to be how short the way can be.
    pub round_trips: u16,
    /// Time for which reports about a destination are believed, and for which a context waits for grants after one of
    /// its unsolicited frames was cut.
    pub recent: Span,
    /// Time without its frames after which an announced burst counts as lost, and is reported to the switch.
    pub reset_after: Span,
}

impl HostParams {
    /// Parameters of a host that is never early, with the patience that fits the timeout of the rack.
    pub fn new(key: HostKey, epoch: u16, rack: &RackParams) -> Self {
        Self {
            key,
            epoch,
            wait: WaitRule::NeverEarly,
            too_early: Span::ZERO,
            attempts: 8,
            attempts_known: 8,
            probe: rack.timeout * 64,
            round_trip_window: rack.timeout * 16,
            round_trips: 4,
            recent: rack.horizon,
            reset_after: rack.timeout * 4,
        }
    }
}

/// Commands of the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostCommand {
    /// A frame was put into this queue. Lanes below the number of contexts are the contexts'; the next one is for frames
    /// that do not reserve.
    Queued(QueueId),
    /// The host leaves the rack: reservations are given back, and what waits goes out without a mark.
    Leave,
}

/// The timers of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostTimer {
    /// An RSV was not answered in time, or copies of unsolicited frames can be released because the switch did not cut them.
    Deadline,
    /// An announced burst did not come.
    Silence,
}

impl From<HostTimer> for usize {
    fn from(timer: HostTimer) -> usize {
        timer as usize
    }
}

/// A host of the rack: its interface.
#[derive(Debug)]
pub struct ReservingHost<B> {
    rack: RackParams,
    params: HostParams,
    slots: SlotTable,
    contexts: Vec<SendContext<B>>,
    /// Contexts that may have something to ask for.
    ready: VecDeque<u16>,
    /// Contexts that may send, by time.
    granted: BinaryHeap<Reverse<(Time, u16)>>,
    /// The paper's way: contexts of which copies are to leave behind their RSVs.
    copying: VecDeque<u16>,
    /// The context whose burst is being sent.
    sending: Option<u16>,
    /// Messages that are not RSVs.
    messages: VecDeque<ReserveMessage>,
    /// True if a frame that does not reserve may go before the next burst.
    unreserved_turn: bool,
    deadlines: VecDeque<ContextDeadline>,
    /// The run of the switch, as far as it is known.
    switch_epoch: u16,
    /// Time at which to ask an unresponsive switch again; `None` while it answers.
    silent: Option<Time>,
    left: bool,
    round_trip: SmallestRoundTrip,
    destinations: DestinationMemory,
    receiver: BurstReceiver,
    counters: HostCounters,
}

/// Time at which a context must be checked again.
#[derive(Clone, Copy, Debug)]
struct ContextDeadline {
    at: Time,
    context: u16,
    burst: u32,
    attempt: u8,
}

impl<B: RackFrame> ReservingHost<B> {
    /// A host that knows nothing of its switch yet.
    pub fn new(rack: RackParams, params: HostParams) -> Result<Self, RackParamError> {
        rack.check()?;
        Ok(Self {
            rack,
            params,
            slots: SlotTable::new(&rack),
            contexts: (0..rack.contexts).map(|number| SendContext::new(number, &rack)).collect(),
            ready: VecDeque::with_capacity(usize::from(rack.contexts)),
            granted: BinaryHeap::with_capacity(usize::from(rack.contexts)),
            copying: VecDeque::new(),
            sending: None,
            messages: VecDeque::new(),
            unreserved_turn: true,
            deadlines: VecDeque::with_capacity(usize::from(rack.contexts) * 2),
            switch_epoch: 0,
            silent: None,
            left: false,
            round_trip: SmallestRoundTrip::new(params.round_trip_window, params.round_trips),
            destinations: DestinationMemory::default(),
            receiver: BurstReceiver::default(),
            counters: HostCounters::default(),
        })
    }

    /// Counters since the start.
    pub fn counters(&self) -> &HostCounters {
        &self.counters
    }

    /// The queue for frames that do not reserve.
    pub fn unreserved_lane(&self) -> QueueId {
        QueueId(self.rack.contexts as u8)
    }

    /// True if the switch answers: if not, frames go out without a mark and nothing is guaranteed.
    pub fn is_guaranteed(&self) -> bool {
        self.silent.is_none() && !self.left
    }

    /// The smallest round trip to the switch of late.
    pub fn round_trip(&self) -> Option<Span> {
        self.round_trip.smallest()
    }

    /// Frames that wait here: asked for, granted, cut, or kept in case they are cut.
    pub fn held_frames(&self) -> usize {
        self.contexts.iter().map(SendContext::held_frames).sum()
    }

    /// Puts a context where the next free moment of the wire finds it.
    fn list<O: Out<Self>>(&mut self, context: u16, out: &mut O) {
        let entry = &mut self.contexts[usize::from(context)];
        if !std::mem::replace(&mut entry.listed, true) {
            self.ready.push_back(context);
        }
        out.wake(HOST_WIRE);
    }

    fn on_queued<O: Out<Self>>(&mut self, lane: QueueId, out: &mut O) {
        match self.contexts.get(usize::from(lane.0)) {
            Some(context) if context.is_idle() => self.list(u16::from(lane.0), out),
            Some(_) => (),
            None => out.wake(HOST_WIRE),
        }
    }

    fn set_deadline<O: Out<Self>>(&mut self, now: Time, context: u16, burst: u32, attempt: u8, out: &mut O) {
        let at = now + self.rack.timeout;
        if self.deadlines.is_empty() {
            out.arm(HostTimer::Deadline, at);
        }
        self.deadlines.push_back(ContextDeadline { at, context, burst, attempt });
    }

    fn on_deadline<O: Out<Self>>(&mut self, now: Time, out: &mut O) {
        while let Some(deadline) = self.deadlines.pop_front_if(|deadline| deadline.at <= now) {
            self.contexts[usize::from(deadline.context)].forget_sent(now, self.rack.timeout, out);
            self.on_unanswered(now, deadline, out);
        }
        if let Some(deadline) = self.deadlines.front() {
            out.arm(HostTimer::Deadline, deadline.at);
        }
    }

    fn on_unanswered<O: Out<Self>>(&mut self, now: Time, deadline: ContextDeadline, out: &mut O) {
        let context = &mut self.contexts[usize::from(deadline.context)];
        if !context.is_asking(deadline.burst, deadline.attempt) {
            return;
        }
        self.counters.unanswered += 1;
        let HostParams { attempts, attempts_known, .. } = self.params;
        let most = if self.switch_epoch == 0 { attempts } else { attempts_known };
        if deadline.attempt + 1 < most && self.silent.is_none() {
            context.ask_again();
            self.list(deadline.context, out);
            return;
        }
        if self.silent.is_none() {
            self.silent = Some(now + self.params.probe);
        }
        self.send_unmarked(now, deadline.context, out);
    }

    /// The burst of a context goes out as if there were no reservations.
    fn send_unmarked<O: Out<Self>>(&mut self, now: Time, context: u16, out: &mut O) {
        self.contexts[usize::from(context)].grant_unmarked(out);
        self.granted.push(Reverse((now, context)));
        out.wake(HOST_WIRE);
    }

    /// Gives back every reservation, and asks for no more.
    fn leave<O: Out<Self>>(&mut self, now: Time, out: &mut O) {
        self.left = true;
        for number in 0..self.rack.contexts {
            let context = &mut self.contexts[usize::from(number)];
            if let Some(about) = context.reservation(self.params.epoch, self.switch_epoch) {
                self.messages.push_back(ReserveMessage { verb: ReserveVerb::Release, about });
                self.granted.retain(|Reverse((_, granted))| *granted != number);
                self.send_unmarked(now, number, out);
            }
        }
        out.wake(HOST_WIRE);
    }
}

impl<B: RackFrame> Machine for ReservingHost<B> {
    type Frame = ReservePacket<B>;
    type Inner = B;
    type Timer = HostTimer;
    type Command = HostCommand;
    type Done = ();
    type Note = ();

    #[inline]
    fn on_frame<O: Out<Self>>(&mut self, now: Time, _port: Port, frame: ReservePacket<B>, out: &mut O) {
        match frame {
            ReservePacket::Message(message) => self.on_message(now, &message, out),
            ReservePacket::Data { mark, body } => self.on_data(mark, body, out),
        }
    }

    fn on_timer<O: Out<Self>>(&mut self, now: Time, key: HostTimer, out: &mut O) {
        match key {
            HostTimer::Deadline => self.on_deadline(now, out),
            HostTimer::Silence => self.on_silence(now, out),
        }
    }

    #[inline]
    fn on_command<O: Out<Self>>(&mut self, now: Time, command: HostCommand, out: &mut O) {
        match command {
            HostCommand::Queued(lane) => self.on_queued(lane, out),
            HostCommand::Leave => self.leave(now, out),
        }
    }

    #[inline]
    fn pull<O: Out<Self>>(&mut self, now: Time, _port: Port, out: &mut O) -> Pull {
        self.next_frame(now, out)
    }

    fn check_invariants(&self) {
        if cfg!(debug_assertions) {
            self.contexts.iter().for_each(SendContext::check_invariants);
            let waiting = self.contexts.iter().filter(|context| context.is_granted()).count();
            assert_eq!(waiting, self.granted.len(), "every granted context has its time");
        }
    }
}
