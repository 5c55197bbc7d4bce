//! `hitless bench melo`: how long a packet takes that arrives at a MELO receiver, on one core of this machine.
//!
//! The target is below 20 ns, at any loss: a 400G port has a packet of 1 KB every 22 ns.

use std::hint::black_box;

use chart::table::{Align, Table};
use roce::melo::bench::LossyArrivals;
use serde::Serialize;

use crate::args::BenchMeloArgs;
use crate::output::{CommandResult, Failure, print};
use crate::terminal::{now, stop_on_ctrl_c};

const TARGET_NS: f64 = 20.0;
/// One packet of this number is lost; with 0, none is.
const LOSS_EVERY: [u64; 4] = [0, 1_000, 100, 10];

#[derive(Debug, Serialize)]
struct MeloBenchResult {
    packets: u64,
    rounds: u32,
    target_ns: f64,
    rows: Vec<MeloBenchRow>,
}

#[derive(Debug, Serialize)]
struct MeloBenchRow {
    loss: f64,
    /// Median over the rounds.
    ns_per_packet: f64,
    /// The best and the worst of them.
    best_ns: f64,
    worst_ns: f64,
    /// Holes that were asked for, in one round.
    nacks: u64,
}

pub(super) fn run(args: &BenchMeloArgs, json: bool) -> CommandResult {
    let stop = stop_on_ctrl_c();
    let packets = args.packets.0.max(1);
    let mut rows = Vec::new();
    for loss_every in LOSS_EVERY {
        if stop.is_stopped() {
            break;
        }
        rows.extend(measure(loss_every, packets, args.rounds));
    }
    let answer = MeloBenchResult { packets, rounds: args.rounds, target_ns: TARGET_NS, rows };
    print(json, &answer, || describe(&answer))?;
    if stop.is_stopped() { Err(Failure::Interrupted) } else { Ok(()) }
}

fn measure(loss_every: u64, packets: u64, rounds: u32) -> Option<MeloBenchRow> {
    let mut nacks = 0;
    let mut times: Vec<f64> = (0..rounds)
        .map(|_| {
            let mut arrivals = LossyArrivals::new(black_box(loss_every));
            let begun = now();
            black_box(arrivals.run(packets));
            let time = begun.elapsed();
            nacks = arrivals.nacks();
            time.as_secs_f64() * 1e9 / packets as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    Some(MeloBenchRow {
        loss: if loss_every == 0 { 0.0 } else { (loss_every as f64).recip() },
        ns_per_packet: times[times.len() / 2],
        best_ns: *times.first()?,
        worst_ns: *times.last()?,
        nacks,
    })
}

fn describe(answer: &MeloBenchResult) -> String {
    let mut table = Table::new(&[
        ("loss", Align::Right),
        ("ns per packet", Align::Right),
        ("best", Align::Right),
        ("worst", Align::Right),
        ("", Align::Left),
    ]);
    for row in &answer.rows {
        table.row(vec![
            format!("{} %", 100.0 * row.loss),
            format!("{:.1}", row.ns_per_packet),
            format!("{:.1}", row.best_ns),
            format!("{:.1}", row.worst_ns),
            if row.ns_per_packet < answer.target_ns { String::new() } else { "above the target".into() },
        ]);
    }
    let MeloBenchResult { packets, rounds, target_ns, .. } = answer;
    format!("{packets} packets, medians of {rounds} rounds, target below {target_ns} ns\n\n{table}")
}
