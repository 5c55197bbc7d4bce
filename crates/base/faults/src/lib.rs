//! Faults of a wire, shared by the simulator and the live wire.
//!
//! A [`LossModel`] says how frames are corrupted; a [`LossProcess`] is one running instance of it, for one
//! direction of one link, with its own stream of randomness. A [`FaultSchedule`] switches models at given
//! times, and [`FaultFile`] reads a pair of schedules from TOML.
//!
//! Losses are drawn ahead, not frame by frame: a fault knows how many frames will certainly pass before
//! anything can happen ([`LossProcess::clear`]), which is what lets a simulator skip the quiet stretches
//! between two losses without changing a single draw.

mod file;
mod model;
mod random;
mod schedule;

pub use file::{FaultFile, FaultFileError, FaultStep, StepError};
pub use model::{LossModel, LossProcess};
pub use random::Random;
pub use schedule::{FaultSchedule, RunningSchedule};
