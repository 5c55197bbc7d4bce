//! The words of an explanation: causes, ends, how sure a statement is.

use serde::Serialize;

/// Cause on which a stretch of a connection's time was spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimeCause {
    Handshake,
    SynLost,
    Sending,
    Application,
    PeerApplication,
    CongestionWindow,
    ReceiveWindow,
    SendBuffer,
    Nagle,
    DelayedAck,
    Network,
    Delivery,
    Recovery,
    LateRecovery,
    Probe,
    Timeout,
    Idle,
    Unknown,
}

impl TimeCause {
    pub(crate) const ALL: [Self; 18] = [
        Self::Handshake,
        Self::SynLost,
        Self::Sending,
        Self::Application,
        Self::PeerApplication,
        Self::CongestionWindow,
        Self::ReceiveWindow,
        Self::SendBuffer,
        Self::Nagle,
        Self::DelayedAck,
        Self::Network,
        Self::Delivery,
        Self::Recovery,
        Self::LateRecovery,
        Self::Probe,
        Self::Timeout,
        Self::Idle,
        Self::Unknown,
    ];

    /// Name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::SynLost => "syn-lost",
            Self::Sending => "sending",
            Self::Application => "application",
            Self::PeerApplication => "peer-application",
            Self::CongestionWindow => "congestion-window",
            Self::ReceiveWindow => "receive-window",
            Self::SendBuffer => "send-buffer",
            Self::Nagle => "nagle",
            Self::DelayedAck => "delayed-ack",
            Self::Network => "network",
            Self::Delivery => "delivery",
            Self::Recovery => "recovery",
            Self::LateRecovery => "late-recovery",
            Self::Probe => "probe",
            Self::Timeout => "timeout",
            Self::Idle => "idle",
            Self::Unknown => "unknown",
        }
    }

    /// Part of any transfer, however well it goes: not a stall, no matter how long.
    pub(crate) fn is_progress(self) -> bool {
        matches!(
            self,
            Self::Handshake | Self::Sending | Self::CongestionWindow | Self::Delivery | Self::Idle | Self::Recovery
        )
    }
}

/// One of the two ends; also whose packets are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EndSide {
    /// The end that opened the connection.
    Client,
    Server,
}

impl EndSide {
    pub(crate) fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    pub(crate) fn index(self) -> usize {
        self as usize
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

/// Direction of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StreamDirection {
    /// Client to server.
    Up,
    Down,
}

impl From<EndSide> for StreamDirection {
    fn from(sender: EndSide) -> Self {
        match sender {
            EndSide::Client => Self::Up,
            EndSide::Server => Self::Down,
        }
    }
}

/// Place at which the capture was taken, by the round trips to both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CapturePlace {
    Client,
    Server,
    Middle,
    /// Two captures, one of each end.
    Both,
}

/// Certainty of a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Certainty {
    /// The packets show it.
    Seen,
    /// Follows from the packets and the rules of TCP.
    Inferred,
    /// The likeliest of several.
    Guessed,
}

/// Reason why a timer was necessary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimerReason {
    Tail,
    LoneTail,
    WholeWindow,
    CopyLost,
    FewDupacks,
    HiddenDupacks,
    SmallWindow,
    AcksLost,
    AckDelayed,
    Reordered,
    Unknown,
}

impl TimerReason {
    /// Name in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tail => "tail",
            Self::LoneTail => "lone-tail",
            Self::WholeWindow => "whole-window",
            Self::CopyLost => "copy-lost",
            Self::FewDupacks => "few-dupacks",
            Self::HiddenDupacks => "hidden-dupacks",
            Self::SmallWindow => "small-window",
            Self::AcksLost => "acks-lost",
            Self::AckDelayed => "ack-delayed",
            Self::Reordered => "reordered",
            Self::Unknown => "unknown",
        }
    }
}

/// Way in which a lost segment was replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RepairKind {
    Fast,
    Probe,
    Timeout,
    Nothing,
}

/// Evidence that a packet was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossWitness {
    OtherEnd,
    IpId,
    Sack,
    Copy,
}
