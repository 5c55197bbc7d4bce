//! `hitless rack` in namespaces: the switch between real interfaces, hosts that join it, and the demonstration.

mod cable_lab;
mod rack_lab;

use std::fs;
use std::net::UdpSocket;
use std::process::{Command, Stdio};

use cable_lab::{address, outcome, transfer};
use linux::net::Namespace;
use rack_lab::Rack;

#[test]
fn hosts_around_a_switch_reach_each_other_and_its_counters_add_up() {
    let Some(rack) = Rack::new("counts") else { return };
    let mut switch = rack.start(&["--json"]);
    for (from, to) in [(0, 1), (1, 2), (2, 0)] {
        let moved = transfer(&rack.hosts[from], &rack.hosts[to], address(to), 2_000_000);
        moved.unwrap_or_else(|error| panic!("from {from} to {to}: {error}"));
    }
    assert_eq!(outcome(&mut rack.hitless(&["leave"])), (0, String::new()));
    let last: serde_json::Value = serde_json::from_reader(switch.0.stdout.take().unwrap()).unwrap();
    assert!(switch.0.wait().unwrap().success());
    for port in last["ports"].as_array().unwrap() {
        let count = |name: &str| port["counters"][name].as_u64().unwrap();
        let passed = count("passed") + count("dropped") + count("refused");
        assert!((passed..=passed + 100).contains(&count("offered")), "what waited at the end aside: {port}");
        assert!(count("offered") > 1_400 && count("too_long") + count("malformed") == 0, "{port}");
        assert!(port["peak_bytes"].as_u64().unwrap() <= 128_000, "{port}");
    }
    assert!(fs::read_dir(rack.folder.join("run")).unwrap().next().is_none(), "a socket is left");
}

#[test]
fn an_interface_belongs_to_one_switch_and_the_next_starts_where_one_was_killed() {
    let Some(rack) = Rack::new("killed") else { return };
    let mut first = rack.start(&[]);
    let (code, said) = outcome(&mut rack.hitless(&["switch", "x1", "x0", "--rate", "200M", "--name", "second"]));
    assert!(code == 1 && said.contains("x1 belongs to a `hitless wire` or a `hitless rack switch` already"), "{said}");
    first.0.kill().unwrap();
    first.0.wait().unwrap();
    let (code, said) = outcome(&mut rack.hitless(&["status"]));
    assert!(code == 1 && said.contains("no switch of this name runs here"), "{said}");
    let _second = rack.start(&[]);
    transfer(&rack.hosts[0], &rack.hosts[1], address(1), 500_000).unwrap();
}

#[test]
fn hosts_that_do_not_reserve_work_at_a_switch_that_does_and_status_says_what_is_guaranteed() {
    let Some(rack) = Rack::new("late") else { return };
    let _switch = rack.start(&["--scheduler", "late"]);
    transfer(&rack.hosts[0], &rack.hosts[1], address(1), 1_000_000).unwrap();
    let status = rack.status().unwrap();
    // Two other hosts with 4 frames each, 16 that are unsolicited, and one that is early by a slot of 2 % more.
    assert_eq!(
        (status["scheduler"].as_str(), status["bound_bytes"].as_u64()),
        (Some("late"), Some(24 * 1_538 + 1_568))
    );
    let count = |name: &str| status["reservations"][name].as_u64().unwrap();
    assert!(count("unreserved") > 700 && count("rsvs") + count("policed") == 0, "{status}");
    let said = rack.hitless(&["status"]).output().unwrap();
    assert!(String::from_utf8_lossy(&said.stdout).contains("reservations by late, at most 38,480 B wait"));
}

