//! `hitless radar flows` over a capture.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Output};

use capture::{CaptureRecord, CaptureWriter};
use serde_json::Value;
use units::Timestamp;
use wire::ip::Ecn;
use wire::ipv4::{self, Ipv4Header, Station};
use wire::udp;

/// A folder that is gone after the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("hitless-flows-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A datagram of the nth flow.
fn datagram(flow: u16) -> Vec<u8> {
    let station = |last| Station { mac: [2, 0, 0, 0, 0, last], ip: [10, 0, 0, last] };
    let ip = Ipv4Header { from: station(1), to: station(2), protocol: ipv4::UDP, ecn: Ecn::NotCapable, payload: 8 };
    let mut frame = Vec::new();
    ip.emit(&mut frame);
    udp::UdpHeader { source: flow, destination: 9, checked: true }.emit(&ip, &mut frame);
    frame
}

/// A capture of datagrams, each with its time in milliseconds and its flow.
fn capture(folder: &Folder, datagrams: impl IntoIterator<Item = (u64, u16)>) -> PathBuf {
    let path = folder.0.join("some.pcapng");
    let mut writer = CaptureWriter::new(File::create(&path).unwrap()).unwrap();
    for (ms, flow) in datagrams {
        let bytes = &datagram(flow)[..];
        let at = Timestamp(1_700_000_000_000_000_000 + ms * 1_000_000);
        let record = CaptureRecord { at, len: bytes.len() as u32, bytes, link_number: 1, link: None };
        writer.write(&record).unwrap();
    }
    path
}

fn flows(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hitless")).args(["radar", "flows"]).args(args).output().unwrap()
}

#[test]
fn every_slot_has_its_flows_and_their_packets() {
    let folder = Folder::new("slots");
    let path = capture(&folder, [(0, 1), (3, 1), (9, 2), (10, 2), (35, 1)]);
    let csv = folder.0.join("flows.csv");
    let told = flows(&[path.to_str().unwrap(), "--json", "--csv", csv.to_str().unwrap()]);
    assert!(told.status.success(), "{told:?}");
    let lines: Vec<Value> =
        str::from_utf8(&told.stdout).unwrap().lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let packets: Vec<Vec<(u64, u64)>> = lines
        .iter()
        .map(|line| {
            let flows = line["flows"].as_array().unwrap().iter();
            flows.map(|flow| (flow["src_port"].as_u64().unwrap(), flow["packets"].as_u64().unwrap())).collect()
        })
        .collect();
    assert_eq!(packets, [vec![(1, 2), (2, 1)], vec![(2, 1)], vec![(1, 1)]]);
    assert!(lines.iter().all(|line| line["complete"] == true && line["unnamed"] == 0));
    let rows = fs::read_to_string(csv).unwrap();
    assert_eq!(rows.lines().count(), 5);
    assert!(rows.contains("1700000000000000000,10.0.0.1,10.0.0.2,17,1,9,2"), "{rows}");
}

#[test]
fn more_flows_than_expected_are_told_as_a_number() {
    let folder = Folder::new("many");
    let path = capture(&folder, (0..2_000).map(|flow| (0, flow)));
    let told = flows(&[path.to_str().unwrap(), "--flows", "100"]);
    let said = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(told.status.success() && said.contains("more flows than --flows 100"), "{said}");
    let enough = flows(&[path.to_str().unwrap(), "--flows", "2000"]);
    let shown = String::from_utf8_lossy(&enough.stdout).into_owned();
    assert!(shown.contains("2,000 packets of 2,000 flows in 1 slots"), "{shown}");
}

#[test]
fn what_is_no_capture_is_refused_with_its_name() {
    let folder = Folder::new("none");
    let path = folder.0.join("notes.txt");
    fs::write(&path, "not a capture, but some text").unwrap();
    for (args, expected) in [
        (vec![path.to_str().unwrap()], "notes.txt: no capture"),
        (vec!["/nowhere/some.pcap"], "some.pcap: No such file"),
        (vec![], "either a capture or --interface"),
        (vec!["--interface", "none0"], "none0"),
        (vec![path.to_str().unwrap(), "--slot", "0s"], "--slot"),
    ] {
        let told = flows(&args);
        let said = String::from_utf8_lossy(&told.stderr).into_owned();
        assert_eq!(told.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(expected), "{args:?}: {said}");
    }
}
