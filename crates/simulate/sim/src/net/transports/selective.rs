//! RDMA with selective retransmission. MELO and IRN add only how they remember what is missing.

use congestion::ControllerConfig;
use machine::{Conversation, Out};
use radar::packet::TcpFields as StreamSegment;
use roce::melo::PoolConfig;
use roce::selective::{
    LossRecovery, MAX_OUTSTANDING, SelectiveCommand, SelectiveConfig, SelectiveConnection, SelectivePacket,
    SelectivePacketKind,
};
use roce::{AckSyndrome, Psn, RdmaFraming, RoceCompletion, RoceNote, RoceOperation, RocePacket, Telemetry};
use units::{Span, Time};
use wire::int::TelemetrySample;
use wire::ip::Ecn;

use super::{HeaderWriter, PacketSizes, SimTransport, Site, rdma};
use crate::net::end::{FlowCounters, FlowProgress};
use settings::{Keys, ReadResult, SettingsReader};

/// Particulars of one way of remembering gaps.
pub(crate) trait SimRecovery: LossRecovery + Sized {
    /// Configuration that it is made from.
    type Memory: Clone + std::fmt::Debug;

    const NAME: &'static str;
    const KEYS: Keys;

    fn read(table: &SettingsReader<'_>) -> ReadResult<Self::Memory>;

    fn connect(config: SelectiveConfig, memory: &Self::Memory, at: &mut Site<'_>) -> SelectiveConnection<Self>;

    fn close(_connection: &mut SelectiveConnection<Self>) {}

    fn shared_pool(_memory: &Self::Memory) -> Option<PoolConfig> {
        None
    }
}

/// A connection as a setup has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SelectiveSetup<M> {
    pub config: SelectiveConfig,
    /// Memory of the gaps.
    pub memory: M,
}

impl<R: SimRecovery> SimTransport for SelectiveConnection<R> {
    type Setup = SelectiveSetup<R::Memory>;

    const NAMES: &'static [&'static str] = &["rdma"];
    const RECOVERY: Option<&'static str> = Some(R::NAME);
    const KEYS: Keys = R::KEYS;
    const IS_RDMA: bool = true;

    fn read(table: &SettingsReader<'_>, _name: &str) -> ReadResult<Self::Setup> {
        let memory = R::read(table)?;
        let config = SelectiveConfig::from(rdma::read(table)?);
        let window = table.small("outstanding", 1..=MAX_OUTSTANDING)?;
        let max_outstanding = window.unwrap_or(SelectiveConfig::default().max_outstanding);
        Ok(SelectiveSetup { config: SelectiveConfig { max_outstanding, ..config }, memory })
    }

    fn connect(setup: &Self::Setup, at: &mut Site<'_>) -> Self {
        let site = rdma::control_site(at, setup.config.mtu);
        R::connect(SelectiveConfig { first_psn: Psn::new(at.seed), site, ..setup.config }, &setup.memory, at)
    }

    fn close(&mut self) {
        <R as SimRecovery>::close(self);
    }

    fn sizes(setup: &Self::Setup) -> PacketSizes {
        rdma::sizes(setup.config.mtu, &setup.config.framing, &setup.config.congestion)
    }

    fn largest_message(setup: &Self::Setup) -> u64 {
        rdma::largest_message(setup.config.mtu)
    }

    fn framing_mut(setup: &mut Self::Setup) -> Option<&mut RdmaFraming> {
        Some(&mut setup.config.framing)
    }

    fn congestion_mut(setup: &mut Self::Setup) -> Option<&mut ControllerConfig> {
        Some(&mut setup.config.congestion)
    }

    fn congestion(setup: &Self::Setup) -> ControllerConfig {
        setup.config.congestion
    }

    fn shared_pool(setup: &Self::Setup) -> Option<PoolConfig> {
        R::shared_pool(&setup.memory)
    }

    fn send(bytes: u64) -> SelectiveCommand {
        SelectiveCommand::Post { bytes }
    }

    #[inline]
    fn on_done(done: RoceCompletion, progress: &mut FlowProgress) {
        rdma::on_done(done, progress);
    }

    fn on_note(note: RoceNote, counters: &mut FlowCounters) {
        rdma::on_note(note, counters);
    }

    #[inline]
    fn frame_len(frame: &SelectivePacket) -> u32 {
        frame.frame_len()
    }

    #[inline]
    fn ecn(frame: &SelectivePacket) -> Ecn {
        frame.ecn
    }

    #[inline]
    fn with_ecn(frame: SelectivePacket, ecn: Ecn) -> SelectivePacket {
        SelectivePacket { ecn, ..frame }
    }

    #[inline]
    fn receive<O: Out<Self>>(
        &mut self,
        now: Time,
        frame: SelectivePacket,
        telemetry: Option<TelemetrySample<'_>>,
        out: &mut O,
    ) {
        self.on_packet(now, frame, telemetry, out);
    }

    #[inline]
    fn telemetry(frame: &SelectivePacket) -> Telemetry {
        frame.congestion.telemetry
    }

    #[inline]
    fn is_control(frame: &SelectivePacket) -> bool {
        !frame.is_data()
    }

    #[inline]
    fn owes_control(&self) -> bool {
        SelectiveConnection::owes_control(self)
    }

    #[inline]
    fn round_trip(frame: &SelectivePacket, now: Time) -> Option<Span> {
        Self::is_control(frame).then(|| frame.congestion.sent_at.map(|sent_at| now.since(sent_at)))?
    }

    #[inline]
    fn received_bytes(&self) -> Option<u64> {
        Some(SelectiveConnection::received_bytes(self))
    }

    fn has_passed(&self, number: u64) -> bool {
        SelectiveConnection::has_passed(self, Psn::new(number as u32))
    }

    fn telemetry_resets(&self) -> u64 {
        self.controller().telemetry_resets()
    }

    fn ports(who: Conversation) -> [u16; 2] {
        rdma::ports(who)
    }

    fn signature(frame: &SelectivePacket) -> (Option<StreamSegment>, u64) {
        (None, u64::from(frame.psn.number()))
    }

    fn write_headers(frame: &SelectivePacket, writer: &mut HeaderWriter<'_>) {
        rdma::write_headers(&as_roce(frame), writer);
    }
}

/// Converts a packet to RoCE. The gaps that a NACK names have no field there; they follow as zeros.
fn as_roce(packet: &SelectivePacket) -> RocePacket {
    let (opcode, payload, ack_request) = match packet.kind {
        SelectivePacketKind::Data { part, payload, ack_request } => (RoceOperation::Write(part), payload, ack_request),
        SelectivePacketKind::Ack => (RoceOperation::Acknowledge(AckSyndrome::Ack), 0, false),
        SelectivePacketKind::Notification => (RoceOperation::Notification, 0, false),
        SelectivePacketKind::Nack(_) => (RoceOperation::Acknowledge(AckSyndrome::SequenceError), 0, false),
    };
    let SelectivePacket { psn, ecn, congestion, .. } = *packet;
    RocePacket { opcode, psn, payload, dma_len: payload, msn: 0, ack_request, ecn, congestion }
}
