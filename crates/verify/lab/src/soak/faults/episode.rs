//! Episodes: an act is cut at quiet moments, so that what is lost can be held against the one fault that came in between.

use std::time::Duration;

use super::actions::FaultTargets;
use super::ledger::{self, AccountCounts, EndCounters, Episode, EpisodeResult, TimeInterval};
use super::outcome::InflictedFault;
use super::{FaultReport, Supervisor, side};
use linux::clock::Clock;

/// Time to wait for a status that is up to date.
const FRESH: Duration = Duration::from_secs(2);

/// Record of an act.
#[derive(Default)]
pub(super) struct ActRecord {
    /// The first and the last are quiet.
    pub episodes: Vec<Episode>,
    /// Fault in each episode.
    pub faults: Vec<Option<InflictedFault>>,
    /// Counters that rose in each, at both ends.
    pub rose: Vec<[EndCounters; 2]>,
    pub problems: Vec<String>,
}

/// An episode that goes on.
pub(super) struct OpenEpisode {
    from: Duration,
    counters: [EndCounters; 2],
    starts: u64,
}

impl OpenEpisode {
    /// Begins with the act; the counters before the first datagram were next to nothing.
    pub(super) fn first(bench: &FaultTargets<'_>) -> Self {
        Self { counters: Default::default(), ..Self::new(bench, Duration::ZERO) }
    }

    fn new(bench: &FaultTargets<'_>, from: Duration) -> Self {
        Self { from, counters: counters(bench), starts: starts(bench) }
    }

    /// Ends it at a quiet moment; the next begins there.
    pub(super) fn close(
        self,
        bench: &FaultTargets<'_>,
        story: &mut ActRecord,
        fault: Option<InflictedFault>,
        mut allowed: Vec<TimeInterval>,
    ) -> Self {
        let now = bench.clock.elapsed();
        // The counters of now, not of a moment ago; without an answer, the last that are known.
        let clock = Clock::start();
        while !bench.ends.iter().all(|daemon| daemon.status_since(now).is_some()) && clock.elapsed() < FRESH {
            std::thread::sleep(Duration::from_millis(5));
        }
        let next = Self::new(bench, now);
        let counted = [0, 1].map(|sender| AccountCounts::between(&self.counters, &next.counters, sender));
        allowed.extend(bench.ends.iter().flat_map(Supervisor::take_outages));
        let allowed = allowed.into_iter().map(TimeInterval::widened).collect();
        let restarts = next.starts - self.starts;
        story.problems.extend(bench.ends.iter().flat_map(Supervisor::take_problems));
        story.rose.push([0, 1].map(|end| ledger::risen(&self.counters[end], &next.counters[end])));
        story.episodes.push(Episode { from: self.from, allowed, restarts, counted });
        story.faults.push(fault);
        next
    }
}

fn counters(bench: &FaultTargets<'_>) -> [EndCounters; 2] {
    [bench.ends[0].counters(), bench.ends[1].counters()]
}

fn starts(bench: &FaultTargets<'_>) -> u64 {
    bench.ends.iter().map(Supervisor::starts).sum()
}

/// Problems of an episode, with the counters that may help to find out why.
pub(super) fn unclean(
    fault: Option<(usize, &FaultReport)>,
    settled: &EpisodeResult,
    rose: &[EndCounters; 2],
) -> String {
    let name = fault.map_or("while nothing happened".to_owned(), |(number, fault)| {
        let key = if fault.keyed { ", with a key" } else { "" };
        format!("fault {number}, {} on the {}{key}, at {:.1} s", fault.kind, fault.end, fault.at_s)
    });
    let EpisodeResult { lost, unaccounted, duplicated, reordered, .. } = settled;
    let odd = settled.first_odd.map_or(String::new(), |odd| {
        let (from, number, ms) = (side(odd.sender), odd.number, |at: Duration| at.as_secs_f64() * 1e3);
        format!(
            " (the first: {number} from the {from}, sent at {:.1} ms, here at {:.1} ms)",
            ms(odd.sent),
            ms(odd.arrived)
        )
    });
    let rose = [0, 1].map(|end| {
        let list: Vec<String> = rose[end].iter().map(|(name, value)| format!("{name} {value}")).collect();
        format!("{}: {}", side(end), list.join(", "))
    });
    format!(
        "{name}: {unaccounted} of {lost} lost datagrams unaccounted for, {duplicated} duplicated, {reordered} reordered{odd}; \
         counters that rose on the {}; on the {}",
        rose[0], rose[1]
    )
}
