//! RDMA with go-back-N: queue pairs of RoCEv2, as NICs have them, with repeat and dummy headers.

use congestion::ControllerConfig;
use machine::{Conversation, Out};
use radar::packet::TcpFields as StreamSegment;
use roce::{
    MAX_OUTSTANDING, Psn, Qp, RdmaFraming, RoceCommand, RoceCompletion, RoceConfig, RoceNote, RoceOperation,
    RocePacket, Telemetry, Verb,
};
use units::{Span, Time};
use wire::int::TelemetrySample;
use wire::ip::Ecn;

use super::tcp::LONGEST_RTO;
use super::{HeaderWriter, PacketSizes, SimTransport, Site, controllers, rdma};
use crate::net::end::{FlowCounters, FlowProgress};
use settings::KeyShape::{One, Table};
use settings::{Keys, ReadResult, SettingsReader};

/// More than any loss calls for.
const MOST_BEHIND_A_TAIL: u32 = 64;

impl SimTransport for Qp {
    type Setup = RoceConfig;

    const NAMES: &'static [&'static str] = &["rdma"];
    const RECOVERY: Option<&'static str> = Some("go-back-n");
    const KEYS: Keys = &[
        ("mtu", One),
        ("timeout", One),
        ("retries", One),
        ("ack_every", One),
        ("outstanding", One),
        ("naks", One),
        ("nak_interval", One),
        ("obey", One),
        ("dummies", One),
        ("dummies_after", One),
        ("tail_copies", One),
        ("queue_pairs", One),
        ("recovery", One),
        ("congestion", One),
        ("plus_window", One),
        ("ack_class", One),
        ("hpcc", Table(controllers::HPCC)),
        ("dcqcn", Table(controllers::DCQCN)),
        ("timely", Table(controllers::TIMELY)),
        ("dctcp", Table(controllers::DCTCP)),
        ("swift", Table(controllers::SWIFT)),
    ];
    const IS_RDMA: bool = true;

    fn read(table: &SettingsReader<'_>, _name: &str) -> ReadResult<RoceConfig> {
        let usual = rdma::read(table)?;
        let obey = table.choice("obey", &[("every", true), ("first", false)])?;
        Ok(RoceConfig {
            max_outstanding: table.small("outstanding", 1..=MAX_OUTSTANDING)?.unwrap_or(usual.max_outstanding),
            naks: table.flag("naks")?.unwrap_or(usual.naks),
            nak_interval: table.span("nak_interval", Span::ZERO..=LONGEST_RTO)?.unwrap_or(usual.nak_interval),
            obey_nak_copies: obey.unwrap_or(usual.obey_nak_copies),
            dummies: table.small("dummies", 0..=MOST_BEHIND_A_TAIL)?.unwrap_or(usual.dummies),
            dummies_after: table.span("dummies_after", Span::ZERO..=LONGEST_RTO)?.unwrap_or(usual.dummies_after),
            tail_copies: table.small("tail_copies", 0..=MOST_BEHIND_A_TAIL)?.unwrap_or(usual.tail_copies),
            ..usual
        })
    }

    fn connect(setup: &RoceConfig, at: &mut Site<'_>) -> Self {
        // NICs draw the first PSN: a switch that knows only PSNs would confuse connections that begin alike.
        Self::new(RoceConfig { first_psn: Psn::new(at.seed), site: rdma::control_site(at, setup.mtu), ..*setup })
    }

    fn sizes(setup: &RoceConfig) -> PacketSizes {
        rdma::sizes(setup.mtu, &setup.framing, &setup.congestion)
    }

    fn largest_message(setup: &RoceConfig) -> u64 {
        rdma::largest_message(setup.mtu)
    }

    fn framing_mut(setup: &mut RoceConfig) -> Option<&mut RdmaFraming> {
        Some(&mut setup.framing)
    }

    fn congestion_mut(setup: &mut RoceConfig) -> Option<&mut ControllerConfig> {
        Some(&mut setup.congestion)
    }

    fn congestion(setup: &RoceConfig) -> ControllerConfig {
        setup.congestion
    }

    fn send(bytes: u64) -> RoceCommand {
        RoceCommand::Post { verb: Verb::Write, bytes }
    }

    #[inline]
    fn on_done(done: RoceCompletion, progress: &mut FlowProgress) {
        rdma::on_done(done, progress);
    }

    fn on_note(note: RoceNote, counters: &mut FlowCounters) {
        rdma::on_note(note, counters);
    }

    #[inline]
    fn frame_len(frame: &RocePacket) -> u32 {
        frame.frame_len()
    }

    #[inline]
    fn ecn(frame: &RocePacket) -> Ecn {
        frame.ecn
    }

    #[inline]
    fn with_ecn(frame: RocePacket, ecn: Ecn) -> RocePacket {
        RocePacket { ecn, ..frame }
    }

    #[inline]
    fn receive<O: Out<Self>>(
        &mut self,
        now: Time,
        frame: RocePacket,
        telemetry: Option<TelemetrySample<'_>>,
        out: &mut O,
    ) {
        self.on_packet(now, frame, telemetry, out);
    }

    #[inline]
    fn telemetry(frame: &RocePacket) -> Telemetry {
        frame.congestion.telemetry
    }

    #[inline]
    fn is_control(frame: &RocePacket) -> bool {
        matches!(frame.opcode, RoceOperation::Acknowledge(_) | RoceOperation::Notification)
    }

    #[inline]
    fn owes_control(&self) -> bool {
        Qp::owes_control(self)
    }

    #[inline]
    fn round_trip(frame: &RocePacket, now: Time) -> Option<Span> {
        Self::is_control(frame).then(|| frame.congestion.sent_at.map(|sent_at| now.since(sent_at)))?
    }

    #[inline]
    fn received_bytes(&self) -> Option<u64> {
        Some(Qp::received_bytes(self))
    }

    fn has_passed(&self, number: u64) -> bool {
        Qp::has_passed(self, Psn::new(number as u32))
    }

    fn telemetry_resets(&self) -> u64 {
        self.controller().telemetry_resets()
    }

    fn ports(who: Conversation) -> [u16; 2] {
        rdma::ports(who)
    }

    fn signature(frame: &RocePacket) -> (Option<StreamSegment>, u64) {
        (None, u64::from(frame.psn.number()))
    }

    fn write_headers(frame: &RocePacket, writer: &mut HeaderWriter<'_>) {
        rdma::write_headers(frame, writer);
    }
}
