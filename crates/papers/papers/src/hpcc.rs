//! HPCC, "High precision congestion control" (SIGCOMM 2019; here chapter 2 of Yuliang Li's thesis), run again.

mod division;
mod fig13;
mod fig14;
mod fig6;
mod int;
mod micro;
mod packed;
mod parking_lot;
mod protected;
mod runs;
mod theory;

use report::runner::Compute;

use crate::Paper;

pub(crate) const PAPER: Paper = Paper {
    name: "hpcc",
    title: "HPCC, reproduced",
    lead: "HPCC sets each sender's window by what switches report of their links, and so keeps queues near zero. These are \
           the claims of its chapter in Yuliang Li's thesis (2020), each run again in hitless's simulator or computed. The \
           thesis's value stands beside ours, and what differs says why.",
    computations: &[
        (&["hpcc.theory"], Compute::One(theory::compute)),
        (&["hpcc.int"], Compute::One(int::compute)),
        (&["hpcc.division"], Compute::One(division::compute)),
        (&["hpcc.parking-lot"], Compute::One(parking_lot::compute)),
        (&["hpcc.int.packed"], Compute::One(packed::compute)),
        (&["hpcc.fig6"], Compute::One(fig6::compute)),
        (&["hpcc.fig13"], Compute::One(fig13::compute)),
        (&["hpcc.fig14"], Compute::One(fig14::compute)),
        (&["hpcc.micro"], Compute::One(micro::compute)),
        (&["hpcc.protected"], Compute::One(protected::compute)),
    ],
};

#[cfg(test)]
mod tests;
