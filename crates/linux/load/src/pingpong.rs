//! Ping-pong: one message at a time over TCP, there and back, and how long each took.
//!
//! The far end echoes whole messages only, so a round trip covers the loss of any segment of either direction. Every
//! message carries its number and the echo is compared with it: a stale or damaged answer is an error, not a sample.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hdrhistogram::Histogram;
use units::Progress;

use super::tcp::{KernelCongestion, LARGEST_MESSAGE, LoadConnection, LoadRequest, MessageRead};
use super::{context, now};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PingPong {
    pub count: u32,
    /// Bytes of a message, in each direction.
    pub size: usize,
    pub congestion: KernelCongestion,
    /// The run ends after this long, however many round trips it has made.
    pub within: Duration,
}

impl Default for PingPong {
    fn default() -> Self {
        Self { count: 10_000, size: 64, congestion: KernelCongestion::default(), within: Duration::from_secs(60) }
    }
}

impl PingPong {
    /// A run that ends only when it is stopped, for use beside another flow.
    pub fn endless() -> Self {
        Self { count: u32::MAX, within: Duration::MAX, ..Self::default() }
    }
}

/// The distribution of round-trip times, to three significant digits and up to a minute.
#[derive(Clone, Debug)]
pub struct RoundTrips {
    nanoseconds: Histogram<u64>,
    unanswered: Option<Duration>,
}

impl Default for RoundTrips {
    fn default() -> Self {
        const MINUTE: u64 = 60_000_000_000;
        let nanoseconds = Histogram::new_with_bounds(1, MINUTE, 3).expect("bounds that the histogram allows");
        Self { nanoseconds, unanswered: None }
    }
}

impl RoundTrips {
    pub fn count(&self) -> u64 {
        self.nanoseconds.len()
    }

    /// The time that a fraction `quantile` of the round trips did not exceed; zero when there were none.
    pub fn quantile(&self, quantile: f64) -> Duration {
        Duration::from_nanos(self.nanoseconds.value_at_quantile(quantile))
    }

    pub fn p50(&self) -> Duration {
        self.quantile(0.5)
    }

    pub fn p99(&self) -> Duration {
        self.quantile(0.99)
    }

