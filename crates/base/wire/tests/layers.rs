//! Layers and checksums as etherparse has them, and any bytes.

use etherparse::checksum::Sum16BitWords;
use etherparse::{Ipv6ExtensionSlice, NetSlice, SlicedPacket, TcpHeader, TransportSlice, UdpHeader};
use proptest::prelude::*;
use wire::checksum::{Sum, update};
use wire::layers::{Fragment, IpLayer, IpVersion, Layers};
use wire::{ethernet, ip};

#[derive(Clone, Debug)]
struct Shape {
    /// Type and control information of each, the outer one first.
    tags: Vec<(u16, u16)>,
    network: Network,
    transport: Transport,
    payload: Vec<u8>,
    padding: usize,
}

#[derive(Clone, Debug)]
enum Network {
    V4 { options: usize, id: u16, flags: u16, offset: u16 },
    V6 { extensions: Vec<(u8, u8)>, fragment: Option<(u16, bool, u32)>, then_options: bool },
}

#[derive(Clone, Copy, Debug)]
enum Transport {
    Tcp { options: usize },
    Udp,
    Icmp,
}

fn any_shape() -> impl Strategy<Value = Shape> {
    let tag = (prop_oneof![Just(0x8100_u16), Just(0x88a8)], any::<u16>());
    let offset = prop_oneof![Just(0_u16), 1..0x2000_u16];
    let v4 = (0..=10_usize, any::<u16>(), prop_oneof![Just(0_u16), Just(1 << 13), Just(1 << 14)], offset.clone())
        .prop_map(|(options, id, flags, offset)| Network::V4 { options, id, flags, offset });
    let extension = (prop_oneof![Just(43_u8), Just(60)], 0..4_u8);
    let v6 = (
        prop::option::of(0..4_u8),
        prop::collection::vec(extension, 0..5),
        prop::option::of((offset, any::<bool>(), any::<u32>())),
        any::<bool>(),
    )
        .prop_map(|(first, rest, fragment, then_options)| Network::V6 {
            // Only the first of all may be hop-by-hop options.
            extensions: first.map(|len| (0, len)).into_iter().chain(rest).collect(),
            fragment,
            then_options: then_options && fragment.is_none_or(|(offset, ..)| offset == 0),
        });
    let transport = prop_oneof![
        (0..=10_usize).prop_map(|options| Transport::Tcp { options }),
        Just(Transport::Udp),
        Just(Transport::Icmp)
    ];
    let payload = prop::collection::vec(any::<u8>(), 0..100);
    (prop::collection::vec(tag, 0..3), prop_oneof![v4, v6], transport, payload, 0..30_usize)
        .prop_map(|(tags, network, transport, payload, padding)| Shape { tags, network, transport, payload, padding })
}

impl Network {
    fn fragment(&self) -> Option<(u16, bool)> {
        match *self {
            Self::V4 { flags, offset, .. } => {
                let has_more = flags & 1 << 13 != 0;
                (has_more || offset != 0).then_some((offset, has_more))
            }
            Self::V6 { fragment, .. } => fragment.map(|(offset, has_more, _)| (offset, has_more)),
        }
    }
}

impl Shape {
    fn protocol(&self) -> u8 {
        match (self.transport, &self.network) {
            (Transport::Tcp { .. }, _) => ip::TCP,
            (Transport::Udp, _) => ip::UDP,
            (Transport::Icmp, Network::V4 { .. }) => ip::ICMP,
            (Transport::Icmp, Network::V6 { .. }) => ip::ICMP_V6,
        }
    }

    fn frame(&self) -> Vec<u8> {
        let mut frame = vec![2; 12];
        for (kind, control) in &self.tags {
            frame.extend([kind.to_be_bytes(), control.to_be_bytes()].concat());
        }
        match &self.network {
            Network::V4 { options, id, flags, offset } => self.emit_v4(*options, *id, flags | offset, &mut frame),
            Network::V6 { extensions, fragment, then_options } => {
                let mut headers = extensions.clone();
                headers.extend(fragment.map(|_| (44, 0)));
                headers.extend(then_options.then_some((60, 1)));
                self.emit_v6(&headers, *fragment, &mut frame);
            }
        }
        frame.resize(frame.len() + self.padding, 0xee);
        frame
    }

    fn emit_v4(&self, options: usize, id: u16, fragment: u16, frame: &mut Vec<u8>) {
        let (source, destination) = ([10, 0, 0, 1], [192, 168, 255, 2]);
        let inside = self.inside(|tcp| tcp.calc_checksum_ipv4_raw(source, destination, &self.payload).unwrap());
        let total = (20 + 4 * options + inside.len()) as u16;
        frame.extend(ethernet::IPV4.to_be_bytes());
        let start = frame.len();
        frame.extend([0x45 + options as u8, 7]);
        frame.extend([total, id, fragment].map(u16::to_be_bytes).as_flattened());
        frame.extend([64, self.protocol(), 0, 0]);
        frame.extend([source, destination].as_flattened());
        frame.resize(start + 20 + 4 * options, 1);
        let checksum = Sum16BitWords::new().add_slice(&frame[start..]).ones_complement().to_ne_bytes();
        frame[start + 10..start + 12].copy_from_slice(&checksum);
        frame.extend(inside);
    }

