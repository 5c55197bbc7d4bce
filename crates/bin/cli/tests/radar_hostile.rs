//! `hitless radar collect` under a hundred thousand reports that nobody honest would send: what the process takes stays within
//! its budget, and two honest meters beside them have their losses named.

#![expect(clippy::disallowed_methods, reason = "readers and senders beside the test, in real time")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use bus::key::OrderKey;
use linux::clock::time_of_day;
use meter::digests::{CollectorAddress, report_queue};
use radar::digest::{Digest, DigestShape};
use radar::packet::{Flow, Packet, TcpFields};
use radar::signature::{Fields, Signature};
use serde_json::Value;
use units::StopFlag;

const LENGTH: u64 = 10_000_000;
const REPORTS: u64 = 100_000;
/// The least that can be asked for, in bytes; and what the program itself takes, with its threads.
const MEMORY: u64 = 64_000_000;
const PROGRAM: u64 = 40_000_000;
const CELLS: usize = 8_192;

struct Collector {
    child: Child,
    address: String,
}

impl Collector {
    fn start(more: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hitless"));
        command.args(["--json", "radar", "collect", "--listen", "127.0.0.1:0", "--patience", "3"]).args(more);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        let address = line.strip_prefix("waiting for meters at ").and_then(|rest| rest.split(';').next());
        let address = address.unwrap_or_else(|| panic!("{line}")).to_owned();
        // A thread has to read all further output, or the collector would block.
        thread::spawn(move || said.lines().for_each(drop));
        Self { child, address }
    }

    /// The most that it ever took, in bytes.
    fn peak(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1_024
    }

