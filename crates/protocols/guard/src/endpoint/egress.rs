//! Choice of the next packet for the wire, strictly by priority.

use machine::{FrameBody, Out, Pull, QueueId};
use units::Time;
use wire::link::{Class, Feedback, FrameKind, LinkHeader};

use super::{ClassPair, Endpoint, EndpointEvent, WIRE, lane};
use crate::auto::{Auto, Level};
use crate::packet::LinkPacket;
use crate::session::SessionState;

impl<B: FrameBody> Endpoint<B> {
    pub(super) fn level(&self) -> Option<Level> {
        self.auto.as_ref().map(Auto::level)
    }

    /// The queue that feeds a class now; none if its frames go another way.
    pub(super) fn feed(&self, class: Class) -> Option<QueueId> {
        if self.life.state() != SessionState::Active || !self.params.protects {
            return None;
        }
        match self.level() {
            None => Some(lane(class)),
            Some(Level::Ordered) => (class == Class::Ordered).then_some(QueueId(0)),
            Some(Level::NonBlocking) => (class == Class::NonBlocking).then_some(QueueId(0)),
            Some(Level::Off) => None,
        }
    }

    pub(super) fn passes_plain(&self) -> bool {
        match self.life.state() {
            SessionState::Dormant | SessionState::Asking | SessionState::Answering => true,
            SessionState::Active => !self.params.protects || self.level() == Some(Level::Off),
            SessionState::Closing => false,
        }
    }

    #[inline]
    pub(super) fn transmit<O: Out<Self>>(
        &self,
        kind: FrameKind,
        feedback: Option<Feedback>,
        body: Option<B>,
        out: &mut O,
    ) {
        out.transmit(WIRE, LinkPacket::new(self.life.epoch(), kind, feedback, body));
    }

    /// The acknowledgement that is due, to ride on a frame.
    #[inline]
    pub(super) fn due_feedback(&mut self) -> Option<Feedback> {
        let first = self.ack_turn;
        let at = (first..self.lines.len()).chain(0..first).find(|at| self.lines[*at].rx.owes_ack())?;
        // The other class first next time: one that always owes must not keep the other from its turn.
        self.ack_turn = if at + 1 < self.lines.len() { at + 1 } else { 0 };
        Some(self.lines[at].rx.acknowledge())
    }

    /// An acknowledgement that is not due, where those are to ride along as well.
    #[inline]
    pub(super) fn eager_feedback(&mut self) -> Option<Feedback> {
        self.lines.iter_mut().find(|line| line.rx.may_ack()).map(|line| line.rx.acknowledge())
    }

    #[inline]
    pub(super) fn pull_control<O: Out<Self>>(&mut self, out: &mut O) -> bool {
        if self.life.has_message()
            && let Some(message) = self.life.next_message()
        {
            out.transmit(WIRE, LinkPacket { header: LinkHeader::session(self.life.epoch(), message), body: None });
            return true;
        }
        let Some(line) = self.lines.iter_mut().find(|line| line.rx.owes_notice()) else { return false };
        let feedback = line.rx.notify();
        self.counters.tx_nack += 1;
        self.transmit(FrameKind::Notice, Some(feedback), None, out);
        true
    }

    #[inline]
    pub(super) fn pull_copy<O: Out<Self>>(&mut self, out: &mut O) -> bool {
        if !self.lines.iter().any(|line| line.tx.has_requests()) {
            return false;
        }
        let copies = self.auto.as_ref().map_or(self.copies, Auto::copies);
        let first = self.copy_turn;
        for at in (first..self.lines.len()).chain(0..first) {
            let line = &mut self.lines[at];
            let class = line.class;
            if let Some((seq, body)) = line.tx.next_copy(copies, out) {
                self.copy_turn = if at + 1 < self.lines.len() { at + 1 } else { 0 };
                self.counters.tx_replay += 1;
                self.transmit(FrameKind::Retransmission(class, seq), None, Some(body), out);
                return true;
            }
        }
        false
    }

    /// A class that ran dry must say so ahead of the other's frames, or its lost tail stays unseen for
    /// as long as the other fills the wire.
    #[inline]
    pub(super) fn pull_announcement<O: Out<Self>>(&mut self, now: Time, out: &mut O) -> bool {
        if self.lines.len() < 2 || !matches!(self.life.state(), SessionState::Active | SessionState::Closing) {
            return false;
        }
        let due = |line: &ClassPair<B>| {
            line.tx.dummies.worth_announcing() <= now && line.tx.is_dry(self.feed(line.class), out)
        };
        let Some(at) = self.lines.iter().position(due) else { return false };
        self.send_dummy(now, at, out);
        true
    }

