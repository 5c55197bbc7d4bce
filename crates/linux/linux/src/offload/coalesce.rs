//! From frames off the wire to super-frames for the host, without copying payload (`tcp_gro_receive`).
//!
//! [`Coalescer::push`] takes frames in order; [`Coalescer::pop`] gives what is ready; [`Coalescer::flush`]
//! makes ready what still waits for more, and belongs at the end of every burst. A [`HostWrite`] is written
//! with one `writev`: its prefix, then its parts out of the buffers that their handles name.
//!
//! A segment joins the open batch of its flow if the headers say the same but for lengths, checksums, IP
//! identification and sequence number, and if those continue. Window and timestamps are compared too, as
//! Linux does: what differs in them would be lost.
//!
//! Invariants:
//! - frames of a flow leave in the order in which they came, so one that cannot join closes the batch;
//! - the batches that a flush closes leave in the order in which they were opened;
//! - only segments whose IP and TCP checksum hold are merged; others leave as they came, unmarked.

use std::collections::VecDeque;

use wire::layers::{IpLayer, IpVersion, Layers};
use wire::{ethernet, ip};

use super::joined::{GsoSegment, JoinedSegments, LONGEST_HEADERS, MOST_JOINED};
use super::{VnetHeader, put};

/// Flows with an open batch at a time.
const FLOWS: usize = 8;
const PREFIX: usize = VnetHeader::LEN + LONGEST_HEADERS;

/// Bytes of one frame that go to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FramePart<F> {
    pub handle: F,
    pub offset: u32,
    pub len: u32,
}

impl<F> FramePart<F> {
    /// The part, of the frame that the handle names.
    pub fn of<'a>(&self, frame: &'a [u8]) -> &'a [u8] {
        &frame[self.offset as usize..][..self.len as usize]
    }
}

/// One write to the host: a super-frame, or a frame as it came.
#[derive(Debug)]
pub struct HostWrite<F> {
    prefix: [u8; PREFIX],
    prefix_len: usize,
    parts: Vec<FramePart<F>>,
}

impl<F> HostWrite<F> {
    /// Bytes to write first: the vnet header and, if frames were merged, the headers that they now share.
    pub fn prefix(&self) -> &[u8] {
        &self.prefix[..self.prefix_len]
    }

    /// Parts to write next, in order. Every frame of the batch has one part, so these are also the handles to release.
    pub fn parts(&self) -> &[FramePart<F>] {
        &self.parts
    }

    pub fn vnet(&self) -> VnetHeader {
        self.prefix.first_chunk().copied().map(VnetHeader::parse).unwrap_or_default()
    }

    fn start(&mut self, handle: F, len: usize) {
        self.parts.clear();
        self.parts.push(FramePart { handle, offset: 0, len: len as u32 });
    }

    /// Ends a batch of one frame.
    fn seal_whole(&mut self, verified: bool) {
        let flags = if verified { VnetHeader::DATA_VALID } else { 0 };
        put(&mut self.prefix, 0, &VnetHeader { flags, ..VnetHeader::default() }.emit());
        self.prefix_len = VnetHeader::LEN;
    }
}

#[derive(Debug)]
pub struct Coalescer<F> {
    /// Open batches, in the order in which they were opened.
    open: Vec<OpenBatch>,
    /// Ready batches, in the order in which they leave.
    ready: VecDeque<usize>,
    /// Batches, open, ready or unused, are named by their place here; they are used again, never freed.
    batches: Vec<HostWrite<F>>,
    unused: Vec<usize>,
}

impl<F> Default for Coalescer<F> {
    fn default() -> Self {
        Self { open: Vec::with_capacity(FLOWS), ready: VecDeque::new(), batches: Vec::new(), unused: Vec::new() }
    }
}

impl<F: Copy> Coalescer<F> {
    /// Takes the next frame off the wire. Pop what is ready before the next: a caller that does not makes
    /// the queue grow.
    pub fn push(&mut self, handle: F, frame: &[u8]) {
        self.push_frame(handle, frame, false);
    }

