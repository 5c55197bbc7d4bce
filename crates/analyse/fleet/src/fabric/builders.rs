//! Fabrics that papers use.

use clock::graph::{Graph, HostLinks};
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
        Self { pods, tors: 48, fabrics: 4, spines: 48, rate: Rate::gbps(100) }
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
        let names =
            FabricTiers { names: ["pod", "/tor", "/fabric"], top: |plane, spine| format!("plane{plane}/spine{spine}") };
        names.build(pods, tors, fabrics, spines, rate)
    }

    /// Al-Fares et al. (SIGCOMM'08): k pods of k/2 edge and k/2 aggregation switches, and k²/4 cores. Switches are
    /// `pod<p>/edge<e>`, `pod<p>/agg<a>` and `core<c>`.
    pub fn fat_tree(k: u32, rate: Rate) -> Result<Self, FabricError> {
        expect(k >= 2 && k.is_multiple_of(2), "an even number of ports per switch, at least 2")?;
        let half = k / 2;
        let names = FabricTiers {
            names: ["pod", "/edge", "/agg"],
            top: move |group, core| format!("core{}", group * half + core),
        };
        names.build(k, half, half, half, rate)
    }

    /// Google's Jupiter (Singh et al., SIGCOMM'15), without hosts: 22,528 chips and 229,376 links, wired and named as
    /// [`Graph::jupiter`] has it. Five tiers, from the ToRs to the upper chips of spine blocks.
    pub fn jupiter(rate: Rate) -> Result<Self, FabricError> {
        let graph = Graph::jupiter(HostLinks::None).map_err(|_| FabricError::Shape("Jupiter's numbers"))?;
        let names = graph.nodes().map(|node| FabricNode::from(graph.name(node).to_owned()));
        let wires = graph.links().map(|link| {
            let [lower, upper] = graph.ends(link);
            FabricWire::new(SwitchId(lower.0), SwitchId(upper.0)).with_rate(rate)
        });
        Self::new(names, wires)
    }

    /// Every leaf linked to every spine: `leaf<l>`, `spine<s>`. Each leaf is a segment.
    pub fn leaf_spine(leaves: u32, spines: u32, rate: Rate) -> Result<Self, FabricError> {
        expect(leaves >= 1 && spines >= 1, "at least one leaf and one spine")?;
        let [l, s] = [leaves, spines].map(u128::from);
        fits(l + s, l * s)?;
        let leaf_names = (0..leaves).map(|leaf| format!("leaf{leaf}"));
        let names = leaf_names.chain((0..spines).map(|spine| format!("spine{spine}"))).map(FabricNode::from);
        let wires = (0..leaves).flat_map(|leaf| {
            (0..spines).map(move |spine| FabricWire::new(SwitchId(leaf), SwitchId(leaves + spine)).with_rate(rate))
        });
        Self::new(names, wires)
    }
}

fn expect(holds: bool, expected: &'static str) -> Result<(), FabricError> {
    if holds { Ok(()) } else { Err(FabricError::Shape(expected)) }
}

fn fits(switches: u128, links: u128) -> Result<(), FabricError> {
    if switches <= u128::from(MOST_SWITCHES) && links <= u128::from(MOST_LINKS) {
        return Ok(());
    }
    let [switches, links] = [switches, links].map(|count| u64::try_from(count).unwrap_or(u64::MAX));
    Err(FabricError::TooLarge { switches, links })
}

/// Three tiers: within a pod every lower switch is linked to every upper one; the n-th upper switch of every pod is
/// linked to the n-th group of tops.
struct FabricTiers<Top> {
    /// Names of a pod, a lower switch in it, an upper switch in it.
    names: [&'static str; 3],
    /// Name of a top switch, by its group and its place there.
    top: Top,
}

impl<Top: Fn(u32, u32) -> String> FabricTiers<Top> {
    fn build(&self, pods: u32, lower: u32, upper: u32, tops: u32, rate: Rate) -> Result<Fabric, FabricError> {
        // No product of three 32-bit numbers overflows here.
        let [p, l, u, t] = [pods, lower, upper, tops].map(u128::from);
        fits(p * (l + u) + u * t, p * u * (l + t))?;
        let [pod_name, low_name, up_name] = self.names;
        let mut names = Vec::new();
        for pod in 0..pods {
            names.extend((0..lower).map(|number| FabricNode::from(format!("{pod_name}{pod}{low_name}{number}"))));
            names.extend((0..upper).map(|number| FabricNode::from(format!("{pod_name}{pod}{up_name}{number}"))));
        }
        let first_top = names.len() as u32;
        for group in 0..upper {
            names.extend((0..tops).map(|number| FabricNode::from((self.top)(group, number))));
        }
        let mut wires = Vec::with_capacity((pods * upper * (lower + tops)) as usize);
        let mut wire = |low, up| wires.push(FabricWire::new(SwitchId(low), SwitchId(up)).with_rate(rate));
        for pod in 0..pods {
            let first_low = pod * (lower + upper);
            let first_up = first_low + lower;
            (0..lower).for_each(|low| (0..upper).for_each(|up| wire(first_low + low, first_up + up)));
            (0..upper).for_each(|up| (0..tops).for_each(|top| wire(first_up + up, first_top + up * tops + top)));
        }
        Fabric::new(names, wires)
    }
}
