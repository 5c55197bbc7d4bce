//! lr.cause: causes of losses, held against what the network knows (§5.7.2.2, Fig. 5.9).

use std::collections::BTreeMap;

use chart::{Axis, Bar, BarGroup, BarsChart, Chart};
use machine::DropReason;
use radar::causes::{CauseThresholds, Culprit};
use radar::loss::LossCause;
use report::claim::MeasuredValue;
use report::runner::ComputedValues;
use sim::net::metering::MeteringResult as Metered;
use sim::topology::DirectedLink;
use units::{Prob, Span};

use super::{BREAKS_AT, LossRadarRun, PacketKey, TOGETHER, key_of_dropped, key_of_lost};

const CAUSES: [LossCause; 3] = [LossCause::Congestion, LossCause::Random, LossCause::Blackhole];

/// Packets by what they were lost for and what was said of it.
#[derive(Clone, Debug, Default)]
struct CauseMatrix(BTreeMap<(LossCause, LossCause), u64>);

impl CauseMatrix {
    fn add(&mut self, truth: LossCause, said: LossCause) {
        *self.0.entry((truth, said)).or_default() += 1;
    }

    fn sum(&self, fits: impl Fn(LossCause, LossCause) -> bool) -> u64 {
        self.0.iter().filter(|((truth, said), _)| fits(*truth, *said)).map(|(_, packets)| packets).sum()
    }

    /// The share of packets said to be lost for a cause that were.
    fn precision(&self, cause: LossCause) -> Option<(f64, u64)> {
        share(self.sum(|truth, said| truth == cause && said == cause), self.sum(|_, said| said == cause))
    }

    /// The share of packets lost for a cause of which it was said.
    fn recall(&self, cause: LossCause) -> Option<(f64, u64)> {
        share(self.sum(|truth, said| truth == cause && said == cause), self.sum(|truth, _| truth == cause))
    }
}

fn share(of: u64, all: u64) -> Option<(f64, u64)> {
    (all > 0).then(|| (of as f64 / all as f64, all))
}

pub(super) fn compute(runs: &[LossRadarRun]) -> ComputedValues {
    let mut computed = ComputedValues::default();
    let runs: Vec<&LossRadarRun> = runs.iter().filter(|run| (run.fan_in, run.answer) == (20, TOGETHER / 20)).collect();
    let default = JudgedRuns::new(&runs, &CauseThresholds::default());
    for cause in CAUSES {
        let measured = |share: Option<(f64, u64)>| share.map(|(share, n)| MeasuredValue::exact(share, n));
        computed.values.push((format!("precision.{cause}"), measured(default.table.precision(cause))));
        computed.values.push((format!("recall.{cause}"), measured(default.table.recall(cause))));
    }
    computed.value("problems", MeasuredValue::exact(default.problems as f64, 6));
    let wrong = MeasuredValue::exact(default.innocent.len() as f64, runs.len() as u64);
    let innocent = default.innocent.join(", ");
    computed.value("wrongly-accused", if innocent.is_empty() { wrong } else { wrong.with_note(innocent) });
    let all_found = runs.iter().map(|run| all_found_after(run)).collect::<Option<Vec<f64>>>();
    let latest = all_found.map(|found| found.into_iter().fold(0.0, f64::max));
    computed.values.push(("all-found".into(), latest.map(|latest| MeasuredValue::exact(latest, runs.len() as u64))));
    let longest = runs.iter().map(|run| longest_in_a_row(run)).max().unwrap_or(0);
    computed.value("congestion.in-a-row", MeasuredValue::exact(longest as f64, runs.len() as u64));
    let judged = swept().into_iter().map(|(name, thresholds)| (name, JudgedRuns::new(&runs, &thresholds))).collect();
    let ranges = ranges(judged, &mut computed);
    computed.charts.push(chart(&default.table, &ranges));
    computed.notes.push(confusion(&default.table));
    computed
}

/// Judgement of all runs with some thresholds.
struct JudgedRuns {
    table: CauseMatrix,
    /// Problems found, in the run with fewest.
    problems: usize,
    innocent: Vec<String>,
}

impl JudgedRuns {
    fn new(runs: &[&LossRadarRun], thresholds: &CauseThresholds) -> Self {
        let (mut table, mut problems, mut innocent) = (CauseMatrix::default(), Vec::new(), Vec::new());
        for run in runs {
            let verdict = run.metered.judge(&run.topology, thresholds);
            let truth: BTreeMap<PacketKey, LossCause> =
                run.dropped().map(|dropped| (key_of_dropped(dropped), cause_of(dropped.why))).collect();
            for (lost, said) in run.metered.losses.iter().zip(&verdict.causes) {
                table.add(truth.get(&key_of_lost(lost)).copied().unwrap_or_default(), *said);
            }
            let (found, wrongly) = accusations(run, &verdict.accused);
            problems.push(found);
            innocent.extend(wrongly);
        }
        Self { table, problems: problems.into_iter().min().unwrap_or(0), innocent }
    }
}

