//! Traffic between the hosts.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use linux::clock::Clock;
use linux::net::Namespace;
use linux::poll;
use units::StopFlag;

use super::{Lab, address};

#[derive(Clone, Copy, Debug, Default)]
pub struct Traffic {
    /// Duration of a flow at 80 Mbit/s: slow enough that no ring runs over on a busy machine.
    pub seconds: u64,
    /// Short connections, some at a time.
    pub connections: u32,
    /// Number of times that both are halved, for a machine that cannot keep up.
    pub halved: u32,
}

/// Bits a second.
const RATE: u64 = 80_000_000;
const PORTS: std::ops::Range<u16> = 7_001..7_005;
const BULK_PORT: u16 = 7_009;
const CLIENTS: usize = 16;
const REQUEST: usize = 64;
const RESPONSE: usize = 3_000;
const PATIENCE: Duration = Duration::from_secs(20);

impl Traffic {
    /// Runs the traffic; returns the number of connections that failed, since a loss only delays them.
    pub fn run(&self, lab: &Lab) -> u32 {
        if self.seconds > 0 {
            bulk(lab, self.seconds, RATE >> self.halved);
        }
        if self.connections > 0 { short(lab, (self.connections >> self.halved).max(1)) } else { 0 }
    }
}

fn bulk(lab: &Lab, seconds: u64, rate: u64) {
    let iperf = |end: usize, args: &[&str]| {
        let mut command = Command::new("iperf3");
        command.args(args).args(["-p", &BULK_PORT.to_string()]);
        lab.host(end).prepare(&mut command).unwrap();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
    };
    if let Some(reason) = testkit::missing("iperf3") {
        testkit::skip_part(format!("{reason}: a flow of our own instead"));
        return own_bulk(lab, seconds, rate);
    }
    let mut server = iperf(1, &["-s", "-1"]).unwrap();
    wait_until_listening(lab.host(1), BULK_PORT);
    let (to, time, rate) = (address(1).to_string(), seconds.to_string(), rate.to_string());
    let client = iperf(0, &["-c", &to, "-t", &time, "-b", &rate, "-C", "cubic"]);
    let _ = client.unwrap().wait();
    let _ = server.kill();
    let _ = server.wait();
}

/// Without connecting, which iperf3 would take for its client.
fn wait_until_listening(namespace: &Namespace, port: u16) {
    let wanted = format!(":{port:04X} ");
    for _ in 0..500 {
        // Sockets of the namespace that the reading thread is in.
        let listens = namespace.with(|| {
            let tables = ["/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"];
            tables.iter().any(|table| std::fs::read_to_string(table).unwrap_or_default().contains(&wanted))
        });
        if listens.unwrap() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn own_bulk(lab: &Lab, seconds: u64, rate: u64) {
    let each_ms = vec![7; (rate / 8_000) as usize];
    let listener = lab.host(1).with(|| TcpListener::bind((address(1), BULK_PORT)).unwrap()).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let _ = io::copy(&mut stream, &mut io::sink());
        });
        let to = SocketAddr::from((address(1), BULK_PORT));
        let mut stream = lab.host(0).with(|| TcpStream::connect(to).unwrap()).unwrap();
        let clock = Clock::start();
        while clock.elapsed() < Duration::from_secs(seconds) {
            stream.write_all(&each_ms).unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
    });
}

/// Many connections of a request and a response each.
fn short(lab: &Lab, connections: u32) -> u32 {
    let listeners: Vec<TcpListener> =
        PORTS.map(|port| lab.host(1).with(|| TcpListener::bind((address(1), port)).unwrap()).unwrap()).collect();
    let (done, failed, left) = (StopFlag::new(), AtomicU32::new(0), AtomicU32::new(connections));
    std::thread::scope(|scope| {
        for listener in &listeners {
            listener.set_nonblocking(true).unwrap();
            for _ in 0..CLIENTS / listeners.len() {
                scope.spawn(|| serve(listener, &done));
            }
        }
        let clients: Vec<_> = (0..CLIENTS)
            .map(|nth| {
                let (left, failed) = (&left, &failed);
                scope.spawn(move || {
                    lab.host(0).enter().unwrap();
                    let port = PORTS.start + (nth % PORTS.len()) as u16;
                    let one_less = |left: u32| left.checked_sub(1);
                    while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok() {
                        if ask(SocketAddr::from((address(1), port))).is_err() {
                            failed.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                })
            })
            .collect();
        clients.into_iter().for_each(|client| client.join().unwrap());
        done.stop();
    });
    failed.into_inner()
}

fn ask(server: SocketAddr) -> io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&server, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(&[1; REQUEST])?;
    let mut response = Vec::new();
    stream.read_to_end(&mut response)?;
    if response.len() == RESPONSE { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

fn serve(listener: &TcpListener, done: &StopFlag) {
    while !done.is_stopped() {
        let Ok((stream, _)) = listener.accept() else {
            let _ = poll::wait(&[(listener.as_raw_fd(), false)], Duration::from_millis(20));
            continue;
        };
        // A client that gets no answer counts that.
        let _ = answer(stream);
    }
}

/// Closes first, so that the waiting after the end is on this side and the client's port is free again.
fn answer(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.read_exact(&mut [0; REQUEST])?;
    stream.write_all(&[2; RESPONSE])
}
