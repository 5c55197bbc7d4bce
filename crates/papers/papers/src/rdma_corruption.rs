//! "Analyzing and optimizing packet corruption in RDMA network" (JCST 2022), run again: the model of §3 and §4, the
//! mechanisms of §4 and §5 in the networks of §6.

mod model;
mod trial;

pub use trial::Trial;

use report::runner::Compute;

use crate::Paper;

pub(crate) const PAPER: Paper = Paper {
    name: "rdma-corruption",
    title: "Packet corruption in RDMA, reproduced",
    lead: "Where no switch can protect a link, the endpoints must live with corruption: dummies behind the last packet \
           of a message, and switches that repeat NAKs and what they ask for, turn timeouts into retransmissions that \
           take one round trip. These are the claims of “Analyzing and Optimizing Packet Corruption in RDMA Network” \
           (JCST 2022), each run again in hitless's simulator. The paper's value stands beside ours, and what differs \
           says why.",
    computations: &[(&["rc.model"], Compute::One(model::compute))],
};

#[cfg(test)]
mod tests;
