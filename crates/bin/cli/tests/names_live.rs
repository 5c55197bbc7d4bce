//! Tests of all that goes by an interface's name, before, during and after a take-over: firewalls, settings, altnames; and
//! of addresses when somebody renames an interface.

#![expect(clippy::print_stderr, reason = "figures are for people")]

mod cable_lab;
mod rack_lab;

use std::fs;
use std::io::Write;
use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::time::Duration;

use cable_lab::{Lab, address, outcome, wait_for};
use linux::net::{InterfaceSettings, Namespace, Netlink, settings};
use rack_lab::Rack;
use units::StopFlag;

/// Every per-interface setting that a host's security or routing hangs on, with a value that is not the default.
const SETTINGS: [(&str, &str); 13] = [
    ("ipv4/conf/rp_filter", "1"),
    ("ipv4/conf/arp_ignore", "2"),
    ("ipv4/conf/arp_announce", "2"),
    ("ipv4/conf/accept_redirects", "0"),
    ("ipv4/conf/send_redirects", "0"),
    ("ipv4/conf/forwarding", "1"),
    ("ipv4/conf/log_martians", "1"),
    ("ipv4/conf/accept_local", "1"),
    ("ipv4/conf/proxy_arp", "1"),
    ("ipv4/conf/drop_gratuitous_arp", "1"),
    ("ipv6/conf/accept_ra", "0"),
    ("ipv6/conf/use_tempaddr", "2"),
    ("ipv6/conf/disable_ipv6", "1"),
];

/// Ports that rules drop at `w0`, and one that is open.
const DROPPED: [u16; 3] = [7_001, 7_003, 7_005];
const OPEN: u16 = 7_000;
const RULES: &str = r#"
table inet t {
    set inside { type ifname; elements = { "w0" } }
    chain i {
        type filter hook input priority 0;
        iifname "w0" udp dport 7001 drop
        iifname @inside udp dport 7005 drop
    }
}
table netdev n {
    chain i {
        type filter hook ingress device w0 priority 0;
        udp dport 7003 drop
    }
}
"#;

fn nft(namespace: &Namespace, rules: &str) {
    let mut command = Command::new("nft");
    command.args(["-f", "-"]).stdin(Stdio::piped());
    namespace.prepare(&mut command).unwrap();
    let mut nft = command.spawn().unwrap();
    nft.stdin.take().unwrap().write_all(rules.as_bytes()).unwrap();
    assert!(nft.wait().unwrap().success(), "{rules}");
}

fn set(namespace: &Namespace, interface: &str, key: &str, value: &str) {
    let (folder, setting) = key.rsplit_once('/').unwrap();
    let path = format!("/proc/sys/net/{folder}/{interface}/{setting}");
    namespace.with(|| fs::write(&path, value).unwrap_or_else(|error| panic!("{path}: {error}"))).unwrap();
}

/// Properties of a host's interface `w0`, by that name.
#[derive(Debug, PartialEq)]
struct SeenByName {
    settings: InterfaceSettings,
    rules: String,
    altnames: Vec<String>,
    group: u32,
    addresses: Vec<String>,
}

fn seen(namespace: &Namespace) -> SeenByName {
    let mut list = Command::new("nft");
    list.args(["list", "ruleset"]);
    namespace.prepare(&mut list).unwrap();
    let rules = String::from_utf8(list.output().unwrap().stdout).unwrap();
    let seen = namespace.with(|| {
        let netlink = Netlink::open().unwrap();
        let link = netlink.existing_link("w0").unwrap();
        let own = ["hit0", "rack0"];
        let altnames = link.altnames.iter().filter(|name| !own.contains(&name.as_str())).cloned().collect();
        let addresses = netlink.addresses(link.index).unwrap();
        let addresses = addresses.iter().map(|address| format!("{address} {:?}", address.as_bytes())).collect();
        SeenByName { settings: settings("w0").unwrap(), rules, altnames, group: link.group, addresses }
    });
    seen.unwrap()
}

