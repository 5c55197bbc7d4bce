//! Fairness among flows that share a bottleneck, while all of them are active.
//!
//! A run keeps no goodput of single flows over time. But the same seed gives the same run: one that ends when the last flow has
//! begun, and one that ends when the first is complete, tell how much each flow received in between.

use scenario::SweepPoint;
use sim::net::{FlowRow, NetworkSetup};
use units::{Progress, Time};

/// Flows smaller than this end before they can share anything.
const LONG: u64 = 100_000;

/// Jain's index of values: 1 if all are equal, 1/n if one has everything. None if there is nothing to share.
pub(super) fn jain(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|value| value * value).sum();
    (squares > 0.0).then(|| sum * sum / (values.len() as f64 * squares))
}

/// Jain's index of the goodputs of long flows during the time that all of them are active; none if there is no such time,
/// or if `progress` ended a run.
pub(super) fn of_long_flows(
    point: &SweepPoint,
    seed: u64,
    flows: &[FlowRow],
    progress: &dyn Progress,
) -> Result<Option<f64>, String> {
    let long: Vec<&FlowRow> = flows.iter().filter(|flow| flow.bytes >= LONG).collect();
    let begin = long.iter().map(|flow| flow.start).max();
    let end = long.iter().filter_map(|flow| flow.finish).min();
    let (Some(begin), Some(end)) = (begin, end) else { return Ok(None) };
    if long.len() < 2 || begin >= end {
        return Ok(None);
    }
    let Some(before) = received_until(point, seed, begin, progress)? else { return Ok(None) };
    let Some(after) = received_until(point, seed, end, progress)? else { return Ok(None) };
    let goodput = |flow: &&FlowRow| received(&after, flow).saturating_sub(received(&before, flow)) as f64;
    Ok(jain(&long.iter().map(goodput).collect::<Vec<_>>()))
}

/// The flows of a run that ends at this time.
fn received_until(
    point: &SweepPoint,
    seed: u64,
    until: Time,
    progress: &dyn Progress,
) -> Result<Option<Vec<FlowRow>>, String> {
    let setup = NetworkSetup { until, rtt: false, ..point.setup(seed) };
    let outcome = sim::net::run(setup, progress).map_err(|error| error.to_string())?;
    Ok((!outcome.interrupted).then_some(outcome.flows))
}

/// Payload that a flow of the whole run had received when another run ended.
fn received(flows: &[FlowRow], flow: &FlowRow) -> u64 {
    let is_same = |other: &&FlowRow| {
        (other.traffic, other.src, other.dst, other.start) == (flow.traffic, flow.src, flow.dst, flow.start)
    };
    flows.iter().find(is_same).map_or(0, |flow| flow.received)
}
