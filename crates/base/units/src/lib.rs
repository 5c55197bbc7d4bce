//! Units as types: times, sizes, rates and probabilities that cannot be mistaken for one another.
//!
//! Everything is an integer except [`Prob`]. A [`Time`] is picoseconds since the start of a run: one
//! byte at 1.6 Tb/s takes 5 ps, and 64 bits last for 213 days. Each type reads what a person writes
//! (`100G`, `7.5us`, `200KB`, `1e-3`) and prints it back; a text that makes no sense is a
//! [`ParseError`] that says what is accepted.
//!
//! [`Progress`] and [`StopFlag`] are here because every crate that runs for long needs them.

#![warn(missing_docs)]

mod binomial;
mod buckets;
mod counters;
mod interval;
mod moment;
mod named;
mod nearest;
mod options;
mod parse;
mod prob;
mod progress;
mod range;
mod rate;
pub mod samples;
mod size;
mod stream_ranges;
mod time;
mod timestamp;

pub use binomial::{binomial, quantile_ranks};
pub use buckets::LogBuckets;
pub use interval::poisson;
pub use moment::Moment;
pub use nearest::nearest;
pub use options::Merge;
pub use parse::{Count, ParseError, whole};
pub use prob::Prob;
pub use progress::{Progress, StopFlag, StopOnDrop, Unwatched};
pub use range::whole_within;
pub use rate::Rate;
pub use size::Bytes;
pub use stream_ranges::{StreamRange, StreamRanges};
pub use time::{Span, Time};
pub use timestamp::Timestamp;
