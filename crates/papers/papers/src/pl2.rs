//! PL2, "Towards predictable low latency in rack-scale networks" (2021), run again.

use crate::Paper;

pub(crate) const PAPER: Paper = Paper {
    name: "pl2",
    title: "PL2, reproduced",
    lead: "With PL2 a sender reserves slots at the switch of its rack before it sends, so that no queue overflows whatever the \
           transport does. These are the claims of its paper, each run again in hitless's simulator, and what the paper has \
           not: where the printed algorithm fails, and what repairs it. The paper's value stands beside ours, and what \
           differs says why.",
    computations: &[],
};
