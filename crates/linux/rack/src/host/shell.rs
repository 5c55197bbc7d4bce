//! Surroundings of the host's state machine: memory, queues above it, timers, and frames on their way.
//!
//! The machine acts through this ([`Out`]); nothing here waits or talks to the kernel.

use linux::offload::FrameSink;
use machine::{Out, Port, QueueId};
use reserve::{HostTimer, RackParams, ReservePacket, ReservingHost};
use standin::backend::WireFrame;
use standin::{FramePool, FrameQueue, HostFrames, PoolFrame, Tally, WirePace};
use units::{Bytes, Rate, Time};
use wire::ethernet::TYPE;
use wire::reserve::ReserveMessage;

use super::framing::{HostFrame, destination, write_mark, write_message};
use super::lanes::LaneTable;

/// Frames that wait for one destination, at most.
const MOST_WAITING: usize = 1_024;
/// Frames in memory.
const POOL: u32 = 6_144;

const TIMERS: [HostTimer; 2] = [HostTimer::Deadline, HostTimer::Silence];

#[derive(Debug)]
pub(super) struct HostShell {
    own: [u8; 6],
    pub pool: FramePool,
    pub tally: Tally,
    now: Time,
    /// Queues, one for each context; the last one is for frames that do not reserve.
    lanes: Vec<FrameQueue>,
    table: LaneTable,
    /// A super-frame is being cut into these.
    cut: Option<PoolFrame>,
    /// Lanes that got frames since the machine last heard of it.
    pub filled: Vec<QueueId>,
    pub outgoing: Vec<WireFrame>,
    pub delivered: Vec<PoolFrame>,
    pub woken: bool,
    timers: [Time; TIMERS.len()],
    pace: Option<WirePace>,
    scratch: Vec<u8>,
    /// The host leaves: nothing more is taken from the kernel.
    closing: bool,
    /// Frames that were therefore refused.
    refused: u64,
}

impl HostShell {
    /// `longest` is the longest frame on the cable; `rate` the cable's, if it is known.
    pub(super) fn new(own: [u8; 6], rack: &RackParams, longest: usize, rate: Option<Rate>) -> Self {
        let room = Bytes::new((MOST_WAITING * longest) as u64);
        Self {
            own,
            pool: FramePool::new(POOL, longest),
            tally: Tally::default(),
            now: Time::ZERO,
            lanes: (0..=rack.contexts).map(|_| FrameQueue::new(room, MOST_WAITING, rate)).collect(),
            table: LaneTable::new(rack.contexts as u8),
            cut: None,
            filled: Vec::new(),
            outgoing: Vec::with_capacity(64),
            delivered: Vec::with_capacity(256),
            woken: true,
            timers: [Time::NEVER; TIMERS.len()],
            pace: rate.map(WirePace::new),
            scratch: Vec::new(),
            closing: false,
            refused: 0,
        }
    }

    /// Sets the current time; call before anything else in a turn.
    pub(super) fn set_time(&mut self, now: Time) {
        self.now = now;
    }

    /// Bytes that wait for their reservation.
    pub(super) fn queued(&self) -> Bytes {
        self.lanes.iter().map(FrameQueue::bytes).fold(Bytes::ZERO, |sum, bytes| sum + bytes)
    }

    /// Frames of the host's that its own queues refused.
    pub(super) fn dropped(&self) -> u64 {
        self.lanes.iter().map(FrameQueue::dropped).sum::<u64>() + self.refused
    }

    /// Stops taking frames from the kernel.
    pub(super) fn close(&mut self) {
        self.closing = true;
    }

    /// Refuses all frames that still wait.
    pub(super) fn refuse_all(&mut self) {
        for lane in &mut self.lanes {
            while let Some(frame) = lane.pop(self.now, &mut self.pool) {
                self.pool.release(frame);
                self.refused += 1;
            }
        }
    }

    /// A timer whose time has come; it is disarmed.
    pub(super) fn due(&mut self) -> Option<HostTimer> {
        let at = self.timers.iter().position(|deadline| *deadline <= self.now)?;
        self.timers[at] = Time::NEVER;
        Some(TIMERS[at])
    }

    pub(super) fn earliest_timer(&self) -> Time {
        self.timers[0].min(self.timers[1])
    }

