//! A redis-server of a test's own: on a free port of loopback, with its data in a temporary directory, ended by its
//! process id when the test ends. Needs nothing but the standard
//! library and the testkit, so that other crates can include it by path.

#![allow(dead_code, reason = "not every test that includes this needs all of it")]

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// Below the ports that the system hands out: a client that tries again and again while the server is away would
/// sooner or later be given the server's port as its own, and be connected to itself.
const PORTS: std::ops::Range<u16> = 20_000..32_000;
/// Looks at a server that is not ready yet, 20 ms apart.
const LOOKS: usize = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeps {
    /// Forgets everything when it ends.
    Nothing,
    /// Has written down everything that it has acknowledged.
    Everything,
}

#[derive(Debug)]
pub(crate) struct RedisServer {
    port: u16,
    /// Named after the port, which it reserves for as long as the test runs.
    dir: PathBuf,
    arguments: Vec<String>,
    child: Option<Child>,
}

impl RedisServer {
    /// `None`, and the test is skipped, where redis-server is not installed.
    pub(crate) fn start(keeps: Keeps) -> Option<Self> {
        Self::start_with(keeps, &[])
    }

    pub(crate) fn start_with(keeps: Keeps, arguments: &[&str]) -> Option<Self> {
        if !testkit::installed("redis-server") {
            return None;
        }
        let keep = match keeps {
            Keeps::Nothing => ["--appendonly", "no", "--save", ""].as_slice(),
            Keeps::Everything => &["--appendonly", "yes", "--appendfsync", "always", "--save", ""],
        };
        let arguments = keep.iter().chain(arguments).map(|&argument| argument.to_owned()).collect();
        let mut server = Self { port: 0, dir: PathBuf::new(), arguments, child: None };
        let first = (std::process::id() % u32::from(PORTS.end - PORTS.start)) as u16;
        for place in 0..PORTS.end - PORTS.start {
            server.port = PORTS.start + (first + place) % (PORTS.end - PORTS.start);
            if server.reserve() {
                if server.launch() {
                    return Some(server);
                }
                let _ = fs::remove_dir_all(&server.dir);
            }
        }
        panic!("no free port for redis-server between {} and {}", PORTS.start, PORTS.end);
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// For `Redis::open` and `--bus`.
    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    /// Ends it at once, as if the power had failed.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// On the same port, with what it kept.
    pub(crate) fn start_again(&mut self) {
        self.kill();
        assert!(self.launch(), "redis-server does not start again on port {}", self.port);
    }

    /// Asks it one thing, and returns the answer as it came, without its length: `+OK`, `:1`, `text`, `-ERR …`.
    pub(crate) fn ask(&self, words: &[&str]) -> String {
        let mut connection = self.connect().expect("redis-server should accept a connection");
        answer(&mut connection, words).expect("redis-server should answer")
    }

    fn reserve(&mut self) -> bool {
        self.dir = std::env::temp_dir().join(format!("hitless-redis-{}", self.port));
        if fs::create_dir(&self.dir).is_err() {
            return false;
        }
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, self.port)).is_ok();
        if !free {
            let _ = fs::remove_dir(&self.dir);
        }
        free
    }

    /// False if it ended by itself: somebody else was faster on that port.
    fn launch(&mut self) -> bool {
        let child = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--daemonize", "no"])
            .args(["--port", &self.port.to_string()])
            .arg("--dir")
            .arg(&self.dir)
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("redis-server should start");
        let id = child.id();
        let child = self.child.insert(child);
        for _ in 0..LOOKS {
            if child.try_wait().expect("a child of ours can be waited for").is_some() {
                self.child = None;
                return false;
            }
            if is_ready(self.port, id) {
                return true;
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("redis-server on port {} is not ready after {} s", self.port, LOOKS / 50);
    }

    fn connect(&self) -> std::io::Result<TcpStream> {
        connect(self.port)
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn connect(port: u16) -> std::io::Result<TcpStream> {
    let connection = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    connection.set_read_timeout(Some(Duration::from_secs(10)))?;
    Ok(connection)
}

/// Answers, has its data, and is the one that was started. One that wants a password is as ready as can be seen.
fn is_ready(port: u16, id: u32) -> bool {
    let Ok(mut connection) = connect(port) else { return false };
    match answer(&mut connection, &["INFO", "server"]) {
        Ok(info) if info.starts_with("-NOAUTH") => true,
        Ok(info) if info.contains(&format!("process_id:{id}\r\n")) => {
            answer(&mut connection, &["PING"]).is_ok_and(|pong| pong == "+PONG")
        }
        _ => false,
    }
}

fn answer(connection: &mut TcpStream, words: &[&str]) -> std::io::Result<String> {
    let mut request = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        request.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
    connection.write_all(&request)?;
    let line = line(connection)?;
    let Some(length) = line.strip_prefix('$').and_then(|length| length.parse::<usize>().ok()) else { return Ok(line) };
    let mut text = vec![0; length + 2];
    connection.read_exact(&mut text)?;
    text.truncate(length);
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn line(connection: &mut TcpStream) -> std::io::Result<String> {
    let mut line = Vec::new();
    let mut byte = [0];
    while !line.ends_with(b"\r\n") {
        if connection.read(&mut byte)? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        line.push(byte[0]);
    }
    line.truncate(line.len() - 2);
    Ok(String::from_utf8_lossy(&line).into_owned())
}
