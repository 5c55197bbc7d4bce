//! A witness: numbered UDP datagrams at a steady pace, and an exact account of their fate.
//!
//! ```text
//!   sequence number 8 │ sent, in ns since the sender began, 8 │ pattern
//! ```
//!
//! UDP has nobody who would repair it, so it sees what the link does: losses, copies, swaps and silences. The pattern
//! is made from the sequence number, the time and the length, so that damage to any of them shows. A damaged datagram
//! has no number that could be believed: it is counted as corrupted, and its number stays missing.
//!
//! Memory is bounded by a bitmap over the last `WINDOW` numbers. Without a shared clock the one-way delay is unknown,
//! but how much it varied is not: the two clocks run alike.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

use units::StopFlag;

use super::tcp::{get_option, or_tick, set_option};
use crate::{BytePattern, TICK, context, now};

const HEADER: usize = 16;

/// A header and enough of the pattern to vouch for it.
pub(crate) const SMALLEST: usize = HEADER + 8;
/// Maximum payload of one UDP datagram over IPv4.
pub const LARGEST: usize = 65_507;

/// Ten seconds at 100,000 datagrams a second: later than that, nobody waits.
const WINDOW: u64 = 1 << 20;

/// A sender that was held up makes good this much of its schedule. More would be a burst that overruns the receiver,
/// and a loss that is no fault of the link.
const CATCH_UP: Duration = Duration::from_millis(2);

/// Interval at which a receiver takes datagrams in batches.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// `SK_MEMINFO_DROPS` of linux/sock_diag.h, which the libc crate leaves out.
const DROPS: usize = 8;

const RECEIVE_BUFFER: i32 = 8 << 20;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WitnessReport {
    /// Distinct datagrams that arrived whole.
    pub received: u64,
    pub duplicates: u64,
    /// Received datagrams that came after one that was sent later.
    pub out_of_order: u64,
    /// Datagrams that came so late that they could be duplicates; not among those received.
    pub too_old: u64,
    pub corrupted: u64,
    /// Datagrams lost by this socket, whose buffer was full: missing, but not the link's fault.
    pub overrun: u64,
    /// The longest time between two arrivals, a pause of the sender or of this thread included. An outage that lasts to
    /// the end shows as missing instead.
    pub longest_silence: Duration,
    /// Difference between the delays of the slowest and the fastest datagram.
    pub delay_spread: Duration,
}

impl WitnessReport {
    /// Number of the `sent` datagrams that never arrived whole.
    pub fn missing(&self, sent: u64) -> u64 {
        sent.saturating_sub(self.received)
    }
}

/// Sends datagrams of `size` bytes until `stop` and returns how many. A datagram that meets a link that is down counts:
/// it is as lost as any other.
pub fn send(socket: &UdpSocket, to: SocketAddr, rate_per_second: u32, size: usize, stop: &StopFlag) -> io::Result<u64> {
    send_each(socket, to, rate_per_second, size, stop, |_| ())
}

/// Outcome of sending a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    Taken,
    /// The kernel had no way to send it, and said so.
    Refused,
}

/// Sends like [`send`]; `each` hears of every datagram, in the order of their numbers from zero on.
pub fn send_each(
    socket: &UdpSocket,
    to: SocketAddr,
    rate_per_second: u32,
    size: usize,
    stop: &StopFlag,
    mut each: impl FnMut(Departure),
) -> io::Result<u64> {
    if rate_per_second == 0 || !(SMALLEST..=LARGEST).contains(&size) {
        let message = format!(
            "{rate_per_second} datagrams a second of {size} bytes: expected at least 1, of {SMALLEST} to {LARGEST}"
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    socket.set_write_timeout(Some(TICK)).map_err(context("cannot limit the wait for a send"))?;
    let gap = Duration::from_secs(1) / rate_per_second;
    let mut datagram = vec![0; size];
    let mut sent = 0;
    let start = now();
    let mut due = Duration::ZERO;
    while !stop.is_stopped() {
        let at = now() - start;
        if at < due {
            thread::sleep((due - at).min(TICK));
            continue;
        }
        inscribe(&mut datagram, sent, at);
        match or_tick(socket.send_to(&datagram, to)) {
            Ok(None) => continue,
            Ok(Some(_)) => each(Departure::Taken),
            Err(error) if sent > 0 && is_outage(&error) => each(Departure::Refused),
            Err(error) => return Err(context(format_args!("cannot send to {to}"))(error)),
        }
        sent += 1;
        due = if at - due > CATCH_UP.max(gap) { at } else { due } + gap;
    }
    Ok(sent)
}

fn is_outage(error: &io::Error) -> bool {
    use io::ErrorKind::{HostUnreachable, NetworkDown, NetworkUnreachable};
    matches!(error.kind(), HostUnreachable | NetworkDown | NetworkUnreachable)
        || matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::ENODEV))
}

