//! `hitless rack demo`: what incast does to a client's requests.

use lab::rack_demo::{self, RackDemoObserver, RackDemoPlan};
use linux::net::become_root_of_own_namespaces;
use units::{Bytes, Rate};

use crate::args::RackDemoArgs;
use crate::demo::{DemoProgress, check_seconds, write_page};
use crate::output::{CommandResult, Failure, print};
use crate::results::check_file;
use crate::terminal::stop_on_ctrl_c;

/// A full frame on the wire of a stand-in.
const LEAST_BUFFER: Bytes = Bytes::new(1_646);

pub(super) fn run(args: &RackDemoArgs, json: bool) -> CommandResult {
    let plan = plan(args)?;
    // Before minutes are spent on what could then not be written.
    args.html.as_deref().map_or(Ok(()), |path| check_file("--html", path))?;
    // Before anything starts a thread: afterwards the kernel refuses it.
    let standing = if args.simulated { None } else { Some(become_root_of_own_namespaces(args.rootless)) };
    let stop = stop_on_ctrl_c();
    let progress = DemoProgress::new();
    let result = match standing {
        Some(Ok(standing)) => rack_demo::run(&plan, standing, &stop, &progress),
        Some(Err(error)) => {
            progress.remark(&format!(
                "this machine does not let us have network namespaces ({error}); here is the rack simulated"
            ));
            Ok(rack_demo::simulate(&plan, &stop, &progress))
        }
        None => Ok(rack_demo::simulate(&plan, &stop, &progress)),
    };
    progress.bar.finish_and_clear();
    let Some(result) = result.map_err(|trouble| Failure::Outside(trouble.0))? else { return Err(Failure::Interrupted) };
    print(json, &result, || rack_demo::text(&result))?;
    write_page(args.html.as_deref(), || rack_demo::page(&result))?;
    if stop.is_stopped() { Err(Failure::Interrupted) } else { Ok(()) }
}

fn plan(args: &RackDemoArgs) -> Result<RackDemoPlan, Failure> {
    let fastest = Rate::gbps(10);
    if args.rate > fastest {
        return Err(Failure::Usage(format!(
            "--rate {}: expected at most {fastest}, for a switch in software",
            args.rate
        )));
    }
    if args.buffer < LEAST_BUFFER {
        return Err(Failure::Usage(format!(
            "--buffer {}: expected at least {LEAST_BUFFER}, one full frame",
            args.buffer
        )));
    }
    let plan = RackDemoPlan {
        rate: args.rate,
        buffer: args.buffer,
        hosts: usize::from(args.hosts),
        rounds: args.rounds,
        measure: check_seconds(args.seconds)?,
        host: args.backend.parse().map_err(|error| Failure::Usage(format!("--backend {}: {error}", args.backend)))?,
        scheduler: args.scheduler.into(),
    };
    plan.bound().map_err(|error| Failure::Usage(error.to_string()))?;
    Ok(plan)
}

impl RackDemoObserver for DemoProgress {
    fn begin(&self, round: u32, row: &str, step: u32, steps: u32) {
        let text = format!("round {round}: {row}");
        self.show(step, steps, &text, Some(&text));
    }

    fn remark(&self, text: &str) {
        self.remark(text);
    }
}
