//! Files named as in `/sys/class/net`: `eth0/statistics/rx_packets` and `rx_crc_errors`, `flags`, `carrier`,
//! `operstate`, `ifindex`.
//!
//! Every interface of the kernel has them; whether its driver counts bad frames there is another matter. `hitless wire
//! --counters` writes the statistics alone: such a port has no index and is taken to be up. `rx_packets` is taken to be
//! the good frames, as most drivers have it.
//!
//! A folder without `statistics/rx_packets` is no port. A port without `rx_crc_errors` is one that nobody can judge, which is
//! reported with every read.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use linux::net::StandInMark;
use units::Moment;

use super::drivers::wrapping;
use super::{OpenSources, SampleTiming, Selection, Source, SourceSite};
use crate::reading::{CarrierState, Phy, Reading, ReceivedFrames};

const IFF_UP: u64 = 1;
/// Bytes of a counter's file.
const LONGEST: u64 = 64;

#[derive(Debug)]
pub struct Sysfs {
    root: PathBuf,
    selection: Selection,
}

/// A source for each part of what is watched.
pub(super) fn open(site: &SourceSite<'_>) -> io::Result<OpenSources> {
    check(site.sysfs, site.timing)?;
    let source = |selection: &Selection| Box::new(Sysfs::new(site.sysfs, selection.clone())) as Box<dyn Source>;
    Ok(site.selections.iter().map(source).collect())
}

const GOOD: &str = "statistics/rx_packets";
const BAD: &str = "statistics/rx_crc_errors";

/// Refuses a folder that has no port and looks like another one. A monitor that goes on may wait for one that is not there yet,
/// or is empty.
fn check(root: &Path, timing: SampleTiming) -> io::Result<()> {
    let wrong = |what: &str| Err(io::Error::other(format!("{}: {what}", root.display())));
    let is_of_port = root.join(GOOD).exists() || root.join("rx_packets").exists();
    if is_of_port {
        return wrong("belongs to one port: expected the folder above, which has a folder for each port");
    }
    match (interfaces(root), timing) {
        (Ok(ports), _) if !ports.is_empty() => Ok(()),
        (Err(error), SampleTiming::Replay) => wrong(&error.to_string()),
        (Err(_), SampleTiming::Follow) => Ok(()),
        (Ok(_), SampleTiming::Follow) if fs::read_dir(root)?.next().is_none() => Ok(()),
        (Ok(_), _) => wrong(&format!("there is no port in it: expected a folder for each port, with {GOOD}")),
    }
}

impl Sysfs {
    pub fn new(root: &Path, selection: Selection) -> Self {
        Self { root: root.to_owned(), selection }
    }
}

impl Source for Sysfs {
    fn name(&self) -> &str {
        "sysfs"
    }

    fn read(&mut self, now: Moment, readings: &mut Vec<Reading>, troubles: &mut Vec<String>) -> io::Result<()> {
        let names = interfaces(&self.root)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", self.root.display())))?;
        let ports = with_own_names(names.into_iter().map(|name| (SysfsPort(self.root.join(&name)), name)).collect());
        self.selection.tell_missing(ports.iter().map(|(_, name)| name.as_str()), troubles);
        for (port, name) in ports {
            if self.selection.takes(&name, || port.is_physical()) {
                readings.push(port.read(name, now, troubles));
            }
        }
        Ok(())
    }
}

/// Interfaces, in the order of their names. Files in the kernel's directory, and directories without counters, are left
/// out.
fn interfaces(root: &Path) -> io::Result<Vec<String>> {
    let entries = fs::read_dir(root)?.flatten().filter(|entry| entry.path().join(GOOD).exists());
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    Ok(names)
}

/// A port that lent its name to a stand-in has its own again, and so has the stand-in.
fn with_own_names(mut ports: Vec<(SysfsPort, String)>) -> Vec<(SysfsPort, String)> {
    let mark = |port: &SysfsPort| StandInMark::parse(&port.text("ifalias").ok()??);
    let marks: Vec<(String, StandInMark)> =
        ports.iter().filter_map(|(port, name)| Some((name.clone(), mark(port)?))).collect();
    for (port, name) in ports.iter_mut().filter(|_| !marks.is_empty()) {
        let index = port.number("ifindex").ok().flatten();
        if let Some((_, mark)) = marks.iter().find(|(_, mark)| mark.wire.is_some() && mark.wire.map(u64::from) == index)
        {
            name.clone_from(&mark.interface);
        } else if let Some((_, mark)) = marks.iter().find(|(marked, _)| marked == name) {
            *name = mark.own_name.clone().unwrap_or_else(|| name.clone());
        }
    }
    ports
}

/// The directory of one interface.
struct SysfsPort(PathBuf);

