//! Incast: several hosts send to one at the same time, again and again.
//!
//! HPCC (Li's thesis) §2.6.3 has 60 senders of 500 KB each, chosen anew every time like their receiver, often enough to
//! add 2 % of load.

use std::vec;

use faults::Random;
use units::{Rate, Span, Time};

use super::arrivals::{ArrivalProcess, ArrivalStop, gap_for};
use super::error::{check_load, expect};
use super::{FlowSchedule, FlowSource, WorkloadError, WorkloadFlow};
use crate::topology::NodeId;

#[derive(Clone, Debug)]
pub struct Incast {
    /// Senders of a burst.
    pub fan_in: u32,
    /// Bytes from each sender.
    pub bytes: u64,
    /// Hosts among which senders are chosen, and the receiver unless one is set for all incasts.
    pub hosts: Vec<NodeId>,
    pub receiver: Option<NodeId>,
    pub pace: BurstPace,
    pub stop: ArrivalStop,
}

/// Times of bursts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BurstPace {
    /// Incasts at a fixed interval, the first at time zero.
    Every(Span),
    /// Incasts at random, filling on average a share of all hosts' access links, which have this rate.
    Load { load: f64, rate: Rate },
}

#[derive(Clone, Debug)]
pub(super) struct IncastStream {
    arrivals: ArrivalProcess,
    random: Random,
    fan_in: usize,
    bytes: u64,
    receiver: Option<NodeId>,
    /// Hosts without the set receiver, in the order of the last draw.
    hosts: Vec<NodeId>,
    burst: vec::IntoIter<WorkloadFlow>,
}

impl FlowSchedule {
    pub fn incast(config: Incast, mut random: Random) -> Result<Self, WorkloadError> {
        let Incast { fan_in, bytes, mut hosts, receiver, pace, stop } = config;
        expect(bytes >= 1, "at least one byte per flow")?;
        let arrivals = match pace {
            BurstPace::Every(span) => {
                expect(span > Span::ZERO, "some time between bursts")?;
                ArrivalProcess::every(span, stop)
            }
            BurstPace::Load { load, rate } => {
                check_load(load)?;
                let burst = f64::from(fan_in) * bytes as f64;
                ArrivalProcess::poisson(gap_for(load, hosts.len(), rate, burst), stop, &mut random)
            }
        };
        hosts.retain(|host| Some(*host) != receiver);
        let others = if receiver.is_some() { hosts.len() } else { hosts.len().saturating_sub(1) };
        let fan_in = fan_in as usize;
        if !(1..=others).contains(&fan_in) {
            return Err(WorkloadError::FanIn { fan_in, others });
        }
        let burst = Vec::new().into_iter();
        Ok(Self::from(FlowSource::Incast(IncastStream { arrivals, random, fan_in, bytes, receiver, hosts, burst })))
    }
}

impl IncastStream {
    pub(super) fn expected_left(&self) -> f64 {
        self.arrivals.expected_left() * self.fan_in as f64 + self.burst.len() as f64
    }

    pub(super) fn next(&mut self) -> Option<WorkloadFlow> {
        if self.burst.len() == 0 {
            let start = self.arrivals.next(&mut self.random)?;
            self.burst = self.draw(start).into_iter();
        }
        self.burst.next()
    }

