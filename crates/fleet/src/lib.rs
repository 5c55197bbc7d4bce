//! A fleet of links: which of them corrupt, which can go for repair, what protection makes of the rest.
//!
//! CorrOpt (SIGCOMM'17) as LinkGuardian (SIGCOMM'23) uses it in §3.6 and §4.8, with its traces of App. D.
//!
//! | file | what it is |
//! | --- | --- |
//! | `fabric` | switches in levels and the links between them |

pub mod fabric;

pub use fabric::{Fabric, LinkId, SwitchId};
