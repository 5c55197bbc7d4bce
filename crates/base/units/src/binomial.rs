//! Confidence of a share, and of a percentile: the exact interval for the share of a binomial variable (Clopper and
//! Pearson, 1934), and the ranks of a sorted sample between which a quantile of the sampled distribution lies, whatever
//! that distribution is. Both suppose independent trials.

/// The chance that the true value lies beyond one end of the interval.
const TAIL: f64 = 0.025;

/// The 95 % interval for the share, having counted `count` of `of` trials; all shares are possible without a trial.
pub fn binomial(count: u64, of: u64) -> (f64, f64) {
    let (k, n) = (count.min(of) as f64, of as f64);
    let low = if count == 0 { 0.0 } else { solve(|share| beta(k, n - k + 1.0, share) < TAIL) };
    let high = if count >= of { 1.0 } else { solve(|share| beta(k + 1.0, n - k, share) < 1.0 - TAIL) };
    (low, high)
}

/// Positions in a sorted sample of `n` between which the quantile `share` lies with 95 % certainty; `None` where the
/// sample is too small for that end.
pub fn quantile_ranks(n: usize, share: f64) -> (Option<usize>, Option<usize>) {
    let reached = |k: usize| match k {
        0 => 1.0,
        _ if k > n => 0.0,
        _ => beta(k as f64, (n - k) as f64 + 1.0, share),
    };
    // The k-th smallest lies above the quantile if fewer than k of the sample lie below it.
    let low = first(n + 1, |k| 1.0 - reached(k) > TAIL).saturating_sub(1);
    let high = first(n + 1, |k| reached(k) <= TAIL);
    (low.checked_sub(1), (high <= n).then(|| high.saturating_sub(1)))
}

/// Smallest number below `end` for which `is` holds, or `end`. `is` must hold for every number above one for which it holds.
fn first(end: usize, is: impl Fn(usize) -> bool) -> usize {
    let (mut from, mut to) = (0, end);
    while from < to {
        let middle = from.midpoint(to);
        if is(middle) {
            to = middle;
        } else {
            from = middle + 1;
        }
    }
    from
}

/// Finds the point at which `below` changes from true to false, by bisection.
fn solve(below: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    for _ in 0..200 {
        let middle = low.midpoint(high);
        if below(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low.midpoint(high)
}

/// The regularized incomplete beta function: the chance of at least `a` successes in `a + b - 1` trials.
fn beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front = (log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp();
    // The continued fraction converges fast on the nearer side of the mean.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * fraction(a, b, x) / a
    } else {
        1.0 - front * fraction(b, a, 1.0 - x) / b
    }
}

/// Continued fraction of the beta function, by the method of Lentz.
fn fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away(1.0 - (a + b) * x / (a + 1.0));
    let mut product = d;
    for step in 1..100_000 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / away(1.0 + even * d);
        c = away(1.0 + even / c);
        product *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / away(1.0 + odd * d);
        c = away(1.0 + odd / c);
        product *= d * c;
        if (d * c - 1.0).abs() < 1e-14 {
            break;
        }
    }
    product
}

/// Logarithm of the gamma function of a positive number: Stirling's series, from eight on.
fn log_gamma(mut x: f64) -> f64 {
    let mut shift = 0.0;
    while x < 8.0 {
        shift -= x.ln();
        x += 1.0;
    }
    let r = 1.0 / (x * x);
    let series = (1.0 / 12.0 - r * (1.0 / 360.0 - r * (1.0 / 1_260.0 - r / 1_680.0))) / x;
    shift + (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_agree_with_published_ones() {
        for (count, of, low, high) in [
            (0, 3, 0.0, 0.7076),
            (3, 3, 0.2924, 1.0),
            (10, 100, 0.0490, 0.1762),
            (100, 100, 0.9638, 1.0),
            (1, 20, 0.0013, 0.2487),
        ] {
            let (l, h) = binomial(count, of);
            assert!((l - low).abs() < 1e-4 && (h - high).abs() < 1e-4, "{count} of {of}: {l} {h}");
        }
        assert_eq!(binomial(0, 0), (0.0, 1.0));
    }

    #[test]
    fn rare_events_among_many_have_the_interval_of_poisson() {
        let of = 1_000_000_000;
        for count in [0, 3, 50, 4_000] {
            let ((low, high), poisson) = (binomial(count, of), crate::poisson(count));
            let near = |share: f64, count: f64| (share * of as f64 - count).abs() <= 1e-3 * (1.0 + count);
            assert!(near(low, poisson.0) && near(high, poisson.1), "{count}: {low} {high}");
        }
    }

    /// Probability of at most `k`: sums the binomial's terms from the upper end, which do not vanish for the high shares that
    /// are tried.
    fn at_most(k: usize, n: usize, share: f64) -> f64 {
        let mut term = share.powi(n as i32);
        let mut above = 0.0;
        for i in (k + 1..=n).rev() {
            above += term;
            term *= i as f64 / (n - i + 1) as f64 * (1.0 - share) / share;
        }
        1.0 - above
    }

    #[test]
    fn ranks_are_the_narrowest_that_leave_the_stated_chance_on_either_side() {
        for (n, share) in [(10, 0.5), (100, 0.9), (400, 0.99), (1_000, 0.995)] {
            let (low, high) = quantile_ranks(n, share);
            let (low, high) = (low.unwrap() + 1, high.unwrap() + 1);
            assert!(at_most(low - 1, n, share) <= TAIL && at_most(low, n, share) > TAIL, "{n} {share}: {low}");
            let at_least = |k: usize| 1.0 - at_most(k - 1, n, share);
            assert!(at_least(high) <= TAIL && at_least(high - 1) > TAIL, "{n} {share}: {high}");
        }
    }

    #[test]
    fn a_small_sample_has_no_end_above_a_high_percentile() {
        assert_eq!(quantile_ranks(100, 0.99).1, None);
        assert!(quantile_ranks(400, 0.99).1.is_some());
        assert_eq!(quantile_ranks(4, 0.5), (None, None));
        assert_eq!(quantile_ranks(0, 0.5), (None, None));
    }
}
