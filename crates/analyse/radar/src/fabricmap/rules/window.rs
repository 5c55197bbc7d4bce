//! Flows of each port in a second, and those that take a large share of it: heavy flows (li-thesis §4.6.3).
//!
//! Packets are counted where they leave. Invariant: a window whose flows do not fit into memory is not judged.

use std::collections::BTreeMap;

use super::{AccusedFlows, RuleInput};
use crate::fabricmap::findings::{FindingEvidence, FindingKind, FindingLog};
use crate::fabricmap::picture::OUT;
use crate::fabricmap::ports::{EndOfLink, FabricPorts};
use crate::flowset::FlowKey;

/// Nanoseconds of a window.
const WINDOW: u64 = 1_000_000_000;
/// Flows of all ports together.
const MOST: usize = 1 << 19;
/// Share of what a port can carry from which a flow is heavy.
const HEAVY: f64 = 0.25;

/// A flow at a port.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WindowFlow {
    pub packets: u64,
    pub bytes: u64,
}

#[derive(Debug)]
pub(super) struct WindowRule {
    since: Option<u64>,
    ends: Vec<[BTreeMap<FlowKey, WindowFlow>; 2]>,
    held: usize,
    is_spoilt: bool,
    /// Ends at which a slot was not known.
    unknown: Vec<[bool; 2]>,
}

impl WindowRule {
    pub(super) fn new(fabric: &FabricPorts) -> Self {
        let links = fabric.links().len();
        Self {
            since: None,
            ends: vec![Default::default(); links],
            held: 0,
            is_spoilt: false,
            unknown: vec![[false; 2]; links],
        }
    }

    /// The window is not to be judged.
    pub(super) fn spoil(&mut self) {
        self.is_spoilt = true;
    }

    pub(super) fn add(&mut self, input: &RuleInput<'_>) {
        self.since.get_or_insert(input.begin);
        for link in 0..self.ends.len() {
            for end in [0, 1] {
                let way = input.picture.at((link, end), OUT).filter(|way| way.is_whole());
                let Some(way) = way.filter(|_| input.picture.is_sound((link, end))) else {
                    self.unknown[link][end] = true;
                    continue;
                };
                for count in &way.flows {
                    let flows = &mut self.ends[link][end];
                    if !flows.contains_key(&count.flow) {
                        if self.held >= MOST {
                            self.is_spoilt = true;
                            continue;
                        }
                        self.held += 1;
                    }
                    let known = flows.entry(count.flow).or_default();
                    known.packets += u64::from(count.packets.unwrap_or(0));
                    // A size that nobody counted is that of a short packet.
                    known.bytes =
                        known.bytes.saturating_add(count.bytes.unwrap_or(64 * u64::from(count.packets.unwrap_or(0))));
                }
            }
        }
    }

    pub(super) fn is_over(&self, input: &RuleInput<'_>) -> bool {
        self.since.is_some_and(|since| input.end >= since + WINDOW)
    }

    pub(super) fn begin(&mut self, input: &RuleInput<'_>) {
        *self = Self::new(input.fabric);
    }

    pub(super) fn since(&self) -> u64 {
        self.since.unwrap_or(0)
    }

    /// Flows of a port in the window, if all are known.
    pub(super) fn flows(&self, (link, end): EndOfLink) -> Option<&BTreeMap<FlowKey, WindowFlow>> {
        (!self.is_spoilt && !self.unknown[link][end]).then(|| &self.ends[link][end])
    }

    pub(super) fn heavy(&self, input: &RuleInput<'_>, accused: &AccusedFlows, log: &mut FindingLog) {
        let (since, until) = (self.since(), input.end);
        for (link, port) in input.fabric.links().iter().enumerate() {
            let room = port.rate as f64 / 8e9 * (until - since) as f64;
            for end in [(link, 0), (link, 1)] {
                for (flow, count) in self.flows(end).into_iter().flatten() {
                    if count.bytes as f64 >= HEAVY * room && !accused.contains(flow) {
                        log.note(FindingEvidence {
                            kind: FindingKind::Heavy,
                            place: vec![input.fabric.port_name(end)],
                            why: "share",
                            is_sure: true,
                            since,
                            until,
                            flows: vec![(*flow, count.packets)],
                        });
                    }
                }
            }
        }
    }
}
