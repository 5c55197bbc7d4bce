//! Invariants of a segment, which debug builds check after every report.

use super::{MOST_CALLED, MOST_HELD, MeteredSegment, SegmentEnd, WaitingReport};

impl MeteredSegment {
    /// Panics if what is held is counted wrongly, is due or more than allowed, or if doubts are out of order. Checks nothing
    /// in release builds.
    pub fn check_invariants(&self) {
        if !cfg!(debug_assertions) {
            return;
        }
        let held = |end: &SegmentEnd| end.held.values().map(WaitingReport::bytes).sum::<usize>();
        assert_eq!(self.held, self.ends.iter().map(held).sum::<usize>(), "bytes of held reports");
        assert!(self.ends.len() <= self.expected, "more ends than there are");
        assert!(self.next.is_none() || self.ends.len() == self.expected, "compared while not every end was listening");
        for end in &self.ends {
            let next = self.next.unwrap_or(u64::MAX);
            let waits = end.held.keys().all(|batch| (next..=end.latest).contains(batch));
            assert!(waits && end.held.len() <= MOST_HELD, "{}: reports are held that need not be", end.name);
        }
        assert!(self.doubtful.iter().is_sorted_by(|a, b| a < b), "doubts out of order: {:?}", self.doubtful);
        assert!(self.doubtful.len() as u64 <= 4 * self.patience + 1, "{} doubts", self.doubtful.len());
        assert!(self.ways.iter().all(|way| way.called.len() <= MOST_CALLED), "too much is remembered as lost");
    }
}
