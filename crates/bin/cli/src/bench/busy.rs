//! `hitless bench busy`: what a busy host costs the frames that pass through it.

use chart::table::{Align, Table, thousands};
use lab::bench::busy::{self, BusyPlan, BusyResults, DatagramResults};
use linux::net::become_root_of_own_namespaces;

use crate::args::BenchBusyArgs;
use crate::demo::check_seconds;
use crate::output::{CommandResult, Failure, print, say};
use crate::terminal::stop_on_ctrl_c;

pub(super) fn run(args: &BenchBusyArgs, json: bool) -> CommandResult {
    let program = std::env::current_exe().map_err(|error| Failure::Outside(format!("find this program: {error}")))?;
    let plan = BusyPlan { rounds: args.rounds, lasts: check_seconds(args.seconds)?, program };
    become_root_of_own_namespaces(args.rootless).map_err(|error| Failure::Outside(error.to_string()))?;
    let stop = stop_on_ctrl_c();
    let begin = |round: u32, name: &str| say(&format!("round {round} of {}: {name}", plan.rounds));
    let results = busy::run(&plan, &stop, &begin).map_err(|trouble| Failure::Outside(trouble.0))?;
    let Some(results) = results else { return Err(Failure::Interrupted) };
    print(json, &results, || text(&results))?;
    if stop.is_stopped() { Err(Failure::Interrupted) } else { Ok(()) }
}

fn text(results: &BusyResults) -> String {
    let mut table = Table::new(&[
        ("datagrams of 64 bytes", Align::Left),
        ("a second", Align::Right),
        ("sent", Align::Right),
        ("lost", Align::Right),
        ("share", Align::Right),
        ("unseen", Align::Right),
    ]);
    for DatagramResults { name, sent, per_second, lost, unseen, .. } in &results.datagrams {
        let share = 100.0 * *lost as f64 / (*sent).max(1) as f64;
        table.row(vec![
            (*name).to_owned(),
            thousands(*per_second as u64),
            thousands(*sent),
            thousands(*lost),
            format!("{share:.3} %"),
            thousands(*unseen),
        ]);
    }
    let rounds = if results.rounds == 1 { "1 round".to_owned() } else { format!("{} rounds", results.rounds) };
    format!(
        "{rounds}, {} hogs, daemons with nice {}\n\n{table}\nbulk through the link: {:.3} Gbit/s, beside hogs {:.3}: {:.2} of it",
        results.hogs, results.nice, results.bulk_gbps, results.bulk_beside_hogs_gbps, results.bulk_ratio
    )
}
