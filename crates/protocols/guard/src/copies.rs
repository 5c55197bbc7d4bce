//! Number of copies of a retransmission that reaches a target loss.
//!
//! LinkGuardian (SIGCOMM'23) §3.4, Eq. 1 and 2: a frame is lost permanently when its first transmission and
//! all N copies are lost, so N is the smallest number with `actual^(N+1) <= target`. Solved for N in
//! floating point, log(1e-8)/log(1e-4) comes out a hair above 2 and its ceiling gives one copy too many;
//! hence the powers are multiplied out and compared with a tolerance.

use units::Prob;

/// Relative slack in the comparison with the target: far above rounding, far below any loss that matters.
const TOLERANCE: f64 = 1e-9;

/// The most copies worth computing: no link whose losses need more can be used.
pub const MAX_COPIES: u8 = 100;

/// The smallest number of copies that brings `actual` down to `target`, and the loss expected then.
/// `None` if [`MAX_COPIES`] are not enough.
pub fn copies_for(actual: Prob, target: Prob) -> Option<(u8, Prob)> {
    let mut effective = actual.get();
    for copies in 0..=MAX_COPIES {
        if effective <= target.get() * (1.0 + TOLERANCE) {
            return Prob::new(effective).map(|effective| (copies, effective));
        }
        effective *= actual.get();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copies(actual: f64, target: f64) -> Option<u8> {
        copies_for(Prob::literal(actual), Prob::literal(target)).map(|(copies, _)| copies)
    }

    #[test]
    fn the_papers_examples() {
        assert_eq!([1e-5, 1e-4, 1e-3].map(|actual| copies(actual, 1e-8)), [Some(1), Some(1), Some(2)]);
    }

    #[test]
    fn exact_powers_need_no_copy_more() {
        for exponent in 1..=6 {
            let actual = 10f64.powi(-exponent);
            for n in 0..4 {
                assert_eq!(copies(actual, actual.powi(n + 1)), Some(n as u8), "1e-{exponent}, {n}");
            }
        }
    }

    #[test]
    fn a_loss_below_the_target_needs_none_and_a_dead_link_has_no_answer() {
        assert_eq!(copies(1e-9, 1e-8), Some(0));
        assert_eq!(copies(0.0, 0.0), Some(0));
        assert_eq!(copies(1.0, 1e-8), None);
        assert_eq!(copies(0.5, 0.0), None);
    }
}
