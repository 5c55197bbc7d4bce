//! `hitless bench`: what protection costs and gains on this machine.

mod busy;
mod clock;
mod collectors;
mod explain;
mod fleet;
mod melo;
mod radar;
mod record;
mod sim;

use chart::table::{Align, Table, micros as us};
use lab::bench::{BenchPlan, BenchResults};
use linux::net::become_root_of_own_namespaces;

use crate::args::{BenchArgs, BenchCommand};
use crate::demo::{check_seconds, parse_rate};
use crate::output::{CommandResult, Failure, print, say};
use crate::terminal::stop_on_ctrl_c;

pub(crate) fn run(args: &BenchArgs, json: bool) -> CommandResult {
    match &args.what {
        Some(BenchCommand::Busy(args)) => return busy::run(args, json),
        Some(BenchCommand::Clock(args)) => return clock::run(args, json),
        Some(BenchCommand::Collectors(args)) => return collectors::run(args, json),
        Some(BenchCommand::Sim(args)) => return sim::run(args, json),
        Some(BenchCommand::Fleet(args)) => return fleet::run(args, json),
        Some(BenchCommand::Melo(args)) => return melo::run(args, json),
        Some(BenchCommand::Radar(args)) => return radar::run(args, json),
        Some(BenchCommand::Explain(args)) => return explain::run(args, json),
        Some(BenchCommand::Record(args)) => return record::run(args, json),
        None => {}
    }
    let usage = |key: &str, text: &str, error: units::ParseError| Failure::Usage(format!("--{key} {text}: {error}"));
    let plan = BenchPlan {
        rate: parse_rate(&args.rate)?,
        rounds: args.rounds,
        bulk: check_seconds(args.seconds)?,
        requests: args.requests.0.clamp(1, 100_000_000) as u32,
        host: args.backend.parse().map_err(|error| usage("backend", &args.backend, error))?,
        wire: args.wire.parse().map_err(|error| usage("wire", &args.wire, error))?,
        only: BenchPlan::known_rows(&args.only).map_err(Failure::Usage)?,
    };
    become_root_of_own_namespaces(args.rootless).map_err(|error| Failure::Outside(error.to_string()))?;
    let stop = stop_on_ctrl_c();
    let begin = |round: u32, name: &str| say(&format!("round {round} of {}: {name}", plan.rounds));
    let results = lab::bench::run(&plan, &stop, &begin).map_err(|trouble| Failure::Outside(trouble.0))?;
    let Some(results) = results else { return Err(Failure::Interrupted) };
    print(json, &results, || table(&results))?;
    if stop.is_stopped() { Err(Failure::Interrupted) } else { Ok(()) }
}

fn table(results: &BenchResults) -> String {
    let mut table = Table::new(&[
        ("", Align::Left),
        ("Gbit/s", Align::Right),
        ("of B1", Align::Right),
        ("CPU per frame", Align::Right),
        ("p50", Align::Right),
        ("p99", Align::Right),
        ("p99.9", Align::Right),
    ]);
    for row in &results.rows {
        if let Some(why) = &row.missing {
            table.row([vec![row.name.clone(), why.clone()], vec![String::new(); 5]].concat());
            continue;
        }
        table.row(vec![
            row.name.clone(),
            format!("{:.3}", row.throughput_gbps),
            format!("{:.2}", row.of_b1),
            format!("{:.2} µs", row.cpu_per_frame_us),
            us(row.pingpong_p50_us),
            us(row.pingpong_p99_us),
            us(row.pingpong_p999_us),
        ]);
    }
    let rounds =
        if results.rounds == 1 { "1 round".to_owned() } else { format!("medians of {} rounds", results.rounds) };
    format!("{rounds}, backend {}\n\n{table}", results.backend)
}
