//! Pulses: bursts of one flow at even distances that fill a port and are small on average, as low-rate attacks on TCP are (li-thesis
//! §4.6.3).
//!
//! A burst is a run of slots in each of which a flow has half of what the port can carry. Five or more of them, 0.15 to 3.2 s from one
//! to the next, with distances within 10 % (and a slot) of each other, and less than a quarter of the port on average, are pulses.

use std::collections::{BTreeMap, VecDeque};

use super::RuleInput;
use crate::fabricmap::findings::{FindingEvidence, FindingKind, FindingLog};
use crate::fabricmap::picture::{OUT, WayPicture};
use crate::fabricmap::ports::FabricPorts;
use crate::flowset::FlowKey;

const BURSTS: usize = 5;
const KEPT: usize = 16;
const BURST: f64 = 0.5;
const AVERAGE: f64 = 0.25;
const SPACING: f64 = 0.1;
const DISTANCES: std::ops::RangeInclusive<u64> = 150_000_000..=3_200_000_000;
/// Flows of a port that are watched.
const MOST: usize = 1_024;

#[derive(Debug)]
pub(super) struct PulseRule {
    ends: Vec<[BTreeMap<FlowKey, PulseTrain>; 2]>,
}

/// The latest bursts of a flow at a port.
#[derive(Clone, Debug, Default)]
struct PulseTrain {
    /// Beginnings in nanoseconds, with the flow's bytes up to there.
    begins: VecDeque<(u64, u64)>,
    /// End of the latest slot of a burst.
    last: u64,
    packets: u64,
    told: u64,
    bytes: u64,
}

impl PulseRule {
    pub(super) fn new(fabric: &FabricPorts) -> Self {
        Self { ends: vec![Default::default(); fabric.links().len()] }
    }

    pub(super) fn on_slot(&mut self, input: &RuleInput<'_>, log: &mut FindingLog) {
        for (link, ends) in self.ends.iter_mut().enumerate() {
            let room = input.fabric.links()[link].rate as f64 / 8e9 * input.length() as f64;
            for (end, trains) in ends.iter_mut().enumerate() {
                let Some(way) = input.picture.at((link, end), OUT) else { continue };
                add(trains, way, input, BURST * room);
                for (flow, train) in trains.iter_mut().filter(|(_, train)| train.is_even(input, AVERAGE * room)) {
                    let packets = train.packets - std::mem::replace(&mut train.told, train.packets);
                    log.note(FindingEvidence {
                        kind: FindingKind::Pulsing,
                        place: vec![input.fabric.port_name((link, end))],
                        why: "periodic",
                        is_sure: true,
                        since: train.begins[0].0,
                        until: input.end,
                        flows: vec![(*flow, packets)],
                    });
                }
            }
        }
    }
}

fn add(trains: &mut BTreeMap<FlowKey, PulseTrain>, way: &WayPicture, input: &RuleInput<'_>, burst: f64) {
    trains.retain(|_, train| input.begin <= train.last + DISTANCES.end());
    for count in &way.flows {
        let bytes = count.bytes.unwrap_or(0);
        let is_burst = bytes as f64 >= burst;
        if is_burst && trains.len() < MOST {
            trains.entry(count.flow).or_default();
        }
        let Some(train) = trains.get_mut(&count.flow) else { continue };
        if is_burst {
            if train.last != input.begin {
                train.begins.push_back((input.begin, train.bytes));
                if train.begins.len() > KEPT {
                    train.begins.pop_front();
                }
            }
            train.last = input.end;
        }
        train.bytes = train.bytes.saturating_add(bytes);
        train.packets += u64::from(count.packets.unwrap_or(0));
    }
}

impl PulseTrain {
    /// True if a burst has just begun that follows the others at the same distance.
    fn is_even(&self, input: &RuleInput<'_>, average: f64) -> bool {
        let Some((latest, _)) = self.begins.back().filter(|_| self.begins.len() >= BURSTS) else { return false };
        if *latest != input.begin {
            return false;
        }
        let begins = self.begins.iter().skip(self.begins.len() - BURSTS);
        let begins: Vec<(u64, u64)> = begins.copied().collect();
        let mut distances: Vec<u64> = begins.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
        distances.sort_unstable();
        let median = distances[distances.len() / 2];
        let most = (SPACING * median as f64).max(input.length() as f64);
        let is_even = distances.iter().all(|distance| distance.abs_diff(median) as f64 <= most);
        let [first, last] = [begins[0], begins[BURSTS - 1]];
        let slots = (last.0 - first.0) as f64 / input.length() as f64;
        DISTANCES.contains(&median) && is_even && ((last.1 - first.1) as f64) < average * slots
    }
}
