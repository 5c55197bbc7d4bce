//! Sources of frames: the queues above a port.

use std::collections::VecDeque;

use faults::Random;
use machine::{FrameBody, QueueId};
use units::{Bytes, Rate, Span, Time};
use wire::ethernet::on_wire;

use super::config::{FrameSizes, OfferedLoad};

/// A frame of the layer above: a handle is all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SimFrame {
    /// Its place in the order offered, within its lane.
    pub id: u64,
    pub len: u32,
    /// Time at which it left the queue.
    pub taken: Time,
}

impl FrameBody for SimFrame {
    fn len(&self) -> u32 {
        self.len
    }
}

/// A frame that finds this many waiting is dropped, as at any switch.
const QUEUE_LIMIT: usize = 16_384;

#[derive(Debug)]
pub(super) struct FrameSource {
    sizes: FrameSizes,
    load: Option<OfferedLoad>,
    rate: Rate,
    left: u64,
    lanes: std::ops::Range<u8>,
    next_id: [u64; 2],
    waiting: [VecDeque<u32>; 2],
    random: Random,
    pub dropped: u64,
}

impl FrameSource {
    /// Offers `frames` frames, spread over `lanes`; none if there is no `load`.
    pub(super) fn new(
        sizes: FrameSizes,
        load: Option<OfferedLoad>,
        rate: Rate,
        frames: u64,
        lanes: std::ops::Range<u8>,
        random: Random,
    ) -> Self {
        Self {
            sizes,
            load,
            rate,
            left: if load.is_some() { frames } else { 0 },
            lanes,
            next_id: [0; 2],
            waiting: Default::default(),
            random,
            dropped: 0,
        }
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.left == 0 && self.waiting.iter().all(VecDeque::is_empty)
    }

    /// Frames taken so far.
    pub(super) fn offered(&self) -> u64 {
        self.next_id.iter().sum()
    }

    /// Offers nothing more.
    pub(super) fn stop(&mut self) {
        self.left = 0;
        self.waiting.iter_mut().for_each(VecDeque::clear);
    }

    pub(super) fn left(&self) -> u64 {
        self.left
    }

    #[inline]
    pub(super) fn waiting(&self, lane: QueueId) -> bool {
        match self.load {
            Some(OfferedLoad::Saturated) => self.left > 0 && self.lanes.contains(&lane.0),
            _ => !self.waiting[usize::from(lane.0)].is_empty(),
        }
    }

    #[inline]
    pub(super) fn take(&mut self, now: Time, lane: QueueId) -> Option<SimFrame> {
        let at = usize::from(lane.0);
        let len = if self.load == Some(OfferedLoad::Saturated) {
            if !self.waiting(lane) {
                return None;
            }
            self.left -= 1;
            self.draw_len()
        } else {
            self.waiting[at].pop_front()?
        };
        let id = self.next_id[at];
        self.next_id[at] += 1;
        Some(SimFrame { id, len, taken: now })
    }

    /// Leaves out frames that are not simulated. Numbers go on as if they had not been.
    pub(super) fn skip(&mut self, frames: u64) {
        self.left -= frames;
    }

    /// Time until the next frame arrives, if there is one and the queue is not always full.
    pub(super) fn next_arrival(&mut self) -> Option<Span> {
        let load = self.load.filter(|load| *load != OfferedLoad::Saturated && self.left > 0)?;
        let mean = match &self.sizes {
            FrameSizes::Fixed(len) => f64::from(on_wire(*len)),
            FrameSizes::Mix(parts) => {
                let total: f64 = parts.iter().map(|(_, weight)| weight).sum();
                parts.iter().map(|(len, weight)| f64::from(on_wire(*len)) * weight / total).sum()
            }
        };
        let span = self.rate.span_of(Bytes::new(1_000)).scale(mean / 1_000.0 / load.share());
        Some(match load {
            OfferedLoad::Saturated | OfferedLoad::Periodic(_) => span,
            OfferedLoad::Poisson(_) => span.scale(self.random.exponential()),
        })
    }

    /// A frame arrives.
    pub(super) fn arrive(&mut self) {
        let Some(left) = self.left.checked_sub(1) else { return };
        self.left = left;
        let len = self.draw_len();
        let choice = if self.lanes.len() > 1 { self.random.below(self.lanes.len() as u64) } else { 0 };
        let lane = usize::from(self.lanes.start) + choice as usize;
        if self.waiting[lane].len() < QUEUE_LIMIT {
            self.waiting[lane].push_back(len);
        } else {
            self.dropped += 1;
        }
    }

    fn draw_len(&mut self) -> u32 {
        match &self.sizes {
            FrameSizes::Fixed(len) => *len,
            FrameSizes::Mix(parts) => {
                let total: f64 = parts.iter().map(|(_, weight)| weight).sum();
                let mut at = self.random.unit() * total;
                for (len, weight) in parts {
                    at -= weight;
                    if at < 0.0 {
                        return *len;
                    }
                }
                parts.last().map_or(wire::ethernet::MIN_FRAME, |(len, _)| *len)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traffic_fills_the_share_asked_for() {
        let rate = Rate::gbps(10);
        for load in [OfferedLoad::Poisson(0.4), OfferedLoad::Periodic(0.4)] {
            let mix = FrameSizes::Mix(vec![(64, 1.0), (1_518, 1.0)]);
            let mut source = FrameSource::new(mix, Some(load), rate, 100_000, 0..1, Random::new(1, 0));
            let (mut time, mut wire_time) = (Span::ZERO, Span::ZERO);
            while let Some(gap) = source.next_arrival() {
                time += gap;
                source.arrive();
                let frame = source.take(Time::ZERO, QueueId(0)).unwrap();
                wire_time += rate.span_of(Bytes::new(u64::from(on_wire(frame.len))));
            }
            let share = wire_time.as_secs() / time.as_secs();
            assert!((share - 0.4).abs() < 0.01, "{load:?}: {share}");
            assert!(source.is_exhausted());
        }
    }

    #[test]
    fn a_generator_sends_by_its_timer() {
        let load = Some(OfferedLoad::Periodic(0.5));
        let rate = Rate::gbps(10);
        let mut source = FrameSource::new(FrameSizes::Fixed(1_518), load, rate, 3, 0..1, Random::new(1, 0));
        let twice = rate.span_of(Bytes::new(2 * 1_538));
        for _ in 0..3 {
            assert_eq!(source.next_arrival(), Some(twice));
            source.arrive();
        }
        assert_eq!(source.next_arrival(), None);
    }
}
