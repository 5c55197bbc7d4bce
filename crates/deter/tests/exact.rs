//! Connections over networks of chance are replayed segment by segment.

use deter::{ConnectionLog, RecordLevel, ReplayResult, record_trial, replay};

fn replayed(log: &[u8]) -> ReplayResult {
    let log = ConnectionLog::read(log).unwrap_or_else(|error| panic!("{error}"));
    replay(&log, &mut ()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_connection_is_replayed_exactly_by_its_times() {
    let mut segments = 0;
    for seed in 0..2_000 {
        let result = replayed(&record_trial(RecordLevel::Times, seed));
        assert!(result.is_exact(), "seed {seed}: {:?}", result.difference);
        segments += result.segments;
    }
    assert!(segments > 100_000, "{segments}");
}

#[test]
fn a_flipped_bit_is_found_wherever_it_is() {
    let log = record_trial(RecordLevel::Times, 3);
    assert!(log.len() < 40_000, "{}", log.len());
    for at in 0..log.len() {
        for bit in 0..8 {
            let mut flipped = log.clone();
            flipped[at] ^= 1 << bit;
            assert!(ConnectionLog::read(&flipped).is_err(), "byte {at}, bit {bit}");
        }
    }
}

#[test]
fn a_log_cut_short_says_where() {
    let log = record_trial(RecordLevel::Times, 3);
    for len in 0..log.len() {
        let error = ConnectionLog::read(&log[..len]).unwrap_err();
        assert!(error.at <= len, "{error}");
    }
}
