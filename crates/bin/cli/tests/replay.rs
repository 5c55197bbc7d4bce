//! Connections that a simulation recorded, replayed as a person does it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

const INCAST: &str = r#"
    topology = { kind = "single-switch", hosts = 5, rate = "10G", delay = "1us" }
    switch = { buffer = "60KB" }
    host = { latency = "5us", handshake = true }
    [run]
    seeds = [1, 2]
    [[traffic]]
    transport = "cubic"
    work = "incast"
    to = "h0"
    size = 40000
    count = 3
    every = "20ms"
    fan_in = 4
    from = "h1..h4"
    rto_min = "5ms"
    [measure]
    pcap = [["sw0", "h1"]]
"#;

/// A folder of its own for each test, gone when it ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("hitless-replay-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn hitless(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hitless")).args(args).output().unwrap()
}

fn recorded(name: &str) -> Scratch {
    recorded_at(name, "times")
}

fn recorded_at(name: &str, level: &str) -> Scratch {
    let scratch = Scratch::new(name);
    fs::write(scratch.path("it.toml"), INCAST).unwrap();
    let (file, logs, out) = (scratch.path("it.toml"), scratch.path("logs"), scratch.path("out"));
    let output = hitless(&["sim", "run", &file, "--record", &logs, "--record-level", level, "--out", &out]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    scratch
}

fn logs(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { logs(&path, found) } else { found.push(path) }
    }
}

/// Time, length and bytes of every packet of a pcapng file, with the interface that it was seen at.
fn packets(path: &str) -> Vec<(u32, u64, u32, Vec<u8>)> {
    let bytes = fs::read(path).unwrap();
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let (mut at, mut found) = (0, Vec::new());
    while at < bytes.len() {
        if word(at) == 6 {
            let kept = word(at + 20) as usize;
            let time = u64::from(word(at + 12)) << 32 | u64::from(word(at + 16));
            found.push((word(at + 8), time, word(at + 24), bytes[at + 28..at + 28 + kept].to_vec()));
        }
        at += word(at + 4) as usize;
    }
    found
}

