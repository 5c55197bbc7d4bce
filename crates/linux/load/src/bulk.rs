//! Bulk flows: how much arrives in a given time, and whether it arrives unharmed.
//!
//! Throughput counts at the receiver, by the receiver's clock: what sits in buffers has not arrived. The sink sends
//! a sample of its clock and its count back along the same connection every `SAMPLE_EVERY`; the client measures
//! between the first sample after the warm-up and the first one a `duration` later:
//!
//! ```text
//!   0 ──── warm-up ────▶┊◀──────── duration ────────▶┊
//!      ·     ·     ·     ●     ·     ·     ·     ·     ●     samples
//! ```
//!
//! A checked [`transfer`] sends bytes that the far end can make itself from a seed, and compares every one of them.

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use units::{Progress, StopFlag};

use super::tcp::{KernelCongestion, LoadConnection, LoadRequest, MessageRead};
use crate::{BytePattern, context, interrupted, now};

/// Large enough that system calls cost little beside the copying.
const BLOCK: usize = 256 * 1024;

/// Bytes for which a receiver waits before it reads.
const READ_AT_LEAST: i32 = 16 << 10;
const SAMPLE_EVERY: Duration = Duration::from_millis(50);

/// Time by which the last sample may be overdue before the link counts as silent.
const GRACE: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bulk {
    /// Time that is measured, after the warm-up.
    pub duration: Duration,
    pub warmup: Duration,
    pub congestion: KernelCongestion,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BulkThroughput {
    pub bytes: u64,
    pub elapsed: Duration,
    /// Segments that the sender sent again, warm-up included.
    pub retransmitted: u64,
}

impl BulkThroughput {
    /// TCP payload only; zero when no time was measured.
    pub fn bits_per_second(&self) -> u64 {
        let bits = u128::from(self.bytes) * 8 * 1_000_000_000;
        u64::try_from(bits.checked_div(self.elapsed.as_nanos()).unwrap_or(0)).unwrap_or(u64::MAX)
    }
}

/// Bytes that the sink had received, and the time by its own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BulkSample {
    at: Duration,
    bytes: u64,
}

impl BulkSample {
    const SIZE: usize = 16;

    fn encode(self) -> [u8; Self::SIZE] {
        (u128::from(self.at.as_nanos() as u64) << 64 | u128::from(self.bytes)).to_be_bytes()
    }

    fn decode(bytes: [u8; Self::SIZE]) -> Self {
        let word = u128::from_be_bytes(bytes);
        Self { at: Duration::from_nanos((word >> 64) as u64), bytes: word as u64 }
    }
}

/// The part of a flow that is measured: from the first sample after the warm-up to the latest.
#[derive(Debug)]
struct BulkWindow {
    warmup: Duration,
    duration: Duration,
    ends: Option<(BulkSample, BulkSample)>,
}

impl BulkWindow {
    fn take(&mut self, sample: BulkSample) {
        match &mut self.ends {
            Some((_, last)) => *last = sample,
            None if sample.at >= self.warmup => self.ends = Some((sample, sample)),
            None => {}
        }
    }

    fn bytes(&self) -> u64 {
        self.ends.map_or(0, |(first, last)| last.bytes.saturating_sub(first.bytes))
    }

    fn elapsed(&self) -> Duration {
        self.ends.map_or(Duration::ZERO, |(first, last)| last.at.saturating_sub(first.at))
    }

    fn is_complete(&self) -> bool {
        self.ends.is_some() && self.elapsed() >= self.duration
    }

    /// Extends the measured time to its end if samples stopped coming. If it ended at the last sample, it would hide the
    /// silence.
    fn extend_over_silence(&mut self) {
        let (first, last) = self.ends.unwrap_or_else(|| {
            let nothing = BulkSample { at: self.warmup, bytes: 0 };
            (nothing, nothing)
        });
        self.ends = Some((first, BulkSample { at: first.at + self.duration, bytes: last.bytes }));
    }
}