#[test]
fn a_host_that_has_not_joined_works_within_a_share_and_what_exceeds_it_is_counted_at_its_port() {
    let Some(rack) = Rack::new("share") else { return };
    let _switch = rack.start(&["--scheduler", "late", "--ingress-share", "10%"]);
    let _joined = [rack.join(0), rack.join(1)];
    // TCP finds its share; a host that sends at will loses what exceeds it.
    transfer(&rack.hosts[2], &rack.hosts[0], address(0), 200_000).unwrap();
    let sent = rack.hosts[2].with(|| {
        let socket = UdpSocket::bind((address(2), 0)).unwrap();
        (0..5_000).filter(|_| socket.send_to(&[0; 1_400], (address(0), 9)).is_ok()).count()
    });
    assert_eq!(sent.unwrap(), 5_000);
    transfer(&rack.hosts[1], &rack.hosts[0], address(0), 1_000_000).unwrap();
    let status = rack.status().unwrap();
    let ports = status["ports"].as_array().unwrap();
    let count = |port: usize, name: &str| ports[port]["counters"][name].as_u64().unwrap();
    assert!(count(2, "policed") > 3_000 && count(1, "policed") < 100, "{status}");
    assert_eq!((count(0, "dropped"), status["ingress_share"].as_f64()), (0, Some(0.1)), "{status}");
    let bound = status["bound_bytes"].as_u64().unwrap();
    assert_eq!(bound, 40 * 1_538 + 1_568, "16 frames more than without a share");
    assert!(ports[0]["peak_bytes"].as_u64().unwrap() <= bound, "{status}");
    let said = rack.hitless(&["status"]).output().unwrap();
    assert!(String::from_utf8_lossy(&said.stdout).contains("10 % of it is for what nobody reserved"));
}

#[test]
fn hosts_that_join_reserve_and_leaving_restores_their_interfaces() {
    let Some(rack) = Rack::new("join") else { return };
    let _switch = rack.start(&["--scheduler", "late"]);
    let mut joined = [rack.join(0), rack.join(1)];
    assert!(rack.has_address(0, "rack0") && !rack.has_address(0, "w0w"));
    transfer(&rack.hosts[0], &rack.hosts[1], address(1), 2_000_000).unwrap();
    // One that has not joined works too, both ways.
    transfer(&rack.hosts[2], &rack.hosts[0], address(0), 200_000).unwrap();
    transfer(&rack.hosts[1], &rack.hosts[2], address(2), 200_000).unwrap();
    let status = rack.host_status(0).unwrap();
    let count = |name: &str| status["counters"][name].as_u64().unwrap();
    assert!(count("grants") > 0 && count("sent") > 1_300 && count("rx_malformed") == 0, "{status}");
    assert_eq!((status["guaranteed"].as_bool(), status["mtu"].as_u64()), (Some(true), Some(1_479)), "{status}");
    let switch = rack.status().unwrap();
    assert!(switch["reservations"]["reserved"].as_u64().unwrap() > 0, "{switch}");
    for (host, daemon) in joined.iter_mut().enumerate() {
        assert_eq!(outcome(&mut rack.on_host(host, &["leave"])), (0, String::new()));
        assert!(daemon.0.wait().unwrap().success());
        assert!(rack.has_address(host, "w0") && !rack.has_address(host, "rack0"));
        let left: Vec<_> = fs::read_dir(rack.folder.join(format!("host-{host}"))).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    }
    transfer(&rack.hosts[0], &rack.hosts[1], address(1), 500_000).unwrap();
}

#[test]
fn a_host_whose_daemon_is_killed_does_not_stop_the_others() {
    let Some(rack) = Rack::new("host-killed") else { return };
    let _switch = rack.start(&["--scheduler", "late"]);
    let mut joined = [rack.join(0), rack.join(1), rack.join(2)];
    transfer(&rack.hosts[2], &rack.hosts[0], address(0), 500_000).unwrap();
    joined[2].0.kill().unwrap();
    joined[2].0.wait().unwrap();
    transfer(&rack.hosts[0], &rack.hosts[1], address(1), 1_000_000).unwrap();
    let (code, said) = outcome(&mut rack.on_host(2, &["status", "rack0"]));
    assert!(code == 1 && said.contains("its daemon is gone"), "{said}");
    // The keeper passes its frames; those with marks end two seconds later, and TCP goes on.
    transfer(&rack.hosts[2], &rack.hosts[0], address(0), 200_000).unwrap();
    let (code, said) = outcome(&mut rack.on_host(2, &["leave", "rack0"]));
    assert!(code == 0 && said.contains("what it had changed is put back"), "{said}");
    assert!(rack.has_address(2, "w0") && !rack.has_address(2, "rack0"));
    transfer(&rack.hosts[1], &rack.hosts[2], address(2), 200_000).unwrap();
}

