//! Flows that start at random, between random pairs of hosts: the background traffic of most papers.
//!
//! One Poisson process for all senders, each start given to one of them at random, is the same as an independent
//! process at each.

use faults::Random;
use units::Rate;

use super::arrivals::{ArrivalProcess, ArrivalStop, gap_for};
use super::error::{check_load, expect};
use super::{FlowSchedule, FlowSizes, FlowSource, WorkloadError, WorkloadFlow};
use crate::topology::NodeId;

#[derive(Clone, Debug)]
pub struct Poisson {
    /// Share of the senders' access links, above 0 and up to 1.
    pub load: f64,
    /// Rate of those links.
    pub rate: Rate,
    pub sizes: FlowSizes,
    pub senders: Vec<NodeId>,
    /// May be the senders as well: no host sends to itself.
    pub receivers: Vec<NodeId>,
    /// True if each sender has one receiver, that with the same place in the list.
    pub matched: bool,
    pub stop: ArrivalStop,
}

#[derive(Clone, Debug)]
pub(super) struct PoissonStream {
    arrivals: ArrivalProcess,
    sizes: FlowSizes,
    senders: Vec<NodeId>,
    receivers: Vec<NodeId>,
    matched: bool,
    random: Random,
}

impl FlowSchedule {
    pub fn poisson(config: Poisson, mut random: Random) -> Result<Self, WorkloadError> {
        let Poisson { load, rate, sizes, senders, receivers, matched, stop } = config;
        check_load(load)?;
        expect(!senders.is_empty(), "at least one sender")?;
        let has_another = |sender: &NodeId| receivers.iter().any(|receiver| receiver != sender);
        expect(senders.iter().all(has_another), "for every sender a receiver other than itself")?;
        if matched {
            expect(senders.len() == receivers.len(), "as many receivers as senders")?;
            expect(senders.iter().zip(&receivers).all(|(src, dst)| src != dst), "no sender matched with itself")?;
        }
        let gap = gap_for(load, senders.len(), rate, sizes.mean());
        let arrivals = ArrivalProcess::poisson(gap, stop, &mut random);
        Ok(Self::from(FlowSource::Poisson(PoissonStream { arrivals, sizes, senders, receivers, matched, random })))
    }
}

impl PoissonStream {
    pub(super) fn expected_left(&self) -> f64 {
        self.arrivals.expected_left()
    }

    pub(super) fn next(&mut self) -> Option<WorkloadFlow> {
        let start = self.arrivals.next(&mut self.random)?;
        let [src, dst] = self.pair();
        Some(WorkloadFlow { start, src, dst, bytes: self.sizes.sample(&mut self.random), group: 0 })
    }