/// Fills the link for `warmup + duration`. `progress` gets the bytes that have arrived, as of the last 50 ms.
pub fn run(to: SocketAddr, plan: &Bulk, progress: &dyn Progress) -> io::Result<BulkThroughput> {
    let connection = LoadConnection::open(to, LoadRequest::Bulk, plan.congestion, &|| !progress.go_on(0))?;
    connection.discard_on_close()?;
    let enough = StopFlag::new();
    let window = thread::scope(|scope| {
        scope.spawn(|| pump(&connection, &|| enough.is_stopped()));
        let window = watch(&connection, plan, progress);
        enough.stop();
        window
    })
    .map_err(context(format_args!("bulk flow to {to}")))?;
    Ok(BulkThroughput { bytes: window.bytes(), elapsed: window.elapsed(), retransmitted: connection.retransmitted()? })
}

/// An error ends the connection. [`watch`], which reads from it, reports the error.
fn pump(connection: &LoadConnection, over: &dyn Fn() -> bool) {
    let block = vec![0x5a; BLOCK];
    while !over() && matches!(connection.write_whole(&block, over), Ok(true)) {}
}

fn watch(connection: &LoadConnection, plan: &Bulk, progress: &dyn Progress) -> io::Result<BulkWindow> {
    let deadline = now() + plan.warmup + plan.duration + GRACE;
    let arrived = Cell::new(0);
    let stopped = || !progress.go_on(arrived.get());
    let over = || stopped() || now() >= deadline;
    let mut window = BulkWindow { warmup: plan.warmup, duration: plan.duration, ends: None };
    let mut encoded = [0; BulkSample::SIZE];
    while !window.is_complete() && !over() {
        match connection.read_whole(&mut encoded, &over) {
            Ok(MessageRead::Whole) => {
                let sample = BulkSample::decode(encoded);
                window.take(sample);
                arrived.set(sample.bytes);
            }
            // The far end may have heard of the stop first, and closed.
            Ok(_) | Err(_) if over() => break,
            Ok(_) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "closed by the far end")),
            Err(error) => return Err(error),
        }
    }
    match (window.is_complete(), stopped(), window.ends) {
        (true, ..) | (false, true, Some(_)) => {}
        (false, true, None) => return Err(interrupted("stopped before the warm-up was over")),
        (false, false, _) => window.extend_over_silence(),
    }
    Ok(window)
}

/// Takes in everything, and says every so often how much that was: also when nothing comes.
pub(crate) fn sink(connection: &LoadConnection, over: &dyn Fn() -> bool, total: &AtomicU64) -> io::Result<()> {
    connection.read_at_least(READ_AT_LEAST);
    let start = now();
    let mut due = SAMPLE_EVERY;
    let mut bytes = 0;
    let mut block = vec![0; BLOCK];
    while !over() {
        match connection.read(&mut block)? {
            Some(0) => break,
            Some(count) => {
                bytes += count as u64;
                total.fetch_add(count as u64, Ordering::Relaxed);
            }
            None => {}
        }
        let at = now() - start;
        if at >= due {
            connection.write_whole(&BulkSample { at, bytes }.encode(), over)?;
            due = at + SAMPLE_EVERY;
        }
    }
    Ok(())
}

/// Findings of the far end of a checked transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferCheck {
    pub received: u64,
    /// Bytes that were not what the sender sent.
    pub differing: u64,
    /// The offset of the first of them.
    pub first_difference: Option<u64>,
}

impl TransferCheck {
    const SIZE: usize = 24;

    pub fn is_intact(&self) -> bool {
        self.differing == 0
    }

    fn encode(&self) -> [u8; Self::SIZE] {
        let words = [self.received, self.differing, self.first_difference.unwrap_or(u64::MAX)];
        let mut bytes = [0; Self::SIZE];
        bytes.as_chunks_mut().0.iter_mut().zip(words).for_each(|(bytes, word)| *bytes = word.to_be_bytes());
        bytes
    }

    fn decode(bytes: [u8; Self::SIZE]) -> Self {
        let word = |at: usize| u64::from_be_bytes(bytes.as_chunks().0[at]);
        let (received, differing) = (word(0), word(1));
        Self { received, differing, first_difference: (differing > 0).then_some(word(2)) }
    }

    fn compare(&mut self, expected: &[u8], found: &[u8]) {
        if expected != found {
            let differences =
                || expected.iter().zip(found).enumerate().filter(|(_, (expected, found))| expected != found);
            self.differing += differences().count() as u64;
            let first = differences().next().map(|(at, _)| self.received + at as u64);
            self.first_difference = self.first_difference.or(first);
        }
        self.received += found.len() as u64;
    }
}

