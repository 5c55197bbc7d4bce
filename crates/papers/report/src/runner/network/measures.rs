//! Measures of a network's run.
//!
//! A measure is named as in `fct.p99.9`, `goodput 0.4..0.6` or `tx.peak`. Two numbers behind a name are a window: fractions
//! of the run's length; `slowdown<3KB.p99` is that of flows of less than 3 KB. Counts come with the interval in which their
//! mean lies.

use units::Span;

use super::racks::{RackTotals, of_racks};
use super::statistics::{SizedStatistic, Statistic, mean};
use super::totals::{NetworkRun, RunCounts, SampledMoment, SizedFlow};
use crate::claim::measure::{Measure, names};
use crate::claim::{ClaimError, MeasuredValue};

/// Function that takes a measure, and the suffixes that its name may have.
#[derive(Clone, Copy, Debug)]
pub enum NetworkTake {
    /// `.mean`, `.deviation`, `.max` or `.pNN` of sorted values; with a size such as `<3KB` before it, of what these flows have.
    Statistic(fn(&NetworkRun) -> &[f64], fn(&SizedFlow) -> f64),
    /// `.max` or `.pNN` of what a run keeps as a distribution.
    Distribution(fn(&NetworkRun, f64) -> Option<MeasuredValue>),
    /// Over a window such as `0.2..0.8`, or the whole run.
    Window(fn(&[SampledMoment]) -> Option<MeasuredValue>),
    Counts(fn(&RunCounts) -> Option<MeasuredValue>),
    Run(fn(&NetworkRun) -> Option<MeasuredValue>),
    /// Measure of racks, where hosts reserve.
    Rack(fn(&RackTotals) -> f64),
}

use NetworkTake::{Counts, Distribution, Rack, Run, Statistic as Values, Window as Within};