impl SysfsPort {
    /// The kernel's interfaces have an index, and those of a card a link to it. What a wire writes has neither.
    fn is_physical(&self) -> bool {
        !self.0.join("ifindex").exists() || self.0.join("device").exists()
    }

    fn read(&self, port: String, at: Moment, troubles: &mut Vec<String>) -> Reading {
        let mut wrongs = Vec::new();
        let mut number = |file: &str| {
            self.number(file).unwrap_or_else(|wrong| {
                wrongs.push(wrong);
                None
            })
        };
        let (index, flags) = (number("ifindex"), number("flags"));
        let (good, bad) = (number(GOOD), number(BAD));
        if bad.is_none() && wrongs.is_empty() {
            wrongs.push(format!("{port}: nothing counts its bad frames: there is no {BAD}"));
        }
        troubles.append(&mut wrongs);
        Reading {
            port,
            identity: index.unwrap_or(0),
            at,
            carrier: self.carrier(flags),
            frames: good.zip(bad).map(|(good, bad)| frames(good, bad)),
            phy: Phy::default(),
        }
    }

    fn carrier(&self, flags: Option<u64>) -> CarrierState {
        if flags.is_some_and(|flags| flags & IFF_UP == 0) {
            return CarrierState::Off;
        }
        // The carrier cannot be read while the interface is off.
        match self.text("carrier").ok().flatten().as_deref() {
            Some("1") => return CarrierState::Up,
            Some("0") => return CarrierState::Lost,
            _ => {}
        }
        match self.text("operstate").ok().flatten().as_deref() {
            Some("down" | "lowerlayerdown" | "notpresent") => CarrierState::Lost,
            _ => CarrierState::Up,
        }
    }

