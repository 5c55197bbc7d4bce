//! Finds the rule that decides on a packet without reading all rules.
//!
//! Rules with the same masks of addresses go into one sorted list, by the addresses' bits under these masks (tuple space
//! search: 200,000 rules make some hundred such lists). In each list, the rules that may match a packet are adjacent. The
//! rules that would match but for one bit of an address are adjacent too, once that bit is flipped in the key that is
//! searched for.

use std::collections::BTreeMap;

use super::{AclAction, AclRule, RuleKey};
use crate::packet::Flow;

/// Rules in order, with the way to find them.
#[derive(Clone, Debug)]
pub struct RuleTable {
    rules: Vec<AclRule>,
    otherwise: AclAction,
    all: Index,
    denies: Index,
}

/// Action on a packet, with the rule that decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AclDecision {
    pub action: AclAction,
    /// The rule that says so; `None` if no rule matches.
    pub rule: Option<usize>,
}

#[derive(Clone, Debug, Default)]
struct Index(Vec<Tuple>);

#[derive(Clone, Debug)]
struct Tuple {
    src: u32,
    dst: u32,
    /// The first of its rules.
    first: u32,
    /// Source and destination under the masks, with the rule.
    list: Vec<(u64, u32)>,
}

impl Tuple {
    #[inline]
    fn find(&self, src: u32, dst: u32) -> impl Iterator<Item = usize> {
        let sought = u64::from(src & self.src) << 32 | u64::from(dst & self.dst);
        let from = self.list.partition_point(|(key, _)| *key < sought);
        self.list[from..].iter().take_while(move |(key, _)| *key == sought).map(|(_, rule)| *rule as usize)
    }
}

impl Index {
    fn new<'a>(rules: impl Iterator<Item = (usize, &'a AclRule)>) -> Self {
        let mut tuples: BTreeMap<(u32, u32), Vec<(u64, u32)>> = BTreeMap::new();
        for (nth, AclRule { src, dst, .. }) in rules {
            let key = u64::from(src.value & src.mask) << 32 | u64::from(dst.value & dst.mask);
            tuples.entry((src.mask, dst.mask)).or_default().push((key, nth as u32));
        }
        let tuple = |((src, dst), mut list): ((u32, u32), Vec<(u64, u32)>)| {
            let first = list.first().map_or(u32::MAX, |(_, rule)| *rule);
            list.sort_unstable();
            Tuple { src, dst, first, list }
        };
        let mut tuples: Vec<Tuple> = tuples.into_iter().map(tuple).collect();
        tuples.sort_by_key(|tuple| tuple.first);
        Self(tuples)
    }
}

impl RuleTable {
    /// The first rule that matches decides; `otherwise` where none does.
    pub fn new(rules: Vec<AclRule>, otherwise: AclAction) -> Self {
        let numbered = || rules.iter().enumerate();
        let all = Index::new(numbered());
        let denies = Index::new(numbered().filter(|(_, rule)| rule.action == AclAction::Deny));
        Self { rules, otherwise, all, denies }
    }

    pub fn rules(&self) -> &[AclRule] {
        &self.rules
    }

    pub fn decide(&self, flow: &Flow) -> AclDecision {
        self.decided_by(RuleKey::of(flow).and_then(|key| self.first(&key, None)))
    }

    /// True if the rules deny a flow: its packets are dropped on purpose, so their loss needs no cause.
    pub(crate) fn denies(&self, flow: &Flow) -> bool {
        self.decide(flow).action == AclAction::Deny
    }

    /// Decision of the hardware on a flow after a flipped bit has turned rule `nth` into `corrupted`; `meant` is the
    /// decision of the intact rules.
    pub fn decide_with(&self, flow: &Flow, meant: AclDecision, nth: usize, corrupted: &AclRule) -> AclDecision {
        let Some(key) = RuleKey::of(flow) else { return meant };
        let is_first = meant.rule.is_none_or(|rule| nth <= rule);
        match (corrupted.takes(&key), meant.rule) {
            (true, _) if is_first => AclDecision { action: corrupted.action, rule: Some(nth) },
            (false, Some(rule)) if rule == nth => self.decided_by(self.first(&key, Some(nth))),
            _ => meant,
        }
    }

    pub(super) fn decided_by(&self, rule: Option<usize>) -> AclDecision {
        AclDecision { action: rule.map_or(self.otherwise, |rule| self.rules[rule].action), rule }
    }

    /// The first rule that matches, another than `but`.
    pub(super) fn first(&self, key: &RuleKey, but: Option<usize>) -> Option<usize> {
        let mut best = usize::MAX;
        for tuple in &self.all.0 {
            if tuple.first as usize >= best {
                break;
            }
            let mut matching = tuple.find(key.src, key.dst).filter(|rule| Some(*rule) != but);
            best = matching.find(|rule| self.rules[*rule].takes(key)).unwrap_or(usize::MAX).min(best);
        }
        (best < usize::MAX).then_some(best)
    }

    /// Deny rules before `limit` whose addresses match but for at most one bit.
    pub(super) fn near_denies(&self, key: &RuleKey, limit: usize) -> Vec<usize> {
        let mut found = Vec::new();
        for tuple in self.denies.0.iter().take_while(|tuple| (tuple.first as usize) < limit) {
            found.extend(tuple.find(key.src, key.dst));
            for bit in (0..32).map(|bit| 1 << bit) {
                if tuple.src & bit != 0 {
                    found.extend(tuple.find(key.src ^ bit, key.dst));
                }
                if tuple.dst & bit != 0 {
                    found.extend(tuple.find(key.src, key.dst ^ bit));
                }
            }
        }
        found.retain(|rule| *rule < limit);
        found
    }
}
