//! Summary of a connection that is over.

use std::net::SocketAddr;

use super::TrackedConnection;
use super::requests::RequestNote;
use crate::losses::LossNote;
use crate::scans::BareOutcome;
use crate::sender::TrackedSender;
use crate::stalls::StallNote;
use crate::terms::{CapturePlace, Certainty, EndSide, LossWitness, RepairKind, TimerReason};
use crate::timeline::PartSums;
use crate::trace::ConnectionTrace;

/// A connection that has been read to its end.
#[derive(Debug)]
pub(crate) struct ConnectionSummary {
    pub client: SocketAddr,
    pub server: SocketAddr,
    pub start: u64,
    pub duration: u64,
    pub bytes: [u64; 2],
    pub mss: u32,
    pub min_rtt: Option<u64>,
    pub sees: CapturePlace,
    pub parts: PartSums,
    pub requests: Vec<RequestNote>,
    pub stalls: Vec<StallNote>,
    /// Losses, each with its sender.
    pub losses: Vec<(EndSide, LossNote, u32)>,
    pub timeouts: u32,
    pub probes: u32,
    pub spurious: u32,
    pub agreement: Option<f64>,
    /// Sequence numbers of the FINs.
    pub fins: [Option<u32>; 2],
    pub has_syn: bool,
    pub has_both_directions: bool,
    pub options_cut: bool,
    pub reordering_seen: bool,
    /// Duplicates that a late repair took.
    pub late_after: u32,
    pub trace: Option<Box<ConnectionTrace>>,
    pub super_frames: u64,
    /// Outcome of its opening.
    pub outcome: BareOutcome,
}

impl ConnectionSummary {
    /// True if no payload was sent, and no chart of the connection is wanted.
    pub(crate) fn is_bare(&self) -> bool {
        self.bytes == [0, 0] && self.trace.is_none()
    }

    /// Approximate memory use in bytes.
    pub(crate) fn bytes_held(&self) -> usize {
        let stalls = self.stalls.capacity() * size_of::<StallNote>();
        let losses = self.losses.capacity() * size_of::<(EndSide, LossNote, u32)>();
        size_of::<Self>() + stalls + losses + self.requests.capacity() * RequestNote::BYTES
    }
}

impl TrackedConnection {
    /// Ends the connection and returns its summary.
    pub(crate) fn finish(mut self) -> ConnectionSummary {
        self.close_request();
        self.senders.iter_mut().for_each(|sender| sender.hear_until(u64::MAX, 0));
        self.settle_reasons();
        if self.both_directions != [true; 2] {
            // Half of a conversation shows no reasons.
            self.stalls.iter_mut().for_each(|stall| stall.sure = Certainty::Guessed);
        }
        let (losses, outcome) = (self.losses(), self.outcome());
        let (asked, agreed) = self.shadowed();
        ConnectionSummary {
            client: self.client,
            server: self.server,
            start: self.time.start(),
            duration: self.time.duration(),
            bytes: [self.senders[0].bytes, self.senders[1].bytes],
            mss: self.senders[0].mss.min(self.senders[1].mss),
            min_rtt: Some(self.rtt()).filter(|rtt| *rtt > 0),
            sees: self.place(),
            parts: self.time.parts().clone(),
            losses,
            timeouts: self.senders.iter().map(|sender| sender.timeouts).sum(),
            probes: self.senders.iter().map(|sender| sender.probes).sum(),
            spurious: self.senders.iter().map(|sender| sender.losses.spurious()).sum(),
            agreement: (asked > 0).then(|| agreed as f64 / asked as f64),
            fins: [EndSide::Client, EndSide::Server].map(|side| {
                let (position, _) = self.fins[side.index()].sent?;
                Some(self.senders[side.index()].sequence(position))
            }),
            has_syn: self.has_syn,
            has_both_directions: self.both_directions == [true; 2],
            options_cut: self.options_cut,
            reordering_seen: self.senders.iter().any(|sender| sender.reordering_seen),
            late_after: self.senders.iter().map(|sender| sender.late_after).max().unwrap_or(0),
            requests: self.requests,
            stalls: self.stalls,
            trace: self.trace,
            super_frames: self.super_frames,
            outcome,
        }
    }

