//! Sources of counters.
//!
//! | file | what is read | how |
//! | --- | --- | --- |
//! | `kernel` | the machine's own ports | standard statistics, else the driver's own, else what every interface has |
//! | `drivers` | what each driver calls its counters | a table that is data, and `ethtool -S` as text |
//! | `sysfs` | files named as in `/sys/class/net` | also those that `hitless wire --counters` writes |
//! | `links` | protected links | asks their daemons |
//! | `samples` | a file, a FIFO or standard input | replayed step by step, or followed as it grows |
//!
//! Invariants: a counter that nobody keeps is absent, never zero; a source never waits for anybody but the kernel and
//! (for a bounded time) a daemon on this machine.

#[cfg(test)]
mod counter_file;
mod drivers;
mod kernel;
mod links;
mod samples;
mod selection;
mod sysfs;

use std::fmt;
use std::io;
use std::path::Path;

use daemon::RunDirectory;
use units::Moment;

use crate::reading::Reading;

pub use drivers::{DriverCounters, DriverError, Drivers, parse_ethtool};
pub(crate) use kernel::KernelSource;
pub use links::LinkSource;
pub(crate) use samples::Samples;
pub use samples::{ReadingRecorder, SampleTiming};
pub use selection::Selection;
pub(crate) use sysfs::Sysfs;

/// A source of the counters of ports, which can be read again and again.
pub trait Source: fmt::Debug + Send {
    /// Name in messages: `kernel`, `sysfs`, or that of a file.
    fn name(&self) -> &str;

    /// Adds a reading for every port that it knows. What went wrong with single ports is added to `troubles`, one line
    /// each; an error means that nothing could be read at all. Neither repeats the source's name. A trouble that lasts
    /// is reported with every read, in the same words, until it is over, so that the caller sees what is new.
    fn read(&mut self, now: Moment, readings: &mut Vec<Reading>, troubles: &mut Vec<String>) -> io::Result<()>;

    /// True if nothing will ever come again: a replay is at its end.
    fn is_over(&self) -> bool {
        false
    }

    /// All of it was read and nothing made sense: the first thing that did not, and what was expected.
    fn nonsense(&self) -> Option<String> {
        None
    }

    /// Remarks for a person on the way in which ports are counted. They hold from now on and are no trouble.
    fn remarks(&mut self) -> Vec<String> {
        Vec::new()
    }
}

/// Sources that are ready to be read.
type OpenSources = Vec<Box<dyn Source>>;

/// A source that a configuration can name.
#[derive(Debug)]
pub(crate) struct NamedSource {
    pub(crate) name: &'static str,
    pub(crate) open: fn(&SourceSite<'_>) -> io::Result<OpenSources>,
}

/// Parameters that a source may need in order to open.
#[derive(Debug)]
pub(crate) struct SourceSite<'a> {
    /// The ports to watch, in one or two parts.
    pub(crate) selections: Vec<Selection>,
    /// `/sys/class/net`, or a directory that looks like it.
    pub(crate) sysfs: &'a Path,
    /// Directory in which protected links have their control sockets.
    pub(crate) run_directory: &'a RunDirectory,
    /// One look, or a monitor that goes on and may wait for what is not there yet.
    pub(crate) timing: SampleTiming,
}

/// All sources by name. To add one: write its file, and add a line here.
pub(crate) const NAMED: &[NamedSource] = &[
    NamedSource { name: "kernel", open: kernel::open },
    NamedSource { name: "sysfs", open: sysfs::open },
    NamedSource { name: "links", open: links::open },
    #[cfg(test)]
    NamedSource { name: "counter-file", open: counter_file::open },
];

/// The ports of the network namespace in which this is called, by the best counters that each has.
pub fn kernel(selection: Selection) -> io::Result<KernelSource> {
    KernelSource::open(selection)
}

/// Counters in `/sys/class/net`, or in a directory that looks like it.
pub fn sysfs(root: impl AsRef<Path>, selection: Selection) -> Sysfs {
    Sysfs::new(root.as_ref(), selection)
}

/// The wires of protected links, as the links themselves count.
pub fn links(run_directory: RunDirectory) -> LinkSource {
    LinkSource::new(run_directory)
}

/// A file, FIFO or, as `-`, standard input with samples in it.
pub fn samples(path: impl AsRef<Path>, mode: SampleTiming) -> io::Result<Samples> {
    Samples::open(path.as_ref(), mode)
}

#[cfg(test)]
mod testing {
    use std::path::{Path, PathBuf};
    use std::{fs, process};

    /// A directory of a test's own, gone with it.
    #[derive(Debug)]
    pub(crate) struct Folder(PathBuf);

    impl Folder {
        pub(crate) fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("hitless-{name}-{}", process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        pub(crate) fn path(&self) -> &Path {
            &self.0
        }

        pub(crate) fn write(&self, file: &str, text: &str) -> PathBuf {
            let path = self.0.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            path
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}
