//! F-RTO: finding out that a timeout was spurious without timestamps. RFC 5682 §3.1, as Linux has it (`tcp_process_loss`).
//!
//! ```text
//!   timeout ─▶ Armed ──the first copy is acknowledged, new data may leave──▶ SendNew ──an original arrives──▶ undone
//!                 └──────────────────otherwise──────────────────▶ Off ◀──duplicate, SACK of new data──┘
//! ```
//!
//! Only for connections with a socket.

use super::super::record::DeliveredBytes;
use super::egress::NextSend;
use super::{Phase, TcpSender};

use units::Time;

/// Knowledge about the last timeout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TimeoutDoubt {
    /// F-RTO is not active.
    #[default]
    Off,
    /// The first copy left.
    Armed,
    /// New data leaves before other copies do, and its answer decides.
    SendNew,
}

impl TcpSender {
    /// The timer went off: may be for nothing, unless a repair was under way.
    pub(super) fn suspect_timeout(&mut self) {
        let Some(socket) = &self.socket else { return };
        let again = socket.counters.timeouts > 1;
        self.doubt = if self.phase == Phase::Open || again { TimeoutDoubt::Armed } else { TimeoutDoubt::Off };
    }

    /// True if a segment that left once, before the timeout, has arrived. Without SACK it may have waited for the copy.
    pub(super) fn is_timeout_spurious(&self, until: u64, got: &DeliveredBytes) -> bool {
        let newreno = self.counting.as_ref().is_some_and(|counter| counter.is_newreno());
        self.doubt != TimeoutDoubt::Off && got.lowest < until && !(newreno && got.acked_resent)
    }

    /// An acknowledgement that did not end the repair: `advanced` in order, or `duplicate` or with new blocks.
    pub(super) fn judge_timeout(&mut self, advanced: bool, duplicate: bool) {
        let Phase::Loss { until } = self.phase else { return self.doubt = TimeoutDoubt::Off };
        self.doubt = match self.doubt {
            TimeoutDoubt::Off => TimeoutDoubt::Off,
            doubt if self.nxt > until && !duplicate => doubt,
            TimeoutDoubt::Armed if self.nxt <= until && !advanced => TimeoutDoubt::Armed,
            TimeoutDoubt::Armed if self.nxt <= until && self.unsent() > 0 && self.edge > self.nxt => {
                TimeoutDoubt::SendNew
            }
            _ => TimeoutDoubt::Off,
        };
    }

    /// Next departure while new data decides; `None` if copies may leave after all.
    pub(super) fn next_in_doubt(&self, now: Time) -> Option<NextSend> {
        let Phase::Loss { until } = self.phase else { return None };
        if self.doubt != TimeoutDoubt::SendNew {
            return None;
        }
        let flight = self.charged_flight();
        let full = flight > 0 && flight + self.mss > self.window();
        if self.unsent() > 0 && self.has_room() && !full {
            Some(if self.pacer.release > now { NextSend::Later(self.pacer.release) } else { NextSend::New })
        } else {
            (self.nxt > until).then_some(if full { NextSend::Full } else { NextSend::Nothing })
        }
    }
}
