//! Interfaces that others stand on: bridges, macvlans, rules, neighbours, routes of other tables. `link up` takes their
//! place or refuses; it never cuts anything off without a word.

mod cable_lab;

use std::fs;
use std::process::{Command, Stdio};

use cable_lab::{Daemon, Lab, address, transfer, wait_for};
use linux::net::Namespace;

/// A lab whose left end is a bridge between the wire and a guest, who has the left end's address.
fn with_guest(wire_mtu: u32) -> Option<(Lab, Namespace)> {
    let lab = Lab::new(wire_mtu)?;
    if !testkit::installed("ip") {
        return None;
    }
    let guest = Namespace::new().unwrap();
    lab.ip(0, "link add br0 type bridge");
    lab.ip(0, "link set br0 up");
    lab.ip(0, "link set w0 master br0");
    lab.ip(0, "link add g0 type veth peer name g1");
    lab.ip(0, "link set g0 master br0 up");
    lab.with(0, |netlink| netlink.set_namespace(netlink.existing_link("g1").unwrap().index, &guest).unwrap());
    guest
        .with(|| {
            let netlink = linux::net::Netlink::open().unwrap();
            let index = netlink.existing_link("g1").unwrap().index;
            netlink.set_up(index, true).unwrap();
            netlink.add_address(index, &linux::net::InterfaceAddress::new(address(0), 24)).unwrap();
        })
        .unwrap();
    Some((lab, guest))
}

fn reaches(lab: &Lab, guest: &Namespace, what: &str) {
    let there = transfer(&lab.ends[1], guest, address(0), 3_000_000);
    there.unwrap_or_else(|error| panic!("{what}, to the guest: {error}"));
    let back = transfer(guest, &lab.ends[1], address(1), 3_000_000);
    back.unwrap_or_else(|error| panic!("{what}, from the guest: {error}"));
}

fn refused(lab: &Lab, args: &[&str], why: &[&str]) {
    let (code, said) = lab.run(0, &[&["link", "up", "w0"], args].concat());
    assert!(code != 0 && said.lines().count() == 1, "{said}");
    assert!(why.iter().all(|part| said.contains(part)), "{said}");
    assert!(lab.with(0, |netlink| netlink.link("hit0").unwrap().is_none()), "something was left");
}

#[test]
fn a_bridge_port_is_not_cut_off_without_a_word() {
    let Some((lab, guest)) = with_guest(1_500) else { return };
    lab.give_address(1, "w1");
    reaches(&lab, &guest, "before");
    refused(&lab, &[], &["w0 is a port of the bridge br0", "--take-over"]);
    // The guest sends frames of 1,500 bytes, for which hit0 would have no room.
    refused(&lab, &["--take-over"], &["would have MTU 14", "`ip link set dev w0 mtu 15"]);
    reaches(&lab, &guest, "after");
}

#[test]
fn a_port_of_a_bridge_that_filters_vlans_is_refused() {
    let Some((lab, _guest)) = with_guest(1_600) else { return };
    if lab.try_ip(0, "link set br0 type bridge vlan_filtering 1").is_err() {
        // This kernel's bridges cannot; `standin::uppers` is tested without them.
        return;
    }
    refused(&lab, &["--take-over"], &["filters VLANs", "bridge vlan add dev hit0"]);
}

#[test]
fn hit0_becomes_the_bridge_port_and_what_is_behind_it_is_reached_until_w0_is_the_port_again() {
    for backend in ["tap", "veth"] {
        let Some((lab, guest)) = with_guest(1_600) else { return };
        lab.ip(0, "link set w0 type bridge_slave cost 77 isolated on");
        let port = || lab.ip(0, "-d -o link show master br0");
        let of = |name: &str| port().lines().find(|line| line.contains(name)).map(str::to_owned).unwrap_or_default();
        assert!(of("w0").contains("cost 77") && of("w0").contains("isolated on"), "{}", port());
        lab.give_address(1, "w1");
        let _right = lab.up(1, &["--take-over", "--backend", backend]);
        let mut left = lab.up(0, &["--take-over", "--backend", backend]);
        lab.wait_until_said(0, "hit0 is the port of br0 instead of w0");
        assert!(
            of("w0w").is_empty()
                && of("altname hit0").contains("cost 77")
                && of("altname hit0").contains("isolated on"),
            "{}",
            port()
        );
        lab.wait_until_protected();
        reaches(&lab, &guest, backend);
        let (code, said) = lab.run(0, &["link", "down"]);
        assert_eq!(code, 0, "{said}");
        assert!(left.0.wait().unwrap().success());
        assert!(of("w0@").contains("cost 77") && of("w0@").contains("isolated on"), "{}", port());
        reaches(&lab, &guest, "after down");
    }
}

