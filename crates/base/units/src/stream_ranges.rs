//! Disjoint ranges of a stream, in order: what a receiver holds beyond a gap, what a sender knows to have arrived.

/// A range of a stream, from its first byte to the one behind its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamRange {
    /// The first byte.
    pub from: u64,
    /// The one behind the last.
    pub to: u64,
}

/// Several of them. Invariant: none is empty, and between any two there is a gap.
#[derive(Clone, Debug, Default)]
pub struct StreamRanges {
    ranges: Vec<StreamRange>,
}

impl StreamRanges {
    /// True if there is no range.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The lowest.
    pub fn first(&self) -> Option<StreamRange> {
        self.ranges.first().copied()
    }

    /// The highest.
    pub fn last(&self) -> Option<StreamRange> {
        self.ranges.last().copied()
    }

    /// Ranges from the highest to the lowest.
    pub fn descending(&self) -> impl Iterator<Item = StreamRange> {
        self.ranges.iter().rev().copied()
    }

    /// The range that holds the byte at `at`.
    pub fn holding(&self, at: u64) -> Option<StreamRange> {
        self.at_or_after(at).filter(|range| range.from <= at)
    }

    /// The range that holds the byte at `at`, or the next one above it.
    pub fn at_or_after(&self, at: u64) -> Option<StreamRange> {
        self.ranges.get(self.ranges.partition_point(|range| range.to <= at)).copied()
    }

    /// Adds a range; what it overlaps or touches becomes one with it.
    pub fn insert(&mut self, from: u64, to: u64) {
        debug_assert!(from < to, "a range holds something");
        let first = self.ranges.partition_point(|range| range.to < from);
        let behind = first + self.ranges[first..].partition_point(|range| range.from <= to);
        if first == behind {
            self.ranges.insert(first, StreamRange { from, to });
            return;
        }
        let merged = StreamRange { from: from.min(self.ranges[first].from), to: to.max(self.ranges[behind - 1].to) };
        self.ranges[first] = merged;
        self.ranges.drain(first + 1..behind);
    }

    /// Forgets everything below `to`.
    pub fn drop_below(&mut self, to: u64) {
        let gone = self.ranges.partition_point(|range| range.to <= to);
        self.ranges.drain(..gone);
        if let Some(first) = self.ranges.first_mut() {
            first.from = first.from.max(to);
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.ranges.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(pairs: &[(u64, u64)]) -> StreamRanges {
        let mut ranges = StreamRanges::default();
        pairs.iter().for_each(|(from, to)| ranges.insert(*from, *to));
        ranges
    }

    fn pairs(ranges: &StreamRanges) -> Vec<(u64, u64)> {
        ranges.ranges.iter().map(|range| (range.from, range.to)).collect()
    }

    #[test]
    fn ranges_that_touch_become_one() {
        assert_eq!(pairs(&filled(&[(10, 20), (30, 40), (20, 30)])), [(10, 40)]);
        assert_eq!(pairs(&filled(&[(30, 40), (10, 20)])), [(10, 20), (30, 40)]);
        assert_eq!(pairs(&filled(&[(10, 20), (30, 40), (50, 60), (15, 55)])), [(10, 60)]);
        assert_eq!(pairs(&filled(&[(10, 20), (12, 14)])), [(10, 20)]);
    }

    #[test]
    fn what_holds_a_byte_and_what_comes_after_it() {
        let ranges = filled(&[(10, 20), (30, 40)]);
        assert_eq!(ranges.holding(19), Some(StreamRange { from: 10, to: 20 }));
        assert_eq!(ranges.holding(20), None);
        assert_eq!(ranges.at_or_after(20), Some(StreamRange { from: 30, to: 40 }));
        assert_eq!(ranges.at_or_after(40), None);
    }

    #[test]
    fn what_lies_below_is_cut_off() {
        let mut ranges = filled(&[(10, 20), (30, 40), (50, 60)]);
        ranges.drop_below(35);
        assert_eq!(pairs(&ranges), [(35, 40), (50, 60)]);
        ranges.drop_below(60);
        assert!(ranges.is_empty());
    }
}
