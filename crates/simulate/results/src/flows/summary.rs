//! A point of a scenario, all its seeds together, in numbers.

use std::fmt::Debug;

use scenario::SweepPoint;
use serde::Serialize;
use sim::histogram::SpanHistogram;
use sim::net::{PauseTotals, QueueLengths};
use units::Span;

use super::digest::{CLASSES, IntCounts, LinkDigest, PoolLevels, Repairs, Repeated, RunDigest, TrafficDigest};
use super::jobs::CollectiveSummary;
use super::losses::LossSummary;
use super::percentiles::Percentiles;
use super::racks::RackSummary;

#[derive(Clone, Debug, Serialize)]
pub struct FlowSummary<'a, C> {
    pub label: &'a str,
    /// Runs that these numbers are from and that came to their end.
    pub seeds: Vec<u64>,
    /// Runs that were interrupted, and that these numbers are from as far as they came, because no run came to its end.
    pub partial_seeds: Vec<u64>,
    /// Runs that did not come to their end.
    pub missing_seeds: Vec<u64>,
    pub simulated_seconds: f64,
    pub traffic: Vec<TrafficSummary<'a>>,
    /// Jobs among the traffic: collectives and other graphs of transfers.
    pub collective: Vec<CollectiveSummary>,
    /// Packets dropped at full buffers.
    pub dropped: u64,
    pub marked: u64,
    /// Packets that wires corrupted.
    pub corrupted: u64,
    pub pfc_pauses: u64,
    /// Pauses by PFC; `None` if switches have no PFC.
    pub pfc: Option<PauseSummary>,
    /// Queue lengths of the watched ports, or of all switch ports if none is watched; `None` if they are not measured.
    pub queue_bytes: Option<QueuePercentiles>,
    /// Round-trip times of RDMA data packets; `None` if they are not measured.
    pub rtt_us: Option<RttPercentiles>,
    /// Telemetry, where switches write it.
    pub int: Option<IntSummary>,
    /// T of congestion control, where there is any: the longest round trip without queues.
    pub base_rtt_us: Option<f64>,
    /// Warnings of settings that are allowed, but hardly intended.
    pub warnings: &'a [String],
    pub repeated: Repeated,
    /// Pools of bits, where connections share them.
    pub pools: Option<PoolLevels>,
    /// Reservations, where hosts reserve.
    pub pl2: Option<RackSummary>,
    pub links: Vec<LinkSummary>,
    /// Losses that meters found, where there are meters.
    pub losses: Option<LossSummary>,
    pub events: u64,
    /// Version that computed this, and its command line without options that have no effect on the result.
    pub version: &'a str,
    pub command: &'a str,
    /// Settings of the file and the command line, as a scenario that gives this point and these numbers again.
    pub config: C,
}

/// Effects of PFC.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PauseSummary {
    pub pauses: u64,
    /// Time that ports were paused, added up over all ports and classes.
    pub paused_seconds: f64,
    /// Share of the capacity of all ports that ports with a paused class could not use.
    pub silenced_share: f64,
    /// Most hops that a pause spread.
    pub most_hops: u32,
}

impl From<PauseTotals> for PauseSummary {
    fn from(totals: PauseTotals) -> Self {
        let PauseTotals { pauses, paused_seconds, most_hops, .. } = totals;
        Self { pauses, paused_seconds, silenced_share: totals.silenced_share(), most_hops }
    }
}

/// Percentiles of the queue lengths, weighted by time, in bytes on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct QueuePercentiles {
    pub p50: Option<u64>,
    pub p95: Option<u64>,
    pub p99: Option<u64>,
    pub max: Option<u64>,
}

impl QueuePercentiles {
    pub fn of(lengths: &QueueLengths) -> Self {
        let [p50, p95, p99] = [0.5, 0.95, 0.99].map(|share| lengths.quantile(share));
        Self { p50, p95, p99, max: lengths.max() }
    }
}

/// Round trips in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RttPercentiles {
    pub p50: Option<f64>,
    pub p95: Option<f64>,
    pub p99: Option<f64>,
    pub max: Option<f64>,
}

impl RttPercentiles {
    pub fn of(times: &SpanHistogram) -> Self {
        let [p50, p95, p99] = [0.5, 0.95, 0.99].map(|share| times.quantile(share).map(Span::as_us));
        Self { p50, p95, p99, max: (!times.is_empty()).then(|| times.max().as_us()) }
    }
}

/// Cost of telemetry.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct IntSummary {
    /// Bytes of telemetry that hosts received.
    pub bytes: u64,
    /// Share of telemetry in all bytes that hosts received.
    pub share: f64,
    /// Times that a controller could not use telemetry: another path, or time that did not pass.
    pub resets: u64,
}

impl From<IntCounts> for IntSummary {
    fn from(IntCounts { bytes, of, resets }: IntCounts) -> Self {
        Self { bytes, share: bytes as f64 / of.max(1) as f64, resets }
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct TrafficSummary<'a> {
    pub name: &'a str,
    pub flows: u64,
    pub complete: u64,
    /// Given up by their transport.
    pub failed: u64,
    /// Payload received in order, over simulated time.
    pub goodput_gbps: f64,
    pub fct_us: Percentiles,
    pub slowdown: Percentiles,
    /// Classes that have a flow, if not all flows have the same size.
    pub slowdown_by_size: Vec<SizeClass>,
    #[serde(flatten)]
    pub repairs: Repairs,
}

/// Flows of at least `from_bytes` bytes, and fewer than in the next class.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SizeClass {
    pub from_bytes: u64,
    pub below_bytes: Option<u64>,
    pub slowdown: Percentiles,
}

