//! Memory shared with the kernel: the frames (UMEM) and the four rings that hand them back and forth.
//!
//! ```text
//!            fill  ──empty frames──▶          ◀──frames that arrived──  rx
//!      we                             kernel                                 we
//!            tx    ──frames to send─▶         ◀──frames that are sent──  completion
//! ```
//!
//! A frame belongs to the side that took it out of a ring last, and the other side does not touch its bytes. Each ring
//! has one writer and one reader. Each of the two has a counter that only it writes.

#![expect(unsafe_code, reason = "talks to the kernel")]

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

impl Mapping {
    fn new(len: usize, flags: libc::c_int, fd: RawFd, offset: libc::off_t) -> io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choosing touches no memory of ours.
        let start = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(std::ptr::null_mut(), len, access, flags | libc::MAP_POPULATE, fd, offset)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::other("memory was mapped nowhere"))?;
        Ok(Self { start, len })
    }

    /// `len` bytes from `at` on, which lie inside the mapping.
    fn at(&self, at: u64, len: usize) -> NonNull<u8> {
        assert!(at.checked_add(len as u64).is_some_and(|end| end <= self.len as u64), "the kernel points outside");
        // SAFETY: inside the mapping, as was just checked.
        unsafe { self.start.add(at as usize) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this is the mapping made in `new`, and nothing borrowed from it outlives `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// Frames of one size, each named by where it starts.
#[derive(Debug)]
pub(crate) struct Umem {
    memory: Mapping,
    frame_size: u32,
}

impl Umem {
    pub(crate) fn new(frames: u32, frame_size: u32) -> io::Result<Self> {
        let len = frames as usize * frame_size as usize;
        Ok(Self { memory: Mapping::new(len, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)?, frame_size })
    }

    pub(crate) fn registration(&self) -> libc::xdp_umem_reg {
        libc::xdp_umem_reg {
            addr: self.memory.start.as_ptr() as u64,
            len: self.memory.len as u64,
            chunk_size: self.frame_size,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        }
    }

    pub(crate) fn frame_size(&self) -> u32 {
        self.frame_size
    }

    pub(crate) fn address(&self, frame: u32) -> u64 {
        u64::from(frame) * u64::from(self.frame_size)
    }

    pub(crate) fn frame(&self, address: u64) -> u32 {
        (address / u64::from(self.frame_size)) as u32
    }

    /// # Safety
    /// The kernel has handed these bytes over and does not get them back while the slice lives.
    pub(crate) unsafe fn bytes(&self, address: u64, len: u32) -> &[u8] {
        // SAFETY: `at` checked the bounds; the caller vouches that nobody writes there.
        unsafe { std::slice::from_raw_parts(self.memory.at(address, len as usize).as_ptr(), len as usize) }
    }

    /// # Safety
    /// The conditions of [`Self::bytes`] apply.
    pub(crate) unsafe fn bytes_mut(&mut self, address: u64, len: u32) -> &mut [u8] {
        // SAFETY: `at` checked the bounds; the caller vouches that the kernel stays away, `&mut` that others do.
        unsafe { std::slice::from_raw_parts_mut(self.memory.at(address, len as usize).as_ptr(), len as usize) }
    }
}

/// A ring, and the place at which the kernel has mapped it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RingLocation {
    pub page: libc::off_t,
    pub offsets: libc::xdp_ring_offset,
    /// A power of two.
    pub entries: u32,
}

#[derive(Debug)]
struct XdpRing<T> {
    memory: Mapping,
    place: RingLocation,
    /// Our counter. It may be ahead of the value that the kernel sees.
    ours: u32,
    /// The kernel's, as it was when we last looked.
    theirs: u32,
    of: PhantomData<T>,
}

impl<T: Copy> XdpRing<T> {
    fn map(fd: &OwnedFd, place: RingLocation) -> io::Result<Self> {
        let len = place.offsets.desc as usize + place.entries as usize * size_of::<T>();
        let memory = Mapping::new(len, libc::MAP_SHARED, fd.as_raw_fd(), place.page)?;
        Ok(Self { memory, place, ours: 0, theirs: 0, of: PhantomData })
    }

    fn counter(&self, at: u64) -> &AtomicU32 {
        // SAFETY: the kernel says that there is an aligned 32-bit counter there, which it and we only access
        // atomically; the mapping lives as long as `self`.
        unsafe { AtomicU32::from_ptr(self.memory.at(at, size_of::<u32>()).as_ptr().cast()) }
    }

    fn producer(&self) -> &AtomicU32 {
        self.counter(self.place.offsets.producer)
    }

    fn consumer(&self) -> &AtomicU32 {
        self.counter(self.place.offsets.consumer)
    }

    fn slot(&self, count: u32) -> NonNull<T> {
        let index = u64::from(count & (self.place.entries - 1));
        self.memory.at(self.place.offsets.desc + index * size_of::<T>() as u64, size_of::<T>()).cast()
    }

    fn read(&self, count: u32) -> T {
        // SAFETY: an aligned slot inside the ring; both kinds of `T`, an address and a descriptor, are plain numbers.
        unsafe { self.slot(count).read() }
    }

    fn write(&mut self, count: u32, value: T) {
        // SAFETY: an aligned slot inside the ring, which the kernel does not read before it is published.
        unsafe { self.slot(count).write(value) }
    }
}

/// A ring that we write and the kernel reads.
#[derive(Debug)]
pub(crate) struct ToKernel<T>(XdpRing<T>);

impl<T: Copy> ToKernel<T> {
    pub(crate) fn map(fd: &OwnedFd, place: RingLocation) -> io::Result<Self> {
        XdpRing::map(fd, place).map(Self)
    }

    /// The caller knows that there is room.
    pub(crate) fn push(&mut self, value: T) {
        self.0.write(self.0.ours, value);
        self.0.ours = self.0.ours.wrapping_add(1);
    }

    /// Lets the kernel see what was pushed.
    pub(crate) fn publish(&mut self) {
        self.0.producer().store(self.0.ours, Ordering::Release);
    }
}

/// A ring that the kernel writes and we read.
#[derive(Debug)]
pub(crate) struct FromKernel<T>(XdpRing<T>);

impl<T: Copy> FromKernel<T> {
    pub(crate) fn map(fd: &OwnedFd, place: RingLocation) -> io::Result<Self> {
        XdpRing::map(fd, place).map(Self)
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        let ring = &mut self.0;
        if ring.theirs == ring.ours {
            ring.theirs = ring.producer().load(Ordering::Acquire);
            if ring.theirs == ring.ours {
                return None;
            }
        }
        let value = ring.read(ring.ours);
        ring.ours = ring.ours.wrapping_add(1);
        Some(value)
    }

    /// Lets the kernel write again where we have read.
    pub(crate) fn publish(&mut self) {
        self.0.consumer().store(self.0.ours, Ordering::Release);
    }
}
