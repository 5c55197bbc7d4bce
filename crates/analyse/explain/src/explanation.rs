//! A capture that has been read: what is said of its connections.

use std::io::{self, Read};

use capture::{CaptureError, CaptureReader};
use radar::compare::{self, CaptureContents, CaptureInput, CompareError, CompareOptions, Comparison, MissingPacket};
use units::Progress;

use crate::answer::{ConnectionAnswer, ExplainAnswer};
use crate::connection::ConnectionSummary;
use crate::evidence::EVENT_LINK;
use crate::explainer::{CaptureCounts, CaptureExplainer, ExplainError, ExplainOptions};
use crate::other_end;
use crate::pool::{FallenOut, PoolResult};
use crate::scans::ScanAnswer;
use crate::terms::TimeCause;

/// Opens a capture at its beginning.
pub type OpenCapture<'a> = &'a dyn Fn() -> io::Result<Box<dyn Read>>;

/// Explanation of the connections of a capture.
#[derive(Debug)]
pub struct Explanation {
    pub(crate) connections: Vec<ConnectionSummary>,
    pub(crate) scans: Vec<ScanAnswer>,
    pub(crate) counts: CaptureCounts,
    fallen_out: FallenOut,
    super_frames: u64,
    /// Super-frames in the capture of the other end, if there is one.
    super_frames_other_end: Option<u64>,
    /// Super-frames of both whose packets' size is inferred, and packets that overlap with lost ones.
    inferred: u64,
    misfits: u64,
}

/// True if a capture has events of a kernel: a recording begins with one.
pub fn has_events(open: OpenCapture<'_>) -> Result<bool, ExplainError> {
    let source = open().map_err(|error| ExplainError::Capture(CaptureError::Read(error)))?;
    let mut reader = CaptureReader::new(source).map_err(ExplainError::Capture)?;
    // Damage is found and reported when the capture is read.
    Ok(matches!(reader.next(), Ok(Some(record)) if record.link_number == u32::from(EVENT_LINK)))
}

/// Reads a capture and explains its connections.
pub fn explain(
    open: OpenCapture<'_>,
    options: &ExplainOptions,
    progress: &dyn Progress,
) -> Result<Explanation, ExplainError> {
    let mut explainer = CaptureExplainer::new(options, Vec::new());
    let source = open().map_err(|error| ExplainError::Capture(CaptureError::Read(error)))?;
    explainer.read(source, progress)?;
    let (PoolResult { summaries: connections, scans, fallen_out }, counts) = explainer.finish();
    let super_frames = connections.iter().map(|summary| summary.super_frames).sum();
    Ok(Explanation {
        connections,
        scans,
        counts,
        fallen_out,
        super_frames,
        super_frames_other_end: None,
        inferred: 0,
        misfits: 0,
    })
}

/// Reason why two captures could not be compared.
#[derive(Debug)]
pub struct OtherEndError {
    pub error: CompareError,
    /// True if the error came while packets of the other end were looked for in the first capture.
    pub on_way_back: bool,
}

/// Packets of one capture that the other lacks, what is in both, and packets that overlap with those.
type MissingReport = (Vec<MissingPacket>, [CaptureContents; 2], u64);

/// Packets of `up` that `down` lacks.
fn missing(
    up: CaptureInput<'_>,
    down: CaptureInput<'_>,
    progress: &dyn Progress,
) -> Result<MissingReport, CompareError> {
    match compare::compare(up, down, &CompareOptions { exact: true, ..CompareOptions::default() }, progress) {
        Ok(comparison) => {
            let Comparison { lost, up, down, misfits, .. } = comparison;
            let was_cut = up.super_frames + down.super_frames > 0;
            Ok((lost, [up, down], if was_cut { misfits } else { 0 }))
        }
        // Nothing was lost on the way there, only on the way back.
        Err(CompareError::Swapped { .. }) => Ok((Vec::new(), [CaptureContents::default(); 2], 0)),
        Err(error) => Err(error),
    }
}

impl Explanation {
    /// Keeps the connections that took longest, idle time not counted; the slowest first.
    pub fn keep_slowest(&mut self, count: usize) {
        self.connections.sort_by_key(|summary| std::cmp::Reverse(busy_time(summary)));
        self.connections.truncate(count);
    }

    /// Uses a capture of the other end, `other`, beside `one`, which was explained: packets that one of them lacks were lost.
    pub fn read_other_end(
        &mut self,
        one: OpenCapture<'_>,
        other: OpenCapture<'_>,
        progress: &dyn Progress,
    ) -> Result<(), OtherEndError> {
        let [up, down] = [one, other].map(|open| CaptureInput { open });
        let there = missing(up, down, progress).map_err(|error| OtherEndError { error, on_way_back: false })?;
        let back = missing(down, up, progress).map_err(|error| OtherEndError { error, on_way_back: true })?;
        let (there, [up, down], misfits_there) = there;
        let (back, [down_again, up_again], misfits_back) = back;
        self.misfits = misfits_there + misfits_back;
        self.super_frames_other_end = Some(down.super_frames.max(down_again.super_frames));
        self.inferred = up.inferred.max(up_again.inferred) + down.inferred.max(down_again.inferred);
        other_end::apply(&mut self.connections, [&there, &back]);
        Ok(())
    }

