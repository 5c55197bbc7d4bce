//! Surroundings of an endpoint on a live link: memory, the queue above it, timers, and frames on their way.
//!
//! The endpoint acts through this ([`Out`]); nothing here waits or talks to the kernel. [`crate::datapath`]
//! does, and moves frames between here and the backends.

mod stamped;

use guard::{Endpoint, EndpointEvent, EndpointNote, EndpointTimer, LinkPacket};
use hdrhistogram::Histogram;
use machine::{Out, Port, QueueId};
use units::{Bytes, Rate, Span, Time};
use wire::ethernet::on_wire;

use crate::backend::{RunPlace, WireFrame};
use crate::datapath::HostFrames;
use crate::frame::{EmittedFrame, Framing};
use crate::pool::{FramePool, PoolFrame};
use crate::queue::FrameQueue;
use crate::stamp::Stamper;
use crate::tally::Tally;
use linux::offload::FrameSink;

pub(crate) use stamped::ReceivedRun;
use stamped::StampedRun;

/// Treatment of the host's frames while the link should be protected and is not yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostGate {
    /// They go out as they are.
    Open,
    /// They wait, as far as the queue goes.
    Shut,
    Discard,
}

const TIMERS: [EndpointTimer; 4] = [
    EndpointTimer::Timeout(wire::link::Class::Ordered),
    EndpointTimer::Timeout(wire::link::Class::NonBlocking),
    EndpointTimer::Examine,
    EndpointTimer::Session,
];

#[derive(Debug)]
pub struct LinkContext {
    pub pool: FramePool,
    pub framing: Framing,
    pub stamper: Stamper,
    /// Stamped frames that are on their way out, as far as the next may join them.
    run: Option<StampedRun>,
    pub tally: Tally,
    pub gate: HostGate,
    /// Frames of the host's that wait for the wire.
    queue: FrameQueue,
    now: Time,
    /// A super-frame is being cut into these.
    cut: Option<PoolFrame>,
    pub outgoing: Vec<WireFrame>,
    pub delivered: Vec<PoolFrame>,
    pub events: Vec<EndpointEvent>,
    pub woken: bool,
    timers: [Time; TIMERS.len()],
    pace: Option<WirePace>,
    /// Delays of recoveries, in nanoseconds: all of them, and those since somebody last asked.
    pub recovery: Histogram<u64>,
    pub recent_recovery: Histogram<u64>,
}

/// A wire that is slower than the socket takes frames.
#[derive(Debug)]
pub struct WirePace {
    rate: Rate,
    free_at: Time,
}

/// Most time by which sending may be ahead of the wire: the loop does not run every microsecond.
const AHEAD: Span = Span::from_us(300);

impl WirePace {
    pub fn new(rate: Rate) -> Self {
        Self { rate, free_at: Time::ZERO }
    }

    /// Time at which the wire takes the next frame, if that is not now.
    pub fn busy_until(&self, now: Time) -> Option<Time> {
        (self.free_at > now + AHEAD).then(|| Time::from_ps(self.free_at.as_ps() - AHEAD.as_ps()))
    }

    /// A frame of this many bytes, frame check not counted, is put on the wire.
    pub fn occupy(&mut self, now: Time, bytes: usize) {
        self.free_at = self.free_at.max(now) + self.rate.span_of(Bytes::new(u64::from(on_wire(bytes as u32 + 4))));
    }
}

impl LinkContext {
    pub fn new(pool: FramePool, mut framing: Framing, queue: FrameQueue, rate: Option<Rate>, stamper: Stamper) -> Self {
        if stamper.offers() {
            framing.offer_stamps();
        }
        Self {
            pool,
            framing,
            stamper,
            run: None,
            tally: Tally::default(),
            gate: HostGate::Open,
            queue,
            now: Time::ZERO,
            cut: None,
            outgoing: Vec::with_capacity(64),
            delivered: Vec::with_capacity(256),
            events: Vec::new(),
            woken: true,
            timers: [Time::NEVER; TIMERS.len()],
            pace: rate.map(WirePace::new),
            recovery: recovery_histogram(),
            recent_recovery: recovery_histogram(),
        }
    }

    /// Time begins again; nobody has a handle on a frame any more but the queue.
    pub fn start_over(&mut self) {
        self.timers = [Time::NEVER; TIMERS.len()];
        if let Some(pace) = &mut self.pace {
            pace.free_at = Time::ZERO;
        }
        self.outgoing.clear();
        self.delivered.clear();
        self.events.clear();
        self.tally = Tally::default();
        self.framing.start_over();
        self.stamper.start_over();
        self.run = None;
        self.queue.start_over();
        self.pool.keep_only(self.queue.frames());
        self.woken = true;
    }

    pub fn queued(&self) -> Bytes {
        self.queue.bytes()
    }

    pub(crate) fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    /// A timer whose time has come; it is disarmed.
    pub fn due(&mut self, now: Time) -> Option<EndpointTimer> {
        let at = self.timers.iter().position(|deadline| *deadline <= now)?;
        self.timers[at] = Time::NEVER;
        Some(TIMERS[at])
    }

    pub(crate) fn earliest_timer(&self) -> Time {
        self.timers.iter().copied().fold(Time::NEVER, Time::min)
    }

    /// Time at which the wire takes the next frame, if that is not now.
    pub fn busy_until(&self, now: Time) -> Option<Time> {
        self.pace.as_ref()?.busy_until(now)
    }

