//! `rds` and `homa`: messages that their receivers schedule, as `homa` has them.

use homa::{
    GrantPolicy, GrantScheduler, MessageLevels, ReceiverDriven, ReceiverDrivenConfig, ReceiverDrivenNote,
    ReceiverDrivenPacket,
};
use machine::Conversation;
use radar::packet::TcpFields as StreamSegment;
use units::{Bytes, Prob, Span};
use wire::ethernet::MAX_FRAME;
use wire::ip::Ecn;
use wire::{ipv4, udp};

use super::{HeaderWriter, PacketSizes, SimTransport, Site};
use crate::net::address;
use crate::net::end::{FlowCounters, FlowProgress};
use crate::workload::SizeTrace;
use settings::KeyShape::One;
use settings::{Keys, ReadResult, SettingsReader};

/// Bytes of the Ethernet, IP and UDP headers and the frame check, and of a 16-byte header with the message and the offset.
const HEADERS: u32 = 14 + 20 + 8 + 16 + 4;
/// A grant or the like.
const CONTROL: u32 = 64;
const PORT: u16 = 4_800;

/// Number of samples of a size distribution from which priority levels are chosen.
const SIZES: usize = 2_000;

impl SimTransport for ReceiverDriven {
    type Setup = ReceiverDrivenConfig;

    const NAMES: &'static [&'static str] = &["rds", "homa"];
    const KEYS: Keys = &[("unasked", One), ("grant", One), ("at_once", One), ("levels", One)];
    const WAKES_OTHERS: bool = true;

    fn read(table: &SettingsReader<'_>, name: &str) -> ReadResult<ReceiverDrivenConfig> {
        let usual = ReceiverDrivenConfig::default();
        let payload = table.small("payload", 1..=MAX_FRAME - HEADERS)?.unwrap_or(usual.payload);
        let most = Bytes::new(1 << 30);
        let unasked = table.bytes("unasked", Bytes::new(1)..=most)?.map_or(usual.unasked, Bytes::get);
        let batch = table.small("grant", 1..=10_000)?.unwrap_or(usual.batch);
        let mut config = if name == "homa" {
            let levels = MessageLevels::balanced(&sizes(table)?, unasked, table.tiny("levels", 1..=7)?);
            ReceiverDrivenConfig::homa(payload, unasked, batch, levels)
        } else {
            ReceiverDrivenConfig::rds(payload, unasked, batch)
        };
        config.timeout = table.span("timeout", Span::from_ns(1)..=Span::from_ms(60_000))?.unwrap_or(config.timeout);
        config.policy.at_once = table.small("at_once", 1..=1_000_000)?.unwrap_or(config.policy.at_once);
        Ok(config)
    }

    fn connect(setup: &ReceiverDrivenConfig, at: &mut Site<'_>) -> Self {
        let grants = at.grants.get_or_insert_with(|| GrantScheduler::new(setup.policy));
        Self::new(*setup, grants, at.end, at.peer)
    }

    fn close(&mut self) {
        ReceiverDriven::close(self);
    }

    fn sizes(setup: &ReceiverDrivenConfig) -> PacketSizes {
        let frame = setup.payload + HEADERS;
        PacketSizes { payload: setup.payload, frame, longest: frame.max(CONTROL), acknowledge: 0 }
    }

    fn grant_policy(setup: &ReceiverDrivenConfig) -> Option<GrantPolicy> {
        Some(setup.policy)
    }

    fn has_levels(setup: &ReceiverDrivenConfig) -> bool {
        setup.levels.is_some()
    }

    fn send(bytes: u64) -> u64 {
        bytes
    }

    #[inline]
    fn on_done(received: u64, progress: &mut FlowProgress) {
        progress.received = Some(received);
    }

    fn on_note(note: ReceiverDrivenNote, counters: &mut FlowCounters) {
        match note {
            ReceiverDrivenNote::Retransmitted => counters.retransmitted += 1,
            ReceiverDrivenNote::SenderTimeout | ReceiverDrivenNote::ReceiverTimeout => counters.timeouts += 1,
            ReceiverDrivenNote::Gap => counters.naks += 1,
        }
    }

    #[inline]
    fn frame_len(frame: &ReceiverDrivenPacket) -> u32 {
        match frame {
            ReceiverDrivenPacket::Data { len, .. } => len + HEADERS,
            _ => CONTROL,
        }
    }

    #[inline]
    fn ecn(_frame: &ReceiverDrivenPacket) -> Ecn {
        Ecn::NotCapable
    }

    #[inline]
    fn with_ecn(frame: ReceiverDrivenPacket, _ecn: Ecn) -> ReceiverDrivenPacket {
        frame
    }

    #[inline]
    fn is_control(frame: &ReceiverDrivenPacket) -> bool {
        !matches!(frame, ReceiverDrivenPacket::Data { .. })
    }

    #[inline]
    fn owes_control(&self) -> bool {
        ReceiverDriven::owes_control(self)
    }

    #[inline]
    fn level(frame: &ReceiverDrivenPacket) -> u8 {
        match frame {
            ReceiverDrivenPacket::Data { level, .. } => *level,
            _ => 0,
        }
    }

    #[inline]
    fn next_level(&self) -> u8 {
        ReceiverDriven::level(self)
    }

    fn ports(who: Conversation) -> [u16; 2] {
        address::ports(who, PORT)
    }

    fn signature(frame: &ReceiverDrivenPacket) -> (Option<StreamSegment>, u64) {
        let word = match frame {
            ReceiverDrivenPacket::Data { offset, .. } => *offset,
            ReceiverDrivenPacket::Grant { until, .. } | ReceiverDrivenPacket::Done { until } => *until,
            ReceiverDrivenPacket::Resend { from, .. } => *from,
        };
        (None, word)
    }

    fn write_headers(_frame: &ReceiverDrivenPacket, writer: &mut HeaderWriter<'_>) {
        let ip = writer.ip(ipv4::UDP, writer.inside);
        let [source, destination] = Self::ports(writer.who);
        udp::UdpHeader { source, destination, checked: true }.emit(&ip, writer.out);
    }
}

/// Sizes of messages as Homa's receivers would have observed them, sorted: those of the trace that `size` names, or the
/// one size there is, and that of replies. Those of Homa's W3 if `size` says neither.
fn sizes(table: &SettingsReader<'_>) -> ReadResult<Vec<u64>> {
    let text = table.text("size")?.unwrap_or_default();
    let mut sizes = match (text.parse::<SizeTrace>(), text.parse::<Bytes>()) {
        (_, Ok(bytes)) => vec![bytes.get()],
        (trace, Err(_)) => {
            let all = trace.unwrap_or(SizeTrace::GoogleRpc).sizes();
            let shares = (0..SIZES).map(|index| (index as f64 + 0.5) / SIZES as f64);
            shares.map(|share| all.quantile(Prob::literal(share))).collect()
        }
    };
    sizes.extend(table.parsed::<Bytes>("reply")?.map(Bytes::get));
    sizes.sort_unstable();
    Ok(sizes)
}
