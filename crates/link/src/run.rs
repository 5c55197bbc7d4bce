//! The loop of one link: turn, and when there is nothing to do, spin for a moment before going to sleep.
//!
//! How it waits decides the tail. Sleeping costs the time that a processor takes to wake up, each time; spinning
//! starves other users of the processor, such as the peer's loop or TCP itself. Giving way does neither: the
//! loop yields while a recovery is open and for a moment after the last frame, and only then sleeps.
//!
//! On a busy host giving way is dear: the processor comes back only after a time slice of everyone else's, milliseconds in
//! which frames pile up. A yield that took that long is remembered. For a while the loop then works without yielding as
//! long as there is work, and sleeps as soon as there is none: who slept is woken before those who never do.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use guard::session::SessionState;
use guard::{EndpointCommand, EndpointEvent};
use hdrhistogram::Histogram;
use units::{Prob, Span, Time};
use wire::link::SessionRefusal;

use crate::datapath::{FrameFault, Link, LinkEvent};
use crate::status::{LinkIdentity, LinkStatus, WireThroughput};
use crate::tell::{LogLimiter, LogTopic};
use linux::clock::{Clock, instance};
use linux::poll;

/// How long the loop stays awake after the last frame.
const AWAKE: Span = Span::from_us(200);
/// Between two looks at what changes slowly.
const LOOK_EVERY: Span = Span::from_ms(1_000);
/// How long the status reports a problem that did not end protection.
const REMEMBERED: Span = Span::from_ms(60_000);
/// How long a link that ends waits for its peer to agree.
const FAREWELL: Span = Span::from_ms(1_000);
/// Time is counted in picoseconds, and 64 bits of them last for 213 days: before that, the link starts over.
const LONGEST_LIFE: Span = Span::from_ms(100 * 86_400_000);
/// Turns between two looks at requests while there is much to do.
const TURNS: u32 = 16;
/// A yield that takes longer than this has cost somebody else's time slice.
const DEAR: Span = Span::from_ms(1);
/// So many of these in a row, and others compute on this processor: TCP's own threads are not busy for that long each time.
const DEAR_IN_A_ROW: u32 = 4;
/// How long the loop then does without yielding.
const ABSTAINS: Span = Span::from_ms(50);
/// Nobody waits longer than this for an answer.
const ANSWERED_WITHIN: Duration = Duration::from_secs(2);

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
pub struct LinkHandle {
    requests: Sender<LoopRequest>,
    wake: PipeWriter,
}

impl LinkHandle {
    /// False if the link is no longer running.
    pub fn ask(&self, request: LoopRequest) -> bool {
        self.requests.send(request).is_ok() && (&self.wake).write_all(&[1]).is_ok()
    }

    pub fn status(&self) -> Option<LinkStatus> {
        self.prompt_status().ok()
    }

    /// Tells a link that has ended from one that does not answer in time: its machine may have been stopped for a while.
    pub(crate) fn prompt_status(&self) -> Result<LinkStatus, NoStatus> {
        let (answer, answered) = mpsc::channel();
        if !self.ask(LoopRequest::Status(answer)) {
            return Err(NoStatus::Ended);
        }
        answered.recv_timeout(ANSWERED_WITHIN).map_err(|error| match error {
            RecvTimeoutError::Timeout => NoStatus::Late,
            RecvTimeoutError::Disconnected => NoStatus::Ended,
        })
    }

    pub fn take_recovery(&self) -> Option<Histogram<u64>> {
        let (answer, answered) = mpsc::channel();
        self.ask(LoopRequest::Recovery(answer)).then(|| answered.recv_timeout(ANSWERED_WITHIN).ok()).flatten()
    }

    pub fn another(&self) -> io::Result<Self> {
        Ok(Self { requests: self.requests.clone(), wake: self.wake.try_clone()? })
    }
}

/// Why a link does not say how it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoStatus {
    Ended,
    Late,
}

/// The receiving end of a [`LinkHandle`].
#[derive(Debug)]
pub struct LoopRequests {
    requests: Receiver<LoopRequest>,
    wake: PipeReader,
}

pub fn handle() -> io::Result<(LinkHandle, LoopRequests)> {
    let (requests, receiver) = mpsc::channel();
    let (reader, writer) = io::pipe()?;
    // Who asks writes after it has asked, and may be kept from it in between: the loop does not wait for that.
    poll::set_nonblocking(reader.as_raw_fd())?;
    Ok((LinkHandle { requests, wake: writer }, LoopRequests { requests: receiver, wake: reader }))
}

/// What the owner of a loop hears of, a line at a time. It must not wait: frames would wait with it.
pub(crate) type LogSink<'a> = &'a mut dyn FnMut(&str);

