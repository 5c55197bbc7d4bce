//! The page: readers never see half of a writing, and what they compute grows.

use std::path::PathBuf;

use super::*;

const PPM_200: u64 = 858_994;

fn path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("hitless-page-{name}-{}", std::process::id()))
}

fn entry(number: u64) -> ClockPageEntry {
    ClockPageEntry {
        raw_ns: number,
        boot_ns: number,
        earliest_ns: 10 * number,
        latest_ns: 10 * number + 7,
        drift_q32: PPM_200,
        oscillator_q32: -(number as i64),
        state: ClockState::Following,
        depth: number,
        epoch: number,
        elected: number % 2 == 1,
        handover_ns: number,
        heard_ns: number,
        term: number,
        line: number,
    }
}

#[test]
fn a_reader_sees_all_of_a_writing_or_nothing_of_it() {
    let path = path("torn");
    let mut writer = ClockPageWriter::create(&path).unwrap();
    let reader = ClockReader::open(&path).unwrap();
    assert_eq!(reader.read(), Err(ReadingError::Unsynchronized));
    writer.publish(&entry(1));
    const LAST: u64 = 200_000;
    std::thread::scope(|scope| {
        scope.spawn(|| (2..=LAST).for_each(|number| writer.publish(&entry(number))));
        let mut last = 0;
        while last < LAST {
            let read = reader.entry().unwrap();
            assert_eq!(read, entry(read.raw_ns));
            assert!(read.raw_ns >= last);
            last = read.raw_ns;
        }
    });
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn without_its_daemon_the_interval_grows_by_the_drift_bound_on_both_sides() {
    let start = ClockPageEntry { earliest_ns: 1_000_000, latest_ns: 1_000_010, ..ClockPageEntry::default() };
    let start = ClockPageEntry { drift_q32: PPM_200, raw_ns: 5, boot_ns: 5, ..start };
    assert_eq!(start.at(5, 5).unwrap().eps_ns(), 7);
    let day = 86_400_000_000_000;
    let later = start.at(5 + day, 5 + day).unwrap();
    let grown = (day / 1_000_000 * 200) as i64;
    assert!((later.eps_ns() as i64 - 5 - grown).abs() < day as i64 / 1_000_000_000, "{later:?}");
    assert_eq!(later.earliest_ns + later.latest_ns, 2_000_010 + 2 * day);
}

#[test]
fn a_page_that_is_ahead_of_this_machines_clocks_gives_no_time() {
    let path = path("ahead");
    let mut writer = ClockPageWriter::create(&path).unwrap();
    let reader = ClockReader::open(&path).unwrap();
    let hour = 3_600_000_000_000;
    let [raw_ns, boot_ns] = [KernelClock::Raw, KernelClock::Boot].map(KernelClock::nanoseconds);
    for (raw_ahead, boot_ahead) in [(hour, 0), (0, hour), (hour, hour)] {
        let written = ClockPageEntry { raw_ns: raw_ns + raw_ahead, boot_ns: boot_ns + boot_ahead, ..entry(9) };
        writer.publish(&written);
        assert_eq!(reader.read(), Err(ReadingError::Ahead));
        assert_eq!(written.at(written.raw_ns, written.boot_ns).map(|reading| reading.depth), Ok(9));
    }
    writer.publish(&ClockPageEntry { raw_ns, boot_ns, ..entry(9) });
    assert!(reader.read().is_ok());
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_page_from_before_a_reboot_or_of_another_time_namespace_is_not_opened() {
    let path = path("elsewhere");
    for (at, expected) in [(BOOT_AT, "before a reboot"), (TIME_NAMESPACE_AT, "another time namespace")] {
        let writer = ClockPageWriter::create(&path).unwrap();
        let reader = ClockReader::open(&path).unwrap();
        writer.page.store(at, 1, Ordering::Release);
        let refused = ClockReader::open(&path).unwrap_err().to_string();
        assert!(refused.contains(expected), "{refused}");
        drop(writer);
        // The next daemon does not write where others read by another origin: they keep what they have.
        let mut writer = ClockPageWriter::create(&path).unwrap();
        writer.publish(&entry(3));
        assert_eq!(ClockReader::open(&path).unwrap().entry(), Ok(entry(3)));
        assert_eq!(reader.read(), Err(ReadingError::Unsynchronized));
    }
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_file_that_is_no_page_is_refused_and_stays_as_it_is() {
    let path = path("victim");
    let (long, short) = (vec![b'x'; 9_000], b"precious".to_vec());
    for content in [long, short, vec![0; 4_096], Vec::new()] {
        std::fs::write(&path, &content).unwrap();
        let refused = ClockPageWriter::create(&path).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{refused}");
        assert_eq!(std::fs::read(&path).unwrap(), content);
    }
    std::fs::remove_file(&path).unwrap();
    assert_eq!(ClockPageWriter::create(&std::env::temp_dir()).unwrap_err().kind(), io::ErrorKind::InvalidInput);
}

#[test]
fn two_clocks_do_not_write_on_one_page_and_only_its_own_is_removed() {
    let path = path("shared");
    let writer = ClockPageWriter::create(&path).unwrap();
    let refused = ClockPageWriter::create(&path).unwrap_err();
    assert!(refused.kind() == io::ErrorKind::WouldBlock && refused.to_string().contains("another clock"), "{refused}");
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "of somebody else").unwrap();
    writer.remove(&path);
    assert!(path.exists());
    std::fs::remove_file(&path).unwrap();
    ClockPageWriter::create(&path).unwrap().remove(&path);
    assert!(!path.exists());
}

#[test]
fn time_that_a_suspended_machine_missed_is_added_to_the_late_end() {
    let entry = entry(1_000_000_000);
    let at = |raw_ns, boot_ns| entry.at(raw_ns, boot_ns).unwrap();
    let (awake, slept) = (at(1_000_001_000, 1_000_001_000), at(1_000_001_000, 3_000_001_000));
    assert_eq!(slept.earliest_ns, awake.earliest_ns);
    assert_eq!(slept.latest_ns, awake.latest_ns + 2_000_000_000);
}

#[test]
fn an_oscillator_that_runs_at_another_rate_is_followed() {
    let slow = ClockPageEntry { oscillator_q32: -(PPM_200 as i64 / 2), ..ClockPageEntry::default() };
    let reading = slow.at(1_000_000_000, 1_000_000_000).unwrap();
    assert!((999_899_990..=999_900_010).contains(&reading.earliest_ns), "{reading:?}");
}

#[test]
fn what_is_no_page_of_a_clock_is_refused() {
    let path = path("foreign");
    std::fs::write(&path, vec![0; 4_096]).unwrap();
    assert_eq!(ClockReader::open(&path).unwrap_err().to_string(), "not the page of a clock");
    std::fs::remove_file(&path).unwrap();
    let mut writer = ClockPageWriter::create(&path).unwrap();
    let reader = ClockReader::open(&path).unwrap();
    writer.publish(&entry(3));
    writer.page.store(slot_at(writer.serial) + 6, 99, Ordering::Release);
    assert_eq!(reader.read(), Err(ReadingError::Damaged));
    for version in [1, 9] {
        writer.page.store(VERSION_AT, version, Ordering::Release);
        let refused = ClockReader::open(&path).unwrap_err().to_string();
        assert_eq!(refused, format!("a clock's page of version {version}; this program reads version 2"));
    }
    drop(writer);
    drop(ClockPageWriter::create(&path).unwrap());
    assert!(ClockReader::open(&path).is_ok(), "a page of another version is replaced");
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_daemon_that_starts_again_goes_on_with_the_page_of_its_readers() {
    let path = path("again");
    let mut writer = ClockPageWriter::create(&path).unwrap();
    let reader = ClockReader::open(&path).unwrap();
    writer.publish(&entry(4));
    drop(writer);
    assert_eq!(reader.entry(), Ok(entry(4)));
    let mut writer = ClockPageWriter::create(&path).unwrap();
    assert_eq!(reader.read(), Err(ReadingError::Unsynchronized));
    writer.publish(&entry(5));
    assert_eq!(reader.entry(), Ok(entry(5)));
    std::fs::remove_file(&path).unwrap();
}
