//! Partial deployment: only some switches can protect their links. LinkGuardian (SIGCOMM'23) §5 leaves open which
//! order of upgrades pays most.
//!
//! Decisions to disable do not depend on protection, because the optimizer weighs the losses of unprotected links. Hence one
//! simulated year gives the cost of every link that had to stay, with and without protection ([`Exposure`]), and the penalty
//! of any set of upgraded switches is a sum over links. A link is protected if both its ends are.
//!
//! | file | what it does |
//! | --- | --- |
//! | `exposure` | what each link costs in a year |
//! | `greedy` | the order that expects the most of every switch |

mod exposure;
mod greedy;
pub mod report;

use std::fmt;
use std::str::FromStr;

use faults::Random;
use serde::Serialize;
use units::ParseError;

use crate::fabric::{Fabric, SwitchId};

pub use exposure::Exposure;

/// Order in which switches are upgraded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpgradeOrder {
    /// Switches in random order.
    Random,
    /// Pod by pod, and the top last.
    Pods,
    /// The top, and then pod by pod.
    TopPods,
    /// Plane by plane, and the ToRs last. A plane is what holds together without the ToRs.
    Planes,
    /// Level by level; 0 are the ToRs.
    Levels(Vec<u8>),
    /// Next come the switches that are expected to gain most for each switch.
    Greedy,
}

/// More levels than this have too many permutations to look at.
const MOST_PERMUTED: usize = 4;

impl UpgradeOrder {
    /// All that differ on this fabric.
    pub fn all(fabric: &Fabric) -> Vec<Self> {
        let levels = levels(fabric);
        let mut orders = vec![Self::Greedy, Self::Pods, Self::TopPods, Self::Planes, Self::Random];
        let permutations = if levels.len() <= MOST_PERMUTED {
            permutations(&levels)
        } else {
            vec![levels.clone(), levels.iter().rev().copied().collect()]
        };
        orders.extend(permutations.into_iter().map(Self::Levels));
        orders
    }

    /// All switches, the first to be upgraded first. Fails if the order does not fit this fabric.
    pub fn switches(&self, fabric: &Fabric, exposure: &Exposure, seed: u64) -> Result<Vec<SwitchId>, ParseError> {
        let all = || (0..fabric.switches().len() as u32).map(SwitchId);
        let tops = || all().filter(|switch| fabric.is_top(*switch));
        let of_pods = || fabric.segments().iter().flat_map(|segment| segment.switches.iter().copied());
        Ok(match self {
            Self::Random => shuffled(all().collect(), seed),
            Self::Pods => of_pods().chain(tops()).collect(),
            Self::TopPods => tops().chain(of_pods()).collect(),
            Self::Planes => {
                let planes = planes(fabric);
                let is_tor = |switch: &SwitchId| planes[switch.index()].is_none();
                let mut of_planes: Vec<SwitchId> = all().filter(|switch| !is_tor(switch)).collect();
                of_planes.sort_by_key(|switch| planes[switch.index()]);
                of_planes.into_iter().chain(all().filter(is_tor)).collect()
            }
            Self::Levels(levels) => {
                let mut sorted = levels.clone();
                sorted.sort_unstable();
                if sorted != self::levels(fabric) {
                    return Err(ParseError::new("each level of the topology once"));
                }
                let place = |switch: &SwitchId| levels.iter().position(|level| *level == level_of(fabric, *switch));
                let mut switches: Vec<SwitchId> = all().collect();
                switches.sort_by_key(place);
                switches
            }
            Self::Greedy => greedy::order(fabric, exposure),
        })
    }
}

impl fmt::Display for UpgradeOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Random => f.pad("random"),
            Self::Pods => f.pad("pods"),
            Self::TopPods => f.pad("top-pods"),
            Self::Planes => f.pad("planes"),
            Self::Levels(levels) => {
                let levels: Vec<String> = levels.iter().map(u8::to_string).collect();
                f.pad(&format!("levels:{}", levels.join("-")))
            }
            Self::Greedy => f.pad("greedy"),
        }
    }
}

impl FromStr for UpgradeOrder {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        const EXPECTED: ParseError =
            ParseError::new("greedy, pods, top-pods, planes, random, or levels such as levels:1-0-2");
        match text {
            "random" => Ok(Self::Random),
            "pods" => Ok(Self::Pods),
            "top-pods" => Ok(Self::TopPods),
            "planes" => Ok(Self::Planes),
            "greedy" => Ok(Self::Greedy),
            _ => {
                let levels = text.strip_prefix("levels:").ok_or(EXPECTED)?.split('-');
                let levels: Result<Vec<u8>, ParseError> =
                    levels.map(|level| level.parse().map_err(|_| EXPECTED)).collect();
                levels.map(Self::Levels)
            }
        }
    }
}

