//! Names of each driver's counters: a table that is data, and maps a driver's numbers to our counters.
//!
//! The table that comes with the program is `data/drivers.toml`, which also says what its fields mean; a file of the
//! same form can be laid over it. Invariants: a counter that is not there is absent, never zero; a table that names a
//! counter twice, or only half, is refused when it is read.

use std::path::Path;

use serde::Deserialize;
use toml::Spanned;

use crate::reading::{Phy, ReceivedFrames};

const BUILT_IN: &str = include_str!("../../data/drivers.toml");

/// Counters that a driver's own statistics map to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverCounters {
    pub frames: ReceivedFrames,
    pub phy: Phy,
}

/// Reason why a driver's counters say nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DriverError {
    /// The table does not have this driver.
    Unknown,
    /// The driver counts no bad frames, for this reason.
    CountsNothing(String),
    /// The driver is in the table, but does not have these counters.
    Missing(Vec<String>),
}

/// The table of drivers.
#[derive(Clone, Debug, PartialEq)]
pub struct Drivers(Vec<DriverProfile>);

#[derive(Clone, Debug, PartialEq)]
struct DriverProfile {
    name: String,
    says: DriverSupport,
}

#[derive(Clone, Debug, PartialEq)]
enum DriverSupport {
    Nothing(String),
    Counters(CounterNames),
}

