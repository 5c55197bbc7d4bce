//! A sink for drivers that look afterwards at what a connection did.

use machine::{Out, Port, QueueId};
use units::Time;

use super::connection::{TcpConnection, TcpNote, TcpProgress, TcpTimer};
use super::segment::TcpSegment;

/// Actions of a connection, until its driver takes them.
#[derive(Debug, Default)]
pub struct TcpSink {
    /// Segments that left, in order.
    pub left: Vec<TcpSegment>,
    /// Completions, in order.
    pub progress: Vec<TcpProgress>,
    /// Expiry of each timer, by its number.
    pub timers: [Option<Time>; 2],
}

impl Out<TcpConnection> for TcpSink {
    fn transmit(&mut self, _: Port, segment: TcpSegment) {
        self.left.push(segment);
    }
    fn wake(&mut self, _: Port) {}
    fn waiting(&self, _: QueueId) -> bool {
        false
    }
    fn take(&mut self, _: QueueId) -> Option<()> {
        None
    }
    fn keep(&mut self, (): &()) {}
    fn release(&mut self, (): ()) {}
    fn deliver(&mut self, _: QueueId, (): ()) {}
    fn arm(&mut self, key: TcpTimer, at: Time) {
        self.timers[key as usize] = Some(at);
    }
    fn disarm(&mut self, key: TcpTimer) {
        self.timers[key as usize] = None;
    }
    fn complete(&mut self, done: TcpProgress) {
        self.progress.push(done);
    }
    fn note(&mut self, _: TcpNote) {}
}
