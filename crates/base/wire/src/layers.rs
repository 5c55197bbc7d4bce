//! Offsets of the layers of a frame: VLAN tags, IPv4 or IPv6, a fragment, the transport header, its payload.
//!
//! ```text
//!   addresses   0 to 2 tags   EtherType ┃ IP header, options or extensions ┃ transport header ┃ payload ┃ padding
//!               12                      network                            transport          payload   end
//! ```
//!
//! Everything that looks into frames begins here, so that all of it agrees about tags, options, extension headers and
//! fragments. [`Layers`] holds offsets; the bytes stay where they are.
//!
//! Any bytes are accepted. A header that is not there, or that contradicts its EtherType, is `None`; lengths are reported
//! as the headers claim them, so `transport` and `end` may lie behind the last byte. Checksums are not verified.

use crate::ethernet::{self, IPV4, IPV6};
use crate::ip::{TCP, UDP};

/// Extension headers of IPv6 that are followed; what is behind others (IPsec, mobility) counts as theirs.
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION: u8 = 60;
/// More of them in one packet are an attack, not a packet.
const MOST_EXTENSIONS: usize = 8;

/// The layers of an Ethernet frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layers {
    /// VLAN identifiers, the outer one first; zero, which means no VLAN, where there is no tag.
    pub vlans: [u16; 2],
    /// The type behind at most two tags; that of a third tag if there are more.
    pub ethertype: u16,
    /// Offset of the header that the type names.
    pub network: usize,
    /// `None` if the frame carries no IP packet whose headers are whole.
    pub ip: Option<IpLayer>,
}

/// Version of the Internet Protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpVersion {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl IpVersion {
    /// Length of a header without options and extensions.
    #[inline]
    pub const fn header_len(self) -> usize {
        match self {
            Self::V4 => 20,
            Self::V6 => 40,
        }
    }
}

/// An IP packet by its headers, at offsets into the bytes that it was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpLayer {
    /// Version of the header.
    pub version: IpVersion,
    /// Offset of the header.
    pub at: usize,
    /// Length that the header claims, itself included.
    pub total: usize,
    /// Protocol number of the header behind options and extension headers.
    pub protocol: u8,
    /// Offset of that header.
    pub transport: usize,
    /// `None` for a packet of IPv4 that is whole, and for one of IPv6 without a fragment header.
    pub fragment: Option<Fragment>,
}

/// Part of a packet that a fragment is. One word, because a struct of small fields would go by way of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment(u64);

impl Fragment {
    /// `offset` is in units of 8 bytes.
    #[inline]
    pub fn new(id: u32, offset: u16, has_more: bool) -> Self {
        Self(u64::from(id) << 32 | u64::from(offset) << 1 | u64::from(has_more))
    }

    /// Identification of the packet that it is part of.
    #[inline]
    pub fn id(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Place of the fragment in the packet, in units of 8 bytes.
    #[inline]
    pub fn offset(self) -> u16 {
        (self.0 >> 1) as u16
    }

    /// True if further fragments follow.
    #[inline]
    pub fn has_more(self) -> bool {
        self.0 & 1 != 0
    }
}

impl Layers {
    /// `None` for a frame that ends before its type.
    #[inline]
    pub fn of(frame: &[u8]) -> Option<Self> {
        Self::from_type(frame, ethernet::TYPE)
    }

    /// Finds the IP layer in bytes that have an EtherType, or a VLAN tag before it, at `at`.
    #[inline]
    pub fn from_type(bytes: &[u8], mut at: usize) -> Option<Self> {
        let half = |at: usize| Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
        let (mut ethertype, mut vlans) = (half(at)?, [0; 2]);
        for vlan in &mut vlans {
            if !ethernet::is_tag(ethertype) {
                break;
            }
            *vlan = half(at + 2)? & 0x0fff;
            at += ethernet::TAG;
            ethertype = half(at)?;
        }
        let network = at + 2;
        let ip = match ethertype {
            IPV4 => IpLayer::v4(bytes, network),
            IPV6 => IpLayer::v6(bytes, network),
            _ => None,
        };
        Some(Self { vlans, ethertype, network, ip })
    }
}

impl IpLayer {
    /// The packet at `at`, of the version that it says it is.
    #[inline]
    pub fn of(bytes: &[u8], at: usize) -> Option<Self> {
        match bytes.get(at)? >> 4 {
            4 => Self::v4(bytes, at),
            6 => Self::v6(bytes, at),
            _ => None,
        }
    }

