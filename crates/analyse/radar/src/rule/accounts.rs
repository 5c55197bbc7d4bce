//! Losses of one way of a segment as they come, interval by interval.
//!
//! An interval begins with its first loss. It is judged when it is as long as the rule wants it and has enough losses for a
//! pattern; if losses are rare, after ten times as long, with what there is. What came round is said after one interval.

use units::Timestamp;

use super::{CauseFigures, CauseGroup, CauseReason, CauseRule, IntervalEvidence, LossEvidence, SampledPacket};
use crate::loss::LossCause;
use crate::rounds::SeenRound;

/// Losses that are judged together; with more, the interval ends.
const MOST: usize = 1 << 14;
/// Intervals that rare losses wait for others.
const PATIENCE: u64 = 10;

/// An interval that was judged.
#[derive(Clone, Debug, PartialEq)]
pub struct IntervalAccount {
    pub since: Timestamp,
    pub until: Timestamp,
    /// Numbers of its losses, as the caller gave them.
    pub losses: Vec<u64>,
    pub evidence: IntervalEvidence,
    /// The latest packet that came round.
    pub round: Option<SeenRound>,
    /// Every loss is in one group, by its place in `losses`. A group of what came round has none.
    pub groups: Vec<CauseGroup>,
}

/// Losses that are not judged yet.
#[derive(Debug)]
pub struct CauseAccount {
    rule: CauseRule,
    since: Option<Timestamp>,
    until: Timestamp,
    losses: Vec<u64>,
    evidence: IntervalEvidence,
    round: Option<SeenRound>,
}

impl CauseAccount {
    pub fn new(rule: CauseRule) -> Self {
        let (since, until) = (None, Timestamp::default());
        Self { rule, since, until, losses: Vec::new(), evidence: IntervalEvidence::default(), round: None }
    }

    /// Approximate memory use in bytes.
    pub fn bytes(&self) -> usize {
        let each = size_of::<u64>() + size_of::<LossEvidence>();
        self.losses.capacity() * each + self.evidence.samples.capacity() * size_of::<SampledPacket>()
    }

    /// A loss with a number of the caller's, at about this time, with a packet that was drawn beside it.
    pub fn add(&mut self, number: u64, about: Timestamp, loss: LossEvidence, sample: Option<SampledPacket>) {
        self.extend(about);
        self.losses.push(number);
        self.evidence.losses.push(loss);
        self.evidence.samples.extend(sample);
    }

    /// A packet that was drawn from all of the interval; it counts if one is open.
    pub fn add_sample(&mut self, sample: SampledPacket) {
        if self.since.is_some() && self.evidence.samples.len() < MOST {
            self.evidence.samples.push(sample);
        }
    }

    /// Packets that entered at about this time; they count if an interval is open.
    pub fn add_packets(&mut self, packets: u64) {
        if self.since.is_some() {
            self.evidence.packets = self.evidence.packets.saturating_add(packets);
        }
    }

    /// Packets came round at about this time.
    pub fn add_round(&mut self, about: Timestamp, round: SeenRound) {
        self.extend(about);
        self.evidence.rounds = self.evidence.rounds.saturating_add(round.passes.into());
        self.round = Some(round);
    }

    /// A loss was none; true if it was not judged yet.
    pub fn take_back(&mut self, number: u64) -> bool {
        let Some(at) = self.losses.iter().position(|known| *known == number) else { return false };
        self.losses.remove(at);
        self.evidence.losses.remove(at);
        true
    }

    fn extend(&mut self, about: Timestamp) {
        let since = self.since.get_or_insert(about);
        *since = (*since).min(about);
        self.until = self.until.max(about);
    }

    /// The interval, if it is due at this time: no loss of an earlier time comes any more.
    pub fn due(&mut self, now: Timestamp) -> Option<IntervalAccount> {
        let since = self.since?;
        let (interval, few) = self.rule.least();
        let interval = interval.as_ps() / 1_000;
        let lasted = now.since(since);
        let is_enough = self.losses.len() >= few || self.round.is_some();
        let is_due = lasted >= interval && is_enough || lasted >= interval.saturating_mul(PATIENCE);
        if is_due || self.losses.len() >= MOST { self.end() } else { None }
    }

    /// The interval that is open, judged as it is.
    pub fn end(&mut self) -> Option<IntervalAccount> {
        let since = self.since.take()?;
        let until = std::mem::take(&mut self.until);
        let (losses, evidence) = (std::mem::take(&mut self.losses), std::mem::take(&mut self.evidence));
        let round = self.round.take();
        let mut groups = self.rule.judge(&evidence);
        if round.is_some() {
            let figures = CauseFigures { counted: Some(evidence.rounds), ..CauseFigures::default() };
            groups.push(CauseGroup { cause: LossCause::Loop, why: CauseReason::Round, losses: Vec::new(), figures });
        }
        (!groups.is_empty()).then_some(IntervalAccount { since, until, losses, evidence, round, groups })
    }
}

#[cfg(test)]
mod tests {
    use units::Span;

    use super::*;
    use crate::digest::tests::packet;
    use crate::rule::EvidenceRule;
    use crate::signature::{Fields, Signature};

    fn seconds(at: u64) -> Timestamp {
        Timestamp(at * 1_000_000_000)
    }

    fn account() -> CauseAccount {
        CauseAccount::new(CauseRule::Evidence(EvidenceRule {
            interval: Span::from_ms(1_000),
            ..EvidenceRule::default()
        }))
    }

    fn lose(account: &mut CauseAccount, numbers: std::ops::Range<u64>, at: Timestamp) {
        let loss = LossEvidence::of(&Signature::new(&packet(1), Fields::ALL).loss(None));
        numbers.for_each(|number| account.add(number, at, loss, None));
    }

    #[test]
    fn rare_losses_wait_for_others_and_not_for_ever() {
        let mut account = account();
        lose(&mut account, 0..9, seconds(100));
        assert_eq!(account.due(seconds(105)), None);
        assert!(account.take_back(3) && !account.take_back(3));
        lose(&mut account, 9..11, seconds(105));
        let judged = account.due(seconds(106)).unwrap();
        assert_eq!((judged.since, judged.until, judged.losses.len()), (seconds(100), seconds(105), 10));
        lose(&mut account, 20..21, seconds(107));
        assert_eq!(account.due(seconds(116)), None);
        assert_eq!(account.due(seconds(117)).unwrap().groups[0].why, CauseReason::NoEvidence);
        assert_eq!((account.due(seconds(200)), account.end()), (None, None));
    }

    #[test]
    fn packets_that_come_round_are_said_without_any_loss() {
        let mut account = account();
        account.add_round(seconds(5), SeenRound { way: 0, passes: 7, flow: packet(1).flow, ttl: 9 });
        assert_eq!(account.due(Timestamp(5_900_000_000)), None);
        let judged = account.due(seconds(6)).unwrap();
        let [group] = &judged.groups[..] else { panic!("{judged:?}") };
        assert_eq!((group.cause, group.why, group.losses.len()), (LossCause::Loop, CauseReason::Round, 0));
        assert_eq!(group.figures.counted, Some(7));
    }
}
