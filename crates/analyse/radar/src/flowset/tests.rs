use std::collections::BTreeMap;

use super::network::{CandidateSwitches, FlowsetNetwork, NetworkError, SwitchFlows};
use super::*;
use crate::packet::Flow;
use crate::signature::fold;

fn random(nth: u64) -> u64 {
    fold(nth ^ 0x1234_5678_9abc_def1, 0x9e37_79b9_7f4a_7c15)
}

fn flow(nth: u64) -> Flow {
    let address = |part: u64| std::net::Ipv4Addr::from(0x0a00_0000 | (part as u32 & 0xff_ffff)).into();
    let (src, dst) = (address(random(nth)), address(random(nth) >> 32));
    Flow { src, dst, protocol: 6, src_port: nth as u16, dst_port: (nth >> 16) as u16 }
}

/// The nth flow of some traffic.
pub(super) fn key(nth: u64) -> FlowKey {
    FlowKey::from(&flow(nth))
}

fn key_v6(nth: u64) -> FlowKey {
    let address = |part: u64| std::net::Ipv6Addr::from(u128::from(random(part)) << 64 | u128::from(part)).into();
    FlowKey::from(&Flow { src: address(nth), dst: address(!nth), ..flow(nth) })
}

fn sorted(mut flows: Vec<(FlowKey, u32)>) -> Vec<(FlowKey, u32)> {
    flows.sort_unstable();
    flows
}

fn shape() -> FlowsetShape {
    FlowsetShape::new(3, 300, 20, 8_000, 1)
}

#[test]
fn every_flow_is_told_with_its_packets() {
    let mut flowset = Flowset::new(shape());
    let flows: Vec<(FlowKey, u32)> = (0..200).map(|nth| (key(nth), 1 + nth as u32 % 7)).collect();
    for round in 0..7 {
        flows.iter().filter(|(_, packets)| round < *packets).for_each(|(key, _)| flowset.insert(key));
    }
    let decoded = flowset.decode();
    assert!(decoded.is_complete());
    assert_eq!(sorted(decoded.flows), sorted(flows));
    assert_eq!((flowset.flows(), flowset.packets()), (200, (0..200).map(|nth| 1 + nth % 7).sum()));
}

#[test]
fn bytes_are_told_beside_packets_and_stay_at_the_switch() {
    let mut flowset = Flowset::with_bytes(shape());
    let sizes = |nth: u64| (0..=nth % 5).map(move |packet| 64 + nth * 100 + packet);
    (0..150).for_each(|nth| sizes(nth).for_each(|bytes| flowset.add_sized(&key(nth), 1, bytes)));
    let decoded = flowset.decode();
    assert!(decoded.is_complete());
    let mut told: Vec<_> =
        decoded.flows.iter().zip(decoded.bytes).map(|((key, count), sum)| (*key, *count, sum)).collect();
    told.sort_unstable();
    let truth = |nth| (key(nth), sizes(nth).count() as u32, sizes(nth).sum());
    let mut truth: Vec<(FlowKey, u32, u64)> = (0..150).map(truth).collect();
    truth.sort_unstable();
    assert_eq!(told, truth);
    let read = Flowset::from_bytes(&flowset.to_bytes()).unwrap().decode();
    assert!(read.is_complete() && read.bytes.iter().all(|bytes| *bytes == 0));
    flowset.clear();
    assert_eq!(flowset, Flowset::with_bytes(shape()));
}

#[test]
fn flows_of_both_families_share_a_table() {
    let mut flowset = Flowset::new(FlowsetShape::new(4, 300, 20, 8_000, 1));
    let flows: Vec<_> = (0..100).flat_map(|nth| [(key(nth), 2), (key_v6(nth), 3)]).collect();
    flows.iter().for_each(|(key, packets)| flowset.add(key, *packets));
    let decoded = flowset.decode();
    assert!(decoded.is_complete());
    assert_eq!(sorted(decoded.flows), sorted(flows));
    flowset.clear();
    assert!(flowset.is_empty() && flowset.decode().flows.is_empty());
}

#[test]
fn of_too_many_flows_some_are_told_and_the_rest_is_counted() {
    let mut flowset = Flowset::new(shape());
    (0..320).for_each(|nth| flowset.add(&key(nth), 5));
    let decoded = flowset.decode();
    assert!(!decoded.is_complete() && decoded.left > 0);
    assert_eq!(decoded.flows.len() as u64 + decoded.left, 320);
    let real: Vec<FlowKey> = (0..320).map(key).collect();
    assert!(decoded.flows.iter().all(|(key, packets)| real.contains(key) && *packets == 5));
}

