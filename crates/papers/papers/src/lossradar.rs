//! LossRadar (CoNEXT 2016; li-thesis, chapter 5), run again: the size of digests, what they cost on the way to the
//! collector, the rules of an access list that may be corrupted, what it finds in a network, and what that is good for.

mod acl;
mod bandwidth;
mod digests;
mod memory;
mod network;
mod repair;
mod size;

use report::runner::Compute;

use crate::Paper;

pub(crate) const PAPER: Paper = Paper {
    name: "lossradar",
    title: "LossRadar, reproduced",
    lead: "LossRadar names every packet that was lost, from digests as small as the loss, and tells from the pattern of \
           losses why they happened. These are the claims of chapter 5 of Yuliang Li's thesis, which is LossRadar's paper \
           (CoNEXT 2016) carried on, each run again. The thesis's value stands beside ours, and what differs says why.",
    computations: &[
        (&["lr.size"], Compute::One(size::compute)),
        (&["lr.bandwidth"], Compute::One(bandwidth::compute)),
        (&["lr.memory"], Compute::One(memory::compute)),
        (&["lr.acl"], Compute::One(acl::compute)),
        (&["lr.repair"], Compute::One(repair::compute)),
        (&["lr.capture", "lr.cause"], Compute::Several(network::compute)),
        (&["lr.partial"], Compute::One(network::partial)),
    ],
};
