//! Segments of one connection that follow each other, as the super-frame that they make.
//!
//! A segment joins those before it if the headers say the same but for lengths, checksums, IP identification and sequence
//! number, and if those continue.

use std::ops::Range;

use wire::checksum::{Sum, update};
use wire::ip;
use wire::layers::{IpLayer, IpVersion, Layers};

use super::{IPV4_DONT_FRAGMENT, Layout, TCP_ACK, TCP_CHECKSUM, TCP_FIN, TCP_PSH, VnetHeader, be16, be32, put};

/// Frames in a super-frame.
pub const MOST_JOINED: usize = 64;
/// Bytes in an IP packet.
const PACKET: usize = 65_535;
/// Ethernet with two tags, IPv6, TCP with all its options.
pub(super) const LONGEST_HEADERS: usize = 22 + 40 + 60;

/// Consecutive segments, by their headers.
#[derive(Debug)]
pub(super) struct JoinedSegments {
    first: GsoSegment,
    frames: usize,
    next_seq: u32,
    /// Length of the frame that they make.
    len: usize,
    /// Every segment has the identification of the first, which DF allows (RFC 6864 §4.1).
    fixed_id: bool,
    last_only: u8,
}

impl JoinedSegments {
    pub(super) fn new(first: GsoSegment) -> Self {
        let next_seq = first.seq.wrapping_add(first.payload_len() as u32);
        Self { first, frames: 1, next_seq, len: first.end, fixed_id: false, last_only: 0 }
    }

    pub(super) fn is_flow_of(&self, segment: &GsoSegment) -> bool {
        self.first.flow == segment.flow
    }

    /// Payload of the first, and so of all but the last.
    pub(super) fn size(&self) -> usize {
        self.first.payload_len()
    }

    pub(super) fn payload_at(&self) -> usize {
        self.first.payload_at()
    }

    /// True if a segment of the same connection continues them; `headers` are those of the first.
    pub(super) fn accepts(&self, segment: &GsoSegment, frame: &[u8], headers: &[u8]) -> bool {
        self.frames < MOST_JOINED
            && segment.may_merge()
            && segment.seq == self.next_seq
            && segment.payload_len() <= self.size()
            && self.len + segment.payload_len() - segment.layout.network <= PACKET
            && segment.layout == self.first.layout
            && self.continues_id(segment)
            && shared(&segment.layout).into_iter().all(|range| headers[range.clone()] == frame[range])
    }

    fn continues_id(&self, segment: &GsoSegment) -> bool {
        let ahead = segment.id.wrapping_sub(self.first.id);
        match self.frames {
            1 if segment.dont_fragment && ahead == 0 => true,
            _ if self.fixed_id => ahead == 0,
            frames => usize::from(ahead) == frames,
        }
    }

    /// Joins what was accepted; true if nothing can follow it.
    pub(super) fn join(&mut self, segment: &GsoSegment) -> bool {
        let len = segment.payload_len();
        self.fixed_id = segment.id == self.first.id;
        self.frames += 1;
        self.next_seq = self.next_seq.wrapping_add(len as u32);
        self.len += len;
        self.last_only |= segment.flags & (TCP_PSH | TCP_FIN);
        segment.ends_batch() || len < self.size()
    }

    /// Makes the headers of the first segment those of the super-frame, or of the one frame, whose checksum is then left
    /// to be completed as the vnet header says.
    pub(super) fn seal(&self, headers: &mut [u8]) -> VnetHeader {
        let layout = &self.first.layout;
        let Layout { version, network, transport, payload } = *layout;
        let gso_type = match version {
            _ if self.frames == 1 => VnetHeader::GSO_NONE,
            IpVersion::V4 => VnetHeader::GSO_TCPV4,
            IpVersion::V6 => VnetHeader::GSO_TCPV6,
        };
        let size = if self.frames == 1 { 0 } else { self.size() };
        let headers = &mut headers[..payload];
        layout.put_packet_len(headers, self.len - network);
        let pseudo = Sum::pseudo_header(layout.addresses(headers), ip::TCP, self.len - transport);
        put(headers, transport + TCP_CHECKSUM, &pseudo.folded());
        headers[transport + 13] |= self.last_only;
        VnetHeader {
            flags: VnetHeader::NEEDS_CSUM,
            gso_type,
            hdr_len: payload as u16,
            gso_size: size as u16,
            csum_start: transport as u16,
            csum_offset: TCP_CHECKSUM as u16,
        }
    }
}