#[test]
fn a_flow_that_the_filter_takes_for_another_is_noticed() {
    // One word for all flows: some are taken for others soon.
    let mut flowset = Flowset::new(FlowsetShape::new(3, 300, 4, 64, 1));
    (0..100).for_each(|nth| flowset.add(&key(nth), 5));
    assert!(flowset.flows() < 100);
    let decoded = flowset.decode();
    assert!(decoded.overcounted && !decoded.is_complete());
    assert_eq!((decoded.left, decoded.flows.len() as u64), (0, flowset.flows()));
}

#[test]
fn ports_of_a_switch_are_put_together() {
    let of = |flows: std::ops::Range<u64>| {
        let mut flowset = Flowset::new(shape());
        flows.for_each(|nth| flowset.insert(&if nth % 2 == 0 { key(nth) } else { key_v6(nth) }));
        flowset
    };
    let mut both = of(0..80);
    both.merge(&of(80..160)).unwrap();
    assert_eq!(both, of(0..160));
    both.merge(&of(0..1)).unwrap();
    assert!(!both.decode().is_complete(), "a flow that both had");
    let other = Flowset::new(shape().with_seed(2));
    let said = both.merge(&other).unwrap_err().to_string();
    assert!(said.contains("seed 1") && said.contains("seed 2"), "{said}");
}

#[test]
fn a_form_says_what_is_wrong_with_it() {
    let mut flowset = Flowset::new(shape());
    (0..50).for_each(|nth| flowset.add(&key(nth), 1_000 * nth as u32));
    let bytes = flowset.to_bytes();
    assert_eq!(Flowset::from_bytes(&bytes), Ok(flowset.clone()));
    flowset.add(&key_v6(1), 70_000);
    assert_eq!(Flowset::from_bytes(&flowset.to_bytes()), Ok(flowset));
    let with = |at: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        Flowset::from_bytes(&bytes)
    };
    assert_eq!(with(0, b'X'), Err(FormError::Foreign));
    assert_eq!(with(4, 9), Err(FormError::Version(9)));
    assert_eq!(with(5, 7), Err(FormError::Malformed));
    assert_eq!(with(100, !bytes[100]), Err(FormError::Corrupted));
    assert_eq!(Flowset::from_bytes(&bytes[..bytes.len() - 1]), Err(FormError::Malformed));
    assert_eq!(Flowset::from_bytes(&bytes[..20]), Err(FormError::Foreign));
}

/// Switches in a row that all flows pass; `packets` says how many at each.
fn line(shapes: &[FlowsetShape], flows: u64, packets: impl Fn(u64, usize) -> u32) -> Vec<Flowset> {
    let set = |(switch, shape): (usize, &FlowsetShape)| {
        let mut flowset = Flowset::new(*shape);
        (0..flows).for_each(|nth| flowset.add(&key(nth), packets(nth, switch)));
        flowset
    };
    shapes.iter().enumerate().map(set).collect()
}

fn neighbours(switches: usize) -> Vec<Vec<usize>> {
    let of = |at: usize| (0..switches).filter(|other| other.abs_diff(at) == 1).collect();
    (0..switches).map(of).collect()
}

fn shapes(switches: u64, cells: usize, bits: u64) -> Vec<FlowsetShape> {
    (0..switches).map(|seed| FlowsetShape::new(4, cells, 24, bits, 100 + seed)).collect()
}

#[track_caller]
fn assert_told(switch: &SwitchFlows, flows: u64, packets: impl Fn(u64) -> u32) {
    assert!(switch.is_complete && switch.left == 0 && switch.likely.is_empty(), "{} left", switch.left);
    let expected: BTreeMap<FlowKey, Option<u32>> = (0..flows).map(|nth| (key(nth), Some(packets(nth)))).collect();
    assert_eq!(switch.flows.len() as u64, flows);
    assert_eq!(switch.flows.iter().copied().collect::<BTreeMap<_, _>>(), expected);
}

#[test]
fn what_neither_switch_can_tell_both_can_together() {
    let packets = |nth: u64, _| 1 + (random(nth) % 100) as u32;
    let sets = line(&shapes(2, 2_050, 80_000), 2_000, packets);
    assert!(sets.iter().all(|set| set.decode().left > 1_000));
    let lists = neighbours(2);
    for switch in FlowsetNetwork::new(sets, CandidateSwitches::Neighbours(&lists)).unwrap().decode() {
        assert_told(&switch, 2_000, |nth| packets(nth, 0));
    }
}

