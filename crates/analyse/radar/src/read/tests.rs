use super::*;

/// An Ethernet frame with IPv4 and TCP: 10.0.0.1:40000 to 10.0.0.2:80, sequence 7, with payload.
fn tcp_frame(flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; 12];
    frame.extend([0x08, 0x00]);
    let total = (40 + payload.len()) as u16;
    frame.extend([0x45, 0]);
    frame.extend(total.to_be_bytes());
    frame.extend([0x12, 0x34, 0x40, 0, 64, 6, 0xaa, 0xbb, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend([0x9c, 0x40, 0, 80, 0, 0, 0, 7, 0, 0, 0, 9, 0x50, flags, 1, 0, 0xcc, 0xdd, 0, 0]);
    frame.extend(payload);
    frame
}

fn read(frame: &[u8]) -> Packet {
    packet(frame, LinkType::Ethernet, DEPTH).unwrap()
}

#[test]
fn a_segment_is_read_with_its_place() {
    let packet = read(&tcp_frame(0x12, b"hello"));
    assert_eq!(packet.flow.to_string(), "tcp 10.0.0.1:40000 > 10.0.0.2:80");
    assert_eq!((packet.ip_id, packet.ttl, packet.fragment), (Some(0x1234), 64, 0));
    assert_eq!(packet.tcp, Some(TcpFields { seq: 7, len: 6, syn: true }));
}

#[test]
fn routers_and_cards_change_nothing_that_counts() {
    let frame = tcp_frame(0x10, b"hello");
    let mut changed = frame.clone();
    // Type of service, time to live, both checksums.
    for at in [15, 22, 24, 25, 50, 51] {
        changed[at] ^= 0x5a;
    }
    changed[22] = 63;
    // Padding of a short frame, and a VLAN tag.
    changed.extend([0; 6]);
    changed.splice(12..12, [0x81, 0, 0, 7]);
    assert_eq!(Packet { ttl: 64, ..read(&changed) }, read(&frame));
}

#[test]
fn whatever_the_sender_wrote_counts() {
    let frame = tcp_frame(0x10, b"hello");
    let changes = [18, 19, 23, 26, 30, 34, 36, 38, 42, 46, 47, 48, 52, 54, 58];
    for at in changes {
        let mut changed = frame.clone();
        changed[at] ^= 1;
        assert_ne!(read(&changed), read(&frame), "byte {at}");
    }
}

#[test]
fn captures_that_keep_less_agree_if_both_look_no_further() {
    let long = tcp_frame(0x10, &[7; 1_000]);
    let [whole, cut] = [&long[..], &long[..96]].map(|frame| packet(frame, LinkType::Ethernet, 82).unwrap());
    assert_eq!(whole, cut);
    assert_eq!(cut.tcp.unwrap().len, 1_000);
    assert_ne!(read(&long), read(&long[..96]));
}

#[test]
fn ipv6_is_read_behind_its_extensions() {
    let mut frame = vec![0; 12];
    frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 24, 60, 9]);
    frame.extend([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    frame.extend([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    // Destination options, then a fragment header of the first fragment, then UDP.
    frame.extend([44, 0, 1, 4, 0, 0, 0, 0, 17, 0, 0, 1, 0, 0, 0, 5, 0, 53, 0, 99, 0, 8, 0, 0]);
    let packet = read(&frame);
    assert_eq!(packet.flow.to_string(), "udp [2001:db8::1]:53 > [2001:db8::2]:99");
    assert_eq!((packet.ip_id, packet.ttl, packet.fragment), (None, 9, MORE | 5 << 16));
}

#[test]
fn later_fragments_have_no_ports() {
    let mut frame = tcp_frame(0x10, &[1; 64]);
    frame[20..22].copy_from_slice(&[0x20, 0xb9]);
    let packet = read(&frame);
    assert_eq!((packet.flow.src_port, packet.tcp, packet.fragment), (0, None, MORE | 0xb9));
}

#[test]
fn every_link_type_leads_to_the_same_packet() {
    let frame = tcp_frame(0x10, b"x");
    let ip = &frame[14..];
    let cooked = [&[0; 14][..], &[8, 0], ip].concat();
    let cooked2 = [&[8, 0][..], &[0; 18], ip].concat();
    let loopback = [&[2, 0, 0, 0][..], ip].concat();
    for (number, bytes) in [(101, ip), (113, &cooked[..]), (276, &cooked2[..]), (0, &loopback[..])] {
        let link = LinkType::from_number(number).unwrap();
        assert_eq!(packet(bytes, link, DEPTH), Some(read(&frame)), "{link:?}");
    }
    assert_eq!(LinkType::from_number(105), None);
}

#[test]
fn any_bytes_are_read_or_refused() {
    let frame = tcp_frame(0x10, b"hello");
    for len in 0..frame.len() {
        let _ = packet(&frame[..len], LinkType::Ethernet, DEPTH);
    }
    assert_eq!(packet(&[0x45; 10], LinkType::Ip, DEPTH), None);
    assert_eq!(packet(&[0xff; 60], LinkType::Ethernet, DEPTH), None);
}
