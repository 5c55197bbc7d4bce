//! Why a replay with the same socket calls brings the rare flow back more often than it should: what the long flows are doing when the
//! short one starts, and how often other runs have the problem.

use report::claim::{ClaimError, MeasuredValue};
use report::runner::{ComputedValues, Effort};
use sim::net::queue_replay::{PacketFate, QueueRecording};
use units::{Span, Time};

use super::{REPLAYS, ShortFlow, first_seed, replay_setup, reproduces, short_flow};

/// A long flow that has sent nothing for this long waits for a timer: a round trip through a full queue takes 0.3 ms.
const SILENCE: Span = Span::from_ms(1);
/// Drops further apart are two episodes.
const EPISODES_APART: Span = Span::from_ms(1);
/// Deviations at which other seeds are run.
const OTHERS: [u64; 2] = [1, 1_000];

/// The long flows when the short one starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LongFlows {
    /// A bit for each that waits for a timer.
    pub silent: u32,
    /// Times at which the switch had dropped something until then.
    pub episodes: u32,
}

impl LongFlows {
    /// The short flow's connection is the last one.
    pub(super) fn at(recording: &QueueRecording, start: Time) -> Self {
        let long = &recording.connections[..recording.connections.len().saturating_sub(1)];
        let mut silent = 0;
        for (number, connection) in long.iter().enumerate() {
            let last = connection.packets[0].iter().map(|packet| packet.at).take_while(|at| *at < start).last();
            let is_silent = last.is_none_or(|last| start.since(last) > SILENCE);
            silent |= u32::from(is_silent) << number;
        }
        let lost = recording.packets().filter(|(.., packet)| matches!(packet.fate, PacketFate::Dropped(_)));
        let mut drops: Vec<Time> = lost.map(|(.., packet)| packet.at).filter(|at| *at < start).collect();
        drops.sort_unstable();
        let episodes = drops.chunk_by(|one, next| next.since(*one) <= EPISODES_APART).count() as u32;
        Self { silent, episodes }
    }
}

/// The state of the run; the number of its replays with 1 ns that have that state, and of each kind those with the problem.
pub(super) fn of_replays(run: &ShortFlow, replays: &[ShortFlow], computed: &mut ComputedValues) {
    computed.value("silent", MeasuredValue::exact(f64::from(run.long.silent.count_ones()), 1));
    computed.value("episodes", MeasuredValue::exact(f64::from(run.long.episodes), 1));
    let (alike, unlike): (Vec<&ShortFlow>, _) =
        replays.iter().partition(|replay| replay.long.silent == run.long.silent);
    let share = |some: usize, of: usize| MeasuredValue::share(some as u64, of as u64);
    computed.value("alike.1ns", share(alike.len(), replays.len()));
    for (name, some) in [("alike.1ns.calls", alike), ("unlike.1ns.calls", unlike)] {
        let same = some.iter().filter(|replay| reproduces(replay, run)).count();
        computed.value(name, share(same, some.len()));
    }
}

/// Counts the runs that have the problem if hosts vary, among the first seeds but that of the run. False if it was stopped
/// early.
pub(super) fn of_others(seed: u64, effort: &Effort<'_>, computed: &mut ComputedValues) -> Result<bool, ClaimError> {
    let first = first_seed(effort);
    let others: Vec<u64> = (first..).filter(|other| *other != seed).take(REPLAYS as usize).collect();
    for ns in OTHERS {
        let results = parallel::map(&others, effort.jobs, |other| short_flow(&replay_setup(*other, ns, 0)?, effort));
        let flows: Option<Vec<ShortFlow>> = results.into_iter().collect::<Result<_, ClaimError>>()?;
        let Some(flows) = flows else { return Ok(false) };
        let hit = flows.iter().filter(|flow| flow.correlated).count();
        computed.value(format!("others.{ns}ns"), MeasuredValue::share(hit as u64, REPLAYS));
    }
    Ok(true)
}
