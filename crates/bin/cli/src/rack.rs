//! `hitless rack`: the switch of a rack, hosts that join it, and what can be asked of them.

mod demo;
mod join;
mod members;
mod soak;
mod switch;
#[cfg(feature = "tui")]
mod view;

use chart::table::{Align, Table, thousands};
use rack::host::HostStatus;
use rack::switch::{DROP_REASONS, PortStatus, SwitchStatus};
use units::Rate;

use self::members::{MemberStatus, leave, status};
use crate::args::RackCommand;
use crate::link::keeper_in_words;
use crate::output::{CommandResult, print};

pub(crate) fn run(command: &RackCommand, json: bool) -> CommandResult {
    match command {
        RackCommand::Switch(args) => switch::run(args, json),
        RackCommand::Join(args) => join::run(args, json),
        RackCommand::Demo(args) => demo::run(args, json),
        RackCommand::Soak(args) => soak::run(args, json),
        RackCommand::Status(args) => {
            let status = status(args.name.as_deref())?;
            print(json, &status, || describe(&status))
        }
        RackCommand::Counters(args) => match status(args.name.as_deref())? {
            MemberStatus::Switch(status) => print(json, &counters_by_port(&status), || counters(&status)),
            MemberStatus::Host(status) => print(json, &status.counters, || host_counters(&status)),
        },
        RackCommand::Watch(args) => view::run(args, json),
        RackCommand::Leave(args) => leave(args),
    }
}

/// Table of the state of a switch or host, for people.
fn describe(status: &MemberStatus) -> String {
    match status {
        MemberStatus::Switch(status) => describe_switch(status),
        MemberStatus::Host(status) => describe_host(status),
    }
}

fn describe_host(status: &HostStatus) -> String {
    if status.is_waiting() {
        let why = status.problem.as_deref().unwrap_or_default();
        return format!("{} waits for {}: {why}", status.name, status.interface);
    }
    let mut table = Table::new(&[("", Align::Left), ("", Align::Left)]);
    let mut row = |name: &str, value: String| table.row(vec![name.to_owned(), value]);
    let count = |name: &str| thousands(status.counters.get(name).copied().unwrap_or(0));
    row("state", status.problem.clone().unwrap_or_else(|| "the switch answers: frames wait for their turn".to_owned()));
    row("reserves", format!("{} frames at once, {} at a time; {}", status.k, status.contexts, status.scheduler));
    row("round trip", status.round_trip_us.map_or("not known yet".to_owned(), |us| format!("{us:.0} µs")));
    row("asked, granted", format!("{}, {}", count("rsvs"), count("grants")));
    row("sent", format!("{} reserved or unsolicited, {} without a reservation", count("sent"), count("unmarked")));
    row("received", format!("{}, and {} that had come before", count("delivered"), count("duplicates")));
    row("refused here", format!("{} frames", thousands(status.refused)));
    row("waiting", format!("{} B and {} frames", thousands(status.queued_bytes), status.held_frames));
    row("backend", format!("{} and {}", status.host_backend, status.wire_backend));
    row("keeper", keeper_in_words(&status.keeper));
    row("up for", format!("{:.0} s", status.up_seconds));
    format!("{} stands in for {}, MTU {}\n{table}", status.name, status.interface, status.mtu)
}

fn host_counters(status: &HostStatus) -> String {
    let mut table = Table::new(&[("counter", Align::Left), ("value", Align::Right)]);
    for (name, value) in &status.counters {
        table.row(vec![name.clone(), thousands(*value)]);
    }
    table.to_string()
}

fn describe_switch(status: &SwitchStatus) -> String {
    let mut table = Table::new(&[
        ("port", Align::Left),
        ("addresses", Align::Right),
        ("from host", Align::Right),
        ("to host", Align::Right),
        ("used", Align::Right),
        ("waits", Align::Right),
        ("peak", Align::Right),
        ("dropped", Align::Right),
        ("refused", Align::Left),
    ]);
    for port in &status.ports {
        let state = if port.up { "" } else { " (down)" };
        table.row(vec![
            format!("{}{state}", port.interface),
            port.addresses.to_string(),
            mbps(port.rx_bits_per_second),
            mbps(port.tx_bits_per_second),
            format!("{:.0} %", port.utilisation * 100.0),
            format!("{} B", thousands(port.held_bytes)),
            format!("{} B", thousands(port.peak_bytes)),
            thousands(port.count("dropped")),
            refused(port),
        ]);
    }
    format!(
        "{}: {} a port, {} B of buffer each, up for {:.0} s, loop busy {:.0} %\n{}\n{table}",
        status.name,
        Rate::from_bits_per_second(status.rate_bps),
        thousands(status.buffer_bytes),
        status.up_seconds,
        status.busy_share() * 100.0,
        guarantee(status)
    )
}

/// Sentence about the guarantee of a switch to hosts that reserve.
fn guarantee(status: &SwitchStatus) -> String {
    let count = |name: &str| thousands(status.reservations.get(name).copied().unwrap_or(0));
    match (&status.scheduler, status.bound_bytes) {
        (None, _) => "nobody can reserve: nothing is guaranteed".to_owned(),
        (Some(scheduler), bound) => {
            let share = status.ingress_share * 100.0;
            let bound = match bound.map(thousands) {
                None => "no bound on what waits".to_owned(),
                Some(bound) if share > 0.0 => {
                    format!("at most {bound} B wait at a port, {share} % of it is for what nobody reserved")
                }
                Some(bound) => format!("at most {bound} B wait at a port if all reserve"),
            };
            format!(
                "reservations by {scheduler}, {bound}; {} granted, {} frames reserved, {} not, {} policed",
                count("grants"),
                count("reserved"),
                count("unreserved"),
                count("policed")
            )
        }
    }
}

fn mbps(bits_per_second: f64) -> String {
    format!("{:.1} Mbit/s", bits_per_second / 1e6)
}

/// Frames refused at a port for another reason than a full buffer.
fn refused(port: &PortStatus) -> String {
    let some = DROP_REASONS.iter().map(|reason| (reason, port.count(reason))).filter(|(_, count)| *count > 0);
    let some: Vec<String> = some.map(|(reason, count)| format!("{} {reason}", thousands(count))).collect();
    if some.is_empty() { "nothing".to_owned() } else { some.join(", ") }
}

type CountersByPort<'a> = std::collections::BTreeMap<&'a str, &'a std::collections::BTreeMap<String, u64>>;

fn counters_by_port(status: &SwitchStatus) -> CountersByPort<'_> {
    status.ports.iter().map(|port| (port.interface.as_str(), &port.counters)).collect()
}

fn counters(status: &SwitchStatus) -> String {
    let mut table = Table::new(&[("port", Align::Left), ("counter", Align::Left), ("value", Align::Right)]);
    for port in &status.ports {
        for (name, value) in &port.counters {
            table.row(vec![port.interface.clone(), name.clone(), thousands(*value)]);
        }
    }
    table.to_string()
}

/// Prints once what a build with screens shows again and again.
#[cfg(not(feature = "tui"))]
mod view {
    use super::describe;
    use super::members::status;
    use crate::args::WatchArgs;
    use crate::output::{CommandResult, print};
    use crate::refresh::refuse_screen;

    pub(super) fn run(args: &WatchArgs, json: bool) -> CommandResult {
        let WatchArgs { name, every: _ } = args;
        refuse_screen(json, "rack status")?;
        let shown = status(name.as_deref())?;
        print(json, &shown, || describe(&shown))
    }
}
