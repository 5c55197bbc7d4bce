//! TCP: CUBIC, DCTCP, BBR, Reno and without congestion control, as `tcp` has them.

use machine::Conversation;
use radar::packet::TcpFields as StreamSegment;
use tcp::cc::Algorithm;
use tcp::{
    LinuxVersion, Reordering, SegmentFlags, TcpCommand, TcpConfig, TcpConnection, TcpNote, TcpProgress, TcpSegment,
    TimerProfile,
};
use units::{Bytes, Span};
use wire::ethernet::MAX_FRAME;
use wire::ip::Ecn;
use wire::ipv4;

use super::{Handshake, HeaderWriter, PacketSizes, SimTransport, Site};
use crate::net::address::{self, TCP_PORT};
use crate::net::end::{FlowCounters, FlowProgress};
use settings::KeyShape::One;
use settings::{Keys, ReadResult, SettingsReader};

/// Ethernet with its check, IP, TCP with timestamps. SACK blocks come on top.
pub const HEADERS: u32 = 18 + 20 + 32;
/// Part of the headers that is timestamps.
const TIMESTAMPS: u32 = 12;
const SACK_OPTION: u32 = 4;
const SACK_BLOCK: u32 = 8;

/// More than any kernel's.
const MOST_LATE_TICKS: u8 = 100;

/// RFC 7323's scale of the window.
const WINDOW_SCALE: u32 = 8;

/// Upper limit of the timeout, the least that RFC 6298 allows.
pub(super) const LONGEST_RTO: Span = Span::from_ms(60_000);

/// A SYN stands before the first byte, whose position is 0.
pub(super) const SYN: StreamSegment = StreamSegment { seq: u32::MAX, len: 1, syn: true };

impl SimTransport for TcpConnection {
    type Setup = TcpConfig;

    const NAMES: &'static [&'static str] = &["reno", "cubic", "dctcp", "bbr", "tcp-off"];
    const KEYS: Keys = &[
        ("kernel", One),
        ("timers", One),
        ("hz", One),
        ("rto_min", One),
        ("max_ack_delay", One),
        ("mss", One),
        ("initial_window", One),
        ("receive_buffer", One),
        ("ecn", One),
        ("reordering", One),
        ("idle_restart", One),
        ("timestamps", One),
        ("late_ticks", One),
        ("persistent", One),
    ];
    const SHAKES_HANDS: bool = true;
    const PROTOCOL: u8 = ipv4::TCP;

    fn read(table: &SettingsReader<'_>, name: &str) -> ReadResult<TcpConfig> {
        let kernel: Option<LinuxVersion> = table.parsed("kernel")?;
        let usual = kernel.map_or_else(TcpConfig::default, TcpConfig::linux);
        let timestamps = table.flag("timestamps")?.unwrap_or(usual.timestamps);
        let room = if timestamps { 0 } else { TIMESTAMPS };
        let mss = table.small("mss", 64..=MAX_FRAME - HEADERS + room)?.unwrap_or(usual.mss + room);
        let receive_buffer: Option<Bytes> = table.parsed("receive_buffer")?;
        let receive_buffer = receive_buffer.map_or(usual.receive_buffer, Bytes::get);
        if receive_buffer < 2 * u64::from(mss) || receive_buffer > 1 << 30 {
            return Err(table.wrong("receive_buffer", "expected at least two segments and at most 1 GiB"));
        }
        let choices = [("adaptive", Reordering::Adaptive), ("fixed", Reordering::Fixed)];
        let profile = timers(table)?;
        if kernel.is_some() && matches!(profile, TimerProfile::Rfc { .. }) {
            return Err(table.wrong("timers", "expected linux, or no kernel"));
        }
        let config = TcpConfig {
            mss,
            initial_window: table.small("initial_window", 1..=10_000)?.unwrap_or(usual.initial_window),
            algorithm: algorithm(name),
            profile,
            late_ticks: table.tiny("late_ticks", 0..=MOST_LATE_TICKS)?.unwrap_or(usual.late_ticks),
            timestamps,
            ecn: table.flag("ecn")?.unwrap_or(usual.ecn),
            reordering: table.choice("reordering", &choices)?.unwrap_or(usual.reordering),
            receive_buffer,
            idle_restart: table.flag("idle_restart")?.unwrap_or(usual.idle_restart),
            ..usual
        };
        Ok(config.reading())
    }

    fn connect(setup: &TcpConfig, at: &mut Site<'_>) -> Self {
        Self::new(&config_of(setup, at.round_trip, at.seed), at.now)
    }

    fn sizes(setup: &TcpConfig) -> PacketSizes {
        let frame = setup.mss + HEADERS - if setup.timestamps { 0 } else { TIMESTAMPS };
        PacketSizes { payload: setup.mss, frame, longest: frame, acknowledge: 0 }
    }

    fn send(bytes: u64) -> TcpCommand {
        TcpCommand::Send(bytes)
    }

    #[inline]
    fn on_done(done: TcpProgress, progress: &mut FlowProgress) {
        match done {
            TcpProgress::Delivered(bytes) => progress.received = Some(bytes),
            TcpProgress::Acknowledged(bytes) => progress.acknowledged = Some(bytes),
            // A kernel gives up after many timeouts in a row.
            TcpProgress::Reset | TcpProgress::TimedOut => progress.failed = true,
            // A full send buffer takes in the rest by itself, and connections end outside of their machines.
            TcpProgress::Written(_) | TcpProgress::PeerClosed | TcpProgress::Closed => {}
        }
    }

    fn on_note(note: TcpNote, counters: &mut FlowCounters) {
        match note {
            TcpNote::Retransmitted { .. } => counters.retransmitted += 1,
            TcpNote::Probe => counters.probes += 1,
            TcpNote::Timeout => counters.timeouts += 1,
            TcpNote::Sacked { bytes, .. } => counters.most_sacked = counters.most_sacked.max(bytes),
            TcpNote::Undone => counters.undone += 1,
            TcpNote::Reduced { pending } => {
                if counters.reductions == 0 {
                    counters.pending_when_reduced = pending;
                }
                counters.reductions += 1;
            }
        }
    }

    #[inline]
    fn frame_len(frame: &TcpSegment) -> u32 {
        let blocks = frame.sack.blocks().len() as u32;
        // With data, a host would send that much less of it, so that the frame is no longer.
        let sack = if blocks == 0 || frame.len > 0 { 0 } else { SACK_OPTION + SACK_BLOCK * blocks };
        let timestamps = if frame.flags.has(SegmentFlags::NO_TIMESTAMP) { TIMESTAMPS } else { 0 };
        frame.len + HEADERS + sack - timestamps
    }

    #[inline]
    fn ecn(frame: &TcpSegment) -> Ecn {
        frame.ecn
    }

    #[inline]
    fn with_ecn(frame: TcpSegment, ecn: Ecn) -> TcpSegment {
        TcpSegment { ecn, ..frame }
    }

    #[inline]
    fn in_stream(frame: &TcpSegment) -> Option<(u64, u32)> {
        (frame.len > 0).then_some((frame.seq, frame.len))
    }

    fn ports(who: Conversation) -> [u16; 2] {
        ports(who)
    }

    fn signature(frame: &TcpSegment) -> (Option<StreamSegment>, u64) {
        // Positions on a real wire are the lowest 32 bits of ours.
        let numbers = StreamSegment { seq: frame.seq as u32, len: frame.len as u16, syn: false };
        (Some(numbers), u64::from(frame.timestamp) << 32 | u64::from(frame.ack as u32))
    }

    fn write_headers(frame: &TcpSegment, writer: &mut HeaderWriter<'_>) {
        write(frame, None, writer);
    }
}

