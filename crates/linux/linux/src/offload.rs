//! Offloads in software: between a host that speaks in super-frames and a wire that carries MTU frames.
//!
//! A host interface with a virtio-net header in front of every frame (virtio 1.2 §5.1.6; TAP with
//! `IFF_VNET_HDR`, packet sockets with `PACKET_VNET_HDR`) leaves checksums and segmentation to the program
//! behind it, and takes merged segments back. [`segment`] does what it leaves, as `tcp_gso_segment` of
//! Linux would; [`Coalescer`] merges frames off the wire, as `tcp_gro_receive` would:
//!
//! ```text
//!   host ── super-frame ──▶ segment ──▶ frames with checksums ──▶ wire
//!   host ◀── super-frame ── Coalescer ◀── frames, checksums verified ── wire
//! ```
//!
//! Invariants: what is merged would be segmented into the same frames again, but for identifications that
//! DF makes meaningless; a frame whose checksum does not hold reaches the host as it came; no input panics;
//! no frame costs an allocation.

mod coalesce;
mod crc32c;
mod joined;
mod pieces;
mod segment;
mod tunnel;

pub use coalesce::{Coalescer, FramePart, HostWrite};
pub use joined::{GsoRun, MOST_JOINED, finish_tcp, tcp_seq, unpush};
pub use pieces::Pieces;
pub use segment::{FrameSink, MalformedSuperFrame, SegmentCounts, segment};

use wire::checksum::Sum;
use wire::ip;
use wire::layers::{IpLayer, IpVersion};

/// Work that the host leaves to be done on a frame, or facts that it reports about one: `struct virtio_net_hdr`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VnetHeader {
    pub flags: u8,
    pub gso_type: u8,
    /// Length of all headers, from the start of the frame; a hint.
    pub hdr_len: u16,
    /// Payload of each segment.
    pub gso_size: u16,
    /// Offset from which the checksum is summed, to the end of the frame.
    pub csum_start: u16,
    /// Offset of the checksum from `csum_start`.
    pub csum_offset: u16,
}

impl VnetHeader {
    pub const LEN: usize = 10;

    /// The checksum field holds the sum of the pseudo-header; the rest is to be added.
    pub const NEEDS_CSUM: u8 = 1;
    /// The checksum was verified.
    pub(crate) const DATA_VALID: u8 = 2;

    pub const GSO_NONE: u8 = 0;
    pub const GSO_TCPV4: u8 = 1;
    /// Datagrams to be fragmented (UFO).
    #[cfg(test)]
    const GSO_UDP: u8 = 3;
    pub(crate) const GSO_TCPV6: u8 = 4;
    /// Datagrams to be split into datagrams (USO).
    pub(crate) const GSO_UDP_L4: u8 = 5;
    /// Flag beside a TCP type: only the first segment keeps CWR.
    pub(crate) const GSO_ECN: u8 = 0x80;

    /// Fields are in the host's own order, as with every interface that was not asked for another.
    pub fn parse(bytes: [u8; Self::LEN]) -> Self {
        let [flags, gso_type, fields @ ..] = bytes;
        let [hdr_len, gso_size, csum_start, csum_offset] =
            [0, 2, 4, 6].map(|at| u16::from_ne_bytes([fields[at], fields[at + 1]]));
        Self { flags, gso_type, hdr_len, gso_size, csum_start, csum_offset }
    }

    pub fn emit(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..2].copy_from_slice(&[self.flags, self.gso_type]);
        let fields = [self.hdr_len, self.gso_size, self.csum_start, self.csum_offset];
        for (place, field) in bytes[2..].chunks_exact_mut(2).zip(fields) {
            place.copy_from_slice(&field.to_ne_bytes());
        }
        bytes
    }

    /// Moves the offsets behind bytes that were inserted between the addresses and the headers.
    pub fn shift(&mut self, bytes: u16) {
        if self.flags & Self::NEEDS_CSUM != 0 {
            self.csum_start = self.csum_start.saturating_add(bytes);
        }
        if self.gso_type != Self::GSO_NONE {
            self.hdr_len = self.hdr_len.saturating_add(bytes);
        }
    }

    /// The frame is what goes on the wire: it needs neither a checksum nor to be cut.
    pub fn is_finished(&self) -> bool {
        !self.needs_csum() && self.gso_type == Self::GSO_NONE
    }

    fn needs_csum(&self) -> bool {
        self.flags & Self::NEEDS_CSUM != 0
    }
}

/// Offsets at which the headers and the payload of a frame start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    version: IpVersion,
    network: usize,
    transport: usize,
    payload: usize,
}

impl Layout {
    #[inline]
    fn new(ip: &IpLayer, payload: usize) -> Self {
        Self { version: ip.version, network: ip.at, transport: ip.transport, payload }
    }

