//! "Analyzing and optimizing packet corruption in RDMA network" (JCST 2022), run again: the model of §3 and §4, the
//! mechanisms of §4 and §5 in the networks of §6.

mod model;
mod trial;

pub use trial::Trial;

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
const COMPUTED: [(File, Compute); 1] = [(files!("rdma-corruption": "model.toml")[0], model::compute)];

/// The experiments within a network, in the order of the report.
const STUDIES: &[File] = files!("rdma-corruption":
    "fig10.toml", "fig11.toml", "fig12.toml", "fig13.toml", "fig14.toml", "fig15.toml", "cost.toml", "combined.toml",
);

const SCENARIOS: &[File] = files!("rdma-corruption": "clos.toml", "pingpong.toml");

fn parts() -> Parts {
    Ok(vec![Box::new(Coded::read("model", &COMPUTED)?), Box::new(Studies::read(STUDIES, SCENARIOS)?)])
}

#[cfg(test)]
mod tests;
