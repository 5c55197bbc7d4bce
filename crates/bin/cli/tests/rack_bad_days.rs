//! Bad days of a rack: whatever Ethernet carries through hosts that have joined, jumbo frames, no memcached, no namespaces.

mod cable_lab;
mod rack_lab;

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cable_lab::{address, transfer, wait_for};
use linux::net::{Namespace, Netlink};
use linux::packet::PacketSocket;
use rack_lab::Rack;
use standin::wire_socket;

fn ip(host: &Namespace, args: &str) {
    let mut command = Command::new("ip");
    command.args(args.split_whitespace()).stdin(Stdio::null());
    host.prepare(&mut command).unwrap();
    assert!(command.status().unwrap().success(), "ip {args}");
}

/// Sends until it has arrived: the machine may be busy, and neighbours may have to be found first.
fn arrives(what: &str, mut send: impl FnMut(), mut has_arrived: impl FnMut() -> bool) {
    for _ in 0..100 {
        send();
        for _ in 0..20 {
            if has_arrived() {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    panic!("{what} never arrived");
}

/// On the stand-in of the calling thread's namespace.
fn packet_socket() -> PacketSocket {
    let index = Netlink::open().unwrap().existing_link("rack0").unwrap().index;
    PacketSocket::open(index, &wire_socket(1_500, 256)).unwrap()
}

#[test]
fn hosts_that_have_joined_carry_ipv6_vlans_fragments_multicast_and_spanning_tree() {
    let Some(rack) = Rack::new("kinds") else { return };
    let _switch = rack.start(&["--scheduler", "late"]);
    let _joined = [rack.join(0), rack.join(1)];
    let hosts = [&rack.hosts[0], &rack.hosts[1]];
    let six = |host: usize| IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, 1 + host as u16]);
    for (number, host) in hosts.into_iter().enumerate() {
        ip(host, &format!("address add {}/64 dev rack0 nodad", six(number)));
    }
    transfer(hosts[0], hosts[1], six(1), 500_000).unwrap();
    let bind = |host: usize, to: IpAddr| hosts[host].with(|| UdpSocket::bind((to, 0)).unwrap()).unwrap();
    let (near, far) = (bind(0, address(0)), bind(1, address(1)));
    far.set_nonblocking(true).unwrap();
    let mut buffer = vec![0; 10_000];
    let (to, long) = (far.local_addr().unwrap(), vec![7; 8_000]);
    arrives(
        "a datagram of six fragments",
        || _ = near.send_to(&long, to),
        || far.recv(&mut buffer).ok() == Some(8_000),
    );
    let (group, any) = (Ipv4Addr::new(239, 1, 2, 3), bind(1, Ipv4Addr::UNSPECIFIED.into()));
    let IpAddr::V4(here) = address(1) else { unreachable!("an IPv4 address") };
    hosts[1].with(|| any.join_multicast_v4(&group, &here).unwrap()).unwrap();
    any.set_nonblocking(true).unwrap();
    let to = (group, any.local_addr().unwrap().port());
    arrives("multicast", || _ = near.send_to(b"all", to), || any.recv(&mut buffer).ok() == Some(3));
    // Frames between bridges go to a group, hence without a reservation.
    frame_arrives(hosts, [0x01, 0x80, 0xc2, 0, 0, 0], &[0, 38, 0x42, 0x42, 3]);
    let mac = hosts[1].with(|| Netlink::open().unwrap().existing_link("rack0").unwrap().mac).unwrap();
    frame_arrives(hosts, mac, &[0x81, 0, 0, 5, 8, 0]);
    let status = rack.host_status(0).unwrap();
    let count = |name: &str| status["counters"][name].as_u64().unwrap();
    assert!(count("unmarked") > 0 && count("sent") > 300 && count("rx_malformed") == 0, "{status}");
}

/// A frame of any kind from the stand-in of one host to that of the other.
fn frame_arrives(hosts: [&Namespace; 2], to: [u8; 6], kind: &[u8]) {
    let frame = [&to[..], &[2, 0, 0, 0, 0, 0x77], kind, &[0x5a; 50]].concat();
    let seen = AtomicBool::new(false);
    let looks = || (0..4_000).take_while(|_| !seen.load(Ordering::Relaxed));
    let receive = || {
        let mut socket = packet_socket();
        for _ in looks() {
            socket.receive(256, |received| {
                seen.fetch_or(received.bytes[..12] == frame[..12], Ordering::Relaxed);
            });
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    let send = || {
        let mut socket = packet_socket();
        for _ in looks() {
            socket.send_frame(&frame).unwrap();
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| hosts[1].with(receive).unwrap());
        hosts[0].with(send).unwrap();
    });
    assert!(seen.load(Ordering::Relaxed), "{kind:x?} never arrived");
}

#[test]
fn jumbo_frames_are_refused_where_they_do_not_fit_and_counted() {
    let Some(rack) = Rack::new("unequal") else { return };
    // A host whose wire has room for longer frames than the port that they are to leave by.
    let longer = |interface: &'static str| {
        move || {
            let netlink = Netlink::open().unwrap();
            netlink.set_mtu(netlink.existing_link(interface).unwrap().index, 9_000).unwrap();
        }
    };
    rack.middle.with(longer("x0")).unwrap();
    rack.hosts[0].with(longer("w0")).unwrap();
    let _switch = rack.start(&["--buffer", "256KB"]);
    // The switch knows where host 1 is.
    transfer(&rack.hosts[1], &rack.hosts[2], address(2), 10_000).unwrap();
    let near = rack.hosts[0].with(|| UdpSocket::bind((address(0), 0)).unwrap()).unwrap();
    let refused = || {
        _ = near.send_to(&[0; 8_000], (address(1), 9));
        rack.status().unwrap()["ports"][0]["counters"]["too_long"].as_u64() > Some(0)
    };
    wait_for("a jumbo frame to be refused", refused, || format!("{:?}", rack.status()));
}

#[test]
fn a_demonstration_without_memcached_says_so_and_has_its_rows() {
    if testkit::permitted(Namespace::new()).is_none() {
        return;
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_hitless"));
    command.args(["rack", "demo", "--rate", "100M", "--hosts", "3", "--rounds", "1", "--seconds", "0.2", "--json"]);
    let output = command.env("PATH", "/nowhere").stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("memcached is not installed"), "{said}");
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((result["program"].as_str(), result["simulated"].as_bool()), (Some("built-in"), Some(false)));
    assert_eq!(result["rows"].as_array().unwrap().len(), 4 * 3);
}

#[test]
fn where_namespaces_are_forbidden_the_rack_is_simulated_with_the_same_fields() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hitless"));
    command.args(["rack", "demo", "--simulated", "--hosts", "4", "--rounds", "1", "--seconds", "0.2", "--json"]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((result["simulated"].as_bool(), result["valid"].as_bool()), (Some(true), Some(true)));
    let has = |value: &serde_json::Value, names: &str| {
        let found: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
        let mut wanted: Vec<&str> = names.split(' ').collect();
        wanted.sort_unstable();
        assert_eq!(found, wanted);
    };
    has(
        &result,
        "rate_mbps buffer_bytes hosts scheduler program rootless simulated bound_bytes cores valid why_invalid rows",
    );
    let rows = result["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4 * 5);
    for row in rows {
        has(
            row,
            "way background senders gets failed get_p50_us get_p99_us get_p999_us over_100ms background_mbps \
             port_utilisation offered_frames switch_dropped ring_overflow port_peak_bytes refused_by_hosts sent delivered \
             duplicates reordered switch_busy",
        );
        let bound = result["bound_bytes"].as_u64();
        assert!(row["way"] != "pl2" || row["switch_dropped"] == 0 && row["port_peak_bytes"].as_u64() <= bound, "{row}");
    }
}

/// The address of a host's cable.
fn mac_of(host: &Namespace) -> [u8; 6] {
    host.with(|| Netlink::open().unwrap().existing_link("w0").unwrap().mac).unwrap()
}

/// Sends frames in another's name.
fn squat(host: &Namespace, victim: [u8; 6]) {
    let frame = [&[0xff; 6][..], &victim, &[0x88, 0xb5], &[0; 46]].concat();
    let send = || {
        let index = Netlink::open().unwrap().existing_link("w0").unwrap().index;
        PacketSocket::open(index, &wire_socket(1_500, 256)).unwrap().send_frame(&frame).unwrap()
    };
    assert!(host.with(send).unwrap());
}

/// Value of a port's counter.
fn counted(rack: &Rack, port: usize, name: &str) -> u64 {
    rack.status().unwrap()["ports"][port]["counters"][name].as_u64().unwrap()
}

#[test]
fn a_host_whose_cable_was_out_for_a_moment_is_not_locked_out_by_one_that_uses_its_address() {
    let Some(rack) = Rack::new("squat") else { return };
    let _switch = rack.start(&[]);
    transfer(&rack.hosts[0], &rack.hosts[1], address(1), 10_000).unwrap();
    let victim = mac_of(&rack.hosts[1]);
    let set_up = |up: bool| {
        let netlink = Netlink::open().unwrap();
        netlink.set_up(netlink.existing_link("x1").unwrap().index, up).unwrap();
    };
    rack.middle.with(|| set_up(false)).unwrap();
    // The switch gives the address away once its port has been silent for a second.
    let taken = || {
        squat(&rack.hosts[2], victim);
        counted(&rack, 2, "moved") > 0
    };
    wait_for("the squatter", taken, || format!("{:?}", rack.status()));
    rack.middle.with(|| set_up(true)).unwrap();
    // With its first frame the owner has it again, and keeps it while it speaks.
    transfer(&rack.hosts[1], &rack.hosts[0], address(0), 10_000).unwrap();
    squat(&rack.hosts[2], victim);
    transfer(&rack.hosts[0], &rack.hosts[1], address(1), 10_000).unwrap();
    assert!(counted(&rack, 1, "moved") >= 1);
    let said = || std::fs::read_to_string(rack.folder.join("said")).unwrap();
    wait_for("a line in the log", || said().contains("moved from x1 to x2"), said);
}

#[test]
fn a_bound_address_stays_at_its_port() {
    let Some(rack) = Rack::new("bound") else { return };
    let victim = mac_of(&rack.hosts[1]);
    let bind = format!("x1={}", wire::ethernet::Mac(victim));
    let _switch = rack.start(&["--bind", &bind]);
    let refused = || {
        squat(&rack.hosts[2], victim);
        counted(&rack, 2, "foreign_source") >= 5
    };
    // More than a second, in which the owner says nothing.
    std::thread::sleep(Duration::from_millis(1_200));
    wait_for("five refusals", refused, || format!("{:?}", rack.status()));
    assert_eq!(counted(&rack, 2, "moved"), 0);
    transfer(&rack.hosts[0], &rack.hosts[1], address(1), 10_000).unwrap();
}

#[test]
fn bindings_and_ports_that_make_no_sense_are_refused() {
    let refused = |args: &[&str], wanted: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hitless"));
        command.args(["rack", "switch", "x0", "x1", "--rate", "1G"]).args(args).stdin(Stdio::null());
        let (code, said) = cable_lab::outcome(&mut command);
        assert!(code == 2 && said.contains(wanted), "{args:?}: {code} {said}");
    };
    refused(&["--bind", "x0"], "expected PORT=MAC");
    refused(&["--bind", "x7=02:00:00:00:00:01"], "x7 is no port of this switch: expected one of x0, x1");
    refused(&["--bind", "x0=02:00:00"], "expected an Ethernet address");
    refused(&["--bind", "x0=01:00:5e:00:00:01"], "expected an Ethernet address");
    refused(&["--bind", "x0=02:68:69:00:02:00"], "the switch's own address");
    refused(&["--bind", "x0=02:00:00:00:00:01", "--bind", "x1=02:00:00:00:00:01"], "is bound already");
    refused(&["--trust-priority", "x9"], "x9 is no port of this switch");
}
