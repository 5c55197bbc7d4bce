//! Explanation as JSON.

use serde::Serialize;

use crate::connection::ConnectionSummary;
use crate::losses::LossNote;
use crate::scans::ScanAnswer;
use crate::stalls::StallNote;
use crate::terms::{
    CapturePlace, Certainty, EndSide, LossWitness, RepairKind, StreamDirection, TimeCause, TimerReason,
};
use crate::timeline::PartSums;
use crate::verdict::{advice, verdict};

#[derive(Clone, Debug, Serialize)]
pub struct ExplainAnswer {
    pub connections: Vec<ConnectionAnswer>,
    /// More than a thousand connections without payload, said together.
    pub scans: Vec<ScanAnswer>,
    /// Connections that `--memory` dropped from the account while they were still open; they are not listed.
    pub ended_early: u64,
    pub dropped: u64,
    /// Frames that were several packets on the wire, and those of the other end's capture.
    pub super_frames: u64,
    pub super_frames_other_end: Option<u64>,
    /// Frames of the capture.
    pub packets: u64,
    pub not_tcp: u64,
    /// Packets of TCP that could not be used: fragments, cut headers, the same packet twice.
    pub skipped: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct ConnectionAnswer {
    pub client: String,
    pub server: String,
    pub start_ns: u64,
    pub duration_ns: u64,
    pub bytes_up: u64,
    pub bytes_down: u64,
    pub mss: u32,
    pub min_rtt_ns: Option<u64>,
    pub sees: CapturePlace,
    pub parts: Vec<PartAnswer>,
    pub requests: Vec<RequestAnswer>,
    pub stalls: Vec<StallAnswer>,
    pub losses: Vec<LostPacketAnswer>,
    pub timeouts: u32,
    pub probes: u32,
    pub spurious: u32,
    pub agreement: Option<f64>,
    pub verdict: String,
    pub advice: String,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct PartAnswer {
    pub cause: TimeCause,
    pub side: EndSide,
    pub ns: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct RequestAnswer {
    pub start_ns: u64,
    pub duration_ns: u64,
    pub bytes_up: u64,
    pub bytes_down: u64,
    pub parts: Vec<PartAnswer>,
}

#[derive(Clone, Debug, Serialize)]
pub struct StallAnswer {
    pub from_ns: u64,
    pub until_ns: u64,
    pub cause: TimeCause,
    pub side: EndSide,
    pub why: Option<TimerReason>,
    pub sure: Certainty,
    pub packets: Vec<u64>,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct LostPacketAnswer {
    pub direction: StreamDirection,
    pub time_ns: u64,
    pub tcp_seq: u32,
    pub len: u32,
    pub repaired_by: RepairKind,
    /// Time from the loss to the copy; `None` if there was none.
    pub after_ns: Option<u64>,
    pub seen_by: LossWitness,
}

fn parts(sums: &PartSums) -> Vec<PartAnswer> {
    sums.sorted().into_iter().map(|(cause, side, ns)| PartAnswer { cause, side, ns }).collect()
}

impl From<&StallNote> for StallAnswer {
    fn from(stall: &StallNote) -> Self {
        let mut packets: Vec<u64> = stall.packets.into_iter().filter(|number| *number > 0).collect();
        packets.dedup();
        Self {
            from_ns: stall.from,
            until_ns: stall.until,
            cause: stall.cause,
            side: stall.side,
            why: stall.why,
            sure: stall.sure,
            packets,
        }
    }
}

impl From<&(EndSide, LossNote, u32)> for LostPacketAnswer {
    fn from((side, note, tcp_seq): &(EndSide, LossNote, u32)) -> Self {
        let is_repaired = note.repaired_by != RepairKind::Nothing;
        Self {
            direction: (*side).into(),
            time_ns: note.at,
            tcp_seq: *tcp_seq,
            len: note.len,
            repaired_by: note.repaired_by,
            after_ns: is_repaired.then(|| note.repaired_at.saturating_sub(note.at)),
            seen_by: note.seen_by,
        }
    }
}

impl From<&ConnectionSummary> for ConnectionAnswer {
    fn from(summary: &ConnectionSummary) -> Self {
        let request = |request: &crate::connection::RequestNote| RequestAnswer {
            start_ns: request.start,
            duration_ns: request.duration,
            bytes_up: request.bytes[0],
            bytes_down: request.bytes[1],
            parts: parts(&request.parts),
        };
        Self {
            client: summary.client.to_string(),
            server: summary.server.to_string(),
            start_ns: summary.start,
            duration_ns: summary.duration,
            bytes_up: summary.bytes[0],
            bytes_down: summary.bytes[1],
            mss: summary.mss,
            min_rtt_ns: summary.min_rtt,
            sees: summary.sees,
            parts: parts(&summary.parts),
            requests: summary.requests.iter().map(request).collect(),
            stalls: summary.stalls.iter().map(StallAnswer::from).collect(),
            losses: summary.losses.iter().map(LostPacketAnswer::from).collect(),
            timeouts: summary.timeouts,
            probes: summary.probes,
            spurious: summary.spurious,
            agreement: summary.agreement,
            verdict: verdict(summary),
            advice: advice(summary),
        }
    }
}
