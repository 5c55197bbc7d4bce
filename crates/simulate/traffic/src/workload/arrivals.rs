//! Arrivals: at random or in step, until they stop.

use faults::Random;
use units::{Rate, Span, Time};

/// End of arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrivalStop {
    /// Ends at this time: no flow begins then or later.
    At(Time),
    /// Ends after this many flows, or bursts of an incast.
    After(u64),
}

#[derive(Clone, Debug)]
pub(super) struct ArrivalProcess {
    gap: InterarrivalGap,
    /// Time of the next arrival in picoseconds; fractions count where gaps are shorter than one.
    next: f64,
    stop: ArrivalStop,
}

#[derive(Clone, Copy, Debug)]
enum InterarrivalGap {
    Exactly(f64),
    /// Exponential, with this mean.
    OnAverage(f64),
}

impl ArrivalProcess {
    /// An arrival at time zero, and one every `span` after it.
    pub(super) fn every(span: Span, stop: ArrivalStop) -> Self {
        Self { gap: InterarrivalGap::Exactly(span.as_ps() as f64), next: 0.0, stop }
    }

    /// A Poisson process with `mean_gap` picoseconds between two arrivals, on average.
    pub(super) fn poisson(mean_gap: f64, stop: ArrivalStop, random: &mut Random) -> Self {
        Self { gap: InterarrivalGap::OnAverage(mean_gap), next: random.exponential() * mean_gap, stop }
    }

    /// Expected number of arrivals that are still to come.
    pub(super) fn expected_left(&self) -> f64 {
        let (InterarrivalGap::Exactly(gap) | InterarrivalGap::OnAverage(gap)) = self.gap;
        match self.stop {
            ArrivalStop::At(end) => ((end.as_ps() as f64 - self.next) / gap.max(1e-9)).max(0.0),
            ArrivalStop::After(left) => left as f64,
        }
    }

    pub(super) fn next(&mut self, random: &mut Random) -> Option<Time> {
        let now = Time::from_ps(self.next as u64);
        match &mut self.stop {
            ArrivalStop::At(end) if now >= *end => return None,
            ArrivalStop::After(0) => return None,
            ArrivalStop::After(left) => *left -= 1,
            ArrivalStop::At(_) => {}
        }
        self.next += match self.gap {
            InterarrivalGap::Exactly(gap) => gap,
            InterarrivalGap::OnAverage(mean) => random.exponential() * mean,
        };
        Some(now)
    }
}

/// The picoseconds between arrivals of `bytes` each that fill the share `load` of this number of links.
pub(super) fn gap_for(load: f64, links: usize, rate: Rate, bytes: f64) -> f64 {
    let bytes_per_ps = load * links as f64 * rate.bits_per_second() as f64 / 8e12;
    bytes / bytes_per_ps
}
