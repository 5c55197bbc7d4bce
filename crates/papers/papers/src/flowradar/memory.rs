//! fr.memory: what a switch's flowset takes so that it is decoded in 99 of 100 slots (§4.5.1, Fig. 4.3).

use radar::flowset::FlowsetShape;
use radar::flowset::sizing::DecoderKind;
use report::claim::{ClaimError, MeasuredValue, RunScale};
use report::runner::{ComputedValues, Effort};
use units::Prob;

use super::fabric::{self, DIFFERING, FatTreeFabric};

pub(super) const SUCCESS: Prob = Prob::literal(0.99);
/// The thesis's k_c.
pub(super) const ROWS: u8 = 4;

/// Cells for each flow among which the least that do are looked for, beside flows of which every switch has some others too.
const LEAST: [f64; 8] = [1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65];
const LEAST_FLOWS: u64 = 10_000;

pub(super) fn compute(effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let mut computed = ComputedValues::default();
    let full = effort.scale == RunScale::Full;
    for (name, flows, trials) in
        [("100k", 100_000, if full { 1_000 } else { 60 }), ("1m", 1_000_000, if full { 100 } else { 3 })]
    {
        let single = FlowsetShape::for_flows(flows, SUCCESS, ROWS, DecoderKind::Single, 0);
        let network = FlowsetShape::for_flows(flows, SUCCESS, ROWS, DecoderKind::Network, 0);
        computed.value(format!("single.{name}"), megabytes(&single, flows));
        let fewer_rows = FlowsetShape::for_flows(flows, SUCCESS, 3, DecoderKind::Single, 0);
        computed.value(format!("single3.{name}"), megabytes(&fewer_rows, flows));
        computed.value(format!("network.{name}"), megabytes(&network, flows));
        let seeds: Vec<u64> = (0..trials).map(|trial| effort.seed.wrapping_mul(10_000).wrapping_add(trial)).collect();
        let failed = parallel::map(&seeds, effort.jobs, |seed| {
            let is_over = super::is_over(effort);
            is_over || !fabric::alone(flows, single, *seed % (1 << 30)).decode().is_complete()
        });
        let failed = failed.into_iter().filter(|failed| *failed).count();
        if super::is_over(effort) {
            return Ok(None);
        }
        computed.value(format!("single-success.{name}"), MeasuredValue::share(trials - failed as u64, trials));
        let measured = (flows == 100_000 || full).then(|| network_success(flows, network, effort.seed)).flatten();
        computed.values.push((format!("network-success.{name}"), measured));
    }
    let least = LEAST.into_iter().take_while(|each| {
        let cells = (each * LEAST_FLOWS as f64) as usize;
        let shape = FlowsetShape::for_flows(LEAST_FLOWS, SUCCESS, ROWS, DecoderKind::Network, 0);
        let shape = FlowsetShape::new(ROWS, cells, shape.filter_hashes(), shape.filter_bits(), 0);
        network_success(LEAST_FLOWS, shape, effort.seed).is_some_and(|share| share.value >= SUCCESS.get())
    });
    let least = least.last().map(|each| MeasuredValue::exact(each, FatTreeFabric::new(4).switches() as u64));
    computed.values.push(("least-cells".into(), least));
    Ok(Some(computed))
}

fn megabytes(shape: &FlowsetShape, flows: u64) -> MeasuredValue {
    let note = format!(
        "{} cells, a filter of {} bits and {} hashes",
        shape.cells(),
        shape.filter_bits(),
        shape.filter_hashes()
    );
    MeasuredValue::exact(shape.switch_bytes(flows) / 1e6, 1).with_note(note)
}

/// The share of switches of which flows and counters are all known, in a FatTree of four.
fn network_success(flows: u64, shape: FlowsetShape, seed: u64) -> Option<MeasuredValue> {
    let fabric = FatTreeFabric::new(4);
    let complete = fabric.complete(fabric.count(flows, shape, DIFFERING, seed));
    MeasuredValue::share(complete as u64, fabric.switches() as u64)
}
