//! Link-layer retry in the manner of Ultra Ethernet 1.0, to compare LinkGuardian with.
//!
//! Go-back-N: one number per frame (it rides in the preamble, so it costs no bytes), a replay buffer,
//! ACK and NACK as control ordered sets of eight bytes, a replay timer for the tail. After a gap the
//! receiver drops everything until the expected frame comes, so order is kept without a reorder buffer,
//! and every frame in flight is sent again.
//!
//! ```text
//!   transmitter   ADVANCE ──NACK, timer──▶ REPLAY ──all sent again──▶ ADVANCE
//!                    └──────── too many replays, or too old ──▶ FLUSH ──acknowledged──▶ ADVANCE
//!   receiver      SEND_ACKS ──gap──▶ SEND_NACK ──sent──▶ NACK_SENT ──expected frame──▶ SEND_ACKS
//! ```
//!
//! Scope: one direction is protected by each transmitter, both run in parallel; the start-up handshake
//! of the standard is left out. FLUSH discards what is outstanding and notifies the receiver where to
//! go on, which is the standard's `flush_action = discard`.
//!
//! Invariants: what is outstanding stays within both maxima; frames come out once and in order.

use std::collections::VecDeque;

use machine::{FrameBody, Machine, Out, Port, Pull, QueueId};
use units::{Bytes, Span, Time};
use wire::link::Class;

use crate::counters::Counters;
use crate::endpoint::{EndpointNote, WIRE};
use crate::params::LinkTiming;

/// Sequence numbers wrap from 524,287 to 0.
const NUMBERS: u32 = 1 << 19;

/// A control ordered set on the wire.
pub const CONTROL_LEN: u32 = 8;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct LlrNumber(u32);

impl LlrNumber {
    fn next(self) -> Self {
        self.plus(1)
    }

    fn plus(self, frames: u32) -> Self {
        Self((self.0 + frames) % NUMBERS)
    }

    /// Frames from `base` to here, negative if before; exact below half the range.
    fn offset_from(self, base: Self) -> i32 {
        let ahead = (self.0 + NUMBERS - base.0) % NUMBERS;
        if ahead < NUMBERS / 2 { ahead as i32 } else { ahead as i32 - NUMBERS as i32 }
    }
}

/// The names are the standard's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LlrProfile {
    /// Frames sent and not acknowledged, at most.
    pub max_outstanding_frames: u32,
    /// Their bytes, at most.
    pub max_outstanding_bytes: Bytes,
    /// Time that an acknowledgement may take before everything outstanding is sent again.
    pub max_replay_timer: Span,
    /// Replays without progress before the buffer is flushed.
    pub max_replay_count: u32,
    /// Age that a frame may reach in the replay buffer.
    pub data_age_timeout: Span,
    /// The least time between two control ordered sets: 2,048 bytes at the link's rate.
    pub ctlos_spacing: Span,
    /// The longest frame.
    pub mtu: u32,
}

