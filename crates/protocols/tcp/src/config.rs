//! Initial configuration of a connection.

use std::str::FromStr;

use units::{ParseError, Span};

use super::cc::Algorithm;
use super::detection::LossDetection;
use super::socket::{TcpSocketConfig, TsoConfig, window_scale};

/// Settings of one end; the two ends may differ.
#[derive(Clone, Copy, Debug)]
pub struct TcpConfig {
    /// Payload of a full segment, 1 to 65,535.
    pub mss: u32,
    /// Initial window in segments; RFC 6928 has ten.
    pub initial_window: u32,
    /// Congestion control; DCTCP must be set at both ends.
    pub algorithm: Algorithm,
    /// Granularity and lower bounds of the timers.
    pub profile: TimerProfile,
    /// RFC 3168. DCTCP uses marks regardless of this field.
    pub ecn: bool,
    /// Tolerance of loss detection by RACK.
    pub reordering: Reordering,
    /// Bytes that the receiver holds beyond the next byte that it expects; at least two segments. Bytes in order are
    /// consumed at once, so it always offers this window.
    pub receive_buffer: u64,
    /// The round trip that the handshake took, if there was one.
    pub handshake_rtt: Option<Span>,
    /// Gives the window up after an idle time of an RTO (RFC 2861, `tcp_slow_start_after_idle`).
    pub idle_restart: bool,
    /// Start of BBR's cycle of gains.
    pub seed: u32,
    /// The handshake agreed on selective acknowledgements (RFC 2018). Without them NewReno repairs losses (RFC 6582),
    /// regardless of `detection.rack`.
    pub sack: bool,
    /// The handshake agreed on timestamps (RFC 7323).
    pub timestamps: bool,
    /// Detection of losses.
    pub detection: LossDetection,
    /// The flight glides down to a window that a mark reduced (RFC 6937), as in Linux since 3.7; otherwise nothing leaves
    /// until it has fallen.
    pub gentle_marks: bool,
    /// Time that probe and reordering timers wait longer, since a tick may come at once; `None`: two ticks. Newer kernels
    /// have two milliseconds (`TCP_TIMEOUT_MIN_US`).
    pub timer_slack: Option<Span>,
    /// Ticks by which timers are late. A processor that does not keep the time may tick before jiffies advance: its timers
    /// then go off with the next tick.
    pub late_ticks: u8,
    /// A repair speeds up with each acknowledgement that advances without a new loss (Linux since 5.14), instead of each
    /// that delivers a copy.
    pub prr_follows_advances: bool,
    /// The limits of a socket: reads, windows, Nagle's algorithm, PSH, the send buffer, FIN. `None`: the application
    /// takes what arrives at once, and writes are never held back.
    pub socket: Option<TcpSocketConfig>,
}

impl Default for TcpConfig {
    fn default() -> Self {
        Self {
            mss: 1_448,
            initial_window: 10,
            algorithm: Algorithm::Cubic,
            profile: TimerProfile::linux(),
            ecn: false,
            reordering: Reordering::Adaptive,
            receive_buffer: 16 << 20,
            handshake_rtt: None,
            idle_restart: true,
            seed: 0,
            sack: true,
            timestamps: true,
            detection: LossDetection::RACK,
            gentle_marks: false,
            timer_slack: None,
            late_ticks: 0,
            prr_follows_advances: false,
            socket: None,
        }
    }
}

/// A kernel whose TCP a connection behaves like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinuxVersion {
    /// `linux-4.4`: duplicate acknowledgements and FACK find losses, early retransmit, RACK during a repair only.
    V4_4,
    /// `linux-5.4`: RACK and tail-loss probes.
    V5_4,
    /// `linux`: as 5.4, and what changed until 6.18.
    Current,
}

impl LinuxVersion {
    /// Kernels, in the order in which errors list them.
    pub const ALL: [Self; 3] = [Self::V4_4, Self::V5_4, Self::Current];

    /// Name of the profile.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V4_4 => "linux-4.4",
            Self::V5_4 => "linux-5.4",
            Self::Current => "linux",
        }
    }
}

