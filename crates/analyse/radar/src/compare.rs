//! Packets of one capture that are missing in another: LossRadar (li-thesis §5.3) over files.
//!
//! Both captures are read in step, and one digest has their difference: packets of UP are added, packets of DOWN removed.
//! Before the digest is too full to be decoded, it is emptied into a list of missing packets; late packets are removed from
//! that list. Hence memory depends on the packets that are lost or under way, not on the size of the captures. The details
//! of lost packets come from reading UP once more:
//!
//! ```text
//!   UP   ──insert──▶ ┌────────┐ decode  ┌─────────┐  end   ┌─────────┐ ──▶ lost: time, flow, place
//!   DOWN ──remove──▶ │ digest │ ──────▶ │ pending │ ─────▶ │ details │
//!                    └────────┘         └─────────┘        └─────────┘ ◀── UP again
//! ```
//!
//! Captures need not begin and end together: a long run of packets before DOWN's first frame, or after its
//! last one, was not there to be seen. Clocks need not agree: packets that both have show by how much they differ.
//!
//! Invariants: what is called lost was in UP more often than in DOWN; what could not be named is counted; the same
//! files give the same result.

pub(crate) mod clock;
mod cutting;
mod details;
pub(crate) mod difference;
mod direction;
mod edges;
mod evidence;
mod merge;
mod refusal;
pub mod report;
mod side;

use std::fmt;
use std::io::{self, Read};

use units::Progress;

use crate::loss::Loss;
use crate::packet::Flow;
use crate::read::DEPTH;
use crate::signature::Fields;
use capture::{CaptureError, CaptureReader, CaptureRecord};
use cutting::{CutForm, CutMisfits};
use details::LossDetails;
pub use evidence::CaptureEvidence;
use merge::MergeResult;
pub use refusal::CompareError;
use refusal::{judged, refusal};
pub(crate) use side::{AttemptStop, CaptureSide, CapturedPacket};

/// A run of packets at either end of UP that are all missing, and longer than both of these, is outside of DOWN's
/// capture and not lost, unless DOWN has frames of that time. A shorter run is lost.
pub(crate) const LONG_RUN: LongRun = LongRun { packets: 1_000, nanoseconds: 100_000_000 };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LongRun {
    pub packets: u64,
    pub nanoseconds: u64,
}

/// A capture that can be read from its beginning several times.
#[derive(Clone, Copy)]
pub struct CaptureInput<'a> {
    pub open: &'a dyn Fn() -> io::Result<Box<dyn Read>>,
}

impl fmt::Debug for CaptureInput<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Input")
    }
}

impl CaptureInput<'_> {
    fn read(&self) -> Result<CaptureReader<'static>, CaptureError> {
        CaptureReader::new((self.open)().map_err(CaptureError::Read)?)
    }
}

#[derive(Clone, Copy, Debug)]
pub struct CompareOptions {
    pub fields: Fields,
    /// Packet by packet, without digests and without a bound on memory.
    pub exact: bool,
    /// Bytes for the names of what is lost or on its way.
    pub memory: u64,
    /// Judges packets that seem to lie outside of DOWN's capture, too.
    pub whole: bool,
    /// A lost packet with so little time to live has expired.
    pub ttl: u8,
}

impl Default for CompareOptions {
    fn default() -> Self {
        Self { fields: Fields::ALL, exact: false, memory: 256_000_000, whole: false, ttl: 1 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureRole {
    Up,
    Down,
}

/// Contents of one capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaptureContents {
    /// IP packets that are compared.
    pub packets: u64,
    /// Packets that no router forwards: never compared.
    pub link_local: u64,
    /// Frames that are no IP packets.
    pub not_ip: u64,
    /// Frames of a link type that is not read here.
    pub other_links: u64,
    /// The longest frame, as it was on the wire.
    pub longest: u32,
    /// Fewest bytes that were kept of a packet that was cut, from the IP header on.
    pub kept: Option<usize>,
    /// Super-frames that were cut into the packets of the wire, and those of them whose packets' size is inferred.
    pub super_frames: u64,
    pub inferred: u64,
    /// Super-frames that could not be cut.
    pub uncut: u64,
    /// The file ends within a record.
    pub truncated: bool,
    /// The times of its first and last frame.
    pub span: Option<(u64, u64)>,
}

impl CaptureContents {
    /// The times of its first and last frame as the comparison counts them.
    fn first(&self) -> i64 {
        self.span.map_or(0, |(first, _)| i64::try_from(first).unwrap_or(i64::MAX))
    }

    fn last(&self) -> i64 {
        self.span.map_or(0, |(_, last)| i64::try_from(last).unwrap_or(i64::MAX))
    }
}

/// Packets of UP that were not judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutsideCounts {
    pub before: u64,
    pub after: u64,
}

impl OutsideCounts {
    pub fn packets(&self) -> u64 {
        self.before + self.after
    }
}

/// A packet of UP that DOWN does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingPacket {
    pub loss: Loss,
    /// Its number among the frames of UP, from 0.
    pub frame: u64,
    /// Length on the wire.
    pub len: u32,
}

