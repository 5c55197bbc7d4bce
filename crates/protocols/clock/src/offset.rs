//! Offset of two clocks, as an interval that contains the truth: no median, no estimate.
//!
//! The offset `D(t)` is what the other clock shows beyond this one's `t`. Nothing is known of it but hard facts: at some
//! times it is at most, or at least, a value (a packet does not arrive before it was sent; a clock states its own bound), and
//! it changes by no more than the drift allows. Then at any time
//!
//! ```text
//!   low(t) = max over facts "at least" (x − drift·|t − t_x|)  ≤  D(t)  ≤  min over facts "at most" (x + drift·|t − t_x|) = high(t)
//! ```
//!
//! and both edges are themselves possible offsets, so no narrower interval is true. Where the edges cross, one of the
//! assumptions is wrong: a clock was set, or drifts more.
//!
//! Invariants: integers only, rounded away from the middle; at most [`MOST_SLOTS`] facts of each kind are kept, one for each
//! slot of time, so the interval is at most `drift` × the length of a slot wider than all facts would make it.

use std::collections::BTreeMap;
use std::fmt;

/// Slots of time that hold facts. As long as there are no more facts than these, all are kept.
pub const MOST_SLOTS: usize = 1 << 18;

/// Maximum drift between two clocks: nanoseconds in a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OffsetDrift {
    ppb: u32,
}

impl OffsetDrift {
    /// Upper limit: no usable clock drifts by more than a tenth.
    pub const MOST_PPM: f64 = 100_000.0;

    /// `None` for what is no share below a tenth.
    pub fn from_ppm(ppm: f64) -> Option<Self> {
        (0.0..=Self::MOST_PPM).contains(&ppm).then(|| Self { ppb: (ppm * 1e3).ceil() as u32 })
    }

    /// Parts per million.
    pub fn ppm(self) -> f64 {
        f64::from(self.ppb) / 1e3
    }

    /// Maximum change of the offset in `elapsed` nanoseconds, of either sign.
    #[inline]
    pub fn over(self, elapsed: i64) -> i64 {
        let change = u128::from(elapsed.unsigned_abs()) * u128::from(self.ppb);
        i64::try_from(change.div_ceil(1_000_000_000)).unwrap_or(i64::MAX)
    }
}

/// Interval that contains a number; either end may be missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OffsetInterval {
    /// Lower bound.
    pub low: Option<i64>,
    /// Upper bound.
    pub high: Option<i64>,
}

impl OffsetInterval {
    /// Interval from `low` to `high`.
    pub fn new(low: i64, high: i64) -> Self {
        Self { low: Some(low), high: Some(high) }
    }

    /// Intersection of both intervals. It contains no value if `low` is above `high`.
    #[must_use]
    pub fn intersect(self, other: Self) -> Self {
        let high = match (self.high, other.high) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        Self { low: self.low.max(other.low), high }
    }

    /// True if the interval contains no value.
    pub fn is_empty(self) -> bool {
        matches!((self.low, self.high), (Some(low), Some(high)) if low > high)
    }

    /// Both ends of the interval, if it has both.
    pub fn ends(self) -> Option<(i64, i64)> {
        self.low.zip(self.high)
    }
}

/// The interval that most of these agree on, and how many do (Marzullo 1984). Of several, the first.
pub fn most_agreed(intervals: &[(i64, i64)]) -> Option<((i64, i64), usize)> {
    let edges = intervals.iter().filter(|(low, high)| low <= high);
    // Two intervals that touch have that point in common.
    let mut edges: Vec<(i64, bool)> = edges.flat_map(|(low, high)| [(*low, false), (*high, true)]).collect();
    edges.sort_unstable();
    let (mut depth, mut best) = (0_usize, None::<((i64, i64), usize)>);
    for (nth, (at, ends)) in edges.iter().enumerate() {
        if *ends {
            depth -= 1;
            continue;
        }
        depth += 1;
        if best.is_none_or(|(_, most)| depth > most) {
            let until = edges.get(nth + 1).map_or(*at, |(until, _)| *until);
            best = Some(((*at, until), depth));
        }
    }
    best
}

