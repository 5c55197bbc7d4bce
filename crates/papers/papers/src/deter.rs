//! DETER (NSDI 2019; li-thesis, chapter 6), run again: what hosts must record so that connections and queues can be replayed.

mod butterfly;
mod costs;
mod exactness;
mod logs;
mod network;
mod runs;
mod sampling;
mod shared_buffer;
mod size;
mod stage;
mod stories;
mod testbed;

use report::runner::Compute;

use crate::Paper;

pub(crate) const PAPER: Paper = Paper {
    name: "deter",
    title: "DETER, reproduced",
    lead: "DETER records at hosts what decides how TCP behaves, replays each connection exactly, and replays the queues of \
           switches from the packets of all connections. These are the claims of chapter 6 of Yuliang Li's thesis, which is \
           DETER's paper (NSDI 2019) carried on, each run again. The thesis's value stands beside ours, and what differs says \
           why.",
    computations: &[
        (&["det.sampling"], Compute::One(sampling::compute)),
        (&["det.queue", "det.drop"], Compute::Several(network::compute)),
        (&["det.drop.shared"], Compute::One(shared_buffer::compute)),
        (&["det.rto"], Compute::One(stories::rto)),
        (&["det.late"], Compute::One(stories::late)),
        (&["det.unread"], Compute::One(stories::unread)),
        (&["det.testbed"], Compute::One(testbed::compute)),
        (&["det.butterfly"], Compute::One(butterfly::compute)),
        (&["det.size"], Compute::One(size::compute)),
        (&["det.replay"], Compute::One(exactness::compute)),
    ],
};
