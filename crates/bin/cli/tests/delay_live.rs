//! `hitless radar delay` on captures at both ends of a `hitless wire` whose directions have delays of their own.
//!
//! Both captures are stamped by one clock, so the truth is known to the nanosecond: what one stamp is after the other. Then one
//! capture is given a clock that is 5 s and 40 ppm away, and every interval must hold the same truth.

#[allow(dead_code, reason = "the lab is shared: meters and their collector are for `radar_live`")]
mod radar_lab;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::time::Duration;

use capture::{CaptureReader, CaptureRecord, CaptureWriter};
use linux::net::Namespace;
use radar_lab::processes::{Running, Said, finished, hitless};
use radar_lab::{Lab, address};
use serde_json::Value;
use units::StopFlag;
use units::Timestamp;

const REQUESTS: u32 = 150;
const FORTH: u64 = 3_000_000;
const BACK: u64 = 8_000_000;

/// Requests and their answers, one after the other.
fn talk(lab: &Lab) {
    let bound = |end: usize| {
        let bind = || UdpSocket::bind((address(end), 7_007)).unwrap();
        lab.host(end).with(bind).unwrap()
    };
    let [client, server] = [bound(0), bound(1)];
    for socket in [&client, &server] {
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut bytes = [0; 64];
            for _ in 0..REQUESTS {
                let (len, from) = server.recv_from(&mut bytes).unwrap();
                server.send_to(&bytes[..len], from).unwrap();
            }
        });
        let mut bytes = [0; 64];
        for number in 0..REQUESTS {
            client.send_to(&number.to_be_bytes(), (address(1), 7_007)).unwrap();
            client.recv_from(&mut bytes).unwrap();
        }
    });
}

/// Joins the packets that left by an end and those that arrived there in one file, timed by another clock.
fn joined(lab: &Lab, end: usize, name: &str, clock: impl Fn(u64) -> u64) -> PathBuf {
    let mut frames: Vec<(u64, Vec<u8>)> = Vec::new();
    for way in ["out", "came"] {
        let mut reader = CaptureReader::new(File::open(lab.captured(end, way)).unwrap()).unwrap();
        while let Some(record) = reader.next().unwrap() {
            frames.push((record.at.0, record.bytes.to_vec()));
        }
    }
    frames.sort();
    let path = lab.folder.join(name);
    let mut writer = CaptureWriter::new(File::create(&path).unwrap()).unwrap();
    for (at, bytes) in &frames {
        let (at, len) = (Timestamp(clock(*at)), bytes.len() as u32);
        writer.write(&CaptureRecord { at, len, bytes, link_number: 1, link: None }).unwrap();
    }
    path
}

/// A packet: when UP saw it, its direction, both stamps, and both ends of its interval.
struct Row {
    up: u64,
    down: u64,
    direction: String,
    low: u64,
    high: u64,
}

fn measured(lab: &Lab, namespace: &Namespace, up: &Path, down: &Path) -> (Value, Vec<Row>) {
    let csv = lab.folder.join("delays.csv");
    let [up, down, csv_name] = [up, down, &csv].map(|path| path.to_str().unwrap());
    let html = lab.folder.join("delays.html");
    let args = ["--json", "radar", "delay", up, down, "--csv", csv_name, "--html", html.to_str().unwrap()];
    let json = finished(hitless(namespace, &args));
    assert!(fs::read_to_string(&html).unwrap().contains("One-way delay"));
    let rows = fs::read_to_string(&csv).unwrap();
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let number = |nth: usize| cells[nth].parse().unwrap();
        Row { up: number(0), down: number(1), direction: cells[2].to_owned(), low: number(4), high: number(5) }
    };
    (serde_json::from_str(&json).unwrap(), rows.lines().skip(1).map(row).collect())
}

#[test]
fn every_interval_holds_the_truth_and_clocks_far_apart_change_nothing() {
    let Some(lab) = Lab::new(false) else { return };
    let (stop, said) = (StopFlag::new(), Said::default());
    std::thread::scope(|scope| {
        let wire = ["--json", "wire", "x0", "x1", "--delay", "3ms", "--reverse-delay", "8ms"];
        let wire = Running::start(scope, hitless(&lab.middle, &wire), &said);
        said.wait_for(&["a wire between x0 and x1"]);
        let captures = [0, 1].map(|end| lab.capture(scope, end, &stop));
        std::thread::sleep(Duration::from_millis(200));
        talk(&lab);
        std::thread::sleep(Duration::from_millis(100));
        stop.stop();
        assert_eq!(captures.map(|capture| capture.join().unwrap()), [0, 0], "captures that are whole");
        wire.end();
    });
    let up = joined(&lab, 0, "up.pcapng", |at| at);
    let down = joined(&lab, 1, "down.pcapng", |at| at);
    let (json, rows) = measured(&lab, &lab.ends[0], &up, &down);
    assert_eq!(json["packets"].as_u64(), Some(u64::from(2 * REQUESTS)), "{json}");
    assert_eq!(
        json["offset_ns"].as_array().map(|ends| ends[0].as_i64() <= Some(0) && Some(0) <= ends[1].as_i64()),
        Some(true)
    );
    let mut truths: BTreeMap<(u64, String), u64> = BTreeMap::new();
    for (direction, delay) in [("up-to-down", FORTH), ("down-to-up", BACK)] {
        let mut of_direction: Vec<u64> = Vec::new();
        for row in rows.iter().filter(|row| row.direction == direction) {
            let truth = if direction == "up-to-down" { row.down - row.up } else { row.up - row.down };
            assert!(row.low <= truth && truth <= row.high, "{} {truth} {}", row.low, row.high);
            truths.insert((row.up, row.direction.clone()), truth);
            of_direction.push(truth);
        }
        of_direction.sort_unstable();
        // The wire reads its clock before it takes frames in, so what it was held up in between shortens a delay.
        let median = of_direction[of_direction.len() / 2];
        assert!((delay - delay / 10..4 * delay).contains(&median), "{direction}: {median}");
    }
    let first = rows.iter().map(|row| row.down).min().unwrap();
    let away = joined(&lab, 1, "away.pcapng", |at| at + 5_000_000_000 + (at.max(first) - first) / 25_000);
    let (moved, rows) = measured(&lab, &lab.ends[0], &up, &away);
    assert_eq!((&moved["packets"], &moved["directions"][0]["n"]), (&json["packets"], &json["directions"][0]["n"]));
    for row in &rows {
        let truth = truths[&(row.up, row.direction.clone())];
        assert!(row.low <= truth && truth <= row.high, "{} {truth} {}", row.low, row.high);
    }
    let drift = moved["drift_ppm"].as_array().unwrap();
    assert!(drift[0].as_f64() <= Some(40.0) && Some(40.0) <= drift[1].as_f64(), "{drift:?}");
    let (low, high) = (moved["offset_ns"][0].as_i64().unwrap(), moved["offset_ns"][1].as_i64().unwrap());
    assert!(low <= 5_000_400_000 && 5_000_000_000 <= high, "{low} {high}");
}
