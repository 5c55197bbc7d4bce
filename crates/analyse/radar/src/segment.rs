//! A stretch of network with a meter at each end, and what it lost: li-thesis §5.3.4, §5.4.2, §5.8.
//!
//! Meters report what went out and what came in, batch by batch, by their own clocks. Reports are compared in step: batch
//! `n` when every end has reported it. On a link (two ends) each way is compared for itself; of a black box with more, all
//! that went in is compared with all that came out.
//!
//! A packet is lost if it is still missing a batch later; where packets carry a number of the link's, as soon as the far
//! end has seen one as late. Invariant: what a meter missed, and what passed while not all of them were listening, is never
//! called lost. Memory is what [`MeteredSegment::bytes`] says. Reports are kept as they were sent until they are
//! compared, and a gap between two of them costs the same at any length.

mod facts;
mod form;
mod invariants;
mod marks;
mod more;
mod refused;
mod standing;

use std::collections::{BTreeMap, VecDeque};

use crate::digest::{Digest, DigestMismatch, DigestShape, PackedDigest};
use crate::rolling::{PacketDifference, RollingDifference, SettledDifference, UnnamedDifference, map_bytes};
use crate::signature::Signature;

use standing::{FindingStanding, has_any, has_passed, remember};

pub use facts::ReportFacts;
pub use form::ReportError;
pub use marks::ReportMarks;
pub use more::{MoreQuestion, MoreReply, MoreWanted};
pub use refused::ReportRefusal;

/// Report of a meter on one batch: with digests that it fills, or [`PackedDigest`] ones that came from elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeterReport<D = Digest> {
    pub segment: String,
    pub end: String,
    /// The incarnation of the meter: changes when the meter restarts.
    pub life: u64,
    /// The number of the batch: since 1970, in units of `length`.
    pub batch: u64,
    /// Nanoseconds that a batch lasts.
    pub length: u64,
    /// Packets that passed and that the meter could not look at.
    pub missed: u64,
    /// Packets that left by this end, into the segment, and the latest number of the link's that went with them.
    pub out: D,
    pub out_number: Option<u32>,
    /// Packets that arrived by this end.
    pub came: D,
    pub came_number: Option<u32>,
    pub facts: ReportFacts,
}

impl From<MeterReport> for MeterReport<PackedDigest> {
    fn from(report: MeterReport) -> Self {
        let MeterReport { segment, end, life, batch, length, missed, out, out_number, came, came_number, facts } =
            report;
        let (out, came) = (PackedDigest::from(&out), PackedDigest::from(&came));
        Self { segment, end, life, batch, length, missed, out, out_number, came, came_number, facts }
    }
}

/// Result of comparing some batches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SegmentFinding {
    pub losses: Vec<LostSignature>,
    /// Missing, but a meter missed packets at that time.
    pub unsure: u64,
    /// Lost, and nobody knows what.
    pub unnamed: u64,
    /// Arrived without having been sent: entered in between, or missed upstream.
    pub extra: u64,
    /// Packets that were reported lost and arrived after all: each as it was reported, and as often as it came.
    pub late: Vec<LostSignature>,
    /// Batches that could not be compared because an end did not report them.
    pub skipped: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostSignature {
    pub signature: Signature,
    pub times: u32,
    /// The batch that it was found in; it passed in this one or the one before.
    pub batch: u64,
    /// The number of the end by which it entered; `None` in a black box.
    pub from: Option<usize>,
}

/// Batches that are kept while an end is silent, and their bytes; of large ones at least the last few batches.
const MOST_HELD: usize = 512;
const MOST_HELD_BYTES: usize = 8 << 20;
const LEAST_HELD: usize = 16;

#[derive(Debug)]
pub struct MeteredSegment {
    /// Number of ends of the segment.
    expected: usize,
    /// Batches that a packet may be on its way; more where clocks differ by more.
    patience: u64,
    /// Shapes of the digests of packets that leave and enter by the first end, and the duration of a batch.
    agreed: Option<([DigestShape; 2], u64)>,
    ends: Vec<SegmentEnd>,
    /// The first batch to be compared, once every end has spoken.
    next: Option<u64>,
    /// First batch that is judged.
    judged_from: u64,
    ways: Vec<SegmentPath>,
    /// Batches in which a meter missed packets, in order.
    doubtful: VecDeque<u64>,
    /// Batches that another collector judges, in order.
    elsewhere: VecDeque<u64>,
    /// Memory use of the reports that are held.
    held: usize,
    /// Larger digests that were asked for.
    more: more::MoreRequests,
}

