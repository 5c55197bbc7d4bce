//! "Analyzing and optimizing packet corruption in RDMA network" (JCST 2022), run again: the model of §3 and §4, the
//! mechanisms of §4 and §5 in the networks of §6.

mod model;

use crate::files::{File, files};
use crate::paper::{Coded, Compute, Paper, Parts, Studies};

pub const PAPER: Paper = Paper {
    name: "rdma-corruption",
    title: "Packet corruption in RDMA, reproduced",
    lead: "Where no switch can protect a link, the endpoints must live with corruption: dummies behind the last packet \
           of a message, and switches that repeat NAKs and what they ask for, turn timeouts into retransmissions that \
           take one round trip. These are the claims of “Analyzing and Optimizing Packet Corruption in RDMA Network” \
           (JCST 2022), each run again in hitless's simulator. The paper's value stands beside ours, and what differs \
           says why.",
    parts,
};

/// What is computed, in the order of the report.
const COMPUTED: [(File, Compute); 0] = [];

/// The experiments within a network, in the order of the report.
const STUDIES: &[File] = files!("rdma-corruption":);

const SCENARIOS: &[File] = files!("rdma-corruption":);

fn parts() -> Parts {
    Ok(vec![Box::new(Coded::read("model", &COMPUTED)?), Box::new(Studies::read(STUDIES, SCENARIOS)?)])
}
