//! Tracing instances of recorders that were killed: their events go on for ever, and cost every packet of the host some time.
//!
//! An instance is named after the process that made it, with the time at which that began: a process with the same number that
//! began later is another one. The kernel does not remove an instance that somebody reads, so that a recorder whose process cannot
//! be seen from here (in another PID namespace) keeps its own.

use std::fmt;
use std::fs;
use std::path::Path;

const PREFIX: &str = "hitless-";

/// The name of a tracing instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InstanceName {
    process: u32,
    /// Start of the process in ticks since boot; zero if the name does not have it.
    began: u64,
    /// Number that distinguishes several recordings of one process.
    number: u32,
}

impl fmt::Display for InstanceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}-{}-{}", self.process, self.began, self.number)
    }
}

impl InstanceName {
    pub(crate) fn own(number: u32) -> Self {
        let process = std::process::id();
        Self { process, began: began(process).unwrap_or_default(), number }
    }

    fn parse(name: &str) -> Option<Self> {
        let mut words = name.strip_prefix(PREFIX)?.split('-');
        let process = words.next()?.parse().ok()?;
        let second = words.next()?.parse().ok()?;
        let (began, number) = match words.next() {
            Some(number) => (second, number.parse().ok()?),
            None => (0, u32::try_from(second).ok()?),
        };
        words.next().is_none().then_some(Self { process, began, number })
    }

    /// True if the process that made it is gone.
    fn is_left_over(&self) -> bool {
        match began(self.process) {
            Some(began) => self.began != 0 && began != self.began,
            None => true,
        }
    }
}

/// Time at which a process began, in ticks since boot; `None` if there is none with this number.
fn began(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program may have spaces and brackets.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(19)?.parse().ok()
}

/// Removes the instances of processes that are gone, with their events and buffers.
pub(crate) fn remove_leftovers(instances: &Path) {
    let Ok(entries) = fs::read_dir(instances) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if name.to_str().and_then(InstanceName::parse).is_some_and(|name| name.is_left_over()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_instances_of_processes_that_are_gone_are_removed() {
        let folder = std::env::temp_dir().join(format!("hitless-leftovers-{}", std::process::id()));
        let own = InstanceName::own(3);
        assert_eq!(InstanceName::parse(&own.to_string()), Some(own));
        let reused = InstanceName { began: own.began + 1, ..own };
        let gone = InstanceName { process: 4_194_305, began: 7, number: 0 };
        let others = ["hitless-1", "hitless-", "someone", "hitless-1-2-3-4", "hitless-x-1-2"];
        let short = [format!("hitless-{}-0", own.process), "hitless-4194305-0".to_owned()];
        let names = [own, reused, gone].map(|name| name.to_string());
        let names = [&names[..], &short[..]].concat();
        let all = names.iter().map(String::as_str).chain(others);
        all.for_each(|name| fs::create_dir_all(folder.join(name)).unwrap());
        remove_leftovers(&folder);
        let is_there = |name: &str| folder.join(name).exists();
        let there: Vec<bool> = names.iter().map(|name| is_there(name)).collect();
        assert_eq!(there, [true, false, false, true, false]);
        assert!(others.iter().all(|name| is_there(name)), "what is not ours is left alone");
        fs::remove_dir_all(&folder).unwrap();
    }
}
