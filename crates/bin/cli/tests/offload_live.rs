//! Captures of hosts with segmentation and receive offload, as they are by default: `radar losses` and `explain --other-end` name
//! exactly what the wire between them dropped, by its log.
//!
//! ```text
//!   a0 (TSO, captured) ── x0 ═ hitless wire: drops, writes down ═ x1 ── b0 (GRO, captured)
//! ```

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use capture::CaptureReader;
use linux::net::Namespace;
use serde_json::Value;

const ADDRESSES: [&str; 2] = ["10.76.0.1", "10.76.0.2"];
const PORT: u16 = 7_100;
/// Written at once, and how often: slow enough for a wire on a busy machine.
const WRITE: usize = 60_000;
const WRITES: usize = 250;

/// Segments by who sent them and their sequence number, with how often they were lost.
type LostSegments = BTreeMap<(String, u64), u32>;

struct OffloadLab {
    ends: [Namespace; 2],
    middle: Namespace,
    folder: PathBuf,
}

impl Drop for OffloadLab {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn run(namespace: &Namespace, line: &str) {
    let mut words = line.split(' ');
    let mut command = Command::new(words.next().unwrap());
    command.args(words);
    namespace.prepare(&mut command).unwrap();
    let output = command.output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

impl OffloadLab {
    fn new() -> Option<Self> {
        let middle = testkit::permitted(Namespace::new())?;
        let ends = [Namespace::new().unwrap(), Namespace::new().unwrap()];
        let folder = std::env::temp_dir().join(format!("hitless-offload-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let lab = Self { ends, middle, folder };
        for (end, (inner, outer)) in [("a0", "x0"), ("b0", "x1")].into_iter().enumerate() {
            lab.plug(end, inner, outer);
        }
        // The defaults of a host; receive offload of a veth must be requested.
        run(&lab.ends[0], "ethtool -K a0 tso on gso on tx on sg on gro on");
        run(&lab.ends[1], "ethtool -K b0 tso on gso on tx on sg on gro on");
        Some(lab)
    }

    fn plug(&self, end: usize, inner: &str, outer: &str) {
        let netlink = |namespace: &Namespace, act: &(dyn Fn(&linux::net::Netlink) + Sync)| {
            namespace.with(|| act(&linux::net::Netlink::open().unwrap())).unwrap();
        };
        netlink(&self.middle, &|netlink| {
            netlink.add_veth(outer, inner).unwrap();
            netlink.set_namespace(netlink.existing_link(inner).unwrap().index, &self.ends[end]).unwrap();
        });
        run(&self.middle, &format!("ip link set {outer} up"));
        run(&self.ends[end], &format!("ip link set {inner} address 02:00:00:00:00:0{}", 1 + end));
        run(&self.ends[end], &format!("ip addr add {}/24 dev {inner}", ADDRESSES[end]));
        run(&self.ends[end], &format!("ip link set {inner} up"));
        let far = format!("{} lladdr 02:00:00:00:00:0{}", ADDRESSES[1 - end], 2 - end);
        run(&self.ends[end], &format!("ip neigh add {far} dev {inner} nud permanent"));
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// A program that runs until it is told to end. Killed if the test forgets it.
struct Background {
    child: Child,
    said: BufReader<std::process::ChildStderr>,
}

impl Background {
    /// Started, and ready as soon as it says so.
    fn start(namespace: &Namespace, mut command: Command, ready: &str) -> Self {
        namespace.prepare(&mut command).unwrap();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains(ready) {
            line.clear();
            assert!(said.read_line(&mut line).unwrap() > 0, "ended before {ready:?}");
        }
        Self { child, said }
    }

    /// Ends the process; returns what it printed to standard output, and to standard error after the line that it was
    /// ready.
    fn end(mut self) -> (String, String) {
        Command::new("kill").args(["-INT", &self.child.id().to_string()]).status().unwrap();
        let (mut out, mut said) = (String::new(), String::new());
        self.said.read_to_string(&mut said).unwrap();
        self.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        self.child.wait().unwrap();
        (out, said)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn tcpdump(namespace: &Namespace, interface: &str, file: &Path) -> Background {
    let mut command = Command::new("tcpdump");
    command.args(["-i", interface, "-s", "128", "-B", "65536", "-Z", "root", "-w"]).arg(file).arg("tcp");
    Background::start(namespace, command, "listening on")
}

/// One end sends as it was said above, and the other answers with a quarter of it.
fn transfer(lab: &OffloadLab) {
    let listener = lab.ends[1].with(|| TcpListener::bind((ADDRESSES[1], PORT)).unwrap()).unwrap();
    thread::scope(|scope| {
        scope.spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut read = vec![0; WRITE];
            for nth in 0..WRITES {
                stream.read_exact(&mut read).unwrap();
                if nth % 4 == 0 {
                    stream.write_all(&read).unwrap();
                }
            }
        });
        let mut stream = lab.ends[0].with(|| TcpStream::connect((ADDRESSES[1], PORT)).unwrap()).unwrap();
        let mut back = stream.try_clone().unwrap();
        let reader = scope.spawn(move || std::io::copy(&mut back, &mut std::io::sink()).unwrap());
        for nth in 0..WRITES {
            stream.write_all(&[nth as u8; WRITE]).unwrap();
            thread::sleep(Duration::from_millis(3));
        }
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(reader.join().unwrap(), (WRITE * WRITES.div_ceil(4)) as u64);
    });
    // Waits for frames and their retransmissions.
    thread::sleep(Duration::from_millis(1_500));
}

fn dropped(log: &Path) -> LostSegments {
    let mut lost = LostSegments::new();
    let mut reader = CaptureReader::new(File::open(log).unwrap()).unwrap();
    while let Some(record) = reader.next().unwrap() {
        if let Some(packet) = meter::packet(record.bytes)
            && let Some(segment) = packet.tcp
        {
            *lost.entry((packet.flow.src.to_string(), segment.seq.into())).or_default() += 1;
        }
    }
    lost
}

fn hitless(args: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_hitless")).arg("--json").args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// By `radar losses`, each way.
fn compared(captures: [&str; 2]) -> (LostSegments, [u64; 2]) {
    let (mut lost, mut cut) = (LostSegments::new(), [0; 2]);
    for [up, down] in [captures, [captures[1], captures[0]]] {
        let answer = hitless(&["radar", "losses", up, down]);
        assert_eq!(answer["unnamed"], 0);
        for loss in answer["lost"].as_array().unwrap() {
            let sender = loss["src"].as_str().unwrap().to_owned();
            *lost.entry((sender, loss["tcp_seq"].as_u64().unwrap())).or_default() += 1;
        }
        let count = |of: &str| answer["super_frames"][of].as_u64().unwrap();
        cut = if up == captures[0] { [count("up"), count("down")] } else { cut };
    }
    (lost, cut)
}

fn explained(captures: [&str; 2]) -> (LostSegments, Value) {
    let answer = hitless(&["explain", captures[0], "--other-end", captures[1]]);
    let mut lost = LostSegments::new();
    for connection in answer["connections"].as_array().unwrap() {
        for loss in connection["losses"].as_array().unwrap() {
            let sender = ADDRESSES[usize::from(loss["direction"] == "down")].to_owned();
            *lost.entry((sender, loss["tcp_seq"].as_u64().unwrap())).or_default() += 1;
        }
    }
    (lost, answer)
}

/// Losses by the wire's log, unless anything could not keep up.
fn attempt(lab: &OffloadLab) -> Result<LostSegments, String> {
    let files = ["a.pcap", "b.pcap"].map(|name| lab.file(name));
    let log = lab.file("dropped.pcapng");
    let mut wire = Command::new(env!("CARGO_BIN_EXE_hitless"));
    wire.args(["--json", "wire", "x0", "x1", "--loss", "3e-3", "--log"]).arg(&log);
    let wire = Background::start(&lab.middle, wire, "a wire between");
    let captures = [tcpdump(&lab.ends[0], "a0", &files[0]), tcpdump(&lab.ends[1], "b0", &files[1])];
    transfer(lab);
    let said = captures.map(|capture| capture.end().1);
    let wire: Value = serde_json::from_str(&wire.end().0).unwrap();
    let overflowed: u64 = ["forward", "reverse"].iter().map(|way| wire[way]["overflowed"].as_u64().unwrap()).sum();
    if overflowed > 0 || said.iter().any(|said| !said.contains("\n0 packets dropped by kernel")) {
        return Err(format!("{wire} {said:?}"));
    }
    Ok(dropped(&log))
}

#[test]
fn of_captures_with_offloads_at_both_ends_the_dropped_packets_are_named_and_no_others() {
    if !["tcpdump", "ethtool", "ip"].into_iter().all(testkit::installed) {
        return;
    }
    let Some(lab) = OffloadLab::new() else { return };
    let mut busy = Vec::new();
    let truth = (0..8).find_map(|_| attempt(&lab).map_err(|why| busy.push(why)).ok());
    let truth = truth.unwrap_or_else(|| panic!("this machine kept up in no attempt: {busy:#?}"));
    assert!(truth.len() > 10, "the wire dropped too little: {truth:?}");
    let files = ["a.pcap", "b.pcap"].map(|name| lab.file(name).display().to_string());
    let captures = files.each_ref().map(String::as_str);
    let (lost, cut) = compared(captures);
    assert!(cut[0] > 50 && cut[1] > 0, "both captures have super-frames: {cut:?}");
    assert_eq!(lost, truth, "radar losses");
    let (lost, answer) = explained(captures);
    assert_eq!(lost, truth, "explain --other-end");
    assert_eq!([&answer["super_frames"], &answer["super_frames_other_end"]], cut.map(Value::from).each_ref());
}
