//! lr.capture: how many of the lost packets digests of some size can name (§5.7.2.1, Fig. 5.8).

use std::collections::BTreeMap;

use chart::{Axis, Chart, Line, LinesChart};
use radar::digest::{Digest, DigestShape};
use radar::signature::{Fields, Signature};
use report::claim::MeasuredValue;
use report::runner::ComputedValues;
use units::samples::upper_median;

use super::LossRadarRun;

/// The thesis's signature and counter.
const CELL_BYTES: f64 = 19.0;
/// Kilobytes of a digest.
const SIZES: [f64; 9] = [1.0, 2.0, 3.0, 4.0, 6.0, 7.6, 10.0, 12.0, 14.25];

/// Incasts by name: from how many servers, and how much from each.
const CASES: [(&str, u32, u64); 4] = [
    ("", 20, super::TOGETHER / 20),
    ("", 40, super::TOGETHER / 40),
    ("20KB.", 20, super::EACH),
    ("20KB.", 40, super::EACH),
];

fn of_case(runs: &[LossRadarRun], fan_in: u32, answer: u64) -> impl Iterator<Item = &LossRadarRun> {
    runs.iter().filter(move |run| (run.fan_in, run.answer) == (fan_in, answer))
}

/// Packets, and digests with any, that could be named.
#[derive(Clone, Copy, Debug, Default)]
struct NamedShare {
    named: u64,
    lost: u64,
    whole: u64,
    digests: u64,
    /// Sums over digests of named times named, named times lost and lost times lost.
    squares: [f64; 3],
}

impl NamedShare {
    fn add(self, other: Self) -> Self {
        let [a, b, c] = self.squares;
        let [d, e, f] = other.squares;
        Self {
            named: self.named + other.named,
            lost: self.lost + other.lost,
            whole: self.whole + other.whole,
            digests: self.digests + other.digests,
            squares: [a + d, b + e, c + f],
        }
    }

    /// The share of losses that were named. Losses of one digest are named or not together, so it is digests that make the
    /// interval.
    fn captured(&self) -> MeasuredValue {
        let lost = self.lost.max(1) as f64;
        let share = self.named as f64 / lost;
        let [named, both, all] = self.squares;
        let off = 1.96 * (named - 2.0 * share * both + share * share * all).max(0.0).sqrt() / lost;
        let (low, high) = ((share - off).max(0.0), (share + off).min(1.0));
        let note = format!("{} of {} lost packets named", self.named, self.lost);
        MeasuredValue::counted(share, self.lost, (low, high)).with_note(note)
    }
}

pub(super) fn compute(runs: &[LossRadarRun]) -> ComputedValues {
    let mut computed = ComputedValues::default();
    let mut lines = Vec::new();
    for (name, fan_in, answer) in CASES {
        let of: Vec<&LossRadarRun> = of_case(runs, fan_in, answer).collect();
        let mut points = Vec::new();
        for size in SIZES {
            let share = of.iter().map(|run| decode(run, size)).fold(NamedShare::default(), NamedShare::add);
            let captured = share.captured();
            points.push((size, captured.value));
            computed.value(format!("captured.{name}{fan_in}.{size}"), captured);
            let whole = share.whole as f64 / share.digests.max(1) as f64;
            computed.value(format!("batches.{name}{fan_in}.{size}"), MeasuredValue::exact(whole, share.digests));
        }
        let lost: u64 = of.iter().map(|run| run.metered.truth.lost()).sum();
        let sent: u64 = of.iter().map(|run| run.sent).sum();
        computed.value(format!("loss.{name}{fan_in}"), MeasuredValue::exact(lost as f64 / sent.max(1) as f64, sent));
        let paper = if fan_in == 20 { vec![(2.0, 0.9), (7.6, 1.0)] } else { vec![(14.25, 1.0)] };
        lines.push(Line::new(format!("incasts of {fan_in}, {} KB each", answer / 1_000), points).with_paper(paper));
    }
    let meters = runs.first().map_or(0, |run| run.metered.meters);
    computed.value("meters", MeasuredValue::exact(meters as f64, 1));
    computed.charts.push(Chart::Lines(LinesChart {
        title: "Lost packets that are captured, by the size of digests".into(),
        caption: "A digest for each segment and batch of 10 ms, with cells of 19 bytes. Hollow marks are the thesis's."
            .into(),
        x: Axis::linear("KB"),
        y: Axis::linear("captured").within(0.0, 1.0),
        lines,
    }));
    computed.notes.extend(CASES.map(|(_, fan_in, answer)| concentration(runs, fan_in, answer)));
    computed.notes.extend(runs.iter().filter_map(disagreement));
    computed
}

/// Losses that digests of `kilobytes` kilobytes would have named in a run.
fn decode(run: &LossRadarRun, kilobytes: f64) -> NamedShare {
    let shape = DigestShape::new((kilobytes * 1_000.0 / CELL_BYTES).round() as usize, run.seed, Fields::ALL);
    let mut digest = Digest::new(shape);
    let mut share = NamedShare::default();
    for lost in by_digest(run).values() {
        lost.iter().for_each(|signature| digest.insert(signature));
        let decoded = digest.decode();
        digest.clear();
        let named = decoded.lost.iter().map(|(_, times)| u64::from(*times)).sum::<u64>();
        let (named_f, lost_f) = (named as f64, lost.len() as f64);
        share = share.add(NamedShare {
            named,
            lost: lost.len() as u64,
            whole: u64::from(decoded.left.is_none()),
            digests: 1,
            squares: [named_f * named_f, named_f * lost_f, lost_f * lost_f],
        });
    }
    share
}

/// Lost packets by segment and batch.
fn by_digest(run: &LossRadarRun) -> BTreeMap<(u32, u64), Vec<Signature>> {
    let mut digests: BTreeMap<_, Vec<Signature>> = BTreeMap::new();
    for dropped in run.dropped() {
        digests.entry((dropped.segment, dropped.batch)).or_default().push(dropped.signature);
    }
    digests
}

/// Approximate number of packets that a digest of 2 KB can name.
const FEW: usize = 75;

/// Describes how losses come together: why small digests capture as little as they do.
fn concentration(runs: &[LossRadarRun], fan_in: u32, answer: u64) -> String {
    let of = of_case(runs, fan_in, answer);
    let mut sizes: Vec<usize> = of.flat_map(|run| by_digest(run).into_values().map(|lost| lost.len())).collect();
    let (all, many) = (sizes.iter().sum::<usize>(), sizes.iter().filter(|size| **size > FEW).sum::<usize>());
    format!(
        "With incasts of {fan_in} and {} KB from each, {} digests had a loss, half of them at most {}, the worst {}; {:.0} % of all losses were in \
         digests with more than {FEW}.",
        answer / 1_000,
        sizes.len(),
        upper_median(&mut sizes).unwrap_or_default(),
        sizes.iter().max().copied().unwrap_or_default(),
        100.0 * many as f64 / all.max(1) as f64
    )
}

/// Complaint if the meters, which had digests of one size, did not find what digests of that size would have.
fn disagreement(run: &LossRadarRun) -> Option<String> {
    let kilobytes = run.metered.cells as f64 * CELL_BYTES / 1_000.0;
    let (expected, found) = (decode(run, kilobytes).named, run.metered.losses.len() as u64);
    let clean = run.metered.late == 0 && run.metered.extra == 0;
    (expected != found || !clean).then(|| {
        format!(
            "With incasts of {} and seed {} the meters named {found} packets instead of {expected}; {} came late.",
            run.fan_in, run.seed, run.metered.late
        )
    })
}
