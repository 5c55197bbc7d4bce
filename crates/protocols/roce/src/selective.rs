//! A reliable connection with selective retransmission: what is lost is sent again, and nothing else.
//!
//! MELO ("Memory Efficient Loss Recovery for Hardware-based Transport in Datacenter", APNet'17) §3, and IRN ("Revisiting
//! Network Support for RDMA", SIGCOMM'18) §3 as its yardstick. They differ in what each end remembers, and where:
//!
//! | part | here |
//! | --- | --- |
//! | packets and their lengths, holes | [`SelectivePacket`], [`Holes`] |
//! | messages into packets, what is sent again, timeout and retry | `sender` |
//! | expected PSN, data out of order, acknowledgements | `receiver` |
//! | which gaps are remembered, reported and filled | [`LossRecovery`]: [`Melo`], [`Irn`] |
//!
//! A [`SelectiveConnection`] is established from the start and stands at both ends, as a [`Qp`](super::Qp) does; it carries WRITEs
//! alone. When its wire pulls, strictly in this order: ACK or NACK; what NACKs asked for; what is sent again in order; new
//! data. All but the first are paced, if there is a rate.
//!
//! No single lost packet silences both ends: data is covered by the sender's timer, which runs while anything is
//! outstanding; a lost NACK by the next, and a lost ACK by the next or by the data that the timer sends again, which is
//! acknowledged anew.

mod config;
mod packet;
mod receiver;
mod recovery;
mod sender;

use congestion::{Controller, TelemetrySample};
use machine::{Machine, Out, Port, Pull};
use units::Time;

pub use config::{MAX_OUTSTANDING, SelectiveConfig};
pub use packet::{Gaps, Hole, Holes, SelectivePacket, SelectivePacketKind};
pub use recovery::{ForgottenState, LossRecovery, NackInfo, PacketArrival, SendWindow};

pub use super::{RoceCompletion, RoceNote, RoceRetransmitCause, RoceTimer};

use super::echo::ArrivalEcho;
use super::irn::{Irn, Timeouts};
use super::melo::{BlockPointer, Melo, Nic};
use super::{Psn, WIRE};
use receiver::{DataPacket, SelectiveReceiver};
use sender::SelectiveSender;

/// Commands of the owner of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelectiveCommand {
    /// A WRITE of at most [`MAX_MESSAGE`](super::MAX_MESSAGE) bytes.
    Post {
        /// Payload of the message; of 0 bytes it is still one packet.
        bytes: u64,
    },
}

/// One end of a reliable connection.
#[derive(Debug)]
pub struct SelectiveConnection<R> {
    sender: SelectiveSender,
    receiver: SelectiveReceiver,
    recovery: R,
    echo: ArrivalEcho,
    failed: bool,
}

impl<S: BlockPointer> SelectiveConnection<Melo<S>> {
    /// One that shares the bits of its NIC with all others there.
    ///
    /// # Panics
    /// If the MTU is zero.
    pub fn melo(config: SelectiveConfig, nic: &Nic<S>) -> Self {
        Self::new(config, Timeouts::ALWAYS_HIGH, |config| Melo::new(nic, config.first_psn))
    }

    /// Gives the blocks of both directions back and keeps what was in them off the chip. The next event of any kind on
    /// the connection takes blocks again; if there are not enough, the connection goes on as go-back-N would.
    pub fn swap_out(&mut self) {
        self.recovery.swap_out();
    }
}

impl SelectiveConnection<Irn> {
    /// One with bitmaps of its own, a bit for each packet that may be outstanding.
    ///
    /// # Panics
    /// If the MTU is zero.
    pub fn irn(config: SelectiveConfig, timeouts: Timeouts) -> Self {
        Self::new(config, timeouts, |config| Irn::new(config.max_outstanding, config.first_psn))
    }
}

impl<R: LossRecovery> SelectiveConnection<R> {
    fn new(config: SelectiveConfig, timeouts: Timeouts, recovery: impl FnOnce(&SelectiveConfig) -> R) -> Self {
        assert!(config.mtu > 0, "a packet must be able to carry something");
        let config = config.clamped(MAX_OUTSTANDING);
        Self {
            sender: SelectiveSender::new(config, timeouts),
            receiver: SelectiveReceiver::new(&config),
            recovery: recovery(&config),
            echo: ArrivalEcho::new(&config.congestion, config.framing),
            failed: false,
        }
    }

    /// WRITEs posted and not complete.
    pub fn pending(&self) -> usize {
        self.sender.queue.pending()
    }

    /// PSNs sent and not acknowledged.
    pub fn outstanding(&self) -> u64 {
        self.sender.queue.outstanding()
    }

    /// Payload of the peer's WRITEs that has arrived in order.
    pub fn received_bytes(&self) -> u64 {
        self.receiver.received_bytes()
    }

    /// True if everything up to the peer's packet of this PSN has arrived.
    pub fn has_passed(&self, psn: Psn) -> bool {
        self.receiver.has_passed(psn)
    }

    /// Controller of its window and pace.
    pub fn controller(&self) -> &Controller {
        self.sender.queue.controller()
    }

