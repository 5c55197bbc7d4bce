//! One port of a rack, in whole slots: contexts that are as late as they like, a switch, and the queue of the port.
//!
//! The switch is the real one. Hosts are reduced to what the switch can tell apart, because the real one remembers round trips,
//! deadlines and burst numbers without end, and no two of its states are ever equal:
//!
//! - A lost RSV, a lost GRT and any delay are a host that acts later: the switch sees no difference. A host whose GRT was lost asks
//!   again; so may one whose GRT only takes long, and then the answer to either RSV counts, whichever allows more.
//! - A host never sends before the slot of its grant, and asks for the next burst behind the last frame of this one.
//! - What is repeated may come again at any time later, also after the next bursts.

mod states;

use std::collections::VecDeque;
use std::fmt;

use reserve::{
    Charge, DataAnswer, FrameVisit, MessageAnswer, MessageVisit, RackParams, ReservingSwitch, SchedulerKind,
};
use units::{Rate, Span, Time};
use wire::reserve::{BurstId, DataMark, Demand, HostKey, Reservation, ReserveMessage, ReserveVerb};

/// A full frame at 100 Gb/s, preamble and gap included.
pub(crate) const SLOT: Span = Span::from_ps(123_040);
const FRAME: u32 = 1_518;
const ON_WIRE: u32 = 1_538;
/// Bursts are numbered from here, so that none has the number of a context that has never asked.
const FIRST_BURST: u32 = 1_000;

/// Parameters of a search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) kind: SchedulerKind,
    pub(crate) hosts: u16,
    /// Contexts of each host.
    pub(crate) contexts: u16,
    pub(crate) k: u8,
    /// True if the frames of a burst may come at once, because something on their way held them up.
    pub(crate) bunched: bool,
    /// Slots that pass between the beginning of a frame's slot and the moment when the switch sees it, at least.
    pub(crate) transit: u64,
    /// After how many slots `departure` takes back what was not used; never if none.
    pub(crate) patience: Option<u64>,
    pub(crate) limits: Limits,
}

/// Limits on the adversary's steps that change counters or stay under way; everything else it may do without limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) losses: u8,
    pub(crate) repeats: u8,
    pub(crate) deaths: u8,
    pub(crate) asks_again: u8,
    /// The receiver's link goes down and up again.
    pub(crate) flaps: u8,
}

impl Setup {
    pub(crate) fn new(kind: SchedulerKind, hosts: u16, k: u8) -> Self {
        let limits = Limits { losses: u8::MAX, asks_again: u8::MAX, ..Limits::default() };
        Self { kind, hosts, contexts: 1, k, bunched: true, transit: 1, patience: None, limits }
    }

    /// contexts · K.
    pub(crate) fn bound(&self) -> usize {
        usize::from(self.hosts) * usize::from(self.contexts) * usize::from(self.k)
    }

    fn params(&self) -> RackParams {
        RackParams {
            slot: SLOT,
            k: self.k,
            t: 0,
            contexts: self.contexts,
            timeout: self.patience.map_or(Span::from_ms(10_000), |slots| SLOT * slots / 16),
            horizon: SLOT,
            early: Span::ZERO,
            ..RackParams::new(self.kind, self.hosts + 1, Rate::gbps(100))
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ContextState {
    Idle,
    /// With the earliest slot that it was ever granted for this burst.
    Asking(Option<Time>),
    /// Some frames have come; this many have not, and the next one cannot before this.
    Sending(u8, Time),
    Dead,
}

#[derive(Clone, Copy, Debug)]
struct SearchContext {
    state: ContextState,
    burst: u32,
    /// Time from which its wire is free for the next frame.
    free: Time,
    /// Bursts of which every frame joined the queue, and whether this one has so far.
    complete: u8,
    whole: bool,
}

/// A frame that was repeated on its way and will come again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Repeated {
    context: u16,
    burst: u32,
    /// Index of the frame in its burst; `None` for the RSV.
    frame: Option<u8>,
}

/// Step that can happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Ask(u16),
    /// The RSV comes, and will come once more.
    AskTwice(u16),
    AskAgain(u16),
    Send(u16),
    /// The frame comes, and will come once more.
    SendTwice(u16),
    Lose(u16),
    /// Something that was repeated comes again.
    Repeat(u8),
    /// A host stops; its port goes down, or the switch does not notice.
    Die(u16, bool),
    Flap,
    Tick,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ask(context) => write!(f, "{} asks and is granted", name(*context)),
            Self::AskTwice(context) => write!(f, "{} asks; its RSV is repeated on the way", name(*context)),
            Self::AskAgain(context) => write!(f, "{} asks again, its GRT is lost", name(*context)),
            Self::Send(context) => write!(f, "a frame of {} comes", name(*context)),
            Self::SendTwice(context) => write!(f, "a frame of {} comes, and is repeated on the way", name(*context)),
            Self::Lose(context) => write!(f, "a frame of {} is lost on its way to the switch", name(*context)),
            Self::Repeat(_) => f.write_str("what was repeated comes again"),
            Self::Die(host, true) => write!(f, "host {host} dies and the switch notices"),
            Self::Die(host, false) => write!(f, "host {host} dies unnoticed"),
            Self::Flap => f.write_str("the receiver's link goes down and up"),
            Self::Tick => f.write_str("a slot passes"),
        }
    }
}