/// A fact: at this time, by this clock, the offset is at most or at least `value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetFact {
    /// Nanoseconds of this clock.
    pub at: i64,
    /// Nanoseconds that the other is ahead.
    pub value: i64,
}

impl OffsetFact {
    /// The largest offset at `at`, if this is the largest at its own time.
    #[inline]
    pub fn most_at(self, at: i64, drift: OffsetDrift) -> i64 {
        self.value.saturating_add(drift.over(at.saturating_sub(self.at)))
    }

    /// The smallest offset at `at`, if this is the smallest at its own time.
    #[inline]
    pub fn least_at(self, at: i64, drift: OffsetDrift) -> i64 {
        self.value.saturating_sub(drift.over(at.saturating_sub(self.at)))
    }
}

/// Two facts that cannot both be true of clocks that drift no more than was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetContradiction {
    /// Upper bound of the offset, which is below `least`.
    pub most: OffsetFact,
    /// Lower bound of the offset.
    pub least: OffsetFact,
}

impl OffsetContradiction {
    /// Start and end of the time in which the clocks broke their bounds.
    pub fn between(&self) -> (i64, i64) {
        (self.most.at.min(self.least.at), self.most.at.max(self.least.at))
    }

    /// Minimum change of the offset between the two facts.
    pub fn change(&self) -> i64 {
        self.least.value.saturating_sub(self.most.value)
    }

    /// The drift that would allow it, in parts per million; infinite if both are of one time.
    pub fn ppm(&self) -> f64 {
        let (from, until) = self.between();
        self.change() as f64 / until.saturating_sub(from) as f64 * 1e6
    }
}

impl fmt::Display for OffsetContradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, until) = self.between();
        write!(f, "between {from} and {until} ns the offset changed by {} ns or more", self.change())
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct FactSlot {
    most: Option<OffsetFact>,
    least: Option<OffsetFact>,
}

impl FactSlot {
    fn at_most(&mut self, fact: OffsetFact) {
        if self.most.is_none_or(|known| fact.value < known.value) {
            self.most = Some(fact);
        }
    }

    fn at_least(&mut self, fact: OffsetFact) {
        if self.least.is_none_or(|known| fact.value > known.value) {
            self.least = Some(fact);
        }
    }
}

/// Facts about an offset, in any order, in bounded memory.
#[derive(Clone, Debug)]
pub struct OffsetFacts {
    drift: OffsetDrift,
    /// Length of a slot: a power of two.
    shift: u32,
    most_slots: usize,
    slots: BTreeMap<i64, FactSlot>,
}

impl OffsetFacts {
    /// No facts, between clocks whose drift differs by at most this.
    pub fn new(drift: OffsetDrift) -> Self {
        Self { drift, shift: 0, most_slots: MOST_SLOTS, slots: BTreeMap::new() }
    }

    /// Limits the number of slots.
    #[cfg(test)]
    fn with_slots(self, most_slots: usize) -> Self {
        Self { most_slots: most_slots.max(1), ..self }
    }

    /// States that at this time the other clock is ahead by no more than `value`.
    pub fn at_most(&mut self, at: i64, value: i64) {
        self.slot(at).at_most(OffsetFact { at, value });
        self.keep_bound();
    }

    /// States that at this time the other clock is ahead by no less than `value`.
    pub fn at_least(&mut self, at: i64, value: i64) {
        self.slot(at).at_least(OffsetFact { at, value });
        self.keep_bound();
    }

    fn slot(&mut self, at: i64) -> &mut FactSlot {
        self.slots.entry(at >> self.shift).or_default()
    }

    /// Half as many slots, twice as long, each with the strictest fact of both: what is left out only widens the result.
    fn keep_bound(&mut self) {
        while self.slots.len() > self.most_slots {
            self.shift += 1;
            for (number, FactSlot { most, least }) in std::mem::take(&mut self.slots) {
                let slot = self.slots.entry(number >> 1).or_default();
                most.into_iter().for_each(|fact| slot.at_most(fact));
                least.into_iter().for_each(|fact| slot.at_least(fact));
            }
        }
    }

