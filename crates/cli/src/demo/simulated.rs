//! The same story where namespaces are forbidden: the link simulated frame by frame, TCP by its two rules that
//! matter here.
//!
//! A lone request that is lost waits for the kernel's retransmission timer: 200 ms, doubled each time. A bulk flow
//! follows CUBIC (RFC 9438) round by round: the window grows, a loss takes three tenths of it, and what is lost again when
//! sent again waits for the timer too. Protected, frames are as late as the simulated link's recoveries are.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use faults::{Fault, Model, Random, Schedule};
use live::demo::{Case, Figures, Plan, Recovery, Round, Story};
use live::load::RoundTrips;
use live::stage::WireCount;
use sim::link::{Config, Load, Mode, Outcome, Sizes, Watch};
use units::{Bytes, Prob, Rate, Span};

/// A request or a response: 64 bytes in TCP, IP and Ethernet with its check.
const REQUEST: u32 = 64 + 52 + 18;
const SEGMENT: u32 = 1_518;
/// What a full segment carries of the 1,538 bytes of wire that it takes.
const PAYLOAD: f64 = 1_448.0;
const ON_WIRE: f64 = 1_538.0;
/// A host's way through its stack, each time.
const STACK: Span = Span::from_us(5);
/// Linux: TCP_RTO_MIN.
const TIMER: Span = Span::from_ms(200);

/// Ends a simulation early.
struct Until<'a>(&'a AtomicBool);

impl Watch for Until<'_> {
    fn go_on(&self, _frames: u64) -> bool {
        !self.0.load(Ordering::Relaxed)
    }

    fn expect_runs(&self, _runs: usize) {}

    fn run_done(&self) {}
}

/// `None` if it was stopped.
pub fn run(plan: &Plan, stop: &AtomicBool) -> Option<Story> {
    let rate = plan.rate.unwrap_or(Rate::gbps(10));
    let requests = link(rate, plan.loss, REQUEST, Load::Poisson(0.05), stop)?;
    let bulk = link(rate, plan.loss, SEGMENT, Load::Saturated, stop)?;
    let heavy = link(rate, plan.heavy_loss, SEGMENT, Load::Saturated, stop)?;
    let clean = link(rate, Prob::literal(0.0), SEGMENT, Load::Saturated, stop)?;
    let delays = requests.recovery_delay_us;
    let recovery = Recovery {
        recovered: requests.recovered + bulk.recovered + heavy.recovered,
        given_up: requests.given_up + bulk.given_up + heavy.given_up,
        recovery_p50_us: delays.map(|delay| delay.p50),
        recovery_p99_us: delays.map(|delay| delay.p99),
    };
    let late = Span::from_ps((delays.map_or(0.0, |delay| delay.p50) * 1e6) as u64);
    let line = rate.bits_per_second() as f64 / 1e9 * PAYLOAD / ON_WIRE;
    let speed = |outcome: &Outcome| line * outcome.effective_speed.unwrap_or(1.0);
    let none = Prob::literal(0.0);
    let figures = |case: Case| {
        let (loss, wait, throughput, at_1e2) = match case {
            Case::Clean => (none, TIMER, line, None),
            Case::Corrupting => {
                (plan.loss, TIMER, cubic(rate, plan.loss, line), Some(cubic(rate, plan.heavy_loss, line)))
            }
            Case::Protected => (plan.loss, late, speed(&bulk), Some(speed(&heavy))),
            Case::CleanChain => (none, late, speed(&clean), None),
        };
        let rounds = (0..plan.rounds)
            .map(|number| round(rate, loss, wait, plan.round_trips, u64::from(number), (throughput, at_1e2)))
            .collect();
        Figures::of(rounds)
    };
    Some(Story {
        clean: figures(Case::Clean),
        corrupting: figures(Case::Corrupting),
        protected: Figures { recovery: Some(recovery), ..figures(Case::Protected) },
        clean_chain: figures(Case::CleanChain),
        simulated: true,
        backend: "simulator".to_owned(),
        rootless: true,
        loss: plan.loss.get(),
        rate_gbps: plan.rate.map(|rate| rate.bits_per_second() as f64 / 1e9),
        completed: plan.rounds,
    })
}

fn link(rate: Rate, loss: Prob, size: u32, load: Load, stop: &AtomicBool) -> Option<Outcome> {
    let faults = Schedule::always(Model::PerFrame(loss));
    let config = Config {
        rate,
        mode: Mode::Ordered,
        sizes: Sizes::Fixed(size),
        frames: 1_000_000,
        load,
        forward: faults.clone(),
        reverse: faults,
        asks: 3,
        ..Config::default()
    };
    let outcome = sim::link::run(&config, &Until(stop)).ok()?;
    (!outcome.interrupted).then_some(outcome)
}

