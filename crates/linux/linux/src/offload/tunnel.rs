//! Super-frames inside a tunnel (`__skb_udp_tunnel_segment`, `gre_gso_segment`): headers of two layers to be made anew for each
//! segment.
//!
//! Nothing says where the inner headers are: the vnet header speaks of the innermost transport only (`csum_start`), and
//! what lies between the layers differs from tunnel to tunnel (VXLAN, Geneve, GRE, plain IP). It need not be read: the
//! inner network header ends where the transport header starts, and its length field must say where the frame ends.
//!
//! A host that is behind a virtual wire leaves such frames undone; a stand-in of ours never lets it (`standin::offloads`).

use wire::checksum::Sum;
use wire::gso;
use wire::ip;
use wire::layers::{IpLayer, IpVersion, Layers};

use super::segment::versions;
use super::{Layout, UDP_CHECKSUM, VnetHeader, be16, put, put_len};

const IPPROTO_IPV4: u8 = 4;
const IPPROTO_IPV6: u8 = 41;
const IPPROTO_GRE: u8 = 47;
const GRE_CHECKSUM: u16 = 0x8000;
const GRE_SEQUENCE: u16 = 0x1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TunnelKind {
    Udp { checksum: bool },
    Gre { checksum: bool },
    Ip,
}

/// The outer headers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outer {
    /// Layout whose payload is the carried packet, from the tunnel's own header on.
    layout: Layout,
    kind: TunnelKind,
}

impl Outer {
    /// Layers of a super-frame whose inner transport header, of this protocol, is where the vnet header says; `None` if
    /// there is but one layer.
    pub(crate) fn find(vnet: &VnetHeader, frame: &[u8], protocol: u8) -> Option<(IpLayer, Self)> {
        let outer = Self::read(frame).filter(|_| vnet.needs_csum())?;
        let transport = usize::from(vnet.csum_start);
        let is_inner = |ip: &IpLayer| {
            versions(vnet).contains(&ip.version)
                && (ip.protocol, ip.transport) == (protocol, transport)
                && ip.at >= outer.layout.payload
                && ip.is_whole(frame)
        };
        let mut lengths = (20..=60).step_by(4);
        let inner = lengths.find_map(|len| IpLayer::of(frame, transport.checked_sub(len)?).filter(is_inner));
        inner.map(|inner| (inner, outer))
    }

    /// `None` for what is no whole packet of a tunnel. Extension headers are not looked behind: a routing header would have
    /// a say in the checksum.
    fn read(frame: &[u8]) -> Option<Self> {
        let ip = Layers::of(frame)?.ip.filter(|ip| ip.is_whole(frame))?;
        if ip.version == IpVersion::V6 && !ip.is_plain() {
            return None;
        }
        let rest = ip.inside(frame);
        let (kind, own) = match ip.protocol {
            ip::UDP if rest.len() >= 8 => (TunnelKind::Udp { checksum: be16(rest, UDP_CHECKSUM) != 0 }, 8),
            IPPROTO_GRE if rest.len() >= 8 && be16(rest, 0) & GRE_SEQUENCE == 0 => {
                (TunnelKind::Gre { checksum: be16(rest, 0) & GRE_CHECKSUM != 0 }, 4)
            }
            IPPROTO_IPV4 | IPPROTO_IPV6 => (TunnelKind::Ip, 0),
            _ => return None,
        };
        Some(Self { layout: Layout::new(&ip, ip.transport + own), kind })
    }

