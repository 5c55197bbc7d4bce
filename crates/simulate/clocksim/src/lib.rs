//! Clocks that listen to each other, simulated with the truth beside them (Y. Li's thesis, §3.6).
//!
//! A setup comes in ([`ClockSetup`]), an outcome comes out ([`ClockOutcome`]): how large ε was, how long nodes heard nothing, and
//! whether any node was ever wrong by more than it said. Nodes are `clock::node`'s machines, each with an oscillator of its own
//! ([`DriftModel`]); other schemes ([`ClockScheme`]) are modelled as the thesis describes them. Time is integer picoseconds; the same
//! setup gives the same outcome.
//!
//! | file | what it does |
//! | --- | --- |
//! | `oscillator` | what each oscillator shows at a true time |
//! | `world` | events, nodes, truth; `quiet` leaves out waves that nothing disturbs |
//! | `machines` | Sundial's node as the simulator calls it, and a clock of PTP |
//! | `marzullo` | intersections of what all neighbours say |
//! | `failure` | what fails, and when |

#![warn(missing_docs)]

mod failure;
mod machines;
mod marzullo;
mod oscillator;
mod outcome;
mod scheme;
mod setup;
mod wiring;
mod world;

use clock::node::ClockNode;
use units::Progress;

pub use failure::{ClockFailure, TimedFailure};
pub use oscillator::DriftModel;
pub use outcome::{ChainEnd, ClockLogRow, ClockOutcome, DepthBounds, SecondRoot};
pub use scheme::ClockScheme;
pub use setup::{ClockSetup, SetupError, WayError};

use machines::{PtpClock, PtpParams};
use world::ClockWorld;

/// Runs it.
pub fn simulate(setup: &ClockSetup<'_>, progress: &dyn Progress) -> Result<ClockOutcome, SetupError> {
    let params = setup.scheme.params(setup.node);
    match setup.scheme {
        ClockScheme::Sundial | ClockScheme::PtpFrequentSynchronous => {
            Ok(ClockWorld::<ClockNode>::new(setup, params)?.run(progress))
        }
        ClockScheme::Ptp | ClockScheme::PtpDtp | ClockScheme::PtpFrequent | ClockScheme::Huygens => {
            let recovery = setup.scheme.recovery(params.interval, setup.controller);
            Ok(ClockWorld::<PtpClock>::new(setup, PtpParams { node: params, recovery })?.run(progress))
        }
        ClockScheme::Marzullo => marzullo::simulate(setup, progress),
    }
}
