//! Number of cells that a digest needs: li-thesis §5.3.2, *c* = cells over losses.
//!
//! A digest cannot be decoded to its end for one of two reasons, and both were measured, for 30 to 10,000 losses:
//!
//! - *Two packets share all their cells*, or four share theirs in pairs. The chance is that of random places,
//!   3 n² ∕ cells³ for two, and it is what counts below some 200 losses if 99 % are to succeed.
//! - *A core is left*, in which no cell has one packet alone. With many losses that happens below 1.222 cells for each and
//!   not above; with fewer the step is soft. Half of the digests have a core at 1.222 + 1.1 n^(−2∕3), and the tail above is
//!   below ½ exp(−z²∕2), with z the distance in units of (0.68 + 1.5∕√n)∕√n.
//!
//! So 1,000 losses need 1.3 cells each for 99 %, as the thesis says, but 64 need 1.7. (One cell in each of three rows would be
//! simpler to find, but two packets share such cells 4.5 times as often.)

use units::Prob;

use super::{DigestShape, PLACES};
use crate::signature::Fields;

impl DigestShape {
    /// Shape of a digest that is decoded to its end with a probability of at least `success` when `losses` packets are
    /// lost. Seed and fields are the usual ones, and can be set.
    pub fn for_losses(losses: usize, success: Prob) -> Self {
        // To be sure is to ask for cells without end; this sure costs more than anybody has.
        let accepted = (1.0 - success.get()).max(1e-12);
        let suffices = |cells: usize| failure(losses as f64, cells as f64) <= accepted;
        let (mut low, mut high) = (PLACES - 1, Self::MOST_CELLS);
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            *(if suffices(middle) { &mut high } else { &mut low }) = middle;
        }
        Self::new(high, 0, Fields::ALL)
    }
}

/// Probability that some of `n` losses cannot be named; it never rises with the number of cells.
fn failure(n: f64, cells: f64) -> f64 {
    if n <= 1.0 {
        return 0.0;
    }
    let pairs = n * (n - 1.0) / 2.0 * 6.0 / (cells * (cells - 1.0) * (cells - 2.0));
    // Four packets on six cells, each of which two of them share: one cell for every pair of packets.
    let fours = n.powi(4) / 24.0 * 6_f64.powi(4) / cells.powi(6);
    let half = 1.222 + 1.1 * n.powf(-2.0 / 3.0);
    let z = (cells / n - half) * n.sqrt() / (0.68 + 1.5 / n.sqrt());
    let core = if z > 0.0 { 0.5 * (-z * z / 2.0).exp() } else { 1.0 };
    pairs + fours + core
}

#[cfg(test)]
mod tests {
    use super::super::Digest;
    use super::*;
    use crate::signature::Signature;

    /// Digests out of `trials` that could not be decoded to the end.
    fn failures(losses: u32, shape: DigestShape, trials: u32) -> u32 {
        let failed = |trial: u32| {
            let mut digest = Digest::new(DigestShape { seed: u64::from(trial), ..shape });
            for nth in 0..losses {
                digest.insert(&Signature::new(&super::super::tests::packet(nth), Fields::ALL));
            }
            digest.decode().left.is_some()
        };
        (0..trials).map(failed).map(u32::from).sum()
    }

    /// Most failures in `trials`: as many as the promise allows, and four standard deviations more.
    fn most(success: f64, trials: u32) -> f64 {
        let expected = (1.0 - success) * f64::from(trials);
        expected + 4.0 * expected.sqrt()
    }

    #[test]
    fn digests_of_the_size_advised_are_decoded_as_often_as_promised() {
        for (success, trials) in [(0.9, 300), (0.99, 1_000)] {
            for losses in [2, 5, 10, 20, 40, 64, 100, 200, 400, 641, 1_000] {
                let shape = DigestShape::for_losses(losses as usize, Prob::literal(success));
                let failures = f64::from(failures(losses, shape, trials));
                assert!(failures <= most(success, trials), "{losses} losses, {success}: {failures} of {trials} failed");
            }
        }
    }

    /// Else a size that is always enough would be one that is always too much.
    #[test]
    fn digests_of_three_quarters_the_size_are_not() {
        for losses in [20, 64, 100, 400, 1_000] {
            let cells = DigestShape::for_losses(losses as usize, Prob::literal(0.9)).cells();
            let shape = DigestShape::new(cells * 3 / 4, 0, Fields::ALL);
            assert!(f64::from(failures(losses, shape, 300)) > most(0.9, 300), "{losses} losses");
        }
    }

    #[test]
    fn a_thousand_losses_take_as_many_cells_as_the_thesis_says() {
        let each = |losses: usize| DigestShape::for_losses(losses, Prob::literal(0.99)).cells() as f64 / losses as f64;
        assert!((1.28..1.32).contains(&each(1_000)), "{}", each(1_000));
        assert!((1.22..1.25).contains(&each(100_000)), "{}", each(100_000));
        assert!((1.6..1.9).contains(&each(64)), "{}", each(64));
    }

    #[test]
    fn no_request_is_too_small_or_too_great() {
        assert_eq!(DigestShape::for_losses(0, Prob::literal(0.99)).cells(), PLACES);
        assert_eq!(DigestShape::for_losses(1, Prob::literal(1.0)).cells(), PLACES);
        assert_eq!(DigestShape::for_losses(usize::MAX, Prob::literal(0.99)).cells(), DigestShape::MOST_CELLS);
        assert!(DigestShape::for_losses(2, Prob::literal(1.0)).cells() < 100_000);
    }
}
