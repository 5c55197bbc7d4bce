//! Drives one connection: timers, pulls, and what comes out of it.

use machine::{Machine, Port, Pull};
use tcp::{TcpCommand, TcpConnection, TcpProgress, TcpSegment, TcpSink, TcpTimer};
use units::Time;

const WIRE: Port = Port(0);

/// A connection with the world around it.
#[derive(Debug)]
pub(super) struct ConnectionDriver {
    pub(super) connection: TcpConnection,
    sink: TcpSink,
    /// Time at which a paced segment may leave.
    pull_at: Option<Time>,
}

impl ConnectionDriver {
    pub(super) fn new(connection: TcpConnection) -> Self {
        Self { connection, sink: TcpSink::default(), pull_at: None }
    }

    pub(super) fn command(&mut self, now: Time, command: TcpCommand) {
        self.connection.on_command(now, command, &mut self.sink);
        self.pull(now);
    }

    pub(super) fn arrives(&mut self, now: Time, segment: TcpSegment) {
        self.connection.on_frame(now, WIRE, segment, &mut self.sink);
        self.pull(now);
    }

    /// Time of the next event that happens by itself.
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

    /// Takes the segments that left and the progress that was reported since this was last called.
    pub(super) fn take(&mut self) -> (Vec<TcpSegment>, Vec<TcpProgress>) {
        (std::mem::take(&mut self.sink.left), std::mem::take(&mut self.sink.progress))
    }
}
