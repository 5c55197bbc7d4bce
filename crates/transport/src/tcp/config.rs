//! Initial configuration of a connection.

use units::Span;

use super::cc::Algorithm;

/// Settings of one end; the two ends may differ.
#[derive(Clone, Copy, Debug)]
pub struct TcpConfig {
    /// Payload of a full segment, 1 to 65,535.
    pub mss: u32,
    /// In segments; RFC 6928 has ten.
    pub initial_window: u32,
    /// Congestion control; DCTCP must be set at both ends.
    pub algorithm: Algorithm,
    /// Granularity and lower bounds of the timers.
    pub profile: TimerProfile,
    /// RFC 3168. DCTCP uses marks regardless of this field.
    pub ecn: bool,
    /// Tolerance of loss detection by RACK.
    pub reordering: Reordering,
    /// What the receiver holds beyond the next byte it expects; at least two segments. Bytes in order are consumed at
    /// once, so the window it offers is always this.
    pub receive_buffer: u64,
    /// The round trip that the handshake took, if there was one.
    pub handshake_rtt: Option<Span>,
    /// Whether the window is given up after an idle time of an RTO (RFC 2861, `tcp_slow_start_after_idle`).
    pub idle_restart: bool,
    /// Where BBR's cycle of gains begins.
    pub seed: u32,
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
        }
    }
}

/// Whose timers: a kernel's, which tick, or the documents', which do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerProfile {
    /// Linux 5.4: timers expire on a tick.
    Linux {
        /// Ticks a second (`CONFIG_HZ`), at least 1.
        hz: u32,
        /// Lower bound of the retransmission timeout.
        rto_min: Span,
        /// When the first tick is; differs from host to host.
        phase: Span,
    },
    /// Those of RFC 6298 and RFC 8985, exact to the picosecond.
    Rfc {
        /// Lower bound of the retransmission timeout.
        rto_min: Span,
        /// How long an acknowledgement may wait, here and (as RFC 8985 §7.2 supposes) at the peer.
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

/// How far out of order segments may arrive before RACK takes them for lost (RFC 8985 §6.2, step 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reordering {
    /// A quarter of the smallest round trip, more with every round in which a DSACK proved that to be too little.
    Adaptive,
    /// Always a quarter of the smallest round trip.
    Fixed,
}
