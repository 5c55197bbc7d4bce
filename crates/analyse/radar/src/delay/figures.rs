//! Percentiles of delays that are intervals.
//!
//! If every delay lies between its low and its high end, then so does every percentile: between that percentile of the low
//! ends and that of the high ends. Counts are kept in buckets that grow with the delay, and a percentile is the lower edge of
//! its bucket for low ends, the upper edge for high ends: rounding widens an interval and never moves it off the truth.

use std::collections::BTreeMap;
use units::Timestamp;

use clock::offset::OffsetBand;
use units::LogBuckets;

use super::matching::{FlowNumber, FlowTable};
use super::sides::HostSides;
use super::{DelayDirection, PacketDelay};
use crate::packet::Flow;

/// Bits of a delay that buckets tell apart: 0.1 % for all packets, 3 % for a flow or a slot of time.
const FINE: u32 = 10;
const COARSE: u32 = 5;
/// Flows that get percentiles.
const MOST_FLOWS: usize = 1_024;
/// Slots of time for charts.
const SLOTS: i64 = 240;

/// Nanoseconds, each between two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayPercentiles {
    pub p50: (u64, u64),
    pub p99: (u64, u64),
    pub max: (u64, u64),
}

/// The packets of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectionDelays {
    pub direction: DelayDirection,
    pub packets: u64,
    /// Percentiles of the delay; `None` without packets.
    pub delay: Option<DelayPercentiles>,
    /// The medians of both directions differ by more than they may be wrong; of one direction alone, its median is above zero.
    pub sure: bool,
}

/// The packets of one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowDelays {
    pub flow: Flow,
    pub direction: DelayDirection,
    pub packets: u64,
    pub delay: DelayPercentiles,
}

/// A slot of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeSlot {
    /// Middle of the slot, by UP's clock.
    pub at: Timestamp,
    /// Time by which DOWN's clock is ahead then.
    pub offset: Option<(i64, i64)>,
    /// Delays from UP to DOWN, and back.
    pub delays: [Option<DelayPercentiles>; 2],
}

/// Counts of nanoseconds in buckets of a relative width.
#[derive(Clone, Debug)]
struct DelayBuckets {
    buckets: LogBuckets,
    counts: BTreeMap<usize, u64>,
    max: u64,
}

impl DelayBuckets {
    fn new(bits: u32) -> Self {
        Self { buckets: LogBuckets::new(bits), counts: BTreeMap::new(), max: 0 }
    }

    fn count(&mut self, ns: u64) {
        self.max = self.max.max(ns);
        *self.counts.entry(self.buckets.bucket(ns)).or_default() += 1;
    }

    /// The bucket of a percentile.
    fn percentile(&self, percent: u64) -> (u64, u64) {
        let all: u64 = self.counts.values().sum();
        let rank = (all * percent).div_ceil(100).max(1);
        let mut passed = 0;
        for (bucket, count) in &self.counts {
            passed += count;
            if passed >= rank {
                return self.buckets.bounds(*bucket);
            }
        }
        (self.max, self.max)
    }
}

/// Delays that are intervals.
#[derive(Clone, Debug)]
struct DelayCounts {
    packets: u64,
    lows: DelayBuckets,
    highs: DelayBuckets,
}

impl DelayCounts {
    fn new(bits: u32) -> Self {
        Self { packets: 0, lows: DelayBuckets::new(bits), highs: DelayBuckets::new(bits) }
    }

    fn count(&mut self, delay: &PacketDelay) {
        self.packets += 1;
        self.lows.count(delay.low);
        self.highs.count(delay.high);
    }

    fn percentiles(&self) -> Option<DelayPercentiles> {
        let between = |percent| {
            let high = self.highs.percentile(percent).1.min(self.highs.max);
            (self.lows.percentile(percent).0, high)
        };
        let all = || DelayPercentiles { p50: between(50), p99: between(99), max: (self.lows.max, self.highs.max) };
        (self.packets > 0).then(all)
    }
}

pub(super) struct DelayFigures {
    span: (i64, i64),
    directions: [DelayCounts; 2],
    /// Delays by flow number, of the flows with most packets.
    flows: BTreeMap<FlowNumber, DelayCounts>,
    more_flows: u64,
    slots: Vec<[DelayCounts; 2]>,
}

