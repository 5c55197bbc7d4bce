//! The same story where namespaces are forbidden: two hosts and the wire between them in the network simulator, with TCP
//! as a kernel has it.

use std::time::Duration;

use faults::{FaultSchedule, LossModel};
use sim::link::{LinkSimConfig, LinkSimMode};
use sim::net::{HostLatency, LinkSetup, NetworkOutcome, NetworkSetup, Protection, TrafficSetup, TransportSetup};
use sim::topology::{NodeId, Topology, TopologyLinkId};
use sim::workload::{FlowSchedule, FlowSeries, Workload, WorkloadFlow};
use tcp::{self, TimerProfile};
use units::samples::quantile_above;
use units::{Prob, Rate, Span, StopFlag, Time};

use super::{DemoCase, DemoFigures, DemoPlan, DemoRecovery, DemoResult, DemoRound};
use crate::stage::WireCount;
use load::RoundTrips;

/// Bytes of a request and of its answer.
const REQUEST: u64 = 64;
/// A host's way through its stack, each time.
const STACK: HostLatency = HostLatency::LogNormal { median: Span::from_us(10), sigma: 0.3 };
/// Time of the bulk flow; and of requests beside it, which are many more in the same time.
const BULK: Span = Span::from_ms(2_000);
const BESIDE: Span = Span::from_ms(100);
/// A kernel as distributions build it.
pub(crate) const LINUX: TimerProfile = TimerProfile::Linux { hz: 250, rto_min: Span::from_ms(200), phase: Span::ZERO };

/// One case of the story, in one round.
struct SimulatedCase<'a> {
    rate: Rate,
    loss: Prob,
    protected: bool,
    seed: u64,
    stop: &'a StopFlag,
}

/// Runs the demonstration in the simulator. Returns `None` if the user stopped it.
pub fn run(plan: &DemoPlan, stop: &StopFlag) -> Option<DemoResult> {
    let rate = plan.rate.unwrap_or(Rate::gbps(10));
    let figures = |case: DemoCase| {
        let (loss, protected) = match case {
            DemoCase::Clean => (None, false),
            DemoCase::Corrupting => (Some(plan.loss), false),
            DemoCase::Protected => (Some(plan.loss), true),
            DemoCase::CleanChain => (None, true),
        };
        let mut recovered = SimulatedRecovery::default();
        let mut rounds = Vec::new();
        for round in 0..plan.rounds {
            let seed = u64::from(round) + 1;
            let scene = SimulatedCase { rate, loss: loss.unwrap_or(Prob::literal(0.0)), protected, seed, stop };
            let heavy = loss.map(|_| SimulatedCase { loss: plan.heavy_loss, ..scene });
            rounds.push(scene.round(plan.round_trips, heavy.as_ref(), &mut recovered)?);
        }
        let recovery = (case == DemoCase::Protected).then(|| recovered.summary());
        Some(DemoFigures { recovery, ..DemoFigures::of(rounds) })
    };
    Some(DemoResult {
        clean: figures(DemoCase::Clean)?,
        corrupting: figures(DemoCase::Corrupting)?,
        protected: figures(DemoCase::Protected)?,
        clean_chain: figures(DemoCase::CleanChain)?,
        simulated: true,
        backend: "simulator".to_owned(),
        rootless: true,
        loss: plan.loss.get(),
        rate_gbps: plan.rate.map(|rate| rate.bits_per_second() as f64 / 1e9),
        completed: plan.rounds,
    })
}

/// Frames that the link's ends recovered, and the times that this took.
#[derive(Default)]
struct SimulatedRecovery {
    recovered: u64,
    given_up: u64,
    delays: Vec<Span>,
}

impl SimulatedRecovery {
    fn add(&mut self, outcome: &NetworkOutcome) {
        for (_, link) in &outcome.links {
            self.recovered += link.counters.iter().map(|counters| counters.recovered).sum::<u64>();
            self.given_up += link.counters.iter().map(|counters| counters.given_up).sum::<u64>();
            self.delays.extend(&link.recovery);
        }
    }

    fn summary(mut self) -> DemoRecovery {
        self.delays.sort_unstable();
        let at = |share| quantile_above(&self.delays, share).map(Span::as_us);
        let (recovery_p50_us, recovery_p99_us) = (at(0.5), at(0.99));
        DemoRecovery { recovered: self.recovered, given_up: self.given_up, recovery_p50_us, recovery_p99_us }
    }
}

