//! The loop of one link: turn, and when there is nothing to do, spin for a moment before going to sleep.
//!
//! The way of waiting decides the tail. Sleeping costs the time that a processor takes to wake up, each time; spinning
//! starves other users of the processor, such as the peer's loop or TCP itself. Giving way does neither: the
//! loop yields while a recovery is open and for a moment after the last frame, and only then sleeps.
//!
//! On a busy host giving way is dear: the processor comes back only after a time slice of everyone else's, milliseconds in
//! which frames pile up. A yield that took that long is remembered. For a while the loop then works without yielding as
//! long as there is work, and sleeps as soon as there is none: who slept is woken before those who never do.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;

use guard::session::SessionState;
use guard::{EndpointCommand, EndpointEvent};
use hdrhistogram::Histogram;
use units::{Prob, Span, Time};
use wire::link::SessionRefusal;

use crate::datapath::{FrameFault, Link, LinkEvent};
use crate::log_topics::LogTopic;
use crate::status::{LinkIdentity, LinkStatus, WireThroughput};
use daemon::keeper::KeeperWatch;
use daemon::limiter::LogLimiter;
use linux::clock::{Clock, instance};
use linux::mailbox::{Mailbox, MailboxReader, NoAnswer, mailbox};
use linux::poll::YieldCost;

/// Time for which the loop stays awake after the last frame.
const AWAKE: Span = Span::from_us(200);
/// Time between two looks at what changes slowly.
const LOOK_EVERY: Span = Span::from_ms(1_000);
/// Time for which the status reports a problem that did not end protection.
const REMEMBERED: Span = Span::from_ms(60_000);
/// Time for which a link that ends waits for its peer to agree.
const FAREWELL: Span = Span::from_ms(1_000);
/// Time is counted in picoseconds, and 64 bits of them last for 213 days: before that, the link starts over.
const LONGEST_LIFE: Span = Span::from_ms(100 * 86_400_000);
/// Turns between two looks at requests while there is much to do.
const TURNS: u32 = 16;
#[derive(Debug)]
pub enum LoopRequest {
    /// Protection; the loss of what is sent here, if it was measured.
    Activate(Option<Prob>),
    Deactivate,
    Status(Sender<LinkStatus>),
    /// Delays of recoveries since this was last asked, in nanoseconds.
    Recovery(Sender<Histogram<u64>>),
    /// Ends protection without losing a frame, then the loop.
    Stop,
}

/// The way to ask something of a running link, from any thread.
#[derive(Debug)]
pub struct LinkHandle(Mailbox<LoopRequest>);

impl LinkHandle {
    /// False if the link is no longer running.
    pub fn ask(&self, request: LoopRequest) -> bool {
        self.0.send(request)
    }

    pub fn status(&self) -> Option<LinkStatus> {
        self.prompt_status().ok()
    }

    /// Tells a link that has ended from one that does not answer in time: its machine may have been stopped for a while.
    pub(crate) fn prompt_status(&self) -> Result<LinkStatus, NoAnswer> {
        self.0.ask(LoopRequest::Status)
    }

    pub fn take_recovery(&self) -> Option<Histogram<u64>> {
        self.0.ask(LoopRequest::Recovery).ok()
    }

    pub fn another(&self) -> io::Result<Self> {
        self.0.another().map(Self)
    }
}

/// The receiving end of a [`LinkHandle`].
pub type LoopRequests = MailboxReader<LoopRequest>;

pub fn handle() -> io::Result<(LinkHandle, LoopRequests)> {
    let (mailbox, requests) = mailbox()?;
    Ok((LinkHandle(mailbox), requests))
}

/// Lines for the owner of a loop, one at a time. It must not wait: frames would wait with it.
pub(crate) type LogSink<'a> = &'a mut dyn FnMut(&str);

