//! The order that expects the most of every switch.
//!
//! Switches are upgraded in groups: those of a plane that are in one pod and on one level, the tops of a plane, the ToRs of
//! a pod. One group alone may gain nothing, because a link needs both its ends; so each step takes the group, or two groups
//! with links between them, that gain most for each switch.

use std::collections::BTreeMap;

use crate::fabric::{Fabric, SwitchId};

use super::exposure::Exposure;
use super::{level_of, planes};

struct Groups {
    switches: Vec<Vec<SwitchId>>,
    /// For each group, those it has links to and what protecting these is expected to gain; itself perhaps included.
    gains: Vec<BTreeMap<usize, f64>>,
    upgraded: Vec<bool>,
}

pub(super) fn order(fabric: &Fabric, exposure: &Exposure) -> Vec<SwitchId> {
    let mut groups = Groups::new(fabric, exposure);
    let mut order = Vec::with_capacity(fabric.switches().len());
    while let Some(next) = groups.next() {
        for group in next {
            groups.upgraded[group] = true;
            order.extend(&groups.switches[group]);
        }
    }
    order
}

impl Groups {
    fn new(fabric: &Fabric, exposure: &Exposure) -> Self {
        let planes = planes(fabric);
        let key = |switch: SwitchId| (fabric.switch(switch).segment, level_of(fabric, switch), planes[switch.index()]);
        let mut numbers = BTreeMap::new();
        let mut switches: Vec<Vec<SwitchId>> = Vec::new();
        let mut group_of = Vec::with_capacity(fabric.switches().len());
        for switch in (0..fabric.switches().len() as u32).map(SwitchId) {
            let number = *numbers.entry(key(switch)).or_insert(switches.len());
            if number == switches.len() {
                switches.push(Vec::new());
            }
            switches[number].push(switch);
            group_of.push(number);
        }
        let mut gains = vec![BTreeMap::new(); switches.len()];
        for (link, gain) in fabric.links().iter().zip(exposure.expected_gains(fabric)) {
            let [one, other] = [link.lower, link.upper].map(|switch| group_of[switch.index()]);
            *gains[one].entry(other).or_insert(0.0) += gain;
            if one != other {
                *gains[other].entry(one).or_insert(0.0) += gain;
            }
        }
        let upgraded = vec![false; switches.len()];
        Self { switches, gains, upgraded }
    }

    /// The groups to upgrade next.
    fn next(&self) -> Option<Vec<usize>> {
        let open: Vec<usize> = (0..self.switches.len()).filter(|group| !self.upgraded[*group]).collect();
        let alone = open.iter().map(|group| vec![*group]);
        let pairs = open.iter().flat_map(|&one| {
            let others = self.gains[one].keys().filter(move |other| **other > one && !self.upgraded[**other]);
            others.map(move |other| vec![one, *other])
        });
        let mut best: Option<(f64, Vec<usize>)> = None;
        for groups in alone.chain(pairs) {
            let worth = self.worth(&groups);
            if best.as_ref().is_none_or(|(most, _)| worth > *most) {
                best = Some((worth, groups));
            }
        }
        best.map(|(_, groups)| groups)
    }

    /// Expected gain for each switch.
    fn worth(&self, groups: &[usize]) -> f64 {
        let mut gain = 0.0;
        for (place, group) in groups.iter().enumerate() {
            let counted = |other: &usize| self.upgraded[*other] || groups[..=place].contains(other);
            gain += self.gains[*group].iter().filter(|(other, _)| counted(other)).map(|(_, gain)| gain).sum::<f64>();
        }
        gain / groups.iter().map(|group| self.switches[*group].len()).sum::<usize>() as f64
    }
}
