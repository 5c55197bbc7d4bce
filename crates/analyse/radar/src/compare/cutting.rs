//! Super-frames while captures are compared.
//!
//! Captures without super-frames cost nothing extra. The first long frame stops the attempt; then both captures are surveyed
//! for the sizes of their packets, and the next attempt cuts. The comparison shows errors that the survey cannot avoid:
//! packets of both captures that overlap without being the same.
//!
//! ```text
//!   watch ──long frame──▶ survey ──▶ cut ──misfits──▶ cut by what was seen ──misfits──▶ refused
//! ```

use capture::LinkType;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use super::refusal::{CompareError, refusal};
use super::side::{AttemptStop, CapturedPacket};
use super::{CaptureRole, Comparison, ComparisonContext};
use crate::packet::{Flow, Packet, TcpFields};
use crate::read::{DEPTH, packet, packet_of_headers};
use crate::superframe::sizes::{FrameCut, SegmentSizes};
use crate::superframe::{ORDINARY_FRAME, SuperFrame, TransportPart};
use capture::{CaptureError, CaptureReader};

/// Rules by which frames become packets.
#[derive(Clone, Debug)]
pub(crate) struct CutForm {
    mode: CutMode,
    /// Compare what TCP carries.
    payload: bool,
    /// Identifications are compared, beside something else.
    ids: bool,
    /// They would be, if super-frames said those of their packets.
    without_ids: bool,
}

#[derive(Clone, Debug)]
enum CutMode {
    /// Frames are packets.
    Leave,
    /// They are, unless one shows that they are not.
    Watch,
    Cut(Rc<SegmentSizes>),
}

impl CutForm {
    pub(crate) const fn leave() -> Self {
        Self { mode: CutMode::Leave, payload: true, ids: true, without_ids: false }
    }

    pub(crate) const fn watch(ids: bool) -> Self {
        Self { mode: CutMode::Watch, payload: true, ids, without_ids: false }
    }

    pub(crate) fn cuts(&self) -> bool {
        matches!(self.mode, CutMode::Cut(_))
    }

    pub(crate) fn cut(&mut self, sizes: SegmentSizes) {
        self.mode = CutMode::Cut(Rc::new(sizes));
    }

    pub(crate) fn leave_out_payload(&mut self) {
        self.payload = false;
    }

    pub(crate) fn compares_ids(&self) -> bool {
        self.ids
    }

    pub(crate) fn is_without_ids(&self) -> bool {
        self.without_ids
    }

    pub(crate) fn leave_out_ids(&mut self) {
        (self.ids, self.without_ids) = (false, true);
    }

    /// Ignores the announced sizes of these flows from now on; returns false if none of them was in use.
    pub(crate) fn distrust(&mut self, flows: &[Flow]) -> bool {
        let CutMode::Cut(sizes) = &mut self.mode else { return false };
        let Some(sizes) = Rc::get_mut(sizes) else { return false };
        flows.iter().filter(|flow| sizes.distrust(flow)).count() > 0
    }
}

/// Kind of a frame.
pub(crate) enum FrameVerdict {
    One,
    /// The packets of this super-frame come next.
    Cut {
        is_inferred: bool,
    },
    /// A super-frame, and nobody knows of what.
    Unknown,
}

/// Makes packets of the frames of one capture.
pub(crate) struct FrameCutter {
    form: CutForm,
    /// Length from which a frame may be a super-frame.
    least: u32,
    frame: SuperFrame,
    /// The frame that is handed out.
    of: Option<(i64, u64)>,
}

impl FrameCutter {
    pub(crate) fn new(form: CutForm) -> Self {
        let least = match &form.mode {
            CutMode::Leave => u32::MAX,
            CutMode::Watch => ORDINARY_FRAME,
            CutMode::Cut(sizes) => sizes.least(),
        };
        Self { form, least, frame: SuperFrame::default(), of: None }
    }

    #[inline]
    pub(crate) fn read(&self, bytes: &[u8], link: LinkType, depth: usize) -> Option<Packet> {
        if self.form.payload { packet(bytes, link, depth) } else { packet_of_headers(bytes, link, depth) }
    }

    #[inline]
    pub(crate) fn judge(
        &mut self,
        frame: &[u8],
        link: LinkType,
        seen: &CapturedPacket,
    ) -> Result<FrameVerdict, AttemptStop> {
        if seen.len <= self.least { Ok(FrameVerdict::One) } else { self.judge_long(frame, link, seen) }
    }

    fn judge_long(&mut self, frame: &[u8], link: LinkType, seen: &CapturedPacket) -> Result<FrameVerdict, AttemptStop> {
        let Some((bytes, part)) = transport_part(frame, link, seen.len) else { return Ok(FrameVerdict::One) };
        let CutMode::Cut(sizes) = &self.form.mode else { return Err(AttemptStop::SuperFrames) };
        match sizes.cut(&seen.packet.flow, &part) {
            FrameCut::One => Ok(FrameVerdict::One),
            FrameCut::Unknown => Ok(FrameVerdict::Unknown),
            // Nothing but the identification and the payload tells datagrams apart.
            FrameCut::Into { .. } if !part.is_tcp() && bytes.len() < part.packet() => Ok(FrameVerdict::Unknown),
            FrameCut::Into { .. } if self.form.ids && part.has_zero_id(bytes) => Err(AttemptStop::NoIdentification),
            FrameCut::Into { size, is_inferred } => {
                self.frame.load(bytes, part, size);
                self.of = Some((seen.at, seen.frame));
                Ok(FrameVerdict::Cut { is_inferred })
            }
        }
    }

