//! `hitless bench sim`: how fast the network simulator is on this machine, on one core.

mod recorded;

use chart::table::{Align, Table, thousands};
use scenario::bench::{CASES, SimBenchCase};
use serde::Serialize;
use sim::net::NetworkOutcome;
use units::Progress;
use units::samples::upper_median;

use crate::args::BenchSimArgs;
use crate::memory;
use crate::output::{CommandResult, Failure, print, say};
use crate::terminal::{now, stop_on_ctrl_c};
use recorded::RecordingRow;

/// Part of the traffic that is next to none.
const IDLE: u64 = 1_000;

/// One network, simulated once per round.
#[derive(Debug, Serialize)]
struct SimBenchRow {
    name: &'static str,
    /// Medians over the rounds.
    packet_hops_per_second: f64,
    events_per_second: f64,
    packet_hops: u64,
    events: u64,
    /// Packets in flight at most.
    packets_in_flight: usize,
    peak_rss_bytes: u64,
    /// Memory that each of them added to that of the same network with hardly any.
    bytes_per_packet_in_flight: f64,
    seconds: f64,
    /// Time without congestion control or reservations, if the case has any.
    seconds_without_control: Option<f64>,
    control_ratio: Option<f64>,
    /// Packet-hops a second with them, as a share of those without.
    packet_hops_share: Option<f64>,
    /// Cost of recording, if that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    recorded: Vec<RecordingRow>,
}

pub(super) fn run(args: &BenchSimArgs, json: bool) -> CommandResult {
    let stop = stop_on_ctrl_c();
    let mut rows = Vec::new();
    for case in CASES.iter().filter(|case| args.only.as_ref().is_none_or(|only| case.name == only.as_str())) {
        say(&format!("{}: {}", case.name, case.about));
        rows.extend(measure(case, args, stop.as_ref())?);
        if stop.is_stopped() {
            break;
        }
    }
    if rows.is_empty() && !stop.is_stopped() {
        let known = CASES.map(|case| case.name).join(", ");
        return Err(Failure::Usage(format!("--only {}: expected one of {known}", args.only.as_deref().unwrap_or(""))));
    }
    print(json, &rows, || table(&rows))?;
    if stop.is_stopped() { Err(Failure::Interrupted) } else { Ok(()) }
}

/// `None` if it was called off.
fn measure(case: &SimBenchCase, args: &BenchSimArgs, progress: &dyn Progress) -> Result<Option<SimBenchRow>, Failure> {
    // With hardly any traffic first: what counts is what packets add to a network that is there.
    simulate(case, IDLE, progress)?;
    let before = memory::reset_peak();
    let (mut seconds, mut without) = (Vec::new(), Vec::new());
    let mut last = None;
    for _ in 0..args.rounds {
        let begun = now();
        let outcome = simulate(case, 1, progress)?;
        if outcome.interrupted {
            return Ok(None);
        }
        seconds.push(begun.elapsed().as_secs_f64());
        last = Some(outcome);
    }
    let peak = memory::peak();
    for _ in 0..args.rounds {
        without.extend(time_without_control(case, progress)?);
    }
    let recorded = if args.record { recorded::measure(case, args.rounds, progress)? } else { Vec::new() };
    let typical = upper_median(&mut seconds).unwrap_or_default();
    let hops_without = without.last().map(|(_, hops)| *hops);
    let without = upper_median(&mut without.into_iter().map(|(seconds, _)| seconds).collect::<Vec<_>>());
    let per_second_without = hops_without.zip(without).map(|(hops, seconds)| hops as f64 / seconds);
    Ok(last.map(|outcome| SimBenchRow {
        name: case.name,
        packet_hops_per_second: outcome.packet_hops as f64 / typical,
        events_per_second: outcome.events as f64 / typical,
        packet_hops: outcome.packet_hops,
        events: outcome.events,
        packets_in_flight: outcome.most_packets,
        peak_rss_bytes: peak,
        bytes_per_packet_in_flight: peak.saturating_sub(before) as f64 / outcome.most_packets.max(1) as f64,
        seconds: typical,
        seconds_without_control: without,
        control_ratio: without.map(|without| typical / without),
        packet_hops_share: per_second_without.map(|without| outcome.packet_hops as f64 / typical / without),
        recorded,
    }))
}

/// Seconds that the case takes without control, and its packet-hops; `None` if it has none, or was called off.
fn time_without_control(case: &SimBenchCase, progress: &dyn Progress) -> Result<Option<(f64, u64)>, Failure> {
    let Some(setup) = case.uncontrolled() else { return Ok(None) };
    let setup = setup.map_err(|error| Failure::Outside(format!("{error:?}")))?;
    let begun = now();
    let outcome = sim::net::run(setup, progress).map_err(|error| Failure::Outside(error.to_string()))?;
    Ok((!outcome.interrupted).then(|| (begun.elapsed().as_secs_f64(), outcome.packet_hops)))
}

/// Simulates one part in `shrink` of the case's traffic.
fn simulate(case: &SimBenchCase, shrink: u64, progress: &dyn Progress) -> Result<NetworkOutcome, Failure> {
    let setup = case.setup(shrink).map_err(|error| Failure::Outside(format!("{error:?}")))?;
    sim::net::run(setup, progress).map_err(|error| Failure::Outside(error.to_string()))
}

fn table(rows: &[SimBenchRow]) -> String {
    let mut table = Table::new(&[
        ("", Align::Left),
        ("packet-hops/s", Align::Right),
        ("events/s", Align::Right),
        ("packet-hops", Align::Right),
        ("seconds", Align::Right),
        ("in flight", Align::Right),
        ("bytes each", Align::Right),
        ("peak MB", Align::Right),
        ("by none", Align::Right),
        ("packet-hops/s of none", Align::Right),
        ("recorded, times", Align::Right),
        ("decisions", Align::Right),
    ]);
    for row in rows {
        table.row(vec![
            row.name.into(),
            format!("{:.2} M", row.packet_hops_per_second / 1e6),
            format!("{:.2} M", row.events_per_second / 1e6),
            thousands(row.packet_hops),
            format!("{:.2}", row.seconds),
            thousands(row.packets_in_flight as u64),
            format!("{:.0}", row.bytes_per_packet_in_flight),
            format!("{:.0}", row.peak_rss_bytes as f64 / 1e6),
            row.control_ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2} ×")),
            row.packet_hops_share.map_or("-".to_owned(), |share| format!("{share:.2} ×")),
            row.recorded.first().map_or("-".to_owned(), |row| format!("{:.2} ×", row.ratio)),
            row.recorded.get(1).map_or("-".to_owned(), |row| format!("{:.2} ×", row.ratio)),
        ]);
    }
    table.to_string()
}
