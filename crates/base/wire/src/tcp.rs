//! TCP headers (RFC 9293), with timestamps (RFC 7323) and SACK blocks (RFC 2018).

use crate::checksum::Sum;
use crate::ipv4;

/// A header; the payload behind it is zeros, so that the checksum needs no look at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpHeader<'a> {
    /// Source port.
    pub source: u16,
    /// Destination port.
    pub destination: u16,
    /// Sequence number of the first byte.
    pub seq: u32,
    /// The first segment of a connection acknowledges nothing.
    pub ack: Option<u32>,
    /// Window field of the header, scaled.
    pub window: u16,
    /// The connection is being opened.
    pub syn: bool,
    /// Options that the end that opens it offers.
    pub opening: Option<TcpOpening>,
    /// The receiver should not wait for more.
    pub push: bool,
    /// The stream ends here.
    pub fin: bool,
    /// Echo of congestion experienced.
    pub ece: bool,
    /// Congestion window reduced.
    pub cwr: bool,
    /// True if it has timestamps.
    pub timed: bool,
    /// The sender's timestamp.
    pub timestamp: u32,
    /// The timestamp that is echoed.
    pub echo: u32,
    /// First byte of each block, and the one behind its last; three at most, since timestamps take their room.
    pub sack: &'a [(u32, u32)],
}

/// Options of a SYN, beside its timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpOpening {
    /// The largest payload of a segment, timestamps included (RFC 9293 §3.7.1).
    pub mss: u16,
    /// Windows count in units of two to this power (RFC 7323).
    pub scale: u8,
    /// Selective acknowledgements are understood (RFC 2018).
    pub sack: bool,
}

const MOST_BLOCKS: usize = 3;

impl TcpHeader<'_> {
    /// Length with options.
    pub fn size(&self) -> usize {
        let blocks = self.blocks().len();
        let opening = if self.opening.is_some() { 12 } else { 0 };
        let times = if self.timed { 12 } else { 0 };
        20 + times + opening + if blocks == 0 { 0 } else { 4 + 8 * blocks }
    }

    fn blocks(&self) -> &[(u32, u32)] {
        &self.sack[..self.sack.len().min(MOST_BLOCKS)]
    }

    /// Appends the header of a segment that `ip` carries.
    pub fn emit(&self, ip: &ipv4::Ipv4Header, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend(self.source.to_be_bytes());
        out.extend(self.destination.to_be_bytes());
        out.extend(self.seq.to_be_bytes());
        out.extend(self.ack.unwrap_or_default().to_be_bytes());
        let flags = u8::from(self.ack.is_some()) << 4
            | u8::from(self.fin)
            | u8::from(self.syn) << 1
            | u8::from(self.push) << 3
            | u8::from(self.ece) << 6
            | u8::from(self.cwr) << 7;
        out.extend([((self.size() / 4) << 4) as u8, flags]);
        out.extend(self.window.to_be_bytes());
        out.extend([0; 4]);
        if self.timed {
            out.extend([1, 1, 8, 10]);
            out.extend(self.timestamp.to_be_bytes());
            out.extend(self.echo.to_be_bytes());
        }
        if let Some(TcpOpening { mss, scale, sack }) = self.opening {
            let [high, low] = mss.to_be_bytes();
            out.extend([2, 4, high, low, 1, 3, 3, scale]);
            out.extend(if sack { [4, 2, 1, 1] } else { [1; 4] });
        }
        self.emit_blocks(out);
        let checksum = ip.pseudo_sum().and(Sum::of(&out[start..])).checksum();
        out[start + 16..start + 18].copy_from_slice(&checksum);
    }

    fn emit_blocks(&self, out: &mut Vec<u8>) {
        let blocks = self.blocks();
        if blocks.is_empty() {
            return;
        }
        out.extend([1, 1, 5, (2 + 8 * blocks.len()) as u8]);
        for (from, to) in blocks {
            out.extend(from.to_be_bytes());
            out.extend(to.to_be_bytes());
        }
    }
}
