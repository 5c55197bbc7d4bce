//! What can be taken from a run.
//!
//! A measure is named as in `fct.p99.9`, `goodput 0.4..0.6` or `rx.max 0.7..1`. Two numbers behind a name are a window:
//! fractions of the run's length. What is counted comes with the interval in which its mean lies.

use std::fmt;

use super::gather::{Gathered, Moment, Traffic};
use crate::experiment::Measured;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Measure {
    /// Flow completion times in µs.
    Fct(Statistic),
    /// How many times longer flows took than they would have alone.
    Slowdown(Statistic),
    /// Payload received in order, in Gb/s, of all traffic.
    Goodput(Window),
    /// Payload of completed flows, in Gb/s from the first start to the last finish.
    FlowGoodput,
    /// Levels at the first port watched, the highest sampled, in KB.
    Queue(Window),
    TxBuffer(Window),
    RxBuffer(Window),
    /// Segments sent again per second.
    Retransmissions(Window),
    /// Packets dropped at the first port watched.
    Drops(Window),
    /// Highest levels ever, in KB, by the link protocol's own account.
    TxPeak,
    RxPeak,
    Overflows,
    GivenUp,
    /// Share of flows that noticed a loss.
    Touched,
    /// Timeouts per 100,000 flows.
    Timeouts,
    /// Share of flows that waited for a timer at least once.
    Hit,
    /// Packets that hosts sent again, per flow.
    Retransmitted,
    /// Share of the packets received that were placed before one sent earlier.
    OutOfOrder,
    /// Wire time on all wires in MB, but for what only fills idle time. Over that of a run with the same flows and
    /// neither loss nor protection: one, and the cost.
    Wire,
    /// What dummies and copies take on the first wire that they are sent by, as a share of what the flows' packets take,
    /// each sent once. What answers dummies (88 B each, the other way) is not in it, nor what go-back-N repeats: `wire` over
    /// that of another run has all of it. Not known where tails are repeated.
    Added,
    /// Copies that switches made, per flow.
    Copies,
    /// How often a switch repeated the packet of another connection.
    WrongCopies,
    /// Share of its pool of bits that the fullest host ever took to follow arrivals.
    PoolPeak,
    /// Packets refused for want of a block.
    PoolRefused,
    /// Of the flows whose segments arrived out of order: the share that reduced the window with data left to send.
    ReducedEarly,
    /// And with how many bytes left at most.
    MostPending,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Statistic {
    Mean,
    Max,
    /// The value below which this share lies.
    Quantile(f64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    pub from: f64,
    pub to: f64,
}

/// What a measure must not be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownMeasure;

impl fmt::Display for UnknownMeasure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "expected fct.mean, fct.max, fct.pNN, slowdown.mean, slowdown.max, slowdown.pNN, goodput, queue.max, \
             tx.max, rx.max, retransmissions, drops (each of these six with a window such as 0.2..0.8), \
             goodput.flows, tx.peak, rx.peak, overflows, given_up, touched, timeouts, hit, retransmitted, \
             out_of_order, wire, added, copies, wrong_copies, pool.peak, pool.refused, reduced_early or most_pending",
        )
    }
}

impl std::error::Error for UnknownMeasure {}

/// Fewer flows than this beyond a percentile say nothing about it.
const FEWEST_BEYOND: f64 = 5.0;

