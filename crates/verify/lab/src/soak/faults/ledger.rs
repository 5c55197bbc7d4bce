//! The ledger: every datagram that was sent is delivered, given up, refused, dropped, or unaccounted for.
//!
//! The witnesses know of each datagram when it was sent and whether it arrived. Time is cut into *episodes*, one for each
//! fault, from a quiet moment before it to a quiet moment after it. A datagram belongs to the episode in which it was
//! sent. In each episode and direction, what is lost is explained in this order:
//!
//! 1. The kernel refused to send it and said so: **refused**.
//! 2. Counters that rose in this episode: those of the two daemons, and those that the kernel keeps of the stand-in's
//!    interface (`COUNTERS`). They count frames of every kind, TCP's too, so they bound what may be lost and do not
//!    name it. They explain first what was sent outside of the intervals below, then what was sent inside. What was sent
//!    within `MARGIN` of an episode's beginning or end may be counted in the neighbouring one.
//! 3. It was sent while no daemon served an end, while the wire was down or the interface gone ([`Episode::allowed`],
//!    `MARGIN` on either side included): **dropped**.
//! 4. At most [`WINDOW`] datagrams for each restart of a daemon in the episode, whenever they were sent: **dropped**.
//! 5. What is left is **unaccounted** for, and must be nothing.
//!
//! So `sent = delivered + given_up + refused + dropped + unaccounted` holds by construction; what the ledger finds out is
//! how large the last term is. Copies, swaps and damage have no excuse at any time.

use std::collections::BTreeMap;
use std::ops::Sub;
use std::time::Duration;

use serde::Serialize;

/// Frames that an end may have outstanding, by default: what a restart may cost in each direction.
pub const WINDOW: u64 = 1_024;

/// Margin for what is on its way when something happens, and for threads that are late.
pub(crate) const MARGIN: Duration = Duration::from_millis(100);

/// Account under which a lost datagram was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LossAccount {
    GivenUp,
    Refused,
    Dropped,
}

/// End whose counter it is, seen from a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CounterSide {
    Sender,
    Receiver,
    Either,
}

/// Counters of the stand-in's interface, as the kernel counts: from the host to the daemon, and from the daemon to the
/// host.
pub(crate) const HOST_TX_DROPPED: &str = "kernel: hit0 tx_dropped";
pub(crate) const HOST_RX_DROPPED: &str = "kernel: hit0 rx_dropped";
/// Counter of the wire's interface.
pub(crate) const WIRE_TX_DROPPED: &str = "kernel: wire tx_dropped";

/// The counters that explain a loss.
pub(crate) const COUNTERS: [(&str, CounterSide, LossAccount); 15] = [
    ("given_up", CounterSide::Receiver, LossAccount::GivenUp),
    ("flushed", CounterSide::Sender, LossAccount::GivenUp),
    ("wire_refused", CounterSide::Sender, LossAccount::Refused),
    ("host_refused", CounterSide::Receiver, LossAccount::Refused),
    ("host_malformed", CounterSide::Sender, LossAccount::Refused),
    ("tx_oversize", CounterSide::Sender, LossAccount::Refused),
    ("queue_dropped", CounterSide::Sender, LossAccount::Dropped),
    ("gate_dropped", CounterSide::Sender, LossAccount::Dropped),
    ("host_overflow", CounterSide::Sender, LossAccount::Dropped),
    ("ring_overflow", CounterSide::Receiver, LossAccount::Dropped),
    ("no_buffer", CounterSide::Either, LossAccount::Dropped),
    ("rx_overflow", CounterSide::Receiver, LossAccount::Dropped),
    (HOST_TX_DROPPED, CounterSide::Sender, LossAccount::Dropped),
    (HOST_RX_DROPPED, CounterSide::Receiver, LossAccount::Dropped),
    (WIRE_TX_DROPPED, CounterSide::Sender, LossAccount::Dropped),
];

