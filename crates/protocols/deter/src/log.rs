//! A log as bytes: blocks, each with a check over itself and all before it.
//!
//! ```text
//!   magic, versions │ header │ client │ server │ client │ … │ end
//!                   └ each: kind, length, content, CRC of these and of the CRC before
//! ```
//!
//! Because checks are chained, a block that is missing, doubled or another connection's is found like a flipped bit. A log
//! that is still written can be read up to its last whole block.

use std::fmt;

use crc32fast::Hasher;

use crate::LogSide;
use crate::bytes::{LogReader, put};
use crate::columns::{ColumnBytes, EncodedColumns};
use crate::header::LogHeader;

const MAGIC: [u8; 6] = *b"\x89DETER";
const FORMAT: u16 = 2;
/// Magic, format, behaviour of the machine.
const PREFIX: usize = MAGIC.len() + 2 + 4;

const HEADER: u8 = 0;
const CLIENT: u8 = 1;
const SERVER: u8 = 2;
const END: u8 = 3;

/// Fault of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFault {
    /// The file does not begin like a log.
    NotALog,
    /// The log has another format than this program's.
    Format(u16),
    /// Written by a TCP that behaves differently.
    Behaviour(u32),
    /// The file ends before the log does.
    Cut,
    /// A check does not hold.
    Check,
    /// A block holds less than it says.
    Short,
    /// A field that cannot be.
    Value(&'static str),
    /// The log of an end is incomplete.
    Missing(LogSide),
    /// An end receives a segment that the other never sends, or sent too long ago.
    Segment {
        /// The end that receives.
        side: LogSide,
        /// Number of the call at that end.
        call: u64,
        /// Number of the transmission of the other.
        number: u64,
    },
    /// Bytes follow the log's end.
    Trailing,
}

/// Fault of a log, and its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogError {
    /// Position of the block, in bytes.
    pub at: usize,
    /// Kind of fault.
    pub fault: LogFault,
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: ", self.at)?;
        match self.fault {
            LogFault::NotALog => f.write_str("not a log of a connection: expected what --record wrote"),
            LogFault::Format(found) => {
                write!(f, "format {found}, expected {FORMAT}: replay it with the version that wrote it")
            }
            LogFault::Behaviour(found) => {
                let ours = tcp::BEHAVIOUR;
                write!(f, "TCP of version {found}, expected {ours}: replay it with the version that wrote it")
            }
            LogFault::Cut => f.write_str("the log is cut short here: record it again"),
            LogFault::Check => f.write_str("the check does not hold: damaged, or parts of two logs"),
            LogFault::Short => f.write_str("a block holds less than it says"),
            LogFault::Value(what) => write!(f, "impossible {what}"),
            LogFault::Missing(side) => write!(f, "not all that happened at the {} is there", side.name()),
            LogFault::Segment { side, call, number } => write!(
                f,
                "call {call} of the {} is segment {number} of the {}, which it has not at that time: the ends do not belong \
                 together",
                side.name(),
                side.peer().name()
            ),
            LogFault::Trailing => f.write_str("something follows the end of the log"),
        }
    }
}

/// Writes blocks.
#[derive(Debug)]
pub(crate) struct BlockWriter {
    check: u32,
    /// Whole blocks that were not taken yet.
    out: Vec<u8>,
}

impl BlockWriter {
    pub(crate) fn new(header: &LogHeader) -> Self {
        let mut out = MAGIC.to_vec();
        out.extend(FORMAT.to_le_bytes());
        out.extend(tcp::BEHAVIOUR.to_le_bytes());
        let mut writer = Self { check: check_of(0, &out), out };
        writer.block(HEADER, &header.emit());
        writer
    }

    pub(crate) fn columns(&mut self, side: LogSide, content: &[u8]) {
        self.block(if side == LogSide::Client { CLIENT } else { SERVER }, content);
    }

    pub(crate) fn end(&mut self, totals: &[EndTotals; 2]) {
        let mut content = Vec::new();
        for total in totals {
            put(&mut content, total.calls);
            put(&mut content, total.sent);
            content.extend(total.digest.to_le_bytes());
        }
        self.block(END, &content);
    }

    fn block(&mut self, kind: u8, content: &[u8]) {
        let begin = self.out.len();
        self.out.push(kind);
        put(&mut self.out, content.len() as u64);
        self.out.extend(content);
        self.check = check_of(self.check, &self.out[begin..]);
        self.out.extend(self.check.to_le_bytes());
    }

    #[inline]
    pub(crate) fn waiting(&self) -> usize {
        self.out.len()
    }

    /// Whole blocks since the last time.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }
}

fn check_of(before: u32, block: &[u8]) -> u32 {
    let mut hasher = Hasher::new();
    hasher.update(&before.to_le_bytes());
    hasher.update(block);
    hasher.finalize()
}

/// Totals of an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EndTotals {
    pub calls: u64,
    /// Frames, those included that were lost behind the last one that arrived.
    pub sent: u64,
    pub digest: u64,
}

