//! The calls of one end from the first to the last, block after block.

use tcp::{TcpCommand, TcpTimer};
use units::{Span, Time};
use wire::ip::Ecn;

use crate::bytes::{LATEST, LogReader};
use crate::coder::RangeDecoder;
use crate::columns::{CallToken, EncodedColumns, NetworkModel, OrderModel, command, handshake_step};
use crate::decisions::DecisionCursor;
use crate::log::{LogError, LogFault};
use crate::sampled;
use crate::sampling::SendTimeSample;
use crate::times::TimesModel;
use crate::{LogLevel, LogSide, LoggedHandshake};

/// A recorded call of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoggedCall {
    /// The peer's frame of this number, marked like this if not as it left.
    Frame {
        number: u64,
        remarked: Option<Ecn>,
    },
    Pull {
        sent: bool,
    },
    Timer(TcpTimer),
    Command(TcpCommand),
    Handshake(LoggedHandshake),
}

/// Reads the calls of one end.
#[derive(Debug)]
pub(crate) struct EndCursor<'a> {
    blocks: &'a [(usize, EncodedColumns<'a>)],
    block: Option<BlockCursor<'a>>,
    /// Time of the last call.
    now: Time,
    /// Number of the peer's frame that is the next in order.
    next: u64,
    /// Calls so far.
    pub calls: u64,
    departures: DepartureCursor<'a>,
    /// Answers for the call that was last read, at level `decisions`.
    pub decisions: Option<DecisionCursor>,
    /// Answers of a block that is over were never asked for.
    pub unasked: bool,
}