/// Longest run of packets of one flow that a segment lost to congestion.
fn longest_in_a_row(run: &LossRadarRun) -> usize {
    let mut segments: BTreeMap<u32, Vec<PacketKey>> = BTreeMap::new();
    for dropped in run.dropped().filter(|dropped| cause_of(dropped.why) == LossCause::Congestion) {
        segments.entry(dropped.segment).or_default().push(key_of_dropped(dropped));
    }
    let longest = |keys: &mut Vec<PacketKey>| {
        keys.sort_by_key(|(_, at, ..)| at.0);
        keys.chunk_by(|(_, _, one, _), (_, _, next, _)| one == next).map(<[PacketKey]>::len).max()
    };
    segments.values_mut().filter_map(longest).max().unwrap_or(0)
}

/// Milliseconds from the injection until every problem has been found, at the end of an interval; `None` if never.
fn all_found_after(run: &LossRadarRun) -> Option<f64> {
    let thresholds = CauseThresholds::default();
    let last = run.metered.losses.last()?.batch;
    let batches = thresholds.interval.as_ps() / thresholds.batch.as_ps();
    let problems = run.setup_links.len() / 2 + run.rules.len();
    (1..=last.div_ceil(batches)).map(|interval| interval * batches).find_map(|end| {
        let losses = run.metered.losses.iter().filter(|lost| lost.batch < end).copied().collect();
        let known = Metered { losses, ..run.metered.clone() };
        let (found, _) = accusations(run, &known.judge(&run.topology, &thresholds).accused);
        (found == problems).then(|| (thresholds.batch.scale(end as f64).as_secs() - BREAKS_AT.as_secs()) * 1e3)
    })
}

/// Table 5.3: each threshold at both ends of its range and between them, the others as usual.
fn swept() -> Vec<(&'static str, CauseThresholds)> {
    let usual = CauseThresholds::default();
    let us = |us| CauseThresholds { gap: Span::from_us(us), ..usual };
    let syn = |syn| CauseThresholds { syn, ..usual };
    let random = |random| CauseThresholds { random, ..usual };
    vec![
        ("t_gap 10 µs", us(10)),
        ("t_gap 30 µs", us(30)),
        ("n_burst 3", CauseThresholds { burst: 3, ..usual }),
        ("n_burst 4", CauseThresholds { burst: 4, ..usual }),
        ("n_bb 20", CauseThresholds { bursty_blackhole: 20, ..usual }),
        ("n_bb 40", CauseThresholds { bursty_blackhole: 40, ..usual }),
        ("n_bb 50", CauseThresholds { bursty_blackhole: 50, ..usual }),
        ("n_nb 7", CauseThresholds { blackhole: 7, ..usual }),
        ("n_nb 10", CauseThresholds { blackhole: 10, ..usual }),
        ("p_syn 0.85", syn(Prob::literal(0.85))),
        ("p_syn 0.95", syn(Prob::literal(0.95))),
        ("p_rand 0.45", random(Prob::literal(0.45))),
        ("p_rand 0.55", random(Prob::literal(0.55))),
    ]
}

/// A value, and the setting that has it.
type SettingValue<'a> = (f64, &'a str);

/// The least and the most of precision and recall over settings, by cause.
type CauseRanges = BTreeMap<LossCause, [(f64, f64); 2]>;

