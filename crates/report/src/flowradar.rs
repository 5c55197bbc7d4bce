//! FlowRadar (NSDI 2016; li-thesis, chapter 4), run again: what flowsets take, how many flows they hold and how long
//! decoding takes (§4.5), and what decoded counters find in a network (§4.6).

mod export;
mod extra;
mod fabric;
mod loops;
mod losses;
mod memory;
mod time;
mod walk;

use crate::files::{File, files};
use crate::paper::{Coded, Compute, Effort, Paper, Parts};

pub const PAPER: Paper = Paper {
    name: "flowradar",
    title: "FlowRadar, reproduced",
    lead: "FlowRadar counts every flow at every switch in memory of a fixed size, and sorts out at a collector what shares \
           a cell. These are the claims of chapter 4 of Yuliang Li's thesis, which is FlowRadar's paper (NSDI 2016) carried \
           on, each run again. The thesis's value stands beside ours, and what differs says why.",
    parts,
};

/// What is computed, in the order of the report.
const COMPUTED: [(File, Compute); 4] = [
    (files!("flowradar": "memory.toml")[0], memory::compute),
    (files!("flowradar": "extra.toml")[0], extra::compute),
    (files!("flowradar": "time.toml")[0], time::compute),
    (files!("flowradar": "export.toml")[0], export::compute),
];

/// What is computed from runs of a network.
const IN_NETWORKS: [(File, Compute); 2] =
    [(files!("flowradar": "loss.toml")[0], losses::compute), (files!("flowradar": "loop.toml")[0], loops::compute)];

fn parts() -> Parts {
    Ok(vec![Box::new(Coded::read("computed", &COMPUTED)?), Box::new(Coded::read("net", &IN_NETWORKS)?)])
}

/// Whether somebody wants it to end.
fn is_over(effort: &Effort<'_>) -> bool {
    !effort.watch.go_on(0)
}

#[cfg(test)]
mod tests;
