//! Reports that a meter keeps whole, and sends small.
//!
//! A report leaves in as few cells as were enough of late. For a while the meter keeps the whole one, and replies with more
//! cells of it when the collector asks; whoever was asked sends as many cells from then on for a hundred batches.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use radar::digest::{DigestShape, PackedDigest};
use radar::segment::{MeterReport, MoreQuestion, MoreReply};

use super::question::QuestionResponder;
use super::run_length;

/// Kind of a question for more cells.
pub(crate) const MORE: u8 = 1;
/// Batches that are kept, and their bytes.
const MOST_KEPT: usize = 100;
const MOST_BYTES: usize = 16 << 20;
/// Bytes of replies that a batch allows: a stranger's collector costs no more than two of the largest reports a batch.
const REPLIES_EACH: usize = 2;

/// Whole reports of the last second, and the sizes that are sent.
#[derive(Debug, Default)]
pub(crate) struct KeptReports(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    reports: VecDeque<MeterReport<PackedDigest>>,
    bytes: usize,
    /// Cells that are sent of what leaves and of what arrives, and the last batch for which that holds.
    sizes: [(usize, u64); 2],
    /// Replies that may be made before the next batch.
    replies: usize,
}

/// A report as it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SmallReport {
    pub bytes: Vec<u8>,
    /// There are larger digests of this batch.
    pub has_more: bool,
}

impl KeptReports {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a report, and gives the form in which it is sent.
    pub(crate) fn keep(&self, report: &MeterReport) -> SmallReport {
        let kept = &mut *self.lock();
        let full = [report.out.shape(), report.came.shape()];
        let size = |nth: usize| {
            let (cells, until) = kept.sizes[nth];
            full[nth].folded_for(if report.batch <= until { cells } else { 0 })
        };
        let shapes = [size(0), size(1)];
        kept.add(MeterReport::from(report.clone()));
        let MeterReport { out, came, .. } = report;
        let small = MeterReport { out: out.folded(shapes[0]), came: came.folded(shapes[1]), ..report.clone() };
        SmallReport { bytes: small.to_bytes(), has_more: shapes != full }
    }

    fn more(&self, question: MoreQuestion) -> Vec<u8> {
        let kept = &mut *self.lock();
        let found = kept.reports.iter().position(|report| report.batch == question.batch);
        let Some(at) = found.filter(|_| kept.replies > 0) else { return MoreReply::to_bytes(None) };
        kept.replies -= 1;
        let report = &kept.reports[at];
        let full = [report.out.shape(), report.came.shape()];
        let shapes = question.shapes(full);
        let last = kept.reports.back().map_or(question.batch, |latest| latest.batch);
        let bytes =
            MeterReport { out: report.out.folded(shapes[0]), came: report.came.folded(shapes[1]), ..header(report) }
                .to_bytes();
        for (nth, shape) in shapes.into_iter().enumerate().filter(|(nth, _)| question.ways >> nth & 1 == 1) {
            kept.sizes[nth] = (shape.cells(), last.saturating_add(MoreQuestion::STAYS_LARGE));
        }
        MoreReply::to_bytes(Some((&bytes, shapes != full)))
    }
}

/// Makes the report without its digests.
fn header(report: &MeterReport<PackedDigest>) -> MeterReport {
    let nothing = || radar::digest::Digest::new(DigestShape::new(0, 0, report.out.shape().fields));
    MeterReport {
        segment: report.segment.clone(),
        end: report.end.clone(),
        life: report.life,
        batch: report.batch,
        length: report.length,
        missed: report.missed,
        out: nothing(),
        out_number: report.out_number,
        came: nothing(),
        came_number: report.came_number,
        facts: report.facts.clone(),
    }
}

impl Kept {
    fn add(&mut self, report: MeterReport<PackedDigest>) {
        // A clock was set back: older ones have the numbers of later batches.
        if self.reports.back().is_some_and(|latest| latest.batch >= report.batch) {
            *self = Self::default();
        }
        self.replies = (self.replies + REPLIES_EACH).min(MOST_KEPT);
        self.bytes += bytes(&report);
        self.reports.push_back(report);
        while self.reports.len() > MOST_KEPT || self.bytes > MOST_BYTES {
            let Some(oldest) = self.reports.pop_front() else { return };
            self.bytes -= bytes(&oldest);
        }
    }
}

