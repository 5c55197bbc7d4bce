//! Causes that `radar collect` states, against the truth: a table of things that break, in namespaces.
//!
//! The sender marks packets that a filter of `tc` in the middle drops, in the payload, so it knows which die; queues, random
//! drops of TCP and routers are the kernel's. Nothing in between delays packets: their times are evidence.

#![expect(clippy::disallowed_methods, reason = "senders run beside meters, in real time")]
#![expect(clippy::print_stderr, reason = "figures are for people")]

#[allow(dead_code, reason = "its other parts serve radar_live")]
mod radar_lab;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::time::{Duration, Instant};

use std::fs::File;
use std::net::IpAddr;

use capture::CaptureReader;
use linux::net::Namespace;
use radar_lab::processes::{Line, Running, Said, hitless};
use radar_lab::{COLLECTOR, Lab, address, cable, plug};
use serde_json::Value;
use units::StopFlag;

/// A reproducible number below one.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn command(namespace: &Namespace, line: &str) -> Command {
    let mut words = line.split_whitespace();
    let mut command = Command::new(words.next().unwrap());
    command.args(words);
    namespace.prepare(&mut command).unwrap();
    command
}

/// Two hosts and a dead end in the middle for packets that are to die; `None` where that cannot be made.
fn lab() -> Option<Lab> {
    let is_installed = testkit::installed("tc") && testkit::installed("nft");
    let lab = Lab::new(false).filter(|_| is_installed)?;
    for line in ["ip link add d0 type veth peer name d1", "ip link set d0 up", "ip link set d1 up"] {
        ip(&lab.middle, line);
    }
    Some(lab)
}

