//! Three hosts around a machine that may become their switch, each in a namespace of its own.

#![allow(dead_code, reason = "each test program uses some of it")]
#![allow(unreachable_pub)]

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use linux::net::{InterfaceAddress, Namespace, Netlink};

use crate::cable_lab::{Daemon, address, bring_up, plug, wait_for};

pub const PORTS: [&str; 3] = ["x0", "x1", "x2"];

/// Three hosts and the machine that is to be their switch.
pub struct Rack {
    pub hosts: Vec<Namespace>,
    pub middle: Namespace,
    pub folder: PathBuf,
}

impl Rack {
    pub fn new(name: &str) -> Option<Self> {
        let middle = testkit::permitted(Namespace::new())?;
        let hosts: Vec<Namespace> = PORTS.iter().map(|_| Namespace::new().unwrap()).collect();
        middle.with(|| Netlink::open().unwrap().set_loopback_up().unwrap()).unwrap();
        for (number, host) in hosts.iter().enumerate() {
            middle.with(|| plug(PORTS[number], "w0", host)).unwrap();
            host.with(|| Netlink::open().unwrap().set_loopback_up().unwrap()).unwrap();
            host.with(|| bring_up("w0", Some(&InterfaceAddress::new(address(number), 24)))).unwrap();
            middle.with(|| bring_up(PORTS[number], None)).unwrap();
        }
        let folder = std::env::temp_dir().join(format!("hitless-rack-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Some(Self { hosts, middle, folder })
    }

    pub fn hitless(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hitless"));
        command.arg("rack").args(args).env("HITLESS_RUN_DIR", self.folder.join("run")).stdin(Stdio::null());
        self.middle.prepare(&mut command).unwrap();
        command
    }

    /// The same on a host, which has a run directory of its own.
    pub fn on_host(&self, host: usize, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hitless"));
        command.arg("rack").args(args).stdin(Stdio::null());
        command.env("HITLESS_RUN_DIR", self.folder.join(format!("host-{host}")));
        command.env(daemon::keeper::LAB, std::process::id().to_string());
        self.hosts[host].prepare(&mut command).unwrap();
        command
    }

    /// Joins and waits until the host answers.
    pub fn join(&self, host: usize) -> Daemon {
        self.join_with(host, &[])
    }

    pub fn join_with(&self, host: usize, args: &[&str]) -> Daemon {
        let log = self.folder.join(format!("said-{host}"));
        let mut command = self.on_host(host, &[&["join", "w0", "--rate", "200M", "--take-over"], args].concat());
        let daemon = Daemon(command.stdout(Stdio::null()).stderr(File::create(&log).unwrap()).spawn().unwrap());
        wait_for("a host", || self.host_status(host).is_some(), || fs::read_to_string(&log).unwrap());
        daemon
    }

    pub fn host_status(&self, host: usize) -> Option<serde_json::Value> {
        let output = self.on_host(host, &["status", "rack0", "--json"]).stderr(Stdio::null()).output().unwrap();
        output.status.success().then(|| serde_json::from_slice(&output.stdout).unwrap())
    }

    /// True if an interface of a host has the host's address.
    pub fn has_address(&self, host: usize, interface: &str) -> bool {
        let addresses = self.hosts[host].with(|| {
            let netlink = Netlink::open().unwrap();
            let link = netlink.link(interface).unwrap();
            link.map_or(Vec::new(), |link| netlink.addresses(link.index).unwrap())
        });
        addresses.unwrap().iter().any(|found| found.ip() == address(host))
    }

    pub fn start(&self, args: &[&str]) -> Daemon {
        let log = self.folder.join("said");
        let mut command = self.hitless(&[&["switch"], &PORTS[..], &["--rate", "200M"], args].concat());
        let switch = Daemon(command.stdout(Stdio::piped()).stderr(File::create(&log).unwrap()).spawn().unwrap());
        wait_for("the switch", || self.status().is_some(), || fs::read_to_string(&log).unwrap());
        switch
    }

    pub fn status(&self) -> Option<serde_json::Value> {
        let output = self.hitless(&["status", "--json"]).stderr(Stdio::null()).output().unwrap();
        output.status.success().then(|| serde_json::from_slice(&output.stdout).unwrap())
    }
}

impl Drop for Rack {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}