/// Takes in datagrams until `stop`, and then those that have already arrived.
pub fn receive(socket: &UdpSocket, stop: &StopFlag) -> io::Result<WitnessReport> {
    receive_each(socket, stop, |_| ())
}

/// Receives like [`receive`], but looks only once a millisecond: waking for each datagram would take more of the processor
/// than the datagram does, from the programs that are measured. Delays and silences come out up to a millisecond longer.
pub fn receive_in_batches(socket: &UdpSocket, stop: &StopFlag) -> io::Result<WitnessReport> {
    receive_with(socket, stop, Some(LOOK_EVERY), |_| ())
}

/// Receives like [`receive`]; `each` hears the number of every datagram that arrived whole, as it arrives.
pub fn receive_each(socket: &UdpSocket, stop: &StopFlag, each: impl FnMut(u64)) -> io::Result<WitnessReport> {
    receive_with(socket, stop, None, each)
}

fn receive_with(
    socket: &UdpSocket,
    stop: &StopFlag,
    look_every: Option<Duration>,
    mut each: impl FnMut(u64),
) -> io::Result<WitnessReport> {
    widen(socket);
    socket.set_read_timeout(Some(TICK)).map_err(context("cannot limit the wait for a datagram"))?;
    let polls = |polls| socket.set_nonblocking(polls).map_err(context("cannot poll for datagrams"));
    polls(look_every.is_some())?;
    let overrun_before = overruns(socket)?;
    let start = now();
    let mut tally = WitnessCounters::default();
    let mut buffer = vec![0; LARGEST];
    let mut take = || -> io::Result<bool> {
        let arrived = or_tick(socket.recv(&mut buffer)).map_err(context("cannot receive"))?;
        let Some(length) = arrived else { return Ok(false) };
        if let Some(number) = tally.take(&buffer[..length], now() - start) {
            each(number);
        }
        Ok(true)
    };
    while !stop.is_stopped() {
        if let (false, Some(pause)) = (take()?, look_every) {
            thread::sleep(pause);
        }
    }
    polls(true)?;
    let drained_by = now() + TICK;
    while take()? && now() < drained_by {}
    polls(false)?;
    tally.report.overrun = overruns(socket)?.wrapping_sub(overrun_before).into();
    Ok(tally.report)
}

/// Asks for the largest buffer allowed to this process. Less is no error: [`WitnessReport::overrun`] counts the cost.
fn widen(socket: &UdpSocket) {
    let size = RECEIVE_BUFFER.to_ne_bytes();
    let set = |name| set_option(socket.as_fd(), libc::SOL_SOCKET, name, &size);
    _ = set(libc::SO_RCVBUFFORCE).or_else(|_| set(libc::SO_RCVBUF));
}

fn overruns(socket: &UdpSocket) -> io::Result<u32> {
    meminfo(socket).map(|words| words[DROPS])
}

fn meminfo(socket: &UdpSocket) -> io::Result<[u32; DROPS + 1]> {
    let mut bytes = [0; (DROPS + 1) * 4];
    get_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_MEMINFO, &mut bytes)
        .map_err(context("cannot read SO_MEMINFO"))?;
    Ok(std::array::from_fn(|at| u32::from_ne_bytes(bytes.as_chunks().0[at])))
}

fn inscribe(datagram: &mut [u8], number: u64, at: Duration) {
    let at = at.as_nanos() as u64;
    let length = datagram.len();
    datagram[..8].copy_from_slice(&number.to_be_bytes());
    datagram[8..HEADER].copy_from_slice(&at.to_be_bytes());
    pattern_of(number, at, length).fill(&mut datagram[HEADER..]);
}

fn pattern_of(number: u64, at: u64, length: usize) -> BytePattern {
    let seed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ at.rotate_left(32) ^ (length as u64).rotate_right(16);
    BytePattern::new(seed)
}