#[derive(Clone, Debug, PartialEq)]
struct CounterNames {
    good: Vec<String>,
    bad: Vec<String>,
    good_has_bad: bool,
    bits: u32,
    symbol_errors: Vec<String>,
    corrected: Vec<String>,
    uncorrectable: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DriversFile {
    driver: Vec<Spanned<DriverEntry>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct DriverEntry {
    name: String,
    none: Option<String>,
    good: Vec<String>,
    bad: Vec<String>,
    good_has_bad: Option<bool>,
    bits: Option<u32>,
    symbol_errors: Vec<String>,
    corrected: Vec<String>,
    uncorrectable: Vec<String>,
}

impl Drivers {
    /// The table that comes with the program.
    pub fn built_in() -> Self {
        Self::parse(BUILT_IN).expect("a test reads it")
    }

    /// An error is one line that names the place.
    pub fn parse(text: &str) -> Result<Self, String> {
        let lines = settings::LineIndex::of(text);
        let file: DriversFile = settings::from_toml(text).map_err(|error| error.to_string())?;
        let checked = file.driver.into_iter().map(|entry| {
            let at = lines.at(entry.span().start);
            entry.into_inner().check().map_err(|wrong| format!("line {at}: {wrong}"))
        });
        checked.collect::<Result<_, _>>().map(Self)
    }

    /// Lays a file of the same form over the table: what it says of a driver replaces all that was known of it. An
    /// error is one line that names the file and the place.
    pub fn overlay(mut self, path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let Self(laid) = Self::parse(&text).map_err(|wrong| format!("{}, {wrong}", path.display()))?;
        self.0.retain(|known| !laid.iter().any(|driver| driver.name == known.name));
        self.0.extend(laid);
        Ok(self)
    }

    /// The drivers in the table, each once.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let first = |at: usize, name: &str| self.0[..at].iter().all(|driver| driver.name != name);
        let names = self.0.iter().map(|driver| driver.name.as_str()).enumerate();
        names.filter(move |(at, name)| first(*at, name)).map(|(_, name)| name)
    }

    /// Maps driver statistics to our counters.
    pub fn normalise(&self, driver: &str, statistics: &[(String, u64)]) -> Result<DriverCounters, DriverError> {
        let mut missing = None;
        for known in self.0.iter().filter(|known| known.name == driver) {
            match &known.says {
                DriverSupport::Nothing(why) => return Err(DriverError::CountsNothing(why.clone())),
                DriverSupport::Counters(names) => match names.read(statistics) {
                    Ok(counters) => return Ok(counters),
                    // The first entry is for what is in use now, so its missing counter is the one reported.
                    Err(lacking) => missing = missing.or(Some(lacking)),
                },
            }
        }
        Err(missing.map_or(DriverError::Unknown, DriverError::Missing))
    }
}

impl DriverEntry {
    fn check(self) -> Result<DriverProfile, String> {
        let name = self.name;
        if name.is_empty() {
            return Err("a driver without a name: expected name = \"…\"".to_owned());
        }
        let lists = [&self.good, &self.bad, &self.symbol_errors, &self.corrected, &self.uncorrectable];
        if let Some(why) = self.none {
            if lists.iter().any(|list| !list.is_empty()) || self.bits.is_some() || self.good_has_bad.is_some() {
                return Err(format!("{name}: `none` says that nothing is counted; nothing else can stand beside it"));
            }
            return Ok(DriverProfile { name, says: DriverSupport::Nothing(why) });
        }
        if self.good.is_empty() || self.bad.is_empty() {
            return Err(format!("{name}: expected counters for good and for bad frames, or `none` and a reason"));
        }
        for list in lists {
            if let Some(twice) = list.iter().enumerate().find(|(at, counter)| list[..*at].contains(counter)) {
                return Err(format!("{name}: `{}` is named twice and would be counted twice", twice.1));
            }
        }
        let bits = self.bits.unwrap_or(64);
        if !matches!(bits, 32 | 64) {
            return Err(format!("{name}: bits = {bits}: expected 32 or 64"));
        }
        let names = CounterNames {
            good: self.good,
            bad: self.bad,
            good_has_bad: self.good_has_bad.unwrap_or(false),
            bits,
            symbol_errors: self.symbol_errors,
            corrected: self.corrected,
            uncorrectable: self.uncorrectable,
        };
        Ok(DriverProfile { name, says: DriverSupport::Counters(names) })
    }
}

impl CounterNames {
    /// Otherwise which of the counters of frames are missing.
    fn read(&self, statistics: &[(String, u64)]) -> Result<DriverCounters, Vec<String>> {
        let value = |name: &String| statistics.iter().find(|(other, _)| other == name).map(|(_, value)| *value);
        let sum =
            |names: &[String]| names.iter().map(value).try_fold(0_u64, |sum, value| Some(sum.wrapping_add(value?)));
        let (Some(good), Some(bad)) = (sum(&self.good), sum(&self.bad)) else {
            let lacking = self.good.iter().chain(&self.bad).filter(|name| value(name).is_none());
            return Err(lacking.cloned().collect());
        };
        // An empty list would sum to zero, which nobody counted.
        let told = |names: &[String]| if names.is_empty() { None } else { sum(names) };
        let phy = Phy {
            symbol_errors: told(&self.symbol_errors),
            corrected: told(&self.corrected),
            uncorrectable: told(&self.uncorrectable),
        };
        let all = if self.good_has_bad { good } else { good.wrapping_add(bad) };
        Ok(DriverCounters { frames: wrapping(all, bad, self.bits), phy })
    }
}

/// Sums of counters that wrap wrap with them.
pub(super) fn wrapping(all: u64, bad: u64, bits: u32) -> ReceivedFrames {
    let mask = u64::MAX >> (64 - bits);
    ReceivedFrames { all: all & mask, bad: bad & mask, bits }
}

/// Reads what `ethtool -S` prints. An error is one line that names the place.
pub fn parse_ethtool(text: &str) -> Result<Vec<(String, u64)>, String> {
    let mut statistics = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        // `NIC statistics:` and other headings.
        if line.is_empty() || line.ends_with(':') {
            continue;
        }
        // Names of single queues may have a colon of their own.
        let parsed = line.rsplit_once(':').and_then(|(name, value)| Some((name.trim(), value.trim().parse().ok()?)));
        let Some((name, value)) = parsed else {
            return Err(format!("line {}: `{line}`: expected a name, a colon and a number", at + 1));
        };
        statistics.push((name.to_owned(), value));
    }
    Ok(statistics)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statistics(of: &[(&str, u64)]) -> Vec<(String, u64)> {
        of.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    }

    fn refused(text: &str) -> String {
        Drivers::parse(text).unwrap_err()
    }

    #[test]
    fn the_built_in_table_is_well_formed_and_has_every_driver_once_in_its_list_of_names() {
        let drivers = Drivers::parse(BUILT_IN).unwrap();
        let names: Vec<_> = drivers.names().collect();
        assert!(names.contains(&"mlx5_core") && names.contains(&"veth"));
        assert_eq!(names.iter().filter(|name| **name == "ice").count(), 1);
    }

