//! FlowRadar (NSDI 2016; li-thesis, chapter 4), run again: what flowsets take, how many flows they hold and how long
//! decoding takes (§4.5), and what decoded counters find in a network (§4.6).

mod compare;
mod dleft;
mod equations;
mod export;
mod extra;
mod fabric;
mod iblt;
mod loops;
mod losses;
mod memory;
mod time;
mod walk;

use report::runner::{Compute, Effort};

use crate::Paper;

pub(crate) const PAPER: Paper = Paper {
    name: "flowradar",
    title: "FlowRadar, reproduced",
    lead: "FlowRadar counts every flow at every switch in memory of a fixed size, and sorts out at a collector what shares \
           a cell. These are the claims of chapter 4 of Yuliang Li's thesis, which is FlowRadar's paper (NSDI 2016) carried \
           on, each run again. The thesis's value stands beside ours, and what differs says why.",
    computations: &[
        (&["fr.memory"], Compute::One(memory::compute)),
        (&["fr.extra"], Compute::One(extra::compute)),
        (&["fr.time"], Compute::One(time::compute)),
        (&["fr.export"], Compute::One(export::compute)),
        (&["fr.counters"], Compute::One(equations::compute)),
        (&["fr.compare"], Compute::One(compare::compute)),
        (&["fr.loss"], Compute::One(losses::compute)),
        (&["fr.loop"], Compute::One(loops::compute)),
    ],
};

/// True if somebody wants it to end.
fn is_over(effort: &Effort<'_>) -> bool {
    !effort.progress.go_on(0)
}

#[cfg(test)]
mod tests;