    fn emit_v6(&self, headers: &[(u8, u8)], fragment: Option<(u16, bool, u32)>, frame: &mut Vec<u8>) {
        let (source, destination) = ([0x20; 16], [0xfd; 16]);
        let inside = self.inside(|tcp| tcp.calc_checksum_ipv6_raw(source, destination, &self.payload).unwrap());
        let mut between = Vec::new();
        let next = |at: usize| headers.get(at).map_or(self.protocol(), |(kind, _)| *kind);
        for (at, (kind, len)) in headers.iter().enumerate() {
            between.extend([next(at + 1), *len]);
            match fragment.filter(|_| *kind == 44) {
                Some((offset, more, id)) => {
                    between.extend((offset << 3 | u16::from(more)).to_be_bytes());
                    between.extend(id.to_be_bytes());
                }
                None => between.resize(between.len() + 6 + 8 * usize::from(*len), 0),
            }
        }
        frame.extend(ethernet::IPV6.to_be_bytes());
        frame.extend([0x6f, 1, 2, 3]);
        frame.extend(((between.len() + inside.len()) as u16).to_be_bytes());
        frame.extend([next(0), 64]);
        frame.extend([source, destination].as_flattened());
        frame.extend(between);
        frame.extend(inside);
    }

    /// The transport header and the payload; the checksum of TCP is etherparse's.
    fn inside(&self, checksum: impl Fn(&TcpHeader) -> u16) -> Vec<u8> {
        let header = match self.transport {
            Transport::Tcp { options } => {
                let mut tcp = TcpHeader::new(40_000, 80, 7, 512);
                tcp.set_options_raw(&vec![1; 4 * options]).unwrap();
                tcp.checksum = checksum(&tcp);
                tcp.to_bytes().to_vec()
            }
            Transport::Udp => {
                let length = (8 + self.payload.len()) as u16;
                UdpHeader { source_port: 5_000, destination_port: 53, length, checksum: 0 }.to_bytes().to_vec()
            }
            Transport::Icmp => vec![128, 0, 0, 0, 0, 1, 0, 2],
        };
        [&header, &self.payload[..]].concat()
    }
}

/// Offset of a part in the frame.
fn offset(frame: &[u8], part: &[u8]) -> usize {
    part.as_ptr() as usize - frame.as_ptr() as usize
}

