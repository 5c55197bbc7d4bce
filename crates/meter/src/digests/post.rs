//! The meter's side: reports leave from a thread of their own, so that a meter never waits for a network.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TrySendError};
use std::thread;
use std::time::Duration;

use units::StopFlag;

use super::redis::RedisTransport;
use super::squeeze::squeeze;
use super::tcp::TcpTransport;
use super::{CollectorAddress, Envelope};
use bus::key::OrderKey;

/// Reports that may wait: a second or more of them.
const ROOM: usize = 256;
/// The wait after a failure, doubled by each further one up to the longest.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// How often someone who waits looks whether the meter has ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Failures that are put up with once the meter has ended.
const LAST_ATTEMPTS: u32 = 3;

/// Where the meter puts its reports.
#[derive(Debug)]
pub struct ReportQueue {
    queue: SyncSender<Envelope>,
    life: u64,
    number: u64,
    shared: Arc<SendShared>,
}

#[derive(Debug, Default)]
struct SendShared {
    /// The meter has ended.
    closing: StopFlag,
    sent: AtomicU64,
    bytes: AtomicU64,
    dropped: AtomicU64,
}

/// What became of reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReportCounts {
    pub reports: u64,
    pub bytes: u64,
    /// Found no room, because the other side was away or too slow.
    pub dropped: u64,
}

/// Takes them to their place. To be run on a thread.
#[derive(Debug)]
pub struct ReportSender {
    place: CollectorAddress,
    key: Option<OrderKey>,
    queue: Receiver<Envelope>,
    shared: Arc<SendShared>,
}

/// One way to the collector.
pub(super) trait ReportTransport {
    /// On an error it may or may not have arrived; sending it again does no harm.
    fn send(&mut self, envelope: &Envelope) -> Result<(), String>;
}

/// `life` is the incarnation, a number that no other run of a meter has; with a key, reports are sealed with the key.
pub fn post(place: CollectorAddress, life: u64, key: Option<OrderKey>) -> (ReportQueue, ReportSender) {
    let (queue, waiting) = mpsc::sync_channel(ROOM);
    let shared = Arc::new(SendShared::default());
    let outlet = ReportQueue { queue, life, number: 0, shared: Arc::clone(&shared) };
    (outlet, ReportSender { place, key, queue: waiting, shared })
}

impl ReportQueue {
    /// False if there was no room: the collector will miss it.
    pub fn put(&mut self, report: Vec<u8>) -> bool {
        let envelope = Envelope { life: self.life, number: self.number, report };
        self.number += 1;
        match self.queue.try_send(envelope) {
            Ok(()) => true,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.shared.dropped.fetch_add(1, Ordering::Relaxed);
                false
            }
        }
    }

    pub fn sent(&self) -> ReportCounts {
        self.shared.sent()
    }
}

impl Drop for ReportQueue {
    fn drop(&mut self) {
        self.shared.closing.stop();
    }
}

impl SendShared {
    fn sent(&self) -> ReportCounts {
        let [reports, bytes, dropped] =
            [&self.sent, &self.bytes, &self.dropped].map(|counter| counter.load(Ordering::Relaxed));
        ReportCounts { reports, bytes, dropped }
    }
}

impl ReportSender {
    /// Runs until the outlet is dropped and what waited has been sent, or cannot be. `tell` is called when the other
    /// side goes away and when it is back.
    pub fn run(self, tell: &dyn Fn(&str)) -> ReportCounts {
        match &self.place {
            CollectorAddress::Tcp(address) => self.carry(&mut TcpTransport::new(address, self.key.clone()), tell),
            CollectorAddress::Redis(place) => self.carry(&mut RedisTransport::new(&place.0, self.key.clone()), tell),
        }
    }

    fn carry(&self, way: &mut dyn ReportTransport, tell: &dyn Fn(&str)) -> ReportCounts {
        let mut said = false;
        loop {
            let envelope = match self.queue.recv_timeout(LOOK_EVERY) {
                Ok(envelope) => Envelope { report: squeeze(&envelope.report), ..envelope },
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return self.shared.sent(),
            };
            let mut failures = 0;
            while let Err(why) = way.send(&envelope) {
                if !said {
                    said = true;
                    tell(&format!("{}: {why}; trying again, and what finds no room is dropped", self.place));
                }
                failures += 1;
                if self.is_closing() && failures >= LAST_ATTEMPTS {
                    let left = 1 + self.queue.try_iter().count() as u64;
                    self.shared.dropped.fetch_add(left, Ordering::Relaxed);
                    return self.shared.sent();
                }
                self.wait((FIRST_WAIT * 2_u32.pow((failures - 1).min(10))).min(LONGEST_WAIT));
            }
            if std::mem::take(&mut said) {
                let dropped = self.shared.dropped.load(Ordering::Relaxed);
                tell(&format!("{}: connected; {dropped} reports dropped so far", self.place));
            }
            self.shared.sent.fetch_add(1, Ordering::Relaxed);
            self.shared.bytes.fetch_add(envelope.report.len() as u64, Ordering::Relaxed);
        }
    }

    fn is_closing(&self) -> bool {
        self.shared.closing.is_stopped()
    }

    /// Not longer than the meter runs, but for a moment.
    fn wait(&self, mut most: Duration) {
        while !most.is_zero() {
            let step = most.min(LOOK_EVERY);
            thread::sleep(step);
            most = if self.is_closing() { Duration::ZERO } else { most - step };
        }
    }
}
