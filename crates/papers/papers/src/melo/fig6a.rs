//! melo.fig6a: what it takes a processor to put packets in order that arrived out of it (§4.2.1).
//!
//! The number of those packets, and the number in a block when they become consecutive, is simulated. The time for copying
//! is measured on the machine at hand, and scaled to the paper's by the time that copying every packet alone takes on both.

use std::hint::black_box;

use chart::{Axis, Chart, Line, LinesChart};
use parallel::Stopwatch;
use report::claim::{ClaimError, MeasuredValue, RunScale};
use report::runner::{ComputedValues, Effort};
use scenario::Scenario;

const ONE_FLOW: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../experiments/melo/one-flow.toml"));

const LOSSES: [(&str, f64); 6] =
    [("0.05", 0.0005), ("0.1", 0.001), ("0.2", 0.002), ("0.5", 0.005), ("1", 0.01), ("2", 0.02)];

/// Payload of a packet, and of a bandwidth-delay product, which is as much as ever waits to be put in order.
const PACKET: usize = 1_024;
const REORDERED: usize = 512 * 1_024;
/// Bits a second of payload to be copied, if every packet is.
const RATE: f64 = 40e9;

/// Settings that replace the file's: 100 µs there and back, a window of twice the bandwidth-delay product and bits for it.
const SETS: [&str; 4] =
    ["topology.delay=25us", "traffic.outstanding=1024", "traffic.pool=2048", "traffic.timeout=150us"];

/// The paper's processor time for copying every packet of 40 Gb/s.
const PAPER_ALL: f64 = 0.822;

/// Reordering of a run's packets.
#[derive(Clone, Copy, Debug)]
struct ReorderedShare {
    packets: u64,
    /// Share of packets placed behind a hole.
    share: f64,
    /// Packets that are copied at once, on average.
    block: f64,
}

/// Processor seconds for a second's packets.
#[derive(Clone, Copy, Debug)]
struct CopyTime {
    loss: f64,
    blocks: f64,
    scaled: f64,
    single: f64,
}

pub(super) fn compute(effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let bytes = if effort.scale == RunScale::Full { 4_000_000_000 } else { 400_000_000 };
    let Some(reordered) = reordering(bytes, effort)? else { return Ok(None) };
    let mut computed = ComputedValues::default();
    let mut times = Vec::new();
    let mut singles = Vec::new();
    for ((name, loss), ReorderedShare { packets, share, block }) in LOSSES.iter().zip(&reordered) {
        let expected = expected(*loss);
        let note = format!("1 − exp(−loss · {IN_A_ROUND_TRIP}) is {expected:.3}");
        let rounds = copies((block.round() as usize * PACKET).clamp(PACKET, REORDERED));
        let blocks = median(rounds.iter().map(|round| share * RATE / 8.0 * round.block));
        let scaled = median(rounds.iter().map(|round| share * PAPER_ALL * round.block / round.single));
        let Some((blocks, scaled)) = blocks.zip(scaled) else { return Ok(None) };
        singles.extend(rounds.iter().map(|round| round.single));
        let single = share * PAPER_ALL;
        times.push(CopyTime { loss: *loss, blocks: blocks.value, scaled: scaled.value, single });
        let mut value = |what: &str, value: MeasuredValue| computed.value(format!("{what}.{name}"), value);
        value("over-expected", MeasuredValue::exact(share / expected, *packets));
        value("block", MeasuredValue::exact(*block, *packets));
        value("cpu", blocks);
        value("scaled", scaled);
        value("single", MeasuredValue::exact(single, *packets));
        value("share", MeasuredValue::exact(*share, *packets).with_note(note));
    }
    let all = median(singles.iter().map(|copy| RATE / 8.0 * copy));
    computed.value(
        "cpu.all",
        all.map(|all| {
            let copy = all.value / (RATE / 8.0);
            let note = format!("{:.0} ns for a packet, {:.1} GB/s", copy * PACKET as f64 * 1e9, 1.0 / copy / 1e9);
            all.with_note(note)
        }),
    );
    computed.charts.extend([share_chart(&reordered), time_chart(&times)]);
    Ok(Some(computed))
}

