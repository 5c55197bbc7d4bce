//! `hitless explain`: what it prints, and what it refuses.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

const CLIENT: [u8; 4] = [10, 0, 0, 1];
const SERVER: [u8; 4] = [10, 0, 0, 2];
const MS: u64 = 1_000_000;

fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("hitless-explain-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

/// A frame of TCP without options; the client's first payload byte has number 1 and the server's 1, too.
fn frame(from: [u8; 4], id: u16, (seq, ack): (u32, u32), flags: u8, len: u16) -> Vec<u8> {
    let to = if from == CLIENT { SERVER } else { CLIENT };
    let ports: [u16; 2] = if from == CLIENT { [40_000, 80] } else { [80, 40_000] };
    let mut frame = vec![0; 12];
    frame.extend([8, 0, 0x45, 0]);
    frame.extend((40 + len).to_be_bytes());
    frame.extend(id.to_be_bytes());
    frame.extend([0x40, 0, 64, 6, 0, 0]);
    frame.extend(from);
    frame.extend(to);
    ports.iter().for_each(|port| frame.extend(port.to_be_bytes()));
    frame.extend(seq.to_be_bytes());
    frame.extend(ack.to_be_bytes());
    frame.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    frame.resize(frame.len() + usize::from(len), 7);
    frame
}

fn pcap(frames: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 65_535, 1] {
        bytes.extend(word.to_le_bytes());
    }
    for (at, frame) in frames {
        for word in [1_700_000_000 + at / 1_000_000_000, at % 1_000_000_000, frame.len() as u64, frame.len() as u64] {
            bytes.extend((word as u32).to_le_bytes());
        }
        bytes.extend(frame);
    }
    bytes
}

/// A request whose only segment is lost and sent again after 220 ms, as the client's end has it, then the server's.
fn captures() -> [Vec<(u64, Vec<u8>)>; 2] {
    let client = vec![
        (0, frame(CLIENT, 1, (0, 0), 2, 0)),
        (20 * MS, frame(SERVER, 0, (0, 1), 0x12, 0)),
        (20 * MS + 50_000, frame(CLIENT, 2, (1, 1), 0x10, 0)),
        (21 * MS, frame(CLIENT, 3, (1, 1), 0x18, 300)),
        (241 * MS, frame(CLIENT, 4, (1, 1), 0x18, 300)),
        (262 * MS, frame(SERVER, 50, (1, 301), 0x18, 500)),
        (263 * MS, frame(CLIENT, 5, (301, 501), 0x10, 0)),
    ];
    let server = client.iter().enumerate().filter(|(place, _)| *place != 3);
    let server = server.map(|(_, (at, frame))| {
        let from_client = frame[26..30] == CLIENT;
        (if from_client { at + 10 * MS } else { at - 10 * MS }, frame.clone())
    });
    let mut server: Vec<_> = server.collect();
    server.sort_by_key(|(at, _)| *at);
    [client, server]
}

fn explain(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hitless")).arg("explain").args(args).output().unwrap()
}

