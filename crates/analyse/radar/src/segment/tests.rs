use super::*;
use crate::digest::tests::packet;
use crate::signature::Fields;

const SHAPE: u64 = 1;

fn signature(nth: u32) -> Signature {
    Signature::new(&packet(nth), Fields::ALL)
}

fn digest(packets: &[u32]) -> Digest {
    let mut digest = Digest::new(DigestShape::new(120, SHAPE, Fields::ALL));
    packets.iter().for_each(|nth| digest.insert(&signature(*nth)));
    digest
}

fn report(end: &str, batch: u64, out: &[u32], came: &[u32]) -> MeterReport {
    MeterReport {
        segment: "cable".to_owned(),
        end: end.to_owned(),
        life: 1,
        batch,
        length: 10_000_000,
        missed: 0,
        out: digest(out),
        out_number: None,
        came: digest(came),
        came_number: None,
        facts: ReportFacts::default(),
    }
}

/// A link whose ends have both spoken, ready for batch 13.
fn link() -> MeteredSegment {
    let mut segment = MeteredSegment::new(2, 1);
    for batch in 10..13 {
        for end in ["a", "b"] {
            assert_eq!(segment.on_report(report(end, batch, &[], &[])), Ok(SegmentFinding::default()));
        }
    }
    segment
}

fn names(finding: &SegmentFinding) -> Vec<(Signature, u64, Option<usize>)> {
    finding.losses.iter().map(|lost| (lost.signature, lost.batch, lost.from)).collect()
}

#[test]
fn each_way_of_a_link_is_compared_for_itself_one_batch_later() {
    let mut link = link();
    link.on_report(report("a", 13, &[1, 2, 3], &[11])).unwrap();
    assert_eq!(link.on_report(report("b", 13, &[11, 12], &[1])).unwrap(), SegmentFinding::default());
    link.on_report(report("a", 14, &[], &[])).unwrap();
    // Packet 3 was on its way.
    let finding = link.on_report(report("b", 14, &[], &[3])).unwrap();
    assert_eq!(names(&finding), [(signature(2), 13, Some(0)), (signature(12), 13, Some(1))]);
}

#[test]
fn a_packet_that_comes_after_it_was_called_lost_is_told() {
    let mut link = link();
    let mut told = |batch, out: &[u32], came: &[u32]| {
        link.on_report(report("a", batch, out, &[])).unwrap();
        link.on_report(report("b", batch, &[], came)).unwrap()
    };
    told(13, &[1], &[]);
    assert_eq!(told(14, &[], &[]).losses.len(), 1);
    told(15, &[], &[1]);
    let finding = told(16, &[], &[]);
    let taken_back = LostSignature { signature: signature(1), times: 1, batch: 13, from: Some(0) };
    assert_eq!((finding.late, finding.extra), (vec![taken_back], 0));
}

#[test]
fn a_number_of_the_link_says_at_once_what_will_not_come_any_more() {
    let mut link = link();
    link.on_report(MeterReport { out_number: Some(5), ..report("a", 13, &[1, 2], &[]) }).unwrap();
    let finding = link.on_report(MeterReport { came_number: Some(5), ..report("b", 13, &[], &[2]) }).unwrap();
    assert_eq!(names(&finding), [(signature(1), 13, Some(0))]);
    assert!(has_passed(Some((1 << 17) - 2), Some(1)) && !has_passed(Some(1), Some((1 << 17) - 2)));
}

#[test]
fn what_passed_before_both_listened_is_not_judged() {
    let mut segment = MeteredSegment::new(2, 1);
    segment.on_report(report("a", 10, &[1], &[])).unwrap();
    segment.on_report(report("a", 11, &[2], &[])).unwrap();
    // The first batch of a meter that has just started is not whole.
    segment.on_report(report("b", 11, &[], &[])).unwrap();
    for batch in 12..16 {
        let finding = segment.on_report(report("a", batch, &[batch as u32], &[])).unwrap();
        assert_eq!(finding, SegmentFinding::default());
        let finding = segment.on_report(report("b", batch, &[], &[])).unwrap();
        assert_eq!(finding.losses.len(), usize::from(batch > 13), "batch {batch}");
    }
}

#[test]
fn what_a_meter_missed_is_not_called_lost() {
    let mut link = link();
    link.on_report(report("a", 13, &[1], &[])).unwrap();
    link.on_report(MeterReport { missed: 1, ..report("b", 13, &[], &[]) }).unwrap();
    link.on_report(report("a", 14, &[], &[])).unwrap();
    let finding = link.on_report(report("b", 14, &[], &[])).unwrap();
    assert_eq!((finding.losses.len(), finding.unsure), (0, 1));
}