    fn occupy_wire(&mut self, bytes: usize) {
        if let Some(pace) = &mut self.pace {
            pace.occupy(self.now, bytes);
        }
    }

    /// Sets the current time; call before anything else in a turn.
    pub(crate) fn set_time(&mut self, now: Time) {
        self.now = now;
        self.framing.set_time(now);
    }

    /// Puts greetings of the seal on their way, ahead of all that has yet to be pulled.
    pub fn greet(&mut self) {
        while self.framing.greets_at() <= self.now
            && let Some(emitted) = self.framing.greet()
        {
            self.put_on_wire(emitted, None);
        }
    }

    /// Drops what waits, because it cannot be sealed for anybody.
    pub(crate) fn discard_queued(&mut self) {
        while let Some(frame) = self.queue.pop(self.now, &mut self.pool) {
            self.tally.gate_dropped += 1;
            self.pool.release(frame);
        }
        self.tally.queue_dropped = self.queue.dropped();
    }

    fn put_on_wire(&mut self, emitted: EmittedFrame, frame: Option<PoolFrame>) {
        let EmittedFrame { head, head_len, skip, padding } = emitted;
        let outgoing = WireFrame { head, head_len, frame, skip, padding, run: RunPlace::Alone };
        self.run = None;
        self.occupy_wire(outgoing.bytes());
        self.outgoing.push(outgoing);
    }

    /// Puts the frame that was cut last into the queue, if there is room for it.
    pub(crate) fn close_cut(&mut self) {
        let Some(frame) = self.cut.take() else { return };
        if self.gate == HostGate::Discard {
            self.tally.gate_dropped += 1;
            return self.pool.release(frame);
        }
        self.queue.push(self.now, frame, &mut self.pool);
        self.tally.queue_dropped = self.queue.dropped();
    }

    /// Copies the pieces of a frame into the pool.
    pub fn store(&mut self, pieces: [&[u8]; 2]) -> Option<PoolFrame> {
        let (first, second) = (pieces[0], pieces[1]);
        let frame = self.pool.claim(first.len() + second.len());
        let Some(frame) = frame else {
            self.tally.no_buffer += 1;
            return None;
        };
        let bytes = self.pool.get_mut(&frame);
        bytes[..first.len()].copy_from_slice(first);
        bytes[first.len()..].copy_from_slice(second);
        Some(frame)
    }
}

/// Histogram for delays in nanoseconds, up to a minute.
pub fn recovery_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("the bounds are in order")
}

impl HostFrames for LinkContext {
    fn tally(&mut self) -> &mut Tally {
        &mut self.tally
    }

    fn end_frame(&mut self) {
        self.close_cut();
    }
}

impl FrameSink for LinkContext {
    fn next(&mut self, len: usize) -> Option<&mut [u8]> {
        self.close_cut();
        let Some(frame) = self.pool.claim(len) else {
            self.tally.no_buffer += 1;
            return None;
        };
        let frame = self.cut.insert(frame);
        Some(self.pool.get_mut(frame))
    }

    /// Frames that leave stamped need no checksum of ours; others get theirs when they leave.
    fn takes_unfinished(&self) -> bool {
        self.stamper.is_used()
    }

    fn leave_unfinished(&mut self) {
        if let Some(frame) = &self.cut {
            self.pool.leave_unfinished(frame);
        }
    }
}

impl Out<Endpoint<PoolFrame>> for LinkContext {
    #[inline]
    fn transmit(&mut self, _port: Port, packet: LinkPacket<PoolFrame>) {
        let Some(packet) = self.put_stamped(packet) else { return };
        if let Some(frame) = &packet.body {
            self.pool.finish(frame);
        }
        let body = packet.body.as_ref().map(|frame| self.pool.get(frame));
        let emitted = self.framing.emit(&packet.header, body);
        self.put_on_wire(emitted, packet.body);
    }

    fn wake(&mut self, _port: Port) {
        self.woken = true;
    }

    #[inline]
    fn waiting(&self, _lane: QueueId) -> bool {
        !self.queue.is_empty() && self.gate != HostGate::Shut
    }

    #[inline]
    fn take(&mut self, _lane: QueueId) -> Option<PoolFrame> {
        if self.gate == HostGate::Shut {
            return None;
        }
        self.queue.keep_runs(self.stamper.is_used());
        let frame = self.queue.pop(self.now, &mut self.pool);
        self.tally.queue_dropped = self.queue.dropped();
        frame
    }

    #[inline]
    fn keep(&mut self, frame: &PoolFrame) -> PoolFrame {
        self.pool.keep(frame)
    }

    #[inline]
    fn release(&mut self, frame: PoolFrame) {
        self.pool.release(frame);
    }

    #[inline]
    fn deliver(&mut self, _lane: QueueId, frame: PoolFrame) {
        self.delivered.push(frame);
    }

    fn arm(&mut self, key: EndpointTimer, at: Time) {
        self.timers[usize::from(key)] = at;
    }

    fn disarm(&mut self, key: EndpointTimer) {
        self.timers[usize::from(key)] = Time::NEVER;
    }

    fn complete(&mut self, event: EndpointEvent) {
        self.events.push(event);
    }

    fn note(&mut self, note: EndpointNote) {
        if let EndpointNote::Recovered { after, .. } = note {
            let delay = (after.as_ps() / 1_000).max(1);
            self.recovery.saturating_record(delay);
            self.recent_recovery.saturating_record(delay);
        }
    }
}
