//! Columns of a log, which record what happened at one end.
//!
//! | column | holds |
//! | --- | --- |
//! | order | which call came: a frame, a pull and whether something left, a timer, a command, a step of a handshake |
//! | calls | what commands asked for |
//! | network | of arriving frames, those that were not the next of the peer's, or not marked as they left |
//! | times | level `times`: the time of each call, and how much later frames left the host; `decisions`: samples of that |
//! | decisions | level `decisions`: the unusual answers of time |
//! | ticks | the same: numbers that follow from the time |
//!
//! While a block is recorded its columns are plain bytes; they are coded when the block is full, each as a stream of its
//! own, so that nothing but plain writes happens between the calls of a connection.

use tcp::{TcpCommand, TcpTimer};
use units::Span;
use wire::ip::Ecn;

use crate::bytes::{LogReader, put, put_signed};
use crate::coder::{BitModel, NumberModel, RangeDecoder, RangeEncoder};
use crate::decisions::DecisionLog;
use crate::header::{of_span, span};
use crate::log::LogFault;
use crate::times::TimesModel;
use crate::{LogLevel, LoggedHandshake, sampled};

units::counters! {
    /// Sizes of columns in bytes.
    ColumnBytes as u64:
    /// Kinds of calls, in their order.
    order,
    /// Requests of commands.
    calls,
    /// Actions of the network.
    network,
    /// Decisions of time.
    decisions,
    /// Numbers that follow from the time.
    ticks,
    /// Times of calls and of the departures of frames.
    times,
}

/// A call, as the column of the order has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallToken {
    Frame,
    /// A frame that the network did something to; only while a block is recorded.
    OddFrame,
    Sent,
    Idle,
    LossTimer,
    AckTimer,
    Command,
    Handshake,
}

impl CallToken {
    const ALL: [Self; 8] = [
        Self::Frame,
        Self::OddFrame,
        Self::Sent,
        Self::Idle,
        Self::LossTimer,
        Self::AckTimer,
        Self::Command,
        Self::Handshake,
    ];

    pub(crate) fn timer(self) -> Option<TcpTimer> {
        match self {
            Self::LossTimer => Some(TcpTimer::Loss),
            Self::AckTimer => Some(TcpTimer::Ack),
            _ => None,
        }
    }
}

/// Number and mark of a frame that arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// Distance of its number from the next one in order: beyond it if some are missing, below it if it comes late or
    /// again.
    pub displaced: i64,
    /// Mark of the frame, if it is not as it left.
    pub remarked: Option<Ecn>,
}

/// Calls of a block, more than a recorder puts into one: a stream that is over goes on with zeros, and would be calls for ever.
const MOST_CALLS: u64 = 1 << 16;
/// The four calls before the next one are what it depends on.
const CONTEXT: usize = 1 << 12;

/// Models of calls in their order: mostly a call is the same as the last time that the four before it were these, and then
/// it takes one step of the coder.
#[derive(Debug)]
pub(crate) struct OrderModel {
    usual: Vec<(u8, BitModel)>,
    /// Models of the other calls, by the call before.
    others: [[BitModel; 8]; 8],
    last: usize,
}

impl OrderModel {
    pub(crate) fn new() -> Self {
        Self { usual: vec![(0, BitModel::default()); CONTEXT], others: Default::default(), last: 0 }
    }

    fn encode(&mut self, encoder: &mut RangeEncoder, token: u8) {
        let (usual, model) = &mut self.usual[self.last];
        let is_other = token != *usual;
        encoder.bit(model, is_other);
        if is_other {
            *usual = token;
            let bits = &mut self.others[self.last & 7];
            let mut node = 1;
            for at in (0..3).rev() {
                let bit = token >> at & 1 == 1;
                encoder.bit(&mut bits[node], bit);
                node = node << 1 | usize::from(bit);
            }
        }
        self.last = (self.last << 3 | usize::from(token)) % CONTEXT;
    }

    pub(crate) fn decode(&mut self, decoder: &mut RangeDecoder<'_>) -> CallToken {
        let (usual, model) = &mut self.usual[self.last];
        if decoder.bit(model) {
            let bits = &mut self.others[self.last & 7];
            let mut node = 1;
            for _ in 0..3 {
                node = node << 1 | usize::from(decoder.bit(&mut bits[node]));
            }
            *usual = node as u8 & 7;
        }
        let token = usize::from(*usual);
        self.last = (self.last << 3 | token) % CONTEXT;
        CallToken::ALL[token]
    }
}

