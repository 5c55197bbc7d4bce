//! Simulation of the model's answers: flows over a chain of links that corrupt, and how many of them time out.
//!
//! Each run draws anew which links corrupt, each direction by itself, and they stay so: as the model has it. Every flow has
//! its own queue pair, and so little else is on the way that queues play no part.

use faults::{FaultSchedule, LossModel as Fault, Random};
use report::claim::{ClaimError, MeasuredValue};
use roce::model::{FlowPath, TailProtection, TimeoutSetting};
use roce::{self, repeat};
use sim::net::{LinkSetup, NetworkSetup, Protection, TrafficSetup, TransportSetup};
use sim::topology::{Topology, TopologyLinkId};
use sim::workload::{ArrivalStop, FlowSchedule, FlowSizes, Poisson, Workload};
use units::{Progress, Rate, Span};

/// Settings of a trial.
#[derive(Clone, Debug)]
pub struct Trial {
    pub sizes: FlowSizes,
    /// Payload of a full packet; what the longest flow has must be a message.
    pub mtu: u32,
    /// Fault in each direction of a corrupting link.
    pub fault: Fault,
    pub path: FlowPath,
    pub setting: TimeoutSetting,
    pub rto: Span,
    /// Time for which a queue pair is idle before dummies are sent.
    pub wait: Span,
    pub flows: u64,
    pub seed: u64,
}

const RATE: Rate = Rate::gbps(100);
const DELAY: Span = Span::from_ns(50);
/// Load of the sender's link.
const LOAD: f64 = 0.05;
/// Draws of corrupting links; more if there are many flows.
const DRAWS: u64 = 64;
const FLOWS_OF_A_RUN: u64 = 20_000;
/// Streams of randomness, apart from those of a run.
const LINKS: u64 = 1 << 50;
const STARTS: u64 = 1 << 51;

impl Trial {
    /// The share of flows that timed out, with its interval; `None` if it was stopped early.
    pub fn run(&self, jobs: usize, progress: &(dyn Progress + Sync)) -> Result<Option<MeasuredValue>, ClaimError> {
        let least = if self.path.corrupting.get() < 1.0 { DRAWS } else { 1 };
        let runs = self.flows.div_ceil(FLOWS_OF_A_RUN).max(least).min(self.flows.max(1));
        let setups: Vec<NetworkSetup> = (0..runs).map(|run| self.setup(run, runs)).collect::<Result<_, _>>()?;
        progress.expect_parts(setups.len());
        let counts = parallel::map(&setups, jobs, |setup| {
            let outcome = sim::net::run(setup.clone(), progress);
            progress.part_done();
            outcome.map(|outcome| {
                let late = outcome.flows.iter().filter(|flow| flow.tally.timeouts > 0).count() as u64;
                (!outcome.interrupted).then_some((late, outcome.flows.len() as u64))
            })
        });
        let (mut late, mut flows) = (0, 0);
        for count in counts {
            let Some((of_run, in_all)) = count.map_err(ClaimError::new)? else { return Ok(None) };
            late += of_run;
            flows += in_all;
        }
        let share = |count: f64| count / flows.max(1) as f64;
        let (low, high) = units::poisson(late);
        Ok(Some(MeasuredValue::counted(share(late as f64), flows, (share(low), share(high)))))
    }

    fn setup(&self, run: u64, runs: u64) -> Result<NetworkSetup, ClaimError> {
        let topology = Topology::chain(self.path.links + 1, RATE, DELAY).map_err(ClaimError::new)?;
        let hosts: Vec<_> = topology.hosts().collect();
        let mut setup = NetworkSetup::new(topology);
        let mut random = Random::new(self.seed, LINKS + run);
        let mut way = || {
            let corrupts = random.unit() < self.path.corrupting.get();
            FaultSchedule::always(if corrupts { self.fault.clone() } else { Fault::None })
        };
        // The first and the last are hosts' own.
        for link in 1..=self.path.links {
            let (forward, reverse) = (way(), way());
            let protection = Protection::None;
            setup.links.push(LinkSetup { link: TopologyLinkId(link), forward, reverse, protection, activate_at: None });
        }
        let TimeoutSetting { naks, naked, .. } = self.setting;
        setup.repeat = (naks + naked > 0).then(|| repeat::RepeaterConfig::new(naks, naked));
        setup.seed = self.seed.wrapping_mul(1_000_003).wrapping_add(run);
        let flows = self.flows * (run + 1) / runs - self.flows * run / runs;
        let work = Poisson {
            load: LOAD,
            rate: RATE,
            sizes: self.sizes.clone(),
            senders: vec![hosts[0]],
            receivers: vec![hosts[1]],
            matched: false,
            stop: ArrivalStop::After(flows),
        };
        let work = FlowSchedule::poisson(work, Random::new(self.seed, STARTS + run)).map_err(ClaimError::new)?;
        let transport = TransportSetup::Roce(self.queue_pair());
        setup.traffic.push(TrafficSetup::new("flows", transport, Workload::Open(work)));
        Ok(setup)
    }

    fn queue_pair(&self) -> roce::RoceConfig {
        let (dummies, tail_copies) = match self.setting.tail {
            TailProtection::Dummies(dummies) => (dummies, 0),
            TailProtection::Repeat(copies) => (0, copies),
        };
        roce::RoceConfig {
            mtu: self.mtu,
            timeout: self.rto,
            retry_count: u32::MAX,
            obey_nak_copies: self.setting.obeys_copies,
            dummies,
            dummies_after: self.wait,
            tail_copies,
            ..roce::RoceConfig::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use units::Prob;
    use units::Unwatched;

    use super::*;

    fn trial(corrupting: f64, setting: TimeoutSetting) -> Trial {
        Trial {
            sizes: FlowSizes::fixed(1_024),
            mtu: 1_024,
            fault: Fault::PerFrame(Prob::literal(0.05)),
            path: FlowPath { links: 2, corrupting: Prob::literal(corrupting) },
            setting,
            rto: Span::from_ms(1),
            wait: Span::ZERO,
            flows: 20_000,
            seed: 1,
        }
    }

    fn share(trial: &Trial) -> MeasuredValue {
        trial.run(2, &Unwatched).unwrap().unwrap()
    }

    /// Tests one-packet flows without help: the packet or its acknowledgement is lost on one of two links.
    #[test]
    fn flows_that_time_out_are_as_many_as_lose_their_packet_or_its_acknowledgement() {
        for (corrupting, survives) in [(1.0, 0.95f64), (0.5, 0.975)] {
            let found = share(&trial(corrupting, TimeoutSetting::NONE));
            let (low, high) = found.interval.unwrap();
            let expected = 1.0 - survives.powi(4);
            // The corrupting links are drawn 64 times, which adds an uncertainty of its own.
            let room = if corrupting < 1.0 { 0.03 } else { 0.0 };
            assert!(low - room < expected && expected < high + room, "{expected}: {low} to {high}");
            assert_eq!(found.n, 20_000);
        }
    }

    #[test]
    fn help_helps_and_the_number_of_jobs_changes_nothing() {
        let setting = TimeoutSetting { naks: 1, naked: 2, tail: TailProtection::Dummies(2), obeys_copies: false };
        let helped = trial(1.0, setting);
        assert!(share(&helped).value < share(&trial(1.0, TimeoutSetting::NONE)).value / 5.0);
        assert_eq!(helped.run(1, &Unwatched).unwrap(), helped.run(3, &Unwatched).unwrap());
    }
}