#[derive(Debug)]
struct SegmentEnd {
    name: String,
    life: u64,
    latest: u64,
    held: BTreeMap<u64, WaitingReport>,
}

/// A report that waits for those of the other ends.
#[derive(Debug)]
struct WaitingReport {
    missed: u64,
    judges: bool,
    out: PackedDigest,
    out_number: Option<u32>,
    came: PackedDigest,
    came_number: Option<u32>,
    /// Larger digests of each way that can be had.
    more: [more::LargerDigest; 2],
}

impl WaitingReport {
    fn bytes(&self) -> usize {
        self.out.bytes() + self.came.bytes() + map_bytes::<u64, Self>(1)
    }
}

/// One way through the segment.
#[derive(Debug)]
struct SegmentPath {
    from: Option<usize>,
    rolling: RollingDifference,
    /// Packets that were recently called lost.
    called: BTreeMap<Signature, CalledLoss>,
}

/// Packets that were called lost: the batch in which they were found, and their number.
#[derive(Clone, Copy, Debug, Default)]
struct CalledLoss {
    batch: u64,
    times: u32,
}

/// Batches for which it is known what was called lost.
const REMEMBERED: u64 = 1_000;
/// Packets of each way that are remembered as lost. Lost packets beyond this number that come after all are extra instead
/// of late.
const MOST_CALLED: usize = 1 << 16;

impl MeteredSegment {
    pub fn new(expected: usize, patience: u64) -> Self {
        Self {
            expected: expected.max(2),
            patience: patience.max(1),
            agreed: None,
            ends: Vec::new(),
            next: None,
            judged_from: 0,
            ways: Vec::new(),
            doubtful: VecDeque::new(),
            elsewhere: VecDeque::new(),
            held: 0,
            more: more::MoreRequests::default(),
        }
    }

    /// Approximate memory use in bytes.
    pub fn bytes(&self) -> usize {
        let of_way = |way: &SegmentPath| way.rolling.bytes() + map_bytes::<Signature, CalledLoss>(way.called.len());
        let of_end = |end: &SegmentEnd| size_of::<SegmentEnd>() + end.name.len();
        let ways: usize = self.ways.iter().map(of_way).sum();
        let ends: usize = self.ends.iter().map(of_end).sum();
        size_of::<Self>() + ways + ends + self.held + self.doubtful.capacity() * size_of::<u64>()
    }

    /// The ends that have spoken, each with its latest batch.
    pub fn ends(&self) -> impl Iterator<Item = (&str, u64)> {
        self.ends.iter().map(|end| (end.name.as_str(), end.latest))
    }

    pub fn on_report(&mut self, report: impl Into<MeterReport<PackedDigest>>) -> Result<SegmentFinding, ReportRefusal> {
        self.on_marked(report.into(), ReportMarks::default())
    }

    /// Takes a report with its marks.
    pub fn on_marked(
        &mut self,
        report: MeterReport<PackedDigest>,
        marks: ReportMarks,
    ) -> Result<SegmentFinding, ReportRefusal> {
        let at = self.end(&report)?;
        let end = &mut self.ends[at];
        let is_new = end.life != report.life || report.batch <= end.latest || marks.begins;
        (end.life, end.latest) = (report.life, report.batch);
        if is_new {
            self.begin_anew();
        } else if self.next.is_some_and(|next| report.batch >= next) {
            let MeterReport { batch, missed, out, out_number, came, came_number, .. } = report;
            let more = [more::LargerDigest::new(marks.has_more); 2];
            let judges = marks.judges;
            let held = WaitingReport { missed, judges, out, out_number, came, came_number, more };
            self.held += held.bytes();
            end.held.insert(batch, held);
            self.ask_ahead(at, batch);
        }
        let finding = self.compare();
        self.check_invariants();
        Ok(finding)
    }

