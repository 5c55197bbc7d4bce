//! The loss map against packets one by one: any traffic, ways and clocks within what was said.

use std::collections::BTreeMap;

use proptest::prelude::*;
use radar::fabricmap::ports::{FabricPorts, LinkPort, PortLink};
use radar::fabricmap::slot_report::{PortSlot, SlotFlow, SwitchSlot, WayFlows, WaySlot};
use radar::fabricmap::{FabricMap, FabricMapOptions};
use radar::flowset::FlowKey;
use radar::packet::Flow;

/// Microseconds of a slot.
const SLOT: i64 = 10_000;
const SLOTS: i64 = 30;
const WAY: i64 = 6_000;
const CLOCK: i64 = 1_500;

/// A packet: its flow, when it leaves in true time, how long it takes, and whether it is lost.
#[derive(Clone, Debug)]
struct Crossing {
    flow: u16,
    at: i64,
    way: i64,
    is_lost: bool,
}

fn crossing() -> impl Strategy<Value = Crossing> {
    let at = -2 * SLOT..(SLOTS + 2) * SLOT;
    (0..4_u16, at, 0..=WAY, 0..10_u8).prop_map(|(flow, at, way, lost)| Crossing { flow, at, way, is_lost: lost < 2 })
}

fn key(nth: u16) -> FlowKey {
    let [src, dst] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(Into::into);
    FlowKey::from(&Flow { src, dst, protocol: 17, src_port: nth, dst_port: 9 })
}

/// Packets of each slot and flow that pass at these times.
fn counts(times: impl Iterator<Item = (u16, i64)>) -> BTreeMap<i64, BTreeMap<u16, u32>> {
    let mut counts: BTreeMap<i64, BTreeMap<u16, u32>> = BTreeMap::new();
    for (flow, at) in times {
        *counts.entry(at.div_euclid(SLOT)).or_default().entry(flow).or_default() += 1;
    }
    counts
}

fn way(flows: Option<&BTreeMap<u16, u32>>) -> WaySlot {
    let sized = |(nth, packets): (&u16, &u32)| SlotFlow { flow: key(*nth), packets: *packets, bytes: 0 };
    let mut list: Vec<SlotFlow> = flows.into_iter().flatten().map(sized).collect();
    list.sort_unstable();
    WaySlot { packets: list.iter().map(|flow| u64::from(flow.packets)).sum(), bytes: 0, flows: WayFlows::List(list) }
}

fn report(end: u64, slot: i64, [came, left]: [WaySlot; 2]) -> Vec<u8> {
    SwitchSlot {
        switch: ["low", "up"][end as usize].into(),
        life: end,
        slot: (1_000 + slot) as u64,
        length: SLOT as u64 * 1_000,
        missed: 0,
        ports: vec![PortSlot { name: "p".into(), ways: [came, left] }],
        ended: Vec::new(),
        ended_more: false,
    }
    .to_bytes()
}

fn map() -> FabricMap {
    let end = |switch| LinkPort { switch, port: "p".into() };
    let link = PortLink { name: "low--up".into(), ends: [end(0), end(1)], rate: 1_000_000_000 };
    let ports = FabricPorts::new(vec!["low".into(), "up".into()], vec![link]).unwrap();
    let options =
        FabricMapOptions { way: WAY as u64 * 1_000, clock_error: CLOCK as u64 * 1_000, ..FabricMapOptions::default() };
    FabricMap::new(ports, None, options)
}

/// Bounds of the lost packets of these crossings.
fn bounds(crossings: &[Crossing], clocks: [i64; 2], away: Option<i64>) -> [u64; 2] {
    let out = counts(crossings.iter().map(|crossing| (crossing.flow, crossing.at + clocks[0])));
    let arrived = crossings.iter().filter(|crossing| !crossing.is_lost);
    let came = counts(arrived.map(|crossing| (crossing.flow, crossing.at + crossing.way + clocks[1])));
    let mut map = map();
    for slot in (0..SLOTS).filter(|slot| Some(*slot) != away) {
        map.on_report(None, report(0, slot, [way(None), way(out.get(&slot))])).unwrap();
        map.on_report(None, report(1, slot, [way(came.get(&slot)), way(None)])).unwrap();
    }
    map.finish().0.links[0][0].lost.unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_interval_of_a_link_and_of_each_flow_has_the_truth(
        crossings in prop::collection::vec(crossing(), 0..600),
        clocks in [-CLOCK..=CLOCK, -CLOCK..=CLOCK],
        away in prop::option::of(0..SLOTS),
    ) {
        // Lost of those that were sent in slots that were told, by the sender's clock.
        let is_told = |crossing: &&Crossing| {
            let slot = (crossing.at + clocks[0]).div_euclid(SLOT);
            (0..SLOTS).contains(&slot) && Some(slot) != away
        };
        let truth = |crossings: &[Crossing]| crossings.iter().filter(is_told).filter(|crossing| crossing.is_lost).count() as u64;
        let [low, high] = bounds(&crossings, clocks, away);
        let lost = truth(&crossings);
        prop_assert!(low <= lost && lost <= high, "{lost} lost, {low} to {high} said");
        for nth in 0..4 {
            let of_flow: Vec<Crossing> = crossings.iter().filter(|crossing| crossing.flow == nth).cloned().collect();
            let [low, high] = bounds(&of_flow, clocks, away);
            let lost = truth(&of_flow);
            prop_assert!(low <= lost && lost <= high, "flow {nth}: {lost} lost, {low} to {high} said");
        }
    }
}
