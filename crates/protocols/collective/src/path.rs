//! Account of the time along a critical path, carried forward: what releases a transfer is its critical input, so that nobody has
//! to walk back.
//!
//! A transfer begins with the account of what released it. When it has arrived, the time that it took is added, by cause:
//!
//! ```text
//!   released ──waiting──▶ its queue pair is free ──wire + queue + recovery──▶ arrived
//! ```
//!
//! If the transfer before it on its queue pair held it up, the path leads through that one instead: its account at its arrival,
//! and what this one took behind it. Recovery is the time from a loss until the receiver is past it, as far as it made the
//! transfer longer; it is kept by link, for the links with most of it.
//!
//! Invariant: the parts add up to the time since the iteration began.

use units::{Span, Time};

/// Reason for time that a path took without need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DelayCause {
    /// A packet was corrupted, and found missing.
    Loss,
    /// It was sent again only after a timeout.
    Timeout,
    /// Packets waited in queues, or were dropped by a full one.
    Queue,
    /// A switch paused a port.
    Pause,
    /// A switch had no way to go.
    Down,
}

units::named!(DelayCause, "loss, timeout, queue, pause or down",
    "loss" => Self::Loss,
    "timeout" => Self::Timeout,
    "queue" => Self::Queue,
    "pause" => Self::Pause,
    "down" => Self::Down,
);

/// Time of a path, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathParts {
    /// Packets on wires and in switches, alone.
    pub wire: Span,
    /// More than that, without a loss: queues, busy hosts, pauses.
    pub queue: Span,
    /// From losses until the receiver was past them.
    pub recovery: Span,
    /// Behind an earlier iteration on the same queue pair.
    pub waiting: Span,
    /// Computation of ranks.
    pub compute: Span,
}

impl PathParts {
    pub fn sum(&self) -> Span {
        self.wire + self.queue + self.recovery + self.waiting + self.compute
    }

    pub fn add(&mut self, other: &Self) {
        self.wire += other.wire;
        self.queue += other.queue;
        self.recovery += other.recovery;
        self.waiting += other.waiting;
        self.compute += other.compute;
    }

    /// Multiplies each part.
    #[must_use]
    pub fn times(&self, count: u64) -> Self {
        let Self { wire, queue, recovery, waiting, compute } = *self;
        let [wire, queue, recovery, waiting, compute] =
            [wire, queue, recovery, waiting, compute].map(|part| Span::from_ps(part.as_ps() * count));
        Self { wire, queue, recovery, waiting, compute }
    }
}

/// A link that a path recovered from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuspectLink {
    pub link: u32,
    pub cause: DelayCause,
    pub time: Span,
    /// The transfer with most of it.
    pub transfer: u32,
    most: Span,
}

/// Links that an account remembers.
const SUSPECTS: usize = 3;

/// Account of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathAccount {
    pub parts: PathParts,
    suspects: [Option<SuspectLink>; SUSPECTS],
    /// The transfer that took most beyond its wire time, without losses.
    slowest: u32,
    slowness: Span,
}

impl PathAccount {
    /// The link with most recovery on the path.
    pub fn suspect(&self) -> Option<SuspectLink> {
        self.suspects.into_iter().flatten().max_by_key(|suspect| (suspect.time, u32::MAX - suspect.link))
    }

    /// The transfer that waited most in queues.
    pub fn slowest(&self) -> u32 {
        self.slowest
    }

    fn recover(&mut self, transfer: u32, link: u32, cause: DelayCause, time: Span) {
        self.parts.recovery += time;
        if time == Span::ZERO {
            return;
        }
        let same = self.suspects.iter().position(|one| one.is_some_and(|one| one.link == link));
        let place = same.or_else(|| self.suspects.iter().position(Option::is_none)).unwrap_or_else(|| {
            let times = self.suspects.iter().map(|one| one.map_or(Span::ZERO, |one| one.time));
            times.enumerate().min_by_key(|(_, time)| *time).map_or(0, |(place, _)| place)
        });
        let before = self.suspects[place].filter(|one| one.link == link);
        self.suspects[place] = match before {
            Some(one) if one.most >= time => Some(SuspectLink { time: one.time + time, ..one }),
            Some(one) => Some(SuspectLink { link, cause, time: one.time + time, transfer, most: time }),
            None if self.suspects[place].is_some_and(|other| other.time >= time) => return,
            None => Some(SuspectLink { link, cause, time, transfer, most: time }),
        };
    }
}

/// A loss of a transfer's packets that its receiver is past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveredLoss {
    pub at: Time,
    pub link: u32,
    pub cause: DelayCause,
}

/// The transfer before another one on its queue pair.
#[derive(Clone, Copy, Debug)]
pub struct TransferBefore {
    /// Arrival of the last of it.
    pub at: Time,
    pub account: PathAccount,
    /// It belongs to the same iteration.
    pub of_iteration: bool,
}

/// A transfer that has arrived, and what is known of it.
#[derive(Clone, Copy, Debug)]
pub struct TransferArrival<'a> {
    pub transfer: u32,
    pub now: Time,
    pub released: Time,
    /// Account of what released it.
    pub account: PathAccount,
    pub before: Option<TransferBefore>,
    /// Time of the transfer alone, and the part of it that its packets take one behind the other on the slowest link.
    pub alone: Span,
    pub serial: Span,
    pub losses: &'a [RecoveredLoss],
    /// The sender waited for a timeout meanwhile.
    pub timed_out: bool,
}

