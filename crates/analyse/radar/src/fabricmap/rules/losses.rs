//! The loss map: packets of each flow that left one end of a link and did not reach the other (li-thesis §4.6.2).
//!
//! Counters of the two ends are compared over a *flowlet*: the packets between two slots in which neither end saw any. What has
//! not arrived by the end of such a slot is lost, if a slot is longer than a packet's way and what clocks differ by. A flow without
//! pauses is not judged exactly, but bounded: at the end of a stretch, at most as many packets were under way as were sent in its last
//! slot; at its beginning at most as many arrived late as came in its first. With U sent and D arrived,
//!
//! ```text
//!   lost ∈ [U − D − U(last) − U(first), U − D + D(first) + D(last)]
//! ```
//!
//! where U(first) and D(last) matter only if clocks may differ, and what is exact falls away. A slot that one end did not report, in
//! which it missed packets, or that was not decoded ends a stretch: nothing is said about it.
//!
//! Invariant: if clocks differ by no more, and packets take no longer, than the options say, the interval has the truth.

use std::collections::BTreeMap;

use super::{AccusedFlows, RuleInput};
use crate::fabricmap::findings::{FindingEvidence, FindingKind, FindingLog};
use crate::fabricmap::picture::{IN, OUT, WayPicture};
use crate::fabricmap::ports::FabricPorts;
use crate::fabricmap::{FabricMapOptions, LinkTotals};
use crate::flowset::FlowKey;

/// Fewest packets of a flow that are a blackhole on a link, if none arrives.
const HOLE: u64 = 8;
/// Chance that so many were lost as others were, up to which that is said.
const LIKELY: f64 = 1e-6;
/// Fewest lost packets of a link that are a finding.
const FEWEST: u64 = 5;
/// Flows of a link that are compared.
const MOST: usize = 65_536;

#[derive(Debug)]
pub(super) struct LossRule {
    links: Vec<[LinkLosses; 2]>,
}

/// One way over a link: from the lower end, or from the upper one.
#[derive(Clone, Debug, Default)]
struct LinkLosses {
    open: BTreeMap<FlowKey, Stretch>,
    /// Interval of what ended.
    lost: [u64; 2],
    sent: u64,
    most_flows: u64,
    judged: u64,
    unjudged: u64,
    /// Neither end saw anything in the slot before, or both have seen it all.
    is_joined: bool,
    /// Lost packets that are in a finding.
    told: u64,
    /// Lost packets since the last finding, with their flows and when they began to be sent.
    news: BTreeMap<FlowKey, u64>,
    since: Option<u64>,
}

/// Slots of a flow at both ends of a link without a pause.
#[derive(Clone, Copy, Debug, Default)]
struct Stretch {
    begin: u64,
    slots: u64,
    sent: u64,
    arrived: u64,
    /// Counters of the first slot, if what was before is not known, and of the last one.
    first: [u64; 2],
    last: [u64; 2],
    is_hole_told: bool,
    /// Lost packets that are in a finding.
    told: u64,
}

impl Stretch {
    /// Bounds of the lost packets, while it goes on or as it was cut off.
    fn open_bounds(&self, clocks: u64) -> [u64; 2] {
        let [low, high] = self.closed_bounds(clocks);
        [low.saturating_sub(self.last[0]), high + clocks * self.last[1]]
    }

    /// Bounds behind a pause. `clocks` is 1 if clocks may differ.
    fn closed_bounds(&self, clocks: u64) -> [u64; 2] {
        let low = self.sent.saturating_sub(self.arrived + clocks * self.first[0]);
        [low, (self.sent + self.first[1]).saturating_sub(self.arrived)]
    }
}

impl LossRule {
    pub(super) fn new(fabric: &FabricPorts) -> Self {
        Self { links: vec![<[LinkLosses; 2]>::default(); fabric.links().len()] }
    }

    pub(super) fn on_slot(&mut self, input: &RuleInput<'_>, accused: &mut AccusedFlows, log: &mut FindingLog) {
        let clocks = input.options.clocks();
        for (link, ways) in self.links.iter_mut().enumerate() {
            for (from, losses) in ways.iter_mut().enumerate() {
                let (near, far) = ((link, from), (link, 1 - from));
                let counts = [input.picture.at(near, OUT), input.picture.at(far, IN)];
                let is_sound = input.picture.is_sound(near) && input.picture.is_sound(far);
                if let Some(out) = counts[0] {
                    losses.most_flows = losses.most_flows.max((out.flows.len() as u64).saturating_add(out.left));
                }
                match counts {
                    [Some(out), Some(came)] if is_sound && out.is_whole() && came.is_whole() => {
                        losses.count(input, out, came, clocks);
                    }
                    _ => losses.cut(clocks),
                }
                losses.holes(input, (link, from), accused, log);
                losses.report(input, (link, from), log);
            }
        }
    }

    pub(super) fn cut(&mut self) {
        self.links.iter_mut().flatten().for_each(|losses| losses.cut(1));
    }

    pub(super) fn totals(&self, options: &FabricMapOptions) -> Vec<[LinkTotals; 2]> {
        let total = |losses: &LinkLosses| losses.totals(options.clocks());
        self.links.iter().map(|ways| ways.each_ref().map(total)).collect()
    }
}