/// Sends `bytes` bytes made from `seed` and returns what the far end thought of them.
pub fn transfer(to: SocketAddr, bytes: u64, seed: u64, stop: &StopFlag) -> io::Result<TransferCheck> {
    let over = || stop.is_stopped();
    let request = LoadRequest::Check { bytes, seed };
    let connection = LoadConnection::open(to, request, KernelCongestion::default(), &over)?;
    let verdict = send_pattern(&connection, bytes, seed, &over);
    match verdict.map_err(context(format_args!("checked transfer to {to}"))) {
        Err(_) if over() => Err(interrupted("checked transfer: stopped before its end")),
        outcome => outcome,
    }
}

fn send_pattern(
    connection: &LoadConnection,
    bytes: u64,
    seed: u64,
    over: &dyn Fn() -> bool,
) -> io::Result<TransferCheck> {
    let mut pattern = BytePattern::new(seed);
    let mut block = vec![0; BLOCK];
    for length in blocks(bytes) {
        pattern.fill(&mut block[..length]);
        if over() || !connection.write_whole(&block[..length], over)? {
            return Err(interrupted("stopped"));
        }
    }
    let mut encoded = [0; TransferCheck::SIZE];
    match connection.read_whole(&mut encoded, over)? {
        MessageRead::Whole => Ok(TransferCheck::decode(encoded)),
        MessageRead::Closed => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "closed without a verdict")),
        MessageRead::Over => Err(interrupted("stopped")),
    }
}

pub(crate) fn check(
    connection: &LoadConnection,
    bytes: u64,
    seed: u64,
    over: &dyn Fn() -> bool,
    total: &AtomicU64,
) -> io::Result<()> {
    let mut pattern = BytePattern::new(seed);
    let (mut expected, mut found) = (vec![0; BLOCK], vec![0; BLOCK]);
    let mut verdict = TransferCheck { received: 0, differing: 0, first_difference: None };
    for length in blocks(bytes) {
        let (expected, found) = (&mut expected[..length], &mut found[..length]);
        if over() || connection.read_whole(found, over)? != MessageRead::Whole {
            return Ok(());
        }
        pattern.fill(expected);
        verdict.compare(expected, found);
        total.fetch_add(length as u64, Ordering::Relaxed);
    }
    connection.write_whole(&verdict.encode(), over).map(|_| ())
}

/// The lengths in which both ends cut a transfer, so that their patterns stay in step.
fn blocks(bytes: u64) -> impl Iterator<Item = usize> {
    (0..bytes).step_by(BLOCK).map(move |at| (bytes - at).min(BLOCK as u64) as usize)
}

#[cfg(test)]
mod tests {
    use std::iter;
    use std::net::TcpListener;

    use units::Unwatched;

    use super::super::tests::beside_a_server;
    use super::*;

    const BRIEF: Bulk = Bulk {
        duration: Duration::from_millis(200),
        warmup: Duration::from_millis(60),
        congestion: KernelCongestion::Cubic,
    };

    #[test]
    fn a_bulk_flow_is_measured_where_it_arrives() {
        let told = Cell::new(0);
        // On a machine that is busy for seconds on end, nothing may arrive in time: then it is run again.
        let progress = |bytes| {
            told.set(bytes);
            true
        };
        let attempt = || beside_a_server(|to, _| run(to, &BRIEF, &progress).expect("a run"));
        let (throughput, served) = iter::repeat_with(attempt).take(20).find(|(got, _)| got.bytes > 0).expect("bytes");
        assert!(throughput.elapsed >= BRIEF.duration, "{throughput:?}");
        assert!(throughput.bits_per_second() > 0, "{throughput:?}");
        assert!(throughput.bytes <= told.get() && told.get() <= served.bytes, "{throughput:?} of {served:?}");
        assert_eq!(served.failed, 0);
    }

