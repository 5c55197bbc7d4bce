//! RDMA with selective retransmission, whatever remembers what is missing: MELO and IRN say only that.

use machine::Conversation;
use radar::packet::Segment as StreamSegment;
use transport::roce::melo::PoolConfig;
use transport::roce::selective::{Command, Config, Connection, Kind, MAX_OUTSTANDING, Packet, Recovery};
use transport::roce::{Done, Note, Opcode, Packet as RocePacket, Psn, Syndrome};
use wire::ip::Ecn;

use super::{HeaderWriter, PacketSizes, SimTransport, Site, rdma};
use crate::net::end::{FlowCounters, Progress};
use crate::scenario::{Keys, Read, Reader};

/// What is particular to one way of remembering.
pub(crate) trait SimRecovery: Recovery + Sized {
    /// What it is made from.
    type Memory: Clone + std::fmt::Debug;

    const NAME: &'static str;
    const KEYS: Keys;

    fn read(table: &Reader<'_>) -> Read<Self::Memory>;

    fn connect(config: Config, memory: &Self::Memory, at: &mut Site<'_>) -> Connection<Self>;

    fn close(_connection: &mut Connection<Self>) {}

    fn shared_pool(_memory: &Self::Memory) -> Option<PoolConfig> {
        None
    }
}

/// A connection as a setup has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SelectiveSetup<M> {
    pub config: Config,
    /// Where it keeps what it knows of gaps.
    pub memory: M,
}

impl<R: SimRecovery> SimTransport for Connection<R> {
    type Setup = SelectiveSetup<R::Memory>;

    const NAMES: &'static [&'static str] = &["rdma"];
    const RECOVERY: Option<&'static str> = Some(R::NAME);
    const KEYS: Keys = R::KEYS;
    const IS_RDMA: bool = true;

    fn read(table: &Reader<'_>, _name: &str) -> Read<Self::Setup> {
        let memory = R::read(table)?;
        let config = Config::from(rdma::read(table)?);
        let window = table.small("outstanding", 1..=MAX_OUTSTANDING)?;
        let max_outstanding = window.unwrap_or(Config::default().max_outstanding);
        Ok(SelectiveSetup { config: Config { max_outstanding, ..config }, memory })
    }

    fn connect(setup: &Self::Setup, at: &mut Site<'_>) -> Self {
        R::connect(Config { first_psn: Psn::new(at.seed), ..setup.config }, &setup.memory, at)
    }

    fn close(&mut self) {
        <R as SimRecovery>::close(self);
    }

    fn sizes(setup: &Self::Setup) -> PacketSizes {
        rdma::sizes(setup.config.mtu)
    }

    fn largest_message(setup: &Self::Setup) -> u64 {
        rdma::largest_message(setup.config.mtu)
    }

    fn shared_pool(setup: &Self::Setup) -> Option<PoolConfig> {
        R::shared_pool(&setup.memory)
    }

    fn send(bytes: u64) -> Command {
        Command::Post { bytes }
    }

    #[inline]
    fn on_done(done: Done, progress: &mut Progress) {
        rdma::on_done(done, progress);
    }

    fn on_note(note: Note, counters: &mut FlowCounters) {
        rdma::on_note(note, counters);
    }

    #[inline]
    fn frame_len(frame: &Packet) -> u32 {
        frame.frame_len()
    }

    #[inline]
    fn ecn(frame: &Packet) -> Ecn {
        frame.ecn
    }

    #[inline]
    fn with_ecn(frame: Packet, ecn: Ecn) -> Packet {
        Packet { ecn, ..frame }
    }

    fn ports(who: Conversation) -> [u16; 2] {
        rdma::ports(who)
    }

    fn signature(frame: &Packet) -> (Option<StreamSegment>, u64) {
        (None, u64::from(frame.psn.number()))
    }

    fn write_headers(frame: &Packet, writer: &mut HeaderWriter<'_>) {
        rdma::write_headers(&as_roce(frame), writer);
    }
}

/// As RoCE has it. What a NACK says of its gaps has no place there; it follows as zeros.
fn as_roce(packet: &Packet) -> RocePacket {
    let (opcode, payload, ack_request) = match packet.kind {
        Kind::Data { part, payload, ack_request } => (Opcode::Write(part), payload, ack_request),
        Kind::Ack => (Opcode::Acknowledge(Syndrome::Ack), 0, false),
        Kind::Nack(_) => (Opcode::Acknowledge(Syndrome::SequenceError), 0, false),
    };
    RocePacket { opcode, psn: packet.psn, payload, dma_len: payload, msn: 0, ack_request, ecn: packet.ecn }
}