/// Models of what the network does: nothing, mostly, which takes one step of the coder.
#[derive(Debug, Default)]
pub(crate) struct NetworkModel {
    /// Models of the bit that marks an unusual fate, by that bit of the four frames before.
    odd: [BitModel; 16],
    remarked: [BitModel; 2],
    experienced: BitModel,
    displaced: BitModel,
    late: BitModel,
    distance: [NumberModel; 2],
    /// The latest frames, one bit each.
    last: usize,
}

impl NetworkModel {
    fn encode(&mut self, encoder: &mut RangeEncoder, arrival: Arrival) {
        let (remarked, moved) = (arrival.remarked.is_some(), arrival.displaced != 0);
        let odd = remarked || moved;
        encoder.bit(&mut self.odd[self.last], odd);
        if odd {
            encoder.bit(&mut self.remarked[self.last & 1], remarked);
            if let Some(ecn) = arrival.remarked {
                encoder.bit(&mut self.experienced, ecn != Ecn::Experienced);
                if ecn != Ecn::Experienced {
                    encoder.even(ecn == Ecn::Capable);
                }
                encoder.bit(&mut self.displaced, moved);
            }
        }
        if moved {
            let late = arrival.displaced < 0;
            encoder.bit(&mut self.late, late);
            encoder.number(&mut self.distance[usize::from(late)], arrival.displaced.unsigned_abs() - 1);
        }
        self.turn(odd);
    }

    pub(crate) fn decode(&mut self, decoder: &mut RangeDecoder<'_>) -> Result<Arrival, LogFault> {
        let mut arrival = Arrival::default();
        let odd = decoder.bit(&mut self.odd[self.last]);
        let mut moved = odd;
        if odd && decoder.bit(&mut self.remarked[self.last & 1]) {
            let other = decoder.bit(&mut self.experienced);
            arrival.remarked = Some(match (other, other && decoder.even()) {
                (false, _) => Ecn::Experienced,
                (true, true) => Ecn::Capable,
                (true, false) => Ecn::NotCapable,
            });
            moved = decoder.bit(&mut self.displaced);
        }
        if moved {
            let late = decoder.bit(&mut self.late);
            let distance = decoder.number(&mut self.distance[usize::from(late)]) + 1;
            let distance = i64::try_from(distance).map_err(|_| LogFault::Value("distance"))?;
            arrival.displaced = if late { -distance } else { distance };
        }
        self.turn(odd);
        Ok(arrival)
    }

    fn turn(&mut self, odd: bool) {
        self.last = (self.last << 1 | usize::from(odd)) % self.odd.len();
    }
}

/// The columns of a block that is being recorded.
#[derive(Debug, Default)]
pub(crate) struct RawColumns {
    pub tokens: Vec<u8>,
    pub calls: Vec<u8>,
    network: Vec<u8>,
    pub times: Vec<u8>,
    pub departures: Vec<u8>,
    pub digests: Vec<u8>,
    pub decisions: DecisionLog,
}

impl RawColumns {
    #[inline]
    pub(crate) fn token(&mut self, token: CallToken) {
        self.tokens.push(token as u8);
    }

    pub(crate) fn odd_frame(&mut self, arrival: Arrival) {
        self.token(CallToken::OddFrame);
        self.network.push(arrival.remarked.map_or(0, |ecn| ecn as u8 + 1));
        put_signed(&mut self.network, arrival.displaced);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tokens.is_empty() && self.departures.is_empty()
    }

    /// Codes the block, and begins the next one.
    pub(crate) fn encode(&mut self, level: LogLevel) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, self.tokens.len() as u64);
        let mut order = OrderModel::new();
        let (mut encoder, mut odd) = (RangeEncoder::new(), RangeEncoder::new());
        let (mut network, mut details) = (NetworkModel::default(), LogReader::new(&self.network));
        let (mut spans, mut clock, mut times) =
            (LogReader::new(&self.times), RangeEncoder::new(), TimesModel::default());
        for token in &self.tokens {
            let is_odd = *token == CallToken::OddFrame as u8;
            let kind = if is_odd { CallToken::Frame as u8 } else { *token };
            order.encode(&mut encoder, kind);
            if level == LogLevel::Times {
                times.encode(&mut clock, kind, spans.number().unwrap_or_default());
            }
            if is_odd {
                network.encode(&mut odd, odd_detail(&mut details));
            } else if *token == CallToken::Frame as u8 {
                network.encode(&mut odd, Arrival::default());
            }
        }
        let [order, network, times] = [encoder, odd, clock].map(RangeEncoder::finish);
        let [decisions, ticks] = self.decisions.encode();
        let sampled = (level == LogLevel::Decisions).then(|| sampled::encode(&self.departures));
        let departures = sampled.as_ref().unwrap_or(&self.departures);
        for column in [&order, &self.calls, &network, &decisions, &ticks, &times, departures, &self.digests] {
            put(&mut out, column.len() as u64);
            out.extend(column);
        }
        for column in [&mut self.tokens, &mut self.calls, &mut self.network] {
            column.clear();
        }
        for column in [&mut self.times, &mut self.departures, &mut self.digests] {
            column.clear();
        }
        out
    }
}

