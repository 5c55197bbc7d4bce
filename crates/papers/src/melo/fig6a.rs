//! melo.fig6a: what it takes a processor to put packets in order that arrived out of it (§4.2.1).
//!
//! The number of those packets is simulated, and judged. The time of a copy is measured on the machine at hand, so what
//! follows from it is only reported, not judged.

use std::hint::black_box;

use chart::{Axis, Chart, Line, LinesChart};
use report::claim::{ClaimError, MeasuredValue, RunScale};
use report::parallel;
use report::runner::{ComputedValues, Effort};
use report::stopwatch::Stopwatch;
use scenario::Scenario;

const ONE_FLOW: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/melo/one-flow.toml"));

const LOSSES: [(&str, f64); 6] =
    [("0.05", 0.0005), ("0.1", 0.001), ("0.2", 0.002), ("0.5", 0.005), ("1", 0.01), ("2", 0.02)];

/// Payload of a packet, and of a bandwidth-delay product, which is as much as ever waits to be put in order.
const PACKET: usize = 1_024;
const REORDERED: usize = 512 * 1_024;
/// Bits a second of payload to be copied, if every packet is.
const RATE: f64 = 40e9;

/// What is said instead of the file: 100 µs there and back, a window of twice the bandwidth-delay product and bits for it.
const SETS: [&str; 4] =
    ["topology.delay=25us", "traffic.outstanding=1024", "traffic.pool=2048", "traffic.timeout=150us"];

pub(super) fn compute(effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let bytes = if effort.scale == RunScale::Full { 4_000_000_000 } else { 400_000_000 };
    let Some(shares) = out_of_order(bytes, effort)? else { return Ok(None) };
    let mut computed = ComputedValues::default();
    let copy = seconds_per_copy();
    let all = RATE / 8.0 / PACKET as f64 * copy;
    for ((name, loss), (share, packets)) in LOSSES.iter().zip(&shares) {
        let expected = expected(*loss);
        let note = format!("1 − exp(−loss · {IN_A_ROUND_TRIP}) is {expected:.3}");
        computed.value(format!("share.{name}"), MeasuredValue::exact(*share, *packets).with_note(note));
        computed.value(format!("over-expected.{name}"), MeasuredValue::exact(share / expected, *packets));
        computed.value(format!("cpu.{name}"), MeasuredValue::exact(share * all, ROUNDS as u64));
    }
    let note = format!("{:.0} ns for a packet, {:.1} GB/s", copy * 1e9, PACKET as f64 / copy / 1e9);
    computed.value("cpu.all", MeasuredValue::exact(all, ROUNDS as u64).with_note(note));
    let points = |value: &dyn Fn(f64, f64) -> f64| {
        LOSSES.iter().zip(&shares).map(|((_, loss), (share, _))| (*loss, value(*loss, *share))).collect()
    };
    computed.charts.push(Chart::Lines(LinesChart {
        title: "Packets that arrive out of order, by loss".into(),
        caption:
            "One flow at 40G with 100 µs there and back. The paper's mark is its processor time at 0.2 % as a share of \
                  that for all packets."
                .into(),
        x: Axis::log("loss"),
        y: Axis::linear("share of packets").within(0.0, 1.0),
        lines: vec![
            Line::reference("1 − exp(−loss · packets in a round trip)", points(&|loss, _| expected(loss))),
            Line::new("simulated", points(&|_, share| share)).with_paper(vec![(0.002, 0.30 / 0.822)]),
        ],
    }));
    Ok(Some(computed))
}

/// Packets that arrive while a hole is open, which it is for a round trip: 100 µs at 40G, each with its headers and the gap
/// between frames, 1,106 bytes.
const IN_A_ROUND_TRIP: f64 = 452.0;

/// How likely one of those was lost.
fn expected(loss: f64) -> f64 {
    -(-loss * IN_A_ROUND_TRIP).exp_m1()
}

/// The share of packets that were placed behind a hole, by loss, and how many packets there were; `None` if it was stopped
/// early.
fn out_of_order(bytes: u64, effort: &Effort<'_>) -> Result<Option<Vec<(f64, u64)>>, ClaimError> {
    let packets = bytes.div_ceil(PACKET as u64);
    let mut setups = Vec::new();
    for (_, loss) in LOSSES {
        let own = [format!("link.forward.loss={loss}"), format!("traffic.size={bytes}")];
        let sets: Vec<String> = SETS.map(str::to_owned).into_iter().chain(own).collect();
        let scenario = Scenario::parse("one-flow.toml", ONE_FLOW, &sets).map_err(ClaimError::new)?;
        setups.extend(scenario.points.iter().take(1).map(|point| point.setup(effort.seed)));
    }
    effort.progress.expect_parts(setups.len());
    let outcomes = parallel::map(&setups, effort.jobs, |setup| {
        let outcome = sim::net::run(setup.clone(), effort.progress);
        effort.progress.part_done();
        outcome
    });
    let mut shares = Vec::new();
    for outcome in outcomes {
        let outcome = outcome.map_err(ClaimError::new)?;
        if outcome.interrupted {
            return Ok(None);
        }
        let ahead: u64 = outcome.flows.iter().map(|flow| u64::from(flow.tally.out_of_order)).sum();
        shares.push((ahead as f64 / packets as f64, packets));
    }
    Ok(Some(shares))
}

const ROUNDS: usize = 7;

/// How long it takes to copy a packet's payload from a buffer of a bandwidth-delay product to one larger than caches: the
/// median of some rounds over all of it.
fn seconds_per_copy() -> f64 {
    const APPLICATION: usize = 128 << 20;
    let reordered = vec![0x5a_u8; REORDERED];
    let mut application = vec![0_u8; APPLICATION];
    let mut round = || {
        let begun = Stopwatch::start();
        let packets = black_box(&reordered).chunks_exact(PACKET).cycle();
        for (to, from) in black_box(&mut application).chunks_exact_mut(PACKET).zip(packets) {
            to.copy_from_slice(from);
        }
        begun.seconds() / (APPLICATION / PACKET) as f64
    };
    // The first finds pages that are not there yet.
    round();
    let mut times: Vec<f64> = (0..ROUNDS).map(|_| round()).collect();
    times.sort_by(f64::total_cmp);
    times[ROUNDS / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrives_within_a_round_trip_of_a_loss_is_out_of_order() {
        let effort = Effort { scale: RunScale::Quick, jobs: 1, seed: 1, progress: &units::Unwatched };
        let shares = out_of_order(40_000_000, &effort).unwrap().unwrap();
        for ((name, loss), (share, packets)) in LOSSES.iter().zip(shares) {
            // At the lowest loss it hangs on twenty losses.
            assert!((share / expected(*loss) - 1.0).abs() < 0.3 && share < 1.0, "{name}: {share} of {packets}");
        }
    }

    #[test]
    fn a_copy_takes_time() {
        let copy = seconds_per_copy();
        assert!(copy > 1e-9 && copy < 1e-3, "{copy}");
    }
}