pub struct Loop<'a> {
    link: Link,
    identity: LinkIdentity,
    requests: LoopRequests,
    clock: Clock,
    tell: LogSink<'a>,
    limiter: LogLimiter,
    throughput: WireThroughput,
    problem: Option<String>,
    problem_at: Time,
    /// Frames received from a wire that then went down.
    down_at: Option<u64>,
    /// Giving way costs a time slice, as far as is known, until then.
    dear_until: Time,
    /// Dear yields since the last cheap one.
    dear_yields: u32,
    /// Counts the rounds of the loop, for who watches that it goes round.
    beats: Option<&'a AtomicU64>,
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
            dear_until: Time::ZERO,
            dear_yields: 0,
            beats: None,
        }
    }

    /// Counts each round of the loop there, at least one a second.
    pub(crate) fn with_beats(self, beats: &'a AtomicU64) -> Self {
        Self { beats: Some(beats), ..self }
    }

    /// Until asked to stop; the last status. Protection is asked for from the start if `activate` says so.
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
                self.tell_news();
                if self.serve(now) && stop_at == Time::NEVER {
                    stop_at = now + FAREWELL;
                    self.link.command(now, EndpointCommand::Deactivate);
                }
                if stop_at <= now || stop_at != Time::NEVER && self.has_parted() {
                    return Ok(self.status(now));
                }
                if now.since(Time::ZERO) > LONGEST_LIFE && self.start_over(now, &mut parting) {
                    (last_busy, next_look, self.dear_until) = (Time::ZERO, Time::ZERO, Time::ZERO);
                    continue;
                }
                if next_look <= now {
                    next_look = now + LOOK_EVERY;
                    self.link.look_at_kernel();
                    self.throughput.look(now, &self.link);
                }
            }
            let cheap = self.dear_until <= now;
            if busy {
                last_busy = now;
                self.notice_wire_up();
                // Frames come in bursts, and cost the host less if they are joined: let their sender go on.
                if cheap {
                    self.give_way();
                }
            } else if cheap && (now.since(last_busy) < AWAKE || self.link.is_recovering() && self.down_at.is_none()) {
                self.give_way();
            } else {
                self.sleep(now, next_look.since(now).min(stop_at.since(now)))?;
            }
        }
    }

    /// Lets others have the processor, and remembers if they kept it for long.
    fn give_way(&mut self) {
        let before = self.clock.now();
        poll::give_way();
        let after = self.clock.now();
        self.dear_yields = if after.since(before) > DEAR { self.dear_yields + 1 } else { 0 };
        if self.dear_yields == DEAR_IN_A_ROW {
            (self.dear_until, self.dear_yields) = (after + ABSTAINS, 0);
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
        let waited = self.link.wait(now, most, self.requests.wake.as_raw_fd());
        // A byte is written after each request. One that comes late, after the request was served, wakes the loop once more.
        let _ = self.requests.wake.read(&mut [0; 64]);
        match waited {
            Ok(()) => Ok(()),
            Err(error) => self.survive(error).map(drop),
        }
    }

    fn has_parted(&self) -> bool {
        let context = self.link.context();
        self.link.endpoint().state() == SessionState::Dormant
            && !context.has_queued()
            && context.outgoing.is_empty()
            && !context.woken
    }

    /// A wire that is down may come up again; anything else ends the loop.
    fn survive(&mut self, error: io::Error) -> io::Result<bool> {
        if error.raw_os_error() != Some(libc::ENETDOWN) {
            return Err(error);
        }
        if self.down_at.is_none() {
            self.down_at = Some(self.link.context().tally.wire_rx_frames);
            self.problem = Some(format!("{} is down", self.identity.interface));
            (self.tell)(&format!("{} is down: waiting for it to come up", self.identity.interface));
        }
        Ok(false)
    }

    fn notice_wire_up(&mut self) {
        if self.down_at.is_some_and(|frames| self.link.context().tally.wire_rx_frames > frames) {
            self.down_at = None;
            self.problem = None;
            (self.tell)(&format!("{} is up again", self.identity.interface));
        }
    }

    /// Answers what is asked. True if the loop is to end.
    fn serve(&mut self, now: Time) -> bool {
        let mut stop = false;
        while let Ok(request) = self.requests.requests.try_recv() {
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
        LinkStatus::of(&self.link, &self.identity, now, &self.throughput, problem)
    }

    fn tell_news(&mut self) {
        for news in self.link.news() {
            let (now, text) = (self.clock.now(), self.in_words(news));
            let times = if let LinkEvent::Trouble(_, frames) = news { frames } else { 1 };
            // A refusal is repeated every second.
            let known = self.problem.as_ref() == Some(&text) && matches!(news, LinkEvent::Endpoint(_));
            if !known && let Some(line) = self.limiter.admit(now, LogTopic::of(&news), times, &text) {
                (self.tell)(&line);
            }
            self.problem = match news {
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

    fn in_words(&self, news: LinkEvent) -> String {
        let (name, interface) = (&self.identity.name, &self.identity.interface);
        let peer = self.link.context().framing.peer().map_or("the peer".to_owned(), |peer| peer.to_string());
        match news {
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
            LinkEvent::Trouble(FrameFault::Stranger(from), _) => format!(
                "{name}: {from} drives the link at {interface}, but the peer is {peer}; \
                 is the cable in the right port? its frames are dropped"
            ),
            LinkEvent::Trouble(FrameFault::Unchecked, _) => {
                format!("{name}: frames come with a check sum that does not fit; has the peer --crc too?")
            }
            LinkEvent::Trouble(FrameFault::Replayed, _) => format!(
                "{name}: frames come that came before, and are dropped; does somebody play recorded ones again, or does the \
                 wire double them?"
            ),
            LinkEvent::Trouble(FrameFault::KeyMissing, _) => {
                format!("{name} is not protected: the peer uses --key, this end does not; use it at both")
            }
            LinkEvent::Trouble(FrameFault::Forged, _) => {
                format!("{name}: frames come without a valid tag; has the peer got the same --key?")
            }
        }
    }

    /// Why the two ends do not agree, and what to do.
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
