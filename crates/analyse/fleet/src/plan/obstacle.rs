//! Obstacles to disabling a link: the margin of paths of the ToRs below it.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::fabric::{LinkId, SwitchId};
use crate::paths::Paths;

/// The paths of a ToR to the top.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PathMargin {
    pub tor: String,
    /// Number of paths that it has, or would have.
    pub paths: u64,
    /// Paths with every link in service.
    pub of: u64,
    pub required: u64,
}

impl PathMargin {
    fn at(paths: &Paths<'_>, tor: SwitchId) -> Self {
        Self {
            tor: paths.fabric().switch(tor).name.clone(),
            paths: paths.ways(tor),
            of: paths.full(tor),
            required: paths.need(tor),
        }
    }
}

/// Obstacle that keeps a link in service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisableObstacle {
    /// Margin as it would be if the link went.
    pub room: PathMargin,
    /// Links out of service for want of which this ToR has fewer paths than it could.
    pub out: Vec<LinkId>,
}

/// Margin of the ToR nearest to its constraint, among those that would have paths over a link that is out of service. None
/// if there is no such ToR.
pub fn tightest(paths: &Paths<'_>, link: LinkId) -> Option<PathMargin> {
    let leads_up = paths.ways(paths.fabric().link(link).upper) > 0;
    tightest_tor(paths, link).filter(|_| leads_up).map(|tor| PathMargin::at(paths, tor))
}

/// Obstacle to disabling an enabled link as things are; `None` if it can go.
pub fn obstacle(paths: &mut Paths<'_>, link: LinkId) -> Option<DisableObstacle> {
    paths.disable(link);
    let tor = tightest_tor(paths, link).filter(|tor| !paths.is_satisfied(*tor));
    let found = tor.map(|tor| DisableObstacle { room: PathMargin::at(paths, tor), out: out_above(paths, tor, link) });
    paths.enable(link);
    found
}

/// ToRs that lack paths as things are.
pub(crate) fn lacking(paths: &Paths<'_>) -> Vec<PathMargin> {
    let tors = paths.fabric().segments().iter().flat_map(|segment| &segment.tors);
    tors.filter(|tor| !paths.is_satisfied(**tor)).map(|tor| PathMargin::at(paths, *tor)).collect()
}

fn tightest_tor(paths: &Paths<'_>, link: LinkId) -> Option<SwitchId> {
    let slack = |tor: &SwitchId| i128::from(paths.ways(*tor)) - i128::from(paths.need(*tor));
    tors_below(paths, link).into_iter().min_by_key(|tor| (slack(tor), *tor))
}

/// ToRs with a way up to the link's lower end.
fn tors_below(paths: &Paths<'_>, link: LinkId) -> Vec<SwitchId> {
    let fabric = paths.fabric();
    let mut below = vec![fabric.link(link).lower];
    let mut seen: BTreeSet<SwitchId> = below.iter().copied().collect();
    while let Some(switch) = below.pop() {
        let links = fabric.down(switch).iter().filter(|link| paths.is_enabled(**link));
        let lower = links.map(|link| fabric.link(*link).lower);
        below.extend(lower.filter(|lower| seen.insert(*lower)));
    }
    let tors = &fabric.segment_of(link).tors;
    tors.iter().filter(|tor| seen.contains(tor)).copied().collect()
}

/// Links out of service, other than `except`, that a ToR would have more paths with.
fn out_above(paths: &Paths<'_>, tor: SwitchId, except: LinkId) -> Vec<LinkId> {
    let fabric = paths.fabric();
    let (mut out, mut reached, mut seen) = (Vec::new(), vec![tor], BTreeSet::from([tor]));
    while let Some(switch) = reached.pop() {
        for &link in fabric.up(switch) {
            let upper = fabric.link(link).upper;
            if paths.is_enabled(link) {
                if seen.insert(upper) {
                    reached.push(upper);
                }
            } else if link != except && paths.ways(upper) > 0 {
                out.push(link);
            }
        }
    }
    out.sort_unstable();
    out
}
