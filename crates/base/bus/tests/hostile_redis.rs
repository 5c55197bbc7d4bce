//! A Redis that is none: what it sends costs a connection and no memory, and it is asked again later. One test, since it looks
//! at the memory of the whole process.

mod bus_words;
mod redis_server;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use bus::{Bus, BusError, RedisBus};
use bus_words::{clock, corrupting};
use redis_server::{Keeps, RedisServer};
use units::StopFlag;

/// More than all bounds together, with what the test itself takes.
const ALLOWED: u64 = 100 << 20;

/// Sends the same again and again, as fast as it is taken.
fn send_on(mut connection: TcpStream, beginning: &[u8], again: &[u8]) {
    let _ = connection.set_write_timeout(Some(Duration::from_secs(2)));
    let _ = connection.read(&mut [0; 4_096]);
    let mut more = connection.write_all(beginning);
    while more.is_ok() {
        more = connection.write_all(again);
    }
}

/// A server that does so with everybody, until it is told to stop; and how many came.
struct Flood<'a> {
    beginning: &'a [u8],
    again: &'a [u8],
    came: AtomicUsize,
    stop: StopFlag,
}

impl Flood<'_> {
    fn run(&self, listener: &TcpListener) {
        listener.set_nonblocking(true).unwrap();
        thread::scope(|scope| {
            while !self.stop.is_stopped() {
                match listener.accept() {
                    Ok((connection, _)) => {
                        connection.set_nonblocking(false).unwrap();
                        self.came.fetch_add(1, Ordering::Relaxed);
                        scope.spawn(|| send_on(connection, self.beginning, self.again));
                    }
                    Err(_) => thread::sleep(Duration::from_millis(1)),
                }
            }
        });
    }
}

/// The most that this process ever took, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1_024
}

type Question = fn(&mut RedisBus) -> Result<(), BusError>;

const QUESTIONS: [Question; 5] = [
    |bus| bus.publish(&corrupting("a", "1", 1, 1)).map(drop),
    |bus| bus.receive(Duration::from_millis(1)).map(drop),
    |bus| bus.recall("a").map(drop),
    |bus| bus.hosts().map(drop),
    |bus| bus.heartbeat("a", Duration::from_secs(1)),
];

#[test]
fn a_redis_that_announces_two_gigabytes_and_sends_costs_a_connection_and_no_memory() {
    let filler = vec![b'x'; 1 << 20];
    let values = b":1\r\n".repeat(100_000);
    let scan = |cursor: u64| {
        let keys = (0..6).map(|nth| format!("$1000000\r\nhitless:port:a/{cursor}{nth}{}\r\n", "k".repeat(999_984)));
        format!("*2\r\n$1\r\n1\r\n*6\r\n{}", keys.collect::<String>()).into_bytes()
    };
    let floods: [(&[u8], &[u8], &str); 7] = [
        (b"$2000000000\r\n", &filler, "a text of 2000000000 bytes"),
        (b"*1\r\n$8000000\r\n", &filler, ""),
        (b"*2000000000\r\n", &values, "a list of 2000000000"),
        (b"*60000\r\n", &values, ""),
        (b"", b"*1\r\n", "lists in lists"),
        (b"+", &filler, "a line of more than"),
        (b"", &scan(1), ""),
    ];
    let before = peak();
    for (beginning, again, wanted) in floods {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let url = format!("redis://{}", listener.local_addr().unwrap());
        let flood = Flood { beginning, again, came: AtomicUsize::new(0), stop: StopFlag::new() };
        thread::scope(|scope| {
            scope.spawn(|| flood.run(&listener));
            let _end = flood.stop.stop_on_drop();
            for question in QUESTIONS {
                let error = question(&mut RedisBus::open(&url).unwrap()).expect_err("no answer of ours").to_string();
                assert!(error.contains(wanted) && error.starts_with("redis://127.0.0.1:"), "{error}");
            }
            waits_between_attempts(&url, &flood.came);
        });
        let took = peak().saturating_sub(before);
        assert!(took < ALLOWED, "{took} bytes for {}", beginning.escape_ascii());
    }
    drop(filler);
    a_long_entry_does_not_silence_what_comes_behind_it();
}

/// Someone who receives in a loop must not connect in a loop.
fn waits_between_attempts(url: &str, came: &AtomicUsize) {
    let mut bus = RedisBus::open(url).unwrap();
    let (began, before) = (clock(), came.load(Ordering::Relaxed));
    while began.elapsed() < Duration::from_millis(600) {
        assert!(bus.receive(Duration::from_millis(5)).is_err());
    }
    // Waits of 100, 200 and 400 ms.
    let attempts = came.load(Ordering::Relaxed) - before;
    assert!(attempts <= 4, "{attempts} attempts in {:?}", began.elapsed());
}

/// Anybody who can write to Redis can write an entry of any length.
fn a_long_entry_does_not_silence_what_comes_behind_it() {
    let Some(server) = RedisServer::start(Keeps::Nothing) else { return };
    let patient = || RedisBus::open(&server.url()).unwrap().with_patience(Duration::from_secs(30));
    let (mut says, mut hears) = (patient(), patient());
    says.publish(&corrupting("a", "1", 1, 1)).unwrap();
    assert_eq!(hears.catch_up().unwrap().len(), 1);
    says.publish(&corrupting("a", "1", 1, 2)).unwrap();
    server.ask(&["XADD", "hitless:events", "*", "message", &"x".repeat(9 << 20)]);
    says.publish(&corrupting("a", "2", 1, 1)).unwrap();
    let mut heard = Vec::new();
    while !heard.contains(&corrupting("a", "2", 1, 1)) {
        heard.extend(hears.receive(Duration::from_millis(50)).unwrap());
    }
    assert!(heard.contains(&corrupting("a", "1", 1, 2)), "{heard:?}");
    assert!(hears.gaps().iter().any(|gap| gap.contains("too long to be ours")));
    says.publish(&corrupting("a", "1", 1, 3)).unwrap();
    assert_eq!(hears.receive(Duration::from_secs(5)).unwrap(), [corrupting("a", "1", 1, 3)]);
}
