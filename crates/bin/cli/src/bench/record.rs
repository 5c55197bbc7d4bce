//! `hitless bench record`: what `hitless explain record` costs the host that it runs on.

use std::time::Duration;

use chart::table::{Align, Table};
use evidence::cost::{self, CostLoad, CostRow};
use serde::Serialize;

use crate::args::BenchRecordArgs;
use crate::demo::check_seconds;
use crate::output::{CommandResult, Failure, print};

#[derive(Debug, Serialize)]
struct RecordBenchResult {
    rows: Vec<CostRow>,
}

pub(super) fn run(args: &BenchRecordArgs, json: bool) -> CommandResult {
    let lasts: Duration = check_seconds(args.seconds)?;
    let rows = cost::measure(args.rounds, lasts).map_err(|error| Failure::Outside(error.0))?;
    let result = RecordBenchResult { rows };
    print(json, &result, || text(&result.rows))
}

fn text(rows: &[CostRow]) -> String {
    let columns = ["packets/s", "with", "ends, ns/packet", "with", "recorder, ns/packet", "missed"];
    let columns = columns.map(|name| (name, Align::Right));
    let mut table = Table::new(&[&[("load", Align::Left)], &columns[..]].concat());
    for row in rows {
        let name = match row.load {
            CostLoad::Transfer => "transfer",
            CostLoad::Requests => "requests",
        };
        let [plain, recorded] = row.packets_per_second;
        let [ends, ends_recorded] = row.ends_ns;
        let figures = [plain, recorded, ends, ends_recorded, row.recorder_ns].map(|figure| format!("{figure:.0}"));
        table.row([vec![name.to_owned()], figures.to_vec(), vec![row.missed.to_string()]].concat());
    }
    let rounds = rows.first().map_or(0, |row| row.rounds);
    format!("{table}medians of {rounds} rounds, in turn without a recorder and with one\n")
}