/// Every counter of an end since the start, summed over all incarnations of its daemon.
pub type EndCounters = BTreeMap<String, u64>;

units::counters! {
    /// Datagrams, or frames, by how they were counted.
    AccountCounts:
    given_up,
    refused,
    dropped,
}

impl AccountCounts {
    /// Counters that rose between two looks at both ends and that may explain a loss from `sender` to the other end.
    pub fn between(before: &[EndCounters; 2], after: &[EndCounters; 2], sender: usize) -> Self {
        let risen = |end: usize, name: &str| {
            let value = |counters: &EndCounters| counters.get(name).copied().unwrap_or(0);
            value(&after[end]).saturating_sub(value(&before[end]))
        };
        // A daemon takes what its TAP dropped from the kernel's counter, which goes on when there is no daemon.
        let rose = |end: usize, name: &str| match name {
            HOST_TX_DROPPED => risen(end, name).saturating_sub(risen(end, "host_overflow")),
            _ => risen(end, name),
        };
        let mut counted = Self::default();
        for (name, side, account) in COUNTERS {
            let rose = match side {
                CounterSide::Sender => rose(sender, name),
                CounterSide::Receiver => rose(1 - sender, name),
                CounterSide::Either => rose(0, name) + rose(1, name),
            };
            *counted.of(account) += rose;
        }
        counted
    }

    fn of(&mut self, account: LossAccount) -> &mut u64 {
        match account {
            LossAccount::GivenUp => &mut self.given_up,
            LossAccount::Refused => &mut self.refused,
            LossAccount::Dropped => &mut self.dropped,
        }
    }

    pub fn sum(self) -> u64 {
        self.given_up + self.refused + self.dropped
    }

    /// Limits the counts to `most` in all: what was given up first, then what was refused.
    fn at_most(self, most: u64) -> Self {
        let given_up = self.given_up.min(most);
        let refused = self.refused.min(most - given_up);
        Self { given_up, refused, dropped: self.dropped.min(most - given_up - refused) }
    }
}

/// Interval from a moment to another, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeInterval {
    pub from: Duration,
    pub to: Duration,
}

impl TimeInterval {
    pub fn contains(&self, at: Duration) -> bool {
        (self.from..=self.to).contains(&at)
    }

    /// This interval with a margin on either side.
    pub(crate) fn widened(self) -> Self {
        Self { from: self.from.saturating_sub(MARGIN), to: self.to + MARGIN }
    }
}

/// The time of one fault, from a quiet moment before it to the next one's.
#[derive(Clone, Debug, Default)]
pub struct Episode {
    pub from: Duration,
    /// Times in which frames may be lost without being counted.
    pub allowed: Vec<TimeInterval>,
    /// Restarts of daemons.
    pub restarts: u64,
    /// Losses that counters may explain, by sender.
    pub counted: [AccountCounts; 2],
}

/// A datagram, when it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentDatagram {
    pub at: Duration,
    /// The kernel refused it.
    pub refused: bool,
}

/// A datagram that arrived whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedDatagram {
    pub number: u64,
    pub at: Duration,
}

/// Records of the two witnesses of one direction.
#[derive(Clone, Debug, Default)]
pub struct WitnessJournal {
    /// Datagrams sent, by number.
    pub sent: Vec<SentDatagram>,
    /// Datagrams received, in the order of arrival.
    pub arrived: Vec<ReceivedDatagram>,
    pub corrupted: u64,
    /// Lost by the receiving witness's own socket.
    pub overrun: u64,
    /// Time at which the witnesses ended.
    pub end: Duration,
}

/// Fates of the datagrams of an episode, both directions together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EpisodeResult {
    pub silence: Duration,
    pub lost: u64,
    /// Lost datagrams that counters explain.
    pub counted: AccountCounts,
    /// Lost datagrams that no counter needs to explain.
    pub allowed: u64,
    pub unaccounted: u64,
    pub duplicated: u64,
    pub reordered: u64,
    /// The first that came twice or too late.
    pub first_odd: Option<OddDatagram>,
}