fn share_chart(reordered: &[ReorderedShare]) -> Chart {
    let points = |value: &dyn Fn(f64, f64) -> f64| {
        LOSSES.iter().zip(reordered).map(|((_, loss), one)| (*loss, value(*loss, one.share))).collect()
    };
    Chart::Lines(LinesChart {
        title: "Packets that arrive out of order, by loss".into(),
        caption: "One flow at 40G with 100 µs there and back.".into(),
        x: Axis::log("loss"),
        y: Axis::linear("share of packets").within(0.0, 1.0),
        lines: vec![
            Line::reference("1 − exp(−loss · packets in a round trip)", points(&|loss, _| expected(loss))),
            Line::new("simulated", points(&|_, share| share)),
        ],
    })
}

/// Fig. 6(a).
fn time_chart(times: &[CopyTime]) -> Chart {
    let line = |of: fn(&CopyTime) -> f64| times.iter().map(|time| (time.loss, of(time))).collect();
    Chart::Lines(LinesChart {
        title: "Processor time for putting packets in order, by loss".into(),
        caption: "Of one core, at 40 Gb/s. The hollow mark is the paper's at 0.2 %; its worst case is 82.2 %.".into(),
        x: Axis::log("loss"),
        y: Axis::linear("share of a core").within(0.0, 1.0),
        lines: vec![
            Line::new("in blocks, on this machine", line(|time| time.blocks)),
            Line::new("in blocks, on the paper's", line(|time| time.scaled)).with_paper(vec![(0.002, 0.3)]),
            Line::new("packet by packet, on the paper's", line(|time| time.single)),
        ],
    })
}

/// Packets that arrive while a hole is open, which it is for a round trip: 100 µs at 40G, each with its headers and the gap
/// between frames, 1,106 bytes.
const IN_A_ROUND_TRIP: f64 = 452.0;

/// Probability that one of those was lost.
fn expected(loss: f64) -> f64 {
    -(-loss * IN_A_ROUND_TRIP).exp_m1()
}

/// Reordering by loss; `None` if it was stopped early.
fn reordering(bytes: u64, effort: &Effort<'_>) -> Result<Option<Vec<ReorderedShare>>, ClaimError> {
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
        let lost: u64 = outcome.ports.iter().map(|port| port.corrupted).sum();
        let (share, block) = (ahead as f64 / packets as f64, ahead as f64 / lost.max(1) as f64);
        shares.push(ReorderedShare { packets, share, block });
    }
    Ok(Some(shares))
}

const ROUNDS: usize = 21;

/// Time to copy a byte in a round, packet by packet and in blocks.
#[derive(Clone, Copy, Debug)]
struct CopyRound {
    single: f64,
    block: f64,
}

/// Times both kinds of copies in turn, so that other load slows both alike.
fn copies(block: usize) -> Vec<CopyRound> {
    const APPLICATION: usize = 128 << 20;
    let reordered = vec![0x5a_u8; REORDERED];
    let mut application = vec![0_u8; APPLICATION];
    let mut seconds_per_byte = |block: usize| {
        let begun = Stopwatch::start();
        let blocks = black_box(&reordered).chunks_exact(block).cycle();
        let mut copied = 0;
        for (to, from) in black_box(&mut application).chunks_exact_mut(block).zip(blocks) {
            to.copy_from_slice(from);
            copied += block;
        }
        begun.seconds() / copied as f64
    };
    // The first finds pages that are not there yet.
    seconds_per_byte(PACKET);
    (0..ROUNDS).map(|_| CopyRound { single: seconds_per_byte(PACKET), block: seconds_per_byte(block) }).collect()
}

fn median(values: impl Iterator<Item = f64>) -> Option<MeasuredValue> {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    MeasuredValue::quantile(&sorted, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrives_within_a_round_trip_of_a_loss_is_out_of_order() {
        let effort = Effort { scale: RunScale::Quick, jobs: 1, seed: 1, progress: &units::Unwatched };
        let reordered = reordering(40_000_000, &effort).unwrap().unwrap();
        for ((name, loss), ReorderedShare { packets, share, .. }) in LOSSES.iter().zip(reordered) {
            // At the lowest loss it hangs on twenty losses.
            assert!((share / expected(*loss) - 1.0).abs() < 0.3 && share < 1.0, "{name}: {share} of {packets}");
        }
    }

    #[test]
    fn a_copy_takes_time() {
        for round in copies(REORDERED) {
            assert!([round.single, round.block].iter().all(|copy| *copy > 1e-12 && *copy < 1e-6), "{round:?}");
        }
    }
}
