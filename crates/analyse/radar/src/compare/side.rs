//! One capture, read packet by packet.

use capture::LinkType;
use units::Progress;
use units::Timestamp;

use super::cutting::{CutForm, FrameCutter, FrameVerdict};
use super::{CaptureContents, CaptureRole};
use crate::packet::Packet;
use crate::read::DEPTH;
use crate::scope::is_link_local;
use capture::{CaptureError, CaptureReader, CaptureRecord};

/// Reason why an attempt ends early.
pub(crate) enum AttemptStop {
    Capture(CaptureRole, CaptureError),
    /// Bytes that the capture keeps of a packet, if they are fewer than are compared.
    Cut(usize),
    /// The digest could not be decoded.
    Stuck,
    /// The capture has super-frames, and it is not known how to cut them.
    SuperFrames,
    /// The capture kept no payload of super-frames' packets.
    NoPayload,
    /// An identification of zero does not say those of the packets behind the first.
    NoIdentification,
    Interrupted,
}

/// A packet as its capture has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CapturedPacket {
    /// Nanoseconds of its capture's clock.
    pub at: i64,
    pub packet: Packet,
    /// Number of the frame in its capture, and its length there.
    pub frame: u64,
    pub len: u32,
}

/// Packets of which less was kept are read as far as they go; no other packet is judged by so little.
const FLOOR: usize = 24;
/// One frame in this many asks whether to go on.
const ASK_EVERY: u64 = 1 << 14;

pub(crate) struct CaptureSide<'a> {
    reader: CaptureReader<'a>,
    which: CaptureRole,
    depth: usize,
    progress: &'a dyn Progress,
    contents: CaptureContents,
    cutter: FrameCutter,
    first: u64,
    last: u64,
    ended: bool,
}

impl<'a> CaptureSide<'a> {
    pub(crate) fn new(
        reader: CaptureReader<'a>,
        which: CaptureRole,
        depth: usize,
        form: CutForm,
        progress: &'a dyn Progress,
    ) -> Self {
        let (contents, cutter) = (CaptureContents::default(), FrameCutter::new(form));
        Self { reader, which, depth, progress, contents, cutter, first: u64::MAX, last: 0, ended: false }
    }

    /// Contents that have been read so far.
    pub(crate) fn contents(&self) -> CaptureContents {
        let span = (self.first <= self.last).then_some((self.first, self.last));
        CaptureContents { span, ..self.contents }
    }

    pub(crate) fn packets(&self) -> u64 {
        self.contents.packets
    }

    /// The next IP packet. A file that ends within a record ends before it.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<CapturedPacket>, AttemptStop> {
        if let Some(packet) = self.cutter.next(self.depth)? {
            self.contents.packets += 1;
            return Ok(Some(packet));
        }
        while !self.ended {
            let frame = self.reader.packets();
            if frame.is_multiple_of(ASK_EVERY) && !self.progress.go_on(frame) {
                return Err(AttemptStop::Interrupted);
            }
            let record = match self.reader.next() {
                Ok(Some(record)) => record,
                Ok(None) => {
                    self.ended = true;
                    break;
                }
                Err(CaptureError::Truncated { packets, .. }) if packets > 0 => {
                    self.contents.truncated = true;
                    self.ended = true;
                    break;
                }
                Err(error) => return Err(AttemptStop::Capture(self.which, error)),
            };
            let CaptureRecord { at: Timestamp(at), len, bytes, link, .. } = record;
            self.first = self.first.min(at);
            self.last = self.last.max(at);
            self.contents.longest = self.contents.longest.max(len);
            let Some(link) = link else {
                self.contents.other_links += 1;
                continue;
            };
            let Some(packet) = self.cutter.read(bytes, link, self.depth) else {
                self.contents.not_ip += 1;
                continue;
            };
            if is_link_local(&packet, bytes, link) {
                self.contents.link_local += 1;
                continue;
            }
            let seen = CapturedPacket { at: i64::try_from(at).unwrap_or(i64::MAX), packet, frame, len };
            match self.cutter.judge(bytes, link, &seen)? {
                FrameVerdict::One => {}
                FrameVerdict::Unknown => self.contents.uncut += 1,
                FrameVerdict::Cut { is_inferred } => {
                    self.contents.super_frames += 1;
                    self.contents.inferred += u64::from(is_inferred);
                    let first = self.cutter.next(self.depth)?;
                    self.contents.packets += u64::from(first.is_some());
                    return Ok(first);
                }
            }
            if bytes.len() < len as usize
                && let Some(kept) = kept(bytes, link)
            {
                let kept = kept.min(self.contents.kept.unwrap_or(DEPTH));
                self.contents.kept = Some(kept);
                if kept < self.depth {
                    return Err(AttemptStop::Cut(kept));
                }
            }
            self.contents.packets += 1;
            return Ok(Some(seen));
        }
        Ok(None)
    }
}

/// Captured bytes of a cut packet, if they are fewer than `DEPTH`.
fn kept(frame: &[u8], link: LinkType) -> Option<usize> {
    let kept = link.inside(frame)?.len();
    (FLOOR..DEPTH).contains(&kept).then_some(kept)
}
