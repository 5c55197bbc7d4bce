//! Rules of which one flipped bit would explain what was lost: li-thesis §5.5.2.

use super::{AclAction, AclRule, Flip, RuleKey, RuleTable};
use crate::packet::Flow;

/// A rule that may be corrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CandidateRule {
    pub rule: usize,
    pub case: CandidateCase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CandidateCase {
    /// (a) A deny rule that would match all that was lost, but for one bit.
    Denies,
    /// (b), (c) The accept rule that should have let all of it pass.
    Accepts,
}

impl RuleTable {
    /// The rules that one flipped bit may have made lose these packets, in order. Packets that the rules deny as they were
    /// meant are no surprise, and left out; there are no candidates if that is all.
    ///
    /// The thesis asks for deny rules that match but for one bit. Here they must also come before every rule that should have
    /// accepted what was lost: a rule behind it cannot have denied anything, even if it matches.
    pub fn candidates(&self, lost: &[Flow]) -> Vec<CandidateRule> {
        let (keys, accepting) = self.unexpected(lost);
        let first = accepting.iter().map(|rule| rule.unwrap_or(usize::MAX)).min().unwrap_or(0);
        self.explaining(&keys, &accepting, first)
    }

    /// Candidates by the letter of the thesis: deny rules may stand anywhere, so rules behind the first one that matches are
    /// candidates as well.
    pub fn candidates_anywhere(&self, lost: &[Flow]) -> Vec<CandidateRule> {
        let (keys, accepting) = self.unexpected(lost);
        self.explaining(&keys, &accepting, usize::MAX)
    }

    fn explaining(&self, keys: &[RuleKey], accepting: &[Option<usize>], before: usize) -> Vec<CandidateRule> {
        let mut candidates = self.denying(keys, before);
        let is_same = accepting.iter().all(|rule| *rule == accepting[0]);
        let accepts = accepting.first().copied().flatten().filter(|_| is_same);
        candidates.extend(accepts.map(|rule| CandidateRule { rule, case: CandidateCase::Accepts }));
        candidates.sort_unstable();
        candidates
    }

    /// Flows that should not have been lost, and the rules that accept them.
    fn unexpected(&self, lost: &[Flow]) -> (Vec<RuleKey>, Vec<Option<usize>>) {
        let mut keys: Vec<RuleKey> = lost.iter().filter_map(RuleKey::of).collect();
        keys.sort_unstable();
        keys.dedup();
        let mut accepting = Vec::new();
        keys.retain(|key| {
            let rule = self.first(key, None);
            let is_unexpected = self.is_accepted(rule);
            if is_unexpected {
                accepting.push(rule);
            }
            is_unexpected
        });
        (keys, accepting)
    }

    /// Case (a).
    fn denying(&self, keys: &[RuleKey], before: usize) -> Vec<CandidateRule> {
        let Some(pivot) = keys.first() else { return Vec::new() };
        let explains = |nth: &usize| {
            let rule = &self.rules()[*nth];
            let takes_all = |rule: &AclRule| keys.iter().all(|key| rule.takes(key));
            let flips = match rule.takes(pivot) {
                true => (0..Flip::COUNT).filter_map(Flip::nth).collect(),
                false => Flip::towards(rule, pivot),
            };
            takes_all(rule) || flips.into_iter().any(|flip| takes_all(&flip.apply(*rule)))
        };
        let near = self.near_denies(pivot, before);
        near.into_iter().filter(explains).map(|rule| CandidateRule { rule, case: CandidateCase::Denies }).collect()
    }

    fn is_accepted(&self, rule: Option<usize>) -> bool {
        self.decided_by(rule).action == AclAction::Accept
    }
}