/// Runs a program in a namespace.
fn ip(namespace: &Namespace, line: &str) {
    let output = command(namespace, line).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Eight flows of datagrams, from the left to an address on the right.
struct Sender {
    sockets: Vec<UdpSocket>,
    draw: Draw,
    sent: u64,
    marked: u64,
    until: Instant,
}

impl Sender {
    /// On a thread in the namespace of the left.
    fn new(to: Ipv4Addr, seconds: u64) -> Self {
        let socket = |nth: u16| {
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
            socket.connect((to, 9_000 + nth)).unwrap();
            socket
        };
        let until = Instant::now() + Duration::from_secs(seconds);
        Self { sockets: (0..8).map(socket).collect(), draw: Draw(7_046_029_254_386_353_131), sent: 0, marked: 0, until }
    }

    fn send(&mut self, flow: usize, dies: bool) {
        let mut payload = [0; 300];
        payload[0] = u8::from(dies);
        payload[1..9].copy_from_slice(&self.sent.to_le_bytes());
        // A closed port on the right answers; that error belongs to an earlier packet.
        let _ = self.sockets[flow].send(&payload);
        self.sent += 1;
        self.marked += u64::from(dies);
    }

    fn flow(&mut self) -> usize {
        (self.draw.next() * 8.0) as usize
    }

    /// Sends a few packets, and again after a while; `dies` says which.
    fn stream(&mut self, dies: &mut dyn FnMut(&mut Draw, u64, usize) -> bool) {
        while Instant::now() < self.until {
            for _ in 0..1 + (self.draw.next() * 4.0) as usize {
                let flow = self.flow();
                let dies = dies(&mut self.draw, self.sent, flow);
                self.send(flow, dies);
            }
            std::thread::sleep(Duration::from_secs_f64(self.draw.next() * 8e-4));
        }
    }

    /// Bursts of 16 of which 12 die, among other packets; one in so many batches of 10 ms.
    fn microbursts(&mut self, share: f64) {
        while Instant::now() < self.until {
            let bursts = self.draw.next() < share;
            for _ in 0..10 {
                let flow = self.flow();
                self.send(flow, false);
                std::thread::sleep(Duration::from_secs_f64(self.draw.next() * 1.6e-3));
            }
            for nth in 0..16 {
                let flow = self.flow();
                self.send(flow, bursts && nth >= 4);
            }
        }
    }
}

/// Connections from the left to the right, each with up to so many bytes every few milliseconds.
fn connections(lab: &Lab, count: u16, bytes: usize, every_ms: u64, seconds: u64) {
    let stop = &StopFlag::new();
    std::thread::scope(|scope| {
        for nth in 0..count {
            let to = SocketAddr::from((address(1), 7_000 + nth));
            let listener = lab.ends[1].with(|| TcpListener::bind(to).unwrap()).unwrap();
            listener.set_nonblocking(true).unwrap();
            scope.spawn(move || {
                let mut streams: Vec<TcpStream> = Vec::new();
                while !stop.is_stopped() {
                    streams.extend(listener.accept().map(|(stream, _)| stream));
                    for stream in &mut streams {
                        stream.set_nonblocking(true).unwrap();
                        while stream.read(&mut [0; 1 << 16]).is_ok_and(|read| read > 0) {}
                    }
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
            scope.spawn(move || {
                let mut stream = lab.ends[0].with(|| TcpStream::connect(to).unwrap()).unwrap();
                stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
                let bytes = vec![0x55; bytes];
                while !stop.is_stopped() {
                    let _ = stream.write(&bytes);
                    std::thread::sleep(Duration::from_millis(every_ms));
                }
            });
        }
        std::thread::sleep(Duration::from_secs(seconds));
        stop.stop();
    });
}

/// Statement that is right, and the least share of judged losses for which it must be made.
#[derive(Clone, Copy)]
enum Right {
    Cause(&'static str, f64),
    /// Neither random nor blackhole, whatever else.
    Unaccused,
}

#[derive(Clone, Copy)]
struct Row {
    name: &'static str,
    right: Right,
    /// Commands for the middle before and after the plain forwarding is set up.
    middle: &'static [&'static str],
    batch: &'static str,
    collect: &'static [&'static str],
    traffic: fn(&Lab),
}

/// Forwards between both ends, without what is marked.
const FORWARD: [&str; 5] = [
    "tc qdisc replace dev x0 clsact",
    "tc qdisc replace dev x1 clsact",
    "tc filter add dev x0 ingress protocol ip prio 1 u32 match u8 1 0xff at 28 match ip protocol 17 0xff action mirred egress redirect dev d0",
    "tc filter add dev x0 ingress prio 9 protocol all u32 match u32 0 0 action mirred egress redirect dev x1",
    "tc filter add dev x1 ingress prio 9 protocol all u32 match u32 0 0 action mirred egress redirect dev x0",
];
/// A hook behind the meter on the left that drops at random and forwards the rest, in place of a filter.
const NFT: [&str; 3] = [
    "tc filter del dev x0 ingress prio 9",
    "nft add table netdev t",
    "nft add chain netdev t c { type filter hook ingress device x0 priority 0 ; }",
];
const REST: &str = "nft add rule netdev t c fwd to x1";
const TBF: &str = "tc qdisc replace dev x1 root tbf rate 20mbit burst 3kb limit 40kb";

fn udp(lab: &Lab, seconds: u64, send: impl FnOnce(&mut Sender) + Send) {
    lab.ends[0].with(|| send(&mut Sender::new(address(1), seconds))).unwrap();
}

const ROWS: &[Row] = &[
    Row {
        name: "each UDP packet dies with 1e-3",
        right: Right::Cause("random", 0.8),
        middle: &[],
        batch: "10ms",
        collect: &[],
        traffic: |lab| udp(lab, 10, |sender| sender.stream(&mut |draw, _, _| draw.next() < 1e-3)),
    },
    Row {
        name: "each UDP packet dies with 1e-2",
        right: Right::Cause("random", 0.8),
        middle: &[],
        batch: "10ms",
        collect: &[],
        traffic: |lab| udp(lab, 6, |sender| sender.stream(&mut |draw, _, _| draw.next() < 1e-2)),
    },
    Row {
        name: "each packet of TCP dies with 1e-3",
        right: Right::Cause("random", 0.8),
        middle: &[NFT[0], NFT[1], NFT[2], "nft add rule netdev t c numgen random mod 1000 < 1 drop", REST],
        batch: "10ms",
        collect: &[],
        traffic: |lab| connections(lab, 4, 2_000, 1, 8),
    },
    Row {
        name: "each packet of TCP dies with 1e-2",
        right: Right::Cause("random", 0.8),
        middle: &[NFT[0], NFT[1], NFT[2], "nft add rule netdev t c numgen random mod 1000 < 10 drop", REST],
        batch: "10ms",
        collect: &[],
        traffic: |lab| connections(lab, 4, 2_000, 1, 6),
    },
    Row {
        name: "12 of 16 packets of a microburst in every batch",
        right: Right::Unaccused,
        middle: &[],
        batch: "10ms",
        collect: &[],
        traffic: |lab| udp(lab, 5, |sender| sender.microbursts(1.0)),
    },
    Row {
        name: "the same in 60 % of batches",
        right: Right::Unaccused,
        middle: &[],
        batch: "10ms",
        collect: &[],
        traffic: |lab| udp(lab, 5, |sender| sender.microbursts(0.6)),
    },
    Row {
        name: "the same in batches of 100 ms",
        right: Right::Unaccused,
        middle: &[],
        batch: "100ms",
        collect: &[],
        traffic: |lab| udp(lab, 5, |sender| sender.microbursts(0.3)),
    },
    Row {
        name: "a drop-tail queue, bursts of UDP",
        right: Right::Cause("congestion", 0.6),
        middle: &[TBF],
        batch: "10ms",
        collect: &[],
        traffic: |lab| {
            udp(lab, 8, |sender| {
                while Instant::now() < sender.until {
                    for _ in 0..150 {
                        let flow = sender.flow();
                        sender.send(flow, false);
                    }
                    for _ in 0..60 {
                        let flow = sender.flow();
                        sender.send(flow, false);
                        std::thread::sleep(Duration::from_millis(1));
                    }
                }
            });
        },
    },
    Row {
        name: "a drop-tail queue, TCP",
        right: Right::Unaccused,
        middle: &[TBF],
        batch: "10ms",
        collect: &[],
        traffic: |lab| connections(lab, 3, 90_000, 170, 8),
    },
    Row {
        // A meter answers within 1 % of a core, which a development build uses up in the last seconds.
        name: "one UDP flow of eight in a blackhole",
        right: Right::Cause("blackhole", 0.6),
        middle: &[],
        batch: "10ms",
        collect: &[],
        traffic: |lab| udp(lab, 5, |sender| sender.stream(&mut |_, sent, flow| sent > 2_000 && flow == 3)),
    },
    Row {
        name: "one TCP connection of four in a blackhole",
        right: Right::Cause("blackhole", 0.8),
        middle: &[],
        batch: "10ms",
        collect: &[],
        traffic: |lab| {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(Duration::from_secs(2));
                    let hole = "tc filter add dev x0 ingress protocol ip prio 2 u32 match ip dport 7001 0xffff \
                                action mirred egress redirect dev d0";
                    ip(&lab.middle, hole);
                });
                connections(lab, 4, 2_000, 1, 12);
            });
        },
    },
    Row {
        name: "a policer of every 100th packet",
        right: Right::Unaccused,
        middle: &[],
        batch: "10ms",
        collect: &[],
        traffic: |lab| udp(lab, 6, |sender| sender.stream(&mut |_, sent, _| sent % 100 == 7)),
    },
    Row {
        name: "a wire that corrupts bursts of four",
        right: Right::Unaccused,
        middle: &[],
        batch: "10ms",
        collect: &[],
        traffic: |lab| {
            udp(lab, 6, |sender| {
                let mut left = 0;
                sender.stream(&mut |draw, _, _| {
                    left = if left == 0 && draw.next() < 2.5e-3 { 4 } else { left };
                    left -= i32::from(left > 0);
                    left > 0 || draw.next() < 0.0
                });
            });
        },
    },
];

