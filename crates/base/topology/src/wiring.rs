//! Nodes and links of any shape.

use std::ops::Range;

/// A node of a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShapeNode {
    /// 0 for hosts, 1 for the switches above them, and so on upwards.
    pub tier: u8,
    /// Pod, plane or other block of its tier that it belongs to, from 0.
    pub block: u32,
    /// Number within the block, from 0.
    pub number: u32,
}

impl ShapeNode {
    /// True for a host, false for a switch.
    pub const fn is_host(self) -> bool {
        self.tier == 0
    }
}

/// Numbers of nodes and links. No product of three 32-bit numbers overflows here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShapeSize {
    pub hosts: u128,
    pub switches: u128,
    pub links: u128,
}

impl ShapeSize {
    /// Number of hosts and switches.
    pub const fn nodes(&self) -> u128 {
        self.hosts + self.switches
    }
}

/// Nodes in the order of their numbers, and links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeWiring {
    pub nodes: Vec<ShapeNode>,
    /// Links in a defined order, each by the numbers of its ends; the lower end is first if one is lower.
    pub links: Vec<[u32; 2]>,
    /// Numbers of the nodes of each block, by tier.
    blocks: Vec<Vec<Range<u32>>>,
}

impl ShapeWiring {
    /// A wiring without nodes yet.
    ///
    /// # Panics
    ///
    /// If nodes cannot be numbered with 32 bits: the user of a shape must have checked its size.
    pub(crate) fn of_size(size: ShapeSize) -> Self {
        assert!(
            size.nodes() <= u128::from(u32::MAX),
            "the size of a shape must be checked before it is wired: {size:?}"
        );
        Self { nodes: Vec::with_capacity(size.nodes() as usize), links: Vec::new(), blocks: Vec::new() }
    }

    /// Numbers of the nodes in a block of a tier.
    pub fn block(&self, tier: u8, block: u32) -> Range<u32> {
        self.blocks[usize::from(tier)][block as usize].clone()
    }

    /// Number of a node.
    pub fn number(&self, tier: u8, block: u32, number: u32) -> u32 {
        self.blocks[usize::from(tier)][block as usize].start + number
    }

    /// Adds the next block of a tier, with this many nodes.
    pub(crate) fn add_block(&mut self, tier: u8, nodes: u32) {
        let place = usize::from(tier);
        if self.blocks.len() <= place {
            self.blocks.resize(place + 1, Vec::new());
        }
        let (block, first) = (self.blocks[place].len() as u32, self.nodes.len() as u32);
        self.blocks[place].push(first..first + nodes);
        self.nodes.extend((0..nodes).map(|number| ShapeNode { tier, block, number }));
    }

    /// Links every node of the lower block to every node of the upper one.
    pub(crate) fn link_all(&mut self, lower: Range<u32>, upper: Range<u32>) {
        self.links.extend(lower.flat_map(|low| upper.clone().map(move |up| [low, up])));
    }
}
