//! Parameters of the code, and times to wait.

use units::{Bytes, Prob, Span};
use wire::ethernet::on_wire;

use super::PARITY_HEADER;
use crate::params::LinkTiming;

/// Parameters of FEC, which must be equal at both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FecConfig {
    /// Frames of a full block.
    pub k: u16,
    /// Parity frames of every block; at most [`FecConfig::MAX_PARITY`].
    pub h: u16,
    /// A block is closed this long after its first frame, however few it has.
    pub close_after: Span,
    /// Time for which a missing frame is waited for; longer than a block can take from its first frame to its last parity.
    pub give_up_after: Span,
    /// True if frames wait behind a missing one.
    pub ordered: bool,
}

impl FecConfig {
    /// The most parity frames of a block.
    pub const MAX_PARITY: u16 = 32;

    /// A block has the time in which twice as many frames would leave, so that it fills up from half load on.
    pub fn for_path(path: &LinkTiming, k: u16, h: u16) -> Self {
        let frame = path.rate.span_of(Bytes::new(u64::from(on_wire(path.mtu + PARITY_HEADER))));
        let close_after = frame * (2 * u64::from(k));
        let give_up_after = close_after + frame * u64::from(2 * h + 2);
        Self { k, h, close_after, give_up_after, ordered: true }
    }

    pub(super) fn check(&self) {
        let parity = 1..=Self::MAX_PARITY;
        assert!(self.k > 0 && parity.contains(&self.h), "no code has {} frames and {} parity", self.k, self.h);
    }
}

/// `k` and `h` for the loss that a link has: the settings of Wharf with the best goodput, as LinkGuardian (SIGCOMM'23)
/// took them for its Table 3 from Wharf's Fig. 8: 25 and 1 up to a loss of 10⁻³, 5 and 1 at 10⁻². Between the two it
/// changes in the middle of the decade.
pub fn best_parameters(loss: Prob) -> (u16, u16) {
    const MIDDLE: f64 = 3.162e-3;
    if loss.get() <= MIDDLE { (25, 1) } else { (5, 1) }
}

/// The share of frames that stay lost: those lost in a block that loses more than `h` of its `k + h`, each with
/// probability `loss` on its own.
pub fn effective_loss(loss: Prob, k: u16, h: u16) -> Prob {
    let (p, others) = (loss.get(), f64::from(k) + f64::from(h) - 1.0);
    if p == 1.0 {
        return loss;
    }
    // Fewer than `h` of the other frames may be lost: the first `h` terms of a binomial distribution.
    let mut term = (1.0 - p).powf(others);
    let mut recovered = 0.0;
    for lost in 0..h {
        recovered += term;
        let lost = f64::from(lost);
        term *= (others - lost) / (lost + 1.0) * p / (1.0 - p);
    }
    Prob::new(p * (1.0 - recovered)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use units::Rate;

    use super::*;

    /// Goodput of TCP over a 10G link, as Table 3 computes it.
    fn goodput(k: u16, h: u16) -> f64 {
        10.0 * 1_460.0 / 1_538.0 * f64::from(k) / f64::from(k + h)
    }

    #[test]
    fn the_best_parameters_are_those_behind_table_3() {
        let printed = [(1e-5, "9.13"), (1e-4, "9.13"), (1e-3, "9.13"), (1e-2, "7.91")];
        for (loss, expected) in printed {
            let (k, h) = best_parameters(Prob::literal(loss));
            assert_eq!(format!("{:.2}", goodput(k, h)), expected, "at {loss}");
        }
    }

    #[test]
    fn one_parity_frame_fails_when_any_other_frame_is_lost() {
        let p: f64 = 1e-2;
        let expected = p * (1.0 - (1.0 - p).powi(25));
        assert!((effective_loss(Prob::literal(p), 25, 1).get() - expected).abs() < 1e-12);
    }

    #[test]
    fn effective_loss_is_sane_at_the_edges() {
        assert_eq!(effective_loss(Prob::literal(0.0), 25, 2).get(), 0.0);
        assert_eq!(effective_loss(Prob::literal(1.0), 25, 2).get(), 1.0);
        assert!(effective_loss(Prob::literal(1e-9), 25, 4).get() < 1e-24);
    }

    #[test]
    fn a_block_at_line_rate_is_full_before_it_is_closed() {
        let path =
            LinkTiming { rate: Rate::gbps(10), delay: Span::from_ns(100), pipeline: Span::ZERO, mtu: 1_518, burst: 1 };
        let config = FecConfig::for_path(&path, 25, 1);
        assert!(config.close_after > path.rate.span_of(Bytes::new(1_538)) * 25);
        assert!(config.give_up_after > config.close_after);
    }
}