    /// Reads the capture again for the charts of the slowest connections.
    pub fn trace_slowest(
        &mut self,
        count: usize,
        open: OpenCapture<'_>,
        options: &ExplainOptions,
        progress: &dyn Progress,
    ) -> Result<(), ExplainError> {
        let slowest = self.slowest(count);
        let traced = slowest.iter().map(|place| self.connections[*place].traced_start()).collect();
        let mut explainer = CaptureExplainer::new(options, traced);
        let source = open().map_err(|error| ExplainError::Capture(CaptureError::Read(error)))?;
        explainer.read(source, progress)?;
        let (PoolResult { summaries: mut again, .. }, _) = explainer.finish();
        for place in slowest {
            let start = self.connections[place].traced_start();
            let same = again.iter_mut().find(|summary| summary.trace.is_some() && summary.traced_start() == start);
            self.connections[place].trace = same.and_then(|summary| summary.trace.take());
        }
        Ok(())
    }

    /// Places of the connections that took longest, the slowest first.
    pub(crate) fn slowest(&self, count: usize) -> Vec<usize> {
        let mut places: Vec<usize> = (0..self.connections.len()).collect();
        places.sort_by_key(|place| (std::cmp::Reverse(busy_time(&self.connections[*place])), *place));
        places.truncate(count);
        places
    }

    pub fn answer(&self) -> ExplainAnswer {
        ExplainAnswer {
            connections: self.connections.iter().map(ConnectionAnswer::from).collect(),
            scans: self.scans.clone(),
            ended_early: self.fallen_out.ended,
            dropped: self.fallen_out.dropped,
            super_frames: self.super_frames,
            super_frames_other_end: self.super_frames_other_end,
            packets: self.counts.packets,
            not_tcp: self.counts.not_tcp,
            skipped: self.counts.skipped(),
        }
    }

    /// Number of connections of all kinds.
    pub(crate) fn connection_count(&self) -> u64 {
        self.connections.len() as u64 + self.scans.iter().map(|scan| scan.connections).sum::<u64>()
    }

    pub fn is_empty(&self) -> bool {
        self.connections.is_empty() && self.scans.is_empty()
    }

    /// Notes on data that the capture lacks, and on remedies.
    pub fn notes(&self) -> Vec<String> {
        let count = |of: &dyn Fn(&ConnectionSummary) -> bool| self.connections.iter().filter(|it| of(it)).count();
        let all = self.connections.len();
        let mut notes = Vec::new();
        let mut note = |found: usize, what: &str| {
            if found > 0 {
                notes.push(format!("{found} of {all} connections: {what}"));
            }
        };
        note(
            count(&|it| !it.has_syn),
            "no SYN in the capture, so that window scale, segment size and who opened it are inferred; begin the capture before \
             the connection",
        );
        note(
            count(&|it| !it.has_both_directions),
            "one direction only, so that causes are guessed; capture both directions",
        );
        note(
            count(&|it| it.options_cut),
            "the capture ends within the TCP options, so that SACK and timestamps are missing; use a snap length of 128 or more",
        );
        if self.counts.duplicates > 0 {
            notes.push(format!(
                "{} packets are in the capture twice (a bridge, or `any`): counted once",
                self.counts.duplicates
            ));
        }
        if self.counts.unusable > 0 {
            notes.push(format!(
                "{} packets of TCP are fragments or cut within their header: not used",
                self.counts.unusable
            ));
        }
        notes.extend(self.notes_of_offloads());
        let FallenOut { ended, dropped } = self.fallen_out;
        if ended + dropped > 0 {
            notes.push(format!(
                "memory was full: {ended} connections that had been silent were taken for over, and {dropped} that took the least \
                 time are not listed; more memory (--memory), or --flow, lists more"
            ));
        }
        if self.counts.is_truncated {
            notes.push(format!(
                "the capture ends within a record: the {} packets before it were used",
                self.counts.packets
            ));
        }
        notes
    }
}

impl Explanation {
    fn notes_of_offloads(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let all = self.super_frames + self.super_frames_other_end.unwrap_or_default();
        if all > 0 {
            notes.push(format!(
                "{all} super-frames of segmentation or receive offload were cut into the packets of the wire"
            ));
        }
        if self.inferred > 0 {
            notes.push(format!(
                "of {} super-frames the packets' size is inferred from other packets; to be sure, capture again after: ethtool -K \
                 INTERFACE tso off gso off gro off lro off",
                self.inferred
            ));
        }
        if self.misfits > 0 {
            notes.push(format!(
                "{} packets of one capture overlap with those that it lacks of the other: perhaps super-frames were cut elsewhere \
                 than on the wire",
                self.misfits
            ));
        }
        notes
    }
}

/// Idle time is nobody's wait.
pub(crate) fn busy_time(summary: &ConnectionSummary) -> u64 {
    let idle = summary.parts.sorted().iter().filter(|(cause, ..)| *cause == TimeCause::Idle).map(|(.., ns)| ns).sum();
    summary.duration.saturating_sub(idle)
}
