//! Larger digests on request: meters send as few cells as mostly suffice, and keep the rest for a while.
//!
//! ```text
//!   batch n, all ends ──put──▶ decodes ──▶ compared
//!                        └─▶ does not ──question──▶ the ends that have more ──reply──▶ put again
//!                                      └─ no reply for 10 batches: compared as it is, the rest counted
//! ```
//!
//! Batches behind one that waits do so too. A meter that was asked sends larger digests from then on for some time, and
//! reports that were on their way meanwhile are asked for at once, so a burst of losses costs one round trip.
//!
//! Invariants: a reply is taken only from the end that was asked, for the batch that was asked for, once; no batch waits
//! longer than `REPLY_WITHIN` batches.

use super::MeteredSegment;
use crate::digest::{DigestShape, PackedDigest};
use crate::rolling::BatchOutcome;

use super::form::ReportError;
use super::{MeterReport, WaitingReport};

/// Batches in which a reply is worth waiting for.
pub(super) const REPLY_WITHIN: u64 = 10;
/// Batches for which a meter that was asked for more sends more.
const STAYS_LARGE: u64 = 100;
/// Questions of one segment that wait to be sent.
const MOST_WANTED: usize = 256;
/// Bits of a question: packets that left by the end, packets that arrived.
const WAYS: [u8; 2] = [1, 2];

/// A collector's question: the digests of a batch in more cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MoreQuestion {
    pub batch: u64,
    /// Cells that are wanted; the largest digest there is if it has fewer.
    pub cells: u32,
    /// Bit 0: of packets that left by the end; bit 1: of those that arrived.
    pub ways: u8,
}

impl MoreQuestion {
    const LENGTH: usize = 13;

    pub fn to_bytes(self) -> Vec<u8> {
        [&self.batch.to_le_bytes()[..], &self.cells.to_le_bytes(), &[self.ways]].concat()
    }

    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::LENGTH] = bytes.try_into().ok()?;
        let (batch, rest) = bytes.split_first_chunk()?;
        let (cells, ways) = rest.split_first_chunk()?;
        let question =
            Self { batch: u64::from_le_bytes(*batch), cells: u32::from_le_bytes(*cells), ways: *ways.first()? };
        (1..=3).contains(&question.ways).then_some(question)
    }

    /// Batches from the one that was asked for in which a meter sends as many cells without being asked.
    pub const STAYS_LARGE: u64 = STAYS_LARGE;

    /// The shapes in which it is answered by a meter with digests of these shapes; what was not asked for is small.
    pub fn shapes(self, full: [DigestShape; 2]) -> [DigestShape; 2] {
        let shape = |nth: usize| {
            let is_asked = self.ways & WAYS[nth] != 0;
            if is_asked { full[nth].folded_for(self.cells as usize) } else { full[nth].base() }
        };
        [shape(0), shape(1)]
    }
}

/// A meter's reply: the batch in more cells, or that it does not have it any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MoreReply {
    Report {
        report: Box<MeterReport<PackedDigest>>,
        /// There are even larger digests.
        has_more: bool,
    },
    Gone,
}

impl MoreReply {
    /// Bytes of a reply with this report, or of one without.
    pub fn to_bytes(report: Option<(&[u8], bool)>) -> Vec<u8> {
        report.map_or(Vec::new(), |(report, has_more)| [&[u8::from(has_more)], report].concat())
    }

    pub fn parse(bytes: &[u8]) -> Result<Self, ReportError> {
        match bytes.split_first() {
            None => Ok(Self::Gone),
            Some((has_more @ 0..2, report)) => {
                let report = Box::new(MeterReport::packed(report)?);
                Ok(Self::Report { report, has_more: *has_more == 1 })
            }
            Some(_) => Err(ReportError::Malformed),
        }
    }
}

/// A question, and the end that it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoreWanted {
    pub end: String,
    pub question: MoreQuestion,
}

/// Larger digest that a meter may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LargerDigest {
    /// There is none, or it is gone.
    None,
    Possible,
    Asked,
}

impl LargerDigest {
    pub(super) fn new(has_more: bool) -> Self {
        if has_more { Self::Possible } else { Self::None }
    }
}

/// Result of putting the next batch in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PutOutcome {
    Done,
    Waits,
}

