//! The sending half of a connection.
//!
//! ```text
//!          losses found (RACK)               all sent until then acknowledged, or undone
//!   Open ──────────────────────▶ Recovery ─────────────────────────────────────────────▶ Open
//!   any  ──retransmission timer─▶ Loss    ─────────────────────────────────────────────▶ Open
//! ```
//!
//! [`acks`] takes what the peer says, [`repair`] moves between these phases, [`timers`] decides what to wait for, and
//! [`egress`] what leaves next. How much may be in flight is the congestion control's business ([`super::cc`]), except
//! in Recovery, where a window is reduced gently ([`super::prr`]); BBR sets its own window there, too.

mod acks;
mod alert;
mod buffers;
mod counting;
mod egress;
mod facts;
mod forced;
mod frto;
mod persist;
mod queue;
mod repair;
mod timers;
mod usage;
mod waits;

use machine::Out;
use units::{Span, Time};

use self::counting::DupackCounter;
use self::frto::TimeoutDoubt;
use self::queue::SendSocket;
use self::timers::LossTimer;
use self::usage::WindowUsage;
use super::cc::{Algorithm, CcConfig, CongestionControl, MAX_WINDOW, TcpController};
use super::config::{LinuxVersion, TcpConfig};
use super::connection::TcpConnection;
use super::delivery::Delivery;
use super::pacer::TcpPacer;
use super::prr::Prr;
use super::rack::Rack;
use super::rtt::Rtt;
use super::scoreboard::Scoreboard;
use super::sites::TcpSite;
use super::timing::TcpTiming;
use super::undo::Undo;

pub(super) use self::egress::NextSend;

/// Loss that the sender is recovering from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// No loss is known.
    Open,
    /// Losses that RACK found are repaired.
    Recovery {
        /// Position of the stream: it ends once all bytes below are acknowledged.
        until: u64,
    },
    /// The retransmission timer went off.
    Loss {
        /// Position of the stream: it ends once all bytes below are acknowledged.
        until: u64,
    },
}

/// A segment that is sent regardless of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UrgentSend {
    /// The first lost segment, after a timeout.
    Head,
    /// A probe: new data, or the last segment again.
    ProbeNew,
    ProbeLast,
    /// A probe of a window that is shut, or of a segment that waited too long for more to join it.
    WindowProbe,
}

/// A probe of whose fate nothing is known yet (RFC 8985 §7.4).
#[derive(Clone, Copy, Debug)]
struct TailLossProbe {
    /// The stream's end once it had left.
    end: u64,
    /// The probe carried old data (`TLP_is_retrans`).
    again: bool,
}

/// Response to marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EcnResponse {
    Off,
    Classic,
    Dctcp,
}

impl EcnResponse {
    pub(super) fn new(config: &TcpConfig) -> Self {
        match config.algorithm {
            Algorithm::Dctcp => Self::Dctcp,
            _ if config.ecn => Self::Classic,
            _ => Self::Off,
        }
    }
}

#[derive(Debug)]
pub(super) struct TcpSender {
    /// Acknowledged below.
    una: u64,
    /// Sent below.
    nxt: u64,
    /// Written below.
    written: u64,
    /// The peer has room below.
    edge: u64,
    mss: u64,
    phase: Phase,
    urgent: Option<UrgentSend>,
    board: Scoreboard,
    control: TcpController,
    rtt: Rtt,
    rack: Rack,
    timer: LossTimer,
    timing: TcpTiming,
    delivery: Delivery,
    usage: WindowUsage,
    pacer: TcpPacer,
    prr: Prr,
    undo: Option<Undo>,
    doubt: TimeoutDoubt,
    probed: Option<TailLossProbe>,
    ecn: EcnResponse,
    /// Echoes are answered again once more than this is acknowledged.
    echo_heeded_until: Option<u64>,
    tell_cwr: bool,
    idle_restart: bool,
    /// Timestamps were agreed on.
    timestamps: bool,
    /// True if time stamps decide if a copy has arrived, or an earlier one.
    copies_by_timestamp: bool,
    /// Tail-loss probes are sent.
    probes: bool,
    /// The flight glides down to a window that a mark reduced, until more than this is acknowledged.
    gliding: Option<u64>,
    gentle_marks: bool,
    prr_follows_advances: bool,
    last_sent: Option<Time>,
    /// The time that the last segment got.
    ordered: Time,
    /// Counter of duplicate acknowledgements, where RACK alone does not find losses.
    counting: Option<Box<DupackCounter>>,
    socket: Option<Box<SendSocket>>,
}