    /// Time at which the cable takes the next frame, if that is not now.
    pub(super) fn busy_until(&self, now: Time) -> Option<Time> {
        self.pace.as_ref()?.busy_until(now)
    }

    /// Copies a frame off the cable into the pool; none if there is no room.
    pub(super) fn store(&mut self, parts: [&[u8]; 2]) -> Option<HostFrame> {
        let Some(frame) = self.pool.claim(parts[0].len() + parts[1].len()) else {
            self.tally.no_buffer += 1;
            return None;
        };
        let (first, second) = self.pool.get_mut(&frame).split_at_mut(parts[0].len());
        first.copy_from_slice(parts[0]);
        second.copy_from_slice(parts[1]);
        Some(HostFrame::new(frame, &self.pool))
    }

    fn put_on_wire(&mut self, frame: WireFrame) {
        if let Some(pace) = &mut self.pace {
            pace.occupy(self.now, frame.bytes());
        }
        self.outgoing.push(frame);
    }

    /// Puts a message behind all that is on its way. One that finds no memory is lost as on any wire.
    pub(super) fn say(&mut self, message: &ReserveMessage) {
        self.scratch.clear();
        write_message(self.own, message, &mut self.scratch);
        let Some(frame) = self.pool.claim(self.scratch.len()) else {
            self.tally.no_buffer += 1;
            return;
        };
        self.pool.get_mut(&frame).copy_from_slice(&self.scratch);
        self.put_on_wire(WireFrame::behind(&[], frame, 0));
    }
}

impl HostFrames for HostShell {
    fn tally(&mut self) -> &mut Tally {
        &mut self.tally
    }

    /// The frame joins the queue of its destination.
    fn end_frame(&mut self) {
        let Some(frame) = self.cut.take() else { return };
        if self.closing {
            self.refused += 1;
            return self.pool.release(frame);
        }
        let lane = match destination(self.pool.get(&frame)) {
            Some(to) => self.table.lane(to),
            None => QueueId(self.lanes.len() as u8 - 1),
        };
        self.lanes[usize::from(lane.0)].push(self.now, frame, &mut self.pool);
        if !self.filled.contains(&lane) {
            self.filled.push(lane);
        }
    }
}

impl FrameSink for HostShell {
    fn next(&mut self, len: usize) -> Option<&mut [u8]> {
        self.end_frame();
        match self.pool.claim(len) {
            Some(frame) => Some(self.pool.get_mut(self.cut.insert(frame))),
            None => {
                self.tally.no_buffer += 1;
                None
            }
        }
    }
}

impl Out<ReservingHost<HostFrame>> for HostShell {
    #[inline]
    fn transmit(&mut self, _port: Port, packet: ReservePacket<HostFrame>) {
        match packet {
            ReservePacket::Message(message) => self.say(&message),
            ReservePacket::Data { mark: None, body } => self.put_on_wire(WireFrame::behind(&[], body.frame, 0)),
            ReservePacket::Data { mark: Some(mark), body } => {
                self.scratch.clear();
                write_mark(self.pool.get(&body.frame), mark, &mut self.scratch);
                let marked = WireFrame::behind(&self.scratch, body.frame, TYPE);
                self.put_on_wire(marked);
            }
        }
    }

    fn wake(&mut self, _port: Port) {
        self.woken = true;
    }

    #[inline]
    fn waiting(&self, lane: QueueId) -> bool {
        !self.lanes[usize::from(lane.0)].is_empty()
    }

    #[inline]
    fn take(&mut self, lane: QueueId) -> Option<HostFrame> {
        let frame = self.lanes[usize::from(lane.0)].pop(self.now, &mut self.pool)?;
        Some(HostFrame::new(frame, &self.pool))
    }

    fn keep(&mut self, frame: &HostFrame) -> HostFrame {
        frame.again(&mut self.pool)
    }

    fn release(&mut self, frame: HostFrame) {
        self.pool.release(frame.frame);
    }

    #[inline]
    fn deliver(&mut self, _lane: QueueId, frame: HostFrame) {
        self.delivered.push(frame.frame);
    }

    fn arm(&mut self, key: HostTimer, at: Time) {
        self.timers[usize::from(key)] = at;
    }

    fn disarm(&mut self, key: HostTimer) {
        self.timers[usize::from(key)] = Time::NEVER;
    }

    fn complete(&mut self, (): ()) {}

    fn note(&mut self, (): ()) {}
}
