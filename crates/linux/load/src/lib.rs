//! Built-in traffic: real kernel TCP and UDP between two network namespaces.
//!
//! ```text
//!   pingpong::run ──▶ one small message at a time, and back       ─┐
//!   bulk::run     ──▶ as much as fits, counted where it arrives    ├─▶ serve
//!   transfer      ──▶ known bytes, compared where they arrive     ─┘
//!   witness::send ──▶ numbered datagrams at a steady pace  ───────────▶ witness::receive
//! ```
//!
//! Sockets belong to the namespace of the thread that opens them, so the caller moves its threads first and nothing
//! here knows about namespaces. One [`serve`] answers all three kinds of TCP run: the first bytes of a connection say
//! which one it is and which congestion control both ends use.
//!
//! No call blocks for longer than `TICK`, so a stop flag ends everything well within 200 ms. A run that is stopped
//! returns what it measured so far; when there is nothing to return, the error is of kind `Interrupted`.

pub mod bulk;
pub mod pingpong;
mod tcp;
pub mod witness;

pub use bulk::{Bulk, BulkThroughput, TransferCheck, transfer};
pub use pingpong::{PingPong, RoundTrips};
pub use tcp::KernelCongestion;
pub use witness::WitnessReport;

use std::fmt::Display;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tcp::{LoadConnection, LoadRequest};
use units::StopFlag;

/// Longest wait of a socket call before it checks its stop flag again.
const TICK: Duration = Duration::from_millis(50);

/// Connections are few and none is timed from its first packet: asking now and then is enough.
const ACCEPT_EVERY: Duration = Duration::from_millis(5);

/// Totals of a server for the time that it ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerTotals {
    pub connections: u64,
    /// Payload bytes that arrived, of all kinds of traffic.
    pub bytes: u64,
    /// Connections that ended for another reason than the peer's leaving.
    pub failed: u64,
}

#[derive(Debug, Default)]
struct LoadCounters {
    connections: AtomicU64,
    bytes: AtomicU64,
    failed: AtomicU64,
}

/// Keeps a processor busy until `over`.
pub fn hog(over: &StopFlag) {
    while !over.is_stopped() {
        std::hint::spin_loop();
    }
}

/// Answers every connection on a thread of its own until `stop`.
pub fn serve(listener: TcpListener, stop: &StopFlag) -> io::Result<ServerTotals> {
    listener.set_nonblocking(true).map_err(context("cannot poll the listening socket"))?;
    tcp::begin_unpaced(&listener);
    let counters = LoadCounters::default();
    thread::scope(|scope| {
        while !stop.is_stopped() {
            match listener.accept() {
                Ok((stream, _)) => {
                    let answer = || answer(stream, stop, &counters);
                    thread::Builder::new()
                        .name("traffic".into())
                        .spawn_scoped(scope, answer)
                        .map_err(context("cannot start a thread for a connection"))?;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => thread::sleep(ACCEPT_EVERY),
                Err(error) if is_departure(&error) || error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(context("cannot accept a connection")(error)),
            }
        }
        Ok(())
    })?;
    Ok(ServerTotals {
        connections: counters.connections.into_inner(),
        bytes: counters.bytes.into_inner(),
        failed: counters.failed.into_inner(),
    })
}

fn answer(stream: TcpStream, stop: &StopFlag, counters: &LoadCounters) {
    counters.connections.fetch_add(1, Ordering::Relaxed);
    match converse(stream, stop, &counters.bytes) {
        Err(error) if !is_departure(&error) && !stop.is_stopped() => {
            _ = counters.failed.fetch_add(1, Ordering::Relaxed)
        }
        Ok(()) | Err(_) => {}
    }
}

fn converse(stream: TcpStream, stop: &StopFlag, bytes: &AtomicU64) -> io::Result<()> {
    let over = || stop.is_stopped();
    let Some((connection, request)) = LoadConnection::accept(stream, &over)? else { return Ok(()) };
    match request {
        LoadRequest::PingPong { size } => pingpong::echo(&connection, size, &over, bytes),
        LoadRequest::Bulk => bulk::sink(&connection, &over, bytes),
        LoadRequest::Check { bytes: expected, seed } => bulk::check(&connection, expected, seed, &over, bytes),
    }
}

/// A client may leave at any moment; one that drops what is still queued, as a bulk run does, resets the connection.
fn is_departure(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}

/// Bytes that both ends can make from a seed (xorshift64, Marsaglia 2003), so that neither has to send them twice.
#[derive(Debug)]
struct BytePattern(u64);

impl BytePattern {
    /// Seeds are mixed first: neighbouring ones would begin alike, and zero would stay zero for ever.
    fn new(seed: u64) -> Self {
        let mixed = (seed ^ (seed >> 30)).wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        Self((mixed ^ (mixed >> 27)) | 1 << 63)
    }

    /// Starts at a word boundary each time, so the two ends must cut their streams at the same multiples of eight.
    fn fill(&mut self, bytes: &mut [u8]) {
        for word in bytes.chunks_mut(8) {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            word.copy_from_slice(&self.0.to_le_bytes()[..word.len()]);
        }
    }
}

fn interrupted(why: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::Interrupted, why.into())
}

#[expect(clippy::disallowed_methods, reason = "this traffic measures the real kernel, in real time")]
fn now() -> Instant {
    Instant::now()
}

fn context(what: impl Display) -> impl FnOnce(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{what}: {error}"))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::SocketAddr;

    use super::*;

    /// Runs `client` against a server on the loopback, and stops the server even if the client fails.
    pub(crate) fn beside_a_server<T>(client: impl FnOnce(SocketAddr, &StopFlag) -> T) -> (T, ServerTotals) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port on the loopback");
        let to = listener.local_addr().expect("the port's number");
        let stop = StopFlag::new();
        thread::scope(|scope| {
            let server = scope.spawn(|| serve(listener, &stop));
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| client(to, &stop)));
            stop.stop();
            let served = server.join().expect("no panic in the server").expect("a server that ran to its end");
            (outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic)), served)
        })
    }

    #[test]
    fn a_stranger_is_counted_and_turned_away_while_the_server_lives_on() {
        let ((), served) = beside_a_server(|to, stop| {
            let mut stranger = TcpStream::connect(to).expect("a connection");
            stranger.write_all(&[b'?'; 64]).expect("room for a few bytes");
            _ = io::copy(&mut stranger, &mut io::sink());
            assert!(transfer(to, 1_000, 1, stop).expect("a server that still answers").is_intact());
        });
        assert_eq!(served, ServerTotals { connections: 2, bytes: 1_000, failed: 1 });
    }

    #[test]
    fn a_stop_ends_the_server_under_a_silent_client() {
        let (client, served) = beside_a_server(|to, _| {
            let client = TcpStream::connect(to).expect("a connection");
            thread::sleep(4 * ACCEPT_EVERY);
            client
        });
        assert_eq!((served.bytes, served.failed), (0, 0));
        drop(client);
    }

    #[test]
    fn patterns_repeat_for_a_seed_and_differ_between_neighbours() {
        let bytes = |seed| {
            let mut bytes = [0; 29];
            BytePattern::new(seed).fill(&mut bytes);
            bytes
        };
        assert_eq!(bytes(7), bytes(7));
        for seed in 0..1_000 {
            assert_ne!(bytes(seed), bytes(seed + 1));
            assert_ne!(bytes(seed), [0; 29]);
        }
    }
}