/// Segments on their way out that the kernel is to be handed as one super-frame.
#[derive(Debug)]
pub struct GsoRun {
    segments: JoinedSegments,
    headers: [u8; LONGEST_HEADERS],
    is_over: bool,
}

impl GsoRun {
    /// A run of this frame alone; `None` if it is no TCP segment with data, or has anything that a segment of a super-frame
    /// cannot have.
    pub fn begin(frame: &[u8]) -> Option<Self> {
        let segment = GsoSegment::of(frame).filter(|segment| segment.may_merge() && segment.is_all_of(frame))?;
        let mut headers = [0; LONGEST_HEADERS];
        put(&mut headers, 0, &frame[..segment.payload_at()]);
        Some(Self { is_over: segment.ends_batch(), segments: JoinedSegments::new(segment), headers })
    }

    /// Joins the frame to the run. False if it does not continue the run.
    pub fn join(&mut self, frame: &[u8]) -> bool {
        if self.is_over {
            return false;
        }
        let joins = |segment: &GsoSegment| {
            segment.is_all_of(frame)
                && self.segments.is_flow_of(segment)
                && self.segments.accepts(segment, frame, &self.headers)
        };
        let Some(segment) = GsoSegment::of(frame).filter(joins) else { return false };
        self.is_over = self.segments.join(&segment);
        true
    }

    pub fn frames(&self) -> usize {
        self.segments.frames
    }

    /// Lets the last segment ask for delivery, so that what joins segments on arrival hands them over before any that
    /// follow. True if it did not ask by itself.
    pub fn push(&mut self) -> bool {
        let asks = (self.segments.first.flags | self.segments.last_only) & (TCP_PSH | TCP_FIN) != 0;
        if !asks {
            self.segments.last_only |= TCP_PSH;
        }
        !asks
    }

    /// TCP sequence number of the first segment.
    pub fn first_seq(&self) -> u32 {
        self.segments.first.seq
    }

    /// Payload of each segment but the last.
    pub fn size(&self) -> usize {
        self.segments.size()
    }

    /// Offset at which the payload of each segment begins.
    pub fn payload_at(&self) -> usize {
        self.segments.payload_at()
    }

    /// Returns the bytes in front of the payloads: the vnet header, which says what is left to be done, and the headers
    /// behind the addresses.
    pub fn head(&mut self) -> (VnetHeader, &[u8]) {
        let vnet = self.segments.seal(&mut self.headers);
        (vnet, &self.headers[..self.segments.payload_at()])
    }
}

/// TCP sequence number of a frame; `None` if it is no whole TCP segment.
pub fn tcp_seq(frame: &[u8]) -> Option<u32> {
    GsoSegment::of(frame).map(|segment| segment.seq)
}

/// Takes back [`GsoRun::push`] in a segment; its checksum follows, unless it has none yet. Anything else stays as it is.
pub fn unpush(frame: &mut [u8], is_unfinished: bool) {
    let Some(GsoSegment { layout, .. }) = GsoSegment::of(frame) else { return };
    let (flags, field) = (layout.transport + 12, layout.transport + TCP_CHECKSUM);
    let before = [frame[flags], frame[flags + 1]];
    frame[flags + 1] &= !TCP_PSH;
    if !is_unfinished {
        let checksum = update([frame[field], frame[field + 1]], &before, &frame[flags..flags + 2]);
        put(frame, field, &checksum);
    }
}

/// Writes the checksum of a TCP segment anew. Anything else stays as it is.
pub fn finish_tcp(frame: &mut [u8]) {
    let Some(GsoSegment { layout, end, .. }) = GsoSegment::of(frame) else { return };
    put(frame, layout.transport + TCP_CHECKSUM, &[0, 0]);
    let pseudo = Sum::pseudo_header(layout.addresses(frame), ip::TCP, end - layout.transport);
    let sum = pseudo.and(Sum::of(&frame[layout.transport..end])).checksum();
    put(frame, layout.transport + TCP_CHECKSUM, &sum);
}

