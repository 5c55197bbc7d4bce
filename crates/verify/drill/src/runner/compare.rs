//! Comparison of a segment that left with the one that the script expects.

use units::{Span, Time};

use crate::language::DrillScript;
use crate::segment::{DrillSegment, EcnField, HeaderOption, TcpFlags};
use crate::subject::DrillStop;

/// Timestamps of scripts against those of the subject, whose clock starts anywhere.
#[derive(Debug, Default)]
pub(super) struct TimestampMap {
    /// The first pair of values that left, and all later ones: the script's, then the subject's.
    pairs: Vec<(u32, u32)>,
}

impl TimestampMap {
    /// Replaces the script's echo by the value that the subject sent.
    pub(super) fn arriving(&self, segment: &mut DrillSegment) {
        let Some(first) = self.pairs.first() else { return };
        if let Some((_, echo)) = segment.timestamp_mut() {
            let exact = self.pairs.iter().rev().find(|(script, _)| script == echo).map(|(_, subject)| *subject);
            *echo = exact.unwrap_or(first.1.wrapping_add(echo.wrapping_sub(first.0)));
        }
    }

    /// Replaces the subject's value by the script's, counted from the first of each.
    pub(super) fn leaving(&mut self, expected: &DrillSegment, segment: &mut DrillSegment) {
        let (Some((script, _)), Some((subject, _))) = (expected.timestamp(), segment.timestamp()) else { return };
        self.pairs.push((script, subject));
        let first = self.pairs[0];
        if let Some((value, _)) = segment.timestamp_mut() {
            *value = first.0.wrapping_add(subject.wrapping_sub(first.1));
        }
    }
}

pub(super) fn segments(
    expected: &DrillSegment,
    segment: &DrillSegment,
    script: &DrillScript,
    at: Time,
) -> Result<(), DrillStop> {
    let differs = |what: &str| DrillStop::failed(format!("{what}: expected {expected}, but {segment} left"));
    if expected.flags != segment.flags {
        return differs("flags");
    }
    if expected.seq != segment.seq || expected.len != segment.len {
        return differs("sequence numbers");
    }
    if expected.is(TcpFlags::ACK) && expected.ack != segment.ack {
        return differs("the acknowledgement");
    }
    if expected.window.is_some_and(|window| segment.window != Some(window)) {
        return differs("the window");
    }
    if expected.ecn.is_some_and(|ecn| segment.ecn.unwrap_or(EcnField::NotCapable) != ecn) {
        return differs("the ECN field");
    }
    let Some(options) = &expected.options else { return Ok(()) };
    let sent = segment.options.as_deref().unwrap_or_default();
    let same = options.len() == sent.len()
        && options.iter().zip(sent).all(|(expected, sent)| same_option(expected, sent, script, at));
    if same { Ok(()) } else { differs("options") }
}

fn same_option(expected: &HeaderOption, sent: &HeaderOption, script: &DrillScript, at: Time) -> bool {
    let (HeaderOption::Timestamp { value, echo }, HeaderOption::Timestamp { value: sent, echo: sent_echo }) =
        (expected, sent)
    else {
        return expected == sent;
    };
    let off_by = (sent.wrapping_sub(*value) as i32).unsigned_abs();
    let is_close = script.timestamp_tick.is_none_or(|tick| {
        let tolerance = script.tolerance.fixed.max(at.since(Time::ZERO).scale(script.tolerance.share));
        Span::from_ps(tick.as_ps().saturating_mul(u64::from(off_by))) <= tolerance
    });
    echo == sent_echo && is_close
}
