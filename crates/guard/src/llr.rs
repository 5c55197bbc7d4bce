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
//! of the standard is left out. FLUSH discards what is outstanding and tells the receiver where to
//! go on, which is the standard's `flush_action = discard`.
//!
//! Invariants: what is outstanding stays within both maxima; frames come out once and in order.

use std::collections::VecDeque;

use machine::{Lane, Machine, Out, Port, Pull};
use units::{Bytes, Span, Time};
use wire::link::Class;

use crate::counters::Counters;
use crate::endpoint::{Note, WIRE};
use crate::packet::Body;
use crate::params::Path;

/// Sequence numbers wrap from 524,287 to 0.
const NUMBERS: u32 = 1 << 19;

/// A control ordered set on the wire.
pub const CONTROL_LEN: u32 = 8;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Number(u32);

impl Number {
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
pub struct Profile {
    /// Frames sent and not acknowledged, at most.
    pub max_outstanding_frames: u32,
    /// Their bytes, at most.
    pub max_outstanding_bytes: Bytes,
    /// How long an acknowledgement may take before everything outstanding is sent again.
    pub max_replay_timer: Span,
    /// Replays without progress before the buffer is flushed.
    pub max_replay_count: u32,
    /// How old a frame may become in the replay buffer.
    pub data_age_timeout: Span,
    /// The least time between two control ordered sets: 2,048 bytes at the link's rate.
    pub ctlos_spacing: Span,
    /// The longest frame.
    pub mtu: u32,
}

impl Profile {
    /// Sized as the sample profiles are: a round trip of data outstanding, a timer of four round trips,
    /// an age of four timers, three replays.
    pub fn for_path(path: &Path) -> Self {
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
enum Control {
    /// Everything before this number arrived.
    Ack(Number),
    /// Everything before it arrived, this one did not.
    Nack(Number),
    /// What came before this number was discarded: expect it next.
    Skip(Number),
}

/// A frame or a control ordered set; which, only this module knows.
#[derive(Clone, Debug)]
pub struct Packet<B> {
    content: Content<B>,
}

#[derive(Clone, Debug)]
enum Content<B> {
    Frame(Number, B),
    Control(Control),
}

impl<B: Body> Packet<B> {
    /// The frame's length, or none for a control ordered set.
    pub fn frame_len(&self) -> Option<u32> {
        self.body().map(Body::len)
    }

    /// The frame, if it is not a control ordered set.
    pub fn body(&self) -> Option<&B> {
        match &self.content {
            Content::Frame(_, body) => Some(body),
            Content::Control(_) => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tx {
    Advance,
    /// The next frame of the replay buffer to be sent again.
    Replay(usize),
    Flush,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rx {
    SendAcks,
    SendNack,
    NackSent,
}

/// What an endpoint waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerKey {
    /// An acknowledgement is overdue.
    Replay,
}

impl From<TimerKey> for usize {
    fn from(_: TimerKey) -> usize {
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
pub struct Endpoint<B> {
    profile: Profile,
    tx: Tx,
    base: Number,
    buffer: VecDeque<Outstanding<B>>,
    bytes: Bytes,
    peak: Bytes,
    replays: u32,
    rx: Rx,
    expected: Number,
    missing_since: Option<Time>,
    /// Missing frames that have not come yet.
    missing: u64,
    owes_ack: bool,
    /// The receiver is to be told where to go on after a flush.
    owes_skip: bool,
    next_control: Time,
    counters: Counters,
}

impl<B: Body> Endpoint<B> {
    /// An endpoint that has sent and received nothing.
    pub fn new(profile: Profile) -> Self {
        Self {
            profile,
            tx: Tx::Advance,
            base: Number::default(),
            buffer: VecDeque::new(),
            bytes: Bytes::ZERO,
            peak: Bytes::ZERO,
            replays: 0,
            rx: Rx::SendAcks,
            expected: Number::default(),
            missing_since: None,
            missing: 0,
            owes_ack: false,
            owes_skip: false,
            next_control: Time::ZERO,
            counters: Counters::default(),
        }
    }

    /// What was counted since it was made.
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

    /// Nothing is being replayed or missing.
    pub fn is_calm(&self) -> bool {
        self.tx == Tx::Advance && self.rx == Rx::SendAcks && self.replays == 0
    }

    /// Everything sent was acknowledged.
    pub fn is_drained(&self) -> bool {
        self.buffer.is_empty() && self.tx != Tx::Flush
    }

    fn has_room(&self) -> bool {
        self.buffer.len() < self.profile.max_outstanding_frames as usize
            && self.bytes + Bytes::new(u64::from(self.profile.mtu)) <= self.profile.max_outstanding_bytes
    }

    fn on_body<O: Out<Self>>(&mut self, now: Time, number: Number, body: B, out: &mut O) {
        self.counters.rx_ok += 1;
        match number.offset_from(self.expected) {
            0 => {
                self.counters.rx_expected_seq_good += 1;
                self.expected = number.next();
                self.owes_ack = true;
                self.rx = Rx::SendAcks;
                if self.missing > 0 {
                    self.missing -= 1;
                    self.counters.recovered += 1;
                }
                if let Some(since) = self.missing_since.take() {
                    out.note(Note::Recovered { class: Class::Ordered, after: now.since(since) });
                }
                out.deliver(Lane(0), body);
            }
            ahead => {
                if ahead < 0 {
                    self.counters.rx_duplicate_seq += 1;
                    self.owes_ack = true;
                } else if self.rx == Rx::SendAcks {
                    self.counters.rx_missing_seq += ahead as u64;
                    out.note(Note::Missing { class: Class::Ordered, frames: ahead as u32 });
                    self.missing = ahead as u64;
                    self.missing_since = Some(now);
                    self.rx = Rx::SendNack;
                }
                out.release(body);
            }
        }
    }

    fn on_control<O: Out<Self>>(&mut self, now: Time, control: Control, out: &mut O) {
        match control {
            Control::Ack(upto) => {
                self.counters.rx_ack += 1;
                self.free(now, upto, out);
            }
            Control::Nack(upto) => {
                self.counters.rx_nack += 1;
                self.free(now, upto, out);
                if upto == self.base && !self.buffer.is_empty() {
                    self.replay(now, out);
                }
            }
            Control::Skip(upto) => {
                let skipped = upto.offset_from(self.expected);
                if skipped > 0 {
                    self.counters.given_up += skipped as u64;
                    out.note(Note::GivenUp { class: Class::Ordered, frames: skipped as u32 });
                    self.expected = upto;
                    self.missing = 0;
                    self.missing_since = None;
                    self.rx = Rx::SendAcks;
                }
                self.owes_ack = true;
            }
        }
    }

    /// Lets go of frames before `upto`.
    fn free<O: Out<Self>>(&mut self, now: Time, upto: Number, out: &mut O) {
        let freed = upto.offset_from(self.base);
        if self.tx == Tx::Flush && freed == 0 {
            self.tx = Tx::Advance;
            out.disarm(TimerKey::Replay);
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
        if let Tx::Replay(at) = self.tx {
            self.tx = Tx::Replay(at.saturating_sub(freed as usize));
        }
        self.set_timer(now, out);
    }

    fn set_timer<O: Out<Self>>(&self, now: Time, out: &mut O) {
        if self.buffer.is_empty() && self.tx != Tx::Flush {
            out.disarm(TimerKey::Replay);
        } else {
            out.arm(TimerKey::Replay, now + self.profile.max_replay_timer);
        }
    }

    /// Starts the replay buffer from the front, or flushes it when that has been tried enough.
    fn replay<O: Out<Self>>(&mut self, now: Time, out: &mut O) {
        let too_old = self.buffer.front().is_some_and(|head| now.since(head.sent) > self.profile.data_age_timeout);
        if self.replays >= self.profile.max_replay_count || too_old {
            self.flush(out);
        } else {
            self.replays += 1;
            self.tx = Tx::Replay(0);
        }
        self.set_timer(now, out);
    }

    fn flush<O: Out<Self>>(&mut self, out: &mut O) {
        self.counters.flushed += self.buffer.len() as u64;
        self.base = self.base.plus(self.buffer.len() as u32);
        self.buffer.drain(..).for_each(|outstanding| out.release(outstanding.body));
        self.bytes = Bytes::ZERO;
        self.replays = 0;
        self.tx = Tx::Flush;
        self.owes_skip = true;
    }

    fn next_control(&mut self, now: Time) -> Option<Control> {
        if now < self.next_control {
            return None;
        }
        let control = if std::mem::take(&mut self.owes_skip) {
            self.next_control = now + self.profile.ctlos_spacing;
            return Some(Control::Skip(self.base));
        } else if self.rx == Rx::SendNack {
            self.rx = Rx::NackSent;
            self.counters.tx_nack += 1;
            Control::Nack(self.expected)
        } else if self.owes_ack {
            self.counters.tx_ack += 1;
            Control::Ack(self.expected)
        } else {
            return None;
        };
        self.owes_ack = false;
        self.next_control = now + self.profile.ctlos_spacing;
        Some(control)
    }

    fn owes_control(&self) -> bool {
        self.owes_ack || self.owes_skip || self.rx == Rx::SendNack
    }

    fn next_frame<O: Out<Self>>(&mut self, now: Time, out: &mut O) -> Option<(Number, B)> {
        if let Tx::Replay(at) = self.tx {
            if let Some(outstanding) = self.buffer.get(at) {
                self.counters.tx_replay += 1;
                self.tx = Tx::Replay(at + 1);
                return Some((self.base.plus(at as u32), out.keep(&outstanding.body)));
            }
            self.tx = Tx::Advance;
        }
        if self.tx != Tx::Advance || !self.has_room() {
            return None;
        }
        let body = out.take(Lane(0))?;
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

impl<B: Body> Machine for Endpoint<B> {
    type Frame = Packet<B>;
    type Inner = B;
    type Timer = TimerKey;
    type Command = ();
    type Done = ();
    type Note = Note;

    fn on_frame<O: Out<Self>>(&mut self, now: Time, _port: Port, packet: Packet<B>, out: &mut O) {
        match packet.content {
            Content::Frame(number, body) => self.on_body(now, number, body, out),
            Content::Control(control) => self.on_control(now, control, out),
        }
        out.wake(WIRE);
    }

    fn on_timer<O: Out<Self>>(&mut self, now: Time, _key: TimerKey, out: &mut O) {
        if self.tx == Tx::Flush {
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
            out.transmit(port, Packet { content: Content::Control(control) });
            return Pull::Sent;
        }
        if let Some((number, body)) = self.next_frame(now, out) {
            out.transmit(port, Packet { content: Content::Frame(number, body) });
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
        assert_eq!(Number(524_287).next(), Number(0));
        assert_eq!(Number(3).offset_from(Number(524_286)), 5);
        assert_eq!(Number(524_286).offset_from(Number(3)), -5);
    }
}
