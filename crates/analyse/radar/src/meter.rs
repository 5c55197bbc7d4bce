//! A meter: what passed it, batch by batch. LossRadar, li-thesis §5.3.4.
//!
//! ```text
//!   batch   n-1 │████████│            over: handed out
//!           n       │████████│        open: what is late still finds it
//!           n+1         │█████ …      open
//! ```
//!
//! A packet belongs to the batch that it carries from the meter upstream; where packets carry nothing, to that of the clock
//! (§5.8). Two batches are open, since a batch lasts longer than a packet takes from meter to meter. A packet of a batch
//! that is over is counted and not put anywhere: it would be taken for a loss.

use crate::digest::{Digest, DigestShape};
use crate::signature::Signature;

#[derive(Debug)]
pub struct Meter {
    shape: DigestShape,
    /// The newest batch and the one before it, whose memory is reused.
    open: [Option<Batch>; 2],
    /// Batches below this one are over.
    from: u64,
    late: u64,
    spare: Vec<Digest>,
}

/// Packets that passed in one batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    pub number: u64,
    pub digest: Digest,
}

impl Meter {
    pub fn new(shape: DigestShape) -> Self {
        Self { shape, open: [None, None], from: 0, late: 0, spare: Vec::new() }
    }

    /// Packets that came after their batch was over, since this was last asked.
    pub fn late(&mut self) -> u64 {
        std::mem::take(&mut self.late)
    }

    /// A packet of this batch passes. The batch that is over because of it, if one is.
    #[inline]
    pub fn insert(&mut self, batch: u64, signature: &Signature) -> Option<Batch> {
        if let Some(open) = self.open.iter_mut().flatten().find(|open| open.number == batch) {
            open.digest.insert(signature);
            return None;
        }
        self.begin(batch, signature)
    }

    #[cold]
    fn begin(&mut self, number: u64, signature: &Signature) -> Option<Batch> {
        if number < self.from {
            self.late += 1;
            return None;
        }
        let mut digest = self.spare.pop().unwrap_or_else(|| Digest::new(self.shape));
        digest.insert(signature);
        let begun = Batch { number, digest };
        if let Some(free) = self.open.iter_mut().find(|open| open.is_none()) {
            *free = Some(begun);
            return None;
        }
        let oldest = self.open.iter_mut().flatten().min_by_key(|open| open.number)?;
        if number < oldest.number {
            self.late += 1;
            self.spare.push(begun.digest);
            return None;
        }
        self.from = oldest.number + 1;
        Some(std::mem::replace(oldest, begun))
    }

    /// Batches below `number` are over: those of them that had any packets, in order.
    pub fn close(&mut self, number: u64) -> Vec<Batch> {
        self.from = self.from.max(number);
        let over = |open: &mut Option<Batch>| open.take_if(|open| open.number < number);
        let mut closed: Vec<Batch> = self.open.iter_mut().filter_map(over).collect();
        closed.sort_by_key(|batch| batch.number);
        closed
    }

    /// A batch has been dealt with; its memory is used again.
    pub fn give_back(&mut self, mut batch: Batch) {
        if self.spare.len() < self.open.len() {
            batch.digest.clear();
            self.spare.push(batch.digest);
        }
    }

    /// Memory of its cells.
    pub fn memory(&self) -> usize {
        2 * self.shape.cells() * size_of::<crate::digest::DigestCell>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::tests::packet;
    use crate::signature::Fields;

    fn meter() -> Meter {
        Meter::new(DigestShape::new(90, 1, Fields::ALL))
    }

    fn signature(nth: u32) -> Signature {
        Signature::new(&packet(nth), Fields::ALL)
    }

    #[test]
    fn a_packet_that_is_late_still_finds_its_batch() {
        let mut meter = meter();
        let over: Vec<Option<Batch>> =
            [(5, 1), (6, 2), (5, 3)].map(|(batch, nth)| meter.insert(batch, &signature(nth))).into();
        assert_eq!(over, [None, None, None]);
        let over = meter.insert(7, &signature(4)).unwrap();
        assert_eq!((over.number, over.digest.packets()), (5, 2));
        assert_eq!((meter.insert(5, &signature(5)), meter.late()), (None, 1));
    }

    #[test]
    fn time_closes_what_no_packet_does() {
        let mut meter = meter();
        meter.insert(8, &signature(1));
        meter.insert(9, &signature(2));
        assert_eq!(meter.close(8), []);
        let closed = meter.close(10);
        assert_eq!(closed.iter().map(|batch| batch.number).collect::<Vec<_>>(), [8, 9]);
        closed.into_iter().for_each(|batch| meter.give_back(batch));
        assert_eq!((meter.insert(9, &signature(3)), meter.late()), (None, 1));
        meter.insert(10, &signature(3));
        assert_eq!(meter.close(11)[0].digest.packets(), 1);
    }
}
