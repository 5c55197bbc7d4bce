//! Loops: a flow that crosses a link both ways, and the thesis's cycles (li-thesis §4.6.1).
//!
//! No path of one flow leads over a link and back, so a 5-tuple that is counted both ways in one slot goes round, and no route
//! has to be known. It is sure if more packets cross the link than came to it. Longer circles go over no link twice; there the
//! switches of the flow must form a cycle, with twice the packets inside that came from hosts in this slot and the one before.

use std::collections::BTreeMap;

use super::{AccusedFlows, RuleInput};
use crate::fabricmap::findings::{FindingEvidence, FindingKind, FindingLog};
use crate::fabricmap::picture::{IN, OUT, WayPicture};
use crate::fabricmap::ports::{EndOfLink, FabricPorts};
use crate::flowmap::{self, FlowmapThresholds, SlotView};
use crate::flowset::FlowKey;

#[derive(Debug)]
pub(super) struct CircleRule {
    neighbours: Vec<Vec<usize>>,
    /// Packets of flows that came in from outside the fabric: in the slot before.
    entered: BTreeMap<FlowKey, u64>,
}

impl CircleRule {
    pub(super) fn new(fabric: &FabricPorts) -> Self {
        Self { neighbours: fabric.neighbours(), entered: BTreeMap::new() }
    }

    /// The flows that go round in this slot.
    pub(super) fn on_slot(&mut self, input: &RuleInput<'_>, log: &mut FindingLog) -> AccusedFlows {
        let mut looping = AccusedFlows::new();
        let entered = entered(input);
        for link in 0..input.fabric.links().len() {
            self.both_ways(input, link, &entered, &mut looping, log);
        }
        self.cycles(input, &entered, &mut looping, log);
        self.entered = entered;
        looping
    }

    fn both_ways(
        &self,
        input: &RuleInput<'_>,
        link: usize,
        entered: &BTreeMap<FlowKey, u64>,
        looping: &mut AccusedFlows,
        log: &mut FindingLog,
    ) {
        // Either end shows it; both need not be metered.
        let Some((end, round)) = [0, 1].iter().find_map(|end| {
            let ways = [OUT, IN].map(|way| input.picture.at((link, *end), way));
            let [Some(out), Some(came)] = ways else { return None };
            let round = in_both(out, came);
            (!round.is_empty()).then_some((*end, round))
        }) else {
            return;
        };
        let is_sure = round.iter().any(|(flow, inside)| {
            let came = self.came_to(input, (link, end), flow, entered);
            came > 0 && *inside >= 2 * came
        });
        looping.extend(round.iter().map(|(flow, _)| *flow));
        log.note(FindingEvidence {
            kind: FindingKind::Loop,
            place: input.hop((link, 0)),
            why: "both-ways",
            is_sure,
            since: input.begin,
            until: input.end,
            flows: round,
        });
    }

    /// Packets of a flow that came to a link from elsewhere: by other ports of its two switches, at most. Those of the slot
    /// before may still go round.
    fn came_to(
        &self,
        input: &RuleInput<'_>,
        (link, _): EndOfLink,
        flow: &FlowKey,
        entered: &BTreeMap<FlowKey, u64>,
    ) -> u64 {
        let switches = [0, 1].map(|end| input.fabric.switch_of((link, end)));
        let ports = switches
            .iter()
            .filter_map(|switch| input.picture.switches[*switch].as_ref())
            .flat_map(|switch| &switch.ports);
        let others = ports.filter(|port| port.link.is_none_or(|(other, _)| other != link));
        let counts = others.filter_map(|port| port.ways[IN].of(flow)?.packets);
        let now: u64 = counts.map(u64::from).sum();
        let before = self.entered.get(flow).copied().unwrap_or(0);
        now.max(entered.get(flow).copied().unwrap_or(0)) + before
    }

