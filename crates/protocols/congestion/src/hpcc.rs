//! HPCC: high precision congestion control by telemetry.
//!
//! Li's thesis §2.3 and Alg. 1. Per acknowledgement, each link's inflight bytes are estimated from two telemetries of it
//! (`links`), U is an average of the most loaded link's, and the window follows it (`windows`):
//!
//! ```text
//!   u = min(qlen, qlen before) / (B T) + txRate / B        U ← (1 − τ/T) U + τ/T u
//!   W = W_c / (U/η) + W_AI      if U ≥ η or incStage ≥ maxStage, else W_c + W_AI
//!   W_c ← W                     if the packet was sent after the last such update
//! ```
//!
//! The first telemetry only fills L and the sequence; U begins at 1. W lies between `min_rate` · T and W_init; the pace is W/T.
//! L begins anew, and W stays, when the path or its number of links changes, when a time stamp or a counter did not advance, and
//! after a gap that leaves differences ambiguous or means that the queue pair was idle.

mod links;
mod reciprocal;
mod windows;

use units::{Rate, Span};

pub use self::reciprocal::ReciprocalTable;

use self::links::{LinkLoad, LinkRecords};
use self::windows::{LinkRegisters, LoadRegister, WindowRules};
use crate::round::RoundTracker;
use crate::{AckFeedback, ControlSite, RdmaControl, TelemetrySample};

/// Times at which the reference window W_c follows the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reaction {
    /// Every acknowledgement changes W, one per round trip changes W_c: the thesis's way.
    #[default]
    Combined,
    /// Every acknowledgement changes both.
    PerAck,
    /// Telemetry is looked at once per round trip.
    PerRtt,
}

/// Bytes from which a link's rate is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkSignal {
    /// Bytes that left the queue.
    #[default]
    Tx,
    /// Bytes that joined the queue.
    Rx,
}

/// Memory of the links of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Registers {
    /// One estimate, that of the most loaded link.
    #[default]
    One,
    /// One estimate for each link; the least window counts.
    PerHop,
    /// One window for each link, combined as Eq. 2.7 has it, with this α.
    Alpha(f64),
}

/// Division of the window by the load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Division {
    /// Division with floating point numbers.
    #[default]
    Exact,
    /// Division by the table of reciprocals of §2.5, as in a NIC without a divider.
    Table,
}

/// Format of telemetry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IntForm {
    /// Exact numbers.
    #[default]
    Exact,
    /// The 64 bits of Fig. 2.7, whose units of bytes and queue are larger by this factor; 1 in the thesis.
    Packed(u32),
}

/// Settings of HPCC.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HpccConfig {
    /// Target utilization, below 1.
    pub eta: f64,
    /// Additive steps before a multiplicative one.
    pub max_stage: u32,
    /// Additive step in bytes; by the rule of §2.3.3 for 100 flows if not given.
    pub w_ai: Option<f64>,
    /// T; the base round trip if not given.
    pub t: Option<Span>,
    /// Times at which W_c follows.
    pub reaction: Reaction,
    /// Bytes from which the rate of a link is computed.
    pub signal: LinkSignal,
    /// Memory of the links.
    pub registers: Registers,
    /// Format of telemetry; exact if not given.
    pub int: Option<IntForm>,
    /// Way to divide.
    pub division: Division,
    /// The window never falls below this rate times T.
    pub min_rate: Rate,
    /// Paces packets at W/T; if not, the window alone limits them.
    pub paced: bool,
}

impl Default for HpccConfig {
    /// The thesis's simulations.
    fn default() -> Self {
        Self {
            eta: 0.95,
            max_stage: 0,
            w_ai: None,
            t: None,
            reaction: Reaction::Combined,
            signal: LinkSignal::Tx,
            registers: Registers::One,
            int: None,
            division: Division::Exact,
            min_rate: Rate::from_bits_per_second(100_000_000),
            paced: true,
        }
    }
}

