//! Two hosts, a wire that drops and writes down what it drops, meters at its ends, and traffic.
//!
//! ```text
//!   host ── [zero] ── w0 ══▶ x0 ─ wire: drops, rewrites ─ x1 ══▶ w1 ── [zero] ── host
//!                     meter                                      meter
//!   m0 ─────────────────────── reports ──────────────────────── m1
//! ```
//!
//! The hosts are at `w0` and `w1` themselves, unless something has to happen to packets before a meter sees them: `zero`
//! stands for a kernel that leaves the identification zero.

#![allow(unreachable_pub)]

pub mod processes;
pub mod traffic;
pub mod truth;

use std::fs;
use std::io::{self, PipeWriter};
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use emulator::{DirectionConfig, DirectionCounters, Medium, MediumConfig, Rewrite};
use faults::{FaultSchedule, LossModel};
use linux::capture::Capture;
use linux::net::{InterfaceAddress, Namespace, Netlink};
use linux::packet::{PacketSocket, PacketSocketOptions};
use standin::wire_socket;
use units::{Bytes, Prob, StopFlag};

pub use traffic::Traffic;

const MTU: u32 = 1_500;
/// Frames that a ring of the wire holds: a machine with two processors may look away for long.
const RING: usize = 16_384;

/// Address of an end: 0 on the left, 1 on the right.
pub fn address(end: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, 1 + end as u8)
}

/// Address of the left on the right, where it is rewritten.
pub const OUTSIDE: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 99);

fn mac(end: usize) -> [u8; 6] {
    [0x02, 0x52, 0x41, 0x44, 0x00, 1 + end as u8]
}

/// Address at which the collector listens.
pub const COLLECTOR: &str = "10.78.0.1:7878";

/// One experiment.
#[derive(Clone, Debug)]
pub struct Setup {
    pub seed: u64,
    pub loss: Prob,
    pub rewrite: Rewrite,
    pub traffic: Traffic,
    /// For each end's meter.
    pub meter: [&'static [&'static str]; 2],
    /// For `radar losses`, each way; `None` where captures are not to be compared.
    pub losses: Option<[&'static [&'static str]; 2]>,
    /// Between the ends is a protected link.
    pub protected: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            seed: 1,
            loss: Prob::literal(1e-3),
            rewrite: Rewrite::default(),
            traffic: Traffic::default(),
            meter: [&[]; 2],
            losses: Some([&[]; 2]),
            protected: false,
        }
    }
}

pub struct Lab {
    /// Namespaces of the meters.
    pub ends: [Namespace; 2],
    /// Namespaces of the hosts, if they are not those of the meters.
    hosts: Option<[Namespace; 2]>,
    pub middle: Namespace,
    pub folder: PathBuf,
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Lab {
    /// `None`, and the test is skipped, where no namespace may be made.
    pub fn new(zeroing: bool) -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let middle = testkit::permitted(Namespace::new())?;
        let two = || [Namespace::new().unwrap(), Namespace::new().unwrap()];
        let (ends, hosts) = (two(), zeroing.then(two));
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("hitless-radar-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let lab = Self { ends, hosts, middle, folder };
        for end in 0..2 {
            cable((&lab.middle, ["x0", "x1"][end]), (&lab.ends[end], plug(end)));
            if let Some(hosts) = &lab.hosts {
                cable((&lab.ends[end], "g"), (&hosts[end], "h"));
            }
            lab.give_address(end);
        }
        cable((&lab.ends[0], "m0"), (&lab.ends[1], "m1"));
        for (end, name) in ["m0", "m1"].iter().enumerate() {
            lab.ends[end]
                .with(|| {
                    let netlink = Netlink::open().unwrap();
                    let index = netlink.existing_link(name).unwrap().index;
                    let ip = Ipv4Addr::new(10, 78, 0, 1 + end as u8);
                    netlink.add_address(index, &InterfaceAddress::new(ip.into(), 24)).unwrap();
                })
                .unwrap();
        }
        Some(lab)
    }

    /// Namespace of the host of an end.
    pub fn host(&self, end: usize) -> &Namespace {
        self.hosts.as_ref().map_or(&self.ends[end], |hosts| &hosts[end])
    }

    fn give_address(&self, end: usize) {
        let interface = if self.hosts.is_some() { "h" } else { plug(end) };
        self.host(end)
            .with(|| {
                let netlink = Netlink::open().unwrap();
                netlink.set_loopback_up().unwrap();
                let link = netlink.existing_link(interface).unwrap();
                netlink.set_mac(link.index, mac(end)).unwrap();
                netlink.add_address(link.index, &InterfaceAddress::new(address(end).into(), 24)).unwrap();
                let neighbours: &[Ipv4Addr] = if end == 0 { &[address(1)] } else { &[address(0), OUTSIDE] };
                for neighbour in neighbours {
                    netlink.add_neighbour(link.index, IpAddr::V4(*neighbour), mac(1 - end)).unwrap();
                }
            })
            .unwrap();
        self.ends[end].with(|| Netlink::open().unwrap().set_loopback_up().unwrap()).unwrap();
    }

    /// The wire of an experiment, with its log.
    pub fn wire<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>, setup: &Setup, log: &Path) -> Hop<'scope> {
        let lane = DirectionConfig {
            faults: FaultSchedule::always(LossModel::PerFrame(setup.loss)),
            ..DirectionConfig::default()
        };
        Hop::start(scope, &self.middle, ["x0", "x1"], lane, setup.seed, Some(log), setup.rewrite)
    }

    /// Sets the identification to zero, in place of the kernels of the hosts.
    pub fn zeroing<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) -> Vec<Hop<'scope>> {
        let rewrite = Rewrite { no_ip_id: true, ..Rewrite::default() };
        let start = |end: usize| {
            Hop::start(scope, &self.ends[end], ["g", plug(end)], DirectionConfig::default(), 1, None, rewrite)
        };
        if self.hosts.is_some() { vec![start(0), start(1)] } else { Vec::new() }
    }

    /// Captures what leaves by an end and what arrives there, in two files, until `stop` is set; counts missed frames.
    pub fn capture<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        end: usize,
        stop: &'scope StopFlag,
    ) -> ScopedJoinHandle<'scope, u64> {
        let files = ["out", "came"].map(|way| self.captured(end, way));
        scope.spawn(move || {
            self.ends[end].enter().unwrap();
            let index = Netlink::open().unwrap().existing_wire_of(plug(end)).unwrap().index;
            let both_ways = PacketSocketOptions { outgoing_too: true, ..wire_socket(MTU, RING) };
            let mut socket = PacketSocket::open(index, &both_ways).unwrap();
            let mut captures = files.map(|file| Capture::create(&file, &[plug(end)]).unwrap());
            loop {
                let last = stop.is_stopped();
                let taken = socket.receive(RING, |frame| {
                    captures[usize::from(!frame.outgoing)].write(0, frame.at, frame.bytes).unwrap();
                });
                if last && taken == 0 {
                    break;
                }
                std::thread::sleep(Duration::from_millis(3));
            }
            captures.iter_mut().for_each(|capture| capture.flush().unwrap());
            socket.overflowed()
        })
    }

    pub fn captured(&self, end: usize, way: &str) -> PathBuf {
        self.folder.join(format!("{}-{way}.pcapng", plug(end)))
    }
}

