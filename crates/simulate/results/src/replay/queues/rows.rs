//! Results of replayed queues, as `--json` has them: docs/replay.md.

use serde::Serialize;
use sim::net::queue_replay::{DropDifference, QueueDifference};

/// Result of all runs.
#[derive(Debug, Serialize)]
pub struct QueueReport {
    /// Threshold of the samples.
    pub threshold_ns: f64,
    /// Limit up to which clocks were set apart.
    pub clocks_ns: f64,
    /// True if packets that were dropped were tagged.
    pub tags: bool,
    /// Rows in the order of points and seeds.
    pub runs: Vec<QueueRunRow>,
}

/// A run, and its replay.
#[derive(Debug, Serialize)]
pub struct QueueRunRow {
    /// The point of the sweep, from 1, and its label.
    pub point: u32,
    pub label: String,
    pub seed: u64,
    /// Connections of the run, and how many of them have a log.
    pub connections: u64,
    pub logs: u64,
    /// Packets of connections with a log, and of all others, which are missing in the replay.
    pub packets: u64,
    pub packets_missing: u64,
    /// Samples of their send times, and the bytes of these.
    pub samples: u64,
    pub sample_bytes: u64,
    /// One in this many packets was asked for its view.
    pub one_in: u32,
    /// Differences at all ports together.
    pub queues: DifferenceOfQueues,
    pub drops: DifferenceOfDrops,
    /// Packets without a tag that joined a queue which had no room for them.
    pub overflows: u64,
    /// Ports that a packet joined, in the order of their numbers.
    pub ports: Vec<QueuePortRow>,
    /// Content of one queue, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<QueueAnswer>,
}

/// Queue content difference, in MTU: over what packets saw in the run and in the replay.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct DifferenceOfQueues {
    pub views: u64,
    /// Mean content of queues in the run.
    pub held: f64,
    pub mean: f64,
    pub p99: f64,
    /// Differences in length, regardless of the streams in the queue.
    pub length_mean: f64,
    pub length_p99: f64,
}

/// Differences between the drops of run and replay, in packets.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct DifferenceOfDrops {
    pub in_run: u64,
    pub in_either: u64,
    pub false_accepts: u64,
    pub false_drops: u64,
    pub wrong_place: u64,
    /// The share that is wrong; null if nothing was dropped.
    pub error: Option<f64>,
}

/// One port.
#[derive(Clone, Debug, Serialize)]
pub struct QueuePortRow {
    /// `A-B`: from A to B.
    pub port: String,
    pub queues: DifferenceOfQueues,
    pub drops: DifferenceOfDrops,
}

/// Content of a queue at one time.
#[derive(Debug, Serialize)]
pub struct QueueAnswer {
    pub time_ns: f64,
    pub port: String,
    /// All that was in it.
    pub run_bytes: u64,
    pub replay_bytes: u64,
    /// Streams in the queue, the largest in the run first.
    pub flows: Vec<QueueFlowRow>,
}

/// One direction of a connection in a queue.
#[derive(Debug, Serialize)]
pub struct QueueFlowRow {
    /// Number of the connection.
    pub flow: u32,
    pub from: String,
    pub to: String,
    /// Bytes of its frames.
    pub run_bytes: u32,
    pub replay_bytes: u32,
}

impl From<QueueDifference> for DifferenceOfQueues {
    fn from(queues: QueueDifference) -> Self {
        let QueueDifference { views, mean_length, mean, p99, mean_of_lengths, p99_of_lengths } = queues;
        Self { views, held: mean_length, mean, p99, length_mean: mean_of_lengths, length_p99: p99_of_lengths }
    }
}

impl From<DropDifference> for DifferenceOfDrops {
    fn from(drops: DropDifference) -> Self {
        let DropDifference { in_run, in_either, false_accepts, false_drops, wrong_place } = drops;
        Self { in_run, in_either, false_accepts, false_drops, wrong_place, error: drops.error() }
    }
}
