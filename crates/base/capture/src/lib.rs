//! Capture files as a stream of frames: pcap and pcapng, plain or in gzip.
//!
//! One buffer is used again and again, and nothing is allocated for a frame. Times are nanoseconds, at any resolution
//! of the file: pcap of micro- and nanoseconds in either byte order (and the variant with longer records that some old
//! kernels wrote); pcapng with several sections and interfaces, each with a clock and a link type of its own.
//!
//! Invariants: reading any bytes ends, in a bounded buffer; a file that ends within a record is distinguished from one
//! that ends behind it, and the frames before are good; an error says at which byte.

mod blocks;
mod buffer;
mod classic;
mod link_type;
pub mod pcapng;
mod write;

use std::fmt;
use std::io::{self, BufReader, Cursor, Read};

use flate2::bufread::MultiGzDecoder;

use blocks::Blocks;
use buffer::Buffer;
use classic::Classic;
use units::Timestamp;

pub use link_type::LinkType;
pub use write::CaptureWriter;

/// A frame as it was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureRecord<'a> {
    pub at: Timestamp,
    /// Length on the wire, as far as the capture records it.
    pub len: u32,
    /// Captured bytes of the frame.
    pub bytes: &'a [u8],
    /// Its number in capture files.
    pub link_number: u32,
    /// `None` if it is none that is read here.
    pub link: Option<LinkType>,
}

/// Longest frame; a record that claims to be longer is damaged.
pub const LONGEST: usize = 1 << 20;

/// Reason why there are no more frames.
#[derive(Debug)]
pub enum CaptureError {
    /// It could not be read.
    Read(io::Error),
    /// The file is empty.
    Empty,
    /// The file is no capture; the text says what it looks like.
    NoCapture(String),
    /// Every frame has a link type that is not read here.
    LinkType(u32),
    /// It ends within the record that begins at this byte, after `packets` packets.
    Truncated { byte: u64, packets: u64 },
    /// The data at this byte is not valid.
    Damaged { byte: u64, packets: u64, what: String },
}

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => write!(f, "{error}"),
            Self::Empty => f.write_str("empty: not even the header of a capture"),
            Self::NoCapture(found) => write!(f, "no capture: {found}; expected pcap or pcapng, plain or in gzip"),
            Self::LinkType(number) => write!(
                f,
                "link type {number} is not read here; expected Ethernet (1), IP (101), Linux cooked (113, 276) or \
                 loopback (0, 108)"
            ),
            Self::Truncated { byte, packets } => {
                write!(f, "ends within the record that begins at byte {byte}, after {packets} whole packets")
            }
            Self::Damaged { byte, packets, what } => {
                write!(f, "damaged at byte {byte}, after {packets} packets: {what}")
            }
        }
    }
}

impl std::error::Error for CaptureError {}

/// A frame in the buffer: between these bytes of what has not been passed yet.
struct FrameSpan {
    at: Timestamp,
    len: u32,
    link_number: u32,
    link: Option<LinkType>,
    from: usize,
    until: usize,
    /// The whole record.
    record: usize,
}

enum CaptureFormat {
    Classic(Classic),
    Blocks(Blocks),
}

/// Reads one capture from its beginning to its end.
pub struct CaptureReader<'a> {
    buffer: Buffer<'a>,
    format: CaptureFormat,
    packets: u64,
    /// The last record, passed when the next one is asked for.
    passed: usize,
}

impl fmt::Debug for CaptureReader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("packets", &self.packets).field("byte", &self.buffer.offset()).finish()
    }
}

impl<'a> CaptureReader<'a> {
    pub fn new(source: impl Read + 'a) -> Result<Self, CaptureError> {
        let mut buffer = Buffer::new(unpacked(source).map_err(CaptureError::Read)?);
        let begins = match buffer.has(4) {
            Ok(true) => *buffer.ahead().first_chunk().unwrap_or(&[0; 4]),
            Ok(false) if buffer.ahead().is_empty() => return Err(CaptureError::Empty),
            Ok(false) => return Err(CaptureError::NoCapture(looks_like(buffer.ahead()))),
            Err(error) => return Err(stopped(error, 0, 0)),
        };
        let format = if begins == blocks::MAGIC {
            CaptureFormat::Blocks(Blocks::default())
        } else if let Some(kind) = classic::PcapMagic::of(begins) {
            CaptureFormat::Classic(Classic::new(kind, &mut buffer)?)
        } else {
            // More bytes distinguish text from noise better.
            let _ = buffer.has(64);
            return Err(CaptureError::NoCapture(looks_like(buffer.ahead())));
        };
        Ok(Self { buffer, format, packets: 0, passed: 0 })
    }