/// A flow that lost packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowLosses {
    pub flow: Flow,
    /// Its packets in UP.
    pub packets: u64,
    pub lost: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    pub up: CaptureContents,
    pub down: CaptureContents,
    /// Lost packets, in the order of UP.
    pub lost: Vec<MissingPacket>,
    /// Their flows, those with most losses first.
    pub flows: Vec<FlowLosses>,
    /// Lost packets beyond those: more than there was memory for. About, if `only_down` is not zero.
    pub unnamed: u64,
    pub outside: OutsideCounts,
    /// Lost packets at the very ends of UP, too few to be outside: perhaps DOWN began later or ended earlier.
    pub at_edges: OutsideCounts,
    /// Packets of DOWN that UP does not have, of the time in which UP was taken.
    pub only_down: u64,
    /// Packets of DOWN from before or after UP's capture.
    pub down_outside: u64,
    /// UP does not even have another copy of some packets that only DOWN has.
    pub up_lacks: bool,
    /// UP has packets of the way back of those that only DOWN has: both captures hold both directions.
    pub both_ways: bool,
    /// Packets of UP that go from DOWN's side to UP's: none of these could be lost on the way that is compared.
    pub other_way: u64,
    /// Time by which DOWN's clock, and the way there, is ahead: in the middle, and its change from the beginning to the
    /// end.
    pub skew: Option<i64>,
    pub drift: i64,
    /// Packets were looked into so far, from the IP header on.
    pub depth: usize,
    /// The number of equal packets of which it is not known which were lost.
    pub alike: u64,
    /// Some packet is in both.
    pub share_packets: bool,
    /// Packets that only DOWN has and that overlap with lost ones: super-frames that were cut wrongly.
    pub misfits: u64,
    /// Identifications were not compared, because super-frames do not say those of their packets.
    pub without_ids: bool,
    /// Evidence of both captures about each lost packet.
    pub evidence: CaptureEvidence,
}

impl Comparison {
    /// All that was lost, named or not.
    pub fn losses(&self) -> u64 {
        self.lost.len() as u64 + self.unnamed
    }

    /// True if super-frames were cut, and more than a few of their packets do not fit the other capture's.
    fn has_wrong_cuts(&self) -> bool {
        const FEW: u64 = 100;
        self.up.super_frames + self.down.super_frames > 0
            && self.misfits * FEW > self.losses().min(details::MOST_EXTRA as u64)
    }

    /// Packets that could have been lost.
    pub fn judged(&self) -> u64 {
        (self.up.packets - self.outside.packets()).saturating_sub(self.other_way)
    }
}

/// Inputs of a comparison that do not belong to one capture alone.
pub(crate) struct ComparisonContext<'a> {
    up: CaptureInput<'a>,
    down: CaptureInput<'a>,
    options: CompareOptions,
    progress: &'a dyn Progress,
    form: CutForm,
}

/// Compares. `progress` gets the frames read so far of one capture.
pub fn compare<'a>(
    up: CaptureInput<'a>,
    down: CaptureInput<'a>,
    options: &CompareOptions,
    progress: &'a dyn Progress,
) -> Result<Comparison, CompareError> {
    let mut session = ComparisonContext::new(up, down, options, progress);
    session.form = CutForm::watch(options.fields.ip_id && (options.fields.tcp || options.fields.content));
    let mut depth = DEPTH;
    let mut with_digest = !options.exact;
    let mut cuts = 0;
    loop {
        match session.attempt(depth, with_digest) {
            Ok((comparison, misfits)) => {
                if !session.refine(&comparison, &misfits)? {
                    let comparison = judged(comparison, options)?;
                    let evidence = session.evidence(&comparison).map_err(refusal)?;
                    return Ok(Comparison { evidence, ..comparison });
                }
            }
            Err(AttemptStop::SuperFrames) => session.form.cut(session.surveyed()?),
            Err(AttemptStop::NoPayload) => session.form.leave_out_payload(),
            Err(AttemptStop::NoIdentification) => session.leave_out_ids(),
            // Captures are cut at one length, as a rule, and their first packets show it.
            Err(AttemptStop::Cut(kept)) => {
                cuts += 1;
                depth = if cuts < 3 { kept } else { session.shallowest()? };
            }
            Err(AttemptStop::Stuck) => with_digest = false,
            Err(AttemptStop::Capture(which, error)) => return Err(CompareError::Capture(which, error)),
            Err(AttemptStop::Interrupted) => return Err(CompareError::Interrupted),
        }
    }
}

