//! Connections over networks of chance are replayed segment by segment.

use std::collections::BTreeMap;

use deter::{
    ConnectionLog, LogLevel, LogSide, ReplayObserver, ReplayResult, ReplayedFrame, Sent, record_trial, replay,
};
use tcp::TcpNote;
use units::Time;
use wire::ip::Ecn;

/// Counts of what happened.
#[derive(Default)]
struct Tally(BTreeMap<String, u64>);

impl Tally {
    fn count(&mut self, what: &str) {
        *self.0.entry(what.to_owned()).or_default() += 1;
    }
}

impl ReplayObserver for Tally {
    fn sent(&mut self, frame: ReplayedFrame) {
        match frame.sent {
            Sent::Handshake(_) => self.count("handshake"),
            Sent::Segment(segment) => {
                self.count(if segment.sack.is_empty() { "segment" } else { "SACK" });
                self.count(if segment.ece { "echo of a mark" } else { "segment" });
                self.count(if segment.ecn == Ecn::Capable { "may be marked" } else { "segment" });
                self.count(if segment.flags.has(tcp::SegmentFlags::FIN) { "FIN" } else { "segment" });
            }
        }
    }

    fn note(&mut self, _side: LogSide, _now: Time, note: TcpNote) {
        match note {
            TcpNote::Retransmitted { cause, .. } => self.count(&format!("{cause:?}")),
            TcpNote::Undone => self.count("undone"),
            TcpNote::Reduced { .. } => self.count("reduced"),
            _ => {}
        }
    }
}

fn replayed(log: &[u8]) -> ReplayResult {
    let log = ConnectionLog::read(log).unwrap_or_else(|error| panic!("{error}"));
    replay(&log, &mut ()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_connection_is_replayed_exactly() {
    let mut segments = 0;
    for seed in 0..2_000 {
        let result = replayed(&record_trial(seed, LogLevel::Times).unwrap());
        assert!(result.is_exact(), "seed {seed}: {:?}", result.difference);
        segments += result.segments;
    }
    assert!(segments > 100_000, "{segments}");
}

#[test]
fn trials_meet_all_that_a_network_may_do() {
    let mut tally = Tally::default();
    for seed in 0..500 {
        let log = record_trial(seed, LogLevel::Times).unwrap();
        replay(&ConnectionLog::read(&log).unwrap(), &mut tally).unwrap();
    }
    let expected = [
        "handshake",
        "SACK",
        "echo of a mark",
        "may be marked",
        "FIN",
        "Sack",
        "Probe",
        "Timeout",
        "undone",
        "reduced",
    ];
    for what in expected {
        assert!(tally.0.get(what).is_some_and(|times| *times >= 20), "{what}: {:?}", tally.0);
    }
}

#[test]
fn a_flipped_bit_is_found_wherever_it_is() {
    let log = record_trial(3, LogLevel::Times).unwrap();
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
    let log = record_trial(3, LogLevel::Times).unwrap();
    for len in 0..log.len() {
        let error = ConnectionLog::read(&log[..len]).unwrap_err();
        assert!(error.at <= len, "{error}");
    }
}