    /// The number of the end that reports, if it fits.
    fn end(&mut self, report: &MeterReport<PackedDigest>) -> Result<usize, ReportRefusal> {
        let end = || report.end.clone();
        let shapes = [report.out.shape().base(), report.came.shape().base()];
        if self.expected > 2 && shapes[0] != shapes[1] {
            return Err(ReportRefusal::Ways { end: end() });
        }
        let (agreed, length) = *self.agreed.get_or_insert((shapes, report.length));
        // Packets leave by one end of a link and arrive by the other; headers may be rewritten differently in each direction.
        let is_far = self.expected == 2 && self.ends.first().is_some_and(|first| first.name != report.end);
        let [out, came] = agreed;
        for (ours, theirs) in (if is_far { [came, out] } else { [out, came] }).into_iter().zip(shapes) {
            if ours != theirs {
                return Err(ReportRefusal::Shape { end: end(), mismatch: DigestMismatch { ours, theirs } });
            }
        }
        if length != report.length {
            return Err(ReportRefusal::Length { end: end(), ours: length, theirs: report.length });
        }
        if let Some(at) = self.ends.iter().position(|known| known.name == report.end) {
            return Ok(at);
        }
        if self.ends.len() == self.expected {
            return Err(ReportRefusal::Ends {
                end: end(),
                known: self.ends.iter().map(|end| end.name.clone()).collect(),
            });
        }
        // Pretends that an earlier incarnation has reported before, so that this report begins a new one.
        self.ends.push(SegmentEnd { name: end(), life: !report.life, latest: 0, held: BTreeMap::new() });
        Ok(self.ends.len() - 1)
    }

    /// An end came or came back: what passed before is not judged.
    fn begin_anew(&mut self) {
        self.next = None;
        self.held = 0;
        self.more = more::MoreRequests::default();
        self.ends.iter_mut().for_each(|end| end.held.clear());
        // Batches may begin again at lower numbers: a clock was set back.
        self.doubtful.clear();
        self.elsewhere.clear();
        if self.ends.len() < self.expected {
            return;
        }
        let Some(([out, came], _)) = self.agreed else { return };
        let next = self.ends.iter().map(|end| end.latest).max().unwrap_or(0).saturating_add(1);
        self.next = Some(next);
        // Packets sent just before arrive in a current batch, and clocks may differ.
        self.judged_from = next.saturating_add(self.patience);
        let way = |from, shape| SegmentPath { from, rolling: RollingDifference::new(shape), called: BTreeMap::new() };
        let is_link = self.expected == 2;
        self.ways = if is_link { vec![way(Some(0), out), way(Some(1), came)] } else { vec![way(None, out)] };
    }

    /// Compares every batch that all ends have reported.
    fn compare(&mut self) -> SegmentFinding {
        let mut finding = SegmentFinding::default();
        let first = self.next;
        while let Some(batch) = self.next {
            let all_there = self.ends.iter().all(|end| end.latest >= batch);
            let too_many = self.holds_too_many();
            if !all_there && !too_many {
                break;
            }
            let held = self.next_held(batch);
            if held > batch {
                self.next = Some(held);
                self.skip(batch, held, &mut finding);
                continue;
            }
            let all_reported = self.ends.iter().all(|end| end.held.contains_key(&batch));
            if all_reported && self.put(batch) == more::PutOutcome::Waits {
                break;
            }
            self.next = Some(batch + 1);
            let reports: Vec<WaitingReport> = self.ends.iter_mut().filter_map(|end| end.held.remove(&batch)).collect();
            self.held -= reports.iter().map(WaitingReport::bytes).sum::<usize>();
            if reports.iter().any(|report| !report.judges) {
                remember(&mut self.elsewhere, batch, 4 * self.patience + more::REPLY_WITHIN);
            }
            if all_reported {
                self.settle(batch, &reports, &mut finding);
            } else {
                finding.skipped += 1;
                self.doubt(batch);
                self.settle(batch, &[], &mut finding);
            }
        }
        if let Some(next) = self.next.filter(|_| self.next != first) {
            self.ways.iter_mut().for_each(|way| way.called.retain(|_, called| called.batch + REMEMBERED >= next));
        }
        finding
    }

    /// Ends that do not come are waited for in bounded memory.
    fn holds_too_many(&self) -> bool {
        let is_large = self.held > MOST_HELD_BYTES;
        self.ends.iter().any(|end| end.held.len() > if is_large { LEAST_HELD } else { MOST_HELD })
    }

    /// The next batch that any end has reported, or that not all ends have passed.
    fn next_held(&self, batch: u64) -> u64 {
        let held = self.ends.iter().filter_map(|end| end.held.first_key_value()).map(|(batch, _)| *batch).min();
        let passed = self.ends.iter().map(|end| end.latest).min().map_or(batch, |latest| latest.saturating_add(1));
        // If an end is so far behind that the others cannot wait, nothing is passed.
        let next = if passed > batch { held.map_or(passed, |held| held.min(passed)) } else { held.unwrap_or(batch) };
        next.max(batch)
    }