pub const MEASURES: &[Measure<NetworkTake>] = &[
    Measure::new("fct", "µs", "flow completion time", Values(|run| &run.fct, |flow| flow.fct)),
    Measure::new(
        "slowdown",
        "1",
        "flow completion time by that of the flow alone",
        Values(|run| &run.slowdown, |flow| flow.slowdown),
    ),
    Measure::new("queues", "KB", "queues of the ports watched, or of all, weighted by time", Distribution(queues)),
    Measure::new("queues.mean", "KB", "their mean over time", Run(mean_queue)),
    Measure::new("rtt", "µs", "round trips of data packets, queues included", Distribution(round_trips)),
    Measure::new("goodput", "Gb/s", "payload received in order, of all traffic", Within(goodput)),
    Measure::new("packets", "Gb/s", "the same with the headers of full packets", Within(packets)),
    Measure::new("port", "Gb/s", "sent by the first port watched, preambles and gaps included", Within(port)),
    Measure::new("queue.max", "KB", "highest sample, first port watched", Within(|seen| highest(seen, |at| at.queue))),
    Measure::new("tx.max", "KB", "the same of its send buffer", Within(|seen| highest(seen, |at| at.tx_buffer))),
    Measure::new("rx.max", "KB", "the same of its reorder buffer", Within(|seen| highest(seen, |at| at.rx_buffer))),
    Measure::new("retransmissions", "1/s", "segments sent again", Within(retransmissions)),
    Measure::new("drops", "packets", "dropped at the first port watched", Within(drops)),
    Measure::new("goodput.flows", "Gb/s", "completed payload, from first start to last finish", Run(flow_goodput)),
    Measure::new("duration", "ms", "from first start to last finish of completed flows, a run's mean", Run(duration)),
    Measure::new("complete", "flows", "that came to their end", Run(complete)),
    Measure::new("tx.peak", "KB", "highest level ever of a send buffer", Counts(|run| peak(run.tx_peak, run))),
    Measure::new("rx.peak", "KB", "highest level ever of a reorder buffer", Counts(|run| peak(run.rx_peak, run))),
    Measure::new("overflows", "frames", "that found the reorder buffer full", Counts(|run| frames(run.overflows, run))),
    Measure::new("given_up", "frames", "not waited for any longer", Counts(|run| frames(run.given_up, run))),
    Measure::new(
        "touched",
        "1",
        "share of flows that noticed a loss",
        Counts(|run| MeasuredValue::share(run.touched, run.flows)),
    ),
    Measure::new("timeouts", "1", "timeouts per 100,000 flows", Counts(|run| counted(run.timeouts, run.flows, 1e5))),
    Measure::new("hit", "1", "share of flows that waited for a timer", Counts(|run| counted(run.hit, run.flows, 1.0))),
    Measure::new(
        "retransmitted",
        "packets",
        "sent again, per flow",
        Counts(|run| counted(run.retransmitted, run.flows, 1.0)),
    ),
    Measure::new(
        "retransmitted.all",
        "packets",
        "the same of all flows, a run's mean",
        Counts(|run| counted(run.retransmitted, run.seeds, 1.0)),
    ),
    Measure::new(
        "out_of_order",
        "1",
        "share of packets placed before an earlier one",
        Counts(|run| MeasuredValue::share(run.out_of_order, run.packets)),
    ),
    Measure::new("pauses", "1", "pauses that switches sent", Run(pauses)),
    Measure::new("silenced", "1", "share of the network's capacity that pauses silenced", Run(silenced)),
    Measure::new("dropped", "packets", "by switches, all ports", Counts(dropped)),
    Measure::new("drop_share", "1", "the same, for each packet that flows had to send", Counts(drop_share)),
    Measure::new("wire", "MB", "wire time on all wires, but for what only fills idle time", Run(wire)),
    Measure::new("added", "1", "dummies and copies on their first wire, by the flows' packets", Run(added)),
    Measure::new(
        "copies",
        "1",
        "made by switches, per flow",
        Run(|run| counted(run.traffic.copies, run.counts.flows, 1.0)),
    ),
    Measure::new("wrong_copies", "packets", "of another connection than the NAK's", Run(wrong_copies)),
    Measure::new("pool.peak", "1", "share of its bits that a host took at most", Run(|run| pool(run.pool_peak, run))),
    Measure::new(
        "pool.refused",
        "packets",
        "that found no block",
        Run(|run| pool(run.counts.pool_refused as f64, run)),
    ),
    Measure::new(
        "reduced_early",
        "1",
        "share of reordered flows that reduced their window with data left",
        Counts(|run| MeasuredValue::share(run.reduced_early, run.sacked)),
    ),
    Measure::new(
        "sacked.few",
        "1",
        "share of reordered flows with at most two segments SACKed at once",
        Counts(|run| MeasuredValue::share(run.sacked_few, run.sacked)),
    ),
    Measure::new(
        "sacked.late",
        "1",
        "share of them with more, but nothing left to send",
        Counts(|run| MeasuredValue::share(run.sacked_late, run.sacked)),
    ),
    Measure::new("most_pending", "B", "most that such a flow had left", Counts(most_pending)),
    Measure::new("jain", "1", "Jain's index of the payload that came from each host", Run(jain)),
    Measure::new("rack.peak", "KB", "longest queue of data at a port where hosts reserve", Rack(|rack| kb(rack.peak))),
    Measure::new("rack.first", "KB", "the same of the run's first quarter", Rack(|rack| kb(rack.first))),
    Measure::new("rack.last", "KB", "of its last quarter", Rack(|rack| kb(rack.last))),
    Measure::new("rack.growth", "KB/ms", "from the first to the last quarter", Rack(RackTotals::growth)),
    Measure::new("rack.bound", "KB", "what a queue may be there", Rack(|rack| kb(rack.bound))),
    Measure::new("rack.violations", "packets", "that joined a longer one", Rack(|rack| rack.violations as f64)),
    Measure::new("rack.policed", "packets", "unreserved, beyond their share", Rack(|rack| rack.policed as f64)),
    Measure::new("rack.left", "µs", "for which a port is still reserved at the end", Rack(|rack| rack.reserved_left)),
    Measure::new("rack.counted", "1", "how far a counter is from zero then", Rack(|rack| rack.counted_left as f64)),
];

/// Takes a measure from a run; `None` if the run has too little of what it takes.
pub(super) type Taker = Box<dyn Fn(&NetworkRun) -> Option<MeasuredValue>>;

