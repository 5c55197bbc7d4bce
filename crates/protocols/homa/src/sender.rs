//! The sending side of a message: unasked bytes first, then what is granted, and what is asked for again before either.

use std::collections::VecDeque;

use machine::Out;
use units::Time;

use super::{ReceiverDriven, ReceiverDrivenConfig, ReceiverDrivenNote, ReceiverDrivenPacket, ReceiverDrivenTimer};
use units::StreamRange;

/// Invariant: `done` ≤ `total`; `next` ≤ what may leave.
#[derive(Debug)]
pub(super) struct MessageSender {
    total: u64,
    /// End of the bytes that may leave without a grant; `granted` is the end of those that may leave with one.
    unasked: u64,
    granted: u64,
    next: u64,
    /// Ranges to be sent again.
    repeats: VecDeque<StreamRange>,
    /// True once the receiver has answered.
    heard: bool,
    /// Bytes that the receiver has.
    done: u64,
    /// Priority of what was granted.
    level: u8,
}

impl MessageSender {
    pub(super) fn new(config: &ReceiverDrivenConfig) -> Self {
        let level = config.policy.first_level.unwrap_or_default();
        Self { total: 0, unasked: 0, granted: 0, next: 0, repeats: VecDeque::new(), heard: false, done: 0, level }
    }

    /// More is to be sent.
    pub(super) fn ask(&mut self, config: &ReceiverDrivenConfig, bytes: u64) {
        self.unasked = self.total.saturating_add(bytes.min(config.unasked));
        self.total = self.total.saturating_add(bytes);
    }

    pub(super) fn has_any(&self) -> bool {
        !self.repeats.is_empty() || self.next < self.permitted()
    }

    pub(super) fn level(&self, config: &ReceiverDrivenConfig) -> u8 {
        match config.levels {
            Some(levels) if self.next < self.unasked => levels.of(self.total),
            Some(_) => self.level,
            None => 0,
        }
    }

    pub(super) fn on_grant(&mut self, until: u64, level: u8) {
        self.heard = true;
        self.granted = self.granted.max(until.min(self.total));
        self.level = level;
    }

    /// Sends a range again; bytes in it that were never sent are thereby granted.
    pub(super) fn on_resend(&mut self, from: u64, to: u64) {
        self.heard = true;
        let to = to.min(self.total);
        self.granted = self.granted.max(to);
        let to = to.min(self.next);
        if from < to && !self.repeats.iter().any(|range| range.from <= from && to <= range.to) {
            self.repeats.push_back(StreamRange { from, to });
        }
    }

    pub(super) fn on_done(&mut self, until: u64) {
        self.heard = true;
        self.done = self.done.max(until.min(self.next));
        if self.done == self.total {
            self.repeats.clear();
        }
    }

    /// Waits for the receiver, from now on, if there is something to wait for.
    pub(super) fn wait<O: Out<ReceiverDriven>>(&mut self, now: Time, config: &ReceiverDrivenConfig, out: &mut O) {
        if self.done < self.total {
            out.arm(ReceiverDrivenTimer::Sender, now + config.timeout);
        } else {
            out.disarm(ReceiverDrivenTimer::Sender);
        }
    }

    pub(super) fn on_timeout<O: Out<ReceiverDriven>>(&mut self, now: Time, config: &ReceiverDrivenConfig, out: &mut O) {
        if self.done == self.total {
            return;
        }
        self.wait(now, config, out);
        // Bytes that wait for the wire were not lost.
        if self.has_any() || self.next == 0 {
            return;
        }
        out.note(ReceiverDrivenNote::SenderTimeout);
        let all = config.repeats_all && !self.heard;
        let from = if all { self.done } else { self.next.saturating_sub(u64::from(config.payload)).max(self.done) };
        self.repeats.push_back(StreamRange { from, to: self.next });
    }

    pub(super) fn pull<O: Out<ReceiverDriven>>(
        &mut self,
        now: Time,
        config: &ReceiverDrivenConfig,
        out: &mut O,
    ) -> Option<ReceiverDrivenPacket> {
        let level = self.level(config);
        let payload = u64::from(config.payload);
        let repeated = self.next_repeat(payload);
        if repeated.is_some() {
            out.note(ReceiverDrivenNote::Retransmitted);
        }
        let StreamRange { from, to } = repeated.or_else(|| self.next_new(payload))?;
        self.wait(now, config, out);
        Some(ReceiverDrivenPacket::Data { offset: from, len: (to - from) as u32, total: self.total, level })
    }

    fn next_repeat(&mut self, payload: u64) -> Option<StreamRange> {
        let range = self.repeats.front_mut()?;
        let next = StreamRange { from: range.from, to: range.to.min(range.from + payload) };
        range.from = next.to;
        if range.from == range.to {
            self.repeats.pop_front();
        }
        Some(next)
    }

    fn next_new(&mut self, payload: u64) -> Option<StreamRange> {
        let (from, to) = (self.next, self.permitted().min(self.next + payload));
        self.next = to;
        (from < to).then_some(StreamRange { from, to })
    }

    fn permitted(&self) -> u64 {
        self.unasked.max(self.granted).min(self.total)
    }

    pub(super) fn check_invariants(&self) {
        debug_assert!(self.done <= self.total && self.next <= self.permitted(), "{self:?}");
    }
}
