//! `hitless link`: the daemon, and what can be asked of it.

mod capture;
mod clock_back;
#[cfg(feature = "tui")]
mod view;

use std::io;
use std::time::Duration;

use chart::table::{Align, Table, thousands};
use daemon::RunDirectory;
use daemon::directory::Lock;
use daemon::keeper::KeeperStatus;
use link::config::LinkOptions;
use link::control::{LinkReply, LinkRequest};
use link::daemon::{DaemonStopper, LinkDaemon};
use link::status::LinkStatus;
use standin::KeptStandIn;
use units::Rate;

use crate::args::{ActivateArgs, DownArgs, KeepArgs, LinkCommand, NameArg, UpArgs};
use crate::background::{in_background, keeper, run_directory, run_reporting, trusted};
use crate::output::{CommandResult, Failure, print, say};

pub(crate) fn run(command: &LinkCommand, json: bool) -> CommandResult {
    match command {
        LinkCommand::Up(args) => up(args),
        LinkCommand::Down(args) => down(args),
        LinkCommand::Keep(args) => keep(args),
        LinkCommand::Status(args) => {
            let status = status(args.name.as_deref())?;
            print(json, &status, || describe(&status))
        }
        LinkCommand::Activate(args) => ask(&args.link, activation(args)),
        LinkCommand::Deactivate(args) => ask(args, LinkRequest::Deactivate),
        LinkCommand::Counters(args) => {
            let status = status(args.name.as_deref())?;
            print(json, &status.counters, || counters(&status))
        }
        LinkCommand::Watch(args) => view::run(args, json),
        LinkCommand::Capture(args) => capture::run(args),
    }
}

fn up(args: &UpArgs) -> CommandResult {
    let file = args.config.as_deref().map_or(Ok(LinkOptions::default()), LinkOptions::read).map_err(Failure::Usage)?;
    let config = args.options.clone().or(file).check().map_err(Failure::Usage)?;
    if let Some(seconds) = args.test_clock_back {
        clock_back::set(seconds)?;
    }
    if args.background {
        return in_background(&config.stand_in.name, &format!("{} stands in for", config.stand_in.name), |directory| {
            match directory.ask(&config.stand_in.name, LinkRequest::Status) {
                Ok(LinkReply::Status(status)) => Some(status.pid),
                _ => None,
            }
        });
    }
    // From the first moment on: half-made is worse than made and taken down again.
    let stopper = DaemonStopper::default();
    let handler = stopper.clone();
    ctrlc::set_handler(move || handler.stop()).map_err(|error| Failure::Outside(error.to_string()))?;
    let directory = run_directory()?;
    let keeper = keeper(&config.stand_in.name, &directory)?;
    run_reporting(|tell| {
        LinkDaemon { config: &config, directory: &directory, keeper: Some(&keeper), tell, stopper }.run()
    })
}

/// The process beside a daemon that lets its link fail open.
fn keep(args: &KeepArgs) -> CommandResult {
    // A service manager that ends everything at once asks this process too; it ends with the daemon, and not before.
    ctrlc::set_handler(|| ()).map_err(|error| Failure::Outside(error.to_string()))?;
    let directory = RunDirectory::at(&args.directory);
    trusted(&directory)?;
    daemon::keeper::keep(io::stdin().lock(), &directory, &args.name, &KeptStandIn)
        .map_err(|trouble| Failure::Outside(trouble.0))
}

/// The link meant: the one named, or the only one there is.
fn name(given: Option<&str>, directory: &RunDirectory) -> Result<String, Failure> {
    let names = directory.names().map_err(|error| unreachable(given.unwrap_or("links"), directory, &error))?;
    match (given, names.as_slice()) {
        (Some(given), names) if names.iter().any(|name| name == given) => Ok(given.to_owned()),
        (Some(given), names) => {
            // Most people name the interface that it protects.
            let protects = |name: &&String| matches!(directory.ask(name, LinkRequest::Status), Ok(LinkReply::Status(status)) if status.interface == given);
            let by_interface = || names.iter().find(protects).cloned();
            // One whose daemon is gone says itself whose it is.
            Ok(by_interface().or_else(|| standin::own_name(given)).unwrap_or_else(|| given.to_owned()))
        }
        (None, [name]) => Ok(name.clone()),
        (None, []) => Err(Failure::Outside("no link is up; `hitless link up IFACE` makes one".to_owned())),
        (None, names) => Err(Failure::Usage(format!("which one? these are up: {}", names.join(", ")))),
    }
}

fn unreachable(name: &str, directory: &RunDirectory, error: &io::Error) -> Failure {
    let why = match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused if directory.notes(name).exists() => {
            let passes = if directory.keeper(name).exists() { "frames pass unprotected" } else { "nothing passes" };
            format!(
                "its daemon is gone, {passes}; `hitless link up IFACE` adopts it, `hitless link down {name}` puts everything back"
            )
        }
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => "no daemon runs for it".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied; ask as root, or with sudo".to_owned(),
        _ => error.to_string(),
    };
    Failure::Outside(format!("{name}: {why} ({})", directory.socket(name).display()))
}

