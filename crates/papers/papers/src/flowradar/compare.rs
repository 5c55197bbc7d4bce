//! fr.compare: FlowRadar beside other tables in as much memory (§4.5.1, §4.8), and what its collector takes (§4.5.2).

use num_bigint::BigUint;
use parallel::Stopwatch;
use radar::flowset::network::{CandidateSwitches, FlowsetNetwork};
use radar::flowset::sizing::DecoderKind;
use radar::flowset::{Flowset, FlowsetShape};
use report::claim::{ClaimError, MeasuredValue, RunScale};
use report::runner::{ComputedValues, Effort};

use super::iblt::{self, KeySum, PlainIblt};
use super::memory::SUCCESS;
use super::{dleft, fabric};

const FLOWS: u64 = 100_000;
/// Bytes of a flow in a table of keys and counters, and with two times beside them as NetFlow has.
const ENTRY: f64 = 13.0 + 4.0;
const NETFLOW_ENTRY: f64 = ENTRY + 8.0;
/// Memory and burst of FlowRadar and d-left tables in §4.8.
const MEMORY: f64 = 2.74e6;
const BURST: u64 = 152_000;
/// Runs of each measurement in seconds.
const TIMED_RUNS: u64 = 9;

pub(super) fn compute(effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let mut computed = ComputedValues::default();
    accounts(&mut computed);
    d_left(&mut computed, effort);
    plain_iblt(&mut computed);
    for (name, rows) in [("pair.3", 3), ("pair.4", 4)] {
        let least = least_pair_cells(10_000, rows, effort);
        computed.values.push((name.into(), least));
    }
    computed.values.push(("pair.most".into(), most_pair_flows(102_500, effort)));
    if super::is_over(effort) { Ok(None) } else { Ok(Some(computed)) }
}

/// Computes the values that follow from sizes alone.
fn accounts(computed: &mut ComputedValues) {
    let mut exact = |name: String, value: f64| computed.value(name, MeasuredValue::exact(value, 1));
    exact("netflow.100k".into(), FLOWS as f64 * NETFLOW_ENTRY / 1e6);
    exact("without-times.100k".into(), FLOWS as f64 * ENTRY / 1e6);
    // None of n flows falls on another with probability 1 − n²/2m.
    let cells = (FLOWS as f64).powi(2) / 2.0 / (1.0 - SUCCESS.get());
    exact("hash-table.100k".into(), cells * ENTRY / 1e12);
    for (name, flows) in [("100k", FLOWS), ("1m", 10 * FLOWS)] {
        let netflow = flows as f64 * NETFLOW_ENTRY;
        for (how, rows, decoder) in [
            ("single3", 3, DecoderKind::Single),
            ("single4", 4, DecoderKind::Single),
            ("network", 4, DecoderKind::Network),
        ] {
            let shape = FlowsetShape::for_flows(flows, SUCCESS, rows, decoder, 0);
            exact(format!("over-netflow.{how}.{name}"), shape.switch_bytes(flows) / netflow);
        }
    }
    let gbps =
        FlowsetShape::for_flows(FLOWS, SUCCESS, 3, DecoderKind::Single, 0).switch_bytes(FLOWS) * 8.0 * 100.0 / 1e9;
    exact("rack".into(), gbps / (44.0 * 10.0));
    let k: f64 = 48.0;
    let (switches, servers) = (5.0 * k * k / 4.0, k * k * k / 4.0);
    exact("servers".into(), switches / 16.0 / servers);
}

fn d_left(computed: &mut ComputedValues, effort: &Effort<'_>) {
    let cells = (MEMORY / ENTRY) as usize;
    for (name, parts, deep) in [("basic", 4, 1), ("recommended", 3, 5)] {
        for (load, flows) in [("100k", FLOWS), ("152k", BURST)] {
            let share = dleft::overflow(flows, cells, parts, deep, effort.seed);
            let note = format!("{cells} cells");
            computed.value(format!("d-left.{name}.{load}"), MeasuredValue::exact(share, flows).with_note(note));
        }
    }
    for rows in [3, 4] {
        let filter = FlowsetShape::for_flows(FLOWS, SUCCESS, rows, DecoderKind::Single, 0);
        let each = filter.switch_bytes(FLOWS) - filter.filter_bits() as f64 / 8.0;
        let cells = (MEMORY - filter.filter_bits() as f64 / 8.0) / (each / filter.cells() as f64);
        let shape = FlowsetShape::new(rows, cells as usize, filter.filter_hashes(), filter.filter_bits(), 0);
        for (load, flows) in [("100k", FLOWS), ("152k", BURST)] {
            let left = pair_left(flows, shape, effort.seed);
            let note = format!("{} cells", shape.cells());
            let share = 1.0 - left as f64 / flows as f64;
            computed.value(format!("flows.{load}.{rows}"), MeasuredValue::exact(share, flows).with_note(note));
        }
    }
}

