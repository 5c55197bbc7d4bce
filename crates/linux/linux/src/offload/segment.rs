//! From one super-frame to the frames that the wire carries (`tcp_gso_segment`, `__udp_gso_segment`).
//!
//! Every segment gets the headers of the super-frame with its own lengths, IP identification, sequence
//! number and checksums. FIN and PSH speak of the end of the payload and stay on the last segment; CWR is
//! an answer given once and stays on the first.
//!
//! The checksum field of a frame that needs one holds the sum of the pseudo-header. It is used rather than
//! recomputed: behind a routing header only the host knows the destination that was summed.
//!
//! Invariants: the headers are read from the frame, never believed from the vnet header, which must agree;
//! a frame is found malformed before the first buffer is asked for.

use wire::checksum::Sum;
use wire::gso::{self, TCP_CWR};
use wire::ip;
use wire::layers::{IpLayer, IpVersion, Layers};

use super::crc32c::crc32c;
use super::tunnel::Outer;
use super::{Layout, SCTP_CHECKSUM, TCP_CHECKSUM, UDP_CHECKSUM, VnetHeader, put, put_len};

/// Destination of frames that are written one after the other.
pub trait FrameSink {
    /// A buffer of exactly `len` bytes for the next frame, which ends the one before; `None` if there is no room.
    fn next(&mut self, len: usize) -> Option<&mut [u8]>;

    /// True if TCP segments may come without their checksum, to be completed by [`super::finish_tcp`] or never.
    fn takes_unfinished(&self) -> bool {
        false
    }

    /// The frame that was begun last has no TCP checksum.
    fn leave_unfinished(&mut self) {}
}

/// Numbers of frames that a frame was cut into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentCounts {
    pub frames: u32,
    /// Frames at the end for which there was no room.
    pub dropped: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MalformedSuperFrame {
    /// The frame ends before its checksum.
    Truncated,
    /// A header is not what another says it is, or does not fit.
    Contradictory,
    /// An offload that is not announced to any host.
    Unsupported,
}

/// Writes what `frame` stands for to `out`, as frames with complete checksums.
pub fn segment(
    vnet: &VnetHeader,
    frame: &[u8],
    out: &mut impl FrameSink,
) -> Result<SegmentCounts, MalformedSuperFrame> {
    const TCPV4_ECN: u8 = VnetHeader::GSO_TCPV4 | VnetHeader::GSO_ECN;
    const TCPV6_ECN: u8 = VnetHeader::GSO_TCPV6 | VnetHeader::GSO_ECN;
    let transport = match vnet.gso_type {
        VnetHeader::GSO_NONE => return whole(vnet, frame, out),
        VnetHeader::GSO_TCPV4 | TCPV4_ECN | VnetHeader::GSO_TCPV6 | TCPV6_ECN => SegmentTransport::Tcp,
        VnetHeader::GSO_UDP_L4 => SegmentTransport::Udp,
        _ => return Err(MalformedSuperFrame::Unsupported),
    };
    Ok(OffloadedFrame::read(vnet, frame, transport)?.split(out))
}

fn whole(vnet: &VnetHeader, frame: &[u8], out: &mut impl FrameSink) -> Result<SegmentCounts, MalformedSuperFrame> {
    let start = usize::from(vnet.csum_start);
    let field = start + usize::from(vnet.csum_offset);
    if vnet.needs_csum() && field + 2 > frame.len() {
        return Err(MalformedSuperFrame::Truncated);
    }
    let Some(buffer) = out.next(frame.len()) else { return Ok(SegmentCounts { frames: 0, dropped: 1 }) };
    buffer.copy_from_slice(frame);
    if vnet.needs_csum() && is_sctp(vnet, frame) {
        put(buffer, field, &[0; 4]);
        let checksum = crc32c(&buffer[start..]);
        put(buffer, field, &checksum);
    } else if vnet.needs_csum() {
        let checksum = Sum::of(&buffer[start..]).checksum_or_ones();
        put(buffer, field, &checksum);
    }
    Ok(SegmentCounts { frames: 1, dropped: 0 })
}