impl SimulatedCase<'_> {
    fn round(
        &self,
        count: u32,
        heavy: Option<&Self>,
        recovered: &mut SimulatedRecovery,
    ) -> Option<(DemoRound, RoundTrips)> {
        let requests = self.simulate(vec![request_series(u64::from(count))], Time::NEVER)?;
        let bulk = self.simulate(vec![bulk_flow()], Time::ZERO + BULK)?;
        let both = self.simulate(vec![request_series(u64::MAX), bulk_flow()], Time::ZERO + BESIDE)?;
        let heavy = match heavy {
            Some(heavy) => Some(heavy.simulate(vec![bulk_flow()], Time::ZERO + BULK)?),
            None => None,
        };
        [&requests, &bulk].into_iter().chain(&heavy).for_each(|outcome| recovered.add(outcome));
        let trips = round_trips(&requests);
        let us = |delay: Duration| delay.as_nanos() as f64 / 1e3;
        let round = DemoRound {
            throughput_gbps: gbps(&bulk),
            throughput_at_1e2_gbps: heavy.as_ref().map(gbps),
            pingpong_p50_us: us(trips.p50()),
            pingpong_p99_us: us(trips.p99()),
            pingpong_p999_us: us(trips.p999()),
            pingpong_max_us: us(trips.max()),
            pingpong_beside_bulk_p50_us: us(round_trips(&both).p50()),
            over_100ms: trips.over(Duration::from_millis(100)),
            wire: wire(&requests),
            tcp_retransmitted: bulk.flows.iter().map(|flow| u64::from(flow.tally.retransmitted)).sum(),
        };
        Some((round, trips))
    }

    /// Simulates one network. Returns `None` if the user stopped it.
    fn simulate(&self, traffic: Vec<TrafficSetup>, until: Time) -> Option<NetworkOutcome> {
        let faults = FaultSchedule::always(LossModel::PerFrame(self.loss));
        let config = LinkSimConfig {
            mode: LinkSimMode::Ordered,
            forward: faults.clone(),
            reverse: faults.clone(),
            protect_reverse: true,
            asks: 3,
            ..LinkSimConfig::default()
        };
        let protection = if self.protected { Protection::of(config) } else { Protection::None };
        let link = LinkSetup {
            link: TopologyLinkId(0),
            forward: faults.clone(),
            reverse: faults,
            protection,
            activate_at: None,
        };
        let setup = NetworkSetup {
            host_latency: STACK,
            links: vec![link],
            traffic,
            until,
            seed: self.seed,
            ..NetworkSetup::new(Topology::pair(self.rate, Span::from_ns(100)))
        };
        let outcome = sim::net::run(setup, self.stop).ok()?;
        (!self.stop.is_stopped()).then_some(outcome)
    }
}

fn traffic(name: &str, work: Workload, reply: u64) -> TrafficSetup {
    let transport = TransportSetup::Tcp(tcp::TcpConfig { profile: LINUX, ..tcp::TcpConfig::default() });
    TrafficSetup { reply, ..TrafficSetup::new(name, transport, work) }
}

fn request_series(count: u64) -> TrafficSetup {
    let (src, dst) = (NodeId(0), NodeId(1));
    let series = FlowSeries { src, dst, bytes: REQUEST, count, gap: Span::ZERO, group: 0 };
    traffic("requests", Workload::Series(series), REQUEST)
}

fn bulk_flow() -> TrafficSetup {
    let flow = WorkloadFlow { start: Time::ZERO, src: NodeId(0), dst: NodeId(1), bytes: 1 << 40, group: 0 };
    traffic("bulk", Workload::Open(FlowSchedule::list(vec![flow])), 0)
}

fn round_trips(outcome: &NetworkOutcome) -> RoundTrips {
    let mut trips = RoundTrips::default();
    for fct in outcome.flows.iter().filter_map(|flow| flow.fct()) {
        trips.record(Duration::from_nanos(fct.as_ps() / 1_000));
    }
    trips
}

fn gbps(bulk: &NetworkOutcome) -> f64 {
    let bits: u64 = bulk.flows.iter().map(|flow| flow.received * 8).sum();
    bits as f64 / BULK.as_secs() / 1e9
}

fn wire(outcome: &NetworkOutcome) -> WireCount {
    let sum = |what: fn(&sim::net::PortCounters) -> u64| outcome.ports.iter().map(what).sum();
    WireCount { offered: sum(|port| port.frames), dropped: sum(|port| port.corrupted) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_simulated_story_ends_as_the_real_one_does() {
        let plan = DemoPlan {
            loss: Prob::literal(1e-3),
            heavy_loss: Prob::literal(1e-2),
            rate: Some(Rate::gbps(1)),
            rounds: 2,
            round_trips: 20_000,
            bulk: Duration::from_secs(1),
            mode: link::config::LinkMode::Ordered,
            host: standin::HostBackend::Auto,
            wire: standin::WireBackend::Auto,
        };
        let story = run(&plan, &StopFlag::new()).unwrap();
        assert!(story.corrupting.median.pingpong_p999_us >= 200_000.0);
        assert!(story.protected.median.pingpong_p999_us < 1_000.0);
        assert_eq!(story.protected.median.over_100ms, 0);
        let (plain, guarded) = (&story.corrupting.median, &story.protected.median);
        assert!(guarded.throughput_at_1e2_gbps.unwrap() > 2.0 * plain.throughput_at_1e2_gbps.unwrap());
        assert!(guarded.throughput_gbps > 0.9 * story.clean_chain.median.throughput_gbps);
    }
}
