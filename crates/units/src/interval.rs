//! How sure a count is: the exact interval for the mean of a Poisson variable (Garwood, 1936).

/// The 95 % interval for the mean, having counted `count` events.
pub fn poisson(count: u64) -> (f64, f64) {
    const TAIL: f64 = 0.025;
    if count > 10_000 {
        // Far from zero the normal approximation is good to a tenth of a percent.
        let (mean, wide) = (count as f64, 1.96 * (count as f64).sqrt());
        return (mean - wide, mean + wide);
    }
    let low = if count == 0 { 0.0 } else { solve(count as f64, |mean| 1.0 - at_most(count - 1, mean) < TAIL) };
    let high = solve(count as f64, |mean| at_most(count, mean) > TAIL);
    (low, high)
}

/// Where `below`, true up to some point and false from there on, changes.
fn solve(around: f64, below: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, around + 10.0 * (around + 1.0).sqrt() + 10.0);
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if below(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

/// The chance of at most `count` events when `mean` are expected.
fn at_most(count: u64, mean: f64) -> f64 {
    let mut log_term = -mean;
    let mut sum = log_term.exp();
    for k in 1..=count {
        log_term += mean.ln() - (k as f64).ln();
        sum += log_term.exp();
    }
    sum.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_agree_with_published_tables() {
        for (count, low, high) in [(0, 0.0, 3.689), (1, 0.0253, 5.572), (10, 4.795, 18.39), (100, 81.36, 121.63)] {
            let (l, h) = poisson(count);
            assert!((l - low).abs() < 0.01 && (h - high).abs() < 0.01, "{count}: {l} {h}");
        }
    }

    #[test]
    fn the_approximation_takes_over_smoothly() {
        let ((a, b), (c, d)) = (poisson(10_000), poisson(10_001));
        assert!((a - c).abs() < 3.0 && (b - d).abs() < 3.0);
    }
}
