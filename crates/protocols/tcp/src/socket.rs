//! The limits of a socket, as Linux has them: what the application reads and when, the window that follows from it,
//! what is held back before it leaves, and how a connection ends.
//!
//! Here are its settings and the states of its connection; `tcp.rs` lists where each part is. A connection without a
//! socket has none of this and pays nothing for it: each half keeps its part in a box.

use units::Span;

use super::config::LinuxVersion;

/// Initial state of a socket, once its handshake is over.
#[derive(Clone, Copy, Debug)]
pub struct TcpSocketConfig {
    /// Bytes that the peer had room for when the handshake ended.
    pub peer_window: u64,
    /// The window that was offered to the peer in the handshake, in bytes; it grows from there up to
    /// `TcpConfig::receive_buffer`.
    pub first_window: u32,
    /// Own shift of RFC 7323's window scale, 0 to 14: windows are multiples of it.
    pub window_scale: u8,
    /// The peer's last timestamp, if the handshake agreed on timestamps.
    pub peer_timestamp: Option<u32>,
    /// `SO_SNDBUF` as the kernel keeps it: twice what an application asks for. `None`: never full.
    pub send_buffer: Option<u64>,
    /// Segments out of order let the window grow without SACK, too, so that no duplicate acknowledgement equals the one
    /// before: Linux before 5.8.
    pub grows_without_sack: bool,
    /// `TCP_NODELAY` from the start.
    pub nodelay: bool,
    /// `TCP_USER_TIMEOUT`: how long data may wait for its acknowledgement.
    pub user_timeout: Option<Span>,
    /// Super-frames: how many segments leave as one.
    pub tso: TsoConfig,
    /// Kernel whose formulas decide when a probe leaves, how the receive buffer grows, and in which unit CUBIC counts
    /// delays.
    pub version: LinuxVersion,
    /// True if only some segments out of order are acknowledged at once, as in Linux since 4.18.
    pub compresses_sacks: bool,
    /// Initial receive buffer, if it grows with what is read, up to `TcpConfig::receive_buffer`.
    pub first_buffer: Option<u64>,
    /// The application reads at once whatever arrives; otherwise by [`TcpCommand::Read`](super::TcpCommand).
    pub reads_at_once: bool,
}

impl Default for TcpSocketConfig {
    fn default() -> Self {
        Self {
            peer_window: 65_535,
            first_window: 64_240,
            window_scale: 7,
            peer_timestamp: None,
            send_buffer: None,
            grows_without_sack: false,
            nodelay: false,
            user_timeout: None,
            tso: TsoConfig::default(),
            version: LinuxVersion::Current,
            compresses_sacks: false,
            first_buffer: None,
            reads_at_once: false,
        }
    }
}

/// The shift (RFC 7323) that makes windows up to a buffer fit 16 bits.
pub fn window_scale(buffer: u64) -> u8 {
    (0..14).find(|scale| buffer >> scale <= 65_535).unwrap_or(14)
}

/// Gathering of segments to super-frames. It decides which segments carry PSH, and what waits for more room.
#[derive(Clone, Copy, Debug)]
pub struct TsoConfig {
    /// `tcp_min_tso_segs`: at least this many, if there are.
    pub min_segments: u32,
    /// `tcp_tso_win_divisor`: less than this part of the window waits for the next acknowledgement; 0 for no waiting.
    pub window_divisor: u32,
    /// The last segment of a super-frame carries PSH: Linux since 5.4.
    pub push: bool,
    /// Near peers get larger ones (`tcp_tso_rtt_log`): Linux since 5.18.
    pub by_distance: bool,
    /// A part of the window waits only if the next acknowledgement is due within a millisecond (Linux 6.18), instead of
    /// within half a round trip.
    pub by_next_ack: bool,
}

impl Default for TsoConfig {
    fn default() -> Self {
        Self { min_segments: 2, window_divisor: 3, push: true, by_distance: true, by_next_ack: true }
    }
}

/// RFC 9293 §3.3.2, from the end of the handshake on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpState {
    /// Both streams are open.
    Established,
    /// FIN sent, not acknowledged.
    FinWait1,
    /// FIN acknowledged; the peer's stream is open.
    FinWait2,
    /// FIN sent and FIN received, neither acknowledged by the peer.
    Closing,
    /// Both FINs are acknowledged, and this end sent the first.
    TimeWait,
    /// The peer's stream is over.
    CloseWait,
    /// FIN sent after the peer's.
    LastAck,
    /// The connection is over: closed, reset or timed out.
    Closed,
}

impl TcpState {
    /// The number that `tcpi_state` has for it.
    pub const fn number(self) -> u8 {
        match self {
            Self::Established => 1,
            Self::FinWait1 => 4,
            Self::FinWait2 => 5,
            Self::TimeWait => 6,
            Self::Closed => 7,
            Self::CloseWait => 8,
            Self::LastAck => 9,
            Self::Closing => 11,
        }
    }
}