impl FromStr for LinuxVersion {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        const EXPECTED: ParseError = ParseError::new("a TCP profile: linux-4.4, linux-5.4 or linux");
        Self::ALL.into_iter().find(|version| version.name() == text).ok_or(EXPECTED)
    }
}

impl TcpConfig {
    /// One end of a connection on that kernel, with its defaults (`tcp_rmem`, `tcp_wmem`, ten segments, CUBIC) and the
    /// usual options: SACK, timestamps and window scaling.
    pub fn linux(version: LinuxVersion) -> Self {
        let old = version == LinuxVersion::V4_4;
        let detection = if old { LossDetection::LINUX_4_4 } else { LossDetection::RACK };
        let detection = LossDetection { copies_by_timestamp: false, ..detection };
        let current = version == LinuxVersion::Current;
        let tso = TsoConfig { push: !old, by_distance: current, by_next_ack: current, ..TsoConfig::default() };
        let socket = Some(TcpSocketConfig {
            tso,
            grows_without_sack: !current,
            version,
            compresses_sacks: !old,
            ..TcpSocketConfig::default()
        });
        let timer_slack = current.then_some(Span::from_ms(2));
        Self { detection, gentle_marks: true, timer_slack, prr_follows_advances: current, socket, ..Self::default() }
    }

    /// Adds a socket with an application that reads whatever arrives and writes ahead of what is sent, and windows that end
    /// with `receive_buffer`. Reports of gaps are not held back: a kernel does that until something else wakes it, and beside
    /// traffic something soon does. Nothing changes without a socket.
    #[must_use]
    pub fn reading(self) -> Self {
        let buffer = self.receive_buffer;
        let reading = |socket: TcpSocketConfig| TcpSocketConfig {
            reads_at_once: true,
            compresses_sacks: false,
            window_scale: window_scale(buffer),
            first_window: socket.first_window.min(u32::try_from(buffer).unwrap_or(u32::MAX)),
            peer_window: socket.peer_window.min(buffer),
            send_buffer: Some(2 * buffer),
            ..socket
        };
        Self { socket: self.socket.map(reading), ..self }
    }
}

/// Timers of a kernel, which tick, or of the documents, which do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerProfile {
    /// Linux 5.4: timers expire on a tick.
    Linux {
        /// Ticks a second (`CONFIG_HZ`), at least 1.
        hz: u32,
        /// Lower bound of the retransmission timeout.
        rto_min: Span,
        /// Time of the first tick; differs from host to host.
        phase: Span,
    },
    /// Timers of RFC 6298 and RFC 8985, exact to the picosecond.
    Rfc {
        /// Lower bound of the retransmission timeout.
        rto_min: Span,
        /// Time for which an acknowledgement may wait, here and (as RFC 8985 §7.2 supposes) at the peer.
        max_ack_delay: Span,
    },
}

impl TimerProfile {
    /// A kernel built for low latency: 1,000 ticks a second, where Ubuntu and Debian mostly have 250. RTO of at least
    /// 200 ms.
    pub const fn linux() -> Self {
        Self::Linux { hz: 1_000, rto_min: Span::from_ms(200), phase: Span::ZERO }
    }

    /// RTO of at least a second, acknowledgements within 40 ms.
    pub const fn rfc() -> Self {
        Self::Rfc { rto_min: Span::from_ms(1_000), max_ack_delay: Span::from_ms(40) }
    }
}

/// Delay that RACK grants segments out of order before it declares them lost (RFC 8985 §6.2, step 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reordering {
    /// A quarter of the smallest round trip, more with every round in which a DSACK proved that to be too little.
    Adaptive,
    /// Always a quarter of the smallest round trip.
    Fixed,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_of_an_application_that_reads_end_with_the_receive_buffer() {
        let windows = |receive_buffer| {
            let config = TcpConfig { receive_buffer, ..TcpConfig::linux(LinuxVersion::Current) }.reading();
            let socket = config.socket.unwrap();
            (socket.first_window, socket.peer_window, socket.window_scale)
        };
        assert_eq!(windows(20_000), (20_000, 20_000, 0));
        assert_eq!(windows(16 << 20), (64_240, 65_535, 9));
        assert!(TcpConfig::default().reading().socket.is_none());
    }
}
