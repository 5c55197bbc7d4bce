//! Daemons of a rack as services: configuration files, the background, metrics, interfaces that are waited for, shipped units.

mod cable_lab;
mod rack_lab;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use cable_lab::{Daemon, address, outcome, transfer, wait_for};
use linux::net::{Namespace, Netlink};
use rack_lab::Rack;

const SWITCH: &str =
    "interfaces = ['x0', 'x1', 'x2']\nrate = '200M'\nscheduler = 'late'\naging = '60s'\nmetrics = '9467'\n";
const HOST: &str = "interface = 'w0'\nrate = '200M'\ntake-over = true\nmetrics = '9466'\n";

/// A daemon in the background that ends with the test, whatever happens.
struct BackgroundDaemon(u64);

impl Drop for BackgroundDaemon {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.0.to_string()).stderr(Stdio::null()).status();
    }
}

fn write(rack: &Rack, name: &str, text: &str) -> PathBuf {
    let path = rack.folder.join(name);
    fs::write(&path, text).unwrap();
    path
}

/// Metrics that Prometheus reads at a port of a namespace's loopback interface.
fn metrics(of: &Namespace, port: u16) -> String {
    let read = || {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        write!(stream, "GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    };
    of.with(read).unwrap()
}

#[test]
fn files_say_what_the_command_line_can_and_daemons_go_on_in_the_background() {
    let Some(rack) = Rack::new("files") else { return };
    let file = write(&rack, "switch.toml", SWITCH);
    let (code, said) = outcome(rack.hitless(&["switch", "--background", "--config"]).arg(file));
    assert!(code == 0 && said.contains("switch0 goes on in the background"), "{said}");
    let _switch = BackgroundDaemon(rack.status().unwrap()["pid"].as_u64().unwrap());
    let file = write(&rack, "host.toml", HOST);
    let (code, said) = outcome(rack.on_host(0, &["join", "--background", "--config"]).arg(&file));
    assert!(code == 0 && said.contains("rack0 stands in for w0"), "{said}");
    let _host = BackgroundDaemon(rack.host_status(0).unwrap()["pid"].as_u64().unwrap());
    // The command line overrides the file.
    let (code, said) = outcome(rack.on_host(0, &["join", "w9", "--config"]).arg(&file));
    assert!(code == 2 && said.contains("there is no interface w9"), "{said}");
    let (code, said) = outcome(rack.on_host(0, &["join", "--background", "--config"]).arg(&file));
    assert!(code == 1 && said.contains("is taken"), "{said}");
    let _other = rack.join(1);
    transfer(&rack.hosts[0], &rack.hosts[1], address(1), 1_000_000).unwrap();
    let text = metrics(&rack.hosts[0], 9_466);
    let has = |wanted: &str| assert!(text.contains(wanted), "{wanted} in\n{text}");
    has("hitless_rack_guaranteed{name=\"rack0\",interface=\"w0\"} 1.0");
    has("hitless_rack_reservations_total{name=\"rack0\",interface=\"w0\",event=\"grants\"}");
    assert!(metrics(&rack.middle, 9_467).contains("hitless_switch_port_up{name=\"switch0\",port=\"x0\"} 1.0"));
    assert_eq!(outcome(rack.on_host(0, &["leave", "--config"]).arg(&file)), (0, String::new()));
    assert!(rack.has_address(0, "w0") && !rack.has_address(0, "rack0"));
    assert_eq!(outcome(&mut rack.hitless(&["leave"])), (0, String::new()));
    let left = |folder: &str| fs::read_dir(rack.folder.join(folder)).unwrap().count();
    wait_for("the switch to end", || left("run") == 0, || format!("{:?}", fs::read_dir(rack.folder.join("run"))));
    assert_eq!(left("host-0"), 0, "a log or a socket is left");
}

#[test]
fn a_mistake_in_a_file_is_one_line_with_its_place() {
    let Some(rack) = Rack::new("mistakes") else { return };
    for (command, text, wanted) in [
        ("switch", "interfaces = ['x0', 'x1']\nrate = 'fast'\n", "wrong.toml, line 2: 'fast': expected"),
        ("switch", "rate = '1G'\nspeed = 3\n", "wrong.toml, line 2: unknown field `speed`"),
        ("switch", "rate = '1G'\nscheduler = 'fifo'\n", "wrong.toml, line 2: unknown variant `fifo`"),
        ("switch", "rate = '1G'\ninterfaces = ['x0']\n", "expected two interfaces or more"),
        ("join", "interface = 'x0'\nk = 0\n", "k: 0 frames in a burst"),
        ("join", "interface = 'x0'\nbackend = 'usb'\n", "backend: 'usb': expected"),
        ("join", "interface = 'x0'\nmetrics = 'here'\n", "metrics: 'here': expected"),
    ] {
        let file = write(&rack, "wrong.toml", text);
        let (code, said) = outcome(rack.hitless(&[command, "--config"]).arg(file));
        assert!(code == 2 && said.contains(wanted) && said.lines().count() == 1, "{text}: {code}: {said}");
    }
    assert!(!rack.folder.join("run").exists());
}

#[test]
fn a_host_waits_for_its_interface_answers_meanwhile_and_can_be_asked_to_leave() {
    let Some(rack) = Rack::new("waits") else { return };
    let set_up = |up: bool| {
        let set = || {
            let netlink = Netlink::open().unwrap();
            netlink.set_up(netlink.existing_link("w0").unwrap().index, up).unwrap();
        };
        rack.hosts[0].with(set).unwrap();
    };
    let problem = || rack.host_status(0).map(|status| status["problem"].as_str().unwrap_or("").to_owned());
    set_up(false);
    let mut joined = rack.join_with(0, &["--wait"]);
    assert!(problem().unwrap().contains("w0 is down"), "{:?}", problem());
    let said = rack.on_host(0, &["status"]).output().unwrap().stdout;
    assert!(String::from_utf8_lossy(&said).starts_with("rack0 waits for w0: w0 is down"));
    set_up(true);
    wait_for("the stand-in", || rack.has_address(0, "rack0"), || format!("{:?}", rack.host_status(0)));
    assert_eq!(outcome(&mut rack.on_host(0, &["leave"])), (0, String::new()));
    assert!(joined.0.wait().unwrap().success() && rack.has_address(0, "w0"));
    set_up(false);
    let mut joined = rack.join_with(0, &["--wait"]);
    assert_eq!(outcome(&mut rack.on_host(0, &["leave"])), (0, String::new()));
    assert!(joined.0.wait().unwrap().success());
}

#[test]
fn the_shipped_units_restart_always_and_put_back_what_a_killed_daemon_left() {
    let unit = include_str!("../../../../contrib/systemd/hitless-rack@.service");
    let has = |unit: &str, line: &str| assert!(unit.lines().any(|there| there == line), "{line}");
    has(unit, "ExecStart=/usr/local/bin/hitless rack join %I --wait --config /etc/hitless/rack-%i.toml");
    has(unit, "ExecStopPost=-/usr/local/bin/hitless rack leave --unless-restarting --config /etc/hitless/rack-%i.toml");
    has(unit, "KillMode=process");
    has(unit, "RestartPreventExitStatus=2");
    let switch = include_str!("../../../../contrib/systemd/hitless-switch@.service");
    has(switch, "ExecStart=/usr/local/bin/hitless rack switch --config /etc/hitless/%i.toml");
    for unit in [unit, switch] {
        has(unit, "Restart=always");
        has(unit, "StartLimitIntervalSec=0");
        has(unit, "CapabilityBoundingSet=CAP_NET_ADMIN CAP_NET_RAW");
    }
    let Some(rack) = Rack::new("units") else { return };
    let shipped = include_str!("../../../../contrib/systemd/rack-eth0.toml").replace("9466", "0");
    let file = write(&rack, "rack-w0.toml", &shipped).display().to_string();
    let mut command = rack.on_host(0, &["join", "w0", "--wait", "--config", &file]);
    let mut daemon = Daemon(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    wait_for("the stand-in", || rack.has_address(0, "rack0"), String::new);
    daemon.0.kill().unwrap();
    daemon.0.wait().unwrap();
    let leave = |result: &str| {
        let mut command = rack.on_host(0, &["leave", "--unless-restarting", "--config", &file]);
        outcome(command.env("SERVICE_RESULT", result)).0
    };
    // Before a restart the stand-in stays; after a stop that ended in a kill everything is put back.
    assert_eq!((leave("signal"), rack.has_address(0, "rack0")), (0, true));
    assert_eq!((leave("timeout"), rack.has_address(0, "w0")), (0, true));
    assert_eq!(leave("success"), 0, "nothing left to do is no failure");
    let switch = include_str!("../../../../contrib/systemd/switch0.toml").replace("eth1", "x9");
    let file = write(&rack, "switch0.toml", &switch);
    let (code, said) = outcome(rack.hitless(&["switch", "--config"]).arg(file));
    assert!(code == 1 && said.contains("there is no interface x9"), "{said}");
}

fn kill(pid: u64) {
    assert!(Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap().success());
}

fn said(rack: &Rack) -> String {
    fs::read_to_string(rack.folder.join("said-0")).unwrap()
}

#[test]
fn the_keeper_of_a_joined_host_is_replaced_if_it_dies() {
    let Some(rack) = Rack::new("keeper") else { return };
    let mut joined = rack.join(0);
    let keeper = || rack.host_status(0).map_or(serde_json::Value::Null, |status| status["keeper"].clone());
    kill(keeper()["pid"].as_u64().unwrap());
    let is_replaced = || keeper()["replaced"] == 1 && keeper()["state"] == "ready";
    wait_for("another keeper", is_replaced, || keeper().to_string());
    wait_for("a line", || said(&rack).contains("the keeper has ended"), || said(&rack));
    let text = String::from_utf8(rack.on_host(0, &["status"]).output().unwrap().stdout).unwrap();
    assert!(text.contains("replaced 1 times"), "{text}");
    // The new one passes frames when nobody serves the host.
    joined.0.kill().unwrap();
    joined.0.wait().unwrap();
    let relief = rack.folder.join("host-0").join("rack0.keeper");
    wait_for("the keeper", || relief.exists(), String::new);
    assert_eq!(outcome(&mut rack.on_host(0, &["leave", "rack0"])).0, 0);
    assert!(rack.has_address(0, "w0") && !relief.exists());
}

#[test]
fn notes_of_another_namespace_are_put_aside_when_a_host_joins() {
    let Some(rack) = Rack::new("elsewhere") else { return };
    let mut joined = rack.join(0);
    let keeper = rack.host_status(0).unwrap()["keeper"]["pid"].as_u64().unwrap();
    let stopped = Command::new("kill").args(["-STOP", &joined.0.id().to_string()]).status().unwrap();
    assert!(stopped.success());
    kill(keeper);
    joined.0.kill().unwrap();
    joined.0.wait().unwrap();
    let path = rack.folder.join("host-0").join("rack0.json");
    let mut notes: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    notes["namespace"]["boot"] = "another".into();
    fs::write(&path, notes.to_string()).unwrap();
    // Simulates another namespace: the stand-in is absent, and the interface has its first name.
    let gone = || {
        let netlink = Netlink::open().unwrap();
        netlink.delete_link(netlink.existing_link("rack0").unwrap().index).unwrap();
        netlink.rename(netlink.existing_link("w0w").unwrap().index, "w0").unwrap();
    };
    rack.hosts[0].with(gone).unwrap();
    let _joined = rack.join(0);
    wait_for("a line", || said(&rack).contains("nothing of them is applied"), || said(&rack));
    assert!(!rack.has_address(0, "rack0") && !rack.has_address(0, "w0"), "an address of another namespace");
}
