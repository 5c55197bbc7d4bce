//! One protected link at work: moves frames between the host, the endpoint and the wire.
//!
//! ```text
//!   host ──super-frames──▶ cut ──▶ queue ──▶ Endpoint ──▶ wire
//!   host ◀──super-frames── join ◀────────── Endpoint ◀── wire
//! ```
//!
//! Sequence numbers are given after cutting; order is restored before joining. [`Link::turn`] does all that
//! can be done now and never waits; [`Link::wait`] waits for the next thing to happen.
//!
//! The queue before the wire ([`standin::FrameQueue`]) stays short: a bulk flow that keeps it long loses frames there, as at any
//! switch, instead of adding milliseconds to everything behind it.

mod copies;
mod events;
mod ingress;
mod stamped_frames;

use std::io;

use guard::{Endpoint, EndpointCommand, EndpointEvent, Params, SessionState, WIRE};
use hdrhistogram::Histogram;
use machine::{Machine, Pull};
use standin::backend::{Host, Wire};
use standin::{BATCH, FramePool, FrameQueue, HostSide, PoolFrame, WireSide, wait_for_sides};
use units::{Bytes, Prob, Rate, Span, Time};
use wire::link::SessionRefusal;

use crate::context::{HostGate, LinkContext};
use crate::frame::Framing;
use crate::stamp::Stamper;
use seal::SealReadiness;

use copies::CopiesByLoss;
use events::FrameFaults;
pub use events::{FrameFault, LinkEvent};
use ingress::WireIngress;

/// Treatment of the host's frames until the peer answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitAction {
    /// They pass unprotected.
    BestEffort,
    /// They wait, as far as the queue goes.
    Block,
    Discard,
}

/// Parts and settings that a link is made with.
#[derive(Debug)]
pub struct DatapathSetup {
    pub params: Params,
    /// The longest frame that the wire carries. Unprotected ones are not shortened by a header of ours, so this is more than
    /// the host sends.
    pub longest: usize,
    pub framing: Framing,
    /// Distinguishes this incarnation of the link from any other.
    pub instance: u32,
    pub init: InitAction,
    pub rate: Option<Rate>,
    /// Most bytes of the host's that may wait for the wire.
    pub queue: Bytes,
    /// Effective loss rate that the number of copies aims for, by the loss that the peer reports; the number is fixed if
    /// there is none.
    pub target: Option<Prob>,
    /// Reason why frames are not to be stamped, in one line; `None` if they are, where the wire and the peer can.
    pub no_stamps: Option<&'static str>,
}

pub struct Link {
    endpoint: Endpoint<PoolFrame>,
    context: LinkContext,
    host: HostSide,
    wire: WireSide,
    ingress: WireIngress,
    init: InitAction,
    /// Protection is asked for, whether it is in force or not.
    wanted: bool,
    pull_at: Time,
    copies: Option<CopiesByLoss>,
    /// Readiness of the seal when this was last looked at.
    opening: SealReadiness,
    events: Vec<LinkEvent>,
    faults: FrameFaults,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("endpoint", &self.endpoint.state()).finish_non_exhaustive()
    }
}

impl Link {
    pub fn new(setup: DatapathSetup, host: Box<dyn Host>, wire: Box<dyn Wire>) -> Self {
        let longest = setup.longest.max(setup.params.mtu as usize);
        let held = setup.params.window_frames * setup.params.classes.len() as u32 * 2;
        // Full-sized ones; short ones could be more, but slots are for them too.
        let waiting = (setup.queue.get() / u64::from(setup.params.mtu)).clamp(1_024, 8_192) as u32;
        let pool = FramePool::new(held + waiting + 8 * BATCH as u32, longest);
        let wire = WireSide::new(wire);
        let stamper = Stamper::new(setup.no_stamps.or_else(|| wire.no_super_frames()));
        Self {
            endpoint: Endpoint::new(setup.params, setup.instance),
            context: LinkContext::new(
                pool,
                setup.framing,
                FrameQueue::new(setup.queue, waiting as usize, setup.rate),
                setup.rate,
                stamper,
            ),
            host: HostSide::new(host),
            wire,
            ingress: WireIngress::default(),
            init: setup.init,
            wanted: false,
            pull_at: Time::ZERO,
            copies: setup.target.map(CopiesByLoss::new),
            opening: SealReadiness::Open,
            events: Vec::new(),
            faults: FrameFaults::default(),
        }
    }

