//! Fault files with words and lines changed at random: they are read, or refused, and a schedule that was read runs.

use faults::{FaultFile, FaultSchedule};
use testkit::{changed_text, fuzz_changes};
use units::{Span, Time};

const SAMPLES: [&str; 2] = [
    r#"[[forward]]
at = "0s"
loss = "1e-3"

[[forward]]
at = "10ms"
loss = "1e-2"
burst = 4.0

[[reverse]]
bit_errors = "1e-9"
"#,
    r#"[[forward]]
frames = [3, 4, 18]
[[forward]]
at = "1us"
every = 7
[[reverse]]
loss = 0.25
"#,
];

/// Frames before, at and after every change, one by one and many at once.
fn run(schedule: &FaultSchedule) {
    let mut running = schedule.run(1, 2);
    let mut now = Time::ZERO;
    for _ in 0..4 {
        let process = running.at(now);
        for len in [0, 1_538, u32::MAX] {
            process.corrupts(len);
            let clear = process.clear(len);
            process.pass(clear.min(1_000), len);
        }
        let next = running.next_change();
        now = if next < Time::NEVER { next } else { now + Span::from_us(1) };
    }
    for (_, model) in schedule.steps() {
        let loss = model.mean_loss(1_538);
        assert!((0.0..=1.0).contains(&loss), "{model:?}: {loss}");
    }
}

#[test]
fn any_fault_file_is_read_and_run_without_a_panic() {
    let mut read = 0;
    fuzz_changes(
        40_000,
        |random| changed_text(random, &SAMPLES),
        |bytes| {
            if let Ok(file) = FaultFile::parse(&String::from_utf8_lossy(bytes)) {
                [file.forward, file.reverse].iter().for_each(run);
                read += 1;
            }
        },
    );
    assert!(read > 0, "some can still be read");
}
