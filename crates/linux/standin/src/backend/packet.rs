//! Packet sockets as the link uses them: the wire, and the host behind a veth pair.

#![expect(unsafe_code, reason = "talks to the kernel")]

use std::io;
use std::os::fd::RawFd;

use linux::offload::{Pieces, VnetHeader};
use linux::packet::{FINISHED, PacketSocket, TransmitRing, is_full};

use super::{Host, OutgoingRun, Wire, WireFrame, outgoing_runs};
use crate::pool::FramePool;

/// Least room for which super-frames are used: with less, some are lost for want of room, and they cost more than they
/// save.
const LEAST_ROOM: usize = 2 << 20;

/// The wire side on a packet socket.
///
/// A peer on a virtual wire (veth, virtio) may leave checksums and segmentation to the receiver. If the socket was
/// opened with vnet headers, this side does both: it hands over the frames that a cable would have carried.
#[derive(Debug)]
pub(crate) struct PacketWire {
    socket: PacketSocket,
    super_frames: Option<TransmitRing>,
    batch: SendBatch,
    pieces: Pieces,
    /// Frames that could not be finished.
    unfinished: u64,
}

impl PacketWire {
    /// Super-frames leave through a ring of their own, where there is one.
    pub(crate) fn new(socket: PacketSocket, super_frames: Option<TransmitRing>) -> Self {
        let batch = SendBatch { vnet: socket.has_vnet(), ..SendBatch::default() };
        Self { socket, super_frames, batch, pieces: Pieces::default(), unfinished: 0 }
    }

    /// Sends runs that are all of one kind; how many found room.
    fn send_alike(&mut self, runs: &[OutgoingRun<'_>], pool: &FramePool) -> io::Result<usize> {
        match &mut self.super_frames {
            Some(ring) if runs[0].is_super_frame() => ring.send(runs.iter().map(|run| run.parts(pool))),
            _ => match self.batch.send(self.socket.fd(), runs, pool) {
                Err(error) if is_full(&error) => Ok(0),
                sent => sent,
            },
        }
    }
}

impl Wire for PacketWire {
    fn fd(&self) -> RawFd {
        self.socket.fd()
    }

    fn receive(&mut self, most: usize, each: &mut dyn FnMut(&[u8])) -> io::Result<usize> {
        let Self { socket, pieces, unfinished, .. } = self;
        Ok(socket.receive(most, |frame| {
            if frame.vnet.is_finished() {
                return each(frame.bytes);
            }
            match pieces.of(&frame.vnet, frame.bytes) {
                Ok(pieces) => pieces.for_each(&mut *each),
                Err(_) => *unfinished += 1,
            }
        }))
    }

    fn receive_joined(&mut self, most: usize, each: &mut dyn FnMut(&VnetHeader, &[u8])) -> io::Result<usize> {
        Ok(self.socket.receive(most, |frame| each(&frame.vnet, frame.bytes)))
    }

    fn no_super_frames(&self) -> Option<&'static str> {
        let room = self.socket.has_vnet() && self.socket.room_for_copies() >= LEAST_ROOM;
        (!room).then_some("the socket's receive buffer is too small for super-frames; raise net.core.rmem_max to 1 MB")
    }

    fn send(&mut self, frames: &[WireFrame], pool: &FramePool) -> io::Result<usize> {
        let runs: Vec<OutgoingRun<'_>> = outgoing_runs(frames, pool).collect();
        let mut sent = 0;
        for alike in runs.chunk_by(|run, next| run.is_super_frame() == next.is_super_frame()) {
            let taken = match self.send_alike(alike, pool) {
                // Reports the frames that were sent first; the error will come again.
                Err(_) if sent > 0 => return Ok(sent),
                taken => taken?,
            };
            sent += alike[..taken].iter().map(|run| run.frames.len()).sum::<usize>();
            if taken < alike.len() {
                break;
            }
        }
        Ok(sent)
    }

    fn overflowed(&mut self) -> u64 {
        self.socket.overflowed() + std::mem::take(&mut self.unfinished)
    }

    fn error(&mut self) -> Option<io::Error> {
        self.socket.take_error().err()
    }
}

/// The host side on the far end of a veth pair.
#[derive(Debug)]
pub(crate) struct PacketHost(PacketSocket);

impl PacketHost {
    pub(crate) fn new(socket: PacketSocket) -> Self {
        Self(socket)
    }
}

impl Host for PacketHost {
    fn fd(&self) -> RawFd {
        self.0.fd()
    }

    fn receive(&mut self, each: &mut dyn FnMut(&VnetHeader, &[u8])) -> io::Result<bool> {
        Ok(self.0.receive(1, |frame| each(&frame.vnet, frame.bytes)) == 1)
    }

    fn deliver(&mut self, parts: &[io::IoSlice<'_>]) -> io::Result<bool> {
        match self.0.send_one(parts) {
            // A frame lost on the host's side, not a reason to stop.
            Err(error)
                if matches!(
                    error.raw_os_error(),
                    Some(libc::EMSGSIZE | libc::EINVAL | libc::ENOMEM | libc::ENETDOWN)
                ) =>
            {
                Ok(false)
            }
            sent => sent,
        }
    }

    fn overflowed(&mut self) -> u64 {
        self.0.overflowed()
    }

    fn error(&mut self) -> Option<io::Error> {
        self.0.take_error().err()
    }
}

/// Room for the descriptions of a batch, kept from call to call.
#[derive(Default)]
struct SendBatch {
    vnet: bool,
    parts: Vec<libc::iovec>,
    messages: Vec<libc::mmsghdr>,
    /// Parts of each message.
    lens: Vec<usize>,
}

impl std::fmt::Debug for SendBatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SendBatch")
    }
}

impl SendBatch {
    fn send(&mut self, fd: RawFd, runs: &[OutgoingRun<'_>], pool: &FramePool) -> io::Result<usize> {
        self.parts.clear();
        self.messages.clear();
        self.lens.clear();
        for run in runs {
            let before = self.parts.len();
            self.describe(run, pool);
            self.lens.push(self.parts.len() - before);
        }
        let mut parts = self.parts.as_mut_slice();
        for count in &self.lens {
            let (own, rest) = parts.split_at_mut(*count);
            // SAFETY: all zeros is a valid mmsghdr: no name, no control data.
            let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
            message.msg_hdr.msg_iov = own.as_mut_ptr();
            message.msg_hdr.msg_iovlen = *count as _;
            self.messages.push(message);
            parts = rest;
        }
        // SAFETY: each message points to its own parts in `parts`, each of which points to constant bytes or to bytes
        // borrowed from `runs` and `pool`; none of them moves or is written to during the call.
        let sent = unsafe {
            let count = self.messages.len() as libc::c_uint;
            libc::sendmmsg(fd, self.messages.as_mut_ptr(), count, libc::MSG_DONTWAIT)
        };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(sent as usize)
    }

    /// The pieces of one message.
    fn describe(&mut self, run: &OutgoingRun<'_>, pool: &FramePool) {
        let mut push = |part: &[u8]| {
            self.parts.push(libc::iovec { iov_base: part.as_ptr().cast_mut().cast(), iov_len: part.len() });
        };
        if run.joined.is_some() {
            return run.parts(pool).for_each(push);
        }
        if self.vnet {
            push(&FINISHED);
        }
        let parts = run.frames[0].parts(pool);
        // Nearly no frame needs padding, and an empty part costs as much as another.
        let used = if run.frames[0].padding > 0 { 3 } else { 2 };
        parts[..used].iter().for_each(|part| push(part));
    }
}
