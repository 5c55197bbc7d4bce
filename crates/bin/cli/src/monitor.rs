//! `hitless monitor`: finds ports that receive corrupted frames, notifies other hosts, and protects their links.

use std::io::{self, IsTerminal, PipeReader};
use std::process::ExitCode;
use std::time::Duration;

use ::daemon::RunDirectory;
use bus::Condition;
use chart::table::{Align, Table, thousands};
use monitor::act::{PortAction, ThisHost};
use monitor::config::{MonitorConfig, MonitorOptions};
use monitor::daemon::{self, MonitorClock, MonitorControl, MonitorParts, PortAssessment, SystemClock};
use monitor::journal::Journal;
use monitor::source::SampleTiming;

use crate::args::{MonitorArgs, MonitorCommand};
use crate::background::trusted;
use crate::output::{Failure, print, say};

/// Exit code of `--once` if no port is known to be healthy or corrupting: a network that nobody polled is not healthy.
const NOTHING_JUDGED: u8 = 3;
/// Time to publish what remains after a request to stop; then the program ends all the same.
const GRACE: Duration = Duration::from_millis(900);

pub(crate) fn run(args: &MonitorArgs, json: bool) -> Result<ExitCode, Failure> {
    let directory = RunDirectory::of_this_system();
    match &args.command {
        Some(MonitorCommand::Clear { port }) => {
            daemon::ask_to_clear(&directory, port).map_err(Failure::Usage)?;
            return Ok(ExitCode::SUCCESS);
        }
        Some(MonitorCommand::Status) => return status(&directory, json),
        None => {}
    }
    let file =
        args.config.as_deref().map_or(Ok(MonitorOptions::default()), MonitorOptions::read).map_err(Failure::Usage)?;
    let defaults = MonitorConfig::new(hostname(), directory.path());
    let config = args.options.clone().or(file).check(defaults).map_err(Failure::Usage)?;
    if args.check {
        print(false, &(), || config.to_string())?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.once {
        return once(&config, &directory, json);
    }
    if config.action == PortAction::Protect {
        trusted(&directory)?;
    }
    watch(config, &directory, json).map(|()| ExitCode::SUCCESS)
}

/// Name of the host from the kernel; `localhost` if it has none.
fn hostname() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if name.trim().is_empty() { "localhost".to_owned() } else { name.trim().to_owned() }
}

fn status(directory: &RunDirectory, json: bool) -> Result<ExitCode, Failure> {
    let status = daemon::ask_for_status(directory).map_err(Failure::Outside)?;
    print(json, &status, || {
        let degraded: String = status.degraded.iter().map(|line| format!("degraded: {line}\n")).collect();
        format!("{}\n{degraded}", table(&status.ports).trim_end())
    })?;
    let is_well = status.degraded.is_empty() && verdict(&status.ports) == 0;
    Ok(ExitCode::from(u8::from(!is_well)))
}

fn once(config: &MonitorConfig, directory: &RunDirectory, json: bool) -> Result<ExitCode, Failure> {
    let sources = daemon::open_sources(config, directory, SampleTiming::Replay).map_err(Failure::Usage)?;
    let clock = SystemClock::start();
    let looked = daemon::look_once(config, sources, || clock.now(), std::thread::sleep);
    let (ports, troubles) = match looked {
        Ok(looked) => looked,
        Err(error) if error.kind() == io::ErrorKind::InvalidData => return Err(Failure::Usage(error.to_string())),
        // Not 1, which would say that a port is corrupting.
        Err(error) => {
            say(&format!("error: {error}"));
            return Ok(ExitCode::from(NOTHING_JUDGED));
        }
    };
    troubles.iter().for_each(|line| say(line));
    if let Some(missing) = config.named().find(|name| ports.iter().all(|looked| !is_called(&looked.port, name))) {
        return Err(Failure::Usage(format!("{missing}: nothing is known of this port")));
    }
    print(json, &ports, || table(&ports))?;
    let verdict = verdict(&ports);
    if verdict == NOTHING_JUDGED {
        say("nothing could be judged: no port has counted a frame that tells whether it is healthy");
    }
    Ok(ExitCode::from(verdict))
}

/// Names of ports of other hosts have the host before them.
fn is_called(port: &str, name: &str) -> bool {
    port == name || !name.contains('/') && port.rsplit('/').next() == Some(name)
}

/// Exit code for scripts. A port in unknown condition does not make the others less healthy.
fn verdict(ports: &[PortAssessment]) -> u8 {
    let any = |condition| ports.iter().any(|looked| looked.condition == condition);
    match (any(Condition::Corrupting), any(Condition::Healthy)) {
        (true, _) => 1,
        (false, true) => 0,
        (false, false) => NOTHING_JUDGED,
    }
}

