//! What the event loop must know of a link protocol and of its frames.

use guard::pool::Share;
use guard::{Body, Counters, Endpoint, Note, Packet, llr};
use machine::{Machine, Out};
use units::{Bytes, Time};
use wire::ethernet::{MIN_FRAME, on_wire};
use wire::link::{Kind, Wish};

use super::source::Frame;

/// A frame on the wire.
pub trait OnWire {
    /// Wire time it takes, in bytes.
    fn wire_bytes(&self) -> u32;
    /// Bytes that an error can hit.
    fn frame_bytes(&self) -> u32;
    /// The number of the frame that this is a copy of, if a recirculating sender has to find it first.
    fn copy_of(&self) -> Option<(u8, u16)>;
    fn wish(&self) -> Option<Wish>;
    /// Length of the frame of the layer above that this carries; 0 if it carries none.
    fn body_bytes(&self) -> u32;
}

impl<B: Body> OnWire for Packet<B> {
    #[inline]
    fn wire_bytes(&self) -> u32 {
        on_wire(self.frame_len())
    }

    #[inline]
    fn frame_bytes(&self) -> u32 {
        self.frame_len().max(MIN_FRAME)
    }

    fn copy_of(&self) -> Option<(u8, u16)> {
        match self.header.kind() {
            Kind::Retransmission(class, seq) => Some((class as u8, seq.number())),
            _ => None,
        }
    }

    fn wish(&self) -> Option<Wish> {
        self.header.wish()
    }

    #[inline]
    fn body_bytes(&self) -> u32 {
        self.body.as_ref().map_or(0, Body::len)
    }
}

impl<B: Body> OnWire for llr::Packet<B> {
    fn wire_bytes(&self) -> u32 {
        self.frame_len().map_or(llr::CONTROL_LEN, on_wire)
    }

    fn frame_bytes(&self) -> u32 {
        self.frame_len().unwrap_or(llr::CONTROL_LEN)
    }

    fn copy_of(&self) -> Option<(u8, u16)> {
        None
    }

    fn wish(&self) -> Option<Wish> {
        None
    }

    fn body_bytes(&self) -> u32 {
        self.frame_len().unwrap_or(0)
    }
}

/// A link protocol.
pub trait LinkMachine: Machine<Inner = Frame, Note = Note, Frame: OnWire> {
    fn is_calm(&self) -> bool;
    /// Equal for two calm states that will treat the next frame alike.
    fn fingerprint(&self, now: Time) -> u64;
    fn is_drained(&self) -> bool;
    fn counters(&self) -> Counters;
    fn tx_peak(&self) -> Bytes;
    fn rx_peak(&self) -> Bytes;
    fn tx_buffered(&self) -> Bytes;
    fn rx_held(&self) -> Bytes;
    fn limit_reorder<O: Out<Self>>(&mut self, share: Share, out: &mut O);
}

impl LinkMachine for Endpoint<Frame> {
    fn is_calm(&self) -> bool {
        self.is_calm()
    }

    fn fingerprint(&self, now: Time) -> u64 {
        self.fingerprint(now)
    }

    fn is_drained(&self) -> bool {
        self.is_drained()
    }

    fn counters(&self) -> Counters {
        *self.counters()
    }

    fn tx_peak(&self) -> Bytes {
        self.tx_peak()
    }

    fn rx_peak(&self) -> Bytes {
        self.rx_peak()
    }

    fn tx_buffered(&self) -> Bytes {
        self.tx_buffered()
    }

    fn rx_held(&self) -> Bytes {
        self.rx_held()
    }

    fn limit_reorder<O: Out<Self>>(&mut self, share: Share, out: &mut O) {
        self.limit_reorder(share, out);
    }
}

impl LinkMachine for llr::Endpoint<Frame> {
    fn is_calm(&self) -> bool {
        self.is_calm()
    }

    fn fingerprint(&self, _now: Time) -> u64 {
        0
    }

    fn is_drained(&self) -> bool {
        self.is_drained()
    }

    fn counters(&self) -> Counters {
        *self.counters()
    }

    fn tx_peak(&self) -> Bytes {
        self.tx_peak()
    }

    fn rx_peak(&self) -> Bytes {
        Bytes::ZERO
    }

    fn tx_buffered(&self) -> Bytes {
        self.tx_buffered()
    }

    fn rx_held(&self) -> Bytes {
        Bytes::ZERO
    }

    fn limit_reorder<O: Out<Self>>(&mut self, _share: Share, _out: &mut O) {}
}
