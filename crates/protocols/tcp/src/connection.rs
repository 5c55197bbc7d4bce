//! Both halves of a connection as one machine.
//!
//! The owner writes ([`Command::Send`]) and is notified of what was acknowledged and what arrived in order ([`Done`]).
//! The owner of the wire pulls: first what is owed from before a change of marks, then what is urgent, repairs, new
//! data as window and pace allow, and last a pure acknowledgement if one is due, since any other segment carries it.

use machine::{Machine, Out, Port, Pull};
use units::{Span, Time};
use wire::ip::Ecn;

use super::closing::TcpEnding;
use super::config::TcpConfig;
use super::info::TcpInfo;
use super::receiver::TcpReceiver;
use super::record::timestamp;
use super::segment::{SegmentFlags, TcpSegment};
use super::sender::{NextSend, Phase, TcpSender};

/// A connection has one wire.
const WIRE: Port = Port(0);

/// The timers of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpTimer {
    /// Retransmission, probe or reordering.
    Loss,
    /// A delayed acknowledgement.
    Ack,
}

impl From<TcpTimer> for usize {
    fn from(timer: TcpTimer) -> usize {
        timer as usize
    }
}

/// Requests of a connection's owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpCommand {
    /// Appends this many bytes to the stream.
    Send(u64),
    /// Appends this many bytes, with more to follow (`MSG_MORE`): a partial segment waits.
    SendMore(u64),
    /// The application takes this many bytes of what has arrived in order; at most [`TcpConnection::readable`].
    Read(u64),
    /// `TCP_NODELAY`.
    NoDelay(bool),
    /// `TCP_CORK`.
    Cork(bool),
    /// `SO_SNDBUF`, as the kernel keeps it: twice what an application asks for.
    SendBuffer(u64),
    /// `TCP_USER_TIMEOUT`.
    UserTimeout(Option<Span>),
    /// `shutdown(SHUT_RD)`: what arrives later is acknowledged all the same.
    ShutdownRead,
    /// `shutdown(SHUT_WR)`: a FIN follows what was written.
    ShutdownWrite,
    /// `close`: both, and a RST if something was not read.
    Close,
    /// `close` with `SO_LINGER` of 0: a RST.
    Abort,
}

/// Reports of a connection to its owner. Positions count bytes of a stream from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpProgress {
    /// The peer has all bytes below.
    Acknowledged(u64),
    /// All bytes below have arrived.
    Delivered(u64),
    /// The send buffer has taken in all bytes below. Only with a send buffer.
    Written(u64),
    /// The peer's stream is over, and all of it has arrived.
    PeerClosed,
    /// The connection is over, in order.
    Closed,
    /// The peer reset the connection.
    Reset,
    /// The peer did not answer for too long.
    TimedOut,
}

/// Reason why a segment was sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpRetransmitCause {
    /// Later ones arrived (RACK).
    Sack,
    /// A tail-loss probe.
    Probe,
    /// The retransmission timer went off, or it had and this one is still missing.
    Timeout,
}

/// An event for counters and traces; the owner need not react to any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpNote {
    /// A segment left again.
    Retransmitted {
        /// Reason for which the sender declared it lost.
        cause: TcpRetransmitCause,
        /// Payload of the segment, at least 1.
        bytes: u32,
    },
    /// The retransmission timer went off.
    Timeout,
    /// A tail-loss probe leaves.
    Probe,
    /// More is known to have arrived out of order.
    Sacked {
        /// All that has arrived out of order, as of now.
        bytes: u64,
        /// Bytes written that never left.
        pending: u64,
    },
    /// The window was reduced because of a loss.
    Reduced {
        /// Bytes written that never left.
        pending: u64,
    },
    /// The last reduction was undone, because nothing had been lost.
    Undone,
}

/// One end, established from the start.
#[derive(Debug)]
pub struct TcpConnection {
    pub(super) sender: TcpSender,
    pub(super) receiver: TcpReceiver,
    /// Flags of every segment that leaves.
    pub(super) flags: SegmentFlags,
    /// End of a connection with a socket.
    pub(super) ending: Option<Box<TcpEnding>>,
}

