//! Four routers as a fabric of two leaves and two spines with equal-cost paths, a host at each leaf, and flow meters.
//!
//! ```text
//!               spine1        spine2
//!          down1│    │down2 ··· each spine has both leaves
//!      wire (drops what it is told to)
//!            up1│    │up2
//!   host1 ── leaf1        leaf2 ── host2          map: hears all meters
//! ```

#![allow(unreachable_pub)]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use linux::net::{Namespace, Netlink};
use serde_json::Value;
use units::StopFlag;

pub const SLOT_MS: u64 = 20;
pub const TOPOLOGY: &str = "lower,upper,lower_port,upper_port,rate\n\
    leaf1,spine1,up1,down1,100M\nleaf1,spine2,up2,down1,100M\nleaf2,spine1,up1,down2,100M\nleaf2,spine2,up2,down2,100M\n";
const SWITCHES: [&str; 4] = ["leaf1", "leaf2", "spine1", "spine2"];
const PATIENCE: Duration = Duration::from_secs(60);
/// Time to live of packets: a loop that multiplies each by thirty would keep the machine busy, not the test.
const TTL: u32 = 12;

pub struct MapLab {
    /// leaf1, leaf2, spine1, spine2.
    pub switches: [Namespace; 4],
    pub hosts: [Namespace; 2],
    wire: Namespace,
    map: Namespace,
    pub folder: PathBuf,
}