/// A protected link, both directions together.
#[derive(Clone, Debug, Serialize)]
pub struct LinkSummary {
    pub between: [String; 2],
    pub missing: u64,
    pub recovered: u64,
    pub given_up: u64,
    pub sent_again: u64,
    pub pauses: u64,
    pub overflows: u64,
    pub recovery_us: Percentiles,
    pub tx_buffer_peak_bytes: u64,
    pub rx_buffer_peak_bytes: u64,
}

/// Result of one run of a point.
#[derive(Clone, Debug)]
pub enum RunResult {
    Complete(RunDigest),
    /// It was interrupted; this is how far it came.
    Partial(RunDigest),
    /// It did not begin.
    Missing,
}

/// Version and command line that computed a summary.
#[derive(Clone, Copy, Debug)]
pub struct SummaryOrigin<'a> {
    pub version: &'a str,
    pub command: &'a str,
}

/// The summary of a point, from the digests of the runs that there are. Others are missing. Interrupted runs count only
/// where there is nothing else: they end early, and would make flows look shorter than they are.
pub fn summarize<'a>(
    point: &'a SweepPoint,
    runs: Vec<(u64, RunResult)>,
    origin: SummaryOrigin<'a>,
) -> FlowSummary<'a, impl Serialize + Debug + use<>> {
    let (mut seeds, mut missing_seeds, mut all) = (Vec::new(), Vec::new(), RunDigest::default());
    let (mut partial_seeds, mut partial) = (Vec::new(), RunDigest::default());
    let config = point.config(&runs.iter().map(|(seed, _)| *seed).collect::<Vec<_>>());
    for (seed, result) in runs {
        match result {
            RunResult::Complete(digest) => {
                seeds.push(seed);
                all.add(digest.seeded(seed));
                continue;
            }
            RunResult::Partial(digest) => {
                partial_seeds.push(seed);
                partial.add(digest.seeded(seed));
            }
            RunResult::Missing => {}
        }
        missing_seeds.push(seed);
    }
    if seeds.is_empty() {
        all = partial;
    } else {
        partial_seeds.clear();
    }
    let seconds = all.simulated.as_secs();
    FlowSummary {
        label: &point.label,
        seeds,
        partial_seeds,
        missing_seeds,
        simulated_seconds: seconds,
        traffic: point.traffic_names().zip(all.traffic).map(|(name, digest)| traffic(name, digest, seconds)).collect(),
        collective: all.jobs.iter().filter_map(|job| job.summary(point)).collect(),
        dropped: all.counts.dropped,
        marked: all.counts.marked,
        corrupted: all.counts.corrupted,
        pfc_pauses: all.counts.pfc_pauses,
        pfc: all.pfc.map(PauseSummary::from),
        queue_bytes: all.queues.as_ref().map(QueuePercentiles::of),
        rtt_us: all.round_trips.as_ref().map(RttPercentiles::of),
        int: all.int.map(IntSummary::from),
        base_rtt_us: point.base_rtt().map(Span::as_us),
        warnings: &point.warnings,
        repeated: all.repeated,
        pools: all.pools,
        pl2: all.pl2,
        links: all.links.into_iter().map(link).collect(),
        losses: all.losses.map(|losses| losses.summary(point.topology())),
        events: all.counts.events,
        version: origin.version,
        command: origin.command,
        config,
    }
}

fn traffic(name: &str, digest: TrafficDigest, seconds: f64) -> TrafficSummary<'_> {
    let sizes_vary = digest.sizes_vary();
    let wide = |values: &[f32]| values.iter().map(|value| f64::from(*value)).collect::<Vec<_>>();
    let classes = CLASSES.iter().enumerate().filter(|(at, _)| sizes_vary && !digest.slowdown[*at].is_empty());
    TrafficSummary {
        name,
        flows: digest.counts.flows,
        complete: digest.counts.complete,
        failed: digest.counts.failed,
        goodput_gbps: if seconds > 0.0 { digest.counts.received as f64 * 8.0 / seconds / 1e9 } else { 0.0 },
        slowdown: Percentiles::of(wide(&digest.slowdown.concat())),
        slowdown_by_size: classes
            .map(|(at, from)| SizeClass {
                from_bytes: from.get(),
                below_bytes: CLASSES.get(at + 1).map(|bytes| bytes.get()),
                slowdown: Percentiles::of(wide(&digest.slowdown[at])),
            })
            .collect(),
        fct_us: Percentiles::of(digest.fct),
        repairs: digest.repairs,
    }
}

fn link(digest: LinkDigest) -> LinkSummary {
    let counters = digest.counters;
    LinkSummary {
        between: digest.between,
        missing: counters.rx_missing_seq,
        recovered: counters.recovered,
        given_up: counters.given_up,
        sent_again: counters.tx_replay,
        pauses: counters.pauses,
        overflows: digest.overflows,
        recovery_us: Percentiles::of(digest.recovery),
        tx_buffer_peak_bytes: digest.tx_peak.get(),
        rx_buffer_peak_bytes: digest.rx_peak.get(),
    }
}
