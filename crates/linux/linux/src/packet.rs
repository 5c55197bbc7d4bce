//! Packet sockets: a ring shared with the kernel for what comes in (TPACKET_V2), one system call for a
//! batch of what goes out.
//!
//! Version 2 of the ring hands over frames one by one; version 3 waits for blocks to fill, which adds a
//! millisecond. A ring is also what an unprivileged program can have in any size, where a socket's buffer
//! is limited. A frame longer than a slot, which a host that segments late may hand to a virtual wire, comes by the way of
//! a plain socket instead ([`PacketSocket::with_super_frames`]). What goes out takes the kernel's usual way through its queue: PACKET_QDISC_BYPASS would hide it
//! from captures, and lose it where a card's ring is full. Frames are seen before the kernel's own traffic
//! control on ingress, so a filter there can keep the kernel from acting on what we receive.

#![expect(unsafe_code, reason = "talks to the kernel")]

mod ring;
mod transmit;

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

use self::ring::PacketRing;
pub use self::transmit::TransmitRing;
use crate::offload::VnetHeader;
use crate::socket::{self, get, set, take_error};

/// A constant that libc lacks.
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
const PACKET_VNET_HDR: libc::c_int = 15;

/// Bytes of frames too long for a slot that may wait, as the kernel counts them.
const COPIES: usize = 8 << 20;
/// An IP packet of 64 KB with its Ethernet header, two tags, and the vnet header.
const LONGEST_COPY: usize = 65_536 + 64;

/// Options of a packet socket.
#[derive(Clone, Copy, Debug)]
pub struct PacketSocketOptions {
    /// Frames carry a vnet header, both ways.
    pub vnet: bool,
    /// The longest frame to receive, vnet header not counted.
    pub longest: usize,
    /// Frames that the ring holds.
    pub frames: usize,
    /// Bytes that may be on their way out; what is more waits with us.
    pub send_buffer: usize,
    /// Receives also frames that are for other addresses.
    pub promiscuous: bool,
    /// Receives also frames that this host sends.
    pub outgoing_too: bool,
}

/// A packet socket on one interface, with its ring.
#[derive(Debug)]
pub struct PacketSocket {
    fd: OwnedFd,
    ring: PacketRing,
    vnet: bool,
    scratch: Vec<u8>,
    /// The beginning of a frame is all that is wanted.
    beginnings: bool,
    /// A frame that was too long for a slot.
    copy: Vec<u8>,
    /// Frames too long for a slot.
    cut_short: u64,
}

/// A frame in the ring.
#[derive(Clone, Copy, Debug)]
pub struct RingFrame<'a> {
    pub vnet: VnetHeader,
    pub bytes: &'a [u8],
    /// Length of the frame, which may be more than there is of it here.
    pub len: usize,
    /// Time at which the kernel saw it, since 1970.
    pub at: Duration,
    /// Sent by this host, not received.
    pub outgoing: bool,
}