    #[inline]
    pub(super) fn pull_new<O: Out<Self>>(&mut self, out: &mut O) -> bool {
        let first = self.turn;
        let sent = (first..self.lines.len()).chain(0..first).any(|at| self.pull_data(at, out));
        sent || self.passes_plain() && self.pull_plain(out)
    }

    #[inline]
    pub(super) fn pull_data<O: Out<Self>>(&mut self, at: usize, out: &mut O) -> bool {
        let class = self.lines[at].class;
        let Some(fed) = self.feed(class) else { return false };
        let line = &mut self.lines[at];
        let Some(body) = line.tx.take(fed, &mut self.counters, out) else { return false };
        let seq = line.tx.push(out.keep(&body));
        self.turn = if at + 1 < self.lines.len() { at + 1 } else { 0 };
        self.counters.tx_ok += 1;
        let feedback = self.due_feedback().or_else(|| self.eager_feedback());
        self.transmit(FrameKind::Data(class, seq), feedback, Some(body), out);
        self.count_for_auto(out);
        true
    }

    pub(super) fn pull_plain<O: Out<Self>>(&mut self, out: &mut O) -> bool {
        let first = self.plain_turn;
        let taken = [first, 1 - first].into_iter().find_map(|lane| Some((lane, out.take(QueueId(lane))?)));
        let Some((lane, body)) = taken else { return false };
        self.plain_turn = 1 - lane;
        self.counters.tx_plain += 1;
        match self.due_feedback() {
            Some(feedback) => self.transmit(FrameKind::Plain, Some(feedback), Some(body), out),
            None => out.transmit(WIRE, LinkPacket::bare(body)),
        }
        self.count_for_auto(out);
        true
    }

    #[inline]
    pub(super) fn count_for_auto<O: Out<Self>>(&mut self, out: &mut O) {
        if let Some(auto) = &mut self.auto
            && auto.on_sent()
        {
            out.complete(EndpointEvent::Level(auto.level()));
        }
    }

    #[inline]
    pub(super) fn pull_ack<O: Out<Self>>(&mut self, out: &mut O) -> bool {
        let Some(feedback) = self.due_feedback() else { return false };
        self.counters.tx_ack += 1;
        self.transmit(FrameKind::Ack, Some(feedback), None, out);
        true
    }

    /// True if anything is left to send after an explicit acknowledgement, which goes after all else.
    pub(super) fn has_more<O: Out<Self>>(&self, out: &O) -> bool {
        let wants = |line: &ClassPair<B>| line.rx.owes_ack() || line.tx.is_dry(self.feed(line.class), out);
        self.lines.iter().any(wants)
    }

    pub(super) fn pull_dummy<O: Out<Self>>(&mut self, now: Time, out: &mut O) -> Pull {
        if !matches!(self.life.state(), SessionState::Active | SessionState::Closing) {
            return Pull::Idle;
        }
        let mut earliest: Option<Time> = None;
        for at in 0..self.lines.len() {
            let fed = self.feed(self.lines[at].class);
            let tx = &mut self.lines[at].tx;
            if !tx.is_dry(fed, out) {
                continue;
            }
            let due = tx.dummies.due(now);
            if due <= now {
                self.send_dummy(now, at, out);
                return Pull::Sent;
            }
            earliest = Some(earliest.map_or(due, |other| other.min(due)));
        }
        earliest.map_or(Pull::Idle, Pull::NotBefore)
    }

    pub(super) fn send_dummy<O: Out<Self>>(&mut self, now: Time, at: usize, out: &mut O) {
        let feedback = self.due_feedback();
        let line = &mut self.lines[at];
        line.tx.dummies.sent(now);
        let kind = FrameKind::Dummy(line.class, line.tx.latest_sent());
        self.counters.tx_dummy += 1;
        self.transmit(kind, feedback, None, out);
        self.notice_silence(now, out);
    }

    /// Strictly by priority.
    #[inline(never)]
    pub(super) fn pull_by_priority<O: Out<Self>>(&mut self, now: Time, out: &mut O) -> Pull {
        if self.pull_control(out) || self.pull_copy(out) || self.pull_announcement(now, out) || self.pull_new(out) {
            return Pull::Sent;
        }
        if self.pull_ack(out) {
            return if self.has_more(out) { Pull::Sent } else { Pull::Last };
        }
        self.pull_dummy(now, out)
    }

    /// Dummies for so long without a word from the peer: it is gone.
    pub(super) fn notice_silence<O: Out<Self>>(&mut self, now: Time, out: &mut O) {
        let silent = self.silence.on_dummy(now, self.params.dummies.every);
        if silent > self.params.patience && !self.params.dummies.endless {
            let step = self.life.on_silence();
            self.follow(now, step, out);
        }
    }
}