/// Configuration of an end that begins with this round trip and seed.
pub(crate) fn config_of(setup: &TcpConfig, round_trip: Span, seed: u32) -> TcpConfig {
    TcpConfig { seed, handshake_rtt: setup.handshake_rtt.or(Some(round_trip)), ..*setup }
}

pub(super) fn ports(who: Conversation) -> [u16; 2] {
    address::ports(who, TCP_PORT)
}

fn algorithm(name: &str) -> Algorithm {
    match name {
        "cubic" => Algorithm::Cubic,
        "dctcp" => Algorithm::Dctcp,
        "bbr" => Algorithm::Bbr,
        "tcp-off" => Algorithm::Off,
        _ => Algorithm::Reno,
    }
}

fn timers(table: &SettingsReader<'_>) -> ReadResult<TimerProfile> {
    let usual = table.choice("timers", &[("linux", TimerProfile::linux()), ("rfc", TimerProfile::rfc())])?;
    let rto = table.span("rto_min", Span::from_ps(1)..=LONGEST_RTO)?;
    Ok(match usual.unwrap_or(TimerProfile::linux()) {
        TimerProfile::Linux { hz, rto_min, phase } => TimerProfile::Linux {
            hz: table.small("hz", 1..=1_000_000)?.unwrap_or(hz),
            rto_min: rto.unwrap_or(rto_min),
            phase,
        },
        TimerProfile::Rfc { rto_min, max_ack_delay } => TimerProfile::Rfc {
            rto_min: rto.unwrap_or(rto_min),
            max_ack_delay: table.span("max_ack_delay", Span::ZERO..=LONGEST_RTO)?.unwrap_or(max_ack_delay),
        },
    })
}

pub(super) fn write_handshake(step: Handshake, writer: &mut HeaderWriter<'_>) {
    // Before position 0, which is the first byte's.
    write(&TcpSegment { seq: u64::MAX, ..TcpSegment::default() }, Some(step), writer);
}

fn write(segment: &TcpSegment, handshake: Option<Handshake>, writer: &mut HeaderWriter<'_>) {
    let ip = writer.ip(ipv4::TCP, writer.inside);
    let [source, destination] = ports(writer.who);
    let position = |offset: i32| segment.ack.wrapping_add_signed(offset.into()) as u32;
    let blocks: Vec<(u32, u32)> =
        segment.sack.blocks().iter().map(|(from, to)| (position(*from), position(*to))).collect();
    let header = wire::tcp::TcpHeader {
        source,
        destination,
        seq: segment.seq as u32,
        ack: (handshake != Some(Handshake::Syn)).then_some(segment.ack as u32),
        syn: matches!(handshake, Some(Handshake::Syn | Handshake::SynAck)),
        opening: None,
        push: false,
        fin: handshake == Some(Handshake::Fin),
        window: (segment.window >> WINDOW_SCALE).min(u16::MAX.into()) as u16,
        ece: segment.ece,
        cwr: segment.cwr,
        timed: !segment.flags.has(SegmentFlags::NO_TIMESTAMP),
        timestamp: segment.timestamp,
        echo: segment.echo,
        sack: &blocks,
    };
    header.emit(&ip, writer.out);
}