/// The layers as etherparse finds them; of a fragment it looks at no transport header.
fn theirs(frame: &[u8]) -> (Layers, Option<usize>) {
    let sliced = SlicedPacket::from_ethernet(frame).unwrap();
    let ether = sliced.ether_payload().unwrap();
    let mut vlans = [0; 2];
    for (vlan, id) in vlans.iter_mut().zip(sliced.vlan_ids()) {
        *vlan = id.value();
    }
    let network = offset(frame, ether.payload);
    let payload = sliced.ip_payload().unwrap();
    let (version, total, fragment) = match sliced.net.as_ref().unwrap() {
        NetSlice::Ipv4(v4) => {
            let header = v4.header();
            let (id, offset) = (header.identification().into(), header.fragments_offset().value());
            let fragment = Fragment::new(id, offset, header.more_fragments());
            (IpVersion::V4, usize::from(header.total_len()), header.is_fragmenting_payload().then_some(fragment))
        }
        NetSlice::Ipv6(v6) => {
            let fragment = v6.extensions().clone().into_iter().find_map(|extension| match extension {
                Ipv6ExtensionSlice::Fragment(header) => {
                    let (id, offset) = (header.identification(), header.fragment_offset().value());
                    Some(Fragment::new(id, offset, header.more_fragments()))
                }
                _ => None,
            });
            (IpVersion::V6, 40 + usize::from(v6.header().payload_length()), fragment)
        }
        other => panic!("{other:?}"),
    };
    let transport = offset(frame, payload.payload);
    assert_eq!(transport + payload.payload.len(), network + total);
    let layer = IpLayer { version, at: network, total, protocol: payload.ip_number.0, transport, fragment };
    let payload = match &sliced.transport {
        Some(TransportSlice::Tcp(tcp)) => Some(offset(frame, tcp.payload())),
        Some(TransportSlice::Udp(udp)) => Some(offset(frame, udp.payload())),
        _ => None,
    };
    (Layers { vlans, ethertype: ether.ether_type.0, network, ip: Some(layer) }, payload)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_field_is_as_etherparse_has_it(shape in any_shape()) {
        let frame = shape.frame();
        let ours = Layers::of(&frame).unwrap();
        let (theirs, payload) = theirs(&frame);
        prop_assert_eq!(ours, theirs);
        let ip = ours.ip.unwrap();
        let place = ip.fragment.map(|fragment| (fragment.offset(), fragment.has_more()));
        prop_assert_eq!(place, shape.network.fragment());
        let is_fragment = ip.fragment.is_some_and(|fragment| fragment.offset() != 0 || fragment.has_more());
        prop_assert_eq!(ip.payload(&frame).filter(|_| !is_fragment), payload);
        prop_assert_eq!(ip.is_later_fragment(), ip.fragment.is_some_and(|fragment| fragment.offset() != 0));
        prop_assert_eq!(ip.is_whole(&frame), shape.padding == 0 && ip.fragment.is_none());
        let options = ip.transport - ip.at - ip.version.header_len();
        prop_assert_eq!(ip.is_plain(), options == 0);
        prop_assert!(ip.inside(&frame).ends_with(&shape.payload));
        prop_assert_eq!(Some(ip), IpLayer::of(&frame, ip.at));
        let with_type = &frame[12..];
        prop_assert_eq!(Layers::from_type(with_type, 0).map(|layers| layers.network + 12), Some(ours.network));
    }

    #[test]
    fn what_etherparse_sums_verifies(shape in any_shape()) {
        let frame = shape.frame();
        let ip = Layers::of(&frame).and_then(|layers| layers.ip).unwrap();
        if ip.version == IpVersion::V4 {
            prop_assert!(Sum::of(&frame[ip.at..ip.transport]).verifies());
        }
        if ip.protocol == ip::TCP {
            let inside = ip.inside(&frame);
            let pseudo = Sum::pseudo_header(ip.addresses(&frame), ip.protocol, inside.len());
            prop_assert!(pseudo.and(Sum::of(inside)).verifies());
        }
    }

    #[test]
    fn any_length_at_any_alignment_sums_as_etherparse_does(bytes in prop::collection::vec(any::<u8>(), 8..400), start in 0..8_usize) {
        let (bytes, theirs) = (&bytes[start..], Sum16BitWords::new().add_slice(&bytes[start..]));
        prop_assert_eq!(Sum::of(bytes).checksum(), theirs.ones_complement().to_ne_bytes());
        prop_assert_eq!(Sum::of(bytes).checksum_or_ones(), theirs.to_ones_complement_with_no_zero().to_ne_bytes());
    }

    #[test]
    fn an_updated_checksum_is_that_of_the_changed_bytes(bytes in prop::collection::vec(any::<u8>(), 40), at in 0..18_usize, new in any::<[u8; 4]>()) {
        // A word that is not zero keeps both zeros of ones' complement apart.
        let mut bytes = [&[0x45, 0][..], &bytes].concat();
        let before = Sum::of(&bytes).checksum();
        let range = 2 + 2 * at..6 + 2 * at;
        let old = bytes[range.clone()].to_vec();
        bytes[range].copy_from_slice(&new);
        prop_assert_eq!(update(before, &old, &new), Sum::of(&bytes).checksum());
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        holds(&bytes);
    }

    #[test]
    fn frames_that_were_cut_and_changed(shape in any_shape(), len in any::<prop::sample::Index>(), edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4)) {
        let mut frame = shape.frame();
        frame.truncate(len.index(frame.len() + 1).max(1));
        for (at, value) in edits {
            let at = at.index(frame.len());
            frame[at] = value;
        }
        holds(&frame);
    }
}

/// Nothing that it says may contradict the bytes.
fn holds(bytes: &[u8]) {
    let Some(layers) = Layers::of(bytes) else {
        return assert!(bytes.len() < 22);
    };
    assert!(layers.network <= bytes.len());
    let Some(ip) = layers.ip else { return };
    assert!(
        ip.at == layers.network && ip.at + ip.version.header_len() <= bytes.len() && !ip.addresses(bytes).is_empty()
    );
    assert!(ip.transport >= ip.at + ip.version.header_len() && ip.inside(bytes).len() <= bytes.len());
    if let Some(payload) = ip.payload(bytes) {
        assert!((ip.transport + 8..=bytes.len().min(ip.end())).contains(&payload));
    }
}

#[test]
fn two_tags_are_looked_through_and_a_third_is_not() {
    let frame = |tags: usize| [&[0; 12][..], &[0x88, 0xa8, 0, 7].repeat(tags), &[0x08, 0x06, 0, 1]].concat();
    let found = |tags| Layers::of(&frame(tags)).map(|layers| (layers.ethertype, layers.network, layers.vlans));
    assert_eq!(
        [0, 1, 2].map(found),
        [(14, [0, 0]), (18, [7, 0]), (22, [7, 7])].map(|(at, ids)| Some((0x0806, at, ids)))
    );
    assert_eq!(found(3), Some((0x88a8, 22, [7, 7])));
    assert_eq!((Layers::of(&frame(1)[..17]), Layers::of(&[])), (None, None));
}

#[test]
fn carries_of_the_largest_packet_are_not_lost() {
    let bytes = [0xff; 65_535];
    let theirs = Sum16BitWords::new().add_slice(&bytes).ones_complement();
    assert_eq!(Sum::of(&bytes).checksum(), theirs.to_ne_bytes());
}
