//! `hitless wire --repeat-naks --repeat-requested` on real interfaces: what goes in, and what comes out.

use std::fs;
use std::io::{BufRead, BufReader, IoSlice, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use emulator::RepeatCounters;
use linux::net::{Namespace, Netlink};
use linux::packet::PacketSocket;
use serde_json::Value;
use standin::wire_socket;
use wire::ip::Ecn;
use wire::ipv4::{self, Station};
use wire::roce::{self, ExtensionHeader, Opcode, RoceHeader, Syndrome};
use wire::udp;

/// Says that everything sent before it has arrived: a wire keeps the order.
const MARKER: [u8; 15] = [2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 0x12, 0x34, 0xee];

/// A host and a fabric with nothing in between but the repeater: `a0-a1`, then the program, then `b1-b0`.
struct Lab {
    namespace: Namespace,
    host: PacketSocket,
    fabric: PacketSocket,
    folder: PathBuf,
}

impl Lab {
    /// `None`, and the test is skipped, where no namespace may be made. The calling thread stays in the lab.
    fn new(name: &str) -> Option<Self> {
        let namespace = testkit::permitted(Namespace::new())?;
        // The rings of packet sockets stay with their thread, so that goes there itself.
        namespace.enter().unwrap();
        let [host, fabric] = [("a0", "a1"), ("b0", "b1")].map(cable);
        let folder = std::env::temp_dir().join(format!("hitless-repeater-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Some(Self { namespace, host, fabric, folder })
    }

    /// The program, once it carries frames.
    fn start(&self, args: &[&str]) -> Running {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hitless"));
        command.args(["wire", "a1", "b1"]).args(args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        self.namespace.prepare(&mut command).unwrap();
        let mut running = Running(command.spawn().unwrap());
        let mut said = String::new();
        BufReader::new(running.0.stderr.take().unwrap()).read_line(&mut said).unwrap();
        assert!(said.contains("hosts at a1") && said.contains("the fabric at b1"), "{said}");
        running
    }

    /// Frames that leave at the fabric when the host sends these.
    fn up(&mut self, frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
        through(&mut self.host, &mut self.fabric, frames)
    }

    /// Frames that leave at the host when the fabric sends these.
    fn down(&mut self, frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
        through(&mut self.fabric, &mut self.host, frames)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A pair of interfaces, and a socket on the first.
fn cable((near, far): (&str, &str)) -> PacketSocket {
    let netlink = Netlink::open().unwrap();
    netlink.add_veth(near, far).unwrap();
    let index = [near, far].map(|name| netlink.existing_link(name).unwrap().index);
    for index in index {
        let _ = netlink.no_ipv6_autoconf(index);
        netlink.set_up(index, true).unwrap();
    }
    index.iter().for_each(|index| netlink.wait_until_running(*index).unwrap());
    PacketSocket::open(index[0], &wire_socket(1_500, 4_096)).unwrap()
}

fn through(from: &mut PacketSocket, to: &mut PacketSocket, frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
    for frame in frames.iter().map(Vec::as_slice).chain([&MARKER[..]]) {
        assert!(from.send_one(&[IoSlice::new(frame)]).unwrap(), "a socket without room");
    }
    let mut out = Vec::new();
    wait_for("the marker", || {
        to.receive(64, |frame| out.push(frame.bytes.to_vec()));
        out.last().is_some_and(|frame| *frame == MARKER)
    });
    out.pop();
    out
}

/// Generous, since the machine may be busy.
fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    for _ in 0..30_000 {
        if done() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("waited half a minute for {what}");
}

/// Killed if the test forgets it.
struct Running(Child);

impl Running {
    /// Ends it as Ctrl-C would; what it prints then.
    fn end(mut self) -> String {
        Command::new("kill").args(["-INT", &self.0.id().to_string()]).status().unwrap();
        let mut printed = String::new();
        self.0.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
        assert!(self.0.wait().unwrap().success());
        printed
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn frame(opcode: Opcode, psn: u32, extended: Option<ExtensionHeader>, payload: usize) -> Vec<u8> {
    let header = RoceHeader { opcode, queue_pair: 0x11, psn, ack_request: false, pad: 0, extended };
    let station = |last| Station { mac: [2, 0, 0, 0, 0, last], ip: [10, 0, 0, last] };
    let inside = (udp::UdpHeader::LEN + header.size() + payload + RoceHeader::CHECK) as u16;
    let ip =
        ipv4::Ipv4Header { from: station(1), to: station(2), protocol: ipv4::UDP, ecn: Ecn::Capable, payload: inside };
    let mut out = Vec::new();
    ip.emit(&mut out);
    udp::UdpHeader { source: 0xc000, destination: roce::PORT, checked: false }.emit(&ip, &mut out);
    header.emit(&mut out);
    out.resize(out.len() + payload, 0x5a);
    roce::append_icrc(&mut out, 14);
    out
}

fn request(psn: u32) -> Vec<u8> {
    frame(Opcode::WriteMiddle, psn, None, 1_024)
}

fn nak(psn: u32) -> Vec<u8> {
    frame(Opcode::Acknowledge, psn, Some(ExtensionHeader::Ack { syndrome: Syndrome::SEQUENCE_ERROR, msn: 1 }), 0)
}

/// Frames by name: RoCEv2 of every opcode, malformed ones, others.
fn corpus() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../base/wire/tests/corpus/roce");
    let mut frames: Vec<(String, Vec<u8>)> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        // A packet socket sends nothing that has no Ethernet header.
        .filter(|(_, frame)| frame.len() > 14)
        .collect();
    frames.sort();
    frames
}

#[test]
fn a_nak_leaves_twice_and_what_a_nak_asked_for_leaves_four_times_once() {
    let Some(mut lab) = Lab::new("story") else { return };
    let wire = lab.start(&["--repeat-naks", "1", "--repeat-naked", "3", "--json"]);
    assert_eq!(lab.up(&[nak(7)]), [nak(7), nak(7)]);
    assert_eq!(lab.up(&[request(9)]), [request(9)], "nobody has asked for it yet");
    assert_eq!(lab.down(&[nak(9)]), [nak(9)], "the other side's switch has repeated it");
    let again = lab.up(&[request(8), request(9), request(10), request(9)]);
    assert_eq!(again, [8, 9, 9, 9, 9, 10, 9].map(request));
    assert_eq!(lab.down(&[request(11), nak(12)]), [request(11), nak(12)]);
    assert_eq!(lab.down(&[request(12)]), [request(12)], "not from a host");
    let outcome: Value = serde_json::from_str(&wire.end()).unwrap();
    let counters: RepeatCounters = serde_json::from_value(outcome["repeater"].clone()).unwrap();
    assert_eq!(counters, RepeatCounters { roce: 10, malformed: 0, nak_copies: 1, naked_copies: 3 });
    let lane = |way: &str| ["offered", "passed", "dropped"].map(|field| outcome[way][field].as_u64().unwrap());
    assert_eq!((lane("forward"), lane("reverse")), ([6 + 4 + 3, 13, 0], [4 + 3, 7, 0]), "markers included");
}

#[test]
fn everything_else_passes_once_byte_for_byte_and_what_is_malformed_is_counted() {
    let Some(mut lab) = Lab::new("else") else { return };
    let wire = lab.start(&["--repeat-naks", "2", "--repeat-requested", "2"]);
    let (naks, others): (Vec<_>, Vec<_>) = corpus().into_iter().partition(|(name, _)| name == "acknowledge");
    let frames: Vec<Vec<u8>> = others.iter().map(|(_, frame)| frame.clone()).collect();
    assert!(frames.len() > 40 && naks.len() == 1);
    assert_eq!(lab.up(&frames), frames);
    assert_eq!(lab.down(&frames), frames);
    let named = |start: &str| others.iter().filter(|(name, _)| name.starts_with(start)).count();
    let (foreign, malformed) = (named("foreign"), named("malformed"));
    assert!(malformed > 10);
    let printed = wire.end();
    let seen = format!("seen: {} RoCEv2 frames, {} of them malformed", 2 * (frames.len() - foreign), 2 * malformed);
    assert!(printed.contains(&seen), "{printed}, expected {seen}");
    assert!(printed.contains("repeated: 0 copies of NAKs, 0 of packets"), "{printed}");
}

#[test]
fn each_copy_takes_its_own_chances_on_the_wire() {
    let Some(mut lab) = Lab::new("faults") else { return };
    let faults = lab.folder.join("faults.toml");
    fs::write(&faults, "[[forward]]\nframes = [0, 2]\n").unwrap();
    let wire = lab.start(&["--repeat-naks", "3", "--faults", faults.to_str().unwrap(), "--json"]);
    assert_eq!(lab.up(&[nak(7)]), [nak(7), nak(7)], "of four the first and the third are lost");
    let outcome: Value = serde_json::from_str(&wire.end()).unwrap();
    assert_eq!((&outcome["forward"]["dropped"], &outcome["repeater"]["nak_copies"]), (&2.into(), &3.into()));
}

#[test]
fn a_nak_that_the_wire_has_corrupted_asks_for_nothing() {
    let Some(mut lab) = Lab::new("lost") else { return };
    let faults = lab.folder.join("faults.toml");
    fs::write(&faults, "[[reverse]]\nframes = [0]\n").unwrap();
    let wire = lab.start(&["--repeat-naked", "3", "--faults", faults.to_str().unwrap(), "--delay", "1ms", "--json"]);
    assert_eq!(lab.down(&[nak(7)]), [[0; 0]; 0]);
    assert_eq!(lab.up(&[request(7)]), [request(7)]);
    assert_eq!(lab.down(&[nak(7)]), [nak(7)]);
    assert_eq!(lab.up(&[request(7)]), [7; 4].map(request));
    let outcome: Value = serde_json::from_str(&wire.end()).unwrap();
    assert_eq!((&outcome["repeater"]["nak_copies"], &outcome["repeater"]["naked_copies"]), (&0.into(), &3.into()));
}

#[test]
fn copies_wait_for_a_wire_with_a_rate_like_any_other_frame() {
    let Some(mut lab) = Lab::new("rate") else { return };
    let ports = lab.folder.join("ports");
    let counters = ports.display().to_string();
    // No frame at all has room.
    let wire = lab.start(&["--repeat-naks", "3", "--rate", "1M", "--queue", "50B", "--counters", &counters, "--json"]);
    assert!(lab.host.send_one(&[IoSlice::new(&nak(7))]).unwrap());
    let dropped = || fs::read_to_string(ports.join("a1/statistics/tx_dropped")).unwrap_or_default();
    wait_for("four frames without room", || dropped().trim() == "4");
    let outcome: Value = serde_json::from_str(&wire.end()).unwrap();
    assert_eq!((&outcome["forward"]["offered"], &outcome["forward"]["passed"]), (&4.into(), &0.into()));
}

#[test]
fn the_kernel_cannot_repeat_and_too_many_copies_are_refused() {
    let run = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_hitless")).args(args).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    // The last is the old name of the second, and still answers.
    for (option, name) in [
        ("--repeat-naks", "--repeat-naks"),
        ("--repeat-requested", "--repeat-requested"),
        ("--repeat-naked", "--repeat-requested"),
    ] {
        let (code, said) = run(&["wire", "a1", "b1", option, "1", "--in-kernel"]);
        assert!(code == Some(2) && said.contains("--in-kernel") && said.contains(name), "{said}");
        let (code, said) = run(&["wire", "a1", "b1", option, "65"]);
        assert!(code == Some(2) && said.contains("65") && said.lines().count() == 1, "{said}");
    }
}
