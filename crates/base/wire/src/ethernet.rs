//! Bytes that a frame occupies on an Ethernet wire, and EtherTypes.

use units::Span;

/// The shortest frame, from destination address to frame check sequence.
pub const MIN_FRAME: u32 = 64;
/// The longest frame that we accept: a 9,000-byte jumbo payload with header, VLAN tag and check.
pub const MAX_FRAME: u32 = 9_022;
/// Preamble, start delimiter and the gap between frames.
pub(crate) const GAP_AND_PREAMBLE: u32 = 20;
/// Addresses, type and frame check sequence: what a frame of ours carries beside its payload.
pub const HEADER_AND_CHECK: u32 = 18;

/// Bytes of wire time that a frame of `len` bytes takes.
pub const fn on_wire(len: u32) -> u32 {
    (if len < MIN_FRAME { MIN_FRAME } else { len }) + GAP_AND_PREAMBLE
}

/// Model of the bytes and the time that a frame takes on a wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WireFraming {
    /// Ethernet: at least the shortest frame, with preamble and gap.
    #[default]
    Ethernet,
    /// The simulator of HPCC's authors: the frame's length and nothing else, in whole nanoseconds rounded down.
    HpccNs3,
}

impl WireFraming {
    /// Bytes of wire time that a frame of `len` bytes takes.
    #[inline]
    pub const fn on_wire(self, len: u32) -> u32 {
        match self {
            Self::Ethernet => on_wire(len),
            Self::HpccNs3 => len,
        }
    }

    /// Time for which the wire is busy with a frame that takes `exact` at its rate.
    #[inline]
    pub const fn busy(self, exact: Span) -> Span {
        match self {
            Self::Ethernet => exact,
            Self::HpccNs3 => Span::from_ps(exact.as_ps() - exact.as_ps() % 1_000),
        }
    }
}

/// Addresses and a type.
pub const ETHERNET: usize = 14;
/// Offset of the type, or of the first tag.
pub const TYPE: usize = 12;
/// A VLAN tag that a frame may have.
pub const TAG: usize = 4;

/// EtherType of IPv4.
pub const IPV4: u16 = 0x0800;
/// EtherType of IPv6.
pub const IPV6: u16 = 0x86dd;

/// True if a type is that of a VLAN tag: of 802.1Q, or of the outer one of two.
#[inline]
pub fn is_tag(ethertype: u16) -> bool {
    matches!(ethertype, 0x8100 | 0x88a8)
}

/// An Ethernet address.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Mac(pub [u8; 6]);

impl std::fmt::Display for Mac {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl std::fmt::Debug for Mac {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

impl std::str::FromStr for Mac {
    type Err = units::ParseError;

    fn from_str(text: &str) -> Result<Self, units::ParseError> {
        const EXPECTED: units::ParseError = units::ParseError::new("an Ethernet address such as 02:00:5e:10:00:01");
        let mut bytes = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut bytes {
            let part = parts.next().filter(|part| part.len() == 2).ok_or(EXPECTED)?;
            *byte = u8::from_str_radix(part, 16).map_err(|_| EXPECTED)?;
        }
        if parts.next().is_some() || bytes[0] & 1 != 0 { Err(EXPECTED) } else { Ok(Self(bytes)) }
    }
}

#[cfg(test)]
mod tests {
    use units::{Bytes, Rate};

    use super::*;

    #[test]
    fn a_full_frame_occupies_1538_bytes_and_a_short_one_84() {
        assert_eq!((on_wire(1_518), on_wire(64), on_wire(21)), (1_538, 84, 84));
    }

    /// 1,048 B are 8,384 bits: 83.84 ns at 100G, 20.96 ns at 400G; 1,090 B 87.2 and 21.8 ns; an ACK of 60 B 4.8 and 1.2 ns,
    /// one of 88 B 7.04 and 1.76 ns. They take as many whole nanoseconds.
    #[test]
    fn the_simulator_of_hpccs_authors_counts_lengths_alone_and_whole_nanoseconds() {
        let time = |gbps, len| {
            let framing = WireFraming::HpccNs3;
            framing.busy(Rate::gbps(gbps).span_of(Bytes::new(u64::from(framing.on_wire(len))))).as_ps()
        };
        assert_eq!([1_048, 1_090, 60, 88, 1_000].map(|len| time(100, len)), [83_000, 87_000, 4_000, 7_000, 80_000]);
        assert_eq!([1_048, 1_090, 60, 88, 1_000].map(|len| time(400, len)), [20_000, 21_000, 1_000, 1_000, 20_000]);
        assert_eq!(WireFraming::Ethernet.busy(Span::from_ps(83_840)), Span::from_ps(83_840));
    }
}