    #[inline]
    fn v4(bytes: &[u8], at: usize) -> Option<Self> {
        const MORE: u16 = 1 << 13;
        let head: &[u8; 20] = bytes.get(at..)?.first_chunk()?;
        // The version, and a header of at least five words.
        if !(0x45..=0x4f).contains(&head[0]) {
            return None;
        }
        let half = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
        let (field, id) = (half(6), u32::from(half(4)));
        let (offset, has_more) = (field & (MORE - 1), field & MORE != 0);
        Some(Self {
            version: IpVersion::V4,
            at,
            total: usize::from(half(2)),
            protocol: head[9],
            transport: at + usize::from(head[0] & 0x0f) * 4,
            fragment: (offset != 0 || has_more).then_some(Fragment::new(id, offset, has_more)),
        })
    }

    #[inline]
    fn v6(bytes: &[u8], at: usize) -> Option<Self> {
        let head: &[u8; 40] = bytes.get(at..)?.first_chunk()?;
        if head[0] >> 4 != 6 {
            return None;
        }
        let total = head.len() + usize::from(u16::from_be_bytes([head[4], head[5]]));
        let (next, behind) = (head[6], at + head.len());
        let has_extensions = matches!(next, HOP_BY_HOP | ROUTING | FRAGMENT | DESTINATION);
        let (protocol, transport, fragment) =
            if has_extensions { behind_extensions(bytes, next, behind) } else { (next, behind, None) };
        Some(Self { version: IpVersion::V6, at, total, protocol, transport, fragment })
    }

    /// Offset of the packet's end, as its header claims it.
    #[inline]
    pub fn end(&self) -> usize {
        self.at + self.total
    }

    /// Neither options nor extension headers.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.transport == self.at + self.version.header_len()
    }

    /// True for a fragment other than the first, which has no transport header.
    #[inline]
    pub fn is_later_fragment(&self) -> bool {
        self.fragment.is_some_and(|fragment| fragment.offset() != 0)
    }

    /// True if the packet is not a fragment and ends where `bytes` end.
    #[inline]
    pub fn is_whole(&self, bytes: &[u8]) -> bool {
        self.fragment.is_none() && self.end() == bytes.len()
    }

    /// Source and destination, as they lie in the header.
    #[inline]
    pub fn addresses<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        let range = match self.version {
            IpVersion::V4 => self.at + 12..self.at + 20,
            IpVersion::V6 => self.at + 8..self.at + 40,
        };
        bytes.get(range).unwrap_or_default()
    }

    /// Contents of the packet, from the transport header on, as far as the bytes go; without the padding of a short frame.
    #[inline]
    pub fn inside<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        bytes.get(self.transport..self.end().min(bytes.len())).unwrap_or_default()
    }

    /// Offset of the payload of TCP or UDP; `None` for other protocols, and if the header is not whole.
    #[inline]
    pub fn payload(&self, bytes: &[u8]) -> Option<usize> {
        let inside = self.inside(bytes);
        let (header, least) = match self.protocol {
            TCP => (usize::from(inside.get(12)? >> 4) * 4, 20),
            UDP => (8, 8),
            _ => return None,
        };
        let is_there = (least..=inside.len()).contains(&header) && !self.is_later_fragment();
        is_there.then_some(self.transport + header)
    }
}

/// Protocol and place of what follows the extension headers at `at`, as far as they are there, and the fragment header
/// among them. Three values rather than a packet: a packet without extensions then stays in registers.
#[cold]
fn behind_extensions(bytes: &[u8], mut next: u8, mut at: usize) -> (u8, usize, Option<Fragment>) {
    let mut fragment = None;
    for _ in 0..MOST_EXTENSIONS {
        let Some(extension) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) else { break };
        let is_later = match next {
            HOP_BY_HOP | ROUTING | DESTINATION => {
                at += 8 * (usize::from(extension[1]) + 1);
                false
            }
            FRAGMENT => {
                let [_, _, high, low, a, b, c, d] = *extension;
                let (field, id) = (u16::from_be_bytes([high, low]), u32::from_be_bytes([a, b, c, d]));
                fragment = Some(Fragment::new(id, field >> 3, field & 1 != 0));
                at += 8;
                field >> 3 != 0
            }
            _ => break,
        };
        next = extension[0];
        // A later fragment has no further header.
        if is_later {
            break;
        }
    }
    (next, at, fragment)
}
