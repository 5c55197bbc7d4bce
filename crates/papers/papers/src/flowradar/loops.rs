//! fr.loop: how soon a loop and a blackhole are seen in counters of 10 ms (§4.6.1).

use std::collections::BTreeMap;

use faults::Random;
use radar::flowset::FlowKey;
use report::claim::{ClaimError, MeasuredValue, RunScale};
use report::runner::{ComputedValues, Effort};
use sim::net::{
    DatagramConfig, DatagramGaps, FaultyAction, FaultyRule, NetworkSetup, TrafficSetup, TransportSetup, address,
};
use sim::topology::{NodeId, Topology};
use sim::workload::{FlowSchedule, Workload, WorkloadFlow};
use units::{Rate, Span, Time};

use super::walk::{self, PathOrder, SLOT};
use radar::flowmap::{self, FlowmapThresholds, SlotView};

/// Payload of a packet that takes 5 ms at the rate of its flow: 625 bytes on the wire at 1 Mb/s.
const PAYLOAD: u32 = 559;
const BETWEEN: Span = Span::from_ms(5);
const PACKETS: u64 = 14;
/// Moments in a slot at which things break.
const QUICK: [u64; 3] = [1, 5, 9];
const FULL: [u64; 9] = [1, 2, 3, 4, 5, 6, 7, 8, 9];

/// Milliseconds until each was seen, if it was, and how many flows were accused that had met neither.
#[derive(Clone, Copy, Debug, Default)]
struct LoopDetection {
    looped: Option<f64>,
    hole: Option<f64>,
    wrong: u64,
}

pub(super) fn compute(effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let offsets: &[u64] = if effort.scale == RunScale::Full { &FULL } else { &QUICK };
    effort.progress.expect_parts(offsets.len());
    let mut all = Vec::new();
    for offset in offsets {
        let Some(seen) = run(Span::from_ms(*offset), effort)? else { return Ok(None) };
        effort.progress.part_done();
        all.push(seen);
    }
    let runs = all.len() as u64;
    let worst = |delays: Vec<Option<f64>>| {
        let delays: Option<Vec<f64>> = delays.into_iter().collect();
        let worst = |delays: Vec<f64>| delays.into_iter().fold(0.0, f64::max);
        // One that was not seen at all was not seen in time either.
        MeasuredValue::exact(delays.map_or(f64::from(u16::MAX), worst), runs)
    };
    let mut computed = ComputedValues::default();
    computed.value("loop", worst(all.iter().map(|seen| seen.looped).collect()));
    computed.value("blackhole", worst(all.iter().map(|seen| seen.hole).collect()));
    computed.value("wrong", MeasuredValue::exact(all.iter().map(|seen| seen.wrong).sum::<u64>() as f64, runs));
    Ok(Some(computed))
}

/// Every host sends a packet to every other one every 5 ms, beginning at any time within the first five.
fn setup(seed: u64) -> Result<NetworkSetup, ClaimError> {
    let topology = Topology::fat_tree(4, Rate::gbps(10), Span::from_us(1)).map_err(ClaimError::new)?;
    let hosts: Vec<NodeId> = topology.hosts().collect();
    let mut random = Random::new(seed, 0);
    let mut flows = Vec::new();
    for (src, dst) in
        hosts.iter().flat_map(|src| hosts.iter().map(move |dst| (*src, *dst))).filter(|(src, dst)| src != dst)
    {
        let start = Time::from_ps(random.below(BETWEEN.as_ps()));
        flows.push(WorkloadFlow { start, src, dst, bytes: u64::from(PAYLOAD) * PACKETS, group: 0 });
    }
    let rate = "1M".parse().map_err(ClaimError::new)?;
    let mut setup = NetworkSetup::new(topology);
    setup.seed = seed;
    let datagrams = DatagramConfig { payload: PAYLOAD, rate: Some(rate), gaps: DatagramGaps::Even };
    let work = Workload::Open(FlowSchedule::list(flows));
    setup.traffic = vec![TrafficSetup::new("persistent", TransportSetup::Datagrams(datagrams), work)];
    Ok(setup)
}

/// A loop in the second slot and a blackhole in the fourth, both `offset` after its beginning.
fn run(offset: Span, effort: &Effort<'_>) -> Result<Option<LoopDetection>, ClaimError> {
    let mut setup = setup(effort.seed)?;
    let topology = setup.topology.clone();
    let node = |name: &str| topology.node(name).map_err(ClaimError::new);
    let up = topology.link_between("edge0-0", "agg0-0").map_err(ClaimError::new)?;
    let [looped, swallowed] = [node("h0")?, node("h13")?];
    let [loop_at, hole_at] = [1, 3].map(|slot| Time::ZERO + SLOT.scale(f64::from(slot)) + offset);
    let rule = |switch, to, from, action| FaultyRule { switch, to, from, until: Time::NEVER, action };
    setup.rules = vec![
        rule(node("edge0-0")?, looped, loop_at, FaultyAction::Send(up)),
        rule(node("edge3-0")?, swallowed, hole_at, FaultyAction::Drop),
    ];
    let Some(counted) = walk::count(setup, effort)? else { return Ok(None) };
    let order = PathOrder::new(&topology);
    let is_switch = |node: &NodeId| !topology.is_host(*node);
    let mut paths: BTreeMap<FlowKey, Vec<usize>> = BTreeMap::new();
    let mut seen = LoopDetection::default();
    // The last slots have flows that have come to their end.
    for number in 0..6.min(counted.slots) {
        let mut slot = SlotView::default();
        for (flow, nodes) in &counted.counters {
            for (node, slots) in nodes.iter().filter(|(node, _)| is_switch(node)) {
                if let Some(packets) = slots.get(&number) {
                    slot.add(node.index(), *flow, Some(*packets));
                }
            }
        }
        let end = Time::ZERO + SLOT.scale((number + 1) as f64);
        let to = |flow: &FlowKey| address::host_of(flow.flow().dst);
        let thresholds = FlowmapThresholds::default();
        let route = |flow: &FlowKey| paths.get(flow).cloned().unwrap_or_default();
        for found in
            flowmap::loops(&slot, order.neighbours(), &route, &thresholds).iter().filter(|found| found.is_confirmed)
        {
            let is_right = to(&found.flow) == Some(looped) && end > loop_at;
            seen.wrong += u64::from(!is_right);
            seen.looped = seen.looped.or(is_right.then(|| end.since(loop_at).as_secs() * 1e3));
        }
        for found in flowmap::blackholes(&slot, &route, &thresholds) {
            let is_right = to(&found.flow) == Some(swallowed) && end > hole_at;
            seen.wrong += u64::from(!is_right);
            seen.hole = seen.hole.or(is_right.then(|| end.since(hole_at).as_secs() * 1e3));
        }
        if number == 0 {
            let path = |(flow, of): (&FlowKey, &flowmap::SwitchCounts)| {
                (*flow, order.sort(flow, of.keys().map(|switch| NodeId(*switch as u32))))
            };
            paths = slot.flows().map(path).collect();
        }
    }
    Ok(Some(seen))
}