    pub fn p999(&self) -> Duration {
        self.quantile(0.999)
    }

    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds.max())
    }

    /// The number that took longer than `limit`, to a precision of three digits.
    pub fn over(&self, limit: Duration) -> u64 {
        let above = self.nanoseconds.highest_equivalent(nanoseconds(limit)).saturating_add(1);
        if above > self.nanoseconds.high() { 0 } else { self.nanoseconds.count_between(above, self.nanoseconds.high()) }
    }

    /// Time for which the last message had waited for its echo when the run ended without it. The quantiles do not contain
    /// it.
    pub fn unanswered(&self) -> Option<Duration> {
        self.unanswered
    }

    pub fn merge(&mut self, other: &Self) {
        self.nanoseconds.add(&other.nanoseconds).expect("equal bounds");
        self.unanswered = self.unanswered.max(other.unanswered);
    }

    pub fn record(&mut self, took: Duration) {
        self.nanoseconds.saturating_record(nanoseconds(took));
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Makes `plan.count` round trips, or as many as time allows. `progress` gets the number of them; each is a part.
pub fn run(to: SocketAddr, plan: &PingPong, progress: &dyn Progress) -> io::Result<RoundTrips> {
    let size = plan.size;
    if !(1..=LARGEST_MESSAGE).contains(&size) {
        let message = format!("a message of {size} bytes: expected 1 to {LARGEST_MESSAGE}");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let deadline = now().checked_add(plan.within);
    let is_over = |done| !progress.go_on(done) || deadline.is_some_and(|deadline| now() >= deadline);
    let connection = LoadConnection::open(to, LoadRequest::PingPong { size }, plan.congestion, &|| is_over(0))?;
    let failed = |error| context(format_args!("ping-pong with {to}"))(error);
    let mut trips = RoundTrips::default();
    let (mut message, mut echo) = (vec![0; size], vec![0; size]);
    loop {
        let done = trips.count();
        let over = || is_over(done);
        if over() || done >= plan.count.into() {
            return Ok(trips);
        }
        number(&mut message, done);
        let sent = now();
        match round_trip(&connection, &message, &mut echo, &over) {
            Ok(true) => trips.record(now() - sent),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => return Err(failed(error)),
            // The far end may have heard of the stop first, and closed.
            Ok(false) | Err(_) if over() => trips.unanswered = Some(now() - sent),
            Ok(false) => return Err(failed(io::Error::new(io::ErrorKind::UnexpectedEof, "closed by the far end"))),
            Err(error) => return Err(failed(error)),
        }
        progress.part_done();
    }
}

fn round_trip(
    connection: &LoadConnection,
    message: &[u8],
    echo: &mut [u8],
    over: &dyn Fn() -> bool,
) -> io::Result<bool> {
    if !connection.write_whole(message, over)? || connection.read_whole(echo, over)? != MessageRead::Whole {
        return Ok(false);
    }
    if echo != message {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the echo differs from the message"));
    }
    Ok(true)
}

fn number(message: &mut [u8], number: u64) {
    for (byte, digit) in message.iter_mut().zip(number.to_le_bytes()) {
        *byte = digit;
    }
}

pub(crate) fn echo(
    connection: &LoadConnection,
    size: usize,
    over: &dyn Fn() -> bool,
    bytes: &AtomicU64,
) -> io::Result<()> {
    let mut message = vec![0; size];
    while connection.read_whole(&mut message, over)? == MessageRead::Whole && !over() {
        bytes.fetch_add(size as u64, Ordering::Relaxed);
        if !connection.write_whole(&message, over)? {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::net::TcpListener;

    use units::StopFlag;

    use super::super::tests::beside_a_server;
    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn every_round_trip_is_counted_and_the_percentiles_are_in_order() {
        let plan = PingPong { count: 500, within: LONG, ..PingPong::default() };
        let told = Cell::new(0);
        let progress = |done| {
            told.set(done);
            true
        };
        let (trips, served) = beside_a_server(|to, _| run(to, &plan, &progress));
        let trips = trips.expect("a run");
        assert_eq!((trips.count(), told.get(), served.bytes), (500, 500, 500 * 64));
        let ladder = [Duration::from_nanos(1), trips.p50(), trips.p99(), trips.p999(), trips.max()];
        assert!(ladder.is_sorted(), "{ladder:?}");
        assert_eq!((trips.over(Duration::ZERO), trips.over(trips.max()), trips.unanswered()), (500, 0, None));
    }

    #[test]
    fn messages_larger_than_a_segment_come_back_whole() {
        let plan = PingPong { count: 5, size: LARGEST_MESSAGE, within: LONG, ..PingPong::default() };
        let (trips, _) = beside_a_server(|to, stop| run(to, &plan, stop));
        assert_eq!(trips.expect("a run").count(), 5);
    }

    #[test]
    fn an_open_ended_run_ends_with_the_flow_beside_it() {
        let (trips, _) = beside_a_server(|to, _| run(to, &PingPong::endless(), &|done| done < 20));
        assert_eq!(trips.expect("a run").count(), 20);
    }

    #[test]
    fn a_stop_in_mid_run_returns_what_was_measured() {
        let plan = PingPong { count: u32::MAX, within: LONG, ..PingPong::default() };
        let (trips, _) = beside_a_server(|to, stop| {
            let progress = |done| {
                if done >= 20 {
                    stop.stop();
                }
                stop.go_on(done)
            };
            run(to, &plan, &progress)
        });
        assert_eq!(trips.expect("a run").count(), 20);
    }

    #[test]
    fn a_message_that_is_never_answered_is_reported_apart() {
        let mute = TcpListener::bind("127.0.0.1:0").expect("a port on the loopback");
        let to = mute.local_addr().expect("the port's number");
        let stop = StopFlag::new();
        let trips = std::thread::scope(|scope| {
            scope.spawn(|| {
                let (stream, _) = mute.accept().expect("a client");
                let accepted = LoadConnection::accept(stream, &|| false).expect("a request");
                let (connection, _) = accepted.expect("not over");
                assert_eq!(connection.read_whole(&mut [0; 64], &|| false).expect("a message"), MessageRead::Whole);
                stop.stop();
                _ = connection.read_whole(&mut [0; 1], &|| false);
            });
            run(to, &PingPong { within: LONG, ..PingPong::default() }, &stop).expect("a run")
        });
        assert_eq!(trips.count(), 0);
        assert!(trips.unanswered().is_some());
    }

    #[test]
    fn merged_distributions_keep_every_sample() {
        let of = |micros: &[u64]| {
            let mut trips = RoundTrips::default();
            micros.iter().for_each(|&micros| trips.record(Duration::from_micros(micros)));
            trips
        };
        let mut trips = of(&[10, 20, 30]);
        trips.merge(&of(&[200_000, 5_000]));
        assert_eq!((trips.count(), trips.over(Duration::from_micros(30)), trips.over(Duration::MAX)), (5, 2, 0));
        assert_eq!(trips.p50().as_micros(), 30);
        assert_eq!(trips.max().as_millis(), 200);
    }
}
