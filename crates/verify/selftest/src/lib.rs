//! `explain` held against the truth: the kernel's own TCP over a wire whose losses are scripted.
//!
//! ```text
//!   client ── kernel TCP ── tun0 ── wire (delay, script) ── tun0 ── kernel TCP ── server
//!             packet socket ┘                                └ packet socket
//! ```
//!
//! | file | what it is |
//! | --- | --- |
//! | [`case`], `cases` | what can slow a connection down: who sends what, what the wire does, what must be said of it |
//! | `stage`, `wire`, `script` | two namespaces; the wire between them, and what it loses |
//! | `ends`, `counters` | what both applications do, and what the kernel counted meanwhile |
//! | `run`, `explained` | one connection and its captures; what `explain` says of them |
//! | `check`, [`batch`] | the comparison of one run; all runs, several at a time |
//! | [`agreement`] | many connections under random losses: how well the shadow follows |
//!
//! Invariants: namespaces end with the program; a run counts only if the wire's log has every loss.

pub mod agreement;
pub mod batch;
pub mod case;
mod cases;
mod check;
mod counters;
mod ends;
mod explained;
mod run;
mod script;
mod stage;
mod wire;