    #[test]
    fn a_slip_in_the_table_is_refused_with_its_line() {
        assert_eq!(
            refused("[[driver]]\nname = \"x\"\ngoood = [\"a\"]"),
            "line 3: unknown field `goood`, expected one of `name`, `none`, `good`, `bad`, `good-has-bad`, `bits`, \
             `symbol-errors`, `corrected`, `uncorrectable`"
        );
        assert!(refused("\n[[driver]]\nname = \"x\"\ngood = [\"a\"]").starts_with("line 2: x: expected counters for"));
        assert!(refused("[[driver]]\nname = \"x\"\ngood = 3\nbad = [\"b\"]").starts_with("line 3: "));
        assert!(refused("[[driver]]\ngood = [\"a\"]\nbad = [\"b\"]").contains("without a name"));
        assert!(refused("[[drivers]]\nname = \"x\"").starts_with("line 1: unknown field `drivers`"));
        let full = "[[driver]]\nname = \"x\"\ngood = [\"a\"]\nbad = [\"b\", \"b\"]\n";
        assert!(refused(full).contains("`b` is named twice"));
        assert!(refused(&full.replace(", \"b\"]", "]\nbits = 48")).contains("bits = 48: expected 32 or 64"));
        assert!(refused("[[driver]]\nname = \"x\"\nnone = \"why\"\nbits = 32").contains("nothing else"));
    }

    #[test]
    fn a_missing_counter_is_told_and_never_taken_for_zero() {
        let drivers = Drivers::built_in();
        let good = statistics(&[("rx_packets_phy", 5)]);
        let missing = DriverError::Missing(vec!["rx_crc_errors_phy".to_owned()]);
        assert_eq!(drivers.normalise("mlx5_core", &good), Err(missing));
        let both = statistics(&[("rx_packets_phy", 5), ("rx_crc_errors_phy", 1)]);
        let counters = drivers.normalise("mlx5_core", &both).unwrap();
        assert_eq!((counters.frames, counters.phy), (ReceivedFrames { all: 6, bad: 1, bits: 64 }, Phy::default()));
        assert_eq!(drivers.normalise("hinic9", &both), Err(DriverError::Unknown));
        assert!(matches!(drivers.normalise("veth", &both), Err(DriverError::CountsNothing(_))));
    }

    #[test]
    fn what_is_laid_over_the_table_replaces_a_driver_and_leaves_the_others() {
        let folder = std::env::temp_dir().join(format!("hitless-drivers-{}", std::process::id()));
        let own = "[[driver]]\nname = \"ice\"\ngood = [\"all\"]\nbad = [\"crc\"]\ngood-has-bad = true\nbits = 32\n";
        std::fs::write(&folder, own).unwrap();
        let drivers = Drivers::built_in().overlay(&folder).unwrap();
        let counters = drivers.normalise("ice", &statistics(&[("all", (7 << 32) + 9), ("crc", 2)])).unwrap();
        assert_eq!(counters.frames, ReceivedFrames { all: 9, bad: 2, bits: 32 });
        assert!(drivers.names().any(|name| name == "igb"));
        std::fs::write(&folder, "[[driver]]\nnmae = \"ice\"\n").unwrap();
        let wrong = Drivers::built_in().overlay(&folder).unwrap_err();
        assert!(wrong.contains(&format!("{}, line 2: unknown field `nmae`", folder.display())), "{wrong}");
        std::fs::remove_file(&folder).unwrap();
    }

    #[test]
    fn the_text_of_ethtool_is_read_and_what_is_no_number_is_told() {
        let text = "NIC statistics:\n     rx_frames_ok           : 12\n     [0]: rx_ucast_packets: 3\n\n";
        let expected = statistics(&[("rx_frames_ok", 12), ("[0]: rx_ucast_packets", 3)]);
        assert_eq!(parse_ethtool(text).unwrap(), expected);
        assert_eq!(
            parse_ethtool("NIC statistics:\n  rx: many").unwrap_err(),
            "line 2: `rx: many`: expected a name, a colon and a number"
        );
        assert!(parse_ethtool("no stats available").is_err());
    }
}