    pub fn endpoint(&self) -> &Endpoint<PoolFrame> {
        &self.endpoint
    }

    pub fn context(&self) -> &LinkContext {
        &self.context
    }

    /// Returns a descriptor that keeps the carrier of the host's interface up as long as anybody has it.
    pub fn carrier(&self) -> Option<std::os::fd::OwnedFd> {
        self.host.carrier()
    }

    /// Delays of the recoveries since this was last asked, in nanoseconds.
    pub fn take_recovery(&mut self) -> Histogram<u64> {
        self.context.statistics.take_recent_recovery()
    }

    pub fn wants_protection(&self) -> bool {
        self.wanted
    }

    pub fn command(&mut self, now: Time, command: EndpointCommand) {
        match command {
            EndpointCommand::Activate | EndpointCommand::Offer => self.wanted = true,
            EndpointCommand::Deactivate => self.wanted = false,
            EndpointCommand::SetCopies(_) | EndpointCommand::Expect(_) => {}
        }
        let command = match (command, &self.copies) {
            // The link knows the target of the copies.
            (EndpointCommand::Expect(loss), Some(by_loss)) => EndpointCommand::SetCopies(by_loss.expect(loss)),
            (command, _) => command,
        };
        self.endpoint.on_command(now, command, &mut self.context);
        self.set_gate();
    }

    /// Begins a new incarnation at time zero, as if the link had just been made. Frames on their way are released.
    pub fn start_over(&mut self, instance: u32) {
        self.endpoint = Endpoint::new(self.endpoint.params().clone(), instance);
        self.context.start_over();
        self.pull_at = Time::ZERO;
        self.copies = self.copies.take().map(CopiesByLoss::start_over);
        self.set_gate();
    }

    /// Returns the events since the last call.
    pub fn take_events(&mut self) -> Vec<LinkEvent> {
        let mut events = std::mem::take(&mut self.events);
        events.extend(self.faults.take());
        events
    }

    /// All that can be done now. True if anything was.
    pub fn turn(&mut self, now: Time) -> io::Result<bool> {
        self.context.set_time(now);
        let received =
            self.ingress.receive(now, &mut self.wire, &mut self.endpoint, &mut self.context, &mut self.faults)?;
        while let Some(key) = self.context.actions.due(now) {
            self.endpoint.on_timer(now, key, &mut self.context);
        }
        let LinkContext { memory, actions, statistics, .. } = &mut self.context;
        self.host.deliver(&mut actions.delivered, &mut memory.pool, &mut statistics.tally)?;
        self.greet();
        self.probe(now);
        let taken = self.host.receive(&mut self.context.intake())?;
        let sent = self.send(now)?;
        self.follow_events();
        self.set_copies(now);
        Ok(received || taken || sent)
    }

    /// Something is being recovered: worth not going to sleep for.
    pub fn is_recovering(&self) -> bool {
        self.endpoint.is_recovering()
    }

    /// Waits until there is something to do, or `most` has passed, or `other` is readable.
    pub fn wait(&mut self, now: Time, most: Span, other: std::os::fd::RawFd) -> io::Result<()> {
        let blocked = self.wire.is_blocked();
        let pull_at = match (blocked, self.context.actions.busy_until(now)) {
            (true, _) => Time::NEVER,
            (false, Some(free_at)) => free_at,
            (false, None) if self.context.actions.woken => now,
            (false, None) => self.pull_at,
        };
        let greet_at = if blocked { Time::NEVER } else { self.context.framing.greets_at() };
        let probe_at = if blocked { Time::NEVER } else { self.context.stamper.probe_at() };
        let next = self.context.actions.earliest_timer().min(pull_at).min(greet_at).min(probe_at);
        wait_for_sides(&mut self.wire, &mut self.host, next.since(now).min(most), other)
    }

    /// Counts what only the kernel knows of. Cheap enough for every second, not for every turn.
    pub(crate) fn look_at_kernel(&mut self) {
        self.context.statistics.tally.ring_overflow += self.wire.overflowed();
        self.context.statistics.tally.host_overflow += self.host.overflowed();
    }

    /// Pulls and sends until there is nothing more, or the wire has no room, or it would be too fast for it.
    fn send(&mut self, now: Time) -> io::Result<bool> {
        let wanted = self.context.actions.woken || self.context.memory.has_queued() || self.pull_at <= now;
        if !wanted && self.context.actions.outgoing.is_empty() {
            return Ok(false);
        }
        let mut any = false;
        loop {
            any |= self.flush()?;
            if !self.context.actions.outgoing.is_empty() {
                return Ok(any);
            }
            if !self.pull_batch(now) {
                break;
            }
        }
        any |= self.flush()?;
        Ok(any)
    }

