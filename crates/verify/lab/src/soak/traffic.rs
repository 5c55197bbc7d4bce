//! The traffic of a soak, and its results. All received data that can be compared with what was sent is compared.

use std::hash::Hasher;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use faults::Random;
use serde::Serialize;
use siphasher::sip128::{Hasher128, SipHasher13};

use super::programs::{RunningProgram, Workshop};
use super::stream::{SoakStream, strange};
use linux::SystemError;
use linux::clock::Clock;
use linux::net::Namespace;
use load::{self, RoundTrips};
use units::StopFlag;

/// Longest time that a request may take.
pub(crate) const SLOW: Duration = Duration::from_secs(1);

/// Totals of one kind of traffic.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TrafficTotals {
    pub name: &'static str,
    /// Requests, files, transfers or runs that were completed.
    pub completed: u64,
    pub bytes: u64,
    /// Bytes that were compared with what was sent.
    pub compared_bytes: u64,
    /// Completed, but not with the bytes that were sent.
    pub differing: u64,
    /// Requests, files, transfers or runs not completed, for another reason than the end of the soak.
    pub failed: u64,
    pub first_failure: Option<String>,
    /// Time until an answer began, where there are requests and answers.
    pub p50_us: Option<f64>,
    pub p999_us: Option<f64>,
    pub slowest_us: Option<f64>,
    pub over_1s: u64,
    /// Segments that TCP sent again, where that is known.
    pub retransmitted: Option<u64>,
}

/// Counts one kind of traffic while it flows.
#[derive(Debug)]
pub(crate) struct TrafficCounter(Mutex<(TrafficTotals, RoundTrips)>);

impl TrafficCounter {
    pub(crate) fn new(name: &'static str) -> Self {
        Self(Mutex::new((TrafficTotals { name, ..TrafficTotals::default() }, RoundTrips::default())))
    }

    fn lock(&self) -> MutexGuard<'_, (TrafficTotals, RoundTrips)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, outcome: io::Result<RequestCheck>) -> io::Result<()> {
        let (traffic, _) = &mut *self.lock();
        match outcome {
            Ok(RequestCheck { bytes, equal }) => {
                traffic.completed += 1;
                traffic.bytes += bytes;
                traffic.compared_bytes += bytes;
                traffic.differing += u64::from(!equal);
                Ok(())
            }
            Err(error) => {
                if error.kind() != io::ErrorKind::Interrupted {
                    traffic.fail(error.to_string());
                }
                Err(error)
            }
        }
    }

    fn answered(&self, took: Duration) {
        self.lock().1.record(took);
    }

    /// A request that was still waiting at the end counts only if it had waited too long already.
    fn called_off(&self, waited: Duration) {
        if waited > SLOW {
            self.answered(waited);
        }
    }

    pub(crate) fn traffic(&self) -> TrafficTotals {
        let (traffic, delays) = &*self.lock();
        let us = |delay: Duration| (delays.count() > 0).then(|| delay.as_nanos() as f64 / 1e3);
        TrafficTotals {
            p50_us: us(delays.p50()),
            p999_us: us(delays.p999()),
            slowest_us: us(delays.max()),
            over_1s: delays.over(SLOW),
            ..traffic.clone()
        }
    }
}

impl TrafficTotals {
    fn fail(&mut self, why: String) {
        self.failed += 1;
        self.first_failure.get_or_insert(why);
    }
}

/// A completed request: its bytes, and whether they were those that were sent.
struct RequestCheck {
    bytes: u64,
    equal: bool,
}

/// Sleeps unless it is over.
fn rest(pause: Duration, over: &StopFlag) {
    if !over.is_stopped() {
        std::thread::sleep(pause);
    }
}

/// Pause after a failure, so that a server that is gone is not asked a million times.
const AFTER_FAILURE: Duration = Duration::from_millis(200);

/// Bytes that can be made again.
fn blob(seed: u64, len: usize) -> Vec<u8> {
    let mut random = Random::new(seed, 7);
    let mut bytes = vec![0; len];
    for word in bytes.chunks_mut(8) {
        word.copy_from_slice(&random.below(u64::MAX).to_le_bytes()[..word.len()]);
    }
    bytes
}

/// Our own transfers, whose every byte the far end compares.
pub(crate) fn transfers(to: SocketAddr, over: &StopFlag, tally: &TrafficCounter) {
    const SIZES: [u64; 4] = [10_000, 300_000, 3_000_000, 30_000_000];
    let mut number = 0;
    while !over.is_stopped() {
        let size = SIZES[number as usize % SIZES.len()];
        let found = load::transfer(to, size, number, over).map(|verdict| {
            let equal = verdict.is_intact() && verdict.received == size;
            RequestCheck { bytes: verdict.received, equal }
        });
        number += 1;
        let pause = if tally.count(found).is_ok() { Duration::from_millis(100) } else { AFTER_FAILURE };
        rest(pause, over);
    }
}

