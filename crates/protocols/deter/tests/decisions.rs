//! Without the times of calls, what time decided is enough: no clock changes a segment.

use deter::{
    ConnectionLog, LogLevel, ReplayJitter, ReplayObserver, ReplayResult, ReplayedFrame, Sent, record_trial, replay,
    replay_jittered,
};
use tcp::{TcpSegment, TcpSite, TcpTick};
use units::{Span, Time};

fn recorded(seed: u64) -> Option<Vec<u8>> {
    record_trial(seed, LogLevel::Decisions)
}

fn jittered(log: &[u8], jitter: ReplayJitter) -> ReplayResult {
    let log = ConnectionLog::read(log).unwrap_or_else(|error| panic!("{error}"));
    replay_jittered(&log, jitter, &mut ()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_connection_is_replayed_exactly() {
    let mut connections = 0;
    for seed in 0..2_000 {
        let Some(log) = recorded(seed) else { continue };
        let result = jittered(&log, ReplayJitter::default());
        assert!(result.is_exact(), "seed {seed}: {:?}", result.difference);
        connections += 1;
    }
    assert!(connections > 1_000, "{connections}");
}

/// Finds any decision of time that is not recorded.
#[test]
fn no_clock_changes_a_segment() {
    for seed in 0..1_500 {
        let Some(log) = recorded(seed) else { continue };
        for clock in 0..3 {
            let result = jittered(&log, ReplayJitter { seed: Some(seed << 8 | clock), ..ReplayJitter::default() });
            assert!(result.is_exact(), "seed {seed}, clock {clock}: {:?}", result.difference);
        }
    }
}

/// Sites that trials never reach: a window that retreats to nothing while segments are in flight (our receivers do not take
/// a window back), and a first round trip that only a timestamp from the future could have measured.
const OUT_OF_REACH: [TcpSite; 2] = [TcpSite::PeerAnswers, TcpSite::FutureEcho];

/// The property above can fail: each site, forgotten, makes a difference to some connection.
#[test]
fn every_site_is_needed() {
    let mut sites: Vec<TcpSite> = TcpSite::ALL.into();
    sites.retain(|site| !OUT_OF_REACH.contains(site));
    let mut ticks: Vec<TcpTick> = TcpTick::ALL.into();
    for seed in 0..6_000 {
        if sites.is_empty() && ticks.is_empty() {
            return;
        }
        let Some(log) = recorded(seed) else { continue };
        let log = ConnectionLog::read(&log).unwrap();
        let differs = |jitter| replay_jittered(&log, jitter, &mut ()).map_or(true, |result| !result.is_exact());
        let jitter = ReplayJitter { seed: Some(seed), ..ReplayJitter::default() };
        sites.retain(|site| !differs(ReplayJitter { forgotten: Some(*site), ..jitter }));
        ticks.retain(|tick| !differs(ReplayJitter { forgotten_tick: Some(*tick), ..jitter }));
    }
    assert!(sites.is_empty() && ticks.is_empty(), "never decide: {sites:?}, {ticks:?}");
}

#[derive(Default)]
struct Frames(Vec<(Sent, Time)>);

impl ReplayObserver for Frames {
    fn sent(&mut self, frame: ReplayedFrame) {
        let sent = match frame.sent {
            Sent::Segment(segment) => Sent::Segment(TcpSegment { timestamp: 0, echo: 0, ..segment }),
            handshake => handshake,
        };
        self.0.push((sent, frame.at));
    }
}

fn frames(log: &[u8]) -> Vec<(Sent, Time)> {
    let mut frames = Frames::default();
    replay(&ConnectionLog::read(log).unwrap(), &mut frames).unwrap();
    frames.0
}

#[test]
fn both_levels_have_the_same_segments_at_about_the_same_times() {
    for seed in 0..300 {
        let Some(log) = recorded(seed) else { continue };
        let times = record_trial(seed, LogLevel::Times).unwrap();
        let (mut exact, mut sampled) = (frames(&times), frames(&log));
        assert_eq!(exact.len(), sampled.len(), "seed {seed}");
        // Both ends' frames are joined by causality, which is not the order of time.
        let in_order = |frames: &mut Vec<(Sent, Time)>| frames.sort_by_key(|(sent, _)| format!("{sent:?}"));
        in_order(&mut exact);
        in_order(&mut sampled);
        for ((one, at), (other, about)) in exact.into_iter().zip(sampled) {
            assert_eq!(one, other, "seed {seed}");
            let off = at.since(about).max(about.since(at));
            assert!(off <= Span::from_us(5), "seed {seed}: {off} off at {at:?}");
        }
    }
}
