//! Randomness that is the same for the same seed.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A stream of random numbers. Streams of one seed with different numbers are independent.
#[derive(Clone, Debug)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    pub fn new(seed: u64, stream: u64) -> Self {
        // Odd multiplier: distinct streams of a seed never share a starting state.
        Self(Xoshiro256PlusPlus::seed_from_u64(seed ^ stream.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in 0..n.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// Exponential with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -(-self.unit()).ln_1p()
    }

    /// Number of trials before the first success, each with chance `p`.
    pub fn failures_before_success(&mut self, p: f64) -> u64 {
        if p <= 0.0 {
            return u64::MAX;
        }
        if p >= 1.0 {
            return 0;
        }
        // Saturates at u64::MAX: as good as never.
        (self.exponential() / -(-p).ln_1p()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_and_stream_give_the_same_numbers_and_others_do_not() {
        let draw = |seed, stream| Random::new(seed, stream).below(u64::MAX);
        assert_eq!(draw(1, 0), draw(1, 0));
        assert_ne!(draw(1, 0), draw(1, 1));
        assert_ne!(draw(1, 0), draw(2, 0));
    }

    #[test]
    fn failures_before_success_have_the_mean_of_a_geometric() {
        let mut random = Random::new(7, 0);
        let n = 200_000;
        let sum: u64 = (0..n).map(|_| random.failures_before_success(0.01)).sum();
        let mean = sum as f64 / n as f64;
        assert!((mean - 99.0).abs() < 1.0, "{mean}");
        assert_eq!(random.failures_before_success(0.0), u64::MAX);
        assert_eq!(random.failures_before_success(1.0), 0);
    }
}