impl PacketSocket {
    pub fn open(interface: u32, opened: &PacketSocketOptions) -> io::Result<Self> {
        let fd = socket::raw(libc::AF_PACKET)?;
        let version = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
        set(&fd, libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
        set(&fd, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, &libc::c_int::from(!opened.outgoing_too))?;
        if opened.vnet {
            set(&fd, libc::SOL_PACKET, PACKET_VNET_HDR, &1)?;
        }
        set_buffer(&fd, libc::SO_SNDBUF, libc::SO_SNDBUFFORCE, opened.send_buffer)?;
        let ring = PacketRing::map(&fd, opened)?;
        if opened.promiscuous {
            socket::set_promiscuous(&fd, interface)?;
        }
        // Last, so that nothing arrives before there is a ring to put it into.
        bind(&fd, interface, libc::ETH_P_ALL as u16)?;
        Ok(Self { fd, ring, vnet: opened.vnet, scratch: Vec::new(), beginnings: false, copy: Vec::new(), cut_short: 0 })
    }

    /// Sees the beginnings of all that passes an interface, either way, as a capture does.
    pub fn sniffer(interface: u32, snap: usize, frames: usize) -> io::Result<Self> {
        let options = PacketSocketOptions {
            vnet: false,
            longest: snap,
            frames,
            send_buffer: 0,
            promiscuous: false,
            outgoing_too: true,
        };
        Self::open(interface, &options).map(Self::only_beginnings)
    }

    /// Hands over the beginning of a frame that is too long for a slot, instead of counting it as overflowed.
    #[must_use]
    pub fn only_beginnings(self) -> Self {
        Self { beginnings: true, ..self }
    }

    /// Hands over frames that are too long for a slot as well, one system call each.
    pub fn with_super_frames(self) -> io::Result<Self> {
        set(&self.fd, libc::SOL_PACKET, libc::PACKET_COPY_THRESH, &1)?;
        set_buffer(&self.fd, libc::SO_RCVBUF, libc::SO_RCVBUFFORCE, COPIES)?;
        Ok(self)
    }

    /// Bytes of frames too long for a slot that may wait, as the kernel counts them.
    pub fn room_for_copies(&self) -> usize {
        // SAFETY: the size of a buffer is a number.
        let bytes = unsafe { get::<libc::c_int>(&self.fd, libc::SOL_SOCKET, libc::SO_RCVBUF) };
        bytes.map_or(0, |bytes| bytes.max(0) as usize)
    }

    pub fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// True if frames carry a vnet header.
    pub fn has_vnet(&self) -> bool {
        self.vnet
    }

    /// Takes up to `most` frames out of the ring.
    pub fn receive(&mut self, most: usize, mut each: impl FnMut(RingFrame<'_>)) -> usize {
        let mut received = 0;
        while received < most {
            let Some(slot) = self.ring.next() else { break };
            let copy = if slot.has_copy() { receive_copy(&self.fd, &mut self.copy) } else { None };
            match slot.frame(self.vnet, self.beginnings, copy, &mut self.scratch) {
                Some(frame) => each(frame),
                None => self.cut_short += 1,
            }
            self.ring.give_back();
            received += 1;
        }
        received
    }

    /// One frame out as it is. False if there is no room.
    pub fn send_frame(&mut self, frame: &[u8]) -> io::Result<bool> {
        let nothing_left_to_do = if self.vnet { &FINISHED[..] } else { &[] };
        self.send_one(&[io::IoSlice::new(nothing_left_to_do), io::IoSlice::new(frame)])
    }

    /// One frame out, in pieces, of which the first is the vnet header if there are such. False if there is no room.
    pub fn send_one(&mut self, parts: &[io::IoSlice<'_>]) -> io::Result<bool> {
        match send_parts(&self.fd, parts) {
            Ok(_) => Ok(true),
            Err(error) if is_full(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The error that the kernel reports: the interface went down, or away.
    pub fn take_error(&self) -> io::Result<()> {
        take_error(&self.fd)
    }

    /// Frames that found the ring full or its slots too short, since this was last asked.
    pub fn overflowed(&mut self) -> u64 {
        let full = statistics(&self.fd).map_or(0, |statistics| u64::from(statistics.tp_drops));
        full + std::mem::take(&mut self.cut_short)
    }
}

/// True if a send failed for want of room, which is no error.
pub fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::ENOBUFS))
}

/// The vnet header of a frame that nothing is left to be done on.
pub const FINISHED: [u8; VnetHeader::LEN] = [0; VnetHeader::LEN];

/// A buffer of the size asked for, or of what an unprivileged program may have.
fn set_buffer(fd: &OwnedFd, option: libc::c_int, by_force: libc::c_int, bytes: usize) -> io::Result<()> {
    let bytes = bytes as libc::c_int;
    set(fd, libc::SOL_SOCKET, by_force, &bytes).or_else(|_| set(fd, libc::SOL_SOCKET, option, &bytes))
}

/// Binds to an interface, to receive frames of a protocol; 0 is none.
fn bind(fd: &OwnedFd, interface: u32, protocol: u16) -> io::Result<()> {
    // SAFETY: all zeros is a valid sockaddr_ll, and the kernel reads no more than its size.
    let result = unsafe {
        let mut address: libc::sockaddr_ll = std::mem::zeroed();
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = protocol.to_be();
        address.sll_ifindex = interface as libc::c_int;
        libc::bind(fd.as_raw_fd(), (&raw const address).cast(), size_of::<libc::sockaddr_ll>() as u32)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn send_parts(fd: &OwnedFd, parts: &[io::IoSlice<'_>]) -> io::Result<usize> {
    // SAFETY: `IoSlice` has the layout of iovec; the kernel only reads what the slices borrow.
    let sent = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = parts.as_ptr().cast_mut().cast();
        message.msg_iovlen = parts.len() as _;
        libc::sendmsg(fd.as_raw_fd(), &message, libc::MSG_DONTWAIT)
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(sent as usize) }
}

/// The frame that was too long for the slot at hand, with its vnet header; none if it is too long for anything.
fn receive_copy<'a>(fd: &OwnedFd, buffer: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    buffer.resize(LONGEST_COPY, 0);
    // SAFETY: the kernel writes no more than the buffer's length into it.
    let len = unsafe {
        let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
        libc::recv(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), flags)
    };
    // A frame that did not fit is said to be as long as it was.
    buffer.get(..usize::try_from(len).ok()?)
}

fn statistics(fd: &OwnedFd) -> io::Result<libc::tpacket_stats> {
    // SAFETY: statistics are plain numbers.
    unsafe { get(fd, libc::SOL_PACKET, libc::PACKET_STATISTICS) }
}
