//! LossRadar (CoNEXT 2016; li-thesis, chapter 5), run again: the size of digests, what they cost on the way to the
//! collector, the rules of an access list that may be corrupted, what it finds in a network, and what that is good for.

mod acl;
mod bandwidth;
mod digests;
mod network;
mod repair;
mod size;

use crate::files::{File, files};
use crate::paper::{Coded, Compute, Paper, Parts};

pub const PAPER: Paper = Paper {
    name: "lossradar",
    title: "LossRadar, reproduced",
    lead: "LossRadar names every packet that was lost, from digests as small as the loss, and tells from the pattern of \
           losses why they happened. These are the claims of chapter 5 of Yuliang Li's thesis, which is LossRadar's paper \
           (CoNEXT 2016) carried on, each run again. The thesis's value stands beside ours, and what differs says why.",
    parts,
};

/// What is computed, in the order of the report.
const COMPUTED: [(File, Compute); 4] = [
    (files!("lossradar": "size.toml")[0], size::compute),
    (files!("lossradar": "bandwidth.toml")[0], bandwidth::compute),
    (files!("lossradar": "acl.toml")[0], acl::compute),
    (files!("lossradar": "repair.toml")[0], repair::compute),
];

fn parts() -> Parts {
    Ok(vec![Box::new(Coded::read("computed", &COMPUTED)?), Box::new(network::InNetwork::read()?)])
}
