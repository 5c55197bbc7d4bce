//! Days on which something around the link goes wrong: interfaces that go away, clients that hang, daemons that are
//! killed, hosts that are busy.

use std::os::unix::net::UnixDatagram;
use std::time::Instant;

use units::StopFlag;

use super::*;

/// The builtin of any shell: nothing need be installed for it.
pub(super) fn signal(daemon: &Daemon, name: &str) {
    let status = Command::new("sh").args(["-c", &format!("kill -{name} {}", daemon.0.id())]).status().unwrap();
    assert!(status.success());
}

/// Waits until a daemon ends by itself, however busy the machine is; returns its exit code.
pub(super) fn wait_for_end(daemon: &mut Daemon) -> i32 {
    wait_for("the end of the daemon", || daemon.0.try_wait().unwrap().is_some());
    daemon.0.wait().unwrap().code().unwrap_or(-1)
}

fn at<T: Send>(lab: &Lab, end: usize, scene: impl FnOnce(&Netlink) -> T + Send) -> T {
    lab.stage.ends[end].with(|| scene(&Netlink::open().unwrap())).unwrap()
}

/// A pair of interfaces at one end that lead nowhere else: `s0` can be taken away and made again.
fn make_spare(netlink: &Netlink) {
    netlink.add_veth("s0", "s1").unwrap();
    for name in ["s0", "s1"] {
        let index = netlink.existing_link(name).unwrap().index;
        netlink.set_mtu(index, 1_600).unwrap();
        netlink.set_up(index, true).unwrap();
    }
}

fn addresses(netlink: &Netlink, name: &str) -> Vec<String> {
    let index = netlink.existing_link(name).unwrap().index;
    let mut all: Vec<String> = netlink.addresses(index).unwrap().iter().map(ToString::to_string).collect();
    all.retain(|address| !address.starts_with("fe80"));
    all.sort();
    all
}

fn start(lab: &Lab, args: &[&str]) -> Daemon {
    let mut command = lab.hitless(0, &[&["link", "up", "s0"], args].concat());
    Daemon(command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap())
}

#[test]
fn an_interface_that_goes_away_is_no_wrong_argument() {
    let Some(lab) = Lab::new() else { return };
    at(&lab, 0, make_spare);
    let mut daemon = start(&lab, &[]);
    wait_for("the daemon to answer", || lab.ask(0).is_some());
    at(&lab, 0, |netlink| netlink.delete_link(netlink.existing_wire_of("s0").unwrap().index).unwrap());
    assert_eq!(wait_for_end(&mut daemon), 1, "2 would keep a service manager from starting it again");
    assert!(!lab.has(0, "hit0"));
    // Only wrong arguments give 2.
    for (code, args) in [(2, ["link", "up", "nowhere"]), (2, ["link", "up", "lo"]), (2, ["link", "up", "--mtu"])] {
        let (ended, _, said) = lab.run(0, &args);
        assert_eq!((ended, said.lines().count()), (code, 1), "{said}");
    }
    at(&lab, 0, make_spare);
    at(&lab, 0, |netlink| netlink.set_up(netlink.existing_link("s0").unwrap().index, false).unwrap());
    let (ended, _, said) = lab.run(0, &["link", "up", "s0"]);
    assert!(ended == 1 && said.contains("ip link set dev s0 up"), "{said}");
}

