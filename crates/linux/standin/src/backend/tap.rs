//! A TAP interface with a vnet header: the host's super-frames come through one read, ours go through one
//! write.
//!
//! It is made persistent, so that the interface, its addresses and its routes survive a daemon that dies;
//! the next one attaches to it.

#![expect(unsafe_code, reason = "talks to the kernel")]

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;

use super::Host;
use linux::offload::VnetHeader;

/// A constant of linux/if_tun.h.
const TUNSETIFF: u64 = 0x4004_54ca;
const TUNSETPERSIST: u64 = 0x4004_54cb;
const TUNSETOFFLOAD: u64 = 0x4004_54d0;
const TUNGETIFF: u64 = 0x8004_54d2;
const TUNSETVNETHDRSZ: u64 = 0x4004_54d8;
const IFF_TAP: libc::c_short = 0x0002;
const IFF_NO_PI: libc::c_short = 0x1000;
const IFF_VNET_HDR: libc::c_short = 0x4000;
/// Partial checksums; TCP over IPv4, over IPv6, with ECN.
const OFFLOADS: libc::c_ulong = 0x01 | 0x02 | 0x04 | 0x08;

/// A super-frame: an IP packet of 64 KB with its Ethernet header, a tag, and the vnet header.
const LONGEST: usize = 65_536 + 64;

/// More than the kernel lets wait for a TAP, 1,000 frames unless somebody changed that.
const MOST_WAITING: u32 = 16_384;

#[derive(Debug)]
pub(crate) struct Tap {
    file: File,
    /// Index by which the interface's own counters are found, whatever it is called by then.
    index: libc::c_uint,
    buffer: Box<[u8]>,
    /// Frames that the interface had dropped when this was last read.
    dropped: u64,
    /// Frames thrown away since then.
    discarded: u64,
}

impl Tap {
    /// Attaches to the TAP interface of this name, or makes it.
    pub(crate) fn open(name: &str) -> io::Result<Self> {
        let file = File::options().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
        attach(&file, name)?;
        control(&file, TUNSETVNETHDRSZ, &mut (VnetHeader::LEN as libc::c_int))?;
        Self::attached(file)
    }

    /// The interface to which `file` is attached already.
    pub(crate) fn attached(file: File) -> io::Result<Self> {
        set(&file, TUNSETOFFLOAD, OFFLOADS)?;
        // Frames that were dropped before this attachment are not reported by it.
        let index = index_of(&file)?;
        let dropped = tx_dropped(index).unwrap_or(0);
        Ok(Self { file, index, buffer: vec![0; LONGEST].into(), dropped, discarded: 0 })
    }

    /// Throws away what waits, and counts it among what was dropped: newer frames have passed it by.
    pub(crate) fn discard(&mut self) -> io::Result<()> {
        // The bound is the size of the queue, so that the loop ends even if the host goes on sending.
        for _ in 0..MOST_WAITING {
            if !self.receive(&mut |_, _| ())? {
                break;
            }
            self.discarded += 1;
        }
        Ok(())
    }

    /// Sets whether the interface stays when nobody is attached to it.
    pub(crate) fn persist(&self, stays: bool) -> io::Result<()> {
        set(&self.file, TUNSETPERSIST, libc::c_ulong::from(stays))
    }
}

impl Host for Tap {
    fn fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    fn carrier(&self) -> Option<OwnedFd> {
        self.file.try_clone().ok().map(OwnedFd::from)
    }

    fn receive(&mut self, each: &mut dyn FnMut(&VnetHeader, &[u8])) -> io::Result<bool> {
        let len = match self.file.read(&mut self.buffer) {
            Ok(len) => len,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        };
        if let Some((vnet, frame)) = self.buffer[..len].split_first_chunk() {
            each(&VnetHeader::parse(*vnet), frame);
        }
        Ok(true)
    }

    fn deliver(&mut self, parts: &[io::IoSlice<'_>]) -> io::Result<bool> {
        match self.file.write_vectored(parts) {
            Ok(written) => Ok(written == parts.iter().map(|part| part.len()).sum::<usize>()),
            // The interface is down, or there is no memory, or the kernel does not like the frame: all are a
            // frame lost on the host's side, not a reason to stop.
            Err(error) => match error.raw_os_error() {
                Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM | libc::EIO | libc::EINVAL) => Ok(false),
                _ => Err(error),
            },
        }
    }

    fn overflowed(&mut self) -> u64 {
        let now = tx_dropped(self.index).unwrap_or(self.dropped);
        let before = std::mem::replace(&mut self.dropped, now);
        now.saturating_sub(before) + std::mem::take(&mut self.discarded)
    }

    fn error(&mut self) -> Option<io::Error> {
        None
    }
}

/// The number of frames that an interface of this thread's namespace could not send. It is read from a file: a netlink
/// request would wait for any process that is changing interfaces, and frames would wait with it.
fn tx_dropped(index: libc::c_uint) -> Option<u64> {
    let name = name_at(index)?;
    let table = std::fs::read_to_string("/proc/thread-self/net/dev").ok()?;
    let of_name =
        |line: &str| line.split_once(':').filter(|(of, _)| of.trim() == name).map(|(_, rest)| rest.to_owned());
    // Eight columns of what came in, then bytes, packets, errors and drops of what went out.
    table.lines().find_map(of_name)?.split_whitespace().nth(11)?.parse().ok()
}

/// The index of the interface to which `file` is attached.
fn index_of(file: &File) -> io::Result<libc::c_uint> {
    // SAFETY: all zeros is a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    control(file, TUNGETIFF, &mut request)?;
    // SAFETY: the kernel ends the name with a zero.
    match unsafe { libc::if_nametoindex(request.ifr_name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => Ok(index),
    }
}

/// The name that the interface of this index has by now.
fn name_at(index: libc::c_uint) -> Option<String> {
    let mut name = [0_u8; libc::IF_NAMESIZE];
    // SAFETY: there is room for the longest name and the zero behind it.
    let known = unsafe { libc::if_indextoname(index, name.as_mut_ptr().cast()) };
    (!known.is_null())
        .then(|| name.split(|byte| *byte == 0).next().map(|name| String::from_utf8_lossy(name).into_owned()))?
}

fn attach(file: &File, name: &str) -> io::Result<()> {
    // SAFETY: all zeros is a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.is_empty() || name.len() >= request.ifr_name.len() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "an interface's name has 1 to 15 characters"));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
    control(file, TUNSETIFF, &mut request)
}

fn control<T>(file: &File, request: u64, argument: &mut T) -> io::Result<()> {
    // SAFETY: each request that this is used for reads or writes no more
    // than the size of its argument, which is a `T`.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), request as _, std::ptr::from_mut(argument)) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn set(file: &File, request: u64, value: libc::c_ulong) -> io::Result<()> {
    // SAFETY: these requests take a number, not a pointer.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), request as _, value) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