impl LlrProfile {
    /// Sized as the sample profiles are: a round trip of data outstanding, a timer of four round trips,
    /// an age of four timers, three replays.
    pub fn for_path(path: &LinkTiming) -> Self {
        let ctlos_spacing = path.rate.span_of(Bytes::new(2_048));
        let round_trip = path.round_trip() + ctlos_spacing;
        let bytes = path.rate.bytes_in(round_trip) + Bytes::new(u64::from(path.mtu)) * 2;
        Self {
            max_outstanding_frames: (bytes.get() / 84).clamp(16, u64::from(NUMBERS / 4)) as u32,
            max_outstanding_bytes: bytes,
            max_replay_timer: round_trip * 4,
            max_replay_count: 3,
            data_age_timeout: round_trip * 16,
            ctlos_spacing,
            mtu: path.mtu,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ControlOrderedSet {
    /// Everything before this number arrived.
    Ack(LlrNumber),
    /// Everything before it arrived, this one did not.
    Nack(LlrNumber),
    /// Everything before this number was discarded: expect it next.
    Skip(LlrNumber),
}

/// A frame or a control ordered set; which, only this module knows.
#[derive(Clone, Debug)]
pub struct LlrPacket<B> {
    content: LlrContent<B>,
}

#[derive(Clone, Debug)]
enum LlrContent<B> {
    Frame(LlrNumber, B),
    Control(ControlOrderedSet),
}

impl<B: FrameBody> LlrPacket<B> {
    /// The frame's length, or none for a control ordered set.
    pub fn frame_len(&self) -> Option<u32> {
        self.body().map(FrameBody::len)
    }

    /// The frame, if it is not a control ordered set.
    pub fn body(&self) -> Option<&B> {
        match &self.content {
            LlrContent::Frame(_, body) => Some(body),
            LlrContent::Control(_) => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TxState {
    Advance,
    /// The next frame of the replay buffer to be sent again.
    Replay(usize),
    Flush,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RxState {
    SendAcks,
    SendNack,
    NackSent,
}

/// Timers of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LlrTimer {
    /// An acknowledgement is overdue.
    Replay,
}

impl From<LlrTimer> for usize {
    fn from(_: LlrTimer) -> usize {
        0
    }
}

#[derive(Debug)]
struct Outstanding<B> {
    body: B,
    sent: Time,
}

/// One end of a link that retries.
#[derive(Debug)]
pub struct LlrEndpoint<B> {
    profile: LlrProfile,
    tx: TxState,
    base: LlrNumber,
    buffer: VecDeque<Outstanding<B>>,
    bytes: Bytes,
    peak: Bytes,
    replays: u32,
    rx: RxState,
    expected: LlrNumber,
    missing_since: Option<Time>,
    /// Missing frames that have not come yet.
    missing: u64,
    owes_ack: bool,
    /// The receiver must still be notified where to go on after a flush.
    owes_skip: bool,
    next_control: Time,
    counters: Counters,
}

impl<B: FrameBody> LlrEndpoint<B> {
    /// An endpoint that has sent and received nothing.
    pub fn new(profile: LlrProfile) -> Self {
        Self {
            profile,
            tx: TxState::Advance,
            base: LlrNumber::default(),
            buffer: VecDeque::new(),
            bytes: Bytes::ZERO,
            peak: Bytes::ZERO,
            replays: 0,
            rx: RxState::SendAcks,
            expected: LlrNumber::default(),
            missing_since: None,
            missing: 0,
            owes_ack: false,
            owes_skip: false,
            next_control: Time::ZERO,
            counters: Counters::default(),
        }
    }

    /// Counters since the endpoint was made.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The highest that the replay buffer has been.
    pub fn tx_peak(&self) -> Bytes {
        self.peak
    }

    /// Bytes in the replay buffer.
    pub fn tx_buffered(&self) -> Bytes {
        self.bytes
    }

    /// True if nothing is being replayed or missing.
    pub fn is_calm(&self) -> bool {
        self.tx == TxState::Advance && self.rx == RxState::SendAcks && self.replays == 0
    }

    /// True if everything sent was acknowledged.
    pub fn is_drained(&self) -> bool {
        self.buffer.is_empty() && self.tx != TxState::Flush
    }

    fn has_room(&self) -> bool {
        self.buffer.len() < self.profile.max_outstanding_frames as usize
            && self.bytes + Bytes::new(u64::from(self.profile.mtu)) <= self.profile.max_outstanding_bytes
    }

    fn on_body<O: Out<Self>>(&mut self, now: Time, number: LlrNumber, body: B, out: &mut O) {
        self.counters.rx_ok += 1;
        match number.offset_from(self.expected) {
            0 => {
                self.counters.rx_expected_seq_good += 1;
                self.expected = number.next();
                self.owes_ack = true;
                self.rx = RxState::SendAcks;
                if self.missing > 0 {
                    self.missing -= 1;
                    self.counters.recovered += 1;
                }
                if let Some(since) = self.missing_since.take() {
                    out.note(EndpointNote::Recovered { class: Class::Ordered, after: now.since(since) });
                }
                out.deliver(QueueId(0), body);
            }
            ahead => {
                if ahead < 0 {
                    self.counters.rx_duplicate_seq += 1;
                    self.owes_ack = true;
                } else if self.rx == RxState::SendAcks {
                    self.counters.rx_missing_seq += ahead as u64;
                    out.note(EndpointNote::Missing { class: Class::Ordered, frames: ahead as u32 });
                    self.missing = ahead as u64;
                    self.missing_since = Some(now);
                    self.rx = RxState::SendNack;
                }
                out.release(body);
            }
        }
    }

    fn on_control<O: Out<Self>>(&mut self, now: Time, control: ControlOrderedSet, out: &mut O) {
        match control {
            ControlOrderedSet::Ack(upto) => {
                self.counters.rx_ack += 1;
                self.free(now, upto, out);
            }
            ControlOrderedSet::Nack(upto) => {
                self.counters.rx_nack += 1;
                self.free(now, upto, out);
                if upto == self.base && !self.buffer.is_empty() {
                    self.replay(now, out);
                }
            }
            ControlOrderedSet::Skip(upto) => {
                let skipped = upto.offset_from(self.expected);
                if skipped > 0 {
                    self.counters.given_up += skipped as u64;
                    out.note(EndpointNote::GivenUp { class: Class::Ordered, frames: skipped as u32 });
                    self.expected = upto;
                    self.missing = 0;
                    self.missing_since = None;
                    self.rx = RxState::SendAcks;
                }
                self.owes_ack = true;
            }
        }
    }

    /// Releases frames before `upto`.
    fn free<O: Out<Self>>(&mut self, now: Time, upto: LlrNumber, out: &mut O) {
        let freed = upto.offset_from(self.base);
        if self.tx == TxState::Flush && freed == 0 {
            self.tx = TxState::Advance;
            out.disarm(LlrTimer::Replay);
        }
        if freed <= 0 || freed as usize > self.buffer.len() {
            return;
        }
        for outstanding in self.buffer.drain(..freed as usize) {
            self.bytes -= Bytes::new(u64::from(outstanding.body.len()));
            out.release(outstanding.body);
        }
        self.base = upto;
        self.replays = 0;
        if let TxState::Replay(at) = self.tx {
            self.tx = TxState::Replay(at.saturating_sub(freed as usize));
        }
        self.set_timer(now, out);
    }

    fn set_timer<O: Out<Self>>(&self, now: Time, out: &mut O) {
        if self.buffer.is_empty() && self.tx != TxState::Flush {
            out.disarm(LlrTimer::Replay);
        } else {
            out.arm(LlrTimer::Replay, now + self.profile.max_replay_timer);
        }
    }

    /// Starts the replay buffer from the front, or flushes it when that has been tried enough.
    fn replay<O: Out<Self>>(&mut self, now: Time, out: &mut O) {
        let too_old = self.buffer.front().is_some_and(|head| now.since(head.sent) > self.profile.data_age_timeout);
        if self.replays >= self.profile.max_replay_count || too_old {
            self.flush(out);
        } else {
            self.replays += 1;
            self.tx = TxState::Replay(0);
        }
        self.set_timer(now, out);
    }

    fn flush<O: Out<Self>>(&mut self, out: &mut O) {
        self.counters.flushed += self.buffer.len() as u64;
        self.base = self.base.plus(self.buffer.len() as u32);
        self.buffer.drain(..).for_each(|outstanding| out.release(outstanding.body));
        self.bytes = Bytes::ZERO;
        self.replays = 0;
        self.tx = TxState::Flush;
        self.owes_skip = true;
    }

    fn next_control(&mut self, now: Time) -> Option<ControlOrderedSet> {
        if now < self.next_control {
            return None;
        }
        let control = if std::mem::take(&mut self.owes_skip) {
            self.next_control = now + self.profile.ctlos_spacing;
            return Some(ControlOrderedSet::Skip(self.base));
        } else if self.rx == RxState::SendNack {
            self.rx = RxState::NackSent;
            self.counters.tx_nack += 1;
            ControlOrderedSet::Nack(self.expected)
        } else if self.owes_ack {
            self.counters.tx_ack += 1;
            ControlOrderedSet::Ack(self.expected)
        } else {
            return None;
        };
        self.owes_ack = false;
        self.next_control = now + self.profile.ctlos_spacing;
        Some(control)
    }

    fn owes_control(&self) -> bool {
        self.owes_ack || self.owes_skip || self.rx == RxState::SendNack
    }

    fn next_frame<O: Out<Self>>(&mut self, now: Time, out: &mut O) -> Option<(LlrNumber, B)> {
        if let TxState::Replay(at) = self.tx {
            if let Some(outstanding) = self.buffer.get(at) {
                self.counters.tx_replay += 1;
                self.tx = TxState::Replay(at + 1);
                return Some((self.base.plus(at as u32), out.keep(&outstanding.body)));
            }
            self.tx = TxState::Advance;
        }
        if self.tx != TxState::Advance || !self.has_room() {
            return None;
        }
        let body = out.take(QueueId(0))?;
        let number = self.base.plus(self.buffer.len() as u32);
        self.counters.tx_ok += 1;
        self.bytes += Bytes::new(u64::from(body.len()));
        self.peak = self.peak.max(self.bytes);
        self.buffer.push_back(Outstanding { body: out.keep(&body), sent: now });
        if self.buffer.len() == 1 {
            self.set_timer(now, out);
        }
        Some((number, body))
    }
}

impl<B: FrameBody> Machine for LlrEndpoint<B> {
    type Frame = LlrPacket<B>;
    type Inner = B;
    type Timer = LlrTimer;
    type Command = ();
    type Done = ();
    type Note = EndpointNote;

    fn on_frame<O: Out<Self>>(&mut self, now: Time, _port: Port, packet: LlrPacket<B>, out: &mut O) {
        match packet.content {
            LlrContent::Frame(number, body) => self.on_body(now, number, body, out),
            LlrContent::Control(control) => self.on_control(now, control, out),
        }
        out.wake(WIRE);
    }

    fn on_timer<O: Out<Self>>(&mut self, now: Time, _key: LlrTimer, out: &mut O) {
        if self.tx == TxState::Flush {
            self.owes_skip = true;
            self.set_timer(now, out);
        } else if !self.buffer.is_empty() {
            self.replay(now, out);
        }
        out.wake(WIRE);
    }

    fn on_command<O: Out<Self>>(&mut self, _now: Time, _command: (), _out: &mut O) {}

    fn pull<O: Out<Self>>(&mut self, now: Time, port: Port, out: &mut O) -> Pull {
        if let Some(control) = self.next_control(now) {
            out.transmit(port, LlrPacket { content: LlrContent::Control(control) });
            return Pull::Sent;
        }
        if let Some((number, body)) = self.next_frame(now, out) {
            out.transmit(port, LlrPacket { content: LlrContent::Frame(number, body) });
            return Pull::Sent;
        }
        if self.owes_control() { Pull::NotBefore(self.next_control) } else { Pull::Idle }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_wrap_where_the_standard_says() {
        assert_eq!(LlrNumber(524_287).next(), LlrNumber(0));
        assert_eq!(LlrNumber(3).offset_from(LlrNumber(524_286)), 5);
        assert_eq!(LlrNumber(524_286).offset_from(LlrNumber(3)), -5);
    }
}