pub(super) fn parse(text: &str) -> Result<Taker, ClaimError> {
    if let Some(sized) = SizedStatistic::parse(text) {
        return Ok(Box::new(move |run| sized.of(&run.flows)));
    }
    let take = |name: &str| MEASURES.iter().find(|measure| measure.name == name).map(|measure| measure.take);
    let statistic = || text.split_once('.').and_then(|(name, rest)| Some((take(name)?, Statistic::parse(rest)?)));
    let window = || text.split_once(' ').and_then(|(name, rest)| Some((take(name)?, MeasureWindow::parse(rest)?)));
    match take(text) {
        Some(NetworkTake::Run(take)) => return Ok(Box::new(take)),
        Some(NetworkTake::Rack(take)) => return Ok(Box::new(move |run| of_racks(run, take))),
        Some(NetworkTake::Counts(take)) => return Ok(Box::new(move |run| take(&run.counts))),
        Some(NetworkTake::Window(take)) => return Ok(Box::new(move |run| take(MeasureWindow::ALL.of(&run.moments)))),
        Some(NetworkTake::Statistic(..) | NetworkTake::Distribution(_)) | None => {}
    }
    match (window(), statistic()) {
        (Some((NetworkTake::Window(take), window)), _) => Ok(Box::new(move |run| take(window.of(&run.moments)))),
        (_, Some((NetworkTake::Statistic(values, _), statistic))) => Ok(Box::new(move |run| statistic.of(values(run)))),
        (_, Some((NetworkTake::Distribution(take), Statistic::Quantile(share)))) => {
            Ok(Box::new(move |run| take(run, share)))
        }
        (_, Some((NetworkTake::Distribution(take), Statistic::Max))) => Ok(Box::new(move |run| take(run, 1.0))),
        _ => Err(unknown(text)),
    }
}

