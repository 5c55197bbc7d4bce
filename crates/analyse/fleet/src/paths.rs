//! Ways from every switch up to the top, kept up to date as links go and come.
//!
//! LinkGuardian §2, after CorrOpt: a ToR's capacity is the number of its valley-free paths to the top, and the
//! constraint is the share of them that must stay. When a link goes, its lower switch loses as many ways as the upper one
//! has, and so does everything below, once for each way down: nothing else is touched. In a pod of two levels an update
//! costs as many steps as there are ToRs below the link, in a deeper one as many as the pod has links.
//!
//! Invariant: `ways[s]` is the sum of `ways[u]` over the enabled links from `s` to `u`, and 1 for a top switch.

use crate::fabric::{Fabric, FabricLink, LinkId, SwitchId};

/// The share of a ToR's paths that must stay.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Constraint(f64);

impl Constraint {
    /// Makes a constraint from a share from 0 to 1.
    pub fn new(share: f64) -> Option<Self> {
        (0.0..=1.0).contains(&share).then_some(Self(share))
    }

    pub fn share(self) -> f64 {
        self.0
    }

    /// Number of `paths` paths that must stay.
    fn of(self, paths: u64) -> u64 {
        // 0.7 of 10 is 7, also where the product comes out a hair above it.
        (paths as f64 * self.0 - 1e-9).ceil() as u64
    }
}

#[derive(Clone, Debug)]
pub struct Paths<'f> {
    fabric: &'f Fabric,
    enabled: Vec<bool>,
    ways: Vec<u64>,
    /// Paths of each switch with every link enabled.
    full: Vec<u64>,
    /// Number of paths that a ToR must keep; zero for other switches.
    need: Vec<u64>,
    /// Effect of a change on each switch, while it is under way; zero between changes.
    share: Vec<u64>,
    /// Switches on which it has any effect.
    touched: Vec<SwitchId>,
}

impl<'f> Paths<'f> {
    /// All links enabled.
    pub fn new(fabric: &'f Fabric, constraint: Constraint) -> Self {
        let ways = fabric.ways();
        let mut need = vec![0; ways.len()];
        for tor in fabric.segments().iter().flat_map(|segment| &segment.tors) {
            need[tor.index()] = constraint.of(ways[tor.index()]);
        }
        let enabled = vec![true; fabric.links().len()];
        let share = vec![0; ways.len()];
        Self { fabric, enabled, full: ways.clone(), ways, need, share, touched: Vec::new() }
    }

    pub fn fabric(&self) -> &'f Fabric {
        self.fabric
    }

    #[inline]
    pub fn is_enabled(&self, link: LinkId) -> bool {
        self.enabled[link.index()]
    }

    /// Number of paths to the top over links in service.
    #[inline]
    pub fn ways(&self, switch: SwitchId) -> u64 {
        self.ways[switch.index()]
    }

    /// Number of paths to the top with every link in service.
    pub fn full(&self, switch: SwitchId) -> u64 {
        self.full[switch.index()]
    }

    /// Number of paths to the top that must stay.
    #[inline]
    pub fn need(&self, switch: SwitchId) -> u64 {
        self.need[switch.index()]
    }

    #[inline]
    pub(crate) fn is_satisfied(&self, tor: SwitchId) -> bool {
        self.ways(tor) >= self.need(tor)
    }

    /// CorrOpt's fast checker: whether the link can go without any ToR falling below its constraint.
    pub fn can_disable(&mut self, link: LinkId) -> bool {
        self.in_the_way(link).is_none()
    }

    /// A ToR that would lose paths and then have too few if the link went, and how many; none if the link can go.
    pub fn in_the_way(&mut self, link: LinkId) -> Option<(SwitchId, u64)> {
        assert!(self.is_enabled(link), "a link that is already disabled was checked");
        let &FabricLink { lower, upper, .. } = self.fabric.link(link);
        let lost = self.ways(upper);
        if lost == 0 {
            return None;
        }
        if self.fabric.down(lower).is_empty() {
            let left = self.ways(lower) - lost;
            return (left < self.need(lower)).then_some((lower, left));
        }
        self.spread(lower, lost);
        let mut found = None;
        for switch in self.touched.drain(..) {
            let left = self.ways[switch.index()] - std::mem::take(&mut self.share[switch.index()]);
            if left < self.need[switch.index()] && found.is_none() {
                found = Some((switch, left));
            }
        }
        found
    }

    pub fn disable(&mut self, link: LinkId) {
        assert!(std::mem::replace(&mut self.enabled[link.index()], false), "a link was disabled twice");
        let &FabricLink { lower, upper, .. } = self.fabric.link(link);
        self.spread(lower, self.ways(upper));
        for switch in self.touched.drain(..) {
            self.ways[switch.index()] -= std::mem::take(&mut self.share[switch.index()]);
        }
    }

    pub fn enable(&mut self, link: LinkId) {
        assert!(!std::mem::replace(&mut self.enabled[link.index()], true), "a link was enabled twice");
        let &FabricLink { lower, upper, .. } = self.fabric.link(link);
        self.spread(lower, self.ways(upper));
        for switch in self.touched.drain(..) {
            self.ways[switch.index()] += std::mem::take(&mut self.share[switch.index()]);
        }
    }

    /// Notes what `ways` more or fewer at a switch mean for it and for each switch below, once for each way down to it.
    fn spread(&mut self, switch: SwitchId, ways: u64) {
        if ways == 0 {
            return;
        }
        let fabric = self.fabric;
        self.touch(switch, ways);
        match fabric.switch(switch).level {
            0 => {}
            1 => {
                for &link in fabric.down(switch) {
                    if self.enabled[link.index()] {
                        self.touch(fabric.link(link).lower, ways);
                    }
                }
            }
            _ => self.spread_deep(switch),
        }
    }

    /// Updates paths from the top down, so that a switch is complete before those below it are computed.
    fn spread_deep(&mut self, switch: SwitchId) {
        let fabric = self.fabric;
        let Some(segment) = fabric.switch(switch).segment else { return };
        let below = fabric.segments()[segment as usize].switches.iter().skip_while(|other| **other != switch).skip(1);
        for &other in below {
            let up = fabric.up(other).iter().filter(|link| self.enabled[link.index()]);
            let share: u64 = up.map(|&link| self.share[fabric.link(link).upper.index()]).sum();
            if share > 0 {
                self.touch(other, share);
            }
        }
    }

    fn touch(&mut self, switch: SwitchId, ways: u64) {
        let share = &mut self.share[switch.index()];
        if *share == 0 {
            self.touched.push(switch);
        }
        *share += ways;
    }
    /// Panics if the module's invariant does not hold, or a change was left unfinished. Checks nothing in release builds.
    pub fn check_invariants(&self) {
        if !cfg!(debug_assertions) {
            return;
        }
        assert!(self.touched.is_empty() && self.share.iter().all(|share| *share == 0), "a change was left unfinished");
        for switch in (0..self.ways.len() as u32).map(SwitchId) {
            let up = self.fabric.up(switch).iter().filter(|link| self.is_enabled(**link));
            let sum: u64 = up.map(|link| self.ways(self.fabric.link(*link).upper)).sum();
            let ways = if self.fabric.is_top(switch) { 1 } else { sum };
            assert_eq!(self.ways(switch), ways, "ways up from {switch:?}");
        }
    }
}
