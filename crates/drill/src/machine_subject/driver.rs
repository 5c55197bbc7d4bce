//! Drives one connection: timers, pulls, and what comes out of it.

use machine::{Machine, Out, Port, Pull, QueueId};
use transport::tcp::{TcpCommand, TcpConnection, TcpNote, TcpProgress, TcpSegment, TcpTimer};
use units::Time;

const WIRE: Port = Port(0);

/// A connection with the world around it.
#[derive(Debug)]
pub(super) struct ConnectionDriver {
    pub(super) connection: TcpConnection,
    sink: DriverSink,
    /// When a paced segment may leave.
    pull_at: Option<Time>,
}

/// What a connection did since it was last asked.
#[derive(Debug, Default)]
struct DriverSink {
    left: Vec<TcpSegment>,
    progress: Vec<TcpProgress>,
    timers: [Option<Time>; 2],
}

impl Out<TcpConnection> for DriverSink {
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

impl ConnectionDriver {
    pub(super) fn new(connection: TcpConnection) -> Self {
        Self { connection, sink: DriverSink::default(), pull_at: None }
    }

    pub(super) fn command(&mut self, now: Time, command: TcpCommand) {
        self.connection.on_command(now, command, &mut self.sink);
        self.pull(now);
    }

    pub(super) fn arrives(&mut self, now: Time, segment: TcpSegment) {
        self.connection.on_frame(now, WIRE, segment, &mut self.sink);
        self.pull(now);
    }

    /// When something happens by itself.
    pub(super) fn next(&self) -> Option<Time> {
        self.sink.timers.iter().copied().chain([self.pull_at]).flatten().min()
    }

    /// Lets happen what is due.
    pub(super) fn run(&mut self, now: Time) {
        for key in [TcpTimer::Loss, TcpTimer::Ack] {
            if self.sink.timers[key as usize].is_some_and(|at| at <= now) {
                self.sink.timers[key as usize] = None;
                self.connection.on_timer(now, key, &mut self.sink);
            }
        }
        self.pull(now);
    }

    fn pull(&mut self, now: Time) {
        self.pull_at = None;
        loop {
            match self.connection.pull(now, WIRE, &mut self.sink) {
                Pull::Sent => {}
                Pull::NotBefore(at) => return self.pull_at = Some(at),
                Pull::Last | Pull::Idle => return,
            }
        }
    }

    /// What left and what was reported since this was last called.
    pub(super) fn take(&mut self) -> (Vec<TcpSegment>, Vec<TcpProgress>) {
        (std::mem::take(&mut self.sink.left), std::mem::take(&mut self.sink.progress))
    }
}