/// Gain of an order of upgrades over its course.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UpgradeCurve {
    pub order: String,
    pub points: Vec<UpgradePoint>,
    /// Mean of the penalty over all shares, relative to that without any upgrade: less is better.
    pub area: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct UpgradePoint {
    /// Share of all switches that are upgraded.
    pub share: f64,
    pub switches: usize,
    /// Links that can be protected.
    pub links: usize,
    /// Averaged over time; of corrupting links.
    pub mean_penalty: f64,
}

/// The curve of an order, at `steps` equal steps from no switch to all.
pub fn curve(fabric: &Fabric, exposure: &Exposure, name: &str, switches: &[SwitchId], steps: usize) -> UpgradeCurve {
    let points: Vec<UpgradePoint> = (0..=steps)
        .map(|step| {
            let share = step as f64 / steps as f64;
            let capable = capable(fabric, switches, share);
            let links = fabric.links().iter();
            UpgradePoint {
                share,
                switches: capable.iter().filter(|capable| **capable).count(),
                links: links.filter(|link| capable[link.lower.index()] && capable[link.upper.index()]).count(),
                mean_penalty: exposure.mean_penalty(fabric, &capable),
            }
        })
        .collect();
    let first = points.first().map_or(0.0, |point| point.mean_penalty);
    let trapezia = points.windows(2).map(|pair| (pair[0].mean_penalty + pair[1].mean_penalty) / 2.0).sum::<f64>();
    let area = if first > 0.0 { trapezia / steps as f64 / first } else { 1.0 };
    UpgradeCurve { order: name.to_owned(), points, area }
}

/// Marks each switch that is among the first `share` of them.
pub fn capable(fabric: &Fabric, switches: &[SwitchId], share: f64) -> Vec<bool> {
    let mut capable = vec![false; fabric.switches().len()];
    let count = (share * switches.len() as f64).round() as usize;
    switches.iter().take(count).for_each(|switch| capable[switch.index()] = true);
    capable
}

/// All tops are on one level, regardless of what is below them.
fn level_of(fabric: &Fabric, switch: SwitchId) -> u8 {
    if fabric.is_top(switch) { top_level(fabric) } else { fabric.switch(switch).level }
}

fn top_level(fabric: &Fabric) -> u8 {
    fabric.switches().iter().map(|switch| switch.level).max().unwrap_or_default()
}

fn levels(fabric: &Fabric) -> Vec<u8> {
    let mut levels: Vec<u8> =
        (0..fabric.switches().len() as u32).map(|switch| level_of(fabric, SwitchId(switch))).collect();
    levels.sort_unstable();
    levels.dedup();
    levels
}

fn permutations(levels: &[u8]) -> Vec<Vec<u8>> {
    let [] = levels else {
        let first = |at: usize| {
            let mut rest = levels.to_vec();
            let level = rest.remove(at);
            permutations(&rest).into_iter().map(move |rest| [vec![level], rest].concat())
        };
        return (0..levels.len()).flat_map(first).collect();
    };
    vec![Vec::new()]
}

/// Fisher and Yates.
fn shuffled(mut switches: Vec<SwitchId>, seed: u64) -> Vec<SwitchId> {
    let mut random = Random::new(seed, 0);
    for last in (1..switches.len()).rev() {
        switches.swap(last, (random.unit() * (last + 1) as f64) as usize);
    }
    switches
}

/// The plane of each switch, numbered by its first; none for a ToR.
fn planes(fabric: &Fabric) -> Vec<Option<u32>> {
    let mut planes = vec![None; fabric.switches().len()];
    let mut is_tor = vec![false; planes.len()];
    fabric.segments().iter().flat_map(|segment| &segment.tors).for_each(|tor| is_tor[tor.index()] = true);
    let mut count = 0;
    for first in (0..planes.len() as u32).map(SwitchId) {
        if is_tor[first.index()] || planes[first.index()].is_some() {
            continue;
        }
        planes[first.index()] = Some(count);
        let mut found = vec![first];
        while let Some(switch) = found.pop() {
            let up = fabric.up(switch).iter().map(|link| fabric.link(*link).upper);
            let down = fabric.down(switch).iter().map(|link| fabric.link(*link).lower);
            for other in up.chain(down) {
                if !is_tor[other.index()] && planes[other.index()].is_none() {
                    planes[other.index()] = Some(count);
                    found.push(other);
                }
            }
        }
        count += 1;
    }
    planes
}
