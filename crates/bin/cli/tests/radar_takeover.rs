//! Collectors that share segments out by way of Redis: one is killed, one joins, one stands still and comes back, while every
//! segment loses a packet in every batch. Who lost what is known, since the test makes the reports.

#![expect(clippy::disallowed_methods, reason = "collectors and meters beside the test, in real time")]
#![expect(clippy::print_stderr, reason = "figures are for people")]

#[path = "../../../base/bus/tests/redis_server/mod.rs"]
mod redis_server;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use linux::clock::time_of_day;
use meter::digests::{CollectorAddress, ReportQueue, report_queue};
use radar::digest::{Digest, DigestShape};
use radar::packet::{Flow, Packet, TcpFields};
use radar::segment::{MeterReport, ReportFacts};
use radar::signature::{Fields, Signature};
use redis_server::{Keeps, RedisServer};
use serde_json::Value;
use units::StopFlag;

const SEGMENTS: u16 = 12;
const LENGTH: u64 = 10_000_000;
/// Runs until one is not disturbed by a busy machine.
const TRIES: u32 = 4;

struct Collector {
    name: &'static str,
    child: Child,
    losses: Arc<Mutex<Vec<Loss>>>,
}

/// A line of a collector: segment and batch, which the packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Loss {
    segment: u16,
    batch: u64,
}