/// Knocks at the ports that are dropped, and at the open one until it has heard five; what came to each.
fn arrivals(from: &Namespace, to: &Namespace, at: std::net::IpAddr) -> [usize; 4] {
    let ports = [DROPPED[0], DROPPED[1], DROPPED[2], OPEN];
    let sockets = ports.map(|port| to.with(|| UdpSocket::bind((at, port)).unwrap()).unwrap());
    sockets.iter().for_each(|socket| socket.set_nonblocking(true).unwrap());
    let sender = from.with(|| UdpSocket::bind(("0.0.0.0", 0)).unwrap()).unwrap();
    let mut arrived = [0; 4];
    let enough = || {
        for port in ports {
            // A peer that is gone may have left its address unknown for a moment.
            let _ = sender.send_to(b"knock", (at, port));
        }
        for (socket, arrived) in sockets.iter().zip(&mut arrived) {
            *arrived += usize::from(socket.recv(&mut [0; 16]).is_ok());
        }
        arrived[3] >= 5
    };
    wait_for("five knocks", enough, String::new);
    arrived[3] = 5;
    arrived
}

/// Nothing at the ports that are dropped.
const AS_RULED: [usize; 4] = [0, 0, 0, 5];

fn furnish(host: &Namespace) {
    nft(host, RULES);
    SETTINGS.iter().for_each(|(key, value)| set(host, "w0", key, value));
    host.with(|| {
        let netlink = Netlink::open().unwrap();
        let index = netlink.existing_link("w0").unwrap().index;
        netlink.add_altname(index, "uplink").unwrap();
        netlink.set_group(index, 42).unwrap();
    })
    .unwrap();
    let has = seen(host);
    SETTINGS.iter().for_each(|(key, value)| assert_eq!(has.settings[*key], *value, "{key}"));
}

#[test]
fn rules_by_name_and_settings_are_the_same_before_during_and_after_link_up_take_over() {
    if !testkit::installed("nft") {
        return;
    }
    for backend in ["tap", "veth"] {
        let Some(lab) = Lab::new(1_600) else { return };
        lab.give_address(0, "w0");
        lab.give_address(1, "w1");
        furnish(&lab.ends[0]);
        let arrive = || arrivals(&lab.ends[1], &lab.ends[0], address(0));
        let before = seen(&lab.ends[0]);
        assert_eq!(arrive(), AS_RULED, "before");
        let _right = lab.up(1, &["--take-over"]);
        let mut left = lab.up(0, &["--take-over", "--backend", backend]);
        assert_eq!(seen(&lab.ends[0]), before, "{backend}, during");
        lab.wait_until_protected();
        assert_eq!((arrive(), seen(&lab.ends[0])), (AS_RULED, before), "{backend}, protected");
        // A daemon that is killed leaves the kernel to pass frames.
        left.0.kill().unwrap();
        left.0.wait().unwrap();
        let before = seen(&lab.ends[0]);
        let passes = || lab.directory(0).keeper("hit0").exists();
        wait_for("the keeper", passes, String::new);
        assert_eq!((arrive(), seen(&lab.ends[0])), (AS_RULED, before), "{backend}, killed");
        let before = seen(&lab.ends[0]);
        let (code, said) = lab.run(0, &["link", "down", "w0"]);
        assert_eq!(code, 0, "by the interface's name, too: {said}");
        assert_eq!((arrive(), seen(&lab.ends[0])), (AS_RULED, before), "{backend}, after");
    }
}

