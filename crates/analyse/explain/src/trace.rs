//! Sequence numbers of a connection over time, for charts; of a few connections only.

use crate::sender::{ORIGIN, TrackedSender};
use crate::terms::EndSide;

/// More points than this are thinned out, so that memory is bounded.
const MOST: usize = 8_192;

/// A moment of one stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TracePoint {
    pub at: u64,
    /// Bytes since the beginning of the stream.
    pub bytes: u64,
}

/// Points that are thinned out evenly when there are too many.
#[derive(Clone, Debug)]
pub(crate) struct TraceLine {
    points: Vec<TracePoint>,
    every: usize,
    skipped: usize,
}

impl Default for TraceLine {
    fn default() -> Self {
        Self { points: Vec::new(), every: 1, skipped: 0 }
    }
}

impl TraceLine {
    fn push(&mut self, at: u64, bytes: u64) {
        self.skipped += 1;
        if self.skipped < self.every {
            return;
        }
        self.skipped = 0;
        self.points.push(TracePoint { at, bytes });
        if self.points.len() >= MOST {
            let mut keep = false;
            self.points.retain(|_| {
                keep = !keep;
                keep
            });
            self.every *= 2;
        }
    }

    pub(crate) fn points(&self) -> &[TracePoint] {
        &self.points
    }
}

/// The streams of both ends.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamTrace {
    pub sent: TraceLine,
    pub again: TraceLine,
    pub acknowledged: TraceLine,
    /// The end of the receiver's window, as a position.
    pub edge: TraceLine,
    pub flight: TraceLine,
    /// Windows in bytes: of the receiver, and the shadow's congestion window.
    pub receive_window: TraceLine,
    pub congestion_window: TraceLine,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct ConnectionTrace {
    streams: [StreamTrace; 2],
}

fn bytes(position: u64) -> u64 {
    position.saturating_sub(ORIGIN)
}

impl ConnectionTrace {
    pub(crate) fn stream(&self, side: EndSide) -> &StreamTrace {
        &self.streams[side.index()]
    }

    pub(crate) fn on_payload(&mut self, at: u64, end: u64, is_again: bool, sender: &TrackedSender) {
        let stream = &mut self.streams[sender.side.index()];
        if is_again {
            stream.again.push(at, bytes(end));
        } else {
            stream.sent.push(at, bytes(end));
        }
        stream.flight.push(at, sender.flight());
        stream.congestion_window.push(at, sender.window());
    }

    pub(crate) fn on_ack(&mut self, at: u64, sender: &TrackedSender) {
        let stream = &mut self.streams[sender.side.index()];
        stream.acknowledged.push(at, bytes(sender.seen_una));
        stream.edge.push(at, bytes(sender.edge()));
        stream.receive_window.push(at, sender.edge().saturating_sub(sender.una));
    }
}