#[test]
fn a_switch_that_does_not_answer_gets_frames_as_they_are_and_status_says_so() {
    let Some(rack) = Rack::new("deaf") else { return };
    let _switch = rack.start(&[]);
    let _joined = [rack.join(0), rack.join(1)];
    transfer(&rack.hosts[0], &rack.hosts[1], address(1), 500_000).unwrap();
    let status = rack.host_status(0).unwrap();
    assert_eq!(status["guaranteed"].as_bool(), Some(false));
    assert!(status["problem"].as_str().unwrap().contains("nothing is guaranteed"), "{status}");
    assert_eq!(status["counters"]["sent"].as_u64(), Some(0), "no frame with a mark: {status}");
}

#[test]
fn wrong_arguments_are_one_line_and_leave_nothing_behind() {
    let Some(rack) = Rack::new("wrong") else { return };
    for (args, wanted) in [
        (&["switch", "x0", "--rate", "1G"][..], "2 values required"),
        (&["switch", "--rate", "1G"], "expected two interfaces or more"),
        (&["switch", "x0", "x1", "--rate", "1G", "--metrics", "here"], "expected PORT or ADDR:PORT"),
        (&["switch", "--config", "nowhere.toml"], "nowhere.toml: No such file"),
        (&["switch", "x0", "x0", "--rate", "1G"], "x0 is given twice"),
        (&["switch", "x0", "x1"], "--rate"),
        (&["switch", "x0", "x1", "--rate", "fast"], "--rate"),
        (&["switch", "x0", "x1", "--rate", "1G", "--buffer", "1KB"], "expected at least 1546 B"),
        (&["switch", "x0", "x1", "--rate", "1G", "--name", "a/b"], "--name a/b"),
        (&["switch", "x0", "x1", "--rate", "1G", "--scheduler", "fifo"], "--scheduler"),
        (&["switch", "x0", "x1", "--rate", "1G", "--k", "4"], "--scheduler"),
        (&["switch", "x0", "x1", "--rate", "1G", "--scheduler", "late", "--k", "0"], "k: 0 frames in a burst"),
        (&["switch", "x0", "x1", "--rate", "1G", "--scheduler", "late", "--contexts", "40"], "more than the buffer"),
        (&["switch", "x0", "x1", "--rate", "1G", "--ingress-share", "10%"], "expected --scheduler"),
        (&["switch", "x0", "x1", "--rate", "1G", "--scheduler", "late", "--ingress-share", "1"], "nothing is left"),
        (&["switch", "x0", "x1", "--rate", "1G", "--scheduler", "paper", "--ingress-share", "1%"], "another scheduler"),
        (&["join"], "which interface?"),
        (&["join", "x9"], "there is no interface x9"),
        (&["join", "x0", "--k", "0"], "k: 0 frames in a burst"),
        (&["join", "x0", "--contexts", "0"], "contexts: 0 contexts"),
        (&["join", "x0", "--scheduler", "fifo"], "--scheduler"),
        (&["join", "x0", "--name", "a/b"], "name: expected"),
        (&["join", "lo"], "lo is no link"),
        (&["demo", "--hosts", "16"], "expected at least"),
        (&["demo", "--hosts", "2"], "--hosts"),
        (&["demo", "--rate", "100G"], "expected at most 10G"),
        (&["demo", "--buffer", "100"], "one full frame"),
    ] {
        let (code, said) = outcome(&mut rack.hitless(args));
        assert_eq!(code, 2, "{args:?}: {said}");
        assert!(said.contains(wanted) && said.trim_end().lines().count() == 1, "{args:?}: {said}");
    }
    // A service is to try again: the interface may come.
    let (code, said) = outcome(&mut rack.hitless(&["switch", "x0", "x9", "--rate", "1G"]));
    assert!(code == 1 && said.contains("there is no interface x9") && said.trim_end().lines().count() == 1, "{said}");
    assert!(!rack.folder.join("run").exists());
}