    /// Frames so far.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// The next frame; `None` behind the last one.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "a frame is lent, not given")]
    pub fn next(&mut self) -> Result<Option<CaptureRecord<'_>>, CaptureError> {
        self.buffer.pass(self.passed);
        self.passed = 0;
        let found = match &mut self.format {
            CaptureFormat::Classic(classic) => classic.next(&mut self.buffer),
            CaptureFormat::Blocks(blocks) => blocks.next(&mut self.buffer),
        };
        match found {
            Ok(Some(FrameSpan { at, len, link_number, link, from, until, record })) => {
                self.passed = record;
                self.packets += 1;
                Ok(Some(CaptureRecord { at, len, bytes: &self.buffer.ahead()[from..until], link_number, link }))
            }
            Ok(None) => Ok(None),
            Err(stop) => Err(stop.told(self.buffer.offset(), self.packets)),
        }
    }
}

/// Reason why the reading of a record ends, before its position is known.
enum ReadStop {
    Read(io::Error),
    Short,
    Damage(String),
}

impl From<io::Error> for ReadStop {
    fn from(error: io::Error) -> Self {
        Self::Read(error)
    }
}

impl ReadStop {
    #[cold]
    fn told(self, byte: u64, packets: u64) -> CaptureError {
        match self {
            Self::Read(error) => stopped(error, byte, packets),
            Self::Short => CaptureError::Truncated { byte, packets },
            Self::Damage(what) => CaptureError::Damaged { byte, packets, what },
        }
    }
}

/// An error of the gzip decoder is an error of the file.
fn stopped(error: io::Error, byte: u64, packets: u64) -> CaptureError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => CaptureError::Truncated { byte, packets },
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
            CaptureError::Damaged { byte, packets, what: format!("gzip: {error}") }
        }
        _ => CaptureError::Read(error),
    }
}

/// The bytes themselves, out of gzip if they are in it.
fn unpacked<'a>(mut source: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
    const GZIP: [u8; 2] = [0x1f, 0x8b];
    const PACKED: usize = 1 << 16;
    let mut begins = Vec::new();
    source.by_ref().take(GZIP.len() as u64).read_to_end(&mut begins)?;
    let packed = begins == GZIP;
    let whole = Cursor::new(begins).chain(source);
    Ok(if packed { Box::new(MultiGzDecoder::new(BufReader::with_capacity(PACKED, whole))) } else { Box::new(whole) })
}

/// Format that the file seems to have, for a user who took another file for a capture.
fn looks_like(bytes: &[u8]) -> String {
    const KNOWN: [(&[u8], &str); 8] = [
        (&[0x28, 0xb5, 0x2f, 0xfd], "it is packed by zstd (unpack it first: zstd -d)"),
        (&[0xfd, b'7', b'z', b'X', b'Z'], "it is packed by xz (unpack it first: xz -d)"),
        (b"BZh", "it is packed by bzip2 (unpack it first: bzip2 -d)"),
        (b"PK\x03\x04", "it is a zip archive (unpack it first)"),
        (&[0x04, 0x22, 0x4d, 0x18], "it is packed by lz4 (unpack it first: lz4 -d)"),
        (b"snoop\0\0\0", "it is a snoop file (editcap -F pcapng makes a pcapng of it)"),
        (b"GMBU", "it is a Network Monitor file (editcap -F pcapng makes a pcapng of it)"),
        (b"btsnoop\0", "it is a btsnoop file, of Bluetooth"),
    ];
    if let Some((_, what)) = KNOWN.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return (*what).to_owned();
    }
    let shown = &bytes[..bytes.len().min(16)];
    if shown.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace()) {
        return format!("it is text, and begins with {:?}", String::from_utf8_lossy(shown));
    }
    let hex: Vec<String> = shown.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("it begins with {}", hex.join(" "))
}

#[cfg(test)]
mod tests;