#[derive(Debug, Default)]
pub(super) struct MoreRequests {
    /// Ways of the next batch that are compared already.
    done: Vec<usize>,
    /// Questions that were not taken yet.
    wanted: Vec<MoreWanted>,
    /// Cells that later batches will need too, for each way through the segment, and the last of those batches.
    ahead: [Option<(usize, u64)>; 2],
}

impl MeteredSegment {
    /// Questions since the last call.
    pub fn wanted(&mut self) -> Vec<MoreWanted> {
        std::mem::take(&mut self.more.wanted)
    }

    /// An end replies to the question about this batch.
    pub fn on_more(&mut self, end: &str, batch: u64, reply: MoreReply) -> super::SegmentFinding {
        if let Some(at) = self.ends.iter().position(|known| known.name == end)
            && let Some(held) = self.ends[at].held.get_mut(&batch)
        {
            self.held -= held.bytes();
            held.take_reply(reply);
            self.held += held.bytes();
        }
        let finding = self.compare();
        self.check_invariants();
        finding
    }

    /// Adds what all ends have reported of a batch to what is compared, or asks for more of it.
    pub(super) fn put(&mut self, batch: u64) -> PutOutcome {
        let reported_until = self.ends.iter().map(|end| end.latest).min().unwrap_or(0);
        let may_wait = reported_until < batch.saturating_add(REPLY_WITHIN) && !self.holds_too_many();
        for way in 0..self.ways.len() {
            if self.more.done.contains(&way) {
                continue;
            }
            if may_wait && self.digests(way).any(|(end, nth)| self.larger(end, batch, nth) == LargerDigest::Asked) {
                continue;
            }
            let may_ask = may_wait && self.can_be_larger(way, batch);
            match self.put_way(way, batch, may_ask) {
                BatchOutcome::Compared => self.more.done.push(way),
                BatchOutcome::TooSmall { cells } => self.ask(way, batch, cells),
            }
        }
        if self.more.done.len() < self.ways.len() {
            return PutOutcome::Waits;
        }
        self.more.done.clear();
        let missed = self.ends.iter().filter_map(|end| end.held.get(&batch)).any(|report| report.missed > 0);
        if missed {
            self.doubt(batch);
        }
        PutOutcome::Done
    }

    fn put_way(&mut self, way: usize, batch: u64, may_ask: bool) -> BatchOutcome {
        let path = &mut self.ways[way];
        let reports = || self.ends.iter().enumerate().filter_map(|(nth, end)| Some((nth, end.held.get(&batch)?)));
        let leaves = reports().filter(|(nth, _)| path.from.is_none_or(|from| from == *nth));
        let arrives = reports().filter(|(nth, _)| path.from.is_none_or(|from| from != *nth));
        let up: Vec<&PackedDigest> = leaves.map(|(_, report)| &report.out).collect();
        let down: Vec<&PackedDigest> = arrives.map(|(_, report)| &report.came).collect();
        // Shapes were compared when the reports came.
        path.rolling.put(batch, &up, &down, may_ask).unwrap_or(BatchOutcome::Compared)
    }

    /// The digests that are compared on a way: the end, and 0 for what leaves by it or 1 for what arrives.
    fn digests(&self, way: usize) -> impl Iterator<Item = (usize, usize)> {
        let from = self.ways.get(way).and_then(|way| way.from);
        let of_end = move |end: usize| match from {
            None => [Some((end, 0)), Some((end, 1))],
            Some(from) => [Some((end, usize::from(from != end))), None],
        };
        (0..self.ends.len()).flat_map(of_end).flatten()
    }

    /// True if the smallest digests of a way can be had in more cells.
    fn can_be_larger(&self, way: usize, batch: u64) -> bool {
        let digest = |(end, nth): (usize, usize)| {
            let held = self.ends[end].held.get(&batch)?;
            Some((held.digest(nth).filter(|digest| !digest.is_empty())?.shape().cells(), held.more[nth]))
        };
        let smallest = self.digests(way).filter_map(digest).map(|(cells, _)| cells).min();
        let mut of_smallest = self.digests(way).filter_map(digest).filter(|(cells, _)| Some(*cells) == smallest);
        smallest.is_some() && of_smallest.all(|(_, larger)| larger == LargerDigest::Possible)
    }

    fn larger(&self, end: usize, batch: u64, nth: usize) -> LargerDigest {
        self.ends[end].held.get(&batch).map_or(LargerDigest::None, |held| held.more[nth])
    }

