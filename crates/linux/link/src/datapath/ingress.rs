//! Frames off the wire on their way to the endpoint: cut where the kernel joined them, and parsed.

use std::io;

use guard::{Endpoint, LinkPacket, SessionState, WIRE};
use linux::offload::{Pieces, VnetHeader};
use machine::Machine;
use standin::{PoolFrame, WireSide};
use units::Time;
use wire::link::{AddressStamp, FrameKind};

use super::events::FrameFaults;
use super::stamped_frames::StampedFrames;
use crate::context::LinkContext;
use crate::frame::FrameRejection;

/// The way of frames off the wire, with what is kept from one to the next.
#[derive(Debug, Default)]
pub(super) struct WireIngress {
    /// Frames that the kernel joined, cut again.
    pieces: Pieces,
    stamped: StampedFrames,
}

impl WireIngress {
    /// Hands what has arrived to the endpoint. True if there was anything.
    pub(super) fn receive(
        &mut self,
        now: Time,
        wire: &mut WireSide,
        endpoint: &mut Endpoint<PoolFrame>,
        context: &mut LinkContext,
        faults: &mut FrameFaults,
    ) -> io::Result<bool> {
        let Self { pieces, stamped } = self;
        wire.read_joined(&mut |vnet: &VnetHeader, bytes: &[u8]| {
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
        })
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
            // A greeting end counts as the peer only once an epoch has begun with it, because anybody can send a greeting.
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
