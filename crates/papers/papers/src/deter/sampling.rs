//! det.sampling: send times of a flow whose rate changes (§6.3.3, Fig. 6.5).

use ::deter::sampling::{by_gaps, sample};
use chart::{Axis, Chart, Line, LinesChart};
use report::claim::{ClaimError, MeasuredValue};
use report::runner::{ComputedValues, Effort};
use results::replay::SampleCost;
use units::{Span, Time};

use super::runs;

pub(super) const THRESHOLDS: [u64; 3] = [2, 5, 10];
/// Packets that follow within this time are of one burst.
const BURST_GAP: Span = Span::from_us(5);

pub(super) fn compute(effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    effort.progress.expect_parts(1);
    let setup = runs::setup("two-flows.toml", &[], effort.seed)?;
    let Some(recording) = runs::record(&setup, u32::MAX, effort)? else { return Ok(None) };
    effort.progress.part_done();
    let first = recording.connections.first().ok_or_else(|| ClaimError::new("no connection"))?;
    let times: Vec<Time> = first.packets[0].iter().map(|packet| packet.at).collect();
    let mut computed = ComputedValues::default();
    let mut lines = Vec::new();
    let gaps = ("gaps".to_owned(), by_gaps(&times, BURST_GAP));
    let by_rates = THRESHOLDS.map(|us| (format!("{us}us"), sample(&times, Span::from_us(us))));
    for (name, samples) in std::iter::once(gaps).chain(by_rates) {
        let mut cost = SampleCost::default();
        let inferred = cost.through_bytes(&samples, times.len()).map_err(ClaimError::new)?;
        let errors: Vec<f64> = times.iter().zip(&inferred).map(|(real, inferred)| late_us(*real, *inferred)).collect();
        let largest = errors.iter().enumerate().max_by(|(_, one), (_, other)| one.abs().total_cmp(&other.abs()));
        let (packet, error) = largest.ok_or_else(|| ClaimError::new("no packet"))?;
        let measured = |value| MeasuredValue::exact(value, times.len() as u64);
        let note =
            format!("packet {packet}, {}", if *error > 0.0 { "inferred too late" } else { "inferred too early" });
        computed.value(name.clone(), measured(error.abs()).with_note(note));
        computed.value(format!("{name}.per-sample"), measured(cost.packets_per_sample()));
        computed.value(format!("{name}.bytes"), measured(cost.bytes_per_packet()));
        lines.push(Line::new(name, errors.iter().enumerate().map(|(packet, error)| (packet as f64, *error)).collect()));
    }
    computed.charts.push(Chart::Lines(LinesChart {
        title: "How late the inferred send time of each packet is".into(),
        caption:
            "The first of two flows that share 10G; the second starts after 500 µs. By gaps, and by Algorithm 12 with \
                  three thresholds."
                .into(),
        x: Axis::linear("packet"),
        y: Axis::linear("µs"),
        lines,
    }));
    Ok(Some(computed))
}

/// Time by which an inferred time is later than the real one, in µs.
fn late_us(real: Time, inferred: Time) -> f64 {
    inferred.since(real).as_us() - real.since(inferred).as_us()
}
