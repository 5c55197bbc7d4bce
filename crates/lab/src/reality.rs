//! The kernel's TCP over a wire that corrupts, without protection: what the simulator is held against.

mod check;

pub use check::{CheckPlan, SimCheckReport, check};

use std::time::Duration;

use faults::{FaultSchedule, LossModel};
use units::{Prob, Rate, StopFlag};

use crate::stage::{self, Stage};
use emulator::DirectionConfig;
use linux::LinkError;
use load::{self, Bulk, KernelCongestion, PingPong, RoundTrips};

/// One wire with one flow over it, then requests one after the other.
#[derive(Clone, Copy, Debug)]
pub struct SimCheckCase {
    pub rate: Rate,
    /// In each direction.
    pub loss: Prob,
    pub congestion: KernelCongestion,
    pub bulk: Duration,
    pub requests: u32,
}

#[derive(Clone, Debug)]
pub struct SimCheckMeasurement {
    pub gbps: f64,
    pub round_trips: RoundTrips,
}

/// Runs it in namespaces that are ours already; `None` if it was stopped.
pub fn run(case: &SimCheckCase, stop: &StopFlag) -> Result<Option<SimCheckMeasurement>, LinkError> {
    let stage = Stage::unjoined(1_500)?;
    let ended = StopFlag::new();
    std::thread::scope(|scope| {
        let run = || {
            for end in 0..2 {
                stage.address(end, stage::plug(end))?;
            }
            let faults = FaultSchedule::always(LossModel::PerFrame(case.loss));
            let wire = stage.carry(
                scope,
                &DirectionConfig { faults, rate: Some(case.rate), ..DirectionConfig::default() },
                1,
            )?;
            stage.serve(scope, &ended)?;
            let seen = measure(case, &stage, stop);
            wire.stop()?;
            seen
        };
        let seen = run();
        ended.stop();
        seen
    })
}

fn measure(case: &SimCheckCase, stage: &Stage, stop: &StopFlag) -> Result<Option<SimCheckMeasurement>, LinkError> {
    let bulk = Bulk { duration: case.bulk, warmup: case.bulk / 5, congestion: case.congestion };
    let within = Duration::from_secs(60);
    let requests = PingPong { count: case.requests, congestion: case.congestion, within, ..PingPong::default() };
    let failed = |error: std::io::Error| LinkError(error.to_string());
    stage.ends[0].with(|| {
        let bulk = load::bulk::run(stage.server(), &bulk, stop).map_err(failed)?;
        let round_trips = load::pingpong::run(stage.server(), &requests, stop).map_err(failed)?;
        let gbps = bulk.bits_per_second() as f64 / 1e9;
        Ok((!stop.is_stopped()).then_some(SimCheckMeasurement { gbps, round_trips }))
    })?
}
