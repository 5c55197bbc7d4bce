//! `hitless sim check`.

use std::time::Duration;

use linux::net::become_root_of_own_namespaces;
use load::KernelCongestion;
use reality::CheckPlan;

use crate::args::{CheckedCongestion, SimCheckArgs};
use crate::output::{CommandResult, Failure, print, say};
use crate::terminal::stop_on_ctrl_c;

pub(super) fn run(args: &SimCheckArgs, json: bool) -> CommandResult {
    become_root_of_own_namespaces(args.rootless).map_err(|error| Failure::Outside(error.to_string()))?;
    let stop = stop_on_ctrl_c();
    let plan = CheckPlan {
        rate: args.rate,
        congestions: args.congestion.iter().map(|congestion| kernel_congestion(*congestion)).collect(),
        losses: args.losses.clone(),
        round_trips: args.round_trips.clone(),
        bulk: Duration::from_secs_f64(args.seconds.clamp(0.1, 3_600.0)),
        requests: args.requests.0.clamp(1, 10_000_000) as u32,
        requests_within: Duration::from_secs(4),
        rounds: args.rounds,
        hz: args.hz,
    };
    let check = reality::check(&plan, &stop, &say).map_err(|trouble| Failure::Outside(trouble.0))?;
    let Some(check) = check else { return Err(Failure::Interrupted) };
    print(json, &check, || check.text())
}

fn kernel_congestion(congestion: CheckedCongestion) -> KernelCongestion {
    match congestion {
        CheckedCongestion::Cubic => KernelCongestion::Cubic,
        CheckedCongestion::Reno => KernelCongestion::Reno,
        CheckedCongestion::Bbr => KernelCongestion::Bbr,
    }
}