/// The number and the time of a datagram that is as it was sent.
fn decipher(datagram: &[u8], scratch: &mut Vec<u8>) -> Option<(u64, u64)> {
    if datagram.len() < SMALLEST {
        return None;
    }
    let (header, pattern) = datagram.split_at(HEADER);
    let word = |at: usize| u64::from_be_bytes(header.as_chunks().0[at]);
    let (number, at) = (word(0), word(1));
    scratch.resize(pattern.len(), 0);
    pattern_of(number, at, datagram.len()).fill(scratch);
    (scratch == pattern).then_some((number, at))
}

#[derive(Debug, Default)]
struct WitnessCounters {
    report: WitnessReport,
    seen: NumberBitmap,
    last_arrival: Option<Duration>,
    /// Fastest and slowest transit in ns, both off by the same unknown difference of the two clocks' starts.
    transits: Option<(i128, i128)>,
    scratch: Vec<u8>,
}

impl WitnessCounters {
    /// The number of a datagram that is whole.
    fn take(&mut self, datagram: &[u8], at: Duration) -> Option<u64> {
        let Some((number, sent)) = decipher(datagram, &mut self.scratch) else {
            self.report.corrupted += 1;
            return None;
        };
        let silence = self.last_arrival.map_or(Duration::ZERO, |last| at.saturating_sub(last));
        self.report.longest_silence = self.report.longest_silence.max(silence);
        self.last_arrival = Some(at);
        match self.seen.admit(number) {
            ArrivalKind::Newest => self.receive(at, sent),
            ArrivalKind::Late => {
                self.report.out_of_order += 1;
                self.receive(at, sent);
            }
            ArrivalKind::Again => self.report.duplicates += 1,
            ArrivalKind::TooOld => self.report.too_old += 1,
        }
        Some(number)
    }

