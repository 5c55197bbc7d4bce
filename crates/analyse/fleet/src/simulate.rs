//! A year of corrupting links under a policy: LinkGuardian §4.8, Fig. 15 and 16.
//!
//! A link that begins to corrupt is protected at once, if the policy and its switches can; then CorrOpt's fast checker is
//! asked whether it can go for repair. When one comes back from repair, the optimizer chooses among the corrupting links
//! that had to stay. It weighs them by what they lose without protection, as the paper does: so two policies that both
//! repair take the same decisions at the same times, and differ in what the links that stay cost.

pub mod report;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use units::{Moment, Progress};

use crate::corropt::{self, BUDGET};
use crate::fabric::{Fabric, LinkId};
use crate::ledger::{Ledger, LedgerTerms, LedgerTotals, LinkState};
use crate::penalty::Penalty;
use crate::protection::Protect;
use crate::trace::CorruptionEvent;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Corrupting links stay as they are.
    None,
    /// They are disabled and repaired where the constraint allows it.
    CorrOpt,
    /// As [`Policy::CorrOpt`], and links that have to stay are protected.
    CorrOptGuard,
    /// They are protected and never repaired.
    GuardOnly,
}

impl Policy {
    pub const ALL: [Self; 4] = [Self::None, Self::CorrOpt, Self::CorrOptGuard, Self::GuardOnly];

    fn protects(self) -> bool {
        matches!(self, Self::CorrOptGuard | Self::GuardOnly)
    }

    fn repairs(self) -> bool {
        matches!(self, Self::CorrOpt | Self::CorrOptGuard)
    }
}

impl std::fmt::Display for Policy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::None => "none",
            Self::CorrOpt => "corropt",
            Self::CorrOptGuard => "corropt+guard",
            Self::GuardOnly => "guard-only",
        })
    }
}

#[derive(Clone, Copy, Debug)]
pub struct FleetSetup<'a> {
    pub fabric: &'a Fabric,
    /// Events, in order of time.
    pub trace: &'a [CorruptionEvent],
    pub until: Moment,
    pub policy: Policy,
    pub terms: LedgerTerms,
    /// Effect of protection on a link.
    pub protection: &'a dyn Protect,
    /// True for each switch that can protect its links; `None` if all can. A link needs both its ends.
    pub capable: Option<&'a [bool]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FleetEvent {
    /// A link began to corrupt, or its loss changed.
    Corrupted,
    /// A link came back from repair.
    Repaired,
}

/// The fabric after an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FleetSample {
    pub at: Moment,
    pub happened: FleetEvent,
    pub link: LinkId,
    pub totals: LedgerTotals,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FleetOutcome {
    /// Links that began to corrupt and links that came back. Corruption of a disabled link is no event.
    pub events: u64,
    /// Events in which the fast checker said no.
    pub kept_corrupting: u64,
    pub disabled_max: u32,
    pub corrupting_max: u32,
    pub protected_max: u32,
    /// Averaged over time.
    pub mean_penalty: f64,
    pub max_penalty: f64,
    pub least_paths: u64,
    pub least_share: f64,
    pub least_capacity: f64,
    /// Averaged over time: the capacity of whichever pod had least.
    pub mean_least_capacity: f64,
    pub protected_per_pipe_max: u32,
    pub optimizer_runs: u64,
    /// Runs that ended before they were sure, and the most that any of them may have missed.
    pub optimizer_stopped: u64,
    pub optimizer_missed: f64,
    /// Moment at which it ended.
    pub until: Moment,
}

/// Follows a simulation, link by link. A closure over samples is one, too.
pub trait Observer {
    /// An enabled link begins to corrupt, or its loss changes, and it has to stay.
    fn corrupted(&mut self, _at: Moment, _link: LinkId, _loss: f64) {}
    /// A corrupting link goes for repair.
    fn disabled(&mut self, _at: Moment, _link: LinkId) {}
    /// A link comes back from repair.
    fn enabled(&mut self, _at: Moment, _link: LinkId) {}
    /// The fabric after an event.
    fn sampled(&mut self, _sample: &FleetSample) {}
}

