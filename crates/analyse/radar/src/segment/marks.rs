//! Marks of a meter on a report: while a segment moves from one collector to another, they say who judges it.

/// Marks of a report.
///
/// Around a planned change two collectors get the same batches, and each judges those that say so. Invariant: what any end's
/// report leaves to another collector is not judged here, so no two collectors name the same loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportMarks {
    /// The collector that gets this report judges its batch.
    pub judges: bool,
    /// The first report that this collector gets: what was before is not missing.
    pub begins: bool,
    /// The last one: the end is not silent, it has moved.
    pub leaves: bool,
    /// The meter has larger digests of the batch.
    pub has_more: bool,
}

impl Default for ReportMarks {
    fn default() -> Self {
        Self { judges: true, begins: false, leaves: false, has_more: false }
    }
}

impl ReportMarks {
    pub fn to_bits(self) -> u8 {
        let Self { judges, begins, leaves, has_more } = self;
        [has_more, leaves, begins, judges].into_iter().fold(0, |bits, set| bits << 1 | u8::from(set))
    }

    /// Bits that mean nothing yet are ignored.
    pub fn from_bits(bits: u8) -> Self {
        let set = |at: u32| bits >> at & 1 == 1;
        Self { judges: set(0), begins: set(1), leaves: set(2), has_more: set(3) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::tests::packet;
    use crate::digest::{Digest, DigestShape};
    use crate::segment::{MeterReport, MeteredSegment, ReportFacts, SegmentFinding};
    use crate::signature::{Fields, Signature};

    #[test]
    fn marks_are_read_as_they_are_written() {
        for bits in 0..16 {
            assert_eq!(ReportMarks::from_bits(bits).to_bits(), bits);
        }
        assert_eq!(ReportMarks::from_bits(1), ReportMarks::default());
    }

    fn report(end: &str, batch: u64, out: &[u32], came: &[u32]) -> MeterReport {
        let digest = |packets: &[u32]| {
            let mut digest = Digest::new(DigestShape::new(60, 1, Fields::ALL));
            packets.iter().for_each(|nth| digest.insert(&Signature::new(&packet(*nth), Fields::ALL)));
            digest
        };
        let (segment, end, life, length, missed) = ("cable".to_owned(), end.to_owned(), 1, 10_000_000, 0);
        let (out, came) = (digest(out), digest(came));
        let facts = ReportFacts::default();
        MeterReport { segment, end, life, batch, length, missed, out, out_number: None, came, came_number: None, facts }
    }

    /// Packet n is sent in batch n; every third one is lost, of the others every fifth arrives a batch late.
    fn hear(segment: &mut MeteredSegment, batch: u64, marks: ReportMarks) -> SegmentFinding {
        let nth = batch as u32;
        let is_lost = |nth: u32| nth.is_multiple_of(3);
        let is_late = |nth: u32| nth.is_multiple_of(5);
        let mut came = Vec::new();
        came.extend((!is_lost(nth) && !is_late(nth)).then_some(nth));
        came.extend((!is_lost(nth - 1) && is_late(nth - 1)).then_some(nth - 1));
        segment.on_marked(report("a", batch, &[nth], &[]).into(), marks).unwrap();
        segment.on_marked(report("b", batch, &[], &came).into(), marks).unwrap()
    }

    /// The segment moves at batch 60; both collectors get 50 to 61.
    #[test]
    fn a_planned_change_leaves_nothing_unjudged_and_says_nothing_twice() {
        let [mut old, mut new] = [0, 1].map(|_| MeteredSegment::new(2, 2));
        let (mut named, mut others) = (Vec::new(), SegmentFinding::default());
        for batch in 10..100 {
            let mark = |begins, judges| ReportMarks { begins, judges, leaves: batch == 61, has_more: false };
            let mut findings = Vec::new();
            if batch < 62 {
                findings.push(hear(&mut old, batch, mark(batch == 10, batch < 60)));
            }
            if batch >= 50 {
                findings.push(hear(&mut new, batch, ReportMarks { leaves: false, ..mark(batch == 50, batch >= 60) }));
            }
            for finding in findings {
                named.extend(finding.losses.iter().map(|lost| lost.batch));
                others.extra += finding.extra;
                others.skipped += finding.skipped;
                others.unsure += finding.unsure;
            }
        }
        // The first batches pass before both ends are known; the last two are still waited for.
        let expected: Vec<u64> = (13..98).filter(|batch| batch % 3 == 0).collect();
        named.sort_unstable();
        assert_eq!(named, expected);
        assert_eq!((others.extra, others.skipped, others.unsure), (0, 0, 0));
    }

    #[test]
    fn what_one_end_leaves_to_another_collector_is_not_judged_here() {
        let mut segment = MeteredSegment::new(2, 1);
        for batch in 10..40 {
            let judges = ReportMarks { judges: batch < 20, ..ReportMarks::default() };
            segment.on_marked(report("a", batch, &[batch as u32], &[]).into(), judges).unwrap();
            let finding = segment.on_report(report("b", batch, &[], &[])).unwrap();
            let expected = (13..=20).contains(&batch);
            assert_eq!(finding.losses.len(), usize::from(expected), "batch {batch}: {finding:?}");
        }
    }

    #[test]
    fn a_segment_that_comes_back_has_missed_nothing() {
        let mut segment = MeteredSegment::new(2, 1);
        let begins = ReportMarks { begins: true, ..ReportMarks::default() };
        for batch in (10..20).chain(500..520) {
            let marks = if batch == 500 { begins } else { ReportMarks::default() };
            let finding = hear(&mut segment, batch, marks);
            assert_eq!(finding.skipped, 0, "batch {batch}");
        }
    }
}
