//! Reads a captured frame as a TCP segment: RFC 9293, RFC 7323, RFC 2018.

mod opening;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use capture::CaptureRecord;
use wire::ip;
use wire::layers::{IpLayer, IpVersion};

pub(crate) use opening::OpeningNote;

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

/// The year 2116: whatever is added to a time fits behind it.
pub(crate) const LATEST: u64 = 1 << 62;

/// SACK blocks that fit a header.
const MOST_BLOCKS: usize = 4;

/// Options of a header that matter here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SegmentOptions {
    pub mss: Option<u16>,
    pub scale: Option<u8>,
    pub sack_permitted: bool,
    /// TSval and TSecr.
    pub timestamps: Option<(u32, u32)>,
    blocks: [(u32, u32); MOST_BLOCKS],
    block_count: u8,
    /// The capture ends within them.
    pub cut: bool,
}

impl SegmentOptions {
    pub(crate) fn blocks(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.block_count)]
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CapturedSegment {
    /// Nanoseconds, by the capture's clock.
    pub at: u64,
    /// Number in the file, from 1.
    pub number: u64,
    pub source: SocketAddr,
    pub destination: SocketAddr,
    /// `None` where the packet has none that could count.
    pub ip_id: Option<u16>,
    pub seq: u32,
    pub ack: u32,
    flags: u8,
    pub window: u16,
    /// Payload.
    pub len: u32,
    pub options: SegmentOptions,
}

impl CapturedSegment {
    pub(crate) fn fin(&self) -> bool {
        self.flags & FIN != 0
    }

    pub(crate) fn syn(&self) -> bool {
        self.flags & SYN != 0
    }

    pub(crate) fn rst(&self) -> bool {
        self.flags & RST != 0
    }

    pub(crate) fn has_ack(&self) -> bool {
        self.flags & ACK != 0
    }

    /// Hash that distinguishes it from other segments of its sender, but not from a copy that a bridge or the network made.
    pub(crate) fn fingerprint(&self) -> u64 {
        const PRIME: u64 = 0x9e37_79b9_7f4a_7c15;
        let stamp = self.options.timestamps.map_or(0, |(value, _)| value);
        let words = [
            u64::from(self.seq) << 32 | u64::from(self.ack),
            u64::from(self.len) << 32 | u64::from(stamp),
            u64::from(self.window) << 32 | u64::from(self.flags) << 16 | u64::from(self.ip_id.unwrap_or(0)),
            self.options.blocks().first().map_or(0, |(from, to)| u64::from(*from) << 32 | u64::from(*to)),
        ];
        words.iter().fold(PRIME, |hash, word| (hash ^ word).wrapping_mul(PRIME).rotate_left(29))
    }
}

/// Content of a frame, as far as an explanation uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameContent {
    Segment(CapturedSegment),
    NotTcp,
    /// TCP that cannot be used: a fragment, or less than a header.
    Unusable,
}

/// Reads the frame with this number.
pub(crate) fn read_frame(record: &CaptureRecord<'_>, number: u64) -> FrameContent {
    let Some(bytes) = record.link.and_then(|link| link.inside(record.bytes)) else { return FrameContent::NotTcp };
    let Some(layer) = IpLayer::of(bytes, 0) else { return FrameContent::NotTcp };
    if layer.protocol != ip::TCP {
        return FrameContent::NotTcp;
    }
    // The bytes before the IP header are kept completely.
    let on_wire = (record.len as usize).saturating_sub(record.bytes.len() - bytes.len());
    segment(&layer, bytes, on_wire, record.at.0.min(LATEST), number)
        .map_or(FrameContent::Unusable, FrameContent::Segment)
}

fn segment(layer: &IpLayer, bytes: &[u8], on_wire: usize, at: u64, number: u64) -> Option<CapturedSegment> {
    if layer.fragment.is_some_and(|fragment| fragment.offset() != 0 || fragment.has_more()) {
        return None;
    }
    let header = bytes.get(layer.transport..)?;
    let head: &[u8; 16] = header.first_chunk()?;
    let header_len = usize::from(head[12] >> 4) * 4;
    // A card that cuts what is longer than 64 KB is handed it with no length.
    let has_no_length = matches!((layer.version, layer.total), (IpVersion::V4, 0) | (IpVersion::V6, 40));
    let total = if has_no_length { on_wire } else { layer.total };
    let len = total.checked_sub(layer.transport - layer.at)?.checked_sub(header_len)?;
    if header_len < 20 {
        return None;
    }
    let (from, to) = addresses(layer, bytes);
    let half = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let word = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    Some(CapturedSegment {
        at,
        number,
        source: SocketAddr::new(from, half(0)),
        destination: SocketAddr::new(to, half(2)),
        ip_id: identification(layer, bytes),
        seq: word(4),
        ack: word(8),
        flags: head[13],
        window: half(14),
        len: len as u32,
        options: options(header, header_len),
    })
}

/// IPv4 only; zero is what stacks write that do not count.
fn identification(layer: &IpLayer, bytes: &[u8]) -> Option<u16> {
    let id = *bytes.get(layer.at + 4..)?.first_chunk()?;
    (layer.version == IpVersion::V4).then_some(u16::from_be_bytes(id)).filter(|id| *id != 0)
}

fn addresses(layer: &IpLayer, bytes: &[u8]) -> (IpAddr, IpAddr) {
    fn part<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
        bytes.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or([0; N])
    }
    let both = layer.addresses(bytes);
    match layer.version {
        IpVersion::V4 => (Ipv4Addr::from(part::<4>(both, 0)).into(), Ipv4Addr::from(part::<4>(both, 4)).into()),
        IpVersion::V6 => (Ipv6Addr::from(part::<16>(both, 0)).into(), Ipv6Addr::from(part::<16>(both, 16)).into()),
    }
}

fn options(header: &[u8], header_len: usize) -> SegmentOptions {
    let mut options = SegmentOptions { cut: header.len() < header_len, ..SegmentOptions::default() };
    let mut rest = header.get(20..header_len.min(header.len())).unwrap_or_default();
    while let [kind, behind @ ..] = rest {
        match kind {
            0 => break,
            1 => rest = behind,
            kind => {
                let Some(len) = behind.first().map(|len| usize::from(*len)).filter(|len| *len >= 2) else { break };
                let Some(body) = rest.get(2..len) else { break };
                take_option(&mut options, *kind, body);
                rest = &rest[len..];
            }
        }
    }
    options
}

fn take_option(options: &mut SegmentOptions, kind: u8, body: &[u8]) {
    let word = |at: usize| body.get(at..).and_then(<[u8]>::first_chunk).map(|bytes| u32::from_be_bytes(*bytes));
    match (kind, body) {
        (2, [high, low]) => options.mss = Some(u16::from_be_bytes([*high, *low])),
        (3, [shift]) => options.scale = Some((*shift).min(14)),
        (4, []) => options.sack_permitted = true,
        (5, _) => {
            for at in 0..(body.len() / 8).min(MOST_BLOCKS) {
                options.blocks[at] = (word(8 * at).unwrap_or(0), word(8 * at + 4).unwrap_or(0));
                options.block_count = at as u8 + 1;
            }
        }
        (8, _) => options.timestamps = word(0).zip(word(4)),
        _ => {}
    }
}