impl DelayFigures {
    pub(super) fn new(span: (i64, i64), flows: &FlowTable) -> Self {
        let mut numbers: Vec<(FlowNumber, u64)> = flows.numbers().filter(|(_, packets)| *packets > 0).collect();
        numbers.sort_by_key(|(number, packets)| (std::cmp::Reverse(*packets), *number));
        let more_flows = numbers.len().saturating_sub(MOST_FLOWS) as u64;
        numbers.truncate(MOST_FLOWS);
        Self {
            span,
            directions: [DelayCounts::new(FINE), DelayCounts::new(FINE)],
            flows: numbers.into_iter().map(|(number, _)| (number, DelayCounts::new(COARSE))).collect(),
            more_flows,
            slots: vec![[DelayCounts::new(COARSE), DelayCounts::new(COARSE)]; SLOTS as usize],
        }
    }

    pub(super) fn count(&mut self, delay: &PacketDelay, flow: FlowNumber) {
        let way = delay.direction as usize;
        self.directions[way].count(delay);
        if let Some(counts) = self.flows.get_mut(&flow) {
            counts.count(delay);
        }
        let (from, until) = self.span;
        let at = i128::from(delay.up.0) - i128::from(from);
        let slot = at * i128::from(SLOTS) / (i128::from(until) - i128::from(from) + 1);
        if let Some(slot) = usize::try_from(slot).ok().and_then(|slot| self.slots.get_mut(slot)) {
            slot[way].count(delay);
        }
    }

    pub(super) fn directions(&self) -> [DirectionDelays; 2] {
        let delays = self.directions.each_ref().map(DelayCounts::percentiles);
        DelayDirection::BOTH.map(|direction| {
            let (mine, other) = (delays[direction as usize], delays[direction.opposite() as usize]);
            let sure = match (mine, other) {
                (Some(mine), Some(other)) => mine.p50.0 > other.p50.1 || other.p50.0 > mine.p50.1,
                (Some(mine), None) => mine.p50.0 > 0,
                (None, _) => false,
            };
            let packets = self.directions[direction as usize].packets;
            DirectionDelays { direction, packets, delay: mine, sure }
        })
    }

    pub(super) fn more_flows(&self) -> u64 {
        self.more_flows
    }

    /// Delays of flows, those with most packets first.
    pub(super) fn flows(&self, flows: &[Flow], sides: &HostSides) -> Vec<FlowDelays> {
        let known = self.flows.iter().filter_map(|(number, counts)| {
            let direction = sides.direction(*number)?;
            let delay = counts.percentiles()?;
            Some(FlowDelays { flow: flows[number.index()], direction, packets: counts.packets, delay })
        });
        let mut known: Vec<FlowDelays> = known.collect();
        known.sort_by_key(|flow| std::cmp::Reverse(flow.packets));
        known
    }

    /// Slots that have packets.
    pub(super) fn slots(&self, band: &OffsetBand) -> Vec<TimeSlot> {
        let (from, until) = self.span;
        let width = (until - from) as f64 / SLOTS as f64;
        let slots = self.slots.iter().enumerate().map(|(nth, counts)| {
            let at = from.saturating_add((width * (nth as f64 + 0.5)) as i64);
            TimeSlot {
                at: Timestamp(at.unsigned_abs()),
                offset: band.at(at).ends(),
                delays: counts.each_ref().map(DelayCounts::percentiles),
            }
        });
        slots.filter(|slot| slot.delays.iter().any(Option::is_some)).collect()
    }
}

/// The direction whose median is surely the greater.
pub(super) fn slower(directions: &[DirectionDelays; 2]) -> Option<DelayDirection> {
    let [forth, back] = directions.map(|direction| direction.delay);
    let (forth, back) = (forth?.p50, back?.p50);
    if forth.0 > back.1 {
        return Some(DelayDirection::UpToDown);
    }
    (back.0 > forth.1).then_some(DelayDirection::DownToUp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_intervals_hold_those_of_the_truth() {
        let mut counts = DelayCounts::new(FINE);
        let flow = Flow { src: [1; 4].into(), dst: [2; 4].into(), protocol: 17, src_port: 1, dst_port: 2 };
        for nth in 1..=1_000_u64 {
            let truth = nth * 1_000;
            let (low, high) = (truth.saturating_sub(nth % 7 * 300), truth + nth % 5 * 400);
            let direction = DelayDirection::UpToDown;
            counts.count(&PacketDelay { up: Timestamp(0), down: Timestamp(0), flow, direction, low, high });
        }
        let DelayPercentiles { p50, p99, max } = counts.percentiles().unwrap();
        for ((low, high), truth) in [(p50, 500_000), (p99, 990_000), (max, 1_000_000)] {
            assert!(low <= truth && truth <= high && high - low < 6_000, "{low} {truth} {high}");
        }
    }
}
