//! Frames in memory: slots of one size, handed out, counted and taken back.
//!
//! A frame is copied into a slot once, when it comes in, and from there on only its handle moves: through
//! the queue, into the sender's window, into the reorder buffer. A second handle on the same slot costs a
//! count. The slot used last is handed out first, since it is still in the cache.
//!
//! Invariants: a slot is free exactly when nobody has a handle on it; the pool never grows.

use machine::FrameBody;

/// Bytes that the frame check sequence adds to a frame on an Ethernet wire.
const CHECK: u32 = 4;

/// A frame in a slot. To be given back with [`FramePool::release`], or it is lost to the pool.
#[derive(Debug, PartialEq, Eq)]
pub struct PoolFrame {
    slot: u32,
    len: u32,
}

impl PoolFrame {
    /// The slot's number. It distinguishes frames while they are held.
    pub fn slot(&self) -> u32 {
        self.slot
    }

    #[inline]
    pub fn bytes(&self) -> usize {
        self.len as usize
    }
}

impl FrameBody for PoolFrame {
    #[inline]
    fn len(&self) -> u32 {
        self.len + CHECK
    }
}

#[derive(Debug)]
pub struct FramePool {
    memory: Vec<u8>,
    longest: usize,
    slot_size: usize,
    handles: Vec<u16>,
    /// The TCP checksum of the frame in a slot has yet to be written.
    unfinished: Vec<bool>,
    free: Vec<u32>,
}

impl FramePool {
    /// Room for `slots` frames of at most `longest` bytes.
    pub fn new(slots: u32, longest: usize) -> Self {
        let slot_size = longest.next_multiple_of(64);
        Self {
            memory: vec![0; slot_size * slots as usize],
            longest,
            slot_size,
            handles: vec![0; slots as usize],
            unfinished: vec![false; slots as usize],
            free: (0..slots).rev().collect(),
        }
    }

    #[inline]
    pub fn longest(&self) -> usize {
        self.longest
    }

    pub fn slots(&self) -> usize {
        self.handles.len()
    }

    pub fn free(&self) -> usize {
        self.free.len()
    }

    /// A frame of `len` bytes with unspecified content; none if the pool is used up or the frame too long.
    #[inline]
    pub fn claim(&mut self, len: usize) -> Option<PoolFrame> {
        if len > self.longest() {
            return None;
        }
        let slot = self.free.pop()?;
        self.handles[slot as usize] = 1;
        self.unfinished[slot as usize] = false;
        Some(PoolFrame { slot, len: len as u32 })
    }

    #[inline]
    fn start(&self, frame: &PoolFrame) -> usize {
        frame.slot as usize * self.slot_size
    }

    #[inline]
    pub fn get(&self, frame: &PoolFrame) -> &[u8] {
        let at = self.start(frame);
        &self.memory[at..at + frame.len as usize]
    }

    #[inline]
    pub fn get_mut(&mut self, frame: &PoolFrame) -> &mut [u8] {
        let at = self.start(frame);
        &mut self.memory[at..at + frame.len as usize]
    }

    /// The frame has no TCP checksum: it can do without one as part of a super-frame.
    #[inline]
    pub fn leave_unfinished(&mut self, frame: &PoolFrame) {
        self.unfinished[frame.slot as usize] = true;
    }

    #[inline]
    pub fn is_unfinished(&self, frame: &PoolFrame) -> bool {
        self.unfinished[frame.slot as usize]
    }

    /// Writes the TCP checksum of a frame that was left without.
    #[inline]
    pub fn finish(&mut self, frame: &PoolFrame) {
        if std::mem::take(&mut self.unfinished[frame.slot as usize]) {
            linux::offload::finish_tcp(self.get_mut(frame));
        }
    }

    /// Takes back every slot but those of `kept`, each of which has one handle.
    pub fn keep_only<'a>(&mut self, kept: impl IntoIterator<Item = &'a PoolFrame>) {
        self.handles.fill(0);
        kept.into_iter().for_each(|frame| self.handles[frame.slot as usize] = 1);
        self.free = (0..self.handles.len() as u32).rev().filter(|slot| self.handles[*slot as usize] == 0).collect();
    }

    /// A second handle on the same bytes.
    #[inline]
    pub fn keep(&mut self, frame: &PoolFrame) -> PoolFrame {
        self.handles[frame.slot as usize] += 1;
        PoolFrame { slot: frame.slot, len: frame.len }
    }

    #[inline]
    pub fn release(&mut self, frame: PoolFrame) {
        let handles = &mut self.handles[frame.slot as usize];
        *handles -= 1;
        if *handles == 0 {
            self.free.push(frame.slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_free_again_when_its_last_handle_is_released() {
        let mut pool = FramePool::new(2, 100);
        let frame = pool.claim(3).unwrap();
        pool.get_mut(&frame).copy_from_slice(b"abc");
        let kept = pool.keep(&frame);
        pool.release(frame);
        assert_eq!((pool.free(), pool.get(&kept)), (1, &b"abc"[..]));
        pool.release(kept);
        assert_eq!(pool.free(), 2);
    }

    #[test]
    fn an_empty_pool_and_a_frame_too_long_are_refused() {
        let mut pool = FramePool::new(1, 100);
        assert!(pool.claim(pool.longest() + 1).is_none());
        let only = pool.claim(100).unwrap();
        assert!(pool.claim(1).is_none());
        pool.release(only);
    }
}