impl Measure {
    pub fn parse(text: &str) -> Result<Self, UnknownMeasure> {
        if let Some((what, statistic)) = text.split_once('.')
            && let Some(statistic) = Statistic::parse(statistic)
        {
            match what {
                "fct" => return Ok(Self::Fct(statistic)),
                "slowdown" => return Ok(Self::Slowdown(statistic)),
                _ => {}
            }
        }
        let (name, window) = text
            .split_once(' ')
            .map_or((text, Ok(Window::ALL)), |(name, window)| (name, Window::parse(window).ok_or(UnknownMeasure)));
        let window = window?;
        Ok(match name {
            "goodput" => Self::Goodput(window),
            "queue.max" => Self::Queue(window),
            "tx.max" => Self::TxBuffer(window),
            "rx.max" => Self::RxBuffer(window),
            "retransmissions" => Self::Retransmissions(window),
            "drops" => Self::Drops(window),
            "tx.peak" => Self::TxPeak,
            "rx.peak" => Self::RxPeak,
            "overflows" => Self::Overflows,
            "given_up" => Self::GivenUp,
            "touched" => Self::Touched,
            "goodput.flows" => Self::FlowGoodput,
            "timeouts" => Self::Timeouts,
            "hit" => Self::Hit,
            "retransmitted" => Self::Retransmitted,
            "out_of_order" => Self::OutOfOrder,
            "wire" => Self::Wire,
            "added" => Self::Added,
            "copies" => Self::Copies,
            "wrong_copies" => Self::WrongCopies,
            "pool.peak" => Self::PoolPeak,
            "pool.refused" => Self::PoolRefused,
            "reduced_early" => Self::ReducedEarly,
            "most_pending" => Self::MostPending,
            _ => return Err(UnknownMeasure),
        })
    }

    /// `None` if the run has too little of what it takes.
    pub fn take(&self, run: &Gathered) -> Option<Measured> {
        let level = |window, what: fn(&Moment) -> u64| highest(window, &run.moments, what);
        let kilobytes = |bytes: u64| Some(Measured::exact(bytes as f64 / 1e3, run.recovered));
        let pool = |value: f64| (run.pools > 0).then(|| Measured::exact(value, run.pools));
        match *self {
            Self::Fct(statistic) => statistic.of(&run.fct),
            Self::Slowdown(statistic) => statistic.of(&run.slowdown),
            Self::Goodput(window) => goodput(window, &run.moments),
            Self::FlowGoodput => (run.completed_seconds > 0.0).then(|| {
                let gigabits = run.completed_bytes as f64 * 8.0 / 1e9;
                Measured::exact(gigabits / run.completed_seconds, run.fct.len() as u64)
            }),
            Self::Queue(window) => level(window, |moment| moment.queue),
            Self::TxBuffer(window) => level(window, |moment| moment.tx_buffer),
            Self::RxBuffer(window) => level(window, |moment| moment.rx_buffer),
            Self::Retransmissions(window) => retransmissions(window, &run.moments),
            Self::Drops(window) => {
                let count: u64 = window.of(&run.moments).iter().map(|moment| moment.dropped).sum();
                Some(Measured::exact(count as f64, count))
            }
            Self::TxPeak => kilobytes(run.tx_peak),
            Self::RxPeak => kilobytes(run.rx_peak),
            Self::Overflows => Some(Measured::exact(run.overflows as f64, run.corrupted)),
            Self::GivenUp => Some(Measured::exact(run.given_up as f64, run.corrupted)),
            Self::Touched => share(run.touched, run.flows),
            Self::Timeouts => counted(run.timeouts, run.flows, 1e5),
            Self::Hit => counted(run.hit, run.flows, 1.0),
            Self::Retransmitted => share(run.retransmitted, run.flows),
            Self::OutOfOrder => share(run.out_of_order, run.packets),
            Self::Wire => Some(Measured::exact(run.traffic.wire as f64 / 1e6, run.flows)),
            Self::Added => added(&run.traffic, run.flows),
            Self::Copies => share(run.traffic.copies, run.flows),
            Self::WrongCopies => Some(Measured::exact(run.traffic.wrong as f64, run.traffic.copies)),
            Self::PoolPeak => pool(run.pool_peak),
            Self::PoolRefused => pool(run.pool_refused as f64),
            Self::ReducedEarly => share(run.reduced_early, run.sacked),
            Self::MostPending => (run.sacked > 0).then(|| Measured::exact(run.most_pending as f64, run.sacked)),
        }
    }
}

impl Statistic {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "mean" => Some(Self::Mean),
            "max" => Some(Self::Max),
            _ => {
                let percent: f64 = text.strip_prefix('p')?.parse().ok()?;
                (0.0..100.0).contains(&percent).then_some(Self::Quantile(percent / 100.0))
            }
        }
    }

    fn of(self, sorted: &[f64]) -> Option<Measured> {
        let last = *sorted.last()?;
        let value = match self {
            Self::Mean => sorted.iter().sum::<f64>() / sorted.len() as f64,
            Self::Max => last,
            Self::Quantile(share) => quantile(sorted, share)?,
        };
        Some(Measured::exact(value, sorted.len() as u64))
    }
}

