//! Thresholds of the analysis: li-thesis, Table 5.3, and §5.5.1.2 for how to choose.

use std::fmt;

use units::{Prob, Span};

/// All of them in one place; [`CauseThresholds::default`] is the thesis's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CauseThresholds {
    /// Losses closer than this belong to one burst (t_gap). At 10G a queue that gets 10 % too much loses a packet every
    /// 13 µs.
    pub gap: Span,
    /// This many losses make a burst (n_burst): few, for slight congestion; not so few that random drops come as close.
    pub burst: usize,
    /// A flow that loses more than these in a row within a burst is in a blackhole (n_bb): a little less than the window of a
    /// flow that still grows, and more than congestion drops of one flow in a row.
    pub bursty_blackhole: usize,
    /// A flow that loses this many in a row outside bursts is in a blackhole (n_nb); so are as many SYNs.
    pub blackhole: usize,
    /// Share of SYNs among the remaining losses above which they are in a blackhole (p_syn).
    pub syn: Prob,
    /// Share of bins with a loss, of as many bins as losses, above which losses are random (p_rand). Perfectly random
    /// losses fill 63 % of them.
    pub random: Prob,
    /// Fewer are not judged by how they are spread. Ours: the thesis has none.
    pub few: usize,
    /// Interval at which all losses outside of bursts are judged (long_term_interval).
    pub interval: Span,
    /// Time that a digest covers; a burst that goes on for longer is judged in pieces.
    pub batch: Span,
    /// A segment must lose packets for one cause in this many intervals before it is accused of it. Ours.
    pub again: usize,
}

impl Default for CauseThresholds {
    fn default() -> Self {
        Self {
            gap: Span::from_us(20),
            burst: 5,
            bursty_blackhole: 30,
            blackhole: 5,
            syn: Prob::literal(0.9),
            random: Prob::literal(0.5),
            few: 10,
            interval: Span::from_ms(100),
            batch: Span::from_ms(10),
            again: 2,
        }
    }
}

/// A threshold that makes no sense, and what would.
#[derive(Clone, Debug, PartialEq)]
pub struct ThresholdError {
    pub name: &'static str,
    pub found: String,
    pub expected: &'static str,
}

impl fmt::Display for ThresholdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, found, expected } = self;
        write!(f, "{name} is {found}, and must be {expected}")
    }
}

impl std::error::Error for ThresholdError {}

impl CauseThresholds {
    /// Returns the thresholds unchanged if they are valid.
    pub fn checked(self) -> Result<Self, ThresholdError> {
        let Self { gap, burst, bursty_blackhole, blackhole, syn, random, few, interval, batch, again } = self;
        let us = |span: Span| format!("{} us", span.as_us());
        let check = |holds: bool, name, found: String, expected| match holds {
            true => Ok(()),
            false => Err(ThresholdError { name, found, expected }),
        };
        let span = |span: Span, low, high| (low..=high).contains(&ns(span));
        check(span(gap, 1, 1_000_000), "gap", us(gap), "between 1 ns and 1 ms")?;
        check(span(batch, 1_000_000, 10_000_000_000), "batch", us(batch), "between 1 ms and 10 s")?;
        check(
            interval >= batch && span(interval, 0, 3_600_000_000_000),
            "interval",
            us(interval),
            "between a batch and 1 h",
        )?;
        check(burst >= 2, "burst", burst.to_string(), "at least 2")?;
        // Else a burst that is too short for one could be a flow's five in a row (the thesis's n_burst ≤ n_nb).
        check(blackhole >= burst, "blackhole", blackhole.to_string(), "no less than burst")?;
        check(
            bursty_blackhole >= blackhole,
            "bursty_blackhole",
            bursty_blackhole.to_string(),
            "no less than blackhole",
        )?;
        check((0.5..1.0).contains(&syn.get()), "syn", syn.get().to_string(), "from 0.5 to below 1")?;
        check(
            (0.0..0.63).contains(&random.get()),
            "random",
            random.get().to_string(),
            "below 0.63, which random losses fill",
        )?;
        check(few >= 2, "few", few.to_string(), "at least 2")?;
        check(again >= 1, "again", again.to_string(), "at least 1")?;
        Ok(self)
    }
}

pub(super) fn ns(span: Span) -> u64 {
    span.as_ps() / 1_000
}
