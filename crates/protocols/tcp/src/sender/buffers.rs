//! Buffers of a socket: writes fill them, and super-frames leave from them. `tcp_sendmsg_locked`, `tcp_write_xmit`.
//!
//! A write fills the last buffer if nothing of it has left, and begins others; a buffer takes a super-frame's payload or
//! half of the largest window. While a long write goes on, full buffers begin to leave, and the last one can be filled
//! further. A super-frame is a part of one buffer, which becomes two:
//!
//! ```text
//!    written:        |--------- buffer, PSH ---------|---- buffer, PSH ----|
//!    burst leaves:   |- sent -|------ buffer, PSH ---|---- buffer, PSH ----|
//! ```
//!
//! A segment carries PSH if it is the last of a buffer with that mark, and (since Linux 5.4) of every super-frame of more
//! than one segment. The memory of the send buffer is the sum of its buffers, each with an overhead (`truesize`). A new
//! buffer may begin while the sum is below the limit, and is then filled. A waiting writer continues once a third is free.

use std::collections::VecDeque;
use std::ops::Range;

use machine::Out;
use units::{Span, Time};

use super::super::connection::TcpConnection;
use super::super::sites::{TcpSite, TcpTick};
use super::super::socket::{TcpSocketConfig, TsoConfig};
use super::{NextSend, TcpSender};

/// `SKB_TRUESIZE` of a buffer's header, beside its payload.
const OVERHEAD: u64 = 1_280;
/// Payload of the largest super-frame.
const MAX_BURST: u64 = 65_536 - 320;
/// `TCP_MSS_DEFAULT`.
const DEFAULT_MSS: u64 = 536;

/// A part of the stream that lies in one buffer.
#[derive(Clone, Copy, Debug)]
struct BufferPart {
    end: u64,
    push: bool,
}

/// Segments that leave as one super-frame: how many have, and how many more may.
#[derive(Clone, Copy, Debug, Default)]
struct Burst {
    sent: u64,
    left: u64,
    /// A part of a segment at its end does not wait.
    pushed: bool,
}

#[derive(Debug)]
pub(super) struct SendBuffers {
    pub(super) limit: Option<u64>,
    pub(super) tso: TsoConfig,
    /// Written by the application, without room yet, and whether more is to follow it.
    pub(super) blocked: u64,
    blocked_more: bool,
    /// Parts in order; the first holds what is not acknowledged.
    parts: VecDeque<BufferPart>,
    /// Position of the last mark (`pushed_seq`).
    pushed: u64,
    burst: Burst,
    /// Super-frames that begin here leave while a write goes on, and without Nagle's algorithm (`tcp_push_one`).
    at_once: Range<u64>,
    /// The copy that left last: when, where it ended, and how many left with it.
    copy: (Time, u64, u64),
}

/// State of sending while a write goes on.
struct WriteProgress {
    nxt: u64,
    /// Segments that the windows allow, and of one super-frame.
    quota: u64,
    burst: u64,
    mss: u64,
    /// Buffers that super-frames will have made of others.
    parts: u64,
}

impl SendBuffers {
    pub(super) fn new(config: &TcpSocketConfig) -> Self {
        Self {
            limit: config.send_buffer,
            tso: config.tso,
            blocked: 0,
            blocked_more: false,
            parts: VecDeque::new(),
            pushed: 0,
            burst: Burst::default(),
            at_once: 0..0,
            copy: (Time::ZERO, 0, 0),
        }
    }

    pub(super) fn in_burst(&self) -> bool {
        self.burst.left > 0
    }

    /// True if the super-frame that is leaving takes a part of a segment along, whatever is not acknowledged.
    pub(super) fn pushes_burst(&self) -> bool {
        self.in_burst() && self.burst.pushed
    }

    /// Drops everything: no more is sent.
    pub(super) fn clear(&mut self) {
        self.parts.clear();
        self.blocked = 0;
    }

    fn forget_below(&mut self, una: u64) {
        while self.parts.front().is_some_and(|part| part.end <= una) {
            self.parts.pop_front();
        }
    }

    fn memory(&self, una: u64, end: u64) -> u64 {
        end - una + OVERHEAD * self.parts.len() as u64
    }

    /// Bytes of the last buffer that have not left, if there is one.
    fn unsent_tail(&self, nxt: u64) -> Option<u64> {
        let last = self.parts.back()?;
        let before = self.parts.len().checked_sub(2).map_or(0, |index| self.parts[index].end);
        (last.end > nxt).then(|| last.end - before.max(nxt))
    }

