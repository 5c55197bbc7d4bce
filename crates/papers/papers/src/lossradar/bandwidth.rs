//! lr.bandwidth: what digests cost on their way to the collector, beside mirroring all packets (§5.7.1, Fig. 5.6).

use chart::{Axis, Chart, Line, LinesChart};
use faults::Random;
use radar::digest::{Digest, DigestShape};
use radar::signature::Fields;
use report::claim::{ClaimError, MeasuredValue, RunScale};
use report::runner::{ComputedValues, Effort};
use units::Prob;

use super::digests::{self, DigestTrials, packet, signature};
use super::size::SUCCESS;

/// Bytes of a packet on the wire: 175, and 20 of gap and preamble.
const PACKET: f64 = 175.0 + 20.0;
/// Bytes of a packet in NetSight's best compression.
const MIRRORED: f64 = 10.0;
/// Batches in a second, each with a digest of each of two meters.
const BATCHES: f64 = 100.0;
const METERS: f64 = 2.0;
/// Bits of the smallest signature (§5.3.2).
const BASIC_BITS: f64 = 120.0;
/// Bits of a signature with the fields that the analysis needs, and of the counter beside it.
const SIGNATURE_BITS: f64 = BASIC_BITS + 16.0;
const COUNT_BITS: f64 = 16.0;
/// Bytes of a cell.
pub(super) const CELL: f64 = (SIGNATURE_BITS + COUNT_BITS) / 8.0;

/// Loss, the cells for each loss that are tried, and what the thesis says in Mb/s.
const CASES: [(&str, f64, [f64; 8], f64); 2] = [
    ("0.1", 0.001, [1.5, 1.8, 2.1, 2.4, 2.6, 2.8, 3.0, 3.3], 2.9),
    ("1", 0.01, [1.24, 1.28, 1.3, 1.32, 1.34, 1.36, 1.4, 1.45], 25.6),
];

/// Rates of Fig. 5.6.
const GIGABITS: [f64; 7] = [4.0, 10.0, 20.0, 40.0, 60.0, 80.0, 100.0];

/// Losses in a batch.
pub(super) fn losses_in_batch(gigabits: f64, loss: f64) -> f64 {
    packets_per_second(gigabits) / BATCHES * loss
}

fn packets_per_second(gigabits: f64) -> f64 {
    gigabits * 1e9 / (PACKET * 8.0)
}

/// The bandwidth of digests with `cells` cells, in Mb/s.
fn megabits(cells: f64) -> f64 {
    with_signature(cells, SIGNATURE_BITS)
}

fn with_signature(cells: f64, bits: f64) -> f64 {
    cells * (bits + COUNT_BITS) * METERS * BATCHES / 1e6
}

fn mirroring(gigabits: f64) -> f64 {
    packets_per_second(gigabits) * MIRRORED * 8.0 / 1e6
}

pub(super) fn compute(effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let mut computed = ComputedValues::default();
    computed.value("mpps", MeasuredValue::exact(packets_per_second(10.0) / 1e6, 1));
    computed.value("mirroring", MeasuredValue::exact(mirroring(10.0), 1));
    for case in &CASES {
        if one_loss_rate(case, effort, &mut computed).is_none() {
            return Ok(None);
        }
    }
    for (name, loss, ..) in &CASES {
        for gigabits in GIGABITS.into_iter().filter(|gigabits| *gigabits != 10.0) {
            let saved = 1.0 - share_of_mirroring(gigabits, *loss);
            computed.value(format!("saved.{name}.{gigabits}G"), MeasuredValue::exact(saved, 1));
        }
    }
    computed.charts.push(chart());
    Ok(Some(computed))
}

