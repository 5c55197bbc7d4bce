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
    /// Groups that each group has links to, perhaps itself, with the expected gain of protecting those links.
    gains: Vec<BTreeMap<usize, f64>>,
    /// Gain of each if it were the next, with those that are upgraded and within itself.
    alone: Vec<f64>,
    upgraded: Vec<bool>,
}

pub(super) fn order(fabric: &Fabric, exposure: &Exposure) -> Vec<SwitchId> {
    let mut groups = Groups::new(fabric, exposure);
    let mut order = Vec::with_capacity(fabric.switches().len());
    while let Some(next) = groups.next() {
        for group in next {
            groups.upgrade(group);
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
        let alone = gains.iter().enumerate().map(|(group, gains)| gains.get(&group).copied().unwrap_or(0.0)).collect();
        Self { switches, gains, alone, upgraded }
    }

    fn upgrade(&mut self, group: usize) {
        self.upgraded[group] = true;
        for (other, gain) in &self.gains[group] {
            self.alone[*other] += gain;
        }
    }

    /// The group to upgrade next, or two.
    fn next(&self) -> Option<Vec<usize>> {
        let mut best: Option<(f64, usize, Option<usize>)> = None;
        let mut consider = |worth: f64, one: usize, other: Option<usize>| {
            if best.is_none_or(|(most, ..)| worth > most) {
                best = Some((worth, one, other));
            }
        };
        let open = |group: &usize| !self.upgraded[*group];
        let size = |group: usize| self.switches[group].len() as f64;
        for one in (0..self.switches.len()).filter(open) {
            consider(self.alone[one] / size(one), one, None);
            for (&other, gain) in self.gains[one].range(one + 1..).filter(|(other, _)| open(other)) {
                let worth = (self.alone[one] + self.alone[other] + gain) / (size(one) + size(other));
                consider(worth, one, Some(other));
            }
        }
        best.map(|(_, one, other)| [Some(one), other].into_iter().flatten().collect())
    }
}
