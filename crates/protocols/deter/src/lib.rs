//! Logs of TCP connections, and their exact replay: DETER (Y. Li, *Hardware-Software Codesign for High-Performance Cloud
//! Networks*, ch. 6).
//!
//! A log holds what the two machines of a connection cannot know by themselves: what was asked of each and in which order,
//! what the network did to the segments on their way, and what time decided. The segments are not in it: in a replay, each
//! end makes them again for the other. A digest of all that left proves that they are the same.
//!
//! | file | what it is |
//! | --- | --- |
//! | `log`, `header` | blocks with their checks; who the connection was, and how its ends were set |
//! | `columns`, `times`, `sampled`, `coder`, `bytes` | what happened at one end, as columns; how each is written |
//! | `decisions` | what time decided at one end |
//! | `recorder` | a log while its connection runs |
//! | `cursor`, `clock`, `replay` | a log from its beginning to its end, and when it was; both machines run again |
//! | `trial` | connections over a network of chance, to try it on |
//! | [`sampling`] | send times from few samples: Algorithm 12 |
//! | `digest` | what left an end, in 64 bits |

#![warn(missing_docs)]

mod bytes;
mod clock;
mod coder;
mod columns;
mod cursor;
mod decisions;
mod digest;
mod header;
mod log;
mod recorder;
mod replay;
mod sampled;
pub mod sampling;
mod times;
mod trial;

pub use columns::ColumnBytes;
pub use decisions::DecisionLog;
pub use header::{LogHeader, LogLevel};
pub use log::{ConnectionLog, LogError, LogFault};
pub use recorder::ConnectionRecorder;
pub use replay::{
    ReplayDifference, ReplayJitter, ReplayObserver, ReplayResult, ReplayedFrame, Sent, replay, replay_jittered,
};
pub use trial::record_trial;

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogSide {
    /// The one that began it.
    Client,
    /// The other.
    Server,
}

impl LogSide {
    /// The client first.
    pub const BOTH: [Self; 2] = [Self::Client, Self::Server];

    /// The other end.
    #[must_use]
    pub const fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    /// Name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

/// A step of a handshake, which is the driver's and not the machine's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoggedHandshake {
    /// SYN.
    Syn,
    /// SYN-ACK.
    SynAck,
}
