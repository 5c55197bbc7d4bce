//! Arbitrary traffic past two meters: what a digest says of it is true, or it says that it does not know.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use units::Timestamp;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use radar::digest::{DecodedDigest, Digest, DigestShape};
use radar::packet::{Flow, Packet, TcpFields};
use radar::signature::{Fields, Signature};

/// Few values for each field, so that packets are often alike, in all or in what the fields say.
fn packet() -> impl Strategy<Value = Packet> {
    let address = prop_oneof![
        3 => (0..4u32).prop_map(|n| IpAddr::V4(Ipv4Addr::from(0x0a00_0000 | n))),
        1 => (0..4u128).prop_map(|n| IpAddr::V6(Ipv6Addr::from(0x2001_0db8 << 96 | n << 64 | n))),
    ];
    let tcp = proptest::option::of((0..4u32, any::<bool>()))
        .prop_map(|tcp| tcp.map(|(n, syn)| TcpFields { seq: n.wrapping_sub(2), len: 1_448, syn }));
    (address, 0..3u16, tcp, 0..3u16, 0..6u64).prop_map(|(src, port, tcp, id, content)| {
        let dst = if src.is_ipv4() { [10, 9, 9, 9].into() } else { Ipv6Addr::LOCALHOST.into() };
        let protocol = if tcp.is_some() { 6 } else { 17 };
        let ip_id = src.is_ipv4().then_some(id);
        let flow = Flow { src, dst, protocol, src_port: port, dst_port: 443 };
        Packet { flow, ip_id, fragment: 0, tcp, ttl: 64, content: content.wrapping_mul(0x0123_4567_89ab_cdef) }
    })
}

fn fields() -> impl Strategy<Value = Fields> {
    any::<[bool; 5]>().prop_map(|[source, destination, ip_id, tcp, content]| Fields {
        source,
        destination,
        ip_id,
        tcp,
        content,
    })
}

fn shape() -> impl Strategy<Value = DigestShape> {
    (3..120usize, any::<u64>(), fields()).prop_map(|(cells, seed, fields)| DigestShape::new(cells, seed, fields))
}

/// Packets with how often each passed.
type Traffic = Vec<(Packet, u8)>;

fn traffic(packets: usize) -> impl Strategy<Value = Traffic> {
    let times = prop_oneof![6 => Just(1u8), 2 => 2..4u8, 1 => 100..200u8];
    proptest::collection::vec((packet(), times), 0..packets)
}

/// Packets that carry their time have other signatures than those that do not.
fn signature(packet: &Packet, fields: Fields) -> Signature {
    let signature = Signature::new(packet, fields);
    if packet.content & 1 == 1 {
        signature.carrying(Timestamp(1 << 60 | packet.content), packet.ttl == 1)
    } else {
        signature
    }
}

fn digest(shape: DigestShape, traffic: &Traffic) -> Digest {
    let mut digest = Digest::new(shape);
    for (packet, times) in traffic {
        (0..*times).for_each(|_| digest.insert(&signature(packet, shape.fields)));
    }
    digest
}

fn difference(up: &Digest, down: &Digest) -> Digest {
    let mut difference = up.clone();
    difference.subtract(down).expect("the same shape");
    difference
}

fn sum(one: &Digest, other: &Digest) -> Digest {
    let mut sum = one.clone();
    sum.merge(other).expect("the same shape");
    sum
}

/// Packets of each signature upstream minus those downstream; differences of zero are left out.
fn counted(fields: Fields, up: &Traffic, down: &Traffic) -> BTreeMap<Signature, i64> {
    let mut counts = BTreeMap::new();
    for (traffic, sign) in [(up, 1), (down, -1)] {
        for (packet, times) in traffic {
            *counts.entry(signature(packet, fields)).or_insert(0) += sign * i64::from(*times);
        }
    }
    counts.retain(|_, count| *count != 0);
    counts
}

