//! Queue lengths: the share of time that each switch port spent at each length.
//!
//! A length is the number of bytes that wait, in bytes of wire time, without the packet that is being sent. It changes when
//! a packet joins the queue and when one leaves it. There are 64 slots from one power of two to the next, so that a length is
//! known to 1.6 %.

use units::{LogBuckets, Time};

const SLOTS: LogBuckets = LogBuckets::new(6);

/// The queue of one port while it runs.
#[derive(Debug, Default)]
pub(super) struct LevelClock {
    /// Picoseconds, by slot; grows with the longest queue.
    times: Vec<u64>,
    longest: u64,
    level: u64,
    since: Time,
}

impl LevelClock {
    /// The queue has this length from now on.
    #[inline]
    pub(super) fn change(&mut self, now: Time, level: u64) {
        let time = now.since(self.since).as_ps();
        if time > 0 {
            self.count(time);
        }
        (self.level, self.since) = (level, now);
    }

    fn count(&mut self, time: u64) {
        let slot = SLOTS.bucket(self.level);
        if slot >= self.times.len() {
            self.times.resize(slot + 1, 0);
        }
        self.times[slot] += time;
        self.longest = self.longest.max(self.level);
    }

    pub(super) fn conclude(mut self, ended: Time) -> QueueLengths {
        self.change(ended, 0);
        QueueLengths { times: self.times.into_iter().map(u128::from).collect(), longest: self.longest }
    }
}

/// Share of time at each queue length, of one port or of several together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueLengths {
    /// Picoseconds, by slot.
    times: Vec<u128>,
    longest: u64,
}

impl QueueLengths {
    /// Counts the time of another port or run as well.
    pub fn add(&mut self, other: &Self) {
        if self.times.len() < other.times.len() {
            self.times.resize(other.times.len(), 0);
        }
        self.times.iter_mut().zip(&other.times).for_each(|(mine, other)| *mine += other);
        self.longest = self.longest.max(other.longest);
    }

    /// The length, in bytes, that the queue did not exceed for this share of the time; `None` if no time has passed.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let mut before = 0.0;
        let reached = |(_, of_time): &(u64, f64)| {
            before += of_time;
            before >= share
        };
        // Shares may add up to slightly less than one.
        self.shares().find(reached).map(|(bytes, _)| bytes).or_else(|| self.max())
    }

    /// The longest that lasted, exactly.
    pub fn max(&self) -> Option<u64> {
        self.times.iter().any(|time| *time > 0).then_some(self.longest)
    }

    /// Lengths that there were, in bytes and ascending, each with its share of the time.
    pub fn shares(&self) -> impl Iterator<Item = (u64, f64)> + '_ {
        let all = self.times.iter().sum::<u128>() as f64;
        let there = self.times.iter().enumerate().filter(|(_, time)| **time > 0);
        there.map(move |(slot, time)| (SLOTS.middle(slot).min(self.longest), *time as f64 / all))
    }
}

#[cfg(test)]
mod tests {
    use units::Span;

    use super::*;

    #[test]
    fn lengths_are_weighted_by_the_time_that_they_last() {
        let mut clock = LevelClock::default();
        let at = |us| Time::ZERO + Span::from_us(us);
        for (us, bytes) in [(40, 50), (40, 5_000), (60, 60), (90, 20)] {
            clock.change(at(us), bytes);
        }
        let mut lengths = clock.conclude(at(100));
        assert_eq!(lengths.max(), Some(5_000));
        assert_eq!([0.4, 0.5, 0.51, 0.8, 0.81].map(|share| lengths.quantile(share).unwrap() / 10), [0, 2, 6, 6, 500]);
        let shares: Vec<(u64, f64)> = lengths.shares().collect();
        assert_eq!(shares.len(), 4, "{shares:?}: what lasted no time is not there");
        let mut idle = LevelClock::default();
        idle.change(at(0), 9);
        idle.change(at(0), 0);
        lengths.add(&idle.conclude(at(900)));
        assert_eq!((lengths.quantile(0.9), lengths.quantile(1.0)), (Some(0), Some(5_000)));
        assert_eq!((QueueLengths::default().quantile(0.5), QueueLengths::default().max()), (None, None));
    }
}
