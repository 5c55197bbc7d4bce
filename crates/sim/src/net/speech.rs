//! How each transport's segments travel, and what its application hears of it.

use transport::roce::selective;
use transport::{roce, tcp};
use wire::ip::Ecn;

use super::end::{Progress, Speaks, Tally};
use super::packet::Body;
use super::raw;

/// Ethernet with its check, IP, TCP with timestamps. SACK blocks come on top.
pub const TCP_HEADERS: u32 = 18 + 20 + 32;
const SACK_OPTION: u32 = 4;
const SACK_BLOCK: u32 = 8;

impl Speaks for tcp::Connection {
    #[inline]
    fn pack(frame: tcp::Segment) -> (Body, u16, Ecn) {
        let blocks = frame.sack.blocks().len() as u32;
        // With data, a host would send that much less of it, so that the frame is no longer.
        let sack = if blocks == 0 || frame.len > 0 { 0 } else { SACK_OPTION + SACK_BLOCK * blocks };
        (Body::Tcp(frame), (frame.len + TCP_HEADERS + sack) as u16, frame.ecn)
    }

    #[inline]
    fn unpack(body: Body, ecn: Ecn) -> Option<tcp::Segment> {
        let Body::Tcp(frame) = body else { return None };
        Some(tcp::Segment { ecn, ..frame })
    }

    #[inline]
    fn on_done(done: tcp::Done, progress: &mut Progress) {
        match done {
            tcp::Done::Delivered(bytes) => progress.received = Some(bytes),
            tcp::Done::Acknowledged(_) => {}
        }
    }

    fn on_note(note: tcp::Note, tally: &mut Tally) {
        match note {
            tcp::Note::Retransmitted { .. } => tally.retransmitted += 1,
            tcp::Note::Probe => tally.probes += 1,
            tcp::Note::Timeout => tally.timeouts += 1,
            tcp::Note::Sacked { bytes, .. } => tally.most_sacked = tally.most_sacked.max(bytes),
            tcp::Note::Undone => tally.undone += 1,
            tcp::Note::Reduced { pending } => {
                if tally.reductions == 0 {
                    tally.pending_when_reduced = pending;
                }
                tally.reductions += 1;
            }
        }
    }

    fn send(bytes: u64) -> tcp::Command {
        tcp::Command::Send(bytes)
    }
}

impl Speaks for roce::Qp {
    #[inline]
    fn pack(frame: roce::Packet) -> (Body, u16, Ecn) {
        (Body::Roce(frame), frame.frame_len() as u16, frame.ecn)
    }

    #[inline]
    fn unpack(body: Body, ecn: Ecn) -> Option<roce::Packet> {
        let Body::Roce(frame) = body else { return None };
        Some(roce::Packet { ecn, ..frame })
    }

    #[inline]
    fn on_done(done: roce::Done, progress: &mut Progress) {
        match done {
            roce::Done::Completed(requests) => progress.completed = Some(requests),
            roce::Done::Received(messages) => progress.placed = Some(messages),
            roce::Done::Failed => progress.failed = true,
        }
    }

    fn on_note(note: roce::Note, tally: &mut Tally) {
        match note {
            roce::Note::Retransmitted { packets, .. } => tally.retransmitted += packets as u32,
            roce::Note::Timeout => tally.timeouts += 1,
            roce::Note::NakReceived => tally.naks += 1,
            roce::Note::Dummy => tally.dummies += 1,
            roce::Note::TailRepeated => tally.tails_repeated += 1,
            roce::Note::NakSent
            | roce::Note::IdleTimeout
            | roce::Note::Duplicate
            | roce::Note::OutOfOrder
            | roce::Note::Invalid => {}
        }
    }

    fn send(bytes: u64) -> roce::Command {
        roce::Command::Post { verb: roce::Verb::Write, bytes }
    }
}

impl<R: selective::Recovery> Speaks for selective::Connection<R> {
    #[inline]
    fn pack(frame: selective::Packet) -> (Body, u16, Ecn) {
        (Body::Selective(frame), frame.frame_len() as u16, frame.ecn)
    }

    #[inline]
    fn unpack(body: Body, ecn: Ecn) -> Option<selective::Packet> {
        let Body::Selective(frame) = body else { return None };
        Some(selective::Packet { ecn, ..frame })
    }

    #[inline]
    fn on_done(done: selective::Done, progress: &mut Progress) {
        match done {
            selective::Done::Completed(requests) => progress.completed = Some(requests),
            selective::Done::Received(messages) => progress.placed = Some(messages),
            selective::Done::Failed => progress.failed = true,
        }
    }

    fn on_note(note: selective::Note, tally: &mut Tally) {
        match note {
            selective::Note::Retransmitted { packets, .. } => tally.retransmitted += packets as u32,
            selective::Note::Timeout => tally.timeouts += 1,
            selective::Note::NackReceived => tally.naks += 1,
            selective::Note::OutOfOrder => tally.out_of_order += 1,
            selective::Note::NackSent
            | selective::Note::Dropped
            | selective::Note::Duplicate
            | selective::Note::Invalid => {}
        }
    }

    fn send(bytes: u64) -> selective::Command {
        selective::Command::Post { bytes }
    }
}

impl Speaks for raw::Generator {
    fn pack(frame: raw::Datagram) -> (Body, u16, Ecn) {
        (Body::Raw(frame), (frame.len + raw::HEADERS) as u16, Ecn::NotCapable)
    }

    fn unpack(body: Body, _ecn: Ecn) -> Option<raw::Datagram> {
        let Body::Raw(frame) = body else { return None };
        Some(frame)
    }

    fn on_done(done: raw::Received, progress: &mut Progress) {
        progress.received = Some(done.0);
    }

    fn on_note(_note: (), _tally: &mut Tally) {}

    fn send(bytes: u64) -> u64 {
        bytes
    }
}
