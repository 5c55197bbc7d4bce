//! LinkGuardian (SIGCOMM'23), run again: §4.1 and §4.6 on one link, §4.2 to §4.7 and App. B.3 within a network, §4.8
//! over a fleet of links.

mod fleet;
mod link;
mod net;
mod page;

use sim::link::Watch;

pub use self::fleet::{FleetClaim, FleetFinding};
pub use link::LinkFinding;
pub use page::About;

use crate::experiment::{Experiment, ExperimentError, Row, Scale};
use crate::stopwatch::Stopwatch;
use crate::study::{self, Finding, Study};

/// Every claim, by where it is tried.
#[derive(Debug)]
pub struct Claims {
    pub link: Vec<Experiment>,
    /// Each with the text of its scenario.
    pub net: Vec<(Study, &'static str)>,
    pub fleet: Vec<FleetClaim>,
}

/// What came of them.
#[derive(Debug)]
pub struct Reproduction {
    pub link: Vec<LinkFinding>,
    /// What those took together.
    pub link_seconds: f64,
    pub net: Vec<Finding>,
    pub fleet: Vec<FleetFinding>,
}

impl Claims {
    pub fn all() -> Result<Self, ExperimentError> {
        Ok(Self { link: link::experiments()?, net: net::studies()?, fleet: self::fleet::claims()? })
    }

    pub fn ids(&self) -> impl Iterator<Item = &str> {
        let link = self.link.iter().map(|claim| claim.id.as_str());
        let net = self.net.iter().map(|(claim, _)| claim.id.as_str());
        link.chain(net).chain(self.fleet.iter().map(|claim| claim.id.as_str()))
    }

    /// Those meant by `link`, `net`, `fleet` or the beginning of an id; `None` if there are none.
    pub fn select(mut self, what: &str) -> Option<Self> {
        let [link, net, fleet] = ["link", "net", "fleet"].map(|part| what == part);
        self.link.retain(|claim| link || claim.id.starts_with(what));
        self.net.retain(|(claim, _)| net || claim.id.starts_with(what));
        self.fleet.retain(|claim| fleet || claim.id.starts_with(what));
        let any = self.ids().next().is_some();
        any.then_some(self)
    }

    /// Runs them; what `watch` ended early is missing from the result.
    pub fn reproduce(
        self,
        scale: Scale,
        jobs: usize,
        seed: u64,
        watch: &(dyn Watch + Sync),
    ) -> Result<Reproduction, ExperimentError> {
        let begun = Stopwatch::start();
        let link = link::reproduce(self.link, scale, jobs, seed, watch)?;
        let link_seconds = begun.seconds();
        let net = study::conduct(&self.net, scale, jobs, seed, watch)?;
        let fleet = self::fleet::reproduce(self.fleet, scale, jobs, seed, watch)?;
        Ok(Reproduction { link, link_seconds, net, fleet })
    }
}

impl Reproduction {
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        let link = self.link.iter().flat_map(|finding| &finding.rows);
        let net = self.net.iter().flat_map(|finding| &finding.rows);
        link.chain(net).chain(self.fleet.iter().flat_map(|finding| &finding.rows))
    }
}