    /// True if an acknowledgement or a notification is the next to be sent.
    #[inline]
    pub fn owes_control(&self) -> bool {
        self.echo.owes_cnp() || self.receiver.owes_acknowledge(&self.recovery)
    }

    /// True if timeouts in a row exhausted the retries; then nothing is sent or taken in any more.
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// State of both halves about losses.
    pub fn recovery(&self) -> &R {
        &self.recovery
    }

    fn has_data(&self) -> bool {
        self.sender.may_send(&self.recovery)
    }

    fn wants_to_send(&self) -> bool {
        self.owes_control() || self.has_data()
    }

    #[inline]
    fn bring_in<O: Out<Self>>(&mut self, now: Time, out: &mut O) {
        let Some(forgotten) = self.recovery.bring_in(self.sender.queue.una()) else { return };
        if forgotten.arrivals {
            self.receiver.forget();
        }
        if let Some(place) = forgotten.resend_from {
            self.sender.go_back(now, place, RoceRetransmitCause::Nak, &mut self.recovery, out);
        }
    }

    /// A packet has come; with it, if it is an acknowledgement, what switches wrote on the data that it answers.
    pub fn on_packet<O: Out<Self>>(
        &mut self,
        now: Time,
        packet: SelectivePacket,
        telemetry: Option<TelemetrySample<'_>>,
        out: &mut O,
    ) {
        if self.failed {
            return;
        }
        self.bring_in(now, out);
        let (recovery, before) = (&mut self.recovery, self.sender.queue.acked());
        match packet.kind {
            SelectivePacketKind::Data { part, payload, ack_request } => {
                self.echo.on_data(now, packet.ecn, &packet.congestion);
                self.receiver.on_data(packet.psn, DataPacket { part, payload, ack_request }, recovery, out);
            }
            SelectivePacketKind::Ack => self.sender.on_ack(now, packet.psn, recovery, out),
            SelectivePacketKind::Nack(gaps) => self.sender.on_nack(now, (packet.psn, gaps), recovery, out),
            SelectivePacketKind::Notification => self.sender.queue.on_notification(now),
        }
        if matches!(packet.kind, SelectivePacketKind::Ack | SelectivePacketKind::Nack(_)) {
            self.sender.queue.on_feedback(now, before, &packet.congestion, telemetry);
        }
        if self.wants_to_send() {
            out.wake(WIRE);
        }
    }

    /// The notification or acknowledgement that is due.
    fn next_control<O: Out<Self>>(&mut self, out: &mut O) -> Option<SelectivePacket> {
        if self.echo.take_cnp() {
            return Some(self.receiver.notification());
        }
        let acknowledge = self.receiver.next_acknowledge(&mut self.recovery, out)?;
        Some(SelectivePacket { congestion: self.echo.take(), ..acknowledge })
    }

    fn transmit<O: Out<Self>>(&self, packet: SelectivePacket, out: &mut O) -> Pull {
        out.transmit(WIRE, packet);
        if self.wants_to_send() { Pull::Sent } else { Pull::Last }
    }

    fn fail<O: Out<Self>>(&mut self, out: &mut O) {
        self.failed = true;
        self.sender.queue.flush(out);
        self.recovery.close();
        out.complete(RoceCompletion::Failed);
    }
}

impl<R: LossRecovery> Machine for SelectiveConnection<R> {
    type Frame = SelectivePacket;
    type Inner = ();
    type Timer = RoceTimer;
    type Command = SelectiveCommand;
    type Done = RoceCompletion;
    type Note = RoceNote;

    #[inline]
    fn on_frame<O: Out<Self>>(&mut self, now: Time, _port: Port, packet: SelectivePacket, out: &mut O) {
        self.on_packet(now, packet, None, out);
    }

    fn on_timer<O: Out<Self>>(&mut self, now: Time, _key: RoceTimer, out: &mut O) {
        if self.failed {
            return;
        }
        self.bring_in(now, out);
        if !self.sender.on_timer(now, &mut self.recovery, out) {
            self.fail(out);
        } else if self.wants_to_send() {
            out.wake(WIRE);
        }
    }

    fn on_command<O: Out<Self>>(&mut self, _now: Time, command: SelectiveCommand, out: &mut O) {
        let SelectiveCommand::Post { bytes } = command;
        if self.failed {
            return out.complete(RoceCompletion::Failed);
        }
        self.sender.post(bytes);
        out.wake(WIRE);
    }

    fn pull<O: Out<Self>>(&mut self, now: Time, _port: Port, out: &mut O) -> Pull {
        if self.failed {
            return Pull::Idle;
        }
        self.bring_in(now, out);
        if let Some(control) = self.next_control(out) {
            return self.transmit(control, out);
        }
        if !self.has_data() {
            return Pull::Idle;
        }
        if let Some(until) = self.sender.queue.held_until(now) {
            return Pull::NotBefore(until);
        }
        let Some(packet) = self.sender.next_packet(now, &mut self.recovery, out) else { return Pull::Idle };
        self.sender.queue.on_leaving(now, packet.frame_len());
        self.transmit(packet, out)
    }

    fn check_invariants(&self) {
        if cfg!(debug_assertions) {
            self.sender.queue.check_invariants();
            self.recovery.check_invariants();
        }
    }
}
