//! A worked example: the smallest source of counters. It is part of the tests only.
//!
//! The file `counters`, in the directory that `sysfs` names, has a line for each port: the port, frames received, and those
//! of them that failed their check.
//!
//! It takes this file, and one line in `NAMED` of `source.rs`.

use std::path::PathBuf;
use std::{fs, io};

use units::Moment;

use super::{OpenSources, Source, SourceSite};
use crate::reading::{CarrierState, Phy, Reading, ReceivedFrames};

#[derive(Debug)]
struct CounterFile(PathBuf);

pub(super) fn open(site: &SourceSite<'_>) -> io::Result<OpenSources> {
    Ok(vec![Box::new(CounterFile(site.sysfs.join("counters")))])
}

impl Source for CounterFile {
    fn name(&self) -> &str {
        "counter-file"
    }

    fn read(&mut self, now: Moment, readings: &mut Vec<Reading>, troubles: &mut Vec<String>) -> io::Result<()> {
        for line in fs::read_to_string(&self.0)?.lines() {
            match reading(line, now) {
                Some(reading) => readings.push(reading),
                None => troubles.push(format!("'{line}': expected a port and two numbers")),
            }
        }
        Ok(())
    }
}

fn reading(line: &str, at: Moment) -> Option<Reading> {
    let [port, all, bad] = line.split_whitespace().collect::<Vec<_>>().try_into().ok()?;
    let frames = ReceivedFrames { all: all.parse().ok()?, bad: bad.parse().ok()?, bits: 64 };
    let (port, carrier, phy) = (port.to_owned(), CarrierState::Up, Phy::default());
    Some(Reading { port, identity: 0, at, carrier, frames: Some(frames), phy })
}

mod tests {
    use daemon::RunDirectory;

    use super::*;
    use crate::config::MonitorConfig;
    use crate::daemon::open_sources;
    use crate::source::SampleTiming;
    use crate::source::testing::Folder;

    #[test]
    fn a_new_source_is_a_file_and_a_line_and_a_configuration_can_name_it() {
        let folder = Folder::new("counter-file");
        folder.write("counters", "eth0 1000 3\neth1 many 0\n");
        let mut config = MonitorConfig::new("host", folder.path());
        config.sources = vec!["counter-file".parse().unwrap()];
        config.sysfs = folder.path().to_owned();
        let directory = RunDirectory::at(folder.path());
        let mut sources = open_sources(&config, &directory, SampleTiming::Replay).unwrap();

        let (mut readings, mut troubles) = (Vec::new(), Vec::new());
        sources[0].read(Moment::ZERO, &mut readings, &mut troubles).unwrap();
        let seen: Vec<_> = readings.iter().map(|reading| (reading.port.as_str(), reading.frames)).collect();
        assert_eq!(seen, [("eth0", Some(ReceivedFrames { all: 1_000, bad: 3, bits: 64 }))]);
        assert_eq!(troubles, ["'eth1 many 0': expected a port and two numbers"]);
    }
}