/// Decoded packets, as counts; no signature may be named twice.
fn named(decoded: &DecodedDigest) -> BTreeMap<Signature, i64> {
    let mut named = BTreeMap::new();
    for (list, sign) in [(&decoded.lost, 1), (&decoded.extra, -1)] {
        for (signature, times) in list {
            assert!(*times > 0);
            assert_eq!(named.insert(*signature, sign * i64::from(*times)), None, "named twice");
        }
    }
    named
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: 2_000, rng_seed: RngSeed::Fixed(7), failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn what_is_decoded_is_the_difference_or_says_what_is_missing(
        shape in shape(), shared in traffic(40), up in traffic(12), down in traffic(6),
    ) {
        let [up, down] = [up, down].map(|own| [shared.clone(), own].concat());
        let expected = counted(shape.fields, &up, &down);
        let net: i64 = expected.values().sum();
        let decoded = difference(&digest(shape, &up), &digest(shape, &down)).decode();
        let named = named(&decoded);
        for (signature, count) in &named {
            prop_assert_eq!(expected.get(signature), Some(count), "named in full, or not at all");
        }
        let Some(left) = decoded.left else {
            prop_assert_eq!(named, expected);
            return Ok(());
        };
        prop_assert!(named.len() < expected.len());
        prop_assert_eq!(named.values().sum::<i64>() + left.net, net);
        let unnamed = || expected.iter().filter(|(signature, _)| !named.contains_key(signature)).map(|(_, count)| *count);
        prop_assert!(left.lost as i64 <= unnamed().map(|count| count.max(0)).sum());
        prop_assert!(left.extra as i64 <= unnamed().map(|count| -count.min(0)).sum());
    }

    #[test]
    fn the_order_of_merging_and_subtracting_does_not_matter(
        shape in shape(), one in traffic(20), two in traffic(20), three in traffic(20),
    ) {
        let [a, b, c] = [&one, &two, &three].map(|traffic| digest(shape, traffic));
        prop_assert_eq!(sum(&a, &b), sum(&b, &a));
        prop_assert_eq!(sum(&sum(&a, &b), &c), sum(&a, &sum(&b, &c)));
        prop_assert_eq!(difference(&difference(&a, &b), &c), difference(&a, &sum(&b, &c)));
        prop_assert_eq!(difference(&sum(&a, &b), &c), sum(&difference(&a, &c), &b));
        prop_assert_eq!(difference(&sum(&a, &b), &b), a.clone());
        prop_assert_eq!(sum(&a, &b), digest(shape, &[one, two].concat()));
        let mut removed = a.clone();
        for (packet, times) in &three {
            (0..*times).for_each(|_| removed.remove(&signature(packet, shape.fields)));
        }
        prop_assert_eq!(removed, difference(&a, &c));
    }

    #[test]
    fn a_digest_is_read_as_it_was_written(shape in shape(), up in traffic(40), down in traffic(40)) {
        let difference = difference(&digest(shape, &up), &digest(shape, &down));
        prop_assert_eq!(Digest::from_bytes(&difference.to_bytes()), Ok(difference));
    }

    #[test]
    fn a_byte_that_was_changed_is_noticed(
        shape in shape(), up in traffic(20), down in traffic(20), at in any::<prop::sample::Index>(), change in 1..=255u8,
    ) {
        let mut bytes = difference(&digest(shape, &up), &digest(shape, &down)).to_bytes();
        *at.get_mut(&mut bytes) ^= change;
        prop_assert!(Digest::from_bytes(&bytes).is_err());
    }

    #[test]
    fn a_digest_that_was_cut_or_goes_on_is_noticed(
        shape in shape(), up in traffic(20), cut in any::<prop::sample::Index>(), more in 1..200usize,
    ) {
        let bytes = digest(shape, &up).to_bytes();
        prop_assert!(Digest::from_bytes(&bytes[..cut.index(bytes.len())]).is_err());
        prop_assert!(Digest::from_bytes(&[&bytes[..], &vec![0; more]].concat()).is_err());
    }
}
