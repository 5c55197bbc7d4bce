//! Link layers of captured frames.

use wire::ethernet;
use wire::layers::Layers;

/// Link layer with which a captured frame begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkType {
    Ethernet,
    /// No link header: the IP header comes first.
    Ip,
    /// Linux "cooked" captures of any interface, and their second version.
    Cooked,
    Cooked2,
    /// Four bytes of a BSD loopback.
    Loopback,
}

impl LinkType {
    /// Link type with this number in capture files; `None` for an unsupported one.
    pub fn from_number(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::Ethernet),
            12 | 14 | 101 | 228 | 229 => Some(Self::Ip),
            113 => Some(Self::Cooked),
            276 => Some(Self::Cooked2),
            0 | 108 => Some(Self::Loopback),
            _ => None,
        }
    }

    /// The IP packet in a frame.
    #[inline]
    pub fn inside(self, frame: &[u8]) -> Option<&[u8]> {
        let protocol = |at: usize| Some(u16::from_be_bytes(*frame.get(at..)?.first_chunk()?));
        let (kind, at) = match self {
            Self::Ethernet => Layers::of(frame).map(|layers| (layers.ethertype, layers.network))?,
            Self::Ip => return Some(frame),
            Self::Loopback => return frame.get(4..),
            Self::Cooked => (protocol(14)?, 16),
            Self::Cooked2 => (protocol(0)?, 20),
        };
        matches!(kind, ethernet::IPV4 | ethernet::IPV6).then(|| &frame[at.min(frame.len())..])
    }
}
