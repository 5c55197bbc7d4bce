//! All connections of a capture, in one pass. A connection ends with both FINs acknowledged, with a RST, or when its ports are
//! used again.

use std::fmt;
use std::io::Read;
use std::net::SocketAddr;
use std::sync::Arc;

use capture::{CaptureError, CaptureReader};
use units::Progress;

use crate::connection::ConnectionSummary;
use crate::evidence::{EVENT_LINK, KernelEvidence};
use crate::filter::FlowFilter;
use crate::packet::{FrameContent, read_frame};
use crate::pool::{ConnectionPool, PoolResult};

/// Options that decide how a capture is read.
#[derive(Clone, Debug)]
pub struct ExplainOptions {
    /// Filter of connections.
    pub flow: FlowFilter,
    /// Ticks of the senders' clocks in a second.
    pub hz: u32,
    /// Reports of the kernel of one end, or of both, from the time of the capture.
    pub evidence: Option<Arc<KernelEvidence>>,
    /// Bytes for what is known of connections.
    pub memory: u64,
}

impl ExplainOptions {
    /// Default of `memory`.
    pub const MEMORY: u64 = 1_000_000_000;
}

impl Default for ExplainOptions {
    fn default() -> Self {
        Self { flow: FlowFilter::default(), hz: 250, evidence: None, memory: Self::MEMORY }
    }
}

/// Addresses of both ends, in order.
type EndPair = (SocketAddr, SocketAddr);

/// Counts of frames.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CaptureCounts {
    pub packets: u64,
    pub not_tcp: u64,
    pub unusable: u64,
    pub duplicates: u64,
    /// The file ends within a record.
    pub is_truncated: bool,
}

impl CaptureCounts {
    pub(crate) fn skipped(&self) -> u64 {
        self.unusable + self.duplicates
    }
}

/// Connections that are kept for charts: their ends and the time of their first packet.
pub(crate) type TracedStarts = Vec<(EndPair, u64)>;

#[derive(Debug)]
pub(crate) struct CaptureExplainer<'a> {
    options: &'a ExplainOptions,
    pool: ConnectionPool<'a>,
    counts: CaptureCounts,
}

/// Reason why a capture could not be read to its end.
#[derive(Debug)]
pub enum ExplainError {
    Capture(CaptureError),
    Interrupted,
}

impl fmt::Display for ExplainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capture(error) => write!(f, "a capture: {error}"),
            Self::Interrupted => f.write_str("interrupted: the capture was not read to its end"),
        }
    }
}

impl std::error::Error for ExplainError {}

impl<'a> CaptureExplainer<'a> {
    pub(crate) fn new(options: &'a ExplainOptions, traced: TracedStarts) -> Self {
        Self { options, pool: ConnectionPool::new(options, traced), counts: CaptureCounts::default() }
    }

    /// Reads a whole capture. One that ends within a record has been read as far as it goes.
    pub(crate) fn read(&mut self, source: impl Read, progress: &dyn Progress) -> Result<(), ExplainError> {
        const LOOK: u64 = 1 << 12;
        let mut reader = CaptureReader::new(source).map_err(ExplainError::Capture)?;
        loop {
            match reader.next() {
                Ok(Some(record)) => {
                    self.counts.packets += 1;
                    if record.link_number != u32::from(EVENT_LINK) {
                        self.on_frame(&read_frame(&record, self.counts.packets));
                    }
                }
                Ok(None) => return Ok(()),
                Err(CaptureError::Truncated { packets, .. }) if packets > 0 => {
                    self.counts.is_truncated = true;
                    return Ok(());
                }
                Err(error) => return Err(ExplainError::Capture(error)),
            }
            if self.counts.packets.is_multiple_of(LOOK) && !progress.go_on(self.counts.packets) {
                return Err(ExplainError::Interrupted);
            }
        }
    }

    fn on_frame(&mut self, content: &FrameContent) {
        match content {
            FrameContent::NotTcp => self.counts.not_tcp += 1,
            FrameContent::Unusable => self.counts.unusable += 1,
            FrameContent::Segment(segment) if self.options.flow.matches(segment.source, segment.destination) => {
                self.counts.duplicates += u64::from(!self.pool.on_segment(segment));
            }
            FrameContent::Segment(_) => {}
        }
    }

    /// All connections in the order in which they began.
    pub(crate) fn finish(self) -> (PoolResult, CaptureCounts) {
        (self.pool.finish(), self.counts)
    }
}

impl ConnectionSummary {
    /// Ends and start, which identify the connection in another pass over the same capture.
    pub(crate) fn traced_start(&self) -> (EndPair, u64) {
        let (one, other) = (self.client, self.server);
        (if one <= other { (one, other) } else { (other, one) }, self.start)
    }
}