/// Requests one after the other; each frame that is lost costs `wait`, and twice that if it is lost again.
fn round(
    rate: Rate,
    loss: Prob,
    wait: Span,
    count: u32,
    seed: u64,
    (throughput, at_1e2): (f64, Option<f64>),
) -> (Round, RoundTrips) {
    let mut fault = Fault::new(&Model::PerFrame(loss), Random::new(seed, 77));
    let way = rate.span_of(Bytes::new(u64::from(wire::ethernet::on_wire(REQUEST)))) + STACK * 2;
    let mut trips = RoundTrips::default();
    let mut wire = WireCount::default();
    for _ in 0..count {
        let mut trip = way * 2;
        for _ in 0..2 {
            let mut timer = wait;
            wire.offered += 1;
            while fault.corrupts(REQUEST) {
                trip += timer + way;
                timer = timer * 2;
                wire.offered += 1;
                wire.dropped += 1;
            }
        }
        trips.record(Duration::from_nanos(trip.as_ps() / 1_000));
    }
    let us = |delay: Duration| delay.as_nanos() as f64 / 1e3;
    // A queue of a millisecond, and half of it on average.
    let beside = us(trips.p50()) + 500.0;
    let round = Round {
        throughput_gbps: throughput,
        throughput_at_1e2_gbps: at_1e2,
        pingpong_p50_us: us(trips.p50()),
        pingpong_p99_us: us(trips.p99()),
        pingpong_p999_us: us(trips.p999()),
        pingpong_max_us: us(trips.max()),
        pingpong_beside_bulk_p50_us: beside,
        over_100ms: trips.over(Duration::from_millis(100)),
        wire,
        tcp_retransmitted: 0,
    };
    (round, trips)
}

/// Gigabits per second that CUBIC gets through a wire with a queue of a millisecond.
fn cubic(rate: Rate, loss: Prob, line: f64) -> f64 {
    const ROUNDS: u32 = 200_000;
    const GROWTH: f64 = 0.4;
    const KEPT: f64 = 0.7;
    let mut fault = Fault::new(&Model::PerFrame(loss), Random::new(1, 78));
    let segment = rate.span_of(Bytes::new(ON_WIRE as u64)).as_secs();
    let base = 2.0 * (segment + 2.0 * STACK.as_secs());
    let most = (base + 1e-3) / segment;
    let (mut window, mut top, mut since, mut friendly) = (10.0f64, 10.0f64, 0.0f64, 10.0f64);
    let (mut sent, mut passed) = (0.0, 0.0);
    for _ in 0..ROUNDS {
        let segments = window.min(most).max(2.0) as u32;
        let trip = base.max(f64::from(segments) * segment);
        let lost = (0..segments).filter(|_| fault.corrupts(SEGMENT)).count();
        sent += f64::from(segments) - lost as f64;
        passed += trip;
        since += trip;
        if lost > 0 || window > most {
            let lost_again = (0..lost).any(|_| fault.corrupts(SEGMENT));
            passed += if lost_again { TIMER.as_secs() } else { 0.0 };
            top = window;
            window = (window * KEPT).max(2.0);
            (since, friendly) = (0.0, window);
            continue;
        }
        let turn = (top * (1.0 - KEPT) / GROWTH).cbrt();
        friendly += 3.0 * (1.0 - KEPT) / (1.0 + KEPT);
        window = (GROWTH * (since - turn).powi(3) + top).max(friendly);
    }
    (sent * PAYLOAD * 8.0 / passed / 1e9).min(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_simulated_story_ends_as_the_real_one_does() {
        let plan = Plan {
            loss: Prob::literal(1e-3),
            heavy_loss: Prob::literal(1e-2),
            rate: Some(Rate::gbps(1)),
            rounds: 2,
            round_trips: 20_000,
            bulk: Duration::from_secs(1),
            mode: live::config::Mode::Ordered,
            host: live::config::HostBackend::Auto,
            wire: live::config::WireBackend::Auto,
        };
        let story = run(&plan, &AtomicBool::new(false)).unwrap();
        assert!(story.corrupting.median.pingpong_p999_us >= 200_000.0);
        assert!(story.protected.median.pingpong_p999_us < 1_000.0);
        assert_eq!(story.protected.median.over_100ms, 0);
        let (plain, guarded) = (&story.corrupting.median, &story.protected.median);
        assert!(guarded.throughput_at_1e2_gbps.unwrap() > 2.0 * plain.throughput_at_1e2_gbps.unwrap());
        assert!(guarded.throughput_gbps > 0.9 * story.clean_chain.median.throughput_gbps);
    }
}