pub struct Loop<'a> {
    link: Link,
    identity: LinkIdentity,
    requests: LoopRequests,
    clock: Clock,
    tell: LogSink<'a>,
    limiter: LogLimiter<LogTopic>,
    throughput: WireThroughput,
    problem: Option<String>,
    problem_at: Time,
    /// Frames received from a wire that then went down.
    down_at: Option<u64>,
    yields: YieldCost,
    /// Counts the rounds of the loop, for who watches that it goes round.
    beats: Option<&'a AtomicU64>,
    keeper: Option<&'a KeeperWatch<'a>>,
}

impl std::fmt::Debug for Loop<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loop").field("link", &self.link).finish_non_exhaustive()
    }
}

impl<'a> Loop<'a> {
    pub fn new(link: Link, identity: LinkIdentity, requests: LoopRequests, tell: LogSink<'a>) -> Self {
        let throughput = WireThroughput::default();
        let clock = Clock::start();
        Self {
            link,
            identity,
            requests,
            clock,
            tell,
            limiter: LogLimiter::default(),
            throughput,
            problem: None,
            problem_at: Time::ZERO,
            down_at: None,
            yields: YieldCost::default(),
            beats: None,
            keeper: None,
        }
    }

    /// Counts each round of the loop there, at least one a second.
    pub(crate) fn with_beats(self, beats: &'a AtomicU64) -> Self {
        Self { beats: Some(beats), ..self }
    }

    /// Reports how it is with the keeper.
    pub(crate) fn with_keeper(self, keeper: &'a KeeperWatch<'a>) -> Self {
        Self { keeper: Some(keeper), ..self }
    }

    /// Runs until asked to stop; returns the last status. Protection is asked for from the start if `activate` says so.
    pub fn run(mut self, activate: bool) -> io::Result<LinkStatus> {
        if activate {
            self.link.command(self.clock.now(), EndpointCommand::Offer);
        }
        let (mut last_busy, mut next_look, mut stop_at) = (Time::ZERO, Time::ZERO, Time::NEVER);
        let mut parting = None;
        let mut turns = 0u32;
        loop {
            let now = self.clock.now();
            let busy = match self.link.turn(now) {
                Ok(busy) => busy,
                Err(error) => self.survive(error)?,
            };
            turns += 1;
            if !busy || turns >= TURNS {
                turns = 0;
                self.beat();
                self.log_events();
                if self.serve(now) && stop_at == Time::NEVER {
                    stop_at = now + FAREWELL;
                    self.link.command(now, EndpointCommand::Deactivate);
                }
                if stop_at <= now || stop_at != Time::NEVER && self.has_parted() {
                    return Ok(self.status(now));
                }
                if now.since(Time::ZERO) > LONGEST_LIFE && self.start_over(now, &mut parting) {
                    (last_busy, next_look, self.yields) = (Time::ZERO, Time::ZERO, YieldCost::default());
                    continue;
                }
                if next_look <= now {
                    next_look = now + LOOK_EVERY;
                    self.link.look_at_kernel();
                    self.throughput.look(now, &self.link);
                    self.log_keeper_reports();
                }
            }
            let cheap = self.yields.is_cheap(now);
            if busy {
                last_busy = now;
                self.notice_wire_up();
                // Frames come in bursts, and cost the host less if they are joined: let their sender go on.
                if cheap {
                    self.yields.give_way(&self.clock);
                }
            } else if cheap && (now.since(last_busy) < AWAKE || self.link.is_recovering() && self.down_at.is_none()) {
                self.yields.give_way(&self.clock);
            } else {
                self.sleep(now, next_look.since(now).min(stop_at.since(now)))?;
            }
        }
    }

    fn log_keeper_reports(&mut self) {
        for line in self.keeper.map(KeeperWatch::take_reports).unwrap_or_default() {
            (self.tell)(&format!("{}: {line}", self.identity.name));
        }
    }

