//! Output of a host machine in the tests.

use std::collections::VecDeque;

use machine::{Out, Port, QueueId};
use reserve::{HostTimer, ReservePacket, ReservingHost};
use units::Time;

use super::{Frame, Packet};

/// Output of a host machine: its queues, its frames and its timers.
#[derive(Default)]
pub(super) struct HostWorld {
    pub(super) lanes: Vec<VecDeque<Frame>>,
    pub(super) sent: Option<Packet>,
    pub(super) delivered: Vec<Frame>,
    pub(super) woken: bool,
    pub(super) timers: Vec<Option<Time>>,
    /// Handles that the machine has and has not given back.
    pub(super) handles: i64,
}

impl Out<ReservingHost<Frame>> for HostWorld {
    fn transmit(&mut self, _: Port, packet: Packet) {
        assert!(self.sent.is_none(), "one frame for each pull");
        self.handles -= i64::from(matches!(packet, ReservePacket::Data { .. }));
        self.sent = Some(packet);
    }
    fn wake(&mut self, _: Port) {
        self.woken = true;
    }
    fn waiting(&self, lane: QueueId) -> bool {
        !self.lanes[usize::from(lane.0)].is_empty()
    }
    fn take(&mut self, lane: QueueId) -> Option<Frame> {
        let taken = self.lanes[usize::from(lane.0)].pop_front();
        self.handles += i64::from(taken.is_some());
        taken
    }
    fn keep(&mut self, frame: &Frame) -> Frame {
        self.handles += 1;
        *frame
    }
    fn release(&mut self, _: Frame) {
        self.handles -= 1;
    }
    fn deliver(&mut self, _: QueueId, frame: Frame) {
        self.handles -= 1;
        self.delivered.push(frame);
    }
    fn arm(&mut self, timer: HostTimer, at: Time) {
        self.timers.resize(2, None);
        self.timers[usize::from(timer)] = Some(at);
    }
    fn disarm(&mut self, timer: HostTimer) {
        self.timers[usize::from(timer)] = None;
    }
    fn complete(&mut self, (): ()) {}
    fn note(&mut self, (): ()) {}
}
