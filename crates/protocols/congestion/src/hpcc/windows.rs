//! Windows of Alg. 1's ComputeWind: W, W_c and incStage, once for a path or once for each link of it.

use super::links::{LinkLoad, MAX_HOPS};
use super::reciprocal::ReciprocalTable;
use super::{Division, HpccConfig, Registers};

/// Parameters of a controller that do not change.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowRules {
    eta: f64,
    inverse_eta: f64,
    max_stage: u32,
    w_ai: f64,
    pub lowest: f64,
    pub highest: f64,
    table: Option<&'static ReciprocalTable>,
}

impl WindowRules {
    pub(super) fn new(config: &HpccConfig, lowest: f64, highest: f64) -> Self {
        Self {
            eta: config.eta,
            inverse_eta: config.eta.recip(),
            max_stage: config.max_stage,
            w_ai: config.w_ai.unwrap_or(crate::theory::w_ai(highest, config.eta, 100.0)),
            lowest,
            highest,
            table: (config.division == Division::Table).then(ReciprocalTable::shared),
        }
    }

    #[inline]
    fn divide(&self, dividend: f64, u: f64) -> f64 {
        match self.table {
            None => dividend * self.eta / u,
            Some(table) => table.divide(dividend, u * self.inverse_eta),
        }
    }
}

/// A register: U with its window.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoadRegister {
    u: f64,
    /// W_c.
    reference: f64,
    stage: u32,
}

impl LoadRegister {
    pub(super) fn new(window: f64) -> Self {
        Self { u: 1.0, reference: window, stage: 0 }
    }

    /// U.
    pub(super) fn u(&self) -> f64 {
        self.u
    }

    /// W_c.
    pub(super) fn reference(&self) -> f64 {
        self.reference
    }

    /// Lines 9 and 11 to 20: W, at most `highest`.
    #[inline]
    pub(super) fn react(&mut self, rules: &WindowRules, load: LinkLoad, update: bool, highest: f64) -> f64 {
        self.u = (1.0 - load.share) * self.u + load.share * load.u;
        let multiplies = self.u >= rules.eta || self.stage >= rules.max_stage;
        let base = if multiplies { rules.divide(self.reference, self.u) } else { self.reference };
        let window = (base + rules.w_ai).clamp(rules.lowest, highest);
        if update {
            self.stage = if multiplies { 0 } else { self.stage + 1 };
            self.reference = window;
        }
        window
    }
}

/// A register for each link (§2.4.2).
///
/// Eq. 2.7 wants registers of links that are not congested to grow beyond any bound. Here they end at a multiple of W_init that
/// depends on α and the number of links, and what is left of them there does not count: the equation loses the same from every term.
#[derive(Clone, Debug)]
pub(super) struct LinkRegisters {
    kind: Registers,
    pub loads: [LinkLoad; MAX_HOPS],
    registers: [LoadRegister; MAX_HOPS],
}

/// Room above W_init for registers of Eq. 2.7, beyond what equal links of a path need.
const ROOM: f64 = 4.0;
/// Registers that had to come down from further would take too many round trips.
const MOST_ROOM: f64 = 1e6;
/// An α below this is not distinguishable from 0, where Eq. 2.7 has no meaning.
const LEAST_ALPHA: f64 = 0.05;

impl LinkRegisters {
    pub(super) fn new(kind: Registers, window: f64) -> Self {
        let kind = match kind {
            Registers::Alpha(alpha) => Registers::Alpha(alpha.max(LEAST_ALPHA)),
            other => other,
        };
        Self { kind, loads: [LinkLoad::default(); MAX_HOPS], registers: [LoadRegister::new(window); MAX_HOPS] }
    }

    /// Other links: all begin with the window of now.
    pub(super) fn begin(&mut self, window: f64) {
        self.registers = [LoadRegister::new(window); MAX_HOPS];
    }

    /// The largest U.
    pub(super) fn u(&self, links: usize) -> f64 {
        self.registers[..links].iter().fold(0.0, |most, register| register.u.max(most))
    }

    /// The window that `loads` of the first `links` links lead to.
    pub(super) fn react(&mut self, rules: &WindowRules, links: usize, update: bool) -> f64 {
        let pairs = self.registers[..links].iter_mut().zip(&self.loads);
        let window = match self.kind {
            Registers::Alpha(alpha) => {
                let most = rules.highest * ROOM * (links as f64).powf(alpha.recip()).min(MOST_ROOM);
                let uncongested = most.powf(-alpha);
                let sum: f64 = pairs
                    .map(|(register, load)| register.react(rules, *load, update, most).powf(-alpha) - uncongested)
                    .sum();
                sum.max(0.0).powf(-alpha.recip())
            }
            Registers::One | Registers::PerHop => pairs
                .map(|(register, load)| register.react(rules, *load, update, rules.highest))
                .fold(rules.highest, f64::min),
        };
        window.clamp(rules.lowest, rules.highest)
    }
}