fn unknown(text: &str) -> ClaimError {
    let names = |wanted: fn(&NetworkTake) -> bool| names(MEASURES.iter().filter(|measure| wanted(&measure.take)));
    ClaimError::new(format_args!(
        "{text}: expected {} with .mean, .deviation, .max or .pNN behind it; {} with .max or .pNN; {}, which a window such as 0.2..0.8 may follow; or {}",
        names(|take| matches!(take, NetworkTake::Statistic(..))),
        names(|take| matches!(take, NetworkTake::Distribution(_))),
        names(|take| matches!(take, NetworkTake::Window(_))),
        names(|take| matches!(take, NetworkTake::Counts(_) | NetworkTake::Run(_) | NetworkTake::Rack(_))),
    ))
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct MeasureWindow {
    pub from: f64,
    pub to: f64,
}

/// Quantile of the queue lengths, in KB.
fn queues(run: &NetworkRun, share: f64) -> Option<MeasuredValue> {
    let bytes = if share < 1.0 { run.queues.quantile(share) } else { run.queues.max() };
    bytes.map(|bytes| MeasuredValue::exact(bytes as f64 / 1e3, run.counts.flows))
}

/// Mean queue length over time, in KB.
fn mean_queue(run: &NetworkRun) -> Option<MeasuredValue> {
    run.queues.max()?;
    let bytes: f64 = run.queues.shares().map(|(bytes, share)| bytes as f64 * share).sum();
    Some(MeasuredValue::exact(bytes / 1e3, run.counts.flows))
}

/// Quantile of the round-trip times, in µs.
fn round_trips(run: &NetworkRun, share: f64) -> Option<MeasuredValue> {
    let round_trips = run.round_trips.as_deref()?;
    if share >= 1.0 {
        return Some(MeasuredValue::exact(round_trips.max().as_us(), round_trips.len()));
    }
    let n = round_trips.len();
    let (low, high) = units::quantile_ranks(usize::try_from(n).ok()?, share);
    let at = |rank: Option<usize>| rank.and_then(|rank| round_trips.quantile(rank as f64 / n as f64));
    let interval = (at(low).map_or(0.0, Span::as_us), at(high).map_or(f64::INFINITY, Span::as_us));
    round_trips.quantile(share).map(|span| MeasuredValue::counted(span.as_us(), n, interval))
}

/// `None` without PFC.
fn pauses(run: &NetworkRun) -> Option<MeasuredValue> {
    run.pfc.map(|pfc| MeasuredValue::exact(pfc.pauses as f64, run.counts.flows))
}

fn silenced(run: &NetworkRun) -> Option<MeasuredValue> {
    run.pfc.map(|pfc| MeasuredValue::exact(pfc.silenced_share(), run.counts.flows))
}

/// Events in `per` trials, with their interval.
fn counted(count: u64, trials: u64, per: f64) -> Option<MeasuredValue> {
    let (low, high) = units::poisson(count);
    let scaled = |count: f64| count * per / trials as f64;
    (trials > 0).then(|| MeasuredValue::counted(scaled(count as f64), trials, (scaled(low), scaled(high))))
}

/// Peak in KB.
fn peak(bytes: u64, run: &RunCounts) -> Option<MeasuredValue> {
    Some(MeasuredValue::exact(bytes as f64 / 1e3, run.recovered))
}

fn frames(count: u64, run: &RunCounts) -> Option<MeasuredValue> {
    Some(MeasuredValue::exact(count as f64, run.corrupted))
}

fn dropped(run: &RunCounts) -> Option<MeasuredValue> {
    Some(MeasuredValue::exact(run.dropped as f64, run.packets))
}

/// Packets that are dropped together are not independent: there is no interval.
fn drop_share(run: &RunCounts) -> Option<MeasuredValue> {
    (run.packets > 0).then(|| MeasuredValue::exact(run.dropped as f64 / run.packets as f64, run.packets))
}

fn pool(value: f64, run: &NetworkRun) -> Option<MeasuredValue> {
    (run.counts.pools > 0).then(|| MeasuredValue::exact(value, run.counts.pools))
}

fn most_pending(run: &RunCounts) -> Option<MeasuredValue> {
    (run.sacked > 0).then(|| MeasuredValue::exact(run.most_pending as f64, run.sacked))
}

/// In MB. Over that of a run with the same flows and neither loss nor protection: one, and the cost.
fn wire(run: &NetworkRun) -> Option<MeasuredValue> {
    Some(MeasuredValue::exact(run.traffic.wire as f64 / 1e6, run.counts.flows))
}

fn wrong_copies(run: &NetworkRun) -> Option<MeasuredValue> {
    Some(MeasuredValue::exact(run.traffic.wrong as f64, run.traffic.copies))
}

fn flow_goodput(run: &NetworkRun) -> Option<MeasuredValue> {
    let gigabits = run.counts.completed_bytes as f64 * 8.0 / 1e9;
    (run.completed_seconds > 0.0).then(|| MeasuredValue::exact(gigabits / run.completed_seconds, run.fct.len() as u64))
}

fn duration(run: &NetworkRun) -> Option<MeasuredValue> {
    let runs = run.counts.seeds;
    (run.completed_seconds > 0.0).then(|| MeasuredValue::exact(run.completed_seconds * 1e3 / runs.max(1) as f64, runs))
}

fn complete(run: &NetworkRun) -> Option<MeasuredValue> {
    let complete = run.fct.iter().filter(|fct| fct.is_finite()).count();
    Some(MeasuredValue::exact(complete as f64, run.counts.flows))
}

/// Bytes added to the wire, as a share of the data. It leaves out the answers to dummies (88 B each, the other way) and the
/// packets that go-back-N repeats: `wire` over that of another run has all of it.
fn added(run: &NetworkRun) -> Option<MeasuredValue> {
    let traffic = &run.traffic;
    let share = (traffic.dummies + traffic.copied + traffic.tails) as f64 / traffic.data as f64;
    (traffic.data > 0).then(|| MeasuredValue::exact(share, run.counts.flows))
}

fn goodput(seen: &[SampledMoment]) -> Option<MeasuredValue> {
    mean(seen, |moment| moment.goodput_gbps)
}

fn packets(seen: &[SampledMoment]) -> Option<MeasuredValue> {
    mean(seen, |moment| moment.packets_gbps)
}

fn port(seen: &[SampledMoment]) -> Option<MeasuredValue> {
    mean(seen, |moment| moment.port_gbps)
}

fn jain(run: &NetworkRun) -> Option<MeasuredValue> {
    (run.jain > 0.0).then(|| MeasuredValue::exact(run.jain, run.counts.flows))
}

fn kb(bytes: u64) -> f64 {
    bytes as f64 / 1e3
}

/// Highest level of a time series, in KB.
fn highest(seen: &[SampledMoment], level: fn(&SampledMoment) -> u64) -> Option<MeasuredValue> {
    let highest = seen.iter().map(level).max()?;
    Some(MeasuredValue::exact(highest as f64 / 1e3, seen.len() as u64))
}

fn retransmissions(seen: &[SampledMoment]) -> Option<MeasuredValue> {
    let seconds: f64 = seen.iter().map(|moment| moment.span).sum();
    let count: u64 = seen.iter().map(|moment| moment.retransmitted).sum();
    let (low, high) = units::poisson(count);
    let rate = |count: f64| count / seconds;
    (seconds > 0.0).then(|| MeasuredValue::counted(rate(count as f64), seen.len() as u64, (rate(low), rate(high))))
}

fn drops(seen: &[SampledMoment]) -> Option<MeasuredValue> {
    let count: u64 = seen.iter().map(|moment| moment.dropped).sum();
    Some(MeasuredValue::exact(count as f64, seen.len() as u64))
}

impl MeasureWindow {
    const ALL: Self = Self { from: 0.0, to: 1.0 };

    fn parse(text: &str) -> Option<Self> {
        let (from, to) = text.split_once("..")?;
        let (from, to) = (from.parse().ok()?, to.parse().ok()?);
        (0.0 <= from && from < to && to <= 1.0).then_some(Self { from, to })
    }

    /// The moments that lie in it.
    pub(super) fn of<'a>(&self, moments: &'a [SampledMoment]) -> &'a [SampledMoment] {
        let length = moments.last().map_or(0.0, |last| last.seconds);
        let from = moments.partition_point(|moment| moment.seconds <= self.from * length);
        let to = moments.partition_point(|moment| moment.seconds <= self.to * length);
        &moments[from..to]
    }
}

