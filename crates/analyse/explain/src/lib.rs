//! Why the TCP connections of a capture took as long as they did.
//!
//! | file | what it is |
//! | --- | --- |
//! | `packet` | a captured frame as a TCP segment |
//! | `explainer`, `connection` | all connections of a capture in one pass; one connection, packet by packet |
//! | `pool`, `pairs`, [`scans`] | connections in bounded memory; keys of few bytes; connections without payload, said together |
//! | `sender` | what one end has in flight, what it heard, why it sent something again |
//! | `shadow` | our TCP machine, which follows that sender |
//! | `gaps`, `timeline` | what the time before a payload was spent on; time that is spent once |
//! | [`evidence`] | what the kernel said of its own connections, if it was recorded |
//! | `ids`, `losses`, `other_end` | which packets were lost: by identifications, copies, or a second capture |
//! | `verdict` | one sentence for a connection, and what would help |
//! | [`answer`], `text`, `page` | the explanation as JSON, for a terminal, and with charts |
//!
//! Invariants: the parts of a connection, and of a request, add up to its duration, by the type of its clock
//! (`timeline`); nothing is read twice except for charts; the same capture gives the same explanation.

pub mod answer;
mod connection;
pub mod evidence;
mod explainer;
mod explanation;
mod filter;
mod gaps;
mod ids;
mod losses;
mod other_end;
mod packet;
mod page;
mod pairs;
mod pool;
pub mod scans;
mod sender;
mod shadow;
mod stalls;
pub mod terms;
mod text;
mod timeline;
mod trace;
mod verdict;

pub use explainer::{ExplainError, ExplainOptions};
pub use explanation::{Explanation, OpenCapture, OtherEndError, explain, has_events};
pub use filter::{FlowFilter, FlowFilterError};