#[test]
fn every_connection_is_exact_and_the_capture_is_the_same() {
    let scratch = recorded("exact");
    let (all, written) = (scratch.path("logs/seed-1"), scratch.path("replayed.pcapng"));
    let output = hitless(&["replay", &all, "--write", &written, "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = report["connections"].as_array().unwrap();
    assert_eq!(rows.len(), 12);
    for row in rows {
        assert!(row["exact"] == true && row["first_difference"].is_null() && row["seed"] == 1 && row["point"] == 1);
        assert!(row["log_bytes"]["order"].as_u64().unwrap() > 0 && row["log_bytes"]["times"].as_u64().unwrap() > 0);
    }
    let (bytes, packets_sent) = (report["log_bytes"].as_u64().unwrap(), report["packets"].as_u64().unwrap());
    assert!((report["bytes_per_packet"].as_f64().unwrap() - bytes as f64 / packets_sent as f64).abs() < 1e-9);
    let at_port = |packet: &&(u32, u64, u32, Vec<u8>), interface| packet.0 == interface;
    let captured = packets(&scratch.path("out/seed-1/sw0-h1.pcapng"));
    let captured: Vec<_> = captured.iter().filter(|packet| at_port(packet, 1)).map(|(_, a, b, c)| (a, b, c)).collect();
    let replayed = packets(&written);
    let replayed: Vec<_> = replayed.iter().filter(|packet| at_port(packet, 1)).map(|(_, a, b, c)| (a, b, c)).collect();
    assert!(captured.len() > 50, "{}", captured.len());
    assert_eq!(captured, replayed);
}

/// A packet without its checksum and the two values of its timestamp option, which hang on the exact time.
fn without_timestamps(packet: &[u8]) -> Vec<u8> {
    const TCP: usize = 14 + 20;
    let mut packet = packet.to_vec();
    packet[TCP + 16..TCP + 18].fill(0);
    let option = packet[TCP + 20..].windows(2).position(|bytes| bytes == [8, 10]);
    if let Some(at) = option {
        packet[TCP + 20 + at + 2..TCP + 20 + at + 10].fill(0);
    }
    packet
}

#[test]
fn at_level_decisions_the_capture_is_the_same_within_five_microseconds() {
    let scratch = recorded_at("decisions", "decisions");
    let (all, written) = (scratch.path("logs/seed-1"), scratch.path("replayed.pcapng"));
    let output = hitless(&["replay", &all, "--write", &written, "--trace", "decisions", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = report["connections"].as_array().unwrap();
    assert!(rows.len() == 12 && rows.iter().all(|row| row["exact"] == true && row["level"] == "decisions"));
    let traced = |row: &Value| !row["trace"].as_array().unwrap().is_empty();
    assert!(rows.iter().any(|row| row["log_bytes"]["decisions"].as_u64().unwrap() > 0 && traced(row)));
    let at_port = |path: &str| -> Vec<_> { packets(path).into_iter().filter(|packet| packet.0 == 1).collect() };
    let (captured, replayed) = (at_port(&scratch.path("out/seed-1/sw0-h1.pcapng")), at_port(&written));
    assert!(captured.len() > 50 && captured.len() == replayed.len(), "{} {}", captured.len(), replayed.len());
    // Packets of different connections that left within the error may be in another order.
    let by_connection = |packets: Vec<(u32, u64, u32, Vec<u8>)>| {
        let mut packets: Vec<_> =
            packets.into_iter().map(|(_, at, _, bytes)| (bytes[34..38].to_vec(), at, bytes)).collect();
        packets.sort_by_key(|(ports, ..)| ports.clone());
        packets
    };
    for (captured, replayed) in by_connection(captured).into_iter().zip(by_connection(replayed)) {
        assert_eq!(without_timestamps(&captured.2), without_timestamps(&replayed.2));
        assert!(captured.1.abs_diff(replayed.1) <= 5_000, "{} {}", captured.1, replayed.1);
    }
}

#[test]
fn bbr_is_refused_at_level_decisions_and_recorded_at_level_times() {
    let scratch = recorded("bbr");
    let (file, none) = (scratch.path("it.toml"), scratch.path("none"));
    let run = |level| {
        let bbr = ["--set", "traffic.transport=bbr"];
        hitless(&[&["sim", "run", &file, "--record", &none, "--record-level", level], &bbr[..]].concat())
    };
    let output = run("decisions");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && said.contains("bbr") && said.contains("--record-level times"), "{said}");
    assert!(!Path::new(&none).exists());
    assert!(run("times").status.success());
}

#[test]
fn a_trace_shows_what_was_not_looked_at() {
    let scratch = recorded("trace");
    let all = scratch.path("logs/seed-1");
    let output = hitless(&["replay", &all, "--flow", "0", "--trace", "notes,window,rtt,timers", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let trace = report["connections"][0]["trace"].as_array().unwrap();
    for kind in ["window", "rtt", "timers"] {
        assert!(trace.iter().any(|line| line["kind"] == kind), "{kind}");
    }
    assert_eq!(hitless(&["replay", &all, "--flow", "99"]).status.code(), Some(2));
    assert_eq!(hitless(&["replay", &all, "--trace", "cwnd"]).status.code(), Some(2));
}

#[test]
fn damaged_logs_are_refused_with_their_place_and_nothing_is_written() {
    let scratch = recorded("damaged");
    let mut found = Vec::new();
    logs(Path::new(&scratch.path("logs/seed-1")), &mut found);
    let (log, written) = (found[0].display().to_string(), scratch.path("never.pcapng"));
    let whole = fs::read(&log).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 4;
    let other = fs::read(&found[1]).unwrap();
    let mixed = [&whole[..whole.len() / 2], &other[other.len() / 2..]].concat();
    for bad in [whole[..whole.len() - 1].to_vec(), whole[..20].to_vec(), Vec::new(), flipped, mixed] {
        fs::write(&log, bad).unwrap();
        for path in [&log, &scratch.path("logs/seed-1")] {
            let output = hitless(&["replay", path, "--write", &written]);
            assert_eq!(output.status.code(), Some(2));
            let said = String::from_utf8(output.stderr).unwrap();
            assert!(said.contains(&format!("{log}: at byte ")) && output.stdout.is_empty(), "{said}");
        }
    }
    assert!(!Path::new(&written).exists());
    // The log of one connection under the name of another's: two of the same.
    fs::write(&log, other).unwrap();
    assert_eq!(hitless(&["replay", &scratch.path("logs/seed-1")]).status.code(), Some(2));
}

#[test]
fn a_folder_that_is_not_empty_and_traffic_without_tcp_are_refused() {
    let scratch = recorded("refused");
    let (file, logs) = (scratch.path("it.toml"), scratch.path("logs"));
    assert_eq!(hitless(&["sim", "run", &file, "--record", &logs]).status.code(), Some(2));
    let none = scratch.path("none");
    let output = hitless(&["sim", "run", &file, "--record", &none, "--set", "traffic.transport=rdma"]);
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!Path::new(&none).exists());
    assert_eq!(hitless(&["replay", &scratch.path("out")]).status.code(), Some(2), "no log in it");
}

#[test]
fn trials_are_exact() {
    let output = hitless(&["replay", "--trials", "50", "--seed", "7", "--json"]);
    assert!(output.status.success());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["trials"], report["connections"].as_array().unwrap().len()), (&Value::from(50), 0));
    assert_eq!(report["recordings"]["times"], 50);
    assert!(report["recordings"]["decisions"].as_u64().unwrap() > 25, "{}", report["recordings"]);
}

fn queues(scratch: &Scratch, args: &[&str]) -> Output {
    let (logs, file) = (scratch.path("logs"), scratch.path("it.toml"));
    hitless(&[&["replay", "queues", &logs, "--scenario", &file], args].concat())
}

#[test]
fn queues_come_back_from_logs() {
    let scratch = recorded("queues");
    let output = queues(&scratch, &["--threshold", "1ns", "--no-tags", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let exact: Value = serde_json::from_slice(&output.stdout).unwrap();
    let output = queues(&scratch, &["--json"]);
    let sampled: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(sampled["threshold_ns"], 5_000.0);
    assert!(sampled["tags"] == true && exact["tags"] == false);
    for (run, seed) in [(0, 1), (1, 2)] {
        let (exact, sampled) = (&exact["runs"][run], &sampled["runs"][run]);
        assert!(exact["seed"] == seed && exact["point"] == 1 && exact["logs"] == 12 && exact["packets_missing"] == 0);
        assert!(exact["queues"]["held"].as_f64().unwrap() > 5.0, "{exact}");
        assert!(exact["queues"]["mean"].as_f64().unwrap() < 0.1, "packets at their times: {exact}");
        assert!(exact["drops"]["in_run"].as_u64().unwrap() > 20, "{exact}");
        assert!(sampled["queues"]["mean"].as_f64().unwrap() > exact["queues"]["mean"].as_f64().unwrap(), "{sampled}");
        assert_eq!(sampled["drops"]["false_drops"], 0, "{sampled}");
        let ports = sampled["ports"].as_array().unwrap();
        let views: u64 = ports.iter().map(|port| port["queues"]["views"].as_u64().unwrap()).sum();
        assert_eq!(views, sampled["queues"]["views"].as_u64().unwrap());
        assert!(
            ports.iter().any(|row| row["port"] == "sw0-h0" && row["drops"]["in_run"] == sampled["drops"]["in_run"])
        );
    }
    let text = String::from_utf8(queues(&scratch, &[]).stdout).unwrap();
    assert!(text.contains("point 1, seed 2: ") && text.contains("sw0-h0"), "{text}");
}

#[test]
fn a_queue_has_names_in_it() {
    let scratch = recorded("who");
    let output = queues(&scratch, &["--at", "45us", "--port", "sw0-h0", "--threshold", "1ns", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let at = &report["runs"][0]["at"];
    let flows = at["flows"].as_array().unwrap();
    assert!(at["port"] == "sw0-h0" && at["time_ns"] == 45_000.0 && !flows.is_empty(), "{at}");
    let sum: u64 = flows.iter().map(|flow| flow["run_bytes"].as_u64().unwrap()).sum();
    assert_eq!(sum, at["run_bytes"].as_u64().unwrap());
    assert!(flows.iter().all(|flow| flow["to"] == "h0" && flow["from"] != "h0"), "{at}");
    let near =
        |flow: &Value| flow["run_bytes"].as_u64().unwrap().abs_diff(flow["replay_bytes"].as_u64().unwrap()) <= 1_518;
    assert!(flows.iter().all(near), "{at}");
}

#[test]
fn queues_of_something_else_are_refused() {
    let scratch = recorded("refused");
    let refused = |output: Output, expected: &str| {
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(expected) && output.stdout.is_empty(), "{stderr}");
    };
    refused(queues(&scratch, &["--set", "switch.buffer=30KB"]), "expected the file, and what was --set");
    refused(queues(&scratch, &["--at", "1ms"]), "--port");
    refused(queues(&scratch, &["--at", "1ms", "--port", "sw0-h9"]), "--port sw0-h9: ");
    refused(queues(&scratch, &["--at", "1ms", "--port", "h0"]), "expected two nodes");
    refused(queues(&scratch, &["--at", "1ms", "--port", "h1-sw0"]), "expected a port of a switch");
    refused(queues(&scratch, &["--at", "900s", "--port", "sw0-h0"]), "expected a time within the run");
    refused(queues(&scratch, &["--threshold", "0ns"]), "1ns");
    let (out, file) = (scratch.path("out"), scratch.path("it.toml"));
    refused(hitless(&["replay", "queues", &out, "--scenario", &file]), "no log in it");
    refused(hitless(&["replay", "queues", &scratch.path("logs"), "--scenario", &scratch.path("no.toml")]), "no.toml");
    refused(hitless(&["replay", "queues", &scratch.path("logs")]), "--scenario");
}

#[test]
fn a_folder_with_some_of_the_logs_says_what_is_missing() {
    let scratch = recorded("some");
    let mut all = Vec::new();
    logs(Path::new(&scratch.path("logs/seed-2")), &mut all);
    all.sort();
    fs::remove_file(&all[3]).unwrap();
    let output = queues(&scratch, &["--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let run = &report["runs"][1];
    assert!(run["logs"] == 11 && run["connections"] == 12, "{run}");
    assert!(run["packets_missing"].as_u64().unwrap() > 20, "{run}");
    let text = String::from_utf8(queues(&scratch, &[]).stdout).unwrap();
    assert!(text.contains("packets of 1 connections without a log are missing in the replay"), "{text}");
}
