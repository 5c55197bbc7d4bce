//! What goes wrong on a wire, shared by the simulator and the live wire.
//!
//! A [`Model`] says how frames are corrupted; a [`Fault`] is one running instance of it, for one
//! direction of one link, with its own stream of randomness. A [`Schedule`] switches models at given
//! times, and [`FaultFile`] reads a pair of schedules from TOML.
//!
//! Losses are drawn ahead, not frame by frame: a fault knows how many frames will certainly pass before
//! anything can happen ([`Fault::clear`]), which is what lets a simulator skip the quiet stretches
//! between two losses without changing a single draw.

mod file;
mod model;
mod random;
mod schedule;

pub use file::{FaultFile, FaultFileError, Step, StepError};
pub use model::{Fault, Model};
pub use random::Random;
pub use schedule::{Running, Schedule};
