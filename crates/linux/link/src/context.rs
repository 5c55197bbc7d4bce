//! Surroundings of an endpoint on a live link: memory, actions that wait to be carried out, statistics.
//!
//! The endpoint acts through this ([`Out`]); nothing here waits or talks to the kernel. [`crate::datapath`]
//! does, and moves frames between here and the backends.
//!
//! | file | what it is |
//! | --- | --- |
//! | `memory` | the pool, the queue before the wire, and the way of the host's frames into it |
//! | `actions` | frames on their way out and to the host, events, timers, the pace of the wire |
//! | `statistics` | counters, and delays of recoveries |
//! | `stamped` | frames that leave with their number in their addresses, and probes |

mod actions;
mod memory;
mod stamped;
mod statistics;

use guard::{Endpoint, EndpointEvent, EndpointNote, EndpointTimer, LinkPacket};
use machine::{Out, Port, QueueId};
use standin::backend::{RunPlace, WireFrame};
use standin::{FramePool, FrameQueue, PoolFrame};
use units::{Rate, Time};

use crate::frame::{EmittedFrame, Framing};
use crate::stamp::Stamper;

pub use actions::EndpointActions;
pub(crate) use memory::HostIntake;
pub use memory::{FrameMemory, HostGate};
pub(crate) use stamped::ReceivedRun;
use stamped::StampedRun;
pub use statistics::{LinkStatistics, recovery_histogram};

/// Surroundings of an endpoint.
#[derive(Debug)]
pub struct LinkContext {
    pub memory: FrameMemory,
    pub actions: EndpointActions,
    pub statistics: LinkStatistics,
    pub framing: Framing,
    pub stamper: Stamper,
    /// Stamped frames that are on their way out, as far as the next may join them.
    run: Option<StampedRun>,
    now: Time,
}

impl LinkContext {
    pub fn new(pool: FramePool, mut framing: Framing, queue: FrameQueue, rate: Option<Rate>, stamper: Stamper) -> Self {
        if stamper.offers() {
            framing.offer_stamps();
        }
        Self {
            memory: FrameMemory::new(pool, queue),
            actions: EndpointActions::new(rate),
            statistics: LinkStatistics::new(),
            framing,
            stamper,
            run: None,
            now: Time::ZERO,
        }
    }

    /// Time begins again; nobody has a handle on a frame any more but the queue.
    pub fn start_over(&mut self) {
        self.actions.start_over();
        self.statistics.start_over();
        self.framing.start_over();
        self.stamper.start_over();
        self.run = None;
        self.memory.start_over();
    }

    /// Sets the current time; call before anything else in a turn.
    pub(crate) fn set_time(&mut self, now: Time) {
        self.now = now;
        self.framing.set_time(now);
    }

    /// The way of the host's frames into the queue.
    pub(crate) fn intake(&mut self) -> HostIntake<'_> {
        HostIntake {
            memory: &mut self.memory,
            tally: &mut self.statistics.tally,
            now: self.now,
            takes_unfinished: self.stamper.is_used(),
        }
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
        self.memory.discard_queued(self.now, &mut self.statistics.tally);
    }

    #[inline]
    fn put_on_wire(&mut self, emitted: EmittedFrame, frame: Option<PoolFrame>) {
        let EmittedFrame { head, head_len, skip, padding } = emitted;
        self.run = None;
        self.actions.send(self.now, WireFrame { head, head_len, frame, skip, padding, run: RunPlace::Alone });
    }
}

impl Out<Endpoint<PoolFrame>> for LinkContext {
    #[inline]
    fn transmit(&mut self, _port: Port, packet: LinkPacket<PoolFrame>) {
        let Some(packet) = self.put_stamped(packet) else { return };
        let pool = &mut self.memory.pool;
        if let Some(frame) = &packet.body {
            pool.finish(frame);
        }
        let body = packet.body.as_ref().map(|frame| pool.get(frame));
        let emitted = self.framing.emit(&packet.header, body);
        self.put_on_wire(emitted, packet.body);
    }

    fn wake(&mut self, _port: Port) {
        self.actions.woken = true;
    }

    #[inline]
    fn waiting(&self, _lane: QueueId) -> bool {
        self.memory.offers()
    }

    #[inline]
    fn take(&mut self, _lane: QueueId) -> Option<PoolFrame> {
        self.memory.take(self.now, self.stamper.is_used(), &mut self.statistics.tally)
    }

    #[inline]
    fn keep(&mut self, frame: &PoolFrame) -> PoolFrame {
        self.memory.pool.keep(frame)
    }

    #[inline]
    fn release(&mut self, frame: PoolFrame) {
        self.memory.pool.release(frame);
    }

    #[inline]
    fn deliver(&mut self, _lane: QueueId, frame: PoolFrame) {
        self.actions.delivered.push(frame);
    }

    fn arm(&mut self, key: EndpointTimer, at: Time) {
        self.actions.set_timer(key, at);
    }

    fn disarm(&mut self, key: EndpointTimer) {
        self.actions.set_timer(key, Time::NEVER);
    }

    fn complete(&mut self, event: EndpointEvent) {
        self.actions.events.push(event);
    }

    fn note(&mut self, note: EndpointNote) {
        if let EndpointNote::Recovered { after, .. } = note {
            self.statistics.record_recovery(after);
        }
    }
}