fn share(count: u64, of: u64) -> Option<Measured> {
    (of > 0).then(|| Measured::exact(count as f64 / of as f64, of))
}

/// So many in `per` trials, with its interval.
fn counted(count: u64, trials: u64, per: f64) -> Option<Measured> {
    let (low, high) = units::poisson(count);
    let scaled = |count: f64| count * per / trials as f64;
    (trials > 0).then(|| Measured::counted(scaled(count as f64), trials, (scaled(low), scaled(high))))
}

fn added(traffic: &Traffic, flows: u64) -> Option<Measured> {
    let added = traffic.dummies + traffic.copied;
    (traffic.tails == 0 && traffic.data > 0).then(|| Measured::exact(added as f64 / traffic.data as f64, flows))
}

fn goodput(window: Window, moments: &[Moment]) -> Option<Measured> {
    let seen = window.of(moments);
    let seconds: f64 = seen.iter().map(|moment| moment.span).sum();
    let gigabits: f64 = seen.iter().map(|moment| moment.goodput_gbps * moment.span).sum();
    (seconds > 0.0).then(|| Measured::exact(gigabits / seconds, seen.len() as u64))
}

/// In KB.
fn highest(window: Window, moments: &[Moment], what: fn(&Moment) -> u64) -> Option<Measured> {
    let seen = window.of(moments);
    let highest = seen.iter().map(what).max()?;
    Some(Measured::exact(highest as f64 / 1e3, seen.len() as u64))
}

fn retransmissions(window: Window, moments: &[Moment]) -> Option<Measured> {
    let seen = window.of(moments);
    let seconds: f64 = seen.iter().map(|moment| moment.span).sum();
    let count: u64 = seen.iter().map(|moment| moment.retransmitted).sum();
    (seconds > 0.0).then(|| Measured::exact(count as f64 / seconds, count))
}

impl Window {
    const ALL: Self = Self { from: 0.0, to: 1.0 };

    fn parse(text: &str) -> Option<Self> {
        let (from, to) = text.split_once("..")?;
        let (from, to) = (from.parse().ok()?, to.parse().ok()?);
        (0.0 <= from && from < to && to <= 1.0).then_some(Self { from, to })
    }

    /// The moments that lie in it.
    pub fn of<'a>(&self, moments: &'a [Moment]) -> &'a [Moment] {
        let length = moments.last().map_or(0.0, |last| last.seconds);
        let from = moments.partition_point(|moment| moment.seconds <= self.from * length);
        let to = moments.partition_point(|moment| moment.seconds <= self.to * length);
        &moments[from..to]
    }
}

