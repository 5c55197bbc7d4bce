//! Confidence of a count: the exact interval for the mean of a Poisson variable (Garwood, 1936).
//!
//! Monitors ask for thousands of ports every second, so counts up to [`EXACT`] are looked up in a table that is computed
//! once, and larger ones come from the first terms of the Cornish–Fisher expansion of the gamma quantile. At the first
//! count beyond the table the expansion is off by 3.2e-8 of the bound, and by less with every count after it.

use std::sync::LazyLock;

/// The chance that the mean lies beyond one end of the interval.
const TAIL: f64 = 0.025;

/// The largest count that is looked up.
const EXACT: usize = 100;

static TABLE: LazyLock<[(f64, f64); EXACT + 1]> = LazyLock::new(|| std::array::from_fn(|count| exact(count as u64)));

/// The 95 % interval for the mean, having counted `count` events: exact up to 100, and to less than 5e-8 of either
/// bound from there on.
pub fn poisson(count: u64) -> (f64, f64) {
    match usize::try_from(count) {
        Ok(small @ 0..=EXACT) => TABLE[small],
        _ => (quantile(count as f64, -1.0), quantile(count as f64 + 1.0, 1.0)),
    }
}

/// The quantile of a gamma variable of this shape, `side` times 1.96 deviations from its middle.
fn quantile(shape: f64, side: f64) -> f64 {
    let z = side * 1.959_963_984_540_054;
    let (z2, root) = (z * z, shape.sqrt());
    shape
        + z * root
        + (z2 - 1.0) / 3.0
        + z * (z2 - 7.0) / (36.0 * root)
        + ((-3.0 * z2 - 7.0) * z2 + 16.0) / (810.0 * shape)
        + z * ((9.0 * z2 + 256.0) * z2 - 433.0) / (38_880.0 * shape * root)
}

fn exact(count: u64) -> (f64, f64) {
    let n = count as f64;
    let log_factorial = (1..=count).map(|k| (k as f64).ln()).sum();
    let low = if count == 0 { 0.0 } else { solve(0.0, n, |mean| at_least(n, log_factorial, mean) < TAIL) };
    let high = solve(n, n + 10.0 * (n + 1.0).sqrt() + 10.0, |mean| at_most(n, log_factorial, mean) > TAIL);
    (low, high)
}

/// Solves for the point up to which `below` is true; from there on it is false.
fn solve(mut low: f64, mut high: f64, below: impl Fn(f64) -> bool) -> f64 {
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

/// The chance of `n` events or more when `mean` are expected, `mean` being at most `n`: terms only get smaller.
fn at_least(n: f64, log_factorial: f64, mean: f64) -> f64 {
    let (mut term, mut sum, mut k) = (1.0, 1.0, n);
    while term > 1e-18 * sum {
        k += 1.0;
        term *= mean / k;
        sum += term;
    }
    sum * (n * mean.ln() - mean - log_factorial).exp()
}

/// The chance of at most `n` events when `mean` are expected, `mean` being at least `n`: terms only get smaller.
fn at_most(n: f64, log_factorial: f64, mean: f64) -> f64 {
    let (mut term, mut sum, mut k) = (1.0, 1.0, n);
    while k > 0.0 && term > 1e-18 * sum {
        term *= k / mean;
        sum += term;
        k -= 1.0;
    }
    // No event at all has the chance e^-mean, also where the logarithm of the mean is none.
    let log_power = if n == 0.0 { 0.0 } else { n * mean.ln() };
    sum * (log_power - mean - log_factorial).exp()
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

    #[test]
    fn from_one_count_to_the_next_the_bounds_take_a_step_of_about_one_also_where_the_table_ends() {
        for count in EXACT as u64 - 5..EXACT as u64 + 5 {
            let ((a, b), (c, d)) = (poisson(count), poisson(count + 1));
            // 1 ± 1.96 / (2 √n), give or take what the error of 5e-8 makes of bounds around a hundred.
            let bend = 1.96 / (2.0 * (count as f64).sqrt());
            assert!((c - a - (1.0 - bend)).abs() < 1e-3 && (d - b - (1.0 + bend)).abs() < 1e-3, "{count}: {a} {c}");
        }
    }

    #[test]
    fn beyond_the_table_the_error_is_below_a_twenty_millionth() {
        for count in (EXACT as u64 + 1..400).chain([1_000, 3_333, 10_000, 20_000]) {
            let ((low, high), (exact_low, exact_high)) = (poisson(count), exact(count));
            let (below, above) = ((low / exact_low - 1.0).abs(), (high / exact_high - 1.0).abs());
            assert!(below < 5e-8 && above < 5e-8, "{count}: {below:e} {above:e}");
        }
    }

    #[test]
    fn what_is_looked_up_leaves_the_stated_chance_on_either_side() {
        for count in 0..=EXACT as u64 {
            let (low, high) = poisson(count);
            let (mut term, mut at_most) = ((-high).exp(), 0.0);
            for k in 0..=count {
                at_most += term;
                term *= high / (k + 1) as f64;
            }
            let (mut term, mut less) = ((-low).exp(), 0.0);
            for k in 0..count {
                less += term;
                term *= low / (k + 1) as f64;
            }
            assert!((at_most - TAIL).abs() < 1e-12, "{count}: {at_most}");
            assert!(count == 0 || (1.0 - less - TAIL).abs() < 1e-12, "{count}: {less}");
        }
    }

    #[test]
    fn the_largest_count_has_an_interval_around_it() {
        let (low, high) = poisson(u64::MAX);
        assert!(low <= u64::MAX as f64 && high >= u64::MAX as f64 && high.is_finite());
    }
}
