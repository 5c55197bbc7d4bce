//! Captures of many connections without payload: said together, in a few bytes each.

mod tape;

use std::io::{Cursor, Read};

use explain::answer::ExplainAnswer;
use explain::{ExplainOptions, Explanation, explain};
use units::Unwatched;

const CLIENT: [u8; 4] = [10, 0, 0, 1];
const SERVER: [u8; 4] = [10, 0, 0, 2];

/// A packet of TCP without payload, or with one whose bytes are not kept.
fn packet(from: [u8; 4], to: [u8; 4], ports: [u16; 2], (seq, ack): (u32, u32), flags: u8, len: u16) -> Vec<u8> {
    let mut frame = [&[2; 12][..], &[8, 0, 0x45, 0], &(40 + len).to_be_bytes(), &[0, 0, 0x40, 0, 64, 6, 0, 0]].concat();
    frame.extend([from, to].concat());
    ports.iter().for_each(|port| frame.extend(port.to_be_bytes()));
    frame.extend(seq.to_be_bytes());
    frame.extend(ack.to_be_bytes());
    frame.extend([0x50, flags, 1, 0, 0, 0, 0, 0]);
    frame
}

fn pcap(frames: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 128, 1] {
        bytes.extend(word.to_le_bytes());
    }
    for (at, frame) in frames {
        let (is_six, word) = (frame[12] == 0x86, |at: usize| u32::from(u16::from_be_bytes([frame[at], frame[at + 1]])));
        let len = if is_six { word(18) + 54 } else { word(16) + 14 };
        for word in [1_700_000_000 + (at / 1_000_000_000) as u32, (at % 1_000_000_000) as u32, frame.len() as u32, len]
        {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(frame);
    }
    bytes
}

fn explained(frames: &[(u64, Vec<u8>)], memory: u64) -> Explanation {
    let bytes = pcap(frames);
    let open = || -> std::io::Result<Box<dyn Read>> { Ok(Box::new(Cursor::new(bytes.clone()))) };
    explain(&open, &ExplainOptions { memory, ..ExplainOptions::default() }, &Unwatched).unwrap()
}

fn answer(frames: &[(u64, Vec<u8>)]) -> ExplainAnswer {
    explained(frames, ExplainOptions::MEMORY).answer()
}

/// SYNs to so many ports, every third refused, every fifth answered and reset.
fn scan(ports: u16) -> Vec<(u64, Vec<u8>)> {
    let mut frames = Vec::new();
    for port in 1..=ports {
        let at = u64::from(port) * 10_000;
        frames.push((at, packet(CLIENT, SERVER, [50_000, port], (7, 0), 2, 0)));
        if port.is_multiple_of(3) {
            frames.push((at + 1_000, packet(SERVER, CLIENT, [port, 50_000], (0, 8), 0x14, 0)));
        } else if port.is_multiple_of(5) {
            frames.push((at + 1_000, packet(SERVER, CLIENT, [port, 50_000], (99, 8), 0x12, 0)));
            frames.push((at + 2_000, packet(CLIENT, SERVER, [50_000, port], (8, 0), 4, 0)));
        }
    }
    frames
}

/// A request and its answer.
fn request(at: u64, port: u16) -> Vec<(u64, Vec<u8>)> {
    let up = |seq, ack, flags, len| packet(CLIENT, SERVER, [port, 443], (seq, ack), flags, len);
    let down = |seq, ack, flags, len| packet(SERVER, CLIENT, [443, port], (seq, ack), flags, len);
    vec![
        (at, up(0, 0, 2, 0)),
        (at + 1_000_000, down(0, 1, 0x12, 0)),
        (at + 1_100_000, up(1, 1, 0x18, 300)),
        (at + 2_100_000, down(1, 301, 0x18, 500)),
        (at + 2_200_000, up(301, 501, 0x11, 0)),
        (at + 3_200_000, down(501, 302, 0x11, 0)),
        (at + 3_300_000, up(302, 502, 0x10, 0)),
    ]
}

#[test]
fn a_scan_is_one_line_beside_the_connections_that_did_something() {
    let mut frames = scan(9_000);
    frames.extend(request(5_000_000, 40_000));
    frames.sort();
    let explanation = explained(&frames, ExplainOptions::MEMORY);
    let answer = explanation.answer();
    assert_eq!((answer.connections.len(), answer.scans.len()), (1, 1), "{:#?}", answer.scans);
    assert_eq!((answer.connections[0].bytes_up, answer.connections[0].bytes_down), (300, 500));
    let scan = &answer.scans[0];
    assert_eq!((scan.client, scan.server), (Some(CLIENT.into()), Some(SERVER.into())));
    assert_eq!((scan.connections, scan.refused, scan.opened, scan.unanswered), (9_000, 3_000, 1_200, 4_800));
    assert_eq!((scan.ports, scan.first_port, scan.last_port), (9_000, 1, 9_000));
    let text = explanation.text();
    let line = "9,000 connections from 10.0.0.1 to 10.0.0.2, 9,000 ports (1 to 9000)";
    assert!(text.contains(line) && text.contains("4,800 without an answer"), "{text}");
}

