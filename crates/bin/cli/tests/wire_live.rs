//! `hitless wire` between interfaces as the kernel makes them: hosts leave checksums and segmentation to the receiver.

mod cable_lab;

use std::fs::{self, File};
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use cable_lab::{Daemon, address, bring_up, outcome, plug, transfer, wait_for};
use linux::net::{InterfaceAddress, Namespace, Netlink, Qdisc};
use load::witness;
use units::StopFlag;

/// Two hosts, `w0` and `w1`, and between them a third with an end of each cable: `x0` and `x1`. Nothing joins these yet.
struct Hosts {
    ends: [Namespace; 2],
    middle: Namespace,
    folder: PathBuf,
}

impl Hosts {
    fn new(name: &str) -> Option<Self> {
        let middle = testkit::permitted(Namespace::new())?;
        let ends = [Namespace::new().unwrap(), Namespace::new().unwrap()];
        for (end, namespace) in ends.iter().enumerate() {
            let (inner, outer) = (["x0", "x1"][end], ["w0", "w1"][end]);
            middle.with(|| plug(inner, outer, namespace)).unwrap();
            namespace.with(|| bring_up(outer, Some(&InterfaceAddress::new(address(end), 24)))).unwrap();
            middle.with(|| bring_up(inner, None)).unwrap();
        }
        let folder = std::env::temp_dir().join(format!("hitless-wire-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Some(Self { ends, middle, folder })
    }

    fn wire(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hitless"));
        command.args(["wire", "x0", "x1"]).args(args).stdin(Stdio::null()).stdout(Stdio::piped());
        self.middle.prepare(&mut command).unwrap();
        command
    }

    /// A wire that is there: it says so once its sockets are open.
    fn start(&self, args: &[&str]) -> Daemon {
        let log = self.folder.join("said");
        let wire = Daemon(self.wire(args).stderr(File::create(&log).unwrap()).spawn().unwrap());
        let said = || fs::read_to_string(&log).unwrap();
        wait_for("the wire", || said().contains("Ctrl-C ends it"), said);
        wire
    }

    fn transfer_both_ways(&self, bytes: u64) {
        for from in 0..2 {
            let transferred = transfer(&self.ends[from], &self.ends[1 - from], address(1 - from), bytes);
            transferred.unwrap_or_else(|error| panic!("from {from}: {error}"));
        }
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn tcp_through_a_wire_between_plain_veths_arrives_whole() {
    let Some(hosts) = Hosts::new("plain") else { return };
    let _wire = hosts.start(&[]);
    hosts.transfer_both_ways(8_000_000);
}

#[test]
fn what_a_wire_loses_and_logs_are_frames_of_a_cable_and_its_counts_add_up() {
    let Some(hosts) = Hosts::new("counted") else { return };
    let (log, counters) = (hosts.folder.join("lost.pcapng"), hosts.folder.join("counters"));
    let paths = [&log, &counters].map(|path| path.to_str().unwrap());
    let args = ["--loss", "0.01", "--log", paths[0], "--counters", paths[1], "--json"];
    let mut wire = hosts.start(&args);
    hosts.transfer_both_ways(2_000_000);
    let interrupt = format!("kill -INT {}", wire.0.id());
    assert!(Command::new("sh").args(["-c", &interrupt]).status().unwrap().success());
    let outcome: serde_json::Value = serde_json::from_reader(wire.0.stdout.take().unwrap()).unwrap();
    for lane in ["forward", "reverse"] {
        let count = |name: &str| outcome[lane][name].as_u64().unwrap();
        assert_eq!(count("offered"), count("dropped") + count("passed") + count("overflowed"), "{outcome}");
        assert_eq!(count("too_long"), 0, "{outcome}");
        // Segments, not super-frames: 2 MB are some 1,400 of them.
        assert!(count("offered") > 1_000, "{outcome}");
    }
    let lost = outcome["forward"]["dropped"].as_u64().unwrap() + outcome["reverse"]["dropped"].as_u64().unwrap();
    let lengths = captured(&fs::read(&log).unwrap());
    assert!(lengths.iter().all(|len| *len <= 1_514), "{lengths:?}");
    assert_eq!(lengths.len() as u64, lost);
    assert!(counters.join("x1/statistics/rx_crc_errors").exists());
}

/// Lengths of the packets of a capture: pcapng's enhanced packet blocks, in this machine's byte order.
fn captured(mut file: &[u8]) -> Vec<u32> {
    let word = |bytes: &[u8], at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
    let mut lengths = Vec::new();
    while !file.is_empty() {
        if word(file, 0) == 6 {
            lengths.push(word(file, 20));
        }
        file = &file[word(file, 4) as usize..];
    }
    lengths
}

#[test]
fn a_second_wire_on_the_same_interfaces_is_refused_until_the_first_has_ended() {
    let Some(hosts) = Hosts::new("second") else { return };
    let mut first = hosts.start(&[]);
    for args in [&[][..], &["--in-kernel"]] {
        let (code, said) = outcome(&mut hosts.wire(args));
        assert_eq!((code, said.lines().count()), (2, 1), "{said}");
        assert!(said.contains("x0 belongs to a `hitless wire` or a `hitless rack switch` already"), "{said}");
    }
    hosts.transfer_both_ways(100_000);
    first.0.kill().unwrap();
    first.0.wait().unwrap();
    let _next = hosts.start(&[]);
    hosts.transfer_both_ways(100_000);
}

/// Numbered datagrams from one host to the other for a while: how many were sent, and what became of them.
fn witnessed(hosts: &Hosts, from: usize) -> (u64, witness::WitnessReport) {
    let sockets = [0, 1].map(|end| hosts.ends[end].with(|| UdpSocket::bind((address(end), 9_000)).unwrap()).unwrap());
    let to = sockets[1 - from].local_addr().unwrap();
    let (sent_all, over) = (StopFlag::new(), StopFlag::new());
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| witness::receive(&sockets[1 - from], &over));
        let sender = scope.spawn(|| witness::send(&sockets[from], to, 500, 1_000, &sent_all));
        std::thread::sleep(Duration::from_millis(500));
        sent_all.stop();
        let sent = sender.join().unwrap().unwrap();
        std::thread::sleep(Duration::from_millis(500));
        over.stop();
        (sent, receiver.join().unwrap().unwrap())
    })
}

#[test]
fn what_a_killed_wire_in_the_kernel_left_is_removed_by_the_next_wire() {
    let Some(hosts) = Hosts::new("killed") else { return };
    let has_filters = || {
        let asked = hosts.middle.with(|| {
            let netlink = Netlink::open().unwrap();
            ["x0", "x1"].map(|end| {
                let index = netlink.existing_link(end).unwrap().index;
                netlink.qdisc_statistics(index, Qdisc::Clsact).unwrap().is_some()
            })
        });
        asked.unwrap()
    };
    for next in [&[][..], &["--in-kernel"]] {
        let mut killed = hosts.start(&["--in-kernel", "--rate", "1M", "--loss", "0.1"]);
        killed.0.kill().unwrap();
        killed.0.wait().unwrap();
        assert_eq!(has_filters(), [true, true]);
        let mut wire = hosts.start(next);
        let said = fs::read_to_string(hosts.folder.join("said")).unwrap();
        assert!(said.starts_with("removed from x0 and x1 what a killed"), "{said}");
        for from in 0..2 {
            let (sent, report) = witnessed(&hosts, from);
            assert!(sent > 50, "{sent}");
            assert_eq!((report.received, report.duplicates), (sent, 0), "{next:?} from {from}: {report:?}");
        }
        let interrupt = format!("kill -INT {}", wire.0.id());
        assert!(Command::new("sh").args(["-c", &interrupt]).status().unwrap().success());
        assert!(wire.0.wait().unwrap().success());
        assert_eq!(has_filters(), [false, false]);
        let left = |end: &str| {
            let netlink = Netlink::open().unwrap();
            netlink.take_up_wire(netlink.existing_link(end).unwrap().index).unwrap()
        };
        assert_eq!(hosts.middle.with(|| ["x0", "x1"].map(left)).unwrap(), [false, false], "nothing is left");
    }
}

#[test]
fn a_full_disk_ends_the_log_and_not_the_wire() {
    let Some(hosts) = Hosts::new("full") else { return };
    // A file where the counters' folder should be fails as a full disk does.
    let mut wire = hosts.start(&["--loss", "0.02", "--log", "/dev/full", "--counters", "/dev/full", "--json"]);
    hosts.transfer_both_ways(4_000_000);
    // Longer than it takes to find that frames cannot be written.
    let said = || fs::read_to_string(hosts.folder.join("said")).unwrap();
    wait_for("the wire to say so", || said().matches("/dev/full").count() == 2, said);
    hosts.transfer_both_ways(400_000);
    let interrupt = format!("kill -INT {}", wire.0.id());
    assert!(Command::new("sh").args(["-c", &interrupt]).status().unwrap().success());
    let result: serde_json::Value = serde_json::from_reader(wire.0.stdout.take().unwrap()).unwrap();
    assert!(wire.0.wait().unwrap().success());
    let count = |lane: &str| result[lane]["dropped"].as_u64().unwrap();
    assert_eq!(result["not_logged"], count("forward") + count("reverse"), "{result}");
    assert!(result["not_logged"].as_u64() > Some(0), "{result}");
    assert_eq!(said().matches("/dev/full").count(), 2, "once for each file: {}", said());
    assert!(said().contains("No space left on device") && said().contains("the wire goes on"), "{}", said());
}
