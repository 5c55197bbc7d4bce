//! lr.memory: up to which loss digests take less memory than FlowRadar's flowsets (§5.7.1, Fig. 5.7, and the abstract).

use chart::{Axis, Chart, Line, LinesChart};
use report::claim::{ClaimError, MeasuredValue};
use report::runner::{ComputedValues, Effort};

use super::bandwidth::{CELL, cells_for, losses_in_batch};

/// Flows at a cluster switch in 10 ms, and what FlowRadar takes for each: 2.88 MB for 100,000 (§4.5.1).
const FLOWS: f64 = 352_000.0;
const FLOW_BYTES: f64 = 28.8;
/// Ports of a cluster switch: one for each of "at least 64 racks".
const PORTS: f64 = 64.0;
/// An upstream and a downstream meter at each port, with two digests each.
const DIGESTS: f64 = 4.0;

/// Gb/s of a port, and the loss up to which the thesis has digests smaller.
const CASES: [(&str, f64, f64); 3] = [("10G", 10.0, 0.05), ("5G", 5.0, 0.1), ("3G", 3.0, 0.2)];

/// Bytes of a switch's digests.
fn digests(ports: f64, gigabits: f64, loss: f64) -> f64 {
    ports * DIGESTS * CELL * cells_for(losses_in_batch(gigabits, loss))
}

/// The loss at which digests take as much as flowsets of these flows.
fn crossing(ports: f64, gigabits: f64, flows: f64) -> f64 {
    let (mut low, mut high) = (1e-5_f64, 1.0_f64);
    while high / low > 1.001 {
        let middle = (low * high).sqrt();
        (low, high) =
            if digests(ports, gigabits, middle) < flows * FLOW_BYTES { (middle, high) } else { (low, middle) };
    }
    low
}

pub(super) fn compute(_effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let mut computed = ComputedValues::default();
    let mut value = |name: String, value: f64| computed.value(name, MeasuredValue::exact(value, 1));
    let flowsets = FLOWS * FLOW_BYTES;
    let fitted = flowsets / digests(1.0, 10.0, 0.05);
    value("ports".into(), fitted);
    for (name, gigabits, _) in CASES {
        for (kind, ports) in [("", PORTS), ("fitted.", fitted)] {
            value(format!("{kind}crossing.{name}"), crossing(ports, gigabits, FLOWS));
            value(format!("{kind}share.{name}"), digests(ports, gigabits, 0.001) / flowsets);
        }
    }
    let line = |(name, gigabits, loss): (&str, f64, f64)| {
        let flows = |loss: f64| digests(PORTS, gigabits, loss) / FLOW_BYTES;
        let points = (0..=24).map(|step| 1e-3 * 10_f64.powf(f64::from(step) / 10.0)).map(|loss| (loss, flows(loss)));
        Line::new(name, points.collect()).with_paper(vec![(loss, FLOWS)])
    };
    computed.charts.push(Chart::Lines(LinesChart {
        title: "Flows for which flowsets take as much memory as digests".into(),
        caption:
            "Above a line digests are smaller. A switch of 64 ports; hollow marks are the thesis's, for 352 K flows."
                .into(),
        x: Axis::log("loss"),
        y: Axis::log("flows in 10 ms"),
        lines: CASES.into_iter().map(line).collect(),
    }));
    Ok(Some(computed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_the_crossing_both_take_as_much() {
        for ports in [10.0, 64.0] {
            let loss = crossing(ports, 10.0, FLOWS);
            let ratio = digests(ports, 10.0, loss) / (FLOWS * FLOW_BYTES);
            assert!((0.98..1.02).contains(&ratio), "{ports}: {ratio}");
        }
    }
}
