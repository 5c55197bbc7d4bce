//! What each link costs in a year.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use units::Moment;

use crate::corropt::{self, BUDGET};
use crate::fabric::{Fabric, LinkId};
use crate::ledger::{Ledger, State};
use crate::protection::Protect;
use crate::simulate::{Happened, Policy, Sample, Setup, simulate};
use crate::trace::Corruption;

/// By link, its loss added up over the hours in which it corrupted and was in service: as it is, and under protection.
#[derive(Clone, Debug, PartialEq)]
pub struct Exposure {
    bare: Vec<f64>,
    guarded: Vec<f64>,
    hours: f64,
}

impl Exposure {
    /// All links alike: where nothing has been simulated.
    pub fn even(fabric: &Fabric) -> Self {
        let links = fabric.links().len();
        Self { bare: vec![1.0; links], guarded: vec![0.0; links], hours: 1.0 }
    }

    /// Simulates the trace of `setup` under CorrOpt; what it says of policy and capable switches does not matter. `None`
    /// if `go_on`, which is told the time now and then, ends it.
    pub fn record(setup: &Setup<'_>, mut go_on: impl FnMut(Moment) -> bool) -> Option<Self> {
        let setup = Setup { policy: Policy::CorrOpt, capable: None, ..*setup };
        let mut mirror = Mirror::new(&setup);
        let mut ended = false;
        simulate(&setup, |sample| {
            mirror.see(sample);
            ended = !go_on(sample.at);
            if ended { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        (!ended).then(|| mirror.end(setup.until))
    }

    /// Further years of the same fabric.
    pub fn add(&mut self, other: &Self) {
        let sum = |to: &mut Vec<f64>, from: &[f64]| to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
        sum(&mut self.bare, &other.bare);
        sum(&mut self.guarded, &other.guarded);
        self.hours += other.hours;
    }

    /// Averaged over time, with protection where both ends are capable. Of corrupting links alone.
    pub fn mean_penalty(&self, fabric: &Fabric, capable: &[bool]) -> f64 {
        let of_link = |(index, link): (usize, &crate::fabric::Link)| {
            let guarded = capable[link.lower.index()] && capable[link.upper.index()];
            if guarded { self.guarded[index] } else { self.bare[index] }
        };
        let sum: f64 = fabric.links().iter().enumerate().map(of_link).sum();
        if self.hours > 0.0 { sum / self.hours } else { 0.0 }
    }

    /// What protection of each link is expected to gain: the mean of all links between the same levels, because which of
    /// them corrupts next year is not known.
    pub(super) fn expected_gains(&self, fabric: &Fabric) -> Vec<f64> {
        let class = |link: &crate::fabric::Link| (fabric.switch(link.lower).level, fabric.switch(link.upper).level);
        let mut classes: BTreeMap<(u8, u8), (f64, u32)> = BTreeMap::new();
        for (index, link) in fabric.links().iter().enumerate() {
            let (sum, count) = classes.entry(class(link)).or_default();
            *sum += self.bare[index] - self.guarded[index];
            *count += 1;
        }
        let mean = |link| classes.get(&class(link)).map_or(0.0, |(sum, count)| sum / f64::from(*count));
        fabric.links().iter().map(mean).collect()
    }
}

/// Takes the decisions of a simulation along with it, because they are made link by link and a sample has only totals.
struct Mirror<'a> {
    ledger: Ledger<'a>,
    upcoming: std::slice::Iter<'a, Corruption>,
    protection: &'a dyn Protect,
    /// When each link that is corrupting began to lose as much as it does.
    since: Vec<Moment>,
    exposure: Exposure,
}

impl<'a> Mirror<'a> {
    fn new(setup: &Setup<'a>) -> Self {
        let links = setup.fabric.links().len();
        Self {
            ledger: Ledger::new(setup.fabric, setup.terms),
            upcoming: setup.trace.iter(),
            protection: setup.protection,
            since: vec![Moment::ZERO; links],
            exposure: Exposure { bare: vec![0.0; links], guarded: vec![0.0; links], hours: 0.0 },
        }
    }

    fn see(&mut self, sample: &Sample) {
        let Sample { at, link, .. } = *sample;
        match sample.happened {
            Happened::Corrupted => {
                let corruption = self.upcoming.find(|corruption| (corruption.at, corruption.link) == (at, link));
                let loss = corruption.expect("every corruption that happens is in the trace").loss;
                self.account(at, link);
                if self.ledger.paths_mut().can_disable(link) {
                    self.ledger.disable(link);
                } else {
                    self.ledger.corrupt(link, loss, None);
                    self.since[link.index()] = at;
                }
            }
            Happened::Repaired => {
                self.ledger.repair(link);
                let candidates = self.ledger.candidates(self.ledger.fabric().link(link).segment);
                if !candidates.is_empty() {
                    for gone in corropt::choose(self.ledger.paths_mut(), &candidates, BUDGET).links {
                        self.account(at, gone);
                        self.ledger.disable(gone);
                    }
                }
            }
        }
        assert_eq!(self.ledger.totals().disabled, sample.totals.disabled, "the mirror is not what it mirrors");
    }

    /// What a link has cost up to `now`.
    fn account(&mut self, now: Moment, link: LinkId) {
        if let State::Corrupting { loss, .. } = self.ledger.state(link) {
            let hours = now.since(self.since[link.index()]).as_secs_f64() / 3_600.0;
            self.exposure.bare[link.index()] += loss * hours;
            self.exposure.guarded[link.index()] += self.protection.protect(loss).loss * hours;
        }
    }

    fn end(mut self, until: Moment) -> Exposure {
        for link in (0..self.since.len() as u32).map(LinkId) {
            self.account(until, link);
        }
        Exposure { hours: until.as_hours(), ..self.exposure }
    }
}