fn status(given: Option<&str>) -> Result<LinkStatus, Failure> {
    let directory = RunDirectory::of_this_system();
    let name = name(given, &directory)?;
    match directory.ask(&name, LinkRequest::Status) {
        Ok(LinkReply::Status(status)) => Ok(*status),
        Ok(LinkReply::Refused(why)) => Err(Failure::Outside(why)),
        Ok(LinkReply::Done) => Err(Failure::Outside(format!("{name} gave no status"))),
        Err(error) => Err(unreachable(&name, &directory, &error)),
    }
}

fn activation(args: &ActivateArgs) -> LinkRequest {
    args.loss.map_or(LinkRequest::Activate, |loss| LinkRequest::Protect { loss: loss.get() })
}

fn ask(args: &NameArg, ask: LinkRequest) -> CommandResult {
    let directory = RunDirectory::of_this_system();
    let name = name(args.name.as_deref(), &directory)?;
    match directory.ask(&name, ask) {
        Ok(LinkReply::Refused(why)) => Err(Failure::Outside(why)),
        Ok(_) => Ok(()),
        Err(error) => Err(unreachable(&name, &directory, &error)),
    }
}

/// Ends the daemon and waits until it has put everything back; does that itself if it is gone.
fn down(args: &DownArgs) -> CommandResult {
    if args.unless_restarting && is_restarting(|name| std::env::var(name).ok()) {
        return Ok(());
    }
    let directory = RunDirectory::of_this_system();
    let given = match &args.config {
        Some(file) => Some(LinkOptions::read(file).map_err(Failure::Usage)?.name.unwrap_or_else(|| "hit0".to_owned())),
        None => args.link.name.clone(),
    };
    let name = name(given.as_deref(), &directory)?;
    if let Err(error) = directory.ask::<LinkReply>(&name, LinkRequest::Down) {
        use io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, NotFound, UnexpectedEof};
        // Also one that was killed between the request and its answer.
        let gone = matches!(error.kind(), NotFound | ConnectionRefused | ConnectionReset | BrokenPipe | UnexpectedEof);
        if gone && put_back(&directory, &name)? {
            say(&format!("{name}: its daemon was gone; what it had changed is put back"));
            return Ok(());
        }
        // A service that stopped in order has nothing left to put back.
        return if args.unless_restarting && gone { Ok(()) } else { Err(unreachable(&name, &directory, &error)) };
    }
    for _ in 0..300 {
        if !directory.socket(&name).exists() && !directory.notes(&name).exists() {
            return Ok(());
        }
        // It may die on the way, too.
        let lock = directory.lock_name(&name).map_err(|error| Failure::Outside(error.to_string()))?;
        if let Some(lock) = lock {
            return clean_up(&directory, &name, lock).map(drop);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Err(Failure::Outside(format!("{name} is still up after three seconds")))
}

/// Puts back what a daemon that is gone had changed, once its keeper has done its part. False if there is nothing.
pub(crate) fn put_back(directory: &RunDirectory, name: &str) -> Result<bool, Failure> {
    if !directory.path().exists() {
        return Ok(false);
    }
    trusted(directory)?;
    for _ in 0..150 {
        match directory.lock_name(name) {
            Ok(Some(lock)) => return clean_up(directory, name, lock),
            Ok(None) => std::thread::sleep(Duration::from_millis(10)),
            Err(error) => return Err(unreachable(name, directory, &error)),
        }
    }
    Err(Failure::Outside(format!("{name}: a daemon is about to begin or to end; ask again")))
}

fn clean_up(directory: &RunDirectory, name: &str, lock: Lock) -> Result<bool, Failure> {
    let aside = directory.put_aside(name);
    let aside = aside.map_err(|error| Failure::Outside(format!("{}: {error}", directory.path().display())))?;
    aside.iter().for_each(|line| say(line));
    let any = standin::clean_up(directory, name).map_err(|trouble| Failure::Outside(trouble.0))?;
    let _ = std::fs::remove_file(directory.socket(name));
    drop(lock);
    directory.tidy(name);
    Ok(any)
}

/// True if the service manager starts a service that ended so again at once. It does not if the service was asked to stop,
/// even if it did not in time, or had wrong arguments. The service manager says how it ended.
pub(crate) fn is_restarting(said: impl Fn(&str) -> Option<String>) -> bool {
    let wrong_arguments = said("EXIT_CODE").as_deref() == Some("exited") && said("EXIT_STATUS").as_deref() == Some("2");
    !wrong_arguments && !matches!(said("SERVICE_RESULT").as_deref(), None | Some("success" | "timeout"))
}

fn describe(status: &LinkStatus) -> String {
    if status.is_waiting() {
        let why = status.problem.as_deref().unwrap_or_default();
        return format!("{} waits for {}: {why}", status.name, status.interface);
    }
    let mut table = Table::new(&[("", Align::Left), ("", Align::Left)]);
    let mut row = |name: &str, value: String| table.row(vec![name.to_owned(), value]);
    let state = match (&status.problem, status.is_active()) {
        (Some(problem), _) => format!("{}: {problem}", status.state),
        (None, true) => format!("active, peer {}", status.peer.as_deref().unwrap_or("unknown")),
        (None, false) => status.state.clone(),
    };
    row("state", state);
    let level = status.level.as_ref().map_or(String::new(), |level| format!(", now {level}"));
    row("mode", format!("{}{level}, {} copies of a retransmission", status.mode, status.copies));
    row("loss on the wire", format!("in {}, out {}", loss(status.loss_in), loss(status.loss_out)));
    row("dropped here", dropped(status));
    row("recovered, given up", format!("{}, {}", thousands(status.recovered), thousands(status.given_up)));
    row(
        "recovery delay",
        format!(
            "p50 {}, p99 {}, max {}",
            us(status.recovery_p50_us),
            us(status.recovery_p99_us),
            us(status.recovery_max_us)
        ),
    );
    row("wire", format!("out {}, in {}", rate(status.tx_bits_per_second), rate(status.rx_bits_per_second)));
    row(
        "waiting",
        format!(
            "{} B for the wire, {} B for acknowledgement, {} B for their turn",
            thousands(status.queued_bytes),
            thousands(status.tx_buffered_bytes),
            thousands(status.rx_held_bytes)
        ),
    );
    row("backend", format!("{} and {}, seal {}", status.host_backend, status.wire_backend, status.seal));
    let why = status.stamp.why.as_ref().map_or(String::new(), |why| format!(": {why}"));
    row("stamp", format!("{}{why}", status.stamp.state));
    row("keeper", keeper_in_words(&status.keeper));
    row("up for", format!("{:.0} s", status.up_seconds));
    format!("{} stands in for {}, MTU {}\n{table}", status.name, status.interface, status.mtu)
}

pub(crate) fn keeper_in_words(keeper: &KeeperStatus) -> String {
    let replaced = match keeper.replaced {
        0 => String::new(),
        times => format!(", replaced {} times", thousands(times)),
    };
    match (keeper.state.as_str(), &keeper.why) {
        ("ready", _) => format!("ready: if the daemon is killed, frames pass unprotected{replaced}"),
        ("off", _) => "off: if the daemon is killed, nothing passes".to_owned(),
        (state, why) => format!("{state}: {}{replaced}", why.as_deref().unwrap_or("another is about to be started")),
    }
}

/// Frames that ended at this end, by reason.
fn dropped(status: &LinkStatus) -> String {
    let counted = link::metrics::REASONS.map(|reason| (reason, status.counters.get(reason).copied().unwrap_or(0)));
    let some = counted.iter().filter(|(_, count)| *count > 0);
    let some: Vec<String> = some.map(|(reason, count)| format!("{} {reason}", thousands(*count))).collect();
    if some.is_empty() { "nothing".to_owned() } else { some.join(", ") }
}

fn counters(status: &LinkStatus) -> String {
    let mut table = Table::new(&[("counter", Align::Left), ("value", Align::Right)]);
    for (name, value) in &status.counters {
        table.row(vec![name.clone(), thousands(*value)]);
    }
    table.to_string()
}

fn loss(share: Option<f64>) -> String {
    match share {
        None => "not known yet".to_owned(),
        Some(0.0) => "none seen".to_owned(),
        Some(share) => format!("{share:.1e}"),
    }
}

fn us(delay: Option<f64>) -> String {
    match delay {
        None => "–".to_owned(),
        Some(us) if us < 1e3 => format!("{us:.0} µs"),
        Some(us) => format!("{:.1} ms", us / 1e3),
    }
}

fn rate(bits_per_second: f64) -> String {
    format!("{:.1}M", bits_per_second / 1e6).parse::<Rate>().map_or("idle".to_owned(), |rate| format!("{rate}bit/s"))
}

/// Prints once what a build with screens shows again and again.
#[cfg(not(feature = "tui"))]
mod view {
    use super::{describe, status};
    use crate::args::WatchArgs;
    use crate::output::{CommandResult, print};
    use crate::refresh::refuse_screen;

    pub(super) fn run(args: &WatchArgs, json: bool) -> CommandResult {
        let WatchArgs { name, every: _ } = args;
        refuse_screen(json, "link status")?;
        let shown = status(name.as_deref())?;
        print(json, &shown, || describe(&shown))
    }
}