    fn pair(&mut self) -> [NodeId; 2] {
        let sender = self.random.below(self.senders.len() as u64) as usize;
        let src = self.senders[sender];
        if self.matched {
            return [src, self.receivers[sender]];
        }
        loop {
            let dst = self.receivers[self.random.below(self.receivers.len() as u64) as usize];
            if dst != src {
                return [src, dst];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use units::{Span, Time};

    use super::*;
    use crate::workload::SizeTrace;

    fn hosts(count: u32) -> Vec<NodeId> {
        (0..count).map(NodeId).collect()
    }

    fn config(load: f64, sizes: FlowSizes, stop: ArrivalStop) -> Poisson {
        Poisson { load, rate: Rate::gbps(100), sizes, senders: hosts(16), receivers: hosts(16), matched: false, stop }
    }

    fn flows(config: Poisson, seed: u64) -> Vec<WorkloadFlow> {
        FlowSchedule::poisson(config, Random::new(seed, 0)).unwrap().collect()
    }

    #[test]
    fn payload_fills_the_share_of_the_access_links_that_was_asked_for() {
        for (load, sizes) in
            [(0.3, SizeTrace::WebSearch.sizes()), (0.5, SizeTrace::FbHadoop.sizes()), (1.0, FlowSizes::fixed(1_000))]
        {
            let flows = flows(config(load, sizes, ArrivalStop::After(200_000)), 1);
            let bytes: u64 = flows.iter().map(|flow| flow.bytes).sum();
            let seconds = flows.last().unwrap().start.since(Time::ZERO).as_secs();
            let filled = bytes as f64 * 8.0 / seconds / (16.0 * 100e9);
            // The standard error is 1.2 % for the heaviest tail of the three.
            assert!((filled / load - 1.0).abs() < 0.04, "{filled} for {load}");
        }
    }

    #[test]
    fn gaps_between_starts_are_exponential() {
        let flows = flows(config(0.5, FlowSizes::fixed(100_000), ArrivalStop::After(100_001)), 2);
        let gaps: Vec<f64> = flows.windows(2).map(|pair| pair[1].start.since(pair[0].start).as_secs()).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let longer = gaps.iter().filter(|gap| **gap > mean).count() as f64 / gaps.len() as f64;
        assert!((longer - (-1.0_f64).exp()).abs() < 0.01, "{longer}");
    }

    #[test]
    fn matched_senders_have_one_receiver_each() {
        let matched = Poisson {
            senders: hosts(4),
            receivers: (10..14).map(NodeId).collect(),
            matched: true,
            ..config(0.5, FlowSizes::fixed(1_000), ArrivalStop::After(1_000))
        };
        assert!(flows(matched.clone(), 1).iter().all(|flow| flow.dst.0 == flow.src.0 + 10));
        let refused = |config| FlowSchedule::poisson(config, Random::new(1, 0)).unwrap_err().to_string();
        assert!(refused(Poisson { receivers: hosts(3), ..matched.clone() }).contains("as many receivers as senders"));
        assert!(refused(Poisson { receivers: hosts(4), ..matched }).contains("matched with itself"));
    }

    #[test]
    fn pairs_are_spread_evenly_and_no_host_sends_to_itself() {
        let mut count = [[0_u32; 16]; 16];
        for flow in flows(config(0.5, FlowSizes::fixed(1_000), ArrivalStop::After(240_000)), 3) {
            count[flow.src.index()][flow.dst.index()] += 1;
        }
        for (src, row) in count.iter().enumerate() {
            for (dst, flows) in row.iter().enumerate() {
                // A thousand expected, with a standard deviation of 32.
                let even = if src == dst { *flows == 0 } else { (850..1_150).contains(flows) };
                assert!(even, "{src} → {dst}: {flows}");
            }
        }
    }

    #[test]
    fn flows_go_from_senders_to_receivers() {
        let config = Poisson {
            senders: hosts(2),
            receivers: vec![NodeId(7)],
            ..config(0.2, FlowSizes::fixed(9), ArrivalStop::After(99))
        };
        assert!(flows(config, 1).iter().all(|flow| flow.src.0 < 2 && flow.dst == NodeId(7)));
    }

    #[test]
    fn starts_are_sorted_and_end_in_time() {
        let end = Time::ZERO + Span::from_ms(1);
        let flows = flows(config(0.8, SizeTrace::GoogleRpc.sizes(), ArrivalStop::At(end)), 4);
        assert!(flows.len() > 10_000);
        assert!(flows.is_sorted_by_key(|flow| flow.start));
        assert!(flows.last().unwrap().start < end);
    }

    #[test]
    fn the_same_seed_gives_the_same_flows() {
        let draw = |seed| flows(config(0.5, SizeTrace::WebSearch.sizes(), ArrivalStop::After(100)), seed);
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn loads_that_are_none_are_refused() {
        for load in [0.0, -0.1, 1.01, f64::NAN, f64::INFINITY] {
            let refused =
                FlowSchedule::poisson(config(load, FlowSizes::fixed(1), ArrivalStop::After(1)), Random::new(1, 0))
                    .unwrap_err();
            assert!(refused.to_string().contains("expected more than 0 and at most 1"), "{refused}");
        }
    }

    #[test]
    fn a_host_without_a_partner_is_refused() {
        let config = || config(0.5, FlowSizes::fixed(1), ArrivalStop::After(1));
        let said = |config| FlowSchedule::poisson(config, Random::new(1, 0)).unwrap_err().to_string();
        assert_eq!(said(Poisson { senders: vec![], ..config() }), "expected at least one sender");
        let alone = Poisson { receivers: hosts(1), ..config() };
        assert_eq!(said(alone), "expected for every sender a receiver other than itself");
    }
}
