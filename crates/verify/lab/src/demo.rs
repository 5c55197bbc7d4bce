//! The demonstration: the same traffic over a clean wire, a corrupting one, and a corrupting one that is
//! protected; and, to see what protection itself costs, over a clean one that is.
//!
//! Two stages stand side by side: on one the kernel's TCP is straight on the wire, on the other it goes through
//! `hit0`. Cases alternate within each round, so that what else the machine does meets all of them alike;
//! figures are medians over rounds.

mod page;
mod simulated;
mod story;
mod text;

pub use page::page;
pub(crate) use simulated::LINUX;
pub use simulated::run as simulate;
pub use story::{DemoCase, DemoFigures, DemoPlan, DemoRecovery, DemoResult, DemoRound, median};
pub use text::text;

use std::time::Duration;

use hdrhistogram::Histogram;
use units::{Prob, StopFlag};

use crate::stage::{self, Stage, StageDaemon};
use link::config::LinkConfig;
use link::context::recovery_histogram;
use link::status::percentile;
use linux::SystemError;
use linux::net::NetworkPrivilege;
use load::{self, Bulk, KernelCongestion, PingPong, RoundTrips};
use standin::StandInConfig;

/// Observer of the demonstration.
pub trait DemoObserver: Sync {
    /// Reports the beginning of `step` of `steps`.
    fn begin(&self, round: u32, case: DemoCase, what: &str, step: u32, steps: u32);
    fn remark(&self, text: &str);
}

/// Parts of a round, for each case.
const PARTS: u32 = 3;

/// Runs it in namespaces that are ours already. `None` if it was stopped before one round was complete.
pub fn run(
    plan: &DemoPlan,
    standing: NetworkPrivilege,
    stop: &StopFlag,
    watch: &dyn DemoObserver,
) -> Result<Option<DemoResult>, SystemError> {
    // A wire with room for the header, so that both stages carry the same frames above it.
    let (plain, guarded) = (Stage::new(1_500)?, Stage::new(1_600)?);
    let serving = StopFlag::new();
    let (rounds, last) = std::thread::scope(|scope| {
        let played = play(plan, [&plain, &guarded], scope, &serving, stop, watch);
        serving.stop();
        played
    })?;
    let Some((backend, recovery)) = last else { return Ok(None) };
    let completed = rounds.len() as u32;
    if completed == 0 {
        return Ok(None);
    }
    let figures = |case: DemoCase| DemoFigures::of(rounds.iter().map(|round| round[case as usize].clone()).collect());
    Ok(Some(DemoResult {
        clean: figures(DemoCase::Clean),
        corrupting: figures(DemoCase::Corrupting),
        protected: DemoFigures { recovery: Some(recovery), ..figures(DemoCase::Protected) },
        clean_chain: figures(DemoCase::CleanChain),
        simulated: false,
        backend,
        rootless: standing == NetworkPrivilege::Rootless,
        loss: plan.loss.get(),
        rate_gbps: plan.rate.map(|rate| rate.bits_per_second() as f64 / 1e9),
        completed,
    }))
}

type DemoMeasurement = (DemoRound, RoundTrips);
type DemoRounds = (Vec<[DemoMeasurement; 4]>, Option<(String, DemoRecovery)>);

fn play<'scope>(
    plan: &DemoPlan,
    stages: [&'scope Stage; 2],
    scope: &'scope std::thread::Scope<'scope, '_>,
    serving: &'scope StopFlag,
    stop: &StopFlag,
    watch: &dyn DemoObserver,
) -> Result<DemoRounds, SystemError> {
    let [plain, guarded] = stages;
    let daemons = set_up(plan, plain, guarded, scope, serving)?;
    if !daemons[0].wait_until_active(stop) {
        return if stop.is_stopped() {
            Ok((Vec::new(), None))
        } else {
            Err(SystemError("the two ends did not find each other within five seconds".to_owned()))
        };
    }
    watch.remark(&format!("backend {}, wire in the kernel", daemons[0].backend));
    let mut rounds = Vec::new();
    let mut delays = recovery_histogram();
    for round in 0..plan.rounds {
        let mut cases = Vec::new();
        for case in DemoCase::ALL {
            let stage = stages[usize::from(case.is_protected())];
            take_recovery(&daemons);
            let mut begin = |what: &str, part| {
                // Recovery delays of the requests; those of the bulk flow show in its throughput.
                if case == DemoCase::Protected && part == 1 {
                    for taken in take_recovery(&daemons) {
                        let _ = delays.add(&taken); // the same bounds, so it fits
                    }
                }
                let step = (round * 4 + case as u32) * PARTS + part;
                watch.begin(round + 1, case, what, step, plan.rounds * 4 * PARTS);
            };
            match measure(plan, case, stage, stop, &mut begin)? {
                Some(measured) => cases.push(measured),
                None => break,
            }
        }
        match cases.try_into() {
            Ok(cases) => rounds.push(cases),
            Err(_) => break,
        }
    }
    let backend = daemons[0].backend.clone();
    let [left, right] = daemons;
    let (left, right) = (left.stop()?, right.stop()?);
    let recovery = DemoRecovery {
        recovered: left.recovered + right.recovered,
        given_up: left.given_up + right.given_up,
        recovery_p50_us: percentile(&delays, 50.0),
        recovery_p99_us: percentile(&delays, 99.0),
    };
    Ok((rounds, Some((backend, recovery))))
}