    /// Band of the offset at every time; or two facts that exclude each other, as close in time as any such pair.
    pub fn band(&self) -> Result<OffsetBand, OffsetContradiction> {
        let mut points: Vec<BandPoint> = Vec::with_capacity(2 * self.slots.len());
        for slot in self.slots.values() {
            let [mut one, mut other] = [
                slot.most.map(|fact| BandPoint { at: fact.at, most: Some(fact), least: None }),
                slot.least.map(|fact| BandPoint { at: fact.at, most: None, least: Some(fact) }),
            ];
            if matches!((&one, &other), (Some(one), Some(other)) if one.at > other.at) {
                std::mem::swap(&mut one, &mut other);
            }
            points.extend([one, other].into_iter().flatten());
        }
        let drift = self.drift;
        for nth in 1..points.len() {
            let before = points[nth - 1];
            points[nth].tighten(before, drift);
        }
        for nth in (1..points.len()).rev() {
            let after = points[nth];
            points[nth - 1].tighten(after, drift);
        }
        let crossed = points.iter().filter_map(|point| point.contradiction(drift));
        let closest = crossed.min_by_key(|found| {
            let (from, until) = found.between();
            until.abs_diff(from)
        });
        closest.map_or_else(|| Ok(OffsetBand { drift, points }), Err)
    }
}

/// The strictest facts at a time, wherever they were found.
#[derive(Clone, Copy, Debug)]
struct BandPoint {
    at: i64,
    most: Option<OffsetFact>,
    least: Option<OffsetFact>,
}

impl BandPoint {
    fn tighten(&mut self, neighbour: Self, drift: OffsetDrift) {
        let at = self.at;
        if let Some(fact) = neighbour.most
            && self.most.is_none_or(|known| fact.most_at(at, drift) < known.most_at(at, drift))
        {
            self.most = Some(fact);
        }
        if let Some(fact) = neighbour.least
            && self.least.is_none_or(|known| fact.least_at(at, drift) > known.least_at(at, drift))
        {
            self.least = Some(fact);
        }
    }

    fn interval(&self, at: i64, drift: OffsetDrift) -> OffsetInterval {
        OffsetInterval {
            low: self.least.map(|fact| fact.least_at(at, drift)),
            high: self.most.map(|fact| fact.most_at(at, drift)),
        }
    }

    fn contradiction(&self, drift: OffsetDrift) -> Option<OffsetContradiction> {
        let (most, least) = self.most.zip(self.least)?;
        self.interval(self.at, drift).is_empty().then_some(OffsetContradiction { most, least })
    }
}

/// The offset between two clocks over time: everything that the facts allow, and nothing else.
#[derive(Clone, Debug)]
pub struct OffsetBand {
    drift: OffsetDrift,
    /// Points in order of time.
    points: Vec<BandPoint>,
}

impl OffsetBand {
    /// The offset at a time of this clock.
    pub fn at(&self, at: i64) -> OffsetInterval {
        let next = self.points.partition_point(|point| point.at <= at);
        let near = [next.checked_sub(1).and_then(|before| self.points.get(before)), self.points.get(next)];
        near.into_iter()
            .flatten()
            .fold(OffsetInterval::default(), |known, point| known.intersect(point.interval(at, self.drift)))
    }

    /// True if the band has an upper and a lower edge.
    pub fn is_bounded(&self) -> bool {
        self.points.first().is_some_and(|point| point.most.is_some() && point.least.is_some())
    }

    /// Time at which the band is narrowest, and its two edges then.
    pub fn narrowest(&self) -> Option<(i64, i64, i64)> {
        let known = self.points.iter().filter_map(|point| {
            let (low, high) = point.interval(point.at, self.drift).ends()?;
            Some((point.at, low, high))
        });
        known.min_by_key(|(_, low, high)| high.abs_diff(*low))
    }

    /// The drift between two times, on average, in parts per million.
    pub fn drift(&self, from: i64, until: i64) -> Option<(f64, f64)> {
        let elapsed = until.checked_sub(from).filter(|elapsed| *elapsed > 0)? as f64;
        let ((low, high), (then_low, then_high)) = (self.at(from).ends()?, self.at(until).ends()?);
        let ppm = |change: i64| (change as f64 / elapsed * 1e6).clamp(-self.drift.ppm(), self.drift.ppm());
        Some((ppm(then_low.saturating_sub(high)), ppm(then_high.saturating_sub(low))))
    }
}

#[cfg(test)]
mod tests;
