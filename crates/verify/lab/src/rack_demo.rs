//! The demonstration of a rack: a client's GETs beside hosts that all send to the client's host at once.
//!
//! ```text
//!   host 0: the client       host 1: the server       hosts 2…: background, to host 0
//! ```
//!
//! Each case has a rack of its own. In one the kernel is directly on the switch, in another it goes through stand-ins, and in
//! two more the stand-ins reserve: as PL2 is printed, and in a form that has a bound. Cases and backgrounds
//! alternate within each round, so that other work of the machine meets all of them alike. Counts are sums over rounds, peaks
//! the largest; times, rates and shares are medians.

mod background;
pub(crate) mod gets;
mod measure;
mod page;
mod rows;
mod simulated;
mod text;

pub use page::page;
pub use rows::{RackDemoPlan, RackDemoResult, RackRow};
pub use simulated::run as simulate;
pub use text::text;

use std::thread::Scope;

use linux::SystemError;
use linux::net::NetworkPrivilege;
use units::StopFlag;

use crate::soak::Workshop;
use gets::GetServer;
use measure::RackScene;
use rows::{RackRound, RackWay};

/// Observer of the demonstration.
pub trait RackDemoObserver: Sync {
    /// A measurement begins: `step` of `steps`.
    fn begin(&self, round: u32, row: &str, step: u32, steps: u32);
    /// Reports a remark to the user.
    fn remark(&self, text: &str);
}

/// Runs the demo; the process has its namespaces already. `None` if it was stopped before one round was complete.
pub fn run(
    plan: &RackDemoPlan,
    standing: NetworkPrivilege,
    stop: &StopFlag,
    watch: &dyn RackDemoObserver,
) -> Result<Option<RackDemoResult>, SystemError> {
    let stages = RackWay::ALL.iter().map(|way| measure::stage(plan, *way)).collect::<Result<Vec<_>, _>>()?;
    let (serving, shop) = (StopFlag::new(), Workshop::new()?);
    std::thread::scope(|scope| {
        let played = play(plan, &stages, scope, &serving, &shop, stop, watch);
        serving.stop();
        let Some((rounds, program)) = played? else { return Ok(None) };
        Ok((!rounds.is_empty()).then(|| RackDemoResult::of(plan, &rounds, program, standing)))
    })
}

type PlayedRounds = (Vec<Vec<RackRound>>, &'static str);

fn play<'scope>(
    plan: &RackDemoPlan,
    stages: &'scope [crate::stage::RackStage],
    scope: &'scope Scope<'scope, '_>,
    serving: &'scope StopFlag,
    shop: &Workshop,
    stop: &StopFlag,
    watch: &dyn RackDemoObserver,
) -> Result<Option<PlayedRounds>, SystemError> {
    let mut scenes = Vec::new();
    for (way, stage) in RackWay::ALL.into_iter().zip(stages) {
        scenes.push(RackScene::set(plan, way, stage, scope, serving)?);
    }
    let mut servers = Vec::new();
    for stage in stages {
        let Some(server) = GetServer::start(stage, shop, scope, serving, stop)? else { return Ok(None) };
        servers.push(server);
    }
    let program = servers[0].program();
    watch.remark(&match program {
        "built-in" => "memcached is not installed: a built-in server of the same protocol answers".to_owned(),
        program => format!("{program} answers"),
    });
    let cases = plan.cases();
    let steps = plan.rounds * (cases.len() * scenes.len()) as u32;
    let (mut rounds, mut step) = (Vec::new(), 0);
    for round in 1..=plan.rounds {
        let mut measured = Vec::new();
        for case in &cases {
            for scene in &mut scenes {
                watch.begin(round, &format!("{}, {case}", scene.way().name()), step, steps);
                step += 1;
                match scene.measure(plan, *case, stop)? {
                    Some(row) => measured.push(row),
                    None => return Ok(Some((rounds, program))),
                }
            }
        }
        rounds.push(measured);
    }
    Ok(Some((rounds, program)))
}
