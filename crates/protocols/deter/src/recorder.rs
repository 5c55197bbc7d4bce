//! A log while its connection runs: driven beside the two machines, call by call.

use std::collections::VecDeque;

use tcp::{TcpCommand, TcpSegment, TcpTimer};
use units::{Span, Time};
use wire::ip::Ecn;

use crate::bytes::put;
use crate::columns::{Arrival, CallToken, RawColumns, put_command, put_departure};
use crate::decisions::DecisionLog;
use crate::digest::{DIGEST_EVERY, SegmentDigest};
use crate::header::LogHeader;
use crate::log::{BlockWriter, EndTotals};
use crate::sampled::DepartureSampler;
use crate::{LogLevel, LogSide, LoggedHandshake};

/// Calls of an end in a block.
const BLOCK_CALLS: usize = 1 << 14;
/// Frames of an end that wait at its host at the same time; of more, the earliest is taken to leave at once.
const MOST_WAITING: usize = 1 << 12;

/// Records one connection.
///
/// Every call of either machine is reported here after it was made, in the order in which they were made.
#[derive(Debug)]
pub struct ConnectionRecorder {
    level: LogLevel,
    writer: BlockWriter,
    ends: [EndRecorder; 2],
}

#[derive(Debug)]
struct EndRecorder {
    columns: RawColumns,
    /// Time of the last call.
    now: Time,
    /// Number of the peer's frame that would be the next in order.
    next: u64,
    totals: EndTotals,
    /// Segments, without handshakes.
    segments: u64,
    digest: SegmentDigest,
    departures: Departures,
}

impl ConnectionRecorder {
    /// A connection begins.
    ///
    /// # Panics
    /// If the level cannot hold it: [`LogLevel::admits`].
    pub fn new(header: &LogHeader) -> Self {
        let level = header.level;
        assert!(header.ends.iter().all(|end| level.admits(end.algorithm)), "BBR has no decisions");
        let ends = [header.began; 2].map(|began| EndRecorder::new(began, level));
        Self { level, writer: BlockWriter::new(header), ends }
    }

    /// Log of an end's decisions of time, while a call is made; `None` if the log has the times instead.
    #[inline]
    pub fn decisions(&mut self, side: LogSide) -> Option<&mut DecisionLog> {
        let decisions = &mut self.ends[side as usize].columns.decisions;
        (self.level == LogLevel::Decisions).then_some(decisions)
    }

    /// Records a command from the owner of an end.
    pub fn command(&mut self, side: LogSide, now: Time, command: TcpCommand) {
        put_command(&mut self.ends[side as usize].columns.calls, command);
        self.call(side, now, CallToken::Command);
    }

    /// A timer of an end expired.
    pub fn timer(&mut self, side: LogSide, now: Time, timer: TcpTimer) {
        let token = match timer {
            TcpTimer::Loss => CallToken::LossTimer,
            TcpTimer::Ack => CallToken::AckTimer,
        };
        self.call(side, now, token);
    }

    /// The peer's frame of this number arrived, with a mark that it did not leave with if `remarked`. Also of a handshake's
    /// frames, which the machine does not see.
    #[inline]
    pub fn frame(&mut self, side: LogSide, now: Time, number: u64, remarked: Option<Ecn>) {
        let end = &mut self.ends[side as usize];
        let displaced = number as i64 - end.next as i64;
        end.next = end.next.max(number + 1);
        if displaced == 0 && remarked.is_none() {
            return self.call(side, now, CallToken::Frame);
        }
        end.columns.odd_frame(Arrival { displaced, remarked });
        self.timed(side, now);
    }

    /// An end was pulled, and a segment left or none; the number of the segment.
    #[inline]
    pub fn pull(&mut self, side: LogSide, now: Time, segment: Option<&TcpSegment>) -> u64 {
        let end = &mut self.ends[side as usize];
        let number = end.totals.sent;
        let Some(segment) = segment else {
            self.call(side, now, CallToken::Idle);
            return number;
        };
        end.left(now);
        end.digest.segment(segment, self.level);
        end.segments += 1;
        if end.segments.is_multiple_of(DIGEST_EVERY) {
            end.columns.digests.extend(end.digest.value().to_le_bytes());
        }
        self.call(side, now, CallToken::Sent);
        number
    }

    /// The driver of an end sent a step of a handshake; the number of its frame.
    pub fn handshake(&mut self, side: LogSide, now: Time, step: LoggedHandshake) -> u64 {
        let end = &mut self.ends[side as usize];
        let number = end.totals.sent;
        end.left(now);
        end.columns.calls.push(u8::from(step == LoggedHandshake::SynAck));
        self.call(side, now, CallToken::Handshake);
        number
    }

