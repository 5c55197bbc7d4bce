use super::*;
use crate::packet::Flow;

fn flow(nth: u16) -> FlowKey {
    let [src, dst] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(Into::into);
    FlowKey::from(&Flow { src, dst, protocol: 6, src_port: nth, dst_port: 80 })
}

fn slot(seen: &[(usize, u32)]) -> Slot {
    let mut slot = Slot::default();
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

fn loops_on(seen: &[(usize, u32)], route: Route<'_>) -> Vec<(Vec<usize>, bool)> {
    let found = loops(&slot(seen), &figure(), route, &Thresholds::default());
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
    blackholes(&slot(seen), &ROUTE, &Thresholds::default()).iter().map(|hole| (hole.after, hole.before)).collect()
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
    let mut slot = Slot::default();
    slot.add(0, flow(1), None);
    let found = blackholes(&slot, &ROUTE, &Thresholds::default());
    assert_eq!(by_place(&found).into_iter().collect::<Vec<_>>(), [((0, 1), 1)]);
    assert_eq!(found[0].packets, [None, None]);
}

/// Counters of a flow at two switches, slot by slot.
fn lost(counters: &[(u32, u32)]) -> Vec<([u64; 2], u64, u64, u64)> {
    let slots: Vec<Slot> = counters
        .iter()
        .map(|(up, down)| slot(&[(0, *up), (1, *down)].into_iter().filter(|(_, n)| *n > 0).collect::<Vec<_>>()))
        .collect();
    let found = losses(0, &slots, &|_| vec![0, 1], &Thresholds::default());
    found.into_iter().map(|loss| (loss.slots, loss.known, loss.sent, loss.lost)).collect()
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
    let mut first = Slot::default();
    first.add(0, flow(1), Some(4));
    first.add(1, flow(1), None);
    let slots = [first, slot(&[(0, 4), (1, 3)]), Slot::default(), slot(&[(0, 2), (1, 1)]), Slot::default()];
    let found = losses(7, &slots, &|_| vec![0, 1], &Thresholds::default());
    assert_eq!(found.iter().map(|loss| (loss.slots, loss.lost)).collect::<Vec<_>>(), [([10, 10], 1)]);
}
