//! Parts that the experiments share: setups from `experiments/deter`, recordings, and times as samples give them back.

use report::claim::ClaimError;
use report::runner::Effort;
use results::replay::{self, SampleCost, draw_clocks};
use sim::net::NetworkSetup;
use sim::net::queue_replay::{self, QueueRecording, QueueReplay, RecordedConnection, ReplayOptions, ReplayTags};
use units::Span;

use crate::files;

/// Clocks of hosts are up to this far apart (§6.5.4.2).
pub(super) const CLOCKS_APART: Span = Span::from_us(5);

/// The setup of a scenario in the paper's folder.
pub(super) fn setup(file: &str, sets: &[String], seed: u64) -> Result<NetworkSetup, ClaimError> {
    files::setup(&format!("deter/{file}"), sets, seed)
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

/// The packets of a recording at the times that samples give, by clocks that are apart.
pub(super) fn sampled(
    setup: &NetworkSetup,
    recording: &QueueRecording,
    threshold: Span,
    clocks: Span,
) -> Result<(Vec<RecordedConnection>, SampleCost), ClaimError> {
    let clocks = draw_clocks(setup, clocks);
    replay::sampled(&recording.connections, threshold, &clocks).map_err(ClaimError::new)
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