/// The interface that an end's wire is plugged into.
pub fn plug(end: usize) -> &'static str {
    ["w0", "w1"][end]
}

/// Two interfaces joined, each in its namespace, without offloads, up.
pub fn cable(near: (&Namespace, &str), far: (&Namespace, &str)) {
    near.0
        .with(|| {
            let netlink = Netlink::open().unwrap();
            netlink.add_veth(near.1, far.1).unwrap();
            netlink.set_namespace(netlink.existing_link(far.1).unwrap().index, far.0).unwrap();
        })
        .unwrap();
    for (namespace, name) in [near, far] {
        namespace
            .with(|| {
                let netlink = Netlink::open().unwrap();
                let index = netlink.existing_link(name).unwrap().index;
                let _ = netlink.no_ipv6_autoconf(index);
                netlink.set_offloads(name, false).unwrap();
                netlink.set_up(index, true).unwrap();
            })
            .unwrap();
    }
    for (namespace, name) in [near, far] {
        namespace
            .with(|| {
                let netlink = Netlink::open().unwrap();
                netlink.wait_until_running(netlink.existing_link(name).unwrap().index).unwrap();
            })
            .unwrap();
    }
}

/// Something that carries frames between two interfaces, on a thread. Ends when stopped.
pub struct Hop<'scope> {
    stopper: PipeWriter,
    thread: ScopedJoinHandle<'scope, [DirectionCounters; 2]>,
}

impl<'scope> Hop<'scope> {
    fn start(
        scope: &'scope Scope<'scope, '_>,
        namespace: &'scope Namespace,
        names: [&'static str; 2],
        lane: DirectionConfig,
        seed: u64,
        log: Option<&Path>,
        rewrite: Rewrite,
    ) -> Self {
        let config = MediumConfig {
            names: names.map(str::to_owned),
            lanes: [lane.clone(), lane],
            seed,
            queue: Bytes::ZERO,
            flip: false,
            log: log.map(Path::to_owned),
            counters: None,
        };
        let (stop, stopper) = io::pipe().unwrap();
        let (ready, is_ready) = std::sync::mpsc::channel();
        let thread = scope.spawn(move || {
            namespace.enter().unwrap();
            let netlink = Netlink::open().unwrap();
            let options = PacketSocketOptions { send_buffer: 4 << 20, ..wire_socket(MTU, RING) };
            let open = |name| PacketSocket::open(netlink.existing_link(name).unwrap().index, &options).unwrap();
            let medium = Medium::new(config, names.map(open), MTU as usize + 18).unwrap();
            ready.send(()).unwrap();
            medium.rewriting(rewrite).run(&stop, None, &mut |_| ()).unwrap()
        });
        is_ready.recv().unwrap();
        Self { stopper, thread }
    }

    /// Frames that it lost without wanting to.
    pub fn stop(self) -> u64 {
        drop(self.stopper);
        self.thread.join().unwrap().iter().map(|lane| lane.overflowed + lane.too_long).sum()
    }
}
