//! What an endpoint puts on the wire and takes from it.

use wire::link::Header;

/// A frame of the layer above, as a handle: a slab index, a buffer slot, bytes.
pub trait Body {
    /// Length in bytes, frame check included.
    fn len(&self) -> u32;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Body for Vec<u8> {
    fn len(&self) -> u32 {
        Vec::len(self) as u32
    }

    fn is_empty(&self) -> bool {
        Vec::is_empty(self)
    }
}

/// A frame on the link: a body as it came, or our header with a body or without one.
#[derive(Clone, Debug, PartialEq)]
pub struct Packet<B> {
    pub header: Option<Header>,
    pub body: Option<B>,
}

impl<B: Body> Packet<B> {
    /// A frame that passes unprotected and unchanged.
    pub fn plain(body: B) -> Self {
        Self { header: None, body: Some(body) }
    }

    pub fn control(header: Header) -> Self {
        Self { header: Some(header), body: None }
    }

    pub fn with_body(header: Header, body: B) -> Self {
        Self { header: Some(header), body: Some(body) }
    }

    /// Length of the Ethernet frame that carries this, frame check included.
    pub fn frame_len(&self) -> u32 {
        let header = self.header.as_ref().map_or(0, |header| header.wire_len() as u32);
        let body = self.body.as_ref().map_or(wire::ethernet::HEADER_AND_CHECK, Body::len);
        header + body
    }
}
