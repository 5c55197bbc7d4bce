//! Delays of packets between two captures: as JSON, as text, as a page with charts, and the reason if there is no answer.

mod answer;
mod page;
mod refusal;
mod text;

pub use answer::DelayAnswer;
pub use refusal::refusal;

use chart::table::thousands;

use crate::compare::CaptureContents;
use crate::compare::report::text::{packets, time};
use crate::delay::{DelayAnalysis, DelayDirection, DirectionDelays};

/// The question, as a user put it.
#[derive(Clone, Debug)]
pub struct DelayQuestion {
    pub up: String,
    pub down: String,
    pub drift_ppm: f64,
    /// Both clocks said how wrong they are.
    pub has_clocks: bool,
}

/// An analysis with everything that is said about it.
#[derive(Debug)]
pub struct DelayReport {
    question: DelayQuestion,
    analysis: DelayAnalysis,
    notes: Vec<String>,
    seconds: f64,
}

impl DelayReport {
    /// A report with the seconds that the analysis took.
    pub fn new(question: DelayQuestion, analysis: DelayAnalysis, seconds: f64) -> Self {
        let notes = notes(&question, &analysis);
        Self { question, analysis, notes, seconds }
    }

    pub fn answer(&self) -> DelayAnswer {
        DelayAnswer::of(self)
    }

    /// Report as text, with at most `top` flows.
    pub fn text(&self, top: usize) -> String {
        text::describe(self, top)
    }

    pub fn page(&self) -> String {
        page::page(self)
    }
}

fn notes(question: &DelayQuestion, analysis: &DelayAnalysis) -> Vec<String> {
    let mut notes = Vec::new();
    let mut contents = |name: &str, contents: &CaptureContents| {
        if contents.truncated {
            notes.push(format!("{name} ends within a record: what came after it is not there"));
        }
        if contents.other_links > 0 {
            notes.push(format!(
                "{} frames of {name} are of a link type that is not read here",
                thousands(contents.other_links)
            ));
        }
    };
    contents(&question.up, &analysis.up);
    contents(&question.down, &analysis.down);
    let unmeasured = analysis.unmeasured;
    if unmeasured.only_up + unmeasured.only_down > 0 {
        notes.push(format!(
            "{} only in UP and {} only in DOWN: lost, outside of the other capture, or changed on their way",
            packets(unmeasured.only_up),
            thousands(unmeasured.only_down)
        ));
    }
    if unmeasured.alike > 0 {
        notes.push(format!(
            "{} not measured: alike to the last bit, so which is which cannot be known",
            packets(unmeasured.alike)
        ));
    }
    if unmeasured.undirected > 0 {
        notes.push(format!(
            "{} not measured: nothing shows on which side their hosts are",
            packets(unmeasured.undirected)
        ));
    }
    notes
}

/// Why this direction has no delay, or why it is not known to be the slower or the faster one.
fn reason(direction: &DirectionDelays, analysis: &DelayAnalysis) -> Option<String> {
    if direction.delay.is_none() {
        return Some("no packet of this direction is in both captures".to_owned());
    }
    if direction.sure {
        return None;
    }
    let width = analysis.offset.ends().map_or(0, |(low, high)| high.saturating_sub(low));
    Some(format!("the medians of both directions overlap: DOWN's clock is known to ± {} at best", time(width / 2)))
}

/// Names the direction that takes longer, or says that it cannot be known.
fn verdict(analysis: &DelayAnalysis) -> String {
    let name = |direction| match direction {
        DelayDirection::UpToDown => "from UP to DOWN",
        DelayDirection::DownToUp => "from DOWN to UP",
    };
    let [forth, back] = &analysis.directions;
    if let Some(slower) = analysis.slower {
        return format!("packets take longer {} (medians)", name(slower));
    }
    match (forth.delay, back.delay) {
        (Some(_), Some(_)) => {
            let reason = reason(forth, analysis).unwrap_or_default();
            format!("which direction takes longer cannot be said: {reason}")
        }
        (Some(_), None) => "all packets that both captures have go from UP to DOWN".to_owned(),
        _ => "all packets that both captures have go from DOWN to UP".to_owned(),
    }
}

#[cfg(test)]
mod tests;