#[test]
fn wait_waits_for_an_interface_that_is_absent_or_down_or_goes_away() {
    let Some(lab) = Lab::new() else { return };
    let mut daemon = start(&lab, &["--wait", "--take-over"]);
    let mut said = BufReader::new(daemon.0.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(said.any(|line| line.contains("no interface s0") && line.contains("waiting")));
    wait_for("an answer of the daemon that waits", || lab.ask(0).is_some_and(|status| status.state == "waiting"));
    let (code, out, _) = lab.run(0, &["link", "status"]);
    assert!(code == 0 && out.contains("hit0 waits for s0: there is no interface s0"), "{out}");
    let (code, _, said_of_it) = lab.run(0, &["link", "activate"]);
    assert!(code == 1 && said_of_it.contains("hit0 waits for its interface"), "{said_of_it}");
    at(&lab, 0, |netlink| {
        make_spare(netlink);
        let index = netlink.existing_link("s0").unwrap().index;
        netlink.add_address(index, &InterfaceAddress::new("192.0.2.7".parse().unwrap(), 24)).unwrap();
    });
    assert!(said.any(|line| line.contains("hit0 stands in for s0")));
    assert_eq!(at(&lab, 0, |netlink| addresses(netlink, "hit0")), ["192.0.2.7/24"]);
    at(&lab, 0, |netlink| netlink.delete_link(netlink.existing_wire_of("s0").unwrap().index).unwrap());
    assert!(said.any(|line| line.contains("s0 is gone")));
    assert_eq!(at(&lab, 0, |netlink| addresses(netlink, "hit0")), ["192.0.2.7/24"], "kept for its return");
    at(&lab, 0, make_spare);
    assert!(said.any(|line| line.contains("hit0 stands in for s0")));
    let (code, out, _) = lab.run(0, &["link", "status", "s0"]);
    assert!(code == 0 && out.starts_with("hit0 stands in for s0"), "by the interface's name, too: {out}");
    signal(&daemon, "TERM");
    assert_eq!(wait_for_end(&mut daemon), 0);
    assert_eq!(at(&lab, 0, |netlink| addresses(netlink, "s0")), ["192.0.2.7/24"]);
    assert_eq!(fs::read_dir(lab.directory(0).path()).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn a_daemon_that_waits_is_ended_by_link_down() {
    let Some(lab) = Lab::new() else { return };
    let mut daemon = start(&lab, &["--wait", "--take-over"]);
    wait_for("an answer of the daemon that waits", || lab.ask(0).is_some_and(|status| status.state == "waiting"));
    assert_eq!(lab.run(0, &["link", "down"]).0, 0);
    assert_eq!(wait_for_end(&mut daemon), 0);
    assert_eq!(fs::read_dir(lab.directory(0).path()).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn a_client_that_hangs_holds_up_neither_scrapes_nor_the_end() {
    let Some(lab) = Lab::new() else { return };
    let mut daemon = lab.up(0, &["--metrics", "9464"]);
    let connect = || lab.stage.ends[0].with(|| TcpStream::connect("127.0.0.1:9464").unwrap()).unwrap();
    let over = StopFlag::new();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            let connect = &connect;
            let over = &over;
            scope.spawn(move || {
                let mut slow = connect();
                while !over.is_stopped() {
                    // Let go after its time, it comes again.
                    if slow.write_all(b"G").is_err() && !over.is_stopped() {
                        match std::panic::catch_unwind(connect) {
                            Ok(again) => slow = again,
                            Err(_) => return,
                        }
                    }
                    std::thread::sleep(Duration::from_millis(20));
                }
            });
        }
        // One that hangs in the middle of a question on the control socket.
        let mut hanging = std::os::unix::net::UnixStream::connect(lab.directory(0).socket("hit0")).unwrap();
        hanging.write_all(b"\"sta").unwrap();
        for _ in 0..5 {
            let mut scrape = connect();
            scrape.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
            let mut text = String::new();
            scrape.read_to_string(&mut text).unwrap();
            assert!(text.contains("hitless_link_wanted"), "{text}");
            assert!(lab.ask(0).is_some());
        }
        signal(&daemon, "TERM");
        assert_eq!(wait_for_end(&mut daemon), 0);
        assert!(!lab.has(0, "hit0"));
        over.stop();
    });
}

#[test]
fn addresses_and_routes_that_came_later_are_carried_back() {
    let Some(lab) = Lab::new() else { return };
    let later = || UnicastRoute::new("198.51.100.0".parse().unwrap(), 24, Some(stage::address(1)));
    for killed in [false, true] {
        lab.stage.address(0, "w0").unwrap();
        let before = at(&lab, 0, |netlink| addresses(netlink, "w0"));
        let mut daemon = lab.up(0, &["--take-over"]);
        at(&lab, 0, |netlink| {
            let index = netlink.existing_link("hit0").unwrap().index;
            netlink.add_address(index, &InterfaceAddress::new("192.0.2.9".parse().unwrap(), 24)).unwrap();
            netlink.add_route(index, &later()).unwrap();
        });
        if killed {
            daemon.kill();
        }
        assert_eq!(lab.run(0, &["link", "down", "hit0"]).0, 0);
        let (has, routes) = at(&lab, 0, |netlink| {
            let index = netlink.existing_link("w0").unwrap().index;
            (addresses(netlink, "w0"), netlink.routes(index).unwrap())
        });
        assert!(before.iter().all(|address| has.contains(address)), "{has:?}");
        assert!(has.contains(&"192.0.2.9/24".to_owned()), "{has:?}");
        assert!(routes.iter().any(|route| route.to_string() == later().to_string()), "{routes:?}");
        at(&lab, 0, |netlink| {
            let index = netlink.existing_link("w0").unwrap().index;
            for address in netlink.addresses(index).unwrap() {
                netlink.delete_address(index, &address).unwrap();
            }
        });
    }
}

/// Datagrams until `enough` of them have come; how long that took.
pub(super) fn arrivals(socket: &UdpSocket, enough: usize) -> Duration {
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    #[expect(clippy::disallowed_methods, reason = "a test measures")]
    let start = Instant::now();
    let mut buffer = [0; 2_000];
    for _ in 0..enough {
        socket.recv(&mut buffer).unwrap();
    }
    start.elapsed()
}

#[test]
fn a_killed_daemon_that_nobody_restarts_leaves_a_link_that_passes_frames() {
    for backend in ["tap", "veth"] {
        let Some(lab) = Lab::new() else { return };
        for end in 0..2 {
            lab.stage.address(end, stage::plug(end)).unwrap();
        }
        let daemons = [0, 1].map(|end| lab.up(end, &["--take-over", "--mtu", "1500", "--backend", backend]));
        lab.wait_until_protected();
        let sockets = [0, 1]
            .map(|end| lab.stage.ends[end].with(|| UdpSocket::bind((stage::address(end), 9_000)).unwrap()).unwrap());
        let [mut left, _right] = daemons;
        let stop = StopFlag::new();
        let silences = std::thread::scope(|scope| {
            for end in 0..2 {
                let (from, to, stop) = (&sockets[end], sockets[1 - end].local_addr().unwrap(), &stop);
                scope.spawn(move || witness::send(from, to, 1_000, 200, stop));
            }
            for socket in &sockets {
                arrivals(socket, 100);
            }
            left.kill();
            for socket in &sockets {
                // Frames that are in the queue already arrived before.
                socket.set_nonblocking(true).unwrap();
                while socket.recv(&mut [0; 2_000]).is_ok() {}
                socket.set_nonblocking(false).unwrap();
            }
            let silences = std::panic::catch_unwind(|| [0, 1].map(|end| arrivals(&sockets[end], 100)));
            stop.stop();
            silences.unwrap()
        });
        eprintln!("{backend}: a hundred datagrams each way within {silences:?} of kill -9");
        assert!(lab.ask(0).is_none(), "nobody serves it");
        // A second is promised, of which a busy machine may take its share.
        assert!(silences.iter().all(|silence| *silence < Duration::from_secs(5)), "{silences:?}");
        let (code, _, said) = lab.run(0, &["link", "status", "hit0"]);
        assert!(code == 1 && said.contains("its daemon is gone, frames pass unprotected"), "{said}");
        // The next daemon takes the frames back, and the end leaves nothing behind.
        let mut again = lab.up(0, &["--take-over", "--mtu", "1500", "--backend", backend]);
        lab.wait_until_protected();
        signal(&again, "TERM");
        assert_eq!(wait_for_end(&mut again), 0);
        assert_eq!(fs::read_dir(lab.directory(0).path()).unwrap().count(), 0);
        assert!(!lab.has(0, "hit0"));
    }
}

#[test]
fn a_link_that_must_not_pass_unprotected_frames_fails_closed() {
    let Some(lab) = Lab::new() else { return };
    let mut daemon = lab.up(0, &["--init-action", "block"]);
    daemon.kill();
    let filters = || {
        at(&lab, 0, |netlink| {
            let index = netlink.existing_link("hit0").unwrap().index;
            netlink.qdisc_statistics(index, linux::net::Qdisc::Clsact).unwrap()
        })
    };
    // A keeper, if there were one, would have set its filters long before.
    for _ in 0..20 {
        assert_eq!(filters(), None, "nothing passes frames on");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(lab.run(0, &["link", "down", "hit0"]).0, 0);
}

#[test]
fn frames_that_a_stopped_daemon_never_saw_are_counted() {
    const SENT: u64 = 20_000;
    let Some(lab) = Lab::new() else { return };
    let daemons = lab.protected();
    let sockets =
        [0, 1].map(|end| lab.stage.ends[end].with(|| UdpSocket::bind((stage::address(end), 9_000)).unwrap()).unwrap());
    let to = sockets[1].local_addr().unwrap();
    signal(&daemons[0], "STOP");
    for _ in 0..SENT {
        sockets[0].send_to(&[7; 64], to).unwrap();
    }
    signal(&daemons[0], "CONT");
    wait_for("the daemon to have sent what it has", || {
        lab.ask(0).is_some_and(|status| status.queued_bytes == 0 && status.tx_buffered_bytes == 0)
    });
    let status = lab.ask(0).unwrap();
    let counter = |name: &str| status.counters[name];
    assert!(counter("host_overflow") > 0, "its queue has a thousand places");
    let entered = counter("host_rx_frames") + counter("host_overflow");
    // Others may have sent a frame or two: neighbours are asked for.
    assert!((SENT..SENT + 100).contains(&entered), "{entered}");
}

#[test]
fn what_entered_a_busy_link_is_sent_or_dropped_and_all_of_it_is_counted() {
    let Some(lab) = Lab::new() else { return };
    let _daemons = lab.protected();
    let sockets =
        [0, 1].map(|end| lab.stage.ends[end].with(|| UdpSocket::bind((stage::address(end), 9_000)).unwrap()).unwrap());
    let to = sockets[1].local_addr().unwrap();
    let (stop, done) = (StopFlag::new(), StopFlag::new());
    let (sent, report) = std::thread::scope(|scope| {
        // Somebody on every processor who never gives way.
        for _ in 0..std::thread::available_parallelism().unwrap().get() {
            scope.spawn(|| {
                while !stop.is_stopped() {
                    std::hint::spin_loop();
                }
            });
        }
        let receiver = scope.spawn(|| witness::receive(&sockets[1], &stop));
        let sender = scope.spawn(|| witness::send(&sockets[0], to, 6_000, 64, &done));
        std::thread::sleep(Duration::from_secs(2));
        done.stop();
        let sent = sender.join().unwrap().unwrap();
        wait_for("the link to be empty", || {
            lab.ask(0).is_some_and(|status| status.queued_bytes == 0 && status.tx_buffered_bytes == 0)
        });
        std::thread::sleep(Duration::from_millis(500));
        stop.stop();
        (sent, receiver.join().unwrap().unwrap())
    });
    let (near, far) = (lab.ask(0).unwrap().counters, lab.ask(1).unwrap().counters);
    let dropped_near = near["queue_dropped"] + near["gate_dropped"] + near["no_buffer"];
    assert_eq!(near["host_rx_frames"], near["tx_ok"] + near["tx_plain"] + dropped_near, "{near:?}");
    assert_eq!((report.duplicates, report.out_of_order, report.corrupted), (0, 0, 0), "{report:?}");
    let lost = sent - report.received - report.overrun;
    let counted = dropped_near
        + near["host_overflow"]
        + near["wire_refused"]
        + near["flushed"]
        + far["given_up"]
        + far["host_refused"]
        + far["no_buffer"];
    assert!(lost <= counted, "{lost} of {sent} are missing, {counted} are counted: {near:?} {far:?}");
}

#[test]
fn a_service_manager_is_told_that_the_loop_goes_round() {
    let Some(lab) = Lab::new() else { return };
    let path = lab.folder.join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut command = lab.hitless(0, &["link", "up", "w0", "--wait"]);
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "400000");
    let _daemon = Daemon(command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let mut pings = 0;
    while pings < 5 {
        let mut buffer = [0; 500];
        let len = socket.recv(&mut buffer).unwrap();
        pings += usize::from(buffer[..len].starts_with(b"WATCHDOG=1"));
    }
}

/// The system calls that change something, or write down that it will be changed.
const CHANGING: &str = "sendto,sendmsg,ioctl,rename,unlink,openat,mkdir,socket,bind";

#[test]
fn a_crash_at_any_system_call_is_put_right_by_the_next_up_and_down() {
    if !testkit::installed("strace") {
        return;
    }
    let Some(lab) = Lab::new() else { return };
    lab.stage.address(0, "w0").unwrap();
    at(&lab, 0, |netlink| {
        let index = netlink.existing_link("w0").unwrap().index;
        let route = UnicastRoute::new("192.0.2.0".parse().unwrap(), 24, Some(stage::address(1)));
        netlink.add_route(index, &route).unwrap();
    });
    let state = || {
        at(&lab, 0, |netlink| {
            let link = netlink.existing_link("w0").unwrap();
            let routes: Vec<String> = netlink.routes(link.index).unwrap().iter().map(ToString::to_string).collect();
            let clsact = netlink.qdisc_statistics(link.index, linux::net::Qdisc::Clsact).unwrap().is_some();
            let gro = netlink.offload("w0", linux::net::Offload::Gro).unwrap();
            (addresses(netlink, "w0"), routes, clsact, gro, netlink.link("hit0").unwrap().is_some())
        })
    };
    let before = state();
    let mut crashes = 0;
    for call in CHANGING.split(',') {
        for nth in 1.. {
            let traced = lab.hitless(0, &["link", "up", "w0", "--take-over"]);
            let mut strace = Command::new("strace");
            strace.args(["-qq", "-o", "/dev/null", "-e"]).arg(format!("trace={call}"));
            strace.args(["-e", &format!("inject={call}:signal=SIGKILL:when={nth}")]);
            strace.arg(traced.get_program()).args(traced.get_args());
            strace.env("HITLESS_RUN_DIR", lab.directory(0).path());
            strace.env(daemon::keeper::LAB, std::process::id().to_string());
            lab.stage.ends[0].prepare(&mut strace).unwrap();
            let mut daemon = Daemon(strace.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
            let mut survived = false;
            wait_for("a crash or a link", || {
                survived = daemon.0.try_wait().unwrap().is_none() && lab.ask(0).is_some();
                survived || daemon.0.try_wait().unwrap().is_some()
            });
            if survived {
                let (code, _, said) = lab.run(0, &["link", "down", "hit0"]);
                assert_eq!(code, 0, "{call} {nth}: {said}");
                let crashed = !daemon.0.wait().unwrap().success();
                assert_eq!(state(), before, "{call} {nth}, on the way down");
                if crashed {
                    crashes += 1;
                    continue;
                }
                break;
            }
            crashes += 1;
            if nth % 2 == 0 {
                // The next daemon carries on, and its orderly end puts all back.
                let mut next = lab.up(0, &["--take-over"]);
                assert_eq!(at(&lab, 0, |netlink| addresses(netlink, "hit0")), before.0, "{call} {nth}");
                signal(&next, "TERM");
                assert_eq!(wait_for_end(&mut next), 0, "{call} {nth}");
            } else {
                // There may be nothing to put back yet.
                lab.run(0, &["link", "down", "hit0"]);
            }
            assert_eq!(state(), before, "after a crash at {call} number {nth}");
        }
    }
    eprintln!("{crashes} crashes put right");
    assert!(crashes > 20, "{crashes}");
}

#[test]
fn the_shipped_unit_restarts_always_waits_and_is_watched() {
    let unit = include_str!("../../../../../contrib/systemd/hitless-link@.service");
    let has = |line: &str| assert!(unit.lines().any(|there| there == line), "{line}");
    has("ExecStart=/usr/local/bin/hitless link up %I --wait --config /etc/hitless/%i.toml");
    has("ExecStopPost=-/usr/local/bin/hitless link down --unless-restarting --config /etc/hitless/%i.toml");
    has("Restart=always");
    has("KillMode=process");
    has("RestartPreventExitStatus=2");
    has("StartLimitIntervalSec=0");
    has("WatchdogSec=2");
    has("OOMScoreAdjust=-900");
    has("WantedBy=sys-subsystem-net-devices-%i.device");
    let Some(lab) = Lab::new() else { return };
    let file = lab.folder.join("eth1.toml");
    fs::write(&file, include_str!("../../../../../contrib/systemd/eth1.toml").replace("9464", "0")).unwrap();
    let config = ["--config", file.to_str().unwrap()];
    let mut daemon = lab.start(0, &[&["--wait"], &config[..]].concat());
    wait_for("the daemon to answer", || lab.ask(0).is_some());
    daemon.kill();
    let down = |result: &str| {
        let mut command = lab.hitless(0, &[&["link", "down", "--unless-restarting"], &config[..]].concat());
        command.env("SERVICE_RESULT", result);
        outcome(command).0
    };
    // Before a restart the stand-in stays; after a stop that ended in a kill everything is put back.
    assert_eq!((down("signal"), lab.has(0, "hit0")), (0, true));
    assert_eq!((down("timeout"), lab.has(0, "hit0")), (0, false));
    assert_eq!(down("success"), 0, "nothing left to do is no failure");
}
