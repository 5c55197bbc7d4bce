//! Rows of iterations and transfers, and lists of equal times.

use units::{Span, Time};

use super::Accusation;
use crate::path::PathParts;

/// An iteration that has a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IterationRow {
    pub iteration: u32,
    pub start: Time,
    pub time: Span,
    /// Time by which it is later than without losses, and whether that counts as late.
    pub lateness: Span,
    pub late: bool,
    pub accused: Option<Accusation>,
    pub losses: u32,
    pub timeouts: u32,
    pub parts: PathParts,
}

/// A transfer, if rows of transfers are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferRow {
    pub iteration: u32,
    pub transfer: u32,
    pub released: Time,
    pub arrived: Time,
    pub losses: u32,
    pub timeouts: u32,
}

/// Times in their order, with how often each follows itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunLengths {
    runs: Vec<(Span, u64)>,
    /// The run that was asked for last, and the number of its first.
    cursor: (usize, u64),
}

impl RunLengths {
    /// The next ones all take as long.
    pub fn push(&mut self, time: Span, count: u64) {
        match self.runs.last_mut() {
            _ if count == 0 => {}
            Some((last, of_last)) if *last == time => *of_last += count,
            _ => self.runs.push((time, count)),
        }
    }

    /// The time of this number; cheap if numbers ascend.
    pub fn at(&mut self, number: u64) -> Option<Span> {
        if number < self.cursor.1 {
            self.cursor = (0, 0);
        }
        while let Some((time, count)) = self.runs.get(self.cursor.0) {
            if number < self.cursor.1 + count {
                return Some(*time);
            }
            self.cursor = (self.cursor.0 + 1, self.cursor.1 + count);
        }
        None
    }

    /// Times with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (Span, u64)> + '_ {
        self.runs.iter().copied()
    }

    /// Number of times.
    pub fn len(&self) -> u64 {
        self.runs.iter().map(|(_, count)| count).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Appends those of another run.
    pub fn append(&mut self, other: &Self) {
        other.iter().for_each(|(time, count)| self.push(time, count));
    }

    pub fn mean(&self) -> Option<Span> {
        let sum: u128 = self.runs.iter().map(|(time, count)| u128::from(time.as_ps()) * u128::from(*count)).sum();
        let mean = sum.checked_div(u128::from(self.len()))?;
        Some(Span::from_ps(u64::try_from(mean).unwrap_or(u64::MAX)))
    }

    /// The times that these shares do not exceed, and the longest.
    pub fn quantiles<const N: usize>(&self, shares: [f64; N]) -> Option<([Span; N], Span)> {
        let mut sorted = self.runs.clone();
        sorted.sort_unstable();
        let longest = sorted.last()?.0;
        let all = self.len();
        let quantile = |share: f64| {
            let rank = ((share * all as f64).ceil() as u64).clamp(1, all);
            let mut before = 0;
            let found = sorted.iter().find(|(_, count)| {
                before += count;
                before >= rank
            });
            found.map_or(longest, |(time, _)| *time)
        };
        Some((shares.map(quantile), longest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_times_are_kept_once_and_found_by_number() {
        let us = Span::from_us;
        let mut times = RunLengths::default();
        for (time, count) in [(1, 5), (1, 2), (3, 1), (1, 2), (2, 0)] {
            times.push(us(time), count);
        }
        assert_eq!(times.iter().count(), 3);
        assert_eq!(
            [0, 6, 7, 9, 10, 2].map(|number| times.at(number)),
            [1, 1, 3, 1, 0, 1].map(|time| (time > 0).then(|| us(time)))
        );
        assert_eq!((times.len(), times.mean()), (10, Some(Span::from_ps(1_200_000))));
        assert_eq!(times.quantiles([0.5, 0.9, 0.99]), Some(([us(1), us(1), us(3)], us(3))));
        assert_eq!(RunLengths::default().quantiles([0.5]), None);
    }
}
