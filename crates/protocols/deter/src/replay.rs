//! Both machines of a connection, run again from its log.
//!
//! Nothing but the log and the two machines takes part. Each end is run until it needs a frame that the other has not made
//! yet; then the other. At level `times` every call has its recorded time; at level `decisions` it has about that time, and
//! the log answers what the exact one decided. If neither end can go on, their logs do not belong together.

use std::collections::VecDeque;

use machine::{Machine, Out, Port, QueueId, TimeSite};
use tcp::{TcpConnection, TcpNote, TcpProgress, TcpSegment, TcpSite, TcpTick, TcpTimer};
use units::{Span, Time};
use wire::ip::Ecn;

use crate::clock::{ClockJitter, EndClock};
use crate::cursor::{EndCursor, LoggedCall, missing};
use crate::decisions::DecisionCursor;
use crate::digest::{DIGEST_EVERY, SegmentDigest};
use crate::log::{ConnectionLog, LogError, LogFault};
use crate::{LogLevel, LogSide, LoggedHandshake};

/// Frames of an end that are kept for the other: more than can be under way at once.
const KEPT: usize = 1 << 17;

/// Content of a frame that left an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// A segment of the machine.
    Segment(TcpSegment),
    /// A step of a handshake, by the driver.
    Handshake(LoggedHandshake),
}

/// A frame that left its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayedFrame {
    /// End that sent the frame.
    pub side: LogSide,
    /// Time at which its first bit left.
    pub at: Time,
    /// Number among all frames that the end sent, from 0.
    pub number: u64,
    /// Content of the frame.
    pub sent: Sent,
}

/// Looks at a replay; all of it may be ignored.
pub trait ReplayObserver {
    /// A frame leaves.
    fn sent(&mut self, _departure: ReplayedFrame) {}
    /// A machine notes something.
    fn note(&mut self, _side: LogSide, _now: Time, _note: TcpNote) {}
    /// A machine sets a timer, or stops it.
    fn armed(&mut self, _side: LogSide, _now: Time, _timer: TcpTimer, _at: Option<Time>) {}
    /// A timer expires.
    fn expired(&mut self, _side: LogSide, _now: Time, _timer: TcpTimer) {}
    /// Time gives the unusual answer.
    fn decided(&mut self, _side: LogSide, _now: Time, _site: TcpSite) {}
    /// A number that follows from the time is another than before.
    fn ticked(&mut self, _side: LogSide, _now: Time, _tick: TcpTick, _value: u64) {}
    /// A call of a machine is over.
    fn called(&mut self, _side: LogSide, _now: Time, _machine: &TcpConnection) {}
}

/// Ignores all.
impl ReplayObserver for () {}

/// First difference between a replay and its recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayDifference {
    /// End at which the replay differs.
    pub side: LogSide,
    /// Number of the segment that differs, or of the first of those one of which does.
    pub segment: u64,
    /// The last of them.
    pub until: u64,
    /// Description of the difference.
    pub why: &'static str,
}

/// Result of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayResult {
    /// Segments that left, of both ends, handshakes included.
    pub segments: u64,
    /// The first difference; `None` if all segments are the same, by the log's own digest.
    pub difference: Option<ReplayDifference>,
}

impl ReplayResult {
    /// True if every segment is the same.
    pub fn is_exact(&self) -> bool {
        self.difference.is_none()
    }
}

/// A clock that is wrong on purpose: what a log of level `decisions` must not mind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayJitter {
    /// Every call is early or late by chance.
    pub seed: Option<u64>,
    /// Standard deviation of the error of clocks, normally distributed; anything up to seconds if not given.
    pub deviation: Option<Span>,
    /// The answers of this site are computed and not those of the log, as if it had been forgotten.
    pub forgotten: Option<TcpSite>,
    /// The answers of this tick are computed and not taken from the log.
    pub forgotten_tick: Option<TcpTick>,
}

/// Runs both ends again. Ends with the first difference.
pub fn replay<R: ReplayObserver>(log: &ConnectionLog<'_>, observer: &mut R) -> Result<ReplayResult, LogError> {
    replay_jittered(log, ReplayJitter::default(), observer)
}

/// Replays with a wrong clock, if the log has no times of its own.
pub fn replay_jittered<R: ReplayObserver>(
    log: &ConnectionLog<'_>,
    jitter: ReplayJitter,
    observer: &mut R,
) -> Result<ReplayResult, LogError> {
    let [client, server] = LogSide::BOTH.map(|side| EndReplay::new(log, side, jitter));
    let mut ends = [client?, server?];
    loop {
        let mut moved = false;
        for side in LogSide::BOTH {
            let [client, server] = &mut ends;
            let (end, peer) = if side == LogSide::Client { (client, server) } else { (server, client) };
            match end.run(peer, observer)? {
                EndStep::Differs(difference) => {
                    let segments = ends.iter().map(EndReplay::sent).sum();
                    return Ok(ReplayResult { segments, difference: Some(difference) });
                }
                EndStep::Moved => moved = true,
                EndStep::Stands => {}
            }
        }
        if !moved {
            break;
        }
    }
    let segments = ends.iter().map(EndReplay::sent).sum();
    let difference = if log.is_complete() { conclude(log, &ends)? } else { None };
    Ok(ReplayResult { segments, difference })
}

