//! The collector's side: reports of all meters, in one queue.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::squeeze::unsqueeze;
use super::{Envelope, RedisPlace, redis, tcp};

/// Meters' lives that are remembered; the one that was silent longest is forgotten first.
const MOST_LIVES: usize = 4_096;
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// What came of a meter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    Report {
        life: u64,
        report: Vec<u8>,
    },
    /// So many reports were sent by a meter and did not come.
    Missing {
        life: u64,
        reports: u64,
    },
}

/// Where a collector takes reports from.
#[derive(Debug)]
pub enum Inlet {
    Tcp(TcpListener),
    Redis(Box<RedisPlace>),
}

impl Inlet {
    pub fn listen(address: SocketAddr) -> io::Result<Self> {
        TcpListener::bind(address).map(Self::Tcp)
    }

    /// Until `stop` is set, or nobody listens to `out` any more. `tell` hears of strangers and of failures.
    pub fn run(&self, out: &SyncSender<Received>, stop: &AtomicBool, tell: &(dyn Fn(&str) + Sync)) -> io::Result<()> {
        let gate = Gate { out, stop, tell, lives: Mutex::default() };
        match self {
            Self::Tcp(listener) => tcp::listen(listener, &gate),
            Self::Redis(place) => {
                redis::follow(&place.0, &gate);
                Ok(())
            }
        }
    }
}

/// What every report passes on its way in, by whichever connection it comes.
pub(super) struct Gate<'a> {
    out: &'a SyncSender<Received>,
    stop: &'a AtomicBool,
    tell: &'a (dyn Fn(&str) + Sync),
    lives: Mutex<Lives>,
}

impl Gate<'_> {
    pub fn is_closed(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub fn tell(&self, line: &str) {
        (self.tell)(line);
    }

    /// False once nobody wants more. Waits for room, and so lets the meter wait.
    pub fn pass(&self, envelope: Envelope) -> bool {
        let Envelope { life, number, report } = envelope;
        let Some(report) = unsqueeze(&report) else {
            self.tell("a report that nobody squeezed like that; ignored");
            return true;
        };
        // Held while it is put into the queue: two connections of one meter must not overtake each other.
        let mut lives = self.lives.lock().unwrap_or_else(PoisonError::into_inner);
        match lives.place(life, number) {
            Place::Repeated => true,
            Place::After(0) => self.put(Received::Report { life, report }),
            Place::After(reports) => {
                self.put(Received::Missing { life, reports }) && self.put(Received::Report { life, report })
            }
        }
    }

    fn put(&self, mut received: Received) -> bool {
        loop {
            received = match self.out.try_send(received) {
                Ok(()) => return true,
                Err(TrySendError::Disconnected(_)) => return false,
                Err(TrySendError::Full(_)) if self.is_closed() => return false,
                Err(TrySendError::Full(received)) => received,
            };
            thread::sleep(LOOK_EVERY);
        }
    }
}

/// How far each meter has told.
#[derive(Debug, Default)]
struct Lives {
    /// The next number of a life, and when it was last heard of.
    next: BTreeMap<u64, (u64, u64)>,
    heard: u64,
}

#[derive(Debug, PartialEq, Eq)]
enum Place {
    Repeated,
    /// So many are missing before it.
    After(u64),
}

impl Lives {
    fn place(&mut self, life: u64, number: u64) -> Place {
        self.heard += 1;
        if self.next.len() >= MOST_LIVES
            && !self.next.contains_key(&life)
            && let Some(oldest) = self.next.iter().min_by_key(|(_, (_, heard))| *heard).map(|(life, _)| *life)
        {
            self.next.remove(&oldest);
        }
        // What a meter said before the collector was there is not missing.
        let (next, heard) = self.next.entry(life).or_insert((number, 0));
        *heard = self.heard;
        if number < *next {
            return Place::Repeated;
        }
        let missing = number - *next;
        *next = number.saturating_add(1);
        Place::After(missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_twice_counts_once_and_what_does_not_come_is_missing() {
        let mut lives = Lives::default();
        let places: Vec<Place> = [(1, 40), (1, 41), (1, 41), (2, 0), (1, 45), (1, 44), (2, 1)]
            .map(|(life, number)| lives.place(life, number))
            .into();
        use Place::{After, Repeated};
        assert_eq!(places, [After(0), After(0), Repeated, After(0), After(3), Repeated, After(0)]);
        assert_eq!(lives.place(3, u64::MAX), After(0));
        assert_eq!(lives.place(3, 0), Repeated);
    }

    #[test]
    fn lives_without_end_take_no_more_memory() {
        let mut lives = Lives::default();
        for life in 0..2 * MOST_LIVES as u64 {
            lives.place(life, 0);
        }
        assert_eq!(lives.next.len(), MOST_LIVES);
        assert_eq!(lives.place(2 * MOST_LIVES as u64 - 1, 1), Place::After(0), "the latest are kept");
    }
}