    fn cycles(
        &self,
        input: &RuleInput<'_>,
        entered: &BTreeMap<FlowKey, u64>,
        looping: &mut AccusedFlows,
        log: &mut FindingLog,
    ) {
        let view = self.suspects(input, entered, looping);
        let mut found: BTreeMap<Vec<usize>, Vec<(FlowKey, u64)>> = BTreeMap::new();
        for circle in flowmap::loops(&view, &self.neighbours, &|_| Vec::new(), &FlowmapThresholds::default()) {
            let counts = view.of(&circle.flow);
            let least = circle.switches.iter().filter_map(|switch| *counts?.get(switch)?).min().unwrap_or(0);
            if circle.switches.len() > 2 && u64::from(least) >= 2 * self.came(&circle.flow, entered) {
                found.entry(circle.switches).or_default().push((circle.flow, least.into()));
            }
        }
        for (switches, flows) in found {
            looping.extend(flows.iter().map(|(flow, _)| *flow));
            log.note(FindingEvidence {
                kind: FindingKind::Loop,
                place: switches.iter().map(|switch| input.fabric.switches()[*switch].clone()).collect(),
                why: "cycle",
                is_sure: true,
                since: input.begin,
                until: input.end,
                flows,
            });
        }
    }
}

impl CircleRule {
    /// Packets of a flow that hosts sent in this slot and the one before.
    fn came(&self, flow: &FlowKey, entered: &BTreeMap<FlowKey, u64>) -> u64 {
        [entered, &self.entered].iter().filter_map(|came| came.get(flow)).sum()
    }

    /// Flows that cross a link more often than their hosts sent, with their packets at every switch.
    fn suspects(&self, input: &RuleInput<'_>, entered: &BTreeMap<FlowKey, u64>, looping: &AccusedFlows) -> SlotView {
        let switches = || input.picture.switches.iter().enumerate();
        let all_ports = || switches().filter_map(|(_, switch)| switch.as_ref()).flat_map(|switch| &switch.ports);
        let mut suspects = AccusedFlows::new();
        for count in all_ports().filter(|port| port.link.is_some()).flat_map(|port| &port.ways[IN].flows) {
            let came = self.came(&count.flow, entered);
            if came > 0 && u64::from(count.packets.unwrap_or(0)) >= 2 * came && !looping.contains(&count.flow) {
                suspects.insert(count.flow);
            }
        }
        let mut view = SlotView::default();
        for (number, switch) in switches().filter(|_| !suspects.is_empty()) {
            for flow in &suspects {
                let ports = switch.iter().flat_map(|switch| &switch.ports);
                let packets: u64 = ports.filter_map(|port| port.ways[IN].of(flow)?.packets).map(u64::from).sum();
                if packets > 0 {
                    view.add(number, *flow, Some(packets.min(u32::MAX.into()) as u32));
                }
            }
        }
        view
    }
}

/// Flows in both of two sorted lists, with the packets of both.
fn in_both(one: &WayPicture, two: &WayPicture) -> Vec<(FlowKey, u64)> {
    let [short, long] = if one.flows.len() <= two.flows.len() { [one, two] } else { [two, one] };
    let both = short.flows.iter().filter_map(|count| Some((count, long.of(&count.flow)?)));
    both.map(|(here, there)| (here.flow, [here, there].iter().map(|count| u64::from(count.packets.unwrap_or(1))).sum()))
        .collect()
}

/// Packets of flows that came in at ports that lead out of the fabric.
fn entered(input: &RuleInput<'_>) -> BTreeMap<FlowKey, u64> {
    let mut entered = BTreeMap::new();
    let ports = input.picture.switches.iter().flatten().flat_map(|switch| &switch.ports);
    for count in ports.filter(|port| port.link.is_none()).flat_map(|port| &port.ways[IN].flows) {
        *entered.entry(count.flow).or_default() += u64::from(count.packets.unwrap_or(0));
    }
    entered
}
