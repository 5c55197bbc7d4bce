//! Properties of FlowRadar, tested with any flows: a result that is called complete is exactly what passed, nothing is made
//! up, and bytes from elsewhere do no harm.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use radar::flowset::network::{CandidateSwitches, FlowsetNetwork};
use radar::flowset::{FlowKey, Flowset, FlowsetShape};
use radar::packet::Flow;

fn address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        any::<u32>().prop_map(|bits| Ipv4Addr::from(bits).into()),
        any::<u128>().prop_map(|bits| Ipv6Addr::from(bits).into()),
    ]
}

fn flow() -> impl Strategy<Value = Flow> {
    let ends = (address(), address(), any::<u8>(), any::<u16>(), any::<u16>());
    ends.prop_map(|(src, dst, protocol, src_port, dst_port)| Flow { src, dst, protocol, src_port, dst_port })
}

/// Flows with their packets, often more than fit.
fn traffic(most: usize) -> impl Strategy<Value = BTreeMap<Flow, u32>> {
    btree_map(flow(), 1..2_000_u32, 0..most)
}

fn shape() -> impl Strategy<Value = FlowsetShape> {
    let sizes = (3..=4_u8, 1..120_usize, 1..=24_u8, 64..4_000_u64, any::<u64>());
    sizes.prop_map(|(rows, cells, hashes, bits, seed)| FlowsetShape::new(rows, cells, hashes, bits, seed))
}

fn flowset(shape: FlowsetShape, traffic: &BTreeMap<Flow, u32>) -> Flowset {
    let mut flowset = Flowset::new(shape);
    traffic.iter().for_each(|(flow, packets)| flowset.add(&FlowKey::from(flow), *packets));
    flowset
}

/// The traffic that is left after a switch lost this many packets of each flow.
fn at_hop(traffic: &BTreeMap<Flow, u32>, losses: &[u32]) -> BTreeMap<Flow, u32> {
    let losses = losses.iter().copied().chain(std::iter::repeat(0));
    let left = traffic.iter().zip(losses).map(|((flow, packets), lost)| (*flow, packets.saturating_sub(lost)));
    left.filter(|(_, packets)| *packets > 0).collect()
}

proptest! {
    #[test]
    fn keys_are_read_as_they_were_made(flow in flow()) {
        prop_assert_eq!(FlowKey::from(&flow).flow(), flow);
    }

    #[test]
    fn what_is_complete_is_what_was_inserted(shape in shape(), traffic in traffic(150)) {
        let flowset = flowset(shape, &traffic);
        let decoded = flowset.decode();
        let told: BTreeMap<Flow, u32> = decoded.flows.iter().map(|(key, packets)| (key.flow(), *packets)).collect();
        prop_assert_eq!(told.len(), decoded.flows.len());
        prop_assert!(told.keys().all(|flow| traffic.contains_key(flow)));
        if decoded.is_complete() {
            prop_assert_eq!(&told, &traffic);
        }
        // Counters can only be wrong if the filter took a flow for another.
        if flowset.flows() == traffic.len() as u64 {
            prop_assert!(!decoded.overcounted);
            prop_assert!(told.iter().all(|(flow, packets)| traffic[flow] == *packets));
            prop_assert_eq!(decoded.left == 0, told.len() == traffic.len());
        }
    }

    #[test]
    fn a_network_makes_up_neither_flows_nor_counts(
        shapes in vec(shape(), 2..5),
        traffic in traffic(200),
        losses in vec(vec(prop_oneof![4 => Just(0_u32), 1 => 1..3_u32, 1 => Just(u32::MAX)], 0..200), 4),
    ) {
        let shapes: Vec<FlowsetShape> = (0..).zip(shapes).map(|(seed, shape)| shape.with_seed(seed)).collect();
        let mut hops = vec![traffic];
        for losses in &losses[..shapes.len() - 1] {
            hops.push(at_hop(&hops[hops.len() - 1], losses));
        }
        let flowsets: Vec<Flowset> = shapes.iter().zip(&hops).map(|(shape, traffic)| flowset(*shape, traffic)).collect();
        let is_certain: Vec<bool> =
            flowsets.iter().zip(&hops).map(|(set, traffic)| set.flows() == traffic.len() as u64).collect();
        let near = |at: usize| (0..shapes.len()).filter(|other| other.abs_diff(at) == 1).collect();
        let neighbours: Vec<Vec<usize>> = (0..shapes.len()).map(near).collect();
        let switches = FlowsetNetwork::new(flowsets, CandidateSwitches::Neighbours(&neighbours)).unwrap().decode();
        for ((switch, traffic), is_certain) in switches.iter().zip(&hops).zip(is_certain) {
            let told: BTreeMap<Flow, Option<u32>> =
                switch.flows.iter().map(|(key, packets)| (key.flow(), *packets)).collect();
            prop_assert_eq!(told.len(), switch.flows.len());
            prop_assert!(told.keys().all(|flow| traffic.contains_key(flow)));
            if switch.is_complete {
                let expected: BTreeMap<Flow, Option<u32>> =
                    traffic.iter().map(|(flow, packets)| (*flow, Some(*packets))).collect();
                prop_assert_eq!(&told, &expected);
            }
            if is_certain {
                let is_right = |(flow, packets): (&Flow, &Option<u32>)| packets.is_none_or(|packets| traffic[flow] == packets);
                prop_assert!(told.iter().all(is_right));
            }
        }
    }

    #[test]
    fn forms_are_read_as_they_were_written(shape in shape(), traffic in traffic(60)) {
        let flowset = flowset(shape, &traffic);
        prop_assert_eq!(Flowset::from_bytes(&flowset.to_bytes()), Ok(flowset));
    }

    #[test]
    fn a_changed_byte_is_noticed(
        shape in shape(),
        traffic in traffic(30),
        at in any::<proptest::sample::Index>(),
        change in 1..=255_u8,
    ) {
        let mut bytes = flowset(shape, &traffic).to_bytes();
        let at = at.index(bytes.len());
        bytes[at] ^= change;
        prop_assert!(Flowset::from_bytes(&bytes).is_err());
        prop_assert!(Flowset::from_bytes(&bytes[..at]).is_err());
    }

    /// Bytes that somebody made up and sealed: decoding any of them ends, alone and beside others.
    #[test]
    fn made_up_flowsets_do_no_harm(
        shape in shape(),
        traffic in traffic(40),
        noise in vec((any::<proptest::sample::Index>(), any::<u8>()), 0..400),
    ) {
        const HEAD: usize = 24;
        let honest = flowset(shape.with_seed(1), &traffic);
        let mut bytes = flowset(shape.with_seed(2), &traffic).to_bytes();
        let body = bytes.len() - 4;
        for (at, byte) in noise {
            bytes[HEAD + at.index(body - HEAD)] = byte;
        }
        let check = crc32fast::hash(&bytes[..body]).to_le_bytes();
        bytes[body..].copy_from_slice(&check);
        let made_up = Flowset::from_bytes(&bytes).unwrap();
        made_up.decode();
        made_up.to_bytes();
        let neighbours = [vec![1], vec![0]];
        FlowsetNetwork::new(vec![honest, made_up], CandidateSwitches::Neighbours(&neighbours)).unwrap().decode();
    }

    #[test]
    fn arbitrary_bytes_are_refused(bytes in vec(any::<u8>(), 0..300)) {
        prop_assert!(Flowset::from_bytes(&bytes).is_err());
        let mut with_magic = b"HLFS\x01".to_vec();
        with_magic.extend(bytes);
        prop_assert!(Flowset::from_bytes(&with_magic).is_err());
    }
}