fn name(context: u16) -> char {
    char::from(b'A' + context as u8)
}

/// The port, everything that is under way to it, and what the adversary may still do.
#[derive(Clone)]
pub(crate) struct SearchPort {
    setup: Setup,
    now: Time,
    switch: ReservingSwitch,
    contexts: Vec<SearchContext>,
    /// By the host that each frame came from.
    queue: VecDeque<(u16, Charge)>,
    repeated: Vec<Repeated>,
    limits: Limits,
    /// True if the last step was a frame of a burst that was granted and did not pass.
    pub(crate) refused: bool,
    /// The host that was answered late last: the next one's turn follows from it.
    answered: u16,
}

impl SearchPort {
    pub(crate) fn new(setup: Setup) -> Self {
        let context =
            SearchContext { state: ContextState::Idle, burst: FIRST_BURST, free: Time::ZERO, complete: 0, whole: true };
        Self {
            setup,
            now: Time::ZERO,
            switch: ReservingSwitch::new(setup.params(), 1).expect("parameters"),
            contexts: vec![context; usize::from(setup.hosts * setup.contexts)],
            queue: VecDeque::new(),
            repeated: Vec::new(),
            limits: setup.limits,
            refused: false,
            answered: 0,
        }
    }

    pub(crate) fn queued(&self) -> usize {
        self.queue.len()
    }

    fn receiver(&self) -> u16 {
        self.setup.hosts
    }

    fn host(&self, context: u16) -> u16 {
        context / self.setup.contexts
    }

    /// Earliest time at which the next frame of a context can be there, whole: a slot after it has begun to come.
    fn due(&self, context: &SearchContext) -> Option<Time> {
        match context.state {
            ContextState::Asking(start) => start.map(|start| context.free.max(start + SLOT * self.setup.transit)),
            ContextState::Sending(_, due) => Some(context.free.max(due)),
            ContextState::Idle | ContextState::Dead => None,
        }
    }

    /// Everything that can happen next.
    pub(crate) fn steps(&self) -> Vec<Step> {
        let mut steps = vec![Step::Tick];
        let limits = self.limits;
        for (number, context) in (0..).zip(&self.contexts) {
            match context.state {
                ContextState::Idle => {
                    steps.push(Step::Ask(number));
                    steps.extend((limits.repeats > 0).then_some(Step::AskTwice(number)));
                }
                ContextState::Asking(_) => {
                    steps.extend((limits.asks_again > 0).then_some(Step::AskAgain(number)));
                }
                ContextState::Sending(..) | ContextState::Dead => (),
            }
            if self.due(context).is_some_and(|due| due <= self.now) {
                steps.push(Step::Send(number));
                steps.extend((limits.losses > 0).then_some(Step::Lose(number)));
                steps.extend((limits.repeats > 0).then_some(Step::SendTwice(number)));
            }
        }
        steps.extend((0..self.repeated.len()).map(|at| Step::Repeat(at as u8)));
        if limits.deaths > 0 {
            steps.extend((0..self.setup.hosts).flat_map(|host| [true, false].map(|noticed| Step::Die(host, noticed))));
        }
        steps.extend((limits.flaps > 0).then_some(Step::Flap));
        steps
    }

    /// Does one thing.
    pub(crate) fn take(&mut self, step: Step) {
        self.refused = false;
        match step {
            Step::Tick => self.tick(),
            Step::Ask(context) => self.ask(context),
            Step::AskTwice(context) => {
                self.ask(context);
                self.repeat(context, None);
            }
            Step::AskAgain(context) => {
                spend(&mut self.limits.asks_again);
                self.rsv_comes(context, self.contexts[usize::from(context)].burst);
            }
            Step::Send(context) => self.send(context, true),
            Step::Lose(context) => {
                spend(&mut self.limits.losses);
                self.send(context, false);
            }
            Step::SendTwice(context) => {
                self.repeat(context, Some(self.next_index(context)));
                self.send(context, true);
            }
            Step::Repeat(at) => {
                let Repeated { context, burst, frame } = self.repeated.remove(usize::from(at));
                match frame {
                    Some(index) => _ = self.data_comes(context, burst, index),
                    None => self.rsv_comes(context, burst),
                }
            }
            Step::Die(host, noticed) => self.die(host, noticed),
            Step::Flap => {
                spend(&mut self.limits.flaps);
                self.switch.on_port_down(self.receiver(), |_| ());
            }
        }
        self.wake();
    }

