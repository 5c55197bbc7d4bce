//! A reproduction as a page.

use report::page::Page;

use crate::Reproduction;

/// Origin of the page, as it states it.
#[derive(Clone, Debug)]
pub struct PageInfo {
    /// Command line that made it.
    pub command: String,
    pub scale: String,
    pub seed: u64,
    pub version: String,
    pub seconds: f64,
    /// Ended from the keyboard: some claims are missing.
    pub interrupted: bool,
}

impl Reproduction {
    pub fn page(&self, about: &PageInfo) -> Page {
        let missing =
            if about.interrupted { " It was interrupted: what had not ended by then is missing." } else { "" };
        Page {
            title: self.paper.title.into(),
            lead: format!("{}{missing}", self.paper.lead),
            command: about.command.clone(),
            facts: vec![
                ("scale".into(), about.scale.clone()),
                ("seed".into(), about.seed.to_string()),
                ("version".into(), about.version.clone()),
                ("took".into(), chart::seconds(about.seconds)),
            ],
            claims: self.results.clone(),
        }
    }
}