    /// Takes a TCP segment whose checksums are known to be right although the segment does not contain TCP's.
    pub fn push_unfinished(&mut self, handle: F, frame: &[u8]) {
        self.push_frame(handle, frame, true);
    }

    fn push_frame(&mut self, handle: F, frame: &[u8], unfinished: bool) {
        match CoalesceFrame::read(frame) {
            CoalesceFrame::Other => self.pass(handle, frame, false),
            CoalesceFrame::Obscure => {
                self.flush();
                self.pass(handle, frame, false);
            }
            CoalesceFrame::Tcp(segment) => self.push_segment(handle, frame, &segment, unfinished),
        }
    }

    /// The next batch to write. It is forgotten with the next call.
    pub fn pop(&mut self) -> Option<&HostWrite<F>> {
        let slot = self.ready.pop_front()?;
        self.unused.push(slot);
        Some(&self.batches[slot])
    }

    /// Closes every open batch.
    pub fn flush(&mut self) {
        while !self.open.is_empty() {
            self.close(0);
        }
    }

    fn push_segment(&mut self, handle: F, frame: &[u8], segment: &GsoSegment, unfinished: bool) {
        let verified = unfinished || segment.verifies(frame);
        if let Some(at) = self.open.iter().position(|open| open.segments.is_flow_of(segment)) {
            let open = &mut self.open[at];
            let batch = &mut self.batches[open.slot];
            if verified && open.segments.accepts(segment, frame, &batch.prefix[VnetHeader::LEN..]) {
                batch.parts.push(FramePart {
                    handle,
                    offset: segment.payload_at() as u32,
                    len: segment.payload_len() as u32,
                });
                open.unfinished |= unfinished;
                if open.segments.join(segment) {
                    self.close(at);
                }
                return;
            }
            self.close(at);
        }
        let may_open = segment.may_merge() && !segment.ends_batch() && segment.is_all_of(frame);
        if unfinished || verified && may_open {
            self.open(handle, frame, *segment, unfinished);
            if !may_open {
                self.close(self.open.len() - 1);
            }
        } else {
            self.pass(handle, frame, verified);
        }
    }

    fn open(&mut self, handle: F, frame: &[u8], segment: GsoSegment, unfinished: bool) {
        if self.open.len() == FLOWS {
            self.close(0);
        }
        let slot = self.slot();
        let batch = &mut self.batches[slot];
        batch.start(handle, frame.len());
        put(&mut batch.prefix, VnetHeader::LEN, &frame[..segment.payload_at()]);
        self.open.push(OpenBatch { slot, segments: JoinedSegments::new(segment), unfinished });
    }

    fn close(&mut self, at: usize) {
        let open = self.open.remove(at);
        let batch = &mut self.batches[open.slot];
        if batch.parts.len() == 1 && !open.unfinished {
            batch.seal_whole(true)
        } else {
            open.seal(batch)
        }
        self.ready.push_back(open.slot);
    }

    fn pass(&mut self, handle: F, frame: &[u8], verified: bool) {
        let slot = self.slot();
        let batch = &mut self.batches[slot];
        batch.start(handle, frame.len());
        batch.seal_whole(verified);
        self.ready.push_back(slot);
    }

    fn slot(&mut self) -> usize {
        self.unused.pop().unwrap_or_else(|| {
            self.batches.push(HostWrite { prefix: [0; PREFIX], prefix_len: 0, parts: Vec::with_capacity(MOST_JOINED) });
            self.batches.len() - 1
        })
    }
}

/// A batch that waits for the segments that continue it.
#[derive(Debug)]
struct OpenBatch {
    slot: usize,
    segments: JoinedSegments,
    /// The checksum of a segment is not written in it.
    unfinished: bool,
}

