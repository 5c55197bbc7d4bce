//! Packets that an endpoint sends and receives.

use machine::FrameBody;
use wire::link::{Epoch, Feedback, FrameKind, LinkHeader};

/// A frame on the link: a body as it came, or our header with a body or without one.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkPacket<B> {
    /// Our header; [`LinkHeader::BARE`] if there is none.
    pub header: LinkHeader,
    /// The frame of the layer above, if it carries one.
    pub body: Option<B>,
}

impl<B: FrameBody> LinkPacket<B> {
    /// A frame that passes unprotected and unchanged.
    pub fn bare(body: B) -> Self {
        Self { header: LinkHeader::BARE, body: Some(body) }
    }

    /// A frame with our header.
    #[inline(always)]
    pub fn new(epoch: Epoch, kind: FrameKind, feedback: Option<Feedback>, body: Option<B>) -> Self {
        Self { header: LinkHeader::new(epoch, kind, feedback), body }
    }

    /// Length of the Ethernet frame that carries this, frame check included.
    #[inline]
    pub fn frame_len(&self) -> u32 {
        let body = self.body.as_ref().map_or(wire::ethernet::HEADER_AND_CHECK, FrameBody::len);
        self.header.wire_len() as u32 + body
    }
}