/// A log that has been read: its blocks are whole, and all of one connection.
#[derive(Debug)]
pub struct ConnectionLog<'a> {
    header: LogHeader,
    /// Blocks of each end, with their positions.
    pub(crate) blocks: [Vec<(usize, EncodedColumns<'a>)>; 2],
    pub(crate) totals: Option<[EndTotals; 2]>,
    len: usize,
}

impl<'a> ConnectionLog<'a> {
    /// Reads a whole log.
    pub fn read(bytes: &'a [u8]) -> Result<Self, LogError> {
        let (log, end) = Self::blocks(bytes)?;
        match (log.totals, end) {
            (_, Some(error)) => Err(error),
            (None, None) => Err(LogError { at: bytes.len(), fault: LogFault::Cut }),
            (Some(totals), None) => log.all_there(&totals).map(|()| log),
        }
    }

    /// Reads a log that may still be written, up to its last whole block.
    pub fn read_so_far(bytes: &'a [u8]) -> Result<Self, LogError> {
        match Self::blocks(bytes)? {
            (log, Some(LogError { fault: LogFault::Cut, .. }) | None) => Ok(log),
            (_, Some(error)) => Err(error),
        }
    }

    /// Header of the log.
    pub fn header(&self) -> &LogHeader {
        &self.header
    }

    /// True if it has its end.
    pub fn is_complete(&self) -> bool {
        self.totals.is_some()
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if nothing happened at either end.
    pub fn is_empty(&self) -> bool {
        self.blocks.iter().all(Vec::is_empty)
    }

    /// Bytes of each column.
    pub fn column_bytes(&self) -> ColumnBytes {
        let mut sum = ColumnBytes::default();
        self.blocks.iter().flatten().for_each(|(_, columns)| sum += columns.bytes());
        sum
    }

    /// All whole blocks, and what is wrong behind them.
    fn blocks(bytes: &'a [u8]) -> Result<(Self, Option<LogError>), LogError> {
        let mut check = prefix(bytes)?;
        let mut reader = LogReader::new(&bytes[PREFIX..]);
        let (header, mut error) = match block(bytes, &mut reader, &mut check)? {
            (at, HEADER, content) => (LogHeader::parse(content).map_err(|fault| LogError { at, fault })?, None),
            (at, ..) => return Err(LogError { at, fault: LogFault::Value("first block") }),
        };
        let mut log = Self { header, blocks: Default::default(), totals: None, len: bytes.len() };
        while !reader.is_empty() && error.is_none() {
            let at = bytes.len() - reader.len();
            error = match block(bytes, &mut reader, &mut check) {
                Ok((at, kind, content)) => log.add(at, kind, content).map_err(|fault| LogError { at, fault }).err(),
                Err(LogError { fault, .. }) => Some(LogError { at, fault }),
            };
        }
        Ok((log, error))
    }

    fn add(&mut self, at: usize, kind: u8, content: &'a [u8]) -> Result<(), LogFault> {
        if self.totals.is_some() {
            return Err(LogFault::Trailing);
        }
        match kind {
            CLIENT | SERVER => self.blocks[usize::from(kind - CLIENT)].push((at, EncodedColumns::parse(content)?)),
            END => self.totals = Some(totals(content)?),
            _ => return Err(LogFault::Value("block")),
        }
        Ok(())
    }

    fn all_there(&self, totals: &[EndTotals; 2]) -> Result<(), LogError> {
        for side in LogSide::BOTH {
            let calls: u64 = self.blocks[side as usize].iter().map(|(_, columns)| columns.calls_made).sum();
            if calls != totals[side as usize].calls {
                return Err(LogError { at: self.len, fault: LogFault::Missing(side) });
            }
        }
        Ok(())
    }
}

/// The check that blocks begin with.
fn prefix(bytes: &[u8]) -> Result<u32, LogError> {
    let wrong = |at, fault| Err(LogError { at, fault });
    let known = bytes.len().min(MAGIC.len());
    if bytes[..known] != MAGIC[..known] || bytes.is_empty() {
        return wrong(0, LogFault::NotALog);
    }
    let Some(&[_, _, _, _, _, _, f0, f1, b0, b1, b2, b3]) = bytes.first_chunk::<PREFIX>() else {
        return wrong(bytes.len(), LogFault::Cut);
    };
    let (format, behaviour) = (u16::from_le_bytes([f0, f1]), u32::from_le_bytes([b0, b1, b2, b3]));
    if format != FORMAT {
        return wrong(MAGIC.len(), LogFault::Format(format));
    }
    if behaviour != tcp::BEHAVIOUR {
        return wrong(MAGIC.len() + 2, LogFault::Behaviour(behaviour));
    }
    Ok(check_of(0, &bytes[..PREFIX]))
}

/// The next block: its position, kind and content.
fn block<'a>(bytes: &[u8], reader: &mut LogReader<'a>, check: &mut u32) -> Result<(usize, u8, &'a [u8]), LogError> {
    let at = bytes.len() - reader.len();
    let mut whole = |reader: &mut LogReader<'a>| {
        let (kind, len) = (reader.byte()?, reader.small("length")?);
        let content = reader.take(len)?;
        let end = bytes.len() - reader.len();
        let stored = reader.take(4)?;
        *check = check_of(*check, &bytes[at..end]);
        if stored == check.to_le_bytes() { Ok((at, kind, content)) } else { Err(LogFault::Check) }
    };
    whole(reader).map_err(|fault| {
        let fault = if fault == LogFault::Short { LogFault::Cut } else { fault };
        LogError { at, fault }
    })
}

fn totals(content: &[u8]) -> Result<[EndTotals; 2], LogFault> {
    let mut reader = LogReader::new(content);
    let mut of_end = || Ok(EndTotals { calls: reader.number()?, sent: reader.number()?, digest: reader.word()? });
    let totals = [of_end()?, of_end()?];
    if reader.is_empty() { Ok(totals) } else { Err(LogFault::Value("end")) }
}