    /// Makes the outer headers those of the segment with this number, in which all else is final.
    pub(crate) fn patch(&self, frame: &mut [u8], index: usize) {
        let Layout { version, network, transport, .. } = self.layout;
        if version == IpVersion::V4 {
            gso::patch_identification(&mut frame[network..], index);
        }
        self.layout.put_packet_len(frame, frame.len() - network);
        let len = frame.len() - transport;
        match self.kind {
            TunnelKind::Udp { checksum } => {
                put_len(frame, transport + 4, len);
                if checksum {
                    put(frame, transport + UDP_CHECKSUM, &[0, 0]);
                    let pseudo = Sum::pseudo_header(self.layout.addresses(frame), ip::UDP, len);
                    let sum = pseudo.and(Sum::of(&frame[transport..])).checksum_or_ones();
                    put(frame, transport + UDP_CHECKSUM, &sum);
                }
            }
            TunnelKind::Gre { checksum: true } => {
                put(frame, transport + 4, &[0, 0]);
                let sum = Sum::of(&frame[transport..]).checksum();
                put(frame, transport + 4, &sum);
            }
            TunnelKind::Gre { checksum: false } | TunnelKind::Ip => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{Frames, Super, slow_sum};
    use super::super::segment;
    use super::*;

    /// A super-frame inside a tunnel: outer headers, the tunnel's own bytes, and the frame or packet inside.
    fn encapsulated(
        inner: &Super,
        outer: IpVersion,
        protocol: u8,
        own: &[u8],
        with_ethernet: bool,
    ) -> (VnetHeader, Vec<u8>) {
        let carried = inner.frame();
        let carried = if with_ethernet { &carried[..] } else { &carried[14..] };
        let len = own.len() + carried.len();
        let mut frame = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1].to_vec();
        match outer {
            IpVersion::V4 => {
                frame.extend([8, 0, 0x45, 0]);
                frame.extend((20 + len as u16).to_be_bytes());
                frame.extend([0x12, 0x34, 0x40, 0, 64, protocol, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
            }
            IpVersion::V6 => {
                frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
                frame.extend((len as u16).to_be_bytes());
                frame.extend([protocol, 64]);
                frame.extend([[0x20; 16], [0x21; 16]].concat());
            }
        }
        frame.extend(own);
        let before = frame.len();
        frame.extend(carried);
        let mut vnet = inner.vnet();
        vnet.csum_start += (before - if with_ethernet { 0 } else { 14 }) as u16;
        (vnet, frame)
    }

    fn udp(checksum: u16, own: &[u8]) -> Vec<u8> {
        [&[0x30, 0x39, 0x12, 0xb5, 0, 0][..], &checksum.to_be_bytes(), own].concat()
    }

    /// The outer checksums of a segment hold, and its lengths are its own.
    fn verify_outer(frame: &[u8], version: IpVersion) {
        let packet = &frame[14..];
        let (header, addresses, protocol) = match version {
            IpVersion::V4 => (20, &packet[12..20], packet[9]),
            IpVersion::V6 => (40, &packet[8..40], packet[6]),
        };
        let rest = &packet[header..];
        match version {
            IpVersion::V4 => assert_eq!((be16(packet, 2) as usize, slow_sum(&packet[..20])), (packet.len(), 0xffff)),
            IpVersion::V6 => assert_eq!(be16(packet, 4) as usize, rest.len()),
        }
        if protocol == ip::UDP {
            assert_eq!(be16(rest, 4) as usize, rest.len());
            let pseudo = [addresses, &(rest.len() as u32).to_be_bytes(), &[0, 0, 0, ip::UDP]].concat();
            assert!(be16(rest, 6) == 0 || slow_sum(&[&pseudo, rest].concat()) == 0xffff);
        }
        if protocol == IPPROTO_GRE && be16(rest, 0) & GRE_CHECKSUM != 0 {
            assert_eq!(slow_sum(rest), 0xffff);
        }
    }

    #[test]
    fn every_segment_of_a_tunnel_has_headers_of_its_own_in_both_layers() {
        let (v4, v6) = (Super::tcp(IpVersion::V4, 30_000, 1_400), Super::tcp(IpVersion::V6, 30_000, 1_400));
        let vxlan = [8, 0, 0, 0, 0, 0, 7, 0];
        let geneve = [1, 0, 0x65, 0x58, 0, 0, 7, 0, 0, 1, 2, 0];
        let cases: [(&Super, IpVersion, u8, Vec<u8>, bool); 8] = [
            (&v4, IpVersion::V4, ip::UDP, udp(0, &vxlan), true),
            (&v6, IpVersion::V4, ip::UDP, udp(9, &vxlan), true),
            (&v4, IpVersion::V6, ip::UDP, udp(9, &geneve), true),
            (&Super::udp(IpVersion::V6, 9_000, 1_000), IpVersion::V4, ip::UDP, udp(0, &geneve), true),
            (&v4, IpVersion::V4, IPPROTO_GRE, vec![0, 0, 8, 0], false),
            (&v6, IpVersion::V4, IPPROTO_GRE, vec![0x80, 0, 0x86, 0xdd, 5, 5, 0, 0], false),
            (&v4, IpVersion::V4, IPPROTO_IPV4, vec![], false),
            (&v4, IpVersion::V6, IPPROTO_IPV4, vec![], false),
        ];
        for (at, (inner, version, protocol, own, with_ethernet)) in cases.into_iter().enumerate() {
            let (vnet, frame) = encapsulated(inner, version, protocol, &own, with_ethernet);
            let mut frames = Frames::default();
            segment(&vnet, &frame, &mut frames).unwrap_or_else(|error| panic!("case {at}: {error:?}"));
            let alone = inner.segments();
            assert_eq!(frames.0.len(), alone.len(), "case {at}");
            for (index, (segment, alone)) in frames.0.iter().zip(&alone).enumerate() {
                verify_outer(segment, version);
                let inside = if with_ethernet { &alone[..] } else { &alone[14..] };
                assert!(segment.ends_with(inside), "case {at}: as without a tunnel");
                if version == IpVersion::V4 {
                    assert_eq!(be16(segment, 18), 0x1234 + index as u16);
                }
            }
        }
    }

    #[test]
    fn a_frame_whose_layers_contradict_each_other_is_refused() {
        let inner = Super::tcp(IpVersion::V4, 5_000, 1_000);
        let (vnet, frame) = encapsulated(&inner, IpVersion::V4, ip::UDP, &udp(0, &[8, 0, 0, 0, 0, 0, 7, 0]), true);
        let patched = |at: usize| {
            let mut frame = frame.clone();
            frame[at] ^= 0x41;
            frame
        };
        let refused = |vnet: &VnetHeader, frame: &[u8]| segment(vnet, frame, &mut Frames::default()).is_err();
        // Lengths of both layers, the inner version and protocol, and where the inner transport is.
        for at in [16, 17, 66, 67, 64, 73] {
            assert!(refused(&vnet, &patched(at)), "byte {at}");
        }
        assert!(refused(&VnetHeader { csum_start: vnet.csum_start + 4, ..vnet }, &frame));
        assert!(refused(&VnetHeader { csum_start: u16::MAX, ..vnet }, &frame));
        assert!((0..frame.len()).all(|len| refused(&vnet, &frame[..len])));
        assert!(!refused(&vnet, &frame));
    }
}