    /// Batches that no end has reported. After the first few nothing waits any more, and of doubts only the last matter:
    /// what is in between need not be looked at one by one.
    fn skip(&mut self, from: u64, to: u64, finding: &mut SegmentFinding) {
        finding.skipped += to - from;
        let settled = to.min(from.saturating_add(self.patience));
        for batch in from..settled {
            self.doubt(batch);
            self.settle(batch, &[], finding);
        }
        for batch in settled.max(to.saturating_sub(4 * self.patience + 1))..to {
            self.doubt(batch);
        }
    }

    fn doubt(&mut self, batch: u64) {
        remember(&mut self.doubtful, batch, 4 * self.patience);
    }

    /// Judges what has waited long enough.
    fn settle(&mut self, batch: u64, reports: &[WaitingReport], finding: &mut SegmentFinding) {
        let mut gave_up = false;
        for way in &mut self.ways {
            let far = |from: usize| Some((reports.get(from)?.out_number, reports.get(1 - from)?.came_number));
            let passed = way.from.and_then(far).is_some_and(|(sent, seen)| has_passed(sent, seen));
            way.rolling.look(batch);
            let passed = if passed { batch + 1 } else { 0 };
            let settled = way.rolling.settle((batch + 1).saturating_sub(self.patience), passed);
            gave_up |= settled.unnamed.is_some();
            let (doubtful, elsewhere, patience) = (&self.doubtful, &self.elsewhere, self.patience);
            let standing = |earliest: u64, found: u64| {
                let near = found.saturating_sub(patience)..=found.saturating_add(patience);
                if has_any(elsewhere, found..=found) {
                    FindingStanding::Elsewhere
                } else if has_any(doubtful, near) || has_any(elsewhere, earliest..=found) {
                    FindingStanding::Unsure
                } else {
                    FindingStanding::Sure
                }
            };
            way.judge(settled, self.judged_from, standing, finding);
        }
        // Packets under way are forgotten with the rest, and would be reported as lost.
        if gave_up {
            self.doubt(batch);
        }
    }
}

impl SegmentPath {
    fn judge(
        &mut self,
        settled: SettledDifference,
        from: u64,
        standing: impl Fn(u64, u64) -> FindingStanding,
        finding: &mut SegmentFinding,
    ) {
        for found in settled.lost.into_iter().filter(|found| found.since >= from) {
            let PacketDifference { signature, times, since: batch, earliest } = found;
            match standing(earliest, batch) {
                FindingStanding::Elsewhere => {}
                FindingStanding::Unsure => finding.unsure += u64::from(times),
                FindingStanding::Sure => {
                    self.remember(signature, times, batch);
                    finding.losses.push(LostSignature { signature, times, batch, from: self.from });
                }
            }
        }
        // Packets sent before both ends listened, or counted elsewhere, came as they should.
        let is_ours = |found: &PacketDifference| {
            found.since >= from && standing(found.since, found.since) != FindingStanding::Elsewhere
        };
        for found in settled.extra {
            let late = self.take_back(found.signature, found.times);
            if is_ours(&found) {
                finding.extra += u64::from(found.times - late.map_or(0, |late| late.times));
            }
            finding.late.extend(late);
        }
        if let Some(UnnamedDifference { left, since }) = settled.unnamed.filter(|unnamed| unnamed.since >= from) {
            match standing(since, since) {
                FindingStanding::Elsewhere => {}
                FindingStanding::Unsure => finding.unsure += left.lost,
                FindingStanding::Sure => finding.unnamed += left.lost,
            }
        }
    }

    fn remember(&mut self, signature: Signature, times: u32, batch: u64) {
        if self.called.len() < MOST_CALLED || self.called.contains_key(&signature) {
            let called = self.called.entry(signature).or_default();
            *called = CalledLoss { batch, times: called.times.saturating_add(times) };
        }
    }

    /// Those of `times` packets that were called lost, which are forgotten.
    fn take_back(&mut self, signature: Signature, times: u32) -> Option<LostSignature> {
        let called = self.called.get_mut(&signature)?;
        let (batch, times) = (called.batch, times.min(called.times));
        called.times -= times;
        if called.times == 0 {
            self.called.remove(&signature);
        }
        Some(LostSignature { signature, times, batch, from: self.from })
    }
}

#[cfg(test)]
mod tests;
