//! Files named as in `/sys/class/net`: `eth0/statistics/rx_packets` and `rx_crc_errors`, `flags`, `carrier`,
//! `operstate`, `ifindex`.
//!
//! Every interface of the kernel has them; whether its driver counts bad frames there is another matter. `hitless wire
//! --counters` writes the statistics alone: such a port has no index and is taken to be up. `rx_packets` is taken to be
//! the good frames, as most drivers have it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use units::Moment;

use super::drivers::wrapping;
use super::{OpenSources, Selection, Source, SourceSite};
use crate::reading::{CarrierState, Phy, Reading, ReceivedFrames};

const IFF_UP: u64 = 1;

#[derive(Debug)]
pub struct Sysfs {
    root: PathBuf,
    selection: Selection,
}

/// A source for each part of what is watched.
pub(super) fn open(site: &SourceSite<'_>) -> io::Result<OpenSources> {
    let source = |selection: &Selection| Box::new(Sysfs::new(site.sysfs, selection.clone())) as Box<dyn Source>;
    Ok(site.selections.iter().map(source).collect())
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
        self.selection.tell_missing(names.iter().map(String::as_str), troubles);
        for name in names {
            let port = SysfsPort(self.root.join(&name));
            if self.selection.takes(&name, || port.is_physical()) {
                readings.push(port.read(name, now, troubles));
            }
        }
        Ok(())
    }
}

/// In order of their names. The kernel's directory has files in it as well.
fn interfaces(root: &Path) -> io::Result<Vec<String>> {
    let entries = fs::read_dir(root)?.flatten().filter(|entry| entry.path().is_dir());
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    Ok(names)
}

/// The directory of one interface.
struct SysfsPort(PathBuf);

impl SysfsPort {
    /// The kernel's interfaces have an index, and those of a card a link to it. What a wire writes has neither.
    fn is_physical(&self) -> bool {
        !self.0.join("ifindex").exists() || self.0.join("device").exists()
    }

    fn read(&self, port: String, at: Moment, troubles: &mut Vec<String>) -> Reading {
        let mut number = |file: &str| {
            self.number(file).unwrap_or_else(|wrong| {
                troubles.push(wrong);
                None
            })
        };
        let (index, flags) = (number("ifindex"), number("flags"));
        let (good, bad) = (number("statistics/rx_packets"), number("statistics/rx_crc_errors"));
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
        // Which cannot be read while the interface is off.
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

    /// None if there is no such file; otherwise what is wrong with it, in one line.
    fn number(&self, file: &str) -> Result<Option<u64>, String> {
        let named = |what: String| format!("{}: {what}", self.0.join(file).display());
        let Some(text) = self.text(file).map_err(|error| named(error.to_string()))? else { return Ok(None) };
        let number = match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => text.parse(),
        };
        number.map(Some).map_err(|_| named(format!("`{text}`: expected a number")))
    }

    fn text(&self, file: &str) -> io::Result<Option<String>> {
        match fs::read_to_string(self.0.join(file)) {
            Ok(text) => Ok(Some(text.trim().to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Of good and bad frames, counted apart in 64 bits each.
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

    /// An interface as the kernel shows it.
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
        assert_eq!(troubles, [format!("{}: `twelve`: expected a number", file.display())]);
    }

    #[test]
    fn without_the_directory_nothing_can_be_read_at_all() {
        let missing = Path::new("/nonexistent/net");
        let error = Sysfs::new(missing, Selection::physical()).read(NOW, &mut Vec::new(), &mut Vec::new());
        assert!(error.unwrap_err().to_string().starts_with("/nonexistent/net: No such file"));
    }
}
