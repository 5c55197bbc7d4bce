//! `hitless fleet watch`: the loop.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use chart::table::thousands;
use fleet::fabric::SwitchNames;
use fleet::plan::PlanTerms;
use fleet::plan::report;
use fleet::protection::ProtectionTable as Protections;
use fleet::watch::{FollowEvent, Follower, HostNotice, LinkDecision, LinkVerdict, OnsetOrder, PROMPT, Watcher};
use linux::clock::time_of_day;
use serde::Serialize;
use units::{Moment, StopFlag};

use crate::args::FleetWatchArgs;
use crate::output::{CommandResult, Failure, say};
use crate::terminal::stop_on_ctrl_c;

/// Time to wait for messages before the keyboard is polled.
const PATIENCE: Duration = Duration::from_millis(100);

/// Event with its time.
#[derive(Serialize)]
struct WatchLine<'a> {
    at: Moment,
    #[serde(flatten)]
    event: &'a FollowEvent,
}

pub(super) fn run(args: &FleetWatchArgs, json: bool) -> CommandResult {
    let fabric = super::load(&args.topology)?;
    let capable = super::capable(args.capable.as_deref(), &SwitchNames::of(&fabric))?;
    let (bus, key) = super::order_bus(&args.orders)?;
    let mut journal = args.journal.as_deref().map(append).transpose()?;
    let protections = Protections::measured();
    let terms = PlanTerms { budget: PROMPT, ..super::terms(args.constraint, &protections, capable.as_deref()) };
    let watcher = if args.act { Watcher::acting(&fabric, terms, time().as_ms()) } else { Watcher::new(&fabric, terms) };
    let stop = stop_on_ctrl_c();
    let mode = if args.act { "acts" } else { "observes only" };
    say(&format!("{} links, {mode}; Ctrl-C ends it", thousands(fabric.links().len() as u64)));
    let mut follower = Follower::new(watcher.with_key(key), bus);
    while !stop.is_stopped() {
        let now = time();
        for event in follower.step(now, PATIENCE) {
            if matches!(event, FollowEvent::Degraded(_)) && stop.is_stopped() {
                // A wait that Ctrl-C ended is no failure of the bus.
                continue;
            }
            let line = WatchLine { at: now, event: &event };
            if let (Some(journal), Some(path)) = (&mut journal, &args.journal) {
                let unwritten = |error| Failure::Outside(format!("--journal {}: {error}", path.display()));
                write(journal, &line).map_err(unwritten)?;
            }
            let told = if json { write(&mut io::stdout(), &line) } else { tell(&event, args.act) };
            if told.is_err() {
                // The process that read the output has gone.
                return Ok(());
            }
        }
        pause(follower.wait(time()), &stop);
    }
    Err(Failure::Interrupted)
}

fn time() -> Moment {
    Moment::from_ms(u64::try_from(time_of_day().as_millis()).unwrap_or(u64::MAX))
}

fn pause(wait: Duration, stop: &StopFlag) {
    let mut left = wait;
    while !left.is_zero() && !stop.is_stopped() {
        let part = left.min(PATIENCE);
        std::thread::sleep(part);
        left -= part;
    }
}

fn append(path: &Path) -> Result<File, Failure> {
    let opened = File::options().create(true).append(true).open(path);
    opened.map_err(|error| Failure::Usage(format!("--journal {}: {error}", path.display())))
}

/// A whole line at once, so that two writers do not mix theirs.
fn write(out: &mut impl Write, line: &WatchLine<'_>) -> io::Result<()> {
    let mut text = serde_json::to_string(line)?;
    text.push('\n');
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Decisions to standard output, everything else to standard error.
fn tell(event: &FollowEvent, acts: bool) -> io::Result<()> {
    let text = match event {
        FollowEvent::Decision(decision) => return writeln!(io::stdout(), "{}", describe(decision, acts)),
        FollowEvent::Before(OnsetOrder { first, then, by_ns }) => {
            let by = units::Span::from_ns(*by_ns);
            return writeln!(io::stdout(), "{first} before {then}: found corrupting at least {by} earlier");
        }
        FollowEvent::Ordered(port) => format!("{port}: the order is on the bus"),
        FollowEvent::Overruled(port) => format!("{port}: somebody gave it a newer order, which counts"),
        FollowEvent::Host(HostNotice::Silent { host }) => {
            format!("{host}: fell silent; what it said last still counts")
        }
        FollowEvent::Host(HostNotice::Back { host }) => format!("{host}: is heard again"),
        FollowEvent::Ignored(what) => format!("ignored: {what}"),
        FollowEvent::Gap(what) => what.clone(),
        FollowEvent::Degraded(why) => format!("degraded: {why}; keeps trying"),
        FollowEvent::Recovered => "recovered: the bus is back".to_owned(),
    };
    say(&text);
    Ok(())
}

fn describe(decision: &LinkDecision, acts: bool) -> String {
    let LinkDecision { link, why, .. } = decision;
    let lost = decision.loss.map_or_else(String::new, |lost| format!(" ({})", report::loss(lost)));
    let what = match decision.verdict {
        LinkVerdict::Disable if acts && !decision.ordered.is_empty() => "disable".to_owned(),
        LinkVerdict::Disable => "would disable".to_owned(),
        LinkVerdict::Protect => {
            let copies = decision.protection.map_or(0, |protection| protection.copies);
            format!("protect with {copies} copies")
        }
        LinkVerdict::Exposed => "keep as it is".to_owned(),
        LinkVerdict::Disabled => "out of service".to_owned(),
        LinkVerdict::Clear => "clear".to_owned(),
        LinkVerdict::Enabled => "back in service".to_owned(),
    };
    format!("{link}{lost}: {what}: {why}")
}
