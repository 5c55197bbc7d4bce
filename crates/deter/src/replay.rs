//! Both machines of a connection, run again from its log.
//!
//! Nothing but the log and the two machines takes part. Each end is run until it needs a frame that the other has not made
//! yet; then the other. Every call has its recorded time.

use std::collections::VecDeque;

use machine::{Machine, Out, Port, QueueId};
use tcp::{TcpConnection, TcpNote, TcpProgress, TcpSegment, TcpTimer};
use units::Time;
use wire::ip::Ecn;

use crate::cursor::{EndCursor, LoggedCall, missing};
use crate::digest::{DIGEST_EVERY, SegmentDigest};
use crate::log::{ConnectionLog, LogError, LogFault};
use crate::{LogSide, LoggedHandshake};

/// Frames of an end that are kept for the other: more than are on their way at the same time.
const KEPT: usize = 1 << 17;

/// What left an end.
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
    /// From which end.
    pub side: LogSide,
    /// When its first bit left.
    pub at: Time,
    /// Its number among all that the end sent, from 0.
    pub number: u64,
    /// What it is.
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
    /// A call of a machine is over.
    fn called(&mut self, _side: LogSide, _now: Time, _machine: &TcpConnection) {}
}

/// Ignores all.
impl ReplayObserver for () {}

/// Where a replay is not what was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayDifference {
    /// At which end.
    pub side: LogSide,
    /// Number of the segment that differs, or of the first of those one of which does.
    pub segment: u64,
    /// The last of them.
    pub until: u64,
    /// What differs.
    pub why: &'static str,
}

/// What came of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayResult {
    /// That left, of both ends, handshakes included.
    pub segments: u64,
    /// The first difference; `None` if all segments are the same, by the log's own digest.
    pub difference: Option<ReplayDifference>,
}

impl ReplayResult {
    /// Whether every segment is the same.
    pub fn is_exact(&self) -> bool {
        self.difference.is_none()
    }
}

/// Runs both ends again. Ends with the first difference.
pub fn replay<R: ReplayObserver>(log: &ConnectionLog<'_>, observer: &mut R) -> Result<ReplayResult, LogError> {
    let mut ends = LogSide::BOTH.map(|side| EndReplay::new(log, side));
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

/// Nothing is left to do at either end: all must have been done.
fn conclude(log: &ConnectionLog<'_>, ends: &[EndReplay<'_>; 2]) -> Result<Option<ReplayDifference>, LogError> {
    let Some(totals) = &log.totals else { return Ok(None) };
    for (end, totals) in ends.iter().zip(totals) {
        if let Some((_, LoggedCall::Frame { number, .. })) = end.next {
            return Err(missing(&end.cursor, end.side, number));
        }
        if end.sent() != totals.sent {
            return Err(LogError { at: log.len(), fault: LogFault::Missing(end.side) });
        }
    }
    let differs = ends.iter().zip(totals).find(|(end, totals)| end.digest.value() != totals.digest);
    Ok(differs.map(|(end, _)| end.difference(end.segments % DIGEST_EVERY)))
}

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
    /// The latest frames that left, and the number of the first of them.
    kept: VecDeque<Sent>,
    first: u64,
    segments: u64,
    digest: SegmentDigest,
}

impl<'a> EndReplay<'a> {
    fn new(log: &'a ConnectionLog<'a>, side: LogSide) -> Self {
        let header = log.header();
        Self {
            side,
            machine: TcpConnection::new(&header.ends[side as usize], header.began),
            cursor: EndCursor::new(header.began, &log.blocks[side as usize]),
            next: None,
            kept: VecDeque::new(),
            first: 0,
            segments: 0,
            digest: SegmentDigest::default(),
        }
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
            }
            let Some((now, call)) = self.next else { return Ok(step) };
            let mut frame = None;
            if let LoggedCall::Frame { number, remarked } = call {
                if number >= peer.sent() {
                    return Ok(step);
                }
                let arrived = peer.frame(number).ok_or_else(|| missing(&self.cursor, self.side, number))?;
                frame = Some((arrived, remarked));
            }
            self.next = None;
            step = EndStep::Moved;
            if let Some(difference) = self.call(now, call, frame, observer)? {
                return Ok(EndStep::Differs(difference));
            }
            observer.called(self.side, now, &self.machine);
        }
    }

    /// A frame that left, if it is not too long ago.
    fn frame(&self, number: u64) -> Option<Sent> {
        self.kept.get(number.checked_sub(self.first)? as usize).copied()
    }

    fn call<R: ReplayObserver>(
        &mut self,
        now: Time,
        call: LoggedCall,
        frame: Option<(Sent, Option<Ecn>)>,
        observer: &mut R,
    ) -> Result<Option<ReplayDifference>, LogError> {
        let mut sink = ReplaySink { side: self.side, now, staged: None, observer };
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
                return match (sink.staged, sent) {
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
        self.digest.segment(&segment);
        self.segments += 1;
        if self.segments.is_multiple_of(DIGEST_EVERY) && self.cursor.digest()? != self.digest.value() {
            return Ok(Some(self.difference(DIGEST_EVERY)));
        }
        Ok(None)
    }

    fn leave<R: ReplayObserver>(&mut self, now: Time, sent: Sent, observer: &mut R) -> Result<(), LogError> {
        let (side, number) = (self.side, self.sent());
        let at = self.cursor.departure(now)?;
        observer.sent(ReplayedFrame { side, at, number, sent });
        self.kept.push_back(sent);
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
}
