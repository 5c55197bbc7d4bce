//! Measures the frames that leave the link, and their times.

use hdrhistogram::Histogram;
use units::{Bytes, Span, Time};
use wire::ethernet::on_wire;

use super::outcome::{DelayUs, LevelBytes};
use super::source::SimFrame;

/// The number of frames that can be distinguished from duplicates: more than any window.
const REMEMBERED: u64 = 1 << 17;

/// Watches one lane of one direction for loss, duplicates and reordering.
#[derive(Debug)]
pub(super) struct ArrivalTracker {
    /// A bit for each of the latest ids, set when delivered.
    seen: Vec<u64>,
    /// One past the highest id delivered.
    end: u64,
    pub delivered: u64,
    pub duplicated: u64,
    pub reordered: u64,
}

impl ArrivalTracker {
    pub(super) fn new() -> Self {
        Self { seen: vec![0; (REMEMBERED / 64) as usize], end: 0, delivered: 0, duplicated: 0, reordered: 0 }
    }

    #[inline]
    pub(super) fn on_delivery(&mut self, id: u64) {
        if id == self.end {
            self.mark(id);
            self.end += 1;
            self.delivered += 1;
        } else {
            self.on_jump(id);
        }
    }

    fn on_jump(&mut self, id: u64) {
        if id >= self.end {
            (self.end..id.min(self.end + REMEMBERED)).for_each(|skipped| self.clear(skipped));
            self.end = id + 1;
        } else if id + REMEMBERED < self.end || self.is_marked(id) {
            self.duplicated += 1;
            return;
        } else {
            self.reordered += 1;
        }
        self.mark(id);
        self.delivered += 1;
    }

    fn mark(&mut self, id: u64) {
        self.seen[(id % REMEMBERED / 64) as usize] |= 1 << (id % 64);
    }

    fn clear(&mut self, id: u64) {
        self.seen[(id % REMEMBERED / 64) as usize] &= !(1 << (id % 64));
    }

    fn is_marked(&self, id: u64) -> bool {
        self.seen[(id % REMEMBERED / 64) as usize] & 1 << (id % 64) != 0
    }
}

/// Delays, to three significant digits.
#[derive(Debug)]
pub(super) struct DelayHistogram {
    histogram: Histogram<u64>,
    shortest: Span,
    longest: Span,
}

impl DelayHistogram {
    /// Delays below `RESOLUTION` are not distinguished; delays above `LONGEST` count as `LONGEST`.
    const RESOLUTION: Span = Span::from_ps(100);
    const LONGEST: Span = Span::from_ms(10_000);

    pub(super) fn new() -> Self {
        #[expect(clippy::expect_used, reason = "the bounds are constants within the library's range")]
        let histogram = Histogram::new_with_bounds(Self::RESOLUTION.as_ps(), Self::LONGEST.as_ps(), 3).expect("bounds");
        Self { histogram, shortest: Self::LONGEST, longest: Span::ZERO }
    }

    #[inline]
    pub(super) fn record(&mut self, span: Span, times: u64) {
        self.shortest = self.shortest.min(span);
        self.longest = self.longest.max(span);
        self.histogram.saturating_record_n(span.as_ps(), times);
    }

    pub(super) fn summary(&self) -> Option<DelayUs> {
        let at = |quantile| {
            let ps = self.histogram.value_at_quantile(quantile).min(self.longest.as_ps());
            Span::from_ps(ps).as_us()
        };
        (!self.histogram.is_empty()).then(|| DelayUs {
            min: self.shortest.as_us(),
            p50: at(0.5),
            p99: at(0.99),
            p999: at(0.999),
            max: self.longest.as_us(),
        })
    }
}

/// Fill levels of a buffer, sampled whenever a new frame sets out.
#[derive(Debug)]
pub(super) struct BufferLevels {
    histogram: Histogram<u64>,
    last: Bytes,
    highest: Bytes,
}

impl BufferLevels {
    const HIGHEST: u64 = 1 << 30;

    pub(super) fn new() -> Self {
        #[expect(clippy::expect_used, reason = "the bounds are constants within the library's range")]
        let histogram = Histogram::new_with_bounds(1, Self::HIGHEST, 4).expect("bounds");
        Self { histogram, last: Bytes::ZERO, highest: Bytes::ZERO }
    }

    #[inline]
    pub(super) fn record(&mut self, level: Bytes) {
        self.last = level;
        self.highest = self.highest.max(level);
        self.histogram.saturating_record(level.get());
    }

    /// Records the last level again, `times` times.
    pub(super) fn repeat(&mut self, times: u64) {
        self.histogram.saturating_record_n(self.last.get(), times);
    }

    pub(super) fn summary(&self) -> LevelBytes {
        let at = |quantile| self.histogram.value_at_quantile(quantile).min(self.highest.get());
        let least = if self.histogram.is_empty() { 0 } else { self.histogram.min() };
        LevelBytes { min: least, p25: at(0.25), p50: at(0.5), p75: at(0.75), p99: at(0.99), max: self.highest.get() }
    }
}

/// Measurements of the traffic from A to B.
#[derive(Debug)]
pub(super) struct LinkMeasure {
    /// Trackers by link and lane.
    pub arrivals: Vec<[ArrivalTracker; 2]>,
    pub transit: DelayHistogram,
    pub recovery: DelayHistogram,
    pub tx_level: BufferLevels,
    pub rx_level: BufferLevels,
    /// Wire time of the frames delivered, in bytes, without what protection adds.
    pub wire_bytes: u64,
    pub corrupted: u64,
    pub overflowed: u64,
    /// The latest transit, for the frames of a stretch that is skipped.
    pub last_transit: Span,
}

impl LinkMeasure {
    pub(super) fn new(links: usize) -> Self {
        Self {
            arrivals: (0..links).map(|_| [ArrivalTracker::new(), ArrivalTracker::new()]).collect(),
            transit: DelayHistogram::new(),
            recovery: DelayHistogram::new(),
            tx_level: BufferLevels::new(),
            rx_level: BufferLevels::new(),
            wire_bytes: 0,
            corrupted: 0,
            overflowed: 0,
            last_transit: Span::ZERO,
        }
    }

    #[inline]
    pub(super) fn on_delivery(&mut self, now: Time, link: usize, lane: usize, frame: SimFrame) {
        self.arrivals[link][lane].on_delivery(frame.id);
        self.wire_bytes += u64::from(on_wire(frame.len));
        self.last_transit = now.since(frame.taken);
        self.transit.record(self.last_transit, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_duplicates_and_reordering_are_told_apart() {
        let mut arrivals = ArrivalTracker::new();
        for id in [0, 1, 3, 2, 2, 6, 5, 3] {
            arrivals.on_delivery(id);
        }
        assert_eq!((arrivals.delivered, arrivals.duplicated, arrivals.reordered), (6, 2, 2));
    }

    #[test]
    fn what_was_seen_a_lap_ago_is_forgotten() {
        let mut arrivals = ArrivalTracker::new();
        arrivals.on_delivery(5);
        arrivals.on_delivery(5 + 3 * REMEMBERED);
        arrivals.on_delivery(4 + 3 * REMEMBERED);
        assert_eq!((arrivals.delivered, arrivals.duplicated, arrivals.reordered), (3, 0, 1));
        arrivals.on_delivery(5);
        assert_eq!(arrivals.duplicated, 1, "far too late to be anything else");
    }
}
