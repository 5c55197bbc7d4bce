//! Packets that arrive from the wire, and the response of the life cycle to them.

use machine::{FrameBody, Machine, Out, QueueId};
use units::{Bytes, Time};
use wire::link::{Feedback, FrameKind, LinkHeader};

use super::{Endpoint, EndpointEvent, EndpointTimer, WIRE, lines};
use crate::packet::LinkPacket;
use crate::session::{SessionState, SessionStep};

impl<B: FrameBody> Endpoint<B> {
    /// Bytes off the wire, from our header on: what they are a frame of is acted upon, what they are not
    /// is dropped and counted. `body` makes a handle of the frame that follows the header.
    pub fn on_bytes<O>(&mut self, now: Time, bytes: &[u8], body: impl FnOnce(&[u8]) -> B, out: &mut O)
    where
        O: Out<Self>,
    {
        match LinkHeader::parse(bytes) {
            Ok((header, len)) => {
                let body = header.has_body().then(|| body(&bytes[len..]));
                self.on_frame(now, WIRE, LinkPacket { header, body }, out);
            }
            Err(_) => self.counters.rx_bad += 1,
        }
    }

    /// Handles a packet of any kind.
    #[inline(never)]
    pub(super) fn on_packet<O: Out<Self>>(&mut self, now: Time, packet: LinkPacket<B>, out: &mut O) {
        self.smooth = false;
        if packet.header.kind() == FrameKind::Bare {
            return match packet.body {
                Some(body) => self.on_bare(body, out),
                None => self.counters.rx_bad += 1,
            };
        }
        self.on_header(now, &packet.header, packet.body, out);
        self.release_bare(out);
        self.try_to_close(now, out);
        out.wake(WIRE);
    }

    /// A frame as it came. Protected frames that are still held came before it, from a sender that has
    /// restarted since; they go first. It may also be a stranger's, so they are not given up for it.
    pub(super) fn on_bare<O: Out<Self>>(&mut self, body: B, out: &mut O) {
        if self.auto.is_some() || self.is_empty() {
            return self.pass_up(body, out);
        }
        self.bare_bytes += Bytes::new(u64::from(body.len()));
        self.bare.push_back(body);
        if self.bare_bytes > self.params.ordering.limit {
            for line in &mut self.lines {
                line.rx.flush(&mut self.counters, out);
            }
            self.release_bare(out);
        }
        out.wake(WIRE);
    }

    /// True if everything received is delivered.
    pub(super) fn is_empty(&self) -> bool {
        self.lines.iter().all(|line| line.rx.is_empty())
    }

    pub(super) fn release_bare<O: Out<Self>>(&mut self, out: &mut O) {
        while !self.bare.is_empty() && self.is_empty() {
            if let Some(body) = self.bare.pop_front() {
                self.bare_bytes -= Bytes::new(u64::from(body.len()));
                self.pass_up(body, out);
            }
        }
    }

    #[inline]
    pub(super) fn on_header<O: Out<Self>>(&mut self, now: Time, header: &LinkHeader, body: Option<B>, out: &mut O) {
        let kind = header.kind();
        if !self.life.accepts(header.epoch()) || kind == FrameKind::Session {
            return self.on_other(now, header, body, out);
        }
        if self.life.state() == SessionState::Answering {
            let step = self.life.on_frame_of_epoch();
            self.follow(now, step, out);
        }
        if let Some(feedback) = header.feedback() {
            self.on_feedback(&feedback, kind, out);
        }
        self.on_kind(now, kind, body, out);
    }

    /// Life-cycle messages, and frames of another epoch.
    #[cold]
    pub(super) fn on_other<O: Out<Self>>(&mut self, now: Time, header: &LinkHeader, body: Option<B>, out: &mut O) {
        if let Some(message) = header.message() {
            let before = self.life.state();
            let heard = self.lines.iter().any(|line| line.tx.is_answered() || line.rx.has_heard());
            let step = self.life.on_message(now, message, heard);
            self.follow(now, step, out);
            // Only then: a peer that keeps talking must not put off our own repetition for ever.
            if self.life.state() != before {
                self.set_session_timer(now, out);
            }
            return body.into_iter().for_each(|body| out.release(body));
        }
        self.counters.rx_old_epoch += 1;
        self.life.on_strange_frame(now, header.epoch());
        match (header.kind(), body) {
            // Never protected, so it belongs to no epoch.
            (FrameKind::Plain, Some(body)) => self.pass_up(body, out),
            (_, Some(body)) => out.release(body),
            (_, None) => {}
        }
    }

