//! Echoes of marks.
//!
//! RFC 3168 §6.1.3: from the first mark on, every acknowledgement echoes it, until the sender says that it has slowed
//! down. RFC 8257 §3.2, for DCTCP: an acknowledgement echoes marks exactly if the segments that it newly covers had
//! them. Therefore, when marks begin or end while one is owed, it leaves first, and the next is due at once:
//!
//! ```text
//!                   marked: acknowledge what came before as unmarked
//!       CE = 0 ────────────────────────────────────────────────────────▶ CE = 1
//!              ◀────────────────────────────────────────────────────────
//!                   unmarked: acknowledge what came before as marked
//! ```

use wire::ip::Ecn as Mark;

use super::super::segment::TcpSegment;
use super::super::sender::EcnResponse;

/// An acknowledgement of how things were before marks began or ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct EarlierAck {
    pub ack: u64,
    pub echo: bool,
}

#[derive(Debug)]
pub(super) struct Echo {
    ecn: EcnResponse,
    on: bool,
    /// More than one only if segments come several at a time.
    earlier: Vec<EarlierAck>,
}

impl Echo {
    pub(super) fn new(ecn: EcnResponse) -> Self {
        Self { ecn, on: false, earlier: Vec::new() }
    }

    pub(super) fn is_on(&self) -> bool {
        self.on
    }

    #[inline]
    pub(super) fn has_earlier(&self) -> bool {
        !self.earlier.is_empty()
    }

    /// True if marks begin or end: worth an acknowledgement at once. `next` is the byte expected before this segment,
    /// `owed` whether an acknowledgement of what came before is due or delayed.
    #[inline]
    pub(super) fn on_data(&mut self, segment: &TcpSegment, next: u64, owed: bool) -> bool {
        let marked = segment.ecn == Mark::Experienced;
        let before = self.on;
        match self.ecn {
            EcnResponse::Off => return false,
            EcnResponse::Classic => self.on = marked || self.on && !segment.cwr,
            EcnResponse::Dctcp => self.on = marked,
        }
        let changed = self.on != before;
        if changed && owed && self.ecn == EcnResponse::Dctcp {
            self.earlier.push(EarlierAck { ack: next, echo: before });
        }
        changed
    }

    #[inline]
    pub(super) fn take_earlier(&mut self) -> Option<EarlierAck> {
        if self.earlier.is_empty() { None } else { Some(self.earlier.remove(0)) }
    }
}