#[test]
fn each_hop_gets_its_own_counters_where_packets_are_lost_between() {
    let packets = |nth: u64, switch: usize| {
        let lost = (1..=switch as u64).filter(|hop| random(nth << 8 | hop).is_multiple_of(50)).count();
        50 + (random(nth) % 100) as u32 - lost as u32
    };
    let sets = line(&shapes(3, 2_050, 80_000), 2_000, packets);
    let lists = neighbours(3);
    for (at, switch) in
        FlowsetNetwork::new(sets, CandidateSwitches::Neighbours(&lists)).unwrap().decode().iter().enumerate()
    {
        assert_told(switch, 2_000, |nth| packets(nth, at));
    }
}

#[test]
fn counters_that_have_nothing_in_common_are_solved_for() {
    let packets = |nth: u64, switch: usize| 1 + (random(nth << 8 | switch as u64) % 1_000) as u32;
    let sets = line(&shapes(2, 2_300, 80_000), 2_000, packets);
    assert!(sets.iter().all(|set| set.decode().left > 0));
    let lists = neighbours(2);
    for (at, switch) in
        FlowsetNetwork::new(sets, CandidateSwitches::Neighbours(&lists)).unwrap().decode().iter().enumerate()
    {
        assert_told(switch, 2_000, |nth| packets(nth, at));
    }
}

#[test]
fn flows_that_only_look_as_if_they_had_passed_are_given_back() {
    // The second switch has half of the flows, and a filter that believes it has far more.
    let shapes = [FlowsetShape::new(4, 3_000, 24, 80_000, 1), FlowsetShape::new(4, 1_030, 8, 9_000, 2)];
    let mut sets = line(&shapes[..1], 2_000, |nth, _| 1 + nth as u32 % 9);
    sets.push(Flowset::new(shapes[1]));
    (0..1_000).for_each(|nth| sets[1].add(&key(nth), 1 + nth as u32 % 9));
    let mistaken = (1_000..2_000).filter(|nth| sets[1].may_have(&key(*nth))).count();
    assert!(mistaken > 15, "{mistaken}");
    let lists = neighbours(2);
    let switches = FlowsetNetwork::new(sets, CandidateSwitches::Neighbours(&lists)).unwrap().decode();
    assert_told(&switches[1], 1_000, |nth| 1 + nth as u32 % 9);
}

#[test]
fn a_flow_that_a_filter_took_for_another_is_known_to_the_neighbour() {
    let shapes = [FlowsetShape::new(4, 3_000, 24, 80_000, 1), FlowsetShape::new(4, 1_200, 8, 9_000, 2)];
    let sets = line(&shapes, 900, |nth, _| 1 + nth as u32 % 9);
    assert!(sets[1].flows() < 900 && sets[1].decode().overcounted);
    let lists = neighbours(2);
    let switches = FlowsetNetwork::new(sets, CandidateSwitches::Neighbours(&lists)).unwrap().decode();
    assert_told(&switches[1], 900, |nth| 1 + nth as u32 % 9);
}

#[test]
fn what_nobody_can_tell_is_counted_and_nothing_is_made_up() {
    let sets = line(&shapes(2, 800, 80_000), 2_000, |_, _| 3);
    let lists = neighbours(2);
    for switch in FlowsetNetwork::new(sets, CandidateSwitches::Neighbours(&lists)).unwrap().decode() {
        assert!(!switch.is_complete);
        assert_eq!(switch.flows.len() as u64 + switch.left, 2_000);
        let real: Vec<FlowKey> = (0..2_000).map(key).collect();
        assert!(switch.flows.iter().all(|(key, packets)| real.contains(key) && *packets == Some(3)));
    }
}

#[test]
fn routes_lead_to_the_same_flows() {
    let packets = |nth: u64, _| 1 + nth as u32 % 9;
    let lists = neighbours(3);
    let hops = |_: &FlowKey, at: usize| [at.checked_sub(1), (at < 2).then_some(at + 1)];
    let sets = line(&shapes(3, 1_030, 40_000), 1_000, packets);
    for switch in FlowsetNetwork::new(sets, CandidateSwitches::Routes(&lists, &hops)).unwrap().decode() {
        assert_told(&switch, 1_000, |nth| packets(nth, 0));
    }
}

#[test]
fn networks_that_make_no_sense_are_refused() {
    let sets = || line(&shapes(2, 100, 4_000), 10, |_, _| 1);
    let refused = |lists: &[Vec<usize>]| FlowsetNetwork::new(sets(), CandidateSwitches::Neighbours(lists)).unwrap_err();
    assert_eq!(refused(&neighbours(3)), NetworkError::Lists { switches: 2, lists: 3 });
    assert_eq!(refused(&[vec![7], vec![]]), NetworkError::NoSwitch { switch: 0, neighbour: 7 });
    assert_eq!(refused(&[vec![0], vec![]]), NetworkError::SameSeed { switch: 0, neighbour: 0 });
    assert!(refused(&[vec![0], vec![]]).to_string().contains("its own"));
}