#[test]
fn doubts_from_before_clocks_were_set_back_do_not_hide_later_ones() {
    let mut link = link();
    for end in ["a", "b"] {
        link.on_report(MeterReport { missed: 1, ..report(end, 100, &[], &[]) }).unwrap();
    }
    for batch in 10..16 {
        for end in ["a", "b"] {
            link.on_report(report(end, batch, &[], &[])).unwrap();
        }
    }
    link.on_report(report("a", 16, &[1], &[])).unwrap();
    link.on_report(MeterReport { missed: 1, ..report("b", 16, &[], &[]) }).unwrap();
    link.on_report(report("a", 17, &[], &[])).unwrap();
    let finding = link.on_report(report("b", 17, &[], &[])).unwrap();
    assert_eq!((finding.losses.len(), finding.unsure), (0, 1));
}

#[test]
fn a_batch_that_one_end_did_not_report_is_skipped_and_said() {
    let mut link = link();
    link.on_report(report("a", 13, &[1, 2], &[])).unwrap();
    link.on_report(report("a", 14, &[], &[])).unwrap();
    let finding = link.on_report(report("b", 14, &[], &[2])).unwrap();
    assert_eq!((finding.skipped, finding.losses.len()), (1, 0));
}

#[test]
fn a_long_gap_in_reports_makes_no_losses() {
    let mut link = link();
    link.on_report(report("a", 13, &[1], &[])).unwrap();
    link.on_report(report("b", 13, &[], &[])).unwrap();
    let mut all = SegmentFinding::default();
    for batch in 14..40 {
        link.on_report(report("a", batch, &[], &[])).unwrap();
    }
    for batch in 30..40 {
        let finding = link.on_report(report("b", batch, &[], &[])).unwrap();
        all.skipped += finding.skipped;
        all.unsure += finding.unsure;
        all.losses.extend(finding.losses);
    }
    assert_eq!((all.losses.len(), all.skipped, all.unsure), (0, 16, 1));
}

/// One batch at a time this would take hours.
#[test]
fn a_gap_of_a_trillion_batches_is_not_walked_one_by_one() {
    let mut link = link();
    link.on_report(report("a", 13, &[1], &[])).unwrap();
    link.on_report(report("b", 13, &[], &[])).unwrap();
    let far = 1_000_000_000_000;
    link.on_report(report("a", far, &[2], &[])).unwrap();
    let gap = link.on_report(report("b", far, &[], &[])).unwrap();
    assert_eq!((gap.losses.len(), gap.unsure, gap.skipped), (0, 1, far - 14));
    // Packets right behind the gap are in doubt; later ones are judged again.
    let mut all = SegmentFinding::default();
    for batch in far + 1..far + 9 {
        link.on_report(report("a", batch, if batch == far + 6 { &[3] } else { &[] }, &[])).unwrap();
        let finding = link.on_report(report("b", batch, &[], &[])).unwrap();
        all.unsure += finding.unsure;
        all.losses.extend(finding.losses);
    }
    assert_eq!((names(&all), all.unsure), (vec![(signature(3), far + 6, Some(0))], 1));
}

#[test]
fn a_report_takes_no_more_memory_than_its_bytes_until_it_is_compared() {
    let shape = DigestShape::new(8_192, SHAPE, Fields::ALL);
    let empty =
        |end, batch| MeterReport { out: Digest::new(shape), came: Digest::new(shape), ..report(end, batch, &[], &[]) };
    let mut segment = MeteredSegment::new(2, 1);
    segment.on_report(empty("a", 10)).unwrap();
    segment.on_report(empty("b", 10)).unwrap();
    (11..500).for_each(|batch| drop(segment.on_report(empty("a", batch)).unwrap()));
    assert!(segment.bytes() < 489 * 1_000, "{} bytes for 489 idle reports", segment.bytes());
    assert_eq!(MeterReport::packed(&empty("a", 10).to_bytes()), Ok(empty("a", 10).into()));
    (11..500).for_each(|batch| drop(segment.on_report(empty("b", batch)).unwrap()));
    assert!(segment.bytes() < 10_000, "{} bytes when all is compared", segment.bytes());
}

#[test]
fn reports_that_come_too_late_are_not_kept() {
    let mut link = link();
    (13..2_000).for_each(|batch| drop(link.on_report(report("a", batch, &[], &[])).unwrap()));
    // Reports that were stuck in a connection are older than the batches that are compared by now.
    (13..1_200).for_each(|batch| drop(link.on_report(report("b", batch, &[], &[])).unwrap()));
    assert!(link.ends.iter().all(|end| end.held.len() <= MOST_HELD + 1));
}

