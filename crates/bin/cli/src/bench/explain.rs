//! `hitless bench explain`: how fast captures are explained, on one core of this machine.
//!
//! Target: 500,000 packets a second, with memory that follows open connections and what they have in flight.

mod capture;

use chart::table::thousands;
use explain::{ExplainError, ExplainOptions};
use linux::clock::thread_time;
use serde::Serialize;

use crate::args::BenchExplainArgs;
use crate::memory;
use crate::output::{CommandResult, Failure, print};
use crate::terminal::stop_on_ctrl_c;
use capture::{BenchCapture, BenchContent};

#[derive(Debug, Serialize)]
struct ExplainBenchResult {
    packets: u64,
    connections: u64,
    /// The most that were open at a time.
    open: u64,
    rounds: u32,
    /// Processor time, median over the rounds.
    seconds: f64,
    packets_per_second: f64,
    /// Most memory that explaining added to this program, in bytes.
    memory: u64,
    losses: u64,
}

pub(super) fn run(args: &BenchExplainArgs, json: bool) -> CommandResult {
    let stop = stop_on_ctrl_c();
    let folder = args.folder.clone().unwrap_or_else(std::env::temp_dir);
    let outside = |error: std::io::Error| Failure::Outside(format!("{}: {error}", folder.display()));
    let content = BenchContent { packets: args.packets.0.max(1_000), open: args.open, is_scan: args.scan };
    let written = BenchCapture::write(&folder, content, &stop).map_err(outside)?;
    let Some(capture) = written else { return Err(Failure::Interrupted) };
    let options = ExplainOptions::default();
    let (mut seconds, mut losses) = (Vec::new(), 0);
    let before = memory::reset_peak();
    for _ in 0..args.rounds {
        let begun = thread_time();
        let explanation = explain::explain(&|| capture.open(), &options, &*stop).map_err(|error| match error {
            ExplainError::Interrupted => Failure::Interrupted,
            ExplainError::Capture(error) => Failure::Outside(error.to_string()),
        })?;
        seconds.push((thread_time() - begun).as_secs_f64());
        let answer = explanation.answer();
        losses = answer.connections.iter().map(|connection| connection.losses.len() as u64).sum();
        let of_scans: u64 = answer.scans.iter().map(|scan| scan.connections).sum();
        let found = answer.connections.len() as u64 + of_scans;
        if found != capture.connections {
            return Err(Failure::Outside(format!("found {found} of {} connections", capture.connections)));
        }
    }
    seconds.sort_by(f64::total_cmp);
    let median = seconds[seconds.len() / 2];
    let memory = memory::peak().saturating_sub(before);
    let result = ExplainBenchResult {
        packets: capture.packets,
        connections: capture.connections,
        open: capture.open,
        rounds: args.rounds,
        seconds: median,
        packets_per_second: capture.packets as f64 / median,
        memory,
        losses,
    };
    print(json, &result, || describe(&result))
}

fn describe(result: &ExplainBenchResult) -> String {
    let ExplainBenchResult { packets, connections, open, rounds, seconds, packets_per_second, memory, losses } = result;
    format!(
        "{} packets of {} connections, at most {open} of them open, {} losses: {seconds:.2} s of processor time, median of {rounds} \
         rounds\n{:.2} M packets/s (target 0.5 M), {:.0} MB of memory\n",
        thousands(*packets),
        thousands(*connections),
        thousands(*losses),
        packets_per_second / 1e6,
        *memory as f64 / 1e6
    )
}
