//! The number of copies that the measured loss calls for (Eq. 2), computed again for every window of frames.

use guard::{Counters, copies_for};
use units::Prob;

/// Frames over which loss is measured: at 1e-3 twenty losses, at 1e-4 still two.
const WINDOW: u64 = 20_000;
/// More take more from the link than they give.
const MOST: u8 = 8;

#[derive(Debug)]
pub(crate) struct CopiesByLoss {
    target: Prob,
    sent: u64,
    missing: u64,
}

impl CopiesByLoss {
    pub(crate) fn new(target: Prob) -> Self {
        Self { target, sent: 0, missing: 0 }
    }

    /// Starts over after the counters were reset.
    pub(crate) fn start_over(self) -> Self {
        Self::new(self.target)
    }

    /// The number of copies that the frames since the last time call for, once there were enough of them.
    pub(crate) fn needed(&mut self, counters: &Counters) -> Option<u8> {
        let sent = counters.tx_ok - self.sent;
        if sent < WINDOW {
            return None;
        }
        let missing = counters.tx_missing - self.missing;
        (self.sent, self.missing) = (counters.tx_ok, counters.tx_missing);
        // Without any loss nothing was measured but that it is small: what was enough before stays.
        let loss = Prob::new(missing as f64 / sent as f64).filter(|loss| !loss.is_zero())?;
        Some(self.expect(loss))
    }

    /// The number of copies that a loss calls for.
    pub(crate) fn expect(&self, loss: Prob) -> u8 {
        copies_for(loss, self.target).map_or(MOST, |(copies, _)| copies.clamp(1, MOST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_follow_what_the_peer_reports_missing() {
        let mut by_loss = CopiesByLoss::new(Prob::literal(1e-8));
        let at = |tx_ok, tx_missing| Counters { tx_ok, tx_missing, ..Counters::default() };
        assert_eq!(by_loss.needed(&at(19_999, 20)), None);
        assert_eq!(by_loss.needed(&at(20_000, 20)), Some(2));
        assert_eq!(by_loss.needed(&at(40_000, 220)), Some(3));
        assert_eq!(by_loss.needed(&at(60_000, 220)), None);
        assert_eq!(by_loss.needed(&at(80_000, 10_220)), Some(8));
    }
}
