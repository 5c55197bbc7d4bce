//! The receiver's side: each frame is delivered once, and bursts that were announced and did not come are reported.
//!
//! PL2, App. D.4: "the receiver has to deal with a small number of duplicate packets"; D.5: receivers get copies of GRTs,
//! notice when a sender has failed, and reset the switch.

use units::Time;
use wire::reserve::{DataMark, Demand, HostKey, Reservation};

/// More contexts than the hosts of a rack have together; those beyond get their frames without a check.
const MOST_SENDERS: usize = 1 << 15;
/// More announced bursts than can be under way.
const MOST_EXPECTED: usize = 1 << 15;

/// Frames received of the last two bursts of a context.
#[derive(Clone, Copy, Debug)]
struct SenderTrack {
    host_epoch: u16,
    /// The latest burst seen.
    burst: u32,
    /// Bitmaps of the frames that arrived, by index: of this burst and of the one before.
    seen: [u64; 2],
}

impl SenderTrack {
    fn new(mark: &DataMark) -> Self {
        Self { host_epoch: mark.id.host_epoch, burst: mark.id.burst, seen: [bit(mark), 0] }
    }

    #[inline]
    fn accepts(&mut self, mark: &DataMark) -> bool {
        if self.host_epoch != mark.id.host_epoch {
            *self = Self::new(mark);
            return true;
        }
        match mark.id.burst.wrapping_sub(self.burst) as i32 {
            0 => Self::note(&mut self.seen[0], mark),
            -1 => Self::note(&mut self.seen[1], mark),
            1 => {
                (self.burst, self.seen) = (mark.id.burst, [bit(mark), self.seen[0]]);
                true
            }
            2.. => {
                *self = Self::new(mark);
                true
            }
            _ => false,
        }
    }

    #[inline]
    fn note(seen: &mut u64, mark: &DataMark) -> bool {
        let before = *seen;
        *seen |= bit(mark);
        before != *seen
    }
}

#[inline]
fn bit(mark: &DataMark) -> u64 {
    1 << (mark.index & 63)
}

/// A burst that was announced.
#[derive(Clone, Copy, Debug)]
struct ExpectedBurst {
    sender: HostKey,
    about: Reservation,
    frames: u8,
    due: Time,
}

#[derive(Clone, Debug, Default)]
pub(super) struct BurstReceiver {
    /// Tracks by sender and context.
    senders: Vec<(u64, SenderTrack)>,
    /// Index in `senders` of the last frame's sender.
    last: usize,
    expected: Vec<ExpectedBurst>,
}

impl BurstReceiver {
    /// True if this frame has not come before.
    #[inline]
    pub(super) fn accepts(&mut self, source: HostKey, mark: &DataMark) -> bool {
        let key = source.number() << 16 | u64::from(mark.id.context);
        if let Some((found, track)) = self.senders.get_mut(self.last)
            && *found == key
        {
            return track.accepts(mark);
        }
        match self.senders.binary_search_by_key(&key, |(key, _)| *key) {
            Ok(at) => {
                self.last = at;
                self.senders[at].1.accepts(mark)
            }
            Err(at) => {
                if self.senders.len() < MOST_SENDERS {
                    self.senders.insert(at, (key, SenderTrack::new(mark)));
                    self.last = at;
                }
                true
            }
        }
    }

    /// A burst is announced. When to look for it, if nothing else is expected.
    pub(super) fn expect(&mut self, about: &Reservation, due: Time) -> Option<Time> {
        if self.expected.len() >= MOST_EXPECTED {
            return None;
        }
        let alone = self.expected.is_empty();
        let frames = about.demand.frames;
        self.expected.push(ExpectedBurst { sender: about.peer, about: *about, frames, due });
        alone.then_some(due)
    }

    /// A frame that may belong to an announced burst has come.
    #[inline]
    pub(super) fn on_arrival(&mut self, source: HostKey, mark: &DataMark) {
        let same = |burst: &ExpectedBurst| burst.sender == source && burst.about.id == mark.id;
        let Some(at) = self.expected.iter().position(same) else { return };
        self.expected[at].frames -= 1;
        if self.expected[at].frames == 0 {
            self.expected.swap_remove(at);
        }
    }

    /// Time by which the next announced burst should have come.
    pub(super) fn next_due(&self) -> Option<Time> {
        self.expected.iter().map(|burst| burst.due).min()
    }

    /// A burst that should have come by now; what of it is missing.
    pub(super) fn next_missing(&mut self, now: Time) -> Option<Reservation> {
        let at = self.expected.iter().position(|burst| burst.due <= now)?;
        let burst = self.expected.swap_remove(at);
        let asked = burst.about.demand;
        let each = asked.bytes / u32::from(asked.frames.max(1));
        let demand = Demand { frames: burst.frames, bytes: each * u32::from(burst.frames) };
        Some(Reservation { demand, ..burst.about })
    }
}

#[cfg(test)]
mod tests {
    use units::Span;
    use wire::ethernet::on_wire;
    use wire::reserve::BurstId;

    use super::*;

    fn mark(burst: u32, index: u8) -> DataMark {
        let id = BurstId { host_epoch: 1, context: 3, burst };
        DataMark { id, index, of: 4, ..DataMark::default() }
    }

    #[test]
    fn a_frame_that_came_before_is_not_accepted_again() {
        let mut receiver = BurstReceiver::default();
        let source = HostKey::new(9);
        let accepted = [(1, 0), (1, 0), (1, 1), (2, 0), (1, 1), (1, 2), (4, 0), (2, 1), (u32::MAX, 0)]
            .map(|(burst, index)| receiver.accepts(source, &mark(burst, index)));
        assert_eq!(accepted, [true, false, true, true, false, true, true, false, false]);
        assert!(receiver.accepts(HostKey::new(8), &mark(1, 0)), "another host's");
        let mut restarted = mark(1, 0);
        restarted.id.host_epoch = 2;
        assert!(receiver.accepts(source, &restarted));
    }

    #[test]
    fn what_of_an_announced_burst_did_not_come_is_reported_once() {
        let mut receiver = BurstReceiver::default();
        let source = HostKey::new(9);
        let demand = Demand { frames: 4, bytes: 4 * on_wire(1_518) };
        let about = Reservation { id: mark(5, 0).id, peer: source, demand, ..Reservation::default() };
        let due = Time::ZERO + Span::from_us(9);
        assert_eq!(receiver.expect(&about, due), Some(due));
        assert_eq!(receiver.expect(&Reservation { id: mark(6, 0).id, ..about }, due), None);
        for index in 0..4 {
            receiver.on_arrival(source, &mark(6, index));
        }
        receiver.on_arrival(source, &mark(5, 2));
        assert_eq!(receiver.next_missing(Time::ZERO), None);
        let missing = receiver.next_missing(due).expect("three frames");
        assert_eq!((missing.demand, missing.id.burst), (Demand { frames: 3, bytes: 3 * 1_538 }, 5));
        assert_eq!((receiver.next_missing(due), receiver.next_due()), (None, None));
    }
}
