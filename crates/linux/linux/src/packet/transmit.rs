//! Super-frames on their way out, through a ring shared with the kernel (TPACKET_V2, PACKET_TX_RING).
//!
//! A packet socket's ordinary `sendmsg` has one fault: when the kernel cuts such a frame, only its last segment belongs to
//! the socket. A veth hands segments to the peer unchanged, and GRO joins only segments of one socket: the last one would
//! stay alone, and overtake the others. Segments of a frame that left through a ring belong to no socket.
//!
//! Invariant: between two calls no slot waits to be sent; each is free, or the kernel has it.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use super::ring::map_shared;
use super::{LONGEST_COPY, PACKET_VNET_HDR, bind, is_full, set_buffer};
use crate::socket::{self, set};

/// Super-frames on their way at a time.
const SLOTS: usize = 8;
/// Bytes from the start of a slot to the vnet header.
const HEAD: usize = size_of::<libc::tpacket2_hdr>().next_multiple_of(libc::TPACKET_ALIGNMENT);
/// 17 pages, the most that the kernel takes for one frame.
const SLOT: usize = (HEAD + LONGEST_COPY).next_multiple_of(4_096);

/// A packet socket that sends super-frames on one interface, and receives nothing.
#[derive(Debug)]
pub struct TransmitRing {
    fd: OwnedFd,
    memory: NonNull<u8>,
    next: usize,
}

// SAFETY: the mapping belongs to this ring alone, as memory of a `Vec` does; the kernel does not care which thread uses it.
unsafe impl Send for TransmitRing {}

impl TransmitRing {
    /// `send_buffer` bounds the bytes that may be on their way out.
    pub fn open(interface: u32, send_buffer: usize) -> io::Result<Self> {
        let fd = socket::raw(libc::AF_PACKET)?;
        set(&fd, libc::SOL_PACKET, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V2 as libc::c_int))?;
        set(&fd, libc::SOL_PACKET, PACKET_VNET_HDR, &1)?;
        set_buffer(&fd, libc::SO_SNDBUF, libc::SO_SNDBUFFORCE, send_buffer)?;
        let request = libc::tpacket_req {
            tp_block_size: SLOT as u32,
            tp_block_nr: SLOTS as u32,
            tp_frame_size: SLOT as u32,
            tp_frame_nr: SLOTS as u32,
        };
        set(&fd, libc::SOL_PACKET, libc::PACKET_TX_RING, &request)?;
        let memory = map_shared(&fd, SLOT * SLOTS)?;
        let ring = Self { fd, memory, next: 0 };
        bind(&ring.fd, interface, 0)?;
        Ok(ring)
    }

    /// Sends frames from the first on, each in parts, of which the first is the vnet header; how many found room.
    pub fn send<'a, P>(&mut self, frames: impl Iterator<Item = P>) -> io::Result<usize>
    where
        P: Iterator<Item = &'a [u8]>,
    {
        let (first, mut filled) = (self.next, 0);
        for parts in frames.take(SLOTS) {
            match self.fill(parts) {
                Ok(true) => filled += 1,
                Err(error) if filled == 0 => return Err(error),
                Ok(false) | Err(_) => break,
            }
        }
        if filled == 0 {
            return Ok(0);
        }
        let kicked = self.kick();
        let waits =
            |at: usize| !matches!(self.status((first + at) % SLOTS).load(Ordering::Acquire), AVAILABLE | SENDING);
        let taken = (0..filled).find(|at| waits(*at)).unwrap_or(filled);
        for at in taken..filled {
            self.status((first + at) % SLOTS).store(AVAILABLE, Ordering::Release);
        }
        self.next = (first + taken) % SLOTS;
        match kicked {
            Err(error) if taken == 0 && !is_full(&error) => Err(error),
            _ => Ok(taken),
        }
    }

    /// False if the kernel still has the next slot.
    fn fill<'a>(&mut self, parts: impl Iterator<Item = &'a [u8]>) -> io::Result<bool> {
        if self.status(self.next).load(Ordering::Acquire) != AVAILABLE {
            return Ok(false);
        }
        let mut len = HEAD;
        for part in parts {
            if len + part.len() > SLOT {
                return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
            }
            // SAFETY: the slot is ours while its status says so, and the part fits into it; `part` is not in the ring.
            unsafe { self.slot(self.next).add(len).copy_from_nonoverlapping(NonNull::from(part).cast(), part.len()) };
            len += part.len();
        }
        // SAFETY: a slot starts with a tpacket2_hdr, suitably aligned, which is ours as the rest of it.
        unsafe { (*self.slot(self.next).cast::<libc::tpacket2_hdr>().as_ptr()).tp_len = (len - HEAD) as u32 };
        self.status(self.next).store(libc::TP_STATUS_SEND_REQUEST, Ordering::Release);
        self.next = (self.next + 1) % SLOTS;
        Ok(true)
    }

    fn kick(&self) -> io::Result<()> {
        // SAFETY: nothing is passed but what is in the ring.
        let sent = unsafe { libc::send(self.fd.as_raw_fd(), std::ptr::null(), 0, libc::MSG_DONTWAIT) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    fn slot(&self, at: usize) -> NonNull<u8> {
        // SAFETY: the ring has SLOTS slots, and callers give a number below that.
        unsafe { self.memory.add(at * SLOT) }
    }

    fn status(&self, at: usize) -> &AtomicU32 {
        // SAFETY: a slot starts with the 32-bit status word of its tpacket2_hdr, suitably aligned, which the kernel and we
        // only access atomically; the mapping lives as long as `self`.
        unsafe { AtomicU32::from_ptr(self.slot(at).as_ptr().cast()) }
    }
}

const AVAILABLE: u32 = libc::TP_STATUS_AVAILABLE;
const SENDING: u32 = libc::TP_STATUS_SENDING;

impl Drop for TransmitRing {
    fn drop(&mut self) {
        // SAFETY: this is the mapping made in `open`, and nothing borrowed from it outlives `self`.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), SLOT * SLOTS) };
    }
}