    fn flush(&mut self) -> io::Result<bool> {
        self.context.end_run();
        let LinkContext { memory, actions, statistics, .. } = &mut self.context;
        self.wire.flush(&mut actions.outgoing, &mut memory.pool, &mut statistics.tally)
    }

    /// Pulls up to a batch; false when there is nothing more to pull for now.
    fn pull_batch(&mut self, now: Time) -> bool {
        if self.context.framing.opening() != SealReadiness::Open {
            // No frame can be sealed yet. Once one can be, `greet` wakes us.
            (self.context.actions.woken, self.pull_at) = (false, Time::NEVER);
            return false;
        }
        // A super-frame is one message.
        let most = if self.context.stamper.is_used() { 4 * BATCH } else { BATCH };
        while self.context.actions.outgoing.len() < most {
            if let Some(free_at) = self.context.actions.busy_until(now) {
                self.pull_at = self.pull_at.min(free_at);
                return false;
            }
            self.context.actions.woken = false;
            match self.endpoint.pull(now, WIRE, &mut self.context) {
                Pull::Sent => {}
                Pull::Last | Pull::Idle => {
                    self.pull_at = Time::NEVER;
                    return false;
                }
                Pull::NotBefore(at) => {
                    self.pull_at = at;
                    return false;
                }
            }
        }
        true
    }

    fn set_gate(&mut self) {
        self.opening = self.context.framing.opening();
        let waits = self.wanted && self.endpoint.state() != SessionState::Active || self.opening != SealReadiness::Open;
        self.context.memory.gate = match (self.init, self.opening) {
            (InitAction::Block, _) if waits => HostGate::Shut,
            (InitAction::Discard, _) if waits => HostGate::Discard,
            // With a key there is no other way to pass than sealed.
            (InitAction::BestEffort, SealReadiness::Soon) => HostGate::Shut,
            (InitAction::BestEffort, SealReadiness::Alone) => HostGate::Discard,
            _ => HostGate::Open,
        };
    }

    /// Lets the seal greet its peer, and acts on the result.
    fn greet(&mut self) {
        if !self.wire.is_blocked() {
            self.context.greet();
        }
        if self.context.framing.opening() == self.opening {
            return;
        }
        self.set_gate();
        // Waiting frames may go now, or waited in vain.
        self.context.actions.woken = true;
        if self.context.memory.gate == HostGate::Discard {
            self.context.discard_queued();
        }
    }

    /// Finds out whether stamped frames arrive, and nowhere else.
    fn probe(&mut self, now: Time) {
        let LinkContext { stamper, framing, statistics, .. } = &mut self.context;
        let tally = &mut statistics.tally;
        stamper.set_session(now, framing.peer_offers_stamps(), self.endpoint.state(), self.endpoint.identity());
        stamper.look_at_losses(now, tally.tx_stamped, self.endpoint.counters());
        tally.stamp_relapses = stamper.relapses();
        if !self.wire.is_blocked() {
            self.context.probe();
        }
    }

    fn follow_events(&mut self) {
        if self.context.actions.events.is_empty() {
            return;
        }
        for event in std::mem::take(&mut self.context.actions.events) {
            match event {
                EndpointEvent::Activated => self.wanted = true,
                // The peer took leave, or will not begin. If somebody here wants protection the endpoint keeps trying by
                // itself; until it succeeds there is nothing to wait for.
                EndpointEvent::Deactivated | EndpointEvent::Refused(SessionRefusal::Deactivated) => {
                    self.wanted = false;
                    self.context.framing.forget_peer();
                }
                // The endpoint tries again.
                EndpointEvent::Refused(_) | EndpointEvent::PeerLost => self.context.framing.forget_peer(),
                EndpointEvent::Level(_) => {}
            }
            self.events.push(LinkEvent::Endpoint(event));
        }
        self.set_gate();
    }

    fn set_copies(&mut self, now: Time) {
        let needed = self.copies.as_mut().and_then(|by_loss| by_loss.needed(self.endpoint.counters()));
        if let Some(copies) = needed.filter(|copies| *copies != self.endpoint.copies().0) {
            self.endpoint.on_command(now, EndpointCommand::SetCopies(copies), &mut self.context);
        }
    }
}