    fn beat(&self) {
        if let Some(beats) = self.beats {
            beats.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Takes leave of the peer, and after that begins a new incarnation at time zero. True when it has begun.
    fn start_over(&mut self, now: Time, parting: &mut Option<(Option<EndpointCommand>, Time)>) -> bool {
        let (command, by) = *parting.get_or_insert_with(|| {
            let command = match (self.link.wants_protection(), self.link.endpoint().is_deactivated()) {
                (true, _) => Some(EndpointCommand::Offer),
                (false, true) => Some(EndpointCommand::Deactivate),
                (false, false) => None,
            };
            self.link.command(now, EndpointCommand::Deactivate);
            (command, now + FAREWELL)
        });
        if now < by && !self.has_parted() {
            return false;
        }
        *parting = None;
        self.clock = Clock::start();
        self.throughput = WireThroughput::default();
        self.limiter = LogLimiter::default();
        self.link.start_over(instance());
        if let Some(command) = command {
            self.link.command(Time::ZERO, command);
        }
        true
    }

    fn sleep(&mut self, now: Time, most: Span) -> io::Result<()> {
        let waited = self.link.wait(now, most, self.requests.fd());
        self.requests.awake();
        match waited {
            Ok(()) => Ok(()),
            Err(error) => self.survive(error).map(drop),
        }
    }

    fn has_parted(&self) -> bool {
        let context = self.link.context();
        self.link.endpoint().state() == SessionState::Dormant
            && !context.memory.has_queued()
            && context.actions.outgoing.is_empty()
            && !context.actions.woken
    }

    /// A wire that is down may come up again; anything else ends the loop.
    fn survive(&mut self, error: io::Error) -> io::Result<bool> {
        if error.raw_os_error() != Some(libc::ENETDOWN) {
            return Err(error);
        }
        if self.down_at.is_none() {
            self.down_at = Some(self.link.context().statistics.tally.wire_rx_frames);
            self.problem = Some(format!("{} is down", self.identity.interface));
            (self.tell)(&format!("{} is down: waiting for it to come up", self.identity.interface));
        }
        Ok(false)
    }

    fn notice_wire_up(&mut self) {
        if self.down_at.is_some_and(|frames| self.link.context().statistics.tally.wire_rx_frames > frames) {
            self.down_at = None;
            self.problem = None;
            (self.tell)(&format!("{} is up again", self.identity.interface));
        }
    }

    /// Answers what is asked. True if the loop is to end.
    fn serve(&mut self, now: Time) -> bool {
        let mut stop = false;
        while let Some(request) = self.requests.next() {
            match request {
                LoopRequest::Activate(loss) => {
                    if let Some(loss) = loss {
                        self.link.command(now, EndpointCommand::Expect(loss));
                    }
                    self.link.command(now, EndpointCommand::Activate);
                }
                LoopRequest::Deactivate => self.link.command(now, EndpointCommand::Deactivate),
                // The process that asked may have gone away since.
                LoopRequest::Status(answer) => drop(answer.send(self.status(now))),
                LoopRequest::Recovery(answer) => drop(answer.send(self.link.take_recovery())),
                LoopRequest::Stop => stop = true,
            }
        }
        stop
    }

    fn status(&mut self, now: Time) -> LinkStatus {
        self.link.look_at_kernel();
        // A problem that did not keep the link from being protected is soon no longer reported.
        let passed = self.link.endpoint().state() == SessionState::Active && now.since(self.problem_at) > REMEMBERED;
        let problem = if passed { None } else { self.problem.clone() };
        let status = LinkStatus::of(&self.link, &self.identity, now, &self.throughput, problem);
        LinkStatus { keeper: self.keeper.map(KeeperWatch::status).unwrap_or_default(), ..status }
    }

    fn log_events(&mut self) {
        for event in self.link.take_events() {
            let (now, text) = (self.clock.now(), self.line_of(event));
            let times = if let LinkEvent::Fault(_, frames) = event { frames } else { 1 };
            // A refusal is repeated every second.
            let known = self.problem.as_ref() == Some(&text) && matches!(event, LinkEvent::Endpoint(_));
            if !known && let Some(line) = self.limiter.admit(now, LogTopic::of(&event), times, &text) {
                (self.tell)(&line);
            }
            self.problem = match event {
                LinkEvent::Endpoint(EndpointEvent::Activated | EndpointEvent::Deactivated) => None,
                LinkEvent::Endpoint(EndpointEvent::Level(_)) => self.problem.take(),
                _ => Some(text),
            };
            self.problem_at = now;
        }
        while let Some(line) = self.limiter.due(self.clock.now()) {
            (self.tell)(&line);
        }
    }

    fn line_of(&self, event: LinkEvent) -> String {
        let (name, interface) = (&self.identity.name, &self.identity.interface);
        let peer = self.link.context().framing.peer().map_or("the peer".to_owned(), |peer| peer.to_string());
        match event {
            LinkEvent::Endpoint(EndpointEvent::Activated) => {
                format!("{name} is protected: {peer} answers on {interface}")
            }
            LinkEvent::Endpoint(EndpointEvent::Deactivated) => {
                format!("{name} is no longer protected, as agreed with its peer")
            }
            LinkEvent::Endpoint(EndpointEvent::PeerLost) => {
                format!("{name}: the peer restarted or fell silent; asking it again, frames pass unprotected")
            }
            LinkEvent::Endpoint(EndpointEvent::Level(level)) => {
                format!("{name}: the measured loss calls for mode {}", crate::status::level(level))
            }
            LinkEvent::Endpoint(EndpointEvent::Refused(reason)) => {
                format!("{name} is not protected: {}", self.refusal(reason))
            }
            LinkEvent::Fault(FrameFault::Stranger(from), _) => format!(
                "{name}: {from} drives the link at {interface}, but the peer is {peer}; \
                 is the cable in the right port? its frames are dropped"
            ),
            LinkEvent::Fault(FrameFault::Unchecked, _) => {
                format!("{name}: frames come with a check sum that does not fit; has the peer --crc too?")
            }
            LinkEvent::Fault(FrameFault::Replayed, _) => format!(
                "{name}: frames come that came before, and are dropped; does somebody play recorded ones again, or does the \
                 wire double them?"
            ),
            LinkEvent::Fault(FrameFault::KeyMissing, _) => {
                format!("{name} is not protected: the peer uses --key, this end does not; use it at both")
            }
            LinkEvent::Fault(FrameFault::Forged, _) => {
                format!("{name}: frames come without a valid tag; has the peer got the same --key?")
            }
        }
    }

    /// Reason why the two ends do not agree, and what to do.
    fn refusal(&self, reason: SessionRefusal) -> String {
        let theirs = self.link.endpoint().peer_agreement().unwrap_or(self.link.endpoint().agreement());
        let ours = self.link.endpoint().agreement();
        match reason {
            SessionRefusal::Version => format!(
                "the peer speaks version {} of the protocol, this end version {}; run the same hitless at both",
                theirs.version, ours.version
            ),
            SessionRefusal::Classes => "the peer was started with another --mode; give both ends the same".to_owned(),
            SessionRefusal::Window => format!("the peer's window of {} frames is not possible", theirs.window),
            SessionRefusal::Mtu => format!(
                "the peer carries frames of up to {} bytes, this end {}; give both ends the same --mtu",
                theirs.mtu, ours.mtu
            ),
            SessionRefusal::Seal => {
                let named =
                    |code: u8| ["no seal", "--crc", "--key"].get(usize::from(code)).copied().unwrap_or("a seal");
                format!("the peer uses {}, this end {}; use the same at both", named(theirs.seal), named(ours.seal))
            }
            SessionRefusal::Deactivated => {
                "the peer was deactivated; to protect the link, say hitless link activate at either end".to_owned()
            }
        }
    }
}
