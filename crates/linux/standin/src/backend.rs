//! Interfaces of the loop to Linux, behind two small traits: a [`Host`] side, where the stand-in interface meets the
//! kernel, and a [`Wire`] side, where the protocol runs.
//!
//! ```text
//!   host side    tap        /dev/net/tun with a vnet header; survives its daemon, needs the device file
//!                veth       a veth pair and a packet socket with a vnet header; needs no device file
//!   wire side    packet     a packet socket: ring in, sendmmsg out
//! ```
//!
//! The host side hands over super-frames with partial checksums and takes such back; cutting and joining
//! them is [`linux::offload`]'s. The wire side carries frames as they are.

mod outgoing;
mod packet;
pub(crate) mod queues;
mod tap;

use std::io;
use std::os::fd::{OwnedFd, RawFd};

pub use outgoing::{OutgoingRun, outgoing_runs};
pub(crate) use packet::{PacketHost, PacketWire};
pub(crate) use tap::Tap;

use linux::offload::VnetHeader;
use wire::ethernet::ETHERNET;

use crate::pool::{FramePool, PoolFrame};

/// Room for what a protocol puts before a frame: the header of a protected link with its seal is the longest.
pub const LONGEST_HEAD: usize = ETHERNET + wire::link::MAX_HEADER + 16;

/// A frame on its way to the wire: a header of ours, then the rest of a frame.
#[derive(Debug)]
pub struct WireFrame {
    pub head: [u8; LONGEST_HEAD],
    pub head_len: usize,
    pub frame: Option<PoolFrame>,
    /// Bytes of the frame that the head replaces.
    pub skip: usize,
    /// Zeros behind it.
    pub padding: usize,
    /// Its place in a super-frame.
    pub run: RunPlace,
}

/// Place of a stamped frame in a super-frame that the kernel is to cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunPlace {
    /// The frame is in no super-frame.
    Alone,
    /// It may be followed by others.
    First,
    /// It follows the one before it.
    Next,
}

impl WireFrame {
    /// A frame behind a head that replaces its first `skip` bytes. The head has room for a mark or a protected frame's.
    #[inline]
    pub fn behind(head: &[u8], frame: PoolFrame, skip: usize) -> Self {
        let mut bytes = [0; LONGEST_HEAD];
        bytes[..head.len()].copy_from_slice(head);
        Self { head: bytes, head_len: head.len(), frame: Some(frame), skip, padding: 0, run: RunPlace::Alone }
    }

    /// Returns the bytes that go on the wire, in pieces.
    pub fn parts<'a>(&'a self, pool: &'a FramePool) -> [&'a [u8]; 3] {
        const ZEROS: [u8; 64] = [0; 64];
        let body = self.frame.as_ref().map_or(&[][..], |frame| &pool.get(frame)[self.skip..]);
        [&self.head[..self.head_len], body, &ZEROS[..self.padding]]
    }

    /// Length on the wire, frame check not counted.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.head_len + self.frame.as_ref().map_or(0, |frame| frame.bytes() - self.skip) + self.padding
    }
}

pub trait Host {
    /// Readable when there is something to receive.
    fn fd(&self) -> RawFd;

    /// The next super-frame of the host's, if there is one.
    fn receive(&mut self, each: &mut dyn FnMut(&VnetHeader, &[u8])) -> io::Result<bool>;

    /// Hands a super-frame to the host, the vnet header first. False if it has no room: the frame is lost.
    fn deliver(&mut self, parts: &[io::IoSlice<'_>]) -> io::Result<bool>;

    /// Frames of the host's that found no room on their way here, since this was last asked.
    fn overflowed(&mut self) -> u64;

    /// Returns the pending error of the descriptor after it reported one.
    fn error(&mut self) -> Option<io::Error>;

    /// Returns a descriptor that keeps the interface's carrier up as long as anybody has it.
    fn carrier(&self) -> Option<OwnedFd> {
        None
    }
}

pub trait Wire {
    /// Readable when there is something to receive, writable when there is room to send.
    fn fd(&self) -> RawFd;

    /// Up to `most` frames off the wire; how many there were.
    fn receive(&mut self, most: usize, each: &mut dyn FnMut(&[u8])) -> io::Result<usize>;

    /// Puts frames on the wire, from the first on; how many found room.
    fn send(&mut self, frames: &[WireFrame], pool: &FramePool) -> io::Result<usize>;

    /// Receives as [`Wire::receive`] does, but hands over frames that the kernel joined (GRO) uncut, with their offload header.
    fn receive_joined(&mut self, most: usize, each: &mut dyn FnMut(&VnetHeader, &[u8])) -> io::Result<usize> {
        self.receive(most, &mut |frame| each(&VnetHeader::default(), frame))
    }

    /// Reason why super-frames cannot be sent and received here, in one line; `None` if they can.
    fn no_super_frames(&self) -> Option<&'static str> {
        Some("this way to the wire has no super-frames")
    }

    /// Frames that arrived and found no room, since this was last asked.
    fn overflowed(&mut self) -> u64;

    /// Returns the pending error of the descriptor after it reported one: the interface went down, or away.
    fn error(&mut self) -> Option<io::Error>;
}
