//! MELO, "Memory efficient loss recovery for hardware-based transport in datacenter" (APNet 2017), run again.

mod fig6a;
mod memory;

use report::runner::Compute;

use crate::Paper;

pub(crate) const PAPER: Paper = Paper {
    name: "melo",
    title: "MELO, reproduced",
    lead: "MELO retransmits only what was lost, with bits to follow it by that all connections of an interface share. \
           These are the claims of its paper (APNet 2017), each run again in hitless's simulator. The paper's value \
           stands beside ours, and what differs says why.",
    computations: &[(&["melo.memory"], Compute::One(memory::compute)), (&["melo.fig6a"], Compute::One(fig6a::compute))],
};