    /// Source and destination.
    fn addresses<'a>(&self, frame: &'a [u8]) -> &'a [u8] {
        let packet = &frame[self.network..];
        match self.version {
            IpVersion::V4 => &packet[12..20],
            IpVersion::V6 => &packet[8..40],
        }
    }

    /// True if the checksums of a TCP segment that ends at `end` hold.
    fn tcp_verifies(&self, frame: &[u8], end: usize) -> bool {
        let network = &frame[self.network..self.transport];
        let segment = &frame[self.transport..end];
        let pseudo = Sum::pseudo_header(self.addresses(frame), ip::TCP, segment.len());
        (self.version == IpVersion::V6 || Sum::of(network).verifies()) && pseudo.and(Sum::of(segment)).verifies()
    }

    /// Makes the network header that of a packet of `len` bytes, its other fields being final.
    fn put_packet_len(&self, frame: &mut [u8], len: usize) {
        let packet = &mut frame[self.network..];
        match self.version {
            IpVersion::V4 => {
                put_len(packet, 2, len);
                put(packet, 10, &[0, 0]);
                let checksum = Sum::of(&packet[..usize::from(packet[0] & 0x0f) * 4]).checksum();
                put(packet, 10, &checksum);
            }
            IpVersion::V6 => put_len(packet, 4, len - IpVersion::V6.header_len()),
        }
    }
}

const IPV4_DONT_FRAGMENT: u8 = 0x40;

const TCP_FIN: u8 = 0x01;
const TCP_PSH: u8 = 0x08;
const TCP_ACK: u8 = 0x10;

const TCP_CHECKSUM: usize = 16;
const UDP_CHECKSUM: usize = 6;
const SCTP_CHECKSUM: usize = 8;

fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn put(bytes: &mut [u8], at: usize, field: &[u8]) {
    bytes[at..at + field.len()].copy_from_slice(field);
}

/// Writes a length that the caller has bounded by that of an IP packet.
fn put_len(bytes: &mut [u8], at: usize, len: usize) {
    debug_assert!(len <= usize::from(u16::MAX));
    put(bytes, at, &(len as u16).to_be_bytes());
}

/// Frames for tests, and simple checks of the results.
#[cfg(test)]
mod sample {
    use super::{FrameSink, IpVersion, SegmentCounts, VnetHeader};

    /// Numbers as good as random, the same in every run.
    pub(crate) struct Lcg(u64);

    impl Lcg {
        pub(crate) fn new(seed: u64) -> Self {
            Self(seed)
        }

        pub(crate) fn next(&mut self) -> u32 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as u32
        }

