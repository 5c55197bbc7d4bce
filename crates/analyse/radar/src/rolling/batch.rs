//! Digests of a batch put into the difference, in as many cells as the smallest of them has.

use super::RollingDifference;
use crate::digest::{Digest, DigestMismatch, DigestShape, PackedDigest};

/// Result of putting a batch in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchOutcome {
    Compared,
    /// It does not decode to its end, and nothing was put in: so many cells might suffice.
    TooSmall {
        cells: usize,
    },
}

impl RollingDifference {
    /// True if nothing of earlier batches is left that did not decode.
    fn is_blank(&self) -> bool {
        self.stuck.is_none() && !self.is_changed
    }

    /// Compares what went in with what came out in batch `now`. What is left of earlier batches is folded with it, so a batch
    /// is compared in no more cells than that has. With `may_ask`, a batch that does not decode is not put in.
    pub(crate) fn put(
        &mut self,
        now: u64,
        upstream: &[&PackedDigest],
        downstream: &[&PackedDigest],
        may_ask: bool,
    ) -> Result<BatchOutcome, DigestMismatch> {
        let all = || upstream.iter().chain(downstream);
        if let Some(other) = all().map(|digest| digest.shape()).find(|shape| shape.base() != self.shape.base()) {
            return Err(DigestMismatch { ours: self.shape, theirs: other });
        }
        // An idle batch takes neither room nor time.
        if all().all(|digest| digest.is_empty()) {
            return Ok(BatchOutcome::Compared);
        }
        let rest = if self.is_blank() { None } else { self.difference.take() };
        let shapes = all().filter(|digest| !digest.is_empty()).map(|digest| digest.shape());
        let smallest = shapes.reduce(DigestShape::smaller).unwrap_or(self.shape);
        let shape = rest.as_ref().map_or(smallest, |rest| rest.shape().smaller(smallest));
        let mut difference = rest.as_ref().map_or_else(|| Digest::new(shape), |rest| rest.folded(shape));
        let full = |digests: &&&PackedDigest| !digests.is_empty();
        upstream.iter().filter(full).try_for_each(|digest| difference.merge_packed(digest))?;
        downstream.iter().filter(full).try_for_each(|digest| difference.subtract_packed(digest))?;
        // Larger digests do not help where what is left is as small.
        let may_ask = may_ask && rest.as_ref().is_none_or(|rest| rest.shape().cells() > smallest.cells());
        let estimate = difference.estimate();
        let decoded = difference.decode();
        if decoded.left.is_some() && may_ask {
            self.difference = rest;
            return Ok(BatchOutcome::TooSmall { cells: shape.cells_to_decode(estimate) });
        }
        self.absorb(decoded, now);
        self.difference = self.stuck.map(|_| difference);
        self.is_changed = false;
        Ok(BatchOutcome::Compared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::tests::packet;
    use crate::rolling::SettledDifference;
    use crate::signature::{Fields, Signature};

    fn shape() -> DigestShape {
        DigestShape::new(384, 1, Fields::ALL).foldable()
    }

    fn packed(packets: std::ops::Range<u32>, cells: usize) -> PackedDigest {
        let mut digest = Digest::new(shape());
        packets.for_each(|nth| digest.insert(&Signature::new(&packet(nth), Fields::ALL)));
        PackedDigest::from(&digest.folded(shape().folded_for(cells)))
    }

    #[test]
    fn ends_that_send_different_sizes_are_compared_in_the_smaller() {
        let mut rolling = RollingDifference::new(shape().base());
        let (sent, seen) = (packed(0..1_000, 384), packed(2..1_000, 24));
        assert_eq!(rolling.put(7, &[&sent], &[&seen], true), Ok(BatchOutcome::Compared));
        assert_eq!(rolling.settle(8, 8).lost.len(), 2);
    }

    #[test]
    fn a_batch_of_too_few_cells_is_put_in_when_more_have_come() {
        let mut rolling = RollingDifference::new(shape().base());
        let [(sent, seen), (more_sent, more_seen)] =
            [24, 384].map(|cells| (packed(0..100, cells), packed(60..100, cells)));
        let outcome = rolling.put(7, &[&sent], &[&seen], true).unwrap();
        let BatchOutcome::TooSmall { cells } = outcome else { panic!("{outcome:?}") };
        assert!(cells > 60, "{cells}");
        assert!(rolling.is_blank() && rolling.settle(8, 8) == SettledDifference::default());
        assert_eq!(rolling.put(7, &[&more_sent], &[&more_seen], true), Ok(BatchOutcome::Compared));
        assert_eq!(rolling.settle(8, 8).lost.len(), 60);
        // If no more can be had, the rest is counted.
        assert_eq!(rolling.put(8, &[&sent], &[&seen], false), Ok(BatchOutcome::Compared));
        let settled = rolling.settle(9, 9);
        assert_eq!(settled.unnamed.unwrap().left.lost + settled.lost.len() as u64, 60);
    }

    #[test]
    fn an_idle_wire_takes_no_room_whatever_its_shape() {
        let shape = DigestShape::new(8_192, 1, Fields::ALL);
        let mut rolling = RollingDifference::new(shape);
        let idle = PackedDigest::from(&Digest::new(shape));
        assert_eq!(rolling.put(1, &[&idle], &[&idle], true), Ok(BatchOutcome::Compared));
        assert_eq!((rolling.bytes(), idle.bytes() < 200), (0, true));
        assert!(rolling.put(1, &[&packed(0..1, 24)], &[&idle], true).is_err());
    }
}