#[test]
fn the_demonstration_has_a_row_for_every_case_and_reservations_keep_their_bound() {
    if testkit::permitted(Namespace::new()).is_none() {
        return;
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_hitless"));
    command.args(["rack", "demo", "--rate", "200M", "--hosts", "5", "--rounds", "1", "--seconds", "0.3", "--json"]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((result["rate_mbps"].as_f64(), result["simulated"].as_bool()), (Some(200.0), Some(false)));
    assert_eq!(result["valid"].as_bool().unwrap(), result["why_invalid"].is_null());
    let rows = result["rows"].as_array().unwrap();
    let cases: Vec<String> = rows
        .iter()
        .map(|row| format!("{} {} {}", row["way"], row["background"], row["senders"]).replace('"', ""))
        .collect();
    let expected = ["none 0", "tcp 1", "tcp 2", "tcp 3", "udp 1", "udp 2", "udp 3"];
    let expected: Vec<String> =
        expected.iter().flat_map(|case| ["plain", "shim", "paper", "pl2"].map(|way| format!("{way} {case}"))).collect();
    assert_eq!(cases, expected);
    let bound = result["bound_bytes"].as_u64().unwrap();
    assert!(bound * 2 <= result["buffer_bytes"].as_u64().unwrap() && result["scheduler"] == "late");
    for row in rows {
        let count = |name: &str| row[name].as_u64().unwrap();
        assert_eq!((count("duplicates"), count("reordered")), (0, 0), "{row}");
        assert!(count("delivered") <= count("sent") && count("gets") + count("failed") > 0, "{row}");
        assert!(count("port_peak_bytes") <= 128_000, "{row}");
        if row["way"] == "pl2" {
            assert!(count("switch_dropped") == 0 && count("port_peak_bytes") <= bound, "{row}");
        }
    }
}

#[test]
fn a_soak_kills_daemons_counts_what_became_of_datagrams_and_leaves_nothing_behind() {
    if testkit::permitted(Namespace::new()).is_none() {
        return;
    }
    let args = ["soak", "--for", "12s", "--rate", "50M", "--hosts", "5", "--kills", "2", "--rootless", "--json"];
    let output = Command::new(env!("CARGO_BIN_EXE_hitless")).arg("rack").args(args).output().unwrap();
    // Exit code 1 if others took longer than they should: on a busy machine they may.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", String::from_utf8_lossy(&output.stderr));
    let soak: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let killed = |event: usize| soak["events"][event]["killed"].as_str();
    assert_eq!((killed(0), killed(1), killed(2)), (Some("host 2"), Some("switch"), None));
    assert_eq!((soak["complete"].as_bool(), soak["hosts"].as_u64()), (Some(true), Some(5)));
    for flow in soak["flows"].as_array().unwrap() {
        assert!(flow["delivered"].as_u64() > Some(0) && flow["duplicates"] == 0, "{flow}");
    }
    let verdict = |name: &str| soak["verdicts"].as_array().unwrap().iter().any(|verdict| verdict["name"] == name);
    assert!(["lossless", "in-order", "accounted", "intact", "others-go-on", "quiet", "flat"].into_iter().all(verdict));
    for (args, why) in [
        (&["--for", "9s", "--kills", "3"][..], "take 16s or more"),
        (&["--loss", "0.5"], "at most 0.1"),
        (&["--protect"], "give --loss too"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hitless"));
        let (code, said) = outcome(command.args(["rack", "soak"]).args(args));
        assert!(code == 2 && said.contains(why), "{said}");
    }
}
