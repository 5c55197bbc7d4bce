//! The header for C reads what the Rust function reads.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use linux::clock::KernelClock;
use timekeeper::{ClockPageEntry, ClockPageWriter, ClockReader, ClockState};

const PROGRAM: &str = r#"
#include <stdio.h>
#include "hitless_clock.h"
int main(int n, char **argument) {
    const uint64_t *page = hitless_clock_open(argument[n - 1]);
    struct hitless_time t;
    if (!page) return 2;
    if (hitless_clock_read(page, &t)) return 1;
    printf("%lu %lu %lu %lu %lu %lu %lu %lu %lu\n", t.earliest, t.latest, t.state, t.depth, t.epoch, t.elected, t.handover,
           t.term, t.line);
    return 0;
}
"#;

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("hitless-c-header-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn compiled(folder: &Path) -> PathBuf {
    let (source, program) = (folder.join("read.c"), folder.join("read"));
    fs::write(&source, PROGRAM).unwrap();
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../contrib/clock");
    let mut compiler = Command::new("cc");
    compiler.args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-I"]).arg(header);
    let output = compiler.arg(&source).arg("-o").arg(&program).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

#[test]
fn a_program_in_c_reads_the_same_time_and_no_time_where_there_is_none() {
    if !testkit::installed("cc") {
        return;
    }
    let folder = folder("time");
    let (program, page) = (compiled(&folder), folder.join("host7.page"));
    let run = || Command::new(&program).arg(&page).output().unwrap();
    let mut writer = ClockPageWriter::create(&page).unwrap();
    assert_eq!(run().status.code(), Some(1), "the clock does not know the time yet");
    let (raw_ns, boot_ns) = (KernelClock::Raw.nanoseconds(), KernelClock::Boot.nanoseconds());
    for (oscillator_q32, slept) in [(0, 0), (429_496, 0), (-429_496, 0), (0, 5_000_000_000)] {
        // Suspended for five seconds is what it looks like if the page says that it was that much earlier by one clock.
        let entry = ClockPageEntry {
            raw_ns: raw_ns - 60_000_000_000,
            boot_ns: boot_ns - 60_000_000_000 - slept,
            earliest_ns: 1_800_000_000_000_000_000,
            latest_ns: 1_800_000_000_000_004_000,
            drift_q32: 859_166,
            oscillator_q32,
            state: ClockState::Turned,
            depth: 3,
            epoch: 17,
            elected: true,
            handover_ns: 250,
            heard_ns: raw_ns,
            term: 5 << 32 | 9,
            line: 11,
        };
        writer.publish(&entry);
        let reader = ClockReader::open(&page).unwrap();
        let before = reader.read().unwrap();
        let output = run();
        let after = reader.read().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let read: Vec<u64> = text.split_whitespace().map(|word| word.parse().unwrap()).collect();
        let [earliest, latest, rest @ ..] = &read[..] else { panic!("{text}") };
        assert!((before.earliest_ns..=after.earliest_ns).contains(earliest), "{before:?} {text} {after:?}");
        assert!((before.latest_ns..=after.latest_ns).contains(latest), "{before:?} {text} {after:?}");
        assert_eq!(rest, [ClockState::Turned as u64, 3, 17, 1, 250, 5 << 32 | 9, 11]);
    }
    fs::remove_dir_all(&folder).unwrap();
}

fn following(raw_ns: u64, boot_ns: u64) -> ClockPageEntry {
    ClockPageEntry { raw_ns, boot_ns, latest_ns: 9, state: ClockState::Following, ..ClockPageEntry::default() }
}

#[test]
fn a_program_in_c_has_no_time_of_other_clocks_than_its_machines() {
    if !testkit::installed("cc") {
        return;
    }
    let folder = folder("other");
    let (program, page) = (compiled(&folder), folder.join("host7.page"));
    let run = |page: &Path| Command::new(&program).arg(page).status().unwrap().code();
    let mut writer = ClockPageWriter::create(&page).unwrap();
    let (raw_ns, boot_ns) = (KernelClock::Raw.nanoseconds(), KernelClock::Boot.nanoseconds());
    let hour = 3_600_000_000_000;
    for (raw_ahead, boot_ahead, expected) in [(0, 0, 0), (hour, 0, 1), (0, hour, 1)] {
        writer.publish(&following(raw_ns + raw_ahead, boot_ns + boot_ahead));
        assert_eq!(run(&page), Some(expected), "{raw_ahead} {boot_ahead}");
    }
    writer.publish(&following(raw_ns, boot_ns));
    // Magic, version, boot, time namespace: each as of another page.
    let good = fs::read(&page).unwrap();
    let copy = folder.join("copy.page");
    for (word, expected) in [(5, 0), (0, 2), (1, 2), (3, 2), (4, 2)] {
        let mut other = good.clone();
        other[8 * word] ^= 1;
        fs::write(&copy, other).unwrap();
        assert_eq!(run(&copy), Some(expected), "word {word}");
    }
    fs::write(&copy, &good[..4_095]).unwrap();
    assert_eq!(run(&copy), Some(2));
    let ahead = ["--user", "--map-root-user", "--time", "--fork", "--monotonic", "3600", "--boottime", "3600"];
    let unshared = |command: &Path| Command::new("unshare").args(ahead).arg(command).arg(&page).status().unwrap();
    if let Some(reason) = testkit::missing("unshare") {
        testkit::skip_part(reason);
    } else if unshared(Path::new("true")).success() {
        assert_eq!(unshared(&program).code(), Some(2), "an hour ahead");
    } else {
        testkit::skip_part("time namespaces are not allowed here");
    }
    fs::remove_dir_all(&folder).unwrap();
}
