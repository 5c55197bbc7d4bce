//! What is wrong in a fabric, slot by slot: FlowRadar's analyses (li-thesis §4.6) as rules over counters by port and way.
//!
//! | file | finding |
//! | --- | --- |
//! | `circles` | loop: a flow that crosses a link both ways |
//! | `holes` | blackhole: a flow that comes in and goes out nowhere, or not over a link |
//! | `losses` | loss: what left one end of a link and did not reach the other, as an interval |
//! | `window` | flows of each port in a second; heavy: one that takes a large share of the port |
//! | `balance` | imbalance: equal ports that share unequally |
//! | `pulses` | pulsing: bursts of one flow at even distances |
//! | `detours` | off-route: a flow at a switch, or a port, that its way does not have |
//!
//! Invariants: nothing is concluded of a switch that missed packets or did not report, nor of a way that was not decoded; memory
//! is bounded, and where it is full nothing is concluded.

mod balance;
mod circles;
mod detours;
mod holes;
mod losses;
mod pulses;
mod window;

use std::collections::BTreeSet;

use super::findings::{FindingLog, FindingPlace};
use super::picture::SlotPicture;
use super::ports::{EndOfLink, FabricPorts};
use super::routes::PortRoutes;
use super::{FabricMapOptions, LinkTotals};
use crate::flowset::FlowKey;

/// What every rule is given.
pub(super) struct RuleInput<'a> {
    pub fabric: &'a FabricPorts,
    pub picture: &'a SlotPicture,
    pub options: &'a FabricMapOptions,
    /// Nanoseconds since 1970.
    pub begin: u64,
    pub end: u64,
}

impl RuleInput<'_> {
    /// The ports of a hop, from an end of a link to the other.
    pub(super) fn hop(&self, (link, end): EndOfLink) -> FindingPlace {
        [(link, end), (link, 1 - end)].map(|end| self.fabric.port_name(end)).to_vec()
    }

    pub(super) fn length(&self) -> u64 {
        self.end - self.begin
    }
}

/// Flows that a loop or a blackhole has changed: no other rule judges them in the same window.
pub(super) type AccusedFlows = BTreeSet<FlowKey>;

#[derive(Debug)]
pub(super) struct FabricRules {
    holes: holes::HoleRule,
    losses: losses::LossRule,
    window: window::WindowRule,
    balance: balance::BalanceRule,
    pulses: pulses::PulseRule,
    detours: detours::DetourRule,
    circles: circles::CircleRule,
    /// Flows accused since the window began.
    accused: AccusedFlows,
}

impl FabricRules {
    pub(super) fn new(fabric: &FabricPorts, routes: Option<PortRoutes>) -> Self {
        Self {
            holes: holes::HoleRule::new(fabric),
            losses: losses::LossRule::new(fabric),
            window: window::WindowRule::new(fabric),
            balance: balance::BalanceRule::new(fabric),
            pulses: pulses::PulseRule::new(fabric),
            detours: detours::DetourRule::new(routes),
            circles: circles::CircleRule::new(fabric),
            accused: AccusedFlows::new(),
        }
    }

    pub(super) fn on_slot(&mut self, input: &RuleInput<'_>, log: &mut FindingLog) {
        let looping = self.circles.on_slot(input, log);
        self.accused.extend(looping.iter().copied());
        let swallowed = self.holes.on_slot(input, &looping, log);
        self.accused.extend(swallowed);
        self.losses.on_slot(input, &mut self.accused, log);
        self.detours.on_slot(input, &looping, log);
        self.pulses.on_slot(input, log);
        self.window.add(input);
        if self.window.is_over(input) {
            self.window.heavy(input, &self.accused, log);
            self.balance.judge(input, &self.window, &self.accused, log);
            self.window.begin(input);
            self.accused.clear();
        }
        if self.accused.len() > super::findings::MOST_FLOWS {
            self.accused.clear();
            self.window.spoil();
        }
    }

    /// The loss interval of each link and way, up to now.
    pub(super) fn totals(&self, options: &FabricMapOptions) -> Vec<[LinkTotals; 2]> {
        self.losses.totals(options)
    }

    /// Nothing was heard of any switch for some slots.
    pub(super) fn cut(&mut self) {
        self.losses.cut();
        self.holes.cut();
        self.window.spoil();
    }
}
