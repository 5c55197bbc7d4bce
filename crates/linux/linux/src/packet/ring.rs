//! The ring that a packet socket shares with the kernel (TPACKET_V2).

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::{PacketSocketOptions, RingFrame};
use crate::offload::VnetHeader;
use crate::socket::set;

/// Memory shared with the kernel: frames of one size, owned by either side as their status says.
#[derive(Debug)]
pub(crate) struct PacketRing {
    memory: NonNull<u8>,
    len: usize,
    frame_size: usize,
    frames_per_block: usize,
    block_size: usize,
    frames: usize,
    next: usize,
}

// SAFETY: the mapping belongs to this ring alone, as memory of a `Vec` does; the kernel does not care which thread reads it.
unsafe impl Send for PacketRing {}

impl PacketRing {
    pub(crate) fn map(fd: &OwnedFd, opened: &PacketSocketOptions) -> io::Result<Self> {
        const PAGE: usize = 4_096;
        let head = size_of::<libc::tpacket2_hdr>() + size_of::<libc::sockaddr_ll>() + VnetHeader::LEN + 64;
        let frame_size = (head + opened.longest).next_multiple_of(256);
        let block_size = frame_size.max(64 << 10).next_multiple_of(PAGE);
        let frames_per_block = block_size / frame_size;
        let blocks = opened.frames.div_ceil(frames_per_block);
        let request = libc::tpacket_req {
            tp_block_size: block_size as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: frame_size as u32,
            tp_frame_nr: (blocks * frames_per_block) as u32,
        };
        set(fd, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let len = block_size * blocks;
        Ok(Self {
            memory: map_shared(fd, len)?,
            len,
            frame_size,
            frames_per_block,
            block_size,
            frames: blocks * frames_per_block,
            next: 0,
        })
    }

    fn slot(&self) -> NonNull<u8> {
        let at =
            self.next / self.frames_per_block * self.block_size + self.next % self.frames_per_block * self.frame_size;
        // SAFETY: `next` is below `frames`, so the whole slot lies inside the mapping.
        unsafe { self.memory.add(at) }
    }

    fn status(&self) -> &AtomicU32 {
        // SAFETY: a slot starts with the 32-bit status word of its tpacket2_hdr, suitably aligned, which the
        // kernel and we only access atomically; the mapping lives as long as `self`.
        unsafe { AtomicU32::from_ptr(self.slot().as_ptr().cast()) }
    }

    /// Next slot that the kernel has filled.
    pub(crate) fn next(&self) -> Option<RingSlot<'_>> {
        if self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the status says that the slot is ours until we give it back, and `&self` outlives the slice.
        Some(RingSlot(unsafe { std::slice::from_raw_parts(self.slot().as_ptr(), self.frame_size) }))
    }

    pub(crate) fn give_back(&mut self) {
        self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = if self.next + 1 == self.frames { 0 } else { self.next + 1 };
    }
}

impl Drop for PacketRing {
    fn drop(&mut self) {
        // SAFETY: this is the mapping made in `map`, and nothing borrowed from it outlives `self`.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.len) };
    }
}

/// Offset of the kind of packet, in the sockaddr_ll behind the tpacket2_hdr.
const PACKET_TYPE: usize = size_of::<libc::tpacket2_hdr>().next_multiple_of(libc::TPACKET_ALIGNMENT)
    + std::mem::offset_of!(libc::sockaddr_ll, sll_pkttype);

/// A filled slot: a tpacket2_hdr, then the frame where it says.
pub(crate) struct RingSlot<'a>(&'a [u8]);

impl<'a> RingSlot<'a> {
    fn word(&self, at: usize) -> u32 {
        u32::from_ne_bytes([self.0[at], self.0[at + 1], self.0[at + 2], self.0[at + 3]])
    }

    fn half(&self, at: usize) -> u16 {
        u16::from_ne_bytes([self.0[at], self.0[at + 1]])
    }

    /// The frame was too long, and waits at the socket as a whole.
    pub(crate) fn has_copy(&self) -> bool {
        self.word(0) & libc::TP_STATUS_COPY != 0
    }

    /// The frame's beginning, or all of it, behind its vnet header if it has one.
    fn stored(&self, has_vnet: bool) -> Option<&'a [u8]> {
        let (at, stored) = (usize::from(self.half(12)), self.word(8) as usize);
        let before = if has_vnet { VnetHeader::LEN } else { 0 };
        self.0.get(at.checked_sub(before)?..at + stored)
    }

    /// The frame, with the VLAN tag that the kernel took out put back; `copy` is the whole of it if it was too long for the
    /// slot. `None` if it was cut short, unless its beginning is enough.
    pub(crate) fn frame(
        &self,
        has_vnet: bool,
        beginnings: bool,
        copy: Option<&'a [u8]>,
        scratch: &'a mut Vec<u8>,
    ) -> Option<RingFrame<'a>> {
        let (status, len) = (self.word(0), self.word(4) as usize);
        let (mut vnet, mut bytes) = (VnetHeader::default(), copy.or_else(|| self.stored(has_vnet))?);
        if has_vnet {
            let (header, frame) = bytes.split_first_chunk()?;
            (vnet, bytes) = (VnetHeader::parse(*header), frame);
        }
        if bytes.len() < len && !beginnings {
            return None;
        }
        let frame =
            RingFrame { vnet, bytes, len, at: self.time(), outgoing: self.0[PACKET_TYPE] == libc::PACKET_OUTGOING };
        if status & libc::TP_STATUS_VLAN_VALID == 0 || bytes.len() < 12 {
            return Some(frame);
        }
        let (tag, kind) = (self.half(24), self.half(26));
        let kind = if status & libc::TP_STATUS_VLAN_TPID_VALID != 0 { kind } else { 0x8100 };
        scratch.clear();
        scratch.extend_from_slice(&bytes[..12]);
        scratch.extend_from_slice(&kind.to_be_bytes());
        scratch.extend_from_slice(&tag.to_be_bytes());
        scratch.extend_from_slice(&bytes[12..]);
        vnet.shift(4);
        Some(RingFrame { vnet, bytes: scratch, len: len + 4, ..frame })
    }

    fn time(&self) -> Duration {
        Duration::new(u64::from(self.word(16)), self.word(20))
    }
}

pub(super) fn map_shared(fd: &OwnedFd, len: usize) -> io::Result<NonNull<u8>> {
    // SAFETY: a new mapping at an address of the kernel's choosing touches no memory of ours.
    let memory = unsafe {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        libc::mmap(std::ptr::null_mut(), len, access, libc::MAP_SHARED, fd.as_raw_fd(), 0)
    };
    if memory == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(memory.cast()).ok_or_else(|| io::Error::other("the ring was mapped nowhere"))
}
