//! TCP: a reliable stream each way, as hosts of a datacenter run it.
//!
//! A [`TcpConnection`] is established from the start; the same type stands at both ends. Time and segments come in,
//! segments go out when the wire pulls. Which file has what:
//!
//! | | after |
//! | --- | --- |
//! | `scoreboard`, `record` | RFC 2018, RFC 6675: what is in flight, known to have arrived, or lost |
//! | `rack` | RFC 8985 §6: when a segment is lost |
//! | `detection`, `sender/counting` | RFC 6675, RFC 6582, RFC 5827: what kernels before RACK did |
//! | `sender/timers` | RFC 8985 §7 and §8, RFC 6298 §5: probes and the retransmission timer |
//! | `sender/acks`, `sender/repair`, `sender/egress` | what an acknowledgement changes, the phases of a repair, what leaves next |
//! | `prr` | RFC 6937: what may leave during a repair |
//! | `sender/frto` | RFC 5682: whether a timeout was spurious, with a socket |
//! | `undo` | RFC 3522, RFC 3708, RFC 4015: finding out that nothing was lost |
//! | `rtt`, `timing` | RFC 6298: the timeout; a kernel's ticks |
//! | `receiver` | RFC 2018 §4, RFC 2883: blocks; RFC 5681 §4.2: delayed acknowledgements; RFC 3168, RFC 8257: marks |
//! | `delivery`, `pacer` | what BBR needs: rate of delivery, pacing |
//! | [`cc`] | congestion control |
//! | `socket`, `closing` | what a socket adds: states, FIN and RST |
//! | `sender/buffers`, `sender/queue`, `sender/persist`, `sender/waits` | RFC 896, PSH, the send buffer, window probes, what was waited for |
//! | `receiver/window`, `receiver/growth` | RFC 9293 §3.8.6: the receive window and reads; how the buffer grows |
//! | `receiver/compression` | which segments out of order are reported at once, with a socket |
//! | `info` | `TCP_INFO` |
//! | `sites` | where time decides: what a log must keep, if it does not keep times |
//!
//! [`TimerProfile`] chooses between the timers of the documents and those of Linux 5.4, which tick.
//!
//! A connection has a socket only if [`TcpConfig::socket`] asks for one. Without, the receiver consumes at once, and
//! there is no close, no Nagle's algorithm, no shut window and no PAWS; nor does the flight glide down after a mark.
//!
//! Deliberately absent: the handshake (the driver's), F-RTO without a socket (timestamps show the same), decay of a window
//! that is not used. Timestamps count microseconds, where those of Linux 5.4 count milliseconds.

pub mod cc;
mod closing;
mod config;
mod connection;
mod delivery;
mod detection;
mod follow;
mod info;
mod pacer;
mod prr;
mod rack;
mod receiver;
mod record;
mod rtt;
mod scoreboard;
mod segment;
mod sender;
mod sink;
mod sites;
mod socket;
mod timing;
mod undo;

/// Changes whenever a connection would do something else with the same calls: logs of connections are replayed only by the
/// TCP that wrote them.
pub const BEHAVIOUR: u32 = 5;

pub use config::{LinuxVersion, Reordering, TcpConfig, TimerProfile};
pub use connection::{TcpCommand, TcpConnection, TcpNote, TcpProgress, TcpRetransmitCause, TcpTimer};
pub use detection::{LossDetection, RackUse};
pub use info::{CaState, TcpInfo};
pub use segment::{MAX_SACKS, Sack, SegmentFlags, TcpSegment};
pub use sender::Phase;
pub use sink::TcpSink;
pub use sites::{TcpSite, TcpTick};
pub use socket::{TcpSocketConfig, TcpState, TsoConfig, window_scale};
