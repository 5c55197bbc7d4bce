//! What an event loop must know of a link protocol and of its frames.

use guard::pool::Share;
use guard::{Body, Counters, Endpoint, Note, Packet, fec, llr};
use machine::{Machine, Out};
use units::{Bytes, Time};
use wire::ethernet::{MIN_FRAME, on_wire};
use wire::link::{Kind, Wish};

/// A frame on the wire.
pub trait OnWire {
    /// A frame of the layer above.
    type Body: Body;
    /// Wire time it takes, in bytes.
    fn wire_bytes(&self) -> u32;
    /// Bytes that an error can hit.
    fn frame_bytes(&self) -> u32;
    /// The number of the frame that this is a copy of, if a recirculating sender has to find it first.
    fn copy_of(&self) -> Option<(u8, u16)> {
        None
    }

    fn wish(&self) -> Option<Wish> {
        None
    }

    /// The frame of the layer above that this carries, if any.
    fn body(&self) -> Option<&Self::Body>;

    /// All frames of the layer above that are gone if this is.
    fn handles(&self) -> &[Self::Body];

    /// Whether it carries nothing and would not be sent if the wire had anything else to do.
    fn is_filler(&self) -> bool {
        self.body().is_none()
    }

    /// Its length; 0 if there is none.
    #[inline]
    fn body_bytes(&self) -> u32 {
        self.body().map_or(0, Body::len)
    }
}

impl<B: Body> OnWire for Packet<B> {
    type Body = B;

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
    fn body(&self) -> Option<&B> {
        self.body.as_ref()
    }

    fn handles(&self) -> &[B] {
        self.body.as_slice()
    }
}

impl<B: Body> OnWire for llr::Packet<B> {
    type Body = B;

    fn wire_bytes(&self) -> u32 {
        self.frame_len().map_or(llr::CONTROL_LEN, on_wire)
    }

    fn frame_bytes(&self) -> u32 {
        self.frame_len().unwrap_or(llr::CONTROL_LEN)
    }

    fn body(&self) -> Option<&B> {
        self.body()
    }

    fn handles(&self) -> &[B] {
        self.body().map_or(&[], std::slice::from_ref)
    }
}

impl<B: Body> OnWire for fec::Packet<B> {
    type Body = B;

    fn wire_bytes(&self) -> u32 {
        on_wire(self.frame_len())
    }

    fn frame_bytes(&self) -> u32 {
        self.frame_len().max(MIN_FRAME)
    }

    fn body(&self) -> Option<&B> {
        self.body()
    }

    fn handles(&self) -> &[B] {
        self.handles()
    }

    /// Parity is sent whether or not the wire is idle.
    fn is_filler(&self) -> bool {
        false
    }
}

/// A link protocol.
pub trait LinkMachine: Machine<Note = Note, Frame: OnWire<Body = Self::Inner>> {
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

/// Methods that a machine has under the same name.
macro_rules! its_own {
    ($($method:ident -> $type:ty),*) => {
        $(fn $method(&self) -> $type {
            self.$method()
        })*

        fn counters(&self) -> Counters {
            *self.counters()
        }
    };
}

impl<B: Body> LinkMachine for Endpoint<B> {
    its_own!(is_calm -> bool, is_drained -> bool, tx_peak -> Bytes, rx_peak -> Bytes, tx_buffered -> Bytes, rx_held -> Bytes);

    fn fingerprint(&self, now: Time) -> u64 {
        self.fingerprint(now)
    }

    fn limit_reorder<O: Out<Self>>(&mut self, share: Share, out: &mut O) {
        self.limit_reorder(share, out);
    }
}

impl<B: Body> LinkMachine for llr::Endpoint<B> {
    its_own!(is_calm -> bool, is_drained -> bool, tx_peak -> Bytes, tx_buffered -> Bytes);

    fn fingerprint(&self, _now: Time) -> u64 {
        0
    }

    fn rx_peak(&self) -> Bytes {
        Bytes::ZERO
    }

    fn rx_held(&self) -> Bytes {
        Bytes::ZERO
    }

    fn limit_reorder<O: Out<Self>>(&mut self, _share: Share, _out: &mut O) {}
}

impl<B: Body> LinkMachine for fec::Endpoint<B> {
    its_own!(is_calm -> bool, is_drained -> bool, tx_peak -> Bytes, rx_peak -> Bytes, tx_buffered -> Bytes, rx_held -> Bytes);

    fn fingerprint(&self, _now: Time) -> u64 {
        self.fingerprint()
    }

    fn limit_reorder<O: Out<Self>>(&mut self, _share: Share, _out: &mut O) {}
}