#[derive(Clone, Copy, Debug)]
pub(super) struct GsoSegment {
    flow: TcpFlow,
    pub(super) layout: Layout,
    /// Offset at which the payload ends; a short frame is padded behind it.
    pub(super) end: usize,
    /// IPv6 has none, which is as one that never changes.
    id: u16,
    dont_fragment: bool,
    seq: u32,
    flags: u8,
}

impl GsoSegment {
    /// `None` unless the frame is a TCP segment behind plain IP headers, whole.
    #[inline]
    pub(super) fn of(frame: &[u8]) -> Option<Self> {
        let ip = Layers::of(frame)?.ip?;
        let is_regular = ip.protocol == ip::TCP && ip.is_plain() && ip.fragment.is_none() && ip.end() <= frame.len();
        if is_regular { Some(Self::read(frame, &ip, ip.payload(frame)?)) } else { None }
    }

    #[inline]
    pub(super) fn read(frame: &[u8], ip: &IpLayer, payload: usize) -> Self {
        let layout = Layout::new(ip, payload);
        let header = &frame[ip.transport..];
        let (id, dont_fragment) = match ip.version {
            IpVersion::V4 => (be16(frame, ip.at + 4), frame[ip.at + 6] & IPV4_DONT_FRAGMENT != 0),
            IpVersion::V6 => (0, true),
        };
        let flow = TcpFlow::read(frame, &layout);
        Self { flow, layout, end: ip.end(), id, dont_fragment, seq: be32(header, 4), flags: header[13] }
    }

    pub(super) fn payload_at(&self) -> usize {
        self.layout.payload
    }

    /// True if no bytes are behind it.
    pub(super) fn is_all_of(&self, frame: &[u8]) -> bool {
        self.end == frame.len()
    }

    /// True if its checksums hold.
    pub(super) fn verifies(&self, frame: &[u8]) -> bool {
        self.layout.tcp_verifies(frame, self.end)
    }

    pub(super) fn payload_len(&self) -> usize {
        self.end - self.layout.payload
    }

    pub(super) fn may_merge(&self) -> bool {
        self.flags & !(TCP_PSH | TCP_FIN) == TCP_ACK && self.payload_len() > 0
    }

    /// PSH wants the host to act, FIN has nothing behind it.
    pub(super) fn ends_batch(&self) -> bool {
        self.flags & (TCP_PSH | TCP_FIN) != 0
    }
}

/// Connection and direction of a segment. IPv4 and IPv6 are not distinguished: a batch that is closed because of that is
/// merely shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TcpFlow {
    ports: u32,
    source: u128,
    destination: u128,
}

impl TcpFlow {
    fn read(frame: &[u8], layout: &Layout) -> Self {
        let addresses = layout.addresses(frame);
        let (source, destination) = addresses.split_at(addresses.len() / 2);
        let address = |bytes: &[u8]| match bytes.first_chunk() {
            Some(bytes) => u128::from_ne_bytes(*bytes),
            None => u128::from(be32(bytes, 0)),
        };
        Self { ports: be32(frame, layout.transport), source: address(source), destination: address(destination) }
    }
}

/// Bytes that must be the same in every segment, but for the addresses and ports, which the flow has: all
/// else but lengths, checksums, IP identification, sequence number and flags.
fn shared(layout: &Layout) -> [Range<usize>; 6] {
    let Layout { version, network, transport, payload } = *layout;
    let [service, forwarding] = match version {
        IpVersion::V4 => [network..network + 2, network + 6..network + 10],
        IpVersion::V6 => [network..network + 4, network + 6..network + 8],
    };
    let [acknowledgement, window] = [transport + 8..transport + 13, transport + 14..transport + 16];
    [0..network, service, forwarding, acknowledgement, window, transport + 18..payload]
}

#[cfg(test)]
mod tests {
    use super::super::sample::{Frames, Super};
    use super::super::{FrameSink, segment};
    use super::*;

    /// Keeps every frame, and leaves TCP checksums undone.
    #[derive(Default)]
    struct Unfinished(Frames, usize);