/// Value that a key was last set to: its seed and its length.
type StoredKeys = Option<(u64, usize)>;

/// Random values set and got again.
pub(crate) fn memcached(to: SocketAddr, over: &StopFlag, tally: &TrafficCounter) {
    const KEYS: usize = 256;
    let (mut random, mut kept) = (Random::new(1, 3), vec![StoredKeys::None; KEYS]);
    while !over.is_stopped() {
        // Only a failure ends a conversation before all is over, and it has been counted.
        let _ = converse_with_memcached(to, over, tally, &mut random, &mut kept);
        rest(AFTER_FAILURE, over);
    }
}

fn converse_with_memcached(
    to: SocketAddr,
    over: &StopFlag,
    tally: &TrafficCounter,
    random: &mut Random,
    kept: &mut [StoredKeys],
) -> io::Result<()> {
    const LONGEST: u64 = 16 << 10;
    let opened = SoakStream::open(to, over).map_err(|error| tally.count(Err(error)));
    let Ok(mut stream) = opened else { return Ok(()) };
    while !over.is_stopped() {
        let key = random.below(kept.len() as u64) as usize;
        let outcome = match kept[key] {
            Some(value) if random.unit() < 0.5 => get(&mut stream, key, value),
            _ => {
                let value = (random.below(u64::MAX), 1 + random.below(LONGEST) as usize);
                // Until it is stored nobody knows what is there.
                kept[key] = None;
                set(&mut stream, key, value).inspect(|_| kept[key] = Some(value))
            }
        };
        match &outcome {
            Ok(_) => tally.answered(stream.waited()),
            Err(_) => tally.called_off(stream.waited()),
        }
        tally.count(outcome)?;
        rest(Duration::from_millis(1), over);
    }
    Ok(())
}

fn set(stream: &mut SoakStream<'_>, key: usize, (seed, len): (u64, usize)) -> io::Result<RequestCheck> {
    let mut request = format!("set k{key} 0 0 {len}\r\n").into_bytes();
    request.extend(blob(seed, len));
    request.extend(b"\r\n");
    stream.ask(&request)?;
    match stream.line()?.as_str() {
        "STORED" => Ok(RequestCheck { bytes: len as u64, equal: true }),
        answer => Err(strange(format!("memcached answered {answer:?} to set"))),
    }
}

fn get(stream: &mut SoakStream<'_>, key: usize, (seed, len): (u64, usize)) -> io::Result<RequestCheck> {
    stream.ask(format!("get k{key}\r\n").as_bytes())?;
    let head = stream.line()?;
    if head == "END" {
        return Ok(RequestCheck { bytes: 0, equal: false });
    }
    let length = head.strip_prefix(&format!("VALUE k{key} 0 ")).and_then(|length| length.parse::<u64>().ok());
    let length = length.ok_or_else(|| strange(format!("memcached answered {head:?} to get")))?;
    let mut value = Vec::with_capacity(len);
    stream.take(length.min(1 << 20), |piece| value.extend_from_slice(piece))?;
    let ends = (stream.line()?, stream.line()?);
    if (ends.0.as_str(), ends.1.as_str()) != ("", "END") {
        return Err(strange(format!("memcached ended a value with {ends:?}")));
    }
    Ok(RequestCheck { bytes: length, equal: value == blob(seed, len) })
}

/// A file that is served, and the hash of what was written to it.
#[derive(Debug)]
pub(crate) struct ServedFile {
    path: String,
    len: u64,
    hash: u128,
}

/// Writes files of random bytes to be served.
pub(crate) fn write_files(directory: &Path) -> Result<Vec<ServedFile>, SystemError> {
    const SIZES: [usize; 8] = [0, 1, 1_500, 20_000, 200_000, 1_000_000, 3_000_000, 10_000_000];
    let write = |(number, len): (usize, usize)| {
        let bytes = blob(number as u64, len);
        let path = format!("file{number}");
        let hash = hash([bytes.as_slice()]);
        std::fs::write(directory.join(&path), bytes).map(|()| ServedFile { path, len: len as u64, hash })
    };
    let written: io::Result<_> = SIZES.into_iter().enumerate().map(write).collect();
    written.map_err(|error| SystemError(format!("write to {}: {error}", directory.display())))
}

fn hash<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> u128 {
    let mut hasher = SipHasher13::new();
    pieces.into_iter().for_each(|piece| hasher.write(piece));
    hasher.finish128().as_u128()
}

/// Files fetched and compared by hash.
pub(crate) fn http(to: SocketAddr, files: &[ServedFile], over: &StopFlag, tally: &TrafficCounter) {
    let mut random = Random::new(1, 4);
    while !over.is_stopped() {
        let file = &files[random.below(files.len() as u64) as usize];
        let pause = match tally.count(fetch(to, file, over, tally)) {
            Ok(()) => Duration::from_millis(20),
            Err(_) => AFTER_FAILURE,
        };
        rest(pause, over);
    }
}

