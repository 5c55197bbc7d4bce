//! Two nodes and the link between them.
//!
//! [`LinkSimConfig`] says what is simulated; [`run`] simulates it. Traffic flows from node A to node B (and,
//! if asked for, back); the link protocol at both ends is one of [`LinkSimMode`].
//!
//! Scope: the nodes are ports with a queue above each; what happens before and behind them is not
//! modelled. A frame is stored and forwarded: it counts as arrived when its last bit has, plus the
//! pipeline's latency. `hardware` adds what is particular to the paper's switch.

mod config;
mod measure;
mod node;
mod outcome;
mod shortcut;
mod source;
mod world;

pub use config::{ConfigError, FrameSizes, HardwareProfile, LinkSimConfig, LinkSimMode, OfferedLoad};
pub use outcome::{DelayUs, LevelBytes, LinkOutcome};

use guard::{Endpoint, llr};
use source::SimFrame;
use units::Progress;
use world::World;

/// Simulates one configuration. `progress` gets the frames offered so far.
pub fn run(config: &LinkSimConfig, progress: &dyn Progress) -> Result<LinkOutcome, ConfigError> {
    config.check()?;
    Ok(match config.mode {
        LinkSimMode::UecLlr => {
            let profile = llr::LlrProfile::for_path(&config.path());
            World::new(config, |_| llr::LlrEndpoint::<SimFrame>::new(profile)).run(progress)
        }
        LinkSimMode::None => {
            let params = config.params();
            World::new(config, |node| Endpoint::<SimFrame>::new(params.clone(), node.instance())).run(progress)
        }
        LinkSimMode::Ordered | LinkSimMode::NonBlocking | LinkSimMode::Both | LinkSimMode::Auto => {
            let [sender, receiver] = config.both_params();
            World::new(config, |node| {
                let params = if node.sends() { &sender } else { &receiver };
                Endpoint::<SimFrame>::established(params.clone(), node.instance(), node.peer().instance())
            })
            .run(progress)
        }
    })
}
