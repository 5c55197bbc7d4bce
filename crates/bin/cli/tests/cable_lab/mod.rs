//! Two hosts joined by one veth pair, with nothing in between and offloads as the kernel gives them: checksums and
//! segmentation are left undone wherever they may be.

#![allow(dead_code, reason = "each test program uses some of it")]
#![allow(unreachable_pub)]

use std::fs;
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use daemon::RunDirectory;
use link::control::{LinkReply, LinkRequest};
use link::status::LinkStatus;
use linux::net::{InterfaceAddress, Namespace, Netlink};
use units::StopFlag;

/// The interface at each end.
pub const PLUGS: [&str; 2] = ["w0", "w1"];
/// Limit for a transfer that takes a tenth of a second on a machine with nothing else to do.
const PATIENCE: Duration = Duration::from_secs(60);

pub fn address(end: usize) -> IpAddr {
    IpAddr::from([10, 77, 0, 1 + end as u8])
}

/// Gone when dropped.
pub struct Lab {
    pub ends: [Namespace; 2],
    pub folder: PathBuf,
}

impl Lab {
    /// `None`, and the test is skipped, where no namespace may be made.
    pub fn new(mtu: u32) -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let ends = [testkit::permitted(Namespace::new())?, Namespace::new().unwrap()];
        let joined = ends[0].with(|| -> linux::net::Result<()> {
            let netlink = Netlink::open()?;
            netlink.add_veth(PLUGS[0], PLUGS[1])?;
            netlink.set_namespace(netlink.existing_link(PLUGS[1])?.index, &ends[1])
        });
        joined.unwrap().unwrap();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("hitless-cable-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let lab = Self { ends, folder };
        for (end, plug) in PLUGS.into_iter().enumerate() {
            lab.with(end, |netlink| {
                netlink.set_loopback_up().unwrap();
                let index = netlink.existing_link(plug).unwrap().index;
                netlink.set_mtu(index, mtu).unwrap();
                netlink.set_up(index, true).unwrap();
            });
        }
        for (end, plug) in PLUGS.into_iter().enumerate() {
            lab.with(end, |netlink| {
                netlink.wait_until_running(netlink.existing_link(plug).unwrap().index).unwrap();
            });
        }
        Some(lab)
    }

