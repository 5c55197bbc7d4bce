//! Bounds on the time of day, from the page of a clock on this host, if there is one.

use daemon::RunDirectory;
use timekeeper::{ClockReader, clock_names, clock_page};

/// An interval that contains the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeBounds {
    /// Nanoseconds since 1970.
    pub between: (u64, u64),
    /// The root of clocks whose time it is; none is the time of day. Different roots have different times.
    pub of: Option<String>,
}

impl TimeBounds {
    /// Bounds by the one clock (`hitless clock up`) that has its page here and knows the time; `None` if there are
    /// several.
    pub(super) fn of_clock(directory: &RunDirectory) -> Option<Self> {
        let names = clock_names(directory).ok()?;
        let [node] = names.as_slice() else { return None };
        let now = ClockReader::open(&clock_page(directory, node)).ok()?.read().ok()?;
        let elected = if now.elected { ", elected" } else { "" };
        Some(Self { between: (now.earliest_ns, now.latest_ns), of: Some(format!("clock {}{elected}", now.epoch)) })
    }
}

#[cfg(test)]
mod tests {
    use linux::clock::KernelClock;
    use timekeeper::{ClockPageEntry, ClockPageWriter, ClockState};

    use super::*;

    #[test]
    fn the_page_of_a_clock_says_between_what_the_time_is_and_whose_it_is() {
        let folder = std::env::temp_dir().join(format!("hitless-monitor-bounds-{}", std::process::id()));
        let directory = RunDirectory::at(&folder);
        directory.make().unwrap();
        assert_eq!(TimeBounds::of_clock(&directory), None);
        let mut page = ClockPageWriter::create(&clock_page(&directory, "h3")).unwrap();
        assert_eq!(TimeBounds::of_clock(&directory), None, "it does not know the time yet");
        let raw_ns = KernelClock::Raw.nanoseconds();
        let entry = ClockPageEntry {
            raw_ns,
            boot_ns: KernelClock::Boot.nanoseconds(),
            earliest_ns: 1_000,
            latest_ns: 5_000,
            state: ClockState::Following,
            epoch: 7,
            ..ClockPageEntry::default()
        };
        page.publish(&entry);
        let found = TimeBounds::of_clock(&directory).unwrap();
        let passed = KernelClock::Raw.nanoseconds() - raw_ns;
        assert!(found.between.0 >= 990 && found.between.1 <= 5_100 + passed && found.between.0 < found.between.1);
        assert_eq!(found.of.as_deref(), Some("clock 7"));
        page.publish(&ClockPageEntry { elected: true, ..entry });
        assert_eq!(TimeBounds::of_clock(&directory).unwrap().of.as_deref(), Some("clock 7, elected"));
        let _second = ClockPageWriter::create(&clock_page(&directory, "h4")).unwrap();
        assert_eq!(TimeBounds::of_clock(&directory), None, "which one?");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