    /// Chooses a receiver, unless there is one for all, and senders.
    fn draw(&mut self, start: Time) -> Vec<WorkloadFlow> {
        let chosen = self.fan_in + usize::from(self.receiver.is_none());
        for place in 0..chosen {
            let other = place as u64 + self.random.below((self.hosts.len() - place) as u64);
            self.hosts.swap(place, other as usize);
        }
        let dst = self.receiver.unwrap_or(self.hosts[chosen - 1]);
        let flow = |src: &NodeId| WorkloadFlow { start, src: *src, dst, bytes: self.bytes, group: 0 };
        self.hosts[..self.fan_in].iter().map(flow).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn hpcc(stop: ArrivalStop) -> Incast {
        Incast {
            fan_in: 60,
            bytes: 500_000,
            hosts: (0..320).map(NodeId).collect(),
            receiver: None,
            pace: BurstPace::Load { load: 0.02, rate: Rate::gbps(100) },
            stop,
        }
    }

    fn flows(config: Incast, seed: u64) -> Vec<WorkloadFlow> {
        FlowSchedule::incast(config, Random::new(seed, 0)).unwrap().collect()
    }

    #[test]
    fn a_burst_is_from_different_hosts_to_one_other_at_one_time() {
        let flows = flows(hpcc(ArrivalStop::After(100)), 1);
        assert_eq!(flows.len(), 6_000);
        let mut receivers = BTreeSet::new();
        for burst in flows.chunks(60) {
            assert!(burst.iter().all(|flow| (flow.dst, flow.start) == (burst[0].dst, burst[0].start)));
            let senders: BTreeSet<NodeId> = burst.iter().map(|flow| flow.src).collect();
            assert_eq!(senders.len(), 60);
            assert!(!senders.contains(&burst[0].dst));
            receivers.insert(burst[0].dst);
        }
        assert!(receivers.len() > 70, "receivers differ: {}", receivers.len());
        assert!(flows.is_sorted_by_key(|flow| flow.start));
    }

    #[test]
    fn bursts_fill_the_share_of_the_access_links_that_was_asked_for() {
        let flows = flows(hpcc(ArrivalStop::After(10_000)), 2);
        let bytes: u64 = flows.iter().map(|flow| flow.bytes).sum();
        let seconds = flows.last().unwrap().start.since(Time::ZERO).as_secs();
        let filled = bytes as f64 * 8.0 / seconds / (320.0 * 100e9);
        // The standard error of ten thousand gaps is 1 %.
        assert!((filled / 0.02 - 1.0).abs() < 0.04, "{filled}");
    }

    #[test]
    fn bursts_in_step_to_one_receiver() {
        let config = Incast {
            fan_in: 7,
            hosts: (0..8).map(NodeId).collect(),
            receiver: Some(NodeId(3)),
            pace: BurstPace::Every(Span::from_ms(1)),
            ..hpcc(ArrivalStop::At(Time::ZERO + Span::from_ms(3)))
        };
        let flows = flows(config, 1);
        let starts: Vec<u64> = flows.iter().step_by(7).map(|flow| flow.start.as_ps()).collect();
        assert_eq!(starts, [0, 1_000_000_000, 2_000_000_000]);
        assert!(flows.iter().all(|flow| flow.dst == NodeId(3) && flow.src != NodeId(3)));
    }

    #[test]
    fn the_same_seed_gives_the_same_bursts() {
        assert_eq!(flows(hpcc(ArrivalStop::After(3)), 1), flows(hpcc(ArrivalStop::After(3)), 1));
        assert_ne!(flows(hpcc(ArrivalStop::After(3)), 1), flows(hpcc(ArrivalStop::After(3)), 2));
    }

    #[test]
    fn an_incast_that_cannot_be_is_refused() {
        let said = |config| FlowSchedule::incast(config, Random::new(1, 0)).unwrap_err().to_string();
        let incast = || hpcc(ArrivalStop::After(1));
        let too_many = "incast of 320: expected at least 1 and at most the 319 hosts beside the receiver";
        assert_eq!(said(Incast { fan_in: 320, ..incast() }), too_many);
        assert_eq!(said(Incast { fan_in: 320, receiver: Some(NodeId(5)), ..incast() }), too_many);
        assert!(said(Incast { fan_in: 0, ..incast() }).starts_with("incast of 0"));
        assert!(said(Incast { hosts: vec![], ..incast() }).contains("at most the 0 hosts"));
        assert_eq!(said(Incast { bytes: 0, ..incast() }), "expected at least one byte per flow");
        assert_eq!(
            said(Incast { pace: BurstPace::Every(Span::ZERO), ..incast() }),
            "expected some time between bursts"
        );
        let overload = BurstPace::Load { load: 1.5, rate: Rate::gbps(100) };
        assert!(said(Incast { pace: overload, ..incast() }).starts_with("load 1.5"));
    }
}