fn json(args: &[&str]) -> Value {
    let output = explain(&[args, &["--json"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_lost_segment_is_named_with_one_capture_and_with_two() {
    let folder = folder("two");
    let [client, server] = ["client.pcap", "server.pcap"].map(|name| folder.join(name));
    let [at_client, at_server] = captures();
    fs::write(&client, pcap(&at_client)).unwrap();
    fs::write(&server, pcap(&at_server)).unwrap();
    let (page, one) = (folder.join("page.html"), json(&[text(&client)]));
    let connection = &one["connections"][0];
    assert_eq!(connection["client"], "10.0.0.1:40000");
    assert_eq!((&connection["sees"], &connection["losses"][0]["len"]), (&"client".into(), &300.into()), "{one:#}");
    let sum: u64 = connection["parts"].as_array().unwrap().iter().map(|part| part["ns"].as_u64().unwrap()).sum();
    assert_eq!(connection["duration_ns"], sum);
    let two = json(&[text(&client), "--other-end", text(&server), "--html", text(&page)]);
    let connection = &two["connections"][0];
    assert_eq!(connection["sees"], "both");
    let losses = connection["losses"].as_array().unwrap();
    assert_eq!((losses.len(), &losses[0]["seen_by"]), (1, &"other-end".into()), "{two:#}");
    assert_eq!((&losses[0]["tcp_seq"], &losses[0]["direction"]), (&1.into(), &"up".into()));
    assert!(fs::read_to_string(&page).unwrap().contains("<svg"));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_is_no_capture_ends_with_2_and_writes_nothing() {
    let folder = folder("refused");
    let (good, bad, page) = (folder.join("good.pcap"), folder.join("bad.pcap"), folder.join("page.html"));
    fs::write(&good, pcap(&captures()[0])).unwrap();
    let other: Vec<_> = captures()[0]
        .iter()
        .map(|(at, frame)| {
            let mut frame = frame.clone();
            frame[29] ^= 0x40;
            frame[33] ^= 0x40;
            (*at, frame)
        })
        .collect();
    let udp: Vec<_> = captures()[0]
        .iter()
        .map(|(at, frame)| {
            let mut frame = frame.clone();
            frame[23] = 17;
            (*at, frame)
        })
        .collect();
    for (bytes, args) in [
        (b"text, not packets".to_vec(), vec![text(&bad)]),
        (Vec::new(), vec![text(&bad)]),
        (pcap(&udp), vec![text(&bad)]),
        (pcap(&other), vec![text(&good), "--other-end", text(&bad)]),
    ] {
        fs::write(&bad, bytes).unwrap();
        let output = explain(&[args.as_slice(), &["--html", text(&page), "--json"]].concat());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{args:?}: {stderr}");
        assert!(stderr.contains("pcap"), "{stderr}");
        assert!(!page.exists());
    }
    let output = explain(&[text(&good), "--flow", "10.9.9.9"]);
    assert_eq!(output.status.code(), Some(2));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_selftest_refuses_what_makes_no_sense() {
    let said = |args: &[&str]| {
        let output =
            Command::new(env!("CARGO_BIN_EXE_hitless")).args(["explain", "selftest"]).args(args).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, text) = said(&["--only", "sunspots"]);
    assert!(code == Some(2) && text.contains("no such case") && text.contains("lone-tail"), "{text}");
    let (code, text) = said(&["--agreement", "--runs", "3"]);
    assert!(code == Some(2) && text.contains("--runs"), "{text}");
    let (code, text) = said(&["--keep", "/dev/null/captures"]);
    assert!(code == Some(2) && text.contains("--keep /dev/null/captures"), "{text}");
}

#[test]
fn without_a_capture_or_a_command_it_says_what_is_missing() {
    let output = Command::new(env!("CARGO_BIN_EXE_hitless")).arg("explain").output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && text.contains("<CAPTURE>"), "{text}");
}

/// SYNs from one address to many ports of many, nothing else.
fn scan(connections: u32) -> Vec<u8> {
    let mut frames = Vec::new();
    for nth in 0..connections {
        let mut syn = frame(CLIENT, 1, (nth, 0), 2, 0);
        syn[33] = (nth / 60_000) as u8 + 2;
        syn[36..38].copy_from_slice(&(1 + (nth % 60_000) as u16).to_be_bytes());
        frames.push((u64::from(nth) * 10_000, syn));
    }
    pcap(&frames)
}

/// A thousand bytes each would be more than what it may have; the program itself takes some ten million.
#[test]
fn a_scan_takes_a_few_bytes_for_each_connection_and_is_said_in_a_line() {
    let folder = folder("scan");
    let path = folder.join("scan.pcap");
    fs::write(&path, scan(100_000)).unwrap();
    let limited = |json: &str| {
        let script = format!("ulimit -d 60000; exec \"$0\" {json} explain \"$1\"");
        let output =
            Command::new("sh").args(["-c", &script, env!("CARGO_BIN_EXE_hitless")]).arg(&path).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let said = limited("");
    assert!(said.contains("60,000 connections from 10.0.0.1 to 10.0.0.2, 60,000 ports"), "{said}");
    let answer: Value = serde_json::from_str(&limited("--json")).unwrap();
    let scans = answer["scans"].as_array().unwrap();
    let count = |field: &str| scans.iter().map(|scan| scan[field].as_u64().unwrap()).sum::<u64>();
    assert_eq!((scans.len(), count("connections"), count("unanswered")), (2, 100_000, 100_000));
    assert_eq!(answer["connections"].as_array().unwrap().len(), 0);
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_memory_that_makes_no_sense_is_refused() {
    let folder = folder("memory");
    let path = folder.join("client.pcap");
    fs::write(&path, pcap(&captures()[0])).unwrap();
    let refused = explain(&[text(&path), "--memory", "much"]);
    assert_eq!(refused.status.code(), Some(2));
    fs::remove_dir_all(&folder).unwrap();
}
