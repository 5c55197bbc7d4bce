//! fr.loss: how soon after it happened a loss is found by comparing flowlets (§4.6.2, Fig. 4.10).

use std::collections::{BTreeMap, BTreeSet};

use chart::{Axis, Chart, Line, LinesChart};
use radar::flowset::FlowKey;
use report::claim::{ClaimError, MeasuredValue, RunScale};
use report::runner::{ComputedValues, Effort};
use sim::topology::{NodeId, Topology};
use units::Time;

use super::walk::{self, FlowsetCounts, PathOrder, SLOT};
use crate::files;
use radar::flowmap::{Flowlet, FlowmapThresholds};

/// Settings that the thesis does not state.
#[derive(Clone, Copy, Debug)]
struct LossCase {
    /// Prefix of the names of its values.
    name: &'static str,
    /// Answer of each server.
    answer: &'static str,
    /// Load of web search.
    load: f64,
    transport: &'static str,
}

const BASE: LossCase = LossCase { name: "", answer: "50KB", load: 0.4, transport: "dctcp" };
const CASES: [LossCase; 5] = [
    BASE,
    LossCase { name: "20KB.", answer: "20KB", ..BASE },
    LossCase { name: "load-0.6.", load: 0.6, ..BASE },
    LossCase { name: "reno.", transport: "reno", ..BASE },
    LossCase { name: "reno.load-0.2.", transport: "reno", load: 0.2, ..BASE },
];

pub(super) fn compute(effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let mut computed = ComputedValues::default();
    let mut lines = Vec::new();
    effort.progress.expect_parts(CASES.len());
    for case in CASES {
        let LossCase { name, answer, load, transport } = case;
        let Some(found) = find(case, effort)? else { return Ok(None) };
        effort.progress.part_done();
        for ms in [20, 50] {
            let share = (found.losses > 0).then(|| MeasuredValue::exact(found.within(ms.into()), found.losses));
            computed.values.push((format!("{name}within.{ms}ms"), share));
        }
        let all = (found.losses > 0).then(|| MeasuredValue::exact(found.within(f64::MAX), found.losses));
        computed.values.push((format!("{name}found"), all));
        computed.value(format!("{name}invented"), MeasuredValue::exact(found.invented as f64, found.flows));
        computed.value(format!("{name}undecoded"), MeasuredValue::exact(found.undecoded as f64, found.slots));
        let curve = (0..=20).map(|step| f64::from(step) * 5.0).map(|ms| (ms, found.within(ms))).collect();
        lines.push(
            Line::new(format!("{transport}, answers of {answer}, load {load}"), curve)
                .with_paper(vec![(20.0, 0.57), (50.0, 0.99)]),
        );
    }
    computed.charts.push(Chart::Lines(LinesChart {
        title: "Losses that are known, by how long ago they happened".into(),
        caption:
            "Web search and incasts of 20 under a FatTree of 8, slots of 10 ms. A loss is known when a slot without a \
                  packet of its flow has ended."
                .into(),
        x: Axis::linear("milliseconds from loss to detection"),
        y: Axis::linear("share of losses").within(0.0, 1.0),
        lines,
    }));
    Ok(Some(computed))
}

/// Losses found in a run.
struct DetectedLosses {
    /// Milliseconds from each detected loss to its detection.
    delays: Vec<f64>,
    losses: u64,
    invented: u64,
    flows: u64,
    undecoded: u64,
    slots: u64,
}

impl DetectedLosses {
    fn within(&self, ms: f64) -> f64 {
        self.delays.iter().filter(|delay| **delay <= ms).count() as f64 / self.losses.max(1) as f64
    }
}