    /// A frame of an end began to leave its host. Frames that nothing is said of leave when they are made.
    pub fn departs(&mut self, side: LogSide, at: Time, number: u64) {
        let end = &mut self.ends[side as usize];
        end.departures.departs(number, at, &mut end.columns.departures);
    }

    #[inline]
    fn call(&mut self, side: LogSide, now: Time, token: CallToken) {
        self.ends[side as usize].columns.token(token);
        self.timed(side, now);
    }

    /// The last call was at this time.
    #[inline]
    fn timed(&mut self, side: LogSide, now: Time) {
        let end = &mut self.ends[side as usize];
        end.totals.calls += 1;
        if self.level == LogLevel::Times {
            put(&mut end.columns.times, now.since(end.now).as_ps());
            end.now = now;
        }
        if end.columns.tokens.len() >= BLOCK_CALLS {
            self.close_block(side);
        }
    }

    #[cold]
    fn close_block(&mut self, side: LogSide) {
        let content = self.ends[side as usize].columns.encode(self.level);
        self.writer.columns(side, &content);
    }

    /// Bytes of whole blocks that wait to be taken.
    #[inline]
    pub fn waiting(&self) -> usize {
        self.writer.waiting()
    }

    /// Takes the whole blocks that were written since the last time.
    pub fn take(&mut self) -> Vec<u8> {
        self.writer.take()
    }

    /// The connection is over; the rest of the log.
    pub fn finish(mut self) -> Vec<u8> {
        for side in LogSide::BOTH {
            let end = &mut self.ends[side as usize];
            end.departures.finish(&mut end.columns.departures);
            end.totals.digest = end.digest.value();
            if !end.columns.is_empty() {
                self.close_block(side);
            }
        }
        self.writer.end(&self.ends.each_ref().map(|end| end.totals));
        self.writer.take()
    }
}

impl EndRecorder {
    fn new(began: Time, level: LogLevel) -> Self {
        Self {
            columns: RawColumns::default(),
            now: began,
            next: 0,
            totals: EndTotals::default(),
            segments: 0,
            digest: SegmentDigest::default(),
            departures: Departures::new(level),
        }
    }

    /// A frame was made.
    #[inline]
    fn left(&mut self, now: Time) {
        self.totals.sent += 1;
        self.departures.made(now, &mut self.columns.departures);
    }
}

/// Delays from the making of frames to their departure from the host.
#[derive(Debug)]
struct Departures {
    /// Time at which each was made, and its delay until it left, as far as that is known.
    waiting: VecDeque<(Time, Option<Span>)>,
    /// Number of the first of them.
    first: u64,
    /// Frames that left at once since the last one that did not.
    at_once: u64,
    /// Sampler of departures, at level `decisions`.
    sampler: Option<DepartureSampler>,
}

impl Departures {
    fn new(level: LogLevel) -> Self {
        let sampler = (level == LogLevel::Decisions).then(DepartureSampler::new);
        Self { waiting: VecDeque::new(), first: 0, at_once: 0, sampler }
    }

    #[inline]
    fn made(&mut self, now: Time, out: &mut Vec<u8>) {
        self.waiting.push_back((now, None));
        if self.waiting.len() > MOST_WAITING {
            self.write_first(out);
        }
    }

    fn departs(&mut self, number: u64, at: Time, out: &mut Vec<u8>) {
        // A link may send it again; it left when it left first.
        let Some(index) = number.checked_sub(self.first) else { return };
        let Some((made, later @ None)) = self.waiting.get_mut(index as usize) else { return };
        *later = Some(at.since(*made));
        while self.waiting.front().is_some_and(|(_, later)| later.is_some()) {
            self.write_first(out);
        }
    }

    fn write_first(&mut self, out: &mut Vec<u8>) {
        let Some((made, later)) = self.waiting.pop_front() else { return };
        self.first += 1;
        let later = later.unwrap_or(Span::ZERO);
        if let Some(sampler) = &mut self.sampler {
            return sampler.on_packet(made + later, out);
        }
        match later {
            Span::ZERO => self.at_once += 1,
            later => put_departure(out, std::mem::take(&mut self.at_once), later),
        }
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        while !self.waiting.is_empty() {
            self.write_first(out);
        }
        if let Some(sampler) = &mut self.sampler {
            sampler.finish(out);
        }
    }
}
