//! Statements of textbooks and other people's papers about queues, TCP and fabrics, held against the simulator.
//!
//! Most claims are files alone: a scenario, and the closed form's value. Three need code: sources with random phases,
//! a permutation beside its max-min rates, and the shares of two flows.

mod periodic;
mod permutation;
mod sharing;

use report::runner::Compute;

use crate::Paper;

pub(crate) const PAPER: Paper = Paper {
    name: "textbook",
    title: "The simulator beside textbooks",
    lead: "Closed forms that every textbook has, and measurements of others, beside hitless's simulator: queues, TCP's \
           throughput under loss, DCTCP's queue, incast, PFC, fabrics. Each row names its source and the formula; bands \
           were written before the first run.",
    computations: &[
        (&["tb.periodic"], Compute::One(periodic::compute)),
        (&["tb.permutation"], Compute::One(permutation::compute)),
        (&["tb.sharing"], Compute::One(sharing::compute)),
    ],
};

#[cfg(test)]
mod tests;