#[derive(Debug)]
struct BlockCursor<'a> {
    at: usize,
    left: u64,
    order: (RangeDecoder<'a>, OrderModel),
    /// The call behind the one that was last read.
    ahead: Option<CallToken>,
    network: (RangeDecoder<'a>, NetworkModel),
    calls: LogReader<'a>,
    times: (RangeDecoder<'a>, TimesModel),
    digests: LogReader<'a>,
}

impl<'a> BlockCursor<'a> {
    fn new(at: usize, columns: &EncodedColumns<'a>) -> Self {
        let (mut decoder, mut model) = (RangeDecoder::new(columns.order), OrderModel::new());
        Self {
            at,
            left: columns.calls_made,
            ahead: (columns.calls_made > 0).then(|| model.decode(&mut decoder)),
            order: (decoder, model),
            network: (RangeDecoder::new(columns.network), NetworkModel::default()),
            calls: LogReader::new(columns.calls),
            times: (RangeDecoder::new(columns.times), TimesModel::default()),
            digests: LogReader::new(columns.digests),
        }
    }

    /// True if all that it holds was read.
    fn is_used_up(&self) -> bool {
        self.calls.is_empty() && self.digests.is_empty()
    }
}

impl<'a> EndCursor<'a> {
    pub(crate) fn new(level: LogLevel, began: Time, blocks: &'a [(usize, EncodedColumns<'a>)]) -> Self {
        let departures = DepartureCursor { blocks, left: LogReader::new(&[]), at_once: 0, later: None };
        let decisions = (level == LogLevel::Decisions).then(DecisionCursor::default);
        Self { blocks, block: None, now: began, next: 0, calls: 0, departures, decisions, unasked: false }
    }

    /// Times at which packets left, at level `decisions`.
    pub(crate) fn samples(&self) -> Result<Vec<SendTimeSample>, LogError> {
        let mut samples = Vec::new();
        for (at, columns) in self.blocks {
            sampled::decode(columns.departures, &mut samples).map_err(|fault| LogError { at: *at, fault })?;
        }
        Ok(samples)
    }

    /// The next call and its time; `None` behind the last.
    pub(crate) fn next(&mut self) -> Result<Option<(Time, LoggedCall)>, LogError> {
        while self.block.as_ref().is_none_or(|block| block.left == 0) {
            if let Some(block) = &self.block
                && !block.is_used_up()
            {
                return Err(LogError { at: block.at, fault: LogFault::Value("column") });
            }
            let Some(((at, columns), rest)) = self.blocks.split_first() else { return Ok(None) };
            self.blocks = rest;
            self.block = Some(BlockCursor::new(*at, columns));
            if let Some(decisions) = &mut self.decisions {
                let next = decisions.next_block(columns.decisions, columns.ticks);
                self.unasked |= !next.map_err(|fault| LogError { at: *at, fault })?;
            }
        }
        let at = self.place();
        self.in_block().map(Some).map_err(|fault| LogError { at, fault })
    }

    /// Position of the block that is read, in bytes.
    pub(crate) fn place(&self) -> usize {
        self.block.as_ref().map_or(0, |block| block.at)
    }

    /// True if a packet leaves by the call behind the one that was last read, as far as the block says so.
    pub(crate) fn sends_next(&self) -> bool {
        let ahead = self.block.as_ref().and_then(|block| block.ahead);
        matches!(ahead, Some(CallToken::Sent | CallToken::Handshake))
    }

    fn in_block(&mut self) -> Result<(Time, LoggedCall), LogFault> {
        let block = self.block.as_mut().ok_or(LogFault::Short)?;
        block.left -= 1;
        self.calls += 1;
        let token = block.ahead.ok_or(LogFault::Short)?;
        block.ahead = (block.left > 0).then(|| block.order.1.decode(&mut block.order.0));
        let call = match token {
            CallToken::Frame => {
                let arrival = block.network.1.decode(&mut block.network.0)?;
                let number = self.next.checked_add_signed(arrival.displaced).ok_or(LogFault::Value("frame"))?;
                self.next = self.next.max(number.checked_add(1).ok_or(LogFault::Value("frame"))?);
                LoggedCall::Frame { number, remarked: arrival.remarked }
            }
            CallToken::Sent => LoggedCall::Pull { sent: true },
            CallToken::Idle => LoggedCall::Pull { sent: false },
            CallToken::Command => LoggedCall::Command(command(&mut block.calls)?),
            CallToken::Handshake => LoggedCall::Handshake(handshake_step(&mut block.calls)?),
            token => LoggedCall::Timer(token.timer().ok_or(LogFault::Value("call"))?),
        };
        if self.decisions.is_some() {
            return Ok((self.now, call));
        }
        let span = block.times.1.decode(&mut block.times.0, token as u8);
        let now = self.now.as_ps().checked_add(span).filter(|now| *now <= LATEST);
        self.now = Time::from_ps(now.ok_or(LogFault::Value("time"))?);
        Ok((self.now, call))
    }

    /// The next digest, which belongs to the call that was last read.
    pub(crate) fn digest(&mut self) -> Result<u64, LogError> {
        let at = self.place();
        let block = self.block.as_mut().ok_or(LogError { at, fault: LogFault::Short })?;
        block.digests.word().map_err(|fault| LogError { at, fault })
    }

    /// Time at which the next frame left the host, which was made at `made`.
    pub(crate) fn departure(&mut self, made: Time) -> Result<Time, LogError> {
        let at = self.place();
        let later = self.departures.next().map_err(|fault| LogError { at, fault })?;
        let departure = made.as_ps().checked_add(later.as_ps()).filter(|departure| *departure <= LATEST);
        departure.map(Time::from_ps).ok_or(LogError { at, fault: LogFault::Value("time") })
    }
}

/// Delays from the making of frames to their departure, over all blocks of an end.
#[derive(Debug)]
struct DepartureCursor<'a> {
    blocks: &'a [(usize, EncodedColumns<'a>)],
    left: LogReader<'a>,
    at_once: u64,
    /// Delay of the frame behind those that left at once.
    later: Option<Span>,
}

impl DepartureCursor<'_> {
    fn next(&mut self) -> Result<Span, LogFault> {
        if self.later.is_none() {
            while self.left.is_empty() {
                let Some(((_, columns), rest)) = self.blocks.split_first() else { return Ok(Span::ZERO) };
                self.left = LogReader::new(columns.departures);
                self.blocks = rest;
            }
            self.at_once = self.left.number()?;
            self.later = Some(Span::from_ps(self.left.number()?));
        }
        if self.at_once > 0 {
            self.at_once -= 1;
            return Ok(Span::ZERO);
        }
        Ok(self.later.take().unwrap_or(Span::ZERO))
    }
}

/// Error for a call that needs a segment which an end has not made.
pub(crate) fn missing(cursor: &EndCursor<'_>, side: LogSide, number: u64) -> LogError {
    LogError { at: cursor.place(), fault: LogFault::Segment { side, call: cursor.calls, number } }
}