    /// A daemon's reports are written by a thread of their own, soon after they are made.
    pub fn wait_until_said(&self, end: usize, wanted: &str) {
        for _ in 0..3_000 {
            if self.said(end).contains(wanted) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("{wanted} in {}", self.said(end));
    }

    /// In the namespace of an end.
    pub fn with<T: Send>(&self, end: usize, f: impl FnOnce(&Netlink) -> T + Send) -> T {
        self.ends[end].with(|| f(&Netlink::open().unwrap())).unwrap()
    }

    pub fn give_address(&self, end: usize, interface: &str) {
        self.with(end, |netlink| {
            let index = netlink.existing_link(interface).unwrap().index;
            netlink.add_address(index, &InterfaceAddress::new(address(end), 24)).unwrap();
        });
    }

    pub fn directory(&self, end: usize) -> RunDirectory {
        RunDirectory::at(self.folder.join(["left", "right"][end]))
    }

    pub fn hitless(&self, end: usize, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hitless"));
        command
            .args(args)
            .env("HITLESS_RUN_DIR", self.directory(end).path())
            .env(daemon::keeper::LAB, std::process::id().to_string())
            .stdin(Stdio::null());
        self.ends[end].prepare(&mut command).unwrap();
        command
    }

    /// Runs it to its end: exit code and standard error.
    pub fn run(&self, end: usize, args: &[&str]) -> (i32, String) {
        outcome(&mut self.hitless(end, args))
    }

    /// A daemon at one end that answers; what it says is kept.
    pub fn up(&self, end: usize, args: &[&str]) -> Daemon {
        let log = self.folder.join(format!("said-{end}"));
        let all = [&["link", "up", PLUGS[end]], args].concat();
        let mut command = self.hitless(end, &all);
        command.stderr(fs::File::create(&log).unwrap());
        let daemon = Daemon(command.spawn().unwrap());
        wait_for("the daemon to answer", || self.status(end).is_some(), || fs::read_to_string(&log).unwrap());
        daemon
    }

    /// Output of the daemon of an end so far.
    pub fn said(&self, end: usize) -> String {
        fs::read_to_string(self.folder.join(format!("said-{end}"))).unwrap()
    }

    pub fn status(&self, end: usize) -> Option<LinkStatus> {
        match self.directory(end).ask("hit0", LinkRequest::Status) {
            Ok(LinkReply::Status(status)) => Some(*status),
            _ => None,
        }
    }

    pub fn wait_until_protected(&self) {
        let protected = || (0..2).all(|end| self.status(end).is_some_and(|status| status.is_active()));
        wait_for("protection", protected, || format!("{}{}", self.said(0), self.said(1)));
    }

    /// Runs `ip` at an end.
    pub fn try_ip(&self, end: usize, args: &str) -> Result<String, String> {
        let mut command = Command::new("ip");
        command.args(args.split_whitespace()).stdin(Stdio::null());
        self.ends[end].prepare(&mut command).unwrap();
        let output = command.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
    }

    /// [`Lab::try_ip`] for what must work.
    pub fn ip(&self, end: usize, args: &str) -> String {
        self.try_ip(end, args).unwrap_or_else(|error| panic!("ip {args}: {error}"))
    }

    /// Sends bytes by TCP from an end to an address of the other; an error if they did not arrive as they were.
    pub fn transfer(&self, from: usize, to: IpAddr, bytes: u64) -> io::Result<()> {
        transfer(&self.ends[from], &self.ends[1 - from], to, bytes)
    }

    /// Asks for a datagram of this size back from an end, until it comes or patience ends.
    pub fn udp(&self, from: usize, size: usize) -> io::Result<()> {
        let open = |end: usize| self.ends[end].with(|| UdpSocket::bind((address(end), 0)).unwrap()).unwrap();
        let (near, far) = (open(from), open(1 - from));
        let there: Vec<u8> = (0..size).map(|at| (at * 7) as u8).collect();
        near.set_read_timeout(Some(Duration::from_millis(500)))?;
        far.set_read_timeout(Some(Duration::from_millis(500)))?;
        let mut buffer = vec![0; 70_000];
        for _ in 0..20 {
            near.send_to(&there, far.local_addr()?)?;
            if far.recv(&mut buffer).is_ok_and(|len| buffer[..len] == there[..]) {
                return Ok(());
            }
        }
        Err(io::Error::new(io::ErrorKind::TimedOut, format!("no datagram of {size} bytes arrived")))
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A process; killed if the test forgets it.
pub struct Daemon(pub Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a program that should end by itself: exit code and standard error. One that does not is killed, and has none.
pub fn outcome(command: &mut Command) -> (i32, String) {
    let mut program = Daemon(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
    let ended = (0..6_000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        program.0.try_wait().unwrap().is_some()
    });
    let _ = program.0.kill();
    let code = program.0.wait().unwrap().code().filter(|_| ended);
    let mut said = String::new();
    program.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    (code.unwrap_or(-1), said)
}

pub fn transfer(from: &Namespace, server: &Namespace, to: IpAddr, bytes: u64) -> io::Result<()> {
    let stop = StopFlag::new();
    let listener = server.with(|| TcpListener::bind((to, 0)).unwrap()).unwrap();
    let to = SocketAddr::new(to, listener.local_addr()?.port());
    let verdict = std::thread::scope(|scope| {
        let (done, is_done) = mpsc::channel::<()>();
        scope.spawn(|| load::serve(listener, &stop));
        let stop = &stop;
        scope.spawn(move || {
            let _ = is_done.recv_timeout(PATIENCE);
            stop.stop();
        });
        let verdict = from.with(|| load::transfer(to, bytes, bytes, stop)).unwrap();
        drop(done);
        verdict
    });
    if verdict?.is_intact() { Ok(()) } else { Err(io::Error::other("other bytes arrived than were sent")) }
}

/// Generous, since the machine may be busy. `else_say` is asked what is known if it never comes.
pub fn wait_for(what: &str, mut done: impl FnMut() -> bool, else_say: impl Fn() -> String) {
    for _ in 0..3_000 {
        if done() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("waited half a minute for {what}; {}", else_say());
}

/// A cable from the namespace of the calling thread to a host.
pub fn plug(inner: &str, outer: &str, host: &Namespace) {
    let netlink = Netlink::open().unwrap();
    netlink.add_veth(inner, outer).unwrap();
    netlink.set_namespace(netlink.existing_link(outer).unwrap().index, host).unwrap();
}

pub fn bring_up(interface: &str, address: Option<&InterfaceAddress>) {
    let netlink = Netlink::open().unwrap();
    let index = netlink.existing_link(interface).unwrap().index;
    netlink.set_up(index, true).unwrap();
    if let Some(address) = address {
        netlink.add_address(index, address).unwrap();
    }
}
