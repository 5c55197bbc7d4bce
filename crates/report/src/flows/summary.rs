//! A point of a scenario, all its seeds together, in numbers.

use serde::Serialize;
use sim::scenario::Point;

use super::digest::{CLASSES, Digest, LinkDigest, Pools, Repairs, Repeated, TrafficDigest};
use super::losses::LossSummary;
use super::percentiles::Percentiles;

#[derive(Clone, Debug, Serialize)]
pub struct Summary<'a, C> {
    pub label: &'a str,
    /// Runs that these numbers are from.
    pub seeds: Vec<u64>,
    /// Runs that did not come to their end.
    pub missing_seeds: Vec<u64>,
    pub simulated_seconds: f64,
    pub traffic: Vec<TrafficSummary<'a>>,
    /// At full buffers.
    pub dropped: u64,
    pub marked: u64,
    /// By wires.
    pub corrupted: u64,
    pub pfc_pauses: u64,
    pub repeated: Repeated,
    /// Where connections share bits.
    pub pools: Option<Pools>,
    pub links: Vec<LinkSummary>,
    /// What meters found, where there are any.
    pub losses: Option<LossSummary>,
    pub events: u64,
    /// What the file and the command line said.
    pub config: &'a C,
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

/// Flows of at least so many bytes, and fewer than in the next class.
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

/// The summary of a point, from the digests of the runs that there are. Others are missing.
pub fn summarize<'a>(point: &'a Point, runs: Vec<(u64, Option<Digest>)>) -> Summary<'a, impl Serialize> {
    let (mut seeds, mut missing_seeds, mut all) = (Vec::new(), Vec::new(), Digest::default());
    for (seed, digest) in runs {
        match digest {
            Some(digest) => {
                seeds.push(seed);
                all.add(digest);
            }
            None => missing_seeds.push(seed),
        }
    }
    let seconds = all.simulated.as_secs();
    Summary {
        label: &point.label,
        seeds,
        missing_seeds,
        simulated_seconds: seconds,
        traffic: point.traffic_names().zip(all.traffic).map(|(name, digest)| traffic(name, digest, seconds)).collect(),
        dropped: all.dropped,
        marked: all.marked,
        corrupted: all.corrupted,
        pfc_pauses: all.pfc_pauses,
        repeated: all.repeated,
        pools: all.pools,
        links: all.links.into_iter().map(link).collect(),
        losses: all.losses.map(|losses| losses.summary(point.topology())),
        events: all.events,
        config: point.config(),
    }
}

fn traffic(name: &str, digest: TrafficDigest, seconds: f64) -> TrafficSummary<'_> {
    let sizes_vary = digest.sizes_vary();
    let wide = |values: &[f32]| values.iter().map(|value| f64::from(*value)).collect::<Vec<_>>();
    let classes = CLASSES.iter().enumerate().filter(|(at, _)| sizes_vary && !digest.slowdown[*at].is_empty());
    TrafficSummary {
        name,
        flows: digest.flows,
        complete: digest.complete,
        failed: digest.failed,
        goodput_gbps: if seconds > 0.0 { digest.received as f64 * 8.0 / seconds / 1e9 } else { 0.0 },
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
