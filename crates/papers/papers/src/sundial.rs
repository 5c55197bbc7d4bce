//! Sundial (OSDI 2020; here chapter 3 of Yuliang Li's thesis), run again: clocks that know how wrong they are.
//!
//! Table 3.1 (Spanner's commit wait) has no claim: what a transaction waits for is more than ε, and the load test is not public.

mod app;
mod fail;
mod jupiter;
mod normal;
mod plan;
mod steps;
mod testbed;

use report::runner::Compute;

use crate::Paper;

pub(crate) const PAPER: Paper = Paper {
    name: "sundial",
    title: "Sundial, reproduced",
    lead: "Sundial synchronises the clocks of a datacenter so that each can say at any time by how much it may be wrong, also \
           while links, devices and whole failure domains fail. These are the claims of chapter 3 of Yuliang Li's thesis, each \
           run again in hitless's simulator or computed. The thesis's value stands beside ours, and what differs says why. Table \
           3.1, the commit wait of Spanner, cannot be reproduced: its load test is not public, and most of what it waits for is \
           not ε.",
    computations: &[
        (&["sun.normal"], Compute::One(normal::compute)),
        (&["sun.fail"], Compute::One(fail::compute)),
        (&["sun.plan"], Compute::One(plan::compute)),
        (&["sun.jupiter"], Compute::One(jupiter::compute)),
        (&["sun.steps"], Compute::One(steps::compute)),
        (&["sun.app"], Compute::One(app::compute)),
    ],
};

#[cfg(test)]
mod tests;
