//! Leftovers on the two hosts after both daemons have ended in an orderly way; there should be none.

use std::fs;
use std::time::Duration;

use super::side;
use super::supervisor::Supervisor;
use crate::stage::{self, Stage};
use linux::clock::Clock;
use linux::net::{self, Netlink, Qdisc};

/// A process that was asked to end may take a while.
const PATIENCE: Duration = Duration::from_secs(3);

/// A line for each thing.
pub(crate) fn find(stage: &Stage, ends: &[Supervisor<'_>; 2]) -> Vec<String> {
    let mut found = Vec::new();
    for daemon in ends {
        let side = side(daemon.end);
        let namespace = &stage.ends[daemon.end];
        let seen = namespace.with(|| in_network(daemon.end)).and_then(|seen| seen);
        let seen = seen.unwrap_or_else(|error| vec![format!("not known: {error}")]);
        let files = files(daemon).into_iter().map(|name| format!("file {name}"));
        let processes = processes(daemon).into_iter().map(|pid| format!("process {pid}"));
        found.extend(seen.into_iter().chain(files).chain(processes).map(|what| format!("{side}: {what}")));
    }
    found
}

/// Lists remains in the namespace of the calling thread.
fn in_network(end: usize) -> net::Result<Vec<String>> {
    let netlink = Netlink::open()?;
    let mut found = Vec::new();
    for link in netlink.links()? {
        if link.name == "lo" {
            continue;
        }
        if link.name != stage::plug(end) {
            found.push(format!("interface {}", link.name));
            continue;
        }
        if netlink.qdisc_statistics(link.index, Qdisc::Clsact)?.is_some() {
            found.push(format!("a filter on {}", link.name));
        }
        if !netlink.addresses(link.index)?.iter().any(|address| address.ip() == stage::address(end)) {
            found.push(format!("{} without its address", link.name));
        }
    }
    Ok(found)
}

fn files(daemon: &Supervisor<'_>) -> Vec<String> {
    let entries = fs::read_dir(daemon.directory.path()).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn processes(daemon: &Supervisor<'_>) -> Vec<String> {
    let clock = Clock::start();
    loop {
        let found = crate::soak::process::that_know_of(daemon.directory.path());
        if found.is_empty() || clock.elapsed() > PATIENCE {
            return found;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
