//! Link-local forward error correction in the manner of Wharf, to compare LinkGuardian with.
//!
//! Giesen et al., "In-network computing to the rescue of faulty links" (NetCompute'18). Every `k` frames make a block
//! and are followed by `h` parity frames; of these `k + h`, any `k` give back the rest. Nothing is ever asked for or
//! acknowledged: recovery takes no round trip, and the parity takes its share of the link whether anything is lost or
//! not. Wharf meters traffic to what is left, k/(k + h) of the rate; here the wire does, because it pulls.
//!
//! ```text
//!   encoder   Open ──k frames, or close_after──▶ Parity ──h sent──▶ Open
//!   decoder   Whole ──number skipped──▶ Missing ──as many parity frames as missing──▶ Whole, recovered
//!                                          └── last parity frame, next block, give_up_after ──▶ Whole, given up
//! ```
//!
//! A block that does not fill up is closed after a while, so that a lost tail can be recovered too. It gets all its
//! parity, as in Wharf, which fills such a block with padding. The decoder delivers frames in order and holds frames behind a
//! missing one back. With [`FecConfig::ordered`] off it delivers every frame on arrival and recovered frames later, like
//! the software decoder that Wharf's authors published.
//!
//! The code itself is left out. Any maximum distance separable one, such as Reed–Solomon over the bytes at the same place
//! of each frame, recovers exactly when no more frames are missing than parity frames arrived. That count is kept here; a
//! parity frame carries the frames of its block as handles instead of symbols, and is as long as the longest of them.
//! Frames of a link do not overtake each other: once the last parity frame is here, nothing follows.
//!
//! In [`Counters`], parity frames count as `tx_replay` and `rx_replay`.
//!
//! Invariants: frames come out once and, if ordered, in order; `rx_missing_seq = recovered + given_up` once nothing is
//! missing.

mod decoder;
mod encoder;
mod number;
mod parameters;

use machine::{FrameBody, Machine, Out, Port, Pull};
use units::{Bytes, Time};

use crate::counters::Counters;
use crate::endpoint::{EndpointNote, WIRE};

use decoder::FecDecoder;
use encoder::FecEncoder;
use number::FecNumber;
pub use parameters::{FecConfig, best_parameters, effective_loss};

/// Header of a parity frame: block, place in it, type. Wharf puts as much on every frame;
/// LinkGuardian's Table 3 counts none (9.13 Gb/s leaves no room for it), and so do we.
pub const PARITY_HEADER: u32 = 4;

/// A frame or parity; which, only this module knows.
#[derive(Clone, Debug)]
pub struct FecPacket<B> {
    content: FecContent<B>,
}

#[derive(Clone, Debug)]
enum FecContent<B> {
    Frame { place: BlockPosition, body: B },
    Parity(ParityFrame<B>),
}

/// A block is known by the number of its first frame.
#[derive(Clone, Copy, Debug)]
struct BlockPosition {
    block: FecNumber,
    index: u16,
}

#[derive(Clone, Debug)]
struct ParityFrame<B> {
    place: BlockPosition,
    /// Length of the longest frame.
    longest: u32,
    frames: Vec<B>,
}

impl<B: FrameBody> FecPacket<B> {
    /// Length of the Ethernet frame, frame check included.
    pub fn frame_len(&self) -> u32 {
        match &self.content {
            FecContent::Frame { body, .. } => body.len(),
            FecContent::Parity(parity) => parity.longest + PARITY_HEADER,
        }
    }

    /// The frame, if it is not parity.
    pub fn body(&self) -> Option<&B> {
        match &self.content {
            FecContent::Frame { body, .. } => Some(body),
            FecContent::Parity(_) => None,
        }
    }

    /// Every handle that is lost if this is: the frame, or those that the parity could have given back.
    pub fn handles(&self) -> &[B] {
        match &self.content {
            FecContent::Frame { body, .. } => std::slice::from_ref(body),
            FecContent::Parity(parity) => &parity.frames,
        }
    }
}

/// Timers of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FecTimer {
    /// The block being sent has been open for long enough.
    Close,
    /// A missing frame is waited for no longer.
    GiveUp,
}

impl From<FecTimer> for usize {
    fn from(key: FecTimer) -> usize {
        key as usize
    }
}

/// One end of the link: an encoder for what it sends, a decoder for what it receives.
#[derive(Debug)]
pub struct FecEndpoint<B> {
    encoder: FecEncoder<B>,
    decoder: FecDecoder<B>,
    counters: Counters,
}

impl<B: FrameBody> FecEndpoint<B> {
    /// # Panics
    /// If the code has no frames, no parity, or more parity than can be distinguished.
    pub fn new(config: FecConfig) -> Self {
        config.check();
        Self { encoder: FecEncoder::new(config), decoder: FecDecoder::new(config), counters: Counters::default() }
    }

    /// Counters since the endpoint was made.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// True if nothing is missing.
    pub fn is_calm(&self) -> bool {
        self.decoder.is_whole()
    }

    /// Equal for two calm ends that are equally far in their blocks.
    pub fn fingerprint(&self) -> u64 {
        u64::from(self.encoder.progress()) << 32 | u64::from(self.decoder.progress())
    }

    /// True if the sender has no open block and the receiver holds nothing back.
    pub fn is_drained(&self) -> bool {
        self.encoder.is_empty() && self.decoder.is_whole()
    }

    /// The highest that the block being sent has been.
    pub fn tx_peak(&self) -> Bytes {
        self.encoder.peak()
    }

    /// The most that was held back. What a decoder keeps of frames handed up already, up to a block, is not counted.
    pub fn rx_peak(&self) -> Bytes {
        self.decoder.peak()
    }

    /// Frames of the block being sent, kept for their parity.
    pub fn tx_buffered(&self) -> Bytes {
        self.encoder.bytes()
    }

    /// Frames that wait for a missing one before them.
    pub fn rx_held(&self) -> Bytes {
        self.decoder.held()
    }
}

impl<B: FrameBody> Machine for FecEndpoint<B> {
    type Frame = FecPacket<B>;
    type Inner = B;
    type Timer = FecTimer;
    type Command = ();
    type Done = ();
    type Note = EndpointNote;

    fn on_frame<O: Out<Self>>(&mut self, now: Time, _port: Port, packet: FecPacket<B>, out: &mut O) {
        match packet.content {
            FecContent::Frame { place, body } => self.decoder.on_body(now, place, body, &mut self.counters, out),
            FecContent::Parity(parity) => self.decoder.on_parity(now, parity, &mut self.counters, out),
        }
    }

    fn on_timer<O: Out<Self>>(&mut self, _now: Time, key: FecTimer, out: &mut O) {
        match key {
            FecTimer::Close => {
                self.encoder.close();
                out.wake(WIRE);
            }
            FecTimer::GiveUp => self.decoder.give_up(&mut self.counters, out),
        }
    }

    fn on_command<O: Out<Self>>(&mut self, _now: Time, _command: (), _out: &mut O) {}

    fn pull<O: Out<Self>>(&mut self, now: Time, port: Port, out: &mut O) -> Pull {
        match self.encoder.next(now, &mut self.counters, out) {
            Some(packet) => {
                out.transmit(port, packet);
                Pull::Sent
            }
            None => Pull::Idle,
        }
    }
}