impl TransferArrival<'_> {
    /// Account of the path that leads to its arrival.
    pub fn account(&self) -> PathAccount {
        let flight = self.alone.saturating_sub(self.serial);
        let held_up =
            self.before.filter(|before| before.at.since(Time::ZERO) > self.released.since(Time::ZERO) + flight);
        let (mut account, since, wire) = match held_up {
            Some(before) if before.of_iteration => (before.account, before.at, self.serial),
            Some(before) => {
                let mut account = self.account;
                let left = (before.at.since(self.released)).saturating_sub(flight);
                account.parts.waiting += left;
                (account, self.released + left, self.alone)
            }
            None => (self.account, self.released, self.alone),
        };
        let all = self.now.since(since);
        let on_wire = all.min(wire);
        let beyond = all.saturating_sub(on_wire);
        let recovery = self.losses.first().map_or(Span::ZERO, |loss| beyond.min(self.now.since(loss.at.max(since))));
        let queue = beyond.saturating_sub(recovery);
        account.parts.wire += on_wire;
        account.parts.queue += queue;
        if queue > account.slowness {
            (account.slowest, account.slowness) = (self.transfer, queue);
        }
        self.blame(&mut account, since, recovery);
        account
    }

    /// Shares recovery out among losses: to each the time from it until the next.
    fn blame(&self, account: &mut PathAccount, since: Time, recovery: Span) {
        let mut left = recovery;
        for (index, loss) in self.losses.iter().enumerate().rev() {
            let until = self.losses.get(index + 1).map_or(self.now, |next| next.at.max(since));
            let time = if index == 0 { left } else { left.min(until.since(loss.at.max(since))) };
            left = left.saturating_sub(time);
            let cause = if self.timed_out && loss.cause == DelayCause::Loss && time > TIMEOUTS_FROM.min(recovery / 2) {
                DelayCause::Timeout
            } else {
                loss.cause
            };
            account.recover(self.transfer, loss.link, cause, time);
        }
    }
}

/// A recovery that took longer than this, with a timeout, waited for it.
const TIMEOUTS_FROM: Span = Span::from_us(50);

#[cfg(test)]
mod tests {
    use super::*;

    const US: Span = Span::from_us(1);

    fn at(us: u64) -> Time {
        Time::ZERO + US * us
    }

    fn arrival(now: u64, losses: &[RecoveredLoss]) -> TransferArrival<'_> {
        TransferArrival {
            transfer: 7,
            now: at(now),
            released: at(10),
            account: PathAccount::default(),
            before: None,
            alone: US * 5,
            serial: US * 3,
            losses,
            timed_out: false,
        }
    }

    fn lost(us: u64, link: u32) -> RecoveredLoss {
        RecoveredLoss { at: at(us), link, cause: DelayCause::Loss }
    }

    #[test]
    fn time_beyond_the_wire_is_queue_without_a_loss_and_recovery_with_one() {
        let account = arrival(18, &[]).account();
        assert_eq!(account.parts, PathParts { wire: US * 5, queue: US * 3, ..PathParts::default() });
        assert_eq!((account.suspect(), account.slowest()), (None, 7));
        let losses = [lost(16, 3)];
        let account = arrival(18, &losses).account();
        assert_eq!(account.parts, PathParts { wire: US * 5, queue: US, recovery: US * 2, ..PathParts::default() });
        assert_eq!(account.suspect().map(|suspect| (suspect.link, suspect.time)), Some((3, US * 2)));
    }

    #[test]
    fn a_path_leads_through_the_transfer_before_if_that_held_it_up() {
        let mut account = PathAccount::default();
        account.parts.wire = US * 20;
        let before = |us, of_iteration| Some(TransferBefore { at: at(us), account, of_iteration });
        let behind = TransferArrival { before: before(14, true), ..arrival(17, &[]) }.account();
        assert_eq!(behind.parts, PathParts { wire: US * 23, ..PathParts::default() });
        let close = TransferArrival { before: before(12, true), ..arrival(15, &[]) }.account();
        assert_eq!(close.parts, PathParts { wire: US * 5, ..PathParts::default() }, "it had left before");
        let earlier = TransferArrival { before: before(14, false), ..arrival(17, &[]) }.account();
        assert_eq!(earlier.parts, PathParts { wire: US * 5, waiting: US * 2, ..PathParts::default() });
    }

    #[test]
    fn a_packet_lost_twice_is_shared_between_its_links() {
        let losses = [lost(12, 3), lost(15, 4)];
        let account = TransferArrival { timed_out: true, ..arrival(115, &losses) }.account();
        let suspect = account.suspect().unwrap();
        assert_eq!((suspect.link, suspect.cause, suspect.time), (4, DelayCause::Timeout, US * 100));
        assert_eq!(account.parts.recovery, US * 100, "and the rest of three microseconds is wire");
    }

    #[test]
    fn links_with_most_recovery_are_remembered_and_sums_count() {
        let mut account = PathAccount::default();
        for (link, us) in [(1, 3), (2, 2), (3, 1), (4, 5), (2, 4), (3, 1)] {
            account.recover(link, link, DelayCause::Loss, US * us);
        }
        assert_eq!(account.suspect().map(|one| (one.link, one.time)), Some((2, US * 6)));
        assert_eq!(account.parts.recovery, US * 16);
    }
}
