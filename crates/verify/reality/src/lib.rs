//! The kernel's TCP over a wire that corrupts, without protection: what the simulator is held against.
//!
//! | file | what it is |
//! | --- | --- |
//! | `plan` | which wires, how long, and which frames they lose |
//! | `live` | a wire between two hosts of this machine, one flow, then requests one after the other |
//! | `simulated` | the same in the simulator |
//! | `causes` | both captured and explained: what the time was spent on |
//! | `loop_waits` | what a captured flow waited for: acknowledgements, and the sender after them |
//! | `verdict`, `text` | each measure with its verdict, and as a table |
//!
//! Both lose frames of the same numbers in each direction, so that chance has little part in what differs.

mod causes;
mod check;
mod live;
mod loop_waits;
mod plan;
mod simulated;
mod text;
mod verdict;

pub use check::check;
pub use plan::CheckPlan;
pub use verdict::SimCheckReport;
