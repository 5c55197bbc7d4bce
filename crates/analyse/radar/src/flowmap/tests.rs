use crate::packet::Flow;

use super::*;

fn flow(nth: u16) -> FlowKey {
    let [src, dst] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(Into::into);
    FlowKey::from(&Flow { src, dst, protocol: 6, src_port: nth, dst_port: 80 })
}

fn slot(seen: &[(usize, u32)]) -> SlotView {
    let mut slot = SlotView::default();
    seen.iter().for_each(|(switch, packets)| slot.add(*switch, flow(1), Some(*packets)));
    slot
}

/// S1 to S5 of the thesis's Figure 4.9, numbered from zero: 0-1-4 is one path, 0-1-2-3-4 the other.
fn figure() -> Vec<Vec<usize>> {
    vec![vec![1], vec![0, 2, 4], vec![1, 3], vec![2, 4], vec![3, 1]]
}

fn loops_in(seen: &[(usize, u32)]) -> Vec<(Vec<usize>, bool)> {
    loops_on(seen, &|_| Vec::new())
}

fn loops_on(seen: &[(usize, u32)], route: SwitchPath<'_>) -> Vec<(Vec<usize>, bool)> {
    let found = loops(&slot(seen), &figure(), route, &FlowmapThresholds::default());
    found.into_iter().map(|found| (found.switches, found.is_confirmed)).collect()
}

#[test]
fn a_path_is_no_loop() {
    assert_eq!(loops_in(&[(0, 10), (1, 10), (4, 10)]), []);
    assert_eq!(loops_in(&[(0, 10), (1, 9), (2, 8), (3, 11)]), []);
}

#[test]
fn a_change_of_paths_within_a_slot_is_suspected_only() {
    assert_eq!(loops_in(&[(0, 10), (1, 10), (2, 6), (3, 6), (4, 10)]), [(vec![1, 2, 3, 4], false)]);
}

#[test]
fn a_cycle_with_more_packets_than_came_to_it_is_a_loop() {
    assert_eq!(loops_in(&[(0, 10), (1, 11), (2, 11), (3, 11), (4, 11)]), [(vec![1, 2, 3, 4], true)]);
}

#[test]
fn neighbours_that_send_packets_to_and_fro_are_a_loop() {
    assert_eq!(loops_in(&[(0, 2), (1, 2), (2, 60), (3, 58)]), [(vec![2, 3], true)]);
    assert_eq!(loops_in(&[(0, 20), (1, 20), (2, 22), (3, 21)]), []);
}

#[test]
fn a_blackhole_behind_two_switches_is_no_loop_between_them() {
    let route = |_: &FlowKey| vec![1, 2, 3];
    assert_eq!(loops_on(&[(1, 20), (2, 20), (3, 4)], &route), []);
    assert_eq!(loops_on(&[(1, 20), (2, 400), (3, 400)], &route), [(vec![2, 3], true)]);
}

const ROUTE: fn(&FlowKey) -> Vec<usize> = |_| vec![0, 1, 2, 3];

fn holes(seen: &[(usize, u32)]) -> Vec<(usize, usize)> {
    blackholes(&slot(seen), &ROUTE, &FlowmapThresholds::default())
        .iter()
        .map(|hole| (hole.after, hole.before))
        .collect()
}

#[test]
fn a_flow_that_stops_at_a_hop_met_a_blackhole_behind_it() {
    assert_eq!(holes(&[(0, 2), (1, 2)]), [(1, 2)]);
    assert_eq!(holes(&[(0, 2), (1, 2), (2, 2), (3, 1)]), []);
}

#[test]
fn a_blackhole_shorter_than_a_slot_takes_a_large_share_of_the_packets() {
    assert_eq!(holes(&[(0, 40), (1, 40), (2, 11), (3, 11)]), [(1, 2)]);
    assert_eq!(holes(&[(0, 40), (1, 40), (2, 31), (3, 31)]), []);
    assert_eq!(holes(&[(0, 4), (1, 4), (2, 1), (3, 1)]), [], "too few to tell");
}

#[test]
fn a_flow_without_counters_still_tells_where_it_stopped() {
    let mut slot = SlotView::default();
    slot.add(0, flow(1), None);
    let found = blackholes(&slot, &ROUTE, &FlowmapThresholds::default());
    let places: Vec<_> = found.iter().map(|hole| (hole.after, hole.before, hole.packets)).collect();
    assert_eq!(places, [(0, 1, [None, None])]);
}

/// Losses of flowlets, by the counters of a flow at two switches, slot by slot.
fn lost_of(counters: &[(Option<u32>, Option<u32>)]) -> Vec<([u64; 2], u64, u64, u64)> {
    let mut flowlet = Flowlet::default();
    let mut found = Vec::new();
    for (number, (up, down)) in (0..).zip(counters) {
        flowlet.count(number, *up, *down);
        let ended = flowlet.end(number, &FlowmapThresholds::default());
        found.extend(ended.filter(|(_, _, lost)| *lost > 0).map(|(slots, sent, lost)| (slots, number, sent, lost)));
    }
    found
}

fn lost(counters: &[(u32, u32)]) -> Vec<([u64; 2], u64, u64, u64)> {
    lost_of(&counters.iter().map(|(up, down)| (Some(*up), Some(*down))).collect::<Vec<_>>())
}

#[test]
fn a_loss_is_known_one_slot_after_its_flowlet() {
    assert_eq!(lost(&[(0, 0), (9, 7), (4, 5), (0, 0), (3, 3)]), [([1, 2], 3, 13, 1)]);
}

#[test]
fn packets_on_their_way_at_the_end_of_a_slot_are_not_lost() {
    assert_eq!(lost(&[(9, 7), (0, 2), (0, 0)]), []);
}

#[test]
fn a_flowlet_that_goes_on_is_not_judged() {
    assert_eq!(lost(&[(9, 7), (9, 7), (9, 7)]), []);
}

#[test]
fn each_flowlet_is_judged_by_itself() {
    assert_eq!(lost(&[(5, 4), (0, 0), (0, 0), (5, 3), (0, 0)]), [([0, 0], 1, 5, 1), ([3, 3], 4, 5, 2)]);
}

#[test]
fn a_flowlet_with_a_counter_missing_is_passed_over() {
    let known = |up, down| (Some(up), Some(down));
    let counters = [(Some(4), None), known(4, 3), known(0, 0), known(2, 1), known(0, 0)];
    assert_eq!(lost_of(&counters), [([3, 3], 4, 2, 1)]);
}
