//! End of a socket's connection: RFC 9293 §3.6 and §3.10.7.4, as in Linux.
//!
//! ```text
//!                 close                 FIN acknowledged              FIN arrives
//!   Established ─────────▶ FinWait1 ──────────────────▶ FinWait2 ───────────────▶ TimeWait
//!        │                    │ FIN arrives                                          ▲
//!        │ FIN arrives        └────────────▶ Closing ──────── FIN acknowledged ──────┘
//!        ▼        close                FIN acknowledged
//!    CloseWait ─────────▶ LastAck ──────────────────────▶ Closed
//! ```
//!
//! A segment beyond the window, or older than the timestamp that was seen last, is answered and otherwise ignored. A RST
//! ends the connection if it is exactly where the next byte is expected; anywhere else in the window it is answered.

use machine::Out;
use units::Time;

use super::connection::{TcpConnection, TcpProgress};
use super::record::timestamp;
use super::segment::{SegmentFlags, TcpSegment};
use super::sites::TcpSite;
use super::socket::TcpState;

/// State of the end of a connection with a socket.
#[derive(Debug, Default)]
pub(super) struct TcpEnding {
    /// The peer's FIN came before the own was asked for.
    peer_first: bool,
    /// The application is gone: what arrives now is for nobody.
    orphan: bool,
    /// Reports made: the peer's FIN, and the end of the connection.
    peer_reported: bool,
    over: bool,
    /// Both directions ended in order, with the own FIN first: late segments are still answered.
    time_wait: bool,
    /// A RST that is to leave.
    reset: Option<ResetSegment>,
}

/// Position of a RST, and its acknowledgement if it has one.
#[derive(Clone, Copy, Debug)]
struct ResetSegment {
    seq: u64,
    ack: Option<u64>,
}

impl TcpEnding {
    pub(super) fn owes_reset(&self) -> bool {
        self.reset.is_some()
    }
}

impl TcpConnection {
    /// RFC 9293's state of the connection.
    pub fn state(&self) -> TcpState {
        let Some(ending) = &self.ending else { return TcpState::Established };
        if ending.over {
            return if ending.time_wait { TcpState::TimeWait } else { TcpState::Closed };
        }
        let acknowledged = self.sender.fin_acknowledged();
        match (self.sender.is_finished(), self.receiver.is_finished()) {
            (false, false) => TcpState::Established,
            (false, true) => TcpState::CloseWait,
            (true, false) if acknowledged => TcpState::FinWait2,
            (true, false) => TcpState::FinWait1,
            (true, true) if ending.peer_first => TcpState::LastAck,
            (true, true) => TcpState::Closing,
        }
    }

    /// The application writes nothing more.
    pub(super) fn shut_write(&mut self) {
        let peer_first = self.receiver.is_finished();
        let Some(ending) = self.ending.as_mut().filter(|ending| !ending.over) else { return };
        if !self.sender.is_finished() {
            ending.peer_first = peer_first;
            self.sender.finish();
        }
    }

    /// The application is gone. What it did not read, the peer will never know to be read: RFC 2525 §2.17.
    pub(super) fn close<O: Out<Self>>(&mut self, now: Time, out: &mut O) {
        if self.receiver.unread() > 0 {
            return self.abort(now, out);
        }
        if let Some(ending) = &mut self.ending {
            ending.orphan = true;
        }
        self.shut_write();
    }

    /// Ends the connection with a RST.
    pub(super) fn abort<O: Out<Self>>(&mut self, now: Time, out: &mut O) {
        let reset = ResetSegment { seq: self.sender.sent(), ack: Some(self.receiver.next()) };
        self.end(now, TcpProgress::Closed, out);
        if let Some(ending) = &mut self.ending {
            ending.reset = Some(reset);
        }
    }

    fn end<O: Out<Self>>(&mut self, now: Time, how: TcpProgress, out: &mut O) {
        let Some(ending) = self.ending.as_mut().filter(|ending| !ending.over) else { return };
        ending.over = true;
        self.sender.stop(now, out);
        self.receiver.stop();
        out.complete(how);
    }

    /// A segment for a connection with a socket.
    pub(super) fn on_segment<O: Out<Self>>(&mut self, now: Time, segment: &TcpSegment, out: &mut O) {
        if self.is_over() {
            self.answer_late(segment);
        } else if self.admits(now, segment, out) {
            self.sender.on_ack(now, segment, out);
            if !segment.flags.has(SegmentFlags::NO_TIMESTAMP) {
                self.receiver.heed_timestamp(segment);
            }
            self.take_payload(now, segment, out);
            self.settle(now, out);
        }
        self.after(now, out);
    }

