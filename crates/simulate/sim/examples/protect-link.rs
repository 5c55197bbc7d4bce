//! Simulates a link that corrupts one frame in a thousand, without protection and with it:
//! `cargo run -p hitless-sim --example protect-link`.

#![expect(clippy::print_stdout, reason = "an example prints")]

use faults::{FaultSchedule, LossModel};
use guard::copies_for;
use sim::link::{ConfigError, LinkOutcome, LinkSimConfig, LinkSimMode, run};
use units::{Prob, Unwatched};

/// Share of frames that the wire corrupts, and the share that may stay lost.
const LOSS: Prob = Prob::literal(1e-3);
const TARGET: Prob = Prob::literal(1e-8);

/// Sends a million frames over a link of 100 Gbit/s.
pub(crate) fn outcome(mode: LinkSimMode) -> Result<LinkOutcome, ConfigError> {
    let forward = FaultSchedule::always(LossModel::PerFrame(LOSS));
    let config = LinkSimConfig { mode, forward, target: TARGET, frames: 1_000_000, ..LinkSimConfig::default() };
    run(&config, &Unwatched)
}

pub(crate) fn main() -> Result<(), ConfigError> {
    if let Some((copies, left)) = copies_for(LOSS, TARGET) {
        println!("{copies} copies of a retransmission leave a loss of {left}");
    }
    for mode in [LinkSimMode::None, LinkSimMode::Ordered] {
        let outcome = outcome(mode)?;
        let (corrupted, lost) = (outcome.frames_corrupted, outcome.frames_lost);
        let speed = outcome.effective_speed.unwrap_or_default();
        println!("{}: {corrupted} corrupted, {lost} lost, {:.2} % of the line rate", mode.name(), speed * 100.0);
    }
    Ok(())
}
