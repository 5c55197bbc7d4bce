//! What can be taken from a run.
//!
//! A measure is named as in `fct.p99.9`, `goodput 0.4..0.6` or `rx.max 0.7..1`. Two numbers behind a name are a window:
//! fractions of the run's length.

use std::fmt;

use super::gather::{Gathered, Moment};
use crate::experiment::Measured;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Measure {
    /// Flow completion time in µs below which this share of the flows lies.
    Fct(f64),
    /// Payload received in order, in Gb/s, of all traffic.
    Goodput(Window),
    /// Levels at the first port watched, the highest sampled, in KB.
    Queue(Window),
    TxBuffer(Window),
    RxBuffer(Window),
    /// Segments sent again per second.
    Retransmissions(Window),
    /// Packets dropped at the first port watched.
    Drops(Window),
    /// Highest levels ever, in KB, by the link protocol's own account.
    TxPeak,
    RxPeak,
    Overflows,
    GivenUp,
    /// Share of flows that noticed a loss.
    Touched,
    /// Of the flows whose segments arrived out of order: the share that reduced the window with data left to send.
    ReducedEarly,
    /// And with how many bytes left at most.
    MostPending,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    pub from: f64,
    pub to: f64,
}

/// What a measure must not be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownMeasure;

impl fmt::Display for UnknownMeasure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "expected fct.pNN, goodput, queue.max, tx.max, rx.max, retransmissions, drops (each with a window such as \
             0.2..0.8), tx.peak, rx.peak, overflows, given_up, touched, reduced_early or most_pending",
        )
    }
}

impl std::error::Error for UnknownMeasure {}

/// Fewer flows than this beyond a percentile say nothing about it.
const FEWEST_BEYOND: f64 = 5.0;

impl Measure {
    pub fn parse(text: &str) -> Result<Self, UnknownMeasure> {
        if let Some(percent) = text.strip_prefix("fct.p") {
            let percent: f64 = percent.parse().map_err(|_| UnknownMeasure)?;
            return if (0.0..100.0).contains(&percent) { Ok(Self::Fct(percent / 100.0)) } else { Err(UnknownMeasure) };
        }
        let (name, window) = text
            .split_once(' ')
            .map_or((text, Ok(Window::ALL)), |(name, window)| (name, Window::parse(window).ok_or(UnknownMeasure)));
        let window = window?;
        Ok(match name {
            "goodput" => Self::Goodput(window),
            "queue.max" => Self::Queue(window),
            "tx.max" => Self::TxBuffer(window),
            "rx.max" => Self::RxBuffer(window),
            "retransmissions" => Self::Retransmissions(window),
            "drops" => Self::Drops(window),
            "tx.peak" => Self::TxPeak,
            "rx.peak" => Self::RxPeak,
            "overflows" => Self::Overflows,
            "given_up" => Self::GivenUp,
            "touched" => Self::Touched,
            "reduced_early" => Self::ReducedEarly,
            "most_pending" => Self::MostPending,
            _ => return Err(UnknownMeasure),
        })
    }

