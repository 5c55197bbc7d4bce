//! Arbitrary bytes as reports, as replies to questions, and as questions. `fuzz/` has this target, too.

use radar::digest::DigestShape;
use radar::segment::{MeterReport, MeteredSegment, MoreQuestion, MoreReply, ReportMarks};
use radar::signature::Fields;

/// Checks that a report that can be read is written the same again, and that a segment takes it, or refuses it.
pub(crate) fn report(bytes: &[u8]) {
    if let Some(question) = MoreQuestion::parse(bytes) {
        assert_eq!(question.to_bytes(), bytes);
        let full = DigestShape::new(384, 1, Fields::ALL).foldable();
        assert!(question.shapes([full; 2]).iter().all(|shape| (24..=384).contains(&shape.cells())));
    }
    let _ = MoreReply::parse(bytes);
    let Ok(report) = MeterReport::from_bytes(bytes) else { return };
    assert_eq!(MeterReport::from_bytes(&report.to_bytes()), Ok(report.clone()));
    let packed = MeterReport::packed(bytes).expect("what can be read can be packed");
    let mut segment = MeteredSegment::new(2, 1);
    for (end, batch) in [("a", 0), ("b", 0), ("a", 1), ("b", 1), ("a", 2), ("b", 2), ("a", 90), ("b", 90)] {
        let batch = report.batch.saturating_add(batch);
        let report = MeterReport { end: end.to_owned(), batch, ..packed.clone() };
        let marks = ReportMarks { begins: batch.is_multiple_of(3), ..ReportMarks::from_bits(9) };
        if segment.on_marked(report, marks).is_err() {
            return;
        }
        for wanted in segment.wanted() {
            let reply = MoreReply::Report { report: Box::new(packed.clone()), has_more: true };
            segment.on_more(&wanted.end, wanted.question.batch, reply);
        }
    }
}
