//! Rolling difference between two meters while both go on: li-thesis §5.8.
//!
//! A packet that is on its way when a batch ends is missing downstream in that batch and surplus in the next. So the difference
//! continues over batches: a decoded packet waits for its counterpart, and counts as lost when its time is over.
//!
//! ```text
//!   + upstream ─┐                         ┌─ counterpart comes ──▶ nothing happened
//!               ├─▶ Digest ──look──▶ waiting
//!   - downstream┘   (what does not        └─ settle ──▶ lost, or extra
//!                    decode stays)
//! ```
//!
//! Memory: one digest, from the first packet on, and an entry for each packet that waits.

mod batch;

use std::collections::BTreeMap;

use crate::digest::{DecodedDigest, Digest, DigestShape, UndecodedPackets};
use crate::signature::Signature;

pub(crate) use batch::BatchOutcome;

#[derive(Debug)]
pub struct RollingDifference {
    shape: DigestShape,
    /// Digest of the difference, once anything has passed.
    difference: Option<Digest>,
    /// True if the state differs from that of the last look.
    is_changed: bool,
    waiting: BTreeMap<Signature, PendingPacket>,
    /// First look at which the rest of the difference did not decode.
    stuck: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct PendingPacket {
    times: i64,
    since: u64,
    earliest: u64,
}

/// A packet that one meter saw more often than the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketDifference {
    pub signature: Signature,
    pub times: u32,
    /// The look that found it.
    pub since: u64,
    /// The first look at which it may have been there, hidden by what did not decode.
    pub earliest: u64,
}

/// Packets that have waited long enough.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SettledDifference {
    pub lost: Vec<PacketDifference>,
    pub extra: Vec<PacketDifference>,
    /// Packets that never decoded, including those that were on their way.
    pub unnamed: Option<UnnamedDifference>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnnamedDifference {
    pub left: UndecodedPackets,
    /// The first look that could not decode it.
    pub since: u64,
}

impl RollingDifference {
    pub fn new(shape: DigestShape) -> Self {
        Self { shape, difference: None, is_changed: false, waiting: BTreeMap::new(), stuck: None }
    }

    /// The digest, for packets that are compared one by one.
    pub fn difference(&mut self) -> &mut Digest {
        self.is_changed = true;
        self.difference.get_or_insert_with(|| Digest::new(self.shape))
    }

    /// Approximate memory use in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let difference = self.difference.as_ref().map_or(0, Digest::bytes);
        difference + map_bytes::<Signature, PendingPacket>(self.waiting.len())
    }

    /// Packets that wait for a counterpart.
    #[cfg(test)]
    fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Decodes what can be, at `now`, which never goes back. False if something is left.
    pub fn look(&mut self, now: u64) -> bool {
        let Some(difference) = self.difference.as_mut().filter(|_| std::mem::take(&mut self.is_changed)) else {
            return self.stuck.is_none();
        };
        let decoded = difference.decode();
        self.absorb(decoded, now);
        self.stuck.is_none()
    }

    /// Lets what was decoded wait for its counterpart, or find it.
    fn absorb(&mut self, decoded: DecodedDigest, now: u64) {
        let earliest = self.stuck.unwrap_or(now);
        let lost = decoded.lost.into_iter().map(|(signature, times)| (signature, i64::from(times)));
        let extra = decoded.extra.into_iter().map(|(signature, times)| (signature, -i64::from(times)));
        for (signature, times) in lost.chain(extra) {
            let waiting = self.waiting.entry(signature).or_insert(PendingPacket { times: 0, since: now, earliest });
            waiting.times += times;
            if waiting.times == 0 {
                self.waiting.remove(&signature);
            }
        }
        self.stuck = decoded.left.map(|_| self.stuck.unwrap_or(now));
    }

    /// Takes out packets that were found before `before` and still have no counterpart. For a lost packet, the later of
    /// `before` and `passed` counts, so that it settles sooner if it is known to be on its way no more. A rest that has not
    /// decoded since then is given up.
    pub fn settle(&mut self, before: u64, passed: u64) -> SettledDifference {
        let mut settled = SettledDifference::default();
        let over = |_: &Signature, waiting: &mut PendingPacket| {
            waiting.since < if waiting.times > 0 { before.max(passed) } else { before }
        };
        let over = self.waiting.extract_if(.., over);
        for (signature, PendingPacket { times, since, earliest }) in over {
            let list = if times > 0 { &mut settled.lost } else { &mut settled.extra };
            list.push(PacketDifference {
                signature,
                times: times.unsigned_abs().min(u64::from(u32::MAX)) as u32,
                since,
                earliest,
            });
        }
        if let Some(since) = self.stuck.take_if(|stuck| *stuck < before) {
            let left = self.difference.take().and_then(|mut difference| difference.decode().left);
            settled.unnamed = left.map(|left| UnnamedDifference { left, since });
        }
        settled
    }
}

/// Approximate bytes of a map of `entries` entries: its nodes are half full at least.
pub fn map_bytes<K, V>(entries: usize) -> usize {
    entries * 2 * (size_of::<K>() + size_of::<V>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::tests::packet;
    use crate::signature::Fields;

    fn signature(nth: u32) -> Signature {
        Signature::new(&packet(nth), Fields::ALL)
    }

    fn rolling() -> RollingDifference {
        RollingDifference::new(DigestShape::new(60, 1, Fields::ALL))
    }

    #[test]
    fn what_arrives_in_the_next_batch_is_no_loss() {
        let mut rolling = rolling();
        (0..4).for_each(|nth| rolling.difference().insert(&signature(nth)));
        [0, 1].iter().for_each(|nth| rolling.difference().remove(&signature(*nth)));
        assert!(rolling.look(7));
        assert_eq!((rolling.settle(7, 7), rolling.waiting()), (SettledDifference::default(), 2));
        rolling.difference().remove(&signature(3));
        assert!(rolling.look(8));
        let settled = rolling.settle(8, 8);
        assert_eq!(settled.lost, [PacketDifference { signature: signature(2), times: 1, since: 7, earliest: 7 }]);
        assert_eq!((settled.extra, rolling.waiting()), (vec![], 0));
    }

    #[test]
    fn what_arrives_before_it_was_sent_is_not_lost_because_something_else_has_passed() {
        let mut rolling = rolling();
        rolling.difference().remove(&signature(1));
        rolling.look(7);
        assert_eq!(rolling.settle(6, 8), SettledDifference::default());
        rolling.difference().insert(&signature(1));
        rolling.look(8);
        assert_eq!((rolling.settle(9, 9), rolling.waiting()), (SettledDifference::default(), 0));
    }

    #[test]
    fn too_much_at_once_is_given_up_as_a_number_and_the_next_batch_is_right_again() {
        let mut rolling = rolling();
        (0..200).for_each(|nth| rolling.difference().insert(&signature(nth)));
        assert!(!rolling.look(1) && !rolling.look(2));
        let settled = rolling.settle(2, 2);
        assert_eq!(settled.unnamed.unwrap().left.lost + settled.lost.len() as u64, 200);
        rolling.difference().insert(&signature(300));
        assert!(rolling.look(3));
        assert_eq!(rolling.settle(4, 4).lost.len(), 1);
    }

    #[test]
    fn what_piled_up_decodes_once_most_of_it_has_arrived() {
        let mut rolling = rolling();
        (0..200).for_each(|nth| rolling.difference().insert(&signature(nth)));
        assert!(!rolling.look(1));
        (0..198).for_each(|nth| rolling.difference().remove(&signature(nth)));
        rolling.look(2);
        assert_eq!(rolling.settle(3, 3).lost.len(), 2);
    }
}