/// The value below which `share` of the sorted values lie, if enough lie beyond.
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let beyond = sorted.len() as f64 * (1.0 - share);
    if beyond < FEWEST_BEYOND {
        return None;
    }
    sorted.get((sorted.len() as f64 * share) as usize).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_are_read_with_their_windows() {
        assert_eq!(Measure::parse("fct.p99.9"), Ok(Measure::Fct(Statistic::Quantile(0.9990000000000001))));
        assert_eq!(Measure::parse("fct.max"), Ok(Measure::Fct(Statistic::Max)));
        assert_eq!(Measure::parse("slowdown.p99"), Ok(Measure::Slowdown(Statistic::Quantile(0.99))));
        assert_eq!(Measure::parse("goodput.flows"), Ok(Measure::FlowGoodput));
        assert_eq!(Measure::parse("goodput 0.2..0.5"), Ok(Measure::Goodput(Window { from: 0.2, to: 0.5 })));
        assert_eq!(Measure::parse("rx.peak"), Ok(Measure::RxPeak));
        for nonsense in [
            "fct.p100",
            "fct.px",
            "fct.least",
            "speed.max",
            "slowdown",
            "pool",
            "goodput 0.5..0.2",
            "goodput 1",
            "speed",
            "",
        ] {
            assert_eq!(Measure::parse(nonsense), Err(UnknownMeasure), "{nonsense}");
        }
    }

    #[test]
    fn a_percentile_needs_flows_beyond_it() {
        let run = Gathered { fct: (0..10_000).map(f64::from).collect(), ..Gathered::default() };
        let taken = |text| Measure::parse(text).unwrap().take(&run).map(|measured| measured.value);
        assert_eq!((taken("fct.p50"), taken("fct.p99.9"), taken("fct.p99.99")), (Some(5_000.0), Some(9_990.0), None));
    }

    #[test]
    fn a_window_counts_what_ended_in_it() {
        let moment = |seconds| Moment { seconds, span: 1.0, goodput_gbps: seconds, ..Moment::default() };
        let run = Gathered { moments: (1..=10).map(f64::from).map(moment).collect(), ..Gathered::default() };
        let taken = Measure::parse("goodput 0.2..0.4").unwrap().take(&run).unwrap();
        assert_eq!((taken.value, taken.n), (3.5, 2));
    }

    fn taken(text: &str, run: &Gathered) -> Option<Measured> {
        Measure::parse(text).unwrap().take(run)
    }

    fn value(text: &str, run: &Gathered) -> Option<f64> {
        taken(text, run).map(|measured| measured.value)
    }

    #[test]
    fn a_flow_that_failed_is_the_slowest_and_spoils_the_mean() {
        let mut run = Gathered { fct: vec![3.0, 1.0, 2.0], slowdown: vec![1.5, 1.0, 3.5], ..Gathered::default() };
        run.sort();
        assert_eq!([value("fct.mean", &run), value("fct.max", &run)], [Some(2.0), Some(3.0)]);
        assert_eq!([value("slowdown.mean", &run), value("slowdown.max", &run)], [Some(2.0), Some(3.5)]);
        run.fct.push(f64::INFINITY);
        assert_eq!(value("fct.max", &run), Some(f64::INFINITY));
        assert_eq!(value("fct.mean", &run), Some(f64::INFINITY));
        assert_eq!(value("fct.mean", &Gathered::default()), None);
    }

    #[test]
    fn timeouts_are_counted_per_100000_flows_with_their_interval() {
        let run = Gathered { flows: 50_000, timeouts: 8, hit: 5, ..Gathered::default() };
        let timeouts = taken("timeouts", &run).unwrap();
        let (low, high) = timeouts.interval.unwrap();
        assert_eq!((timeouts.value, timeouts.n), (16.0, 50_000));
        assert!((6.9..7.0).contains(&low) && (31.5..31.6).contains(&high), "{low} {high}");
        let hit = taken("hit", &run).unwrap();
        assert_eq!((hit.value, hit.n, hit.interval.is_some()), (1e-4, 50_000, true));
        assert_eq!(taken("timeouts", &Gathered::default()), None);
    }

    #[test]
    fn what_is_added_is_a_share_of_the_data() {
        let traffic = Traffic { wire: 5_000_000, data: 1_000, dummies: 100, copied: 50, ..Traffic::default() };
        let run = Gathered { flows: 2, traffic, ..Gathered::default() };
        assert_eq!((value("added", &run), value("wire", &run)), (Some(0.15), Some(5.0)));
        let repeats_tails = Gathered { traffic: Traffic { tails: 1, ..traffic }, ..run };
        assert_eq!(value("added", &repeats_tails), None, "how long the tails were is not known");
    }

    #[test]
    fn pools_and_what_they_follow_are_told_where_there_are_any() {
        let run = Gathered {
            pools: 2,
            pool_peak: 0.75,
            pool_refused: 3,
            packets: 1_000,
            out_of_order: 20,
            retransmitted: 6,
            flows: 4,
            completed_bytes: 1_000_000_000,
            completed_seconds: 2.0,
            ..Gathered::default()
        };
        let values = ["pool.peak", "pool.refused", "out_of_order", "retransmitted", "goodput.flows"];
        assert_eq!(values.map(|name| value(name, &run)), [0.75, 3.0, 0.02, 1.5, 4.0].map(Some));
        assert_eq!(values.map(|name| value(name, &Gathered::default())), [None; 5]);
    }
}
