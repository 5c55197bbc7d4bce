//! LinkGuardian (SIGCOMM'23), run again: §4.1 and §4.6 on one link, §4.2 to §4.7 and App. B.3 within a network, §4.8
//! over a fleet of links.

mod fig2;
mod fig20;
mod monitoring;
mod sender_loop;
mod tab4;

use report::runner::Compute;

use crate::Paper;

pub(crate) const PAPER: Paper = Paper {
    name: "linkguardian",
    title: "LinkGuardian, reproduced",
    lead: "LinkGuardian masks corruption loss by retransmission on the link itself. These are the claims of its paper \
           (SIGCOMM 2023), each run again in hitless's simulator: the same protocol code that runs on real interfaces, \
           with TCP and RDMA on top. The paper's value stands beside ours, and what differs says why.",
    computations: &[
        (&["lg.fig2"], Compute::One(fig2::compute)),
        (&["lg.fig14.loop"], Compute::One(sender_loop::compute)),
        (&["lg.fig20"], Compute::One(fig20::compute)),
        (&["lg.tab4"], Compute::One(tab4::compute)),
        (&["lg.monitor"], Compute::One(monitoring::compute)),
    ],
};
