//! Between the endpoint and the wire: frames that arrive are parsed, frames that leave are sent in batches.

use std::io;
use std::os::fd::RawFd;

use guard::{Endpoint, LinkPacket, SessionState, WIRE};
use linux::offload::{Pieces, VnetHeader};
use machine::Machine;
use units::{Span, Time};
use wire::link::{AddressStamp, FrameKind};

use super::BATCH;
use super::events::FrameFaults;
use super::stamped_frames::StampedFrames;
use crate::backend::{Wire, WireFrame};
use crate::context::LinkContext;
use crate::frame::FrameRejection;
use crate::pool::{FramePool, PoolFrame};
use crate::tally::Tally;

/// Tries before a frame that the wire has no room for is dropped: about a tenth of a second.
const MOST_TRIES: u32 = 1_000;
/// Time after which a wire is tried again that had no room and does not say when it has.
const LOOK_AGAIN: Span = Span::from_us(100);

/// The wire's interface, and whether it takes frames now.
pub struct WireSide {
    wire: Box<dyn Wire>,
    /// The wire had no room for all that was to go out.
    blocked: bool,
    /// Attempts in a row for which it had no room at all.
    fruitless: u32,
    /// Frames that the kernel joined, cut again.
    pieces: Pieces,
    stamped: StampedFrames,
}

impl std::fmt::Debug for WireSide {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WireSide").field("blocked", &self.blocked).finish_non_exhaustive()
    }
}

impl WireSide {
    pub fn new(wire: Box<dyn Wire>) -> Self {
        Self { wire, blocked: false, fruitless: 0, pieces: Pieces::default(), stamped: StampedFrames::default() }
    }

    /// Reason why super-frames cannot be sent and received here; `None` if they can.
    pub(crate) fn no_super_frames(&self) -> Option<&'static str> {
        self.wire.no_super_frames()
    }

    pub fn fd(&self) -> RawFd {
        self.wire.fd()
    }

    pub fn error(&mut self) -> Option<io::Error> {
        self.wire.error()
    }

    pub fn overflowed(&mut self) -> u64 {
        self.wire.overflowed()
    }

    pub fn is_blocked(&self) -> bool {
        self.blocked
    }

    /// True if poll says when a blocked wire has room again. A card whose own queue is full says nothing.
    pub(crate) fn says_when(&self) -> bool {
        self.blocked && self.fruitless < 2
    }

    /// Longest time to sleep before a blocked wire is tried again.
    pub(crate) fn longest_wait(&self, most: Span) -> Span {
        if self.blocked && !self.says_when() { most.min(LOOK_AGAIN) } else { most }
    }

    /// The wire has room again.
    pub(crate) fn unblock(&mut self) {
        self.blocked = false;
    }

    /// Up to a batch of what has arrived. True if there was anything.
    pub fn read(&mut self, each: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
        Ok(self.wire.receive(BATCH, each)? > 0)
    }

    /// Hands what has arrived to the endpoint. True if there was anything.
    pub(super) fn receive(
        &mut self,
        now: Time,
        endpoint: &mut Endpoint<PoolFrame>,
        context: &mut LinkContext,
        faults: &mut FrameFaults,
    ) -> io::Result<bool> {
        let Self { wire, pieces, stamped, .. } = self;
        let mut each = |vnet: &VnetHeader, bytes: &[u8]| {
            if context.stamper.offers()
                && AddressStamp::marks(bytes)
                && stamped.on_frame(now, vnet, bytes, endpoint, context)
            {
                return;
            }
            if vnet.is_finished() {
                return on_bytes(now, bytes, endpoint, context, faults);
            }
            match pieces.of(vnet, bytes) {
                Ok(pieces) => pieces.for_each(|piece| on_bytes(now, piece, endpoint, context, faults)),
                Err(_) => context.statistics.tally.ring_overflow += 1,
            }
        };
        Ok(wire.receive_joined(BATCH, &mut each)? > 0)
    }

    /// Sends what is on its way out, as far as the wire has room. True if anything was sent.
    pub fn flush(
        &mut self,
        outgoing: &mut Vec<WireFrame>,
        pool: &mut FramePool,
        tally: &mut Tally,
    ) -> io::Result<bool> {
        if outgoing.is_empty() {
            return Ok(false);
        }
        let sent = self.send(outgoing, pool, tally);
        self.blocked = !outgoing.is_empty();
        sent
    }

    fn send(&mut self, outgoing: &mut Vec<WireFrame>, pool: &mut FramePool, tally: &mut Tally) -> io::Result<bool> {
        let sent = match self.wire.send(outgoing, pool) {
            Ok(sent) => sent,
            // One frame that the kernel will not have must not keep the others.
            Err(error) if is_about_the_frame(&error) => {
                tally.wire_refused += 1;
                outgoing.remove(0).frame.into_iter().for_each(|frame| pool.release(frame));
                return Ok(true);
            }
            Err(error) => {
                // A wire that is down takes nothing; what was to go out is lost, as on any wire.
                tally.wire_refused += outgoing.len() as u64;
                outgoing.drain(..).filter_map(|gone| gone.frame).for_each(|frame| pool.release(frame));
                return Err(error);
            }
        };
        for gone in outgoing.drain(..sent) {
            tally.wire_tx_frames += 1;
            tally.wire_tx_bytes += gone.bytes() as u64;
            if let Some(frame) = gone.frame {
                pool.release(frame);
            }
        }
        self.fruitless = if sent > 0 { 0 } else { self.fruitless + 1 };
        if self.fruitless > MOST_TRIES && !outgoing.is_empty() {
            // A filter or a queue that never has room for this one.
            self.fruitless = 0;
            tally.wire_refused += 1;
            outgoing.remove(0).frame.into_iter().for_each(|frame| pool.release(frame));
        }
        Ok(sent > 0)
    }
}

/// Hands one frame to the endpoint.
fn on_bytes(
    now: Time,
    bytes: &[u8],
    endpoint: &mut Endpoint<PoolFrame>,
    context: &mut LinkContext,
    faults: &mut FrameFaults,
) {
    context.statistics.tally.wire_rx_frames += 1;
    context.statistics.tally.wire_rx_bytes += bytes.len() as u64;
    match context.framing.parse(bytes) {
        Ok(arrived) => {
            let body = match arrived.header.has_body() {
                false => None,
                true => match context.memory.store(arrived.body, &mut context.statistics.tally) {
                    Some(frame) => Some(frame),
                    None => return,
                },
            };
            let session = arrived.header.kind() == FrameKind::Session;
            endpoint.on_frame(now, WIRE, LinkPacket { header: arrived.header, body }, context);
            // Who greets is the peer once an epoch has begun with it, and not before: anybody can greet.
            if session && matches!(endpoint.state(), SessionState::Dormant | SessionState::Asking) {
                context.framing.forget_peer();
            }
        }
        Err(FrameRejection::Probe(probe, path)) if context.on_probe(&probe, path, endpoint.identity()) => {}
        Err(reason) => {
            if matches!(reason, FrameRejection::Stranger(_)) {
                context.stamper.on_third_host(now);
            }
            faults.note(reason, endpoint.state(), context);
        }
    }
}

/// The kernel refuses this frame, not the wire.
fn is_about_the_frame(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMSGSIZE | libc::EINVAL | libc::ENOMEM))
}
