//! Fixed patterns: everyone sends at once.

use faults::Random;
use units::Time;

use super::error::expect;
use super::{FlowSchedule, FlowSource, WorkloadError, WorkloadFlow};
use crate::topology::NodeId;

/// Every host to every other, in rounds: in the n-th, each sends to the n-th after it, so that no receiver is asked of
/// two at once if all are equally fast.
#[derive(Clone, Debug)]
pub(super) struct AllToAll {
    hosts: Vec<NodeId>,
    bytes: u64,
    start: Time,
    /// Flows handed out.
    sent: usize,
}

impl FlowSchedule {
    /// Every host sends to one other and receives from one other. The hosts form a single random circle (Sattolo's
    /// shuffle), which has no place for a host that sends to itself.
    pub fn permutation(hosts: &[NodeId], bytes: u64, start: Time, random: &mut Random) -> Result<Self, WorkloadError> {
        check(hosts, bytes)?;
        let mut receivers = hosts.to_vec();
        for last in (1..receivers.len()).rev() {
            receivers.swap(last, random.below(last as u64) as usize);
        }
        let pairs = hosts.iter().zip(receivers);
        Ok(Self::list(pairs.map(|(src, dst)| WorkloadFlow { start, src: *src, dst, bytes, group: 0 }).collect()))
    }

    /// Every host sends to every other.
    pub fn all_to_all(hosts: Vec<NodeId>, bytes: u64, start: Time) -> Result<Self, WorkloadError> {
        check(&hosts, bytes)?;
        Ok(Self::from(FlowSource::AllToAll(AllToAll { hosts, bytes, start, sent: 0 })))
    }
}

fn check(hosts: &[NodeId], bytes: u64) -> Result<(), WorkloadError> {
    expect(hosts.len() >= 2, "at least two hosts")?;
    expect(bytes >= 1, "at least one byte per flow")
}

impl AllToAll {
    pub(super) fn left(&self) -> usize {
        self.hosts.len() * (self.hosts.len() - 1) - self.sent
    }

    pub(super) fn next(&mut self) -> Option<WorkloadFlow> {
        let hosts = self.hosts.len();
        let (round, sender) = (self.sent / hosts, self.sent % hosts);
        if round == hosts - 1 {
            return None;
        }
        self.sent += 1;
        let [src, dst] = [sender, (sender + round + 1) % hosts].map(|place| self.hosts[place]);
        Some(WorkloadFlow { start: self.start, src, dst, bytes: self.bytes, group: 0 })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn hosts(count: u32) -> Vec<NodeId> {
        (0..count).map(NodeId).collect()
    }

    #[test]
    fn in_a_permutation_everyone_sends_once_receives_once_and_never_to_itself() {
        for seed in 0..50 {
            let mut random = Random::new(seed, 0);
            let flows: Vec<WorkloadFlow> =
                FlowSchedule::permutation(&hosts(17), 1_000, Time::ZERO, &mut random).unwrap().collect();
            assert!(flows.iter().all(|flow| flow.src != flow.dst));
            assert_eq!(flows.iter().map(|flow| flow.src).collect::<Vec<_>>(), hosts(17));
            assert_eq!(flows.iter().map(|flow| flow.dst).collect::<BTreeSet<_>>().len(), 17);
        }
    }

    #[test]
    fn a_permutation_follows_its_seed() {
        let draw = |seed| {
            let flows = FlowSchedule::permutation(&hosts(64), 1, Time::ZERO, &mut Random::new(seed, 0)).unwrap();
            flows.map(|flow| flow.dst).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn all_to_all_is_every_pair_once_and_a_round_is_a_permutation() {
        let flows: Vec<WorkloadFlow> = FlowSchedule::all_to_all(hosts(9), 1_000, Time::from_ps(5)).unwrap().collect();
        let pairs: BTreeSet<(NodeId, NodeId)> = flows.iter().map(|flow| (flow.src, flow.dst)).collect();
        assert_eq!((flows.len(), pairs.len()), (72, 72));
        assert!(flows.iter().all(|flow| flow.src != flow.dst && flow.start == Time::from_ps(5)));
        for round in flows.chunks(9) {
            assert_eq!(round.iter().map(|flow| flow.dst).collect::<BTreeSet<_>>().len(), 9);
        }
    }

    #[test]
    fn patterns_need_two_hosts_and_a_byte() {
        let said = |result: Result<FlowSchedule, WorkloadError>| result.unwrap_err().to_string();
        assert_eq!(said(FlowSchedule::all_to_all(hosts(1), 1, Time::ZERO)), "expected at least two hosts");
        assert_eq!(said(FlowSchedule::all_to_all(hosts(2), 0, Time::ZERO)), "expected at least one byte per flow");
        let alone = FlowSchedule::permutation(&hosts(1), 1, Time::ZERO, &mut Random::new(1, 0));
        assert_eq!(said(alone), "expected at least two hosts");
    }
}
