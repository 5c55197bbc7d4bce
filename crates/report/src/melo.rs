//! MELO, "Memory efficient loss recovery for hardware-based transport in datacenter" (APNet 2017), run again.

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
const COMPUTED: [(File, Compute); 0] = [];

/// The experiments within a network, in the order of the report.
const STUDIES: &[File] = files!("melo":);

const SCENARIOS: &[File] = files!("melo":);

fn parts() -> Parts {
    Ok(vec![Box::new(Coded::read("memory", &COMPUTED)?), Box::new(Studies::read(STUDIES, SCENARIOS)?)])
}