/// Details of an odd frame, which were written here and not read from anywhere else.
fn odd_detail(details: &mut LogReader<'_>) -> Arrival {
    let remarked = match details.byte().unwrap_or_default() {
        0 => None,
        1 => Some(Ecn::NotCapable),
        2 => Some(Ecn::Capable),
        _ => Some(Ecn::Experienced),
    };
    Arrival { displaced: details.signed().unwrap_or_default(), remarked }
}

/// The columns of a block that has been read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EncodedColumns<'a> {
    pub calls_made: u64,
    pub order: &'a [u8],
    pub calls: &'a [u8],
    pub network: &'a [u8],
    pub decisions: &'a [u8],
    pub ticks: &'a [u8],
    pub times: &'a [u8],
    pub departures: &'a [u8],
    pub digests: &'a [u8],
}

impl<'a> EncodedColumns<'a> {
    pub(crate) fn parse(content: &'a [u8]) -> Result<Self, LogFault> {
        let mut reader = LogReader::new(content);
        let calls_made = Some(reader.number()?).filter(|calls| *calls <= MOST_CALLS).ok_or(LogFault::Value("calls"))?;
        let mut column = || {
            let len = reader.small("length")?;
            reader.take(len)
        };
        let [order, calls, network, decisions] = [column()?, column()?, column()?, column()?];
        let [ticks, times, departures, digests] = [column()?, column()?, column()?, column()?];
        if !reader.is_empty() {
            return Err(LogFault::Value("column"));
        }
        Ok(Self { calls_made, order, calls, network, decisions, ticks, times, departures, digests })
    }

    pub(crate) fn bytes(&self) -> ColumnBytes {
        ColumnBytes {
            order: self.order.len() as u64,
            calls: self.calls.len() as u64,
            network: self.network.len() as u64,
            decisions: self.decisions.len() as u64,
            ticks: self.ticks.len() as u64,
            times: (self.times.len() + self.departures.len()) as u64,
        }
    }
}

/// Writes a command into the column of calls.
pub(crate) fn put_command(out: &mut Vec<u8>, command: TcpCommand) {
    let (kind, value) = match command {
        TcpCommand::Send(bytes) => (0, bytes),
        TcpCommand::SendMore(bytes) => (1, bytes),
        TcpCommand::Read(bytes) => (2, bytes),
        TcpCommand::SendBuffer(bytes) => (3, bytes),
        TcpCommand::NoDelay(on) => (4, u64::from(on)),
        TcpCommand::Cork(on) => (5, u64::from(on)),
        TcpCommand::UserTimeout(limit) => {
            out.push(6);
            return of_span(limit, out);
        }
        TcpCommand::ShutdownRead => (7, 0),
        TcpCommand::ShutdownWrite => (8, 0),
        TcpCommand::Close => (9, 0),
        TcpCommand::Abort => (10, 0),
    };
    out.push(kind);
    if kind < 6 {
        put(out, value);
    }
}

pub(crate) fn command(reader: &mut LogReader<'_>) -> Result<TcpCommand, LogFault> {
    Ok(match reader.byte()? {
        0 => TcpCommand::Send(reader.number()?),
        1 => TcpCommand::SendMore(reader.number()?),
        2 => TcpCommand::Read(reader.number()?),
        3 => TcpCommand::SendBuffer(reader.number()?),
        4 => TcpCommand::NoDelay(reader.number()? == 1),
        5 => TcpCommand::Cork(reader.number()? == 1),
        6 => TcpCommand::UserTimeout(span(reader)?),
        7 => TcpCommand::ShutdownRead,
        8 => TcpCommand::ShutdownWrite,
        9 => TcpCommand::Close,
        10 => TcpCommand::Abort,
        _ => return Err(LogFault::Value("command")),
    })
}

pub(crate) fn handshake_step(reader: &mut LogReader<'_>) -> Result<LoggedHandshake, LogFault> {
    match reader.byte()? {
        0 => Ok(LoggedHandshake::Syn),
        1 => Ok(LoggedHandshake::SynAck),
        _ => Err(LogFault::Value("step of a handshake")),
    }
}

/// Writes the departure of a frame relative to the time at which it was made: the number that left at once before it, and
/// its delay.
pub(crate) fn put_departure(out: &mut Vec<u8>, at_once: u64, later: Span) {
    put(out, at_once);
    put(out, later.as_ps());
}