    /// Takes in what is blocked, from `written` on; returns how much. `first` if this begins a write.
    fn take(&mut self, una: u64, written: u64, goal: u64, half: u64, first: bool, on: &mut WriteProgress) -> u64 {
        let mut end = written;
        let mut begins = first;
        self.at_once = 0..0;
        while self.blocked > 0 {
            let filled = self.unsent_tail(on.nxt).filter(|len| *len < goal);
            if filled.is_none() {
                if self.limit.is_some_and(|limit| self.memory(una, end) + OVERHEAD * on.parts >= limit) {
                    break;
                }
                self.parts.push_back(BufferPart { end, push: false });
            }
            let part = (goal - filled.unwrap_or(0)).min(self.blocked);
            end += part;
            self.blocked -= part;
            if let Some(last) = self.parts.back_mut() {
                last.end = end;
                last.push &= !begins;
            }
            begins = false;
            if self.blocked > 0 && filled.unwrap_or(0) + part >= goal {
                self.push_out(end, half, on);
            }
        }
        if end > written && (self.blocked > 0 || !self.blocked_more || end > self.pushed + half) {
            self.mark(end);
        }
        end - written
    }

    /// A full buffer: all that may leaves if half a window was written since the last mark, else one super-frame.
    fn push_out(&mut self, end: u64, half: u64, on: &mut WriteProgress) {
        let waiting = (end - on.nxt) / on.mss;
        let is_first = self.unsent_tail(on.nxt) == Some(end - on.nxt);
        let all = end > self.pushed + half;
        let segments = if all {
            self.mark(end);
            on.quota.min(waiting)
        } else if is_first {
            on.burst.min(on.quota).min(waiting)
        } else {
            0
        };
        if segments > 0 {
            let start = if self.at_once.is_empty() { on.nxt } else { self.at_once.start };
            self.at_once = start..on.nxt + if all { segments * on.mss } else { 1 };
        }
        on.nxt += segments * on.mss;
        on.quota -= segments;
        on.parts += segments.div_ceil(on.burst) - u64::from(segments > 0 && on.nxt == end);
    }

    fn mark(&mut self, end: u64) {
        self.pushed = end;
        if let Some(last) = self.parts.back_mut() {
            last.push = true;
        }
    }

    /// A FIN joins the last buffer if that has not left, or has one of its own.
    pub(super) fn append_fin(&mut self, nxt: u64, written: u64) {
        match self.parts.back_mut().filter(|last| last.end > nxt) {
            Some(last) => last.end = written + 1,
            None => self.parts.push_back(BufferPart { end: written + 1, push: false }),
        }
    }

    fn part_of(&self, position: u64) -> Option<usize> {
        let index = self.parts.partition_point(|part| part.end <= position);
        (index < self.parts.len()).then_some(index)
    }

    /// A copy ended within a buffer, which becomes two.
    pub(super) fn cut(&mut self, position: u64) {
        if let Some(index) = self.part_of(position).filter(|index| *index == 0 || self.parts[index - 1].end < position)
        {
            self.parts.insert(index, BufferPart { end: position, push: false });
        }
    }

    /// End of the buffer that holds this byte.
    pub(super) fn end_of(&self, position: u64) -> Option<u64> {
        self.part_of(position).map(|index| self.parts[index].end)
    }

    /// A new segment from `seq` on leaves; super-frames have up to `limit` segments.
    fn on_new(&mut self, seq: u64, limit: u64) {
        let Burst { sent, left, pushed } = self.burst;
        self.burst = if left == 0 {
            Burst { sent: 1, left: limit.max(1) - 1, pushed: self.at_once.contains(&seq) }
        } else {
            Burst { sent: sent + 1, left: left - 1, pushed }
        };
    }

    /// Decides whether the new segment from `seq` to `end`, which left last, carries PSH. `more`: another one follows at
    /// once.
    fn end_new(&mut self, seq: u64, end: u64, more: bool) -> bool {
        let Some(index) = self.part_of(seq) else { return false };
        let part = self.parts[index];
        // Newer kernels fill a super-frame from the next buffer (`tcp_grow_skb`).
        if self.burst.left > 0 && more && (part.end > end || self.tso.by_distance) {
            return false;
        }
        let several = self.burst.sent > 1;
        self.burst = Burst::default();
        if part.end > end {
            self.parts.insert(index, BufferPart { end, push: false });
        }
        several && self.tso.push || part.push && part.end <= end
    }

    /// Decides whether a copy, which left last, carries PSH. `more`: the copy of the next segment in the stream follows.
    fn end_copy<O: Out<TcpConnection>>(&mut self, now: Time, (seq, end): (u64, u64), more: bool, out: &mut O) -> bool {
        let (at, last_end, count) = self.copy;
        let together = last_end == seq && TcpSite::CopyTogether.ask(out, at == now);
        let count = if together { count + 1 } else { 1 };
        let Some(part) = self.part_of(seq).map(|index| self.parts[index]) else { return false };
        let ends = !more || part.end <= end;
        self.copy = (now, end, if ends { 0 } else { count });
        ends && count > 1 && self.tso.push || part.push && part.end <= end
    }
}

impl TcpSender {
    /// The application appends to the stream of a socket; what has no room waits.
    pub(super) fn write_to_socket<O: Out<TcpConnection>>(&mut self, now: Time, bytes: u64, more: bool, out: &mut O) {
        let Some(socket) = self.socket.as_mut().filter(|socket| socket.fin.is_none() && !socket.stopped) else {
            return;
        };
        socket.more = more;
        socket.looked = now;
        socket.copies_only = false;
        socket.same_event = false;
        let begins = socket.buffers.blocked == 0;
        socket.buffers.blocked = socket.buffers.blocked.saturating_add(bytes);
        socket.buffers.blocked_more = more;
        // Others may already wait for room: then so does this.
        if begins {
            self.take(true, out);
        }
    }