/// `None` if it was stopped early.
fn find(case: LossCase, effort: &Effort<'_>) -> Result<Option<DetectedLosses>, ClaimError> {
    let [stop, until] = if effort.scale == RunScale::Full { [300, 700] } else { [60, 400] };
    let LossCase { answer, load, transport, .. } = case;
    let mut sets =
        vec![format!("traffic.0.load={load}"), format!("traffic.1.size={answer}"), format!("run.until={until}ms")];
    for traffic in [0, 1] {
        sets.push(format!("traffic.{traffic}.stop={stop}ms"));
        sets.push(format!("traffic.{traffic}.transport={transport}"));
    }
    let setup = files::setup("flowradar/network.toml", &sets, effort.seed)?;
    let topology = setup.topology.clone();
    let Some(counted) = walk::count(setup, effort)? else { return Ok(None) };
    let (delays, unfound) = delays(&topology, &counted);
    Ok(Some(DetectedLosses {
        losses: delays.len() as u64 + unfound,
        delays,
        invented: invented(&topology, &counted),
        flows: counted.counters.len() as u64,
        undecoded: counted.undecoded,
        slots: counted.slots,
    }))
}

/// Flowlets of a flow between two nodes: their slots, when they were over, and what they lost.
fn flowlets(counted: &FlowsetCounts, flow: &FlowKey, hop: [NodeId; 2]) -> Vec<([u64; 2], u64, u64)> {
    let thresholds = FlowmapThresholds::default();
    let at = |node: NodeId, slot: u64| {
        let slots = counted.counters.get(flow).and_then(|nodes| nodes.get(&node));
        slots.and_then(|slots| slots.get(&slot)).copied().unwrap_or(0)
    };
    let mut flowlet = Flowlet::default();
    let mut ended = Vec::new();
    for slot in 0..counted.slots {
        let [upstream, downstream] = hop.map(|node| Some(at(node, slot)));
        flowlet.count(slot, upstream, downstream);
        if let Some((slots, _, lost)) = flowlet.end(slot, &thresholds) {
            ended.push((slots, slot, lost));
        }
    }
    ended
}

/// Milliseconds from each loss to the end of the slot in which it is known, and how many losses are not found.
fn delays(topology: &Topology, counted: &FlowsetCounts) -> (Vec<f64>, u64) {
    let mut by_hop: BTreeMap<(FlowKey, u32), Vec<Time>> = BTreeMap::new();
    for dropped in &counted.dropped {
        by_hop.entry((FlowKey::from(&dropped.flow), dropped.link.0)).or_default().push(dropped.at);
    }
    let (mut delays, mut unfound) = (Vec::new(), 0);
    for ((flow, link), drops) in by_hop {
        let link = sim::topology::DirectedLink(link);
        let flowlets = flowlets(counted, &flow, [topology.from(link), topology.to(link)]);
        // If a flowlet is said to have lost fewer packets than it did, the first ones count as found.
        let mut left: Vec<u64> = flowlets.iter().map(|(_, _, lost)| *lost).collect();
        for at in drops {
            let slot = at.as_ps() / SLOT.as_ps();
            let place = flowlets.iter().position(|([first, last], _, _)| (*first..=*last).contains(&slot));
            match place.filter(|place| left[*place] > 0) {
                Some(place) => {
                    left[place] -= 1;
                    let known = Time::from_ps((flowlets[place].1 + 1) * SLOT.as_ps());
                    delays.push(known.since(at).as_secs() * 1e3);
                }
                None => unfound += 1,
            }
        }
    }
    (delays, unfound)
}

/// Losses on hops on which the flow has lost nothing.
fn invented(topology: &Topology, counted: &FlowsetCounts) -> u64 {
    let order = PathOrder::new(topology);
    let dropped = |dropped: &sim::net::counting::DroppedPacket| {
        (FlowKey::from(&dropped.flow), topology.from(dropped.link).index(), topology.to(dropped.link).index())
    };
    let real: BTreeSet<(FlowKey, usize, usize)> = counted.dropped.iter().map(dropped).collect();
    let mut invented = 0;
    for (flow, nodes) in &counted.counters {
        for hop in order.sort(flow, nodes.keys().copied()).windows(2) {
            let is_real = real.contains(&(*flow, hop[0], hop[1])) || !order.neighbours()[hop[0]].contains(&hop[1]);
            let ends = [hop[0], hop[1]].map(|node| NodeId(node as u32));
            if !is_real {
                invented += flowlets(counted, flow, ends).iter().map(|(_, _, lost)| lost).sum::<u64>();
            }
        }
    }
    invented
}
