//! Fabrics that papers use: the shapes of `topology`, with names and rates.

use topology::{HostLinks, LeafSpine, NodeOrder, PodNames, Pods, ShapeNode, ShapeSize, ShapeWiring, jupiter};
use units::Rate;

use super::error::{MOST_LINKS, MOST_SWITCHES};
use super::{Fabric, FabricError, FabricNode, FabricWire, SwitchId};

/// Facebook's fabric (Andreyev, 2014), as in LinkGuardian (SIGCOMM'23) Fig. 4: pods of ToRs and fabric switches, every
/// ToR linked to every fabric switch of its pod. Fabric switch f of every pod is linked to all spines of plane f.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facebook {
    pub pods: u32,
    /// ToRs in each pod.
    pub tors: u32,
    /// Fabric switches in each pod, one for each plane.
    pub fabrics: u32,
    /// Spines in each plane.
    pub spines: u32,
    pub rate: Rate,
}

impl Facebook {
    /// Fabric of this many pods of the paper's size, all links 100G; 261 have 100,224 links.
    pub const fn pods(pods: u32) -> Self {
        let Pods { lower, upper, tops, .. } = Pods::facebook(pods, HostLinks::None);
        Self { pods, tors: lower, fabrics: upper, spines: tops, rate: Rate::gbps(100) }
    }
}

impl Fabric {
    /// Switches are `pod<p>/tor<t>`, `pod<p>/fabric<f>` and `plane<f>/spine<s>`; segments are `pod<p>`.
    pub fn facebook(shape: &Facebook) -> Result<Self, FabricError> {
        let &Facebook { pods, tors, fabrics, spines, rate } = shape;
        expect(
            pods >= 1 && tors >= 1 && fabrics >= 1 && spines >= 1,
            "at least one pod, one ToR and one fabric switch per pod, and one spine per plane",
        )?;
        let usual = Pods::facebook(pods, HostLinks::None);
        Self::of_pods(&Pods { lower: tors, upper: fabrics, tops: spines, ..usual }, PodNames::Facebook, rate)
    }

    /// Al-Fares et al. (SIGCOMM'08): k pods of k/2 edge and k/2 aggregation switches, and k²/4 cores. Switches are
    /// `pod<p>/edge<e>`, `pod<p>/agg<a>` and `core<c>`.
    pub fn fat_tree(k: u32, rate: Rate) -> Result<Self, FabricError> {
        let tree = Pods::fat_tree(k, HostLinks::None);
        let tree = tree.ok_or(FabricError::Shape("an even number of ports per switch, at least 2"))?;
        Self::of_pods(&tree, PodNames::FatTree, rate)
    }

    /// Google's Jupiter (Singh et al., SIGCOMM'15), without hosts: 22,528 chips and 229,376 links, wired and named as
    /// `topology::jupiter` has it. Five tiers, from the ToRs to the upper chips of spine blocks.
    pub fn jupiter(rate: Rate) -> Result<Self, FabricError> {
        Self::wired(&jupiter::wiring(HostLinks::None), jupiter::name, rate)
    }

    /// Every leaf linked to every spine: `leaf<l>`, `spine<s>`. Each leaf is a segment.
    pub fn leaf_spine(leaves: u32, spines: u32, rate: Rate) -> Result<Self, FabricError> {
        expect(leaves >= 1 && spines >= 1, "at least one leaf and one spine")?;
        let shape = LeafSpine { leaves, spines, hosts: 0 };
        check_size(shape.size())?;
        let name = |ShapeNode { tier, number, .. }| format!("{}{number}", if tier == 1 { "leaf" } else { "spine" });
        Self::wired(&shape.wiring(), name, rate)
    }

    fn of_pods(pods: &Pods, names: PodNames, rate: Rate) -> Result<Self, FabricError> {
        check_size(pods.size())?;
        Self::wired(&pods.wiring(NodeOrder::Pods), |node| pods.name(names, node), rate)
    }

    /// The fabric of a shape without hosts, all of whose links have this rate.
    fn wired(wiring: &ShapeWiring, name: impl Fn(ShapeNode) -> String, rate: Rate) -> Result<Self, FabricError> {
        let names = wiring.nodes.iter().map(|node| FabricNode::from(name(*node)));
        let wire = |&[lower, upper]: &[u32; 2]| FabricWire::new(SwitchId(lower), SwitchId(upper)).with_rate(rate);
        Self::new(names, wiring.links.iter().map(wire))
    }
}

fn expect(holds: bool, expected: &'static str) -> Result<(), FabricError> {
    if holds { Ok(()) } else { Err(FabricError::Shape(expected)) }
}

fn check_size(ShapeSize { switches, links, .. }: ShapeSize) -> Result<(), FabricError> {
    if switches <= u128::from(MOST_SWITCHES) && links <= u128::from(MOST_LINKS) {
        return Ok(());
    }
    let [switches, links] = [switches, links].map(|count| u64::try_from(count).unwrap_or(u64::MAX));
    Err(FabricError::TooLarge { switches, links })
}
