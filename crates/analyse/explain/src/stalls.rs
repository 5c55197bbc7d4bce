//! Stretches of time in which a connection stood still, kept as small records.

use crate::terms::{Certainty, EndSide, TimeCause, TimerReason};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StallNote {
    pub from: u64,
    pub until: u64,
    pub cause: TimeCause,
    pub side: EndSide,
    pub why: Option<TimerReason>,
    pub sure: Certainty,
    /// The packet that was waited for an answer to, and the one that ended the wait; zero if the capture has none.
    pub packets: [u64; 2],
    /// Position of the data that a timer sent again, to learn later if that was spurious.
    pub position: Option<u64>,
    /// Segments that were out then.
    pub out: u32,
    /// The receiver's window had no room for one more: its acknowledgements wait for its application.
    pub is_window_full: bool,
}

/// Shorter waits are part of any transfer.
const SHORTEST: u64 = 2_000_000;

/// True if a piece of time is worth a record.
pub(crate) fn is_stall(cause: TimeCause, ns: u64, rtt: u64) -> bool {
    match cause {
        TimeCause::Timeout | TimeCause::Probe | TimeCause::SynLost => true,
        cause if cause.is_progress() => false,
        _ => ns >= SHORTEST.max(2 * rtt),
    }
}

/// Appends, or extends the last one if it goes on.
pub(crate) fn push(stalls: &mut Vec<StallNote>, stall: StallNote) {
    match stalls.last_mut() {
        Some(last)
            if (last.cause, last.side, last.until) == (stall.cause, stall.side, stall.from) && last.why.is_none() =>
        {
            last.until = stall.until;
            last.packets[1] = stall.packets[1];
            last.sure = last.sure.max(stall.sure);
        }
        _ => stalls.push(stall),
    }
}