#[test]
fn down_gives_the_port_back_after_a_killed_daemon() {
    let Some((lab, _guest)) = with_guest(1_600) else { return };
    let mut daemon = lab.up(0, &["--take-over"]);
    daemon.0.kill().unwrap();
    daemon.0.wait().unwrap();
    let (code, said) = lab.run(0, &["link", "down", "hit0"]);
    assert_eq!(code, 0, "{said}");
    let ports = lab.ip(0, "-o link show master br0");
    assert!(ports.contains("w0@") && !ports.contains("hit0"), "{ports}");
}

#[test]
fn an_interface_with_macvlans_is_refused() {
    let Some(lab) = Lab::new(1_500) else { return };
    if !testkit::installed("ip") {
        return;
    }
    for kind in ["macvlan", "ipvlan", "vlan id 5"] {
        if let Err(error) = lab.try_ip(0, &format!("link add link w0 name upper type {kind}")) {
            assert!(error.contains("Unknown device type"), "{error}");
            continue;
        }
        let kind = kind.split(' ').next().unwrap();
        for args in [&[][..], &["--take-over"]] {
            refused(&lab, args, &[&format!("w0 carries upper ({kind})"), "ip link add link hit0"]);
        }
        lab.ip(0, "link del upper");
    }
}

#[test]
fn routes_of_other_tables_rules_and_written_down_neighbours_move_with_a_take_over_and_back() {
    let Some(lab) = Lab::new(1_600) else { return };
    if !testkit::installed("ip") {
        return;
    }
    lab.give_address(0, "w0");
    lab.ip(0, "route add 192.0.2.0/24 via 10.77.0.9 dev w0 table 100");
    lab.ip(0, "rule add iif w0 lookup 100 pref 500");
    lab.ip(0, "neigh add 10.77.0.9 lladdr 02:00:00:00:00:09 dev w0 nud permanent");
    let seen = || ["route show table 100", "rule show", "neigh show"].map(|what| lab.ip(0, what));
    let before = seen();
    for (args, name) in [(&["--take-over"][..], "w0"), (&["--take-over", "--keep-name"], "hit0")] {
        let _daemon = lab.up(0, args);
        let [routes, rules, neighbours] = seen();
        assert!(routes.contains(&format!("192.0.2.0/24 via 10.77.0.9 dev {name}")), "{routes}");
        assert!(rules.contains(&format!("iif {name} lookup 100")), "{rules}");
        let neighbour = format!("10.77.0.9 dev {name} lladdr 02:00:00:00:00:09 PERMANENT");
        assert!(neighbours.contains(&neighbour), "{neighbours}");
        let (code, said) = lab.run(0, &["link", "down"]);
        assert_eq!(code, 0, "{said}");
        assert_eq!(seen(), before);
    }
}

/// Everything that stands on an interface, comparable between the wire and its stand-in; nothing if it is not there.
fn standing(lab: &Lab, name: &str) -> Option<String> {
    lab.with(0, |netlink| {
        let link = netlink.link(name).unwrap()?;
        let port = (link.master, netlink.port_settings(link.index).unwrap());
        let rules = netlink.rules_renamed("w0", "any").unwrap();
        let neighbours = netlink.static_neighbours(link.index).unwrap();
        let addresses = netlink.addresses(link.index).unwrap();
        let addresses: Vec<_> =
            addresses.iter().filter(|address| address.ip().is_ipv4()).map(|a| a.to_string()).collect();
        let altnames: Vec<_> = link.altnames.iter().filter(|name| *name != "hit0").collect();
        let filter = linux::net::settings(&link.name).unwrap()["ipv4/conf/rp_filter"].clone();
        Some(format!("{port:?} {rules:?} {neighbours:?} {addresses:?} {altnames:?} {filter}"))
    })
}

/// `link up w0 --take-over` under `strace`, which is given these arguments.
fn traced(lab: &Lab, args: &[&str]) -> Daemon {
    let up = lab.hitless(0, &["link", "up", "w0", "--take-over"]);
    let mut strace = Command::new("strace");
    strace.args(["-qq", "-e", "trace=write"]).args(args).arg(up.get_program()).args(up.get_args());
    strace.env("HITLESS_RUN_DIR", lab.directory(0).path()).stdin(Stdio::null()).stderr(Stdio::null());
    lab.ends[0].prepare(&mut strace).unwrap();
    Daemon(strace.spawn().unwrap())
}

