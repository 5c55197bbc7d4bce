//! Frames in memory: the pool, the queue before the wire, and the frames that a super-frame of the host's is cut into.

use linux::offload::FrameSink;
use standin::{FramePool, FrameQueue, HostFrames, PoolFrame, Tally};
use units::{Bytes, Time};

/// Treatment of the host's frames while the link should be protected and is not yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostGate {
    /// They go out as they are.
    Open,
    /// They wait, as far as the queue goes.
    Shut,
    Discard,
}

/// Frames of a link: all that are in memory, and those of the host's that wait.
#[derive(Debug)]
pub struct FrameMemory {
    pub pool: FramePool,
    pub(crate) gate: HostGate,
    /// Frames of the host's that wait for the wire.
    queue: FrameQueue,
    /// A super-frame is being cut into these.
    cut: Option<PoolFrame>,
}

impl FrameMemory {
    pub(super) fn new(pool: FramePool, queue: FrameQueue) -> Self {
        Self { pool, gate: HostGate::Open, queue, cut: None }
    }

    /// Time begins again; nobody has a handle on a frame any more but the queue.
    pub(super) fn start_over(&mut self) {
        self.queue.start_over();
        self.pool.keep_only(self.queue.frames());
    }

    pub(crate) fn queued(&self) -> Bytes {
        self.queue.bytes()
    }

    #[inline]
    pub(crate) fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    /// True if the endpoint may take a frame.
    #[inline]
    pub(super) fn offers(&self) -> bool {
        self.has_queued() && self.gate != HostGate::Shut
    }

    /// The next frame for the wire; `keep_runs` if frames of a flow leave as super-frames.
    #[inline]
    pub(super) fn take(&mut self, now: Time, keep_runs: bool, tally: &mut Tally) -> Option<PoolFrame> {
        if self.gate == HostGate::Shut {
            return None;
        }
        self.queue.keep_runs(keep_runs);
        let frame = self.queue.pop(now, &mut self.pool);
        tally.queue_dropped = self.queue.dropped();
        frame
    }

    /// Drops what waits, because it cannot be sealed for anybody.
    pub(super) fn discard_queued(&mut self, now: Time, tally: &mut Tally) {
        while let Some(frame) = self.queue.pop(now, &mut self.pool) {
            tally.gate_dropped += 1;
            self.pool.release(frame);
        }
        tally.queue_dropped = self.queue.dropped();
    }

    /// Copies the pieces of a frame into the pool.
    #[inline]
    pub(crate) fn store(&mut self, pieces: [&[u8]; 2], tally: &mut Tally) -> Option<PoolFrame> {
        let (first, second) = (pieces[0], pieces[1]);
        let Some(frame) = self.pool.claim(first.len() + second.len()) else {
            tally.no_buffer += 1;
            return None;
        };
        let bytes = self.pool.get_mut(&frame);
        bytes[..first.len()].copy_from_slice(first);
        bytes[first.len()..].copy_from_slice(second);
        Some(frame)
    }

    /// Puts the frame that was cut last into the queue, if there is room for it.
    #[inline]
    fn close_cut(&mut self, now: Time, tally: &mut Tally) {
        let Some(frame) = self.cut.take() else { return };
        if self.gate == HostGate::Discard {
            tally.gate_dropped += 1;
            return self.pool.release(frame);
        }
        self.queue.push(now, frame, &mut self.pool);
        tally.queue_dropped = self.queue.dropped();
    }
}

/// The way of the host's frames into the queue.
#[derive(Debug)]
pub(crate) struct HostIntake<'a> {
    pub(super) memory: &'a mut FrameMemory,
    pub(super) tally: &'a mut Tally,
    pub(super) now: Time,
    /// Frames that leave stamped need no checksum of ours; others get theirs when they leave.
    pub(super) takes_unfinished: bool,
}

impl HostFrames for HostIntake<'_> {
    fn tally(&mut self) -> &mut Tally {
        self.tally
    }

    fn end_frame(&mut self) {
        self.memory.close_cut(self.now, self.tally);
    }
}

impl FrameSink for HostIntake<'_> {
    fn next(&mut self, len: usize) -> Option<&mut [u8]> {
        self.end_frame();
        let FrameMemory { pool, cut, .. } = &mut *self.memory;
        match pool.claim(len) {
            Some(frame) => Some(pool.get_mut(cut.insert(frame))),
            None => {
                self.tally.no_buffer += 1;
                None
            }
        }
    }

    fn takes_unfinished(&self) -> bool {
        self.takes_unfinished
    }

    fn leave_unfinished(&mut self) {
        if let Some(frame) = &self.memory.cut {
            self.memory.pool.leave_unfinished(frame);
        }
    }
}