impl TcpConnection {
    /// Established at `now`, with nothing written; the MSS is clamped to 1 to 65,535, with a socket 65,534.
    pub fn new(config: &TcpConfig, now: Time) -> Self {
        Self {
            sender: TcpSender::new(config, now),
            receiver: TcpReceiver::new(config, now),
            flags: if config.timestamps { SegmentFlags::NONE } else { SegmentFlags::NO_TIMESTAMP },
            ending: config.socket.map(|_| Box::default()),
        }
    }

    /// Values that `TCP_INFO` would report now.
    pub fn info(&self, now: Time) -> TcpInfo {
        let mut info = self.sender.info(now);
        self.receiver.complete_info(now, &mut info);
        info.state = self.state();
        info
    }

    /// Bytes that arrived in order and that the application has not read; 0 without a socket, where it reads at once.
    pub fn readable(&self) -> u64 {
        self.receiver.unread()
    }

    /// Bytes that the send buffer would accept now.
    pub fn room(&self) -> u64 {
        self.sender.room()
    }

    /// Bytes that may be in flight: the congestion window, or what is left of it during a repair.
    pub fn window(&self) -> u64 {
        self.sender.window()
    }

    /// `None` before the first sample.
    pub fn srtt(&self) -> Option<Span> {
        self.sender.srtt()
    }

    /// The retransmission timeout, with its backoff.
    pub fn rto(&self) -> Span {
        self.sender.rto()
    }

    /// Sent, and neither acknowledged nor taken for lost.
    pub fn bytes_in_flight(&self) -> u64 {
        self.sender.flight()
    }

    /// Written and never sent.
    pub fn unsent(&self) -> u64 {
        self.sender.unsent()
    }

    /// The peer has all bytes below.
    pub fn acknowledged(&self) -> u64 {
        self.sender.acknowledged()
    }

    /// All bytes below have arrived.
    pub fn delivered(&self) -> u64 {
        self.receiver.delivered()
    }

    /// Repair that is under way, if any.
    pub fn phase(&self) -> Phase {
        self.sender.phase()
    }

    /// Bytes at which the window stops growing exponentially; without a limit yet, the largest window of all, 1 TiB.
    pub fn threshold(&self) -> u64 {
        self.sender.threshold()
    }

    /// All that was written is acknowledged, and no acknowledgement is owed.
    pub fn is_idle(&self) -> bool {
        self.sender.is_idle() && !self.receiver.owes_ack()
    }

    pub(super) fn on_data<O: Out<Self>>(&mut self, now: Time, segment: &TcpSegment, out: &mut O) {
        let before = self.receiver.delivered();
        self.receiver.on_data(now, segment, self.sender.rto(), self.sender.srtt(), out);
        if self.receiver.delivered() > before {
            out.complete(TcpProgress::Delivered(self.receiver.delivered()));
            self.receiver.read_at_once(out);
        }
    }

    fn wake_if_needed<O: Out<Self>>(&self, now: Time, out: &mut O) {
        let reset = self.ending.as_ref().is_some_and(|ending| ending.owes_reset());
        if reset
            || self.receiver.is_ack_due()
            || !matches!(self.sender.next(now, out), NextSend::Nothing | NextSend::Full)
        {
            out.wake(WIRE);
        }
    }

    /// Puts a segment on the wire; without the option its timestamps are nothing.
    pub(super) fn transmit<O: Out<Self>>(&self, mut segment: TcpSegment, out: &mut O) {
        if segment.flags.has(SegmentFlags::NO_TIMESTAMP) {
            segment.timestamp = 0;
            segment.echo = 0;
        }
        out.transmit(WIRE, segment);
    }

    fn send_ack<O: Out<Self>>(&mut self, now: Time, out: &mut O) {
        let mut segment = TcpSegment { timestamp: timestamp(now), flags: self.flags, ..TcpSegment::default() };
        segment.seq = self.sender.sent();
        self.receiver.fill(now, &mut segment, out);
        self.transmit(segment, out);
    }

