//! Loss detection: by RACK (RFC 8985), or as in kernels before it.
//!
//! Linux 4.4 counts segments that arrived behind a missing one (RFC 6675), with FACK: everything below the highest of
//! them counts, until the first reordering. The threshold (`tp->reordering`) is 3, grows with each reordering to its
//! distance in segments, and falls only when the retransmission timer goes off. Early retransmit (RFC 5827) lowers it
//! for small flights. Without SACK, duplicate acknowledgements are counted instead (RFC 6582, NewReno).

/// Use of RACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RackUse {
    /// Never: `tcp_recovery` = 0.
    Off,
    /// Once a repair is under way, which finds lost copies: Linux 4.4.
    InRepair,
    /// Always; duplicate acknowledgements are then not counted.
    Always,
}

/// Settings of loss detection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossDetection {
    /// RFC 8985 §6.
    pub rack: RackUse,
    /// RFC 8985 §7: tail-loss probes (`tcp_early_retrans` of 3 or more).
    pub probes: bool,
    /// RFC 5827, delayed by a quarter of a round trip, as Linux had it from 3.5 to 4.11.
    pub early_retransmit: bool,
    /// FACK: until the first reordering, a hole counts all segments below the highest that arrived.
    pub fack: bool,
    /// The timestamp of an acknowledgement decides if a copy has arrived, or an earlier one (RFC 8985 §6.2, step 2). Linux
    /// goes by the shortest round trip alone: what arrives out of order echoes an older timestamp.
    pub copies_by_timestamp: bool,
    /// Segments that must arrive behind a missing one (`tcp_reordering`), at least 1.
    pub threshold: u32,
    /// Upper limit of the threshold (`tcp_max_reordering`).
    pub max_threshold: u32,
}

impl LossDetection {
    /// RACK and tail-loss probes: Linux since 4.18, and the default.
    pub const RACK: Self = Self {
        rack: RackUse::Always,
        probes: true,
        early_retransmit: false,
        fack: false,
        copies_by_timestamp: true,
        threshold: 3,
        max_threshold: 300,
    };

    /// Linux 4.4 with its defaults.
    pub const LINUX_4_4: Self =
        Self { rack: RackUse::InRepair, probes: true, early_retransmit: true, fack: true, ..Self::RACK };

    /// RFC 6675 alone: neither RACK nor probes nor early retransmit.
    pub const DUPACKS: Self =
        Self { rack: RackUse::Off, probes: false, early_retransmit: false, fack: false, ..Self::RACK };
}

impl Default for LossDetection {
    fn default() -> Self {
        Self::RACK
    }
}
