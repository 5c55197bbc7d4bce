//! Links from hosts to their ToRs.

use crate::ShapeWiring;

/// Links from hosts to their ToRs (edge switches).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostLinks {
    /// There are no hosts.
    None,
    /// Each host has one link, to its ToR.
    Single,
    /// Each host has two links, to its ToR and to the other of a pair of ToRs. Numbers of a pair differ in the lowest bit.
    Dual,
}

impl HostLinks {
    /// Number of hosts where there is room for `hosts`.
    pub(crate) fn count(self, hosts: u32) -> u32 {
        if self == Self::None { 0 } else { hosts }
    }

    /// Number of links of each host.
    pub(crate) fn of_each(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Single => 1,
            Self::Dual => 2,
        }
    }

    /// ToRs of a host, by the first one's number.
    fn tors(self, tor: u32) -> impl Iterator<Item = u32> {
        let second = (self == Self::Dual).then_some(tor ^ 1);
        std::iter::once(tor).chain(second)
    }
}

impl ShapeWiring {
    /// Links the hosts of a block to the ToRs of the same block, `per_tor` in turn to each.
    pub(crate) fn link_hosts(&mut self, block: u32, per_tor: u32, links: HostLinks) {
        let first_tor = self.number(1, block, 0);
        for (number, host) in (0..).zip(self.block(0, block)) {
            self.links.extend(links.tors(number / per_tor).map(|tor| [host, first_tor + tor]));
        }
    }
}
