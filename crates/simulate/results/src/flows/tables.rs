//! Summaries as tables for people.

use chart::table::{Align, Table, thousands};
use serde::Serialize;

use super::digest::{PoolLevels, Repeated};
use super::losses::{MeterLosses, SegmentSummary};
use super::percentiles::Percentiles;
use super::summary::{FlowSummary, QueuePercentiles, RttPercentiles, SizeClass};

/// Tables about these points, each with its title.
pub fn tables<C: Serialize>(points: &[&FlowSummary<'_, C>]) -> String {
    let mut text = format!("flow completion time in µs\n{}", flows(points));
    let mut add = |title: &str, table: Option<Table>| {
        if let Some(table) = table {
            text += &format!("\n{title}\n{table}");
        }
    };
    add("collectives, iterations in µs", collectives(points));
    add("late iterations, by link", blamed(points));
    add("slowdown by size", by_size(points));
    add("retransmissions, by cause", Some(repairs(points)));
    add("network", Some(network(points)));
    add("queues in bytes, weighted by time", queues(points));
    add("congestion control", control(points));
    add("repeated by switches", repeated(points));
    add("pools of bits, the fullest of all hosts", pools(points));
    add("reservations", racks(points));
    add("protected links", links(points));
    add("losses that meters found, by segment", losses(points));
    add("accused", accused(points));
    text
}

fn flows<C>(points: &[&FlowSummary<'_, C>]) -> Table {
    let mut table = Table::new(&[
        ("point", Align::Left),
        ("traffic", Align::Left),
        ("flows", Align::Right),
        ("p50", Align::Right),
        ("p99", Align::Right),
        ("p99.9", Align::Right),
        ("p99.99", Align::Right),
        ("max", Align::Right),
        ("slowdown p50", Align::Right),
        ("p99", Align::Right),
        ("goodput", Align::Right),
    ]);
    for point in points {
        for traffic in &point.traffic {
            let flows = match traffic.flows == traffic.complete {
                true => thousands(traffic.flows),
                false => format!("{} of {}", thousands(traffic.complete), thousands(traffic.flows)),
            };
            let Percentiles { p50, p99, p999, p9999, max, .. } = traffic.fct_us;
            let mut cells = vec![point.label.to_owned(), traffic.name.to_owned(), flows];
            cells.extend([p50, p99, p999, p9999, max].map(|us| number(us, 1)));
            cells.extend([traffic.slowdown.p50, traffic.slowdown.p99].map(|times| number(times, 2)));
            cells.push(format!("{} Gb/s", number(Some(traffic.goodput_gbps), 3)));
            table.row(cells);
        }
    }
    table
}

fn collectives<C>(points: &[&FlowSummary<'_, C>]) -> Option<Table> {
    let mut table = Table::new(&[
        ("point", Align::Left),
        ("job", Align::Left),
        ("iterations", Align::Right),
        ("mean", Align::Right),
        ("p50", Align::Right),
        ("p99", Align::Right),
        ("p99.9", Align::Right),
        ("max", Align::Right),
        ("without loss", Align::Right),
        ("late", Align::Right),
        ("losses", Align::Right),
        ("timeouts", Align::Right),
        ("busbw", Align::Right),
    ]);
    for (point, job) in points.iter().flat_map(|point| point.collective.iter().map(move |job| (point, job))) {
        let iterations = match (&job.failed, job.complete == job.iterations) {
            (Some(failed), _) => format!("{}, failed at {:.0} µs", thousands(job.complete), failed.at_us),
            (None, true) => thousands(job.complete),
            (None, false) => format!("{} of {}", thousands(job.complete), thousands(job.iterations)),
        };
        let times = &job.time_us;
        let mut cells = vec![point.label.to_owned(), job.name.clone(), iterations];
        let all = [times.mean, times.p50, times.p99, times.p999, times.max, job.without_loss_us];
        cells.extend(all.map(|us| number(us, 1)));
        cells.extend([job.late, job.losses, job.timeouts].map(thousands));
        cells.push(format!("{} GB/s", number(job.busbw_gbytes, 2)));
        table.row(cells);
    }
    points.iter().any(|point| !point.collective.is_empty()).then_some(table)
}

fn blamed<C>(points: &[&FlowSummary<'_, C>]) -> Option<Table> {
    /// Links of a job that are listed.
    const MOST: usize = 10;
    let mut table = Table::new(&[
        ("point", Align::Left),
        ("job", Align::Left),
        ("link", Align::Left),
        ("cause", Align::Left),
        ("iterations", Align::Right),
        ("mean lateness", Align::Right),
    ]);
    let jobs = points.iter().flat_map(|point| point.collective.iter().map(move |job| (point, job)));
    let mut any = false;
    for (point, job, blamed) in
        jobs.flat_map(|(point, job)| job.blamed.iter().take(MOST).map(move |one| (point, job, one)))
    {
        any = true;
        let link = blamed.link.clone().unwrap_or_default();
        let mut cells = vec![point.label.to_owned(), job.name.clone(), link, blamed.cause.clone()];
        cells.extend([thousands(blamed.iterations), format!("{:.1} µs", blamed.lateness_us)]);
        table.row(cells);
    }
    any.then_some(table)
}

fn by_size<C>(points: &[&FlowSummary<'_, C>]) -> Option<Table> {
    let mut table = Table::new(&[
        ("point", Align::Left),
        ("traffic", Align::Left),
        ("bytes", Align::Left),
        ("flows", Align::Right),
        ("p50", Align::Right),
        ("p99", Align::Right),
        ("p99.9", Align::Right),
        ("max", Align::Right),
    ]);
    let mut any = false;
    for point in points {
        for traffic in &point.traffic {
            for class in &traffic.slowdown_by_size {
                any = true;
                let Percentiles { n, p50, p99, p999, max, .. } = class.slowdown;
                let mut cells = vec![point.label.to_owned(), traffic.name.to_owned(), range(class), thousands(n)];
                cells.extend([p50, p99, p999, max].map(|times| number(times, 2)));
                table.row(cells);
            }
        }
    }
    any.then_some(table)
}

fn repairs<C>(points: &[&FlowSummary<'_, C>]) -> Table {
    let mut table = Table::new(&[
        ("point", Align::Left),
        ("traffic", Align::Left),
        ("sent again", Align::Right),
        ("probes", Align::Right),
        ("timeouts", Align::Right),
        ("NAKs", Align::Right),
        ("reductions", Align::Right),
        ("for nothing", Align::Right),
        ("failed", Align::Right),
    ]);
    for point in points {
        for traffic in &point.traffic {
            let seen = &traffic.repairs;
            let counts = [
                seen.retransmitted,
                seen.probes,
                seen.timeouts,
                seen.naks,
                seen.reductions,
                seen.undone,
                traffic.failed,
            ];
            let mut cells = vec![point.label.to_owned(), traffic.name.to_owned()];
            cells.extend(counts.map(thousands));
            table.row(cells);
        }
    }
    table
}

fn network<C>(points: &[&FlowSummary<'_, C>]) -> Table {
    let mut table = Table::new(&[
        ("point", Align::Left),
        ("seeds", Align::Right),
        ("simulated", Align::Right),
        ("corrupted", Align::Right),
        ("dropped", Align::Right),
        ("marked", Align::Right),
        ("PFC pauses", Align::Right),
        ("events", Align::Right),
    ]);
    for point in points {
        let mut cells = vec![point.label.to_owned(), thousands(point.seeds.len() as u64)];
        cells.push(format!("{:.6} s", point.simulated_seconds));
        let counts = [point.corrupted, point.dropped, point.marked, point.pfc_pauses, point.events];
        cells.extend(counts.map(thousands));
        table.row(cells);
    }
    table
}

/// Queue lengths, where they are measured.
fn queues<C>(points: &[&FlowSummary<'_, C>]) -> Option<Table> {
    let names = ["p50", "p95", "p99", "max"].map(|name| (name, Align::Right));
    let mut table = Table::new(&[[("point", Align::Left)].as_slice(), &names].concat());
    let measured = || points.iter().filter_map(|point| Some((point.label, point.queue_bytes?)));
    for (label, QueuePercentiles { p50, p95, p99, max }) in measured() {
        let cells = [p50, p95, p99, max].map(|bytes| bytes.map_or("-".to_owned(), thousands));
        table.row([vec![label.to_owned()], cells.to_vec()].concat());
    }
    measured().next().map(|_| table)
}

/// Congestion control, where there is any: T, round-trip times and telemetry.
fn control<C>(points: &[&FlowSummary<'_, C>]) -> Option<Table> {
    let names = ["T", "RTT p50", "p95", "p99", "max", "telemetry", "resets"].map(|name| (name, Align::Right));
    let mut table = Table::new(&[[("point", Align::Left)].as_slice(), &names].concat());
    let controlled = || points.iter().filter_map(|point| Some((point, point.base_rtt_us?)));
    let or_dash = |cell: Option<String>| cell.unwrap_or_else(|| "-".to_owned());
    let micros = |us: Option<f64>| or_dash(us.map(|us| format!("{us:.2} µs")));
    for (point, t) in controlled() {
        let RttPercentiles { p50, p95, p99, max } = point.rtt_us.unwrap_or_default();
        let mut cells = vec![point.label.to_owned()];
        cells.extend([Some(t), p50, p95, p99, max].map(micros));
        cells.push(or_dash(point.int.map(|int| format!("{:.2} %", int.share * 100.0))));
        cells.push(or_dash(point.int.map(|int| thousands(int.resets))));
        table.row(cells);
    }
    controlled().next().map(|_| table)
}

/// Repeated packets, where switches repeat anything.
fn repeated<C>(points: &[&FlowSummary<'_, C>]) -> Option<Table> {
    let mut table = Table::new(&[
        ("point", Align::Left),
        ("copies of NAKs", Align::Right),
        ("of NAKed packets", Align::Right),
        ("wrong packets copied", Align::Right),
    ]);
    let repeating = || points.iter().filter(|point| point.repeated != Repeated::default());
    for point in repeating() {
        let Repeated { naks, naked, wrong } = point.repeated;
        table.row([vec![point.label.to_owned()], [naks, naked, wrong].map(thousands).to_vec()].concat());
    }
    repeating().next().map(|_| table)
}

/// Pools of bits, where connections share them.
fn pools<C>(points: &[&FlowSummary<'_, C>]) -> Option<Table> {
    let mut table = Table::new(&[
        ("point", Align::Left),
        ("bits", Align::Right),
        ("taken at most: receiving", Align::Right),
        ("sending", Align::Right),
        ("packets refused", Align::Right),
    ]);
    let sharing = || points.iter().filter_map(|point| Some((point.label, point.pools?)));
    for (label, PoolLevels { bits, receive_peak, send_peak, refused }) in sharing() {
        let counts = [bits, receive_peak, send_peak].map(u64::from);
        let cells = [counts.as_slice(), &[refused]].concat().into_iter().map(thousands);
        table.row(std::iter::once(label.to_owned()).chain(cells).collect());
    }
    sharing().next().map(|_| table)
}

/// Reservations, where hosts reserve.
fn racks<C>(points: &[&FlowSummary<'_, C>]) -> Option<Table> {
    let counts = ["grants", "refused", "RSVs again", "unsolicited", "cut", "dropped", "twice", "resets"];
    let bytes = ["queued at most", "bound", "beyond it", "left reserved"];
    let names = counts.into_iter().chain(bytes).map(|name| (name, Align::Right));
    let mut table = Table::new(&[("point", Align::Left)].into_iter().chain(names).collect::<Vec<_>>());
    let reserving = || points.iter().filter_map(|point| Some((point.label, point.pl2.as_ref()?)));
    for (label, rack) in reserving() {
        let counts = [
            rack.grants,
            rack.refusals.sum(),
            rack.resent_rsvs,
            rack.unsolicited,
            rack.cut,
            rack.dropped + rack.policed,
            rack.duplicates,
            rack.resets,
        ];
        let mut cells = vec![label.to_owned()];
        cells.extend(counts.map(thousands));
        cells.extend([rack.peak_bytes, rack.bound_bytes].map(|bytes| format!("{} B", thousands(bytes))));
        cells.push(thousands(rack.violations));
        cells.push(format!("{:.2} µs", rack.reserved_left_us));
        table.row(cells);
    }
    reserving().next().map(|_| table)
}

fn links<C>(points: &[&FlowSummary<'_, C>]) -> Option<Table> {
    let mut table = Table::new(&[
        ("point", Align::Left),
        ("link", Align::Left),
        ("missing", Align::Right),
        ("recovered", Align::Right),
        ("given up", Align::Right),
        ("sent again", Align::Right),
        ("pauses", Align::Right),
        ("recovery p50", Align::Right),
        ("p99", Align::Right),
        ("max", Align::Right),
        ("Tx peak", Align::Right),
        ("Rx peak", Align::Right),
    ]);
    let mut any = false;
    for point in points {
        for link in &point.links {
            any = true;
            let counts = [link.missing, link.recovered, link.given_up, link.sent_again, link.pauses];
            let mut cells = vec![point.label.to_owned(), link.between.join("-")];
            cells.extend(counts.map(thousands));
            let Percentiles { p50, p99, max, .. } = link.recovery_us;
            cells.extend([p50, p99, max].map(|us| us.map_or("-".to_owned(), |us| format!("{us:.2} µs"))));
            let peaks = [link.tx_buffer_peak_bytes, link.rx_buffer_peak_bytes];
            cells.extend(peaks.map(|bytes| format!("{} B", thousands(bytes))));
            table.row(cells);
        }
    }
    any.then_some(table)
}

/// The most segments with losses in the table, the worst first. Most congestion is where nobody would look for it.
const MOST_SEGMENTS: usize = 20;

fn losses<C>(points: &[&FlowSummary<'_, C>]) -> Option<Table> {
    let mut table = Table::new(&[
        ("point", Align::Left),
        ("segment", Align::Left),
        ("congestion", Align::Right),
        ("random", Align::Right),
        ("blackhole", Align::Right),
        ("loop", Align::Right),
        ("unknown", Align::Right),
        ("unnamed", Align::Right),
        ("really lost", Align::Right),
    ]);
    let found = || points.iter().filter_map(|point| Some((point.label, point.losses.as_ref()?)));
    for (label, summary) in found() {
        let mut segments: Vec<&SegmentSummary> = summary.segments.iter().collect();
        segments.sort_by_key(|segment| std::cmp::Reverse(segment.losses.truth.all()));
        for SegmentSummary { from, to, losses } in segments.iter().take(MOST_SEGMENTS) {
            let MeterLosses { congestion, blackhole, random, looped, unknown, unnamed } = losses.found;
            let counts = [congestion, random, blackhole, looped, unknown, unnamed, losses.truth.all()];
            let mut cells = vec![label.to_owned(), format!("{from} to {to}")];
            cells.extend(counts.map(thousands));
            table.row(cells);
        }
        let all = summary.segments.len();
        let name = if all > MOST_SEGMENTS { format!("all {all} of them") } else { "all".to_owned() };
        let sum =
            |of: fn(&MeterLosses) -> u64| summary.segments.iter().map(|segment| of(&segment.losses.found)).sum::<u64>();
        let counts = [
            sum(|of| of.congestion),
            sum(|of| of.random),
            sum(|of| of.blackhole),
            sum(|of| of.looped),
            sum(|of| of.unknown),
            summary.unnamed,
            summary.lost,
        ];
        table.row([vec![label.to_owned(), name], counts.map(thousands).to_vec()].concat());
    }
    found().next().map(|_| table)
}

fn accused<C>(points: &[&FlowSummary<'_, C>]) -> Option<Table> {
    let mut table = Table::new(&[
        ("point", Align::Left),
        ("segment", Align::Left),
        ("cause", Align::Left),
        ("losses", Align::Right),
        ("runs", Align::Right),
    ]);
    let mut any = false;
    for point in points {
        for accused in point.losses.iter().flat_map(|losses| &losses.accused) {
            any = true;
            let runs = format!("{} of {}", accused.runs, point.seeds.len());
            let segment = format!("{} to {}", accused.from, accused.to);
            let cause = accused.cause.to_string();
            table.row(vec![point.label.to_owned(), segment, cause, thousands(accused.losses), runs]);
        }
    }
    any.then_some(table)
}

/// A dash for what there is not.
fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.digits$}"))
}

fn range(class: &SizeClass) -> String {
    let short = |bytes: u64| match bytes {
        1_000_000.. => format!("{}M", bytes / 1_000_000),
        1_000.. => format!("{}K", bytes / 1_000),
        _ => bytes.to_string(),
    };
    match class.below_bytes {
        Some(below) => format!("{} to {}", short(class.from_bytes), short(below)),
        None => format!("{} and more", short(class.from_bytes)),
    }
}