    #[inline]
    pub(super) fn on_kind<O: Out<Self>>(&mut self, now: Time, kind: FrameKind, body: Option<B>, out: &mut O) {
        match (kind, body) {
            (FrameKind::Data(class, seq) | FrameKind::Retransmission(class, seq), Some(body)) => {
                let Some(line) = self.lines.iter_mut().find(|line| line.class == class) else {
                    self.counters.rx_bad += 1;
                    return out.release(body);
                };
                self.counters.rx_ok += 1;
                self.counters.rx_replay += u64::from(matches!(kind, FrameKind::Retransmission(..)));
                line.rx.on_data(now, seq, body, &mut self.counters, out);
            }
            (FrameKind::Dummy(class, seq), None) => {
                let Some(line) = self.lines.iter_mut().find(|line| line.class == class) else {
                    self.counters.rx_bad += 1;
                    return;
                };
                self.counters.rx_dummy += 1;
                line.rx.on_dummy(now, seq, &mut self.counters, out);
            }
            (FrameKind::Plain, Some(body)) => self.pass_up(body, out),
            (FrameKind::Ack | FrameKind::Notice, None) => {}
            (_, body) => {
                self.counters.rx_bad += 1;
                body.into_iter().for_each(|body| out.release(body));
            }
        }
    }

    pub(super) fn pass_up<O: Out<Self>>(&mut self, body: B, out: &mut O) {
        self.counters.rx_plain += 1;
        out.deliver(QueueId(0), body);
    }

    #[inline]
    pub(super) fn on_feedback<O: Out<Self>>(&mut self, feedback: &Feedback, kind: FrameKind, out: &mut O) {
        if matches!(kind, FrameKind::Notice) {
            self.counters.rx_nack += 1;
        } else {
            self.counters.rx_ack += 1;
        }
        let Some(line) = self.lines.iter_mut().find(|line| line.class == feedback.class) else {
            self.counters.rx_bad += 1;
            return;
        };
        let fresh = line.tx.is_fresh(feedback.latest);
        match line.tx.on_feedback(feedback, out) {
            Ok(missing) => {
                if fresh {
                    self.silence.end();
                }
                self.counters.tx_missing += u64::from(missing);
                if let Some(auto) = &mut self.auto {
                    auto.on_missing(missing);
                }
            }
            Err(_) => self.counters.rx_bad += 1,
        }
    }

    /// Carries out a decision of the life cycle.
    pub(super) fn follow<O: Out<Self>>(&mut self, now: Time, step: SessionStep, out: &mut O) {
        match step {
            SessionStep::Nothing => {}
            SessionStep::Bogus => self.counters.rx_bad += 1,
            SessionStep::Begin => self.begin(out),
            SessionStep::BeginAgain => {
                self.begin(out);
                out.complete(EndpointEvent::PeerLost);
            }
            SessionStep::BeginActive => {
                self.begin(out);
                out.complete(EndpointEvent::Activated);
            }
            SessionStep::Agreed => out.complete(EndpointEvent::Activated),
            SessionStep::Refused(reason) => out.complete(EndpointEvent::Refused(reason)),
            SessionStep::Forgotten | SessionStep::Contradicted => {
                self.counters.rx_bad += u64::from(step == SessionStep::Contradicted);
                self.begin(out);
                out.complete(EndpointEvent::PeerLost);
            }
            SessionStep::Closed => {
                self.begin(out);
                out.complete(EndpointEvent::Deactivated);
            }
        }
        if !matches!(step, SessionStep::Nothing | SessionStep::Bogus) {
            self.set_session_timer(now, out);
            out.wake(WIRE);
        }
    }

    /// Starts with fresh sequence numbers and lets go of everything that the last epoch left behind.
    pub(super) fn begin<O: Out<Self>>(&mut self, out: &mut O) {
        self.tx_peak = self.tx_peak();
        self.rx_peak = self.rx_peak();
        let first = self.params.first_seq.plus(self.life.first_number());
        let fresh = lines(&self.params, first, self.life.peer_window());
        for mut line in std::mem::replace(&mut self.lines, fresh) {
            self.counters.flushed += line.tx.flush(out);
            line.rx.flush(&mut self.counters, out);
        }
        self.release_bare(out);
        self.silence.end();
    }

    pub(super) fn set_session_timer<O: Out<Self>>(&self, now: Time, out: &mut O) {
        match self.life.retry_at(now) {
            Some(at) => out.arm(EndpointTimer::Session, at),
            None => out.disarm(EndpointTimer::Session),
        }
    }

    /// Closes a closing link if nothing is outstanding. Called after anything that may have changed that.
    #[inline]
    pub(super) fn try_to_close<O: Out<Self>>(&mut self, now: Time, out: &mut O) {
        if self.life.state() == SessionState::Closing {
            let step = self.life.try_to_close(self.is_drained(), self.is_empty());
            self.follow(now, step, out);
            self.wake_if_urgent(out);
        }
    }
}