/// The vnet header says where a checksum goes, not which one it is; of those that hosts leave undone, all but that of SCTP
/// are the internet's.
fn is_sctp(vnet: &VnetHeader, frame: &[u8]) -> bool {
    let (start, field) = (usize::from(vnet.csum_start), usize::from(vnet.csum_offset));
    let is_there = field == SCTP_CHECKSUM && start + field + 4 <= frame.len();
    is_there && Layers::of(frame).and_then(|layers| layers.ip).is_some_and(|ip| ip.protocol == ip::SCTP)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SegmentTransport {
    Tcp,
    Udp,
}

impl SegmentTransport {
    fn protocol(self) -> u8 {
        match self {
            SegmentTransport::Tcp => ip::TCP,
            SegmentTransport::Udp => ip::UDP,
        }
    }

    fn checksum(self) -> usize {
        match self {
            SegmentTransport::Tcp => TCP_CHECKSUM,
            SegmentTransport::Udp => UDP_CHECKSUM,
        }
    }
}

/// A frame to be split.
struct OffloadedFrame<'a> {
    bytes: &'a [u8],
    layout: Layout,
    transport: SegmentTransport,
    /// Payload of every segment but the last.
    size: usize,
    /// The pseudo-header without the length, which is each segment's own.
    pseudo: Sum,
    /// Flags that segments after the first do not repeat.
    first_only: u8,
    /// The headers of the tunnel that it is in.
    outer: Option<Outer>,
    /// The checksum of a segment can be had from the segment alone.
    is_plain: bool,
}

impl<'a> OffloadedFrame<'a> {
    fn read(vnet: &VnetHeader, bytes: &'a [u8], transport: SegmentTransport) -> Result<Self, MalformedSuperFrame> {
        if vnet.gso_size == 0 {
            return Err(MalformedSuperFrame::Contradictory);
        }
        let ecn = vnet.gso_type & VnetHeader::GSO_ECN != 0;
        let (ip, outer) = Outer::find(vnet, bytes, transport.protocol()).unzip();
        let ip = ip.map_or_else(|| only_layer(vnet, bytes, transport), Ok)?;
        let layout = Layout::new(&ip, ip.payload(bytes).ok_or(MalformedSuperFrame::Contradictory)?);
        Ok(Self {
            bytes,
            layout,
            transport,
            size: usize::from(vnet.gso_size),
            pseudo: pseudo_header(vnet, bytes, &layout, transport)?,
            first_only: if ecn { TCP_CWR } else { 0 },
            is_plain: outer.is_none() && ip.is_plain(),
            outer,
        })
    }

    fn split(&self, out: &mut impl FrameSink) -> SegmentCounts {
        let (headers, payload) = self.bytes.split_at(self.layout.payload);
        let count = payload.len().div_ceil(self.size).max(1);
        let unfinished = self.transport == SegmentTransport::Tcp && self.is_plain && out.takes_unfinished();
        for index in 0..count {
            let start = index * self.size;
            let piece = &payload[start..payload.len().min(start + self.size)];
            let Some(buffer) = out.next(headers.len() + piece.len()) else {
                return SegmentCounts { frames: index as u32, dropped: (count - index) as u32 };
            };
            put(buffer, 0, headers);
            put(buffer, headers.len(), piece);
            self.patch_network(buffer, index);
            let segment = &mut buffer[self.layout.transport..];
            self.patch_transport(segment, start, index + 1 == count);
            if unfinished {
                out.leave_unfinished();
                continue;
            }
            self.patch_checksum(segment);
            if let Some(outer) = &self.outer {
                outer.patch(buffer, index);
            }
        }
        SegmentCounts { frames: count as u32, dropped: 0 }
    }

    fn patch_network(&self, frame: &mut [u8], index: usize) {
        let Layout { version, network, .. } = self.layout;
        if version == IpVersion::V4 {
            gso::patch_identification(&mut frame[network..], index);
        }
        self.layout.put_packet_len(frame, frame.len() - network);
    }

    fn patch_transport(&self, segment: &mut [u8], start: usize, last: bool) {
        match self.transport {
            SegmentTransport::Tcp => gso::patch_tcp(segment, start, last, self.first_only),
            SegmentTransport::Udp => put_len(segment, 4, segment.len()),
        }
    }

    fn patch_checksum(&self, segment: &mut [u8]) {
        put(segment, self.transport.checksum(), &[0, 0]);
        let sum = self.pseudo.and(Sum::of_number(segment.len())).and(Sum::of(segment));
        put(segment, self.transport.checksum(), &sum.checksum_or_ones());
    }
}

/// The packet of a frame without a tunnel, which is whole and of the type that the vnet header says.
fn only_layer(vnet: &VnetHeader, bytes: &[u8], transport: SegmentTransport) -> Result<IpLayer, MalformedSuperFrame> {
    let ip = Layers::of(bytes).and_then(|layers| layers.ip).ok_or(MalformedSuperFrame::Contradictory)?;
    let is_of_type = versions(vnet).contains(&ip.version) && ip.protocol == transport.protocol();
    if is_of_type && ip.is_whole(bytes) { Ok(ip) } else { Err(MalformedSuperFrame::Contradictory) }
}