/// A plain table with as many cells as a flowset of three rows, decoded by the same machine.
fn plain_iblt(computed: &mut ComputedValues) {
    let shape = FlowsetShape::for_flows(FLOWS, SUCCESS, 3, DecoderKind::Single, 0);
    let flowset = fastest(|seed| fabric::alone(FLOWS, shape, seed), |flowset| flowset.decode());
    let times = [
        ("iblt.time", fastest(|seed| table::<u128>(shape, seed), PlainIblt::decode)),
        ("iblt.time.big-numbers", fastest(|seed| table::<BigUint>(shape, seed), PlainIblt::decode)),
    ];
    for (name, plain) in times {
        let note = format!("{:.1} and {:.1} ms", plain * 1e3, flowset * 1e3);
        computed.value(name, MeasuredValue::exact(plain / flowset, TIMED_RUNS).with_note(note));
    }
    let (ours, table) = (shape.switch_bytes(FLOWS), table::<u128>(shape, 1));
    computed.value("iblt.memory", MeasuredValue::exact(table.switch_bytes() / ours, 1));
    computed.value("iblt.memory.widest", MeasuredValue::exact(table.widest_bytes() / ours, 1));
}

fn table<Sum: KeySum>(shape: FlowsetShape, seed: u64) -> PlainIblt<Sum> {
    let mut table = PlainIblt::new(shape.cells());
    (0..FLOWS).for_each(|nth| table.add(iblt::key(seed << 24 ^ nth), 1 + nth % 50));
    table
}

/// Seconds of the fastest of some runs, without what prepares them.
fn fastest<Table, Decoded>(prepare: impl Fn(u64) -> Table, decode: impl Fn(Table) -> Decoded) -> f64 {
    let timed = |seed| {
        let table = prepare(seed);
        let begun = Stopwatch::start();
        std::hint::black_box(decode(table));
        begun.seconds()
    };
    (0..TIMED_RUNS).map(timed).fold(f64::MAX, f64::min)
}

/// Two switches with the same flows.
fn pair(flows: u64, shape: FlowsetShape, seed: u64) -> Vec<Flowset> {
    let of = |switch: u64| {
        let mut flowset = Flowset::new(shape.with_seed(seed << 8 | switch));
        (0..flows).for_each(|nth| flowset.add(&fabric::key(seed << 24 ^ nth), 1 + nth as u32 % 50));
        flowset
    };
    vec![of(0), of(1)]
}

/// Number of flows that two such switches together do not know.
fn pair_left(flows: u64, shape: FlowsetShape, seed: u64) -> u64 {
    let neighbours = [vec![1], vec![0]];
    let ways = CandidateSwitches::Neighbours(&neighbours);
    let Ok(mut network) = FlowsetNetwork::new(pair(flows, shape, seed), ways) else { return flows };
    network.find_flows();
    (0..2).map(|at| network.flows_left(at)).max().unwrap_or(flows)
}

/// True if two switches know all flows together, in each of some trials.
fn pairs_decode(flows: u64, rows: u8, cells: usize, trials: u64, effort: &Effort<'_>) -> bool {
    let filter = FlowsetShape::for_flows(flows, SUCCESS, rows, DecoderKind::Single, 0);
    let shape = FlowsetShape::new(rows, cells, filter.filter_hashes(), filter.filter_bits(), 0);
    (0..trials).all(|trial| !super::is_over(effort) && pair_left(flows, shape, effort.seed * 1_000 + trial) == 0)
}

fn trials(effort: &Effort<'_>) -> u64 {
    if effort.scale == RunScale::Full { 100 } else { 10 }
}

/// The fewest cells with which two switches know all of the same flows, to one in a hundred.
fn least_pair_cells(flows: u64, rows: u8, effort: &Effort<'_>) -> Option<MeasuredValue> {
    let (mut low, mut high) = (flows as usize / 2, flows as usize * 3 / 2);
    while high - low > flows as usize / 100 {
        let middle = low.midpoint(high);
        (low, high) =
            if pairs_decode(flows, rows, middle, trials(effort), effort) { (low, middle) } else { (middle, high) };
    }
    (!super::is_over(effort)).then(|| MeasuredValue::exact(high as f64, trials(effort)))
}

/// The most flows that two switches with this many cells know, four for each flow.
fn most_pair_flows(cells: usize, effort: &Effort<'_>) -> Option<MeasuredValue> {
    let (mut low, mut high) = (cells as u64 / 2, cells as u64 * 3 / 2);
    while high - low > 1_000 {
        let middle = low.midpoint(high);
        (low, high) = if pairs_decode(middle, 4, cells, 2, effort) { (middle, high) } else { (low, middle) };
    }
    (!super::is_over(effort)).then(|| MeasuredValue::exact(low as f64, 2))
}