#[test]
fn a_capture_of_nothing_but_a_scan_has_a_page_and_a_text() {
    let explanation = explained(&scan(2_000), ExplainOptions::MEMORY);
    assert!(!explanation.is_empty());
    for said in [explanation.text(), explanation.page("scan")] {
        assert!(said.contains("2,000 connections from 10.0.0.1 to 10.0.0.2"), "{said}");
    }
}

#[test]
fn a_few_connections_without_payload_are_listed_one_by_one() {
    let answer = answer(&scan(300));
    assert_eq!((answer.connections.len(), answer.scans.len()), (300, 0));
}

#[test]
fn a_syn_that_is_kept_as_a_note_is_explained_as_before() {
    let mut tape = tape::Tape::default();
    tape.syn(0).syn(1_000 * tape::MS).syn_ack(1_020 * tape::MS).ack(1_021 * tape::MS, tape::Client, 0);
    tape.send_bytes(1_022 * tape::MS, tape::Client, 100);
    let connection = tape.explain();
    assert_eq!((connection.timeouts, connection.losses.len(), connection.mss), (1, 1, tape::MSS));
    let stall = &connection.stalls[0];
    assert_eq!((stall.until_ns - stall.from_ns, stall.packets.as_slice()), (1_000 * tape::MS, &[1, 2][..]));
}

#[test]
fn what_falls_out_of_memory_is_counted_and_said() {
    let mut frames: Vec<_> = (0..3_000).flat_map(|nth| request(u64::from(nth) * 20_000, 10_000 + nth)).collect();
    frames.sort();
    let all = explained(&frames, ExplainOptions::MEMORY);
    assert_eq!((all.answer().connections.len(), all.answer().ended_early, all.answer().dropped), (3_000, 0, 0));
    let few = explained(&frames, 1_000_000);
    let answer = few.answer();
    assert!(answer.dropped > 0 && answer.connections.len() < 3_000, "{} {}", answer.dropped, answer.connections.len());
    assert!(few.text().contains("memory was full"), "{}", few.text());
}

/// The same packet of TCP from and to addresses of IPv6 that end with these bytes.
fn over_six(frame: &[u8], from: [u8; 4], to: [u8; 4]) -> Vec<u8> {
    const NETWORK: [u8; 12] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0];
    let payload = u16::from_be_bytes([frame[16], frame[17]]) - 20;
    let head = [&frame[..12], &[0x86, 0xdd, 0x60, 0, 0, 0], &payload.to_be_bytes(), &[6, 64]].concat();
    [&head[..], &NETWORK, &from, &NETWORK, &to, &frame[34..]].concat()
}

#[test]
fn a_scan_from_many_addresses_of_ipv6_leaves_room_for_a_connection_that_comes_later() {
    let mut frames: Vec<_> = (0..30_000_u32)
        .map(|nth| {
            let syn = packet(CLIENT, SERVER, [50_000, 443], (7, 0), 2, 0);
            (u64::from(nth) * 1_000, over_six(&syn, (nth + 0x1_0000).to_be_bytes(), SERVER))
        })
        .collect();
    frames.extend(request(1_000_000_000, 40_000).into_iter().map(|(at, frame)| {
        let (from, to) = if frame[26..30] == CLIENT { (CLIENT, SERVER) } else { (SERVER, CLIENT) };
        (at, over_six(&frame, from, to))
    }));
    let answer = explained(&frames, 1_000_000).answer();
    assert_eq!((answer.connections.len(), answer.ended_early), (1, 0), "{} dropped", answer.dropped);
    assert!(answer.dropped > 0);
}

/// Data that nobody acknowledges, as in a capture of one direction.
#[test]
fn a_capture_of_one_direction_takes_bounded_memory() {
    let data =
        |nth: u32| (u64::from(nth) * 1_000, packet(CLIENT, SERVER, [40_000, 443], (1 + nth * 1_448, 1), 0x10, 1_448));
    let mut frames = vec![(0, packet(CLIENT, SERVER, [40_000, 443], (0, 0), 2, 0))];
    frames.extend((1..200_000).map(data));
    let answer = explained(&frames, 20_000_000).answer();
    assert_eq!((answer.connections.len(), answer.ended_early), (1, 0), "65,536 segments are kept of it");
}
