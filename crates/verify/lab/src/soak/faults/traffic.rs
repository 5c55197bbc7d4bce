//! Traffic through the link while faults happen: numbered datagrams both ways, transfers whose every byte is compared, and
//! a stream of requests.
//!
//! The datagrams are what the ledger is about. TCP repairs what the link loses, so of it only the bytes count; there is
//! little of it, since counters that explain a lost datagram count its frames too.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::ledger::{ReceivedDatagram, SentDatagram, WitnessJournal};
use crate::stage;
use linux::SystemError;
use linux::clock::Clock;
use linux::net::Namespace;
use load::witness::{self, Departure};
use load::{self, PingPong, pingpong};
use units::{Progress, StopFlag};

/// Port of the numbered datagrams from the left; those from the right have the next.
///
/// They are broadcast. When an interface is new, the kernel puts aside what is sent until it knows the neighbour, sends newer
/// datagrams past that, and counts neither what it loses nor what it swaps: nothing of it is the link's doing.
const PORT: u16 = 7_701;
const PER_SECOND: u32 = 2_000;
const SIZE: usize = 200;

/// Progress of the traffic while it flows.
#[derive(Debug, Default)]
pub(crate) struct TrafficPulse {
    /// Microseconds, of the last arrival from each end.
    last: [AtomicU64; 2],
    /// Number of datagrams up to the highest number that arrived.
    reached: [AtomicU64; 2],
    pub transfers: AtomicU64,
    pub requests: AtomicU64,
    /// Bytes that were not those that were sent.
    pub differing: AtomicU64,
}

impl TrafficPulse {
    /// True if datagrams from both ends have arrived since then.
    pub(crate) fn beats_since(&self, since: Duration) -> bool {
        self.last.iter().all(|last| u128::from(last.load(Ordering::Relaxed)) > since.as_micros())
    }

    /// True if no more of the `sent` datagrams of each end are expected: the last ones have arrived, or none has for a long
    /// time. On a busy machine, datagrams may wait long before a daemon.
    pub(crate) fn is_over(&self, sent: [u64; 2], now: Duration) -> bool {
        /// A time longer than any machine keeps a daemon from running.
        const LONG: Duration = Duration::from_secs(3);
        let arrived = |end: usize| self.reached[end].load(Ordering::Relaxed) >= sent[end];
        let quiet = |end: usize| now > Duration::from_micros(self.last[end].load(Ordering::Relaxed)) + LONG;
        (0..2).all(|end| arrived(end) || quiet(end))
    }
}

fn trouble(what: &'static str) -> impl Fn(io::Error) -> SystemError {
    move |error| SystemError(format!("{what}: {error}"))
}

/// Sends from an end until `over`.
pub(crate) fn send(
    host: &Namespace,
    from: usize,
    clock: Clock,
    over: &StopFlag,
) -> Result<Vec<SentDatagram>, SystemError> {
    host.enter()?;
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).map_err(trouble("a socket for datagrams"))?;
    socket.set_broadcast(true).map_err(trouble("a socket for datagrams"))?;
    let to = SocketAddr::new(stage::everyone(), PORT + from as u16);
    let mut sent = Vec::new();
    let each = |departure| sent.push(SentDatagram { at: clock.elapsed(), refused: departure == Departure::Refused });
    witness::send_each(&socket, to, PER_SECOND, SIZE, over, each).map_err(trouble("datagrams"))?;
    Ok(sent)
}

/// Opens the socket that receives an end's datagrams; call it before the first is sent.
pub(crate) fn listen(host: &Namespace, from: usize) -> Result<UdpSocket, SystemError> {
    host.with(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT + from as u16)))?
        .map_err(trouble("a socket for datagrams"))
}

/// Receives what `from` sends until `over`; the journal without what was sent.
pub(crate) fn receive(
    socket: &UdpSocket,
    from: usize,
    clock: Clock,
    pulse: &TrafficPulse,
    over: &StopFlag,
) -> Result<WitnessJournal, SystemError> {
    let mut arrived = Vec::new();
    let each = |number| {
        let at = clock.elapsed();
        pulse.last[from].store(at.as_micros() as u64, Ordering::Relaxed);
        pulse.reached[from].fetch_max(number + 1, Ordering::Relaxed);
        arrived.push(ReceivedDatagram { number, at });
    };
    let report = witness::receive_each(socket, over, each).map_err(trouble("datagrams"))?;
    let (corrupted, overrun) = (report.corrupted, report.overrun);
    Ok(WitnessJournal { arrived, corrupted, overrun, end: clock.elapsed(), ..WitnessJournal::default() })
}

/// Transfers from the left to the server on the right, until `over`. A transfer that fails says nothing: its connection may
/// have been cut off for longer than it waits.
pub(crate) fn transfers(
    host: &Namespace,
    to: SocketAddr,
    pulse: &TrafficPulse,
    over: &StopFlag,
) -> Result<(), SystemError> {
    const SIZES: [u64; 3] = [1_000, 30_000, 200_000];
    host.enter()?;
    for number in 0.. {
        if over.is_stopped() {
            break;
        }
        let size = SIZES[number as usize % SIZES.len()];
        if let Ok(verdict) = load::transfer(to, size, number, over) {
            pulse.transfers.fetch_add(1, Ordering::Relaxed);
            pulse.differing.fetch_add(verdict.differing, Ordering::Relaxed);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// Requests that are counted and paced, until `over`.
struct RequestPacer<'a> {
    pulse: &'a TrafficPulse,
    over: &'a StopFlag,
}

impl Progress for RequestPacer<'_> {
    fn go_on(&self, done: u64) -> bool {
        self.over.go_on(done)
    }

    fn part_done(&self) {
        self.pulse.requests.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Requests and answers of 200 bytes, a hundred a second at most.
pub(crate) fn requests(
    host: &Namespace,
    to: SocketAddr,
    pulse: &TrafficPulse,
    over: &StopFlag,
) -> Result<(), SystemError> {
    host.enter()?;
    let (plan, pacer) = (PingPong { size: SIZE, ..PingPong::endless() }, RequestPacer { pulse, over });
    while !over.is_stopped() {
        let asked = pingpong::run(to, &plan, &pacer);
        if asked.is_err_and(|error| error.kind() == io::ErrorKind::InvalidData) {
            pulse.differing.fetch_add(1, Ordering::Relaxed);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}