/// IP versions that the packets of a super-frame may have.
pub(super) fn versions(vnet: &VnetHeader) -> &'static [IpVersion] {
    match vnet.gso_type & !VnetHeader::GSO_ECN {
        VnetHeader::GSO_TCPV4 => &[IpVersion::V4],
        VnetHeader::GSO_TCPV6 => &[IpVersion::V6],
        _ => &[IpVersion::V4, IpVersion::V6],
    }
}

fn pseudo_header(
    vnet: &VnetHeader,
    bytes: &[u8],
    layout: &Layout,
    transport: SegmentTransport,
) -> Result<Sum, MalformedSuperFrame> {
    if !vnet.needs_csum() {
        return Ok(Sum::pseudo_header(layout.addresses(bytes), transport.protocol(), 0));
    }
    let said = (usize::from(vnet.csum_start), usize::from(vnet.csum_offset));
    if said != (layout.transport, transport.checksum()) {
        return Err(MalformedSuperFrame::Contradictory);
    }
    let segment = &bytes[layout.transport..];
    let summed = Sum::of(&segment[transport.checksum()..][..2]);
    Ok(summed.without(Sum::of_number(segment.len())))
}

#[cfg(test)]
mod tests {
    use super::super::sample::{Frames, Lcg, Super, slow_sum};
    use super::super::{be16, be32};
    use super::*;

    fn payload_of(sample: &Super, segments: &[Vec<u8>]) -> Vec<u8> {
        segments.iter().flat_map(|segment| &segment[sample.headers()..]).copied().collect()
    }