/// Lines of the collector about the way from the left to the right.
#[derive(Debug)]
struct Told {
    losses: Vec<Value>,
    causes: Vec<Value>,
    summary: Value,
}

impl Told {
    /// Losses by cause and reason.
    fn by_cause(&self) -> BTreeMap<String, u64> {
        let mut all = BTreeMap::new();
        for line in &self.causes {
            let what = format!("{} ({})", line["cause"].as_str().unwrap(), line["why"].as_str().unwrap());
            *all.entry(what).or_insert(0) += line["lost"].as_u64().unwrap();
        }
        all
    }

    fn of(&self, cause: &str) -> u64 {
        let of_cause = self.causes.iter().filter(|line| line["cause"] == cause);
        of_cause.map(|line| line["lost"].as_u64().unwrap()).sum()
    }

    /// Losses of intervals that were judged: not those that were too few.
    fn judged(&self) -> u64 {
        let judged = self.causes.iter().filter(|line| line["why"] != "few");
        judged.map(|line| line["lost"].as_u64().unwrap()).sum()
    }
}

fn told(lines: &[Line]) -> Told {
    let of = |kind: &str| -> Vec<Value> {
        let lines = lines.iter().map(|line| &line.json).filter(|json| json["kind"] == kind);
        lines.filter(|json| json["from"] != "right" && json["from"] != "w1").cloned().collect()
    };
    Told { losses: of("loss"), causes: of("cause"), summary: of("summary").pop().expect("a summary") }
}

