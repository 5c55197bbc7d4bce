//! `hitless clock demo`: eight clocks while things are killed.

use std::process::Command;
use std::time::Duration;

use lab::clock_demo::{self, ClockDemoObserver, ClockDemoPlan};
use linux::net::become_root_of_own_namespaces;
use units::Span;

use crate::args::ClockDemoArgs;
use crate::demo::{DemoProgress, write_page};
use crate::output::{CommandResult, Failure, print};
use crate::results::check_file;
use crate::terminal::stop_on_ctrl_c;

pub(super) fn run(args: &ClockDemoArgs, json: bool) -> CommandResult {
    let plan = plan(args)?;
    // Before a minute is spent on what could then not be written.
    args.html.as_deref().map_or(Ok(()), |path| check_file("--html", path))?;
    let hitless = std::env::current_exe().map_err(|error| Failure::Outside(error.to_string()))?;
    // Before anything starts a thread: afterwards the kernel refuses it.
    become_root_of_own_namespaces(args.rootless).map_err(|error| Failure::Outside(error.to_string()))?;
    let stop = stop_on_ctrl_c();
    let progress = DemoProgress::new();
    let result = clock_demo::run(&plan, &|| Command::new(&hitless), &stop, &progress);
    progress.bar.finish_and_clear();
    let Some(result) = result.map_err(|trouble| Failure::Outside(trouble.0))? else { return Err(Failure::Interrupted) };
    print(json, &result, || clock_demo::text(&result))?;
    write_page(args.html.as_deref(), || clock_demo::page(&result))?;
    match (result.wrong, result.unhealed(), stop.is_stopped()) {
        (_, _, true) => Err(Failure::Interrupted),
        (0, 0, false) => Ok(()),
        (0, times, false) => Err(Failure::Outside(format!("{times} times no plan led to one root that all follow"))),
        (wrong, _, false) => Err(Failure::Outside(format!("{wrong} readings were wrong"))),
    }
}

fn plan(args: &ClockDemoArgs) -> Result<ClockDemoPlan, Failure> {
    let within = |name: &str, span: Span, least: Span, most: Span| match span {
        span if (least..=most).contains(&span) => Ok(Duration::from_nanos(span.as_ps() / 1_000)),
        span => Err(Failure::Usage(format!("--{name} {span}: expected {least} to {most}"))),
    };
    Ok(ClockDemoPlan {
        kills: args.kills,
        stops: args.stops,
        idle: within("idle", args.idle, Span::from_ms(10), Span::from_ms(3_600_000))?,
        interval: within("interval", args.interval, Span::from_us(500), Span::from_ms(100))?,
        key: args.key,
        ptp4l: !args.without_ptp4l,
    })
}

impl ClockDemoObserver for DemoProgress {
    fn begin(&self, step: u32, steps: u32, what: &str) {
        self.show(step, steps, what, Some(what));
    }

    fn remark(&self, text: &str) {
        self.remark(text);
    }
}
