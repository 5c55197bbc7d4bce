//! Links over time, in a bounded number of steps.
//!
//! Steps begin short; when there are too many, each two become one, so that a run of any length has between 120 and 240.

use super::LinkTotals;
use super::picture::{OUT, SlotPicture};

const MOST: usize = 240;
const SLOTS: u64 = 10;

/// A link, one way, in a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepCount {
    pub packets: u64,
    pub bytes: u64,
    /// Most flows of a slot.
    pub flows: u64,
    /// Packets that are known to be lost since the step before.
    pub lost: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapStep {
    /// Nanoseconds since 1970.
    pub since: u64,
    pub until: u64,
    /// By link, and from which end.
    pub links: Vec<[StepCount; 2]>,
    slots: u64,
}

#[derive(Clone, Debug)]
pub struct MapSeries {
    steps: Vec<MapStep>,
    open: Option<MapStep>,
    /// Slots of a step.
    slots: u64,
    links: usize,
    /// Lost packets of each link by the end of the step before.
    lost: Vec<[u64; 2]>,
}

impl MapSeries {
    pub(super) fn new(links: usize) -> Self {
        Self { steps: Vec::new(), open: None, slots: SLOTS, links, lost: vec![[0; 2]; links] }
    }

    pub fn steps(&self) -> &[MapStep] {
        &self.steps
    }

    pub(super) fn add(
        &mut self,
        picture: &SlotPicture,
        begin: u64,
        end: u64,
        totals: &dyn Fn() -> Vec<[LinkTotals; 2]>,
    ) {
        let new = || MapStep { since: begin, until: end, links: vec![[StepCount::default(); 2]; self.links], slots: 0 };
        let step = self.open.get_or_insert_with(new);
        (step.until, step.slots) = (end, step.slots + 1);
        for (link, counts) in step.links.iter_mut().enumerate() {
            for (from, count) in counts.iter_mut().enumerate() {
                let Some(way) = picture.at((link, from), OUT) else { continue };
                count.packets = count.packets.saturating_add(way.packets);
                count.bytes = count.bytes.saturating_add(way.bytes);
                count.flows = count.flows.max((way.flows.len() as u64).saturating_add(way.left));
            }
        }
        if step.slots >= self.slots {
            self.close(&totals());
        }
    }

    pub(super) fn end(&mut self) {
        self.steps.extend(self.open.take());
    }

    fn close(&mut self, totals: &[[LinkTotals; 2]]) {
        let Some(mut step) = self.open.take() else { return };
        for ((counts, before), now) in step.links.iter_mut().zip(&mut self.lost).zip(totals) {
            for from in [0, 1] {
                let low = now[from].lost.map_or(0, |[low, _]| low);
                counts[from].lost = low.saturating_sub(before[from]);
                before[from] = before[from].max(low);
            }
        }
        self.steps.push(step);
        if self.steps.len() >= MOST {
            self.slots *= 2;
            self.steps = self.steps.chunks(2).map(joined).collect();
        }
    }
}

fn joined(steps: &[MapStep]) -> MapStep {
    let mut all = steps[0].clone();
    for step in &steps[1..] {
        (all.until, all.slots) = (step.until, all.slots + step.slots);
        for (into, from) in all.links.as_flattened_mut().iter_mut().zip(step.links.as_flattened()) {
            into.packets = into.packets.saturating_add(from.packets);
            into.bytes = into.bytes.saturating_add(from.bytes);
            into.flows = into.flows.max(from.flows);
            into.lost = into.lost.saturating_add(from.lost);
        }
    }
    all
}