/// Knocks all the time at ports of a host; what came to each.
fn knock<'scope, const N: usize>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    [from, to]: [&'scope Namespace; 2],
    at: std::net::IpAddr,
    ports: [u16; N],
    over: &'scope StopFlag,
) -> std::thread::ScopedJoinHandle<'scope, [usize; N]> {
    let sockets = ports.map(|port| to.with(|| UdpSocket::bind((at, port)).unwrap()).unwrap());
    sockets.iter().for_each(|socket| socket.set_nonblocking(true).unwrap());
    let sender = from.with(|| UdpSocket::bind(("0.0.0.0", 0)).unwrap()).unwrap();
    scope.spawn(move || {
        while !over.is_stopped() {
            for port in ports {
                let _ = sender.send_to(b"knock", (at, port));
            }
            std::thread::sleep(Duration::from_micros(20));
        }
    });
    scope.spawn(move || {
        let mut arrived = [0; N];
        while !over.is_stopped() {
            for (socket, arrived) in sockets.iter().zip(&mut arrived) {
                while socket.recv(&mut [0; 16]).is_ok() {
                    *arrived += 1;
                }
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        arrived
    })
}

#[test]
fn nothing_gets_past_a_rule_by_name_while_the_name_changes_hands() {
    if !testkit::installed("nft") {
        return;
    }
    let Some(lab) = Lab::new(1_600) else { return };
    lab.give_address(0, "w0");
    lab.give_address(1, "w1");
    // Not its settings: a reverse path filter would drop what comes by the wrong interface.
    nft(&lab.ends[0], RULES);
    let out = "type filter hook output priority 0; oifname \"w0\" udp dport 7009 drop";
    nft(&lab.ends[0], &format!("table ip o {{\n chain o {{\n {out}\n }}\n}}\n"));
    let over = StopFlag::new();
    let (arrived, left) = std::thread::scope(|scope| {
        let _over = over.stop_on_drop();
        let [here, there] = &lab.ends;
        // The other end has no daemon: every frame is one that the kernel can read.
        let inward = [DROPPED[0], DROPPED[1], DROPPED[2], OPEN];
        let inward = knock(scope, [there, here], address(0), inward, &over);
        let outward = knock(scope, [here, there], address(1), [7_009, OPEN], &over);
        for round in 0..18 {
            let mut daemon = lab.up(0, &["--take-over", "--backend", ["tap", "veth"][round % 2]]);
            if round % 3 != 0 {
                daemon.0.kill().unwrap();
                daemon.0.wait().unwrap();
                wait_for("the keeper", || lab.directory(0).keeper("hit0").exists(), String::new);
            }
            if round % 3 == 2 {
                daemon = lab.up(0, &["--take-over"]);
            }
            assert_eq!(lab.run(0, &["link", "down", "hit0"]).0, 0);
            let _ = daemon.0.wait();
        }
        over.stop();
        (inward.join().unwrap(), outward.join().unwrap())
    });
    eprintln!("{} knocks inward and {} outward arrived where no rule drops them", arrived[3], left[1]);
    assert!(arrived[3] > 100 && left[1] > 100, "{arrived:?} {left:?}");
    assert_eq!((&arrived[..3], left[0]), (&[0; 3][..], 0), "of {} inward and {} outward", arrived[3], left[1]);
}

#[test]
fn rules_by_name_and_settings_are_the_same_before_during_and_after_rack_join_take_over() {
    if !testkit::installed("nft") {
        return;
    }
    let Some(rack) = Rack::new("names") else { return };
    let _switch = rack.start(&[]);
    furnish(&rack.hosts[0]);
    let arrive = || arrivals(&rack.hosts[1], &rack.hosts[0], address(0));
    let before = seen(&rack.hosts[0]);
    assert_eq!(arrive(), AS_RULED, "before");
    let _peer = rack.join(1);
    let mut host = rack.join(0);
    assert_eq!((arrive(), seen(&rack.hosts[0])), (AS_RULED, before), "during");
    let before = seen(&rack.hosts[0]);
    assert_eq!(outcome(&mut rack.on_host(0, &["leave"])), (0, String::new()));
    assert!(host.0.wait().unwrap().success());
    assert_eq!((arrive(), seen(&rack.hosts[0])), (AS_RULED, before), "after");
}

#[test]
fn settings_are_copied_where_the_interface_keeps_its_name_and_carried_back_where_they_were_changed() {
    let Some(lab) = Lab::new(1_600) else { return };
    SETTINGS.iter().for_each(|(key, value)| set(&lab.ends[0], "w0", key, value));
    for (args, stand_in) in [(&["--take-over"][..], "w0"), (&["--take-over", "--keep-name"], "hit0")] {
        let mut daemon = lab.up(0, args);
        let of = |name: &str| lab.ends[0].with(|| settings(name).unwrap()).unwrap();
        let has = of(stand_in);
        SETTINGS.iter().for_each(|(key, value)| assert_eq!(has[*key], *value, "{key} of {stand_in}"));
        set(&lab.ends[0], stand_in, "ipv4/conf/arp_filter", "1");
        assert_eq!(lab.run(0, &["link", "down"]), (0, String::new()));
        assert!(daemon.0.wait().unwrap().success());
        let changed = InterfaceSettings::from([("ipv4/conf/arp_filter".to_owned(), "1".to_owned())]);
        assert_eq!(of("w0"), has.into_iter().chain(changed).collect());
        set(&lab.ends[0], "w0", "ipv4/conf/arp_filter", "0");
    }
}

/// Whose address it is, by the name of the interface.
fn holder(lab: &Lab) -> Option<String> {
    lab.with(0, |netlink| {
        let has = |index: u32| netlink.addresses(index).unwrap().iter().any(|found| found.ip() == address(0));
        netlink.links().unwrap().into_iter().find(|link| has(link.index)).map(|link| link.name)
    })
}

fn rename(lab: &Lab, from: &str, to: &str) {
    lab.ip(0, &format!("link set {from} name {to}"));
}

#[test]
fn an_interface_that_is_renamed_loses_no_address() {
    if !testkit::installed("ip") {
        return;
    }
    // Options, renamed interfaces, and the name that has the address in the end.
    for (args, renamed, left) in [
        (&["--take-over"][..], &[("w0w", "wire9")][..], "w0"),
        (&["--take-over"], &[("w0", "other0")], "w0"),
        (&["--take-over"], &[("w0w", "wire9"), ("w0", "other0")], "w0"),
        (&["--take-over", "--keep-name"], &[("w0", "wire9")], "wire9"),
        (&["--take-over", "--keep-name"], &[("hit0", "other0")], "w0"),
    ] {
        for end in ["term", "down", "kill, down", "kill, up, down"] {
            let Some(lab) = Lab::new(1_600) else { return };
            lab.give_address(0, "w0");
            lab.ip(0, "route add default via 10.77.0.2");
            let wire = lab.with(0, |netlink| netlink.existing_link("w0").unwrap().index);
            let mut daemon = lab.up(0, args);
            renamed.iter().for_each(|(from, to)| rename(&lab, from, to));
            let story = format!("{args:?} {renamed:?} {end}");
            if end.starts_with("kill") {
                daemon.0.kill().unwrap();
            } else if end == "term" {
                assert!(Command::new("kill").arg(daemon.0.id().to_string()).status().unwrap().success());
            }
            if end != "term" {
                if end.contains("up") {
                    daemon.0.wait().unwrap();
                    let again = lab.up(0, args);
                    assert_eq!(holder(&lab).as_deref(), Some(if args.len() == 1 { "w0" } else { "hit0" }), "{story}");
                    daemon = again;
                }
                let (code, said) = lab.run(0, &["link", "down", "hit0"]);
                assert_eq!(code, 0, "{story}: {said}");
            }
            let ended = daemon.0.wait().unwrap();
            assert!(ended.success() || end == "kill, down", "{story}: {ended}");
            assert_eq!(holder(&lab).as_deref(), Some(left), "{story}");
            let index = lab.with(0, |netlink| netlink.existing_link(left).unwrap().index);
            assert_eq!(index, wire, "{story}: the same interface");
            let routes = lab.ip(0, "route");
            assert!(routes.contains(&format!("default via 10.77.0.2 dev {left}")), "{story}: {routes}");
            let links = lab.with(0, |netlink| netlink.links().unwrap().len());
            assert_eq!(links, 2, "{story}: nothing but it and the loopback");
        }
    }
}

#[test]
fn a_stand_in_whose_interface_is_gone_keeps_the_addresses_and_says_so() {
    if !testkit::installed("ip") {
        return;
    }
    let Some(lab) = Lab::new(1_600) else { return };
    lab.give_address(0, "w0");
    let mut daemon = lab.up(0, &["--take-over"]);
    lab.ip(0, "link del w0w");
    assert_eq!(daemon.0.wait().unwrap().code(), Some(1));
    assert_eq!(holder(&lab).as_deref(), Some("hit0"), "{}", lab.said(0));
    let (code, said) = lab.run(0, &["link", "down", "hit0"]);
    assert!(code == 1 && said.lines().count() == 1 && said.contains("hit0 has 10.77.0.1/24, and w0 is gone"), "{said}");
    assert_eq!(holder(&lab).as_deref(), Some("hit0"));
    // Whoever makes it again may use its name, and has the addresses back.
    lab.ip(0, "link add w0 type veth peer name x0");
    assert_eq!(lab.run(0, &["link", "down", "hit0"]).0, 0);
    assert_eq!(holder(&lab).as_deref(), Some("w0"));
    assert_eq!(fs::read_dir(lab.directory(0).path()).map_or(0, Iterator::count), 0, "nothing is left behind");
}

#[test]
fn the_name_of_an_interface_that_is_gone_is_free_also_after_its_daemon_was_killed() {
    if !testkit::installed("ip") {
        return;
    }
    let Some(lab) = Lab::new(1_600) else { return };
    let is_free = || lab.with(0, |netlink| netlink.link("w0").unwrap().is_none());
    let make = || {
        lab.ip(0, "link add w0 mtu 1600 type veth peer name x0");
        lab.ip(0, "link set x0 up");
        lab.ip(0, "link set w0 up");
    };
    lab.give_address(0, "w0");
    let mut daemon = lab.up(0, &["--take-over", "--wait"]);
    // By the daemon that waits for it.
    lab.ip(0, "link del w0w");
    wait_for("the name", is_free, || lab.said(0));
    assert_eq!(holder(&lab).as_deref(), Some("hit0"));
    make();
    wait_for("the stand-in", || holder(&lab).as_deref() == Some("w0"), || lab.said(0));
    wait_for("the link", || lab.status(0).is_some_and(|status| status.state != "waiting"), || lab.said(0));
    // By the keeper, once the daemon is killed.
    daemon.0.kill().unwrap();
    daemon.0.wait().unwrap();
    wait_for("the keeper", || lab.directory(0).keeper("hit0").exists(), String::new);
    lab.ip(0, "link del w0w");
    wait_for("the name", is_free, String::new);
    make();
    // By the next daemon, which finds nothing to wait for but the interface.
    let mut daemon = lab.up(0, &["--take-over", "--wait"]);
    wait_for("the stand-in", || holder(&lab).as_deref() == Some("w0"), || lab.said(0));
    wait_for("the link", || lab.status(0).is_some_and(|status| status.state != "waiting"), || lab.said(0));
    assert_eq!(lab.run(0, &["link", "down"]), (0, String::new()));
    assert!(daemon.0.wait().unwrap().success());
    assert_eq!(holder(&lab).as_deref(), Some("w0"));
    assert!(lab.with(0, |netlink| netlink.link("hit0").unwrap().is_none()));
}

#[test]
fn an_interface_whose_stand_in_was_deleted_has_its_name_and_addresses_again() {
    if !testkit::installed("ip") {
        return;
    }
    for killed in [false, true] {
        let Some(lab) = Lab::new(1_600) else { return };
        lab.give_address(0, "w0");
        lab.ip(0, "link property add dev w0 altname uplink");
        let wire = lab.with(0, |netlink| netlink.existing_link("uplink").unwrap().index);
        let mut daemon = lab.up(0, &["--take-over"]);
        if killed {
            daemon.0.kill().unwrap();
            daemon.0.wait().unwrap();
            wait_for("the keeper", || lab.directory(0).keeper("hit0").exists(), String::new);
        }
        lab.ip(0, "link del w0");
        if killed {
            drop(lab.up(0, &["--take-over", "--wait"]));
            assert_eq!(holder(&lab).as_deref(), Some("w0"), "{}", lab.said(0));
            assert_eq!(lab.run(0, &["link", "down", "hit0"]).0, 0);
        } else {
            assert_eq!(daemon.0.wait().unwrap().code(), Some(1), "{}", lab.said(0));
        }
        assert_eq!(holder(&lab).as_deref(), Some("w0"), "{}", lab.said(0));
        let link = lab.with(0, |netlink| netlink.existing_link("w0").unwrap());
        assert_eq!((link.index, link.altnames), (wire, vec!["uplink".to_owned()]));
    }
}

fn refused(lab: &Lab, args: &[&str], why: &[&str]) {
    let (code, said) = lab.run(0, &[&["link", "up", "w0", "--take-over"], args].concat());
    assert!(code == 1 && said.lines().count() == 1, "{code}: {said}");
    assert!(why.iter().all(|part| said.contains(part)), "{said}");
    assert!(lab.with(0, |netlink| netlink.link("hit0").unwrap().is_none()), "something was left");
}

#[test]
fn rules_by_name_are_refused_with_the_line_that_shows_them_where_the_interface_keeps_its_name() {
    if !testkit::installed("nft") {
        return;
    }
    let Some(lab) = Lab::new(1_600) else { return };
    let chain = "type filter hook input priority 0;\n";
    for (rules, shown) in [
        (
            format!("table inet t {{\n chain i {{ {chain} iifname \"w0\" drop\n }}\n}}\n"),
            "`nft -a list chain inet t i`, handle",
        ),
        (
            format!("table ip t {{\n chain i {{ {chain} oifname \"w*\" drop\n }}\n}}\n"),
            "`nft -a list chain ip t i`, handle",
        ),
        ("table inet t {\n set s { type ifname; elements = { \"w0\" }\n }\n}\n".to_owned(), "`nft list set inet t s`"),
        (
            "table netdev n {\n chain i { type filter hook ingress device w0 priority 0;\n }\n}\n".to_owned(),
            "`nft list chain netdev n i`",
        ),
    ] {
        nft(&lab.ends[0], &rules);
        refused(&lab, &["--keep-name"], &[shown]);
        drop(lab.up(0, &["--take-over"]));
        assert_eq!(lab.run(0, &["link", "down", "hit0"]).0, 0);
        nft(&lab.ends[0], "flush ruleset\n");
    }
    let mut legacy = Command::new("iptables-legacy");
    legacy.args(["-A", "INPUT", "-i", "w0", "-j", "DROP"]);
    lab.ends[0].prepare(&mut legacy).unwrap();
    if legacy.status().is_ok_and(|status| status.success()) {
        refused(&lab, &["--keep-name"], &["`iptables-legacy-save -t filter | grep w0`"]);
    }
}

#[test]
fn what_is_bound_to_the_interface_itself_is_refused_with_the_line_that_shows_it() {
    if !["nft", "tc"].into_iter().all(testkit::installed) {
        return;
    }
    let Some(lab) = Lab::new(1_600) else { return };
    let chain = "type filter hook input priority 0;\n";
    nft(&lab.ends[0], &format!("table inet t {{\n chain i {{ {chain} iif \"w0\" drop\n }}\n}}\n"));
    refused(&lab, &[], &["by its index", "`nft -a list chain inet t i`, handle", "`iifname`"]);
    nft(&lab.ends[0], "flush ruleset\n");
    let tc = |args: &str| {
        let mut tc = Command::new("tc");
        tc.args(args.split(' ').map(|word| word.replace('_', " "))).stderr(Stdio::null());
        lab.ends[0].prepare(&mut tc).unwrap();
        tc.status().unwrap().success()
    };
    assert!(tc("qdisc add dev w0 clsact"));
    assert!(tc("filter add dev w0 ingress bpf bytecode 1,6_0_0_0"));
    refused(&lab, &[], &["a filter (bpf)", "`tc filter show ingress dev w0`"]);
    assert!(tc("qdisc del dev w0 clsact"));
    if tc("qdisc add dev w0 root htb") {
        refused(&lab, &[], &["the queueing discipline htb", "`tc qdisc show dev w0`"]);
        assert!(tc("qdisc del dev w0 root"));
    }
    assert!(tc("qdisc add dev w0 root tbf rate 1gbit burst 100k latency 1s"), "a limit for all alike");
    drop(lab.up(0, &["--take-over"]));
    assert_eq!(lab.run(0, &["link", "down", "hit0"]).0, 0);
}

#[test]
fn another_name_of_an_interface_is_refused_where_it_would_have_to_change_hands() {
    if !testkit::installed("ip") {
        return;
    }
    let Some(lab) = Lab::new(1_600) else { return };
    lab.ip(0, "link property add dev w0 altname uplink");
    let (code, said) = lab.run(0, &["link", "up", "uplink", "--take-over"]);
    assert!(code == 1 && said.lines().count() == 1 && said.contains("uplink is another name of w0"), "{said}");
}

#[test]
fn a_capture_by_the_interfaces_name_is_of_the_wire() {
    let Some(lab) = Lab::new(1_600) else { return };
    let _daemon = lab.up(0, &["--take-over"]);
    let file = lab.folder.join("wire.pcapng");
    let mut capture = lab.hitless(0, &["link", "capture", "w0", "--frames", "3", "--write", file.to_str().unwrap()]);
    let (code, said) = outcome(&mut capture);
    assert!(code == 0 && said.contains("3 frames in"), "greetings of its daemon: {said}");
    let (code, said) = lab.run(0, &["link", "capture", "hit0", "--write", file.to_str().unwrap()]);
    assert!(code == 2 && said.contains("hit0 is the stand-in; capture w0"), "{said}");
}

#[test]
fn options_that_make_no_sense_are_one_line() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hitless"));
    let (code, said) = outcome(command.args(["link", "up", "w0", "--keep-name"]));
    assert!(code == 2 && said.lines().count() == 1 && said.contains("only with take-over"), "{said}");
}
