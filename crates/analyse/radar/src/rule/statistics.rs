//! Tails of distributions: how likely chance alone does as much.

/// Terms that are smaller than this share of their sum do not count.
const PRECISION: f64 = 1e-17;

/// Probability of `least` or more of `n`, each with probability `p`.
pub(super) fn at_least(least: u64, n: u64, p: f64) -> f64 {
    if least == 0 {
        return 1.0;
    }
    if least > n || p <= 0.0 || p >= 1.0 {
        return if least <= n && p >= 1.0 { 1.0 } else { 0.0 };
    }
    // Terms shrink away from the mean: the shorter tail is added up.
    let tail = if least as f64 > n as f64 * p { upper(least, n, p) } else { 1.0 - lower(least - 1, n, p) };
    tail.clamp(0.0, 1.0)
}

/// Probability of `from` or more, above the mean.
fn upper(from: u64, n: u64, p: f64) -> f64 {
    let (mut total, mut term) = (0.0, exactly(from, n, p));
    for k in from..=n {
        total += term;
        term *= (n - k) as f64 * p / ((k + 1) as f64 * (1.0 - p));
        if term < total * PRECISION {
            break;
        }
    }
    total
}

/// Probability of `from` or fewer, below the mean.
fn lower(from: u64, n: u64, p: f64) -> f64 {
    let (mut total, mut term) = (0.0, exactly(from, n, p));
    for k in (0..=from).rev() {
        total += term;
        term *= k as f64 * (1.0 - p) / ((n - k + 1) as f64 * p);
        if term < total * PRECISION {
            break;
        }
    }
    total
}

/// Probability of `most` or fewer marked ones among `drawn` of `all`, of which `marked` are marked.
pub(super) fn at_most_of_drawn(most: u64, drawn: u64, marked: u64, all: u64) -> f64 {
    let first = (drawn + marked).saturating_sub(all);
    let last = most.min(drawn).min(marked);
    if most >= drawn.min(marked) {
        return 1.0;
    }
    let total = ln_ways(all, drawn);
    let term = |k: u64| (ln_ways(marked, k) + ln_ways(all - marked, drawn - k) - total).exp();
    (first..=last).map(term).sum::<f64>().min(1.0)
}

/// Probability of `k` of `n` and no other number.
fn exactly(k: u64, n: u64, p: f64) -> f64 {
    (ln_ways(n, k) + k as f64 * p.ln() + (n - k) as f64 * (-p).ln_1p()).exp()
}

/// Logarithm of the ways to choose `k` of `n`.
fn ln_ways(n: u64, k: u64) -> f64 {
    ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k)
}

/// Stirling's series; exact to 12 digits.
fn ln_factorial(n: u64) -> f64 {
    if n < 16 {
        return (2..=n).map(|k| (k as f64).ln()).sum();
    }
    let x = n as f64;
    let series = 1.0 / (12.0 * x) - 1.0 / (360.0 * x.powi(3)) + 1.0 / (1_260.0 * x.powi(5));
    x * x.ln() - x + 0.5 * (std::f64::consts::TAU * x).ln() + series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_what_adding_up_says() {
        for (n, p) in [(9, 0.01), (20, 0.3), (100, 0.5), (1_000, 0.2)] {
            for least in [0, 1, n / 3, n / 2, n] {
                let all: f64 = (least..=n).map(|k| exactly(k, n, p)).sum();
                assert!((at_least(least, n, p) - all).abs() < 1e-9, "{least} of {n} at {p}");
            }
        }
        assert_eq!((at_least(3, 2, 0.5), at_least(1, 2, 0.0), at_least(2, 2, 1.0)), (0.0, 0.0, 1.0));
    }

    #[test]
    fn marked_ones_among_those_drawn_add_up_too() {
        // Two of four are marked, two are drawn: none marked in one of six draws.
        assert!((at_most_of_drawn(0, 2, 2, 4) - 1.0 / 6.0).abs() < 1e-12);
        assert!((at_most_of_drawn(1, 2, 2, 4) - 5.0 / 6.0).abs() < 1e-12);
        assert_eq!((at_most_of_drawn(2, 2, 2, 4), at_most_of_drawn(0, 3, 3, 4)), (1.0, 0.0));
    }
}
