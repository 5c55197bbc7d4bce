//! A fleet of links: which of them corrupt, which can go for repair, what protection makes of the rest.
//!
//! CorrOpt (SIGCOMM'17) as LinkGuardian (SIGCOMM'23) uses it in §3.6 and §4.8, with its traces of App. D.
//!
//! | file | what it is |
//! | --- | --- |
//! | `fabric` | switches in levels and the links between them |
//! | `trace` | which links begin to corrupt, when and how badly |
//! | `protection` | what protection makes of a link |
//! | `paths` | ways from each switch to the top; the fast checker |
//! | `corropt` | the optimizer |
//! | `ledger` | the state of every link, and what it amounts to |
//! | `simulate` | a year under a policy |
//! | `corrupting` | which links corrupt or are out of service, as reported by monitors or a file |
//! | `plan` | what to disable, protect and repair, and why |
//! | `watch` | the same at every event, on a bus |
//! | `upgrade` | which switches to upgrade first |
//! | `plan::report`, `simulate::report`, `upgrade::report` | the answers as JSON, text and rows |
//! | `penalty`, `tournament_tree` | sums and minima that follow changes exactly |

pub mod corropt;
pub mod corrupting;
pub mod fabric;
pub mod ledger;
pub mod paths;
pub mod penalty;
pub mod plan;
pub mod protection;
pub mod simulate;
mod tournament_tree;
pub mod trace;
pub mod upgrade;
pub mod watch;

pub use fabric::{Fabric, LinkId, SwitchId};
