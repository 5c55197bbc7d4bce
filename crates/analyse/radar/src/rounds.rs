//! Packets that go round: a loop seen at a meter, also where nothing is lost.
//!
//! A packet that passes the same meter the same way again has been routed in between, so its time to live is lower. A
//! retransmission that is identical to its original has the same one. One packet in sixteen is looked at, by its hash, so
//! every pass of a packet is looked at or none. A packet counts from its second return on: where a path leads over one
//! interface twice on purpose, nothing returns twice.
//!
//! Invariant: a fixed table; a packet that is forgotten too soon is missed, never invented.

use crate::packet::Flow;

/// Packets that are remembered.
const ROOM: usize = 4_096;
/// One packet in so many is looked at.
const ONE_IN: u64 = 16;
/// Passes with ever lower time to live after which a packet counts.
const RETURNS: u8 = 2;

#[derive(Clone, Copy, Debug, Default)]
struct RoundEntry {
    hash: u64,
    ttl: u8,
    returns: u8,
}

/// Packets that came round, one way, in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenRound {
    /// 0 for packets that leave, 1 for packets that arrive.
    pub way: u8,
    /// Passes of sampled packets that had passed before.
    pub passes: u32,
    /// Flow of the latest, and its time to live.
    pub flow: Flow,
    pub ttl: u8,
}

/// The latest sampled packets of one way.
#[derive(Debug)]
pub struct RoundTable {
    packets: Vec<RoundEntry>,
    found: Option<SeenRound>,
}

impl Default for RoundTable {
    fn default() -> Self {
        Self { packets: vec![RoundEntry::default(); ROOM], found: None }
    }
}

impl RoundTable {
    /// A packet passes; `hash` is of its signature.
    #[inline]
    pub fn on_packet(&mut self, way: u8, hash: u64, ttl: u8, flow: &Flow) {
        if (hash >> 52).is_multiple_of(ONE_IN) {
            self.look(way, hash, ttl, flow);
        }
    }

    fn look(&mut self, way: u8, hash: u64, ttl: u8, flow: &Flow) {
        let before = &mut self.packets[hash as usize % ROOM];
        if before.hash != hash || ttl > before.ttl {
            *before = RoundEntry { hash, ttl, returns: 0 };
            return;
        }
        if ttl == before.ttl {
            return;
        }
        (before.ttl, before.returns) = (ttl, before.returns.saturating_add(1));
        if before.returns >= RETURNS {
            let passes = self.found.map_or(0, |found| found.passes).saturating_add(1);
            self.found = Some(SeenRound { way, passes, flow: *flow, ttl });
        }
    }

    /// Packets that came round since this was last asked.
    pub fn take(&mut self) -> Option<SeenRound> {
        self.found.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::tests::packet;

    fn passes(table: &mut RoundTable, packets: impl Iterator<Item = (u64, u8)>) -> u32 {
        packets.for_each(|(hash, ttl)| table.on_packet(0, hash, ttl, &packet(1).flow));
        table.take().map_or(0, |found| found.passes)
    }

    #[test]
    fn a_packet_that_returns_with_less_time_to_live_goes_round() {
        let mut table = RoundTable::default();
        let looping = |ttl: u8| (0..1_600_u64).map(move |nth| (nth.wrapping_mul(0x9e37_79b9_7f4a_7c15), ttl));
        assert_eq!(passes(&mut table, looping(64)), 0);
        assert_eq!(passes(&mut table, looping(62)), 0, "a path may lead over an interface twice");
        let seen = passes(&mut table, looping(60));
        assert!((50..=200).contains(&seen), "{seen} of 1,600, one in 16 looked at, some forgotten");
    }

    #[test]
    fn retransmissions_and_packets_with_more_time_to_live_go_nowhere() {
        let mut table = RoundTable::default();
        let same = (0..100_000_u64).map(|nth| ((nth % 7) << 60, 64));
        assert_eq!(passes(&mut table, same), 0);
        let rising = (0..200_u8).flat_map(|ttl| (0..7_u64).map(move |nth| (nth << 56, ttl)));
        assert_eq!(passes(&mut table, rising), 0);
    }
}
