//! `hitless clock now`: the time of a clock, as an interval.

use std::path::Path;
use std::time::Duration;

use daemon::RunDirectory;
use linux::clock::{Clock, KernelClock};
use serde::Serialize;
use timekeeper::{ClockReader, ClockReading, ClockState, clock_page};

use super::{find, status_of};
use crate::args::ClockNowArgs;
use crate::output::{CommandResult, Failure, print, print_line};
use crate::terminal::stop_on_ctrl_c;

/// A reading, as it is printed.
#[derive(Debug, Serialize)]
struct PrintedReading {
    /// CLOCK_REALTIME of this host at the reading.
    local_ns: u64,
    node: String,
    earliest_ns: u64,
    latest_ns: u64,
    eps_ns: u64,
    state: ClockState,
    depth: u64,
    epoch: u64,
    elected: bool,
    handover_ns: u64,
    term: u64,
    root: u64,
    line: u64,
}

pub(super) fn run(args: &ClockNowArgs, json: bool) -> CommandResult {
    let directory = RunDirectory::of_this_system();
    let (node, page) = match &args.page {
        Some(page) => (page.file_stem().unwrap_or_default().to_string_lossy().into_owned(), page.clone()),
        None => {
            let node = find(&directory, args.which.node.as_deref())?;
            let page = clock_page(&directory, &node);
            // It may have been put elsewhere.
            let told = if page.exists() { None } else { status_of(&directory, &node).ok().map(|status| status.page) };
            (node, told.unwrap_or(page))
        }
    };
    let reader = ClockReader::open(&page).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Failure::Outside(format!("{node}: no clock of this name runs here")),
        _ => Failure::Outside(format!("{}: {error}", page.display())),
    })?;
    if args.follow {
        return follow(args, &node, &page, reader);
    }
    let reading = reader.read().map_err(|why| Failure::Outside(format!("{node}: {why}")))?;
    let printed = printed(&node, &reading);
    print(json, &printed, || describe(&printed))
}

fn printed(node: &str, reading: &ClockReading) -> PrintedReading {
    PrintedReading {
        local_ns: KernelClock::Real.nanoseconds(),
        node: node.to_owned(),
        earliest_ns: reading.earliest_ns,
        latest_ns: reading.latest_ns,
        eps_ns: reading.eps_ns(),
        state: reading.state,
        depth: reading.depth,
        epoch: reading.epoch,
        elected: reading.elected,
        handover_ns: reading.handover_ns,
        term: reading.term >> 32,
        root: reading.term & u64::from(u32::MAX),
        line: reading.line,
    }
}

/// Time between two checks for a daemon that was started again and has another page.
const LOOK: Duration = Duration::from_millis(100);

/// A line each time; while the clock does not know the time there is none. If there was none at all, why.
fn follow(args: &ClockNowArgs, node: &str, page: &Path, mut reader: ClockReader) -> CommandResult {
    let stop = stop_on_ctrl_c();
    let (clock, every) = (Clock::start(), Duration::from_nanos(args.every.as_ps() / 1_000));
    let until = args.duration.map(|duration| Duration::from_nanos(duration.as_ps() / 1_000));
    let (mut looked, mut untold) = (Duration::ZERO, None);
    let mut has_told = false;
    while !stop.is_stopped() && until.is_none_or(|until| clock.elapsed() < until) {
        if clock.elapsed() > looked + LOOK {
            looked = clock.elapsed();
            reader = if reader.is_at(page) { reader } else { ClockReader::open(page).unwrap_or(reader) };
        }
        match reader.read() {
            Ok(reading) => {
                print_line(&printed(node, &reading))?;
                has_told = true;
            }
            Err(why) => untold = Some(why),
        }
        std::thread::sleep(every.max(Duration::from_micros(10)));
    }
    match untold {
        _ if stop.is_stopped() => Err(Failure::Interrupted),
        Some(why) if !has_told => Err(Failure::Outside(format!("{node}: {why}"))),
        _ => Ok(()),
    }
}

fn describe(reading: &PrintedReading) -> String {
    let PrintedReading { node, earliest_ns, latest_ns, eps_ns, state, depth, epoch, .. } = reading;
    let seconds = |ns: u64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    format!(
        "{node}: {state} at depth {depth}, epoch {epoch}\nearliest  {} s\nlatest    {} s\nε         {:.3} µs",
        seconds(*earliest_ns),
        seconds(*latest_ns),
        *eps_ns as f64 / 1e3
    )
}
