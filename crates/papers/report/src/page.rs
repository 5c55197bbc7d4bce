//! The report of a reproduction: one HTML file with every claim, its charts, and the paper's values beside ours.
//!
//! It loads nothing and runs nothing: text, tables and SVG with one stylesheet, for a telephone, a desk and paper, by
//! day and by night. What is inserted is escaped; what is no number is a dash.

mod section;
mod verdict;

pub use verdict::{short as tally_words, summary as tally_summary};

use crate::claim::{ClaimResult, EvidenceCounts, VerdictTally};
use crate::svg::escape;
use chart::Palette;
use chart::page::{PageFrame, command};

const FOOTER: &str = "<p>A value matches if it lies within the band that its experiment’s file gives: its whole \
                      95 % interval, where it has one. If the interval neither lies within the band nor excludes it, \
                      too few trials were run.</p>\n";

#[derive(Clone, Debug)]
pub struct Page {
    pub title: String,
    /// A paragraph.
    pub lead: String,
    /// Command that makes the same again.
    pub command: String,
    /// Seed, scale, version, time taken: names and values.
    pub facts: Vec<(String, String)>,
    pub claims: Vec<ClaimResult>,
}

impl Page {
    pub fn html(&self) -> String {
        let mut palette = Palette::default();
        let claims = self.claims.iter().enumerate();
        let main: String = claims.map(|(at, claim)| claim.html(at + 1, &mut palette)).collect();
        PageFrame { title: &self.title, css: "", header: &self.header(), main: &main, footer: FOOTER }.html()
    }

    fn header(&self) -> String {
        let command = if self.command.is_empty() { String::new() } else { command(&self.command) };
        let points = || self.claims.iter().flat_map(|claim| &claim.points);
        format!(
            "<p class=\"lead\">{}</p>\n{}<p class=\"kinds\">claims: {}</p>\n{command}{}{}",
            escape(&self.lead),
            verdict::summary(&VerdictTally::of(points())),
            EvidenceCounts::of(points()),
            self.facts(),
            self.index()
        )
    }

    fn facts(&self) -> String {
        if self.facts.is_empty() {
            return String::new();
        }
        let fact = |(name, value): &(String, String)| {
            format!("<div><dt>{}</dt><dd>{}</dd></div>\n", escape(name), escape(value))
        };
        format!("<dl class=\"facts\">\n{}</dl>\n", self.facts.iter().map(fact).collect::<String>())
    }

    fn index(&self) -> String {
        if self.claims.is_empty() {
            return String::new();
        }
        let entry = |claim: &ClaimResult| {
            format!(
                "<li><a href=\"#{}\">{}</a> <cite>{}</cite> {}</li>\n",
                claim.anchor(),
                escape(&claim.title),
                escape(&claim.paper),
                verdict::short(&claim.tally())
            )
        };
        let entries: String = self.claims.iter().map(entry).collect();
        format!("<nav aria-labelledby=\"claims\">\n<h2 id=\"claims\">Claims</h2>\n<ol>\n{entries}</ol>\n</nav>\n")
    }
}

#[cfg(test)]
mod tests;
