//! One message to the kernel: a frame, or the segments that the kernel is handed as one super-frame.

use linux::offload::{GsoRun, VnetHeader};
use wire::link::{AddressStamp, StampedData};

use super::{RunPlace, WireFrame};
use crate::pool::FramePool;

/// Frames for one message.
#[derive(Debug)]
pub struct OutgoingRun<'a> {
    pub frames: &'a [WireFrame],
    /// Work that the kernel has to do: to cut frames, or to complete a checksum.
    pub joined: Option<JoinedHead>,
}

/// Bytes in front of the payloads of a run.
#[derive(Debug)]
pub struct JoinedHead {
    /// The vnet header, then the headers of the super-frame.
    pub bytes: Vec<u8>,
    /// Offset in each frame at which its payload begins.
    pub payload_at: usize,
}

impl OutgoingRun<'_> {
    /// True if the kernel is to cut it.
    pub(super) fn is_super_frame(&self) -> bool {
        self.joined.is_some() && self.frames.len() > 1
    }

    /// Returns the joined bytes, the vnet header first; nothing if no frames were joined.
    pub(super) fn parts<'a>(&'a self, pool: &'a FramePool) -> impl Iterator<Item = &'a [u8]> {
        let payloads = self.joined.iter().flat_map(move |head| {
            let frames = self.frames.iter().filter_map(|frame| frame.frame.as_ref());
            frames.map(move |frame| &pool.get(frame)[head.payload_at..])
        });
        self.joined.iter().map(|head| &head.bytes[..]).chain(payloads)
    }

    /// The vnet header and the bytes, as a kernel would get them.
    pub fn message(&self, pool: &FramePool) -> (VnetHeader, Vec<u8>) {
        let Some(JoinedHead { bytes, payload_at }) = &self.joined else {
            return (VnetHeader::default(), self.frames[0].parts(pool).concat());
        };
        let (vnet, head) = bytes
            .split_first_chunk()
            .map_or_else(Default::default, |(vnet, head)| (VnetHeader::parse(*vnet), head.to_vec()));
        let payloads = self.frames.iter().filter_map(|frame| frame.frame.as_ref());
        let payloads = payloads.flat_map(|frame| pool.get(frame)[*payload_at..].iter().copied());
        (vnet, head.into_iter().chain(payloads).collect())
    }
}

/// Frames in order, by message.
pub fn outgoing_runs<'a>(frames: &'a [WireFrame], pool: &'a FramePool) -> impl Iterator<Item = OutgoingRun<'a>> {
    frames
        .chunk_by(|_, next| next.run == RunPlace::Next)
        .map(|frames| OutgoingRun { frames, joined: joined(frames, pool) })
}

fn joined(frames: &[WireFrame], pool: &FramePool) -> Option<JoinedHead> {
    let first = &frames[0];
    let frame = first.frame.as_ref()?;
    if first.run == RunPlace::Alone {
        return None;
    }
    let mut run = GsoRun::begin(pool.get(frame))?;
    for next in &frames[1..] {
        run.join(pool.get(next.frame.as_ref()?));
    }
    debug_assert_eq!(run.frames(), frames.len());
    let is_whole = frames.len() == 1 && !pool.is_unfinished(frame);
    let pushed = run.push();
    if is_whole && !pushed {
        return None;
    }
    let payload_at = run.payload_at();
    let (vnet, headers) = run.head();
    let mut bytes = Vec::with_capacity(VnetHeader::LEN + headers.len());
    bytes.extend_from_slice(&vnet.emit());
    // The addresses are the stamp.
    match AddressStamp::parse(&first.head[..first.head_len]) {
        Ok(Some(AddressStamp::Data(data))) if pushed => {
            bytes.extend_from_slice(&AddressStamp::Data(StampedData { pushed, ..data }).emit());
        }
        _ => bytes.extend_from_slice(&first.head[..first.head_len]),
    }
    bytes.extend_from_slice(&headers[first.head_len..]);
    Some(JoinedHead { bytes, payload_at })
}