    /// The next packet of the super-frame that was met last.
    #[inline]
    pub(crate) fn next(&mut self, depth: usize) -> Result<Option<CapturedPacket>, AttemptStop> {
        if self.of.is_none() { Ok(None) } else { self.next_segment(depth) }
    }

    fn next_segment(&mut self, depth: usize) -> Result<Option<CapturedPacket>, AttemptStop> {
        let Some(((at, frame), segment)) = self.of.zip(self.frame.next()) else {
            self.of = None;
            return Ok(None);
        };
        let read = if self.form.payload { packet } else { packet_of_headers };
        if self.form.payload && segment.bytes.len() < segment.len.min(depth) {
            return Err(AttemptStop::NoPayload);
        }
        let packet = read(segment.bytes, LinkType::Ip, depth);
        Ok(packet.map(|packet| CapturedPacket { at, packet, frame, len: segment.len as u32 }))
    }
}

fn transport_part(frame: &[u8], link: LinkType, len: u32) -> Option<(&[u8], TransportPart)> {
    let bytes = link.inside(frame)?;
    // The bytes before the IP header are kept completely.
    let on_wire = (len as usize).saturating_sub(frame.len() - bytes.len());
    Some((bytes, TransportPart::of(bytes, on_wire)?))
}

impl ComparisonContext<'_> {
    pub(super) fn surveyed(&self) -> Result<SegmentSizes, CompareError> {
        self.survey().map_err(refusal)
    }

    pub(super) fn leave_out_ids(&mut self) {
        self.form.leave_out_ids();
        self.options.fields.ip_id = false;
    }

    /// Cuts super-frames another way, if packets of both captures do not fit; false if there is no other.
    pub(super) fn refine(&mut self, comparison: &Comparison, misfits: &CutMisfits) -> Result<bool, CompareError> {
        if misfits.packets == 0 {
            return Ok(false);
        }
        if !self.form.cuts() {
            let sizes = self.surveyed()?;
            self.form.cut(sizes);
            return Ok(true);
        }
        if comparison.up.super_frames + comparison.down.super_frames == 0 {
            return Ok(false);
        }
        if self.form.compares_ids() && 2 * misfits.renumbered > misfits.packets {
            self.leave_out_ids();
            return Ok(true);
        }
        Ok(self.form.distrust(&misfits.flows))
    }

    /// Reads both captures for the sizes of their packets.
    fn survey(&self) -> Result<SegmentSizes, AttemptStop> {
        let mut sizes = SegmentSizes::default();
        for which in [CaptureRole::Up, CaptureRole::Down] {
            let stop = |error| AttemptStop::Capture(which, error);
            let mut reader = self.input(which).read().map_err(stop)?;
            self.survey_one(&mut reader, which, &mut sizes)?;
        }
        Ok(sizes)
    }

    fn survey_one(
        &self,
        reader: &mut CaptureReader<'_>,
        which: CaptureRole,
        sizes: &mut SegmentSizes,
    ) -> Result<(), AttemptStop> {
        const ASK_EVERY: u64 = 1 << 14;
        loop {
            if reader.packets().is_multiple_of(ASK_EVERY) && !self.progress.go_on(reader.packets()) {
                return Err(AttemptStop::Interrupted);
            }
            let record = match reader.next() {
                Ok(Some(record)) => record,
                Ok(None) => return Ok(()),
                Err(CaptureError::Truncated { packets, .. }) if packets > 0 => return Ok(()),
                Err(error) => return Err(AttemptStop::Capture(which, error)),
            };
            if let Some(link) = record.link
                && let Some((bytes, part)) = transport_part(record.bytes, link, record.len)
                && let Some(packet) = packet(bytes, LinkType::Ip, DEPTH)
            {
                let header = bytes.get(part.layer.transport..).unwrap_or_default();
                sizes.see(&packet.flow, &part, header, which == CaptureRole::Down);
            }
        }
    }
}

/// Packets of DOWN that overlap with lost ones of UP without being the same: somewhere frames were cut wrongly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CutMisfits {
    pub packets: u64,
    /// The part of them that differs in nothing but the identification.
    pub renumbered: u64,
    pub flows: Vec<Flow>,
}

impl CutMisfits {
    /// `extra` are packets that only DOWN has, `lost` those that it lacks.
    pub(crate) fn of(extra: &[(Flow, TcpFields)], lost: impl Iterator<Item = (Flow, TcpFields)>) -> Self {
        let mut ranges: HashMap<Flow, BTreeMap<u32, u32>> = HashMap::new();
        for (flow, segment) in lost.filter(|(_, segment)| segment.len > 0) {
            let longest = ranges.entry(flow).or_default().entry(segment.seq).or_default();
            *longest = (*longest).max(segment.len.into());
        }
        let (mut misfits, mut flows) = (Self::default(), BTreeSet::new());
        for (flow, segment) in extra.iter().filter(|(_, segment)| segment.len > 0) {
            let Some(ranges) = ranges.get(flow) else { continue };
            let (from, len) = (segment.seq, u32::from(segment.len));
            if ranges.get(&from) == Some(&len) {
                misfits.renumbered += 1;
            } else if !overlaps(ranges, from, len) {
                continue;
            }
            misfits.packets += 1;
            flows.insert(*flow);
        }
        Self { flows: flows.into_iter().collect(), ..misfits }
    }
}

/// Ranges that wrap around are seen at their beginning only.
fn overlaps(ranges: &BTreeMap<u32, u32>, from: u32, len: u32) -> bool {
    let before = ranges.range(..=from).next_back();
    before.is_some_and(|(start, longest)| from - start < *longest)
        || ranges.range(from..from.saturating_add(len)).next().is_some()
}

#[cfg(test)]
mod tests;
