//! `hitless replay queues`: what switches held, from the logs of connections.

use results::replay::{QueueChoice, QueueReplayError, queues_text, replay_queues};
use sim::net::queue_replay::ReplayTags;
use units::Time;

use crate::args::ReplayQueuesArgs;
use crate::output::{CommandResult, Failure, print, say};
use crate::sim::read_scenario;
use crate::terminal::{TerminalProgress, jobs};

pub(super) fn run(args: &ReplayQueuesArgs, json: bool) -> CommandResult {
    let logs = super::find(&args.logs)?;
    let scenario = read_scenario(&args.scenario, &args.set)?;
    for warning in scenario.warnings() {
        say(&format!("warning: {warning}"));
    }
    let choice = QueueChoice {
        threshold: args.threshold,
        clocks: args.clocks,
        tags: if args.no_tags { ReplayTags::Ignored } else { ReplayTags::Used },
        question: args.at.map(|at| Time::ZERO + at).zip(args.port.clone()),
        jobs: jobs(args.jobs),
    };
    let terminal = TerminalProgress::of_runs();
    let report = replay_queues(&logs, &scenario, &choice, &terminal);
    terminal.finish();
    let report = report.map_err(|error| match error {
        QueueReplayError::Refused(what) => Failure::Usage(what),
        QueueReplayError::Interrupted => Failure::Interrupted,
    })?;
    print(json, &report, || queues_text(&report))
}