    /// False if nothing of the sender's can leave now.
    #[inline]
    fn send_data<O: Out<Self>>(&mut self, now: Time, next: NextSend, out: &mut O) -> bool {
        let Some(outgoing) = self.sender.send(now, next, out) else { return false };
        let mut segment = TcpSegment {
            seq: outgoing.seq,
            len: outgoing.len,
            timestamp: timestamp(now),
            ecn: if outgoing.capable { Ecn::Capable } else { Ecn::NotCapable },
            cwr: outgoing.cwr,
            flags: self.flags.with(outgoing.flags),
            ..TcpSegment::default()
        };
        self.receiver.fill(now, &mut segment, out);
        self.transmit(segment, out);
        true
    }
}

impl Machine for TcpConnection {
    type Frame = TcpSegment;
    type Inner = ();
    type Timer = TcpTimer;
    type Command = TcpCommand;
    type Done = TcpProgress;
    type Note = TcpNote;

    fn on_frame<O: Out<Self>>(&mut self, now: Time, _port: Port, segment: TcpSegment, out: &mut O) {
        if self.ending.is_some() {
            self.on_segment(now, &segment, out);
        } else {
            self.sender.on_ack(now, &segment, out);
            if segment.len > 0 {
                self.on_data(now, &segment, out);
            }
        }
        self.wake_if_needed(now, out);
    }

    fn on_timer<O: Out<Self>>(&mut self, now: Time, key: TcpTimer, out: &mut O) {
        match key {
            TcpTimer::Loss => self.sender.on_timer(now, out),
            TcpTimer::Ack => self.receiver.on_timer(now, self.sender.rto(), out),
        }
        if self.ending.is_some() {
            self.after(now, out);
        }
        self.wake_if_needed(now, out);
    }

    fn on_command<O: Out<Self>>(&mut self, now: Time, command: TcpCommand, out: &mut O) {
        match command {
            TcpCommand::Send(bytes) => self.sender.write(now, bytes, false, out),
            TcpCommand::SendMore(bytes) => self.sender.write(now, bytes, true, out),
            TcpCommand::Read(bytes) => self.receiver.read(bytes, out),
            TcpCommand::NoDelay(on) => self.sender.set_nodelay(on),
            TcpCommand::Cork(on) => self.sender.set_cork(on),
            TcpCommand::SendBuffer(bytes) => self.sender.set_send_buffer(bytes),
            TcpCommand::UserTimeout(span) => self.sender.set_user_timeout(span),
            // Nothing changes on the wire: the driver no longer hands anything to the application.
            TcpCommand::ShutdownRead => {}
            TcpCommand::ShutdownWrite => self.shut_write(),
            TcpCommand::Close => self.close(now, out),
            TcpCommand::Abort => self.abort(now, out),
        }
        if self.ending.is_some() {
            self.after(now, out);
        }
        self.wake_if_needed(now, out);
    }

    fn pull<O: Out<Self>>(&mut self, now: Time, _port: Port, out: &mut O) -> Pull {
        if self.ending.is_some() {
            let reset = self.send_reset(now, out);
            let pulled = if reset { Pull::Last } else { self.pull_segment(now, out) };
            self.after(now, out);
            return pulled;
        }
        self.pull_segment(now, out)
    }
}

impl TcpConnection {
    #[inline]
    fn pull_segment<O: Out<Self>>(&mut self, now: Time, out: &mut O) -> Pull {
        let next = self.sender.next(now, out);
        if self.receiver.owes_earlier_ack() {
            self.send_ack(now, out);
        } else if self.send_data(now, next, out) {
            let then = self.sender.next(now, out);
            self.sender.note_usage(next, then);
        } else if self.receiver.is_ack_due() {
            self.send_ack(now, out);
        } else {
            return match next {
                NextSend::Later(at) => Pull::NotBefore(at),
                _ => Pull::Idle,
            };
        }
        let more =
            self.receiver.is_ack_due() || !matches!(self.sender.next(now, out), NextSend::Nothing | NextSend::Full);
        if more { Pull::Sent } else { Pull::Last }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_small() {
        assert!(size_of::<TcpConnection>() <= 1_536, "{}", size_of::<TcpConnection>());
    }
}