    #[test]
    fn a_stop_in_mid_flow_returns_what_was_measured() {
        let plan = Bulk { duration: Duration::from_secs(600), ..BRIEF };
        let (last, samples) = (Cell::new(0), Cell::new(0));
        let progress = |bytes| {
            if last.replace(bytes) != bytes {
                samples.set(samples.get() + 1);
            }
            samples.get() < 4
        };
        let (throughput, _) = beside_a_server(|to, _| run(to, &plan, &progress));
        let throughput = throughput.expect("a run");
        assert!(throughput.elapsed > Duration::ZERO && throughput.elapsed < plan.duration, "{throughput:?}");
    }

    #[test]
    fn a_stop_in_the_warm_up_is_an_interruption() {
        let plan = Bulk { warmup: Duration::from_secs(600), ..BRIEF };
        let (outcome, _) = beside_a_server(|to, _| run(to, &plan, &|bytes| bytes == 0));
        assert_eq!(outcome.expect_err("nothing measured").kind(), io::ErrorKind::Interrupted);
    }

    #[test]
    fn a_far_end_that_leaves_is_an_error() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port on the loopback");
        let to = listener.local_addr().expect("the port's number");
        thread::scope(|scope| {
            scope.spawn(|| {
                let (stream, _) = listener.accept().expect("a client");
                drop(LoadConnection::accept(stream, &|| false).expect("a request"));
            });
            let error = run(to, &BRIEF, &Unwatched).expect_err("nothing measured").to_string();
            assert!(error.starts_with(&format!("bulk flow to {to}")), "{error}");
        });
    }

    #[test]
    fn silence_at_the_end_counts_as_time() {
        let ms = Duration::from_millis;
        let mut window = BulkWindow { warmup: ms(100), duration: ms(1_000), ends: None };
        for (at, bytes) in [(50, 500), (100, 1_000), (150, 1_500), (200, 2_000)] {
            window.take(BulkSample { at: ms(at), bytes });
        }
        assert_eq!((window.bytes(), window.elapsed(), window.is_complete()), (1_000, ms(100), false));
        window.extend_over_silence();
        assert_eq!((window.bytes(), window.elapsed(), window.is_complete()), (1_000, ms(1_000), true));
    }

    #[test]
    fn a_checked_transfer_of_any_length_arrives_intact() {
        let lengths = [0, 1, 8, BLOCK as u64, 3 * BLOCK as u64 + 13];
        let ((), served) = beside_a_server(|to, stop| {
            for (seed, bytes) in lengths.into_iter().enumerate() {
                let verdict = transfer(to, bytes, seed as u64, stop).expect("a verdict");
                assert_eq!(verdict, TransferCheck { received: bytes, differing: 0, first_difference: None });
            }
        });
        assert_eq!((served.bytes, served.failed), (lengths.iter().sum(), 0));
    }

    #[test]
    fn two_corrupted_bytes_are_found_and_the_first_is_placed() {
        let (length, seed) = (BLOCK + 1_000, 42);
        let (verdict, _) = beside_a_server(|to, _| {
            let request = LoadRequest::Check { bytes: length as u64, seed };
            let connection =
                LoadConnection::open(to, request, KernelCongestion::Cubic, &|| false).expect("a connection");
            let mut bytes = vec![0; length];
            BytePattern::new(seed).fill(&mut bytes);
            bytes[BLOCK + 7] ^= 0x10;
            bytes[BLOCK + 900] ^= 0x01;
            assert!(connection.write_whole(&bytes, &|| false).expect("a transfer"));
            let mut encoded = [0; TransferCheck::SIZE];
            assert_eq!(connection.read_whole(&mut encoded, &|| false).expect("a verdict"), MessageRead::Whole);
            TransferCheck::decode(encoded)
        });
        let found = TransferCheck { received: length as u64, differing: 2, first_difference: Some(BLOCK as u64 + 7) };
        assert_eq!(verdict, found);
        assert!(!verdict.is_intact());
    }

    #[test]
    fn a_stopped_transfer_has_no_verdict() {
        let (outcome, _) = beside_a_server(|to, stop| {
            thread::scope(|scope| {
                scope.spawn(|| {
                    thread::sleep(Duration::from_millis(20));
                    stop.stop();
                });
                transfer(to, u64::MAX, 1, stop)
            })
        });
        assert_eq!(outcome.expect_err("no verdict").kind(), io::ErrorKind::Interrupted);
    }
}
