//! Compares what two subjects sent, segment by segment.

use std::fmt;

use units::{Span, Time};

use super::play::{MSS, PlayResult};
use crate::segment::{DrillSegment, EcnField, TcpFlags};

/// The end of what is compared is left out: a timer may go off just before it or just after it.
const MARGIN: Span = Span::from_ms(60);
/// Two ticks of a slow kernel, and what a busy machine adds.
const TOLERANCE: Span = Span::from_ms(10);

/// First difference between two runs; times count from the end of the handshake.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Difference {
    at: usize,
    ours: Option<(Span, DrillSegment)>,
    kernel: Option<(Span, DrillSegment)>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let described = |sent: &Option<(Span, DrillSegment)>| match sent {
            Some((at, segment)) => format!("{segment} at {at}"),
            None => "nothing".to_owned(),
        };
        write!(f, "segment {}: ours {}, the kernel's {}", self.at + 1, described(&self.ours), described(&self.kernel))
    }
}

/// Sequence numbers, flags but for PSH, marks and times; both had the same timeline.
pub(super) fn first_difference(ours: &PlayResult, kernel: &PlayResult) -> Option<Difference> {
    let (left, right) = (pieces(ours), pieces(kernel));
    let last = Time::from_ps(ours.end.as_ps().saturating_sub(MARGIN.as_ps()));
    let open = ours.timeline.open;
    for at in 0..left.len().max(right.len()) {
        let (ours_at, kernel_at) = (left.get(at), right.get(at));
        let in_margin = |sent: Option<&(Time, DrillSegment)>| sent.is_none_or(|(at, _)| *at > last);
        if in_margin(ours_at) && in_margin(kernel_at) {
            return None;
        }
        let same = ours_at.zip(kernel_at).is_some_and(|((sent, segment), (kernel_sent, kernel_segment))| {
            let apart = sent.since(*kernel_sent.min(sent)).max(kernel_sent.since(*sent.min(kernel_sent)));
            compared(segment) == compared(kernel_segment) && apart <= TOLERANCE
        });
        if !same {
            let since_open = |sent: Option<&(Time, DrillSegment)>| {
                sent.map(|(at, segment)| (at.since(open.min(*at)), segment.clone()))
            };
            return Some(Difference { at, ours: since_open(ours_at), kernel: since_open(kernel_at) });
        }
    }
    None
}

/// Fields of a segment that are compared.
fn compared(segment: &DrillSegment) -> (TcpFlags, u32, u32, u32, EcnField) {
    let flags = segment.flags.with(TcpFlags::PSH, false);
    (flags, segment.seq, segment.len, segment.ack, segment.ecn.unwrap_or_default())
}

/// Super-segments cut into segments.
fn pieces(played: &PlayResult) -> Vec<(Time, DrillSegment)> {
    let mut pieces = Vec::new();
    for (at, segment) in &played.segments {
        let mut seq = segment.seq;
        loop {
            let len = segment.end().wrapping_sub(seq).min(MSS);
            // Only the first of a super-segment tells of a reduced window.
            let first = seq == segment.seq;
            let flags = segment.flags.with(TcpFlags::CWR, first && segment.is(TcpFlags::CWR));
            pieces.push((
                *at,
                DrillSegment { seq, len, flags, options: Some(Vec::new()), window: None, ..segment.clone() },
            ));
            seq = seq.wrapping_add(len);
            if seq == segment.end() {
                break;
            }
        }
    }
    pieces
}