impl TcpSender {
    pub(super) fn new(config: &TcpConfig, now: Time) -> Self {
        // A FIN rides on a full segment, and lengths have 16 bits.
        let mss = config.mss.clamp(1, u32::from(u16::MAX) - u32::from(config.socket.is_some()));
        let initial_window = u64::from(config.initial_window) * u64::from(mss);
        let mut timing = TcpTiming::new(&config.profile).late(config.late_ticks);
        timing.slack = config.timer_slack.unwrap_or(timing.slack);
        let cc = CcConfig {
            mss,
            initial_window,
            seed: config.seed,
            tick: timing.jiffy(),
            tick_offset: config.socket.map_or(Span::ZERO, |_| timing.offset()),
            fine_delays: config.socket.is_some_and(|socket| socket.version == LinuxVersion::Current),
            whole_segments: config.socket.is_some(),
        };
        let mut control = TcpController::new(config.algorithm, &cc);
        if let Some(rtt) = config.handshake_rtt {
            control.on_handshake(now, rtt);
        }
        Self {
            una: 0,
            nxt: 0,
            written: 0,
            edge: config.socket.map_or(config.receive_buffer.max(u64::from(mss)), |socket| socket.peer_window),
            mss: u64::from(mss),
            phase: Phase::Open,
            urgent: None,
            board: Scoreboard::new(config.socket.is_some()),
            control,
            rtt: Rtt::new(timing, config.handshake_rtt),
            rack: Rack::new(config.reordering, &config.detection),
            timer: LossTimer::default(),
            timing,
            delivery: Delivery::new(now),
            usage: WindowUsage::default(),
            pacer: TcpPacer::default(),
            prr: Prr::default(),
            undo: None,
            doubt: TimeoutDoubt::Off,
            probed: None,
            ecn: EcnResponse::new(config),
            echo_heeded_until: None,
            tell_cwr: false,
            idle_restart: config.idle_restart,
            timestamps: config.timestamps,
            copies_by_timestamp: config.detection.copies_by_timestamp,
            probes: config.detection.probes && config.sack,
            gliding: None,
            gentle_marks: config.gentle_marks,
            prr_follows_advances: config.prr_follows_advances,
            last_sent: None,
            ordered: Time::ZERO,
            counting: DupackCounter::new(config),
            socket: config.socket.as_ref().map(|socket| Box::new(SendSocket::new(socket))),
        }
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    pub(super) fn threshold(&self) -> u64 {
        self.control.threshold()
    }

    pub(super) fn srtt(&self) -> Option<Span> {
        self.rtt.srtt()
    }

    pub(super) fn rto(&self) -> Span {
        self.rtt.rto()
    }

    /// Sent, and neither acknowledged, known to have arrived nor taken for lost. Without SACK each duplicate
    /// acknowledgement says that a segment has arrived.
    #[inline]
    pub(super) fn flight(&self) -> u64 {
        match &self.counting {
            None => self.board.flight(),
            Some(counter) => self.board.flight().saturating_sub(counter.arrived() * self.mss),
        }
    }

    pub(super) fn acknowledged(&self) -> u64 {
        self.una
    }

    /// The next byte that never left.
    pub(super) fn sent(&self) -> u64 {
        self.nxt
    }

    #[inline]
    pub(super) fn unsent(&self) -> u64 {
        self.written - self.nxt
    }

    pub(super) fn is_idle(&self) -> bool {
        self.una == self.written
    }

    /// Bytes in flight as congestion control counts them: a socket's segments each as a full one.
    #[inline]
    fn pipe(&self) -> u64 {
        if self.socket.is_some() { self.charged_flight() } else { self.flight() }
    }

    /// A gentle reduction from the window `prior` begins.
    fn new_prr(&self, prior: u64) -> Prr {
        let prr = Prr::new(prior, self.control.threshold());
        if self.socket.is_some() { prr.in_segments(self.mss, self.prr_follows_advances) } else { prr }
    }

    /// Bytes that may be in flight.
    #[inline]
    pub(super) fn window(&self) -> u64 {
        match self.phase {
            Phase::Recovery { .. } if self.control.reduces_gently() => self.prr.window(),
            Phase::Open if self.gliding.is_some() => self.prr.window(),
            _ => self.control.window(),
        }
    }

    fn is_bbr(&self) -> bool {
        matches!(self.control, TcpController::Bbr(_))
    }

    /// The application appends to the stream.
    pub(super) fn write<O: Out<TcpConnection>>(&mut self, now: Time, bytes: u64, more: bool, out: &mut O) {
        if bytes == 0 {
            return;
        }
        if self.unsent() == 0 && self.board.lost() == 0 && self.board.flight() < self.window() {
            self.delivery.on_app_limited(self.board.flight());
        }
        if self.is_idle() {
            self.restart_after_idle(now, out);
        }
        if self.socket.is_some() {
            self.write_to_socket(now, bytes, more, out);
        } else {
            self.written = self.written.saturating_add(bytes);
        }
    }

    /// RFC 2861: a window that was not used for an RTO says nothing about the path. BBR wants to know of every pause.
    fn restart_after_idle<O: Out<TcpConnection>>(&mut self, now: Time, out: &mut O) {
        let Some(last) = self.last_sent else { return };
        let is_long = now.since(last) > self.rtt.rto();
        if self.is_bbr() || self.idle_restart && TcpSite::IdleRestart.ask(out, is_long) {
            self.control.on_idle_restart(now);
        }
    }
}
