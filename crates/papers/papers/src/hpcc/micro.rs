//! hpcc.micro: four microbenchmarks at 25G, HPCC beside DCQCN (§2.6.2, Fig. 2.9).
//!
//! DCQCN is run with notifications as packets, one in 50 µs for each flow, and echoed in every acknowledgement; and with marking
//! of packets when they join the queue and when they leave it. More gaps between notifications show what each figure needs.

use chart::{Axis, Chart, Line, LinesChart};
use report::claim::ClaimError;
use report::runner::{ComputedValues, Effort};
use sim::net::FlowRow;
use units::samples::quantile_above;
use units::{Span, Time};

use super::runs::{HpccRun, HpccTask, SeedValues, jain, run_all};

/// The share of a link that HPCC fills.
const ETA: f64 = 0.95;
/// A flow is back with this share of what it can have.
const BACK: f64 = 0.9;
/// Time in µs at which DCQCN's elephants have settled.
const SETTLED: f64 = 10_000.0;

/// Controller that decides the sending rate.
#[derive(Clone, Copy, Debug)]
enum ControlVariant {
    Hpcc,
    /// The least gap between notifications, in µs, or an echo in every acknowledgement; and where packets are marked.
    Dcqcn {
        gap: Option<u32>,
        at: &'static str,
    },
    /// DCQCN whose α changes as often as notifications come, in µs; marked at departure.
    SlowAlpha(u32),
}

const GAPS: [u32; 5] = [0, 4, 10, 20, 50];

impl ControlVariant {
    fn name(self) -> String {
        match self {
            Self::Hpcc => "hpcc".into(),
            Self::Dcqcn { gap: None, at } => format!("dcqcn.echo.{at}"),
            Self::Dcqcn { gap: Some(gap), at } => format!("dcqcn.{gap}us.{at}"),
            Self::SlowAlpha(gap) => format!("dcqcn.slow-alpha.{gap}us"),
        }
    }

    /// Share of a link that it uses.
    fn eta(self) -> f64 {
        match self {
            Self::Hpcc => ETA,
            Self::Dcqcn { .. } | Self::SlowAlpha(_) => 1.0,
        }
    }

    /// The task for it; `traffic` is how many tables of traffic there are.
    fn task(self, task: HpccTask, traffic: usize) -> HpccTask {
        let (at, cnp) = match self {
            Self::Hpcc => return task,
            Self::Dcqcn { gap: None, at } => (at, "cnp = \"echo\"".to_owned()),
            Self::Dcqcn { gap: Some(gap), at } => (at, format!("cnp_gap = \"{gap}us\"")),
            Self::SlowAlpha(gap) => ("departure", format!("cnp_gap = \"{gap}us\", alpha_every = \"{gap}us\"")),
        };
        let task = task.with("switch.int=false").with(format!("switch.ecn.at={at}"));
        (0..traffic).fold(task, |task, n| {
            let task = task.with(format!("traffic.{n}.congestion=dcqcn")).with(format!("traffic.{n}.hpcc={{}}"));
            task.with(format!("traffic.{n}.dcqcn={{ {cnp} }}"))
        })
    }
}

/// A microbenchmark.
#[derive(Clone, Copy, Debug)]
enum Microbenchmark {
    LongShort,
    Incast,
    Mice,
    Joining,
}

const MICROBENCHMARKS: [Microbenchmark; 4] =
    [Microbenchmark::LongShort, Microbenchmark::Incast, Microbenchmark::Mice, Microbenchmark::Joining];

impl Microbenchmark {
    fn task(self, variant: ControlVariant) -> HpccTask {
        match self {
            Self::LongShort => variant.task(HpccTask::new("rack.toml", &[]), 2),
            Self::Incast => {
                let seven = ["traffic.1.from=h1..h7", "traffic.1.size=10MB", "run.until=4ms"];
                variant.task(HpccTask::new("rack.toml", &seven), 2)
            }
            Self::Mice => variant.task(HpccTask::new("mice.toml", &[]), 2),
            Self::Joining => variant.task(HpccTask::new("joining.toml", &[]), 4),
        }
    }

    fn measure(self, variant: ControlVariant, runs: &[HpccRun], computed: &mut ComputedValues) {
        let mut value = |name: &str, measured| computed.values.push((format!("{name}.{}", variant.name()), measured));
        match self {
            Self::LongShort => value("back", SeedValues::from(runs, |run| back(run, variant.eta())).mean()),
            Self::Incast => {
                value("peak", SeedValues::from(runs, |run| run.queue_kb(1.0)).mean());
                value("drained", SeedValues::from(runs, drained).mean());
            }
            Self::Mice => {
                value("mice", SeedValues::from(runs, |run| mice(run, 0.5)).mean());
                value("mice.p5", SeedValues::from(runs, |run| mice(run, 0.05)).mean());
                value("mice.p95", SeedValues::from(runs, |run| mice(run, 0.95)).mean());
            }
            Self::Joining => {
                value("fair", SeedValues::from(runs, |run| Some(jain(&run.means(15_000.0, 25_000.0)))).least())
            }
        }
    }
}

