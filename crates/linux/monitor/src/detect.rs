//! Detection of a port that corrupts, and of one that is healthy again: LinkGuardian (SIGCOMM'23) App. C.
//!
//! The paper polls frame counters and keeps a moving window of 100 M frames. Its formula for the loss,
//! L = framesRxOk / framesRxAll, is upside down: what is held against 1e-8 is the share of frames that are *not* ok,
//! and so it is here. One bad frame in 100 M gives exactly 1e-8 and is a healthy link, so what decides is not the
//! ratio but how sure one can be of it: an alarm is raised when the lower end of the 95 % interval is above the
//! threshold, and cleared when the upper end is below it.
//!
//! No clock and no I/O: [`Reading`](crate::Reading)s come in, [`PortChange`]s go out, time is what the readings say.
//!
//! | file | what it is |
//! | --- | --- |
//! | `limits` | what is asked of an alarm, with the reasons for each default |
//! | `counters` | what was received between two looks at the counters: wraps, resets, nonsense |
//! | `window` | a moving window over it |
//! | `damping` | ports that flap |
//! | `alarm` | what is remembered of an alarm, and when it ends |
//! | `detector` | the states of one port |
//! | `change` | what is reported, with evidence and a sentence |
//! | `ports`, `pattern` | all ports of a host: new, gone, renamed, excluded |
//!
//! Invariants: a port without bad frames is never raised; what cannot be believed is counted and never acted upon;
//! an alarm ends by evidence, by a person, or by its port being gone for long, and never because somebody restarted
//! something; memory per port is bounded.

mod alarm;
mod change;
mod counters;
mod damping;
mod detector;
mod limits;
mod pattern;
mod ports;
mod window;

pub use change::{ChangeKind, DetectorVerdict, PortChange, ReadingNote};
pub use counters::CounterAnomalies;
pub use detector::Detector;
pub use limits::{BadLimits, Damping, Flaps, Limits};
pub use pattern::{BadPattern, NamePattern};
pub use ports::{MonitoredPorts, PollResult, PortRow};
pub use window::{FrameCounts, LossWindow};
