//! `hitless rack soak`: a rack under load, while daemons are killed and a host leaves and joins again.

use std::time::Duration;

use lab::rack_soak::{self, RackSoakObserver, RackSoakPlan};

use crate::args::RackSoakArgs;
use crate::output::{CommandResult, Failure, print};
use crate::soak::{SoakProgress, begin, soak_duration};

/// Time that each kill needs to be looked at.
const PER_KILL: Duration = Duration::from_secs(4);
/// The shortest time between two changes of a host.
const PER_JOIN: Duration = Duration::from_millis(500);

pub(super) fn run(args: &RackSoakArgs, json: bool) -> CommandResult {
    let plan = plan(args)?;
    let (standing, stop) = begin(args.rootless)?;
    let progress = SoakProgress::new(plan.duration);
    let soak = rack_soak::run(&plan, standing, &stop, &progress);
    progress.bar.finish_and_clear();
    let Some(soak) = soak.map_err(|trouble| Failure::Outside(trouble.0))? else { return Err(Failure::Interrupted) };
    print(json, &soak, || rack_soak::text(&soak))?;
    match soak.verdicts.iter().filter(|verdict| !verdict.holds).count() {
        _ if !soak.complete => Err(Failure::Interrupted),
        0 => Ok(()),
        faults => {
            let machine = if soak.valid { "" } else { "; the machine was measured, not the rack" };
            Err(Failure::Outside(format!("{faults} of {} do not hold{machine}", soak.verdicts.len())))
        }
    }
}

fn plan(args: &RackSoakArgs) -> Result<RackSoakPlan, Failure> {
    let duration = soak_duration(args.duration)?;
    let needed = (PER_KILL * args.kills).max(PER_JOIN * 2 * args.joins) + PER_KILL;
    if duration < needed {
        let seconds = needed.as_secs();
        return Err(Failure::Usage(format!(
            "--for {}: that many kills or joins take {seconds}s or more",
            args.duration
        )));
    }
    if args.loss.get() > 0.1 {
        return Err(Failure::Usage(format!("--loss {}: expected at most 0.1, or nothing gets through", args.loss)));
    }
    if args.protect && args.loss.get() == 0.0 {
        return Err(Failure::Usage("--protect is about a wire that loses frames: give --loss too".to_owned()));
    }
    let program = std::env::current_exe().map_err(|error| Failure::Outside(format!("find this program: {error}")))?;
    Ok(RackSoakPlan {
        duration,
        rate: args.rate,
        buffer: args.buffer,
        hosts: usize::from(args.hosts),
        scheduler: args.scheduler.into(),
        kills: args.kills,
        joins: args.joins,
        loss: args.loss,
        protect: args.protect,
        program,
    })
}

impl RackSoakObserver for SoakProgress {
    fn tick(&self, elapsed: Duration) {
        self.advance(elapsed);
    }

    fn remark(&self, text: &str) {
        self.print(text);
    }
}