    impl FrameSink for Unfinished {
        fn next(&mut self, len: usize) -> Option<&mut [u8]> {
            self.0.next(len)
        }

        fn takes_unfinished(&self) -> bool {
            true
        }

        fn leave_unfinished(&mut self) {
            self.1 += 1;
        }
    }

    #[test]
    fn a_run_is_the_super_frame_again_and_finished_segments_are_those_of_one_pass() {
        for version in [IpVersion::V4, IpVersion::V6] {
            for (payload, tags) in [(100, 0), (1_000, 0), (1_001, 1), (2_345, 2), (6_400, 0)] {
                let sample = Super { tags, ..Super::tcp(version, payload, 100) };
                let mut cut = Unfinished::default();
                segment(&sample.vnet(), &sample.frame(), &mut cut).unwrap();
                let Unfinished(Frames(mut frames), marked) = cut;
                assert_eq!(marked, frames.len());
                let mut run = GsoRun::begin(&frames[0]).unwrap();
                assert!(frames[1..].iter().all(|frame| run.join(frame)));
                assert_eq!((run.first_seq(), run.size(), run.frames()), (sample.seq, 100, frames.len()));
                let at = run.payload_at();
                let (vnet, head) = run.head();
                let joined: Vec<u8> =
                    head.iter().copied().chain(frames.iter().flat_map(|frame| frame[at..].to_vec())).collect();
                let mut again = Frames::default();
                segment(&vnet, &joined, &mut again).unwrap();
                frames.iter_mut().for_each(|frame| finish_tcp(frame));
                assert_eq!(frames, sample.segments());
                assert_eq!(again.0, sample.segments());
            }
        }
    }

    #[test]
    fn a_push_that_was_added_is_on_the_last_segment_and_can_be_taken_back() {
        for version in [IpVersion::V4, IpVersion::V6] {
            for payload in [100, 950] {
                let sample = Super { flags: TCP_ACK, ..Super::tcp(version, payload, 100) };
                let frames = sample.segments();
                let mut run = GsoRun::begin(&frames[0]).unwrap();
                assert!(frames[1..].iter().all(|frame| run.join(frame)));
                assert!(run.push() && !run.push());
                let at = run.payload_at();
                let (vnet, head) = run.head();
                let joined: Vec<u8> =
                    head.iter().copied().chain(frames.iter().flat_map(|frame| frame[at..].to_vec())).collect();
                let mut again = Frames::default();
                segment(&vnet, &joined, &mut again).unwrap();
                let last = again.0.len() - 1;
                assert_eq!(again.0[..last], frames[..last]);
                assert!(again.0[last] != frames[last] && sample.verifies(&again.0[last]));
                unpush(&mut again.0[last], false);
                assert!(sample.verifies(&again.0[last]));
                assert_eq!(again.0, frames);
            }
        }
        let asking = Super::tcp(IpVersion::V4, 100, 100).segments();
        assert!(!GsoRun::begin(&asking[0]).unwrap().push());
    }

    #[test]
    fn a_run_ends_where_its_segments_no_longer_follow_each_other() {
        let sample = Super::tcp(IpVersion::V4, 10 * 100, 100);
        let frames = sample.segments();
        let mut run = GsoRun::begin(&frames[0]).unwrap();
        assert!(!run.join(&frames[2]), "one is missing between them");
        assert!(run.join(&frames[1]) && !run.join(&frames[1]));
        let other = Super { port: 9, ..sample.clone() }.segments();
        assert!(!run.join(&other[2]), "another connection");
        let mut last = GsoRun::begin(&frames[9]).unwrap();
        assert!(!last.join(&frames[9]), "nothing follows a push");
        assert!(GsoRun::begin(&Super::udp(IpVersion::V4, 100, 0).frame()).is_none());
        assert!(GsoRun::begin(&Super::tcp(IpVersion::V4, 0, 100).frame()).is_none());
        let padded = [&frames[0][..], &[0; 3]].concat();
        assert!(GsoRun::begin(&padded).is_none());
        assert!((0..frames[0].len()).all(|len| GsoRun::begin(&frames[0][..len]).is_none()));
    }
}
