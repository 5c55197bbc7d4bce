//! Settings of ends and of schedulers.

use units::Span;

/// Priorities that a network has.
const LEVELS: u8 = 8;

/// Settings of one end; the two ends have the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReceiverDrivenConfig {
    /// Payload of a full packet.
    pub payload: u32,
    /// Bytes of a message that leave before any grant.
    pub unasked: u64,
    /// Packets that one grant allows at most.
    pub batch: u32,
    /// Time for which either end waits.
    pub timeout: Span,
    /// Makes a sender that has heard nothing send all unasked data again; otherwise it repeats only its last packet.
    pub repeats_all: bool,
    /// Priorities of data; none if it has none.
    pub levels: Option<MessageLevels>,
    /// Policy by which a host grants messages.
    pub policy: GrantPolicy,
}

/// Policy by which a host grants messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrantPolicy {
    /// Messages at a time.
    pub at_once: u32,
    /// Order in which messages are granted.
    pub order: GrantOrder,
    /// Bytes granted to a message and not yet arrived, at most.
    pub window: u64,
    /// Bytes that one grant allows at most.
    pub step: u64,
    /// First priority level of granted data; `None` without priorities.
    pub first_level: Option<u8>,
}

/// Order in which messages are granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantOrder {
    /// First come, first granted.
    Arrival,
    /// The message with the fewest bytes left first, one per sender (SRPT).
    Shortest,
}

/// Priorities of unasked data, by the size of its message; granted data is below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageLevels {
    /// Number of these priorities.
    pub unasked: u8,
    /// The largest message of each but the last.
    pub cutoffs: [u64; LEVELS as usize],
}

impl Default for ReceiverDrivenConfig {
    fn default() -> Self {
        Self::rds(1_456, 61 << 10, 4)
    }
}

impl ReceiverDrivenConfig {
    /// The scheme that PL2 is compared with: no priorities, one message at a time.
    pub fn rds(payload: u32, unasked: u64, batch: u32) -> Self {
        let step = u64::from(payload) * u64::from(batch);
        let policy = GrantPolicy { at_once: 1, order: GrantOrder::Arrival, window: unasked, step, first_level: None };
        Self { payload, unasked, batch, timeout: Span::from_ms(1), repeats_all: true, levels: None, policy }
    }

    /// Homa with these priorities: as many messages are granted at a time as there are priorities for them.
    pub fn homa(payload: u32, unasked: u64, batch: u32, levels: MessageLevels) -> Self {
        let rds = Self::rds(payload, unasked, batch);
        let policy = GrantPolicy {
            at_once: u32::from(LEVELS - levels.unasked),
            order: GrantOrder::Shortest,
            first_level: Some(levels.unasked),
            ..rds.policy
        };
        Self { repeats_all: false, levels: Some(levels), policy, ..rds }
    }
}

impl MessageLevels {
    /// Priorities that balance the load as Homa's receivers do (§3.4): if not given, as many `levels` for unasked data as
    /// its share of all bytes, at least one and not all; each level carries as many bytes as the others. `sizes` are those
    /// of typical messages, sorted.
    pub fn balanced(sizes: &[u64], unasked: u64, levels: Option<u8>) -> Self {
        let head = |bytes: &u64| (*bytes).min(unasked) as f64;
        let (heads, all) = (sizes.iter().map(head).sum::<f64>(), sizes.iter().map(|bytes| *bytes as f64).sum::<f64>());
        let share = if all > 0.0 { heads / all } else { 1.0 };
        let levels = levels.unwrap_or((share * f64::from(LEVELS)).round() as u8).clamp(1, LEVELS - 1);
        let mut cutoffs = [u64::MAX; LEVELS as usize];
        let (mut sum, mut level) = (0.0, 0);
        for bytes in sizes {
            sum += head(bytes);
            while level + 1 < levels && sum >= heads * f64::from(level + 1) / f64::from(levels) {
                cutoffs[usize::from(level)] = *bytes;
                level += 1;
            }
        }
        Self { unasked: levels, cutoffs }
    }

    /// The level of unasked data of a message.
    pub fn of(&self, bytes: u64) -> u8 {
        let level = self.cutoffs.iter().position(|cutoff| bytes <= *cutoff).unwrap_or_default() as u8;
        level.min(self.unasked - 1)
    }
}

impl GrantPolicy {
    /// The priority of the message at `rank` of `active` that are granted: few messages use the last levels, so that a
    /// shorter one that comes later can go before them.
    pub(super) fn level(&self, rank: usize, active: usize) -> u8 {
        let Some(first) = self.first_level else { return 0 };
        let behind = (active - rank).min(usize::from(LEVELS - first)) as u8;
        LEVELS - behind.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_follow_the_share_of_unasked_bytes_and_carry_the_same() {
        let small: Vec<u64> = (1..=1_000).collect();
        let levels = MessageLevels::balanced(&small, 10_000, None);
        assert_eq!(levels.unasked, 7, "one is left for grants");
        let of_level = |level: u8| small.iter().filter(|bytes| levels.of(**bytes) == level).sum::<u64>();
        let total: u64 = small.iter().sum();
        for level in 0..7 {
            let share = of_level(level) as f64 / total as f64;
            assert!((share - 1.0 / 7.0).abs() < 0.01, "level {level}: {share}");
        }
        let large = MessageLevels::balanced(&[1_000_000; 10], 10_000, None);
        assert_eq!((large.unasked, large.of(5), large.of(u64::MAX)), (1, 0, 0));
    }

    #[test]
    fn the_shortest_goes_first_and_a_single_message_leaves_room_above_it() {
        let levels = MessageLevels::balanced(&[1_000_000], 10_000, None);
        let policy = ReceiverDrivenConfig::homa(1_456, 10_000, 4, levels).policy;
        assert_eq!((policy.at_once, policy.first_level), (7, Some(1)));
        assert_eq!(policy.level(0, 1), 7);
        assert_eq!([0, 1, 6].map(|rank| policy.level(rank, 7)), [1, 2, 7]);
        assert_eq!(ReceiverDrivenConfig::default().policy.level(0, 1), 0);
    }
}
