//! One lost packet, as the analysis wants it (li-thesis §5.5).

use std::fmt;
use units::Timestamp;

use serde::Serialize;

use crate::packet::{Flow, TcpFields};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Time at which it passed the upstream meter.
    pub at: Timestamp,
    pub flow: Flow,
    pub ip_id: Option<u16>,
    pub tcp: Option<TcpFields>,
    /// The packet's time to live was used up: nobody downstream would have forwarded it.
    pub expired: bool,
    /// Place among the packets of its flow, if the meter that saw them counted.
    pub place: Option<u64>,
}

/// Reason why a packet was lost, as far as the pattern of losses shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LossCause {
    Congestion,
    Blackhole,
    Random,
    Loop,
    #[default]
    Unknown,
}

impl LossCause {
    pub const ALL: [Self; 5] = [Self::Congestion, Self::Blackhole, Self::Random, Self::Loop, Self::Unknown];
}

impl fmt::Display for LossCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Congestion => "congestion",
            Self::Blackhole => "blackhole",
            Self::Random => "random",
            Self::Loop => "loop",
            Self::Unknown => "unknown",
        })
    }
}
