//! Leaves and spines, and chains of switches.

use crate::{HostLinks, ShapeSize, ShapeWiring};

/// Leaves, each linked to every spine and to hosts of its own. Without spines it is racks that nothing joins, or one switch.
///
/// Hosts come first, then leaves (tier 1), then spines (tier 2), each tier in one block. Links of hosts come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeafSpine {
    pub leaves: u32,
    pub spines: u32,
    /// Hosts at each leaf, with one link each.
    pub hosts: u32,
}

impl LeafSpine {
    /// Numbers of nodes and links.
    pub fn size(&self) -> ShapeSize {
        let [leaves, spines, hosts] = [self.leaves, self.spines, self.hosts].map(u128::from);
        ShapeSize { hosts: leaves * hosts, switches: leaves + spines, links: leaves * (hosts + spines) }
    }

    /// Nodes and links; the size must have been checked.
    pub fn wiring(&self) -> ShapeWiring {
        let mut wiring = ShapeWiring::of_size(self.size());
        for (tier, nodes) in [(0, self.leaves * self.hosts), (1, self.leaves), (2, self.spines)] {
            wiring.add_block(tier, nodes);
        }
        wiring.link_hosts(0, self.hosts, HostLinks::Single);
        wiring.link_all(wiring.block(1, 0), wiring.block(2, 0));
        wiring
    }
}

/// Switches in a row (tier 1) between two hosts, which come first. Links are those of the way from one host to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchChain {
    pub switches: u32,
}

impl SwitchChain {
    /// Numbers of nodes and links.
    pub fn size(&self) -> ShapeSize {
        let switches = u128::from(self.switches);
        ShapeSize { hosts: 2, switches, links: switches + 1 }
    }

    /// Nodes and links; the size must have been checked.
    pub fn wiring(&self) -> ShapeWiring {
        let mut wiring = ShapeWiring::of_size(self.size());
        wiring.add_block(0, 2);
        wiring.add_block(1, self.switches);
        let way: Vec<u32> = [0].into_iter().chain(wiring.block(1, 0)).chain([1]).collect();
        wiring.links.extend(way.windows(2).map(|hop| [hop[0], hop[1]]));
        wiring
    }
}