#[cfg(test)]
mod tests {
    use super::super::Traffic;
    use super::*;

    fn counting(counts: RunCounts) -> NetworkRun {
        NetworkRun { counts, ..NetworkRun::default() }
    }

    #[test]
    fn measures_are_read_with_their_windows() {
        for known in [
            "fct.p99.9",
            "fct.max",
            "slowdown.mean",
            "slowdown<3KB.p99",
            "fct>1.5MB.mean",
            "queues.p95",
            "queues.mean",
            "rtt.max",
            "goodput.flows",
            "goodput",
            "goodput 0.2..0.5",
            "rx.peak",
        ] {
            assert!(parse(known).is_ok(), "{known}");
        }
        for nonsense in [
            "fct.p100",
            "fct.px",
            "fct.least",
            "fct",
            "speed.max",
            "slowdown",
            "slowdown<.p99",
            "slowdown<3KB",
            "rtt<3KB.p99",
            "rtt.mean",
            "pool",
            "goodput 0.5..0.2",
            "goodput 1",
            "rx.peak 0.2..0.5",
            "speed",
            "",
        ] {
            let Err(error) = parse(nonsense).map_err(|error| error.to_string()) else { panic!("{nonsense}") };
            assert!(error.contains("expected fct or slowdown with .mean") && error.contains("most_pending"), "{error}");
        }
    }

    #[test]
    fn a_percentile_needs_flows_beyond_it() {
        let run = NetworkRun { fct: (0..10_000).map(f64::from).collect(), ..NetworkRun::default() };
        let taken = |text| parse(text).unwrap()(&run).map(|measured| measured.value);
        assert_eq!((taken("fct.p50"), taken("fct.p99.9"), taken("fct.p99.99")), (Some(5_000.0), Some(9_990.0), None));
    }

    #[test]
    fn flows_are_chosen_by_their_size() {
        let flow = |bytes| SizedFlow { bytes, fct: bytes as f64, slowdown: 1.0 };
        let run = NetworkRun { flows: [5_000, 1_000, 2_000, 3_000].map(flow).to_vec(), ..NetworkRun::default() };
        let taken = |text| taken(text, &run).map(|measured| (measured.value, measured.n));
        assert_eq!(taken("fct<3KB.max"), Some((2_000.0, 2)));
        assert_eq!(taken("fct>2.5KB.mean"), Some((4_000.0, 2)));
        assert_eq!(taken("slowdown<1KB.max"), None);
    }

    #[test]
    fn what_is_not_measured_or_not_there_has_no_value() {
        let measures = ["queues.p95", "rtt.p95", "pauses", "silenced"];
        assert_eq!(measures.map(|name| value(name, &NetworkRun::default())), [None; 4]);
        let pfc = sim::net::PauseTotals { pauses: 3, silenced_bits: 1.0, capacity_bits: 8.0, ..Default::default() };
        let run = NetworkRun { pfc: Some(pfc), ..NetworkRun::default() };
        assert_eq!([value("pauses", &run), value("silenced", &run)], [Some(3.0), Some(0.125)]);
    }