/// `None` if the watch ended it early.
fn one_loss_rate(
    (name, loss, each, paper): &(&str, f64, [f64; 8], f64),
    effort: &Effort<'_>,
    computed: &mut ComputedValues,
) -> Option<()> {
    let losses = losses_in_batch(10.0, *loss).round() as usize;
    let trials = if effort.scale == RunScale::Full { 20_000 } else { 2_000 };
    let with = |cells: f64| DigestTrials { losses, cells: cells.round() as usize, trials };
    let of_the_thesis = with(paper / megabits(1.0));
    let mut tried: Vec<DigestTrials> = each.iter().map(|each| with(each * losses as f64)).collect();
    tried.extend([of_the_thesis, with(paper / with_signature(1.0, BASIC_BITS))]);
    let mut outcomes = digests::try_all(&tried, effort)?;
    let (basic, thesis) = (outcomes.pop()?, outcomes.pop()?);
    let curve: Vec<(f64, f64)> =
        tried.iter().zip(&outcomes).map(|(tried, outcome)| (tried.each(), outcome.decoded())).collect();
    let cells = digests::crossing(&curve, SUCCESS).map(|each| each * losses as f64);
    let mut value = |what: &str, of: &dyn Fn(f64) -> f64| {
        let measured = cells.map(|cells| MeasuredValue::exact(of(cells), u64::from(trials)));
        computed.values.push((format!("{what}.{name}"), measured));
    };
    value("cells", &|cells| cells);
    value("lossradar", &megabits);
    value("basic", &|cells| with_signature(cells, BASIC_BITS));
    value("saved", &|cells| 1.0 - megabits(cells) / mirroring(10.0));
    value("count-bits", &|cells| paper * 1e6 / METERS / BATCHES / cells - SIGNATURE_BITS);
    value("as-written", &|cells| as_written(cells.round() as usize, effort.seed));
    computed.value(format!("decoded.{name}"), thesis.share_decoded());
    computed.value(format!("decoded.basic.{name}"), basic.share_decoded());
    computed.value(format!("named.{name}"), thesis.share_named());
    Some(())
}

/// Mb/s of digests as this program writes them, with every packet of a batch in them.
fn as_written(cells: usize, seed: u64) -> f64 {
    let mut random = Random::new(seed, 1);
    let mut digest = Digest::new(DigestShape::new(cells, seed, Fields::ALL));
    let packets = (packets_per_second(10.0) / BATCHES) as u64;
    (0..packets).for_each(|_| digest.insert(&signature(&packet(&mut random))));
    digest.to_bytes().len() as f64 * 8.0 * METERS * BATCHES / 1e6
}

pub(super) fn cells_for(losses: f64) -> f64 {
    DigestShape::for_losses(losses.round() as usize, Prob::literal(SUCCESS)).cells() as f64
}

/// Cost of digests as a share of that of mirroring, with cells by the measured rule.
fn share_of_mirroring(gigabits: f64, loss: f64) -> f64 {
    megabits(cells_for(losses_in_batch(gigabits, loss))) / mirroring(gigabits)
}

/// Fig. 5.6, with digests as large as the measured rule says.
fn chart() -> Chart {
    let line = |(name, loss, _, paper): &(&str, f64, [f64; 8], f64)| {
        let points = GIGABITS.into_iter().map(|gigabits| (gigabits, share_of_mirroring(gigabits, *loss))).collect();
        Line::new(format!("{name} % lost"), points).with_paper(vec![(10.0, paper / mirroring(10.0))])
    };
    Chart::Lines(LinesChart {
        title: "What digests cost, as a share of mirroring".into(),
        caption: "Both meters, every 10 ms, with cells for 99 % of batches, beside 10 bytes for every packet.".into(),
        x: Axis::linear("traffic, Gb/s"),
        y: Axis::log("share of mirroring"),
        lines: CASES.iter().map(line).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of the thesis that follow from its settings alone.
    #[test]
    fn the_accounts_are_those_of_the_thesis() {
        let near = |ours: f64, thesis: f64| assert!((ours / thesis - 1.0).abs() < 0.01, "{ours}, not {thesis}");
        near(packets_per_second(10.0), 6.41e6);
        near(mirroring(10.0), 513.0);
        near(megabits(1.314 * 641.0), 25.6);
        near(megabits(1.49 * 64.0), 2.9);
    }

    #[test]
    fn a_larger_digest_takes_more_on_the_network() {
        let [small, large] = [100, 1_000].map(|cells| as_written(cells, 1));
        assert!(large > 9.0 * small && large < 11.0 * small, "{small} and {large}");
        assert!(small > megabits(100.0), "64-bit sums are wider than what they sum");
    }
}