    /// Reads a number. `None` if there is no such file; otherwise an error of one line.
    fn number(&self, file: &str) -> Result<Option<u64>, String> {
        let named = |what: String| format!("{}: {what}", self.0.join(file).display());
        let Some(text) = self.text(file).map_err(|error| named(error.to_string()))? else { return Ok(None) };
        let number = match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => text.parse(),
        };
        number.map(Some).map_err(|_| named(format!("`{}`: expected a number", text.escape_default())))
    }

    fn text(&self, file: &str) -> io::Result<Option<String>> {
        let read = || -> io::Result<String> {
            let mut text = String::new();
            // Reads no more than a counter has, without waiting: the file may be a FIFO, or endless.
            let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(self.0.join(file))?;
            file.take(LONGEST).read_to_string(&mut text)?;
            Ok(text)
        };
        match read() {
            Ok(text) => Ok(Some(text.trim().to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Counters of good and bad frames, counted apart in 64 bits each.
pub(super) fn frames(good: u64, bad: u64) -> ReceivedFrames {
    wrapping(good.wrapping_add(bad), bad, 64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::testing::Folder;

    const NOW: Moment = Moment::from_ms(1_000);

    fn read(source: &mut Sysfs) -> (Vec<Reading>, Vec<String>) {
        let (mut readings, mut troubles) = (Vec::new(), Vec::new());
        source.read(NOW, &mut readings, &mut troubles).unwrap();
        (readings, troubles)
    }

    /// Writes the files of an interface as the kernel has them.
    fn interface(folder: &Folder, name: &str, files: &[(&str, &str)]) {
        let usual = [
            ("ifindex", "7\n"),
            ("flags", "0x1003\n"),
            ("carrier", "1\n"),
            ("operstate", "up\n"),
            ("statistics/rx_packets", "1000\n"),
            ("statistics/rx_crc_errors", "3\n"),
        ];
        for (file, text) in usual.iter().chain(files) {
            folder.write(&format!("{name}/{file}"), text);
        }
    }

    #[test]
    fn good_and_bad_frames_make_all_of_them() {
        let folder = Folder::new("sysfs-frames");
        interface(&folder, "eth0", &[("device/vendor", "0x8086\n")]);
        let (readings, troubles) = read(&mut Sysfs::new(folder.path(), Selection::physical()));
        let frames = Some(ReceivedFrames { all: 1_003, bad: 3, bits: 64 });
        let expected = Reading {
            port: "eth0".into(),
            identity: 7,
            at: NOW,
            carrier: CarrierState::Up,
            frames,
            phy: Phy::default(),
        };
        assert_eq!((readings, troubles), (vec![expected], vec![]));
    }

    #[test]
    fn a_port_down_by_design_is_off_and_one_without_signal_has_lost_it() {
        let folder = Folder::new("sysfs-carrier");
        interface(&folder, "eth0", &[("flags", "0x1002\n")]);
        interface(&folder, "eth1", &[("carrier", "0\n"), ("operstate", "down\n")]);
        let (readings, _) = read(&mut Sysfs::new(folder.path(), Selection::named(["eth*"])));
        let carriers: Vec<_> = readings.iter().map(|reading| reading.carrier).collect();
        assert_eq!(carriers, [CarrierState::Off, CarrierState::Lost]);
    }

    #[test]
    fn a_port_that_lent_its_name_to_a_stand_in_is_read_under_it() {
        let folder = Folder::new("sysfs-lent");
        let mark = "hitless stand-in for eth1 (interface 7, own name hit0)\n";
        interface(&folder, "eth1", &[("ifindex", "9\n"), ("ifalias", mark)]);
        interface(&folder, "eth1w", &[("device/vendor", "0x8086\n")]);
        for selection in [Selection::physical(), Selection::named(["eth1"])] {
            let (readings, troubles) = read(&mut Sysfs::new(folder.path(), selection));
            let ports: Vec<_> = readings.iter().map(|reading| (reading.port.as_str(), reading.identity)).collect();
            assert_eq!((ports, troubles), (vec![("eth1", 7)], vec![]));
        }
    }

    #[test]
    fn interfaces_without_a_card_are_read_only_if_named() {
        let folder = Folder::new("sysfs-physical");
        interface(&folder, "eth0", &[("device/vendor", "0x8086\n")]);
        interface(&folder, "lo", &[]);
        interface(&folder, "br0", &[]);
        folder.write("bonding_masters", "\n");
        let ports = |selection| read(&mut Sysfs::new(folder.path(), selection)).0;
        assert_eq!(ports(Selection::physical()).len(), 1);
        assert_eq!(ports(Selection::named(["br0"]))[0].port, "br0");
    }

    #[test]
    fn counters_that_are_missing_are_none_and_those_that_are_no_numbers_are_told() {
        let folder = Folder::new("sysfs-broken");
        folder.write("w0/statistics/rx_packets", "12\n");
        folder.write("w1/statistics/rx_packets", "twelve\n");
        folder.write("w1/statistics/rx_crc_errors", "1\n");
        let (readings, troubles) = read(&mut Sysfs::new(folder.path(), Selection::physical()));
        assert!(readings.iter().all(|reading| reading.frames.is_none() && reading.carrier == CarrierState::Up));
        let file = folder.path().join("w1/statistics/rx_packets");
        let uncounted = "w0: nothing counts its bad frames: there is no statistics/rx_crc_errors";
        assert_eq!(troubles, [uncounted.to_owned(), format!("{}: `twelve`: expected a number", file.display())]);
    }

    #[test]
    fn what_has_no_counters_is_no_port_and_a_folder_of_another_level_is_refused() {
        let folder = Folder::new("sysfs-level");
        interface(&folder, "net/eth0", &[]);
        folder.write("net/notes/readme", "");
        let checked = |part: &str, timing| check(&folder.path().join(part), timing).map_err(|error| error.to_string());
        for timing in [SampleTiming::Replay, SampleTiming::Follow] {
            assert_eq!(checked("net", timing), Ok(()));
            for level in ["net/eth0", "net/eth0/statistics"] {
                assert!(checked(level, timing).unwrap_err().contains("expected the folder above"), "{level}");
            }
            assert!(checked("", timing).unwrap_err().contains("there is no port in it"));
        }
        assert_eq!(interfaces(&folder.path().join("net")).unwrap(), ["eth0"]);
        fs::create_dir(folder.path().join("empty")).unwrap();
        for (part, why) in [("empty", "there is no port in it"), ("none", "No such file")] {
            assert!(checked(part, SampleTiming::Replay).unwrap_err().contains(why));
            assert_eq!(checked(part, SampleTiming::Follow), Ok(()), "it may come");
        }
    }

    #[test]
    fn a_counter_without_end_is_no_number_and_fills_no_memory() {
        let folder = Folder::new("sysfs-endless");
        folder.write("w0/statistics/rx_packets", "5\n");
        std::os::unix::fs::symlink("/dev/zero", folder.path().join("w0/statistics/rx_crc_errors")).unwrap();
        let (readings, troubles) = read(&mut Sysfs::new(folder.path(), Selection::physical()));
        assert_eq!(readings[0].frames, None);
        assert!(troubles[0].ends_with("expected a number") && troubles[0].len() < 1_000, "{troubles:?}");
    }

    #[test]
    fn without_the_directory_nothing_can_be_read_at_all() {
        let missing = Path::new("/nonexistent/net");
        let error = Sysfs::new(missing, Selection::physical()).read(NOW, &mut Vec::new(), &mut Vec::new());
        assert!(error.unwrap_err().to_string().starts_with("/nonexistent/net: No such file"));
    }
}
