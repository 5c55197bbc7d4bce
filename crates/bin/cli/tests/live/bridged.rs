//! Hosts at a bridge or a hub instead of a cable: nothing is flooded to a third host, and nobody believes another's stamps.

use lab::stage::{BridgeKind, BridgeWitness, BridgedStage, FloodedFrames};
use wire::Seq;
use wire::link::{AddressStamp, Class, SegmentSpan, StampTag, StampableFrame, StampedData};

use super::*;

/// Hosts at a bridge, and a folder for the run directory of each.
struct BridgedLab {
    stage: BridgedStage,
    folder: PathBuf,
}

/// Time of a test's traffic, in seconds; the environment may ask for longer.
fn span() -> Duration {
    let asked = std::env::var("HITLESS_TEST_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(asked.unwrap_or(4))
}

impl BridgedLab {
    /// `None`, and the test is skipped, where no namespace may be made.
    fn new(hosts: usize, kind: BridgeKind) -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        testkit::permitted(Namespace::new())?;
        let stage = BridgedStage::new(hosts, 1_600, kind).unwrap();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("hitless-bridged-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Some(Self { stage, folder })
    }

    fn directory(&self, host: usize) -> RunDirectory {
        RunDirectory::at(self.folder.join(host.to_string()))
    }

    fn ask(&self, host: usize) -> Option<LinkStatus> {
        match self.directory(host).ask("hit0", LinkRequest::Status) {
            Ok(LinkReply::Status(status)) => Some(*status),
            _ => None,
        }
    }

    fn status(&self, host: usize) -> LinkStatus {
        self.ask(host).unwrap()
    }

    /// A daemon at each host that knows its peer, the host next to it; all of them protected.
    fn up(&self) -> Vec<Daemon> {
        let daemons = (0..self.stage.hosts.len()).map(|host| {
            let peer = wire::ethernet::Mac(stage::mac(host ^ 1)).to_string();
            let mut command = Command::new(env!("CARGO_BIN_EXE_hitless"));
            command.args(["link", "up", stage::plug(host), "--mtu", "1500", "--peer", &peer]);
            command.env("HITLESS_RUN_DIR", self.directory(host).path());
            command.env(daemon::keeper::LAB, std::process::id().to_string());
            self.stage.hosts[host].prepare(&mut command).unwrap();
            let daemon = Daemon(command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
            wait_for("the daemon to answer", || self.ask(host).is_some());
            self.stage.address(host, "hit0").unwrap();
            daemon
        });
        let daemons = daemons.collect();
        let hosts = 0..self.stage.hosts.len();
        let mut is_active = || hosts.clone().all(|host| self.ask(host).is_some_and(|status| status.is_active()));
        wait_for("protection", &mut is_active);
        daemons
    }

    /// Bulk TCP from each even host to the one next to it, until the time is over; `look` is called all the while.
    fn load(&self, span: Duration, mut look: impl FnMut()) -> u64 {
        let (stop, clock) = (StopFlag::new(), linux::clock::Clock::start());
        let bytes = std::sync::atomic::AtomicU64::new(0);
        std::thread::scope(|scope| {
            for from in (0..self.stage.hosts.len()).step_by(2) {
                stage::serve(&self.stage.hosts[from + 1], scope, &stop).unwrap();
                let (stop, bytes, host) = (&stop, &bytes, &self.stage.hosts[from]);
                scope.spawn(move || {
                    host.enter().unwrap();
                    let to = std::net::SocketAddr::new(stage::address(from + 1), stage::PORT);
                    while let Ok(check) = load::transfer(to, 5_000_000, 7, stop) {
                        assert!(check.is_intact());
                        bytes.fetch_add(5_000_000, Ordering::Relaxed);
                    }
                });
            }
            // On a busy machine, until something has arrived in any case.
            while clock.elapsed() < span || bytes.load(Ordering::Relaxed) == 0 && clock.elapsed() < 10 * span {
                look();
                std::thread::sleep(Duration::from_millis(2));
            }
            stop.stop();
        });
        look();
        bytes.into_inner()
    }
}

impl BridgedLab {
    /// The same with numbered datagrams beside, of which the far hosts report.
    fn load_with_datagrams(&self, span: Duration) -> (u64, Vec<witness::WitnessReport>) {
        let pairs = (0..self.stage.hosts.len()).step_by(2);
        let sockets: Vec<[UdpSocket; 2]> = pairs
            .map(|near| {
                let bind = |host: usize| UdpSocket::bind((stage::address(host), 9_000)).unwrap();
                [near, near + 1].map(|host| self.stage.hosts[host].with(|| bind(host)).unwrap())
            })
            .collect();
        let (sending, receiving) = (StopFlag::new(), StopFlag::new());
        std::thread::scope(|scope| {
            let (sending, receiving) = (&sending, &receiving);
            let receive = |far| scope.spawn(move || witness::receive(far, receiving).unwrap());
            let receivers: Vec<_> = sockets.iter().map(|[_, far]| receive(far)).collect();
            for [near, far] in &sockets {
                let to = far.local_addr().unwrap();
                scope.spawn(move || witness::send(near, to, 1_000, 200, sending).unwrap());
            }
            let bytes = self.load(span, || ());
            sending.stop();
            std::thread::sleep(Duration::from_millis(300));
            receiving.stop();
            (bytes, receivers.into_iter().map(|receiver| receiver.join().unwrap()).collect())
        })
    }
}

impl Drop for BridgedLab {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn a_third_host_at_a_bridge_that_loses_frames_receives_none_of_the_conversation() {
    for passes_reserved in [false, true] {
        let Some(lab) = BridgedLab::new(2, BridgeKind { passes_reserved, ..BridgeKind::default() }) else { return };
        lab.stage.set_loss(0, units::Prob::literal(0.05)).unwrap();
        let mut witness = lab.stage.witness().unwrap();
        let _daemons = lab.up();
        // Until the other host has said something, frames for it are flooded, as any are.
        let before = witness.look().frames;
        let bytes = lab.load(span(), || _ = witness.look());
        let (seen, invented) = (witness.look(), lab.stage.invented().unwrap());
        let seen = FloodedFrames { frames: seen.frames - before, ..seen };
        let stamps = [0, 1].map(|host| lab.status(host).stamp);
        eprintln!(
            "{:?} s, {bytes} bytes, reserved addresses {}: the third host received {} frames, {} of them stamped; {} invented addresses",
            span().as_secs(),
            if passes_reserved { "passed on" } else { "kept" },
            seen.frames,
            seen.stamped,
            invented.len()
        );
        assert!(bytes > 0);
        assert_eq!((seen.frames, seen.stamped, invented), (0, 0, vec![]));
        assert!(stamps.iter().all(|stamp| stamp.state != "used"), "{stamps:?}");
        // It forgets: ordinary frames are flooded until it knows the hosts again, and stamped ones never come.
        lab.load(span() / 4, || {
            lab.stage.forget().unwrap();
            witness.look();
        });
        assert_eq!((witness.look().stamped, lab.stage.invented().unwrap()), (0, vec![]));
        for host in 0..2 {
            assert_eq!(lab.status(host).counters["tx_stamped"], 0);
        }
    }
}

#[test]
fn two_pairs_on_a_hub_get_no_frame_twice_and_none_of_the_others() {
    for passes_reserved in [false, true] {
        let Some(lab) = BridgedLab::new(4, BridgeKind { is_hub: true, passes_reserved }) else { return };
        let _daemons = lab.up();
        let (bytes, reports) = lab.load_with_datagrams(span());
        for report in reports {
            eprintln!("datagrams: {report:?}");
            assert_eq!((report.duplicates, report.corrupted, report.out_of_order), (0, 0, 0));
            assert!(report.received > 0);
        }
        for host in 0..4 {
            let status = lab.status(host);
            let count = |name: &str| status.counters[name];
            eprintln!(
                "{:?} s, {bytes} bytes, host {host}: {} duplicates among {} sent again, {} bad, {} of strangers, {} given up, stamps {:?}",
                span().as_secs(),
                count("rx_duplicate_seq"),
                count("rx_replay"),
                count("rx_bad") + count("rx_stamp_bad"),
                count("rx_stranger") + count("rx_stamp_stranger"),
                status.given_up,
                status.stamp
            );
            assert_eq!(["rx_bad", "rx_stamp_bad", "rx_stamped"].map(count), [0; 3], "host {host}");
            // On a busy machine a ring may overflow, and what is sent again may come twice: from the peer, and nobody else.
            assert!(count("rx_duplicate_seq") <= count("rx_replay"), "host {host}: {:?}", status.counters);
            assert!(count("rx_stranger") > 0, "it is a hub");
            assert!(status.stamp.state != "used" && status.is_active());
        }
    }
}

/// A stamped frame for anybody: a datagram for port 9000, or a segment of TCP.
fn forged(random: &mut faults::Random, number: u32, protocol: u8) -> Vec<u8> {
    let seq = random.below(1 << 32) as u32;
    let stamp = StampedData {
        tag: StampTag::from_bits(random.below(1 << 16) as u16),
        frame: StampableFrame {
            class: Class::Ordered,
            number: Seq::new(number as u16, number >> 16 & 1 != 0),
            acknowledges: number.is_multiple_of(2).then_some((Class::Ordered, Seq::new(number as u16, false))),
        },
        run: SegmentSpan { first: seq as u16, size: 1_000 },
        pushed: false,
    };
    let transport = match protocol {
        6 => {
            [&[0, 80, 35, 40][..], &seq.to_be_bytes(), &[0, 0, 0, 9, 0x50, 0x18, 1, 0, 0, 0, 0, 0], b"forged"].concat()
        }
        _ => [&[35, 40, 35, 40, 0, 14, 0, 0][..], b"forged"].concat(),
    };
    let mut ip = vec![0x45, 0, 0, 20 + transport.len() as u8, 0, 0, 0x40, 0, 64, protocol, 0, 0];
    ip.extend([10, 77, 0, 1, 10, 77, 0, 2]);
    let checksum = wire::checksum::Sum::of(&ip).checksum();
    ip[10..12].copy_from_slice(&checksum);
    [&AddressStamp::Data(stamp).emit()[..], &[8, 0], &ip, &transport].concat()
}

/// `stamp_forge`: every 900th number, four times each way, with tags drawn at random.
fn forge_stamps(witness: &mut BridgeWitness, random: &mut faults::Random) -> u64 {
    let mut sent = 0;
    for number in (0..1 << 17).step_by(900) {
        for protocol in [17, 17, 17, 17, 6, 6, 6, 6] {
            witness.send(&forged(random, number, protocol));
            sent += 1;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    sent
}

#[test]
fn stamps_of_a_third_host_reach_no_application_and_move_no_window() {
    // Across a bridge stamps are not used; across a hub that passes everything on they are, until others speak.
    let kinds = [BridgeKind::default(), BridgeKind { is_hub: true, passes_reserved: true }];
    for (kind, state) in kinds.into_iter().zip(["unanswered", "used"]) {
        let Some(lab) = BridgedLab::new(2, kind) else { return };
        let mut witness = lab.stage.witness().unwrap();
        let _daemons = lab.up();
        wait_for(state, || (0..2).all(|host| lab.status(host).stamp.state == state));
        let sockets = [0, 1].map(|host| {
            let socket = || UdpSocket::bind((stage::address(host), 9_000)).unwrap();
            lab.stage.hosts[host].with(socket).unwrap()
        });
        let sent = forge_stamps(&mut witness, &mut faults::Random::new(3, 1));
        let (stop, sending, to) = (StopFlag::new(), StopFlag::new(), sockets[1].local_addr().unwrap());
        let (honest, report) = std::thread::scope(|scope| {
            let receiver = scope.spawn(|| witness::receive(&sockets[1], &stop).unwrap());
            let sender = scope.spawn(|| witness::send(&sockets[0], to, 1_000, 200, &sending).unwrap());
            std::thread::sleep(Duration::from_millis(300));
            sending.stop();
            let honest = sender.join().unwrap();
            std::thread::sleep(Duration::from_millis(300));
            stop.stop();
            (honest, receiver.join().unwrap())
        });
        eprintln!("{sent} forged stamps, stamps {state}: {} of {honest} honest datagrams arrived", report.received);
        assert_eq!((report.received, report.corrupted), (honest, 0), "{state}");
        for host in 0..2 {
            let status = lab.status(host);
            let count = |name: &str| status.counters[name];
            assert_eq!((status.given_up, count("rx_missing_seq"), count("flushed")), (0, 0, 0), "{state}");
            assert!(count("rx_stamp_stranger") > 0 && count("rx_stamped") == 0, "{:?}", status.counters);
        }
    }
}