/// A datagram that came twice, or after one that was sent later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OddDatagram {
    pub sender: usize,
    pub number: u64,
    pub sent: Duration,
    pub arrived: Duration,
}

units::counters! {
    /// Everything that was sent, and its outcome.
    #[derive(Serialize)]
    DatagramTotals:
    sent,
    delivered,
    given_up,
    refused,
    dropped,
    unaccounted,
    duplicated,
    reordered,
    corrupted,
}

impl DatagramTotals {
    pub fn is_clean(&self) -> bool {
        [self.unaccounted, self.duplicated, self.reordered, self.corrupted] == [0; 4]
    }
}

/// Settles all episodes, which are in order and of which the first begins at zero.
pub fn settle(episodes: &[Episode], journals: &[WitnessJournal; 2]) -> (Vec<EpisodeResult>, DatagramTotals) {
    let mut settled = vec![EpisodeResult::default(); episodes.len()];
    let mut totals = DatagramTotals::default();
    for (sender, journal) in journals.iter().enumerate() {
        let found = arrivals(episodes, sender, journal, &mut settled);
        let lost = losses(episodes, journal, &found.seen);
        let mut explained: Vec<EpisodeResult> =
            episodes.iter().zip(&lost).map(|(episode, lost)| lost.explain(episode, sender)).collect();
        ask_neighbours(episodes, sender, &lost, &mut explained);
        let mut overrun = journal.overrun;
        for (mut here, settled) in explained.into_iter().zip(&mut settled) {
            let ours = here.unaccounted.min(overrun);
            overrun -= ours;
            here.unaccounted -= ours;
            here.counted.dropped += ours;
            totals.given_up += here.counted.given_up;
            totals.refused += here.counted.refused;
            totals.dropped += here.counted.dropped + here.allowed;
            totals.unaccounted += here.unaccounted;
            settled.add_losses(here);
        }
        totals.sent += journal.sent.len() as u64;
        totals.delivered += found.delivered;
        totals.corrupted += journal.corrupted + found.impossible;
    }
    totals.duplicated = settled.iter().map(|settled| settled.duplicated).sum();
    totals.reordered = settled.iter().map(|settled| settled.reordered).sum();
    (settled, totals)
}

impl EpisodeResult {
    fn add_losses(&mut self, other: Self) {
        self.lost += other.lost;
        self.counted += other.counted;
        self.allowed += other.allowed;
        self.unaccounted += other.unaccounted;
    }
}

/// Index of the episode that a moment belongs to.
fn episode_at(episodes: &[Episode], at: Duration) -> usize {
    episodes.partition_point(|episode| episode.from <= at).saturating_sub(1)
}

struct DatagramArrivals {
    seen: Vec<bool>,
    delivered: u64,
    /// Numbers that nobody sent.
    impossible: u64,
}

/// Copies, swaps and silences go to the episode in which they are seen; a silence to the one in which it begins.
fn arrivals(
    episodes: &[Episode],
    sender: usize,
    journal: &WitnessJournal,
    settled: &mut [EpisodeResult],
) -> DatagramArrivals {
    let mut found = DatagramArrivals { seen: vec![false; journal.sent.len()], delivered: 0, impossible: 0 };
    let (mut highest, mut last) = (None, None::<Duration>);
    let silence = |from: Option<Duration>, to: Duration, settled: &mut [EpisodeResult]| {
        let Some(from) = from else { return };
        let settled = &mut settled[episode_at(episodes, from)];
        settled.silence = settled.silence.max(to.saturating_sub(from));
    };
    for arrived in &journal.arrived {
        silence(last, arrived.at, settled);
        last = Some(arrived.at);
        let Some(seen) = usize::try_from(arrived.number).ok().and_then(|number| found.seen.get_mut(number)) else {
            found.impossible += 1;
            continue;
        };
        let episode = &mut settled[episode_at(episodes, arrived.at)];
        let (again, late) = (std::mem::replace(seen, true), highest > Some(arrived.number));
        if again || late {
            let sent = journal.sent[arrived.number as usize].at;
            let odd = OddDatagram { sender, number: arrived.number, sent, arrived: arrived.at };
            episode.first_odd.get_or_insert(odd);
        }
        episode.duplicated += u64::from(again);
        episode.reordered += u64::from(late && !again);
        found.delivered += u64::from(!again);
        highest = highest.max(Some(arrived.number));
    }
    silence(last, journal.end, settled);
    found
}

