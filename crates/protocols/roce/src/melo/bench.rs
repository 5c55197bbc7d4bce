//! Work to measure MELO with: packets that arrive, some of them lost and sent again. The caller measures time.

use super::pool::{BlockPool, PoolConfig};
use super::track::{ArrivalPosition, ReceiveTrack};
use crate::psn::Psn;

/// Packets between one that is lost and the same one sent again: a round trip.
const FLIGHT: u64 = 128;

/// One connection's receiver. Every `loss_every`-th packet for it is lost and arrives a round trip later.
#[derive(Debug)]
pub struct LossyArrivals {
    pool: BlockPool<u8>,
    track: ReceiveTrack<u8>,
    loss_every: u64,
    /// The next new packet, the next that is lost, and the next that is sent again.
    next: u64,
    lost: u64,
    again: u64,
    delivered: u64,
    nacks: u64,
}

impl LossyArrivals {
    /// `loss_every` of zero for no loss at all.
    ///
    /// # Panics
    /// If the paper's pool is no pool.
    pub fn new(loss_every: u64) -> Self {
        let pool = BlockPool::new(PoolConfig::default()).expect("the paper's pool");
        let lost = if loss_every > 0 { loss_every - 1 } else { u64::MAX - FLIGHT };
        Self {
            pool,
            track: ReceiveTrack::new(Psn::new(0)),
            loss_every,
            next: 0,
            lost,
            again: lost,
            delivered: 0,
            nacks: 0,
        }
    }

    /// Lets this many packets arrive, or one more, including those sent again. Returns how many are in order so far.
    pub fn run(&mut self, packets: u64) -> u64 {
        let mut left = packets;
        while left > 0 {
            let packet = self.next;
            self.next += 1;
            if packet == self.again + FLIGHT {
                self.arrive(self.again);
                self.again += self.loss_every;
                left -= 1;
            }
            if packet == self.lost {
                self.lost += self.loss_every;
            } else {
                self.arrive(packet);
                left = left.saturating_sub(1);
            }
        }
        self.delivered
    }

    #[inline]
    fn arrive(&mut self, packet: u64) {
        match self.track.arrive(&mut self.pool, Psn::new(0).plus(packet)) {
            ArrivalPosition::Next { passed, .. } => self.delivered += u64::from(passed),
            ArrivalPosition::Ahead { hole } => self.nacks += u64::from(hole),
            ArrivalPosition::Middle | ArrivalPosition::Behind | ArrivalPosition::NoBits => {}
        }
    }

    /// Holes that opened so far: a NACK for each.
    pub fn nacks(&self) -> u64 {
        self.nacks
    }
}

/// All of it at once: `packets` arrive, every `loss_every`-th is lost and sent again. Returns how many are in order.
pub fn arrivals(packets: u64, loss_every: u64) -> u64 {
    LossyArrivals::new(loss_every).run(packets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_loss_is_told_and_filled() {
        let mut arrivals = LossyArrivals::new(100);
        let delivered = arrivals.run(100_000);
        assert!((100_000 - delivered) < 2 * FLIGHT, "{delivered}");
        assert_eq!(arrivals.nacks(), 1_000);
        assert_eq!(arrivals.pool.usage().refusals, 0);
    }

    #[test]
    fn without_loss_everything_is_in_order() {
        assert_eq!(super::arrivals(12_345, 0), 12_345);
    }
}
