//! LinkGuardian (SIGCOMM'23), run again: §4.1 and §4.6 on one link, §4.2 to §4.7 and App. B.3 within a network, §4.8
//! over a fleet of links.

use crate::Paper;

pub(crate) const PAPER: Paper = Paper {
    name: "linkguardian",
    title: "LinkGuardian, reproduced",
    lead: "LinkGuardian masks corruption loss by retransmission on the link itself. These are the claims of its paper \
           (SIGCOMM 2023), each run again in hitless's simulator: the same protocol code that runs on real interfaces, \
           with TCP and RDMA on top. The paper's value stands beside ours, and what differs says why.",
    computations: &[],
};