/// Checks that both ends have made all calls once neither has any left.
fn conclude(log: &ConnectionLog<'_>, ends: &[EndReplay<'_>; 2]) -> Result<Option<ReplayDifference>, LogError> {
    let Some(totals) = &log.totals else { return Ok(None) };
    for (end, totals) in ends.iter().zip(totals) {
        if let Some((_, LoggedCall::Frame { number, .. })) = end.next {
            return Err(missing(&end.cursor, end.side, number));
        }
        if end.sent() != totals.sent {
            return Err(LogError { at: log.len(), fault: LogFault::Missing(end.side) });
        }
        if end.cursor.decisions.as_ref().is_some_and(|decisions| !decisions.is_used_up()) {
            return Ok(Some(end.at_once(UNASKED)));
        }
    }
    let differs = ends.iter().zip(totals).find(|(end, totals)| end.digest.value() != totals.digest);
    Ok(differs.map(|(end, _)| end.difference(end.segments % DIGEST_EVERY)))
}

const UNASKED: &str = "what time decided was not asked for";

enum EndStep {
    Moved,
    Stands,
    Differs(ReplayDifference),
}

/// One end.
struct EndReplay<'a> {
    side: LogSide,
    machine: TcpConnection,
    cursor: EndCursor<'a>,
    /// The call that waits for a frame of the peer's.
    next: Option<(Time, LoggedCall)>,
    /// Clock of the end, at level `decisions`.
    clock: Option<EndClock>,
    jitter: ReplayJitter,
    level: LogLevel,
    /// The latest frames that left and when, and the number of the first of them.
    kept: VecDeque<(Sent, Time)>,
    first: u64,
    segments: u64,
    digest: SegmentDigest,
}

impl<'a> EndReplay<'a> {
    fn new(log: &'a ConnectionLog<'a>, side: LogSide, jitter: ReplayJitter) -> Result<Self, LogError> {
        let header = log.header();
        let (level, began) = (header.level, header.began);
        let cursor = EndCursor::new(level, began, &log.blocks[side as usize]);
        let mut clock = None;
        if level == LogLevel::Decisions {
            let random = jitter.seed.map(|seed| ClockJitter::new(seed, side, jitter.deviation));
            clock = Some(EndClock::new(began, cursor.samples()?, random));
        }
        Ok(Self {
            side,
            machine: TcpConnection::new(&header.ends[side as usize], began),
            cursor,
            clock,
            jitter,
            level,
            next: None,
            kept: VecDeque::new(),
            first: 0,
            segments: 0,
            digest: SegmentDigest::default(),
        })
    }

    fn sent(&self) -> u64 {
        self.first + self.kept.len() as u64
    }

    /// Runs as far as possible.
    fn run<R: ReplayObserver>(&mut self, peer: &Self, observer: &mut R) -> Result<EndStep, LogError> {
        let mut step = EndStep::Stands;
        loop {
            if self.next.is_none() {
                self.next = self.cursor.next()?;
                if self.cursor.unasked {
                    return Ok(EndStep::Differs(self.at_once(UNASKED)));
                }
            }
            let Some((mut now, call)) = self.next else { return Ok(step) };
            let (mut frame, mut left_at) = (None, None);
            if let LoggedCall::Frame { number, remarked } = call {
                if number >= peer.sent() {
                    return Ok(step);
                }
                let (sent, at) = peer.frame(number).ok_or_else(|| missing(&self.cursor, self.side, number))?;
                (frame, left_at) = (Some((sent, remarked)), Some(at));
            }
            self.next = None;
            if let Some(clock) = &mut self.clock {
                let sends = matches!(call, LoggedCall::Pull { sent: true } | LoggedCall::Handshake(_));
                now = clock.tick(left_at, sends || self.cursor.sends_next());
            }
            step = EndStep::Moved;
            if let Some(difference) = self.call(now, call, frame, observer)? {
                return Ok(EndStep::Differs(difference));
            }
            observer.called(self.side, now, &self.machine);
        }
    }

    /// A frame that left, if it is not too long ago.
    fn frame(&self, number: u64) -> Option<(Sent, Time)> {
        self.kept.get(number.checked_sub(self.first)? as usize).copied()
    }