fn ranges(judged: Vec<(&'static str, JudgedRuns)>, computed: &mut ComputedValues) -> CauseRanges {
    let settings = judged.len() as u64;
    let mut ranges = CauseRanges::new();
    for cause in CAUSES {
        let of = |take: &dyn Fn(&CauseMatrix) -> Option<(f64, u64)>, is_wanted: &dyn Fn(&str) -> bool| {
            let values: Vec<(f64, &str)> = judged
                .iter()
                .filter(|(name, _)| is_wanted(name))
                .filter_map(|(name, runs)| Some((take(&runs.table)?.0, *name)))
                .collect();
            let by = |one: &&(f64, &str), other: &&(f64, &str)| one.0.total_cmp(&other.0);
            values.iter().min_by(by).copied().zip(values.iter().max_by(by).copied())
        };
        let mut push = |name: String, value: Option<(f64, &str)>| {
            let measured = value.map(|(value, at)| MeasuredValue::exact(value, settings).with_note(format!("at {at}")));
            computed.values.push((name, measured));
        };
        let precision = of(&|table| table.precision(cause), &|_| true);
        let recall = of(&|table| table.recall(cause), &|_| true);
        push(format!("range.precision.{cause}.least"), precision.map(|(least, _)| least));
        push(format!("range.recall.{cause}.least"), recall.map(|(least, _)| least));
        push(format!("range.recall.{cause}.most"), recall.map(|(_, most)| most));
        let others = of(&|table| table.precision(cause), &|name| name != "n_bb 20");
        push(format!("range.precision.{cause}.others"), others.map(|(least, _)| least));
        let one = of(&|table| table.precision(cause), &|name| name == "n_bb 20");
        push(format!("precision.{cause}.n_bb-20"), one.map(|(least, _)| least));
        let both = |range: Option<(SettingValue<'_>, SettingValue<'_>)>| {
            range.map_or((0.0, 0.0), |(low, high)| (low.0, high.0))
        };
        ranges.insert(cause, [both(precision), both(recall)]);
    }
    let fewest = judged.iter().min_by_key(|(_, runs)| runs.problems);
    let fewest =
        fewest.map(|(name, runs)| MeasuredValue::exact(runs.problems as f64, settings).with_note((*name).into()));
    computed.values.push(("range.problems".into(), fewest));
    ranges
}

fn cause_of(why: DropReason) -> LossCause {
    match why {
        DropReason::Full => LossCause::Congestion,
        DropReason::Corrupted => LossCause::Random,
        DropReason::Blackhole => LossCause::Blackhole,
        DropReason::Expired => LossCause::Loop,
        DropReason::Filtered => LossCause::Unknown,
    }
}

/// Number of problems that are found, and the links that are accused although they are not guilty.
fn accusations(run: &LossRadarRun, accused: &[Culprit<u32>]) -> (usize, Vec<String>) {
    let leads_to = |culprit: &Culprit<u32>| run.topology.to(DirectedLink(culprit.segment));
    let links = run.setup_links.chunks(2).filter(|link| {
        accused.iter().any(|culprit| culprit.cause == LossCause::Random && link.contains(&culprit.segment))
    });
    let holes = run.rules.iter().filter(|rule| {
        accused.iter().any(|culprit| culprit.cause == LossCause::Blackhole && leads_to(culprit) == rule.switch)
    });
    let is_guilty = |culprit: &&Culprit<u32>| match culprit.cause {
        LossCause::Random => run.setup_links.contains(&culprit.segment),
        LossCause::Blackhole => run.rules.iter().any(|rule| rule.switch == leads_to(culprit)),
        _ => false,
    };
    let innocent = accused.iter().filter(|culprit| !is_guilty(culprit)).map(|culprit| {
        let link = DirectedLink(culprit.segment);
        let [from, to] = [run.topology.from(link), run.topology.to(link)].map(|node| run.topology.name(node));
        format!("{from} to {to}: {} {}", culprit.losses, culprit.cause)
    });
    (links.count() + holes.count(), innocent.collect())
}

fn chart(table: &CauseMatrix, ranges: &CauseRanges) -> Chart {
    let group = |cause: LossCause| {
        let bar = |name: &str, share: Option<(f64, u64)>, paper| Bar {
            name: name.into(),
            ours: share.map(|(share, _)| share),
            paper,
        };
        let said = match cause {
            LossCause::Random => [Some(0.976), Some(0.903)],
            LossCause::Blackhole => [Some(1.0), Some(0.731)],
            _ => [None; 2],
        };
        let (precision, recall) = (table.precision(cause), table.recall(cause));
        let mut bars = vec![bar("precision", precision, said[0]), bar("recall", recall, said[1])];
        for (what, (low, high)) in
            ["precision", "recall"].into_iter().zip(ranges.get(&cause).copied().unwrap_or_default())
        {
            bars.push(bar(&format!("{what}, least"), Some((low, 0)), None));
            bars.push(bar(&format!("{what}, most"), Some((high, 0)), None));
        }
        BarGroup { name: cause.to_string(), bars }
    };
    Chart::Bars(BarsChart {
        title: "Causes of losses: precision and recall".into(),
        caption: "By lost packet; least and most over the ranges of Table 5.3. The thesis's precision of random drops is its \
                  lowest over all settings."
            .into(),
        axis: Axis::linear("share").within(0.0, 1.0),
        groups: CAUSES.into_iter().map(group).collect(),
    })
}

/// The whole table in a sentence for each cause.
fn confusion(table: &CauseMatrix) -> String {
    let line = |truth: LossCause| {
        let said: Vec<String> = LossCause::ALL
            .into_iter()
            .map(|said| (said, table.sum(|of, called| of == truth && called == said)))
            .filter(|(_, packets)| *packets > 0)
            .map(|(said, packets)| format!("{packets} {said}"))
            .collect();
        format!("Lost for {truth}, and called: {}.", said.join(", "))
    };
    CAUSES.map(line).join(" ")
}
