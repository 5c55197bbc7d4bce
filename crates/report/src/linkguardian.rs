//! LinkGuardian (SIGCOMM'23), run again: §4.1 and §4.6 on one link, §4.2 to §4.7 and App. B.3 within a network.

mod link;
mod net;
mod page;

use sim::link::Watch;

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
}

/// What came of them.
#[derive(Debug)]
pub struct Reproduction {
    pub link: Vec<LinkFinding>,
    /// What those took together.
    pub link_seconds: f64,
    pub net: Vec<Finding>,
}

impl Claims {
    pub fn all() -> Result<Self, ExperimentError> {
        Ok(Self { link: link::experiments()?, net: net::studies()? })
    }

    pub fn ids(&self) -> impl Iterator<Item = &str> {
        let link = self.link.iter().map(|claim| claim.id.as_str());
        link.chain(self.net.iter().map(|(claim, _)| claim.id.as_str()))
    }

    /// Those meant by `link`, `net` or the beginning of an id; `None` if there are none.
    pub fn select(mut self, what: &str) -> Option<Self> {
        let (link, net) = (what == "link", what == "net");
        self.link.retain(|claim| link || claim.id.starts_with(what));
        self.net.retain(|(claim, _)| net || claim.id.starts_with(what));
        (!self.link.is_empty() || !self.net.is_empty()).then_some(self)
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
        Ok(Reproduction { link, link_seconds, net: study::conduct(&self.net, scale, jobs, seed, watch)? })
    }
}

impl Reproduction {
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        let link = self.link.iter().flat_map(|finding| &finding.rows);
        link.chain(self.net.iter().flat_map(|finding| &finding.rows))
    }
}