    fn tick(&mut self) {
        self.now += SLOT;
        if let Some((_, charge)) = self.queue.pop_front() {
            self.switch.on_gone(charge);
        }
        self.wake();
    }

    fn wake(&mut self) {
        while let Some(answer) = self.switch.on_wake(self.now) {
            self.answered = answer.port;
            self.grant(answer.port * self.setup.contexts + answer.message.about.id.context, &answer.message);
        }
    }

    fn next_index(&self, context: u16) -> u8 {
        match self.contexts[usize::from(context)].state {
            ContextState::Sending(left, _) => self.setup.k - left,
            _ => 0,
        }
    }

    fn repeat(&mut self, context: u16, frame: Option<u8>) {
        spend(&mut self.limits.repeats);
        let burst = self.contexts[usize::from(context)].burst;
        self.repeated.push(Repeated { context, burst, frame });
    }

    fn ask(&mut self, number: u16) {
        let context = &mut self.contexts[usize::from(number)];
        context.burst += 1;
        (context.state, context.whole) = (ContextState::Asking(None), true);
        let burst = context.burst;
        self.rsv_comes(number, burst);
    }

    fn id(&self, context: u16, burst: u32) -> BurstId {
        BurstId { host_epoch: 1, context: context % self.setup.contexts, burst }
    }

    fn rsv_comes(&mut self, context: u16, burst: u32) {
        let demand = Demand { frames: self.setup.k, bytes: u32::from(self.setup.k) * ON_WIRE };
        let peer = HostKey::new(u64::from(self.receiver()));
        let about = Reservation { id: self.id(context, burst), demand, peer, ..Reservation::default() };
        let from = self.host(context);
        let visit = MessageVisit { from, peer: Some(self.receiver()), source: Some(from), token: 0 };
        let message = ReserveMessage { verb: ReserveVerb::Rsv, about };
        if let MessageAnswer::Reply(reply) = self.switch.on_message(self.now, visit, &message) {
            self.grant(context, &reply);
        }
    }

    fn grant(&mut self, number: u16, reply: &ReserveMessage) {
        let context = &mut self.contexts[usize::from(number)];
        let (ReserveVerb::Grt(grant), ContextState::Asking(before)) = (reply.verb, context.state) else { return };
        if context.burst == reply.about.id.burst {
            let start = self.now + grant.chosen();
            context.state = ContextState::Asking(Some(before.map_or(start, |before| before.min(start))));
        }
    }

    fn send(&mut self, number: u16, comes: bool) {
        let burst = self.contexts[usize::from(number)].burst;
        let index = self.next_index(number);
        let passed = comes && self.data_comes(number, burst, index);
        self.refused = comes && !passed;
        let Setup { k, bunched, .. } = self.setup;
        let now = self.now;
        let due = self.due(&self.contexts[usize::from(number)]).unwrap_or(now);
        let context = &mut self.contexts[usize::from(number)];
        let left = k - index;
        context.free = if bunched { Time::ZERO } else { now + SLOT };
        context.state = if left > 1 { ContextState::Sending(left - 1, due + SLOT) } else { ContextState::Idle };
        context.whole &= passed;
        context.complete += u8::from(left == 1 && context.whole);
    }

    /// Passes a data frame to the switch; true if it joined the queue.
    fn data_comes(&mut self, context: u16, burst: u32, index: u8) -> bool {
        let id = self.id(context, burst);
        let mark = DataMark { id, switch_epoch: 1, index, of: self.setup.k, ..DataMark::default() };
        let from = self.host(context);
        let frame = FrameVisit { from, to: self.receiver(), len: FRAME };
        let answer = self.switch.on_data(self.now, frame, Some(&mark));
        if let DataAnswer::Pass(charge) = answer {
            self.queue.push_back((from, charge));
        }
        matches!(answer, DataAnswer::Pass(_))
    }

    fn die(&mut self, host: u16, noticed: bool) {
        spend(&mut self.limits.deaths);
        let first = usize::from(host * self.setup.contexts);
        for context in &mut self.contexts[first..first + usize::from(self.setup.contexts)] {
            context.state = ContextState::Dead;
        }
        if noticed {
            // Its link is down: nothing comes from there any more.
            let setup = self.setup;
            self.repeated.retain(|repeated| repeated.context / setup.contexts != host);
            self.switch.on_port_down(host, |_| ());
        }
    }
}

fn spend(limit: &mut u8) {
    // The highest one means that there is none.
    *limit -= u8::from(*limit < u8::MAX);
}