/// One queue pair's.
#[derive(Clone, Debug)]
pub struct Hpcc {
    reaction: Reaction,
    rules: WindowRules,
    links: LinkRecords,
    /// The register of a path; without a meaning where each link has one.
    register: LoadRegister,
    link_registers: Option<Box<LinkRegisters>>,
    window: f64,
    /// 8 / T: from bytes to bits per second.
    pace: f64,
    paced: bool,
    /// lastUpdateSeq; begins with the first telemetry.
    round: RoundTracker,
}

impl Hpcc {
    /// One for a connection at this site.
    pub fn new(config: &HpccConfig, site: &ControlSite) -> Self {
        let t = config.t.unwrap_or(site.base_rtt).max(Span::from_ns(1));
        let highest = site.line_rate.bytes_in(t).get().max(1) as f64;
        let line_rate = site.line_rate.bits_per_second() as f64;
        let lowest = highest * (config.min_rate.bits_per_second() as f64 / line_rate).min(1.0);
        let link_registers =
            (config.registers != Registers::One).then(|| Box::new(LinkRegisters::new(config.registers, highest)));
        Self {
            reaction: config.reaction,
            rules: WindowRules::new(config, lowest, highest),
            links: LinkRecords::new(config, site, t),
            register: LoadRegister::new(highest),
            link_registers,
            window: highest,
            pace: line_rate / highest,
            paced: config.paced,
            round: RoundTracker::default(),
        }
    }

    /// Number of times L was begun anew.
    pub fn resets(&self) -> u64 {
        self.links.resets()
    }

    /// U: normalised inflight bytes of the most loaded link.
    pub fn utilization(&self) -> f64 {
        match &self.link_registers {
            None => self.register.u(),
            Some(registers) => registers.u(self.links.count()),
        }
    }

    /// W_c; with a register for each link, W.
    pub fn reference_window(&self) -> f64 {
        if self.link_registers.is_some() { self.window } else { self.register.reference() }
    }

    /// Reacts to telemetry; false if there was nothing to hold it against.
    #[inline]
    fn react(&mut self, ack: &AckFeedback<'_>, sample: &TelemetrySample<'_>, update: bool) -> bool {
        let drained = ack.acked >= ack.sent;
        let Some(registers) = &mut self.link_registers else {
            let mut most = LinkLoad::default();
            let measured = self.links.update(ack.now, drained, sample, |_, load| {
                if load.u > most.u || most.share == 0.0 {
                    most = load;
                }
            });
            if measured {
                self.window = self.register.react(&self.rules, most, update, self.rules.highest);
            }
            return measured;
        };
        let same_path = self.links.is_of(sample);
        let measured = self.links.update(ack.now, drained, sample, |at, load| registers.loads[at] = load);
        if measured {
            self.window = registers.react(&self.rules, self.links.count(), update);
        } else if !same_path {
            registers.begin(self.window);
        }
        measured
    }
}

impl RdmaControl for Hpcc {
    #[inline]
    fn on_ack(&mut self, ack: &AckFeedback<'_>) {
        let Some(sample) = ack.telemetry.as_ref().filter(|sample| !sample.hops.is_empty()) else { return };
        if !self.round.has_begun() {
            self.react(ack, sample, false);
            self.round.begin(ack);
            return;
        }
        let fresh = self.round.is_over(ack);
        let update = match self.reaction {
            Reaction::Combined => fresh,
            Reaction::PerAck => true,
            Reaction::PerRtt if fresh => true,
            Reaction::PerRtt => return,
        };
        if self.react(ack, sample, update) && fresh {
            self.round.begin(ack);
        }
    }

    #[inline]
    fn window(&self) -> u64 {
        (self.window as u64).max(1)
    }

    #[inline]
    fn rate(&self) -> Option<Rate> {
        self.paced.then(|| Rate::from_bits_per_second((self.window * self.pace + 0.5) as u64))
    }
}