    fn outcome(&self) -> BareOutcome {
        match self.both_directions {
            [true, true] if self.is_reset && self.handshake.is_unanswered() => BareOutcome::Refused,
            [true, true] => BareOutcome::Opened,
            _ => BareOutcome::Unanswered,
        }
    }

    /// The sender next to the capture is the one that its shadow can follow best.
    fn shadowed(&self) -> (u64, u64) {
        let of = |sender: &TrackedSender| (sender.asked, sender.agreed);
        let near = self.senders.iter().find(|sender| self.is_near(sender.side)).filter(|sender| sender.asked > 0);
        near.map_or_else(|| self.senders.iter().map(of).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1)), of)
    }

    fn place(&self) -> CapturePlace {
        match [EndSide::Client, EndSide::Server].map(|side| self.way(side)) {
            [client, server] if client * 4 <= server => CapturePlace::Client,
            [client, server] if server * 4 <= client => CapturePlace::Server,
            _ => CapturePlace::Middle,
        }
    }

    /// Corrects the reasons of timers: packets after a timer show if anything had been lost.
    fn settle_reasons(&mut self) {
        let rtt = self.rtt();
        let Self { stalls, senders, .. } = self;
        for stall in stalls.iter_mut() {
            let Some(position) = stall.position else { continue };
            let sender = &senders[stall.side.index()];
            if stall.why == Some(TimerReason::AcksLost) || !sender.losses.is_arrived(position) {
                continue;
            }
            let from = stall.from.saturating_sub(rtt);
            let gaps = senders[stall.side.other().index()].ids.gaps();
            let lost_acks = gaps
                .iter()
                .any(|gap| gap.unexplained() > 0 && (from..=stall.until.saturating_add(rtt)).contains(&gap.at));
            // A receiver acknowledges two of three segments at once: that acknowledgement was lost, not delayed.
            let is_overdue = stall.out >= 3 && !stall.is_window_full && !sender.reordering_seen;
            stall.why = Some(if lost_acks || is_overdue {
                TimerReason::AcksLost
            } else if sender.reordering_seen {
                TimerReason::Reordered
            } else {
                TimerReason::AckDelayed
            });
        }
    }

    fn losses(&self) -> Vec<(EndSide, LossNote, u32)> {
        let mut losses = Vec::new();
        for sender in &self.senders {
            let real = sender.losses.real();
            losses.extend(real.map(|note| (sender.side, *note, sender.sequence(note.position))));
            if !self.is_near(sender.side) {
                unexplained_gaps(sender, &mut losses);
            }
        }
        losses.sort_by_key(|(side, note, _)| (note.at, *side, note.position));
        losses
    }
}

/// Identifications that nothing explains are packets without data, or copies that never came this far.
fn unexplained_gaps(sender: &TrackedSender, losses: &mut Vec<(EndSide, LossNote, u32)>) {
    for gap in sender.ids.gaps() {
        let is_named = |note: &&LossNote| note.at == gap.at && note.seen_by == LossWitness::IpId;
        let named = sender.losses.real().filter(is_named).count();
        let (position, len) = gap.hole.unwrap_or((gap.position, 0));
        let note = LossNote {
            at: gap.at,
            position,
            len,
            repaired_by: RepairKind::Nothing,
            repaired_at: gap.at,
            seen_by: LossWitness::IpId,
            is_spurious: false,
        };
        let missing = usize::from(gap.unexplained_copies()).saturating_sub(named);
        losses.extend((0..missing).map(|_| (sender.side, note, sender.sequence(position))));
    }
}