fn table(ports: &[PortAssessment]) -> String {
    let mut table = Table::new(&[
        ("port", Align::Left),
        ("frames", Align::Right),
        ("corrupted", Align::Right),
        ("loss", Align::Right),
        ("95 %", Align::Left),
        ("over", Align::Right),
        ("state", Align::Left),
        ("", Align::Left),
    ]);
    for looked in ports {
        let evidence = &looked.evidence;
        let (loss, interval) = match (evidence.frames, evidence.bad) {
            (0, _) => ("–".to_owned(), String::new()),
            (_, 0) => ("none".to_owned(), format!("at most {:.1e}", evidence.high)),
            _ => (format!("{:.1e}", evidence.loss), format!("{:.1e} to {:.1e}", evidence.low, evidence.high)),
        };
        let over = match (looked.since_boot, evidence.frames) {
            (true, _) => "since boot".to_owned(),
            (false, 0) => "–".to_owned(),
            (false, _) => format!("{:.1} s", evidence.seconds),
        };
        let sticky = if looked.sticky { ", until cleared" } else { "" };
        table.row(vec![
            looked.port.clone(),
            thousands(evidence.frames),
            thousands(evidence.bad),
            loss,
            interval,
            over,
            format!("{}{sticky}", looked.condition),
            looked.note.clone(),
        ]);
    }
    table.to_string()
}

fn watch(config: MonitorConfig, directory: &RunDirectory, json: bool) -> Result<(), Failure> {
    let sources = daemon::open_sources(&config, directory, SampleTiming::Follow).map_err(Failure::Usage)?;
    let bus = bus::open_with_ca(&config.bus, config.bus_ca.as_deref());
    let bus = bus.map_err(|error| Failure::Usage(format!("bus: {error}")))?;
    let metrics = match config.metrics {
        Some(address) => {
            let bound = linux::metrics::bind(address);
            Some(bound.map_err(|error| Failure::Outside(format!("metrics on {address}: {error}")))?)
        }
        None => None,
    };
    let journal = journal(&config, json)?;
    let control = control(&config, directory)?;
    let stop = stop_on_signal()?;
    say(&greeting(&config));
    let executor = Box::new(ThisHost::new(directory.clone()));
    let parts = MonitorParts { config, sources, bus, executor, journal, metrics, control };
    let ended = daemon::run(parts, &SystemClock::start(), &stop, &|line| say(line));
    ended.map(drop).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => Failure::Usage(error.to_string()),
        _ => Failure::Outside(error.to_string()),
    })
}

fn greeting(config: &MonitorConfig) -> String {
    let does = match config.action {
        PortAction::None => "observes only",
        PortAction::Protect => "protects the links of corrupting ports",
    };
    let ports = if config.ports.is_empty() { "all physical ports".to_owned() } else { config.ports.join(", ") };
    format!("{}: watches {ports} every {:?} and {does}; Ctrl-C ends it", config.host, config.interval)
}

fn journal(config: &MonitorConfig, json: bool) -> Result<Journal, Failure> {
    match &config.journal {
        Some(path) if path.as_os_str() != "-" => {
            Journal::append(path).map_err(|error| Failure::Usage(format!("journal {}: {error}", path.display())))
        }
        Some(_) => Ok(Journal::to(io::stdout())),
        None if json || !io::stdout().is_terminal() => Ok(Journal::to(io::stdout())),
        // People read the lines on standard error.
        None => Ok(Journal::nowhere()),
    }
}

/// Control socket of the monitor. A monitor that only observes needs no run directory, and then cannot be reached there
/// either.
fn control(config: &MonitorConfig, directory: &RunDirectory) -> Result<Option<MonitorControl>, Failure> {
    // Observing needs no run directory; acting does, and fails below.
    directory.make().iter().flatten().for_each(|line| say(line));
    let error = match MonitorControl::bind(directory) {
        Ok(control) => return Ok(Some(control)),
        Err(error) => error,
    };
    let path = directory.path().display();
    match (error.kind(), config.action) {
        (io::ErrorKind::AddrInUse, PortAction::Protect) => {
            Err(Failure::Outside(format!("a monitor runs here already ({path}); two would undo each other's work")))
        }
        (_, PortAction::Protect) => Err(Failure::Outside(format!("{path}: {error}; acting needs root, or sudo"))),
        (_, PortAction::None) => {
            say(&format!("`hitless monitor clear` will not reach this one: {path}: {error}"));
            Ok(None)
        }
    }
}

/// Readable once the program is to end.
fn stop_on_signal() -> Result<PipeReader, Failure> {
    let outside = |error: &dyn std::fmt::Display| Failure::Outside(error.to_string());
    let (stop, stopper) = io::pipe().map_err(|error| outside(&error))?;
    let mut stopper = Some(stopper);
    ctrlc::set_handler(move || {
        drop(stopper.take());
        // Somewhere a bus may be waited for that does not answer.
        std::thread::sleep(GRACE);
        std::process::exit(0);
    })
    .map_err(|error| outside(&error))?;
    Ok(stop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn once_ends_with_0_if_healthy_1_if_corrupting_and_3_if_nothing_could_be_judged() {
        use Condition::{Corrupting, Healthy, Unknown};
        let looked = |condition| PortAssessment {
            port: "eth1".to_owned(),
            condition,
            sticky: false,
            evidence: bus::Evidence::default(),
            since_boot: false,
            note: String::new(),
        };
        let of = |conditions: &[Condition]| verdict(&conditions.iter().map(|one| looked(*one)).collect::<Vec<_>>());
        assert_eq!([of(&[Healthy]), of(&[Healthy, Unknown])], [0, 0]);
        assert_eq!([of(&[Corrupting]), of(&[Healthy, Unknown, Corrupting])], [1, 1]);
        assert_eq!([of(&[]), of(&[Unknown]), of(&[Unknown, Unknown])], [3, 3, 3]);
    }
}
