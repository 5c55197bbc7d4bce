//! The sending half: frames as they come, then the parity of their block.

use machine::{Lane, Out};
use units::{Bytes, Time};

use super::number::Number;
use super::parameters::Config;
use super::{Content, Endpoint, Packet, Parity, Place, TimerKey};
use crate::counters::Counters;
use crate::packet::Body;

#[derive(Debug)]
pub(super) struct Encoder<B> {
    config: Config,
    /// Number of the block's first frame.
    block: Number,
    /// The block so far.
    frames: Vec<B>,
    longest: u32,
    bytes: Bytes,
    peak: Bytes,
    /// Parity frames sent of a closed block; `None` while it is open.
    parity_sent: Option<u16>,
}

impl<B: Body> Encoder<B> {
    pub(crate) fn new(config: Config) -> Self {
        Self {
            config,
            block: Number::default(),
            frames: Vec::new(),
            longest: 0,
            bytes: Bytes::ZERO,
            peak: Bytes::ZERO,
            parity_sent: None,
        }
    }

    pub(crate) fn bytes(&self) -> Bytes {
        self.bytes
    }

    pub(crate) fn peak(&self) -> Bytes {
        self.peak
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Packets sent of the block.
    pub(crate) fn progress(&self) -> u32 {
        self.frames.len() as u32 + u32::from(self.parity_sent.unwrap_or(0))
    }

    pub(crate) fn close(&mut self) {
        if !self.frames.is_empty() && self.parity_sent.is_none() {
            self.parity_sent = Some(0);
        }
    }

    #[inline]
    pub(crate) fn next<O: Out<Endpoint<B>>>(
        &mut self,
        now: Time,
        counters: &mut Counters,
        out: &mut O,
    ) -> Option<Packet<B>> {
        let content = match self.parity_sent {
            Some(index) => Content::Parity(self.parity(index, counters, out)),
            None => self.frame(now, counters, out)?,
        };
        Some(Packet { content })
    }

    #[inline]
    fn frame<O: Out<Endpoint<B>>>(&mut self, now: Time, counters: &mut Counters, out: &mut O) -> Option<Content<B>> {
        let body = out.take(Lane(0))?;
        let place = Place { block: self.block, index: self.frames.len() as u16 };
        if self.frames.is_empty() {
            self.frames.reserve(usize::from(self.config.k));
            out.arm(TimerKey::Close, now + self.config.close_after);
        }
        counters.tx_ok += 1;
        self.longest = self.longest.max(body.len());
        self.bytes += Bytes::new(u64::from(body.len()));
        self.peak = self.peak.max(self.bytes);
        self.frames.push(out.keep(&body));
        if self.frames.len() == usize::from(self.config.k) {
            out.disarm(TimerKey::Close);
            self.close();
        }
        Some(Content::Frame { place, body })
    }

    /// The last one takes the block with it, and the next may begin.
    fn parity<O: Out<Endpoint<B>>>(&mut self, index: u16, counters: &mut Counters, out: &mut O) -> Parity<B> {
        counters.tx_replay += 1;
        let (place, longest) = (Place { block: self.block, index }, self.longest);
        if index + 1 < self.config.h {
            self.parity_sent = Some(index + 1);
            let frames = self.frames.iter().map(|body| out.keep(body)).collect();
            return Parity { place, longest, frames };
        }
        let frames = std::mem::take(&mut self.frames);
        self.block = self.block.plus(frames.len() as u32);
        (self.longest, self.bytes, self.parity_sent) = (0, Bytes::ZERO, None);
        Parity { place, longest, frames }
    }
}