fn run(lab: &Lab, row: &Row, capture: bool, meter: &[&str]) -> Told {
    for line in
        ["tc qdisc del dev x0 clsact", "tc qdisc del dev x1 clsact", "tc qdisc del dev x1 root", "nft flush ruleset"]
    {
        // There may be none.
        let _ = command(&lab.middle, line).output().unwrap();
    }
    FORWARD.iter().chain(row.middle).for_each(|line| ip(&lab.middle, line));
    let (stop, said) = (StopFlag::new(), [Said::default(), Said::default(), Said::default()]);
    std::thread::scope(|scope| {
        let captured = capture.then(|| lab.capture(scope, 0, &stop));
        let collect = ["--json", "radar", "collect", "--listen", COLLECTOR, "--patience", "4"];
        let collect = [&collect[..], row.collect].concat();
        let collector = Running::start(scope, hitless(&lab.ends[0], &collect), &said[2]);
        said[2].wait_for(&["waiting for meters"]);
        let meters = [0, 1].map(|end| {
            let name = ["left", "right"][end];
            let fixed = ["--json", "radar", "meter", plug(end), "--to", COLLECTOR, "--segment", "cable", "--end", name];
            let args = [&fixed[..], &["--batch", row.batch, "--cells", "1500"], meter].concat();
            Running::start(scope, hitless(&lab.ends[end], &args), &said[end])
        });
        said[2].wait_for(&["left reports", "right reports"]);
        std::thread::sleep(Duration::from_millis(700));
        (row.traffic)(lab);
        std::thread::sleep(Duration::from_millis(1_500));
        let _ = meters.map(Running::end);
        std::thread::sleep(Duration::from_millis(300));
        let lines = collector.end();
        stop.stop();
        if let Some(captured) = captured {
            assert_eq!(captured.join().unwrap(), 0, "the capture missed frames");
        }
        told(&lines)
    })
}

/// Plays a row. Notes wrong accusations; an error says that too few losses have their cause.
fn judge(lab: &Lab, row: &Row, wrong: &mut Vec<String>) -> Result<(), String> {
    let told = run(lab, row, false, &[]);
    let (lost, judged) = (told.summary["lost"].as_u64().unwrap(), told.judged());
    eprintln!("| {} | {lost} | {:?} |", row.name, told.by_cause());
    if let Some(cause) = told.causes.first() {
        eprintln!("  {cause}");
    }
    let accused = told.of("random") + told.of("blackhole");
    match row.right {
        Right::Cause(cause, least) => {
            if cause == "congestion" && accused > 0 {
                wrong.push(format!("{}: {accused} accused", row.name));
            }
            let right = told.of(cause);
            let is_enough = judged >= 10 && right as f64 >= least * judged as f64;
            is_enough
                .then_some(())
                .ok_or_else(|| format!("{}: {right} of {judged} judged losses are {cause}", row.name))
        }
        Right::Unaccused if accused > 0 || lost == 0 => {
            wrong.push(format!("{}: {accused} accused", row.name));
            Ok(())
        }
        Right::Unaccused => Ok(()),
    }
}