    fn is_over(&self) -> bool {
        self.ending.as_ref().is_some_and(|ending| ending.over)
    }

    /// Updates the connection after an event, if it has a socket.
    pub(super) fn after<O: Out<Self>>(&mut self, now: Time, out: &mut O) {
        if self.sender.gave_up()
            && let Some(ending) = &mut self.ending
        {
            ending.over = true;
            self.receiver.stop();
        }
        self.sender.watch_window(now, out);
    }

    /// `tcp_validate_incoming`, and whether it acknowledges what was sent.
    fn admits<O: Out<Self>>(&mut self, now: Time, segment: &TcpSegment, out: &mut O) -> bool {
        let flags = segment.flags;
        let reset = flags.has(SegmentFlags::RST);
        let stale =
            !flags.has(SegmentFlags::NO_TIMESTAMP) && TcpSite::StaleSegment.ask(out, self.receiver.is_stale(segment));
        if !self.receiver.accepts(segment) || stale && !reset {
            if !reset {
                self.receiver.force_ack();
            }
            return false;
        }
        if reset {
            if segment.seq == self.receiver.next() {
                self.end(now, TcpProgress::Reset, out);
            } else {
                self.receiver.force_ack();
            }
            return false;
        }
        !flags.has(SegmentFlags::NO_ACK) && segment.ack <= self.sender.sent()
    }

    fn take_payload<O: Out<Self>>(&mut self, now: Time, segment: &TcpSegment, out: &mut O) {
        let payload_end = segment.seq.wrapping_add(u64::from(segment.len));
        let news = segment.len > 0 && (payload_end.wrapping_sub(self.receiver.next()) as i64) > 0;
        if news && self.ending.as_ref().is_some_and(|ending| ending.orphan) {
            self.end(now, TcpProgress::Reset, out);
            if let Some(ending) = &mut self.ending {
                ending.reset = Some(ResetSegment { seq: segment.ack, ack: None });
            }
        } else if segment.len > 0 || segment.flags.has(SegmentFlags::FIN) {
            self.on_data(now, segment, out);
        }
    }

    /// Moves on to the next state, and reports it.
    fn settle<O: Out<Self>>(&mut self, now: Time, out: &mut O) {
        let (mine, theirs) = (self.sender.fin_acknowledged(), self.receiver.is_finished());
        let waits = self.sender.is_finished();
        let Some(ending) = self.ending.as_mut().filter(|ending| !ending.over) else { return };
        if theirs && !ending.peer_reported {
            ending.peer_reported = true;
            // In FinWait nothing of our own can carry the acknowledgement.
            if waits && !ending.peer_first {
                self.receiver.force_ack();
            }
            out.complete(TcpProgress::PeerClosed);
        }
        if mine && theirs {
            ending.over = true;
            ending.time_wait = !ending.peer_first;
            self.sender.stop(now, out);
            out.complete(TcpProgress::Closed);
        }
    }

    /// Answers a segment after the end: TimeWait acknowledges again; a connection that is gone resets.
    fn answer_late(&mut self, segment: &TcpSegment) {
        let Some(ending) = &mut self.ending else { return };
        if segment.flags.has(SegmentFlags::RST) {
            return;
        }
        if ending.time_wait {
            if segment.len > 0 || segment.flags.has(SegmentFlags::FIN) {
                self.receiver.force_ack();
            }
        } else if segment.flags.has(SegmentFlags::NO_ACK) {
            let len = u64::from(segment.len) + u64::from(segment.flags.has(SegmentFlags::FIN));
            ending.reset = Some(ResetSegment { seq: 0, ack: Some(segment.seq.wrapping_add(len)) });
        } else {
            ending.reset = Some(ResetSegment { seq: segment.ack, ack: None });
        }
    }

    /// Sends the RST that is due, if one is.
    pub(super) fn send_reset<O: Out<Self>>(&mut self, now: Time, out: &mut O) -> bool {
        let Some(reset) = self.ending.as_mut().and_then(|ending| ending.reset.take()) else { return false };
        let mut segment = TcpSegment { timestamp: timestamp(now), ..TcpSegment::default() };
        segment.flags = self.flags.with(SegmentFlags::RST);
        match reset.ack {
            Some(ack) => {
                self.receiver.fill(now, &mut segment, out);
                segment.ack = ack;
            }
            None => segment.flags = segment.flags.with(SegmentFlags::NO_ACK),
        }
        segment.seq = reset.seq;
        self.transmit(segment, out);
        true
    }
}