fn take_down(lab: &Lab, daemon: &mut Daemon) {
    let (code, said) = lab.run(0, &["link", "down"]);
    assert_eq!(code, 0, "{said}");
    assert!(daemon.0.wait().unwrap().success());
}

/// Numbers, from 1 on, of the writes until a link is up that change the kernel's configuration or the notes.
fn changing_writes(lab: &Lab) -> Vec<usize> {
    let log = lab.folder.join("writes");
    let mut daemon = traced(lab, &["-xx", "-s", "6", "-o", log.to_str().unwrap()]);
    wait_for("the daemon to answer", || lab.status(0).is_some(), String::new);
    let writes = fs::read_to_string(&log).unwrap();
    take_down(lab, &mut daemon);
    let is_change = |line: &str| {
        let text = line.split('"').nth(1).unwrap_or_default();
        let bytes: Vec<u8> = text.split("\\x").skip(1).map(|hex| u8::from_str_radix(hex, 16).unwrap()).collect();
        match bytes[..] {
            // `nlmsghdr`: of rtnetlink's kinds, every fourth asks and the others change.
            [_, _, 0, 0, kind, 0] if kind >= 16 => kind % 4 != 2,
            // A setting under /proc/sys.
            [digit] => digit.is_ascii_digit(),
            _ => bytes.starts_with(b"{\"ends"),
        }
    };
    writes.lines().enumerate().filter(|(_, line)| is_change(line)).map(|(at, _)| at + 1).collect()
}

#[test]
fn a_crash_at_any_change_to_what_stands_on_w0_is_put_right_by_the_next_up_and_down() {
    if !testkit::installed("strace") || !testkit::installed("ip") {
        return;
    }
    let Some(lab) = Lab::new(1_600) else { return };
    lab.give_address(0, "w0");
    lab.ip(0, "link add br0 type bridge");
    lab.ip(0, "link set br0 up");
    lab.ip(0, "link set w0 master br0");
    lab.ip(0, "link set w0 type bridge_slave cost 77 isolated on");
    lab.ip(0, "rule add iif w0 lookup 100 pref 500");
    lab.ip(0, "neigh add 10.77.0.9 lladdr 02:00:00:00:00:09 dev w0 nud permanent");
    lab.ip(0, "link property add dev w0 altname uplink");
    lab.ends[0].with(|| fs::write("/proc/sys/net/ipv4/conf/w0/rp_filter", "1").unwrap()).unwrap();
    let before = standing(&lab, "w0");
    let changes = changing_writes(&lab);
    assert!(changes.len() > 30, "{changes:?}");
    let crash = |nth: usize| {
        let mut daemon = traced(&lab, &["-o", "/dev/null", "-e", &format!("inject=write:signal=SIGKILL:when={nth}")]);
        assert!(!daemon.0.wait().unwrap().success(), "write {nth}");
    };
    for (at, nth) in changes.into_iter().enumerate() {
        crash(nth);
        let mut next = lab.up(0, &["--take-over"]);
        assert_eq!(standing(&lab, "hit0"), before, "up after a crash at write {nth}");
        take_down(&lab, &mut next);
        assert_eq!((standing(&lab, "w0"), standing(&lab, "hit0")), (before.clone(), None), "write {nth}");
        // Every third only: each costs a quarter of a second.
        if at % 3 == 0 {
            crash(nth);
            // There may be nothing to put back yet.
            lab.run(0, &["link", "down", "hit0"]);
            assert_eq!(standing(&lab, "w0"), before, "down after a crash at write {nth}");
        }
    }
}

#[test]
fn an_mtu_too_small_for_ipv6_is_said_and_no_address_is_lost_to_it() {
    let Some(lab) = Lab::new(1_300) else { return };
    if !testkit::installed("ip") {
        return;
    }
    let daemon = lab.up(0, &[]);
    lab.wait_until_said(0, "less than the 1280 that IPv6 needs");
    let said = lab.said(0);
    assert!(
        said.contains("less than the 1280 that IPv6 needs") && said.contains("`ip link set dev w0 mtu 13"),
        "{said}"
    );
    drop(daemon);
    assert_eq!(lab.run(0, &["link", "down", "hit0"]).0, 0);
    lab.ip(0, "addr add 2001:db8::1/64 dev w0 nodad");
    refused(&lab, &["--take-over"], &["w0 has the address 2001:db8::1", "1280"]);
    assert!(lab.ip(0, "addr show dev w0").contains("2001:db8::1/64"));
}
