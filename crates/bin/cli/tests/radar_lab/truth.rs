//! Comparison of the wire's log with the output of the tools.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use capture::CaptureReader;
use radar::packet::Packet;
use serde_json::Value;

use super::address;
use super::processes::Line;

/// Packets by name, as far as a tool knows it, with the times at which packets of that name were lost.
pub type Named = BTreeMap<String, Vec<Duration>>;

/// Addresses that a tool does not know of packets that leave by the left, and by the right.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unknown {
    pub source: bool,
    pub destination: bool,
}

fn name(flow: [Option<String>; 4], protocol: u64, seq: Option<u64>, ip_id: Option<u64>) -> String {
    format!("{flow:?} {protocol} seq {seq:?} id {ip_id:?}")
}

/// Packets that the wire dropped, without frames that are no IP.
pub fn dropped(log: &Path, unknown: [Unknown; 2]) -> Named {
    let mut named = Named::new();
    let mut reader = CaptureReader::new(File::open(log).unwrap()).unwrap();
    while let Some(record) = reader.next().unwrap() {
        let at = Duration::from_nanos(record.at.0);
        if let Some(packet) = meter::packet(record.bytes) {
            let from_right = packet.flow.src == IpAddr::V4(address(1));
            named.entry(of_packet(&packet, unknown[usize::from(from_right)])).or_default().push(at);
        }
    }
    named
}

fn of_packet(packet: &Packet, unknown: Unknown) -> String {
    let flow = packet.flow;
    let source = |text: String| (!unknown.source).then_some(text);
    let destination = |text: String| (!unknown.destination).then_some(text);
    let ends = [
        source(flow.src.to_string()),
        source(flow.src_port.to_string()),
        destination(flow.dst.to_string()),
        destination(flow.dst_port.to_string()),
    ];
    name(ends, flow.protocol.into(), packet.tcp.map(|tcp| tcp.seq.into()), packet.ip_id.map(u64::from))
}

fn of_json(loss: &Value) -> String {
    let text = |field: &str| match &loss[field] {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    let ends = ["src", "src_port", "dst", "dst_port"].map(text);
    name(ends, loss["proto"].as_u64().unwrap(), loss["tcp_seq"].as_u64(), loss["ip_id"].as_u64())
}

/// The losses that a collector has reported, each with the time of the report.
pub fn told(lines: &[Line]) -> Named {
    let mut named = Named::new();
    for line in lines.iter().filter(|line| line.json["kind"] == "loss") {
        let times = line.json["times"].as_u64().unwrap() as usize;
        named.entry(of_json(&line.json)).or_default().extend(std::iter::repeat_n(line.at, times));
    }
    named
}

/// Adds the losses that `radar losses` has found.
pub fn found(answer: &Value, named: &mut Named) {
    for loss in answer["lost"].as_array().unwrap() {
        let at = Duration::from_nanos(loss["time"].as_u64().unwrap());
        named.entry(of_json(loss)).or_default().push(at);
    }
}

/// Both must have the same, and as often.
pub fn assert_same(what: &str, truth: &Named, found: &Named) {
    let count = |named: &Named, name: &String| named.get(name).map_or(0, Vec::len);
    let wrong: Vec<String> = truth
        .keys()
        .chain(found.keys())
        .filter(|name| count(truth, name) != count(found, name))
        .map(|name| format!("{name}: dropped {}, named {}", count(truth, name), count(found, name)))
        .collect();
    assert!(wrong.is_empty(), "{what}: {} of {}\n{}", wrong.len(), truth.len(), wrong.join("\n"));
}

/// The median time from the drop of a packet on the wire to the report of it.
pub fn median_delay(truth: &Named, told: &Named) -> Duration {
    let pairs = truth.iter().flat_map(|(name, lost)| lost.iter().zip(told.get(name).into_iter().flatten()));
    let mut delays: Vec<Duration> = pairs.map(|(lost, told)| told.saturating_sub(*lost)).collect();
    delays.sort_unstable();
    delays.get(delays.len() / 2).copied().unwrap_or_default()
}