    /// Asks for more of a batch, and of those behind it that have come already.
    fn ask(&mut self, way: usize, batch: u64, cells: usize) {
        let until = batch.saturating_add(STAYS_LARGE);
        if let Some(ahead) = self.more.ahead.get_mut(way) {
            *ahead = Some((cells, until));
        }
        for end in 0..self.ends.len() {
            let held: Vec<u64> = self.ends[end].held.range(batch..=until).map(|(batch, _)| *batch).collect();
            held.into_iter().for_each(|batch| self.ask_ahead(end, batch));
        }
    }

    /// Asks for more of a report if so many cells were not enough of late.
    pub(super) fn ask_ahead(&mut self, end: usize, batch: u64) {
        let mut ways = [0; 2];
        let mut most = 0;
        for way in 0..self.ways.len() {
            let Some((cells, until)) = self.more.ahead.get(way).copied().flatten() else { continue };
            for nth in self.digests(way).filter(|(of, _)| *of == end).map(|(_, nth)| nth) {
                let Some(held) = self.ends[end].held.get(&batch) else { continue };
                let is_small =
                    held.digest(nth).is_some_and(|digest| !digest.is_empty() && digest.shape().cells() < cells);
                if batch <= until && is_small && held.more[nth] == LargerDigest::Possible {
                    ways[nth] = WAYS[nth];
                    most = most.max(cells);
                }
            }
        }
        if most == 0 || self.more.wanted.len() >= MOST_WANTED {
            return;
        }
        let Some(held) = self.ends[end].held.get_mut(&batch) else { return };
        for (larger, _) in held.more.iter_mut().zip(ways).filter(|(_, way)| *way != 0) {
            *larger = LargerDigest::Asked;
        }
        let cells = u32::try_from(most).unwrap_or(u32::MAX);
        let question = MoreQuestion { batch, cells, ways: ways[0] | ways[1] };
        self.more.wanted.push(MoreWanted { end: self.ends[end].name.clone(), question });
    }
}

impl WaitingReport {
    /// The digest of packets that left (0) or arrived (1).
    fn digest(&self, nth: usize) -> Option<&PackedDigest> {
        [&self.out, &self.came].get(nth).copied()
    }

