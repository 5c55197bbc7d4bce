//! Penalty of each link in a year.

use std::collections::BTreeMap;

use units::{Moment, Progress};

use crate::fabric::{Fabric, LinkId};
use crate::protection::Protect;
use crate::simulate::{FleetSetup, Observer, Policy, simulate};

/// Loss of each link, summed over the hours in which it corrupted in service, without protection and with it.
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
    /// if `progress`, which gets the days simulated so far, ends it.
    pub fn record(setup: &FleetSetup<'_>, progress: &dyn Progress) -> Option<Self> {
        let setup = FleetSetup { policy: Policy::CorrOpt, capable: None, ..*setup };
        let mut recorder = ExposureRecorder::new(&setup);
        let outcome = simulate(&setup, &mut recorder, progress);
        (outcome.until == setup.until).then(|| recorder.end(setup.until))
    }

    /// Adds further years of the same fabric.
    pub fn add(&mut self, other: &Self) {
        let sum = |to: &mut Vec<f64>, from: &[f64]| to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
        sum(&mut self.bare, &other.bare);
        sum(&mut self.guarded, &other.guarded);
        self.hours += other.hours;
    }

    /// Averaged over time, with protection where both ends are capable. Of corrupting links alone.
    pub fn mean_penalty(&self, fabric: &Fabric, capable: &[bool]) -> f64 {
        let of_link = |(index, link): (usize, &crate::fabric::FabricLink)| {
            let guarded = capable[link.lower.index()] && capable[link.upper.index()];
            if guarded { self.guarded[index] } else { self.bare[index] }
        };
        let sum: f64 = fabric.links().iter().enumerate().map(of_link).sum();
        if self.hours > 0.0 { sum / self.hours } else { 0.0 }
    }

    /// Expected gain by protection of each link: the mean of all links between the same levels, because which of them
    /// corrupts next year is not known.
    pub(super) fn expected_gains(&self, fabric: &Fabric) -> Vec<f64> {
        let class =
            |link: &crate::fabric::FabricLink| (fabric.switch(link.lower).level, fabric.switch(link.upper).level);
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

/// Adds up exposure while a simulation runs.
struct ExposureRecorder<'a> {
    protection: &'a dyn Protect,
    /// Time since which each link has had its present loss, and that loss; `None` unless it corrupts in service.
    losing: Vec<Option<(Moment, f64)>>,
    exposure: Exposure,
}

impl<'a> ExposureRecorder<'a> {
    fn new(setup: &FleetSetup<'a>) -> Self {
        let links = setup.fabric.links().len();
        Self {
            protection: setup.protection,
            losing: vec![None; links],
            exposure: Exposure { bare: vec![0.0; links], guarded: vec![0.0; links], hours: 0.0 },
        }
    }

    /// Adds up the penalty of a link up to `now`.
    fn settle(&mut self, now: Moment, link: usize) {
        if let Some((since, loss)) = self.losing[link].take() {
            let hours = now.since(since).as_secs_f64() / 3_600.0;
            self.exposure.bare[link] += loss * hours;
            self.exposure.guarded[link] += self.protection.protect(loss).loss * hours;
        }
    }

    fn end(mut self, until: Moment) -> Exposure {
        (0..self.losing.len()).for_each(|link| self.settle(until, link));
        Exposure { hours: until.as_hours(), ..self.exposure }
    }
}

impl Observer for &mut ExposureRecorder<'_> {
    fn corrupted(&mut self, at: Moment, link: LinkId, loss: f64) {
        self.settle(at, link.index());
        self.losing[link.index()] = Some((at, loss));
    }

    fn disabled(&mut self, at: Moment, link: LinkId) {
        self.settle(at, link.index());
    }
}
