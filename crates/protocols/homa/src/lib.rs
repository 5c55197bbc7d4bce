//! Messages that their receivers schedule: `rds`, the baseline of PL2 (App. F), and Homa (SIGCOMM'18).
//!
//! A sender sends the first round trip's bytes of a message unasked, as fast as it can. The rest waits for grants of a few
//! packets each. The [`GrantScheduler`] of the receiving host decides which messages are granted, and keeps a window of
//! one round trip granted and not yet arrived for each of them.
//!
//! ```text
//!   sender                             receiver
//!     │ unasked data ───────────────────▶ │  the first packet tells the length
//!     │ ◀─────────────────────── grants   │  up to `window` ahead of what has arrived
//!     │ granted data ───────────────────▶ │
//!     │ ◀─────────────────────── resend   │  at a gap, or nothing for `timeout`
//!     │ ◀─────────────────────── done     │
//! ```
//!
//! | | `rds` | `homa` |
//! | --- | --- | --- |
//! | messages granted at a time by a host | 1, the oldest | one per scheduled level, the shortest first, one per sender |
//! | priorities | none | 8: unasked data by the size of the message, granted data by what is left of it |
//! | a gap | reported at once | left to the receiver's timer: priorities change the order |
//! | nothing heard for `timeout` | all unasked data again | the last packet again, upon which the receiver asks for the rest |
//!
//! Invariant: a receiver delivers each byte once; a message ends when all of it has arrived, whatever is lost, repeated
//! or out of order. With `rds` a packet that arrives before an earlier one is taken for a loss: it is for single paths.

#![warn(missing_docs)]

mod config;
mod grants;
mod receiver;
mod sender;

use machine::{Machine, Out, Port, Pull};
use units::Time;

pub use config::{GrantOrder, GrantPolicy, MessageLevels, ReceiverDrivenConfig};
pub use grants::{GrantKey, GrantScheduler};

use receiver::MessageReceiver;
use sender::MessageSender;

/// Packet between the ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiverDrivenPacket {
    /// Bytes of a message of `total` bytes.
    Data {
        /// Position of the first.
        offset: u64,
        /// Number of bytes.
        len: u32,
        /// All that the sender has been asked to send.
        total: u64,
        /// Priority, 0 first.
        level: u8,
    },
    /// The sender may send everything before `until`.
    Grant {
        /// Behind the last byte.
        until: u64,
        /// Priority of what is sent from now on.
        level: u8,
    },
    /// These bytes have not arrived: to be sent (again).
    Resend {
        /// The first.
        from: u64,
        /// Behind the last.
        to: u64,
    },
    /// All bytes before `until` have arrived.
    Done {
        /// Behind the last byte.
        until: u64,
    },
}

/// The timers of one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiverDrivenTimer {
    /// The receiver was silent.
    Sender,
    /// Granted bytes did not arrive.
    Receiver,
}

impl From<ReceiverDrivenTimer> for usize {
    fn from(timer: ReceiverDrivenTimer) -> usize {
        timer as usize
    }
}

/// Events at an end besides sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiverDrivenNote {
    /// A packet was sent again.
    Retransmitted,
    /// The sender heard nothing for too long.
    SenderTimeout,
    /// The receiver got nothing for too long.
    ReceiverTimeout,
    /// The receiver noticed a gap.
    Gap,
}

/// One end of a connection, which may send a message and receive one.
#[derive(Debug)]
pub struct ReceiverDriven {
    config: ReceiverDrivenConfig,
    sender: MessageSender,
    receiver: MessageReceiver,
}

impl ReceiverDriven {
    /// `grants` is the receiving host's, which knows this end by `key`; `peer` is the host at the other end.
    pub fn new(config: ReceiverDrivenConfig, grants: &GrantScheduler, key: GrantKey, peer: u32) -> Self {
        Self { config, sender: MessageSender::new(&config), receiver: MessageReceiver::new(grants.clone(), key, peer) }
    }

    /// The connection has ended: its host grants nothing more to it.
    pub fn close(&mut self) {
        self.receiver.close();
    }

    /// True if a grant or the like is the next to be sent.
    pub fn owes_control(&self) -> bool {
        self.receiver.owes()
    }

    /// Priority of what it would send next.
    pub fn level(&self) -> u8 {
        if self.receiver.owes() { 0 } else { self.sender.level(&self.config) }
    }

    /// Bytes that have arrived.
    pub fn received(&self) -> u64 {
        self.receiver.received()
    }
}

impl Machine for ReceiverDriven {
    type Frame = ReceiverDrivenPacket;
    type Inner = ();
    type Timer = ReceiverDrivenTimer;
    /// Bytes to send.
    type Command = u64;
    /// Bytes that have arrived so far.
    type Done = u64;
    type Note = ReceiverDrivenNote;

    fn on_frame<O: Out<Self>>(&mut self, now: Time, port: Port, frame: ReceiverDrivenPacket, out: &mut O) {
        match frame {
            ReceiverDrivenPacket::Data { offset, len, total, .. } => {
                self.receiver.on_data(now, &self.config, (offset, len, total), out);
            }
            ReceiverDrivenPacket::Grant { until, level } => self.sender.on_grant(until, level),
            ReceiverDrivenPacket::Resend { from, to } => self.sender.on_resend(from, to),
            ReceiverDrivenPacket::Done { until } => self.sender.on_done(until),
        }
        if !matches!(frame, ReceiverDrivenPacket::Data { .. }) {
            self.sender.wait(now, &self.config, out);
        }
        if self.receiver.owes() || self.sender.has_any() {
            out.wake(port);
        }
    }

    fn on_timer<O: Out<Self>>(&mut self, now: Time, key: ReceiverDrivenTimer, out: &mut O) {
        match key {
            ReceiverDrivenTimer::Sender => self.sender.on_timeout(now, &self.config, out),
            ReceiverDrivenTimer::Receiver => self.receiver.on_timeout(now, &self.config, out),
        }
        out.wake(Port(0));
    }

    fn on_command<O: Out<Self>>(&mut self, _now: Time, bytes: u64, out: &mut O) {
        self.sender.ask(&self.config, bytes);
        out.wake(Port(0));
    }

    fn pull<O: Out<Self>>(&mut self, now: Time, port: Port, out: &mut O) -> Pull {
        if let Some(control) = self.receiver.next_control(&self.config) {
            if matches!(control, ReceiverDrivenPacket::Grant { .. }) {
                self.receiver.wait(now, &self.config, out);
            }
            out.transmit(port, control);
            return Pull::Sent;
        }
        let Some(data) = self.sender.pull(now, &self.config, out) else { return Pull::Idle };
        out.transmit(port, data);
        if self.sender.has_any() { Pull::Sent } else { Pull::Last }
    }

    fn check_invariants(&self) {
        self.sender.check_invariants();
        self.receiver.check_invariants();
    }
}