/// Lost datagrams of one episode in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct EpisodeLosses {
    refused: u64,
    inside: u64,
    outside: u64,
    /// Datagrams lost outside, within a margin of the episode's beginning, and of its end.
    early: u64,
    late: u64,
}

fn losses(episodes: &[Episode], journal: &WitnessJournal, seen: &[bool]) -> Vec<EpisodeLosses> {
    let mut losses = vec![EpisodeLosses::default(); episodes.len()];
    let missing = journal.sent.iter().zip(seen).filter(|(_, seen)| !**seen);
    for (sent, _) in missing {
        let number = episode_at(episodes, sent.at);
        let allowed = || episodes[number].allowed.iter().any(|interval| interval.contains(sent.at));
        let losses = &mut losses[number];
        match sent.refused {
            true => losses.refused += 1,
            false if allowed() => losses.inside += 1,
            false => {
                losses.outside += 1;
                losses.early += u64::from(sent.at < episodes[number].from + MARGIN);
                let end = episodes.get(number + 1).map(|next| next.from);
                losses.late += u64::from(end.is_some_and(|end| sent.at + MARGIN > end));
            }
        }
    }
    losses
}

/// Uses spare counts of neighbours: losses at the boundary of two episodes may be counted in the other one.
fn ask_neighbours(episodes: &[Episode], sender: usize, losses: &[EpisodeLosses], explained: &mut [EpisodeResult]) {
    let mut spare: Vec<u64> = episodes
        .iter()
        .zip(&*explained)
        .zip(losses)
        .map(|((episode, here), losses)| episode.counted[sender].sum() + losses.refused - here.counted.sum())
        .collect();
    for (number, here) in explained.iter_mut().enumerate() {
        let neighbours = [(number.checked_sub(1), losses[number].early), (Some(number + 1), losses[number].late)];
        for (neighbour, most) in neighbours {
            let Some(spare) = neighbour.and_then(|neighbour| spare.get_mut(neighbour)) else { continue };
            let counted = most.min(here.unaccounted).min(*spare);
            *spare -= counted;
            here.unaccounted -= counted;
            here.counted.dropped += counted;
        }
    }
}

impl EpisodeLosses {
    fn explain(self, episode: &Episode, sender: usize) -> EpisodeResult {
        let lost = self.inside + self.outside;
        let counted = episode.counted[sender].at_most(lost);
        let outside = self.outside - self.outside.min(counted.sum());
        let inside = lost - counted.sum() - outside;
        let restarted = outside.min(WINDOW * episode.restarts);
        EpisodeResult {
            lost: lost + self.refused,
            counted: AccountCounts { refused: counted.refused + self.refused, ..counted },
            allowed: inside + restarted,
            unaccounted: outside - restarted,
            ..EpisodeResult::default()
        }
    }
}

/// Counters that rose, and by how much.
pub(crate) fn risen(before: &EndCounters, after: &EndCounters) -> EndCounters {
    let rose = |(name, value): (&String, &u64)| {
        let rise = value.sub(before.get(name).copied().unwrap_or(0).min(*value));
        (rise > 0).then(|| (name.clone(), rise))
    };
    after.iter().filter_map(rose).collect()
}

#[cfg(test)]
mod tests;