        pub(crate) fn below(&mut self, bound: usize) -> usize {
            self.next() as usize % bound
        }
    }

    /// RFC 1071 as it is written there, of the numbers in the bytes rather than of memory.
    pub(crate) fn slow_sum(bytes: &[u8]) -> u16 {
        bytes.chunks(2).fold(0, |sum: u16, pair| {
            let word = u16::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| u16::from(low));
            let (sum, carry) = sum.overflowing_add(word);
            sum + u16::from(carry)
        })
    }

    #[derive(Clone)]
    pub(crate) struct Super {
        pub version: IpVersion,
        pub tags: usize,
        pub protocol: u8,
        /// IPv4 options or IPv6 extension headers; the latter start with the number of the first.
        pub between: Vec<u8>,
        pub options: Vec<u8>,
        pub payload: usize,
        pub size: u16,
        pub port: u16,
        pub id: u16,
        pub seq: u32,
        pub flags: u8,
    }

    /// A super-frame whose header checksums hold, and whose TCP or UDP checksum is left to be completed.
    impl Super {
        pub(crate) fn tcp(version: IpVersion, payload: usize, size: u16) -> Self {
            let options = vec![1, 1, 8, 10, 0, 0, 0, 9, 0, 0, 0, 8];
            let (tags, protocol, between) = (0, 6, vec![]);
            let (port, id, seq, flags) = (5_201, 0xfffe, 0xffff_f000, 0x18);
            Self { version, tags, protocol, between, options, payload, size, port, id, seq, flags }
        }

        pub(crate) fn udp(version: IpVersion, payload: usize, size: u16) -> Self {
            Self { protocol: 17, ..Self::tcp(version, payload, size) }
        }

        pub(crate) fn network(&self) -> usize {
            14 + 4 * self.tags
        }

        pub(crate) fn transport(&self) -> usize {
            match self.version {
                IpVersion::V4 => self.network() + 20 + self.between.len(),
                IpVersion::V6 => self.network() + 40 + self.between.len().saturating_sub(1),
            }
        }

        pub(crate) fn headers(&self) -> usize {
            self.transport() + if self.protocol == 6 { 20 + self.options.len() } else { 8 }
        }

        pub(crate) fn vnet(&self) -> VnetHeader {
            let gso_type = match (self.protocol, self.version) {
                (6, IpVersion::V4) => VnetHeader::GSO_TCPV4,
                (6, IpVersion::V6) => VnetHeader::GSO_TCPV6,
                _ => VnetHeader::GSO_UDP_L4,
            };
            VnetHeader {
                flags: VnetHeader::NEEDS_CSUM,
                gso_type,
                hdr_len: self.headers() as u16,
                gso_size: self.size,
                csum_start: self.transport() as u16,
                csum_offset: if self.protocol == 6 { 16 } else { 6 },
            }
        }

        pub(crate) fn frame(&self) -> Vec<u8> {
            let mut transport = self.transport_header();
            transport.extend((0..self.payload).map(|at| (at * 7 + at / 251 + usize::from(self.port)) as u8));
            let mut frame = vec![2; 12];
            for tag in 0..self.tags {
                frame.extend_from_slice(&[if tag + 1 < self.tags { [0x88, 0xa8] } else { [0x81, 0] }, [0, 5]].concat());
            }
            frame.extend(self.network_header(transport.len()));
            let at = frame.len() + if self.protocol == 6 { 16 } else { 6 };
            frame.extend(&transport);
            let sum = slow_sum(&pseudo_header(&frame, self.network(), self.protocol, transport.len()));
            frame[at..at + 2].copy_from_slice(&sum.to_be_bytes());
            frame
        }

        fn network_header(&self, transport_len: usize) -> Vec<u8> {
            let between = self.between.as_slice();
            if self.version == IpVersion::V6 {
                let (next, extensions) =
                    between.split_first().map_or((self.protocol, between), |(&next, rest)| (next, rest));
                let len = ((extensions.len() + transport_len) as u16).to_be_bytes();
                let mut header = vec![0x86, 0xdd, 0x60, 0x01, 0x02, 0x03, len[0], len[1], next, 64];
                header.extend(0x20..0x40);
                header.extend(extensions);
                return header;
            }
            let words = 0x45 + between.len() as u8 / 4;
            let len = ((20 + between.len() + transport_len) as u16).to_be_bytes();
            let id = self.id.to_be_bytes();
            let mut header = vec![words, 0, len[0], len[1], id[0], id[1], 0x40, 0, 64, self.protocol, 0, 0];
            header.extend_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
            header.extend(between);
            let checksum = !slow_sum(&header);
            header[10..12].copy_from_slice(&checksum.to_be_bytes());
            [vec![8, 0], header].concat()
        }

        fn transport_header(&self) -> Vec<u8> {
            let mut header = [self.port.to_be_bytes(), [0, 80]].concat();
            if self.protocol == 17 {
                header.extend_from_slice(&((8 + self.payload) as u16).to_be_bytes());
                header.extend_from_slice(&[0, 0]);
                return header;
            }
            header.extend_from_slice(&self.seq.to_be_bytes());
            header.extend_from_slice(&[
                0,
                0,
                0,
                3,
                0x50 + (self.options.len() as u8 / 4) * 16,
                self.flags,
                1,
                0,
                0,
                0,
                0,
                0,
            ]);
            header.extend(&self.options);
            header
        }

        /// True if the checksums of a segment hold, the addresses being those of the network header.
        pub(crate) fn verifies(&self, segment: &[u8]) -> bool {
            let (network, transport) = (self.network(), self.transport());
            let mut summed = pseudo_header(segment, network, self.protocol, segment.len() - transport);
            summed.extend_from_slice(&segment[transport..]);
            let network_verifies = self.version == IpVersion::V6 || slow_sum(&segment[network..transport]) == 0xffff;
            network_verifies && slow_sum(&summed) == 0xffff
        }

        pub(crate) fn segments(&self) -> Vec<Vec<u8>> {
            let mut frames = Frames::default();
            let segmented = super::segment(&self.vnet(), &self.frame(), &mut frames);
            assert_eq!(segmented, Ok(SegmentCounts { frames: frames.0.len() as u32, dropped: 0 }));
            frames.0
        }
    }

    fn pseudo_header(frame: &[u8], network: usize, protocol: u8, len: usize) -> Vec<u8> {
        let addresses = if frame[network] >> 4 == 4 { network + 12..network + 20 } else { network + 8..network + 40 };
        [&frame[addresses], &[0, protocol], &(len as u16).to_be_bytes()].concat()
    }

    /// Keeps every frame.
    #[derive(Default)]
    pub(crate) struct Frames(pub Vec<Vec<u8>>);

    impl FrameSink for Frames {
        fn next(&mut self, len: usize) -> Option<&mut [u8]> {
            self.0.push(vec![0xee; len]);
            self.0.last_mut().map(Vec::as_mut_slice)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vnet_header_comes_back_as_it_was_written() {
        let header =
            VnetHeader { flags: 1, gso_type: 0x81, hdr_len: 66, gso_size: 1448, csum_start: 34, csum_offset: 16 };
        assert_eq!(VnetHeader::parse(header.emit()), header);
        #[cfg(target_endian = "little")]
        assert_eq!(header.emit(), [1, 0x81, 66, 0, 0xa8, 5, 34, 0, 16, 0]);
    }
}