impl LinkLosses {
    fn count(&mut self, input: &RuleInput<'_>, out: &WayPicture, came: &WayPicture, clocks: u64) {
        self.judged += 1;
        self.sent = self.sent.saturating_add(out.packets);
        let mut counts = merged(out, came);
        let mut ended = Vec::new();
        for (flow, stretch) in &mut self.open {
            match counts.remove(flow) {
                Some([sent, arrived]) => {
                    stretch.slots += 1;
                    (stretch.sent, stretch.arrived) = (stretch.sent + sent, stretch.arrived + arrived);
                    stretch.last = [sent, arrived];
                }
                None => ended.push(*flow),
            }
        }
        for flow in ended {
            if let Some(stretch) = self.open.remove(&flow) {
                self.settle(flow, &stretch, stretch.closed_bounds(clocks));
            }
        }
        for (flow, [sent, arrived]) in counts {
            let first = if self.is_joined { [0, 0] } else { [sent, arrived] };
            let last = [sent, arrived];
            let new = Stretch { begin: input.begin, slots: 1, ..Stretch::default() };
            let stretch = Stretch { sent, arrived, first, last, ..new };
            if self.open.len() < MOST {
                self.open.insert(flow, stretch);
            } else {
                // Beyond what is remembered: it may all be lost, or nothing.
                self.lost[1] += sent;
            }
        }
        self.is_joined = true;
    }

    fn settle(&mut self, flow: FlowKey, stretch: &Stretch, [low, high]: [u64; 2]) {
        self.lost = [self.lost[0].saturating_add(low), self.lost[1].saturating_add(high)];
        let new = low.saturating_sub(stretch.told);
        let is_room = self.news.len() < MOST || self.news.contains_key(&flow);
        if new > 0 && !stretch.is_hole_told && is_room {
            *self.news.entry(flow).or_default() += new;
            self.since = Some(self.since.map_or(stretch.begin, |since| since.min(stretch.begin)));
        }
    }

    /// Nothing is known of a slot.
    fn cut(&mut self, clocks: u64) {
        self.unjudged += 1;
        self.is_joined = false;
        for (flow, stretch) in std::mem::take(&mut self.open) {
            self.settle(flow, &stretch, stretch.open_bounds(clocks));
        }
    }

    /// Flows that lose all that is sent, while others do not.
    fn holes(&mut self, input: &RuleInput<'_>, end: (usize, usize), accused: &mut AccusedFlows, log: &mut FindingLog) {
        let arriving: u64 = self.open.values().map(|stretch| stretch.arrived).sum();
        let sent = |stretch: &Stretch| stretch.sent - stretch.last[0];
        let others: u64 = self.open.values().filter(|stretch| stretch.arrived > 0).map(sent).sum();
        let share = (others.saturating_sub(arriving) + 1) as f64 / (others + 2) as f64;
        let mut flows = Vec::new();
        let mut since = input.end;
        for (flow, stretch) in &mut self.open {
            let gone = sent(stretch);
            let is_hole = stretch.arrived == 0 && stretch.slots >= 2 && gone >= HOLE;
            let chance = if others > 0 { share.powf(gone as f64) } else { 0.5_f64.powf(gone as f64) };
            if is_hole && chance < LIKELY && !accused.contains(flow) {
                flows.push((*flow, if stretch.is_hole_told { stretch.last[0] } else { stretch.sent }));
                since = since.min(stretch.begin);
                stretch.is_hole_told = true;
            }
        }
        if flows.is_empty() {
            return;
        }
        accused.extend(flows.iter().map(|(flow, _)| *flow));
        let (kind, place, until) = (FindingKind::Blackhole, input.hop(end), input.end);
        log.note(FindingEvidence { kind, place, why: "link", is_sure: true, since, until, flows });
    }

    /// Lost packets that are certain by now, also of flows that go on.
    fn report(&mut self, input: &RuleInput<'_>, end: (usize, usize), log: &mut FindingLog) {
        let clocks = input.options.clocks();
        let low = self.lost[0] + self.open.values().map(|stretch| stretch.open_bounds(clocks)[0]).sum::<u64>();
        if low < self.told + FEWEST {
            return;
        }
        self.told = low;
        let mut flows = std::mem::take(&mut self.news);
        let mut since = self.since.take().unwrap_or(input.end);
        for (flow, stretch) in self.open.iter_mut().filter(|(_, stretch)| !stretch.is_hole_told) {
            let low = stretch.open_bounds(clocks)[0];
            if low > stretch.told {
                *flows.entry(*flow).or_default() += low - stretch.told;
                stretch.told = low;
                since = since.min(stretch.begin);
            }
        }
        if !flows.is_empty() {
            let (kind, place, until) = (FindingKind::Loss, input.hop(end), input.end);
            let flows = flows.into_iter().collect();
            log.note(FindingEvidence { kind, place, why: "counters", is_sure: true, since, until, flows });
        }
    }

    fn totals(&self, clocks: u64) -> LinkTotals {
        let open = self.open.values().map(|stretch| stretch.open_bounds(clocks));
        let lost = open.fold(self.lost, |[low, high], [more, most]| [low + more, high + most]);
        LinkTotals {
            packets: self.sent,
            flows: self.most_flows,
            lost: (self.judged > 0).then_some(lost),
            unjudged: self.unjudged,
        }
    }
}

/// Packets of each flow at both ends.
fn merged(out: &WayPicture, came: &WayPicture) -> BTreeMap<FlowKey, [u64; 2]> {
    let mut counts: BTreeMap<FlowKey, [u64; 2]> = BTreeMap::new();
    for (at, way) in [out, came].into_iter().enumerate() {
        for count in &way.flows {
            counts.entry(count.flow).or_default()[at] += u64::from(count.packets.unwrap_or(0));
        }
    }
    counts
}
