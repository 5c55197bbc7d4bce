use super::*;
use crate::packet::{Flow, Packet, TcpFields};

/// The nth packet of some traffic.
pub(crate) fn packet(nth: u32) -> Packet {
    let flow = Flow {
        src: [10, 0, (nth >> 8) as u8, nth as u8].into(),
        dst: [10, 1, 0, 1].into(),
        protocol: 6,
        src_port: 40_000,
        dst_port: 80,
    };
    let tcp = Some(TcpFields { seq: nth.wrapping_mul(1_448), len: 1_448, syn: false });
    Packet { flow, ip_id: Some(0), fragment: 0, tcp, ttl: 64, content: u64::from(nth) }
}

fn signature(nth: u32) -> Signature {
    Signature::new(&packet(nth), Fields::ALL)
}

fn digest(packets: impl IntoIterator<Item = u32>) -> Digest {
    let mut digest = Digest::new(DigestShape::new(300, 1, Fields::ALL));
    packets.into_iter().for_each(|nth| digest.insert(&signature(nth)));
    digest
}

fn sorted(mut list: Vec<(Signature, u32)>) -> Vec<(Signature, u32)> {
    list.sort_unstable();
    list
}

#[test]
fn what_the_second_meter_did_not_see_is_told_by_name() {
    let mut difference = digest(0..10_000);
    difference.subtract(&digest((0..10_000).filter(|nth| nth % 100 != 7))).unwrap();
    let decoded = difference.decode();
    assert_eq!(sorted(decoded.lost), sorted((7..10_000).step_by(100).map(|nth| (signature(nth), 1)).collect()));
    assert_eq!((decoded.extra, decoded.left), (vec![], None));
}

#[test]
fn a_packet_and_its_retransmission_that_are_both_lost_count_as_two() {
    let mut difference = digest([1, 2, 2, 3, 3, 3]);
    difference.subtract(&digest([1, 3])).unwrap();
    assert_eq!(sorted(difference.decode().lost), sorted(vec![(signature(2), 2), (signature(3), 2)]));
}

#[test]
fn what_only_the_second_meter_saw_is_no_loss() {
    let mut difference = digest([1, 2]);
    difference.subtract(&digest([2, 5, 5])).unwrap();
    let decoded = difference.decode();
    assert_eq!((decoded.lost, decoded.extra), (vec![(signature(1), 1)], vec![(signature(5), 2)]));
}

#[test]
fn more_losses_than_cells_are_counted_though_not_named() {
    let mut difference = digest(0..2_000);
    difference.subtract(&digest(0..1_000)).unwrap();
    let decoded = difference.decode();
    let left = decoded.left.unwrap();
    assert_eq!(decoded.lost.len() as i64 + left.net, 1_000);
    assert_eq!((left.lost as i64, left.extra), (left.net, 0));
}

#[test]
fn the_estimate_is_near() {
    for count in [0, 10, 50, 150] {
        let estimate = digest(0..count).estimate();
        assert!((estimate - f64::from(count)).abs() <= 0.25 * f64::from(count) + 1.0, "{count}: {estimate}");
    }
}

#[test]
fn digests_of_different_shapes_are_not_compared() {
    let mut one = digest([1]);
    let said = |shape| one.clone().subtract(&Digest::new(shape)).unwrap_err().to_string();
    assert!(said(DigestShape::new(600, 1, Fields::ALL)).contains("300 cells and 600"));
    assert!(said(DigestShape::new(300, 2, Fields::ALL)).contains("seed 1 and seed 2"));
    assert!(
        said(DigestShape::new(300, 1, Fields { tcp: false, content: false, ..Fields::ALL })).contains("same options")
    );
    assert!(one.merge(&digest([2])).is_ok());
}

#[test]
fn a_digest_survives_being_written() {
    let mut one = digest(0..1_000);
    assert_eq!(Digest::from_bytes(&one.to_bytes()), Ok(one.clone()));
    one.subtract(&digest((20..1_000).chain(2_000..2_020))).unwrap();
    let bytes = one.to_bytes();
    assert_eq!(Digest::from_bytes(&bytes), Ok(one));
    assert!(bytes.len() < 120 * 80 + 32, "only what has anything in it is written: {}", bytes.len());
    assert_eq!(Digest::from_bytes(b"pcap"), Err(FormError::Foreign));
    assert_eq!(Digest::from_bytes(&bytes[..bytes.len() - 1]), Err(FormError::Malformed));
    let mut newer = bytes.clone();
    newer[4] = 9;
    assert_eq!(Digest::from_bytes(&newer), Err(FormError::Version(9)));
    for at in 28..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x10;
        assert_eq!(Digest::from_bytes(&changed), Err(FormError::Corrupted));
    }
}
