//! Approximate clock of a replay at level `decisions`.
//!
//! The log has only the times at which packets left, as samples. The times of other calls are inferred (li-thesis §6.3.3): a
//! call that made a packet leave came right before it. For every other packet the clock assumes the shortest time between
//! departure and arrival of those packets that made one leave. No decision depends on these times; tests show that with a
//! jittered clock.

use faults::Random;
use units::{Span, Time};

use crate::LogSide;
use crate::bytes::LATEST;
use crate::sampling::SendTimeSample;

/// Error of a clock.
#[derive(Debug)]
pub(crate) struct ClockJitter {
    random: Random,
    deviation: Option<Span>,
}

impl ClockJitter {
    pub(crate) fn new(seed: u64, side: LogSide, deviation: Option<Span>) -> Self {
        Self { random: Random::new(seed, side as u64), deviation }
    }

    fn apply(&mut self, at: Time) -> Time {
        let random = &mut self.random;
        let (later, earlier) = if let Some(deviation) = self.deviation {
            // The sum of twelve draws is close to normal, with a variance of one.
            let normal = (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
            let span = deviation.scale(normal.abs()).as_ps();
            if normal < 0.0 { (0, span) } else { (span, 0) }
        } else {
            let most = 1 << random.below(44);
            (if random.below(3) == 0 { random.below(most) } else { 0 }, random.below(most))
        };
        Time::from_ps(at.as_ps().saturating_add(later).saturating_sub(earlier).min(LATEST))
    }
}

/// The times of one end.
#[derive(Debug)]
pub(crate) struct EndClock {
    now: Time,
    samples: Vec<SendTimeSample>,
    /// The sample that holds, and the number of the next packet that leaves.
    sample: usize,
    next: u64,
    /// Departure time of the last one.
    left: Time,
    fastest: Option<Span>,
    jitter: Option<ClockJitter>,
}

impl EndClock {
    pub(crate) fn new(began: Time, samples: Vec<SendTimeSample>, jitter: Option<ClockJitter>) -> Self {
        Self { now: began, samples, sample: 0, next: 0, left: Time::ZERO, fastest: None, jitter }
    }

    /// Departure time of the next packet.
    fn next_departure(&self) -> Time {
        let holds = |sample: &&SendTimeSample| sample.index <= self.next;
        let sample = self.samples.get(self.sample + 1).filter(holds).or(self.samples.get(self.sample));
        let Some(sample) = sample else { return self.left };
        let behind = sample.gap.as_ps().saturating_mul(self.next - sample.index.min(self.next));
        Time::from_ps(sample.at.as_ps().saturating_add(behind).min(LATEST)).max(self.left)
    }

    /// A packet leaves: when.
    pub(crate) fn departs(&mut self) -> Time {
        self.left = self.next_departure();
        self.next += 1;
        while self.samples.get(self.sample + 1).is_some_and(|sample| sample.index <= self.next) {
            self.sample += 1;
        }
        self.left
    }

    /// The time of the next call; `arrived` is when the packet left the peer, if it is about one, and `sends` whether
    /// another leaves right behind it, or by it.
    pub(crate) fn tick(&mut self, arrived: Option<Time>, sends: bool) -> Time {
        let departure = self.next_departure();
        let mut at = if sends { departure } else { self.now };
        if let Some(arrived) = arrived {
            if sends {
                let span = departure.since(arrived);
                self.fastest = Some(self.fastest.map_or(span, |fastest| fastest.min(span)));
            } else {
                at = (arrived + self.fastest.unwrap_or_default()).max(at);
            }
        }
        if let Some(jitter) = &mut self.jitter {
            at = jitter.apply(at);
        }
        self.now = self.now.max(at.min(Time::from_ps(LATEST)));
        self.now
    }
}