impl<'a> ComparisonContext<'a> {
    pub(crate) fn new(
        up: CaptureInput<'a>,
        down: CaptureInput<'a>,
        options: &CompareOptions,
        progress: &'a dyn Progress,
    ) -> Self {
        Self { up, down, options: *options, progress, form: CutForm::leave() }
    }

    fn input(&self, which: CaptureRole) -> CaptureInput<'a> {
        match which {
            CaptureRole::Up => self.up,
            CaptureRole::Down => self.down,
        }
    }

    pub(crate) fn side(&self, which: CaptureRole, depth: usize) -> Result<CaptureSide<'a>, AttemptStop> {
        let reader = self.input(which).read().map_err(|error| AttemptStop::Capture(which, error))?;
        Ok(CaptureSide::new(reader, which, depth, self.form.clone(), self.progress))
    }

    fn attempt(&self, depth: usize, with_digest: bool) -> Result<(Comparison, CutMisfits), AttemptStop> {
        let skips = !self.options.exact && !self.options.whole;
        let mut merged = self.merge(depth, with_digest, skips)?;
        if merged.is_doubtful() {
            merged = self.merge(depth, with_digest, false)?;
        }
        let details = self.details(&merged, depth)?;
        let lost = details.lost.iter().filter_map(|lost| Some((lost.loss.flow, lost.loss.tcp?)));
        let misfits = CutMisfits::of(&details.extra_segments, lost);
        let comparison = self.told(merged, details, depth);
        Ok((Comparison { misfits: misfits.packets, ..comparison }, misfits))
    }

    fn told(&self, merged: MergeResult, details: LossDetails, depth: usize) -> Comparison {
        let outside = edges::outside(&merged, &details, self.options.whole);
        let scale = merged.missing.scale();
        let all = merged.losses(details.only_down_named);
        let LossDetails {
            mut lost,
            mut directions,
            flow_packets,
            only_down,
            down_outside,
            up_lacks,
            both_ways,
            alike,
            ..
        } = details;
        let after = lost.split_off(lost.len() - outside.named_after);
        for beyond in lost.drain(..outside.named_before).chain(after) {
            directions.uncount(&beyond.loss.flow, scale);
        }
        let flows = flow_packets.flows(&lost);
        let judged = all.saturating_sub((outside.named_before + outside.named_after) as u64 * scale);
        let MergeResult { up, down, clock, down_skipped, .. } = merged;
        Comparison {
            up,
            down,
            unnamed: if scale == 1 { 0 } else { judged.saturating_sub(lost.len() as u64) },
            flows,
            outside: outside.packets,
            at_edges: outside.at_edges,
            only_down,
            down_outside: down_skipped.packets() + down_outside,
            up_lacks,
            both_ways,
            other_way: directions.other_way(outside.clear_of_edges(&lost, scale)),
            skew: clock.skew(),
            drift: clock.drift(),
            depth,
            alike,
            share_packets: clock.is_known() || scale == 1 && all < up.packets - merged.up_skipped.packets(),
            lost,
            misfits: 0,
            without_ids: self.form.is_without_ids(),
            evidence: CaptureEvidence::default(),
        }
    }

    /// Number of bytes that every packet of both captures has at least.
    pub(crate) fn shallowest(&self) -> Result<usize, CompareError> {
        let mut depth = DEPTH;
        for which in [CaptureRole::Up, CaptureRole::Down] {
            let reader = self.input(which).read().map_err(|error| CompareError::Capture(which, error))?;
            let mut side = CaptureSide::new(reader, which, 0, CutForm::leave(), self.progress);
            while side.next().map_err(refusal)?.is_some() {}
            depth = depth.min(side.contents().kept.unwrap_or(depth));
        }
        Ok(depth)
    }
}

/// Hands out the frames with these numbers, which must rise.
pub fn frames<E>(
    input: CaptureInput<'_>,
    numbers: impl IntoIterator<Item = u64>,
    mut take: impl FnMut(&CaptureRecord<'_>) -> Result<(), E>,
) -> Result<Result<(), E>, CaptureError> {
    let mut reader = input.read()?;
    for number in numbers {
        loop {
            let at = reader.packets();
            match reader.next()? {
                None => return Ok(Ok(())),
                Some(record) if at == number => {
                    if let Err(error) = take(&record) {
                        return Ok(Err(error));
                    }
                    break;
                }
                Some(_) => {}
            }
        }
    }
    Ok(Ok(()))
}

#[cfg(test)]
mod tests;