fn bytes(report: &MeterReport<PackedDigest>) -> usize {
    report.out.bytes() + report.came.bytes() + size_of::<MeterReport<PackedDigest>>()
}

impl QuestionResponder for KeptReports {
    fn reply(&self, body: &[u8]) -> Option<Vec<u8>> {
        match body.split_first() {
            Some((&MORE, question)) => Some(run_length::encode(&self.more(MoreQuestion::parse(question)?))),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use radar::digest::Digest;
    use radar::packet::{Flow, Packet, TcpFields};
    use radar::signature::{Fields, Signature};

    use super::*;

    fn report(batch: u64, cells: usize) -> MeterReport {
        let digest = || Digest::new(DigestShape::new(cells, 1, Fields::ALL).foldable());
        let (segment, end) = ("cable".to_owned(), "a".to_owned());
        let (out, came, life, length, missed) = (digest(), digest(), 1, 10_000_000, 0);
        MeterReport {
            segment,
            end,
            life,
            batch,
            length,
            missed,
            out,
            out_number: None,
            came,
            came_number: None,
            facts: Default::default(),
        }
    }

    fn cells(small: &SmallReport) -> [usize; 2] {
        let report = MeterReport::packed(&small.bytes).unwrap();
        [report.out.shape().cells(), report.came.shape().cells()]
    }

    fn ask(kept: &KeptReports, batch: u64, cells: u32, ways: u8) -> MoreReply {
        let question = MoreQuestion { batch, cells, ways }.to_bytes();
        let reply = kept.reply(&[&[MORE], &question[..]].concat()).unwrap();
        MoreReply::parse(&run_length::decode(&reply).unwrap()).unwrap()
    }

    #[test]
    fn a_meter_sends_little_until_it_is_asked_for_more_and_again_after_a_while() {
        let kept = KeptReports::default();
        let first = kept.keep(&report(10, 384));
        assert_eq!((cells(&first), first.has_more), ([24, 24], true));
        let MoreReply::Report { report: more, has_more } = ask(&kept, 10, 90, 1) else { panic!("it is kept") };
        assert_eq!((more.out.shape().cells(), more.came.shape().cells(), has_more), (96, 24, true));
        assert_eq!(cells(&kept.keep(&report(11, 384))), [96, 24]);
        ask(&kept, 11, u32::MAX, 3);
        assert_eq!(cells(&kept.keep(&report(111, 384))), [384, 384]);
        assert_eq!(cells(&kept.keep(&report(112, 384))), [24, 24]);
    }

    /// Digests of 384 cells in which every cell is full, both ways.
    #[test]
    fn a_report_of_a_quiet_busy_link_takes_less_than_three_kilobytes() {
        let mut busy = report(10, 384);
        for nth in 0..20_000_u32 {
            let flow = Flow {
                src: [10, 0, 0, 1].into(),
                dst: [10, 0, 0, 2].into(),
                protocol: 6,
                src_port: nth as u16,
                dst_port: 443,
            };
            let tcp = Some(TcpFields { seq: nth.wrapping_mul(1_448), len: 1_448, syn: false });
            let content = u64::from(nth).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let packet = Packet { flow, ip_id: Some(nth as u16), fragment: 0, tcp, ttl: 64, content };
            for digest in [&mut busy.out, &mut busy.came] {
                digest.insert(&Signature::new(&packet, Fields::ALL));
            }
        }
        let kept = KeptReports::default();
        let [small, whole] = [kept.keep(&busy).bytes, busy.to_bytes()].map(|bytes| run_length::encode(&bytes).len());
        assert!(small < 3_000 && whole > 10 * small, "{small} of {whole}");
    }

    #[test]
    fn what_is_kept_is_bounded_and_so_is_what_is_replied() {
        let kept = KeptReports::default();
        (0..300).for_each(|batch| drop(kept.keep(&report(batch, 384))));
        assert_eq!(kept.lock().reports.len(), MOST_KEPT);
        assert_eq!(ask(&kept, 100, 48, 3), MoreReply::Gone);
        let replied = (0..1_000).filter(|_| ask(&kept, 299, 48, 3) != MoreReply::Gone).count();
        assert_eq!(replied, MOST_KEPT);
        // The clock was set back.
        kept.keep(&report(5, 384));
        assert_eq!(kept.lock().reports.len(), 1);
        for wrong in [&[][..], &[MORE], &[MORE; 40], &[9; 14]] {
            assert_eq!(kept.reply(wrong), None, "{wrong:?}");
        }
    }
}