impl<F: FnMut(&FleetSample)> Observer for F {
    fn sampled(&mut self, sample: &FleetSample) {
        self(sample);
    }
}

/// Runs until the end, or until `progress`, which gets the days simulated so far, ends it.
pub fn simulate(setup: &FleetSetup<'_>, observer: impl Observer, progress: &dyn Progress) -> FleetOutcome {
    let mut year = YearState::new(setup, observer);
    let mut upcoming = setup.trace.iter().take_while(|corruption| corruption.at < setup.until).peekable();
    loop {
        let repair = year.repairs.peek().map(|Reverse((at, ..))| *at).filter(|at| *at < setup.until);
        let happened = match (upcoming.peek(), repair) {
            // A link that comes back makes room for one that goes at the same moment.
            (Some(next), Some(at)) if at <= next.at => year.next_repair(),
            (None, Some(_)) => year.next_repair(),
            (Some(_), _) => upcoming.next().and_then(|corruption| year.corrupted(corruption)),
            (None, None) => break,
        };
        let Some(sample) = happened else { continue };
        year.observer.sampled(&sample);
        if year.outcome.events % EVENTS_BETWEEN_LOOKS == 1 && !progress.go_on(sample.at.as_days() as u64) {
            return year.end(sample.at);
        }
    }
    year.end(setup.until)
}

/// Events between two checks for an interruption. The number is small because the optimizer may need seconds for one event.
const EVENTS_BETWEEN_LOOKS: u64 = 16;
/// Events between two checks of the books, in debug builds.
const CHECK_EVERY: u64 = 256;

struct YearState<'a, O> {
    setup: &'a FleetSetup<'a>,
    observer: O,
    ledger: Ledger<'a>,
    /// Moments at which disabled links come back; numbered, so that two at the same moment have an order.
    repairs: BinaryHeap<Reverse<(Moment, u64, LinkId)>>,
    /// Time that the repair of each link will take, once it is sent.
    duration: Vec<Duration>,
    scheduled: u64,
    outcome: FleetOutcome,
    since: Moment,
    penalty_hours: f64,
    capacity_hours: f64,
}

impl<'a, O: Observer> YearState<'a, O> {
    fn new(setup: &'a FleetSetup<'a>, observer: O) -> Self {
        let ledger = Ledger::new(setup.fabric, setup.terms);
        let totals = ledger.totals();
        let outcome = FleetOutcome {
            events: 0,
            kept_corrupting: 0,
            disabled_max: 0,
            corrupting_max: 0,
            protected_max: 0,
            mean_penalty: 0.0,
            max_penalty: totals.penalty.as_f64(),
            least_paths: totals.least_paths,
            least_share: totals.least_share,
            least_capacity: totals.least_capacity,
            mean_least_capacity: 0.0,
            protected_per_pipe_max: 0,
            optimizer_runs: 0,
            optimizer_stopped: 0,
            optimizer_missed: 0.0,
            until: Moment::ZERO,
        };
        Self {
            setup,
            observer,
            ledger,
            repairs: BinaryHeap::new(),
            duration: vec![Duration::ZERO; setup.fabric.links().len()],
            scheduled: 0,
            outcome,
            since: Moment::ZERO,
            penalty_hours: 0.0,
            capacity_hours: 0.0,
        }
    }

    fn corrupted(&mut self, corruption: &CorruptionEvent) -> Option<FleetSample> {
        let link = corruption.link;
        if self.ledger.state(link) == LinkState::Disabled {
            return None;
        }
        self.pass(corruption.at);
        self.duration[link.index()] = corruption.repair;
        let repairs = self.setup.policy.repairs();
        if repairs && self.ledger.paths_mut().can_disable(link) {
            self.send_for_repair(corruption.at, link);
        } else {
            self.outcome.kept_corrupting += u64::from(repairs);
            let protected = self.setup.policy.protects() && self.is_capable(link);
            let protection = protected.then(|| self.setup.protection.protect(corruption.loss));
            self.ledger.corrupt(link, corruption.loss, protection);
            self.observer.corrupted(corruption.at, link, corruption.loss);
        }
        Some(self.sample(corruption.at, FleetEvent::Corrupted, link))
    }

