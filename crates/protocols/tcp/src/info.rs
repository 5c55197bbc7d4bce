//! A snapshot of a connection: the fields of `TCP_INFO` that follow from TCP alone, in its units.

use units::Span;

use super::socket::TcpState;

/// `tcpi_ca_state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CaState {
    /// Nothing unusual.
    Open,
    /// Duplicate acknowledgements or SACKs, but no loss yet.
    Disorder,
    /// The window was reduced for a mark.
    Cwr,
    /// Losses are being repaired.
    Recovery,
    /// The retransmission timer went off.
    Loss,
}

impl CaState {
    /// The kernel's number for it.
    pub const fn number(self) -> u8 {
        self as u8
    }
}

/// Values that `getsockopt(TCP_INFO)` would report now. Windows and counts are in segments, as the kernel has them, unless
/// a name says bytes. Counters that only a socket keeps are 0 without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpInfo {
    /// `tcpi_state`.
    pub state: TcpState,
    /// `tcpi_ca_state`.
    pub ca_state: CaState,
    /// `tcpi_retransmits`: timeouts in a row.
    pub retransmits: u32,
    /// `tcpi_probes`: window probes without an answer.
    pub probes: u32,
    /// `tcpi_backoff`.
    pub backoff: u32,
    /// `tcpi_rto`.
    pub rto: Span,
    /// `tcpi_snd_mss`.
    pub snd_mss: u32,
    /// `tcpi_rcv_mss`.
    pub rcv_mss: u32,
    /// `tcpi_unacked`.
    pub unacked: u32,
    /// `tcpi_sacked`.
    pub sacked: u32,
    /// `tcpi_lost`: taken for lost, whether sent again or not.
    pub lost: u32,
    /// `tcpi_retrans`: sent again and not acknowledged.
    pub retrans: u32,
    /// `tcpi_last_data_sent`; `None` if none was.
    pub last_data_sent: Option<Span>,
    /// `tcpi_last_data_recv`, from the handshake on.
    pub last_data_recv: Span,
    /// `tcpi_rtt`; zero before the first sample.
    pub rtt: Span,
    /// `tcpi_rttvar`.
    pub rttvar: Span,
    /// `tcpi_min_rtt`; zero before the first sample.
    pub min_rtt: Span,
    /// `tcpi_snd_ssthresh`: 0x7fffffff while there is none.
    pub snd_ssthresh: u32,
    /// `tcpi_snd_cwnd`.
    pub snd_cwnd: u32,
    /// `tcpi_reordering`.
    pub reordering: u32,
    /// `tcpi_reord_seen`.
    pub reord_seen: u32,
    /// `tcpi_total_retrans`.
    pub total_retrans: u32,
    /// `tcpi_dsack_dups`.
    pub dsack_dups: u32,
    /// `tcpi_bytes_acked`.
    pub bytes_acked: u64,
    /// `tcpi_bytes_received`.
    pub bytes_received: u64,
    /// `tcpi_notsent_bytes`.
    pub notsent_bytes: u64,
    /// `tcpi_delivered`: as of the handshake, whose SYN counts.
    pub delivered: u32,
    /// `tcpi_delivered_ce`.
    pub delivered_ce: u32,
    /// `tcpi_busy_time`.
    pub busy_time: Span,
    /// `tcpi_rwnd_limited`.
    pub rwnd_limited: Span,
    /// `tcpi_sndbuf_limited`.
    pub sndbuf_limited: Span,
    /// `tcpi_snd_wnd`, in bytes.
    pub snd_wnd: u64,
    /// `tcpi_rcv_wnd`, in bytes.
    pub rcv_wnd: u64,
}

/// `TCP_INFINITE_SSTHRESH`.
pub(super) const NO_THRESHOLD: u32 = 0x7fff_ffff;