    #[test]
    fn a_window_counts_what_ended_in_it() {
        let moment = |seconds| SampledMoment { seconds, span: 1.0, goodput_gbps: seconds, ..SampledMoment::default() };
        let run = NetworkRun { moments: (1..=10).map(f64::from).map(moment).collect(), ..NetworkRun::default() };
        let taken = parse("goodput 0.2..0.4").unwrap()(&run).unwrap();
        assert_eq!((taken.value, taken.n), (3.5, 2));
    }

    fn taken(text: &str, run: &NetworkRun) -> Option<MeasuredValue> {
        parse(text).unwrap()(run)
    }

    fn value(text: &str, run: &NetworkRun) -> Option<f64> {
        taken(text, run).map(|measured| measured.value)
    }

    #[test]
    fn a_flow_that_failed_is_the_slowest_and_spoils_the_mean() {
        let mut run = NetworkRun { fct: vec![3.0, 1.0, 2.0], slowdown: vec![1.5, 1.0, 3.5], ..NetworkRun::default() };
        run.sort();
        assert_eq!([value("fct.mean", &run), value("fct.max", &run)], [Some(2.0), Some(3.0)]);
        assert!(value("fct.deviation", &run).is_some_and(|deviation| (deviation - 0.8165).abs() < 1e-4));
        assert_eq!([value("slowdown.mean", &run), value("slowdown.max", &run)], [Some(2.0), Some(3.5)]);
        run.fct.push(f64::INFINITY);
        assert_eq!(value("complete", &run), Some(3.0));
        assert_eq!(value("fct.max", &run), Some(f64::INFINITY));
        assert_eq!(value("fct.mean", &run), Some(f64::INFINITY));
        assert_eq!(value("fct.deviation", &run), None);
        assert_eq!(value("fct.mean", &NetworkRun::default()), None);
    }

    #[test]
    fn timeouts_are_counted_per_100000_flows_with_their_interval() {
        let run = counting(RunCounts { flows: 50_000, timeouts: 8, hit: 5, ..RunCounts::default() });
        let timeouts = taken("timeouts", &run).unwrap();
        let (low, high) = timeouts.interval.unwrap();
        assert_eq!((timeouts.value, timeouts.n), (16.0, 50_000));
        assert!((6.9..7.0).contains(&low) && (31.5..31.6).contains(&high), "{low} {high}");
        let hit = taken("hit", &run).unwrap();
        assert_eq!((hit.value, hit.n, hit.interval.is_some()), (1e-4, 50_000, true));
        assert_eq!(taken("timeouts", &NetworkRun::default()), None);
    }

    #[test]
    fn what_is_added_is_a_share_of_the_data() {
        let traffic = Traffic { wire: 5_000_000, data: 1_000, dummies: 100, copied: 50, ..Traffic::default() };
        let run = NetworkRun { traffic, ..counting(RunCounts { flows: 2, ..RunCounts::default() }) };
        assert_eq!((value("added", &run), value("wire", &run)), (Some(0.15), Some(5.0)));
        let repeats_tails = NetworkRun { traffic: Traffic { tails: 350, ..traffic }, ..run };
        assert_eq!(value("added", &repeats_tails), Some(0.5));
    }

    #[test]
    fn pools_and_what_they_follow_are_told_where_there_are_any() {
        let counts = RunCounts {
            pools: 2,
            pool_refused: 3,
            packets: 1_000,
            out_of_order: 20,
            retransmitted: 6,
            flows: 4,
            seeds: 2,
            completed_bytes: 1_000_000_000,
            ..RunCounts::default()
        };
        let run = NetworkRun { pool_peak: 0.75, completed_seconds: 2.0, ..counting(counts) };
        let values = [
            "pool.peak",
            "pool.refused",
            "out_of_order",
            "retransmitted",
            "retransmitted.all",
            "goodput.flows",
            "duration",
        ];
        assert_eq!(values.map(|name| value(name, &run)), [0.75, 3.0, 0.02, 1.5, 3.0, 4.0, 1_000.0].map(Some));
        assert_eq!(values.map(|name| value(name, &NetworkRun::default())), [None; 7]);
    }
}
