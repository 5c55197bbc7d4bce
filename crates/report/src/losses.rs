//! The packets of one capture that are missing in another: as JSON, as text with what to know before believing it, and as a
//! page with a timeline.

mod answer;
mod notes;
mod page;
mod text;

pub use answer::LossAnswer;
pub use notes::refusal;

use radar::compare::Comparison;
use radar::loss::LossCause;

/// The two captures as a user named them, and what the user said about them.
#[derive(Clone, Debug, Default)]
pub struct Captures {
    pub up: String,
    pub down: String,
    /// Addresses and ports that are rewritten between them.
    pub source_rewritten: bool,
    pub destination_rewritten: bool,
    /// Compared packet by packet, instead of by digests.
    pub exact: bool,
}

/// A comparison with everything that is said about it.
#[derive(Debug)]
pub struct LossReport {
    captures: Captures,
    comparison: Comparison,
    causes: Vec<LossCause>,
    notes: Vec<String>,
    seconds: f64,
}

impl LossReport {
    /// With a cause for each loss, and the seconds that it took.
    pub fn new(captures: Captures, comparison: Comparison, causes: Vec<LossCause>, seconds: f64) -> Self {
        let notes = notes::notes(&comparison, &captures);
        Self { captures, comparison, causes, notes, seconds }
    }

    pub fn comparison(&self) -> &Comparison {
        &self.comparison
    }

    pub fn answer(&self) -> LossAnswer {
        LossAnswer::of(self)
    }

    /// The text, with at most `top` flows and losses.
    pub fn text(&self, top: usize) -> String {
        text::describe(self, top)
    }

    pub fn page(&self) -> String {
        page::page(self)
    }

    /// The share of packets that were lost.
    fn loss(&self) -> f64 {
        self.comparison.losses() as f64 / self.comparison.judged().max(1) as f64
    }

    fn packets_per_second(&self) -> f64 {
        self.comparison.up.packets as f64 / self.seconds.max(1e-9)
    }
}
