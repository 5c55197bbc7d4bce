//! lr.cause: causes of losses, held against what the network knows (§5.7.2.2, Fig. 5.9).

use std::collections::BTreeMap;

use chart::{Axis, Bar, BarGroup, BarsChart, Chart};
use machine::DropReason;
use radar::causes::{CauseThresholds, Culprit};
use radar::loss::LossCause;
use report::claim::MeasuredValue;
use report::runner::ComputedValues;
use sim::topology::DirectedLink;

use super::{LossRadarRun, PacketKey, key_of_dropped, key_of_lost};

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
    let (mut table, mut problems, mut wrongly, mut names) = (CauseMatrix::default(), usize::MAX, 0, Vec::new());
    for run in runs.iter().filter(|run| run.fan_in == 20) {
        let verdict = run.metered.judge(&run.topology, &CauseThresholds::default());
        let truth: BTreeMap<PacketKey, LossCause> =
            run.dropped().map(|dropped| (key_of_dropped(dropped), cause_of(dropped.why))).collect();
        for (lost, said) in run.metered.losses.iter().zip(&verdict.causes) {
            table.add(truth.get(&key_of_lost(lost)).copied().unwrap_or_default(), *said);
        }
        let (found, innocent) = accusations(run, &verdict.accused);
        problems = problems.min(found);
        wrongly += innocent.len();
        names.extend(innocent);
    }
    for cause in CAUSES {
        let counted = |(share, n): (f64, u64)| MeasuredValue::share((share * n as f64).round() as u64, n);
        let measured = |share: Option<(f64, u64)>| share.and_then(counted);
        computed.values.push((format!("precision.{cause}"), measured(table.precision(cause))));
        computed.values.push((format!("recall.{cause}"), measured(table.recall(cause))));
    }
    let found = if problems == usize::MAX { 0 } else { problems };
    computed.value("problems", MeasuredValue::exact(found as f64, 6));
    let wrong = MeasuredValue::exact(wrongly as f64, runs.len() as u64);
    computed.value("wrongly-accused", if names.is_empty() { wrong } else { wrong.with_note(names.join(", ")) });
    computed.charts.push(chart(&table));
    computed.notes.push(confusion(&table));
    computed
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

/// How many of the problems are found, and who is accused of what it is not guilty of.
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

fn chart(table: &CauseMatrix) -> Chart {
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
        BarGroup {
            name: cause.to_string(),
            bars: vec![bar("precision", precision, said[0]), bar("recall", recall, said[1])],
        }
    };
    Chart::Bars(BarsChart {
        title: "Causes of losses: precision and recall".into(),
        caption: "By lost packet. The thesis's precision of random drops is its lowest over all settings.".into(),
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