    /// Accepts bytes of a blocked write, if enough room is free again.
    pub(super) fn take_blocked<O: Out<TcpConnection>>(&mut self, out: &mut O) -> u64 {
        let (una, written) = (self.una, self.written);
        let Some(socket) = self.socket.as_mut().filter(|socket| socket.buffers.blocked > 0) else { return 0 };
        socket.buffers.forget_below(una);
        let queued = socket.buffers.memory(una, written);
        let writable = socket.buffers.limit.is_none_or(|limit| limit.saturating_sub(queued) >= queued / 2);
        if writable { self.take(false, out) } else { 0 }
    }

    fn take<O: Out<TcpConnection>>(&mut self, first: bool, out: &mut O) -> u64 {
        let room = self.window().saturating_sub(self.charged_flight()).min(self.edge.saturating_sub(self.nxt));
        let Some(socket) = &self.socket else { return 0 };
        let (goal, half) = (self.buffer_len(socket.max_window), socket.max_window / 2);
        let burst = TcpTick::Burst.ask(out, self.burst_limit(socket.buffers.tso));
        let mut on = WriteProgress { nxt: self.nxt, quota: room / self.mss, burst, mss: self.mss, parts: 0 };
        let (una, written) = (self.una, self.written);
        let Some(socket) = &mut self.socket else { return 0 };
        socket.push = false;
        socket.buffers.forget_below(una);
        let taken = socket.buffers.take(una, written, goal, half, first, &mut on);
        self.written += taken;
        taken
    }

    /// Bytes of the stream that one buffer takes (`tcp_xmit_size_goal`).
    fn buffer_len(&self, max_window: u64) -> u64 {
        let half = if max_window > DEFAULT_MSS { max_window / 2 } else { max_window };
        let goal = if half > 0 { MAX_BURST.min(half) } else { MAX_BURST };
        (goal / self.mss * self.mss).max(self.mss)
    }

    /// Bytes that the send buffer has room for now.
    pub(crate) fn room(&self) -> u64 {
        let Some(socket) = &self.socket else { return u64::MAX };
        let Some(limit) = socket.buffers.limit else { return u64::MAX };
        let used = socket.buffers.memory(self.una, self.written);
        let len = self.buffer_len(socket.max_window);
        limit.saturating_sub(used).div_ceil(len + OVERHEAD) * len
    }

    /// Segments of one super-frame (`tcp_tso_autosize`, `tcp_cwnd_test`): what leaves in a millisecond at the rate of the
    /// window, more if the round trip is short, and never more than half of the window.
    pub(super) fn burst_limit(&self, tso: TsoConfig) -> u64 {
        let window = self.window();
        let bytes = match self.rtt.srtt() {
            Some(srtt) if srtt > Span::ZERO => {
                let gain = if window < self.threshold() / 2 { 200 } else { 120 };
                let bytes = u128::from(window) * gain / 100 * 1_000_000_000_000 / 1_024 / u128::from(srtt.as_ps());
                let halvings = self.rtt.min().as_ps() / 512_000_000;
                let near = if tso.by_distance && halvings < 32 { MAX_BURST >> halvings } else { 0 };
                u64::try_from(bytes).unwrap_or(u64::MAX).saturating_add(near)
            }
            _ => MAX_BURST,
        };
        let segments = (bytes.min(MAX_BURST) / self.mss).max(u64::from(tso.min_segments));
        segments.min((MAX_BURST / self.mss).max(1)).min((window / self.mss / 2).max(1))
    }

    /// A new segment of a socket leaves; `len` counts a FIN.
    pub(super) fn on_new_of_socket<O: Out<TcpConnection>>(&mut self, seq: u64, len: u64, out: &mut O) {
        let Some(socket) = &self.socket else { return };
        let mut limit = 1;
        if !socket.buffers.in_burst() {
            limit = TcpTick::Burst.ask(out, self.burst_limit(socket.buffers.tso));
        }
        let (mss, written) = (self.mss, self.written);
        let Some(socket) = &mut self.socket else { return };
        socket.buffers.on_new(seq, limit);
        if len < mss {
            socket.partial_end = seq + len;
        }
        socket.push &= seq + len < written;
    }

    /// Decides whether the segment that left last, from `seq` to `end`, carries PSH.
    pub(super) fn pushes<O: Out<TcpConnection>>(
        &mut self,
        now: Time,
        is_new: bool,
        (seq, end): (u64, u64),
        out: &mut O,
    ) -> bool {
        let next = self.next(now, out);
        let follows = next == NextSend::Repair && self.board.next_repair_start() == Some(end);
        let una = self.una;
        let Some(socket) = &mut self.socket else { return false };
        socket.buffers.forget_below(una);
        if is_new {
            socket.buffers.end_new(seq, end, next == NextSend::New)
        } else {
            socket.buffers.end_copy(now, (seq, end), follows, out)
        }
    }
}