pub(super) fn compute(effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let all = all_runs();
    let tasks: Vec<HpccTask> = all.iter().map(|(bench, variant)| bench.task(*variant)).collect();
    let Some(runs) = run_all(effort, &tasks)? else { return Ok(None) };
    let mut computed = ComputedValues::default();
    for ((bench, variant), runs) in all.iter().zip(&runs) {
        bench.measure(*variant, runs, &mut computed);
    }
    computed.charts = vec![recovery(&all, &runs), gaps(&computed)];
    Ok(Some(computed))
}

/// All runs of the microbenchmarks.
fn all_runs() -> Vec<(Microbenchmark, ControlVariant)> {
    let usual = [ControlVariant::Hpcc, ControlVariant::Dcqcn { gap: None, at: "departure" }];
    let others = [(None, "arrival"), (Some(50), "departure"), (Some(50), "arrival")];
    let others = others.map(|(gap, at)| ControlVariant::Dcqcn { gap, at });
    let every = usual.into_iter().chain(others);
    let mut all: Vec<(Microbenchmark, ControlVariant)> =
        MICROBENCHMARKS.into_iter().flat_map(|bench| every.clone().map(move |who| (bench, who))).collect();
    let gaps = GAPS.into_iter().filter(|gap| *gap != 50);
    let gaps = gaps.map(|gap| ControlVariant::Dcqcn { gap: Some(gap), at: "departure" });
    for variant in gaps.chain([20, 50].map(ControlVariant::SlowAlpha)) {
        all.extend([Microbenchmark::Incast, Microbenchmark::Mice].map(|bench| (bench, variant)));
    }
    all
}

/// µs from the end of the short flow until the long one keeps its share of the link, in every 10 of them to the end of the run: what
/// waited in the queue does not count. All of the run if it never does.
fn back(run: &HpccRun, eta: f64) -> Option<f64> {
    let ended = run.outcome.flows.iter().find_map(|flow| flow.finish)?.since(Time::ZERO).as_us();
    let enough = BACK * run.ceiling(eta);
    let later: Vec<(f64, f64)> = run.goodput(Some(0)).filter(|(at, _)| *at >= ended).collect();
    let below = |two: &&[(f64, f64)]| (two[0].1 + two[1].1) / 2.0 < enough;
    Some(later.windows(2).rfind(below).map_or(0.0, |two| two[1].0 - ended))
}

/// µs from the beginning of the seven until the queue is below 10 KB.
fn drained(run: &HpccRun) -> Option<f64> {
    let peak = run.peak();
    let after = run.queue().skip_while(|(_, bytes)| *bytes < peak);
    after.skip_while(|(_, bytes)| *bytes > 10_000.0).map(|(at, _)| at - 500.0).next()
}

/// A quantile of their latencies, in µs.
fn mice(run: &HpccRun, share: f64) -> Option<f64> {
    let settled = |flow: &&FlowRow| flow.bytes == 1_000 && flow.start.since(Time::ZERO).as_us() >= SETTLED;
    let mut latencies: Vec<f64> =
        run.outcome.flows.iter().filter(settled).filter_map(FlowRow::fct).map(Span::as_us).collect();
    latencies.sort_by(f64::total_cmp);
    quantile_above(&latencies, share).or(latencies.last().copied())
}

/// Goodput of the long flow around the short one, of the first seed.
fn recovery(all: &[(Microbenchmark, ControlVariant)], runs: &[Vec<HpccRun>]) -> Chart {
    let line = |((bench, variant), runs): (&(Microbenchmark, ControlVariant), &Vec<HpccRun>)| {
        let (Microbenchmark::LongShort, Some(run)) = (bench, runs.first()) else { return None };
        let points: Vec<(f64, f64)> = run.goodput(Some(0)).collect();
        let mean = |few: &[(f64, f64)]| (few[0].0, few.iter().map(|point| point.1).sum::<f64>() / few.len() as f64);
        Some(Line::new(variant.name(), points.chunks(10).map(mean).collect()))
    };
    Chart::Lines(LinesChart {
        title: "A long flow while a short one passes".into(),
        caption:
            "Goodput of the long flow in every 50 µs, of the first seed. The short one has 1 MB and begins at 500 µs."
                .into(),
        x: Axis::linear("µs"),
        y: Axis::linear("Gb/s"),
        lines: all.iter().zip(runs).filter_map(line).collect(),
    })
}

/// Effect of the gap between notifications on the two figures that DCQCN should give.
fn gaps(computed: &ComputedValues) -> Chart {
    let line = |label: &str, name: &str| {
        let value = |gap: u32| {
            let name = format!("{name}.{}", ControlVariant::Dcqcn { gap: Some(gap), at: "departure" }.name());
            let (_, value) = computed.values.iter().find(|(known, _)| *known == name)?;
            Some((f64::from(gap), value.as_ref()?.value))
        };
        Line::new(label, GAPS.into_iter().filter_map(value).collect())
    };
    Chart::Lines(LinesChart {
        title: "DCQCN by the gap between notifications".into(),
        caption:
            "The thesis has a peak of 550 KB and mice that take 35 µs or more. Packets are marked when they leave."
                .into(),
        x: Axis::linear("least gap, µs"),
        y: Axis::log("KB, or µs"),
        lines: vec![line("peak of 7-to-1, KB", "peak"), line("median of mice, µs", "mice")],
    })
}
