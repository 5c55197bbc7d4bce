//! The receiving half: frames in order, missing ones from the parity.
//!
//! One block is open at a time; a frame of a later one ends it. Its frames have slots, which fill in the order of
//! arrival; `next` is the first that has not been handed up:
//!
//! ```text
//!   Done Done Done Missing Held Held
//!                  ▲ next            ▲ frames of the block still to come
//! ```

use machine::{FrameBody, Out, QueueId};
use units::{Bytes, Time};
use wire::link::Class;

use super::number::FecNumber;
use super::parameters::FecConfig;
use super::{BlockPosition, FecEndpoint, FecTimer, ParityFrame};
use crate::counters::Counters;
use crate::endpoint::EndpointNote;

#[derive(Debug)]
enum BlockSlot<B> {
    /// The frame was handed up, or given up.
    Done,
    Missing {
        since: Time,
    },
    Held(B),
}

#[derive(Debug)]
pub(super) struct FecDecoder<B> {
    config: FecConfig,
    /// Number of the block's first frame.
    block: FecNumber,
    slots: Vec<BlockSlot<B>>,
    next: usize,
    missing: u32,
    /// A bit for each parity frame that arrived.
    parity: u32,
    held: Bytes,
    peak: Bytes,
}

impl<B: FrameBody> FecDecoder<B> {
    pub(crate) fn new(config: FecConfig) -> Self {
        Self {
            config,
            block: FecNumber::default(),
            slots: Vec::with_capacity(usize::from(config.k)),
            next: 0,
            missing: 0,
            parity: 0,
            held: Bytes::ZERO,
            peak: Bytes::ZERO,
        }
    }

    pub(crate) fn held(&self) -> Bytes {
        self.held
    }

    pub(crate) fn peak(&self) -> Bytes {
        self.peak
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.missing == 0
    }

    /// Packets of the block that have come.
    pub(crate) fn progress(&self) -> u32 {
        self.slots.len() as u32 + self.parity.count_ones()
    }

    #[inline]
    pub(crate) fn on_body<O: Out<FecEndpoint<B>>>(
        &mut self,
        now: Time,
        place: BlockPosition,
        body: B,
        counters: &mut Counters,
        out: &mut O,
    ) {
        if place.index >= self.config.k {
            counters.rx_bad += 1;
            return out.release(body);
        }
        counters.rx_ok += 1;
        let index = usize::from(place.index);
        let is_new = self.enter(place.block, counters, out)
            && self.slots.get(index).is_none_or(|slot| matches!(slot, BlockSlot::Missing { .. }));
        if !is_new {
            counters.rx_duplicate_seq += 1;
            return out.release(body);
        }
        if index < self.slots.len() {
            self.recover(now, index, body, counters, out);
        } else {
            counters.rx_expected_seq_good += u64::from(index == self.slots.len());
            self.miss_before(now, index, counters, out);
            let slot = self.hold(body, out);
            self.slots.push(slot);
        }
        self.hand_up(out);
    }

    pub(crate) fn on_parity<O: Out<FecEndpoint<B>>>(
        &mut self,
        now: Time,
        parity: ParityFrame<B>,
        counters: &mut Counters,
        out: &mut O,
    ) {
        let ParityFrame { place: BlockPosition { block, index }, frames, .. } = parity;
        if index >= self.config.h || frames.is_empty() || frames.len() > usize::from(self.config.k) {
            counters.rx_bad += 1;
            return frames.into_iter().for_each(|body| out.release(body));
        }
        counters.rx_replay += 1;
        if !self.enter(block, counters, out) || frames.len() < self.slots.len() {
            return frames.into_iter().for_each(|body| out.release(body));
        }
        self.miss_before(now, frames.len(), counters, out);
        self.parity |= 1 << index;
        let enough = self.missing <= self.parity.count_ones();
        for (at, body) in frames.into_iter().enumerate() {
            if enough && matches!(self.slots[at], BlockSlot::Missing { .. }) {
                self.recover(now, at, body, counters, out);
            } else {
                out.release(body);
            }
        }
        if index + 1 == self.config.h {
            self.give_up(counters, out);
        }
        self.hand_up(out);
    }

    /// Goes on to a block; false if it is over.
    #[inline]
    fn enter<O: Out<FecEndpoint<B>>>(&mut self, block: FecNumber, counters: &mut Counters, out: &mut O) -> bool {
        if block == self.block {
            return true;
        }
        let unseen = block.offset_from(self.block.plus(self.slots.len() as u32));
        if unseen < 0 {
            return false;
        }
        self.give_up(counters, out);
        if unseen > 0 {
            let (class, frames) = (Class::Ordered, unseen as u32);
            counters.rx_missing_seq += u64::from(frames);
            counters.given_up += u64::from(frames);
            out.note(EndpointNote::Missing { class, frames });
            out.note(EndpointNote::GivenUp { class, frames });
        }
        self.block = block;
        self.slots.clear();
        (self.next, self.parity) = (0, 0);
        true
    }

    /// The block has `len` frames at least; those not seen are missing.
    #[inline]
    fn miss_before<O: Out<FecEndpoint<B>>>(&mut self, now: Time, len: usize, counters: &mut Counters, out: &mut O) {
        let frames = (len - self.slots.len()) as u32;
        if frames == 0 {
            return;
        }
        counters.rx_missing_seq += u64::from(frames);
        out.note(EndpointNote::Missing { class: Class::Ordered, frames });
        if self.missing == 0 {
            out.arm(FecTimer::GiveUp, now + self.config.give_up_after);
        }
        self.missing += frames;
        self.slots.resize_with(len, || BlockSlot::Missing { since: now });
    }

