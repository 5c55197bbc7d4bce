//! The packets of one capture that are missing in another: as JSON, as text with what to know before believing it, and as a
//! page with a timeline.

pub(crate) mod answer;
mod notes;
pub(crate) mod page;
pub(crate) mod text;

pub use answer::LossAnswer;
pub use notes::refusal;

use clock::offset::OffsetBand;

use crate::compare::Comparison;
use crate::loss::LossCause;
use crate::rule::CauseLine;

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

/// Knowledge about DOWN's clock, relative to UP's.
#[derive(Debug)]
pub enum OtherClock {
    /// Offset of DOWN's clock to UP's, over time.
    Known(OffsetBand),
    /// Reason for which nothing is known of it.
    Unknown(String),
}

/// A comparison with everything that is said about it.
#[derive(Debug)]
pub struct LossReport {
    captures: Captures,
    comparison: Comparison,
    causes: Vec<LossCause>,
    intervals: Vec<CauseLine>,
    notes: Vec<String>,
    seconds: f64,
    clock: Option<OtherClock>,
}

impl LossReport {
    /// A report with a cause for each loss, and the seconds that the comparison took.
    pub fn new(captures: Captures, comparison: Comparison, causes: Vec<LossCause>, seconds: f64) -> Self {
        let notes = notes::notes(&comparison, &captures);
        Self { captures, comparison, causes, intervals: Vec::new(), notes, seconds, clock: None }
    }

    /// With the causes of intervals, and what they rest on.
    #[must_use]
    pub fn with_intervals(self, intervals: Vec<CauseLine>) -> Self {
        Self { intervals, ..self }
    }

    /// Adds DOWN's clock, so that both captures have one axis of time.
    #[must_use]
    pub fn with_clock(mut self, clock: Option<OtherClock>) -> Self {
        if let Some(OtherClock::Unknown(reason)) = &clock {
            self.notes.push(format!("when DOWN's clock showed these times is not known: {reason}"));
        }
        Self { clock, ..self }
    }

    /// Earliest and latest time that DOWN's clock may have shown when UP's showed `at`.
    fn down_time(&self, at: u64) -> Option<(u64, u64)> {
        let Some(OtherClock::Known(band)) = &self.clock else { return None };
        let at = i64::try_from(at).ok()?;
        let (low, high) = band.at(at).ends()?;
        let shown = |offset: i64| u64::try_from(at.saturating_add(offset)).ok();
        shown(low).zip(shown(high))
    }

    /// Earliest and latest time that UP's clock may have shown when DOWN's showed `down`. A first estimate uses the offset
    /// where it is best known.
    fn up_time(&self, down: u64) -> Option<(u64, u64)> {
        let Some(OtherClock::Known(band)) = &self.clock else { return None };
        let down = i64::try_from(down).ok()?;
        let (_, low, high) = band.narrowest()?;
        let about = down.saturating_sub(low / 2 + high / 2);
        let (low, high) = band.at(about).ends()?;
        let shown = |offset: i64| u64::try_from(down.saturating_sub(offset)).ok();
        shown(high).zip(shown(low))
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