#[test]
fn what_a_meter_missed_is_not_lost_however_much_it_is() {
    let mut link = link();
    let many: Vec<u32> = (100..600).collect();
    link.on_report(report("a", 13, &many, &[])).unwrap();
    link.on_report(MeterReport { missed: 500, ..report("b", 13, &[], &[]) }).unwrap();
    let mut all = SegmentFinding::default();
    for batch in 14..18 {
        link.on_report(report("a", batch, &[], &[])).unwrap();
        let finding = link.on_report(report("b", batch, &[], &[])).unwrap();
        all.unnamed += finding.unnamed;
        all.unsure += finding.unsure;
        all.losses.extend(finding.losses);
    }
    assert_eq!((all.losses.len(), all.unnamed, all.unsure), (0, 0, 500));
}

#[test]
fn a_meter_that_starts_anew_makes_no_losses() {
    let mut link = link();
    link.on_report(report("a", 13, &[1, 2], &[])).unwrap();
    link.on_report(MeterReport { life: 2, ..report("b", 20, &[], &[]) }).unwrap();
    for batch in 14..24 {
        link.on_report(report("a", batch, &[], &[])).unwrap();
    }
    for batch in 21..24 {
        let finding = link.on_report(MeterReport { life: 2, ..report("b", batch, &[], &[]) }).unwrap();
        assert_eq!((finding.losses.len(), finding.unsure), (0, 0));
    }
}

#[test]
fn of_a_black_box_all_that_went_in_is_compared_with_all_that_came_out() {
    let mut segment = MeteredSegment::new(3, 1);
    let mut last = SegmentFinding::default();
    for batch in 10..16 {
        let busy = batch == 13;
        let some = |list: &'static [u32]| if busy { list } else { &[] };
        segment.on_report(report("a", batch, some(&[1, 2, 3]), some(&[21]))).unwrap();
        segment.on_report(report("b", batch, some(&[11]), some(&[1]))).unwrap();
        last = segment.on_report(report("c", batch, some(&[21]), some(&[3]))).unwrap();
        if batch == 14 {
            break;
        }
    }
    let mut found = names(&last);
    found.sort_unstable();
    let mut expected = vec![(signature(2), 13, None), (signature(11), 13, None)];
    expected.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn headers_may_be_rewritten_another_way_on_each_way() {
    let behind_nat = |source| {
        let fields = Fields { source, destination: !source, ..Fields::ALL };
        Digest::new(DigestShape::new(120, SHAPE, fields))
    };
    let end = |end, batch, out, came| MeterReport { out, came, ..report(end, batch, &[], &[]) };
    let mut segment = MeteredSegment::new(2, 1);
    assert!(segment.on_report(end("a", 10, behind_nat(false), behind_nat(true))).is_ok());
    assert!(segment.on_report(end("b", 10, behind_nat(true), behind_nat(false))).is_ok());
    assert!(segment.on_report(end("b", 11, behind_nat(false), behind_nat(true))).is_err());
}

#[test]
fn reports_that_do_not_fit_are_refused_with_what_to_do() {
    let mut link = link();
    let other = Digest::new(DigestShape::new(240, SHAPE, Fields::ALL));
    let said = link.on_report(MeterReport { out: other, ..report("b", 13, &[], &[]) }).unwrap_err().to_string();
    assert!(said.contains("end b") && said.contains("120 cells and 240"), "{said}");
    let said = link.on_report(MeterReport { length: 5_000_000, ..report("b", 13, &[], &[]) }).unwrap_err().to_string();
    assert!(said.contains("5 ms, others of 10 ms"), "{said}");
    let said = link.on_report(report("c", 13, &[], &[])).unwrap_err().to_string();
    assert!(said.contains("end c is one too many"), "{said}");
}

#[test]
fn a_report_survives_being_written() {
    let report = MeterReport { out_number: Some(7), ..report("a", 13, &[1, 2], &[3]) };
    let bytes = report.to_bytes();
    assert_eq!(MeterReport::from_bytes(&bytes), Ok(report));
    assert_eq!(MeterReport::from_bytes(b"GET / HTTP/1.1"), Err(ReportError::Foreign));
    assert_eq!(MeterReport::from_bytes(&bytes[..bytes.len() - 1]), Err(ReportError::Malformed));
    assert!((0..bytes.len()).all(|len| MeterReport::from_bytes(&bytes[..len]).is_err()));
}
