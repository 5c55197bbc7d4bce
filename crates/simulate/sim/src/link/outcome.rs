//! Results of a run.

use guard::Counters;
use serde::Serialize;

/// Percentiles of a delay, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DelayUs {
    pub min: f64,
    pub p50: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

/// Percentiles of how full a buffer was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LevelBytes {
    pub min: u64,
    pub p25: u64,
    pub p50: u64,
    pub p75: u64,
    pub p99: u64,
    pub max: u64,
}

/// The result of simulating a link. Field names are those of the JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkOutcome {
    pub frames_offered: u64,
    /// Frames of any kind that were corrupted on the wire from A to B.
    pub frames_corrupted: u64,
    pub frames_delivered: u64,
    pub frames_lost: u64,
    pub frames_duplicated: u64,
    pub frames_reordered: u64,
    /// Dropped before the link because its queue was full.
    pub frames_dropped_at_queue: u64,
    pub effective_loss: f64,
    /// Share of the line rate at which new frames get through; only where the sender always has one.
    pub effective_speed: Option<f64>,
    pub recovered: u64,
    pub given_up: u64,
    pub retransmissions: u64,
    pub pauses: u64,
    pub overflows: u64,
    /// Copies of each retransmission, where there are any.
    pub copies: Option<u8>,
    /// The highest that a class's Tx buffer ever was.
    pub tx_buffer_peak_bytes: u64,
    pub rx_buffer_peak_bytes: u64,
    /// Bytes that node A had sent without an acknowledgement, sampled whenever a new frame set out.
    pub tx_buffer_bytes: LevelBytes,
    /// Bytes that node B held, sampled at the same times.
    pub rx_buffer_bytes: LevelBytes,
    /// Time from the detection of a loss to the missing frame's arrival.
    #[serde(serialize_with = "null_by_null")]
    pub recovery_delay_us: Option<DelayUs>,
    /// Time from leaving the sender's queue to delivery.
    #[serde(serialize_with = "null_by_null")]
    pub transit_us: Option<DelayUs>,
    /// Frames not simulated one by one.
    pub frames_skipped: u64,
    pub simulated_seconds: f64,
    pub events: u64,
    pub wall_seconds: f64,
    pub seed: u64,
    /// True if the run was interrupted.
    pub interrupted: bool,
    /// Counters of the nodes A. Acknowledgements of skipped frames are not included.
    #[serde(serialize_with = "by_name")]
    pub sender: Counters,
    /// Counters of the nodes B, likewise.
    #[serde(serialize_with = "by_name")]
    pub receiver: Counters,
}

/// Writes all fields, with nulls if there are no delays, because scripts expect the fields.
fn null_by_null<S: serde::Serializer>(delay: &Option<DelayUs>, serializer: S) -> Result<S::Ok, S::Error> {
    let field = |what: fn(&DelayUs) -> f64| delay.as_ref().map(what);
    let fields = [
        ("min", field(|delay| delay.min)),
        ("p50", field(|delay| delay.p50)),
        ("p99", field(|delay| delay.p99)),
        ("p999", field(|delay| delay.p999)),
        ("max", field(|delay| delay.max)),
    ];
    serializer.collect_map(fields)
}

fn by_name<S: serde::Serializer>(counters: &Counters, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(counters.iter())
}