#[test]
fn causes_are_true_or_unknown() {
    let only = std::env::var("HITLESS_ROW").unwrap_or_default();
    let Some(lab) = lab() else { return };
    let mut wrong = Vec::new();
    for row in ROWS.iter().filter(|row| row.name.contains(&only)) {
        // A busy machine leaves causes unknown: then the row is repeated. A wrong accusation is wrong at once.
        let shares = (0..3).map_while(|_| judge(&lab, row, &mut wrong).err());
        let missed: Vec<String> = shares.collect();
        wrong.extend((missed.len() == 3).then(|| missed.join("; ")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Ports and times of packets that were marked to die, in a capture where they left.
fn marked(lab: &Lab) -> Vec<(u64, u64)> {
    let mut reader = CaptureReader::new(File::open(lab.captured(0, "out")).unwrap()).unwrap();
    let mut marked = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        let Some(packet) = meter::packet(record.bytes) else { continue };
        if packet.flow.protocol == 17 && packet.flow.dst == IpAddr::V4(address(1)) && record.bytes[42] == 1 {
            marked.push((packet.flow.src_port.into(), record.at.0));
        }
    }
    marked
}

/// Each loss has the time of a marked packet of its flow, to the microsecond and each to another one.
#[test]
fn losses_have_the_times_of_a_capture_and_none_without_a_trail() {
    let Some(lab) = lab() else { return };
    // Lines wait for answers: a busy machine gets more time.
    let row = &Row { batch: "50ms", ..ROWS[1] };
    let told = run(&lab, row, true, &[]);
    let mut truth = marked(&lab);
    assert!(truth.len() > 50, "{} marked packets", truth.len());
    assert_eq!(told.losses.len(), truth.len());
    let (mut worst, mut unknown) = (0, 0);
    for loss in &told.losses {
        let Some(at) = loss["at_ns"].as_u64() else {
            unknown += 1;
            continue;
        };
        let port = loss["src_port"].as_u64().unwrap();
        let near = (0..truth.len()).filter(|nth| truth[*nth].0 == port).min_by_key(|nth| truth[*nth].1.abs_diff(at));
        let nth = near.unwrap_or_else(|| panic!("no marked packet of {loss}"));
        worst = worst.max(truth.remove(nth).1.abs_diff(at));
        assert_eq!(loss["ttl"], 64);
    }
    eprintln!("{} losses, {unknown} without a time, at most {worst} ns from the capture", told.losses.len());
    assert!(worst <= 50_000 && unknown * 50 <= told.losses.len(), "{worst} ns, {unknown} unknown");
    let without = run(&lab, row, false, &["--trail", "0"]);
    assert!(without.losses.iter().all(|loss| loss["at_ns"].is_null() && loss["ttl"].is_null()));
    assert!(without.causes.iter().all(|line| line["cause"] == "unknown" && line["why"] == "no-evidence"));
    assert!(!without.causes.is_empty());
}

/// Routers between the ends: one in the middle, and another that sends 10.99.0.0/16 back to it.
fn routed(lab: &Lab) -> Namespace {
    let second = Namespace::new().unwrap();
    cable((&lab.middle, "r1"), (&second, "r2"));
    for line in [
        "ip link set lo up",
        "ip address add 10.77.0.3/24 dev x0",
        "ip address add 10.79.0.1/24 dev x1",
        "ip address add 10.80.0.1/24 dev r1",
        "ip route add 10.99.0.0/16 via 10.80.0.2",
        "sysctl -qw net.ipv4.ip_forward=1",
    ] {
        ip(&lab.middle, line);
    }
    for line in [
        "ip link set lo up",
        "ip address add 10.80.0.2/24 dev r2",
        "ip route add default via 10.80.0.1",
        "sysctl -qw net.ipv4.ip_forward=1",
    ] {
        ip(&second, line);
    }
    ip(&lab.ends[1], "ip address add 10.79.0.2/24 dev w1");
    ip(&lab.ends[0], "ip route add 10.79.0.0/24 via 10.77.0.3");
    ip(&lab.ends[0], "ip route add 10.99.0.0/16 via 10.77.0.3");
    second
}

/// Packets to the right, and between them some to an address or with a time to live of one.
fn routed_traffic(lab: &Lab, other: Ipv4Addr, ttl: u32) {
    lab.ends[0]
        .with(|| {
            let mut sender = Sender::new(Ipv4Addr::new(10, 79, 0, 2), 5);
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
            socket.set_ttl(ttl).unwrap();
            while Instant::now() < sender.until {
                for _ in 0..3 {
                    let flow = sender.flow();
                    sender.send(flow, false);
                }
                let _ = socket.send_to(&sender.sent.to_le_bytes(), (other, 33_434));
                std::thread::sleep(Duration::from_millis(4));
            }
        })
        .unwrap();
}

#[test]
fn loops_are_found_at_the_link_and_around_it_and_traceroute_is_none() {
    let Some(lab) = lab() else { return };
    let second = routed(&lab);
    let (around, hops) = (["--json", "radar", "collect", "--listen", COLLECTOR, "--hops"], ["1", "2"]);
    let said: [Said; 8] = Default::default();
    for (what, other, ttl, hops) in
        [("loop", Ipv4Addr::new(10, 99, 0, 1), 64, hops[1]), ("traceroute", Ipv4Addr::new(10, 79, 0, 2), 1, hops[0])]
    {
        let is_loop = what == "loop";
        std::thread::scope(|scope| {
            let said = &said[if is_loop { 0..4 } else { 4..8 }];
            let collector = Running::start(scope, hitless(&lab.ends[0], &[&around[..], &[hops]].concat()), &said[0]);
            said[0].wait_for(&["waiting for meters"]);
            let at_link = Running::start(
                scope,
                hitless(&lab.middle, &["--json", "radar", "collect", "--listen", "10.80.0.1:7900"]),
                &said[1],
            );
            said[1].wait_for(&["waiting for meters"]);
            let meter = |namespace: &Namespace, interface: &str, to: &str, said| {
                let args = ["--json", "radar", "meter", interface, "--to", to, "--segment", "s", "--end", interface];
                Running::start(scope, hitless(namespace, &args), said)
            };
            let meters = [
                meter(&lab.ends[0], "w0", COLLECTOR, &said[2]),
                meter(&lab.ends[1], "w1", COLLECTOR, &said[2]),
                meter(&lab.middle, "r1", "10.80.0.1:7900", &said[3]),
                meter(&second, "r2", "10.80.0.1:7900", &said[3]),
            ];
            said[0].wait_for(&["w0 reports", "w1 reports"]);
            said[1].wait_for(&["r1 reports", "r2 reports"]);
            std::thread::sleep(Duration::from_millis(500));
            routed_traffic(&lab, other, ttl);
            std::thread::sleep(Duration::from_millis(1_500));
            let _ = meters.map(Running::end);
            std::thread::sleep(Duration::from_millis(300));
            let [around, at_link] = [collector, at_link].map(|collector| told(&collector.end()));
            eprintln!("| {what}, meters around | {} | {:?} |", around.losses.len(), around.by_cause());
            eprintln!("| {what}, at the link | {} | {:?} |", at_link.losses.len(), at_link.by_cause());
            let rounds = at_link.causes.iter().filter(|line| line["cause"] == "loop" && line["why"] == "round");
            assert_eq!(rounds.count() > 0, is_loop, "{:?}", at_link.causes);
            assert!(around.of("random") + around.of("blackhole") == 0, "{:?}", around.by_cause());
            let looped = around.of("loop");
            assert!(if is_loop { looped * 10 >= around.judged() * 8 && looped > 0 } else { looped == 0 }, "{around:?}");
            assert!(around.losses.len() > 50);
        });
    }
}
