//! What tests drive machines with.
//!
//! [`Recorder`] is a sink that writes down what a machine does. [`Duo`] joins two machines by a wire
//! that loses, delays and reorders exactly what the test says.

mod duo;
mod recorder;

pub use duo::{Duo, Fate, Side};
pub use recorder::{Act, ActOf, Recorder};