    fn place(&self) -> CollectorAddress {
        self.address.parse().unwrap()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn digest(cells: usize, packets: impl IntoIterator<Item = u32>, times: usize) -> Vec<u8> {
    let mut digest = Digest::new(DigestShape::new(cells, 1, Fields::ALL));
    for nth in packets {
        let [src, dst] = ["10.0.0.1", "10.0.0.2"].map(|address| address.parse().unwrap());
        let flow = Flow { src, dst, protocol: 6, src_port: nth as u16, dst_port: 80 };
        let tcp = Some(TcpFields { seq: nth * 1_000, len: 900, syn: false });
        let packet = Packet { flow, ip_id: Some(nth as u16), fragment: 0, tcp, ttl: 64, content: 0 };
        (0..times).for_each(|_| digest.insert(&Signature::new(&packet, Fields::ALL)));
    }
    digest.to_bytes()
}

/// A report of digests that are as they are sent already: to make a hundred thousand takes no time.
fn report(segment: &str, end: &str, life: u64, batch: u64, out: &[u8], came: &[u8]) -> Vec<u8> {
    let mut bytes = b"HLRR\x02".to_vec();
    for name in [segment, end] {
        bytes.push(name.len() as u8);
        bytes.extend(name.as_bytes());
    }
    for number in [life, batch, LENGTH, 0] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend([0xff; 8]);
    for digest in [out, came] {
        bytes.extend((digest.len() as u32).to_le_bytes());
        bytes.extend(digest);
    }
    bytes
}

fn batch() -> u64 {
    time_of_day().as_nanos() as u64 / LENGTH
}

/// Runs two ends, one of which loses a packet in each batch, until `stop` is set. Returns how many were sent.
fn honest(collector: &Collector, key: Option<OrderKey>, stop: &StopFlag) -> u64 {
    let [(mut a, post_a), (mut b, post_b)] =
        [0xa11ce, 0xb0b].map(|life| report_queue(collector.place(), life, key.clone()));
    let none = digest(90, [], 1);
    thread::scope(|scope| {
        scope.spawn(|| post_a.run(&|_| ()));
        scope.spawn(|| post_b.run(&|_| ()));
        let mut sent = 0;
        while !stop.is_stopped() {
            let (now, nth) = (batch(), 1_000 + sent as u32);
            a.put(report("honest", "a", 1, now, &digest(90, [nth], 1), &none));
            b.put(report("honest", "b", 2, now, &none, &none));
            sent += 1;
            while batch() == now {
                thread::sleep(Duration::from_millis(1));
            }
        }
        drop((a, b));
        sent
    })
}

/// Segments and ends without number, digests of few bytes and most cells, full ones, packets lost 127 times, batches far apart.
fn hostile(collector: &Collector) {
    let (empty, full) = (digest(CELLS, [], 1), digest(CELLS, 0..6_000, 1));
    let alike = digest(CELLS, [7], 127);
    thread::scope(|scope| {
        for attacker in 0..4_u64 {
            let (empty, full, alike) = (&empty, &full, &alike);
            scope.spawn(move || {
                // No two at once find more room than there is in the queue of a meter.
                let (mut outlet, sender) = report_queue(collector.place(), attacker, None);
                let sending = thread::spawn(move || sender.run(&|_| ()));
                for nth in 0..REPORTS / 4 {
                    let segment = format!("{attacker} {}", nth / 2 % 2_000);
                    let out = match nth % 61 {
                        0 => full,
                        1..8 => alike,
                        _ => empty,
                    };
                    let far = (nth % 5) * 900;
                    let bytes = report(&segment, ["a", "b"][nth as usize % 2], 1, batch() - 2_000 + far, out, empty);
                    while !outlet.put(bytes.clone()) {
                        thread::sleep(Duration::from_millis(1));
                    }
                }
                drop(outlet);
                sending.join().unwrap();
            });
        }
    });
}

fn interrupt(collector: &mut Collector) -> Vec<Value> {
    let id = collector.child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let out = BufReader::new(collector.child.stdout.take().unwrap());
    out.lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect()
}

#[test]
fn collector_under_a_hundred_thousand_hostile_reports() {
    let memory = format!("{MEMORY}B");
    let mut collector = Collector::start(&["--memory", &memory]);
    // Read as it comes: a pipe that nobody reads would stop the collector.
    let out = BufReader::new(collector.child.stdout.take().unwrap());
    let reading = thread::spawn(move || {
        let lines = out.lines().map_while(Result::ok).map(|line| serde_json::from_str::<Value>(&line).unwrap());
        let ours = |line: &Value| line["segment"] == "honest";
        lines.filter(ours).collect::<Vec<Value>>()
    });
    let stop = StopFlag::new();
    let sent = thread::scope(|scope| {
        let honest = scope.spawn(|| honest(&collector, None, &stop));
        thread::sleep(Duration::from_millis(300));
        hostile(&collector);
        thread::sleep(Duration::from_secs(1));
        stop.stop();
        honest.join().unwrap()
    });
    thread::sleep(Duration::from_secs(1));
    let peak = collector.peak();
    assert!(Command::new("kill").args(["-INT", &collector.child.id().to_string()]).status().unwrap().success());
    let lines = reading.join().unwrap();
    assert!(peak < MEMORY + PROGRAM, "it took {peak} bytes of {MEMORY}");
    let named = lines.iter().filter(|line| line["kind"] == "loss").count() as u64;
    let summary = lines.iter().find(|line| line["kind"] == "summary").expect("the honest segment is still there");
    // Batches that a busy machine did not report in time are not compared; in all others every loss is named.
    let skipped = summary["skipped"].as_u64().unwrap() + summary["unsure"].as_u64().unwrap();
    assert_eq!(summary["lost"], named);
    assert!(named + 5 * skipped + 20 >= sent && named > 0, "{named} named of {sent}, {skipped} not compared");
}

#[test]
fn with_a_key_only_meters_that_have_it_are_heard() {
    use std::os::unix::fs::PermissionsExt;
    let path = std::env::temp_dir().join(format!("hitless-radar-key-{}", std::process::id()));
    std::fs::write(&path, "000102030405060708090a0b0c0d0e0f").unwrap();
    let start = || {
        Command::new(env!("CARGO_BIN_EXE_hitless"))
            .args(["radar", "collect", "--listen", "0", "--key"])
            .arg(&path)
            .output()
    };
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let refused = start().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("chmod 600"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let mut collector = Collector::start(&["--key", path.to_str().unwrap()]);
    let stop = StopFlag::new();
    thread::scope(|scope| {
        let with = scope.spawn(|| honest(&collector, Some(OrderKey::read(&path).unwrap()), &stop));
        let (mut outlet, sender) = report_queue(collector.place(), 7, None);
        let none = digest(90, [], 1);
        outlet.put(report("forged", "a", 1, batch(), &none, &none));
        drop(outlet);
        let said = std::sync::Mutex::new(String::new());
        sender.run(&|line| said.lock().unwrap().push_str(line));
        assert!(said.lock().unwrap().contains("has a key and we have none"));
        thread::sleep(Duration::from_secs(1));
        stop.stop();
        with.join().unwrap();
    });
    let lines = interrupt(&mut collector);
    let segments: Vec<&Value> =
        lines.iter().filter(|line| line["kind"] == "summary").map(|line| &line["segment"]).collect();
    assert_eq!(segments, ["honest"]);
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_port_alone_listens_on_this_machine_only_and_too_little_memory_is_refused() {
    let collector = Collector::start(&[]);
    assert!(collector.address.starts_with("127.0.0.1:"));
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hitless"));
        command.args(["radar", "collect", "--seconds", "0.1"]).args(arguments);
        let ran = command.output().unwrap();
        (ran.status.code(), String::from_utf8_lossy(&ran.stderr).into_owned())
    };
    let (code, said) = run(&["--listen", "0"]);
    assert!(
        code == Some(1) && said.contains("no meter has reported") && said.contains("waiting for meters at 127.0.0.1:"),
        "{said}"
    );
    let (code, said) = run(&["--listen", "0.0.0.0:0"]);
    assert!(code == Some(1) && said.contains("waiting for meters at 0.0.0.0:"), "{said}");
    let (code, said) = run(&["--listen", "0", "--memory", "1MB"]);
    assert!(code == Some(2) && said.contains("--memory 1"), "{said}");
}