    /// Holds a frame back if it has to be; [`FecDecoder::hand_up`] lets go of it as soon as nothing before it is missing.
    #[inline]
    fn hold<O: Out<FecEndpoint<B>>>(&mut self, body: B, out: &mut O) -> BlockSlot<B> {
        if self.missing == 0 || !self.config.ordered {
            out.deliver(QueueId(0), body);
            return BlockSlot::Done;
        }
        self.held += Bytes::new(u64::from(body.len()));
        self.peak = self.peak.max(self.held);
        BlockSlot::Held(body)
    }

    /// A missing frame is here after all.
    fn recover<O: Out<FecEndpoint<B>>>(&mut self, now: Time, at: usize, body: B, counters: &mut Counters, out: &mut O) {
        if let BlockSlot::Missing { since } = self.slots[at] {
            counters.recovered += 1;
            out.note(EndpointNote::Recovered { class: Class::Ordered, after: now.since(since) });
        }
        self.slots[at] = self.hold(body, out);
        self.missing -= 1;
        if self.missing == 0 {
            out.disarm(FecTimer::GiveUp);
        }
    }

    /// Waits no longer for what is missing.
    pub(crate) fn give_up<O: Out<FecEndpoint<B>>>(&mut self, counters: &mut Counters, out: &mut O) {
        if self.missing == 0 {
            return;
        }
        counters.given_up += u64::from(self.missing);
        out.note(EndpointNote::GivenUp { class: Class::Ordered, frames: self.missing });
        out.disarm(FecTimer::GiveUp);
        self.missing = 0;
        for slot in self.slots.iter_mut().filter(|slot| matches!(slot, BlockSlot::Missing { .. })) {
            *slot = BlockSlot::Done;
        }
        self.hand_up(out);
    }

    /// Hands up what no missing frame stands before.
    #[inline]
    fn hand_up<O: Out<FecEndpoint<B>>>(&mut self, out: &mut O) {
        while let Some(slot) = self.slots.get_mut(self.next) {
            match std::mem::replace(slot, BlockSlot::Done) {
                BlockSlot::Done => {}
                BlockSlot::Held(body) => {
                    self.held -= Bytes::new(u64::from(body.len()));
                    out.deliver(QueueId(0), body);
                }
                missing @ BlockSlot::Missing { .. } => {
                    *slot = missing;
                    return;
                }
            }
            self.next += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use machine::Machine;
    use proptest::prelude::*;
    use testkit::{RecordedAction, Recorder};
    use units::Span;

    use super::*;
    use crate::endpoint::WIRE;
    use crate::fec::{FecContent, FecPacket};

    const K: u16 = 4;
    const H: u16 = 2;

    fn end() -> FecEndpoint<Vec<u8>> {
        let (close_after, give_up_after) = (Span::from_us(5), Span::from_us(9));
        FecEndpoint::new(FecConfig { k: K, h: H, close_after, give_up_after, ordered: true })
    }

    fn packet(block: u32, index: u16, frames: Option<u16>) -> FecPacket<Vec<u8>> {
        let place = BlockPosition { block: FecNumber(block), index };
        let content = match frames {
            None => FecContent::Frame { place, body: vec![block as u8, index as u8] },
            Some(frames) => {
                FecContent::Parity(ParityFrame { place, longest: 2, frames: vec![vec![0]; usize::from(frames)] })
            }
        };
        FecPacket { content }
    }

    /// Any packet, mostly of blocks close to each other across the wrap of numbers.
    fn any_packet() -> impl Strategy<Value = FecPacket<Vec<u8>>> {
        let block = prop_oneof![9 => (0..30u32).prop_map(|at| at.wrapping_sub(15)), 1 => any::<u32>()];
        (block, 0..K + 2, proptest::option::of(0..K + 2))
            .prop_map(|(block, index, frames)| packet(block, index, frames))
    }

    proptest! {
        #[test]
        fn any_packet_is_survived_and_every_gap_closes(packets in proptest::collection::vec(any_packet(), 0..100)) {
            let (mut end, mut out) = (end(), Recorder::default());
            let mut now = Time::ZERO;
            for packet in packets {
                now += Span::from_ns(100);
                end.on_frame(now, WIRE, packet, &mut out);
                prop_assert_eq!(end.is_calm(), out.timers.is_empty(), "whoever waits has a timer");
            }
            while let Some(key) = out.due(Time::NEVER) {
                end.on_timer(now, key, &mut out);
            }
            let counters = end.counters();
            prop_assert!(end.is_calm() && end.rx_held() == Bytes::ZERO);
            prop_assert_eq!(counters.rx_missing_seq, counters.recovered + counters.given_up);
        }
    }

    #[test]
    fn the_same_parity_twice_is_worth_one() {
        let (mut end, mut out) = (end(), Recorder::default());
        for packet in [packet(0, 0, None), packet(0, 3, None), packet(0, 0, Some(K)), packet(0, 0, Some(K))] {
            end.on_frame(Time::ZERO, WIRE, packet, &mut out);
        }
        assert_eq!(end.counters().recovered, 0);
        end.on_frame(Time::ZERO, WIRE, packet(0, 1, Some(K)), &mut out);
        assert_eq!(end.counters().recovered, 2);
        let delivered = out.acts().into_iter().filter(|act| matches!(act, RecordedAction::Deliver(_))).count();
        assert_eq!(delivered, usize::from(K));
    }
}
