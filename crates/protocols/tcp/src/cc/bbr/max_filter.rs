//! The largest of recent values, in constant space.
//!
//! K. Nichols' algorithm as in Linux's `lib/minmax.c`: the best value and two runners-up, each seen later than the one
//! before it, so that when the best grows too old a good one of the younger takes its place.

/// A value and the round it was seen in.
#[derive(Clone, Copy, Debug, Default)]
struct RoundMaximum {
    round: u64,
    value: f64,
}

#[derive(Clone, Debug)]
pub(super) struct MaxFilter {
    /// Rounds for which a value counts.
    window: u64,
    best: [RoundMaximum; 3],
}

impl MaxFilter {
    pub(super) fn new(window: u64) -> Self {
        Self { window, best: [RoundMaximum::default(); 3] }
    }

    pub(super) fn get(&self) -> f64 {
        self.best[0].value
    }

    /// Rounds never go back.
    pub(super) fn update(&mut self, round: u64, value: f64) {
        let seen = RoundMaximum { round, value };
        if value >= self.best[0].value || round - self.best[2].round > self.window {
            self.best = [seen; 3];
            return;
        }
        if value >= self.best[1].value {
            self.best[1] = seen;
            self.best[2] = seen;
        } else if value >= self.best[2].value {
            self.best[2] = seen;
        }
        self.age(seen);
    }

    fn age(&mut self, seen: RoundMaximum) {
        let [first, second, third] = self.best;
        let age = seen.round - first.round;
        if age > self.window {
            self.best = [second, third, seen];
            if seen.round - second.round > self.window {
                self.best = [third, seen, seen];
            }
        } else if second.round == first.round && age > self.window / 4 {
            // A quarter of the window without a runner-up: take one from the second quarter.
            self.best = [first, seen, seen];
        } else if third.round == second.round && age > self.window / 2 {
            self.best[2] = seen;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filtered(values: &[f64]) -> Vec<f64> {
        let mut filter = MaxFilter::new(10);
        let update = |(round, value): (usize, &f64)| {
            filter.update(round as u64, *value);
            filter.get()
        };
        values.iter().enumerate().map(update).collect()
    }

    #[test]
    fn a_new_maximum_counts_at_once() {
        assert_eq!(filtered(&[1.0, 3.0, 2.0, 5.0]), [1.0, 3.0, 3.0, 5.0]);
    }

    #[test]
    fn a_maximum_is_forgotten_after_its_window() {
        let mut values = vec![9.0];
        values.extend([4.0; 14]);
        let maxima = filtered(&values);
        assert!(maxima[..=10].iter().all(|max| *max == 9.0));
        assert!(maxima[11..].iter().all(|max| *max == 4.0));
    }

    #[test]
    fn a_falling_series_is_followed_within_two_windows() {
        let values: Vec<f64> = (0..100).map(|n| f64::from(100 - n)).collect();
        for (at, max) in filtered(&values).into_iter().enumerate().skip(1) {
            assert!(max >= values[at], "never below the latest");
            assert!(max <= values[at.saturating_sub(11)], "{max} at {at}");
        }
    }

    #[test]
    fn silence_longer_than_the_window_starts_over() {
        let mut filter = MaxFilter::new(10);
        filter.update(0, 9.0);
        filter.update(1_000, 1.0);
        assert_eq!(filter.get(), 1.0);
    }
}