    /// `None` if the run has too little of what it takes.
    pub fn take(&self, run: &Gathered) -> Option<Measured> {
        let share = |count: u64, of: u64| (of > 0).then(|| Measured::exact(count as f64 / of as f64, of));
        let level = |window: Window, what: fn(&Moment) -> u64| {
            let seen = window.of(&run.moments);
            let highest = seen.iter().map(what).max()?;
            Some(Measured::exact(highest as f64 / 1e3, seen.len() as u64))
        };
        match *self {
            Self::Fct(share) => quantile(&run.fct, share).map(|value| Measured::exact(value, run.fct.len() as u64)),
            Self::Goodput(window) => {
                let seen = window.of(&run.moments);
                let seconds: f64 = seen.iter().map(|moment| moment.span).sum();
                let gigabits: f64 = seen.iter().map(|moment| moment.goodput_gbps * moment.span).sum();
                (seconds > 0.0).then(|| Measured::exact(gigabits / seconds, seen.len() as u64))
            }
            Self::Queue(window) => level(window, |moment| moment.queue),
            Self::TxBuffer(window) => level(window, |moment| moment.tx_buffer),
            Self::RxBuffer(window) => level(window, |moment| moment.rx_buffer),
            Self::Retransmissions(window) => {
                let seen = window.of(&run.moments);
                let seconds: f64 = seen.iter().map(|moment| moment.span).sum();
                let count: u64 = seen.iter().map(|moment| moment.retransmitted).sum();
                (seconds > 0.0).then(|| Measured::exact(count as f64 / seconds, count))
            }
            Self::Drops(window) => {
                let count: u64 = window.of(&run.moments).iter().map(|moment| moment.dropped).sum();
                Some(Measured::exact(count as f64, count))
            }
            Self::TxPeak => Some(Measured::exact(run.tx_peak as f64 / 1e3, run.recovered)),
            Self::RxPeak => Some(Measured::exact(run.rx_peak as f64 / 1e3, run.recovered)),
            Self::Overflows => Some(Measured::exact(run.overflows as f64, run.corrupted)),
            Self::GivenUp => Some(Measured::exact(run.given_up as f64, run.corrupted)),
            Self::Touched => share(run.touched, run.flows),
            Self::ReducedEarly => share(run.reduced_early, run.sacked),
            Self::MostPending => (run.sacked > 0).then(|| Measured::exact(run.most_pending as f64, run.sacked)),
        }
    }
}

impl Window {
    const ALL: Self = Self { from: 0.0, to: 1.0 };

    fn parse(text: &str) -> Option<Self> {
        let (from, to) = text.split_once("..")?;
        let (from, to) = (from.parse().ok()?, to.parse().ok()?);
        (0.0 <= from && from < to && to <= 1.0).then_some(Self { from, to })
    }

    /// The moments that lie in it.
    pub fn of<'a>(&self, moments: &'a [Moment]) -> &'a [Moment] {
        let length = moments.last().map_or(0.0, |last| last.seconds);
        let from = moments.partition_point(|moment| moment.seconds <= self.from * length);
        let to = moments.partition_point(|moment| moment.seconds <= self.to * length);
        &moments[from..to]
    }
}

/// The value below which `share` of the sorted values lie, if enough lie beyond.
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let beyond = sorted.len() as f64 * (1.0 - share);
    if beyond < FEWEST_BEYOND {
        return None;
    }
    sorted.get((sorted.len() as f64 * share) as usize).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_are_read_with_their_windows() {
        assert_eq!(Measure::parse("fct.p99.9"), Ok(Measure::Fct(0.9990000000000001)));
        assert_eq!(Measure::parse("goodput 0.2..0.5"), Ok(Measure::Goodput(Window { from: 0.2, to: 0.5 })));
        assert_eq!(Measure::parse("rx.peak"), Ok(Measure::RxPeak));
        for nonsense in ["fct.p100", "fct.px", "goodput 0.5..0.2", "goodput 1", "speed", ""] {
            assert_eq!(Measure::parse(nonsense), Err(UnknownMeasure), "{nonsense}");
        }
    }

    #[test]
    fn a_percentile_needs_flows_beyond_it() {
        let run = Gathered { fct: (0..10_000).map(f64::from).collect(), ..Gathered::default() };
        let taken = |text| Measure::parse(text).unwrap().take(&run).map(|measured| measured.value);
        assert_eq!((taken("fct.p50"), taken("fct.p99.9"), taken("fct.p99.99")), (Some(5_000.0), Some(9_990.0), None));
    }

    #[test]
    fn a_window_counts_what_ended_in_it() {
        let moment = |seconds| Moment { seconds, span: 1.0, goodput_gbps: seconds, ..Moment::default() };
        let run = Gathered { moments: (1..=10).map(f64::from).map(moment).collect(), ..Gathered::default() };
        let taken = Measure::parse("goodput 0.2..0.4").unwrap().take(&run).unwrap();
        assert_eq!((taken.value, taken.n), (3.5, 2));
    }
}
