//! Acknowledgements that a kernel examines for losses: `tcp_ack_is_dubious`, `tcp_fastretrans_alert`.

use super::super::cc::CongestionControl;
use super::super::record::DeliveredBytes;
use super::acks::AckBaseline;
use super::{Phase, TcpSender};

impl TcpSender {
    /// Marks prove a reduction right: a socket does not return from it (`tcp_fastretrans_alert`).
    pub(super) fn note_marks(&mut self, echoes: bool) {
        if echoes && self.socket.is_some() {
            self.control.forbid_undo();
        }
    }

    /// True if every acknowledgement is examined for losses (`tcp_ack_is_dubious`): something is missing or repaired, or a
    /// mark is answered.
    pub(super) fn is_uneasy(&self, before: &AckBaseline) -> bool {
        let missing = before.sacked > 0 || self.board.sacked() > 0;
        self.phase != Phase::Open || self.gliding.is_some() || missing || self.board.has_copies_out()
    }

    /// A socket does not look while nothing is dubious, but later at what it learnt by then (`rack.advanced`).
    #[inline]
    pub(super) fn looks_for_losses(&mut self, dubious: bool, got: &DeliveredBytes, counts: bool) -> bool {
        let news = got.newest.is_some();
        match &mut self.socket {
            None => news || counts,
            Some(socket) => {
                socket.unjudged |= news;
                dubious && (std::mem::take(&mut socket.unjudged) || counts)
            }
        }
    }
}