    fn call<R: ReplayObserver>(
        &mut self,
        now: Time,
        call: LoggedCall,
        frame: Option<(Sent, Option<Ecn>)>,
        observer: &mut R,
    ) -> Result<Option<ReplayDifference>, LogError> {
        let decisions = self.cursor.decisions.as_mut();
        let mut sink = ReplaySink { side: self.side, now, staged: None, decisions, jitter: self.jitter, observer };
        match call {
            LoggedCall::Frame { .. } => {
                if let Some((Sent::Segment(segment), remarked)) = frame {
                    let segment = TcpSegment { ecn: remarked.unwrap_or(segment.ecn), ..segment };
                    self.machine.on_frame(now, Port(0), segment, &mut sink);
                }
            }
            LoggedCall::Command(command) => self.machine.on_command(now, command, &mut sink),
            LoggedCall::Timer(timer) => {
                sink.observer.expired(self.side, now, timer);
                self.machine.on_timer(now, timer, &mut sink);
            }
            LoggedCall::Handshake(step) => self.leave(now, Sent::Handshake(step), observer)?,
            LoggedCall::Pull { sent } => {
                self.machine.pull(now, Port(0), &mut sink);
                let staged = sink.staged;
                return match (staged, sent) {
                    (Some(segment), true) => self.segment_leaves(now, segment, observer),
                    (None, false) => Ok(None),
                    (Some(_), false) => Ok(Some(self.at_once("a segment leaves where none did"))),
                    (None, true) => Ok(Some(self.at_once("no segment leaves where one did"))),
                };
            }
        }
        Ok(None)
    }

    fn segment_leaves<R: ReplayObserver>(
        &mut self,
        now: Time,
        segment: TcpSegment,
        observer: &mut R,
    ) -> Result<Option<ReplayDifference>, LogError> {
        self.leave(now, Sent::Segment(segment), observer)?;
        self.digest.segment(&segment, self.level);
        self.segments += 1;
        if self.segments.is_multiple_of(DIGEST_EVERY) && self.cursor.digest()? != self.digest.value() {
            return Ok(Some(self.difference(DIGEST_EVERY)));
        }
        Ok(None)
    }

    fn leave<R: ReplayObserver>(&mut self, now: Time, sent: Sent, observer: &mut R) -> Result<(), LogError> {
        let (side, number) = (self.side, self.sent());
        let at = match &mut self.clock {
            Some(clock) => clock.departs(),
            None => self.cursor.departure(now)?,
        };
        observer.sent(ReplayedFrame { side, at, number, sent });
        self.kept.push_back((sent, at));
        if self.kept.len() > KEPT {
            self.kept.pop_front();
            self.first += 1;
        }
        Ok(())
    }

    /// One of the last `of` segments differs.
    fn difference(&self, of: u64) -> ReplayDifference {
        let (side, sent) = (self.side, self.sent());
        ReplayDifference {
            side,
            segment: sent.saturating_sub(of),
            until: sent.saturating_sub(1),
            why: "the digest differs",
        }
    }

    /// The next segment is not what it was.
    fn at_once(&self, why: &'static str) -> ReplayDifference {
        ReplayDifference { side: self.side, segment: self.sent(), until: self.sent(), why }
    }
}

struct ReplaySink<'a, R> {
    side: LogSide,
    now: Time,
    staged: Option<TcpSegment>,
    decisions: Option<&'a mut DecisionCursor>,
    jitter: ReplayJitter,
    observer: &'a mut R,
}

impl<R: ReplayObserver> Out<TcpConnection> for ReplaySink<'_, R> {
    fn transmit(&mut self, _port: Port, segment: TcpSegment) {
        self.staged = Some(segment);
    }
    fn wake(&mut self, _port: Port) {}
    fn deliver(&mut self, _lane: QueueId, _inner: ()) {}
    fn waiting(&self, _lane: QueueId) -> bool {
        false
    }
    fn keep(&mut self, _inner: &()) {}
    fn take(&mut self, _lane: QueueId) -> Option<()> {
        None
    }
    fn release(&mut self, _inner: ()) {}
    fn arm(&mut self, key: TcpTimer, at: Time) {
        self.observer.armed(self.side, self.now, key, Some(at));
    }
    fn disarm(&mut self, key: TcpTimer) {
        self.observer.armed(self.side, self.now, key, None);
    }
    fn complete(&mut self, _done: TcpProgress) {}
    fn note(&mut self, note: TcpNote) {
        self.observer.note(self.side, self.now, note);
    }
    fn decide(&mut self, site: TimeSite, computed: bool) -> bool {
        let logged = self.decisions.as_mut().map_or(computed, |decisions| decisions.decide(site));
        let name = TcpSite::ALL.get(usize::from(site.0)).copied();
        let answer = if name.is_some() && name == self.jitter.forgotten { computed } else { logged };
        if let Some(site) = name.filter(|_| answer) {
            self.observer.decided(self.side, self.now, site);
        }
        answer
    }
    fn tick(&mut self, site: TimeSite, computed: u64) -> u64 {
        let (logged, changed) = self.decisions.as_mut().map_or((computed, true), |decisions| decisions.tick(site));
        let name = TcpTick::ALL.get(usize::from(site.0)).copied();
        let value = if name.is_some() && name == self.jitter.forgotten_tick { computed } else { logged };
        if let Some(tick) = name.filter(|_| changed) {
            self.observer.ticked(self.side, self.now, tick, value);
        }
        value
    }
}
