//! What the experiments share: setups from `experiments/deter`, recordings, and times as samples give them back.

use ::deter::sampling::{self, SendTimeSample};
use faults::Random;
use report::claim::ClaimError;
use report::runner::Effort;
use scenario::Scenario;
use sim::net::NetworkSetup;
use sim::net::queue_replay::{self, QueueRecording, QueueReplay, RecordedConnection, ReplayOptions, ReplayTags};
use units::{Span, Time};

use crate::files;

/// Clocks of hosts are up to this far apart (§6.5.4.2).
const CLOCKS_APART: Span = Span::from_us(5);
/// Stream of randomness.
const CLOCK_STREAM: u64 = 17;

/// The setup of a scenario in the paper's folder.
pub(super) fn setup(file: &str, sets: &[String], seed: u64) -> Result<NetworkSetup, ClaimError> {
    let (name, text) = files::named(&format!("deter/{file}"))?;
    let scenario = Scenario::parse(name, text, sets).map_err(ClaimError::new)?;
    let point = scenario.points.first().ok_or_else(|| ClaimError::new("no point"))?;
    Ok(point.setup(seed))
}

/// A run that is recorded; `None` if it was stopped early.
pub(super) fn record(
    setup: &NetworkSetup,
    one_in: u32,
    effort: &Effort<'_>,
) -> Result<Option<QueueRecording>, ClaimError> {
    let (outcome, recording) = queue_replay::record(setup.clone(), one_in, effort.progress).map_err(ClaimError::new)?;
    Ok((!outcome.interrupted).then_some(recording))
}

/// What samples take.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SampleCost {
    pub packets: u64,
    pub samples: u64,
    pub bytes: u64,
}

impl SampleCost {
    pub(super) fn packets_per_sample(&self) -> f64 {
        self.packets as f64 / self.samples.max(1) as f64
    }

    pub(super) fn bytes_per_packet(&self) -> f64 {
        self.bytes as f64 / self.packets.max(1) as f64
    }

    /// The times that samples give back, through their bytes.
    pub(super) fn through_bytes(
        &mut self,
        samples: &[SendTimeSample],
        packets: usize,
    ) -> Result<Vec<Time>, ClaimError> {
        let bytes = sampling::encode(samples);
        self.packets += packets as u64;
        self.samples += samples.len() as u64;
        self.bytes += bytes.len() as u64;
        let samples = sampling::decode(&bytes).map_err(ClaimError::new)?;
        Ok(sampling::send_times(&samples, packets))
    }
}

/// The packets of a recording at the times that samples give, by clocks that are apart.
pub(super) fn sampled(
    setup: &NetworkSetup,
    recording: &QueueRecording,
    threshold: Span,
) -> Result<(Vec<RecordedConnection>, SampleCost), ClaimError> {
    let mut random = Random::new(setup.seed, CLOCK_STREAM);
    let mut clock = |_| Span::from_ps(random.below(CLOCKS_APART.as_ps()));
    let clocks: Vec<Span> = (0..setup.topology.nodes.len()).map(&mut clock).collect();
    let mut cost = SampleCost::default();
    let mut failed = None;
    let connections = recording.connections.iter().map(|connection| {
        let inferred = |times: &[Time]| match cost.through_bytes(&sampling::sample(times, threshold), times.len()) {
            Ok(times) => times,
            Err(error) => {
                failed = Some(error);
                times.to_vec()
            }
        };
        connection.retimed(inferred, [connection.src, connection.dst].map(|host| clocks[host.index()]))
    });
    let connections = connections.collect();
    failed.map_or(Ok((connections, cost)), Err)
}

/// `None` if it was stopped early.
pub(super) fn replay(
    setup: &NetworkSetup,
    connections: &[RecordedConnection],
    tags: ReplayTags,
    one_in: u32,
    effort: &Effort<'_>,
) -> Result<Option<QueueReplay>, ClaimError> {
    let options = ReplayOptions { tags, one_in, question: None };
    let replay = queue_replay::replay(setup, connections, options, effort.progress).map_err(ClaimError::new)?;
    Ok((!replay.interrupted).then_some(replay))
}