    fn receive(&mut self, at: Duration, sent: u64) {
        self.report.received += 1;
        let transit = at.as_nanos() as i128 - i128::from(sent);
        let (fastest, slowest) = self.transits.unwrap_or((transit, transit));
        let (fastest, slowest) = (fastest.min(transit), slowest.max(transit));
        self.transits = Some((fastest, slowest));
        self.report.delay_spread = Duration::from_nanos((slowest - fastest) as u64);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ArrivalKind {
    Newest,
    Late,
    Again,
    TooOld,
}

/// Bitmap of the last [`WINDOW`] numbers that have come: a ring of bits that ends at the highest.
#[derive(Debug)]
struct NumberBitmap {
    bits: Vec<u64>,
    highest: Option<u64>,
}

impl Default for NumberBitmap {
    fn default() -> Self {
        Self { bits: vec![0; (WINDOW / 64) as usize], highest: None }
    }
}

impl NumberBitmap {
    fn admit(&mut self, number: u64) -> ArrivalKind {
        let arrival = match self.highest {
            Some(highest) if number <= highest && highest - number >= WINDOW => return ArrivalKind::TooOld,
            Some(highest) if number <= highest && self.contains(number) => ArrivalKind::Again,
            Some(highest) if number <= highest => ArrivalKind::Late,
            Some(highest) => {
                self.slide(highest, number);
                ArrivalKind::Newest
            }
            None => ArrivalKind::Newest,
        };
        self.highest = self.highest.max(Some(number));
        let (word, bit) = Self::place(number);
        self.bits[word] |= bit;
        arrival
    }

    /// The ring still holds the bits of numbers one window back.
    fn slide(&mut self, from: u64, to: u64) {
        if to - from >= WINDOW {
            self.bits.fill(0);
            return;
        }
        for number in from + 1..=to {
            let (word, bit) = Self::place(number);
            self.bits[word] &= !bit;
        }
    }

    fn contains(&self, number: u64) -> bool {
        let (word, bit) = Self::place(number);
        self.bits[word] & bit != 0
    }

    fn place(number: u64) -> (usize, u64) {
        let at = number % WINDOW;
        ((at / 64) as usize, 1 << (at % 64))
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    fn datagram(number: u64, at: Duration) -> Vec<u8> {
        let mut datagram = vec![0; 100];
        inscribe(&mut datagram, number, at);
        datagram
    }

    fn tally(numbers: impl IntoIterator<Item = u64>) -> WitnessReport {
        let mut tally = WitnessCounters::default();
        for number in numbers {
            assert_eq!(tally.take(&datagram(number, Duration::ZERO), Duration::ZERO), Some(number));
        }
        tally.report
    }

    /// Memory that the kernel holds for the socket (`SK_MEMINFO_RMEM_ALLOC`).
    fn queued(socket: &UdpSocket) -> u32 {
        meminfo(socket).expect("the socket's memory")[0]
    }

    /// Waits for each datagram to arrive, as even a loopback is late or swaps on a busy machine.
    fn received(datagrams: &[Vec<u8>]) -> WitnessReport {
        let receiver = UdpSocket::bind("127.0.0.1:0").expect("a port on the loopback");
        let sender = UdpSocket::bind("127.0.0.1:0").expect("a port on the loopback");
        let to = receiver.local_addr().expect("the port's number");
        widen(&receiver);
        for datagram in datagrams {
            let before = queued(&receiver);
            sender.send_to(datagram, to).expect("room for a datagram");
            while queued(&receiver) == before {
                thread::yield_now();
            }
        }
        let stop = StopFlag::new();
        stop.stop();
        receive(&receiver, &stop).expect("a report")
    }

    #[test]
    fn a_duplicate_a_swap_and_a_gap_are_counted_exactly() {
        let datagrams: Vec<_> = [0, 1, 1, 3, 2, 4, 7, 8].map(|number| datagram(number, Duration::ZERO)).into();
        let report = received(&datagrams);
        assert_eq!((report.received, report.duplicates, report.out_of_order), (7, 1, 1));
        assert_eq!((report.missing(9), report.corrupted, report.overrun), (2, 0, 0));
    }

    #[test]
    fn damage_anywhere_in_a_datagram_is_found() {
        let whole = datagram(5, Duration::from_micros(77));
        let mut datagrams = vec![whole[..99].to_vec(), Vec::new()];
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x04;
            datagrams.push(damaged);
        }
        let report = received(&datagrams);
        assert_eq!((report.received, report.corrupted, report.missing(1)), (0, 102, 1));
    }

    #[test]
    fn the_longest_silence_and_the_spread_of_delays_are_those_of_the_arrivals() {
        let ms = Duration::from_millis;
        let mut tally = WitnessCounters::default();
        for (number, sent, arrived) in [(0, 100, 7), (1, 101, 8), (2, 102, 14), (3, 103, 14), (3, 103, 15)] {
            let _ = tally.take(&datagram(number, ms(sent)), ms(arrived));
        }
        assert_eq!((tally.report.longest_silence, tally.report.delay_spread), (ms(6), ms(5)));
    }

    #[test]
    fn numbers_far_behind_are_neither_received_nor_duplicates() {
        let report = tally([0, 1, WINDOW, 1, 0, 2]);
        assert_eq!((report.received, report.duplicates, report.too_old, report.out_of_order), (4, 1, 1, 1));
    }

    #[test]
    fn a_leap_over_the_whole_window_forgets_it() {
        let leap = tally([3, 3 + WINDOW, 4 + WINDOW - 1, 3 + 5 * WINDOW, u64::MAX, u64::MAX]);
        assert_eq!((leap.received, leap.duplicates), (4, 2));
        let laps = tally((0..3 * WINDOW).step_by(7));
        assert_eq!((laps.received, laps.duplicates, laps.out_of_order), ((3 * WINDOW).div_ceil(7), 0, 0));
    }

    #[test]
    fn a_paced_stream_arrives_without_damage() {
        let receiver = UdpSocket::bind("127.0.0.1:0").expect("a port on the loopback");
        let sender = UdpSocket::bind("127.0.0.1:0").expect("a port on the loopback");
        let to = receiver.local_addr().expect("the port's number");
        let (stop_sending, stop_receiving) = (StopFlag::new(), StopFlag::new());
        let (sent, report) = thread::scope(|scope| {
            let sending = scope.spawn(|| send(&sender, to, 10_000, 200, &stop_sending));
            let receiving = scope.spawn(|| receive(&receiver, &stop_receiving));
            thread::sleep(Duration::from_millis(100));
            stop_sending.stop();
            let sent = sending.join().expect("no panic").expect("a sender that ran to its end");
            stop_receiving.stop();
            (sent, receiving.join().expect("no panic").expect("a report"))
        });
        assert_eq!((report.corrupted, report.duplicates), (0, 0));
        assert!(report.received <= sent, "{report:?} of {sent}");
    }

    #[test]
    fn impossible_datagrams_are_refused_before_the_first() {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port on the loopback");
        let to = socket.local_addr().expect("the port's number");
        for (rate, size) in [(0, 100), (1, SMALLEST - 1), (1, LARGEST + 1)] {
            let error = send(&socket, to, rate, size, &StopFlag::new()).expect_err("a refusal");
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        }
    }
}
