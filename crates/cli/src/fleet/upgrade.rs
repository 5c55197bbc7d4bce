//! `hitless fleet upgrade`: which switches first.

use std::io::Write;

use chart::table::{Align, Table, thousands};
use fleet::ledger::Terms;
use fleet::protection::Table as Protections;
use fleet::simulate::{Policy, Setup};
use fleet::upgrade::{Curve, Exposure, Order, curve};
use report::flows::whole_file;
use report::parallel;
use serde::Serialize;
use sim::link::Watch;

use crate::args::UpgradeArgs;
use crate::output::{Done, Failure, print};
use crate::terminal::{Terminal, jobs};

/// From no switch to all of them.
const STEPS: usize = 10;

#[derive(Serialize)]
struct Answer {
    links: usize,
    switches: usize,
    constraint: f64,
    days: f64,
    seeds: Vec<u64>,
    /// The order that pays most first.
    orders: Vec<Curve>,
}

pub fn run(args: &UpgradeArgs, json: bool) -> Done {
    let fabric = super::fabric(&args.fabric)?;
    let (model, until) = super::year(&args.year)?;
    let orders = if args.orders.is_empty() { Order::all(&fabric) } else { args.orders.clone() };
    let wrong = |order: &Order, error| Failure::Usage(format!("--orders {order}: {error}"));
    for order in orders.iter().filter(|order| **order != Order::Greedy) {
        order.switches(&fabric, &Exposure::even(&fabric), 0).map_err(|error| wrong(order, error))?;
    }
    let seeds: Vec<u64> = args.seeds.iter().collect();
    let terminal = Terminal::of_runs();
    terminal.expect_runs(seeds.len());
    let protections = Protections::measured();
    let terms = Terms { constraint: args.year.constraint, healthy_loss: 0.0, ports_per_pipe: super::PORTS_PER_PIPE };
    let exposures = parallel::map(&seeds, jobs(args.year.jobs), |seed| {
        let made = model.generate(&fabric, until, *seed).map_err(|error| Failure::Usage(error.to_string()))?;
        let setup = Setup {
            fabric: &fabric,
            trace: &made,
            until,
            policy: Policy::CorrOpt,
            terms,
            protection: &protections,
            capable: None,
        };
        let exposure = Exposure::record(&setup, |_| terminal.go_on(0));
        terminal.run_done();
        Ok(exposure.map(|exposure| (*seed, exposure)))
    });
    terminal.finish();
    let exposures = exposures.into_iter().filter_map(Result::transpose).collect::<Result<Vec<_>, Failure>>()?;
    let seeds: Vec<u64> = exposures.iter().map(|(seed, _)| *seed).collect();
    let mut exposures = exposures.into_iter().map(|(_, exposure)| exposure);
    let Some(mut exposure) = exposures.next() else { return Err(Failure::Interrupted) };
    exposures.for_each(|other| exposure.add(&other));
    let curve = |order: &Order| {
        let switches = order.switches(&fabric, &exposure, seeds[0]).map_err(|error| wrong(order, error))?;
        Ok(curve(&fabric, &exposure, &order.to_string(), &switches, STEPS))
    };
    let mut curves: Vec<Curve> = orders.iter().map(curve).collect::<Result<_, Failure>>()?;
    curves.sort_by(|one, other| one.area.total_cmp(&other.area));
    if let Some(path) = &args.out {
        let written = whole_file(path, |out| csv(&curves, out));
        written.map_err(|error| Failure::Outside(error.to_string()))?;
    }
    let answer = Answer {
        links: fabric.links().len(),
        switches: fabric.switches().len(),
        constraint: args.year.constraint.share(),
        days: until.as_days(),
        seeds,
        orders: curves,
    };
    print(json, &answer, || describe(&answer))?;
    if terminal.stopped() { Err(Failure::Interrupted) } else { Ok(()) }
}

fn csv(curves: &[Curve], out: &mut impl Write) -> std::io::Result<()> {
    writeln!(out, "order,share,switches,links,mean_penalty,area")?;
    for Curve { order, points, area } in curves {
        for point in points {
            let (share, switches, links) = (point.share, point.switches, point.links);
            writeln!(out, "{order},{share},{switches},{links},{:e},{area}", point.mean_penalty)?;
        }
    }
    Ok(())
}

fn describe(answer: &Answer) -> String {
    const SHARES: [&str; STEPS + 1] =
        ["0 %", "10 %", "20 %", "30 %", "40 %", "50 %", "60 %", "70 %", "80 %", "90 %", "100 %"];
    let mut columns = vec![("order", Align::Left), ("area", Align::Right)];
    columns.extend(SHARES.map(|share| (share, Align::Right)));
    let mut table = Table::new(&columns);
    for Curve { order, points, area } in &answer.orders {
        let mut cells = vec![order.clone(), format!("{area:.3}")];
        cells.extend(points.iter().map(|point| format!("{:.1e}", point.mean_penalty)));
        table.row(cells);
    }
    let (links, switches) = (thousands(answer.links as u64), thousands(answer.switches as u64));
    let seeds: Vec<String> = answer.seeds.iter().map(u64::to_string).collect();
    format!(
        "{links} links, {switches} switches, {} % of paths to be kept, {:.0} days, seeds {}\n\
         mean penalty by share of switches upgraded; area: mean over all shares, relative to no upgrade\n\n{table}",
        answer.constraint * 100.0,
        answer.days,
        seeds.join(", "),
    )
}
