//! The receiving side of a message: what has arrived, what is missing, what is to be said about it.

use std::collections::VecDeque;

use machine::Out;
use units::Time;

use super::{
    GrantKey, GrantScheduler, ReceiverDriven, ReceiverDrivenConfig, ReceiverDrivenNote, ReceiverDrivenPacket,
    ReceiverDrivenTimer,
};
use units::{StreamRange, StreamRanges};

/// Gaps that are asked for at a timeout; the next timeout asks for the rest.
const MOST_GAPS: usize = 64;

/// Invariant: `received` is what `arrived` covers, and at most `total`.
#[derive(Debug)]
pub(super) struct MessageReceiver {
    grants: GrantScheduler,
    key: GrantKey,
    peer: u32,
    total: u64,
    /// Bytes that may be sent unasked, and bytes that the sender knows to be granted.
    unasked: u64,
    announced: u64,
    arrived: StreamRanges,
    received: u64,
    /// End of the bytes that have arrived.
    highest: u64,
    /// Gaps to report.
    missing: VecDeque<StreamRange>,
    owes_hello: bool,
    owes_done: bool,
}

impl MessageReceiver {
    pub(super) fn new(grants: GrantScheduler, key: GrantKey, peer: u32) -> Self {
        Self {
            grants,
            key,
            peer,
            total: 0,
            unasked: 0,
            announced: 0,
            arrived: StreamRanges::default(),
            received: 0,
            highest: 0,
            missing: VecDeque::new(),
            owes_hello: false,
            owes_done: false,
        }
    }

    pub(super) fn received(&self) -> u64 {
        self.received
    }

    pub(super) fn owes(&self) -> bool {
        self.owes_hello || self.owes_done || !self.missing.is_empty() || self.ungranted().is_some()
    }

    pub(super) fn close(&mut self) {
        self.grants.remove(self.key);
    }

    /// Takes data: its position, its length, and the length of the message.
    pub(super) fn on_data<O: Out<ReceiverDriven>>(
        &mut self,
        now: Time,
        config: &ReceiverDrivenConfig,
        (offset, len, total): (u64, u32, u64),
        out: &mut O,
    ) {
        let end = offset.saturating_add(u64::from(len));
        if len == 0 || end > total {
            return;
        }
        self.learn_total(config, total);
        // With priorities, packets of one message overtake each other: only the timer tells what is lost.
        if offset > self.highest && config.levels.is_none() {
            self.missing.push_back(StreamRange { from: self.highest, to: offset });
            out.note(ReceiverDrivenNote::Gap);
        }
        self.highest = self.highest.max(end);
        let before = self.received;
        self.arrived.insert(offset, end);
        self.received = self.arrived.descending().map(|range| range.to - range.from).sum();
        let grew = self.received > before;
        if grew {
            out.complete(self.received);
        }
        if self.received == self.total {
            self.missing.clear();
            self.owes_hello = false;
            self.owes_done = true;
            self.grants.remove(self.key);
            out.disarm(ReceiverDrivenTimer::Receiver);
        } else {
            if self.total > self.unasked {
                self.grants.update(self.key, self.peer, [self.received, self.total], self.announced);
            }
            // Bytes that came before, such as a sender's repetitions, do not put off the timer.
            if grew {
                self.wait(now, config, out);
            }
        }
    }

    pub(super) fn on_timeout<O: Out<ReceiverDriven>>(&mut self, now: Time, config: &ReceiverDrivenConfig, out: &mut O) {
        if self.received == self.total {
            return;
        }
        out.note(ReceiverDrivenNote::ReceiverTimeout);
        self.missing = self.gaps(self.announced).into();
        self.wait(now, config, out);
    }

    /// Next control packet, the most urgent first. After a grant it waits for what was granted.
    pub(super) fn next_control(&mut self, config: &ReceiverDrivenConfig) -> Option<ReceiverDrivenPacket> {
        if let Some(StreamRange { from, to }) = self.missing.pop_front() {
            return Some(ReceiverDrivenPacket::Resend { from, to });
        }
        if std::mem::take(&mut self.owes_done) {
            return Some(ReceiverDrivenPacket::Done { until: self.total });
        }
        let (granted, level) = match self.ungranted() {
            Some(granted) => granted,
            None if self.owes_hello => (self.announced, config.policy.first_level.unwrap_or_default()),
            None => return None,
        };
        self.owes_hello = false;
        self.announced = granted.min(self.announced.saturating_add(config.policy.step)).max(self.announced);
        Some(ReceiverDrivenPacket::Grant { until: self.announced, level })
    }

    /// Grant of the scheduler that the sender does not know.
    fn ungranted(&self) -> Option<(u64, u8)> {
        if self.total <= self.unasked || self.received == self.total {
            return None;
        }
        self.grants.granted(self.key).filter(|(granted, _)| *granted > self.announced)
    }

    /// The first packet tells how long a message is; a sender may be asked for more later.
    fn learn_total(&mut self, config: &ReceiverDrivenConfig, total: u64) {
        if total > self.total {
            self.unasked = self.total.saturating_add((total - self.total).min(config.unasked));
            self.announced = self.announced.max(self.unasked);
            self.owes_hello = total > self.unasked;
            self.total = total;
        }
    }

    /// Waits for what may be under way.
    pub(super) fn wait<O: Out<ReceiverDriven>>(&mut self, now: Time, config: &ReceiverDrivenConfig, out: &mut O) {
        if self.received < self.announced {
            out.arm(ReceiverDrivenTimer::Receiver, now + config.timeout);
        } else {
            out.disarm(ReceiverDrivenTimer::Receiver);
        }
    }

    /// Gaps before `until`.
    fn gaps(&self, until: u64) -> Vec<StreamRange> {
        let mut gaps = Vec::new();
        let mut from = 0;
        while from < until && gaps.len() < MOST_GAPS {
            let next = self.arrived.at_or_after(from);
            let to = next.map_or(until, |range| range.from.min(until));
            if from < to {
                gaps.push(StreamRange { from, to });
            }
            from = next.map_or(until, |range| range.to);
        }
        gaps
    }

    pub(super) fn check_invariants(&self) {
        debug_assert!(self.received <= self.total, "{self:?}");
    }
}
