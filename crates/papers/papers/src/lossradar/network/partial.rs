//! lr.partial: memory of a switch's meters where others have none (§5.7.3).

use report::claim::{ClaimError, MeasuredValue};
use report::runner::{ComputedValues, Effort};
use sim::net::metering::Placement;
use sim::topology::{NodeId, Topology};
use units::{Rate, Span};

/// Kilobytes of a digest, of which a meter has two.
const DIGEST: f64 = 7.6;

/// Switches without meters, and next to them one that has meters.
const CASES: [(&str, &str, &str); 5] = [
    ("full", "", "agg0-0"),
    ("tor.aggregation", "edge", "agg0-0"),
    ("aggregation.core", "agg", "core0"),
    ("aggregation.tor", "agg", "edge0-0"),
    ("core.aggregation", "core", "agg0-0"),
];

pub(crate) fn compute(_effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let topology = Topology::fat_tree(8, Rate::gbps(10), Span::ZERO).map_err(ClaimError::new)?;
    let mut computed = ComputedValues::default();
    for (name, black, at) in CASES {
        let is_black = |node: &NodeId| !black.is_empty() && topology.name(*node).starts_with(black);
        let placement = Placement::of(&topology, &topology.switches().filter(is_black).collect::<Vec<_>>());
        let [up, down] = placement.at(&topology, topology.node(at).map_err(ClaimError::new)?);
        let note = format!("{up} upstream meters, {down} downstream");
        let kilobytes = 2.0 * DIGEST * (up + down) as f64;
        computed.value(name, MeasuredValue::exact(kilobytes, (up + down) as u64).with_note(note));
    }
    Ok(Some(computed))
}