    fn next_repair(&mut self) -> Option<FleetSample> {
        let Reverse((at, _, link)) = self.repairs.pop()?;
        self.pass(at);
        self.ledger.repair(link);
        self.observer.enabled(at, link);
        let candidates = self.ledger.candidates(self.setup.fabric.link(link).segment);
        if !candidates.is_empty() {
            self.outcome.optimizer_runs += 1;
            let choice = corropt::choose(self.ledger.paths_mut(), &candidates, BUDGET);
            if choice.missed > Penalty::ZERO {
                self.outcome.optimizer_stopped += 1;
                self.outcome.optimizer_missed = self.outcome.optimizer_missed.max(choice.missed.as_f64());
            }
            for chosen in choice.links {
                self.send_for_repair(at, chosen);
            }
        }
        Some(self.sample(at, FleetEvent::Repaired, link))
    }

    fn send_for_repair(&mut self, now: Moment, link: LinkId) {
        self.ledger.disable(link);
        self.observer.disabled(now, link);
        let back = now.after(self.duration[link.index()]);
        self.repairs.push(Reverse((back, self.scheduled, link)));
        self.scheduled += 1;
    }

    fn is_capable(&self, link: LinkId) -> bool {
        let link = self.setup.fabric.link(link);
        self.setup.capable.is_none_or(|capable| capable[link.lower.index()] && capable[link.upper.index()])
    }

    /// Accounts for the time up to `now`, in which nothing changed.
    fn pass(&mut self, now: Moment) {
        let totals = self.ledger.totals();
        let hours = now.as_hours() - self.since.as_hours();
        self.penalty_hours += totals.penalty.as_f64() * hours;
        self.capacity_hours += totals.least_capacity * hours;
        self.since = now;
    }

    fn sample(&mut self, at: Moment, happened: FleetEvent, link: LinkId) -> FleetSample {
        let (totals, outcome) = (self.ledger.totals(), &mut self.outcome);
        outcome.events += 1;
        let check = cfg!(debug_assertions) && outcome.events.is_multiple_of(CHECK_EVERY);
        outcome.disabled_max = outcome.disabled_max.max(totals.disabled);
        outcome.corrupting_max = outcome.corrupting_max.max(totals.corrupting);
        outcome.protected_max = outcome.protected_max.max(totals.protected);
        outcome.max_penalty = outcome.max_penalty.max(totals.penalty.as_f64());
        outcome.least_paths = outcome.least_paths.min(totals.least_paths);
        outcome.least_share = outcome.least_share.min(totals.least_share);
        outcome.least_capacity = outcome.least_capacity.min(totals.least_capacity);
        outcome.protected_per_pipe_max = outcome.protected_per_pipe_max.max(totals.most_in_a_pipe);
        if check {
            self.check_invariants();
        }
        FleetSample { at, happened, link, totals }
    }

    /// Panics if the books are wrong, or a ToR has fewer paths than the constraint asks for.
    fn check_invariants(&self) {
        self.ledger.check_invariants();
        let mut tors = self.setup.fabric.segments().iter().flat_map(|segment| &segment.tors);
        assert!(tors.all(|tor| self.ledger.paths().is_satisfied(*tor)), "a ToR is below its constraint");
    }

    fn end(mut self, until: Moment) -> FleetOutcome {
        if cfg!(debug_assertions) {
            self.check_invariants();
        }
        self.pass(until);
        let hours = until.as_hours();
        let mean = |sum: f64| if hours > 0.0 { sum / hours } else { 0.0 };
        FleetOutcome {
            mean_penalty: mean(self.penalty_hours),
            mean_least_capacity: mean(self.capacity_hours),
            until,
            ..self.outcome
        }
    }
}