/// Delays of recoveries at both ends since this was last asked.
fn take_recovery(daemons: &[StageDaemon<'_>; 2]) -> Vec<Histogram<u64>> {
    daemons.iter().filter_map(|daemon| daemon.handle.take_recovery()).collect()
}

fn set_up<'scope>(
    plan: &DemoPlan,
    plain: &'scope Stage,
    guarded: &'scope Stage,
    scope: &'scope std::thread::Scope<'scope, '_>,
    serving: &'scope StopFlag,
) -> Result<[StageDaemon<'scope>; 2], SystemError> {
    for end in 0..2 {
        plain.address(end, stage::plug(end))?;
    }
    plain.serve(scope, serving)?;
    let start = |end: usize| {
        let (rate, host, wire) = (plan.rate, plan.host, plan.wire);
        let stand_in = StandInConfig { mtu: Some(1_500), rate, host, wire, ..StandInConfig::new(stage::plug(end)) };
        let config = LinkConfig { mode: plan.mode, ..LinkConfig::new(stand_in) };
        guarded.protect(scope, end, config, |_| ())
    };
    let daemons = [start(0)?, start(1)?];
    for end in 0..2 {
        guarded.address(end, "hit0")?;
    }
    guarded.serve(scope, serving)?;
    plain.set_rate(plan.rate)?;
    guarded.set_rate(plan.rate)?;
    Ok(daemons)
}

/// One case in one round; `None` if stopped.
fn measure(
    plan: &DemoPlan,
    case: DemoCase,
    stage: &Stage,
    stop: &StopFlag,
    begin: &mut dyn FnMut(&str, u32),
) -> Result<Option<DemoMeasurement>, SystemError> {
    let loss = if case.has_loss() { plan.loss } else { Prob::literal(0.0) };
    stage.set_loss(loss)?;
    let before = stage.count()?;
    begin("requests and responses", 0);
    let Some(trips) = pingpong(stage, plan.round_trips, stop)? else { return Ok(None) };
    begin("bulk", 1);
    let Some((bulk, beside)) = bulk_with_pingpong(stage, plan.bulk, stop)? else { return Ok(None) };
    let wire = stage.count()? - before;
    let mut heavy = None;
    if case.has_loss() {
        begin("bulk at heavy loss", 2);
        stage.set_loss(plan.heavy_loss)?;
        let Some(bulk) = bulk_alone(stage, plan.bulk, stop)? else { return Ok(None) };
        heavy = Some(gbps(&bulk));
    }
    let us = |delay: Duration| delay.as_nanos() as f64 / 1e3;
    let round = DemoRound {
        throughput_gbps: gbps(&bulk),
        throughput_at_1e2_gbps: heavy,
        pingpong_p50_us: us(trips.p50()),
        pingpong_p99_us: us(trips.p99()),
        pingpong_p999_us: us(trips.p999()),
        pingpong_max_us: us(trips.max()),
        pingpong_beside_bulk_p50_us: us(beside.p50()),
        over_100ms: trips.over(Duration::from_millis(100)),
        wire,
        tcp_retransmitted: bulk.retransmitted,
    };
    Ok(Some((round, trips)))
}

fn gbps(bulk: &load::BulkThroughput) -> f64 {
    bulk.bits_per_second() as f64 / 1e9
}

/// Result of load generators; `None` if they were stopped.
fn unless_stopped<T>(result: std::io::Result<T>, stop: &StopFlag) -> Result<Option<T>, SystemError> {
    match result {
        _ if stop.is_stopped() => Ok(None),
        Ok(found) => Ok(Some(found)),
        Err(error) => Err(SystemError(error.to_string())),
    }
}

fn pingpong(stage: &Stage, count: u32, stop: &StopFlag) -> Result<Option<RoundTrips>, SystemError> {
    // A hundred losses of 200 ms each, and to spare.
    let plan = PingPong { count, within: Duration::from_secs(120), ..PingPong::default() };
    let found = stage.ends[0].with(|| load::pingpong::run(stage.server(), &plan, stop))?;
    unless_stopped(found, stop)
}

fn bulk_plan(duration: Duration) -> Bulk {
    Bulk { duration, warmup: duration / 5, congestion: KernelCongestion::Cubic }
}

fn bulk_alone(stage: &Stage, duration: Duration, stop: &StopFlag) -> Result<Option<load::BulkThroughput>, SystemError> {
    let found = stage.ends[0].with(|| load::bulk::run(stage.server(), &bulk_plan(duration), stop))?;
    unless_stopped(found, stop)
}

/// Bulk alone, and then again, shortly, with requests beside it.
fn bulk_with_pingpong(
    stage: &Stage,
    duration: Duration,
    stop: &StopFlag,
) -> Result<Option<(load::BulkThroughput, RoundTrips)>, SystemError> {
    let Some(bulk) = bulk_alone(stage, duration, stop)? else { return Ok(None) };
    let done = StopFlag::new();
    let beside = std::thread::scope(|scope| {
        let requests = scope.spawn(|| {
            let progress = |_| !done.is_stopped() && !stop.is_stopped();
            stage.ends[0].with(|| load::pingpong::run(stage.server(), &PingPong::endless(), &progress))
        });
        let background = bulk_alone(stage, duration / 2, stop);
        done.stop();
        background.and_then(|_| requests.join().map_err(|_| SystemError("the load generator panicked".to_owned())))
    })?;
    Ok(unless_stopped(beside?, stop)?.map(|trips| (bulk, trips)))
}