    #[test]
    fn every_segment_is_a_frame_of_its_own() {
        let extensions = vec![0, 60, 0, 1, 4, 0, 0, 0, 0, 43, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let routing = vec![6, 0, 4, 0, 0, 0, 0, 0];
        let samples = [
            Super::tcp(IpVersion::V4, 60_000, 1_448),
            Super::tcp(IpVersion::V6, 60_000, 1_428),
            Super::tcp(IpVersion::V4, 3 * 1_448 + 1, 1_448),
            Super { tags: 1, ..Super::tcp(IpVersion::V4, 9_001, 999) },
            Super { tags: 2, options: vec![], ..Super::tcp(IpVersion::V6, 5, 2) },
            Super { between: vec![1; 8], ..Super::tcp(IpVersion::V4, 4_000, 536) },
            Super { between: [extensions, routing].concat(), ..Super::tcp(IpVersion::V6, 4_000, 1_000) },
            Super::udp(IpVersion::V4, 5_000, 1_200),
            Super { tags: 1, ..Super::udp(IpVersion::V6, 2_401, 1_200) },
        ];
        for sample in samples {
            let (frame, segments) = (sample.frame(), sample.segments());
            assert_eq!(segments.len(), sample.payload.div_ceil(usize::from(sample.size)));
            assert_eq!(payload_of(&sample, &segments), frame[sample.headers()..]);
            for (index, segment) in segments.iter().enumerate() {
                assert!(sample.verifies(segment), "segment {index}");
                let packet = &segment[sample.network()..];
                match sample.version {
                    IpVersion::V4 => {
                        assert_eq!(usize::from(be16(packet, 2)), packet.len());
                        assert_eq!(be16(packet, 4), sample.id.wrapping_add(index as u16));
                    }
                    IpVersion::V6 => assert_eq!(usize::from(be16(packet, 4)), packet.len() - 40),
                }
            }
        }
    }

    #[test]
    fn flags_stay_where_they_mean_something() {
        let sample = Super { flags: 0x99, ..Super::tcp(IpVersion::V4, 25, 10) };
        let vnet = VnetHeader { gso_type: VnetHeader::GSO_TCPV4 | VnetHeader::GSO_ECN, ..sample.vnet() };
        let mut frames = Frames::default();
        segment(&vnet, &sample.frame(), &mut frames).unwrap();
        let seen: Vec<(u32, u8)> = frames.0.iter().map(|frame| (be32(frame, 38), frame[47])).collect();
        assert_eq!(seen, [(0xffff_f000, 0x90), (0xffff_f00a, 0x10), (0xffff_f014, 0x19)]);
        assert!(frames.0.iter().all(|frame| sample.verifies(frame)));
    }

    #[test]
    fn datagrams_carry_their_own_length() {
        let lengths: Vec<u16> =
            Super::udp(IpVersion::V6, 250, 100).segments().iter().map(|frame| be16(frame, 58)).collect();
        assert_eq!(lengths, [108, 108, 58]);
    }

    #[test]
    fn a_host_that_verified_the_checksum_itself_gets_it_recomputed() {
        let sample = Super::tcp(IpVersion::V6, 100, 30);
        let mut frames = Frames::default();
        let vnet = VnetHeader { flags: VnetHeader::DATA_VALID, csum_start: 0, ..sample.vnet() };
        segment(&vnet, &sample.frame(), &mut frames).unwrap();
        assert_eq!(frames.0, sample.segments());
    }

    #[test]
    fn the_destination_behind_a_routing_header_is_the_one_the_host_summed() {
        let routing = [vec![43, 6, 2, 4, 1, 0, 0, 0, 0], vec![0x77; 16]].concat();
        let sample = Super { between: routing, ..Super::tcp(IpVersion::V6, 50, 20) };
        let mut frame = sample.frame();
        frame[38..54].fill(0x55);
        let mut frames = Frames::default();
        segment(&sample.vnet(), &frame, &mut frames).unwrap();
        for frame in &mut frames.0 {
            assert!(!sample.verifies(frame));
            frame.copy_within(22..38, 38);
            frame[38..54].iter_mut().for_each(|byte| *byte += 0x10);
            assert!(sample.verifies(frame));
        }
    }

    #[test]
    fn a_frame_that_needs_nothing_is_copied() {
        for frame in [&b"not even a frame"[..], &[]] {
            let mut frames = Frames::default();
            assert_eq!(
                segment(&VnetHeader::default(), frame, &mut frames),
                Ok(SegmentCounts { frames: 1, dropped: 0 })
            );
            assert_eq!(frames.0, [frame]);
        }
    }

    #[test]
    fn a_checksum_is_completed_where_the_host_says() {
        for sample in [Super::udp(IpVersion::V4, 77, 0), Super::tcp(IpVersion::V6, 78, 0)] {
            let mut frames = Frames::default();
            segment(&VnetHeader { gso_type: 0, ..sample.vnet() }, &sample.frame(), &mut frames).unwrap();
            assert_eq!(frames.0.len(), 1);
            assert!(sample.verifies(&frames.0[0]));
        }
    }

    #[test]
    fn an_sctp_packet_gets_the_checksum_of_sctp() {
        let sample = Super::udp(IpVersion::V4, 40, 0);
        let mut frame = sample.frame();
        frame[23] = ip::SCTP;
        // A CRC must not include the host's value of the field.
        frame[42..46].fill(0xee);
        let vnet = VnetHeader { gso_type: 0, csum_offset: SCTP_CHECKSUM as u16, ..sample.vnet() };
        let mut frames = Frames::default();
        segment(&vnet, &frame, &mut frames).unwrap();
        frame[42..46].fill(0);
        let expected = crc32c(&frame[34..]);
        assert_eq!((&frames.0[0][42..46], &frames.0[0][46..]), (&expected[..], &frame[46..]));
    }

    #[test]
    fn a_datagram_that_sums_to_nothing_does_not_say_that_it_has_no_checksum() {
        let sample = Super::udp(IpVersion::V4, 2, 2);
        let mut frame = sample.frame();
        let others = slow_sum(&[&frame[34..40], &frame[40..42]].concat());
        frame[42..].copy_from_slice(&(!others).to_be_bytes());
        for gso_type in [VnetHeader::GSO_NONE, VnetHeader::GSO_UDP_L4] {
            let mut frames = Frames::default();
            segment(&VnetHeader { gso_type, ..sample.vnet() }, &frame, &mut frames).unwrap();
            assert_eq!(frames.0[0][40..42], [0xff, 0xff]);
            assert!(sample.verifies(&frames.0[0]));
        }
    }

    #[test]
    fn a_full_sink_ends_it_and_the_rest_is_counted() {
        struct Room(usize, Vec<u8>);
        impl FrameSink for Room {
            fn next(&mut self, len: usize) -> Option<&mut [u8]> {
                self.0 = self.0.checked_sub(1)?;
                Some(&mut self.1[..len])
            }
        }
        let sample = Super::tcp(IpVersion::V4, 1_000, 100);
        let of = |room| segment(&sample.vnet(), &sample.frame(), &mut Room(room, vec![0; 2_000])).unwrap();
        assert_eq!(of(0), SegmentCounts { frames: 0, dropped: 10 });
        assert_eq!(of(4), SegmentCounts { frames: 4, dropped: 6 });
        assert_eq!(of(10), SegmentCounts { frames: 10, dropped: 0 });
        let none = segment(&VnetHeader::default(), &[0; 60], &mut Room(0, vec![]));
        assert_eq!(none, Ok(SegmentCounts { frames: 0, dropped: 1 }));
    }

    #[test]
    fn contradictions_are_found_before_anything_is_written() {
        use MalformedSuperFrame::{Contradictory, Truncated, Unsupported};
        let sample = Super::tcp(IpVersion::V4, 3_000, 1_000);
        let (vnet, frame) = (sample.vnet(), sample.frame());
        let fragment = Super { id: 1, ..sample.clone() }.frame();
        let patched = |at: usize, byte: u8| {
            let mut frame = fragment.clone();
            frame[at] = byte;
            frame
        };
        let cases = [
            (VnetHeader { gso_size: 0, ..vnet }, frame.clone(), Contradictory),
            (VnetHeader { gso_type: VnetHeader::GSO_UDP, ..vnet }, frame.clone(), Unsupported),
            (VnetHeader { gso_type: VnetHeader::GSO_ECN, ..vnet }, frame.clone(), Unsupported),
            (VnetHeader { gso_type: VnetHeader::GSO_TCPV6, ..vnet }, frame.clone(), Contradictory),
            (VnetHeader { gso_type: VnetHeader::GSO_UDP_L4, ..vnet }, frame.clone(), Contradictory),
            (VnetHeader { csum_start: 36, ..vnet }, frame.clone(), Contradictory),
            (VnetHeader { gso_type: 0, csum_start: 65_535, ..vnet }, frame.clone(), Truncated),
            (VnetHeader { gso_type: 0, csum_offset: 65_535, ..vnet }, frame.clone(), Truncated),
            (vnet, frame[..frame.len() - 1].to_vec(), Contradictory),
            (vnet, patched(20, 0x20), Contradictory),
            (vnet, patched(21, 1), Contradictory),
            (vnet, patched(14, 0x44), Contradictory),
            (vnet, patched(46, 0x40), Contradictory),
        ];
        for (at, (vnet, frame, expected)) in cases.into_iter().enumerate() {
            let mut frames = Frames::default();
            assert_eq!(segment(&vnet, &frame, &mut frames), Err(expected), "case {at}");
            assert!(frames.0.is_empty());
        }
    }

    /// Writes everything over the same bytes.
    struct Void(Vec<u8>);

    impl FrameSink for Void {
        fn next(&mut self, len: usize) -> Option<&mut [u8]> {
            self.0.get_mut(..len)
        }
    }

    #[test]
    fn no_truncation_panics() {
        let extended = Super { between: vec![0, 6, 0, 0, 0, 0, 0, 0, 0], ..Super::tcp(IpVersion::V6, 40, 9) };
        let tagged = Super { tags: 2, ..Super::udp(IpVersion::V4, 40, 9) };
        let mut void = Void(vec![0; 70_000]);
        for sample in [Super::tcp(IpVersion::V4, 40, 9), extended, tagged] {
            let frame = sample.frame();
            for len in 0..frame.len() {
                assert!(segment(&sample.vnet(), &frame[..len], &mut void).is_err(), "{len} bytes");
            }
        }
    }

    #[test]
    fn no_garbage_panics() {
        let mut random = Lcg::new(7);
        let mut void = Void(vec![0; 70_000]);
        let samples = [IpVersion::V4, IpVersion::V6].map(|version| {
            let tcp = Super { tags: 1, ..Super::tcp(version, 60, 20) };
            [(tcp.vnet(), tcp.frame()), (Super::udp(version, 60, 20).vnet(), Super::udp(version, 60, 20).frame())]
        });
        let mut split = 0;
        for _ in 0..200_000 {
            let (vnet, mut frame) = samples[random.below(2)][random.below(2)].clone();
            let mut vnet = vnet.emit();
            for _ in 0..random.below(4) {
                let at = random.below(frame.len().min(110));
                frame[at] = random.next() as u8;
            }
            if random.below(4) == 0 {
                vnet[random.below(10)] = random.next() as u8;
            }
            if random.below(8) == 0 {
                frame.iter_mut().for_each(|byte| *byte = random.next() as u8);
            }
            frame.truncate(if random.below(4) == 0 { random.below(frame.len()) } else { frame.len() });
            split += u32::from(segment(&VnetHeader::parse(vnet), &frame, &mut void).is_ok());
        }
        assert!((20_000..180_000).contains(&split), "{split}");
    }
}
