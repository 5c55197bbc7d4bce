//! The sending half: frames as they come, then the parity of their block.

use machine::{FrameBody, Out, QueueId};
use units::{Bytes, Time};

use super::number::FecNumber;
use super::parameters::FecConfig;
use super::{BlockPosition, FecContent, FecEndpoint, FecPacket, FecTimer, ParityFrame};
use crate::counters::Counters;

#[derive(Debug)]
pub(super) struct FecEncoder<B> {
    config: FecConfig,
    /// Number of the block's first frame.
    block: FecNumber,
    /// The block so far.
    frames: Vec<B>,
    longest: u32,
    bytes: Bytes,
    peak: Bytes,
    /// Parity frames sent of a closed block; `None` while it is open.
    parity_sent: Option<u16>,
}

impl<B: FrameBody> FecEncoder<B> {
    pub(crate) fn new(config: FecConfig) -> Self {
        Self {
            config,
            block: FecNumber::default(),
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
    pub(crate) fn next<O: Out<FecEndpoint<B>>>(
        &mut self,
        now: Time,
        counters: &mut Counters,
        out: &mut O,
    ) -> Option<FecPacket<B>> {
        let content = match self.parity_sent {
            Some(index) => FecContent::Parity(self.parity(index, counters, out)),
            None => self.frame(now, counters, out)?,
        };
        Some(FecPacket { content })
    }

    #[inline]
    fn frame<O: Out<FecEndpoint<B>>>(
        &mut self,
        now: Time,
        counters: &mut Counters,
        out: &mut O,
    ) -> Option<FecContent<B>> {
        let body = out.take(QueueId(0))?;
        let place = BlockPosition { block: self.block, index: self.frames.len() as u16 };
        if self.frames.is_empty() {
            self.frames.reserve(usize::from(self.config.k));
            out.arm(FecTimer::Close, now + self.config.close_after);
        }
        counters.tx_ok += 1;
        self.longest = self.longest.max(body.len());
        self.bytes += Bytes::new(u64::from(body.len()));
        self.peak = self.peak.max(self.bytes);
        self.frames.push(out.keep(&body));
        if self.frames.len() == usize::from(self.config.k) {
            out.disarm(FecTimer::Close);
            self.close();
        }
        Some(FecContent::Frame { place, body })
    }

    /// Makes parity frame `index` of the block. The last one ends the block, so that the next may begin.
    fn parity<O: Out<FecEndpoint<B>>>(&mut self, index: u16, counters: &mut Counters, out: &mut O) -> ParityFrame<B> {
        counters.tx_replay += 1;
        let (place, longest) = (BlockPosition { block: self.block, index }, self.longest);
        if index + 1 < self.config.h {
            self.parity_sent = Some(index + 1);
            let frames = self.frames.iter().map(|body| out.keep(body)).collect();
            return ParityFrame { place, longest, frames };
        }
        let frames = std::mem::take(&mut self.frames);
        self.block = self.block.plus(frames.len() as u32);
        (self.longest, self.bytes, self.parity_sent) = (0, Bytes::ZERO, None);
        ParityFrame { place, longest, frames }
    }
}
