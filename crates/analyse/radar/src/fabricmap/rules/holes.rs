//! Blackholes at switches: what comes in by a port and goes out by none (li-thesis §4.6.1).
//!
//! No route has to be known where every port of a switch is metered. A flow is judged when it has come in two slots or more and
//! one more slot has passed without a packet of it going out, so that a queue has had its time. A queue that is full may drop a few
//! packets of a flow as well: the share of other flows' packets that were lost at the switch makes that likely or not.
//!
//! Packets for the switch itself, and those whose time to live ends there, leave by no port, and rightly: such flows are left out.
//!
//! ```text
//!   slot          1   2   3
//!   in            2   2   ·
//!   out           ·   ·   ·        found at the end of slot 3
//! ```

use std::collections::{BTreeMap, VecDeque};

use super::{AccusedFlows, RuleInput};
use crate::fabricmap::findings::{FindingEvidence, FindingKind, FindingLog};
use crate::fabricmap::picture::{IN, OUT, SwitchPicture, WayPicture};
use crate::fabricmap::ports::FabricPorts;
use crate::flowset::FlowKey;

/// Slots without a packet after which a flow is forgotten.
const FORGOTTEN: u64 = 100;
/// Chance that packets were lost as others were, up to which a blackhole is said, and said for sure.
const LIKELY: f64 = 1e-3;
const SURE: f64 = 1e-6;
const SURE_PACKETS: u64 = 8;
/// Slots whose other flows show how many packets are lost anyway: now, and before.
const NOW: usize = 3;
const BEFORE: usize = 32;
/// Flows of a switch that are waited for.
const MOST: usize = 65_536;

#[derive(Debug)]
pub(super) struct HoleRule {
    switches: Vec<SwitchHoles>,
}

#[derive(Clone, Debug, Default)]
struct SwitchHoles {
    open: BTreeMap<FlowKey, StoppedFlow>,
    /// Packets of other flows in the latest slots, the last one first: in, and out.
    passed: VecDeque<[u64; 2]>,
}

/// A flow that has come in and not gone out.
#[derive(Clone, Copy, Debug)]
struct StoppedFlow {
    first: u64,
    last: u64,
    slots: u64,
    packets: u64,
    /// Those of them that were found already.
    told: u64,
    /// Beginning of the first slot, in nanoseconds.
    since: u64,
}

impl HoleRule {
    pub(super) fn new(fabric: &FabricPorts) -> Self {
        Self { switches: vec![SwitchHoles::default(); fabric.switches().len()] }
    }

    pub(super) fn cut(&mut self) {
        self.switches.iter_mut().for_each(|switch| *switch = SwitchHoles::default());
    }

    /// Flows that were found in a blackhole.
    pub(super) fn on_slot(
        &mut self,
        input: &RuleInput<'_>,
        looping: &AccusedFlows,
        log: &mut FindingLog,
    ) -> AccusedFlows {
        let mut swallowed = AccusedFlows::new();
        for (number, holes) in self.switches.iter_mut().enumerate() {
            let picture =
                input.picture.switches[number].as_ref().filter(|picture| is_whole(input.fabric, number, picture));
            let Some(picture) = picture else {
                *holes = SwitchHoles::default();
                continue;
            };
            holes.count(input, picture, looping);
            let found = holes.found(input.picture.slot);
            let Some(evidence) = evidence(input, number, &found) else { continue };
            swallowed.extend(found.iter().map(|(flow, ..)| *flow));
            log.note(evidence);
        }
        swallowed
    }
}

/// True if nothing can have left the switch unseen.
fn is_whole(fabric: &FabricPorts, switch: usize, picture: &SwitchPicture) -> bool {
    let metered = picture.ports.iter().filter(|port| port.link.is_some()).count();
    let is_decoded = picture.ports.iter().all(|port| port.ways.iter().all(WayPicture::is_whole));
    picture.missed == 0 && !picture.ended_more && metered == fabric.at(switch).len() && is_decoded
}

type FoundHole = (FlowKey, StoppedFlow, bool);

fn evidence(input: &RuleInput<'_>, switch: usize, found: &[FoundHole]) -> Option<FindingEvidence> {
    let since = found.iter().map(|(_, flow, _)| flow.since).min()?;
    Some(FindingEvidence {
        kind: FindingKind::Blackhole,
        place: vec![input.fabric.switches()[switch].clone()],
        why: "in-not-out",
        is_sure: found.iter().any(|(.., is_sure)| *is_sure),
        since,
        until: input.end,
        flows: found.iter().map(|(flow, stopped, _)| (*flow, stopped.packets)).collect(),
    })
}

impl SwitchHoles {
    fn count(&mut self, input: &RuleInput<'_>, picture: &SwitchPicture, looping: &AccusedFlows) {
        let slot = input.picture.slot;
        let mut sums: BTreeMap<FlowKey, [u64; 2]> = BTreeMap::new();
        for port in &picture.ports {
            for way in [IN, OUT] {
                for count in &port.ways[way].flows {
                    sums.entry(count.flow).or_default()[way] += u64::from(count.packets.unwrap_or(0));
                }
            }
        }
        let mut passed = [0; 2];
        for (flow, [came, left]) in sums {
            let is_ended = picture.ended.binary_search(&flow).is_ok() || looping.contains(&flow);
            if left > 0 || is_ended {
                self.open.remove(&flow);
                if !is_ended {
                    passed = [passed[0] + came, passed[1] + left.min(came)];
                }
            } else if came > 0 && (self.open.len() < MOST || self.open.contains_key(&flow)) {
                let new = StoppedFlow { first: slot, last: slot, slots: 0, packets: 0, told: 0, since: input.begin };
                let stopped = self.open.entry(flow).or_insert(new);
                stopped.last = slot;
                stopped.slots += 1;
                stopped.packets += came;
            }
        }
        self.passed.push_front(passed);
        self.passed.truncate(BEFORE);
        self.open.retain(|_, stopped| slot - stopped.last <= FORGOTTEN);
    }

    /// Flows that have had their time to go out, with their packets since they were last found.
    fn found(&mut self, slot: u64) -> Vec<FoundHole> {
        let share = self.lost(NOW).max(self.lost(BEFORE));
        let mut found = Vec::new();
        for (flow, stopped) in &mut self.open {
            let chance = share.powf(stopped.packets as f64);
            let is_due = stopped.slots >= 2 && stopped.packets >= 2 && slot >= stopped.first + 2;
            if is_due && stopped.packets > stopped.told && chance < LIKELY {
                let new = StoppedFlow { packets: stopped.packets - stopped.told, ..*stopped };
                stopped.told = stopped.packets;
                found.push((*flow, new, chance < SURE && stopped.packets >= SURE_PACKETS));
            }
        }
        found
    }

    /// Share of other flows' packets that did not go out in the latest slots. Of few packets it is not known.
    fn lost(&self, slots: usize) -> f64 {
        let [came, left] = [0, 1].map(|at| self.passed.iter().take(slots).map(|slot| slot[at]).sum::<u64>());
        // One loss more than was seen is always possible; the other window has more packets.
        if slots == NOW && came < 20 { 0.0 } else { (came - left + 1) as f64 / (came + 2) as f64 }
    }
}