impl OpenBatch {
    /// Ends a batch: the headers in the prefix become those of the super-frame.
    fn seal<F>(&self, batch: &mut HostWrite<F>) {
        let (vnet, headers) = batch.prefix.split_at_mut(VnetHeader::LEN);
        vnet.copy_from_slice(&self.segments.seal(headers).emit());
        let payload = self.segments.payload_at();
        batch.prefix_len = VnetHeader::LEN + payload;
        let first = &mut batch.parts[0];
        first.offset = payload as u32;
        first.len = self.segments.size() as u32;
    }
}

/// Relation of a frame to the coalescer.
enum CoalesceFrame {
    /// Not TCP: passes every batch by.
    Other,
    /// Perhaps TCP, and then of an unknown flow: it may belong to any batch.
    Obscure,
    Tcp(GsoSegment),
}

impl CoalesceFrame {
    fn read(frame: &[u8]) -> Self {
        match Layers::of(frame) {
            Some(Layers { ip: Some(ip), .. }) => Self::read_ip(frame, &ip),
            Some(Layers { ethertype, .. }) if ethernet::is_tag(ethertype) => Self::Obscure,
            _ => Self::Other,
        }
    }

    #[inline]
    fn read_ip(frame: &[u8], ip: &IpLayer) -> Self {
        /// Hop-by-hop, routing, fragment, authentication, destination options, mobility, HIP, shim6.
        const EXTENSIONS: [u8; 8] = [0, 43, 44, 51, 60, 135, 139, 140];
        let is_regular = ip.is_plain() && ip.fragment.is_none() && ip.end() <= frame.len();
        match (ip.protocol, ip.payload(frame)) {
            (ip::TCP, Some(payload)) if is_regular => Self::Tcp(GsoSegment::read(frame, ip, payload)),
            (ip::TCP, _) => Self::Obscure,
            (next, _) if ip.version == IpVersion::V6 && EXTENSIONS.contains(&next) => Self::Obscure,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{Frames, Lcg, Super};
    use super::super::{TCP_CHECKSUM, segment};
    use super::*;
    use wire::checksum::Sum;

    /// Bytes that were written to the host, and the frames that they come from.
    #[derive(Debug, PartialEq)]
    struct Written {
        vnet: VnetHeader,
        bytes: Vec<u8>,
        of: Vec<usize>,
    }

    fn drain(coalescer: &mut Coalescer<usize>, frames: &[Vec<u8>], written: &mut Vec<Written>) {
        while let Some(batch) = coalescer.pop() {
            let mut bytes = batch.prefix()[VnetHeader::LEN..].to_vec();
            batch.parts().iter().for_each(|part| bytes.extend_from_slice(part.of(&frames[part.handle])));
            assert_eq!(batch.vnet().emit(), batch.prefix()[..VnetHeader::LEN]);
            written.push(Written {
                vnet: batch.vnet(),
                bytes,
                of: batch.parts().iter().map(|part| part.handle).collect(),
            });
        }
    }

    fn coalesced(frames: &[Vec<u8>]) -> Vec<Written> {
        let (mut coalescer, mut written) = (Coalescer::default(), Vec::new());
        for (handle, frame) in frames.iter().enumerate() {
            coalescer.push(handle, frame);
            drain(&mut coalescer, frames, &mut written);
        }
        coalescer.flush();
        drain(&mut coalescer, frames, &mut written);
        written
    }

    fn groups(frames: &[Vec<u8>]) -> Vec<Vec<usize>> {
        coalesced(frames).into_iter().map(|written| written.of).collect()
    }

    const VERIFIED: VnetHeader = VnetHeader {
        flags: VnetHeader::DATA_VALID,
        gso_type: 0,
        hdr_len: 0,
        gso_size: 0,
        csum_start: 0,
        csum_offset: 0,
    };

    /// Changes a field of a frame and makes its checksums hold again.
    fn patched(sample: &Super, frame: &[u8], at: usize, byte: u8) -> Vec<u8> {
        let mut frame = frame.to_vec();
        frame[at] = byte;
        let CoalesceFrame::Tcp(GsoSegment { layout, end, .. }) = CoalesceFrame::read(&frame) else {
            panic!("no longer TCP")
        };
        layout.put_packet_len(&mut frame, end - layout.network);
        put(&mut frame, layout.transport + TCP_CHECKSUM, &[0, 0]);
        let pseudo = Sum::pseudo_header(layout.addresses(&frame), ip::TCP, end - layout.transport);
        let checksum = pseudo.and(Sum::of(&frame[layout.transport..end])).checksum();
        put(&mut frame, layout.transport + TCP_CHECKSUM, &checksum);
        assert!(sample.verifies(&frame));
        frame
    }

    #[test]
    fn what_was_split_is_merged_into_the_same_super_frame() {
        for version in [IpVersion::V4, IpVersion::V6] {
            for tags in 0..3 {
                for (payload, size) in [(60_000, 1_448), (2_897, 1_448), (2_896, 1_448), (33, 5), (65_000, 8_948)] {
                    for (options, flags) in [(vec![], 0x10), (vec![1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8], 0x19)] {
                        let sample = Super { tags, options, flags, ..Super::tcp(version, payload, size) };
                        let written = coalesced(&sample.segments());
                        assert_eq!(written.len(), 1);
                        assert_eq!((written[0].vnet, &written[0].bytes), (sample.vnet(), &sample.frame()));
                    }
                }
            }
        }
    }

    #[test]
    fn a_frame_alone_passes_as_it_came_and_marked_as_verified() {
        for flags in [0x10, 0x18, 0x02, 0x04, 0x30] {
            let frames = Super { flags, ..Super::tcp(IpVersion::V4, 700, 700) }.segments();
            let written = coalesced(&frames);
            assert_eq!(written, [Written { vnet: VERIFIED, bytes: frames[0].clone(), of: vec![0] }]);
        }
    }

    #[test]
    fn what_is_not_tcp_passes_unmarked_and_ahead_of_open_batches() {
        let mut frames = Super { flags: 0x10, ..Super::tcp(IpVersion::V4, 2_000, 1_000) }.segments();
        frames.extend(Super::udp(IpVersion::V6, 300, 100).segments());
        frames.push([vec![1; 12], vec![8, 6], vec![0; 46]].concat());
        frames.push(vec![3; 9]);
        let written = coalesced(&frames);
        let order: Vec<&[usize]> = written.iter().map(|written| &written.of[..]).collect();
        assert_eq!(order, [&[2][..], &[3], &[4], &[5], &[6], &[0, 1]]);
        for written in &written[..5] {
            assert_eq!((written.vnet, &written.bytes), (VnetHeader::default(), &frames[written.of[0]]));
        }
    }

    #[test]
    fn a_bad_checksum_is_never_merged_nor_marked() {
        let sample = Super::tcp(IpVersion::V4, 5_000, 1_000);
        for at in [24, 40, 50, 700] {
            let mut frames = sample.segments();
            frames[2][at] ^= 0x40;
            let written = coalesced(&frames);
            let order: Vec<&[usize]> = written.iter().map(|written| &written.of[..]).collect();
            assert_eq!(order, [&[0, 1][..], &[2], &[3, 4]]);
            assert_eq!((written[1].vnet, &written[1].bytes), (VnetHeader::default(), &frames[2]));
        }
    }

    #[test]
    fn a_header_that_differs_is_not_merged() {
        let differing = |version: IpVersion, places: &[usize]| {
            let sample = Super { flags: 0x10, ..Super::tcp(version, 2_000, 1_000) };
            for &at in places {
                let mut frames = sample.segments();
                frames[1] = patched(&sample, &frames[1], at, frames[1][at] ^ 1);
                assert_eq!(groups(&frames), [[0], [1]], "byte {at}");
            }
        };
        let (macs, ack, window, urgent, timestamps) = ([0, 11], [42, 45], [48, 49], [52, 53], [58, 61, 62, 65]);
        differing(IpVersion::V4, &[&macs[..], &[15, 18, 22, 30, 35, 41], &ack, &window, &urgent, &timestamps].concat());
        differing(IpVersion::V6, &[14, 15, 17, 21, 37, 53, 55, 61, 62, 65, 68, 69, 72, 78, 85]);
    }

    #[test]
    fn only_acknowledged_data_is_merged() {
        for flags in [0x11, 0x12, 0x14, 0x18, 0x30, 0x50, 0x90, 0x00] {
            let sample = Super { flags: 0x10, ..Super::tcp(IpVersion::V4, 3_000, 1_000) };
            let mut frames = sample.segments();
            frames[1] = patched(&sample, &frames[1], 47, flags);
            let expected: &[&[usize]] =
                if matches!(flags, 0x11 | 0x18) { &[&[0, 1], &[2]] } else { &[&[0], &[1], &[2]] };
            assert_eq!(groups(&frames), expected, "flags {flags:#x}");
        }
    }

    #[test]
    fn a_pure_acknowledgement_does_not_overtake_data() {
        let sample = Super { flags: 0x10, ..Super::tcp(IpVersion::V6, 2_000, 1_000) };
        let mut frames = sample.segments();
        frames.push(Super { payload: 0, seq: sample.seq.wrapping_add(2_000), ..sample }.segments().remove(0));
        assert_eq!(groups(&frames), [vec![0, 1], vec![2]]);
        assert_eq!(coalesced(&frames)[1].vnet, VERIFIED);
    }

    #[test]
    fn identifications_count_up_or_stay() {
        let sample = Super { flags: 0x10, ..Super::tcp(IpVersion::V4, 4_000, 1_000) };
        let with = |ids: [u8; 4], fragmentable: bool| {
            let mut frames = sample.segments();
            for (frame, id) in frames.iter_mut().zip(ids) {
                frame[20] = if fragmentable { 0 } else { 0x40 };
                *frame = patched(&sample, frame, 18, 0);
                *frame = patched(&sample, frame, 19, id);
            }
            groups(&frames)
        };
        assert_eq!(with([7, 8, 9, 10], true), [[0, 1, 2, 3]]);
        assert_eq!(with([7, 7, 7, 7], false), [[0, 1, 2, 3]]);
        assert_eq!(with([7, 7, 7, 7], true), [[0], [1], [2], [3]]);
        assert_eq!(with([7, 8, 8, 9], false), [[0, 1], [2, 3]]);
        assert_eq!(with([7, 7, 8, 9], false), [[0, 1], [2, 3]]);
        assert_eq!(with([7, 9, 11, 13], false), [[0], [1], [2], [3]]);
    }

    #[test]
    fn padding_of_a_short_last_frame_is_left_out() {
        let sample = Super { options: vec![], ..Super::tcp(IpVersion::V4, 2_001, 1_000) };
        let mut frames = sample.segments();
        frames[2].resize(60, 0xaa);
        let written = coalesced(&frames);
        assert_eq!((written[0].of.len(), &written[0].bytes), (3, &sample.frame()));
    }

    #[test]
    fn a_padded_frame_opens_no_batch() {
        let mut frames = Super { options: vec![], flags: 0x10, ..Super::tcp(IpVersion::V4, 6, 3) }.segments();
        frames.iter_mut().for_each(|frame| frame.resize(60, 0));
        let written = coalesced(&frames);
        assert_eq!(written[0], Written { vnet: VERIFIED, bytes: frames[0].clone(), of: vec![0] });
        assert_eq!(written.len(), 2);
    }

    #[test]
    fn a_segment_longer_than_the_first_starts_anew() {
        let long = Super { flags: 0x10, ..Super::tcp(IpVersion::V6, 2_000, 1_000) };
        let short = Super { payload: 500, seq: long.seq.wrapping_sub(500), ..long.clone() };
        assert_eq!(groups(&[short.segments(), long.segments()].concat()), [vec![0], vec![1, 2]]);
    }

    #[test]
    fn a_batch_ends_at_64_frames_and_at_the_largest_packet() {
        let small = Super { flags: 0x10, ..Super::tcp(IpVersion::V4, 7_000, 100) };
        assert_eq!(groups(&small.segments()).iter().map(Vec::len).collect::<Vec<_>>(), [64, 6]);
        let large = Super { flags: 0x10, ..Super::tcp(IpVersion::V4, 5 * 10_914, 10_914) };
        let next = Super { seq: large.seq.wrapping_add(5 * 10_914), id: large.id.wrapping_add(5), ..large.clone() };
        let frames = [large.segments(), next.segments()].concat();
        assert_eq!(groups(&frames).iter().map(Vec::len).collect::<Vec<_>>(), [5, 5]);
        let largest = Super { payload: 65_483, size: 10_914, ..large };
        assert_eq!(coalesced(&largest.segments())[0].bytes, largest.frame());
    }

    #[test]
    fn a_ninth_flow_closes_the_batch_opened_first_and_a_flush_keeps_that_order() {
        let flow = |port| Super { port, flags: 0x10, ..Super::tcp(IpVersion::V4, 2_000, 1_000) }.segments();
        let flows: Vec<_> = (1..10).map(flow).collect();
        let firsts = flows.iter().map(|frames| frames[0].clone());
        let seconds = flows[1..].iter().rev().map(|frames| frames[1].clone());
        let frames: Vec<_> = firsts.chain(seconds).collect();
        let expected: Vec<Vec<usize>> = [vec![0]].into_iter().chain((1..9).map(|at| vec![at, 17 - at])).collect();
        assert_eq!(groups(&frames), expected);
    }

    #[test]
    fn tcp_that_cannot_be_told_apart_closes_every_batch() {
        let flow = |port| Super { port, flags: 0x10, ..Super::tcp(IpVersion::V4, 2_000, 1_000) }.segments();
        let fragment = {
            let mut frame = flow(3).remove(0);
            frame[20] = 0x20;
            frame
        };
        let with_options = Super { between: vec![1; 4], ..Super::tcp(IpVersion::V4, 100, 100) }.segments().remove(0);
        let extended = vec![0, 6, 0, 1, 4, 0, 0, 0, 0];
        let with_extension = Super { between: extended, ..Super::tcp(IpVersion::V6, 100, 100) }.segments().remove(0);
        for obscure in [fragment, with_options, with_extension] {
            let frames = [flow(1).remove(0), flow(2).remove(0), obscure, flow(2).remove(1)];
            assert_eq!(groups(&frames), [[0], [1], [2], [3]]);
            assert_eq!(coalesced(&frames)[2].vnet, VnetHeader::default());
        }
    }

    /// Segments of one flow with what a network and a sender may do to them.
    fn troubled_flow(random: &mut Lcg, port: u16, version: IpVersion) -> Vec<Vec<u8>> {
        let mut sample = Super { port, ..Super::tcp(version, 0, 1) };
        let mut frames = Vec::new();
        for _ in 0..12 {
            sample.size = [100, 100, 333][random.below(3)];
            sample.payload = random.below(900);
            sample.flags = [0x10, 0x10, 0x10, 0x18, 0x11, 0x12][random.below(6)];
            sample.options[7] = random.below(8) as u8 / 7;
            let mut segments = sample.segments();
            sample.seq = sample.seq.wrapping_add(sample.payload as u32);
            sample.id = sample.id.wrapping_add(segments.len() as u16);
            let (count, headers) = (segments.len(), sample.headers());
            match random.below(6) {
                0 => segments[random.below(count)][headers - 1] ^= 1,
                1 => segments.swap(0, count - 1),
                _ => {}
            }
            frames.extend(segments);
        }
        frames
    }

    fn interleaved(random: &mut Lcg, mut flows: Vec<Vec<Vec<u8>>>) -> (Vec<Vec<u8>>, Vec<usize>) {
        let (mut frames, mut flow_of) = (Vec::new(), Vec::new());
        while flows.iter().any(|flow| !flow.is_empty()) {
            let flow = random.below(flows.len());
            for _ in 0..random.below(9).min(flows[flow].len()) {
                frames.push(flows[flow].remove(0));
                flow_of.push(flow);
            }
        }
        (frames, flow_of)
    }

    #[test]
    fn interleaved_flows_keep_their_order_and_every_batch_splits_into_its_frames() {
        let mut random = Lcg::new(3);
        let mut merged = 0;
        for _ in 0..300 {
            let versions = [IpVersion::V4, IpVersion::V6, IpVersion::V4];
            let flows = (1..).zip(versions).map(|(port, version)| troubled_flow(&mut random, port, version)).collect();
            let (frames, flow_of) = interleaved(&mut random, flows);
            let (mut coalescer, mut written) = (Coalescer::default(), Vec::new());
            for (handle, frame) in frames.iter().enumerate() {
                coalescer.push(handle, frame);
                if random.below(20) == 0 {
                    coalescer.flush();
                }
                drain(&mut coalescer, &frames, &mut written);
            }
            coalescer.flush();
            drain(&mut coalescer, &frames, &mut written);
            for flow in 0..3 {
                let handles = written.iter().flat_map(|written| &written.of).copied();
                let left: Vec<usize> = handles.filter(|&handle| flow_of[handle] == flow).collect();
                let came: Vec<usize> = (0..frames.len()).filter(|&handle| flow_of[handle] == flow).collect();
                assert_eq!(left, came);
            }
            for Written { vnet, bytes, of } in &written {
                let mut split = Frames::default();
                segment(vnet, bytes, &mut split).unwrap();
                let came: Vec<&Vec<u8>> = of.iter().map(|&handle| &frames[handle]).collect();
                assert_eq!(split.0.iter().collect::<Vec<_>>(), came);
                merged += usize::from(of.len() > 1);
            }
        }
        assert!(merged > 3_000, "{merged}");
    }

    #[test]
    fn a_caller_that_pops_after_every_push_needs_few_batches() {
        let mut random = Lcg::new(4);
        let frames: Vec<_> = (1..30).flat_map(|port| troubled_flow(&mut random, port, IpVersion::V4)).collect();
        let mut coalescer = Coalescer::default();
        for _ in 0..5_000 {
            let handle = random.below(frames.len());
            coalescer.push(handle, &frames[handle]);
            while coalescer.pop().is_some() {}
        }
        assert!(coalescer.batches.len() <= FLOWS + 2, "{}", coalescer.batches.len());
    }

    #[test]
    fn no_truncation_panics_and_none_is_merged() {
        for version in [IpVersion::V4, IpVersion::V6] {
            let sample = Super { tags: 1, flags: 0x10, ..Super::tcp(version, 2_000, 1_000) };
            let segments = sample.segments();
            for len in 0..segments[1].len() {
                let frames = [segments[0].clone(), segments[1][..len].to_vec()];
                assert!(groups(&frames).iter().all(|group| group.len() == 1), "{len} bytes");
            }
        }
    }

    #[test]
    fn no_garbage_panics() {
        let mut random = Lcg::new(5);
        let flow = |version, tags| Super { tags, flags: 0x10, ..Super::tcp(version, 60, 10) }.segments();
        let samples = [flow(IpVersion::V4, 0), flow(IpVersion::V6, 0), flow(IpVersion::V4, 2)].concat();
        let mut coalescer = Coalescer::default();
        for round in 0..200_000 {
            let mut frame = samples[round % samples.len()].clone();
            for _ in 0..random.below(3) {
                let at = random.below(frame.len());
                frame[at] = random.next() as u8;
            }
            match random.below(16) {
                0 => frame.iter_mut().for_each(|byte| *byte = random.next() as u8),
                1 => frame.truncate(random.below(frame.len())),
                _ => {}
            }
            coalescer.push(round, &frame);
            while let Some(batch) = coalescer.pop() {
                assert!(!batch.parts().is_empty());
            }
        }
    }
}