    /// Takes the digests that were asked for, if they are larger.
    fn take_reply(&mut self, reply: MoreReply) {
        let asked = self.more.map(|larger| larger == LargerDigest::Asked);
        let mut larger = [None, None];
        let mut rest = LargerDigest::None;
        if let MoreReply::Report { report, has_more } = reply {
            rest = LargerDigest::new(has_more);
            larger = [Some(report.out), Some(report.came)];
        }
        for (nth, ours) in [&mut self.out, &mut self.came].into_iter().enumerate().filter(|(nth, _)| asked[*nth]) {
            self.more[nth] = LargerDigest::None;
            let fits = |digest: &PackedDigest| {
                let (new, old) = (digest.shape(), ours.shape());
                new.base() == old.base() && new.cells() > old.cells() && digest.packets() == ours.packets()
            };
            if let Some(digest) = larger[nth].take().filter(fits) {
                *ours = digest;
                self.more[nth] = rest;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;
    use crate::digest::tests::packet;
    use crate::segment::{ReportMarks, SegmentFinding};
    use crate::signature::{Fields, Signature};

    fn full() -> DigestShape {
        DigestShape::new(384, 1, Fields::ALL).foldable()
    }

    fn report(end: &str, batch: u64, out: std::ops::Range<u32>, came: std::ops::Range<u32>) -> MeterReport {
        let digest = |packets: std::ops::Range<u32>| {
            let mut digest = Digest::new(full());
            packets.for_each(|nth| digest.insert(&Signature::new(&packet(nth), Fields::ALL)));
            digest
        };
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
            facts: crate::segment::ReportFacts::default(),
        }
    }

    fn folded(report: &MeterReport, shapes: [DigestShape; 2]) -> MeterReport<PackedDigest> {
        let MeterReport { out, came, .. } = report;
        MeterReport { out: out.folded(shapes[0]), came: came.folded(shapes[1]), ..report.clone() }.into()
    }

    fn small(report: &MeterReport) -> MeterReport<PackedDigest> {
        folded(report, [full().base(); 2])
    }

    fn hear(segment: &mut MeteredSegment, report: &MeterReport) -> SegmentFinding {
        segment.on_marked(small(report), ReportMarks { has_more: true, ..ReportMarks::default() }).unwrap()
    }

    /// Both ends report that nothing passed.
    fn idle(segment: &mut MeteredSegment, batch: u64) -> SegmentFinding {
        hear(segment, &report("a", batch, 0..0, 0..0));
        hear(segment, &report("b", batch, 0..0, 0..0))
    }

    fn reply(report: &MeterReport, question: MoreQuestion) -> MoreReply {
        let shapes = question.shapes([full(); 2]);
        let bytes = folded(report, shapes);
        MoreReply::Report { report: Box::new(bytes), has_more: shapes.iter().any(|shape| shape.cells() < 384) }
    }

    /// A link of which `a` sends 100 packets in batch 13, and `b` sees 60 of them.
    fn overfull() -> (MeteredSegment, [MeterReport; 2]) {
        let mut segment = MeteredSegment::new(2, 1);
        for batch in 10..13 {
            idle(&mut segment, batch);
        }
        let reports = [report("a", 13, 0..100, 0..0), report("b", 13, 0..0, 40..100)];
        reports.iter().for_each(|report| assert_eq!(hear(&mut segment, report), SegmentFinding::default()));
        (segment, reports)
    }

    #[test]
    fn too_few_cells_are_asked_for_more_and_every_loss_is_named() {
        let (mut segment, reports) = overfull();
        let wanted = segment.wanted();
        assert_eq!(wanted.iter().map(|wanted| wanted.end.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!((wanted[0].question.ways, wanted[1].question.ways), (1, 2));
        let asked = wanted[0].question;
        assert_eq!(MoreQuestion::parse(&asked.to_bytes()), Some(asked));
        // Those that come meanwhile wait, and are asked for at once.
        let later = ["a", "b"].map(|end| report(end, 14, 0..0, 0..0));
        later.iter().for_each(|report| assert_eq!(hear(&mut segment, report).losses.len(), 0));
        assert!(segment.wanted().is_empty(), "nothing passed in that batch");
        let busy = report("a", 15, 200..210, 0..0);
        hear(&mut segment, &busy);
        assert_eq!(segment.wanted().len(), 1);
        segment.on_more("a", 13, reply(&reports[0], asked));
        let finding = segment.on_more("b", 13, reply(&reports[1], wanted[1].question));
        assert_eq!((finding.losses.len(), finding.unnamed), (40, 0));
        assert!(finding.losses.iter().all(|lost| lost.batch == 13));
    }

    #[test]
    fn a_meter_that_does_not_reply_holds_nothing_up_for_long() {
        let (mut segment, reports) = overfull();
        segment.on_more("a", 13, reply(&reports[0], MoreQuestion { batch: 13, cells: u32::MAX, ways: 3 }));
        let mut all = SegmentFinding::default();
        for batch in 14..30 {
            for end in ["a", "b"] {
                let finding = hear(&mut segment, &report(end, batch, 0..0, 0..0));
                assert!(batch >= 23 || finding == SegmentFinding::default(), "batch {batch}");
                all.unnamed += finding.unnamed;
                all.losses.extend(finding.losses);
            }
        }
        assert_eq!(all.unnamed + all.losses.len() as u64, 40);
    }

    #[test]
    fn a_reply_that_nobody_asked_for_or_that_says_something_else_is_not_taken() {
        let (mut segment, reports) = overfull();
        let wanted = segment.wanted();
        let other = report("a", 13, 0..90, 0..0);
        segment.on_more("a", 13, reply(&other, wanted[0].question));
        segment.on_more("c", 13, reply(&reports[0], wanted[0].question));
        segment.on_more("a", 99, reply(&reports[0], wanted[0].question));
        let finding = segment.on_more("a", 13, reply(&reports[0], wanted[0].question));
        assert_eq!(finding, SegmentFinding::default(), "it was answered already");
        let finding = segment.on_more("b", 13, MoreReply::Gone);
        assert_eq!(finding, SegmentFinding::default());
        idle(&mut segment, 14);
        let finding = idle(&mut segment, 15);
        assert!(finding.unnamed + finding.losses.len() as u64 <= 40, "{finding:?}");
        assert_eq!(MoreReply::parse(&[]), Ok(MoreReply::Gone));
        assert!(MoreReply::parse(&[2]).is_err() && MoreReply::parse(&[0, 1]).is_err());
    }
}