impl Drop for MapLab {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Runs a line of a shell in a namespace, which must succeed.
pub fn sh(namespace: &Namespace, line: &str) {
    let mut command = Command::new("sh");
    command.args(["-e", "-c", line]);
    namespace.prepare(&mut command).unwrap();
    let output = command.output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

impl MapLab {
    /// `None`, and the test is skipped, where no namespace may be made or a program is missing.
    pub fn new() -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let wire = testkit::permitted(Namespace::new())?;
        if !testkit::installed("ip") {
            return None;
        }
        let new = || Namespace::new().unwrap();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("hitless-map-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("fabric.csv"), TOPOLOGY).unwrap();
        let lab = Self { switches: [new(), new(), new(), new()], hosts: [new(), new()], wire, map: new(), folder };
        lab.join();
        lab.address();
        lab.route();
        Some(lab)
    }

    fn join(&self) {
        let [leaf1, leaf2, spine1, spine2] = &self.switches;
        cable((leaf1, "up1"), (&self.wire, "low"));
        cable((&self.wire, "high"), (spine1, "down1"));
        cable((leaf1, "up2"), (spine2, "down1"));
        cable((leaf2, "up1"), (spine1, "down2"));
        cable((leaf2, "up2"), (spine2, "down2"));
        for at in 0..2 {
            cable((&self.hosts[at], "eth0"), (&self.switches[at], "host"));
        }
        for (at, switch) in self.switches.iter().enumerate() {
            cable((&self.map, &format!("m{at}")), (switch, "mgmt"));
        }
        let forward = || {
            let netlink = Netlink::open().unwrap();
            let [low, high] = ["low", "high"].map(|name| netlink.existing_link(name).unwrap().index);
            netlink.forward(low, high).unwrap();
            netlink.forward(high, low).unwrap();
        };
        self.wire.with(forward).unwrap();
        sh(&self.wire, "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6");
    }

    /// Lets the wire drop this share of what leaf1 sends to spine1.
    pub fn corrupt(&self, share: f64) {
        let corrupt = || {
            let netlink = Netlink::open().unwrap();
            netlink.corrupt(netlink.existing_link("low").unwrap().index, share).unwrap();
        };
        self.wire.with(corrupt).unwrap();
    }

    fn address(&self) {
        let up = "for i in /proc/sys/net/ipv4/conf/*; do d=${i##*/}; \
                  echo 0 > $i/rp_filter; echo 0 > $i/send_redirects; done; echo 1 > /proc/sys/net/ipv4/ip_forward; \
                  echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6; ip link set dev lo up";
        let add = |namespace: &Namespace, addresses: &[(&str, &str)]| {
            for (port, address) in addresses {
                sh(namespace, &format!("ip address add {address} dev {port}"));
            }
        };
        let [leaf1, leaf2, spine1, spine2] = &self.switches;
        self.switches.iter().for_each(|switch| sh(switch, up));
        add(leaf1, &[("host", "10.0.1.1/24"), ("up1", "10.1.1.1/30"), ("up2", "10.1.2.1/30")]);
        add(leaf2, &[("host", "10.0.2.1/24"), ("up1", "10.1.3.1/30"), ("up2", "10.1.4.1/30")]);
        add(spine1, &[("down1", "10.1.1.2/30"), ("down2", "10.1.3.2/30")]);
        add(spine2, &[("down1", "10.1.2.2/30"), ("down2", "10.1.4.2/30")]);
        // Only packets of the flows cross the wire, so that it drops nothing else.
        sh(
            leaf1,
            "ip link set dev up1 address 02:00:00:00:00:01; ip neigh replace 10.1.1.2 lladdr 02:00:00:00:00:02 dev up1",
        );
        sh(
            spine1,
            "ip link set dev down1 address 02:00:00:00:00:02; ip neigh replace 10.1.1.1 lladdr 02:00:00:00:00:01 dev down1",
        );
        for (at, host) in self.hosts.iter().enumerate() {
            add(host, &[("eth0", &format!("10.0.{}.10/24", at + 1))]);
            sh(host, &format!("ip link set dev lo up; ip route add default via 10.0.{}.1", at + 1));
        }
        for (at, switch) in self.switches.iter().enumerate() {
            add(&self.map, &[(&format!("m{at}"), &format!("10.9.{at}.1/24"))]);
            add(switch, &[("mgmt", &format!("10.9.{at}.2/24"))]);
        }
    }

    /// Routes as they should be: equal shares, by addresses and ports.
    pub fn route(&self) {
        let [leaf1, leaf2, spine1, spine2] = &self.switches;
        let hash = "echo 1 > /proc/sys/net/ipv4/fib_multipath_hash_policy";
        sh(leaf1, hash);
        sh(leaf2, hash);
        sh(leaf1, "ip route replace 10.0.2.0/24 nexthop via 10.1.1.2 weight 1 nexthop via 10.1.2.2 weight 1");
        sh(leaf2, "ip route replace 10.0.1.0/24 nexthop via 10.1.3.2 weight 1 nexthop via 10.1.4.2 weight 1");
        sh(spine1, "ip route replace 10.0.1.0/24 via 10.1.1.1; ip route replace 10.0.2.0/24 via 10.1.3.1");
        sh(spine2, "ip route replace 10.0.1.0/24 via 10.1.2.1; ip route replace 10.0.2.0/24 via 10.1.4.1");
    }

    /// Packets that the wire has dropped, to a constant.
    pub fn dropped(&self) -> i64 {
        let count = || {
            let netlink = Netlink::open().unwrap();
            let of = |name: &str| netlink.statistics(netlink.existing_link(name).unwrap().index).unwrap();
            let [low, high] = [of("low"), of("high")];
            (low.rx_packets + high.rx_packets) as i64 - (low.tx_packets + high.tx_packets) as i64
        };
        self.wire.with(count).unwrap()
    }

    /// Starts a map and the meters of all switches, and waits until each is there.
    pub fn watch(&self, flows: [&str; 4], html: Option<&str>) -> Watch {
        let topology = self.folder.join("fabric.csv");
        let mut args =
            vec!["--json", "radar", "map", "--listen", "0.0.0.0:7391", "--topology", topology.to_str().unwrap()];
        args.extend(["--clock-error", "0ns", "--way", "10ms"]);
        html.iter().for_each(|path| args.extend(["--html", path]));
        let map = Running::start(hitless(&self.map, &args));
        map.wait_for("waiting for flow meters");
        let slot = format!("{SLOT_MS}ms");
        let meter = |at: usize| {
            let ports: &[&str] = if at < 2 { &["host", "up1", "up2"] } else { &["down1", "down2"] };
            let to = format!("10.9.{at}.1:7391");
            let args = [&["--json", "radar", "flows", "meter"], ports].concat();
            let args =
                [&args[..], &["--switch", SWITCHES[at], "--to", &to, "--slot", &slot, "--flows", flows[at]]].concat();
            let meter = Running::start(hitless(&self.switches[at], &args));
            meter.wait_for("metering flows");
            meter
        };
        Watch { meters: [meter(0), meter(1), meter(2), meter(3)], map }
    }
}

fn cable((one, name): (&Namespace, &str), (other, far): (&Namespace, &str)) {
    let made = one.with(|| {
        let netlink = Netlink::open().unwrap();
        netlink.add_veth(name, "t0").unwrap();
        let [near, end] = [name, "t0"].map(|name| netlink.existing_link(name).unwrap().index);
        netlink.set_namespace(end, other).unwrap();
        near
    });
    made.unwrap();
    sh(other, &format!("ip link set dev t0 name {far}; ip link set dev {far} up"));
    sh(one, &format!("ip link set dev {name} up"));
}

fn hitless(namespace: &Namespace, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hitless"));
    command.args(args).stdin(Stdio::null());
    namespace.prepare(&mut command).unwrap();
    command
}

/// A map and its meters while they run.
pub struct Watch {
    meters: [Running; 4],
    map: Running,
}

impl Watch {
    /// Most memory that the meters and the map have had, in bytes.
    pub fn peaks(&self) -> [u64; 5] {
        let [one, two, three, four] = &self.meters;
        [one, two, three, four, &self.map].map(Running::peak)
    }

    /// Ends the meters, then the map: what meters counted, and what the map says.
    pub fn end(self) -> (Vec<Value>, Value) {
        let meters = self.meters.map(|meter| meter.end().pop().expect("a result"));
        thread::sleep(Duration::from_millis(300));
        (meters.to_vec(), self.map.end().pop().expect("an answer"))
    }
}

/// A process, killed if the test forgets it.
struct Running {
    child: Child,
    said: Arc<Mutex<String>>,
    lines: Option<JoinHandle<String>>,
}

impl Running {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (mut stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let said = Arc::new(Mutex::new(String::new()));
        let heard = Arc::clone(&said);
        thread::spawn(move || {
            BufReader::new(stderr)
                .lines()
                .map_while(Result::ok)
                .for_each(|line| *heard.lock().unwrap() += &(line + "\n"));
        });
        let lines = thread::spawn(move || {
            let mut text = String::new();
            let _ = stdout.read_to_string(&mut text);
            text
        });
        Self { child, said, lines: Some(lines) }
    }

    fn wait_for(&self, words: &str) {
        let began = Instant::now();
        while !self.said.lock().unwrap().contains(words) {
            assert!(began.elapsed() < PATIENCE, "no `{words}`: {}", self.said.lock().unwrap());
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn peak(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    }

    /// Ends it as Ctrl-C would; its lines of JSON.
    fn end(mut self) -> Vec<Value> {
        Command::new("kill").args(["-INT", &self.child.id().to_string()]).status().unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{}", self.said.lock().unwrap());
        let text = self.lines.take().unwrap().join().unwrap();
        serde_json::Deserializer::from_str(&text).into_iter::<Value>().map(Result::unwrap).collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Datagrams between the hosts, on threads of their own.
pub struct Traffic {
    stop: Arc<StopFlag>,
    senders: Vec<JoinHandle<()>>,
}

impl Traffic {
    pub fn end(self) {
        self.stop.stop();
        self.senders.into_iter().for_each(|sender| sender.join().unwrap());
    }
}

/// Flows of one host: so many, each with a datagram in every tick.
#[derive(Clone, Copy, Debug)]
pub struct FlowPlan {
    pub from: usize,
    pub first_port: u16,
    pub flows: u16,
    pub bytes: usize,
    pub tick: Duration,
    /// Ticks in which it sends, of how many: bursts.
    pub bursts: [u64; 2],
    /// Every packet goes to another port: a flood of new flows.
    pub is_fresh: bool,
}

impl FlowPlan {
    pub fn even(from: usize, flows: u16) -> Self {
        let tick = Duration::from_millis(10);
        Self { from, first_port: 20_000, flows, bytes: 100, tick, bursts: [1, 1], is_fresh: false }
    }
}

/// Starts flows; host addresses end in 10, the other host swallows what comes to port 9.
pub fn send(lab: &MapLab, plans: &[FlowPlan]) -> Traffic {
    let stop = Arc::new(StopFlag::new());
    let mut senders = Vec::new();
    for plan in plans.iter().copied() {
        let open = || {
            let own = Ipv4Addr::new(10, 0, plan.from as u8 + 1, 10);
            let socket = |nth| {
                let socket = UdpSocket::bind((own, plan.first_port + nth)).unwrap();
                socket.set_ttl(TTL).unwrap();
                if !plan.is_fresh {
                    socket.connect((Ipv4Addr::new(10, 0, 2 - plan.from as u8, 10), 9)).unwrap();
                }
                socket
            };
            (0..plan.flows).map(socket).collect::<Vec<UdpSocket>>()
        };
        let sockets = lab.hosts[plan.from].with(open).unwrap();
        // Of several plans the first one has it.
        let sink = lab.hosts[1 - plan.from].with(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 9)).ok()).unwrap();
        let stop = Arc::clone(&stop);
        senders.push(thread::spawn(move || {
            let _sink = sink;
            let payload = vec![7; plan.bytes];
            let (began, mut tick) = (Instant::now(), 0_u64);
            while !stop.is_stopped() {
                let [on, of] = plan.bursts;
                if tick % of < on {
                    for (nth, socket) in sockets.iter().enumerate() {
                        let port = (tick as usize * sockets.len() + nth) % 60_000 + 1_000;
                        let far = (Ipv4Addr::new(10, 0, 2 - plan.from as u8, 10), port as u16);
                        let _ = if plan.is_fresh { socket.send_to(&payload, far) } else { socket.send(&payload) };
                    }
                }
                tick += 1;
                thread::sleep((plan.tick * tick as u32).saturating_sub(began.elapsed()));
            }
        }));
    }
    Traffic { stop, senders }
}
