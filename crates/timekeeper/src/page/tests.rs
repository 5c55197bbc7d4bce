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
    assert_eq!(start.at(5, 5).eps_ns(), 7);
    let day = 86_400_000_000_000;
    let later = start.at(5 + day, 5 + day);
    let grown = (day / 1_000_000 * 200) as i64;
    assert!((later.eps_ns() as i64 - 5 - grown).abs() < day as i64 / 1_000_000_000, "{later:?}");
    assert_eq!(later.earliest_ns + later.latest_ns, 2_000_010 + 2 * day);
    // A clock that stood before the page was written, as after a mistake, gives no negative time.
    assert_eq!(start.at(0, 0), start.at(5, 5));
}

#[test]
fn time_that_a_suspended_machine_missed_is_added_to_the_late_end() {
    let entry = entry(1_000_000_000);
    let (awake, slept) = (entry.at(1_000_001_000, 1_000_001_000), entry.at(1_000_001_000, 3_000_001_000));
    assert_eq!(slept.earliest_ns, awake.earliest_ns);
    assert_eq!(slept.latest_ns, awake.latest_ns + 2_000_000_000);
}

#[test]
fn an_oscillator_that_runs_at_another_rate_is_followed() {
    let slow = ClockPageEntry { oscillator_q32: -(PPM_200 as i64 / 2), ..ClockPageEntry::default() };
    let reading = slow.at(1_000_000_000, 1_000_000_000);
    assert!((999_899_990..=999_900_010).contains(&reading.earliest_ns), "{reading:?}");
}

#[test]
fn what_is_no_page_of_a_clock_is_refused() {
    let path = path("foreign");
    std::fs::write(&path, vec![0; 4_096]).unwrap();
    assert_eq!(ClockReader::open(&path).unwrap_err().to_string(), "not the page of a clock");
    let mut writer = ClockPageWriter::create(&path).unwrap();
    let reader = ClockReader::open(&path).unwrap();
    writer.publish(&entry(3));
    writer.page.store(slot_at(writer.serial) + 6, 99, Ordering::Release);
    assert_eq!(reader.read(), Err(ReadingError::Damaged));
    writer.page.store(VERSION_AT, 9, Ordering::Release);
    assert!(ClockReader::open(&path).unwrap_err().to_string().contains("version 9"));
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