impl Collector {
    fn start(url: &str, name: &'static str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hitless"));
        command.args(["--json", "radar", "collect", "--from", url, "--listen", "127.0.0.1:0", "--name", name]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        assert!(line.starts_with("waiting for meters at "), "{line}");
        thread::spawn(move || said.lines().for_each(drop));
        let (out, losses) = (BufReader::new(child.stdout.take().unwrap()), Arc::new(Mutex::new(Vec::new())));
        let found = Arc::clone(&losses);
        thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let line: Value = serde_json::from_str(&line).unwrap();
                if line["kind"] == "loss" {
                    let [segment, low, high] =
                        ["src_port", "tcp_seq", "dst_port"].map(|key| line[key].as_u64().unwrap());
                    assert_eq!(line["times"], 1);
                    found.lock().unwrap().push(Loss { segment: segment as u16, batch: high << 32 | low });
                }
            }
        });
        Self { name, child, losses }
    }

    fn signal(&self, signal: &str) {
        assert!(Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap().success());
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn name(segment: u16) -> String {
    format!("cable{segment}")
}

/// A packet that says in which batch it was sent; the lost one, or one that arrives.
fn packet(segment: u16, batch: u64, is_lost: bool) -> Packet {
    let [src, dst] = ["10.0.0.1", "10.0.0.2"].map(|address| address.parse().unwrap());
    let flow = Flow { src, dst, protocol: 6, src_port: segment, dst_port: (batch >> 32) as u16 };
    let tcp = Some(TcpFields { seq: batch as u32, len: 900, syn: false });
    Packet { flow, ip_id: Some(u16::from(is_lost)), fragment: 0, tcp, ttl: 64, content: 0 }
}

fn report(segment: u16, end: usize, batch: u64) -> MeterReport {
    let digest = |packets: &[bool]| {
        let mut digest = Digest::new(DigestShape::new(96, 1, Fields::ALL).foldable());
        packets.iter().for_each(|is_lost| {
            digest.insert(&Signature::new(&packet(segment, batch, *is_lost), Fields::ALL));
        });
        digest
    };
    let (out, came) = if end == 0 { (digest(&[true, false]), digest(&[])) } else { (digest(&[]), digest(&[false])) };
    MeterReport {
        segment: name(segment),
        end: ["a", "b"][end].to_owned(),
        life: u64::from(segment) * 2 + end as u64 + 1,
        batch,
        length: LENGTH,
        missed: 0,
        out,
        out_number: None,
        came,
        came_number: None,
        facts: ReportFacts::default(),
    }
}

fn batch() -> u64 {
    time_of_day().as_nanos() as u64 / LENGTH
}

/// Both ends of all segments, in real time. Returns the first and the last batch, and the most that one was late.
fn meters(place: &CollectorAddress, stop: &StopFlag) -> (u64, u64, u64) {
    thread::scope(|scope| {
        let mut queues: Vec<(u16, usize, ReportQueue)> = Vec::new();
        for segment in 0..SEGMENTS {
            for end in 0..2 {
                let (queue, sender) = report_queue(place.clone(), u64::from(segment) * 2 + end as u64 + 1, None);
                queues.push((segment, end, queue));
                scope.spawn(move || sender.run(&|_| ()));
            }
        }
        let first = batch();
        let (mut next, mut late) = (first, 0);
        while !stop.is_stopped() {
            while next < batch() {
                late = late.max(batch() - next);
                for (segment, end, queue) in &mut queues {
                    queue.put_report(&report(*segment, *end, next));
                }
                next += 1;
            }
            thread::sleep(Duration::from_millis(1));
        }
        (first, next, late)
    })
}

/// Losses that were named, and the times of all changes.
struct Story {
    named: Vec<(&'static str, Loss)>,
    first: u64,
    last: u64,
    late: u64,
    killed: u64,
    joined: u64,
    frozen: u64,
    thawed: u64,
}

fn wait(seconds: f64) -> u64 {
    thread::sleep(Duration::from_secs_f64(seconds));
    batch()
}

fn run(server: &RedisServer) -> Story {
    let url = format!("{}?prefix=lab", server.url());
    let place: CollectorAddress = url.parse().unwrap();
    let stop = StopFlag::new();
    let mut collectors: Vec<Collector> = ["north", "south", "east"].map(|name| Collector::start(&url, name)).into();
    thread::scope(|scope| {
        let metering = scope.spawn(|| meters(&place, &stop));
        let killed = wait(4.0);
        collectors[0].signal("-KILL");
        let joined = wait(3.0);
        collectors.push(Collector::start(&url, "west"));
        let frozen = wait(5.0);
        collectors[1].signal("-STOP");
        let thawed = wait(4.0);
        collectors[1].signal("-CONT");
        wait(5.0);
        stop.stop();
        let (first, last, late) = metering.join().unwrap();
        thread::sleep(Duration::from_millis(500));
        let mut named = Vec::new();
        for collector in &collectors {
            named.extend(collector.losses.lock().unwrap().iter().map(|loss| (collector.name, *loss)));
        }
        Story { named, first, last, late, killed, joined, frozen, thawed }
    })
}

/// The most batches in a row of one segment that nobody named, of those in a range.
fn gap(named: &BTreeMap<Loss, u32>, range: std::ops::Range<u64>) -> u64 {
    let of_segment = |segment: u16| {
        let (mut run, mut most) = (0, 0);
        for batch in range.clone() {
            run = if named.contains_key(&Loss { segment, batch }) { 0 } else { run + 1 };
            most = most.max(run);
        }
        most
    };
    (0..SEGMENTS).map(of_segment).max().unwrap()
}

#[test]
fn a_killed_a_joining_and_a_frozen_collector_are_followed_within_two_seconds() {
    let mut disturbed = Vec::new();
    for _ in 0..TRIES {
        let Some(server) = RedisServer::start(Keeps::Nothing) else { return };
        let story = run(&server);
        let mut counts: BTreeMap<Loss, u32> = BTreeMap::new();
        story.named.iter().for_each(|(_, loss)| *counts.entry(*loss).or_default() += 1);
        let twice: Vec<_> = counts.iter().filter(|(_, count)| **count > 1).collect();
        let of_twice: Vec<_> =
            story.named.iter().filter(|(_, loss)| twice.iter().any(|(other, _)| *other == loss)).collect();
        assert!(twice.is_empty(), "{} named twice: {:?}", twice.len(), &of_twice[..of_twice.len().min(8)]);
        let is_true = |loss: &Loss| loss.segment < SEGMENTS && (story.first..story.last).contains(&loss.batch);
        assert!(counts.keys().all(is_true), "none is invented");
        let Story { first, last, killed, joined, frozen, thawed, .. } = story;
        // A change is taken over within two seconds; in between every loss is named.
        let gaps = [
            ("at rest", gap(&counts, first + 200..killed - 20)),
            ("killed", gap(&counts, killed - 20..killed + 200)),
            ("after that", gap(&counts, killed + 200..joined)),
            ("joined", gap(&counts, joined..frozen - 20)),
            ("frozen", gap(&counts, frozen - 20..frozen + 220)),
            ("meanwhile", gap(&counts, frozen + 220..thawed)),
            ("thawed", gap(&counts, thawed..last - 50)),
        ];
        let ms: Vec<String> = gaps.iter().map(|(what, batches)| format!("{what} {} ms", batches * 10)).collect();
        eprintln!("{} losses named once; not named in a row, at most: {}", counts.len(), ms.join(", "));
        let most = [0, 30, 0, 0, 200, 0, 0];
        if gaps.iter().zip(most).all(|((_, batches), most)| *batches <= most) {
            return;
        }
        eprintln!("once more: meters were up to {} batches late", story.late);
        disturbed.push(ms.join(", "));
    }
    panic!("none of {TRIES} runs kept to its times: {disturbed:#?}");
}

#[test]
fn what_cannot_be_shared_out_is_refused_with_what_to_do() {
    let refused = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hitless"));
        let output = command.args(["radar"]).args(arguments).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let nowhere = "redis://127.0.0.1:1";
    for (arguments, code, why) in [
        (&["collect", "--from", nowhere][..], 2, "--listen"),
        (&["collect", "--listen", "0.0.0.0:0", "--from", nowhere], 2, "the address at which meters reach this host"),
        (&["collect", "--listen", "0", "--name", "north"], 2, "--from"),
        (&["collect", "--listen", "0", "--from", "10.0.0.1:6379"], 2, "expected redis://HOST"),
        (&["collect", "--listen", "0", "--from", nowhere, "--name", "a\u{1b}b"], 2, "without spaces"),
        (&["collect", "--listen", "0", "--from", nowhere], 1, "connection refused: is Redis running there?"),
        (&["collectors", "--from", nowhere], 1, "connection refused: is Redis running there?"),
        (&["collectors", "--from", nowhere, "--segment", "a\u{1b}b"], 2, "--segment"),
        (&["collectors", "--from", "http://x"], 2, "--from"),
    ] {
        let (found, said) = refused(arguments);
        assert!(found == Some(code) && said.contains(why), "{arguments:?}: {found:?} {said}");
    }
}

#[test]
fn collectors_and_segments_are_listed_and_two_of_one_name_are_refused() {
    let Some(server) = RedisServer::start(Keeps::Nothing) else { return };
    let url = server.url();
    let list = |more: &[&str]| -> Value {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hitless"));
        let output = command.args(["--json", "radar", "collectors", "--from", &url]).args(more).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    assert_eq!(list(&[]), serde_json::json!({"collectors": [], "segments": []}));
    let _running = ["north", "south"].map(|name| Collector::start(&url, name));
    thread::sleep(Duration::from_secs(2));
    let both = list(&["--segment", "cable7"]);
    let row = &both["segments"][0];
    let names = [row["collector"].as_str().unwrap(), row["heirs"][0].as_str().unwrap()];
    assert!(names == ["north", "south"] || names == ["south", "north"], "{both}");
    let takes = |row: &Value| row["segments"] == u64::from(row["name"] == names[0]);
    assert!(both["collectors"].as_array().unwrap().iter().all(takes), "{both}");
    let mut again = Command::new(env!("CARGO_BIN_EXE_hitless"));
    let again = again.args(["radar", "collect", "--from", &url, "--listen", "127.0.0.1:0", "--name", "north"]);
    let again = again.output().unwrap();
    let said = String::from_utf8_lossy(&again.stderr);
    assert!(again.status.code() == Some(2) && said.contains("announces itself as north already"), "{said}");
}
