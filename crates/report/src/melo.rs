//! MELO, "Memory efficient loss recovery for hardware-based transport in datacenter" (APNet 2017), run again.

mod fig6a;
mod memory;

use crate::files::{File, files};
use crate::paper::{Coded, Compute, Paper, Parts, Studies};

pub const PAPER: Paper = Paper {
    name: "melo",
    title: "MELO, reproduced",
    lead: "MELO retransmits only what was lost, with bits to follow it by that all connections of an interface share. \
           These are the claims of its paper (APNet 2017), each run again in hitless's simulator. The paper's value \
           stands beside ours, and what differs says why.",
    parts,
};

/// What is computed, in the order of the report.
const COMPUTED: [(File, Compute); 2] =
    [(files!("melo": "memory.toml")[0], memory::compute), (files!("melo": "fig6a.toml")[0], fig6a::compute)];

/// The experiments within a network, in the order of the report.
const STUDIES: &[File] = files!("melo": "fig5a.toml", "fig5b.toml", "fig6b.toml");

const SCENARIOS: &[File] = files!("melo": "one-flow.toml", "web-search.toml");

fn parts() -> Parts {
    Ok(vec![Box::new(Coded::read("computed", &COMPUTED)?), Box::new(Studies::read(STUDIES, SCENARIOS)?)])
}