fn fetch(to: SocketAddr, file: &ServedFile, over: &StopFlag, tally: &TrafficCounter) -> io::Result<RequestCheck> {
    let asked = Clock::start();
    let mut stream = SoakStream::open(to, over)?;
    stream.ask(format!("GET /{} HTTP/1.0\r\nHost: {to}\r\n\r\n", file.path).as_bytes())?;
    let status = stream.line().inspect_err(|_| tally.called_off(asked.elapsed()))?;
    tally.answered(asked.elapsed());
    if status.split_whitespace().nth(1) != Some("200") {
        return Err(strange(format!("the HTTP server answered {status:?}")));
    }
    let mut length = None;
    loop {
        let line = stream.line()?.to_ascii_lowercase();
        match line.split_once(':') {
            _ if line.is_empty() => break,
            Some(("content-length", value)) => length = value.trim().parse::<u64>().ok(),
            _ => {}
        }
    }
    let length = length.ok_or_else(|| strange("an answer without its length"))?;
    let mut hasher = SipHasher13::new();
    stream.take(length, |piece| hasher.write(piece))?;
    let equal = length == file.len && hasher.finish128().as_u128() == file.hash;
    Ok(RequestCheck { bytes: length, equal })
}

/// Place and length of a run of iperf3.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Iperf<'a> {
    pub server: SocketAddr,
    pub place: &'a Namespace,
    pub shop: &'a Workshop,
    pub duration: Duration,
}

/// Runs of iperf3 of up to ten seconds, one after the other.
pub(crate) fn iperf3(iperf: Iperf<'_>, over: &StopFlag, stop: &StopFlag, tally: &TrafficCounter) {
    const LONGEST: u64 = 10;
    /// The time that a run takes beyond its requested duration.
    const AROUND: Duration = Duration::from_millis(500);
    let clock = Clock::start();
    while !over.is_stopped() {
        let seconds = iperf.duration.saturating_sub(clock.elapsed() + AROUND).as_secs().min(LONGEST);
        if seconds == 0 {
            rest(Duration::from_millis(100), over);
            continue;
        }
        match one_run(iperf, seconds, over, stop) {
            Ok(Some(run)) => {
                let (traffic, _) = &mut *tally.lock();
                traffic.completed += 1;
                traffic.bytes += run.bytes;
                *traffic.retransmitted.get_or_insert_default() += run.retransmitted;
            }
            Ok(None) => {}
            Err(trouble) => {
                tally.lock().0.fail(trouble.0);
                rest(AFTER_FAILURE, over);
            }
        }
    }
}

struct IperfRun {
    bytes: u64,
    retransmitted: u64,
}

/// `None` if it was stopped.
fn one_run(iperf: Iperf<'_>, seconds: u64, over: &StopFlag, stop: &StopFlag) -> Result<Option<IperfRun>, SystemError> {
    /// A run that ends a little after the soak does is still worth knowing.
    const GRACE: Duration = Duration::from_secs(3);
    /// Time that a run is given beside its own length; more means that it hangs.
    const PATIENCE: Duration = Duration::from_secs(60);
    let failed = |what: &dyn std::fmt::Display| SystemError(format!("iperf3: {what}"));
    let (ip, port, seconds) = (iperf.server.ip().to_string(), iperf.server.port().to_string(), seconds.to_string());
    let args = ["-c", &ip, "-p", &port, "-t", &seconds, "-i", "0", "-C", "cubic", "-J"];
    let started = RunningProgram::start("iperf3", &args, "iperf3-run.json", iperf.place, iperf.shop)?;
    let Some(mut run) = started else { return Err(failed(&"it is gone")) };
    let (begun, mut ended) = (Clock::start(), None);
    let status = loop {
        if let Some(status) = run.child.try_wait().map_err(|error| failed(&error))? {
            break status;
        }
        if over.is_stopped() {
            let ended = ended.get_or_insert_with(Clock::start);
            if stop.is_stopped() || ended.elapsed() > GRACE {
                return Ok(None);
            }
        } else if begun.elapsed() > Duration::from_secs(10) + PATIENCE {
            return Err(failed(&"a run of at most 10 s did not end within 70 s"));
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let said: serde_json::Value = serde_json::from_str(&run.output()).unwrap_or_default();
    let number = |path: &str| said.pointer(path).and_then(serde_json::Value::as_u64);
    match (number("/end/sum_received/bytes"), said["error"].as_str()) {
        (Some(bytes), None) if status.success() => {
            Ok(Some(IperfRun { bytes, retransmitted: number("/end/sum_sent/retransmits").unwrap_or(0) }))
        }
        (_, Some(error)) => Err(failed(&error)),
        _ => Err(failed(&format_args!("{status}: {}", run.last_words()))),
    }
}

#[cfg(test)]
mod tests;
